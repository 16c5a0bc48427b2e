"""Privacy notions as plain frozen records (Zarrabian, Ding and Sadeghi 2023, Definitions 1 to 3, 5 and 6).

A notion knows its budgets and nothing else: `posteriors` turns it into a set of posteriors, and
`auditing` checks it exactly. Budgets are natural logarithms (nats).

What budgets, shares and orders may be; budgets are natural logarithms (nats).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, TypeAlias

from mechdesign.core.errors import InputError

LARGEST_BUDGET = 700.0
"""exp of a larger budget overflows a double; beyond it a budget is as good as absent: say inf."""

DEFAULT_LAM = 0.5
"""Share of epsilon that goes to the lower side unless told otherwise."""

DEFAULT_ALPHA = 2.0
"""Order of the alpha-lift unless told otherwise: the smallest of the paper's Figure 13."""


def check_budget(name: str, value: float, *, allow_infinite: bool = True) -> float:
    """Return `value` as a float if it is a usable budget in nats.

    Raises
    ------
    InputError
        If it is not a number, not positive, NaN, or finite and above `LARGEST_BUDGET`.
    """
    if isinstance(value, bool):
        raise InputError(f"{name} ({value!r}) must be a number of nats in (0, {LARGEST_BUDGET:g}]")
    try:
        budget = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} ({value!r}) must be a number of nats in (0, {LARGEST_BUDGET:g}]") from None
    if budget == math.inf:
        if allow_infinite:
            return budget
        raise InputError(f"{name} (inf) must be finite, in (0, {LARGEST_BUDGET:g}]")
    if math.isnan(budget) or budget <= 0.0:
        raise InputError(f"{name} ({budget:g}) must be positive, in (0, {LARGEST_BUDGET:g}]")
    if budget > LARGEST_BUDGET:
        raise InputError(
            f"{name} ({budget:g}) must be at most {LARGEST_BUDGET:g}"
            + ("; to drop this side say inf" if allow_infinite else "")
        )
    return budget


def check_lam(lam: float) -> float:
    """Return `lam` as a float if 0 < lam < 1, else raise InputError."""
    try:
        value = float(lam)
    except (TypeError, ValueError):
        raise InputError(f"lam ({lam!r}) must be a number strictly between 0 and 1") from None
    if isinstance(lam, bool) or not 0.0 < value < 1.0:
        raise InputError(f"lam ({value:g}) must be strictly between 0 and 1")
    return value


def split(epsilon: float, lam: float) -> tuple[float, float]:
    """(eps_l, eps_u) = (lam * epsilon, (1 - lam) * epsilon), in double arithmetic, both checked."""
    epsilon = check_budget("epsilon", epsilon, allow_infinite=False)
    lam = check_lam(lam)
    return lam * epsilon, (1.0 - lam) * epsilon


def check_alpha(alpha: float) -> float:
    """Return `alpha` as a float if it is above 1 (inf included), else raise InputError."""
    try:
        value = float(alpha)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"alpha ({alpha!r}) must be a number above 1, or inf") from None
    if isinstance(alpha, bool) or not value > 1.0:
        raise InputError(f"alpha ({value:g}) must be above 1 (inf is the largest lift)")
    return value


__all__ = [
    "ALIP",
    "DEFAULT_ALPHA",
    "DEFAULT_LAM",
    "LARGEST_BUDGET",
    "LDP",
    "LIP",
    "NOTIONS",
    "AlphaLift",
    "Chi2Lift",
    "L1Lift",
    "LiftLimits",
    "Limits",
    "MaxLift",
    "MeanLimits",
    "MinLift",
    "Notion",
    "check_alpha",
    "check_budget",
    "check_lam",
    "from_record",
    "to_record",
]


@dataclass(frozen=True)
class LiftLimits:
    """What a lift notion demands of every output, in nats; ``inf`` where a side is free.

    ``exp(-lower) <= Psi(y)``, ``Lambda(y) <= exp(upper)`` and ``Lambda(y) / Psi(y) <= exp(ratio)``.
    """

    lower: float = math.inf
    upper: float = math.inf
    ratio: float = math.inf


Mean: TypeAlias = Literal["l1", "chi2", "alpha"]


