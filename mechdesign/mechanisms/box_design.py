"""Row channels whose promise holds for the population: boxes learned on a slice of the records, one
robust channel for them proven on the others.

1. A slice of the records is drawn at random. On it alone are decided: the strata, which rare
   sensitive values are promised together, the boxes, and how many boxes are tried.
2. The other records are independent draws over these fixed boxes and values. A confidence set for
   their counts, and the optimal channel for it (`mechanisms.population`), do the rest.
3. The level is shared by the strata (union bound). The number of boxes costs none of it: several
   are tried, all on the slice.

docs/explanation/population.md, 'Rows', has the proof. The promise is relative to the given columns.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import mechdesign
from mechdesign.auditing.boxes import audit_boxes
from mechdesign.channel.box_channel import BOX, BoxChannel, BoxPart, box_name
from mechdesign.channel.box_utility import BoxUtility
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.integers import Integers
from mechdesign.core.limits import LiftLimits
from mechdesign.core.progress import Steps
from mechdesign.core.wording import joined_name, quoted
from mechdesign.mechanisms.box_columns import columns_kept
from mechdesign.mechanisms.box_result import BoxDesign
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.optimal import X_IS_PRIVATE
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.tables.confidence import check_counts, check_level, unprotected
from mechdesign.tables.joint import Joint
from mechdesign.tables.rare_limit import RareLimit, rare_limit
from mechdesign.tables.records import Records
from mechdesign.tables.row_boxes import Boxes, BoxTree, boxes_merging_rare
from mechdesign.tables.variable import Variable

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

AUTO: Literal["auto"] = "auto"
"""The slice chooses which sensitive values are promised together."""

GOAL = 0.55
"""Share of H(X) that this choice expects to keep: half of it, and some more because a slice shows
chance differences between the sensitive values that the other records do not have."""

FEWEST_RECORDS = 40
"""Records without which a slice decides nothing."""


@dataclass(frozen=True)
class BoxRequest:
    """What is asked of a channel for boxes of rows.

    `cells` fixes the number of boxes of every part, `rare` is the number of records below which
    sensitive values of a stratum are promised together, or `AUTO` for a choice by the slice where
    one column is released, `fill` asks for symbols in the place of
    boxes, `seed` repeats the draw of the slice. With `merge_below` the boxes of a single column are
    its symbols, of which those with fewer records than this (by the slice) are one box.
    """

    notion: Notion
    level: float
    given: int = 0
    cells: int | None = None
    rare: int | Literal["auto"] = 0
    fill: bool = False
    gap: float = 1e-3
    time_limit: float = 30.0
    seed: int | None = None
    merge_below: int | None = None
    progress: Steps | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.cells is not None and self.cells < 2:
            raise InputError(
                f"cells ({self.cells}) must be a number of boxes, at least 2"
            )
        if self.seed is not None and self.seed < 0:
            raise InputError(
                f"slice_seed ({self.seed}) must be a whole number, at least 0"
            )
        if self.rare != AUTO and self.rare < 0:
            raise InputError(
                f"rare ({self.rare}) must be a number of records, at least 0"
            )


@dataclass(frozen=True)
class PartSummary:
    """What the part of a stratum is worth: its share of the records, nats kept and their bound."""

    mass: float
    information: float
    bound: float


def design_boxes(records: Records, request: BoxRequest) -> BoxDesign:
    """Design a channel for rows with a promise for the population; see the module.

    Parameters
    ----------
    records : Records
        Whole numbers of records; the first `request.given` groups are released as they are.

    Raises
    ------
    InputError
        If the counts are weights, there are too few records, or a sensitive value was listed
        without a record.
    SolverFailure
        If no channel could be verified.
    """
    started = time.perf_counter()
    check_counts(records)
    if records.empty_sensitive:
        raise unprotected(records.empty_sensitive)
    if len(records.sensitive) < 2:
        raise InputError(
            f"the sensitive column {quoted(','.join(records.sensitive.columns))} has a single "
            "symbol: "
            "there is nothing to protect"
        )
    if records.total < FEWEST_RECORDS:
        raise InputError(
            f"the table has {records.total} records: at least {FEWEST_RECORDS} are needed, a part "
            "of them for the boxes"
        )
    if request.rare == AUTO and len(records.groups) - request.given > 1:
        raise InputError(
            "rare ('auto') is for one released column: give a number of records"
        )
    seed = request.seed
    if seed is None:
        # Fresh, so that the slice is independent of the records whatever these are.
        seed = secrets.randbits(64)
    counts = np.array(records.counts, dtype=np.int64)
    learning = _slice_of(counts, seed)
    proving = counts - learning
    strata = np.unique(records.codes[learning > 0][:, : request.given], axis=0)
    design = _Parts(
        records, request, learning, proving, [tuple(row) for row in strata.tolist()]
    )
    parts, summaries, messages = design.designed(started)
    channel = BoxChannel(
        sensitive=records.sensitive,
        given=records.groups[: request.given],
        columns=records.groups[request.given :],
        parts=tuple(parts),
        level=float(request.level),
        slice_records=int(learning.sum()),
        provenance={
            "tool": "mechdesign",
            "version": mechdesign.__version__,
            "slice_seed": seed,
        },
    )
    information = math.fsum(part.mass * part.information for part in summaries)
    bound = math.fsum(part.mass * part.bound for part in summaries)
    utility = BoxUtility(
        information=information,
        bound=max(bound, information),
        entropy=_entropy(records, len(records.groups))
        - _entropy(records, request.given),
        records=records.total,
        columns=columns_kept(records, request.given, parts, proving),
        limit=_limit(records, request, parts),
    )
    channel = replace(channel, utility=utility)
    verdict = audit_boxes(channel, request.notion)
    if not verdict.satisfied:
        raise SolverFailure(
            "the exact audit refutes the channel for boxes: no channel is returned"
        )
    return BoxDesign(
        channel=channel,
        notion=request.notion,
        audit=verdict,
        utility=utility,
        messages=tuple(messages),
        seconds=time.perf_counter() - started,
    )


def _limit(
    records: Records, request: BoxRequest, parts: Sequence[BoxPart]
) -> RareLimit | None:
    """The limit by the rarest value that is promised for itself; None with given columns."""
    upper = request.notion.limits
    if request.given or not isinstance(upper, LiftLimits) or upper.symbol_budgets:
        return None
    counts = records.sensitive_counts()
    promised: list[tuple[str, int]] = []
    for members in parts[0].together:
        name = joined_name([records.sensitive.names[s] for s in members])
        promised.append((name, sum(counts[s] for s in members)))
    return rare_limit(promised, upper.upper, request.level)


def _slice_of(counts: Integers, seed: int) -> Integers:
    """(rows,) records of the slice: a uniformly random subset of fixed size."""
    total = int(counts.sum())
    size = max(int(SLICE_SHARE * total), 1)
    # A subset of fixed size, by sequential draws: exact, and fast for many rows.
    generator = np.random.Generator(np.random.PCG64(seed))
    places = generator.choice(total, size=size, replace=False, shuffle=False)
    rows = np.searchsorted(np.cumsum(counts), places, side="right")
    return np.bincount(rows, minlength=len(counts)).astype(np.int64)


class _Parts:
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
        """All parts; strata that the slice does not have are no part of the channel."""
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
        learned = _Learned(
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
        level = level_of_share(request.level, len(self._strata))
        best = self._design(joint, level, max(left, LEAST_SECONDS))
        boxes = plan.boxes
        sizes = [len(variable) for variable in self._records.groups[request.given :]]
        fill: tuple[tuple[tuple[int, ...], ...], ...] = ()
        if request.fill:
            fill = _symbols_by_box(boxes, learned.codes, learned.learning, sizes)
        inside = _symbols_by_box(boxes, learned.codes, learned.proving, sizes)
        return BoxPart(stratum, boxes, plan.together, best.channel, fill, inside), best

    def _plan(self, learned: _Learned, end: float) -> _Plan | None:
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
        best: _Plan | None = None
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
        self, learned: _Learned, together: Sequence[tuple[int, ...]], end: float
    ) -> _Plan | None:
        """Boxes for values that are promised together like this; None where there are none."""
        if len(together) < 2:
            return None
        request = self._request
        sensitive = self._records.sensitive
        group_of = np.zeros(len(sensitive), dtype=np.int64)
        for group, members in enumerate(together):
            group_of[list(members)] = group
        groups = group_of[learned.secrets]
        names = _names(sensitive, together)
        rows = _Rows(learned.codes, groups, names, ",".join(sensitive.columns))
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
            return _Plan(tuple(together), rows, boxes, worth)
        worth = math.nan
        if request.rare == AUTO:
            worth = self._worth(boxes, rows, learned, end)
        return _Plan(tuple(together), rows, boxes, worth)

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

    def _worth(self, boxes: Boxes, rows: _Rows, learned: _Learned, end: float) -> float:
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
        self, trees: Sequence[BoxTree], rows: _Rows, learned: _Learned, end: float
    ) -> tuple[Boxes, float]:
        """The boxes that keep most on the slice, and what they keep there in nats.

        The number of boxes is chosen on the first tree, then the tree for it.
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
class _Learned:
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


