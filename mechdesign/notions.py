"""Privacy notions: the one place where each of them is defined.

A notion bounds the lifts l(s, y) = P(s|y) / P(s) of every output y, or a mean of them over s: ::

    alip       exp(-eps_l) <= l <= exp(eps_u)              `ALIP`
    lip        the same with eps_l = eps_u = epsilon       `LIP`
    max-lift   the upper side alone                        `MaxLift`
    min-lift   the lower side alone                        `MinLift`
    ldp        l(s, y) <= exp(epsilon) l(s', y)            `LDP`
    l1         sum P(s) |l - 1| <= exp(eps_u) - 1          `L1Lift`
    chi2       sum P(s) (l - 1)^2 <= (exp(eps_u) - 1)^2    `Chi2Lift`
    alpha      (sum P(s) l^alpha)^(1/alpha) <= exp(eps_u)  `AlphaLift`
    kl         sum P(s) l log l <= eps_u                   `KL`

The last four bound the same of 1/l by eps_l. All but `KL` are defined in Zarrabian et al. 2023.

A notion is a frozen class with its budgets in nats as fields. Its `limits` are its demands on every
output; designers, the exact auditor, files, the command line, comparisons and reports work from
them and from the class alone. For example, ``ALIP(0.5, 0.7).limits`` is ``LiftLimits(lower=0.5,
upper=0.7)``, and files have ``{"name": "alip", "eps_l": 0.5, "eps_u": 0.7}`` (`to_record`).

A new notion is one class here with the decorator `register`. Only a new kind of mean also needs its
enclosure in `auditing.verdict` and its cuts in `mechanisms.convex_means`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar, cast

from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.core.limits import (
    DistanceMean,
    DivergenceMean,
    LiftLimits,
    Limits,
    Mean,
    MeanLimits,
    PowerMean,
    SymbolBudget,
)
from mechdesign.core.wording import at_least
from mechdesign.core.wording import budget as shown_budget

LARGEST_BUDGET = 700.0
"""exp of a larger budget overflows a double; beyond it a budget is as good as absent: say inf."""

LEAST_BUDGET = sys.float_info.min
"""Least budget of a design: smaller doubles lose digits, and a part of one may be 0."""

DEFAULT_LAM = 0.5
"""Default share of epsilon for the lower side."""

DEFAULT_ALPHA = 2.0
"""Default order of the alpha-lift: the smallest of Figure 13 of Zarrabian et al. 2023."""


def check_budget(name: str, value: float, *, allow_infinite: bool = True) -> float:
    """Return `value` as a float if it is a usable budget in nats."""
    allowed = f"in (0, {LARGEST_BUDGET:g}]"
    budget = number(name, value, f"of nats {allowed}")
    if budget == math.inf and not allow_infinite:
        raise InputError(f"{name} (inf) must be finite, {allowed}")
    if not budget > 0.0:
        raise InputError(f"{name} ({budget:g}) must be positive, {allowed}")
    if LARGEST_BUDGET < budget < math.inf:
        hint = ""
        if allow_infinite:
            hint = "; to drop this side say inf"
        raise InputError(
            f"{name} ({budget:g}) must be at most {LARGEST_BUDGET:g}{hint}"
        )
    return budget


def check_lam(lam: float) -> float:
    """Return `lam` as a float if 0 < lam < 1, else raise InputError."""
    value = number("lam", lam, "strictly between 0 and 1")
    if not 0.0 < value < 1.0:
        raise InputError(
            f"lam ({value:g}) must be strictly between 0 and 1; a side that is free has the budget "
            "inf, as in --eps-l inf with --eps-u 0.5"
        )
    return value


def split(epsilon: float, lam: float) -> tuple[float, float]:
    """(eps_l, eps_u) = (lam * epsilon, (1 - lam) * epsilon), in double arithmetic, both checked.

    Raises
    ------
    InputError
        If one of them is below `LEAST_BUDGET`: as a double it may be far from its share.
    """
    # Not infinite: an infinite part is a free side, which `eps_l` or `eps_u` says for itself.
    epsilon = check_budget("epsilon", epsilon, allow_infinite=False)
    lam = check_lam(lam)
    parts = lam * epsilon, (1.0 - lam) * epsilon
    if min(parts) < LEAST_BUDGET:
        raise InputError(
            f"--epsilon ({epsilon!r}) is too small to be divided by --lam ({lam!r}): doubles below "
            f"{LEAST_BUDGET:.3g} lose digits; give a larger epsilon"
        )
    return parts


def check_least(name: str, budget: float) -> None:
    """Raise InputError if a budget is too small to design for; any can be audited."""
    if budget < LEAST_BUDGET:
        raise InputError(
            f"{name} ({budget!r}) is too small to design for: double precision cannot divide it; "
            f"give more than {LEAST_BUDGET:.3g}"
        )


def check_alpha(alpha: float) -> float:
    """Return `alpha` as a float if it is above 1 (inf included), else raise InputError."""
    value = number("alpha", alpha, "above 1, or inf")
    # Written so that NaN is refused, too.
    if not value > 1.0:
        raise InputError(
            f"--alpha ({value:g}) must be above 1 (inf is the largest lift)"
        )
    return value


@dataclass(frozen=True, kw_only=True)
class Notion:
    """A promise with its budgets.

    A subclass is a frozen dataclass. Its budgets are the fields `epsilon`, `eps_l` and `eps_u`, as
    far as it has them. The only other fields may be `alpha`, an
    order, and `symbol_budgets`, the budgets of single symbols.
    """

    name: ClassVar[str]
    symbol_budgets: tuple[SymbolBudget, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for budget in self.budgets():
            # A notion with one budget would promise nothing if that were infinite.
            value = check_budget(
                budget, getattr(self, budget), allow_infinite=self.takes_lam()
            )
            # The usual way to normalise a field of a frozen dataclass.
            object.__setattr__(self, budget, value)
        if not any(math.isfinite(getattr(self, budget)) for budget in self.budgets()):
            raise InputError(
                "eps_l and eps_u are both inf: nothing would be protected; give one budget"
            )
        if self.symbol_budgets:
            object.__setattr__(self, "symbol_budgets", self._checked_symbol_budgets())

    def _checked_symbol_budgets(self) -> tuple[SymbolBudget, ...]:
        """The budgets of single symbols as floats, if the notion bounds lifts and each protects."""
        limits = self.limits
        # A mean has no symbol of its own, and a ratio has two.
        if not isinstance(limits, LiftLimits) or math.isfinite(limits.ratio):
            raise InputError(
                f"budgets of single symbols bound lifts: {self.name} has none; use alip, lip, "
                f"max-lift or min-lift"
            )
        checked: list[SymbolBudget] = []
        for symbol, lower, upper in self.symbol_budgets:
            name = f"a budget of {symbol!r}"
            lower = check_budget(name, lower)
            upper = check_budget(name, upper)
            if math.isinf(lower) and math.isinf(upper):
                raise InputError(
                    f"both budgets of {symbol!r} are inf: it would not be protected; give one"
                )
            checked.append((symbol, lower, upper))
        return tuple(checked)

    @property
    def limits(self) -> Limits:
        """The demands on every output: bounds on every lift, unless a subclass overrides them."""
        # A notion has epsilon for both sides, or eps_l and eps_u, or one of these; what it lacks is
        # free.
        both = getattr(self, "epsilon", math.inf)
        return LiftLimits(
            getattr(self, "eps_l", both),
            getattr(self, "eps_u", both),
            symbol_budgets=self.symbol_budgets,
        )

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of budgets and order, as the constructor takes them and files write them."""
        return tuple(f.name for f in fields(cls) if f.name != "symbol_budgets")

    @classmethod
    def budgets(cls) -> tuple[str, ...]:
        """Names of the budgets."""
        return tuple(name for name in cls.parameters() if name.startswith("eps"))

    @classmethod
    def takes_lam(cls) -> bool:
        """Whether lam splits an epsilon into two budgets; otherwise epsilon is the budget."""
        return {"eps_l", "eps_u"} <= set(cls.budgets())

    @classmethod
    def has_order(cls) -> bool:
        """Whether the notion has an order alpha beside its budgets."""
        return "alpha" in cls.parameters()

    @classmethod
    def at(cls, epsilon: float, lam: float | None = None, **order: float) -> Self:
        """The notion at a budget, split by `lam` where it has two.

        ``ALIP.at(1.0, 0.3)`` is ``ALIP(0.3, 0.7)``, and ``LIP.at(1.0)`` is ``LIP(1.0)``.
        """
        # With one budget lam has nothing to split, and is passed over.
        sides: tuple[float, ...] = (epsilon,)
        if cls.takes_lam():
            if lam is None:
                lam = DEFAULT_LAM
            sides = split(epsilon, lam)
        arguments: dict[str, Any] = dict(zip(cls.budgets(), sides, strict=True))
        arguments.update(order)
        return cls(**arguments)

    def check_least(self) -> None:
        """Raise InputError if a budget is too small to design for."""
        for name in self.budgets():
            check_least(name, getattr(self, name))
        for symbol, *sides in self.symbol_budgets:
            check_least(f"a budget of {symbol!r}", min(sides))

    def values(self) -> dict[str, float]:
        """Budgets and order by name."""
        return {name: getattr(self, name) for name in self.parameters()}

    def with_budgets(self, budgets: Mapping[str, tuple[float, float]]) -> Self:
        """The same promise, except that the sensitive symbols in `budgets` have other ones.

        `budgets` maps a symbol to its eps_l and eps_u.
        """
        symbol_budgets: list[SymbolBudget] = []
        for symbol, (lower, upper) in budgets.items():
            symbol_budgets.append((symbol, lower, upper))
        return replace(self, symbol_budgets=tuple(symbol_budgets))

    def scaled(self, factor: float) -> Self | None:
        """The promise with all budgets multiplied by a factor below 1, which implies this one.

        None where single symbols have budgets of their own, or a budget becomes zero.
        """
        if self.symbol_budgets:
            return None
        budgets: dict[str, Any] = {}
        for name in self.budgets():
            budgets[name] = factor * getattr(self, name)
            # A product below the smallest double; no notion has a budget of zero.
            if budgets[name] == 0.0:
                return None
        return replace(self, **budgets)

    @property
    def label(self) -> str:
        """The name, with the order where there is one: `alpha:2`."""
        if not self.has_order():
            return self.name
        # 17 digits give every double back.
        return f"{self.name}:{self.values()['alpha']:.17g}"

    @property
    def sides(self) -> tuple[float | None, float | None]:
        """eps_l and eps_u in nats, inf where a side is free.

        Both are None where only the ratio of lifts is bounded.
        """
        limits = self.limits
        # No notion leaves everything free, so without both sides its bound is that of the ratio.
        if math.isinf(limits.lower) and math.isinf(limits.upper):
            return None, None
        return limits.lower, limits.upper

    @property
    def one_sided(self) -> Notion | None:
        """The same promise as a notion with one budget; None if there is no such notion."""
        return None

    @property
    def text(self) -> str:
        """``alip (eps_l 0.5, eps_u 0.5)``: what is bounded, without the free sides."""
        limits = self.limits
        parts: list[str] = []
        if self.has_order():
            # Means grow with the order: rounded up it would promise more.
            parts.append(f"order {at_least(self.values()['alpha'])}")
        shown = {"eps_l": limits.lower, "eps_u": limits.upper}
        # A bound on the ratio is neither of the two: it has the name of its own field.
        if math.isfinite(limits.loosest.ratio):
            shown = {name: getattr(self, name) for name in self.budgets()}
        for name, value in shown.items():
            if value < math.inf:
                parts.append(f"{name} {shown_budget(value)}")
        groups = [", ".join(parts)]
        for symbol, lower, upper in self.symbol_budgets:
            groups.append(f"{symbol}: {shown_budget(lower)}, {shown_budget(upper)}")
        return f"{self.name} ({'; '.join(groups)})"


