"""Draws of released boxes: a row is in a box, and the channel of its stratum draws an output.

The columns of such a channel come in groups: first the given columns, one a group, then the box, or
with filling the columns that it is made of. `BoxRelease.draw` takes a batch of records through
three steps:

1. Cells become symbols, one for each group (`_codes`).
2. Symbols become outputs, one for each group (`_drawn`): the stratum and the box of the row choose
   a row of the samplers (`box_samplers`). Every step of these has numbers of its own, which belong
   to the key, the channel, the step and the record (`_drawn_step`).
3. Outputs become the texts of released columns (`OutputColumn`).

For example, with the given column sex and boxes of job and state, the record (F, nurse, Iowa) has
the symbols F, nurse and Iowa. If its box is filled with (clerk, Ohio), the released columns sex,
job and state get the texts F, clerk and Ohio.

Records with identifiers keep their draws in any order (`_drawn_for_identified`). The memory of
`identified_draws` has one number for each identifier, so a row of symbols is one number there, with
one digit for each group (`_row_numbers`): with 2 and 3 symbols, the row (1, 2) has the digits 2 and
3 in the bases 3 and 4, and the number 2 * 4 + 3 = 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.release.box_samplers import (
    NO_ROW,
    Filling,
    OutputSampler,
    ReleasablePart,
)
from mechdesign.release.draws import Identifiers, Key, Records
from mechdesign.release.identified_draws import KEEP, REDRAW, IdentifiedDraws
from mechdesign.release.policies import REFUSE, Policy, normalised, normalised_cells
from mechdesign.release.sampling import Sampler
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.columns import (
    MISSING,
    UnknownSymbol,
    positions_of,
    unknown_at,
)
from mechdesign.tables.row_boxes import NOTHING
from mechdesign.tables.variable import Variable, column_names

BOXES_NOT_FIXED = (
    "boxes are drawn for each record by itself, so their counts cannot be fixed: draw them "
    "independently (--draws independent)"
)

PRIME = 2**31 - 1
"""Rows of symbols are told apart by their number modulo this, where identifiers are checked.

