"""--notion, --epsilon, --lam, --eps-l, --eps-u: from what was typed to a notion, or a refusal."""

from __future__ import annotations

import math

from mechdesign.errors import InputError
from mechdesign.notions import ALIP, DEFAULT_LAM, LARGEST_BUDGET, LDP, LIP, NOTIONS, MaxLift, MinLift, Notion

PLANNED = ("l1", "chi2", "alpha")
"""Notions of the interface that this version cannot design for yet."""


def notion_of(
    notion: str,
    *,
    epsilon: str | None = None,
    lam: str | None = None,
    eps_l: str | None = None,
    eps_u: str | None = None,
) -> Notion:
    """The notion that these options describe; budgets are texts as typed.

    Raises
    ------
    InputError
        On an unknown notion, a missing, surplus or contradictory option, or a value out of range.
    """
    if notion in PLANNED and notion not in NOTIONS:
        raise InputError(f"--notion {notion} is not built in this version; use one of {', '.join(NOTIONS)}")
    if notion not in NOTIONS:
        raise InputError(f"--notion {notion!r} is not known; use one of {', '.join(NOTIONS)}")
    if notion == "alip":
        return _alip(epsilon, lam, eps_l, eps_u)
    if lam is not None:
        raise InputError(
            f"--lam splits the budget of alip; --notion {notion} takes --epsilon whole: drop --lam"
        )
    return _one_budget(notion, epsilon, eps_l, eps_u)


def _alip(epsilon: str | None, lam: str | None, eps_l: str | None, eps_u: str | None) -> ALIP:
    if epsilon is not None:
        if eps_l is not None or eps_u is not None:
            raise InputError("give either --epsilon (with --lam) or --eps-l and --eps-u, not both")
        share = DEFAULT_LAM if lam is None else _number("--lam", lam, "strictly between 0 and 1")
        return ALIP.from_epsilon(_budget("--epsilon", epsilon), share)
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
    return ALIP(eps_l=_budget("--eps-l", eps_l), eps_u=_budget("--eps-u", eps_u))


def _one_budget(notion: str, epsilon: str | None, eps_l: str | None, eps_u: str | None) -> Notion:
    own = {"max-lift": ("--eps-u", eps_u), "min-lift": ("--eps-l", eps_l)}.get(notion)
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
    budget = _budget(option, text)
    makers: dict[str, type[LIP | LDP | MaxLift | MinLift]] = {
        "lip": LIP,
        "ldp": LDP,
        "max-lift": MaxLift,
        "min-lift": MinLift,
    }
    return makers[notion](budget)


def _number(option: str, text: str, allowed: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} ({text!r}) is not a number; it must be {allowed}") from None


def _budget(option: str, text: str) -> float:
    allowed = f"a number of nats in (0, {LARGEST_BUDGET:g}]"
    value = _number(option, text, allowed)
    if math.isinf(value) and text.strip().lower().lstrip("+-") not in ("inf", "infinity"):
        raise InputError(f"{option} ({text}) is not {allowed}")  # 1e400 overflows; it does not say inf
    return value
