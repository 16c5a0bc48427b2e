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

*What the slice decides* for one stratum: its boxes, and which sensitive values are promised
together. A channel for boxes is designed on the records outside of the slice. More boxes tell more
of a row, but each then has fewer records, so that its intervals are wider and the robust channel
must blur more. A rare sensitive value has wide intervals too, until it is promised together with
others. How these balance is not known beforehand, so `BoxPlanner` tries it on the slice:

1. `plan` goes through the groupings of sensitive values (`nested_groups`), from the fewest values
   together to the most, until enough is kept.
2. For each, `_most_promising` tries numbers of boxes (`COUNTS`), and then other trees for the best
   number (`PENALTIES`), unless the request says how many boxes there are.
3. Each trial is worth the information that a channel keeps which is designed for the slice alone
   (`_worth`). The counts of its table are multiplied to the number of the other records, because
   the width of the intervals depends on that. For example, with 300 records of the slice and 2,700
   others, a box with 10 records of the slice is tried with 90.

Nothing here looks at the records outside of the slice but their number. So boxes and groups are
fixed when those are counted (`GroupedRows.joint`), which Proposition 4 of
docs/explanation/population.md needs.

*Which rare sensitive values a promise takes together.* The frequency of a rare value is known only
within a wide confidence interval, and this limits what every channel may keep
(docs/explanation/population.md, Proposition 6). Values that are promised together are one value of
S with the sum of their records.

The groups are chosen on the *slice*, a random part of the records that is set aside for such
choices (`box_design`). The intervals come from the other records, and hold whatever was chosen.
`expected` is what the slice suggests for these others: how many records each value will have.

There are two ways to choose, and in both the rarest values join first:

- `together_of` joins all values with fewer than `rare` records. Of 200, 30, 12 and 5 with `rare` 20
  these are 12 and 5. Their sum, 17, is still below 20, so 30 joins them: 200 and 30 + 12 + 5.
- `nested_groups` lists all groupings from the finest to two groups, for `plan`, which tries them in
  turn.

A group is a tuple of positions in `expected`. In the example the result is ((0,), (1, 2, 3)).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.box_claims import RECORDS_OF_STRATUM, protected_groups
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import Integers
from mechdesign.mechanisms.box_own import own_boxes
from mechdesign.mechanisms.box_request import (
    AUTO,
    SLICE_SHARE,
    TRUTH,
    BoxRequest,
    GroupedRows,
    StratumRecords,
)
from mechdesign.mechanisms.by_rules import for_population
from mechdesign.mechanisms.optimal import X_IS_PRIVATE
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, LeastCost
from mechdesign.tables.box_coder import RowsByBox, SymbolCounts
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records
from mechdesign.tables.row_boxes import Boxes, BoxTree, boxes_merging_rare
from mechdesign.tables.variable import Variable

# --------------------------------------------------------------- what the slice decides

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80)
"""Numbers of boxes that the slice chooses among."""

PENALTIES = (2.0, 5.0, 10.0)
"""Other weights of I(S; split) that the slice tries for the best number of boxes."""

GUESS_GAP = 0.05
"""Gap of the designs on the slice, as a share of the entropy of the boxes."""

NEARLY = 0.97
"""Of own boxes the fewest are taken whose worth is this share of the most. The slice overstates
what many boxes keep by some percent, and fewer leave more records in their own box: on Adult 48
boxes keep as much as 64, and .87 of the records for .80."""

GOAL = 0.55
"""Share of H(X) on the slice with which no more values are promised together: half of it, and some
more because a slice shows chance differences between the sensitive values that the other records do
not have."""


class Trial(NamedTuple):
    """Boxes, and the nats that a channel for them keeps on the slice; nan where that is not asked
    for.
    """

    boxes: Boxes
    worth: float


@dataclass(frozen=True)
class Plan:
    """What the slice decided: the groups of sensitive values that are promised together, the rows
    by these groups, the boxes, and the nats expected to be kept (nan where nothing was chosen).
    """

    together: tuple[tuple[int, ...], ...]
    rows: GroupedRows
    boxes: Boxes
    worth: float


