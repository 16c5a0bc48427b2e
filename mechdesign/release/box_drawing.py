"""Draws of released boxes: a row is in a box, and the channel of its stratum draws an output.

Each part (stratum) of such a channel has boxes and a channel W of its own. All parts together are
one sampler, with a row for each box of each part and the outputs of all parts side by side
(`_OutputSampler`). A row of given symbols and codes takes these steps (`BoxRelease._drawn`):

    step 0       its stratum and its box b give a row of the sampler: an output y, from W(y | b)
    step 1       with filling: a box, in proportion to n(b) W(y | b)
    step 2 + k   with filling: a symbol of column k, as often as the slice has it in that box

n(b) are the records of the box b (`boxes_of_outputs`). For example, the boxes 0 and 1 have 30 and
10 records, and W gives the output y to box 0 always and to box 1 half the time. Then y is filled
from box 0 with 30 : 5, and of two columns each gets a symbol of that box, drawn by itself.

The steps of filling depend on the output alone, so they disclose nothing more of the record. Every
step has numbers of its own, which belong to the key, the channel, the step and the record
(`_drawn_step`). `box_channel_digest` names the channel in the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.json_values import canonical
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.release.drawing import channel_digest
from mechdesign.release.draws import Key, Records
from mechdesign.release.policies import (
    MARGINAL,
    REFUSE,
    Policy,
    apportioned,
    policy_row,
)
from mechdesign.release.protocol import Releasable
from mechdesign.release.row_draws import RowDraws, RowsWithStrata, row_strata
from mechdesign.release.sampling import Sampler
from mechdesign.tables.columns import MISSING, UnknownSymbol, unknown_at
from mechdesign.tables.row_boxes import NOTHING, Boxes, box_name
from mechdesign.tables.variable import Variable

NO_ROW = -1
"""In the place of a row of a sampler: the box has none."""

Law: TypeAlias = dict[int, int]
"""A distribution: the positive integers of its places over 2^53, which sum to it."""


class ReleasablePart(Protocol):
    """What is needed of the boxes of a stratum."""

    @property
    def stratum(self) -> tuple[int, ...]:
        """Codes of the given columns."""
        ...

    @property
    def boxes(self) -> Boxes:
        """The partition of rows."""
        ...

    @property
    def channel(self) -> Releasable | None:
        """From boxes to outputs; None where nothing is released."""
        ...

    @property
    def fill(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each box and column, records of the slice with each symbol."""
        ...


class ReleasableBoxes(RowsWithStrata, Protocol):
    """What is needed of a channel of boxes, which is above this package."""

    @property
    def parts(self) -> Sequence[ReleasablePart]:
        """One for each stratum, in their order."""
        ...

    @property
    def fills(self) -> bool:
        """Whether symbols are released in the place of boxes."""
        ...