NOTIONS: dict[str, type[Notion]] = {}
"""Every notion by its name, in the order in which messages list them."""

AnyNotion = TypeVar("AnyNotion", bound=Notion)


def register(kind: type[AnyNotion]) -> type[AnyNotion]:
    """Make a notion known to files, the command line and comparisons."""
    if kind.name in NOTIONS:
        # An error of the programmer, so not an `InputError`.
        raise ValueError(f"there is a notion {kind.name!r} already")
    NOTIONS[kind.name] = kind
    return kind


@dataclass(frozen=True)
class _TwoSided(Notion):
    """A notion with a budget for each side."""

    mean: ClassVar[Mean | None] = None
    eps_l: float
    # The default lets the constructor explain a missing second budget in its own words.
    eps_u: float = cast("float", None)

    def __post_init__(self) -> None:
        # Read through `vars`, because by its type the field is never None.
        if vars(self)["eps_u"] is None:
            kind = type(self).__name__
            raise InputError(
                f"{kind} has two budgets: write {kind}(eps_l=.., eps_u=..), or "
                f"{kind}.from_epsilon(epsilon, lam=0.5)"
            )
        super().__post_init__()

    @property
    def limits(self) -> Limits:
        """Bounds on the mean of every output where the notion has one, else on its lifts."""
        if self.mean is None:
            return super().limits
        return MeanLimits(self.mean, self.eps_l, self.eps_u)

    @classmethod
    def from_epsilon(
        cls, epsilon: float, lam: float = DEFAULT_LAM, *order: float, **alpha: float
    ) -> Self:
        """eps_l = lam * epsilon and eps_u = (1 - lam) * epsilon, in double arithmetic.

        An order follows, by position or by name, where the notion has one.
        """
        return cls(*split(epsilon, lam), *order, **alpha)


