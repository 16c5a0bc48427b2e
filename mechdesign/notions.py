"""Privacy notions as plain frozen records (Zarrabian, Ding and Sadeghi 2023, Definitions 1 to 3).

A notion knows its budgets and nothing else: `posteriors` turns it into a set of posteriors, and
`auditing` checks it exactly. Budgets are natural logarithms (nats).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

from mechdesign.errors import InputError

LARGEST_BUDGET = 700.0
"""exp of a larger budget overflows a double; beyond it a budget is as good as absent: say inf."""

DEFAULT_LAM = 0.5
"""Share of epsilon that goes to the lower side unless told otherwise."""


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


@dataclass(frozen=True)
class LiftLimits:
    """What a lift notion demands of every output, in nats; ``inf`` where a side is free.

    ``exp(-lower) <= Psi(y)``, ``Lambda(y) <= exp(upper)`` and ``Lambda(y) / Psi(y) <= exp(ratio)``.
    """

    lower: float = math.inf
    upper: float = math.inf
    ratio: float = math.inf


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
        object.__setattr__(self, "eps_l", check_budget("eps_l", self.eps_l))
        object.__setattr__(self, "eps_u", check_budget("eps_u", self.eps_u))
        if math.isinf(self.eps_l) and math.isinf(self.eps_u):
            raise InputError("eps_l and eps_u are both inf: nothing would be protected; give at least one budget")

    @classmethod
    def from_epsilon(cls, epsilon: float, lam: float = DEFAULT_LAM) -> ALIP:
        """eps_l = lam * epsilon and eps_u = (1 - lam) * epsilon, in double arithmetic."""
        epsilon = check_budget("epsilon", epsilon, allow_infinite=False)
        lam = check_lam(lam)
        return cls(lam * epsilon, (1.0 - lam) * epsilon)

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


Notion: TypeAlias = ALIP | LIP | LDP | MaxLift | MinLift

NOTIONS: dict[str, type[Notion]] = {c.name: c for c in (ALIP, LIP, LDP, MaxLift, MinLift)}


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
        raise InputError(f"notion {name} needs exactly {' and '.join(expected)}, not {', '.join(given) or 'nothing'}")
    return kind(*(math.inf if record[key] == "inf" else record[key] for key in expected))  # type: ignore[arg-type]