class BoxPlanner:
    """Decides on the slice for one stratum.

    Parameters
    ----------
    request : BoxRequest
    sensitive : Variable
    records : StratumRecords
    level : float
        The confidence level of this stratum.
    """

    def __init__(
        self,
        request: BoxRequest,
        sensitive: Variable,
        records: StratumRecords,
        level: float,
    ) -> None:
        self._request = request
        self._sensitive = sensitive
        self._records = records
        self._level = level

    def plan(self, end: float) -> Plan | None:
        """What the slice decides until `end` (of `time.process_time`); None where nothing can be
        released.

        With `AUTO` the fewest values are promised together with which the slice expects `GOAL` of
        H(X) to be kept, and as many as keep most where none does. That is a choice on the slice
        alone, so it costs nothing of the level.
        """
        expected = self._records.expected(len(self._sensitive))
        if self._request.rare != AUTO:
            return self._plan_for(together_of(expected, self._request.rare), end)
        goal = GOAL * self._records.entropy()
        best: Plan | None = None
        # From the fewest values together to the most, so that the first that is enough is the one
        # that promises most.
        groupings = nested_groups(expected)
        for place, together in enumerate(groupings):
            plan = self._plan_for(together, _share_of_time(end, len(groupings) - place))
            if plan is not None and (best is None or plan.worth > best.worth):
                best = plan
            if best is not None and best.worth >= goal:
                break
        return best

    def _plan_for(self, together: Sequence[tuple[int, ...]], end: float) -> Plan | None:
        """Boxes for values that are promised together like this; None where there are none."""
        if len(together) < 2:
            # One group of all values would promise nothing about any of them.
            return None
        rows = self._grouped(together)
        trial = self._boxes(rows, end)
        if trial is None:
            return None
        return Plan(tuple(together), rows, trial.boxes, trial.worth)

    def _grouped(self, together: Sequence[tuple[int, ...]]) -> GroupedRows:
        """The rows, each with the group of its sensitive value."""
        group_of = np.zeros(len(self._sensitive), dtype=np.int64)
        for group, members in enumerate(together):
            group_of[list(members)] = group
        return GroupedRows(
            codes=self._records.codes,
            groups=group_of[self._records.secrets],
            names=protected_groups(self._sensitive, together).names,
            column=",".join(self._sensitive.columns),
        )

    def _boxes(self, rows: GroupedRows, end: float) -> Trial | None:
        """The boxes as the request says: the symbols of a column, a number of boxes, or those that
        keep most on the slice; None where the slice has no split.
        """
        request = self._request
        # The trees see rows of the slice alone: boxes must not depend on the other records.
        seen = self._records.learning > 0
        codes = rows.codes[seen]
        counts = self._records.learning[seen]
        groups = rows.groups[seen]
        largest_count = max(COUNTS)
        if request.cells is not None:
            largest_count = request.cells
        tree = BoxTree(codes, groups, counts, largest_count)
        if tree.most < 2:
            # One box for all rows would tell nothing.
            return None
        if request.merge_below is None and request.cells is None:
            others = [
                BoxTree(codes, groups, counts, largest_count, c) for c in PENALTIES
            ]
            return self._most_promising(tree, others, rows, end)
        boxes = tree.boxes(largest_count)
        if request.merge_below is not None:
            # The limit is of all records, and the slice has a share of them.
            least = request.merge_below * SLICE_SHARE
            merged = boxes_merging_rare(codes, counts, least)
            if merged is None:
                return None
            boxes = merged
        # Only a choice between groupings compares plans, so only then a trial is worth its time.
        if request.rare != AUTO:
            return Trial(boxes, math.nan)
        return Trial(boxes, self._worth(boxes, rows, end))

    def _most_promising(
        self,
        tree: BoxTree,
        others: Sequence[BoxTree],
        rows: GroupedRows,
        end: float,
    ) -> Trial:
        """The boxes that keep most on the slice.

        The number of boxes is chosen on the first tree, then the tree for it: all pairs would take
        three times as long. A trial has an equal share of the time that is left, so that quick ones
        leave more to the later.
        """
        counts = [count for count in COUNTS if count <= tree.most]
        left = len(counts) + len(others)
        trials = [Trial(tree.boxes(2), -math.inf)]
        for count in counts:
            boxes = tree.boxes(count)
            worth = self._worth(boxes, rows, _share_of_time(end, left))
            left -= 1
            trials.append(Trial(boxes, worth))
        best = self._chosen(trials)
        for other in others:
            boxes = other.boxes(len(best.boxes))
            worth = self._worth(boxes, rows, _share_of_time(end, left))
            left -= 1
            if worth > best.worth:
                best = Trial(boxes, worth)
        return best

    def _chosen(self, trials: Sequence[Trial]) -> Trial:
        """The trial of most worth; of own boxes the first that comes near it."""
        most = max(trials, key=lambda trial: trial.worth)
        if self._request.objective == TRUTH and most.worth > 0.0:
            for trial in trials:
                if trial.worth >= NEARLY * most.worth:
                    return trial
        return most

    def _worth(self, boxes: Boxes, rows: GroupedRows, end: float) -> float:
        """Nats that a channel for these boxes keeps on the slice, made as large as the other
        records are; -inf where none was found until `end`.

        Of the other records only their number is used, which is fixed by the size of the table.
        """
        # The width of intervals depends on the number of records, so that of the proof is needed.
        joint = rows.joint(boxes, self._records.learning * self._records.factor)
        seconds = end - time.process_time()
        if joint is None or seconds <= 0.0:
            return -math.inf
        sizes = rows.sizes(boxes, joint, self._records.learning)
        try:
            design = design_for_boxes(
                joint, sizes, self._request, self._level, seconds, GUESS_GAP
            )
        except SolverFailure:
            # A trial without a channel is no reason to give up the others.
            return -math.inf
        return design.mutual_information


