"""The optimal channel (AORR) with its certificate (Zarrabian et al. 2023, eqs. (12), (15), (26)).

max I(X;Y) over channels whose every posterior lies in the set Pi of the notion is H(X) minus the
lower convex envelope of the entropy over Pi at P_X:

    H(X|Y) = min  sum_k beta_k H(v_k)   subject to   sum_k beta_k v_k = P_X,  v_k in Pi.

For example, let P_X = (1/2, 1/2), and let Pi be the posteriors with v_1 in [0.3, 0.7]. The best
outputs are (0.3, 0.7) and (0.7, 0.3) with weights 1/2, H(X|Y) is the entropy 0.611 of either, and
the channel keeps 1 - 0.611 / 0.693 = 0.119 of H(X).

1. If X itself is private, it is published as it is (`_unchanged`).
2. The envelope is computed on classes of symbols (`Rules.solver`), beginning with the channels that
   are known (`beginning_of`). Its posteriors lie in Pi shrunk by a tiny margin.
3. They are split back to symbols, rounded to integers and audited (`Rules.rounded`). Where that
   fails, the next larger margin is tried (`_designed`).
4. The certificate bounds every other channel (`proven`): the solver's bound is for Pi itself,
   widened outwards by rounding.

docs/explanation/optimum-theory.md has the proofs.

*Incumbents* are the channels that the search knows before it begins. A search that is stopped by
its time limit returns the best channel that it has, so it should never have less than quicker
mechanisms make. `beginning_of` puts together what is known, all of it over classes of symbols:

1. The columns and prices of a neighbouring budget, if the caller has solved one.
2. The channels of complete and of subset merging, on classes and on symbols (`merged_channels`).
   They are made when the search asks for them: one that ends at once needs none.
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

Subset response makes a channel of them (`heuristics`).
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

from mechdesign.auditing.measures import utility
from mechdesign.channel.proof import EntropyProof
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.fewer_outputs import rounded_in_time
from mechdesign.mechanisms.merged_sets import LEAST_SECONDS, merge_all, merge_subsets
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import (
    Search,
    Solve,
    share_bound,
    utility_entropy,
)
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
        parts.append(points.placed(members, len(p_x)))
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

FIRST_SYMBOLS = 32
"""Symbols that are tried first where X itself may be private."""

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
    merged = cache(lambda: merged_channels(rules, started, end))
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
        response = response_until(rules, search, subsets, until)
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


def response_until(
    rules: Rules,
    search: Search,
    groups: Sequence[Sequence[int]],
    end: float,
    most_lost: float = math.inf,
) -> Response | None:
    """`respond` at the first margin; None without time, and where that fails: one channel less."""
    if time.process_time() >= end:
        return None
    p_x = rules.reduced.joint.p_x
    try:
        # Only the first margin: it is enough for nearly every table.
        solve = rules.solver(rules.margins[0], search, end)
        return respond(solve, p_x, groups, end, most_lost=most_lost)
    except SolverFailure:
        return None


def with_response(
    envelope: Envelope, rules: Rules, search: Search, beginning: Beginning
) -> Envelope:
    """The envelope of a search that ran out of time, with the response where that is better."""
    subsets = beginning.merged().subsets
    response = response_until(rules, search, subsets, beginning.end, envelope.value)
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


def merged_channels(rules: Rules, started: float, end: float) -> MergedChannels:
    """Complete and subset merging of classes, and of symbols where these are not the same.

    As incumbents their channels make sure that no time limit leaves less than merging would. The
    mechanisms of merging work on symbols, so the table of symbols is merged beside that of classes.
    """
    reduced = rules.reduced
    least = LEAST_SECONDS
    if not rules.merges_late:
        least = min(least, end - started)
    until = started + max(MERGING_SHARE * (end - started), least)
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


# ------------------------------------------------------------------------------ optimum

OPTIMAL = "optimal"

X_IS_PRIVATE = "X itself satisfies the notion and is published as it is."
"""The message of a design that releases the column unchanged."""

NO_ROOM = (EmptyPolytope, OutsidePolytope)
"""Errors of a set that a margin has made too small for the point."""


class NotRounded(SolverFailure):
    """The optimum is known in floating point, but no margin led to a verified channel."""

    def __init__(self, message: str, envelope: Envelope) -> None:
        super().__init__(message)
        self.envelope = envelope


def optimal(rules: Rules, search: Search) -> Design:
    """The best channel for the promise, verified exactly, with a bound on every other one.

    Raises
    ------
    SolverFailure
        If no channel could be verified; the message says what to try.
    """
    started = time.process_time()
    joint = rules.joint
    released = _unchanged(rules)
    if released is not None:
        # Nothing keeps more than X itself.
        return finish(
            released,
            joint,
            OPTIMAL,
            "release",
            started,
            certificate=Certificate(upper_bound_nmi=1.0, gap_nmi=0.0, scope="proven"),
            messages=(X_IS_PRIVATE,),
        )
    envelope, rounded = _designed(rules, search, started)
    worth = utility(rounded.channel, joint)
    proof = proven(envelope, utility_entropy(joint), worth.nmi)
    prices = tuple(envelope.dual[rules.reduced.group].tolist())
    proof = replace(proof, prices=prices)
    certificate = rules.tightened(proof, worth.nmi, search)
    design = finish(
        rounded,
        joint,
        OPTIMAL,
        envelope.method,
        started,
        worth=worth,
        certificate=certificate,
        messages=_search_messages(envelope, certificate, search),
        envelope=envelope,
    )
    if certificate.prices is not None:
        proof_of_it = EntropyProof(prices=certificate.prices)
        channel = design.channel.with_proof(proof_of_it)
        design = replace(design, channel=channel)
    return design


def _unchanged(rules: Rules) -> Rounded | None:
    """The channel that publishes X itself, if the exact audit allows it."""
    # First in floating point, with a tolerance that favours trying: the audit decides.
    sets = rules.sets(rules.joint)
    # The first symbols mostly tell that others need not be looked at.
    for some in (slice(FIRST_SYMBOLS), slice(FIRST_SYMBOLS, None)):
        if not sets.within(sets.given_s[:, some], sets.p_x[some], -1.0).all():
            return None
    try:
        return partition_channel([[x] for x in range(len(rules.joint.useful))], rules)
    except RoundingFailure:
        return None


def _designed(rules: Rules, search: Search, started: float) -> tuple[Envelope, Rounded]:
    """Solve with growing margins until the rounded channel passes.

    Raises
    ------
    NotRounded
        If none does, with the first envelope: its bound still holds.
    SolverFailure
        If the optimum itself was not found.
    """
    beginning = beginning_of(rules, search, started)
    start = beginning.start
    dual = beginning.dual
    failure: RoundingFailure | None = None
    envelopes: list[Envelope] = []
    for margin in rules.margins:
        try:
            solve = rules.solver(margin, search, beginning.search_end)
            envelope = solve(
                progress=search.shown(rules.joint),
                start=start,
                dual=dual,
                incumbents=beginning.incumbents,
            )
        except TooManyVertices as error:
            raise SolverFailure(f"{error}") from error
        except SolverError as error:
            if failure is not None and isinstance(error, NO_ROOM):
                # The margin leaves nothing of the set, and larger ones would not, either.
                break
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        if beginning.interrupted:
            envelope = replace(envelope, status=EnvelopeStatus.INTERRUPTED)
        out_of_time = envelope.status is EnvelopeStatus.TIME_LIMIT
        if out_of_time and beginning.search_end < beginning.end:
            envelope = with_response(envelope, rules, search, beginning)
        try:
            # From classes of symbols back to symbols, then to integers.
            weights, points = rules.reduced.split(envelope.weights, envelope.points)
            if not out_of_time:
                return envelope, rules.rounded(weights, points)
            seconds = search.afterwards()
            return envelope, rounded_in_time(rules, weights, points, seconds)
        except RoundingFailure as error:
            failure = error
            # The next margin starts from the columns of this one.
            start = envelope.pool
            dual = envelope.dual
            envelopes.append(envelope)
    raise NotRounded(
        f"no verified channel came out of the optimum ({failure}); use --mechanism "
        "subset-merging or a larger budget",
        envelopes[0],
    )


def proven(envelope: Envelope, entropy: float, nmi: float) -> Certificate:
    """The certificate of an envelope in units of H(X), its bound rounded upwards."""
    # The envelope bounds H(X|Y) from below.
    upper = share_bound(envelope.bound, entropy)
    details: dict[str, int | float | str] = {
        "status": envelope.status.name.lower(),
        "rounds": envelope.rounds,
        "columns": envelope.columns,
        "nodes": envelope.counts.nodes,
        "programs": envelope.counts.programs,
        "pivots": envelope.counts.pivots,
        "seconds_pricing": envelope.seconds_pricing,
    }
    if envelope.enumeration is not None:
        details |= {"enumeration": envelope.enumeration, "vertices": envelope.vertices}
    return Certificate(upper_bound_nmi=upper, scope="proven", details=details).at(nmi)


def _search_messages(
    envelope: Envelope, certificate: Certificate, search: Search
) -> tuple[str, ...]:
    """The reason why the gap is not closed, if it is not."""
    if certificate.gap_nmi is not None and certificate.gap_nmi <= search.gap:
        return ()
    if envelope.status is EnvelopeStatus.OPTIMAL:
        return (
            f"the gap asked for ({search.gap:g}) is below what double precision can prove here",
        )
    message = f"the search ended early ({envelope.status})"
    if envelope.status is EnvelopeStatus.TIME_LIMIT and search.time_limit is not None:
        message += (
            f"; the limit is {search.time_limit:g} s a search, and this is the best channel "
            "verified within it, with its proven gap"
        )
    return (message,)
