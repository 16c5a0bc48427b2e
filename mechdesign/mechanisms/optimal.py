"""The optimal channel (AORR) with its certificate (Zarrabian et al. 2023, eqs. (12), (15) and (26)).

max I(X;Y) over channels whose every posterior lies in the polytope Pi of the notion is H(X) minus the
lower convex envelope of the entropy over Pi at P_X. The columns lie in Pi shrunk by a tiny margin, so that
rounding to integers survives the exact audit; the bound is for Pi itself, widened outwards.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.utility import utility
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.progress import Step, Steps
from mechdesign.mechanisms.partitions import LEAST_SECONDS, merge_all, merge_subsets
from mechdesign.mechanisms.responding import Effort, respond, within
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Envelope, EnvelopeStatus, Points, Progress, SolverError, TooManyVertices, lower_envelope
from solvers.enumeration.cdd import exact_available

Array = NDArray[np.float64]

METHODS = ("auto", "vertices", "columns")

ENUMERATIONS = {"auto": "auto", "pivot": "pivot", "pycddlib": "cdd", "pycddlib-exact": "cdd-exact"}
"""Who lists vertices, and what `solvers.vertices` calls it."""

SPLITTING = 2e-15
"""Relative error, for each symbol, of an output that was split back from classes: its ends are differences of sums
over all members. Smaller margins would only be tried in vain."""

GAP_SHARE = 0.95
"""Share of the gap asked of the envelope; the rest is for rounding the channel to integers."""

LEAST_GAP = 1e-9
"""Gap in units of H(X) below which double precision proves nothing more."""

ENTROPY_ERROR = 4e-15
"""Relative error bound of H(X) and of the quotients of the certificate."""

MERGING_SHARE = 0.2
"""Share of the time limit after which merging takes the quickest way to its end."""

RESPONSE_SHARE = 0.15
"""Share of the time limit for the best response within merged sets: where a limit is short, it is the better
channel, and its columns are a start in any case."""

SPARSE_FROM = 200
"""Number of useful symbols from which the posteriors are handed over as a sparse matrix."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the optimum is searched.

    `gap` is the difference of the proven upper bound and the NMI of the emitted integers at which the search
    stops, `time_limit` its seconds, `workers` the threads of the branch and bound. `start` is the design of
    a neighbouring budget, whose columns and prices are reused.
    """

    method: str = "auto"
    enumeration: str = "auto"
    gap: float = 1e-4
    time_limit: float | None = None
    workers: int = 1
    backend: str = "highs"
    start: Design | None = None
    progress: Steps | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method ({self.method!r}) must be one of {', '.join(METHODS)}")
        if self.enumeration not in ENUMERATIONS:
            raise InputError(f"enumerate ({self.enumeration!r}) must be one of {', '.join(ENUMERATIONS)}")
        if self.enumeration != "auto" and self.method != "vertices":
            raise InputError(
                f"enumerate ({self.enumeration!r}) says who lists the vertices: it needs the method vertices "
                f"(--method vertices), not {self.method}"
            )
        if self.enumeration == "pycddlib-exact" and not exact_available():
            raise InputError(
                "enumerate pycddlib-exact needs the full pycddlib with GMP, which is not installed: pip uninstall "
                "pycddlib-standalone, install libcdd-dev and libgmp-dev, pip install pycddlib; or use pycddlib or pivot"
            )
        if isinstance(self.gap, bool) or not (self.gap >= 0.0 and math.isfinite(self.gap)):
            raise InputError(f"gap ({self.gap!r}) must be a number of at least 0, as a share of H(X)")
        if self.time_limit is not None and not self.time_limit >= 0.0:
            raise InputError(f"time_limit ({self.time_limit!r}) must be a number of seconds, at least 0")
        if self.workers < 1:
            raise InputError(f"workers ({self.workers!r}) must be at least 1")


class NotRounded(SolverFailure):
    """The optimum is known in floating point, but no margin led to a verified channel."""

    def __init__(self, message: str, envelope: Envelope) -> None:
        super().__init__(message)
        self.envelope = envelope


def optimal(joint: Joint, notion: Notion, search: Search, rules: Rules | None = None) -> Design:
    """The best channel for the notion, verified exactly, with a bound on every other one.

    `rules` say what the notion demands where that is more than of the table alone.

    Raises
    ------
    SolverFailure
        If no channel could be verified; the message says what to try.
    """
    started = time.perf_counter()
    entropy = utility_entropy(joint)
    rules = rules or Rules(joint, notion)
    released = _release(rules)
    if released is not None:
        return finish(
            released.channel,
            joint,
            released.audit,
            mechanism="optimal",
            method="release",
            certificate=Certificate(upper_bound_nmi=1.0, gap_nmi=0.0, scope="proven"),
            messages=("X itself satisfies the notion and is published as it is.",),
            seconds=time.perf_counter() - started,
        )
    target = max(GAP_SHARE * search.gap, LEAST_GAP) * entropy
    envelope, rounded = _designed(rules, search, target, started)
    worth = utility(rounded.channel, joint)
    certificate = proven(envelope, entropy, worth.nmi)
    return finish(
        rounded.channel,
        joint,
        rounded.audit,
        mechanism="optimal",
        method=envelope.method,
        certificate=certificate,
        messages=search_messages(envelope, certificate, search),
        seconds=time.perf_counter() - started,
    ).with_envelope(envelope)


def utility_entropy(joint: Joint) -> float:
    """H(X) in nats."""
    p = joint.p_x
    return -math.fsum((p * np.log(p)).tolist())


def _release(rules: Rules) -> Rounded | None:
    """The channel that publishes X itself, if the exact audit allows it."""
    joint, lifts = rules.joint, rules.sets(rules.joint)
    if not lifts.nearly_within(lifts.given_s, lifts.p_x).all():
        return None
    try:
        singles = [[x] for x in range(len(joint.useful))]
        return partition_channel(singles, joint, rules.notion, judge=rules.judge)
    except RoundingFailure:
        return None


def _designed(rules: Rules, search: Search, target: float, started: float) -> tuple[Envelope, Rounded]:
    """Solve with growing margins until the rounded channel passes."""
    joint, reduced, relaxation = rules.joint, rules.reduced, rules.polytope()
    known = _known(rules, search, target, started)
    start, dual = known.pool, known.dual
    failure: RoundingFailure | None = None
    envelopes: list[Envelope] = []
    least = SPLITTING * len(joint.useful) if reduced.is_reduced else 0.0
    for margin in (m for m in rules.margins if m >= min(least, rules.margins[-1])):
        left = None if search.time_limit is None else max(0.0, known.end - time.perf_counter())
        try:
            envelope = lower_envelope(
                rules.polytope(margin),
                reduced.joint.p_x,
                relaxation=relaxation,
                method=rules.method(search.method),
                enumeration=ENUMERATIONS[search.enumeration],
                gap=target,
                time_limit=left,
                workers=search.workers,
                backend=search.backend,
                start=start,
                incumbents=known.channels,
                dual=dual,
                progress=shown_progress(joint, search),
            )
        except TooManyVertices as error:
            raise SolverFailure(f"{error}") from error
        except SolverError as error:
            raise SolverFailure(f"the optimum could not be computed: {error}") from error
        if known.interrupted:
            envelope = replace(envelope, status=EnvelopeStatus.INTERRUPTED)
        try:
            weights, points = reduced.split(envelope.weights, envelope.points)
            return envelope, rules.rounded(weights, float_posteriors(points))
        except RoundingFailure as error:
            failure = error
            start, dual = envelope.pool, envelope.dual
            envelopes.append(envelope)
    raise NotRounded(
        f"no verified channel came out of the optimum ({failure}); use --mechanism subset-merging or a larger budget",
        envelopes[0],
    )


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What the search begins with, all of it on classes: channels of the heuristics and of a neighbouring budget."""

    channels: list[tuple[Array, Points]]
    pool: Points | None
    dual: Array | None
    end: float
    interrupted: bool


