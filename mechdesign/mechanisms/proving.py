"""The bounds that a channel file states, proven again from the proof that it keeps.

    cost_lower_bound    one pass over all pairs of symbols (`auditing.proofs`)
    upper_bound_nmi     one exact pricing of the posteriors that the promise allows
                        (`solvers.proving`), at the prices in the file

Nothing of the search is needed, and nothing in the file is trusted but its table, its promise and
its objective: multipliers that were forged prove less, and a bound that was forged is not proven.

`proven_again` does this for every bound that the file states. A bound that nothing can pass, such
as a share of 1, needs no proof. Bounds without a proof (those of queries, tasks, average budgets,
confidence sets) are `Unproven`, with the reason.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.auditing.proofs import NO_TABLE, check_provable, cost_bound
from mechdesign.auditing.stated import (
    LOWER_BOUND,
    UPPER_BOUND,
    Statement,
    Unproven,
    is_bound,
    stated_figures,
)
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof, EntropyProof, proof_in
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.posteriors import has_polytope
from mechdesign.mechanisms.proofs import SLACK
from mechdesign.mechanisms.rules import Rules, table_rules
from mechdesign.mechanisms.search import share_bound, utility_entropy
from mechdesign.tables.joint import Joint
from solvers import SolverError
from solvers.proving import proven_bound

NO_PROOF = "the file keeps no proof of it"

NOT_OF_THIS_KIND = "the proof in the file is of another bound"


def with_certificate(
    statement: Statement, channel: Channel, *, time_limit: float | None = None
) -> Statement:
    """The statement of a channel file with its bounds proven again, or not."""
    proven: dict[str, float] = {}
    unproven: list[Unproven] = []
    known_wrong = {wrong.name for wrong in statement.wrong}
    for name, stated in stated_figures(channel).items():
        if not is_bound(name) or name in known_wrong:
            continue
        try:
            value = _proven(channel, name, stated, time_limit)
        except InputError as error:
            unproven.append(Unproven(name, stated, None, str(error)))
            continue
        if _reaches(name, stated, value):
            proven[name] = value
        else:
            reason = "the proof in the file does not reach it"
            unproven.append(Unproven(name, stated, value, reason))
    settled = {*proven, *(one.name for one in unproven)}
    return replace(
        statement,
        only_stated=tuple(
            name for name in statement.only_stated if name not in settled
        ),
        proven=proven,
        unproven=tuple(unproven),
    )


def _reaches(name: str, stated: float, proven: float) -> bool:
    """Whether the bound that was proven is the stated one, up to the rounding of both."""
    slack = SLACK * max(1.0, abs(stated))
    if name == UPPER_BOUND:
        return proven <= stated + slack
    return proven >= stated - slack


def _proven(
    channel: Channel, name: str, stated: float, time_limit: float | None
) -> float:
    """The bound of this name that the file proves.

    Raises
    ------
    InputError
        With the reason, where it proves none.
    """
    if channel.joint is None:
        raise InputError(NO_TABLE)
    if name == UPPER_BOUND and stated >= 1.0:
        # No channel keeps more than all.
        return 1.0
    if name == LOWER_BOUND and stated <= 0.0:
        # No cost is negative.
        objective = channel.record.objective
        if objective is not None and objective.name != "convex":
            return 0.0
    if name not in (UPPER_BOUND, LOWER_BOUND):
        raise InputError(NO_PROOF)
    proof = proof_in(channel.record.certificate)
    if proof is None:
        raise InputError(NO_PROOF)
    if name == LOWER_BOUND and isinstance(proof, CostProof):
        return cost_bound(channel, proof)
    if name == UPPER_BOUND and isinstance(proof, EntropyProof):
        return kept_bound(channel, channel.joint, proof, stated, time_limit)
    raise InputError(NOT_OF_THIS_KIND)


def has_prices(rules: Rules) -> bool:
    """Whether the prices of a search are a proof of its bound, from the table and the promise."""
    # Earlier releases are not in the file, nor is the set of populations.
    if type(rules) is not Rules or any(one.before for one in rules.demands or ()):
        return False
    return rules.notion.limits.mean is None or has_polytope(rules.notion, rules.joint)


def kept_bound(
    channel: Channel,
    joint: Joint,
    proof: EntropyProof,
    stated: float,
    time_limit: float | None = None,
) -> float:
    """The share of H(X) that no private channel exceeds, by the prices of the proof; rounded up.

    `stated` is what is to be proven: the pricing ends as soon as that is known.

    Raises
    ------
    InputError
        If the proof does not fit the channel, or what it was designed for has no such bound.
    """
    check_provable(channel)
    notion = channel.record.promise(channel.sensitive)
    if notion is None or channel.record.objective is not None:
        raise InputError(
            "the proof is one of kept information, which was not the objective"
        )
    if channel.given:
        raise InputError("no proof is kept of bounds with given columns")
    if len(proof.prices) != len(joint.useful):
        raise InputError(
            f"the proof is of another table: it has {len(proof.prices)} prices for "
            f"{len(joint.useful)} symbols"
        )
    rules = table_rules(joint, notion)
    if not has_prices(rules):
        raise InputError(
            f"the posteriors that {notion.name} allows are no polytope, and no proof is kept"
        )
    # Any prices prove a bound. All of the mass of a class sits on the symbol with its best price,
    # because H is concave, so the best price of a class is one for all of its symbols.
    prices = np.full(len(rules.reduced.joint.useful), -np.inf)
    np.maximum.at(prices, rules.reduced.group, np.array(proof.prices))
    entropy = utility_entropy(joint)
    try:
        bound = proven_bound(
            rules.relaxation,
            rules.reduced.joint.p_x,
            prices,
            least=(1.0 - stated) * entropy,
            time_limit=time_limit,
        )
    except SolverError as error:
        raise InputError(f"the pricing failed: {error}") from None
    return share_bound(bound, entropy)
