"""Channels as a recipe: each replaces its useful columns by one output a record.

A recipe is all that a release needs besides the table: channels, keys and options (`recipe`).
`recipe_of` is the entry point of every release. It takes what a user wants to release a table
through, and gives the recipe of that kind.

Channels become a `ChannelRecipe` (`ChannelRecipe.of`):

1. The channels are checked, and those with a table are audited: nothing is released through one
   whose table disproves its promise.
2. Each gets a key. Two channels on one key still draw independently, because the channel is part of
   what a draw follows from.
3. The options are kept without the key.

For the header of a table the recipe then gives the drawer (`release_drawer`), the uses that the
ledger holds, and the counts for the manifest.

The recipe travels to other machines, so `without_tables` leaves the joint table of X and S behind.

*The codebook* of a release is a CSV file that says what the released labels mean. For the output y
and each symbol x that can become it, a line has W(y|x), and P(x|y) by the theorem of Bayes: n(x)
W(y|x) / sum over x' of n(x') W(y|x'), with the counts n of the table. With 30 clerks and 10 nurses
in the table, and a channel that moves one in four to the other label::

    output,job,p_output_given_symbol,p_symbol_given_output
    A,clerk,0.75,0.9
    A,nurse,0.25,0.1
    B,clerk,0.25,0.5
    B,nurse,0.75,0.5

Of boxes it has the given columns, the box and its rows in words::

    output,sex,box,rows,p_output_given_symbol,p_symbol_given_output
    "F, box 1",F,box 1,"job {clerk, nurse}; hours {38, any other}",0.75,
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import quoted
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.entries import ROW
from mechdesign.jobs.file_recipe import FileRecipe
from mechdesign.jobs.keyed_recipe import KeyedRecipe, check_rows
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.people_nights import BOXES_OF_NIGHTS
from mechdesign.jobs.recipe import Codes, Recipe, TablePart
from mechdesign.jobs.release_drawer import ReleaseDrawer
from mechdesign.release.drawing import (
    BOXES_NOT_FIXED,
    FIXED,
    INDEPENDENT,
    fixed_records,
)
from mechdesign.release.policies import MARGINAL, Policy, recorded_rules
from mechdesign.release.released_values import LABEL, POSTERIOR_DRAW

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

    channels: tuple[Channel, ...]
    fixed_codes: Codes | None = field(default=None, repr=False, compare=False)
    in_folder: bool = False

    @classmethod
    def of(
        cls, channel: Channel | Sequence[Channel], options: ReleaseOptions
    ) -> ChannelRecipe:
        """The recipe of one channel, or of several with columns of their own."""
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
        return cls.keyed(channels, options)

    @property
    def form(self) -> str:
        """The form of the options; of boxes whole rows, drawn together."""
        return ROW if self.channels[0].judged_alone else self.options.form

    def drawer(self, header: Sequence[Any]) -> ReleaseDrawer:
        """Ready for the parts of a table with this header."""
        drawer = super().drawer(header)
        if self.fixed_codes is not None:
            drawer.fix(self.fixed_codes)
        return drawer

    def for_folder(self) -> ChannelRecipe:
        """The recipe for the files of one folder."""
        return replace(self, in_folder=True)

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
    ) -> ChannelRecipe:
        """The recipe with fixed counts where the records are those of the table of the design, and
        nobody wants another way.
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

    def without_tables(self) -> ChannelRecipe:
        """The recipe as far as draws need it: other machines get no joint table."""
        lean: list[Channel] = []
        for channel in self.channels:
            lean.append(_without_table(channel, self.options))
        return replace(self, channels=tuple(lean), fixed_codes=None)

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
        check_rows(options)
    if channel.record.objective is not None and options.form == POSTERIOR_DRAW:
        raise InputError(
            "this channel releases symbols of the column itself: a posterior draw would only move "
            "them once more; leave the form (--as) out"
        )


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


def codebook_text(channel: Channel) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, of boxes `rows`,
    `p_output_given_symbol` (of the channel) and `p_symbol_given_output` (under the table that the
    channel was designed for; empty where it carries none, and of boxes).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    probabilities = ("p_output_given_symbol", "p_symbol_given_output")
    symbols_of: list[tuple[str, ...]] = list(channel.useful.symbols)
    columns_of_symbols = channel.useful.columns
    if channel.coder:
        columns_of_symbols = (*columns_of_symbols, "rows")
        rows = dict(zip(channel.coder.symbols, channel.coder.row_sets, strict=True))
        symbols_of = [(*symbol, rows[symbol]) for symbol in symbols_of]
    writer.writerow(["output", *columns_of_symbols, *probabilities])
    behind: list[list[int]] | None = None
    if channel.joint is not None:
        # The numerators of Bayes, in integers; the denominator of the channel cancels.
        behind = [masses for _, masses in channel.behind]
    columns = IntegerRows.of(channel.rows).columns
    totals = channel.row_totals
    for y, (label, (symbols, values)) in enumerate(
        zip(channel.outputs, columns, strict=True)
    ):
        posterior = [""] * len(symbols)
        if behind is not None:
            masses = behind[y]
            total = sum(masses)
            # The table may have no record of any of these symbols: then there is no posterior.
            if total:
                posterior = [repr(mass / total) for mass in masses]
        for x, w, backward in zip(symbols, values, posterior, strict=True):
            forward = repr(w / totals[x])
            writer.writerow([label, *symbols_of[x], forward, backward])
    return stream.getvalue()