@register
@dataclass(frozen=True)
class ALIP(_TwoSided):
    """Asymmetric local information privacy (Zarrabian et al. 2023, Definition 3).

    ``exp(-eps_l) <= l(s, y) <= exp(eps_u)`` for every sensitive s and output y. One of the two
    budgets may be ``inf``, not both.
    """

    name: ClassVar[str] = "alip"

    @property
    def one_sided(self) -> Notion | None:
        """`MaxLift` or `MinLift` where one side is free."""
        if math.isinf(self.eps_l):
            return MaxLift(self.eps_u, symbol_budgets=self.symbol_budgets)
        if math.isinf(self.eps_u):
            return MinLift(self.eps_l, symbol_budgets=self.symbol_budgets)
        return None


@register
@dataclass(frozen=True)
class LIP(Notion):
    """Local information privacy: ALIP(epsilon, epsilon) (Zarrabian et al. 2023, Definition 1)."""

    name: ClassVar[str] = "lip"
    epsilon: float


@register
@dataclass(frozen=True)
class LDP(Notion):
    """Local differential privacy with respect to S (Zarrabian et al. 2023, Definition 2).

    ``P(y | s) <= exp(epsilon) P(y | s')`` for all s, s' and y. As P(y|s) = P(y) l(s, y), this is a
    bound on the ratio of two lifts of an output, and does not depend on P(s).
    """

    name: ClassVar[str] = "ldp"
    epsilon: float

    @property
    def limits(self) -> LiftLimits:
        """A bound on the ratio of the largest lift of every output to its smallest one."""
        return LiftLimits(ratio=self.epsilon)