def design_for_boxes(
    joint: Joint,
    sizes: Sequence[int],
    request: BoxRequest,
    level: float,
    seconds: float,
    gap: float,
) -> Design:
    """The robust channel for a table of groups by boxes, at a confidence level.

    `sizes` are all records of each box; their law is kept where the objective is truth.
    """
    if request.objective == TRUTH and request.keep_law:
        return own_boxes(joint, sizes, request, level, seconds, gap)
    asked = DesignRequest(
        joint,
        request.notion,
        objective=request.objective,
        confidence=level,
        gap=gap,
        time_limit=seconds,
        progress=request.progress,
    )
    return for_population(
        asked, level, joint, joint, request.notion, time.process_time()
    )


def _share_of_time(end: float, left: int) -> float:
    """When an equal share of the time until `end` is over, with so many trials left."""
    now = time.process_time()
    return now + (end - now) / left


def together_of(
    expected: NDArray[np.float64], rare: int
) -> tuple[tuple[int, ...], ...]:
    """The groups where values with fewer than `rare` expected records are promised together.

    Where they are still too few together, the rarest other value joins them. Values that the slice
    does not have at all always count as rare. All others are groups of their own.
    """
    # From the rarest on; equal ones in the order of the table, so that the groups are repeatable.
    order = np.argsort(expected, kind="stable").tolist()
    # Above zero, so that values without a record in the slice are rare whatever `rare` is.
    least = max(float(rare), 1e-9)
    joined = [s for s in order if expected[s] < least]
    others = [s for s in order if expected[s] >= least]
    while joined and others and sum(expected[s] for s in joined) < least:
        joined.append(others.pop(0))
    groups = [(s,) for s in others]
    if joined:
        groups.append(tuple(sorted(joined)))
    return tuple(sorted(groups))


def nested_groups(
    expected: NDArray[np.float64],
) -> list[tuple[tuple[int, ...], ...]]:
    """Groupings of sensitive values from the finest on: in each the next rarest value joins, until
    two groups are left.

    Of 200, 30, 12 and 5 expected records these are all four apart; then 12 + 5; then 30 + 12 + 5.
    """
    order = np.argsort(expected, kind="stable").tolist()
    # Values that the slice does not have are together from the start.
    groupings = [together_of(expected, 0)]
    joined = max(len(group) for group in groupings[0])
    for size in range(joined + 1, len(order)):
        groups = [(s,) for s in order[size:]]
        groups.append(tuple(sorted(order[:size])))
        groupings.append(tuple(sorted(groups)))
    return groupings


# -------------------------------------------------------------------------------- parts

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
