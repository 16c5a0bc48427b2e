"""What budgets, shares and orders may be; budgets are natural logarithms (nats)."""

from __future__ import annotations

import math

from mechdesign.errors import InputError

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