@register
@dataclass(frozen=True)
class MaxLift(Notion):
    """The upper side of ALIP alone, ``l(s, y) <= exp(eps_u)``.

    eps_u is the pointwise maximal leakage of S.
    """

    name: ClassVar[str] = "max-lift"
    eps_u: float


@register
@dataclass(frozen=True)
class MinLift(Notion):
    """The lower side of ALIP alone: no output makes any s less likely than exp(-eps_l) times."""

    name: ClassVar[str] = "min-lift"
    eps_l: float


@register
@dataclass(frozen=True)
class L1Lift(_TwoSided):
    """The l1-lift and its inverse.

    Zarrabian et al. 2023, Definitions 5 and 6, with the bounds of Section 6.2:
    ``sum_s P(s) |l - 1| <= exp(eps_u) - 1`` and ``sum_s P(s) |1/l - 1| <= exp(eps_l) - 1`` on every
    output. One of the two budgets may be ``inf``; ``eps_l = inf`` drops the inverse.
    """

    name: ClassVar[str] = "l1"
    mean: ClassVar[Mean] = DistanceMean("l1", 1)


@register
@dataclass(frozen=True)
class Chi2Lift(_TwoSided):
    """The chi2-lift and its inverse.

    Zarrabian et al. 2023, Definitions 5 and 6, with the bounds of Section 6.2:
    ``sum_s P(s) (l - 1)^2 <= (exp(eps_u) - 1)^2`` and ``sum_s P(s) (1/l - 1)^2 <= (exp(eps_l) -
    1)^2`` on every output. One of the two budgets may be ``inf``; ``eps_l = inf`` drops the
    inverse.
    """

    name: ClassVar[str] = "chi2"
    mean: ClassVar[Mean] = DistanceMean("chi2", 2)


