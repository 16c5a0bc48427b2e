"""The parts of a channel for boxes, one for each stratum of the given columns.

A *stratum* is the rows with the same symbols in the given columns. A *box* is a set of rows of the
other released columns, such as 'hours 40-49, education Bachelors or Masters'. The *slice* is the
random share of the records on which everything is learned (`learning`); on the others the promise
is proven (`proving`).

`box_design` makes one `PartDesigns` and calls `designed`, which goes through the strata. For each
of them, `_part` takes three steps:

1. The slice alone decides which rare sensitive values are promised together, how many boxes there
   are and which ones (`BoxPlanner.plan`).
2. The other records are counted by group of sensitive values and box (`GroupedRows.joint`).
3. `design_for_boxes` designs the robust channel for this table at the level 1 - delta / K, where K
   is the number of strata and 1 - delta the level of the request (`level_of_share`; Proposition 4
   of docs/explanation/population.md). For example, three strata at 95 % have 98.33 % each.

A stratum whose records allow no such table releases nothing but its given columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechdesign.channel.box_claims import RECORDS_OF_STRATUM
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.core.integers import Integers
from mechdesign.mechanisms.box_plan import BoxPlanner, design_for_boxes
from mechdesign.mechanisms.box_request import TRUTH, BoxRequest
from mechdesign.mechanisms.box_rows import StratumRecords
from mechdesign.mechanisms.optimal import X_IS_PRIVATE
from mechdesign.mechanisms.result import Design, LeastCost
from mechdesign.tables.box_fill import RowsByBox, SymbolCounts
from mechdesign.tables.records import Records
from mechdesign.tables.row_boxes import Boxes

GUESS_SHARE = 0.3
"""Share of the time of a stratum in which the slice chooses its boxes."""

GUESS_SHARE_OF_OWN = 0.6
"""The same for own boxes: the design ends by itself then, and each trial takes as long as it."""

LEAST_SECONDS = 0.02
"""Time of a stratum whatever the limit is: enough for a merging of few boxes, and hundreds of
strata overrun the limit by little."""

BOXES_ARE_PRIVATE = (
    "The boxes themselves keep the promise, and are released as they are."
)
"""Where the best channel for the boxes is the identity."""


@dataclass(frozen=True)
class PartSummary:
    """What the part of a stratum is worth.

    `mass` is its share of the proving records, `information` the nats kept, with their `bound`.
    `records` are all of the stratum, and `least` has the figures of own boxes, where these are
    released.
    """

    mass: float
    information: float
    bound: float
    records: int = 0
    least: LeastCost | None = None


@dataclass(frozen=True)
class DesignedParts:
    """The parts of a channel in the order of the strata, what each is worth, and messages about
    their designs, each once.
    """

    parts: list[BoxPart]
    summaries: list[PartSummary]
    messages: list[str]


class PartDesigns:
    """The parts of one design: each stratum by itself, with its share of level and time.

    Parameters
    ----------
    records : Records
    request : BoxRequest
    learning, proving : (rows,) arrays
        Records of each distinct row in the slice, and outside of it.
    strata : sequence of tuple of int
        Codes of the given columns; those that the slice has.
    """

    def __init__(
        self,
        records: Records,
        request: BoxRequest,
        learning: Integers,
        proving: Integers,
        strata: Sequence[tuple[int, ...]],
    ) -> None:
        self._records = records
        self._request = request
        self._learning = learning
        self._proving = proving
        self._strata = strata
        # The union bound of Proposition 4: strata share delta, boxes cost none of it.
        self._level = level_of_share(request.level, len(strata))

    def designed(self, started: float) -> DesignedParts:
        """All parts within the time limit of the request, counted from `started`."""
        parts: list[BoxPart] = []
        summaries: list[PartSummary] = []
        messages: list[str] = []
        stopped = 0
        end = started + self._request.time_limit
        for k, stratum in enumerate(self._strata):
            # An equal share of the time that is left, so that quick strata leave more to the later.
            seconds = (end - time.process_time()) / (len(self._strata) - k)
            rows = self._rows_of(stratum)
            records = int((self._learning[rows] + self._proving[rows]).sum())
            mass = float(self._proving[rows].sum() / self._proving.sum())
            part, design = self._part(stratum, rows, max(seconds, LEAST_SECONDS))
            parts.append(part)
            if design is None:
                summaries.append(PartSummary(mass, 0.0, 0.0, records))
                continue
            # The certificate bounds the share of H(box) in nats; without one H(box) is the bound.
            bound = design.certificate.upper_bound_nmi
            bound_in_nats = design.entropy
            if bound is not None:
                bound_in_nats *= bound
            summaries.append(
                PartSummary(
                    mass,
                    design.mutual_information,
                    bound_in_nats,
                    records,
                    design.least,
                )
            )
            # One sentence about all of them follows.
            stopped += design.certificate.details.get("status") == "time_limit"
            for text in own_messages(design):
                if text not in messages:
                    messages.append(text)
        if stopped:
            messages.append(stopped_sentence(stopped, parts, self._request.time_limit))
        return DesignedParts(parts, summaries, messages)

    def _rows_of(self, stratum: tuple[int, ...]) -> Integers:
        """Rows of the table with these given symbols."""
        given = self._records.codes[:, : len(stratum)]
        return np.flatnonzero((given == np.array(stratum, dtype=np.int64)).all(axis=1))

    def _part(
        self, stratum: tuple[int, ...], rows: Integers, seconds: float
    ) -> tuple[BoxPart, Design | None]:
        """The part of one stratum, and its design; None where it releases nothing."""
        started = time.process_time()
        request = self._request
        silent = BoxPart(stratum, Boxes(())), None
        released = StratumRecords(
            codes=self._records.codes[rows][:, request.given :],
            secrets=self._records.secrets[rows],
            learning=self._learning[rows],
            proving=self._proving[rows],
        )
        planner = BoxPlanner(request, self._records.sensitive, released, self._level)
        share = GUESS_SHARE
        if request.objective == TRUTH:
            share = GUESS_SHARE_OF_OWN
        plan = planner.plan(started + share * seconds)
        if plan is None:
            return silent
        # The boxes are fixed: only from here on the records outside of the slice are looked at.
        boxes = plan.boxes
        joint = plan.rows.joint(boxes, released.proving)
        if joint is None:
            return silent
        left = max(started + seconds - time.process_time(), LEAST_SECONDS)
        everything = released.learning + released.proving
        all_records = plan.rows.sizes(boxes, joint, everything)
        design = design_for_boxes(
            joint, all_records, request, self._level, left, request.gap
        )
        sizes = [len(variable) for variable in self._records.groups[request.given :]]
        # The fill replaces a released box by a row of it. It is a step behind the channel, which
        # looks at the released box alone, so it may come from all records: then the law of the
        # rows is that of the table.
        fill: RowsByBox = ()
        if request.fill:
            fill = _rows_by_box(boxes, released.codes, everything)
        inside = _symbols_by_box(boxes, released.codes, released.proving, sizes)
        channel = _with_records(design.channel, int(everything.sum()))
        return BoxPart(stratum, boxes, plan.together, channel, fill, inside), design


def _with_records(channel: Channel, records: int) -> Channel:
    """The channel of a stratum with the number of all of its records, by which figures of the whole
    are means of those of the strata.
    """
    utility = {**(channel.record.utility or {}), RECORDS_OF_STRATUM: records}
    return channel.with_record(replace(channel.record, utility=utility))


def own_messages(design: Design) -> list[str]:
    """The remarks of a part's design in the words of boxes, without those on its time."""
    if design.certificate.details.get("status") == "time_limit":
        # The limit is one of all parts together, and is said once.
        return []
    messages: list[str] = []
    for text in design.messages:
        if text == X_IS_PRIVATE:
            text = BOXES_ARE_PRIVATE
        messages.append(text)
    return messages


