"""The options that describe a table, and the table that they lead to.

`TableOptions.joint` reads a table as the options say. `InputTable` is the table of a command that
starts from one. `OtherTable` is a table given beside a channel file: what no option says of it, the
channel says. Example: ``audit channel.json --table new.csv`` reads the columns of the channel from
new.csv, and sorts their numbers into its bins.

*Rows*: ``--release A,B --given D`` (`RowColumns`) releases the columns A and B of every record as a
row of the table, and the column D as it is. ``--release all`` releases every column but the
sensitive ones, those of ``--given`` and those of ``--leave-out``.

*People* in the table of a design whose promise is about records are said, and not written. `design`
looks for a column that names people with several records before it searches
(`PeopleGuard.of`). When the channel is there, `PeopleGuard.check` says what the records of a person
reach together through it, and refuses to write files, unless --person or --unit record was given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import mechdesign as md
from mechdesign.cli import parsing
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.options import PUBLIC_TABLE
from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted

if TYPE_CHECKING:
    from mechdesign.formats.cells import CellForm
    from mechdesign.formats.csv_text import TextOptions
    from mechdesign.leaks.people_notice import PeopleFound
    from mechdesign.tables.cell_values import CellRules
    from mechdesign.tables.variable import Variable


AUTO = "auto"
"""Bins that `design` chooses for the budget."""

Columns: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """CSV format"""

    delimiter: str = option("CHAR", "Between cells; tab may be written so.", ",")
    quote: str = option("CHAR", "Around cells; none if there are no quotes.", '"')
    encoding: str = option("NAME", "Of the text.", "utf-8")
    skip_lines: str = option(
        "N|auto",
        "Lines above the header, such as titles and comments; auto takes what looks like them.",
        "0",
    )

    def text(self) -> TextOptions:
        """As the readers take it."""
        from mechdesign.formats.csv_text import TextOptions

        delimiter = self.delimiter
        if delimiter in ("tab", "\\t"):
            delimiter = "\t"
        quote: str | None = self.quote
        if quote == "none":
            quote = None
        lines: Any = self.skip_lines
        # Another word is refused with the option's name.
        if self.skip_lines.isdecimal():
            lines = int(self.skip_lines)
        return TextOptions(
            delimiter=delimiter, quote=quote, encoding=self.encoding, skip_lines=lines
        )


@dataclass(frozen=True, kw_only=True)
class CellForms:
    """Forms of cells"""

    normalise: str | None = option(
        "FORM",
        "Unicode form in which cells are compared: none, NFC, NFD, NFKC or NFKD.",
    )
    trim: bool = flag("Compare cells without blanks at their ends.")
    missing_codes: str | None = option(
        "TEXT[,TEXT..]",
        "Cells with these texts, such as ?, NA or -9, are empty ones.",
    )

    def cell_form(self) -> CellForm | None:
        """The form in which cells are compared; None where no option says it."""
        from mechdesign.formats.cells import CellForm

        if self.normalise is None and not self.trim and self.missing_codes is None:
            return None
        return CellForm(
            normalise=self.normalise or "none",
            trim=self.trim,
            missing_codes=parsing.codes(self.missing_codes),
        )


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table"""

    sensitive: str | None = option(
        "COL[,COL..]", "Column to protect; several are crossed."
    )
    protect_each: bool = flag(
        "Protect each of several sensitive columns for itself, not their combinations."
    )
    useful: str | None = option(
        "COL[,COL..]",
        "Column to release; several are crossed. It may be the sensitive one: then its own values "
        "are protected. With --contingency, the name that `apply` will look for.",
    )
    weight: str | None = option(
        "COL",
        "Column with the count of each row; or its survey weight, with --weighted.",
    )
    contingency: bool = flag(
        "The table is one of counts: sensitive symbols down the first column, useful ones along "
        "the header."
    )
    probabilities: bool = flag("A wide table of probabilities instead of counts.")
    weighted: bool = flag(
        "With --contingency or --weight: survey weights (fractions too), not records."
    )
    missing: str = option(
        "WHAT",
        "Treatment of empty cells: refuse, symbol, drop; or marginal or output:LABEL (left out "
        "here, and released so by `apply`).",
        "refuse",
    )
    normalise: str | None = option(
        "FORM",
        "Unicode form in which cells are compared, here and by `apply`: none, NFC, NFD, NFKC or "
        "NFKD.",
    )
    trim: bool = flag(
        "Compare cells without blanks at their ends, here and in `apply`."
    )
    missing_codes: str | None = option(
        "TEXT[,TEXT..]",
        "Cells with these texts, such as ?, NA or -9, are empty ones, here and in `apply`.",
    )
    bins: list[str] | None = option(
        "[COL=]BINS",
        "Sort numbers, dates or times into bins: a width (10, 0.5, 7d, "
        "1h), quantiles:N, auto:N, or edges with commas (-inf and inf, too); `design` has "
        "auto. Repeat it for crossed columns.",
        names="--bin",
    )

    def cell_form(self) -> CellForm | None:
        """The form in which cells are compared; None where no option says it."""
        forms = CellForms(
            normalise=self.normalise, trim=self.trim, missing_codes=self.missing_codes
        )
        return forms.cell_form()

    def joint(
        self,
        path: str,
        *,
        sensitive: Columns | None = None,
        useful: Columns | None = None,
        bins: Any = None,
        form: CellForm | None = None,
    ) -> md.Joint:
        """Read a table as the options say.

        Parameters
        ----------
        path : str
            The table.
        sensitive, useful : tuple of str, optional
            The columns where no option names them.
        bins : optional
            Bins that take the place of those of the options.
        form : CellForm, optional
            The form in which cells are compared, where no option says it.
        """
        from mechdesign.tables.reading import read_joint

        form = self.cell_form() or form
        sensitive_columns = parsing.columns("--sensitive", self.sensitive)
        useful_columns = parsing.columns("--useful", self.useful)
        # A wide table is read by its layout, not by names of columns.
        is_wide = self.contingency or self.probabilities
        if not is_wide and sensitive_columns is None:
            sensitive_columns = sensitive
        if not is_wide and useful_columns is None:
            useful_columns = useful
        if bins is None:
            bins = parsing.bins_of(self.bins)
        # The tables of commands are both; this class alone has no form of CSV.
        text: TextOptions | None = None
        if isinstance(self, TextFormat):
            text = self.text()
        joint = read_joint(
            path,
            sensitive=sensitive_columns,
            useful=useful_columns,
            weight=self.weight,
            contingency=self.contingency,
            probabilities=self.probabilities,
            weighted=self.weighted,
            missing=self.missing,
            bins=bins,
            text=text,
            form=form,
        )
        if self.protect_each:
            return joint.protecting_each()
        return joint


