"""The channels that a search for the optimum knows before it begins, its incumbents.

A search that is stopped by its time limit returns the best channel that it has, so it should never
have less than quicker mechanisms make. `beginning_of` puts together what is known, all of it over
classes of symbols:

1. The columns and prices of a neighbouring budget, if the caller has solved one.
2. The channels of complete and of subset merging, on classes and on symbols (`_merged`). They are
   made when the search asks for them: one that ends at once needs none.
3. With a time limit, the best response within the sets of subset merging (`respond`). Over
   polytopes it takes less time than the search, and comes before it. Otherwise some of the time is
   kept for it, and `with_response` asks for it after a search that ran out of time.

For example, of a limit of 10 s over a polytope merging may take 2 s and the response 15 % of what
is left then; the search has the rest. Where the response comes last, the search ends after 8.5 s.

*Responses within the sets of a partition* are the best ones, in floating point. Merging releases a
set T of symbols as one output. Within T more can be kept: the problem of the optimal channel is
solved on the face where only T has mass, at the point P(X | T) (Zarrabian et al. 2023, eq. (25)).
It has a solution if and only if the merged set satisfies the notion. The outputs of T get the
weights P(T) t_k, where t_k are those of its solution.

For example, let {a, b} have the mass 0.4 and its solution two posteriors of weight 1/2, (0.75,
0.25) and (0.25, 0.75) over a and b, and let c stay alone. Then `respond` returns

    weights   points over a, b, c
    0.2       0.75  0.25  0
    0.2       0.25  0.75  0
    0.6       0     0     1

Subset response makes a channel of them (`watchdog`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.partitions import LEAST_SECONDS, merge_all, merge_subsets
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, Solve
from solvers import (
    Array,
    EmptyPolytope,
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    Points,
    SolverError,
    TooManyVertices,
)

# ----------------------------------------------------------------- response within sets


class Response(NamedTuple):
    """A channel that answers at random within the sets of a partition, in floating point.

    `weights` (k,) and `points` (k, n) are its outputs and their posteriors; `interrupted` is
    whether Ctrl-C came.
    """

    weights: Array
    points: Points
    interrupted: bool


def respond(
    solve: Solve,
    p_x: Array,
    groups: Sequence[Sequence[int]],
    end: float,
    progress: Callable[[int], None] = lambda _: None,
    most_lost: float = math.inf,
) -> Response | None:
    """The optimum within every set of a partition; None if H(X|Y) exceeds `most_lost` (nats).

    `solve` is called with the members of a set, and `progress` with the number of sets before it. A
    set that is not improved before `end` (of `time.process_time`), or lies in the margin, stays one
    output.
    """
    weights: list[Array] = []
    parts: list[Points] = []
    interrupted = False
    lost = 0.0
    for done, group in enumerate(groups):
        if lost > most_lost:
            return None
        members = np.array(group)
        mass = float(p_x[members].sum())
        envelope: Envelope | None = None
        if len(group) > 1:
            progress(done)
            if not interrupted and time.process_time() < end:
                envelope = _within_set(solve, members)
        if envelope is None:
            weights.append(np.array([mass]))
            points = Points.from_dense(p_x[members][None, :] / mass)
        else:
            weights.append(mass * envelope.weights)
            points = envelope.points
            if envelope.status is EnvelopeStatus.INTERRUPTED:
                interrupted = True
        # H(X|Y) adds up over the sets, so that it can be given up before the last one.
        lost += float(weights[-1] @ points.entropies())
        # Indices among the members become indices among all symbols.
        indices = members[points.indices].astype(np.int32)
        shape = (len(points), len(p_x))
        parts.append(Points(points.indptr, indices, points.data, shape))
    if lost > most_lost:
        return None
    return Response(np.concatenate(weights), Points.concatenate(parts), interrupted)


def _within_set(solve: Solve, members: NDArray[np.intp]) -> Envelope | None:
    """The optimum of a set; None where the merged set lies in the margin."""
    try:
        return solve(members)
    except (OutsidePolytope, EmptyPolytope):
        return None
    except TooManyVertices as error:
        raise SolverFailure(f"{error}") from error
    except SolverError as error:
        raise SolverFailure(
            f"a set of {len(members)} symbols could not be solved ({error}); use "
            "--mechanism subset-merging"
        ) from error


# --------------------------------------------------------------------------- incumbents

MERGING_SHARE = 0.2
"""Share of the time limit after which merging finishes in the quickest way."""

Incumbent: TypeAlias = tuple[Array, Points]
"""A channel in floating point: weights of its outputs (k,), and their posteriors over classes (k,
n)."""


class MergedChannels(NamedTuple):
    """The sets of subset merging, of classes, and the channels of all merging."""

    subsets: list[tuple[int, ...]]
    channels: list[Incumbent]


@dataclass(frozen=True)
class Beginning:
    """The start of a search, all of it on classes of symbols, and its end.

    `start` and `dual` are columns and prices of a neighbouring budget. `merged` merges once, when
    its channels are first needed. `channels` are other known channels. The search ends at
    `search_end`, on the clock of `time.process_time`; the time from there to `end` is for the best
    response within the sets of subset merging, where the search has not closed the gap.
    `interrupted` is whether Ctrl-C came already.
    """

    start: Points | None
    dual: Array | None
    merged: Callable[[], MergedChannels]
    channels: list[Incumbent]
    search_end: float
    end: float
    interrupted: bool

    def incumbents(self) -> list[Incumbent]:
        """The channels that are known before the search."""
        return [*self.merged().channels, *self.channels]


def beginning_of(rules: Rules, search: Search, started: float) -> Beginning:
    """Columns of a neighbouring budget, merged channels, and best responses within merged sets."""
    end = search.end(started, rules.search_share)
    p_x = rules.reduced.joint.p_x
    start: Points | None = None
    dual: Array | None = None
    channels: list[Incumbent] = []
    neighbour = search.start
    # Another budget may have other classes; its columns are then of no use here.
    if neighbour is not None and neighbour.points.shape[1] == len(p_x):
        channels.append((neighbour.weights, neighbour.points))
        start = neighbour.pool
        dual = neighbour.dual
    # Merging takes time, so it is done at most once, and only if its channels are needed.
    merged = cache(lambda: _merged(rules, started, end))
    search_end = end
    interrupted = False

    # Where time is short, the best response within the merged sets is the channel that is emitted.
    may_respond = search.method != "vertices" and end < math.inf and rules.has_faces
    if may_respond and not rules.responds_first:
        search_end -= rules.response_share * (end - started)
    elif may_respond:
        subsets = merged().subsets
        # Merging has taken its time: the share is one of what is left.
        now = time.process_time()
        until = now + rules.response_share * (end - now)
        response = _response_until(rules, search, subsets, until)
        if response is not None:
            channels.append((response.weights, response.points))
            interrupted = response.interrupted
    if interrupted:
        # Ctrl-C ends the whole design: the search returns the best of what is known at once.
        search_end = -math.inf
    return Beginning(
        start=start,
        dual=dual,
        merged=merged,
        channels=channels,
        search_end=search_end,
        end=end,
        interrupted=interrupted,
    )


def _response_until(
    rules: Rules,
    search: Search,
    groups: Sequence[Sequence[int]],
    end: float,
    most_lost: float = math.inf,
) -> Response | None:
    """`respond` at the first margin; None without time, and where that fails: one channel less."""
    if time.process_time() >= end:
        return None
    # Only the first margin: it is enough for nearly every table.
    solve = rules.solver(rules.margins[0], search, end)
    p_x = rules.reduced.joint.p_x
    try:
        return respond(solve, p_x, groups, end, most_lost=most_lost)
    except SolverFailure:
        return None


def with_response(
    envelope: Envelope, rules: Rules, search: Search, beginning: Beginning
) -> Envelope:
    """The envelope of a search that ran out of time, with the response where that is better."""
    subsets = beginning.merged().subsets
    response = _response_until(rules, search, subsets, beginning.end, envelope.value)
    if response is None:
        return envelope
    status = envelope.status
    if response.interrupted:
        status = EnvelopeStatus.INTERRUPTED
    # H(X|Y) of the response, which `most_lost` keeps from exceeding that of the search.
    costs = response.weights * response.points.entropies()
    return replace(
        envelope,
        status=status,
        weights=response.weights,
        points=response.points,
        value=math.fsum(costs.tolist()),
        pool=Points.concatenate([envelope.pool, response.points]),
    )


def _merged(rules: Rules, started: float, end: float) -> MergedChannels:
    """Complete and subset merging of classes, and of symbols where these are not the same.

    As incumbents their channels make sure that no time limit leaves less than merging would. The
    mechanisms of merging work on symbols, so the table of symbols is merged beside that of classes.
    """
    reduced = rules.reduced
    until = started + max(MERGING_SHARE * (end - started), LEAST_SECONDS)
    tables = [reduced.joint]
    if reduced.is_reduced:
        tables.append(reduced.whole)
    channels: list[Incumbent] = []
    subsets: list[tuple[int, ...]] = []
    for joint in tables:
        sets = rules.sets(joint)
        for merge in (merge_all, merge_subsets):
            groups = list(merge(sets, end=until).groups)
            if joint is reduced.joint:
                # Those of `merge_subsets`, which comes last, remain.
                subsets = groups
            masses = [math.fsum(joint.p_x[list(group)].tolist()) for group in groups]
            points = Points.blocks(groups, joint.p_x)
            if joint is reduced.whole:
                # The search is over classes: masses are summed over the members of each.
                points = reduced.merged(points)
            channels.append((np.array(masses), points))
    return MergedChannels(subsets, channels)