class _Rows:
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


@dataclass(frozen=True)
class _Plan:
    """What the slice decided: values promised together, boxes, and nats expected to be kept."""

    together: tuple[tuple[int, ...], ...]
    rows: _Rows
    boxes: Boxes
    worth: float


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
        "verified "
        "within it, and the bound on what any channel for these boxes keeps is proven."
    )


def together_of(
    expected: NDArray[np.float64], rare: int
) -> tuple[tuple[int, ...], ...]:
    """Sensitive values that are promised together: those with fewer than `rare` expected records.

    Where they are still too few together, the rarest other value joins them. Values that the slice
    does not have at all always count as rare. All others are groups of their own.
    """
    order = np.argsort(expected, kind="stable").tolist()
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
    """Groupings of sensitive values: first that of `together_of` without a number of records, then
    the next rarest value joins, until two groups are left.
    """
    order = np.argsort(expected, kind="stable").tolist()
    groupings = [together_of(expected, 0)]
    joined = max(len(group) for group in groupings[0])
    for size in range(joined + 1, len(order)):
        groups = [(s,) for s in order[size:]]
        groups.append(tuple(sorted(order[:size])))
        groupings.append(tuple(sorted(groups)))
    return groupings


def _names(sensitive: Variable, together: Sequence[Sequence[int]]) -> list[str]:
    """A name for every group of sensitive values."""
    names: list[str] = []
    for members in together:
        names.append(joined_name([sensitive.names[s] for s in members]))
    return names


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


def _entropy(records: Records, groups: int) -> float:
    """Entropy in nats of the first so many groups together."""
    if not groups:
        return 0.0
    _, place = np.unique(records.codes[:, :groups], axis=0, return_inverse=True)
    masses = np.bincount(place.ravel(), records.masses)
    return -math.fsum((masses * np.log(masses)).tolist())
