"""Budgets for people: at most K times as likely, no belief above a share, the least that keeps most of the column."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mechdesign.auditing.population import lift_limits
from mechdesign.core.arguments import at_least_times as least_nats
from mechdesign.core.arguments import at_most_times as most_nats
from mechdesign.core.arguments import share_of
from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about, at_least, at_most, quoted
from mechdesign.mechanisms import design
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.result import Design
from mechdesign.notions import NOTIONS, Notion
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint

DECADE = 9000
"""Budgets of a decade on the scale of `keeping`: those of four digits, as they are typed."""

SMALLEST = -4
"""The scale begins at 10^-4 nats: a belief of 50 % then moves to 50.005 % at most."""

LARGEST_STEP = 6 * DECADE + 6000
"""700 nats, beyond which no budget can be said."""

FINE_GAP = 1e-7
"""Gap of every optimum, as a share of H(X): a step of the scale is worth 1e-5 to 1e-3, and is to be decided."""

KEPT_AT, KEPT_LESS_AT = "kept_at", "kept_less_at"
"""What the certificate of `keeping` tells: the budget, and the largest that was proven not to keep so much."""


def in_words(
    kind: type[Notion],
    *,
    lower: float | None = None,
    upper: float | None = None,
    **order: Any,
) -> Notion:
    """The notion of this kind under which no lift is below exp(-lower) or above exp(upper); None leaves a side free.

    LDP keeps every lift between exp(-epsilon) and exp(epsilon), so a single budget for both sides is the smaller one.
    """
    if not isinstance(kind.at(1.0, **order).limits, LiftLimits):
        raise InputError(
            f"{kind.name} bounds averages, not how likely a single value becomes; take alip, or nats"
        )
    sides: dict[str, Any] = {"eps_l": lower, "eps_u": upper}
    sides = {name: math.inf if side is None else side for name, side in sides.items()}
    if kind.takes_lam():
        return kind(**sides | order)
    (budget,) = kind.budgets()
    for side, where in (("eps_l", "below"), ("eps_u", "above")):
        if budget not in ("epsilon", side) and math.isfinite(sides[side]):
            raise InputError(
                f"{kind.name} does not bound beliefs from {where}; take alip"
            )
    return kind(**{budget: min(sides.values())})


def posterior_budget(
    joint: Joint, kind: type[Notion], value: object, how: Mapping[str, Any]
) -> float:
    """The budget (nats) of the upper side under which no sensitive symbol becomes more probable than a share.

    One budget protects every symbol, so the most frequent one decides: its share times exp of the budget is at most
    the share asked for. With a confidence level that is the largest share that the counts allow.
    """
    share, level = share_of("--max-posterior", value), how.get("confidence")
    if len(joint.secrets) > 1 or how.get("protect_each") or how.get("budgets"):
        raise InputError(
            "--max-posterior is for one sensitive column and every symbol alike; say --at-most-times"
        )
    priors = [Fraction(count, joint.total) for count in joint.sensitive_counts]
    limits = kind.at(1.0).limits
    if level is not None:
        own = {"shares": how.get("known_shares"), "unseen": how.get("unseen", 0)}
        shares = lift_limits(kind.at(1.0)).need_shares
        priors = [
            *confidence_set(joint, level, estimate_shares=shares, **own).share_upper
        ]
    prior = max(priors)
    if prior >= share:
        likely = quoted(joint.sensitive.names[priors.index(prior)])
        has = "has" if level is None else "may have"
        raise NotPrivate(
            f"no release keeps every belief at most {value}: {likely} {has} the share {about(float(prior))} before "
            "anything is released; say more than that"
        )
    ratio, rest = share / prior, (1 - prior) / (1 - share)
    if isinstance(limits, LiftLimits) and math.isfinite(limits.ratio):
        return log_at_most(ratio * rest)  # odds grow by exp(epsilon) at most
    return log_at_most(max(ratio, rest) if kind.budgets() == ("epsilon",) else ratio)


def budget_for(
    joint: Joint,
    *,
    notion: str = "alip",
    at_most_times: object = None,
    at_least_times: object = None,
    max_posterior: object = None,
    keep: object = None,
    lam: float | None = None,
    **how: Any,
) -> Notion:
    """The notion whose budgets (nats) say in numbers what was said in words; rounding promises more, never less.

    Parameters
    ----------
    joint : Joint
    notion : name
        As on the command line.
    at_most_times, at_least_times : number, optional
        Nobody finds a sensitive value more than (or less than) so many times as likely as before. A side of which
        nothing is said stays free.
    max_posterior : number, optional
        Whoever knows the table gives no sensitive value a probability above this share.
    keep : number, optional
        Alone: the smallest budget of four digits, split by `lam` where the notion has two, whose optimum keeps this
        share of the information.
    **how
        Arguments of the design that the budget is for: `confidence` and the like, and for `keep` those of the search.

    Raises
    ------
    InputError
        If a number is out of range or does not belong to the notion.
    NotPrivate
        If no private channel exists: a belief is above `max_posterior` already, or no budget keeps so much.

    Examples
    --------
    ``md.design(joint, md.budget_for(joint, at_most_times=2, at_least_times=0.5))``
    """
    if notion not in NOTIONS:
        raise InputError(
            f"notion {notion!r} is not known; use one of {', '.join(NOTIONS)}"
        )
    kind = NOTIONS[notion]
    sides = (at_most_times, at_least_times, max_posterior)
    if keep is not None:
        if sides != (None, None, None):
            raise InputError(
                "--keep looks for the smallest budget: leave out every other budget"
            )
        return keeping(joint, lambda epsilon: kind.at(epsilon, lam), keep, **how).notion
    if sides == (None, None, None):
        raise InputError(
            "say the budget: --at-most-times, --at-least-times, --max-posterior or --keep"
        )
    if lam is not None:
        raise InputError(
            "--lam splits the budget that --keep finds; the other words say both sides themselves"
        )
    upper = None if at_most_times is None else most_nats(at_most_times)
    if max_posterior is not None:
        allowed = posterior_budget(joint, kind, max_posterior, how)
        upper = allowed if upper is None else min(upper, allowed)
    return in_words(
        kind,
        lower=None if at_least_times is None else least_nats(at_least_times),
        upper=upper,
    )


def keeping(
    joint: Joint,
    at: Callable[[float], Notion],
    value: object,
    *,
    mechanism: str = OPTIMAL,
    gap: float = FINE_GAP,
    **how: Any,
) -> Design:
    """The optimum at the smallest budget of four digits that keeps a share of H(X); `how` is that of each design.

    What the optimum keeps grows with the budget, so halving finds it. A budget is called too small where the proven
    bound of its optimum is below the share. Raises NotPrivate if no budget up to 700 nats was found to keep so much.
    """
    if mechanism != OPTIMAL:
        raise InputError(
            f"--keep needs the optimum and its proven bound; --mechanism {mechanism} has none"
        )
    exact = share_of("--keep", value)
    found: dict[int, Design] = {}
    warm: Design | None = None
    low, high, epsilon = -1, LARGEST_STEP + 1, 1.0
    while high - low > 1:
        if low < 0 or high > LARGEST_STEP:
            step = min(max(step_of(epsilon), 0), LARGEST_STEP)
        elif len(found) % 2:
            step = (low + high) // 2
        else:  # the curve is nearly straight between neighbours; halving in turn bounds the worst case
            part = (float(exact) - found[low].nmi) / (found[high].nmi - found[low].nmi)
            step = min(max(low + round((high - low) * part), low + 1), high - 1)
        made = found[step] = design(
            joint, at(epsilon_of(step)), start=warm, gap=min(gap, FINE_GAP), **how
        )
        if made.certificate.details.get("status") == "interrupted":
            raise KeyboardInterrupt
        warm = (
            made
            if made.envelope is not None and made.envelope.method == "columns"
            else None
        )
        if made.nmi >= exact:
            high, epsilon = step, epsilon / 2
        elif step < LARGEST_STEP:
            low, epsilon = step, epsilon * 2
        elif _keeps_less(made, exact):
            most = at_most(100 * (made.certificate.upper_bound_nmi or 0.0))
            raise NotPrivate(
                f"no budget keeps {value} of the information: with 700 nats no channel keeps above {most} % (proven)"
            )
        else:
            raise NotPrivate(
                f"no budget up to 700 nats was found that keeps {value} of the information, only {about(made.nmi)}"
            )
    too_small = max(
        (step for step, made in found.items() if _keeps_less(made, exact)), default=None
    )
    below, made, epsilon = (
        None if too_small is None else epsilon_of(too_small),
        found[high],
        epsilon_of(high),
    )
    proven = (
        "none is tried below"
        if high == 0
        else "no smaller budget was proven to keep less"
    )
    if below is not None:
        proven = f"with {below:g} no channel does (proven)"
        proven += (
            ""
            if too_small == high - 1
            else "; between the two the search did not decide"
        )
    text = f"epsilon {epsilon:g} keeps {at_least(float(100 * exact))} % of the information; {proven}"
    details = (
        made.certificate.details
        | {KEPT_AT: epsilon}
        | ({} if below is None else {KEPT_LESS_AT: below})
    )
    proof = replace(made.certificate, details=details)
    return replace(made, certificate=proof, messages=(*made.messages, text))


def _keeps_less(made: Design, share: Fraction) -> bool:
    bound = made.certificate.upper_bound_nmi
    return bound is not None and made.certificate.scope == "proven" and bound < share


def epsilon_of(step: int) -> float:
    """The budget of a step: 10^-4 nats, then all decimals of four digits."""
    return float(f"{DECADE // 9 + step % DECADE}e{step // DECADE + SMALLEST - 3}")


def step_of(epsilon: float) -> int:
    """The last step at or below a budget."""
    decade = math.floor(math.log10(epsilon))
    return (
        (decade - SMALLEST) * DECADE
        + math.floor(round(epsilon * 10.0 ** (3 - decade), 6))
        - DECADE // 9
    )
