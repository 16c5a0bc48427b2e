"""A release channel W(y|x) in exact integers, with its labels, its draws and its file.

A `Channel` is made by `design` or read by `load`, and never changes; `public` and `with_record`
return others. Everything is computed from two tables of integers: its rows, and the counts of the
joint table, if it has one. With the rows (3, 1) and (1, 3) over 4 for x = clerk, nurse, and with 10
clerks and 20 nurses in the table, the output y = clerk has the masses 30 and 20 behind it
(`behind`), so P(clerk | y) = 3/5 and P(y) = 50/120.

The class checks that its rows are probabilities. Whether they keep a promise is decided by
`auditing`, never here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np

from mechdesign.channel.checks import check_published, check_rows
from mechdesign.channel.output_cells import OutputCells
from mechdesign.channel.record import ChannelRecord, check_symbol_budgets
from mechdesign.channel.row_law import NOT_KEPT, RowLaw
from mechdesign.channel.saving import Saved
from mechdesign.channel.true_records import symbol_of, symbol_of_person
from mechdesign.core.above import above
from mechdesign.core.arguments import repeated, valid_text
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion, from_record
from mechdesign.release.drawing import (
    DRAWS,
    INDEPENDENT,
    Release,
    channel_digest,
    key_of,
)
from mechdesign.release.draws import Key, records_of
from mechdesign.release.people_frames import apply_to_people
from mechdesign.release.policies import REFUSE, Policy
from mechdesign.release.released_frames import frame_of_columns
from mechdesign.release.released_values import LABEL
from mechdesign.release.whole_tables import fix_where_whole
from mechdesign.tables.columns import is_frame, values_of
from mechdesign.tables.joint import Array, Joint
from mechdesign.tables.people import People
from mechdesign.tables.rebuilding import rebuild
from mechdesign.tables.variable import Variable

DENOMINATOR = 2**53
"""Common denominator of every designed channel: its probabilities are doubles without rounding."""


@dataclass(frozen=True, repr=False)
class Channel(Saved, Displayed):
    """W(y|x) = ``rows[x][y] / denominator``, exactly; rows are inputs x, columns outputs y.

    A `Channel` has rows of probabilities. Its privacy is a matter of `auditing.audit`.

    Parameters
    ----------
    useful : Variable
        The |X| inputs, one per row.
    outputs : tuple of str
        One label per output, all different.
    rows : |X| sequences of integers
        Non-negative, each summing to `denominator`; every output is reached by some row.
    denominator : int
        Common denominator, in [1, 2**62]. With `totals` it is their least common multiple, of any
        size, whatever is given.
    totals : |X| integers, optional
        The sum of each row where rows have sums of their own, in [1, 2**62]: then W(y|x) is
        ``rows[x][y] / totals[x]``. A plan that keeps the law of the table has the row sums c_x M
        (docs/explanation/rows-theory.md, proposition 5).
    joint : Joint, optional
        The table that the channel was designed for; None in a public channel.
    sensitive : Variable, optional
        That of the joint when there is one.
    record : ChannelRecord
    given : tuple of str
        Useful columns that are released as they are: an input and the outputs that it can become
        have the same cells there.
    published : OutputCells, optional
        What is written for each output, where it is more than one column of labels.

    Raises
    ------
    InputError
        If any of this does not hold; the message names the row or the output.
    """

    useful: Variable
    outputs: tuple[str, ...]
    rows: Sequence[Sequence[int]]
    denominator: int = DENOMINATOR
    joint: Joint | None = None
    sensitive: Variable | None = None
    record: ChannelRecord = field(default_factory=ChannelRecord)
    totals: tuple[int, ...] | None = None
    given: tuple[str, ...] = ()
    published: OutputCells | None = None

    FILES: ClassVar[str] = "channel_file"
    REPORTS: ClassVar[str] = "reports"

    fills: ClassVar[Literal[False]] = False
    """No rows are drawn within boxes."""

    labelled_boxes: ClassVar[None] = None
    """Labels of boxes, in which columns are estimated: none are released."""

    judged_alone: ClassVar[Literal[False]] = False
    """True of a channel that is judged on the counts that it carries, and on no other table."""

    def __repr__(self) -> str:
        text = f"Channel({self.useful.brief} to {len(self.outputs):,} outputs"
        if self.sensitive is not None:
            text += f", protects {self.sensitive.brief}"
        if self.record.notion is not None:
            text += f", {from_record(self.record.notion).text}"
        return text + ")"

    def __post_init__(self) -> None:
        outputs = tuple(valid_text(label, "an output label") for label in self.outputs)
        # The class is frozen, so normalised fields are set past its own `__setattr__`.
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "rows", IntegerRows.of(self.rows, self.useful.names))
        if not outputs:
            raise InputError("a channel needs at least one output")
        twice = repeated(outputs)
        if twice is not None:
            raise InputError(
                f"the output label {quoted(twice)} occurs twice; labels must be different"
            )
        self._set_denominator()
        check_rows(
            self.useful,
            outputs,
            self.integers,
            self.row_totals,
            "the denominator" if self.totals is None else "its total",
        )
        check_published(self.useful, outputs, self.integers, self.given, self.published)
        if self.joint is not None:
            self._check_joint(self.joint)
            object.__setattr__(self, "sensitive", self.joint.sensitive)
        # After `sensitive` is set: budgets belong to its symbols.
        self._check_record()

    def _check_joint(self, joint: Joint) -> None:
        """Raise InputError unless the joint table is over the channel's own variables."""
        if joint.useful != self.useful:
            raise InputError(
                "the useful variable of the joint table is not the one of the channel"
            )
        if self.sensitive not in (None, joint.sensitive):
            raise InputError(
                "the sensitive variable of the joint table is not the one of the channel"
            )

    def _set_denominator(self) -> None:
        """Make the common denominator of rows with totals of their own; check what is given."""
        if self.totals is None:
            _check_total(self.denominator, "the denominator")
            return
        if len(self.totals) != len(self.useful):
            raise InputError(
                f"there are {len(self.totals)} totals for {len(self.useful)} rows"
            )
        for name, total in zip(self.useful.names, self.totals, strict=True):
            _check_total(total, f"row {quoted(name)}: the total")
        totals = tuple(self.totals)
        # Where all rows have the same total, it is the denominator alone: one form for one channel.
        if len(set(totals)) == 1:
            object.__setattr__(self, "totals", None)
            object.__setattr__(self, "denominator", totals[0])
            return
        object.__setattr__(self, "totals", totals)
        object.__setattr__(self, "denominator", math.lcm(*set(totals)))

    def _check_record(self) -> None:
        """Raise InputError unless the record's budgets and intervals fit the channel's symbols."""
        record = self.record
        if self.sensitive is None:
            if record.budgets or record.confidence:
                raise InputError(
                    "budgets of symbols and a confidence set need sensitive symbols, and there "
                    "are none"
                )
            return
        check_symbol_budgets(record.budgets, self.sensitive)
        intervals = (record.confidence or {}).get("intervals")
        if intervals is not None:
            size = len(self.sensitive)
            width = len(self.useful)
            widths = [len(row) for row in intervals["cells"]]
            if len(intervals["shares"]) != size or widths != [width] * size:
                raise InputError(
                    f"confidence: there must be intervals for {size} shares, and for {size} rows "
                    f"of {width} cells"
                )

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that records go through: this one alone. Boxes have one a stratum."""
        return (self,)

    @property
    def promise(self) -> Notion | None:
        """The notion that the channel was designed for; None if it promises nothing."""
        return self.record.promise(self.sensitive)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What the record says of the origin."""
        return self.record.provenance

    @property
    def digest(self) -> str:
        """SHA-256 of what the channel does, by which ledgers and manifests know it."""
        # To type checkers a cached property is no attribute, which the protocol of drawing wants.
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return channel_digest(self)

    @property
    def hidden(self) -> tuple[Variable, ...]:
        """The variables whose symbols the channel hides, beside the sensitive one."""
        return (self.useful,)

    @property
    def watched(self) -> tuple[Variable, ...]:
        """The hidden variables by which the records of a table must not be sorted.

        The sequences of people tell how many records they have, which is given: where the records
        of a file are in random order, people with more of them come first. Their first records are
        looked at instead (`jobs.people_run.watch_order`).
        """
        return () if self.people is not None else self.hidden

    @property
    def people(self) -> People | None:
        """The people with several records that the channel is for; None where it is for records."""
        return self.useful.people

    @property
    def input_columns(self) -> tuple[tuple[Variable, int], ...]:
        """For each column that a record is drawn by, its variable, and its place there."""
        return tuple((self.useful, part) for part in range(len(self.useful.columns)))

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that the channel needs of a record."""
        return self.useful.columns

    @property
    def given_columns(self) -> tuple[str, ...]:
        """Names of the columns that are released as they are."""
        return self.given

    @property
    def randomised_columns(self) -> tuple[str, ...]:
        """Names of the released columns that are not given."""
        return tuple(name for name in self.useful.columns if name not in self.given)

    def single(self) -> Channel:
        """The one channel to released labels: itself. Boxes have it inside, if at all."""
        return self

    def on_tables(self, refusal: str) -> Channel:
        """The channel as one whose promise a table decides: itself. Boxes raise the `refusal`."""
        return self

    @property
    def integers(self) -> IntegerRows:
        """`rows` with their sparse structure."""
        return IntegerRows.of(self.rows)

    @property
    def row_totals(self) -> tuple[int, ...]:
        """The sum of each row."""
        if self.totals is not None:
            return self.totals
        return (self.denominator,) * len(self.useful)

    @cached_property
    def columns(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """For each output the inputs that can have caused it, ascending, and W(y|x) in units of
        1 / `denominator`, as Python integers.
        """
        if self.totals is None:
            return list(self.integers.columns)
        # Rows with totals of their own are brought to the common denominator.
        scales = [self.denominator // total for total in self.totals]
        columns: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        for inputs, values in self.integers.columns:
            scaled = (scales[x] * w for x, w in zip(inputs, values, strict=True))
            columns.append((inputs, tuple(scaled)))
        return columns

    @property
    def shares(self) -> Array:
        """(entries,) array of W(y|x) of the positive entries of `integers`, correctly rounded."""
        if self.totals is None:
            return self.integers.values / float(self.denominator)
        totals = np.array(self.totals, dtype=np.int64)[self.integers.row_of]
        # Python divides integers with correct rounding, NumPy converts them first.
        pairs = zip(self.integers.values.tolist(), totals.tolist(), strict=True)
        return np.array([value / total for value, total in pairs])

    @property
    def probabilities(self) -> Any:
        """(|X|, outputs) W(y|x) as a SciPy array in compressed sparse rows."""
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        integers = self.integers
        return csr_array(
            (self.shares, integers.indices, integers.indptr), shape=integers.shape
        )

    # A Protocol's property accepts a property only, therefore the caches lie behind properties.
    @property
    def matrix(self) -> Array:
        """(|X|, outputs) array of W(y|x), correctly rounded.

        It is dense: a channel of many rows has `integers` and `shares`.
        """
        return self._cached_matrix

    @cached_property
    def _cached_matrix(self) -> Array:
        integers = self.integers
        values = np.zeros(integers.shape)
        values[integers.row_of, integers.indices] = self.shares
        values.setflags(write=False)
        return values

    @cached_property
    def output_masses(self) -> Array:
        """(outputs,) array of P(y) under the joint table.

        Raises
        ------
        InputError
            If the channel has no joint table, as a public one.
        """
        # Sums of integers, and one division at the end: each mass is rounded once.
        totals = [sum(masses) for _, masses in self.behind]
        scale = sum(totals)
        return np.array([total / scale for total in totals])

    @property
    def posteriors(self) -> Array:
        """(outputs, |X|) array of P(x|y) under the joint; raises as `output_masses` does."""
        return self._cached_posteriors

    @cached_property
    def _cached_posteriors(self) -> Array:
        """As `posteriors`; inputs that are not behind an output have 0."""
        values = np.zeros((len(self.outputs), len(self.useful)))
        for row, (inputs, masses) in zip(values, self.behind, strict=True):
            total = sum(masses)
            # Of integers, so that each quotient is rounded once.
            row[list(inputs)] = [mass / total for mass in masses]
        values.setflags(write=False)
        return values

    @property
    def behind(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """For every output the inputs that can have caused it, and their P(x, y) as integers.

        They are N(x) W(y|x) denominator = P(x, y) total denominator, with the counts N(x) of the
        table.
        """
        if self.joint is None:
            raise InputError(
                "this channel carries no joint table (a public one): posteriors need the table"
            )
        # Python integers, because counts times entries may exceed 64 bits.
        weights = self.joint.useful_counts
        behind: list[tuple[tuple[int, ...], list[int]]] = []
        for inputs, values in self.columns:
            masses = [weights[x] * w for x, w in zip(inputs, values, strict=True)]
            behind.append((inputs, masses))
        return behind

    @property
    def own_entries(self) -> list[int]:
        """W(y|x) of each row x on the output that has the name of its symbol, in units of
        1 / `denominator`; 0 without one.
        """
        output_of = dict(zip(self.outputs, range(len(self.outputs)), strict=True))
        entries: list[int] = []
        for name, row, total in zip(
            self.useful.names, self.integers.entries(), self.row_totals, strict=True
        ):
            y = output_of.get(name, -1)
            entries.append(dict(row).get(y, 0) * (self.denominator // total))
        return entries

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Names of the columns that are written for an output."""
        if self.published is None:
            return (",".join(self.useful.columns),)
        return self.published.columns

    @property
    def output_cells(self) -> tuple[tuple[str, ...], ...]:
        """For each output what is written, a text for each of `output_columns`."""
        if self.published is None:
            return tuple((label,) for label in self.outputs)
        return self.published.cells

    @property
    def writes_rows(self) -> bool:
        """True if the channel says itself what it writes, in more than one column of labels."""
        return self.published is not None

    @property
    def releases_symbols(self) -> bool:
        """True if outputs are written as symbols of the columns, and not as labels."""
        return (
            self.published is not None and self.published.columns == self.useful.columns
        )

    @property
    def tells_shares(self) -> bool:
        """Whether rows or symbols are released as such, and the table is there to say how often."""
        return self.releases_symbols and self.joint is not None

    @cached_property
    def row_law(self) -> RowLaw:
        """How rows are drawn; for rows or symbols that are released as such.

        Raises
        ------
        InputError
            If neither a table nor a kept law says how often there are which rows.
        """
        if self.joint is not None:
            masses = self.joint.p_x
        elif self.keeps_law:
            # Then totals are in proportion to the records of their rows.
            totals = np.array([float(total) for total in self.row_totals])
            masses = totals / totals.sum()
        else:
            raise InputError(NOT_KEPT)
        integers = self.integers
        return RowLaw(
            self.useful.columns,
            self.output_cells,
            self.useful.symbols,
            masses,
            masses,
            integers.row_of,
            integers.indices,
            self.shares,
            self.keeps_law,
        )

    @property
    def silent_strata(self) -> Sequence[str]:
        """Strata of which nothing but the given columns is released: none."""
        return ()

    @cached_property
    def keeps_law(self) -> bool:
        """True if every row of the table is released exactly as often as the table has it.

        The total of each row must be in proportion to its records. A public channel does not say
        how many these are: it is taken to be, where the design was asked to keep the law.
        """
        if not self.releases_symbols:
            return False
        objective = self.record.objective
        if self.joint is None and (objective is None or not objective.keep_frequencies):
            return False
        totals = self.row_totals
        if self.joint is not None:
            records = self.joint.useful_counts
            whole = sum(totals)
            for total, count in zip(totals, records, strict=True):
                if total * self.joint.total != count * whole:
                    return False
        # Python integers, because sums may exceed 64 bits.
        released = [sum(values) for _, values in self.integers.columns]
        if len(released) != len(totals):
            return False
        place = self.useful.index
        for cells, mass in zip(self.output_cells, released, strict=True):
            if cells not in place or totals[place[cells]] != mass:
                return False
        return True

    def codebook(self) -> dict[str, dict[str, float]]:
        """For every output label, the posterior P(x|y) of each input that can have caused it."""
        names = self.useful.names
        codebook: dict[str, dict[str, float]] = {}
        for label, (inputs, masses) in zip(self.outputs, self.behind, strict=True):
            total = sum(masses)
            posterior: dict[str, float] = {}
            for x, mass in zip(inputs, masses, strict=True):
                posterior[names[x]] = mass / total
            codebook[label] = posterior
        return codebook

    @property
    def unseen(self) -> int:
        """Number of symbols without a record in the table, which the promise covers, too.

        It covers them if they are released as the marginal.
        """
        return (self.record.confidence or {}).get("unseen", 0)

    @property
    def distance(self) -> Literal["absolute", "squared", "ranks"] | None:
        """The distance between numbers that the design minimised; None for other objectives."""
        objective = self.record.objective
        if objective is None:
            return None
        return objective.distance

    def distribution(
        self,
        row: Mapping[str, str] | Sequence[str] | Sequence[Mapping[str, str]] | str,
    ) -> dict[tuple[Any, ...], Fraction]:
        """The exact law of what is released for a record, or for all records of a person.

        Parameters
        ----------
        row : mapping of column to text, or sequence of texts
            The true texts of the useful columns, given ones included, in the order of
            ``useful.columns``; one text for a single column. Where a person has several records, a
            list of them in their order, each with the columns of ``useful.people.columns``.

        Returns
        -------
        dict from tuples of released texts to probabilities, which sum to 1
            One text for each of `output_columns`; of a person a tuple of such tuples, one for each
            record.

        Raises
        ------
        InputError
            If a column is missing, or the channel does not know the row.
        """
        if self.useful.people is not None:
            return self._distribution_of_person(self.useful.people, row)
        symbol = symbol_of(self.useful, cast("Sequence[str]", row))
        return self._law_of(symbol)

    def _distribution_of_person(
        self, people: People, records: Any
    ) -> dict[tuple[Any, ...], Fraction]:
        """The exact law of what is released for all records of a person."""
        law = self._law_of(symbol_of(self.useful, symbol_of_person(people, records)))
        return {people.records(symbol): share for symbol, share in law.items()}

    def _law_of(self, symbol: tuple[str, ...]) -> dict[tuple[Any, ...], Fraction]:
        """The exact law of what is released for a symbol."""
        if symbol not in self.useful.index:
            raise InputError(
                "the channel does not know this row: no record of its table has it"
            )
        x = self.useful.index[symbol]
        span = slice(int(self.integers.indptr[x]), int(self.integers.indptr[x + 1]))
        law: dict[tuple[Any, ...], Fraction] = {}
        for y, value in zip(
            cast("list[int]", self.integers.indices[span].tolist()),
            cast("list[int]", self.integers.values[span].tolist()),
            strict=True,
        ):
            cells = self.output_cells[y]
            share = Fraction(value, self.row_totals[x])
            law[cells] = law.get(cells, Fraction(0)) + share
        return law

    def with_provenance(self, **entries: Any) -> Channel:
        """The same channel with more entries in the record of its origin."""
        provenance = {**self.provenance, **entries}
        return self.with_record(replace(self.record, provenance=provenance))

    def with_record(self, record: ChannelRecord) -> Channel:
        """The same channel with another record."""
        return replace(self, record=record)

    def apply(
        self,
        column: Any,
        *,
        key: Key | None = None,
        identity: Sequence[str] | None = None,
        first_row: int = 0,
        policy: Policy | None = None,
        draws: str | None = None,
        insecure_seed: int | None = None,
        unit: str | None = None,
    ) -> Any:
        """Draw an output for every entry of a column; the same kind of column back. Of a frame a
        frame with the released columns.

        A pandas Series keeps its index, so that it finds its place in the frame it came from: take
        the index off (``reset_index(drop=True)``) before the column goes out by itself.

        The draw of a record depends on the key, the channel and the record's row number or
        identifier only. With the key of a job (`read_key`) it is the draw of that job. Without a
        key a new one is used and forgotten, so another call gives other draws, and two releases of
        a record disclose more than the budget.

        Parameters
        ----------
        column : pandas, polars or pyarrow column, or sequence of text
            Symbols of X as text; for one column or more a frame that has them, and for crossed ones
            also a sequence of tuples. Where the channel is for people with several records, a frame
            with their records: as many come out as before, and each person gets a new number.
        key : draws.Key, optional
        identity : sequence of str, optional
            What identifies each record; its row number otherwise.
        first_row : int
            Row number of the first entry.
        policy : release.Policy, optional
            The rules for unknown symbols and missing cells; by default those with which the
            channel was designed, where both are refused if nothing was said.
        draws : {"fixed", "independent"}, optional
            Fixed counts, the default where the column is the table of the design, or a draw of its
            own for each entry.
        insecure_seed : int, optional
            Reproducible draws, for tests only: with the seed the channel can be undone.
        unit : {"record"}, optional
            Says that the promise is knowingly about each record alone, where people have several.

        Raises
        ------
        InputError
            On a symbol that the channel does not know or a null, unless the policy has a rule for
            it. If people have several records, and the order of a frame or the index of a column
            tells which are of one person; not with ``unit="record"``.
        """
        if policy is None:
            policy = Policy.recorded(self.record.rules)
        if self.useful.people is not None:
            if first_row:
                raise InputError(
                    "people are drawn as a whole table: leave first_row out"
                )
            release = self.prepared(key_of(key, insecure_seed), policy=policy)
            return apply_to_people(
                release, self.useful.people, column, identity=identity, draws=draws
            )
        cells = values_of(column, self.useful)
        records = records_of(identity, first_row, len(cells[0]))
        if draws not in (None, *DRAWS):
            raise InputError(f"draws ({quoted(draws)}) must be one of {listed(DRAWS)}")
        # Other columns have nothing beside their cells, which names nobody.
        if is_frame(column) or hasattr(column, "to_frame"):
            above("people").refuse_people_of_draw(self, column, unit)
        release = self.prepared(key_of(key, insecure_seed), policy=policy)
        if draws != INDEPENDENT:
            fix_where_whole(release, cells, records, is_asked=draws is not None)
        drawn = release.draw(cells, records)
        if is_frame(column):
            columns = self.useful.columns
            return frame_of_columns(
                column, drawn, release.texts, release.names, columns[0]
            )
        if len(self.output_columns) > 1:
            return _tuples(drawn, release)
        return rebuild(
            column,
            drawn[0].astype(np.int64),
            self.outputs,
            release.names[0],
            own=self.releases_own_symbols,
        )

    def prepared(
        self,
        key: Key,
        *,
        policy: Policy | None = None,
        form: str = LABEL,
        changed: str = REFUSE,
    ) -> Release:
        """The channel prepared for drawing; the parameters are those of `Release`."""
        return Release(self, key, policy=policy, form=form, changed=changed)

    def writes_symbols(self, place: int, form: str) -> bool:
        """Whether the released column at this place has symbols of its source, and not labels."""
        if form != LABEL:
            return True
        if self.published is None:
            return self.releases_own_symbols
        # Beside given columns, which stay as they are, free outputs have one label.
        return self.releases_symbols or self.output_columns[place] in self.given

    @property
    def releases_own_symbols(self) -> bool:
        """Whether the outputs are symbols of the one useful column, made to stand in its place."""
        return self.record.objective is not None and len(self.useful.columns) == 1

    def public(self) -> Channel:
        """The channel without the joint table and whatever is computed from it.

        It keeps the rows with their labels, the notion with its budgets, and the columns and
        symbols of S, which name what is protected and must not be left in a release.
        """
        return replace(
            self, useful=self.useful.public(), joint=None, record=self.record.public()
        )


def _tuples(drawn: Sequence[Any], release: Release) -> list[tuple[str, ...]]:
    """Released rows of records that came as tuples."""
    columns: list[list[str]] = []
    for codes, labels in zip(drawn, release.texts, strict=True):
        columns.append([labels[code] for code in codes.tolist()])
    return list(zip(*columns, strict=True))


def _check_total(total: object, what: str) -> None:
    """Raise InputError unless a sum of a row is an integer in range."""
    # bool is a kind of int, and no sum.
    if type(total) is not int or not 1 <= total <= LARGEST_INTEGER:
        raise InputError(f"{what} ({quoted(total)}) must be an integer in [1, 2^62]")
