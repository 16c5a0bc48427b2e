"""Budgets in words: at most K times as likely, no belief above a share, the least that keeps a
share.

`budget_for` translates the first two into nats, rounded towards more privacy:

    at_most_times=2       no lift above 2: eps_u = log 2
    at_least_times=0.5    no lift below 1/2: eps_l = log 2
    max_posterior=0.9     with a prior of 0.6, no lift above 0.9 / 0.6: eps_u = log 1.5

`posterior_budget` has the third line, for other notions too, and `in_words` makes the notion of the
nats. The least budget that keeps a share is found by trying budgets (`budget_keeping`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mechdesign.auditing.extremes import members_of, strata_of
from mechdesign.auditing.population import lift_limits
from mechdesign.channel.record import RELATIVE
from mechdesign.core.arguments import at_least_times as least_nats
from mechdesign.core.arguments import at_most_times as most_nats
from mechdesign.core.arguments import share_of
from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about, listed, quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.budget_keeping import keeping
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.notions import NOTIONS, Notion
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint


def budget_for(
    joint: Joint,
    *,
    notion: str = "alip",
    at_most_times: object = None,
    at_least_times: object = None,
    max_posterior: object = None,
    keep: object = None,
    lam: float | None = None,
    **options: Any,
) -> Notion:
    """The notion whose budgets (nats) correspond to words; rounding makes the promise stronger.

    Parameters
    ----------
    joint : Joint
    notion : name
        As on the command line.
    at_most_times, at_least_times : number, optional
        A released value makes no sensitive value more than (or less than) so many times as likely
        as before. A side without a number is free.
    max_posterior : number, optional
        For an observer who knows the table, no sensitive value has a probability above this share.
    keep : number, optional
        Without the others: the smallest budget of four digits, split by `lam` where the notion has
        two, whose optimum keeps this share of the information.
    **options
        Further fields of the `DesignRequest`: `confidence` and its like, and for `keep` those of
        the search.

    Raises
    ------
    InputError
        If a number is out of range or does not belong to the notion.
    NotPrivate
        If no private channel exists: a prior belief is above `max_posterior`, or no budget keeps so
        much.

    Examples
    --------
    ``md.design(joint, md.budget_for(joint, at_most_times=2, at_least_times=0.5))``
    """
    if notion not in NOTIONS:
        raise InputError(
            f"notion {notion!r} is not known; use one of {', '.join(NOTIONS)}"
        )
    kind = NOTIONS[notion]
    has_sides = (
        at_most_times is not None
        or at_least_times is not None
        or max_posterior is not None
    )
    _check_words(has_sides=has_sides, keep=keep, lam=lam)
    if keep is not None:
        # Its notion is replaced at every budget of the search.
        request = DesignRequest(joint, kind.at(1.0, lam), **options)
        return keeping(request, lambda epsilon: kind.at(epsilon, lam), keep).notion
    # A side without a number stays None, and free.
    lower = None
    if at_least_times is not None:
        lower = least_nats(at_least_times)
    uppers: list[float] = []
    if at_most_times is not None:
        uppers.append(most_nats(at_most_times))
    if max_posterior is not None:
        # Only the kind of its notion matters.
        request = DesignRequest(joint, kind.at(1.0), **options)
        uppers.append(posterior_budget(request, max_posterior))
    # Of two promises about the upper side the stronger one counts.
    return in_words(kind, lower=lower, upper=min(uppers, default=None))


def _check_words(*, has_sides: bool, keep: object, lam: float | None) -> None:
    """Raise InputError unless there is exactly one kind of budget."""
    if keep is not None:
        if has_sides:
            raise InputError(
                "--keep looks for the smallest budget: leave out every other budget"
            )
        return
    if not has_sides:
        raise InputError(
            "say the budget: --at-most-times, --at-least-times, --max-posterior or --keep"
        )
    if lam is not None:
        raise InputError(
            "--lam splits the budget that --keep finds; the other words say both sides themselves"
        )


def in_words(
    kind: type[Notion],
    *,
    lower: float | None = None,
    upper: float | None = None,
    **order: Any,
) -> Notion:
    """The notion of this kind under which no lift is below exp(-lower) or above exp(upper).

    `lower` and `upper` are in nats; None leaves a side free. LDP keeps every lift between
    exp(-epsilon) and exp(epsilon), so its single budget for both sides is the smaller one.
    """
    if not isinstance(kind.at(1.0, **order).limits, LiftLimits):
        raise InputError(
            f"{kind.name} bounds averages, not how likely a single value becomes; take "
            "alip, or nats"
        )
    sides: dict[str, Any] = {"eps_l": lower, "eps_u": upper}
    for name, side in sides.items():
        if side is None:
            sides[name] = math.inf
    # A kind that takes `lam`, the share of the lower side, has both budgets.
    if kind.takes_lam():
        return kind(**sides | order)
    (budget,) = kind.budgets()
    for side, where in (("eps_l", "below"), ("eps_u", "above")):
        if budget not in ("epsilon", side) and math.isfinite(sides[side]):
            raise InputError(
                f"{kind.name} does not bound beliefs from {where}; take alip"
            )
    return kind(**{budget: min(sides.values())})


def posterior_budget(request: DesignRequest, value: object) -> float:
    """The upper budget (nats) under which no sensitive symbol becomes more probable than a share.

    One budget protects every symbol, so the most frequent one decides: its prior times exp of the
    budget is at most the share. With a confidence level its prior is the largest one in the
    confidence set; with a relative promise it is the largest among records with the same given
    cells. Of the request's notion only the kind matters, not the budgets.
    """
    share = share_of("--max-posterior", value)
    if request.publishes_boxes:
        name = "--max-posterior with --confidence"
        combinations.check(combinations.BOXES, {"keep": name})
    joint = request.joint
    kind = type(request.notion)
    if len(joint.secrets) > 1 or request.protect_each or request.budgets:
        raise InputError(
            "--max-posterior is for one sensitive column and every symbol alike; say "
            "--at-most-times"
        )
    priors = _largest_priors(request)
    prior = max(priors)
    if prior >= share:
        symbol = quoted(joint.sensitive.names[priors.index(prior)])
        has = "has"
        if request.promise == RELATIVE:
            has = f"has, among records with some cells of {listed(request.given)},"
        if request.confidence is not None:
            # The share is then the largest that the counts do not contradict.
            has = "may have"
        raise NotPrivate(
            f"no release keeps every belief at most {value}: {symbol} {has} the share "
            f"{about(float(prior))} before anything is released; say more than that"
        )
    # With the share q and the prior p: the lift q / p of a belief that grows to the share, and the
    # inverse lift (1 - p) / (1 - q) of its complement, whose belief falls to the rest.
    largest_lift = share / prior
    complement = (1 - prior) / (1 - share)
    limits = request.notion.limits
    if isinstance(limits, LiftLimits) and math.isfinite(limits.ratio):
        # LDP: the odds p / (1 - p) grow to q / (1 - q) by a factor of exp(epsilon) at most.
        return log_at_most(largest_lift * complement)
    if kind.budgets() == ("epsilon",):
        # LIP bounds both sides by one budget: the easier of the two reaches the share.
        return log_at_most(max(largest_lift, complement))
    return log_at_most(largest_lift)


def _largest_given(joint: Joint, given: Sequence[str]) -> list[Fraction]:
    """The largest P(s|k) over the strata k, for every sensitive symbol s."""
    members = members_of(strata_of(given, joint))
    totals = [sum(joint.useful_counts[x] for x in places) for places in members]
    largest: list[Fraction] = []
    for counts in joint.counts:
        shares = [
            Fraction(sum(counts[x] for x in places), total)
            for places, total in zip(members, totals, strict=True)
        ]
        largest.append(max(shares))
    return largest


def _largest_priors(request: DesignRequest) -> list[Fraction]:
    """P(s) of every sensitive symbol: of the table, the largest among records with the same given
    cells (to which a relative promise compares), or the largest of the confidence set.
    """
    joint = request.joint
    if request.promise == RELATIVE:
        return _largest_given(joint, request.given)
    if request.confidence is None:
        return [Fraction(count, joint.total) for count in joint.sensitive_counts]
    populations = confidence_set(
        joint,
        request.confidence,
        shares=request.known_shares,
        estimate_shares=lift_limits(request.notion).need_shares,
        unseen=request.unseen,
    )
    return [*populations.share_upper]
