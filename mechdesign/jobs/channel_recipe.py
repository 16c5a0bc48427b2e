"""Channels as a recipe: each replaces its useful columns by one output a record.

A recipe is all that a release needs besides the table: channels, keys and options (`recipe`).
`recipe_of` is the entry point of every release. It takes what a user wants to release a table
through, and gives the recipe of that kind.

Channels become a `ChannelRecipe` (`ChannelRecipe.of`):

1. The channels are checked, and those with a table are audited: nothing is released through one
   whose table disproves its promise.
2. Each gets a key; with a ledger those of the job take their place (`KeyedRecipe`). Two channels on
   one key still draw independently, because the channel is part of what a draw follows from.
3. The options are kept without the key.

For the header of a table the recipe then gives the drawer (`release_drawer`), the uses that the
ledger holds, and the counts for the manifest.

The recipe travels to other machines, so `without_tables` leaves the joint table of X and S behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, Self, cast, runtime_checkable

import numpy as np

from mechdesign.auditing.stated import refuse_broken
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.column_names import require_column
from mechdesign.jobs.column_plan import Plan, make_plan
from mechdesign.jobs.file_run import FileRecipe
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.keys import key_for_columns, key_in_options
from mechdesign.jobs.ledger import Ledger, Use
from mechdesign.jobs.manifest import DescribedChannel, released_channel
from mechdesign.jobs.options import Applied, ReleaseOptions
from mechdesign.jobs.output_columns import ColumnGroup, in_table, private_columns
from mechdesign.jobs.people_nights import BOXES_OF_NIGHTS, PeopleAtHand, check_nights
from mechdesign.jobs.people_run import check_people
from mechdesign.jobs.recipe import Codes, Drawer, Recipe, TablePart
from mechdesign.jobs.release_drawer import ReleaseDrawer
from mechdesign.jobs.side_files import Sides, codebook_text
from mechdesign.leaks.evidence import LEVEL, Crossing, decisive, log_evidence
from mechdesign.release.drawing import (
    BOXES_NOT_FIXED,
    FIXED,
    INDEPENDENT,
    fixed_records,
)
from mechdesign.release.draws import Key
from mechdesign.release.released_values import LABEL, POSTERIOR_DRAW
from mechdesign.release.samplers import MARGINAL, Policy, recorded_rules
from mechdesign.tables.people import RECORDS, People

LAW_NOT_KEPT = (
    "the channel does not keep the law of its table, or comes without that table"
)

BOXES_ALONE = (
    "a channel for boxes is applied alone, because its promise is about the whole released row: "
    "leave the other channels out, or design one channel for all columns"
)


@runtime_checkable
class OffersRecipe(Protocol):
    """Anything but a channel that columns can be released through."""

    def recipe(self, options: ReleaseOptions) -> FileRecipe:
        """Its recipe with these options."""
        ...


def recipe_of(
    releasable: Channel | Sequence[Channel] | OffersRecipe,
    options: ReleaseOptions,
) -> FileRecipe:
    """The recipe of what a user wants to release a table through.

    Raises
    ------
    InputError
        If it is nothing of the kind, or an option does not go with it.
    """
    channels = _listed(releasable)
    if len(channels) == 1 and isinstance(channels[0], OffersRecipe):
        return channels[0].recipe(options)
    return ChannelRecipe.of(channels, options)


@dataclass(frozen=True, kw_only=True)
class ChannelRecipe(KeyedRecipe):
    """Channels with their keys and what a user asks of the release.

    `fixed_codes` has the symbol of every record where their counts are fixed; `in_folder` is
    whether the file is one of several that are released together.
    """

    fixed_codes: Codes | None = field(default=None, repr=False, compare=False)
    in_folder: bool = False

    @classmethod
    def of(cls, channel: Channel | Sequence[Channel], options: ReleaseOptions) -> Self:
        """The recipe of one channel, or of several with columns of their own, with a key for each.

        Raises
        ------
        InputError
            If they are no channels, an option does not go with them or is not for people with
            several records, or a key file cannot be read.
        NotPrivate
            If the table of a channel disproves its promise.
        """
        channels = _listed(channel)
        if not channels:
            raise InputError("give at least one channel")
        # Before the key, which may be in a file.
        for single in channels:
            _check_channel(single, options, is_alone=len(channels) == 1)
        if options.policy is None:
            # As their tables were read: what was one symbol there is one here.
            policy = Policy.recorded(recorded_rules(channels))
            options = replace(options, policy=policy)
        for single in channels:
            # A file can be edited and its hash renewed, so its table has to prove the promise.
            refuse_broken(single, f"the channel for {listed(single.released_columns)}")
        people = _people_of(channels)
        check_nights(people, options.nights, is_identified=bool(options.identifiers))
        if people is not None:
            check_people(people, options)
        key, keyless = key_in_options(options)
        keys: list[Key] = []
        for single in channels:
            keys.append(key_for_columns(key, single.released_columns, options))
        return cls(
            channels=channels,
            keys=tuple(keys),
            options=replace(options, key=None),
            keyless=keyless,
        )

    @property
    def people(self) -> People | None:
        """The people of the one channel, where it is for people with several records."""
        return _people_of(self.channels)

    @property
    def groups(self) -> list[ColumnGroup]:
        """The released and sensitive columns of each channel."""
        merged = self.options.form == LABEL
        groups: list[ColumnGroup] = []
        for channel in self.channels:
            columns = channel.released_columns
            sensitive = None
            if channel.sensitive is not None:
                sensitive = channel.sensitive.columns
            if not channel.writes_rows:
                groups.append(ColumnGroup(columns, sensitive, merged))
                continue
            # Without parts, every column is released by itself.
            parts: tuple[tuple[str, ...], ...] = ()
            names: tuple[str, ...] = ()
            if not channel.releases_symbols:
                # One label for all released columns, beside the given ones.
                given = [(name,) for name in channel.given_columns]
                parts = (*given, channel.randomised_columns)
                names = channel.output_columns
            groups.append(
                ColumnGroup(
                    columns,
                    sensitive,
                    merged_parts=parts,
                    names=names,
                    given=channel.given_columns,
                )
            )
        return groups

    @property
    def private_columns(self) -> list[str]:
        """Sensitive and correlated columns."""
        return [
            *private_columns(self.groups, self.options),
            *self.options.correlated,
        ]

    @property
    def useful_columns(self) -> list[str]:
        """The columns that are released, by their names in the table."""
        names: list[str] = []
        for group in self.groups:
            names += in_table(group.columns, self.options)
        return names

    @property
    def law_kept(self) -> bool | None:
        """Whether a channel of rows keeps the law of its table."""
        if len(self.channels) != 1:
            return None
        channel = self.channels[0]
        return channel.keeps_law if channel.releases_symbols else None

    @property
    def form(self) -> str:
        """The form of the options; of boxes whole rows, drawn together."""
        return self.channels[0].form_of(self.options.form)

    def drawer(self, header: Sequence[Any]) -> ReleaseDrawer:
        """Ready for the parts of a table with this header."""
        drawer = ReleaseDrawer(self, self.channels, header)
        if self.fixed_codes is not None:
            drawer.fix(self.fixed_codes)
        return drawer

    def plan(self, header: Sequence[Any]) -> Plan:
        """What becomes of each column of a table."""
        plan = make_plan(
            self.groups, header, self.options, together=self.are_counted_together
        )
        name = self.options.row_numbers
        if name is not None:
            require_column(name, header)
            if name in self.useful_columns:
                raise InputError(
                    f"the column {quoted(name)} is useful and cannot number the records"
                )
        return plan

    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released, for the ledger: one use for each channel."""
        plan = self.plan(header)
        uses: list[Use] = []
        for channel, numbers in zip(self.channels, plan.inputs, strict=True):
            columns = tuple(header[number] for number in numbers)
            if channel.people is not None:
                # The columns of the records, and not those of the folded table.
                columns = in_table(channel.people.columns, self.options)
            use = Use(
                channel=channel.digest,
                columns=columns,
                form=self.form,
                changed=self.options.changed,
                draws=self.options.draws or INDEPENDENT,
                **asdict(self.options.rules),
            )
            uses.append(use)
        return uses

    def described(
        self, drawer: Drawer, channel_files: Sequence[str | None]
    ) -> list[DescribedChannel]:
        """What manifests say of each channel; `channel_files` are the hashes of their files."""
        columns: list[DescribedChannel] = []
        uses = self.uses(drawer.header)
        for k, (channel, use) in enumerate(zip(self.channels, uses, strict=True)):
            names = self._released_names(drawer.plan, k)
            given = in_table(channel.given_columns, self.options)
            sensitive = self._sensitive_in_table(k)
            people = channel.people
            if people is not None:
                names = use.columns
                given = (RECORDS, *in_table(people.given, self.options))
                sensitive = in_table(people.sensitive, self.options)
            release: Any = drawer.releases[k]
            released = released_channel(
                channel,
                release,
                use,
                names,
                given=given,
                sensitive=sensitive,
                channel_file=channel_files[k] if k < len(channel_files) else None,
            )
            columns.append(released)
        return columns

    def _sensitive_in_table(self, k: int) -> tuple[str, ...] | None:
        """The sensitive columns of a releasable, by their names in the table; None if it does not
        say.
        """
        group = self.groups[k]
        if group.sensitive is None:
            return None
        return tuple(private_columns([group], self.options))

    def _released_names(self, plan: Plan, k: int) -> tuple[str, ...]:
        """The columns of the output that a releasable releases."""
        names: list[str] = []
        for column in plan.columns:
            if column.release is not None and column.release[0] == k:
                names.append(column.name)
        return tuple(names)

    def for_folder(self) -> Self:
        """The recipe for the files of one folder."""
        return replace(self, in_folder=True)

    def split_warning(
        self, crossing: Crossing, names: Sequence[str], *, looks: int
    ) -> str | None:
        """The file of a record is a kind of order: symbols must not differ between files by more
        than chance.
        """
        if not decisive(log_evidence(*crossing.table()), looks):
            return None
        return (
            "what was released differs between them (by chance once in "
            f"{round(1 / LEVEL):,} times at most)"
        )

    def folder_result(
        self,
        results: Sequence[Any],
        sha256: str,
        *,
        already: bool,
        notices: tuple[str, ...],
    ) -> Applied:
        """What the files of a folder report together: fixed counts only if all files have them."""
        first: Applied = results[0]
        draws = {result.draws for result in results}
        people = None
        if first.people is not None:
            people = sum(result.people for result in results)
        return replace(
            first,
            records=sum(result.records for result in results),
            people=people,
            sha256=sha256,
            already=already,
            notices=notices,
            draws=first.draws if len(draws) == 1 else INDEPENDENT,
        )

    def for_lazy_table(self, header: Sequence[Any]) -> Recipe:
        """The recipe with keys that last; its records are not at hand, so no counts are fixed."""
        if self.options.draws == FIXED:
            raise InputError(_cannot_be_fixed("a lazy table is computed in parts"))
        return super().for_lazy_table(header)

    def settled(
        self,
        header: Sequence[Any],
        parts: Iterable[TablePart],
        *,
        is_whole: bool = True,
    ) -> Self:
        """The recipe with fixed counts where the records are those of the table of the design, and
        nobody wants another way. Nothing is read for a channel without fixed counts.
        """
        if self.options.draws == INDEPENDENT:
            return self
        reason = self._unfixed(is_whole)
        if reason is None:
            # Counts are fixed for one channel: those of several would have to be fixed together.
            records: Integers | None = None
            if len(self.channels) == 1:
                records = fixed_records(self.channels[0])
            if records is None:
                reason = LAW_NOT_KEPT
            else:
                whole = self._codes_of_design(header, parts, records)
                if whole is not None:
                    options = replace(self.options, draws=FIXED)
                    return replace(self, options=options, fixed_codes=whole)
                reason = "the records are not those of the table of the design"
        if self.options.draws == FIXED:
            raise InputError(_cannot_be_fixed(reason))
        return replace(self, options=replace(self.options, draws=INDEPENDENT))

    def covers_whole_file(self, plan: Plan) -> bool:
        """Whether the promise is proven for a reader of the whole file, too.

        The proof is about fixed counts, and nothing else in the file may tell whose record is
        where: no other columns, no order. A guessed seed undoes the draws. For readers of several
        files, of a folder or through earlier channels (`after`), nothing is proven
        (docs/explanation/whole-file.md). A plan of people with several records does not know the
        columns of records that stay: `FileRun.keeps_more` does.
        """
        options = self.options
        if not (options.draws == FIXED and options.shuffle):
            return False
        if options.insecure_seed is not None or plan.others or self.in_folder:
            return False
        records = [channel.record for channel in self.channels]
        return all(record.notion is not None and not record.after for record in records)

    def _unfixed(self, is_whole: bool) -> str | None:
        """Why counts cannot be fixed, whatever channel and records are; None where they can."""
        options = self.options
        if not is_whole:
            return "these are a part of a table"
        if options.identifiers or options.row_numbers is not None:
            return "records that are identified keep a draw of their own"
        return None

    def _codes_of_design(
        self, header: Sequence[Any], parts: Iterable[TablePart], records: Integers
    ) -> Codes | None:
        """The symbol of every record, if every symbol has as many records as in the table of the
        design; None otherwise, and then only the first records are looked at.
        """
        # Two places more are for missing cells and unknown symbols, of which there must be none.
        missing = np.append(records, [0, 0])
        drawer = ReleaseDrawer(self, self.channels, header)
        codes: list[Codes] = [np.zeros(0, dtype=np.int32)]
        first_row = 0
        for column, count in parts:
            if count > missing.sum():
                return None
            codes.append(drawer.symbols_of(column, first_row))
            missing -= np.bincount(codes[-1], minlength=len(missing))
            # Another table has too many records of a symbol long before it ends.
            if missing.min() < 0:
                return None
            first_row += count
        return None if missing.any() else np.concatenate(codes)

    def people_at_hand(self, ledger: Ledger) -> PeopleAtHand | None:
        """The people with several records of the table at hand, as the ledger knows them; None
        where each record is one of its own.
        """
        if self.table_of_people is None:
            return None
        after: list[str] = []
        for one in self.channels:
            for channel in one.channels:
                after += channel.record.after
        nights = self.options.nights
        return PeopleAtHand.of(ledger, self.table_of_people, nights, tuple(after))

    def without_tables(self) -> Self:
        """The recipe as far as draws need it: other machines get no joint table."""
        lean: list[Channel] = []
        for channel in self.channels:
            lean.append(_without_table(channel, self.options))
        return replace(self, channels=tuple(lean), fixed_codes=None)

    def check_sides(self, sides: Sides) -> None:
        """Refuse a codebook of values."""
        if sides.codebook is None:
            return
        if self.options.form != LABEL:
            raise InputError(
                "a codebook says what labels mean, and other forms need none"
            )
        if any(channel.releases_symbols for channel in self.channels):
            raise InputError(
                "a codebook says what labels mean, and this channel releases the symbols of the "
                "columns themselves"
            )

    def codebook(self) -> str:
        """The codebook of the first channel's labels."""
        return codebook_text(self.channels[0])

    @property
    def codebook_note(self) -> str | None:
        """What to see to before a codebook is published."""
        if self.channels[0].joint is None:
            return None
        return (
            "the last column of the codebook is computed from the table that the channel was "
            "designed for: leave it out of what is published if the frequencies in that table are "
            "secret"
        )


