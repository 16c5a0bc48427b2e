"""The optimal channel (AORR) with its certificate (Zarrabian et al. 2023, eqs. (12), (15), (26)).

max I(X;Y) over channels whose every posterior lies in the set Pi of the notion is H(X) minus the
lower convex envelope of the entropy over Pi at P_X:

    H(X|Y) = min  sum_k beta_k H(v_k)   subject to   sum_k beta_k v_k = P_X,  v_k in Pi.

For example, let P_X = (1/2, 1/2), and let Pi be the posteriors with v_1 in [0.3, 0.7]. The best
outputs are (0.3, 0.7) and (0.7, 0.3) with weights 1/2, H(X|Y) is the entropy 0.611 of either, and
the channel keeps 1 - 0.611 / 0.693 = 0.119 of H(X).

1. If X itself is private, it is published as it is (`_release`).
2. The envelope is computed on classes of symbols (`Rules.solver`), beginning with the channels that
   are known (`incumbents`). Its posteriors lie in Pi shrunk by a tiny margin.
3. They are split back to symbols, rounded to integers and audited (`Rules.rounded`). Where that
   fails, the next larger margin is tried (`_designed`).
4. The certificate bounds every other channel (`proven`): the solver's bound is for Pi itself,
   widened outwards by rounding.

docs/explanation/optimum-theory.md has the proofs.
"""

from __future__ import annotations

import time
from dataclasses import replace

from mechdesign.auditing.measures import utility
from mechdesign.channel.proof import EntropyProof, with_proof
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.incumbents import beginning_of, with_response
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, share_bound, utility_entropy
from solvers import (
    EmptyPolytope,
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    SolverError,
    TooManyVertices,
)

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
    released = _release(rules)
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
        channel = with_proof(design.channel, proof_of_it)
        design = replace(design, channel=channel)
    return design


def _release(rules: Rules) -> Rounded | None:
    """The channel that publishes X itself, if the exact audit allows it."""
    # First in floating point, with a tolerance that favours trying: the audit decides.
    sets = rules.sets(rules.joint)
    if not sets.within(sets.given_s, sets.p_x, -1.0).all():
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
            return envelope, rules.rounded(weights, points)
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
