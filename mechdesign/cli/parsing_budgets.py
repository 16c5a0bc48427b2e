"""Turns the typed options of a budget into a notion, or refuses them in one sentence.

`notion_of` tries the ways to say a budget in this order. All come to nats:

- in words (`_in_words`): --at-most-times 2 is eps_u = ln 2, --at-least-times 0.5 is eps_l = ln 2;
- for a notion of two sides (`_sides`), --epsilon 1 --lam 0.3, which is split into eps_l = 0.3 and
  eps_u = 0.7, or --eps-l 0.3 --eps-u 0.7;
- for a notion of one number (`_one_budget`), --epsilon 1.

`own_budgets` reads the budgets of single sensitive symbols. The notion itself checks the ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mechdesign.cli.parsing import any_number
from mechdesign.core.arguments import at_least_times, at_most_times
from mechdesign.core.errors import InputError
from mechdesign.notions import DEFAULT_LAM, LARGEST_BUDGET, NOTIONS, Notion, split


def own_budgets(texts: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    """Values SYMBOL=EPS_L,EPS_U as a mapping; the symbol may have equals signs and commas."""
    budgets: dict[str, tuple[float, float]] = {}
    for text in texts or ():
        # Two numbers have no "=", so the last one ends the symbol.
        symbol, equals, sides = text.rpartition("=")
        lower, comma, upper = sides.partition(",")
        if not (symbol and equals and comma):
            raise InputError(
                f"--budget {text!r} must be SYMBOL=EPS_L,EPS_U, as in HIV=0.1,0.1 (or inf)"
            )
        if symbol in budgets:
            raise InputError(f"--budget names {symbol!r} twice")
        budgets[symbol] = _budget("--budget", lower), _budget("--budget", upper)
    return budgets


def notion_of(
    notion: str, *, upper: float | None = None, **typed: str | None
) -> Notion:
    """The notion that the fields of `BudgetOptions` describe.

    Parameters
    ----------
    upper
        A further eps_u, which --max-posterior came to; the smaller one of both counts.
    typed
        The fields as they were typed, None for those that were not.
    """
    # Each way refuses the options of the others: of two budgets nobody could say which one holds.
    if notion not in NOTIONS:
        raise InputError(
            f"--notion {notion!r} is not known; use one of {', '.join(NOTIONS)}"
        )
    kind = NOTIONS[notion]
    budget = _TypedBudget.of(typed)
    order = _order(kind, typed.get("alpha"))
    if budget.is_in_words or upper is not None:
        return _in_words(kind, budget, upper, order)
    if kind.takes_lam():
        eps_l, eps_u = _sides(budget)
        sides: dict[str, Any] = {"eps_l": eps_l, "eps_u": eps_u}
        return kind(**sides, **order)
    if budget.lam is not None:
        *others, last = [name for name, other in NOTIONS.items() if other.takes_lam()]
        raise InputError(
            f"--lam splits the budget of {', '.join(others)} and {last}; --notion {notion} "
            f"takes --epsilon whole: "
            "drop --lam"
        )
    return _one_budget(kind, budget)


class _TypedBudget(NamedTuple):
    """The options of a budget as they were typed; None for those that were not."""

    epsilon: str | None
    lam: str | None
    eps_l: str | None
    eps_u: str | None
    at_most_times: str | None
    at_least_times: str | None

    @classmethod
    def of(cls, typed: Mapping[str, str | None]) -> _TypedBudget:
        """Those among the fields of `BudgetOptions`."""
        return cls(*map(typed.get, cls._fields))

    @property
    def is_in_words(self) -> bool:
        """Whether a side is given as a factor, and not in nats."""
        return self.at_most_times is not None or self.at_least_times is not None


def _order(kind: type[Notion], alpha: str | None) -> dict[str, Any]:
    """The order of alpha-lift as a keyword; none where it was not typed."""
    if alpha is None:
        return {}
    if not kind.has_order():
        owners = [name for name, other in NOTIONS.items() if other.has_order()]
        raise InputError(
            f"--alpha is the order of --notion {' and '.join(owners)}; {kind.name} has none: drop "
            "--alpha"
        )
    beyond = "too large for a double; say inf for the largest lift"
    return {"alpha": any_number("--alpha", alpha, "above 1, or inf", beyond)}


def _in_words(
    kind: type[Notion],
    budget: _TypedBudget,
    upper: float | None,
    order: dict[str, Any],
) -> Notion:
    """A notion by the factors of beliefs; a side that is not given in words may be in nats."""
    from mechdesign.mechanisms.budget import in_words

    if budget.epsilon is not None or budget.lam is not None:
        raise InputError(
            "--epsilon and --lam say the whole budget: leave them out, or the words"
        )
    most = budget.at_most_times
    least = budget.at_least_times
    above = _side("--eps-u", budget.eps_u, "--at-most-times", most, at_most_times)
    below = _side("--eps-l", budget.eps_l, "--at-least-times", least, at_least_times)
    # Both bounds hold, so the smaller one is the budget.
    if above is None or (upper is not None and upper < above):
        above = upper
    return in_words(kind, lower=below, upper=above, **order)


def _sides(budget: _TypedBudget) -> tuple[float, float]:
    """eps_l and eps_u (nats) of a two-sided notion; the notion itself checks their range."""
    # --epsilon is the sum of both sides, so with a side beside it the budget would be said twice. A
    # missing side is refused, not taken for free: that is said with inf.
    eps_l = budget.eps_l
    eps_u = budget.eps_u
    if budget.epsilon is not None:
        if eps_l is not None or eps_u is not None:
            raise InputError(
                "give either --epsilon (with --lam) or --eps-l and --eps-u, not both"
            )
        share = DEFAULT_LAM
        if budget.lam is not None:
            share = any_number("--lam", budget.lam, "strictly between 0 and 1")
        return split(_budget("--epsilon", budget.epsilon), share)
    if budget.lam is not None:
        raise InputError(
            "--lam splits --epsilon: give --epsilon too, or --eps-l and --eps-u without --lam"
        )
    if eps_l is None and eps_u is None:
        raise InputError(
            "no budget given: use --epsilon E (with --lam L), or --eps-l E and --eps-u E, or "
            "words: --at-most-times 2"
        )
    if eps_l is None or eps_u is None:
        if eps_u is None:
            given, other, free = "--eps-l", "--eps-u", "upper"
        else:
            given, other, free = "--eps-u", "--eps-l", "lower"
        raise InputError(
            f"{given} is given without {other}: give both; {other} inf leaves the {free} side free"
        )
    return _budget("--eps-l", eps_l), _budget("--eps-u", eps_u)


def _side(
    option: str,
    nats: str | None,
    spoken: str,
    words: str | None,
    meant: Callable[[object], float],
) -> float | None:
    """One side of the budget (nats), given in nats or in words; None if it is not given.

    `meant` turns words into nats, such as "2" of --at-most-times into ln 2.
    """
    if words is None:
        if nats is None:
            return None
        return _budget(option, nats)
    if nats is not None:
        raise InputError(
            f"{option} and {spoken} are the same side of the budget: give one of them"
        )
    return meant(words)


def _one_budget(kind: type[Notion], budget: _TypedBudget) -> Notion:
    """A notion with one budget, under the name --epsilon or the name of its own side."""
    typed: dict[str, str] = {}
    for option, text in (
        ("--epsilon", budget.epsilon),
        ("--eps-l", budget.eps_l),
        ("--eps-u", budget.eps_u),
    ):
        if text is not None:
            typed[option] = text
    # max-lift bounds the upper side alone and min-lift the lower one; lip and ldp have one budget
    # for both sides.
    other_name = {"eps_u": "--eps-u", "eps_l": "--eps-l"}.get(
        kind.budgets()[0], "--epsilon"
    )
    for option in typed:
        if option not in ("--epsilon", other_name):
            raise InputError(
                f"{option} does not belong to --notion {kind.name}: give --epsilon alone"
            )
    if len(typed) > 1:
        raise InputError(
            f"--epsilon and {other_name} are the same budget of --notion {kind.name}: "
            "give one of them"
        )
    if not typed:
        raise InputError(f"no budget given: --notion {kind.name} needs --epsilon E")
    ((option, text),) = typed.items()
    return kind.at(_budget(option, text))


def _budget(option: str, text: str) -> float:
    """A budget in nats; the notion checks its range."""
    return any_number(option, text, f"a number of nats in (0, {LARGEST_BUDGET:g}]")