It fits the 32 bits that `FirstSymbols` keeps of each, and two different rows agree by chance once
in 2^31 times.
"""


class ReleasableBoxes(Protocol):
    """What is needed of a channel of boxes, which is above this package."""

    @property
    def digest(self) -> str:
        """SHA-256 of what the channel does."""
        ...

    @property
    def parts(self) -> Sequence[ReleasablePart]:
        """One for each stratum, in their order."""
        ...

    @property
    def fills(self) -> bool:
        """Whether symbols are released in the place of boxes."""
        ...

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that are needed of a record."""
        ...

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Columns that are written."""
        ...

    @property
    def output_cells(self) -> tuple[tuple[str, ...], ...]:
        """For each output the given cells and the label of a box."""
        ...


@dataclass(frozen=True)
class OutputColumn:
    """A released column: its name, its texts, and for each output code of its group the place of
    the text.

    `group` counts the given columns first, then those of the boxes.
    """

    name: str
    group: int
    texts: tuple[str, ...]
    places: NDArray[np.int32]


class BoxRelease(IdentifiedDraws):
    """A channel of boxes prepared for drawing.

    Parameters
    ----------
    channel : ReleasableBoxes
    coder : BoxCoder
        That of the channel.
    key : Key
    policy : Policy, optional
        Without a rule for unknown symbols and missing cells: symbols that the table of the channel
        did not have belong to a box, and missing cells are refused.
    changed : {"refuse", "keep", "redraw"}
        What becomes of an identified record whose row is another one than when it was released
        before: an error, its old row of draws, or draws of its own.

    Attributes
    ----------
    columns : tuple of OutputColumn
        What `draw` gives, in this order: given columns, then those of the boxes.
    digest : str
        SHA-256 of what the channel does.
    codes : list of arrays
        For each group the symbols of the records that were drawn last, as `symbol_counts` counts
        them.
    symbol_counts : list of arrays
        For each group how many records had each symbol, a missing cell, and an unknown symbol.
    outputs : list of lists of tuples of str
        For each group the texts of every output.
    output_counts : list of arrays
        For each group how many records got each output.
    """

    def __init__(
        self,
        channel: ReleasableBoxes,
        coder: BoxCoder,
        key: Key,
        *,
        policy: Policy | None = None,
        changed: str = REFUSE,
    ) -> None:
        self.channel = channel
        self.coder = coder
        self.policy = policy or Policy()
        _check_policy(self.policy)
        self.digest = channel.digest
        super().__init__(key.derived("row channel", self.digest), changed)
        # What may be released: for each group behind the given ones the texts of every output.
        released: list[list[tuple[str, ...]]] = []
        self._fill: Filling | None = None
        labels: list[str] = []
        if channel.fills:
            self._fill = Filling(channel.parts, coder.columns)
            is_silent = any(part.channel is None for part in channel.parts)
            for variable in coder.columns:
                # Behind the symbols of every column, where a part releases nothing.
                end = [(NOTHING,) * len(variable.columns)] * is_silent
                released.append([*variable.symbols, *end])
        else:
            # Parts may have outputs of one label, which stand once. The order is that of the parts.
            labels = [*dict.fromkeys(cells[-1] for cells in channel.output_cells)]
            released.append([(label,) for label in labels])
        self._samplers = OutputSampler(channel.parts, labels)
        form = self.policy.cell_form
        self._alphabets = [normalised(variable, form) for variable in coder.groups]
        self.outputs = [
            *(list(variable.symbols) for variable in coder.given),
            *released,
        ]
        self.columns = _output_columns(channel.output_columns, self.outputs)
        if changed == KEEP:
            self._check_reversible()
        self.codes: list[Integers] = []
        self.symbol_counts: list[Integers] = []
        self.output_counts: list[Integers] = []
        for variable in self._alphabets:
            self.symbol_counts.append(np.zeros(len(variable) + 2, dtype=np.int64))
        for texts in self.outputs:
            self.output_counts.append(np.zeros(len(texts), dtype=np.int64))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the released columns."""
        return tuple(column.name for column in self.columns)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Texts of each released column, which the codes of `draw` point to."""
        return tuple(column.texts for column in self.columns)

    @property
    def hidden_counts(self) -> list[Integers]:
        """`symbol_counts` of each group that the channel hides: all but the given columns."""
        return self.symbol_counts[len(self.coder.given) :]

    @property
    def hidden_codes(self) -> list[Integers]:
        """`codes` of each group that the channel hides."""
        return self.codes[len(self.coder.given) :]

    def draw(
        self, columns: Sequence[Encoded], records: Records
    ) -> list[NDArray[np.int32]]:
        """What to release for each record: for every released column codes into its `texts`.

        Parameters
        ----------
        columns : sequence of Encoded
            One for each of the channel's `released_columns`, in their order.
        records : RowNumbers, NumberedRecords or Identifiers
        """
        codes = self._codes(columns, checks=True)
        if isinstance(records, Identifiers):
            outputs = self._drawn_for_identified(codes, records)
        else:
            outputs = self._drawn(codes, records, self._key)
        for counts, group in zip(self.output_counts, outputs, strict=True):
            counts += np.bincount(group, minlength=len(counts))
        return [column.places[outputs[column.group]] for column in self.columns]

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add records to `symbol_counts`, each so many times; nothing is drawn or refused."""
        self._codes(columns, checks=False, times=times)

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins, so that its cells are many different numbers."""
        return any(any(variable.bins) for variable in self._alphabets)

    def _codes(
        self,
        columns: Sequence[Encoded],
        *,
        checks: bool,
        times: Integers | None = None,
    ) -> list[Integers]:
        """The symbol of every record in every group, -1 where it is unknown or missing and that is
        allowed. The records are counted.

        Parameters
        ----------
        columns : sequence of Encoded
            One for each of the channel's `released_columns`.
        checks : bool
            Whether unknown symbols and missing cells are refused by the rules of the policy.
        times : (n,) array, optional
            How many records each one counts for; one by default.
        """
        cells = normalised_cells(columns, self.policy.cell_form)
        codes: list[Integers] = []
        counted: list[Integers] = []
        start = 0
        for k, variable in enumerate(self._alphabets):
            end = start + len(variable.columns)
            cells_of_group = cells[start:end]
            start = end
            places = positions_of(cells_of_group, variable)
            symbols = places
            # Most batches have neither, and then no array is copied.
            if places.size and places.min() < 0:
                if checks:
                    is_given = k < len(self.coder.given)
                    self._check_unknown(places, cells_of_group, variable, is_given)
                # MISSING (-2) and UNKNOWN (-1) are the last two places of the counts.
                symbols = np.where(places < 0, places + len(variable) + 2, places)
                places = np.maximum(places, -1)
            codes.append(places)
            counted.append(symbols)
        # Counted only now: if a later group refuses the batch, nothing of it counts.
        for counts, symbols in zip(self.symbol_counts, counted, strict=True):
            # Weighted counts are floats, which are exact up to 2^53.
            added = np.bincount(symbols, times, minlength=len(counts))
            counts += added.astype(np.int64)
        self.codes = counted
        return codes

    def _check_unknown(
        self,
        places: Integers,
        cells: Sequence[Encoded],
        variable: Variable,
        is_given: bool,
    ) -> None:
        """Refuse missing cells, and unknown symbols of given columns, which have no stratum."""
        refused = places == MISSING
        if is_given:
            refused = places < 0
        at = np.flatnonzero(refused)
        if not at.size:
            return
        first = int(at[0])
        if places[first] == MISSING:
            title = ",".join(variable.columns)
            raise UnknownSymbol(
                first,
                f"the column {quoted(title)} has an empty cell, which no box covers; fill it, "
                "leave the record out, or design the channel with missing cells as a symbol "
                "(--missing symbol)",
            )
        raise unknown_at(first, cells, variable)

    def _drawn_for_identified(
        self, codes: list[Integers], records: Identifiers
    ) -> list[NDArray[np.int32]]:
        """The draws of identified records, by the rule `changed` where a row has changed."""
        numbers = self._row_numbers(codes)
        first_numbers = self.first_codes(numbers, records)
        changed = np.flatnonzero(first_numbers != numbers)
        if self.changed == KEEP:
            # The old row under the old key gives the old output again.
            codes = self._with_first_rows(codes, first_numbers, changed)
        outputs = self._drawn(codes, records, self._key)
        if self.changed == REDRAW:
            self._redraw_changed(outputs, codes, numbers, changed, records)
        return outputs

    def _drawn(
        self, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every group; those of the given columns are their symbols."""
        given = len(self.coder.given)
        strata = _strata(self.coder, codes[:given], len(records))
        boxes = self.coder.boxes_of(strata, np.column_stack(codes[given:]))
        sampler_rows = self._samplers.rows_at(strata, boxes)
        lost = np.flatnonzero(sampler_rows == NO_ROW)
        if lost.size:
            raise UnknownSymbol(
                int(lost[0]),
                "no record of the table was in the box of this row, and a public channel does not "
                "have the marginal that is released for it: use the channel file that `design` "
                "wrote",
            )
        released = self._steps(sampler_rows, records, key)
        return [code.astype(np.int32) for code in codes[:given]] + released

    def _steps(
        self, rows: Integers, records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of the label of the box, or of every column that is filled."""
        outputs = _drawn_step(self._samplers.sampler, rows, 0, records, key)
        if self._fill is None:
            return [self._samplers.labels[outputs]]
        boxes = _drawn_step(self._fill.boxes, outputs, 1, records, key)
        filled = _drawn_step(self._fill.rows, boxes, 2, records, key)
        return [column[filled] for column in self._fill.codes]

    def _redraw_changed(
        self,
        outputs: list[NDArray[np.int32]],
        codes: Sequence[Integers],
        numbers: Integers,
        changed: Integers,
        records: Identifiers,
    ) -> None:
        """Draw the records at the places `changed` anew, under the key of their change."""
        for number in np.unique(numbers[changed]).tolist():
            at = changed[numbers[changed] == number]
            key = self.key_of_change(number)
            try:
                drawn = self._drawn([code[at] for code in codes], records.some(at), key)
            except UnknownSymbol as error:
                # Its position is among the changed records, and messages count those of the batch.
                position = int(at[error.position])
                raise UnknownSymbol(position, error.what) from None
            for group, values in zip(outputs, drawn, strict=True):
                group[at] = values

    def _row_numbers(self, codes: Sequence[Integers]) -> Integers:
        """One number for the row of each record; modulo `PRIME` where there are more rows.

        The codes of the groups are its digits, in the mixed base of their numbers of symbols: a
        code from -1 (unknown) up to n - 1 is the digit code + 1 in base n + 1.
        """
        numbers = np.zeros(len(codes[0]), dtype=np.int64)
        for code, variable in zip(codes, self._alphabets, strict=True):
            numbers = (numbers * (len(variable) + 1) + code + 1) % PRIME
        return numbers

    def _with_first_rows(
        self, codes: list[Integers], first_numbers: Integers, changed: Integers
    ) -> list[Integers]:
        """The codes, with those of the first release at the places `changed`."""
        # The inverse of `_row_numbers`, which `_check_reversible` has made sure of. The last group
        # is the last digit, so the digits are split off from the end.
        numbers = first_numbers[changed]
        replaced: list[Integers] = []
        for code, variable in zip(
            reversed(codes), reversed(self._alphabets), strict=True
        ):
            first = code.copy()
            numbers, digits = np.divmod(numbers, len(variable) + 1)
            first[changed] = digits - 1
            replaced.append(first)
        replaced.reverse()
        return replaced

    def _check_reversible(self) -> None:
        """Refuse to keep old rows where several rows have one number, and none can be restored."""
        rows = math.prod(len(variable) + 1 for variable in self._alphabets)
        if rows > PRIME:
            raise InputError(
                f"the columns of this channel have {rows:,} combinations of symbols, and the "
                f"ledger tells {PRIME:,} apart: records that changed cannot keep their old output; "
                "draw them anew (--changed redraw), or leave them out"
            )


def _check_policy(policy: Policy) -> None:
    """Refuse rules for symbols that no box leaves uncovered, and for missing cells."""
    for name, rule in (("unknown", policy.unknown), ("missing", policy.missing)):
        if rule != REFUSE:
            raise InputError(
                f"{name} ({rule}): a channel for boxes of rows covers symbols that its table "
                "did not have, and refuses missing cells: leave the option out"
            )


def _drawn_step(
    sampler: Sampler,
    rows: NDArray[np.integer[Any]],
    step: int,
    records: Records,
    key: Key,
) -> NDArray[np.int32]:
    """What the sampler draws for each record, with the numbers of the step."""
    source = records.source(key.derived(records.kind, "step", str(step)))
    return sampler.draw(rows.astype(np.int64), source)


def _strata(coder: BoxCoder, given: Sequence[Integers], records: int) -> Integers:
    """The place of the stratum of every record, from the codes of the given columns."""
    stacked = np.zeros((records, len(given)), dtype=np.int64)
    for k, codes in enumerate(given):
        stacked[:, k] = codes
    strata = coder.strata_of(stacked)
    if strata.size and strata.min() < 0:
        lost = np.flatnonzero(strata < 0)
        names = ",".join(column_names(coder.given))
        raise UnknownSymbol(
            int(lost[0]),
            "the channel does not know this combination of the given columns "
            f"{quoted(names)}; leave the record out, or design the channel with a table that "
            "has it",
        )
    return strata


def _output_columns(
    names: Sequence[str], groups: Sequence[Sequence[tuple[str, ...]]]
) -> tuple[OutputColumn, ...]:
    """The released columns of every group, from the texts of every output of each."""
    name = iter(names)
    columns: list[OutputColumn] = []
    for group, symbols in enumerate(groups):
        for cells in zip(*symbols, strict=True):
            # Outputs of crossed columns share texts: each column has every text once.
            texts = tuple(dict.fromkeys(cells))
            place_of = dict(zip(texts, range(len(texts)), strict=True))
            places = np.array([place_of[cell] for cell in cells], dtype=np.int32)
            columns.append(OutputColumn(next(name), group, texts, places))
    return tuple(columns)