@dataclass(frozen=True, kw_only=True)
class InputTable(TextFormat, TableOptions):
    """The table that a command works on."""

    table: str = argument(
        "TABLE",
        "CSV or Parquet: one record a row, long counts (--weight), or a wide count table "
        "(--contingency). Records and long counts may be many files: a folder, or a glob in "
        "quotes.",
        public=PUBLIC_TABLE,
    )

    @property
    def inputs(self) -> tuple[str, ...]:
        """The file of the table, or those of a folder."""
        from mechdesign.formats.opening import paths_of

        return tuple(os.fspath(path) for path in paths_of(self.table))

    def header(self) -> list[str]:
        """The names of the columns of the table."""
        from mechdesign.tables.reading import column_names_of

        if self.table == "-":
            raise InputError(
                "--release all reads the header of the table first: give a file, not -"
            )
        return column_names_of(self.table, self.text())

    def read_before_auto(self, useful: Columns | None = None) -> tuple[md.Joint, Any]:
        """The table without the bins that only a budget can decide (``auto``), and the request for
        these as `DesignRequest.bins` takes it.

        The request is "auto" for a table of one useful column, {column: "auto"} for crossed ones,
        and None where all bins are known. ``--bin age=10 --bin income=auto`` gives a table with
        ages in tens and single incomes, and the request {"income": "auto"}. `useful` are the
        columns where no option names them.
        """
        # Three forms: bins of the one column, none or known ones, and bins by column.
        bins = parsing.bins_of(self.bins)
        if bins == AUTO:
            return replace(self, bins=None).joint(self.table, useful=useful), AUTO
        if bins is None or isinstance(bins, str):
            return self.joint(self.table, useful=useful), None
        undecided: dict[str, Any] = {}
        decided: dict[str, Any] = {}
        for column, text in bins.items():
            if text == AUTO:
                undecided[column] = text
            else:
                decided[column] = text
        if not undecided:
            return self.joint(self.table, useful=useful), None
        table = replace(self, bins=None).joint(
            self.table, useful=useful, bins=decided or None
        )
        return table, undecided