def _cannot_be_fixed(reason: str) -> str:
    """Why counts are not fixed, and what to do."""
    return (
        f"{reason}, so their counts cannot be fixed: draw them independently (--draws "
        "independent)"
    )


def _listed(channel: Any) -> tuple[Any, ...]:
    """The channels, where one may be given without a list around it."""
    if isinstance(channel, (list, tuple)):
        return tuple(cast("Sequence[Any]", channel))
    # Anything else but a channel is refused as one.
    return (channel,)


def _check_channel(channel: Any, options: ReleaseOptions, *, is_alone: bool) -> None:
    """Refuse what is no channel, and a form that does not go with one."""
    if not isinstance(channel, Channel):
        raise InputError(
            f"{quoted(channel)} is no channel; give a Channel (Channel.load reads a file), or "
            "several of them"
        )
    if not is_alone:
        channel.on_tables(BOXES_ALONE)
    if options.draws == FIXED:
        channel.on_tables(BOXES_NOT_FIXED)
    if channel.people is not None and options.nights > 1:
        channel.on_tables(BOXES_OF_NIGHTS)
    if channel.published is not None:
        _check_rows(options)
    if channel.record.objective is not None and options.form == POSTERIOR_DRAW:
        raise InputError(
            "this channel releases symbols of the column itself: a posterior draw would only move "
            "them once more; leave the form (--as) out"
        )