def _known(rules: Rules, search: Search, target: float, started: float) -> _Known:
    """Every channel that is cheaper to find than the optimum, so that no limit leaves less than these."""
    reduced = rules.reduced
    whole, table = reduced.whole, reduced.joint
    end = math.inf if search.time_limit is None else started + search.time_limit
    channels: list[tuple[Array, Points]] = []
    merged: list[tuple[int, ...]] = []
    merging = started + max(MERGING_SHARE * (end - started), LEAST_SECONDS)
    for joint in (table, whole) if reduced.is_reduced else (table,):
        lifts = rules.sets(joint)
        for merge in (merge_all, merge_subsets):
            groups = list(merge(lifts, end=merging).groups)
            merged = groups if joint is table else merged
            blocks = Points.blocks(groups, joint.p_x)
            mass = np.array([math.fsum(joint.p_x[list(group)].tolist()) for group in groups])
            channels.append((mass, reduced.merged(blocks) if joint is whole else blocks))
    pool = dual = None
    neighbour = search.start.envelope if search.start is not None else None
    if neighbour is not None and neighbour.points.shape[1] == len(table.useful):
        channels.append((neighbour.weights, neighbour.points))
        pool, dual = neighbour.pool, neighbour.dual
    interrupted = False
    now = time.perf_counter()
    if search.method != "vertices" and now < end < math.inf:
        effort = Effort(
            gap=target,
            method=rules.method("auto"),
            end=now + RESPONSE_SHARE * (end - now),
            workers=search.workers,
            backend=search.backend,
        )
        inner, outer = rules.polytope(rules.margins[0]), rules.polytope()
        weights, points, interrupted = respond(within(inner, outer, effort), table.p_x, merged)
        channels.append((weights, points))
    return _Known(
        channels=channels,
        pool=pool,
        dual=dual,
        end=-math.inf if interrupted else end,
        interrupted=interrupted,
    )


