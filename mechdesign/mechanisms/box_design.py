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
from mechdesign.core.wording import quoted
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

BOXES_ARE_PRIVATE = (
    "The boxes themselves keep the promise, and are released as they are."
)
"""Where the best channel for the boxes is the identity."""

FEWEST_RECORDS = 40
"""Records without which a slice decides nothing."""


@dataclass(frozen=True)
class BoxRequest:
    """What is asked of a channel for boxes of rows.

    `cells` fixes the number of boxes of every part, `rare` is the number of records below which
    sensitive values of a stratum are promised together, `fill` asks for symbols in the place of
    boxes, `seed` repeats the draw of the slice. With `merge_below` the boxes of a single column are
    its symbols, of which those with fewer records than this (by the slice) are one box.
    """

    notion: Notion
    level: float
    given: int = 0
    cells: int | None = None
    rare: int = 0
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
        if self.rare < 0:
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
        name = " or ".join(records.sensitive.names[s] for s in members)
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
            part, design = self._part(stratum, rows, max(seconds, 0.2))
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
        records = self._records
        request = self._request
        codes = records.codes[rows][:, request.given :]
        secrets_of_rows = records.secrets[rows]
        learning = self._learning[rows]
        proving = self._proving[rows]
        size = len(records.sensitive)
        sums = np.bincount(secrets_of_rows, learning, minlength=size)
        # The slice says how many records a value is likely to have among the others.
        expected = (sums * ((1.0 - SLICE_SHARE) / SLICE_SHARE)).astype(np.float64)
        together = together_of(expected, request.rare)
        silent = BoxPart(stratum, Boxes(()))
        if len(together) < 2:
            return silent, None
        group_of = np.zeros(size, dtype=np.int64)
        for group, members in enumerate(together):
            group_of[list(members)] = group
        groups = group_of[secrets_of_rows]
        seen = learning > 0
        most = max(COUNTS)
        if request.cells is not None:
            most = request.cells
        tree = BoxTree(codes[seen], groups[seen], learning[seen], most)
        if tree.most < 2:
            return silent, None
        names = _names(records.sensitive, together)
        rest = _Rows(codes, groups, names, ",".join(records.sensitive.columns))
        level = level_of_share(request.level, len(self._strata))
        boxes = tree.boxes(most)
        if request.merge_below is not None:
            least = request.merge_below * SLICE_SHARE
            merged = boxes_merging_rare(codes[seen], learning[seen], least)
            if merged is None:
                return silent, None
            boxes = merged
        elif request.cells is None:
            end = started + GUESS_SHARE * seconds
            trees = [tree]
            for penalty in PENALTIES:
                trees.append(
                    BoxTree(codes[seen], groups[seen], learning[seen], most, penalty)
                )
            boxes = self._promising(trees, rest, learning, proving, level, end)
        joint = rest.joint(boxes, proving)
        if joint is None:
            return silent, None
        left = started + seconds - time.perf_counter()
        best = self._design(joint, level, max(left, 0.2))
        sizes = [len(variable) for variable in records.groups[request.given :]]
        fill: tuple[tuple[tuple[int, ...], ...], ...] = ()
        if request.fill:
            fill = _symbols_by_box(boxes, codes[seen], learning[seen], sizes)
        inside = _symbols_by_box(boxes, codes, proving, sizes)
        return BoxPart(stratum, boxes, together, best.channel, fill, inside), best

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

    def _promising(
        self,
        trees: Sequence[BoxTree],
        rows: _Rows,
        learning: Integers,
        proving: Integers,
        level: float,
        end: float,
    ) -> Boxes:
        """The boxes that keep most on the slice, made as large as the other records are.

        The number of boxes is chosen on the first tree, then the tree for it. Of the other records
        only their number is used, which is fixed by the size of the table.
        """
        factor = max(round(int(proving.sum()) / max(int(learning.sum()), 1)), 1)

        def worth(boxes: Boxes, left: int) -> float:
            seconds = (end - time.perf_counter()) / left
            joint = rows.joint(boxes, learning * factor)
            if joint is None or seconds <= 0.0:
                return -math.inf
            try:
                design = self._design(joint, level, seconds, GUESS_GAP)
            except SolverFailure:
                return -math.inf
            return design.mutual_information

        counts = [count for count in COUNTS if count <= trees[0].most]
        left = len(counts) + len(trees) - 1
        best = trees[0].boxes(2)
        most = -math.inf
        for count in counts:
            boxes = trees[0].boxes(count)
            value = worth(boxes, left)
            left -= 1
            if value > most:
                best = boxes
                most = value
        for tree in trees[1:]:
            boxes = tree.boxes(len(best))
            value = worth(boxes, left)
            left -= 1
            if value > most:
                best = boxes
                most = value
        return best


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


def _names(sensitive: Variable, together: Sequence[Sequence[int]]) -> list[str]:
    """A name for every group of sensitive values."""
    names: list[str] = []
    for members in together:
        text = " or ".join(sensitive.names[s] for s in members)
        names.append(text)
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