def _check_rows(options: ReleaseOptions) -> None:
    """Refuse options of a column of labels for a channel that says itself what it writes."""
    if options.form != LABEL:
        raise InputError(
            "a channel of rows says itself what is released of each column; leave the form "
            "(--as) out"
        )
    if options.into is not None:
        raise InputError(
            "the columns of a channel of rows are replaced, not added beside the originals, "
            "which would void its promise; leave --add (into) out"
        )


def _people_of(channels: Sequence[Channel]) -> People | None:
    """The people of a channel that stands alone; refuses one among several."""
    people = [channel.people for channel in channels]
    if len(people) > 1 and any(people):
        raise InputError(
            "a channel for people with several records is applied alone, because its promise is "
            "about all records of a person: design one channel for all columns"
        )
    return people[0]


def _without_table(channel: Channel, options: ReleaseOptions) -> Channel:
    """A channel as far as draws need it: at most with the frequencies of X, of its joint table.

    Where draws need P(x), the rows (3, 4) and (1, 2) of two symbols of S become one row (4, 6).
    """
    joint = channel.joint
    if joint is None:
        return channel
    # Draws stay in memory, so nothing of an average is published that a file would refuse.
    in_memory = replace(channel.record, averages=())
    public = channel.with_record(in_memory).public()
    # Labels are drawn from the channel alone, unless a cell without a symbol is drawn from P(x).
    # Values of X are drawn from P(x|y), which needs the frequencies of X too.
    rules = options.rules
    if options.form == LABEL and MARGINAL not in (rules.unknown, rules.missing):
        return public
    # One symbol of S in the place of all: what is left are the sums over S, the frequencies of X.
    one_symbol = replace(joint.sensitive, symbols=joint.sensitive.symbols[:1])
    margin = replace(
        joint, sensitive=one_symbol, counts=(joint.useful_counts,), notices=()
    )
    return replace(
        public,
        useful=channel.useful,
        joint=margin,
        sensitive=one_symbol,
        record=replace(public.record, budgets=()),
    )