def float_posteriors(points: Points) -> object:
    """The points as `round_channel` takes them, dense or sparse."""
    if points.shape[1] < SPARSE_FROM:
        return points.toarray()
    from scipy.sparse import csr_array

    return csr_array((points.data, points.indices, points.indptr), shape=points.shape)


def proven(envelope: Envelope, entropy: float, nmi: float) -> Certificate:
    """Bounds in units of H(X), rounded so that they never claim too much."""
    share = envelope.bound / entropy
    upper = min(
        1.0, math.nextafter(1.0 - share * (1.0 - math.copysign(ENTROPY_ERROR, share)) + ENTROPY_ERROR, 2.0)
    )
    gap = max(0.0, math.nextafter(upper - nmi, 2.0))
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
    return Certificate(upper_bound_nmi=upper, gap_nmi=gap, scope="proven", details=details)


def search_messages(envelope: Envelope, certificate: Certificate, search: Search) -> tuple[str, ...]:
    """Why the gap is not closed, if it is not."""
    if certificate.gap_nmi is not None and certificate.gap_nmi <= search.gap:
        return ()
    if envelope.status is EnvelopeStatus.OPTIMAL:
        return (f"the gap asked for ({search.gap:g}) is below what double precision can prove here",)
    return (f"the search ended early ({envelope.status})",)


def shown_progress(joint: Joint, search: Search) -> Callable[[Progress], None] | None:
    """The caller's progress, told in units of H(X)."""
    report = search.progress
    if report is None:
        return None
    entropy = utility_entropy(joint)

    def show(at: Progress) -> None:
        low, high = 1.0 - at.value / entropy, min(1.0, 1.0 - at.bound / entropy)
        figures = {"nmi": low, "upper_bound_nmi": high, "gap_nmi": high - low}
        said = f"utility {low:.5f}, at most {high:.5f}, gap {high - low:.2g}"
        said += f" ({at.columns} columns, {at.nodes} nodes)"
        report(Step(said, {**figures, "columns": at.columns, "nodes": at.nodes}))

    return show