ALL = "all"
"""Every column of the table that has no other role."""


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """Release rows"""

    release: list[str] | None = option(
        "COL[,COL..]|all",
        "Release rows of these columns under one promise; each column is written by itself. all: "
        "every column but the sensitive and left-out ones.",
    )
    given: list[str] | None = option(
        "COL[,COL..]", "Columns released as they are, with --release."
    )
    leave_out: list[str] | None = option(
        "COL[,COL..]", "With --release all: columns that are not released."
    )
    promise: str = option(
        "WHICH",
        "With --given: total (compared with knowing nothing) or relative (compared "
        "with knowing the given columns).",
        "total",
    )

    @property
    def asked(self) -> bool:
        """True if rows are to be released."""
        return self.release is not None

    def given_columns(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        return parsing.names("--given", self.given)

    def released_columns(self, table: InputTable) -> tuple[str, ...]:
        """The columns that are released as rows; of ``all`` those that the table has.

        Raises
        ------
        InputError
            If a column has two roles.
        """
        released = parsing.names("--release", self.release)
        left_out = parsing.names("--leave-out", self.leave_out)
        given = self.given_columns()
        secrets = _secrets(table)
        if released == (ALL,):
            header = table.header()
            # One name with commas in it, or several: the table decides.
            text = table.sensitive or ""
            hidden = {text} if text in header else set(text.split(","))
            taken = {
                *hidden,
                *given,
                *left_out,
                *self.not_released(),
                *((table.weight,) if table.weight else ()),
            }
            unknown = [name for name in left_out if name not in header]
            if unknown:
                raise InputError(
                    f"--leave-out: the table has no column {listed(unknown)}"
                )
            released = tuple(name for name in header if name not in taken)
            if not released:
                raise InputError("--release all leaves no column to release")
            return released
        if left_out:
            raise InputError(
                "--leave-out belongs to --release all; otherwise only the columns that --release "
                "names are released"
            )
        for name in (*released, *given):
            if name in secrets:
                raise InputError(
                    f"the sensitive column {quoted(name)} cannot be released or given; leave it "
                    "out of --release and --given (by itself --useful releases it, its own values "
                    "protected)"
                )
        twice = repeated((*released, *given))
        if twice is not None:
            raise InputError(
                f"the column {quoted(twice)} is released twice; name it once in --release, or in "
                "--given"
            )
        return released

    def not_released(self) -> tuple[str, ...]:
        """Columns with another role, which ``--release all`` leaves out."""
        return ()

    def check_table(self, table: InputTable) -> None:
        """Refuse tables without single records, and columns named in two ways."""
        if table.contingency or table.probabilities:
            raise InputError(
                "--release takes a table of records (or long counts with --weight), not "
                "--contingency or --probabilities"
            )
        if table.useful is not None:
            raise InputError(
                "--release names the columns to release: leave --useful out"
            )


def _secrets(table: InputTable) -> tuple[str, ...]:
    """The sensitive columns, in either reading of their text."""
    secrets = parsing.columns("--sensitive", table.sensitive) or ()
    if isinstance(secrets, str):
        return (secrets, *secrets.split(","))
    return secrets


@dataclass(frozen=True, kw_only=True)
class OtherTable(TextFormat, TableOptions):
    """The table"""

    table: str | None = option(
        "TABLE", "The table to check against: CSV or Parquet.", public=PUBLIC_TABLE
    )

    def read(
        self, path: str, *channels: md.Channel, together: bool = False
    ) -> md.Joint | None:
        """The table of `--table` as the channels read it; None if the option is not given.

        Columns and bins that no option names are those of the channels.

        Parameters
        ----------
        path : str
            The file of the channels, for messages.
        channels : Channel
        together : bool
            Whether the channels are judged together, so that all must protect the same column.
        """
        from mechdesign.tables.records import bins_by_column

        if self.table is None:
            # The channel's own table would be taken, and what was typed of another one ignored.
            if self != type(self)():
                raise InputError(
                    "--sensitive, --useful and so on describe a table: give --table TABLE too"
                )
            return None
        protected: list[Variable] = []
        for channel in channels:
            if channel.sensitive is not None:
                protected.append(channel.sensitive)
        if together and self.sensitive is None:
            _refuse_different_secrets(protected)
        read = [channel.useful for channel in channels]
        # A symbol of the channel is a bin: the table must be sorted into the very same ones.
        bins = bins_by_column(read)
        if bins and self.bins:
            raise InputError(
                f"{path} has its own bins, and the table is sorted into them: leave --bin out"
            )
        if any(variable.people is not None for variable in read):
            return self._read_people(channels)
        sensitive: Columns | None = None
        if protected:
            sensitive = protected[0].columns
        # A column that two channels read is read once.
        useful: dict[str, None] = {}
        for variable in read:
            useful.update(dict.fromkeys(variable.columns))
        options = self
        if self.sensitive is None and _protect_each_of_several(protected, channels):
            options = replace(self, protect_each=True)
        rules = self._rules_of(channels)
        if rules is not None and options.missing == "refuse":
            # Empty cells of this table are what they were in the table of the channel.
            options = replace(options, missing=rules.counted)
        return options.joint(
            self.table,
            sensitive=sensitive,
            useful=tuple(useful),
            bins=bins or None,
            # What was one symbol for the channel is one here.
            form=None if rules is None else rules.cell_form,
        )

    def _rules_of(self, channels: Sequence[md.Channel]) -> CellRules | None:
        """The rules by which the channels read a table, where no option says otherwise."""
        from mechdesign.release.samplers import FORM_RULES, RULES, recorded_rules

        # What is released for a cell without a symbol is no matter of the table.
        settled = set(RULES) - set(FORM_RULES)
        if self.cell_form() is not None:
            settled = set(RULES)
        return recorded_rules(channels, settled)

    def _read_people(self, channels: Sequence[md.Channel]) -> md.Joint:
        """The table of channels for people with several records, folded as their own one was."""
        from mechdesign.tables.people_tables import PeopleRoles, read_people

        useful = [channel.useful for channel in channels]
        if any(variable.people is None for variable in useful):
            raise InputError(
                "channels for people with several records and channels for single records are not "
                "judged together: records of a person have as many outputs as there are sequences "
                "of them"
            )
        if self.table is None:
            raise TypeError("no table of people")
        named = (self.sensitive, self.useful, self.weight, self.bins)
        if any(named) or self.contingency or self.probabilities:
            raise InputError(
                "the channel says which columns make people of records: leave --sensitive, "
                "--useful, --weight, --bin, --contingency and --probabilities out"
            )
        rules = self._rules_of(channels)
        missing = self.missing
        form = self.cell_form()
        if rules is not None:
            missing = rules.counted if missing == "refuse" else missing
            form = form or rules.cell_form
        joint = read_people(
            self.table,
            PeopleRoles.of(useful[0]).widened(useful[1:]),
            missing,
            self.text(),
            form,
        )
        sensitive = channels[0].sensitive
        if sensitive is not None and sensitive.protects_columns:
            joint = joint.protecting_each()
        return joint

    def read_for(self, channel: md.Channel, path: str) -> md.Joint:
        """The table given, or that of the channel, which was read from `path`."""
        joint = self.read(path, channel)
        if joint is None:
            joint = channel.joint
        if joint is None:
            from mechdesign.auditing.either import NO_COUNTS

            channel.on_tables(NO_COUNTS)
            raise InputError(
                f"{path} is a public channel without its table: give --table TABLE"
            )
        return joint


def _refuse_different_secrets(protected: Sequence[Variable]) -> None:
    """Refuse to judge channels together that protect different columns."""
    secrets = {",".join(variable.columns) for variable in protected}
    if len(secrets) > 1:
        raise InputError(
            f"the channels protect different columns ({listed(sorted(secrets))}): say about which "
            "you ask (--sensitive COL, or several with --protect-each)"
        )


def _protect_each_of_several(
    protected: Sequence[Variable], channels: Sequence[md.Channel]
) -> bool:
    """Whether every channel protects each of several columns for itself, not their combinations.

    The table must then be read in this way, too.
    """
    if not protected or len(protected) < len(channels):
        return False
    return all(variable.protects_columns for variable in protected)


# ------------------------------------------------------------------------- people guard

UNSEEN = (
    "nobody looked whether people have several records in this table, since standard input and "
    "URLs are read once: the promise is about each record alone (--person promises for all "
    "records of a person, --unit record says that no person has several)"
)
"""The note on a table that is not looked at."""


@dataclass(frozen=True)
class PeopleGuard:
    """What was found of people; None where there are none, or the user has decided. A table that
    cannot be read once more is `unseen`.
    """

    found: PeopleFound | None
    sensitive: tuple[str, ...]
    writes: bool
    unseen: bool = False

    @classmethod
    def of(
        cls,
        table: InputTable,
        released: Sequence[str],
        *,
        decided: bool,
        writes: bool,
    ) -> PeopleGuard:
        """Look for people in a table of records.

        Parameters
        ----------
        table : InputTable
        released : sequence of str
            The columns of --release.
        decided : bool
            Whether the user has said what the unit is, with --person or --unit.
        writes : bool
            Whether a file will be written.
        """
        from mechdesign.core.files import STANDARD, is_url
        from mechdesign.leaks.people_notice import people_in
        from mechdesign.tables.reading import columns_named

        # Standard input is gone when it was read, and a URL may be large.
        source = table.table
        has_records = not (table.weight or table.contingency or table.probabilities)
        sensitive = parsing.columns("--sensitive", table.sensitive)
        if decided or not has_records or sensitive is None:
            return cls(None, (), writes)
        if source == STANDARD or is_url(source):
            return cls(None, (), writes, unseen=True)
        try:
            header = table.header()
            names = columns_named(sensitive, header)
            useful = parsing.columns("--useful", table.useful)
            own = [*released, *(columns_named(useful, header) if useful else ())]
            # One column released alone has a promise for each of its values, whatever it names;
            # beside others it tells whose they are.
            alone = own if len(own) == 1 else ()
            found = people_in(source, names, table.text(), but=alone)
        except InputError:
            # Whoever reads the table for the design says what is wrong with it.
            return cls(None, (), writes)
        return cls(found, names, writes)

    def check(self, reporter: Reporter, channel: md.Channel | None) -> None:
        """Say what people reach through a channel, and refuse to write it.

        Without a channel, which boxes do not have, only the people are named.
        """
        if self.unseen and self.writes:
            reporter.notices((UNSEEN,))
        if self.found is None:
            return
        from mechdesign.leaks.people_notice import people_notice, reach_in

        reach = None if channel is None else reach_in(self.found, channel)
        notice = people_notice(self.found, self.sensitive, reach)
        if self.writes:
            raise InputError(f"nothing was written: {notice}")
        reporter.notices((notice,))