@dataclass(frozen=True)
class MeanLimits:
    """What a notion on averages over S demands of every output, in nats; ``inf`` where a side is free.

    With f the mean of `kind` (Zarrabian et al. 2023, Definitions 5 and 6): f(l) is bounded by `upper` and
    f(1/l) by `lower`, where a budget e bounds sum_s P(s) |l - 1| by exp(e) - 1 (l1), sum_s P(s) (l - 1)^2 by
    (exp(e) - 1)^2 (chi2), and (sum_s P(s) l^order)^(1/order) by exp(e) (alpha).
    """

    kind: Mean
    lower: float = math.inf
    upper: float = math.inf
    order: float = math.nan


Limits: TypeAlias = LiftLimits | MeanLimits


@dataclass(frozen=True)
class ALIP:
    """Asymmetric local information privacy (Zarrabian et al. 2023, Definition 3).

    ``exp(-eps_l) <= l(s, y) <= exp(eps_u)`` for every sensitive s and output y. One of the two
    budgets may be ``inf``, not both.
    """

    name: ClassVar[str] = "alip"
    eps_l: float
    eps_u: float

    def __post_init__(self) -> None:
        _check_sides(self)

    @classmethod
    def from_epsilon(cls, epsilon: float, lam: float = DEFAULT_LAM) -> ALIP:
        """eps_l = lam * epsilon and eps_u = (1 - lam) * epsilon, in double arithmetic."""
        return cls(*split(epsilon, lam))

    @property
    def limits(self) -> LiftLimits:
        """Bounds on the lift of every output."""
        return LiftLimits(lower=self.eps_l, upper=self.eps_u)


@dataclass(frozen=True)
class LIP:
    """Local information privacy: ALIP(epsilon, epsilon) (Zarrabian et al. 2023, Definition 1)."""

    name: ClassVar[str] = "lip"
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_budget("epsilon", self.epsilon, allow_infinite=False))

    @property
    def limits(self) -> LiftLimits:
        """Bounds on the lift of every output."""
        return LiftLimits(lower=self.epsilon, upper=self.epsilon)


@dataclass(frozen=True)
class LDP:
    """Local differential privacy with respect to S (Zarrabian et al. 2023, Definition 2).

    ``P(y | s) <= exp(epsilon) P(y | s')`` for all s, s' and y.
    """

    name: ClassVar[str] = "ldp"
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_budget("epsilon", self.epsilon, allow_infinite=False))

    @property
    def limits(self) -> LiftLimits:
        """Bounds on the lift of every output."""
        return LiftLimits(ratio=self.epsilon)


@dataclass(frozen=True)
class MaxLift:
    """The upper side of ALIP alone; eps_u is the pointwise maximal leakage of S."""

    name: ClassVar[str] = "max-lift"
    eps_u: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps_u", check_budget("eps_u", self.eps_u, allow_infinite=False))

    @property
    def limits(self) -> LiftLimits:
        """Bounds on the lift of every output."""
        return LiftLimits(upper=self.eps_u)


@dataclass(frozen=True)
class MinLift:
    """The lower side of ALIP alone: no output makes any s less likely than exp(-eps_l) times."""

    name: ClassVar[str] = "min-lift"
    eps_l: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps_l", check_budget("eps_l", self.eps_l, allow_infinite=False))

    @property
    def limits(self) -> LiftLimits:
        """Bounds on the lift of every output."""
        return LiftLimits(lower=self.eps_l)


@dataclass(frozen=True)
class L1Lift:
    """The l1-lift and its inverse (Zarrabian et al. 2023, Definitions 5 and 6, bounds of Section 6.2).

    ``sum_s P(s) |l - 1| <= exp(eps_u) - 1`` and ``sum_s P(s) |1/l - 1| <= exp(eps_l) - 1`` on every output.
    One of the two budgets may be ``inf``; ``eps_l = inf`` drops the inverse.
    """

    name: ClassVar[str] = "l1"
    eps_l: float
    eps_u: float

    def __post_init__(self) -> None:
        _check_sides(self)

    @classmethod
    def from_epsilon(cls, epsilon: float, lam: float = DEFAULT_LAM) -> L1Lift:
        """eps_l = lam * epsilon and eps_u = (1 - lam) * epsilon, in double arithmetic."""
        return cls(*split(epsilon, lam))

    @property
    def limits(self) -> MeanLimits:
        """Bounds on the means of every output."""
        return MeanLimits("l1", lower=self.eps_l, upper=self.eps_u)


