"""Budgets in words: at most K times as likely, no belief above a share, the least that keeps one.

`budget_for` translates the first two into nats, rounded towards more privacy:

    at_most_times=2       no lift above 2: eps_u = log 2
    at_least_times=0.5    no lift below 1/2: eps_l = log 2
    max_posterior=0.9     with a prior of 0.6, no lift above 0.9 / 0.6: eps_u = log 1.5

`posterior_budget` has the third line, for other notions too, and `in_words` makes the notion of the
nats.

*The least budget that keeps a share* (`--keep`) of the information, or of the cells. The utility of
the optimum grows with the budget, so bisection over the budgets of four digits finds it
(`BudgetScale`). Each tried budget is a whole design, which starts from the columns of the one
before and has a part of the time that is left (`_Optima`). A budget is proven to be too small if
the bound of its optimum is below the share.

For example, a search for 80 % may try the budgets 1, 2 and 1.5, then others between, and end with
1.413, which keeps 80.01 %, and 1.412, with which no channel keeps more than 79.99 %. Both go into
the certificate (`KEPT_AT`, `KEPT_LESS_AT`).

A release of rows as rows of the table changes the fewest cells. So what it keeps is the share of
unchanged cells, as its objective weighs them: 1 less the cost of the plan, which grows with the
budget and has a proven bound. What such a plan keeps of the information need not grow. Budgets have
three digits there, and all plans together have the time of one (`_of_rows`).

*The scale* has the budgets that people type: all decimals of four digits from 10^-4 nats to 700.
They are numbered by *steps*: step 0 is 0.0001, step 1 is 0.0001001, step 9000 is 0.001, and step
36000 is 1. Designs come from a function of epsilon, and may be of one column or of rows.

For example, let 80 % be asked for, and let the designs keep 70 % at 1 nat and 90 % at 2.
Then the answer is one of the steps from 36001 to 37000. Ten halvings of these leave one, and
interpolation in between makes it fewer.

A `BudgetScale` is used once: `smallest_step` makes the designs, then `designs` has them by step,
`largest_where` finds the largest budget that is proven too small, and `sentence` words the answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from mechdesign.auditing.population import lift_limits
from mechdesign.auditing.strata import members_of, strata_of
from mechdesign.channel.record import RELATIVE
from mechdesign.core.arguments import at_least_times as least_nats
from mechdesign.core.arguments import at_most_times as most_nats
from mechdesign.core.arguments import share_of
from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about, at_least, at_most, listed, quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.least_cost_objective import ABSOLUTE
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.notions import NOTIONS, Notion
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint

# ------------------------------------------------------ least budget that keeps a share

# --------------------------------------------------------------------- scale of budgets

DECADE = 9000
"""Budgets of a decade: the decimals of four digits."""

SMALLEST = -4
"""The scale begins at 10^-4 nats: a belief of 50 % then moves to 50.005 % at most."""

LARGEST_STEP = 6 * DECADE + 6000
"""The step of 700 nats, the largest possible budget."""

LATE_FACTORS = (2, 2, 4, 16, 256)
"""Factors of a budget that keeps too little once the time is over, one after the other, so that few
designs overrun the limit."""

KEPT_AT = "kept_at"
KEPT_LESS_AT = "kept_less_at"
"""Keys of the certificate of such a design: the budget, and the largest budget that provably keeps
less."""


class Kept(Protocol):
    """The part of a design that the scale uses."""

    @property
    def nmi(self) -> float:
        """The share of the information that it keeps."""
        ...


KeptT = TypeVar("KeptT", bound=Kept)


class BudgetScale(Generic[KeptT]):
    """The steps of the scale, with the designs at the tried ones.

    `designs` has the tried ones by step; `in_time` is whether the search was not cut short.

    Parameters
    ----------
    designed : callable
        From epsilon (nats) to a design.
    share : Fraction
        The share of the information to keep.
    grain : int
        Only every so many-th step is tried: 10 leaves budgets of three digits.
    end : float
        When the search for smaller budgets ends, on the clock of `time.process_time`. The search
        for one that keeps the share has no end, but larger steps from then on.
    of, kind : str
        What the share is one of, and what the designs are, in words.
    """

    def __init__(
        self,
        designed: Callable[[float], KeptT],
        share: Fraction,
        *,
        grain: int = 1,
        end: float = math.inf,
        of: str = "information",
        kind: str = "channel",
    ) -> None:
        self._designed = designed
        self._share = share
        self._grain = grain
        self._end = end
        self._of = of
        self._kind = kind
        self.in_time = True
        self.designs: dict[int, KeptT] = {}

    def smallest_step(self) -> int:
        """The smallest step whose design keeps the share; one beyond the scale if none does.

        Doubling or halving from 1 nat brackets it, and after the end `LATE_FACTORS`. Invariant:
        `low` keeps less and `high` enough, where the steps just outside the scale count as tried.
        """
        grain = self._grain
        low = -grain
        high = LARGEST_STEP + grain
        epsilon = 1.0
        late = 0
        while high - low > grain:
            if high <= LARGEST_STEP and time.process_time() >= self._end:
                self.in_time = False
                return high
            if low < 0 or high > LARGEST_STEP:
                step = min(max(step_of(epsilon), 0), LARGEST_STEP)
                # A power of two may have more digits than the grain allows.
                step -= step % grain
            else:
                step = self._between(low, high)
            self.designs[step] = self._designed(epsilon_of(step))
            if self.designs[step].nmi >= self._share:
                high = step
                epsilon /= 2
            else:
                low = step
                if time.process_time() < self._end:
                    epsilon *= 2
                else:
                    # From the last factor every budget comes to the end of the scale.
                    epsilon *= LATE_FACTORS[min(late, len(LATE_FACTORS) - 1)]
                    late += 1
        return high

    def _between(self, low: int, high: int) -> int:
        """The next step inside a bracket: by bisection and by interpolation in turn."""
        if len(self.designs) % 2:
            step = (low + high) // 2
        else:
            # The curve is nearly straight between neighbours, so interpolation is mostly faster.
            # Bisection every other time bounds the number of steps.
            kept_low = self.designs[low].nmi
            kept_high = self.designs[high].nmi
            part = (float(self._share) - kept_low) / (kept_high - kept_low)
            step = low + round((high - low) * part)
        step -= step % self._grain
        return min(max(step, low + self._grain), high - self._grain)

    def largest_where(self, proves_less: Callable[[KeptT], bool]) -> int | None:
        """The largest step whose design proves that no channel keeps the share there."""
        too_small: list[int] = []
        for step, design in self.designs.items():
            if proves_less(design):
                too_small.append(step)
        return max(too_small, default=None)

    def sentence(self, step: int, too_small: int | None) -> str:
        """The answer `step` in words; `too_small` is the answer of `largest_where`."""
        if too_small is not None:
            proof = f"with {epsilon_of(too_small):g} no {self._kind} does (proven)"
            if too_small < step - self._grain:
                proof += "; between the two the search did not decide"
        elif step == 0:
            proof = "none is tried below"
        else:
            proof = "no smaller budget was proven to keep less"
        percent = at_least(float(100 * self._share))
        return (
            f"epsilon {epsilon_of(step):g} keeps {percent} % of the {self._of}; {proof}"
        )


def epsilon_of(step: int) -> float:
    """The budget of a step: 10^-4 nats, then all decimals of four digits."""
    # Step k of a decade has the digits 1000 + k. The double is that of the decimal text.
    digits = DECADE // 9 + step % DECADE
    exponent = step // DECADE + SMALLEST - 3
    return float(f"{digits}e{exponent}")


def step_of(epsilon: float) -> int:
    """The last step at or below a budget; the inverse of `epsilon_of`."""
    decade = math.floor(math.log10(epsilon))
    # Rounded first, because a product such as 1234.0 may come out just below.
    digits = math.floor(round(epsilon * 10.0 ** (3 - decade), 6))
    return (decade - SMALLEST) * DECADE + digits - DECADE // 9


# ---------------------------------------------------------------------- smallest budget

FINE_GAP = 1e-7
"""Gap of every optimum, as a share of H(X). A step of the scale is worth 1e-5 to 1e-3, so the gap
must be smaller to decide between neighbours."""

PART_OF_LEFT = 1 / 3
"""Share of the time that is left which one optimum may take. Most take far less, and the first ones
say most of where the budget is."""

LEAST_SECONDS = 0.1
"""Time of an optimum when none is left, and no budget was found yet that keeps the share."""

ROW_GAP = 1e-5
"""Relative gap of every plan of rows: a step of three digits moves its cost by some 1e-3."""

ROW_GRAIN = 10
"""Steps of the scale between two budgets of three digits."""

ROW_PLANS = 12
"""Plans that a search for three digits takes, more or less."""


def keeping(
    request: DesignRequest, at: Callable[[float], Notion], value: object
) -> Design:
    """The optimum at the smallest budget of four digits that keeps a share of H(X).

    Parameters
    ----------
    request : DesignRequest
        The design at every budget; its notion is replaced by that of `at`. For rows the share is
        one of the cells.
    at : callable
        From epsilon (nats) to the notion.
    value : number
        The share of the information to keep.

    Raises
    ------
    NotPrivate
        If no budget up to 700 nats was found to keep so much.
    SolverFailure
        If the time was over before one was.
    """
    combinations.check(request.shape, {"keep": "--keep with --confidence"})
    # What a heuristic keeps need not grow with the budget, and proves nothing about smaller ones.
    if request.mechanism != OPTIMAL:
        raise InputError(
            "--keep needs the optimum and its proven bound; --mechanism "
            f"{request.mechanism} has none"
        )
    share = share_of("--keep", value)
    if request.shape == combinations.ROWS:
        return _of_rows(request, at, share, value)
    end = math.inf
    if request.time_limit is not None:
        end = time.process_time() + request.time_limit
    optima = _Optima(replace(request, gap=min(request.gap, FINE_GAP)), at, end)
    scale = BudgetScale(optima.designed, share, end=end)
    step = scale.smallest_step()
    if step > LARGEST_STEP:
        is_late = time.process_time() >= end
        _refuse(scale.designs[LARGEST_STEP], share, value, is_late=is_late)
    too_small = scale.largest_where(lambda design: _keeps_less(design, share))
    return _with_answer(scale.designs[step], scale, step, too_small)


@dataclass(frozen=True)
class _Plan:
    """A plan of rows as the scale sees it, or the refusal where the budget leaves none.

    `nmi` is the share of unchanged cells, which is the name that the scale has for what is kept.
    """

    design: Design | None
    refusal: NotPrivate | None = None

    @property
    def nmi(self) -> float:
        """The share of unchanged cells, rounded down; none without a plan."""
        if self.design is None or self.design.least is None:
            return 0.0
        return 1.0 - self.design.least.cost

    @property
    def most(self) -> float:
        """No plan at this budget leaves a larger share unchanged."""
        if self.design is None or self.design.least is None:
            return 0.0
        return 1.0 - self.design.least.cost_lower_bound


def _of_rows(
    request: DesignRequest,
    at: Callable[[float], Notion],
    share: Fraction,
    value: object,
) -> Design:
    """The plan at the smallest budget of three digits that keeps a share of the cells."""
    if not isinstance(request.objective, str) or request.distance == ABSOLUTE:
        raise InputError(
            "--keep counts unchanged cells of released rows, and these costs are no shares: use "
            "--objective truth, or distances of ranks"
        )
    limit = request.time_limit
    asked = replace(
        request,
        gap=min(request.gap, ROW_GAP),
        time_limit=None if limit is None else limit / ROW_PLANS,
    )

    def planned(epsilon: float) -> _Plan:
        try:
            return _Plan(design_requested(replace(asked, notion=at(epsilon))))
        except NotPrivate as refusal:
            # Given columns alone, or what must stay, need a larger budget.
            return _Plan(None, refusal)

    scale = BudgetScale(planned, share, grain=ROW_GRAIN, of="cells", kind="plan")
    step = scale.smallest_step()
    if step > LARGEST_STEP:
        largest = scale.designs[LARGEST_STEP]
        if largest.refusal is not None:
            raise largest.refusal
        raise NotPrivate(
            f"no budget up to 700 nats was found that keeps {value} of the cells, only "
            f"{about(largest.nmi)}; no plan keeps more than {at_most(largest.most)} there (proven)"
        )
    found = scale.designs[step].design
    if found is None:
        raise TypeError("a budget that keeps a share has a plan")
    return _with_answer(
        found, scale, step, scale.largest_where(lambda plan: plan.most < share)
    )


def _with_answer(
    design: Design, scale: BudgetScale[KeptT], step: int, too_small: int | None
) -> Design:
    """The design with the budget, and the largest one that is proven too small."""
    details = design.certificate.details | {KEPT_AT: epsilon_of(step)}
    if too_small is not None:
        details |= {KEPT_LESS_AT: epsilon_of(too_small)}
    return replace(
        design,
        certificate=replace(design.certificate, details=details),
        messages=(*design.messages, scale.sentence(step, too_small)),
    )


class _Optima:
    """The optima of one request at several budgets until `end`, a moment of `time.process_time`;
    each starts from the one before.
    """

    def __init__(
        self, request: DesignRequest, at: Callable[[float], Notion], end: float
    ) -> None:
        self._request = request
        self._at = at
        self._end = end

    def designed(self, epsilon: float) -> Design:
        """The optimum at a budget."""
        limit = None
        if self._end < math.inf:
            left = self._end - time.process_time()
            limit = max(PART_OF_LEFT * left, LEAST_SECONDS)
        design = design_requested(
            replace(self._request, notion=self._at(epsilon), time_limit=limit)
        )
        if design.was_interrupted:
            raise KeyboardInterrupt
        # Columns and prices of a neighbouring budget are a good start; listed vertices need none.
        start = None
        if design.envelope is not None and design.envelope.method == "columns":
            start = design
        self._request = replace(self._request, start=start)
        return design


def _refuse(
    largest: Design, share: Fraction, value: object, *, is_late: bool
) -> NoReturn:
    """Raise NotPrivate: not even the largest budget was found to keep the share.

    `is_late` is whether the time of all budgets is over.
    """
    if _keeps_less(largest, share):
        most = at_most(100 * (largest.certificate.upper_bound_nmi or 0.0))
        raise NotPrivate(
            f"no budget keeps {value} of the information: with 700 nats no channel "
            f"keeps above {most} % (proven)"
        )
    if is_late or largest.certificate.details.get("status") == "time_limit":
        # That is a fact about the search, and none about the budgets.
        raise SolverFailure(
            f"the time limit was over before a budget was found that keeps {value} of the "
            f"information: with 700 nats the search had {about(largest.nmi)}; allow more time "
            "(--time-limit), or keep less (--keep)"
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


# --------------------------------------------------------------------- budgets in words


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
    combinations.check(request.shape, {"keep": "--max-posterior with --confidence"})
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
