"""The optimal channel (AORR) with its certificate (Zarrabian et al. 2023, eqs. (12), (15) and (26)).

max I(X;Y) over channels whose every posterior lies in the polytope Pi of the notion is H(X) minus the
lower convex envelope of the entropy over Pi at P_X. The columns lie in Pi shrunk by a tiny margin, so that
rounding to integers survives the exact audit; the bound is for Pi itself, widened outwards.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from mechdesign.auditing.measures import utility
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.partitions import LEAST_SECONDS, merge_all, merge_subsets
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, Solve, utility_entropy
from solvers import (
    Array,
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    Points,
    SolverError,
    TooManyVertices,
)

OPTIMAL = "optimal"

ENTROPY_ERROR = 4e-15
"""Relative error bound of H(X) and of the quotients of the certificate."""

MERGING_SHARE = 0.2
"""Share of the time limit after which merging takes the quickest way to its end."""


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
    started = time.perf_counter()
    joint = rules.joint
    envelope, certificate = (
        None,
        Certificate(upper_bound_nmi=1.0, gap_nmi=0.0, scope="proven"),
    )
    said: tuple[str, ...] = (
        "X itself satisfies the notion and is published as it is.",
    )
    rounded, worth = _release(rules), None
    if rounded is None:
        envelope, rounded = _designed(rules, search, started)
        worth = utility(rounded.channel, joint)
        proof = proven(envelope, utility_entropy(joint), worth.nmi)
        certificate = rules.tightened(proof, worth.nmi, search)
        said = _search_messages(envelope, certificate, search)
    method = "release" if envelope is None else envelope.method
    found = {
        "worth": worth,
        "certificate": certificate,
        "messages": said,
        "envelope": envelope,
    }
    return finish(rounded, joint, OPTIMAL, method, started, **found)


def _release(rules: Rules) -> Rounded | None:
    """The channel that publishes X itself, if the exact audit allows it."""
    lifts = rules.sets(rules.joint)
    if not lifts.within(lifts.given_s, lifts.p_x, -1.0).all():
        return None
    try:
        return partition_channel([[x] for x in range(len(rules.joint.useful))], rules)
    except RoundingFailure:
        return None


def _designed(rules: Rules, search: Search, started: float) -> tuple[Envelope, Rounded]:
    """Solve with growing margins until the rounded channel passes."""
    known, end, interrupted = _known(rules, search, started)
    failure: RoundingFailure | None = None
    envelopes: list[Envelope] = []
    for margin in rules.margins:
        try:
            envelope = rules.solver(margin, search, end)(
                progress=search.shown(rules.joint), **known
            )
        except TooManyVertices as error:
            raise SolverFailure(f"{error}") from error
        except SolverError as error:
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        if interrupted:
            envelope = replace(envelope, status=EnvelopeStatus.INTERRUPTED)
        try:
            return envelope, rules.rounded(
                *rules.reduced.split(envelope.weights, envelope.points)
            )
        except RoundingFailure as error:
            failure = error
            known |= {"start": envelope.pool, "dual": envelope.dual}
            envelopes.append(envelope)
    raise NotRounded(
        f"no verified channel came out of the optimum ({failure}); use --mechanism subset-merging or a larger budget",
        envelopes[0],
    )


def _known(
    rules: Rules, search: Search, started: float
) -> tuple[dict[str, Any], float, bool]:
    """Where the search begins, all of it on classes, its end, and whether Ctrl-C came."""
    end = search.end(started, rules.search_share)
    known: dict[str, Any] = {"start": None, "dual": None}
    channels: list[tuple[Array, Points]] = []
    neighbour = search.start
    p_x = rules.reduced.joint.p_x
    if neighbour is not None and neighbour.points.shape[1] == len(p_x):
        channels.append((neighbour.weights, neighbour.points))
        known = {"start": neighbour.pool, "dual": neighbour.dual}
    merged = cache(lambda: _merged(rules, started, end))
    interrupted = False
    if search.method != "vertices" and end < math.inf and rules.has_faces:
        groups, _ = merged()
        now = time.perf_counter()
        if now < end:
            until = now + rules.response_share * (end - now)
            solve = rules.solver(rules.margins[0], search, until)
            with suppress(SolverFailure):  # one incumbent less
                weights, points, interrupted = respond(solve, p_x, groups, until)
                channels.append((weights, points))
    known["incumbents"] = lambda: [*merged()[1], *channels]
    return known, -math.inf if interrupted else end, interrupted


def _merged(
    rules: Rules, started: float, end: float
) -> tuple[list[tuple[int, ...]], list[tuple[Array, Points]]]:
    """Groups of subset merging and channels of all merging, on classes: incumbents, so that no limit leaves less."""
    reduced = rules.reduced
    channels: list[tuple[Array, Points]] = []
    found: list[tuple[int, ...]] = []
    until = started + max(MERGING_SHARE * (end - started), LEAST_SECONDS)
    for joint in (
        (reduced.joint, reduced.whole) if reduced.is_reduced else (reduced.joint,)
    ):
        lifts = rules.sets(joint)
        for merge in (merge_all, merge_subsets):
            groups = list(merge(lifts, end=until).groups)
            found = groups if joint is reduced.joint else found
            blocks = Points.blocks(groups, joint.p_x)
            mass = np.array(
                [math.fsum(joint.p_x[list(group)].tolist()) for group in groups]
            )
            channels.append(
                (mass, reduced.merged(blocks) if joint is reduced.whole else blocks)
            )
    return found, channels


def respond(
    solve: Solve,
    p_x: Array,
    groups: Sequence[Sequence[int]],
    end: float,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Array, Points, bool]:
    """The optimum within every set of a partition: weights (k,), posteriors (k, n), and whether Ctrl-C came.

    A set's problem is that of the optimal channel on the face where only the set has mass, at the point P(X | T)
    (Zarrabian et al. 2023, eq. (25)); it has a solution if and only if the merged set satisfies the notion.
    A set that cannot be improved on before `end` (of `time.perf_counter`), or lies in the margin, stays one output.
    """
    weights: list[Array] = []
    parts: list[Points] = []
    interrupted = False
    for done, group in enumerate(groups):
        members = np.array(group)
        mass = float(p_x[members].sum())
        found: Envelope | None = None
        if len(group) > 1:
            progress(done)
            try:
                found = (
                    None
                    if interrupted or time.perf_counter() >= end
                    else solve(members)
                )
            except OutsidePolytope:  # the merged set lies in the margin
                pass
            except TooManyVertices as error:
                raise SolverFailure(f"{error}") from error
            except SolverError as error:
                raise SolverFailure(
                    f"a set of {len(members)} symbols could not be solved ({error}); use --mechanism subset-merging"
                ) from error
        interrupted = interrupted or (
            found is not None and found.status is EnvelopeStatus.INTERRUPTED
        )
        weights.append(np.array([mass]) if found is None else mass * found.weights)
        inside = (
            Points.from_dense(p_x[members][None, :] / mass)
            if found is None
            else found.points
        )
        at = members[inside.indices].astype(np.int32)
        parts.append(Points(inside.indptr, at, inside.data, (len(inside), len(p_x))))
    return np.concatenate(weights), Points.concatenate(parts), interrupted


def proven(envelope: Envelope, entropy: float, nmi: float) -> Certificate:
    """Bounds in units of H(X), rounded so that they never claim too much."""
    share = envelope.bound / entropy
    least = share * (1.0 - math.copysign(ENTROPY_ERROR, share))
    upper = min(1.0, math.nextafter(1.0 - least + ENTROPY_ERROR, 2.0))
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
    """Why the gap is not closed, if it is not."""
    if certificate.gap_nmi is not None and certificate.gap_nmi <= search.gap:
        return ()
    if envelope.status is EnvelopeStatus.OPTIMAL:
        return (
            f"the gap asked for ({search.gap:g}) is below what double precision can prove here",
        )
    return (f"the search ended early ({envelope.status})",)
