"""Turns typed text into numbers, names, averages and notions, or refuses it in one sentence.

Each function takes the text of one option, or the texts of an option that may be repeated, and
raises InputError with the name of that option. Names and symbols may hold the signs of the syntax,
so each function says at which sign it cuts: ``--bin a=b=0,10,20`` at the last "=", because bins
have none, and ``--forbid a:b:c`` where both parts are symbols of the table.

*Budgets* become a notion. `notion_of` tries the ways to say a budget in this order. All come to
nats:

- in words (`_in_words`): --at-most-times 2 is eps_u = ln 2, --at-least-times 0.5 is eps_l = ln 2;
- for a notion of two sides (`_sides`), --epsilon 1 --lam 0.3, which is split into eps_l = 0.3 and
  eps_u = 0.7, or --eps-l 0.3 --eps-u 0.7;
- for a notion of one number (`_one_budget`), --epsilon 1.

`own_budgets` reads the budgets of single sensitive symbols. The notion itself checks the ranges.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from mechdesign.core.arguments import at_least_times, at_most_times
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.notions import (
    DEFAULT_LAM,
    LARGEST_BUDGET,
    LEAST_BUDGET,
    NOTIONS,
    Notion,
    split,
)


def number(option: str, text: str, *, zero: bool = False) -> float:
    """A finite positive number, or 0 where `zero` allows it."""
    try:
        value = float(text)
    except ValueError:
        # Fails every comparison below, so a word is refused like a number out of range.
        value = math.nan
    if not (0.0 < value < math.inf or (value == 0.0 and zero)):
        allowed = "a positive number"
        if zero:
            allowed = "a number of at least 0"
        raise InputError(f"{option} ({text!r}) must be {allowed}")
    return value


def averages_of(texts: Sequence[str], keep: str | None = None) -> dict[str, str | None]:
    """KIND=BUDGET, once or several times, as the mapping that `mechdesign.design` takes; KIND alone
    with `keep`.
    """
    asked: dict[str, str | None] = {}
    for text in texts:
        kind, budget = _average_of(text, keep)
        if kind in asked:
            raise InputError(f"--average {kind} is given twice: leave one of them out")
        asked[kind] = budget
    if keep is not None and len(asked) > 1:
        raise InputError(
            "--keep looks for the least average of one kind: give --average once"
        )
    return asked


def _average_of(text: str, keep: str | None) -> tuple[str, str | None]:
    """The kind and the budget of one --average; no budget where --keep looks for the least."""
    kind, equals, budget = text.partition("=")
    if keep is None:
        if not equals:
            raise InputError(
                f"--average ({text}) must be KIND=BUDGET, as in mi=0.05 or mi=25%; KIND alone goes "
                "with --keep SHARE"
            )
        return kind, budget
    if equals:
        raise InputError(
            f"--keep looks for the least average: leave the budget out (--average {kind} --keep "
            f"{keep})"
        )
    return kind, None


def columns(option: str, text: str | None) -> str | tuple[str, ...] | None:
    """A list of columns in the form that `tables.read_joint` takes.

    A text without a double quote stays as it is: the reader first looks for a column of that very
    name, and else splits it at its commas. With one it is read like a CSV line, so that names with
    commas can be crossed.
    """
    if text is None:
        return None
    is_quoted = '"' in text
    try:
        # Only a quote makes the text CSV; a lone quote in it is an error, and not part of a name.
        names = text.split(",")
        if is_quoted:
            names = next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise InputError(
            f'{option} {text!r} cannot be read ({error}); write COL, or COL,COL, or "a name, '
            f'with a comma"'
        ) from None
    if "" in names:
        raise InputError(f"{option} {text!r} contains an empty column name")
    if len(set(names)) < len(names):
        raise InputError(f"{option} {text!r} names a column twice")
    if not is_quoted:
        return text
    return tuple(names)


def codes(text: str | None) -> tuple[str, ...]:
    """The texts of --missing-codes; double quotes hold one with a comma."""
    if text is None:
        return ()
    try:
        found = next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        raise InputError(
            f"--missing-codes {text!r} cannot be read; write TEXT, or TEXT,TEXT"
        ) from None
    return tuple(code for code in found if code)


def names(option: str, texts: str | Sequence[str] | None) -> tuple[str, ...]:
    """Columns from one value of an option COL[,COL..], or from all of them."""
    if isinstance(texts, str):
        texts = [texts]
    # There may be no table yet that has a column "a,b", so an unquoted comma always separates.
    members: list[str] = []
    for text in texts or ():
        typed = columns(option, text)
        if isinstance(typed, str):
            members += typed.split(",")
        elif typed is not None:
            members += typed
    return tuple(members)


def renamed(pairs: Sequence[str] | None) -> dict[str, str]:
    """Pairs NAME=COL as a mapping."""
    names: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            raise InputError(
                f"--column {pair!r} must be NAME=COL: the channel's name, then the file's"
            )
        if name in names:
            raise InputError(f"--column names {name!r} twice")
        names[name] = column
    return names


def assignments_of(name: str, text: str) -> dict[str, str]:
    """COL=TEXT pairs, separated by commas."""
    pairs: dict[str, str] = {}
    for part in names(name, text):
        column, has_sign, cell = part.partition("=")
        if not has_sign or not column:
            raise InputError(
                f"{name} ({quoted(text)}) must be COL=TEXT pairs with commas"
            )
        pairs[column] = cell
    return pairs


def bins_of(texts: Sequence[str] | None) -> Any:
    """The argument of `Joint.binned` for the values of ``--bin [COL=]BINS``."""
    if not texts:
        return None
    # "a=b=0,10,20" are bins of the column a=b, and "0,10,20" of the one column that there is. Bins
    # hold no sign "=", so the last one ends the name.
    pairs = [text.rpartition("=") for text in texts]
    if len(texts) == 1 and not pairs[0][1]:
        return texts[0]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise InputError("several --bin must each say their column: --bin COL=BINS")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise InputError("--bin names a column twice")
    return {name: bins for name, _, bins in pairs}


def stays_of(
    texts: Sequence[str] | None, symbols: Sequence[str]
) -> dict[str, str] | None:
    """The share of each symbol from values of --stay.

    A value without a symbol is for all symbols that have none of their own.
    """
    common: str | None = None
    single: dict[str, str] = {}
    for text in texts or ():
        # A share has no "=", so the last one ends the symbol.
        symbol, equals, share = text.rpartition("=")
        is_repeated = common is not None
        if equals:
            is_repeated = symbol in single
        if is_repeated:
            raise InputError(
                "--stay gives a share twice; SHARE once for all, and SYMBOL=SHARE once for each"
            )
        if equals:
            single[symbol] = share
        else:
            common = share
    # First the share of all symbols, then over it those of single ones.
    stays: dict[str, str] = {}
    if common is not None:
        stays = dict.fromkeys(symbols, common)
    stays.update(single)
    return stays or None


def pairs_of(
    texts: Sequence[str] | None, symbols: Sequence[str]
) -> list[tuple[str, str]]:
    """Pairs FROM:TO; a symbol may contain colons itself."""
    # "a:b:c" can be a to "b:c", or "a:b" to c: the symbols of the table decide.
    known_symbols = set(symbols)
    pairs: list[tuple[str, str]] = []
    for text in texts or ():
        readings: list[tuple[str, str]] = []
        for place, sign in enumerate(text):
            if sign == ":":
                readings.append((text[:place], text[place + 1 :]))
        if not readings:
            raise InputError(
                f"--forbid {text!r} must be FROM:TO, two symbols with a colon between them"
            )
        fitting = [pair for pair in readings if known_symbols.issuperset(pair)]
        if len(fitting) > 1:
            raise InputError(
                f"--forbid {text!r} has two readings, for symbols contain colons; use Python"
            )
        # A pair of no symbols is refused later, with the symbols that there are.
        pair = readings[0]
        if fitting:
            pair = fitting[0]
        pairs.append(pair)
    return pairs


def any_number(option: str, text: str, allowed: str, beyond: str = "") -> float:
    """A number as typed; its range is checked later."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"{option} ({text!r}) is not a number; it must be {allowed}"
        ) from None
    # 1e400 overflows; it does not say inf.
    if math.isinf(value) and text.strip().lower().lstrip("+-") not in (
        "inf",
        "infinity",
    ):
        raise InputError(f"{option} ({text}) is {beyond or f'not {allowed}'}")
    return value


# ------------------------------------------------------------------------------ budgets


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
    """A budget in nats with all digits of a double; the notion checks the rest of its range."""
    allowed = f"a number of nats in (0, {LARGEST_BUDGET:g}]"
    value = any_number(option, text, allowed)
    # Such a double may be half of what was typed, or twice as much, or zero.
    if abs(value) < LEAST_BUDGET and Decimal(text) != 0:
        raise InputError(
            f"{option} ({text}) is too small: doubles below {LEAST_BUDGET:.3g} lose digits; give "
            "a larger budget"
        )
    return value