def stopped_sentence(stopped: int, parts: Sequence[BoxPart], limit: float) -> str:
    """What the time limit did."""
    where = ""
    if len(parts) > 1:
        where = f" in {stopped} of {len(parts)} strata"
    return (
        f"The time limit ({limit:g} s) ended the search{where}. The channel is the best one "
        "verified within it, and the bound on what any channel for these boxes keeps is proven."
    )


def level_of_share(level: float, shares: int) -> float:
    """The level of each of so many sets that hold at once at `level`: the smallest double with
    shares * (1 - it) <= 1 - level, both as they are written.
    """
    # `repr` is what a person wrote: 0.95 is 95/100 here, not the double below it.
    allowed = (1 - Fraction(repr(level))) / shares
    level_of_each = float(1 - allowed)
    # The nearest double may lie below, where the sets together would miss the level by a hair.
    while 1 - Fraction(repr(level_of_each)) > allowed:
        level_of_each = math.nextafter(level_of_each, 1.0)
    return level_of_each


def _rows_by_box(boxes: Boxes, codes: Integers, counts: Integers) -> RowsByBox:
    """The distinct rows of codes in each box, each with its records; rows without any are left out.

    `counts` are the records of each row of `codes`, in which a row may occur once for every
    sensitive value.
    """
    distinct, place = np.unique(codes, axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), counts, minlength=len(distinct)).astype(np.int64)
    box_of_row = boxes.of(distinct)
    by_box: list[tuple[tuple[int, ...], ...]] = []
    for box in range(len(boxes)):
        inside = np.flatnonzero((box_of_row == box) & (sums > 0))
        rows = np.column_stack([distinct[inside], sums[inside]])
        by_box.append(tuple(map(tuple, rows.tolist())))
    return tuple(by_box)


def _symbols_by_box(
    boxes: Boxes, codes: Integers, counts: Integers, sizes: Sequence[int]
) -> SymbolCounts:
    """How many of the counted records in each box have each symbol of each column.

    `codes` are those of the rows, `counts` their records, and `sizes` the numbers of symbols of the
    columns.
    """
    box_of_row = boxes.of(codes)
    by_box: list[tuple[tuple[int, ...], ...]] = []
    for box in range(len(boxes)):
        inside = box_of_row == box
        columns: list[tuple[int, ...]] = []
        for k, size in enumerate(sizes):
            sums = np.bincount(codes[inside, k], counts[inside], minlength=size)
            columns.append(tuple(int(value) for value in sums))
        by_box.append(tuple(columns))
    return tuple(by_box)
