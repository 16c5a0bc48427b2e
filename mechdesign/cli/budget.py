"""--notion, --epsilon, --lam, --eps-l, --eps-u, --alpha: from what was typed to a notion, or a refusal."""

from __future__ import annotations

import math
from collections.abc import Callable

from mechdesign.core.errors import InputError
from mechdesign.notions import (
    DEFAULT_LAM,
    LARGEST_BUDGET,
    NOTIONS,
    Notion,
    split,
)


def notion_of(
    notion: str,
    *,
    epsilon: str | None = None,
    lam: str | None = None,
    eps_l: str | None = None,
    eps_u: str | None = None,
    alpha: str | None = None,
) -> Notion:
    """The notion that these options describe; budgets are texts as typed.

    Raises
    ------
    InputError
        On an unknown notion, a missing, surplus or contradictory option, or a value out of range.
    """
    if notion not in NOTIONS:
        raise InputError(f"--notion {notion!r} is not known; use one of {', '.join(NOTIONS)}")
    kind = NOTIONS[notion]
    if alpha is not None and not kind.has_order():
        owners = _names(lambda other: other.has_order())
        raise InputError(
            f"--alpha is the order of --notion {owners}; --notion {notion} has none: drop --alpha"
        )
    order = {} if alpha is None else {"alpha": _order(alpha)}
    if kind.takes_lam():
        return kind(**dict(zip(("eps_l", "eps_u"), _sides(epsilon, lam, eps_l, eps_u), strict=True)), **order)
    if lam is not None:
        owners = _names(lambda other: other.takes_lam())
        raise InputError(
            f"--lam splits the budget of {owners}; --notion {notion} takes --epsilon whole: drop --lam"
        )
    return _one_budget(kind, epsilon, eps_l, eps_u)


def _names(having: Callable[[type[Notion]], bool]) -> str:
    """``alip, l1 and chi2``."""
    *others, last = [name for name, kind in NOTIONS.items() if having(kind)]
    return f"{', '.join(others)} and {last}" if others else last


def _sides(epsilon: str | None, lam: str | None, eps_l: str | None, eps_u: str | None) -> tuple[float, float]:
    """eps_l and eps_u of a two-sided notion, itself not yet checked."""
    if epsilon is not None:
        if eps_l is not None or eps_u is not None:
            raise InputError("give either --epsilon (with --lam) or --eps-l and --eps-u, not both")
        share = DEFAULT_LAM if lam is None else _number("--lam", lam, "strictly between 0 and 1")
        return split(_budget("--epsilon", epsilon), share)
    if lam is not None:
        raise InputError("--lam splits --epsilon: give --epsilon too, or --eps-l and --eps-u without --lam")
    if eps_l is None and eps_u is None:
        raise InputError("no budget given: use --epsilon E (with --lam L), or --eps-l E and --eps-u E")
    if eps_u is None:
        raise InputError(
            "--eps-l is given without --eps-u: give both; --eps-u inf leaves the upper side free"
        )
    if eps_l is None:
        raise InputError(
            "--eps-u is given without --eps-l: give both; --eps-l inf leaves the lower side free"
        )
    return _budget("--eps-l", eps_l), _budget("--eps-u", eps_u)


def _one_budget(kind: type[Notion], epsilon: str | None, eps_l: str | None, eps_u: str | None) -> Notion:
    notion = kind.name
    own = {"eps_u": ("--eps-u", eps_u), "eps_l": ("--eps-l", eps_l)}.get(kind.budgets()[0])
    for option, given in (("--eps-l", eps_l), ("--eps-u", eps_u)):
        if given is not None and (own is None or own[0] != option):
            raise InputError(f"{option} does not belong to --notion {notion}: give --epsilon alone")
    option, text = ("--epsilon", epsilon)
    if own is not None and own[1] is not None:
        if epsilon is not None:
            raise InputError(
                f"--epsilon and {own[0]} are the same budget of --notion {notion}: give one of them"
            )
        option, text = own
    if text is None:
        raise InputError(f"no budget given: --notion {notion} needs --epsilon E")
    return kind.at(_budget(option, text))


def _order(text: str) -> float:
    value = _number("--alpha", text, "above 1, or inf")
    if math.isinf(value) and not _says_infinity(text):
        raise InputError(f"--alpha ({text}) is too large for a double; say inf for the largest lift")
    return value


def _says_infinity(text: str) -> bool:
    return text.strip().lower().lstrip("+-") in ("inf", "infinity")  # 1e400 overflows; it does not say inf


def _number(option: str, text: str, allowed: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} ({text!r}) is not a number; it must be {allowed}") from None


def _budget(option: str, text: str) -> float:
    allowed = f"a number of nats in (0, {LARGEST_BUDGET:g}]"
    value = _number(option, text, allowed)
    if math.isinf(value) and not _says_infinity(text):
        raise InputError(f"{option} ({text}) is not {allowed}")
    return value
