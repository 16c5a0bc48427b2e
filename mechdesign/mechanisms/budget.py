"""Budgets in words: at most K times as likely, no belief above a share, the least that keeps a
share.

`budget_for` translates the first two into nats, rounded towards more privacy. `keeping` finds the
third by a search over budgets of four digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from mechdesign.auditing.population import lift_limits
from mechdesign.core.arguments import at_least_times as least_nats
from mechdesign.core.arguments import at_most_times as most_nats
from mechdesign.core.arguments import share_of
from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about, at_least, at_most, quoted
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.notions import NOTIONS, Notion
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint

DECADE = 9000
"""Budgets of a decade on the scale of `keeping`: the decimals of four digits, as people type
them."""

SMALLEST = -4
"""The scale begins at 10^-4 nats: a belief of 50 % then moves to 50.005 % at most."""

LARGEST_STEP = 6 * DECADE + 6000
"""The step of 700 nats, the largest possible budget."""

FINE_GAP = 1e-7
"""Gap of every optimum, as a share of H(X). A step of the scale is worth 1e-5 to 1e-3, so the gap
must be smaller to decide between neighbours."""

KEPT_AT = "kept_at"
KEPT_LESS_AT = "kept_less_at"
"""Keys of the certificate of `keeping`: the budget, and the largest budget that provably keeps
less.
"""


def in_words(
    kind: type[Notion],
    *,
    lower: float | None = None,
    upper: float | None = None,
    **order: Any,
) -> Notion:
    """The notion of this kind under which no lift is below exp(-lower) or above exp(upper).

    None leaves a side free. LDP keeps every lift between exp(-epsilon) and exp(epsilon), so its
    single budget for both sides is the smaller one.
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
    confidence set. Of the request's notion only the kind matters, not the budgets.
    """
    share = share_of("--max-posterior", value)
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
        if request.confidence is not None:
            # The share is then the largest that the counts do not contradict.
            has = "may have"
        raise NotPrivate(
            f"no release keeps every belief at most {value}: {symbol} {has} the share "
            f"{about(float(prior))} before anything is released; say more than that"
        )
    # The lift of a belief that grows to the share, and the inverse lift of its complement, whose
    # belief falls to the rest.
    largest_lift = share / prior
    complement = (1 - prior) / (1 - share)
    limits = request.notion.limits
    if isinstance(limits, LiftLimits) and math.isfinite(limits.ratio):
        # LDP: the odds of two symbols grow by exp(epsilon) at most.
        return log_at_most(largest_lift * complement)
    if kind.budgets() == ("epsilon",):
        # LIP bounds both sides by one budget: the easier of the two reaches the share.
        return log_at_most(max(largest_lift, complement))
    return log_at_most(largest_lift)


def _largest_priors(request: DesignRequest) -> list[Fraction]:
    """P(s) of every sensitive symbol: of the table, or the largest of the confidence set."""
    joint = request.joint
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
        request = DesignRequest(joint, kind.at(1.0), **options)
        uppers.append(posterior_budget(request, max_posterior))
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


def keeping(
    request: DesignRequest, at: Callable[[float], Notion], value: object
) -> Design:
    """The optimum at the smallest budget of four digits that keeps a share of H(X).

    The utility of the optimum grows with the budget, so bisection finds the budget. A budget is
    proven to be too small if the bound of its optimum is below the share.

    Parameters
    ----------
    request : DesignRequest
        The design at every budget; its notion is replaced by that of `at`.
    at : callable
        From epsilon (nats) to the notion.
    value : number
        The share of the information to keep.

    Raises
    ------
    NotPrivate
        If no budget up to 700 nats was found to keep so much.
    """
    if request.mechanism != OPTIMAL:
        raise InputError(
            "--keep needs the optimum and its proven bound; --mechanism "
            f"{request.mechanism} has none"
        )
    share = share_of("--keep", value)
    scale = _BudgetScale(replace(request, gap=min(request.gap, FINE_GAP)), at, share)
    step = scale.smallest_step()
    if step > LARGEST_STEP:
        _refuse(scale.designs[LARGEST_STEP], share, value)
    design = scale.designs[step]
    epsilon = epsilon_of(step)
    details = design.certificate.details | {KEPT_AT: epsilon}
    too_small = scale.largest_too_small()
    if too_small is not None:
        below = epsilon_of(too_small)
        details |= {KEPT_LESS_AT: below}
        proof = f"with {below:g} no channel does (proven)"
        if too_small < step - 1:
            proof += "; between the two the search did not decide"
    elif step == 0:
        proof = "none is tried below"
    else:
        proof = "no smaller budget was proven to keep less"
    percent = at_least(float(100 * share))
    message = f"epsilon {epsilon:g} keeps {percent} % of the information; {proof}"
    return replace(
        design,
        certificate=replace(design.certificate, details=details),
        messages=(*design.messages, message),
    )


class _BudgetScale:
    """The steps of the scale of budgets, with the designs at the tried ones."""

    def __init__(
        self, request: DesignRequest, at: Callable[[float], Notion], share: Fraction
    ) -> None:
        self._request = request
        self._at = at
        self._share = share
        self.designs: dict[int, Design] = {}

    def smallest_step(self) -> int:
        """The smallest step whose design keeps the share; one beyond the scale if none does.

        Doubling or halving from 1 nat brackets it. Invariant: `low` keeps less and `high` enough,
        where -1 and the step beyond the scale count as tried.
        """
        low = -1
        high = LARGEST_STEP + 1
        epsilon = 1.0
        while high - low > 1:
            if low < 0 or high > LARGEST_STEP:
                step = min(max(step_of(epsilon), 0), LARGEST_STEP)
            else:
                step = self._between(low, high)
            if self._design(step).nmi >= self._share:
                high = step
                epsilon /= 2
            else:
                low = step
                epsilon *= 2
        return high

    def largest_too_small(self) -> int | None:
        """The largest step that provably keeps less than the share, if there is one."""
        too_small: list[int] = []
        for step, design in self.designs.items():
            if _keeps_less(design, self._share):
                too_small.append(step)
        return max(too_small, default=None)

    def _between(self, low: int, high: int) -> int:
        """The next step inside a bracket: by bisection and by interpolation in turn."""
        if len(self.designs) % 2:
            return (low + high) // 2
        # The curve is nearly straight between neighbours, so interpolation is mostly faster.
        # Bisection bounds the number of steps.
        kept_low = self.designs[low].nmi
        kept_high = self.designs[high].nmi
        part = (float(self._share) - kept_low) / (kept_high - kept_low)
        step = low + round((high - low) * part)
        return min(max(step, low + 1), high - 1)

    def _design(self, step: int) -> Design:
        """The design at a step, with the one before as its start."""
        notion = self._at(epsilon_of(step))
        design = design_requested(replace(self._request, notion=notion))
        if design.certificate.details.get("status") == "interrupted":
            # A search takes Ctrl-C for itself; the whole of them has to end.
            raise KeyboardInterrupt
        self.designs[step] = design
        start = None
        if design.envelope is not None and design.envelope.method == "columns":
            start = design
        self._request = replace(self._request, start=start)
        return design


def _refuse(largest: Design, share: Fraction, value: object) -> NoReturn:
    """Raise NotPrivate: not even the largest budget was found to keep the share."""
    if _keeps_less(largest, share):
        most = at_most(100 * (largest.certificate.upper_bound_nmi or 0.0))
        raise NotPrivate(
            f"no budget keeps {value} of the information: with 700 nats no channel "
            f"keeps above {most} % (proven)"
        )
    raise NotPrivate(
        f"no budget up to 700 nats was found that keeps {value} of the information, "
        f"only {about(largest.nmi)}"
    )


def _keeps_less(design: Design, share: Fraction) -> bool:
    """Whether every channel at the design's budget provably keeps less than the share."""
    certificate = design.certificate
    bound = certificate.upper_bound_nmi
    return bound is not None and certificate.scope == "proven" and bound < share


def epsilon_of(step: int) -> float:
    """The budget of a step: 10^-4 nats, then all decimals of four digits."""
    # Step k of a decade has the digits 1000 + k. The double is that of the decimal text.
    digits = DECADE // 9 + step % DECADE
    exponent = step // DECADE + SMALLEST - 3
    return float(f"{digits}e{exponent}")


def step_of(epsilon: float) -> int:
    """The last step at or below a budget."""
    decade = math.floor(math.log10(epsilon))
    # Rounded first, because a product such as 1234.0 may come out just below.
    digits = math.floor(round(epsilon * 10.0 ** (3 - decade), 6))
    return (decade - SMALLEST) * DECADE + digits - DECADE // 9
