"""The parts of a channel for boxes, one for each stratum of the given columns.

`PartDesigns.designed` goes through the strata. For each of them

1. the slice alone decides which rare sensitive values are promised together, how many boxes there
   are and which ones (`Plan`). Where there is a choice, it takes what a design for the slice, its
   records multiplied to the number of the others, keeps most of;
2. the other records are counted by group of sensitive values and box (`GroupedRows`);
3. the robust channel for this table is designed at the level 1 - delta / K, with K strata
   (Proposition 4 of docs/explanation/population.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.box_channel import BOX, BoxPart, box_name
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import Integers
from mechdesign.mechanisms.box_groups import names_of_groups, nested_groups, together_of
from mechdesign.mechanisms.box_request import AUTO, BoxRequest
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.optimal import X_IS_PRIVATE
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records
from mechdesign.tables.row_boxes import Boxes, BoxTree, boxes_merging_rare

SLICE_SHARE = 0.1
"""Share of the records that boxes are learned on."""

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80)
"""Numbers of boxes that the slice chooses among."""

PENALTIES = (2.0, 5.0, 10.0)
"""Other weights of I(S; split) that the slice tries for the best number of boxes."""

GUESS_SHARE = 0.3
"""Share of the time for the choice of the numbers of boxes on the slice."""

GUESS_GAP = 0.05
"""Gap of these designs, in units of the entropy of the boxes."""

LEAST_SECONDS = 0.02
"""Time of a stratum whatever the limit is: enough for a merging of few boxes, and hundreds of
strata overrun the limit by little."""

BOXES_ARE_PRIVATE = (
    "The boxes themselves keep the promise, and are released as they are."
)
"""Where the best channel for the boxes is the identity."""

GOAL = 0.55
"""Share of H(X) that this choice expects to keep: half of it, and some more because a slice shows
chance differences between the sensitive values that the other records do not have."""


@dataclass(frozen=True)
class PartSummary:
    """What the part of a stratum is worth: its share of the records, nats kept and their bound."""

    mass: float
    information: float
    bound: float


class PartDesigns:
    """The parts of one design: each stratum by itself, with its share of level and time."""

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

    def designed(
        self, started: float
    ) -> tuple[list[BoxPart], list[PartSummary], list[str]]:
        """All parts, what each is worth, and messages; the time is shared by the strata left.

        Strata that the slice does not have are no part of the channel.
        """
        parts: list[BoxPart] = []
        summaries: list[PartSummary] = []
        messages: list[str] = []
        stopped = 0
        end = started + self._request.time_limit
        for k, stratum in enumerate(self._strata):
            seconds = (end - time.perf_counter()) / (len(self._strata) - k)
            rows = self._rows_of(stratum)
            mass = float(self._proving[rows].sum() / self._proving.sum())
            part, design = self._part(stratum, rows, max(seconds, LEAST_SECONDS))
            parts.append(part)
            if design is None:
                summaries.append(PartSummary(mass, 0.0, 0.0))
                continue
            # The certificate bounds the share of H(box) in nats; without one H(box) is the bound.
            bound = design.certificate.upper_bound_nmi
            most = design.entropy
            if bound is not None:
                most *= bound
            summaries.append(PartSummary(mass, design.mutual_information, most))
            stopped += design.certificate.details.get("status") == "time_limit"
            for text in own_messages(design):
                if text not in messages:
                    messages.append(text)
        if stopped:
            messages.append(stopped_sentence(stopped, parts, self._request.time_limit))
        return parts, summaries, messages

    def _rows_of(self, stratum: tuple[int, ...]) -> Integers:
        """Rows of the table with these given symbols."""
        given = self._records.codes[:, : len(stratum)]
        return np.flatnonzero((given == np.array(stratum, dtype=np.int64)).all(axis=1))

    def _part(
        self, stratum: tuple[int, ...], rows: Integers, seconds: float
    ) -> tuple[BoxPart, Design | None]:
        """The part of one stratum, and its design; None where it releases nothing."""
        started = time.perf_counter()
        request = self._request
        learned = Stratum(
            codes=self._records.codes[rows][:, request.given :],
            secrets=self._records.secrets[rows],
            learning=self._learning[rows],
            proving=self._proving[rows],
        )
        plan = self._plan(learned, started + GUESS_SHARE * seconds)
        silent = BoxPart(stratum, Boxes(())), None
        if plan is None:
            return silent
        joint = plan.rows.joint(plan.boxes, learned.proving)
        if joint is None:
            return silent
        left = started + seconds - time.perf_counter()
        # The union bound of Proposition 4: strata share delta, boxes cost none of it.
        level = level_of_share(request.level, len(self._strata))
        best = self._design(joint, level, max(left, LEAST_SECONDS))
        boxes = plan.boxes
        sizes = [len(variable) for variable in self._records.groups[request.given :]]
        # The law of the fill comes from the slice: it must be fixed before the proof looks at the
        # other records.
        fill: tuple[tuple[tuple[int, ...], ...], ...] = ()
        if request.fill:
            fill = _symbols_by_box(boxes, learned.codes, learned.learning, sizes)
        inside = _symbols_by_box(boxes, learned.codes, learned.proving, sizes)
        return BoxPart(stratum, boxes, plan.together, best.channel, fill, inside), best

    def _plan(self, learned: Stratum, end: float) -> Plan | None:
        """What the slice decides for a stratum; None where nothing can be released.

        With `AUTO` the fewest values are promised together with which the slice expects `GOAL` of
        H(X) to be kept, and as many as keep most where none does. That is a choice on the slice
        alone, so it costs nothing of the level.
        """
        expected = learned.expected(len(self._records.sensitive))
        if self._request.rare != AUTO:
            together = together_of(expected, self._request.rare)
            return self._plan_of(learned, together, end)
        goal = GOAL * learned.entropy()
        best: Plan | None = None
        groupings = nested_groups(expected)
        for place, together in enumerate(groupings):
            seconds = (end - time.perf_counter()) / (len(groupings) - place)
            plan = self._plan_of(learned, together, time.perf_counter() + seconds)
            if plan is not None and (best is None or plan.worth > best.worth):
                best = plan
            if best is not None and best.worth >= goal:
                break
        return best

    def _plan_of(
        self, learned: Stratum, together: Sequence[tuple[int, ...]], end: float
    ) -> Plan | None:
        """Boxes for values that are promised together like this; None where there are none."""
        if len(together) < 2:
            return None
        request = self._request
        sensitive = self._records.sensitive
        group_of = np.zeros(len(sensitive), dtype=np.int64)
        for group, members in enumerate(together):
            group_of[list(members)] = group
        groups = group_of[learned.secrets]
        names = names_of_groups(sensitive, together)
        rows = GroupedRows(learned.codes, groups, names, ",".join(sensitive.columns))
        # The tree sees rows of the slice alone: boxes must not depend on the other records.
        seen = learned.learning > 0
        codes = learned.codes[seen]
        counts = learned.learning[seen]
        most = max(COUNTS)
        if request.cells is not None:
            most = request.cells
        tree = BoxTree(codes, groups[seen], counts, most)
        if tree.most < 2:
            return None
        if request.merge_below is not None:
            least = request.merge_below * SLICE_SHARE
            merged = boxes_merging_rare(codes, counts, least)
            if merged is None:
                return None
            boxes = merged
        elif request.cells is not None:
            boxes = tree.boxes(most)
        else:
            trees = [tree]
            for penalty in PENALTIES:
                trees.append(BoxTree(codes, groups[seen], counts, most, penalty))
            boxes, worth = self._promising(trees, rows, learned, end)
            return Plan(tuple(together), rows, boxes, worth)
        worth = math.nan
        if request.rare == AUTO:
            worth = self._worth(boxes, rows, learned, end)
        return Plan(tuple(together), rows, boxes, worth)

    def _design(
        self, joint: Joint, level: float, seconds: float, gap: float | None = None
    ) -> Design:
        request = self._request
        return design_requested(
            DesignRequest(
                joint,
                request.notion,
                confidence=level,
                gap=gap or request.gap,
                time_limit=seconds,
                allow_identifier=True,
                progress=request.progress,
            )
        )

    def _worth(
        self, boxes: Boxes, rows: GroupedRows, learned: Stratum, end: float
    ) -> float:
        """Nats that a channel for these boxes keeps on the slice, made as large as the other
        records are; -inf where none was found until `end`.

        Of the other records only their number is used, which is fixed by the size of the table.
        """
        joint = rows.joint(boxes, learned.learning * learned.factor)
        seconds = end - time.perf_counter()
        if joint is None or seconds <= 0.0:
            return -math.inf
        level = level_of_share(self._request.level, len(self._strata))
        try:
            design = self._design(joint, level, seconds, GUESS_GAP)
        except SolverFailure:
            return -math.inf
        return design.mutual_information

    def _promising(
        self, trees: Sequence[BoxTree], rows: GroupedRows, learned: Stratum, end: float
    ) -> tuple[Boxes, float]:
        """The boxes that keep most on the slice, and what they keep there in nats.

        The number of boxes is chosen on the first tree, then the tree for it. A trial has an equal
        share of the time that is left, so that quick ones leave more to the later.
        """
        counts = [count for count in COUNTS if count <= trees[0].most]
        left = len(counts) + len(trees) - 1
        best = trees[0].boxes(2)
        most = -math.inf
        for count in counts:
            now = time.perf_counter()
            boxes = trees[0].boxes(count)
            value = self._worth(boxes, rows, learned, now + (end - now) / left)
            left -= 1
            if value > most:
                best = boxes
                most = value
        for tree in trees[1:]:
            now = time.perf_counter()
            boxes = tree.boxes(len(best))
            value = self._worth(boxes, rows, learned, now + (end - now) / left)
            left -= 1
            if value > most:
                best = boxes
                most = value
        return best, most


@dataclass(frozen=True)
class Stratum:
    """The distinct rows of a stratum, with their records of the slice and the other ones.

    Parameters
    ----------
    codes : (rows, columns) array
        Of the released columns.
    secrets : (rows,) array
        Codes of the sensitive values.
    learning, proving : (rows,) arrays
        Records of the slice and of the proof.
    """

    codes: Integers
    secrets: Integers
    learning: Integers
    proving: Integers

    @property
    def factor(self) -> int:
        """How many times as many records the proof has as the slice."""
        return max(round(int(self.proving.sum()) / max(int(self.learning.sum()), 1)), 1)

    def expected(self, size: int) -> NDArray[np.float64]:
        """(size,) records that each sensitive value is likely to have in the proof."""
        sums = np.bincount(self.secrets, self.learning, minlength=size)
        return (sums * ((1.0 - SLICE_SHARE) / SLICE_SHARE)).astype(np.float64)

    def entropy(self) -> float:
        """Entropy in nats of the released columns on the slice."""
        _, place = np.unique(self.codes, axis=0, return_inverse=True)
        sums = np.bincount(place.ravel(), self.learning)
        shares = sums[sums > 0] / sums.sum()
        return -math.fsum((shares * np.log(shares)).tolist())


@dataclass(frozen=True)
class Plan:
    """What the slice decided: values promised together, boxes, and nats expected to be kept."""

    together: tuple[tuple[int, ...], ...]
    rows: GroupedRows
    boxes: Boxes
    worth: float


class GroupedRows:
    """Rows of a stratum with the groups of their sensitive values, to be counted by box."""

    def __init__(
        self, codes: Integers, groups: Integers, names: Sequence[str], column: str
    ) -> None:
        self._codes = codes
        self._groups = groups
        self._names = names
        self._column = column

    def joint(self, boxes: Boxes, weights: Integers) -> Joint | None:
        """The table; None where a sensitive value has no record or one box has them all."""
        places = boxes.of(self._codes)
        keys = self._groups * len(boxes) + places
        sums = np.bincount(keys, weights, minlength=len(self._names) * len(boxes))
        table = sums.astype(np.int64).reshape(len(self._names), len(boxes))
        if not table.any(axis=1).all() or np.count_nonzero(table.any(axis=0)) < 2:
            # Then a constant is released, which keeps every promise.
            return None
        return Joint.from_counts(
            table,
            sensitive_labels=list(self._names),
            useful_labels=[box_name(box) for box in range(len(boxes))],
            sensitive=self._column,
            useful=BOX,
        )


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
    allowed = (1 - Fraction(repr(level))) / shares
    own = float(1 - allowed)
    while 1 - Fraction(repr(own)) > allowed:
        own = math.nextafter(own, 1.0)
    return own


def _symbols_by_box(
    boxes: Boxes, codes: Integers, counts: Integers, sizes: Sequence[int]
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Some of the records with each symbol of each column, by box."""
    places = boxes.of(codes)
    filled: list[tuple[tuple[int, ...], ...]] = []
    for box in range(len(boxes)):
        inside = places == box
        columns: list[tuple[int, ...]] = []
        for k, size in enumerate(sizes):
            sums = np.bincount(codes[inside, k], counts[inside], minlength=size)
            columns.append(tuple(int(value) for value in sums))
        filled.append(tuple(columns))
    return tuple(filled)