@register
@dataclass(frozen=True)
class AlphaLift(_TwoSided):
    """The alpha-lift and its inverse.

    Zarrabian et al. 2023, Definitions 5 and 6, with the bounds of Section 6.2:
    ``(sum_s P(s) l^alpha)^(1/alpha) <= exp(eps_u)`` and the same of 1/l with eps_l, on every
    output, for an alpha above 1; ``alpha = inf`` is the largest lift, so the notion is then
    ALIP(eps_l, eps_u). One of the two budgets may be ``inf``; ``eps_l = inf`` drops the inverse.
    """

    name: ClassVar[str] = "alpha"
    alpha: float = DEFAULT_ALPHA

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    @property
    def limits(self) -> Limits:
        """Bounds on the means of every output, or on its lifts for an infinite alpha."""
        if math.isinf(self.alpha):
            # The mean of infinite order is the largest lift.
            return super().limits
        return MeanLimits(PowerMean(self.alpha), self.eps_l, self.eps_u)


@register
@dataclass(frozen=True)
class KL(_TwoSided):
    """The Kullback-Leibler divergence of every output, in both directions, in nats.

    ``sum_s P(s) l log l <= eps_u``, the divergence of P(S|y) from P(S), and ``sum_s P(s) log(1/l)
    <= eps_l``, that of P(S) from P(S|y), on every output. One of the two budgets may be ``inf``;
    ``eps_l = inf`` leaves the divergence of P(S|y) from P(S) alone.
    """

    name: ClassVar[str] = "kl"
    mean: ClassVar[Mean] = DivergenceMean()


def to_record(notion: Notion) -> dict[str, object]:
    """The notion as the channel file writes it: its name and its budgets (nats) as given."""
    return {"name": notion.name, **notion.values()}


def from_record(record: Mapping[str, object]) -> Notion:
    """The notion that `to_record` wrote; infinities may be the string "inf"."""
    # The record comes from a file, so nothing in it is as expected before it is checked.
    name = record.get("name")
    if not isinstance(name, str) or name not in NOTIONS:
        raise InputError(
            f"notion {name!r} is not known; use one of {', '.join(NOTIONS)}"
        )
    kind = NOTIONS[name]
    expected = kind.parameters()
    values: dict[str, Any] = {key: record[key] for key in record if key != "name"}
    # Exactly: a budget that is not understood must not be passed over.
    if sorted(values) != sorted(expected):
        raise InputError(
            f"notion {name} needs exactly {' and '.join(expected)}, not "
            f"{', '.join(values) or 'nothing'}"
        )
    # JSON has no infinity, so files write it as a text; no other text is a number.
    for key, value in values.items():
        if value == "inf":
            values[key] = math.inf
        elif isinstance(value, str):
            raise InputError(f"{key} ({value!r}) must be a number of nats, not text")
    return kind(**values)
