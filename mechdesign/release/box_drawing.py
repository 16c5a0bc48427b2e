"""Draws of released boxes: a row is in a box, and the channel of its stratum draws an output.

With filling two more steps follow, a box of the output and a symbol of every column in that box.
They depend on the output alone, so they say nothing more of the record. Every step has numbers of
its own, which belong to the key, the channel, the step and the record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

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
    """What is needed of a channel of boxes, which stands above this package."""

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
            ("null", self.policy.null),
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
        bad = places == MISSING
        if is_given:
            bad = places < 0
        at = np.flatnonzero(bad)
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
        boxes = np.zeros(len(records), dtype=np.int64)
        for place in np.unique(strata).tolist():
            at = np.flatnonzero(strata == place)
            boxes[at] = self._partitions[int(place)].of(rows[at])
        sampled = self._samplers.rows_at(strata, boxes)
        lost = np.flatnonzero(sampled == NO_ROW)
        if lost.size:
            raise UnknownSymbol(
                int(lost[0]),
                "no record of the table was in the box of this row, and a public channel does not "
                "have the marginal that is released for it: use the channel file that `design` "
                "wrote",
            )
        released = self._steps(sampled, records, key)
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
    """All parts as one sampler: a row for each box with records, and one for all other boxes.

    Attributes
    ----------
    sampler : Sampler
        Over the outputs of all parts, one part after the other.
    labels : (outputs,) array
        The label of each output in the released column.
    """

    def __init__(self, channel: ReleasableBoxes) -> None:
        dense: list[dict[int, int]] = []
        labels: list[int] = []
        place: dict[str, int] = {}
        if not channel.fills:
            place = {label: k for k, label in enumerate(channel.labels[0])}
        self._first_boxes: list[int] = []
        self._rows: list[int] = []
        for part in channel.parts:
            first = len(labels)
            self._first_boxes.append(len(self._rows))
            rows, names = _rows_of_part(part)
            labels += [place.get(name, 0) for name in names]
            for row in rows:
                if row is None:
                    self._rows.append(NO_ROW)
                    continue
                self._rows.append(len(dense))
                dense.append({first + y: value for y, value in row.items()})
        self.labels = np.array(labels, dtype=np.int32)
        self.sampler = _sampler(dense, len(labels))

    def rows_at(self, strata: Integers, boxes: Integers) -> Integers:
        """Row of the sampler for each record, `NO_ROW` where there is none."""
        first = np.array(self._first_boxes, dtype=np.int64)
        return np.array(self._rows, dtype=np.int64)[first[strata] + boxes]


def _rows_of_part(
    part: ReleasablePart,
) -> tuple[list[dict[int, int] | None], tuple[str, ...]]:
    """For every box the integers of its outputs over 2^53, and the labels of the outputs."""
    count = len(part.boxes)
    channel = part.channel
    if channel is None:
        return [{0: DENOMINATOR} for _ in range(count)], (NOTHING,)
    if DENOMINATOR % channel.denominator:
        raise InputError(
            f"the denominator of the channel of a part ({channel.denominator}) does not divide 2^53"
        )
    scale = DENOMINATOR // channel.denominator
    known: dict[str, dict[int, int]] = {}
    for name, row in zip(channel.useful.names, channel.rows, strict=True):
        known[name] = _positive([value * scale for value in row])
    other: dict[int, int] | None = None
    if channel.unseen and channel.joint is not None:
        # Boxes without records are covered if they are released like the marginal.
        masses = policy_row(channel, MARGINAL, "unknown")
        other = shares_of(masses)
    rows = [known.get(box_name(box), other) for box in range(count)]
    return rows, tuple(channel.outputs)


class _Filling:
    """Samplers of a box for each output, and of a symbol of each column for each box."""

    def __init__(self, channel: ReleasableBoxes) -> None:
        boxes: list[dict[int, int]] = []
        columns: list[list[dict[int, int]]] = [[] for _ in channel.levels]
        for part in channel.parts:
            first = len(columns[0])
            own = part.channel
            if own is None:
                boxes.append({first: DENOMINATOR})
                for k, variable in enumerate(channel.levels):
                    # Behind the symbols stands the label of what is not released.
                    columns[k].append({len(variable): DENOMINATOR})
                continue
            boxes += boxes_of_outputs(part, own, first)
            for box in part.fill:
                for k, counts in enumerate(box):
                    columns[k].append(shares_of(list(counts)))
        self.boxes = _sampler(boxes, len(columns[0]))
        self.columns: list[Sampler] = []
        for rows, labels in zip(columns, channel.labels, strict=True):
            self.columns.append(_sampler(rows, len(labels)))


def boxes_of_outputs(
    part: ReleasablePart, channel: Releasable, first: int
) -> list[dict[int, int]]:
    """The law of the box for each output of a part, by the masses of the slice."""
    weights = [sum(box[0]) for box in part.fill]
    rows = dict(zip(channel.useful.names, channel.rows, strict=True))
    laws: list[dict[int, int]] = []
    for y in range(len(channel.outputs)):
        masses: list[int] = []
        for box, weight in enumerate(weights):
            row = rows.get(box_name(box))
            masses.append(0 if row is None else weight * row[y])
        laws.append({first + box: value for box, value in shares_of(masses).items()})
    return laws


def shares_of(masses: list[int]) -> dict[int, int]:
    """The positive integers over 2^53 in proportion to masses."""
    return _positive(apportioned(masses, DENOMINATOR).tolist())


def _positive(row: Sequence[int]) -> dict[int, int]:
    """The positive entries of a row, by their places."""
    return {place: value for place, value in enumerate(row) if value}


def _sampler(rows: Sequence[dict[int, int]], width: int) -> Sampler:
    """A sampler of rows of integers over 2^53 that sum to it."""
    ends = np.cumsum([0] + [len(row) for row in rows])
    places: list[int] = []
    values: list[int] = []
    for row in rows:
        for place in sorted(row):
            places.append(place)
            values.append(row[place])
    table = IntegerRows(
        (len(rows), width),
        ends.astype(np.int64),
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
        own = None
        marginal: list[int] = []
        if part.channel is not None:
            own = channel_digest(part.channel)
            if part.channel.unseen and part.channel.joint is not None:
                marginal = policy_row(part.channel, MARGINAL, "unknown")
        splits = [vars(split) for split in part.boxes.splits]
        parts.append(
            {
                "stratum": part.stratum,
                "splits": splits,
                "channel": own,
                "marginal": [str(mass) for mass in marginal],
                "fill": part.fill,
            }
        )
    content = {
        "given": [[v.columns, v.symbols] for v in channel.given],
        "columns": [[v.columns, v.symbols] for v in channel.levels],
        "parts": parts,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()