@dataclass(frozen=True)
class Chi2Lift:
    """The chi2-lift and its inverse (Zarrabian et al. 2023, Definitions 5 and 6, bounds of Section 6.2).

    ``sum_s P(s) (l - 1)^2 <= (exp(eps_u) - 1)^2`` and ``sum_s P(s) (1/l - 1)^2 <= (exp(eps_l) - 1)^2`` on
    every output. One of the two budgets may be ``inf``; ``eps_l = inf`` drops the inverse.
    """

    name: ClassVar[str] = "chi2"
    eps_l: float
    eps_u: float

    def __post_init__(self) -> None:
        _check_sides(self)

    @classmethod
    def from_epsilon(cls, epsilon: float, lam: float = DEFAULT_LAM) -> Chi2Lift:
        """eps_l = lam * epsilon and eps_u = (1 - lam) * epsilon, in double arithmetic."""
        return cls(*split(epsilon, lam))

    @property
    def limits(self) -> MeanLimits:
        """Bounds on the means of every output."""
        return MeanLimits("chi2", lower=self.eps_l, upper=self.eps_u)


@dataclass(frozen=True)
class AlphaLift:
    """The alpha-lift and its inverse (Zarrabian et al. 2023, Definitions 5 and 6, bounds of Section 6.2).

    ``(sum_s P(s) l^alpha)^(1/alpha) <= exp(eps_u)`` and the same of 1/l with eps_l, on every output, for an
    alpha above 1; ``alpha = inf`` is the largest lift, so the notion is then ALIP(eps_l, eps_u). One of the
    two budgets may be ``inf``; ``eps_l = inf`` drops the inverse.
    """

    name: ClassVar[str] = "alpha"
    eps_l: float
    eps_u: float
    alpha: float = DEFAULT_ALPHA

    def __post_init__(self) -> None:
        _check_sides(self)
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    @classmethod
    def from_epsilon(
        cls, epsilon: float, lam: float = DEFAULT_LAM, alpha: float = DEFAULT_ALPHA
    ) -> AlphaLift:
        """eps_l = lam * epsilon and eps_u = (1 - lam) * epsilon, in double arithmetic."""
        return cls(*split(epsilon, lam), alpha)

    @property
    def limits(self) -> Limits:
        """Bounds on the means of every output, or on its lifts for an infinite alpha."""
        if math.isinf(self.alpha):
            return LiftLimits(lower=self.eps_l, upper=self.eps_u)
        return MeanLimits("alpha", lower=self.eps_l, upper=self.eps_u, order=self.alpha)


def _check_sides(notion: ALIP | L1Lift | Chi2Lift | AlphaLift) -> None:
    for side in ("eps_l", "eps_u"):
        object.__setattr__(notion, side, check_budget(side, getattr(notion, side)))
    if math.isinf(notion.eps_l) and math.isinf(notion.eps_u):
        raise InputError("eps_l and eps_u are both inf: nothing would be protected; give at least one budget")


Notion: TypeAlias = ALIP | LIP | LDP | MaxLift | MinLift | L1Lift | Chi2Lift | AlphaLift

NOTIONS: dict[str, type[Notion]] = {
    c.name: c for c in (ALIP, LIP, LDP, MaxLift, MinLift, L1Lift, Chi2Lift, AlphaLift)
}


def to_record(notion: Notion) -> dict[str, object]:
    """The notion as the channel file writes it: its name and its budgets (nats) as given."""
    return {"name": notion.name, **{f.name: getattr(notion, f.name) for f in fields(notion)}}


def from_record(record: Mapping[str, object]) -> Notion:
    """The notion that `to_record` wrote; infinities may be the string "inf".

    Raises
    ------
    InputError
        On an unknown name, a missing or a surplus budget, or a budget out of range.
    """
    name = record.get("name")
    if not isinstance(name, str) or name not in NOTIONS:
        raise InputError(f"notion {name!r} is not known; use one of {', '.join(NOTIONS)}")
    kind = NOTIONS[name]
    expected = [f.name for f in fields(kind)]
    given = [key for key in record if key != "name"]
    if sorted(given) != sorted(expected):
        raise InputError(
            f"notion {name} needs exactly {' and '.join(expected)}, not {', '.join(given) or 'nothing'}"
        )
    for key in given:
        if isinstance(record[key], str) and record[key] != "inf":
            raise InputError(f"{key} ({record[key]!r}) must be a number of nats, not text")
    return kind(*(math.inf if record[key] == "inf" else record[key] for key in expected))  # type: ignore[arg-type]