class BoxRelease(RowDraws):
    """A channel of boxes made ready to draw; parameters and attributes are those of `RowDraws`.

    Symbols that the table of the channel did not have belong to a box, so there is no rule for
    them; missing cells are refused.
    """

    def __init__(
        self,
        channel: ReleasableBoxes,
        key: Key,
        *,
        policy: Policy | None = None,
        changed: str = REFUSE,
    ) -> None:
        # The constructor of `RowDraws` calls `_prepare`, so it comes last.
        self._partitions: list[Boxes] = [part.boxes for part in channel.parts]
        self._samplers = _OutputSampler(channel)
        self._fill: _Filling | None = None
        if channel.fills:
            self._fill = _Filling(channel)
        self._boxes = channel
        super().__init__(channel, key, policy=policy, changed=changed)

    def _prepare(self) -> str:
        """Check the policy; the digest of what the channel does."""
        for name, rule in (
            ("unknown", self.policy.unknown),
            ("missing", self.policy.missing),
        ):
            if rule != REFUSE:
                raise InputError(
                    f"{name} ({rule}): a channel for boxes of rows covers symbols that its table "
                    "did not have, and refuses missing cells: leave the option out"
                )
        return box_channel_digest(self._boxes)

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

    def _drawn(
        self, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every group; those of the given columns are their symbols."""
        given = len(self.channel.given)
        strata = row_strata(self.channel, codes[:given], len(records))
        rows = np.column_stack(codes[given:])
        # Each stratum has boxes of its own.
        boxes = np.zeros(len(records), dtype=np.int64)
        for stratum in np.unique(strata).tolist():
            at = np.flatnonzero(strata == stratum)
            boxes[at] = self._partitions[int(stratum)].of(rows[at])
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
        released: list[NDArray[np.int32]] = []
        for k, sampler in enumerate(self._fill.columns):
            released.append(_drawn_step(sampler, boxes, 2 + k, records, key))
        return released


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


class _OutputSampler:
    """All parts as one sampler: a row for each box of each part, one part after the other.

    For example, two parts with two boxes and two outputs each make four rows over four outputs; the
    rows of the second part are zero on the first two outputs. A box without a law
    (`_laws_of_part`) gets no row, so a row's place is looked up in `_rows`.

    Attributes
    ----------
    sampler : Sampler
        Over the outputs of all parts, one part after the other.
    labels : (outputs,) array
        The label of each output in the released column; not used with filling.
    """

    def __init__(self, channel: ReleasableBoxes) -> None:
        laws: list[Law] = []
        labels: list[int] = []
        # Parts may share labels, which are one text of the released column.
        place_of_label: dict[str, int] = {}
        if not channel.fills:
            for place, label in enumerate(channel.labels[0]):
                place_of_label[label] = place
        self._first_boxes: list[int] = []
        self._rows: list[int] = []
        for part in channel.parts:
            first_output = len(labels)
            self._first_boxes.append(len(self._rows))
            laws_of_boxes, names = _laws_of_part(part)
            labels += [place_of_label.get(name, 0) for name in names]
            for law in laws_of_boxes:
                if law is None:
                    self._rows.append(NO_ROW)
                    continue
                self._rows.append(len(laws))
                laws.append(_moved(law, first_output))
        self.labels = np.array(labels, dtype=np.int32)
        self.sampler = _sampler(laws, len(labels))

    def rows_at(self, strata: Integers, boxes: Integers) -> Integers:
        """Row of the sampler for each record, `NO_ROW` where there is none."""
        first = np.array(self._first_boxes, dtype=np.int64)
        return np.array(self._rows, dtype=np.int64)[first[strata] + boxes]


def _laws_of_part(
    part: ReleasablePart,
) -> tuple[list[Law | None], tuple[str, ...]]:
    """For every box the law of its output, None where it has none; and the labels of the outputs.

    A box that no record of the table was in has the marginal, if the promise covers it and the
    table is there.
    """
    count = len(part.boxes)
    channel = part.channel
    if channel is None:
        # One output, for all boxes alike: nothing is released.
        return [{0: DENOMINATOR} for _ in range(count)], (NOTHING,)
    if DENOMINATOR % channel.denominator:
        raise InputError(
            f"the denominator of the channel of a part ({channel.denominator}) does not divide 2^53"
        )
    # Parts have denominators of their own, and one sampler has one: exact, since they divide it.
    scale = DENOMINATOR // channel.denominator
    law_of_box: dict[str, Law] = {}
    for name, row in zip(channel.useful.names, channel.rows, strict=True):
        law_of_box[name] = _positive([value * scale for value in row])
    marginal: Law | None = None
    if channel.unseen and channel.joint is not None:
        # Boxes without records are covered if they are released like the marginal.
        masses = policy_row(channel, MARGINAL, "unknown")
        marginal = shares_of(masses)
    laws = [law_of_box.get(box_name(box), marginal) for box in range(count)]
    return laws, tuple(channel.outputs)


class _Filling:
    """Samplers of a box for each output, and of a symbol of each column for each box.

    Outputs and boxes are numbered through all parts, one part after the other.

    Attributes
    ----------
    boxes : Sampler
        Of boxes, with a row for each output.
    columns : list of Sampler
        Of the symbols of each released column, with a row for each box.
    """

    def __init__(self, channel: ReleasableBoxes) -> None:
        boxes: list[Law] = []
        columns: list[list[Law]] = [[] for _ in channel.levels]
        for part in channel.parts:
            # Every column has a row for each box, so the boxes so far are those of the first one.
            first_box = len(columns[0])
            if part.channel is None:
                # One output, one box, and behind the symbols the label of what is not released.
                boxes.append({first_box: DENOMINATOR})
                for laws, variable in zip(columns, channel.levels, strict=True):
                    laws.append({len(variable): DENOMINATOR})
                continue
            boxes += boxes_of_outputs(part, part.channel, first_box)
            for counts_by_column in part.fill:
                for laws, counts in zip(columns, counts_by_column, strict=True):
                    laws.append(shares_of(list(counts)))
        self.boxes = _sampler(boxes, len(columns[0]))
        self.columns: list[Sampler] = []
        for laws, labels in zip(columns, channel.labels, strict=True):
            self.columns.append(_sampler(laws, len(labels)))


def boxes_of_outputs(
    part: ReleasablePart, channel: Releasable, first: int
) -> list[Law]:
    """The law of the box b for each output y of a part, in proportion to n(b) W(y | b).

    n(b) are the records of the slice in the box. The boxes are numbered from `first` on.
    """
    # Every column counts all records of a box, so the first one has their number.
    slice_records = [sum(counts_by_column[0]) for counts_by_column in part.fill]
    rows = dict(zip(channel.useful.names, channel.rows, strict=True))
    laws: list[Law] = []
    for y in range(len(channel.outputs)):
        masses: list[int] = []
        for box, records in enumerate(slice_records):
            row = rows.get(box_name(box))
            # A box without records of the table has no row, so no output leads back to it.
            if row is None:
                masses.append(0)
            else:
                masses.append(records * row[y])
        laws.append(_moved(shares_of(masses), first))
    return laws


def shares_of(masses: list[int]) -> Law:
    """The law in proportion to masses."""
    return _positive(apportioned(masses, DENOMINATOR).tolist())


def _positive(row: Sequence[int]) -> Law:
    """The positive entries of a row, by their places."""
    return {place: value for place, value in enumerate(row) if value}


def _moved(law: Law, first: int) -> Law:
    """The law with its places counted from `first` on."""
    return {first + place: value for place, value in law.items()}


def _sampler(laws: Sequence[Law], width: int) -> Sampler:
    """A sampler with a row for each law."""
    ends = [0]
    places: list[int] = []
    values: list[int] = []
    for law in laws:
        for place in sorted(law):
            places.append(place)
            values.append(law[place])
        ends.append(len(places))
    table = IntegerRows(
        (len(laws), width),
        np.array(ends, dtype=np.int64),
        np.array(places, dtype=np.int64),
        np.array(values, dtype=np.int64),
    )
    return Sampler(table, DENOMINATOR)


def box_channel_digest(channel: ReleasableBoxes) -> str:
    """SHA-256 of what a channel of boxes does: its columns, symbols, boxes and rows, and what fills
    boxes.
    """
    parts: list[dict[str, object]] = []
    for part in channel.parts:
        digest_of_channel: str | None = None
        marginal: list[int] = []
        if part.channel is not None:
            digest_of_channel = channel_digest(part.channel)
            # The marginal is drawn from the table, which the digest of the channel leaves out.
            if part.channel.unseen and part.channel.joint is not None:
                marginal = policy_row(part.channel, MARGINAL, "unknown")
        parts.append(
            {
                "stratum": part.stratum,
                "splits": [vars(split) for split in part.boxes.splits],
                "channel": digest_of_channel,
                "marginal": list(map(str, marginal)),
                "fill": part.fill,
            }
        )
    content = {
        "given": [[v.columns, v.symbols] for v in channel.given],
        "columns": [[v.columns, v.symbols] for v in channel.levels],
        "parts": parts,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()
