"""Numbers, labels and promises as people read them: never more favourable than they are."""

from __future__ import annotations

import math
import textwrap
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from mechdesign.notions import AlphaLift, LiftLimits, Limits, MeanLimits, Notion

WIDTH = 96
"""Longest line of a text report, in characters."""

DIGITS = 5
"""Significant digits of a number in a text report; the JSON output has all of them."""

BUDGET_DIGITS = 10
"""Digits up to which a budget is written as it is; longer ones come from arithmetic and are rounded up."""

EXACT = Context(prec=60)
"""Digits of exp of a budget, correctly rounded, before it is rounded to `DIGITS` in its own direction."""

PERCENT = Decimal("0.001")
"""The last decimal of a percentage."""

RIGHT_TO_LEFT = ("R", "AL")
"""Bidirectional classes of letters that are written from right to left."""


def at_most(value: float | Decimal) -> str:
    """An upper bound: rounded up."""
    return _rounded(value, ROUND_CEILING)


def at_least(value: float | Decimal) -> str:
    """A lower bound: rounded down."""
    return _rounded(value, ROUND_FLOOR)


def about(value: float) -> str:
    """A plain quantity: rounded to nearest."""
    return _rounded(value, ROUND_HALF_EVEN)


def _rounded(value: float | Decimal, rounding: str, digits: int = DIGITS) -> str:
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    short = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    return f"{float(short):.{digits}g}"


def budget(nats: float) -> str:
    """A promised budget: as it was given if that is short, otherwise rounded up, for less is promised then."""
    shortest = Decimal(repr(nats)) if math.isfinite(nats) else None
    if shortest is None or len(shortest.normalize().as_tuple().digits) > BUDGET_DIGITS:
        return _rounded(nats, ROUND_CEILING, DIGITS + 1)
    return repr(nats).removesuffix(".0")


def factor_at_most(nats: float) -> str:
    """exp of a budget, rounded up."""
    return at_most(EXACT.next_plus(EXACT.exp(Decimal(nats))))


def factor_at_least(nats: float) -> str:
    """exp of minus a budget, rounded down."""
    return at_least(EXACT.next_minus(EXACT.exp(-Decimal(nats))))


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A share of one as a percentage with three decimals; 0 and 100 are said of nothing but 0 and 1."""
    shown = (Decimal(share) * 100).quantize(PERCENT, rounding=rounding)
    if shown <= 0 < share:
        return ">0 %" if rounding == ROUND_FLOOR else f"<{PERCENT} %"
    if shown >= 100 and share < 1:
        return "<100 %" if rounding == ROUND_CEILING else f">{100 - PERCENT} %"
    return f"{shown} %"


def percent_at_most(share: float) -> str:
    """An upper bound on a share: rounded up."""
    return percent(share, ROUND_CEILING)


def percent_at_least(share: float) -> str:
    """A lower bound on a share: rounded down."""
    return percent(share, ROUND_FLOOR)


def label(text: str) -> str:
    """A symbol or column name, with what would move the cursor of a terminal escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text) or '""'


def isolated(shown: str) -> str:
    """`shown` so that, where it is written from right to left, it does not reorder what stands beside it."""
    if any(unicodedata.bidirectional(c) in RIGHT_TO_LEFT for c in shown):
        return f"\u2068{shown}\u2069"
    return shown


def title(columns: tuple[str, ...]) -> str:
    """The columns of a variable as one name."""
    return " x ".join(isolated(label(c)) for c in columns)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1 record``, ``31,580 records``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def paragraph(text: str, first: str = "  ") -> str:
    """`text` wrapped and indented, with labels left whole."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def item(text: str) -> str:
    """`text` as an item of a list."""
    return paragraph(text, "  - ")


def notion_text(notion: Notion) -> str:
    """``alip (eps_l 0.5, eps_u 0.5)``."""
    limits = notion.limits
    if isinstance(limits, LiftLimits) and math.isfinite(limits.ratio):
        return f"{notion.name} (epsilon {budget(limits.ratio)})"
    parts = [f"order {notion.alpha:g}"] if isinstance(notion, AlphaLift) else []
    parts += [f"eps_l {budget(limits.lower)}"] * (limits.lower < math.inf)
    parts += [f"eps_u {budget(limits.upper)}"] * (limits.upper < math.inf)
    return f"{notion.name} ({', '.join(parts)})"


def condition(limits: Limits, sensitive: str) -> str:
    """The notion in words; the constructor of every notion leaves at least one limit finite."""
    if isinstance(limits, MeanLimits):
        return _mean_condition(limits, sensitive)
    if math.isfinite(limits.ratio):
        return (
            f"no released value is more than {factor_at_most(limits.ratio)} times as likely under one "
            f"{sensitive} as under another."
        )
    bounds: list[str] = []
    if math.isfinite(limits.lower):
        bounds.append(f"at least {factor_at_least(limits.lower)}")
    if math.isfinite(limits.upper):
        bounds.append(f"at most {factor_at_most(limits.upper)}")
    return f"whoever sees a released value finds every {sensitive} {' and '.join(bounds)} times as likely as before."


def _mean_condition(limits: MeanLimits, sensitive: str) -> str:
    """An averaged notion in words; l is how many times as likely as before a symbol is."""
    means = {
        "l1": ("the mean of |l - 1|", "the mean of |1/l - 1|"),
        "chi2": ("the mean of (l - 1)^2", "the mean of (1/l - 1)^2"),
        "alpha": (f"the mean of l^{limits.order:g}", f"the mean of (1/l)^{limits.order:g}"),
    }[limits.kind]
    bounds: list[str] = []
    for mean, nats in zip(means, (limits.upper, limits.lower), strict=True):
        if math.isinf(nats):
            continue
        if limits.kind == "alpha":
            bounds.append(f"{mean} is at most exp({limits.order:g} * {budget(nats)})")
        else:
            distance = EXACT.subtract(EXACT.next_plus(EXACT.exp(Decimal(nats))), 1)
            power = 1 if limits.kind == "l1" else 2
            bounds.append(f"{mean} is at most {at_most(EXACT.next_plus(EXACT.power(distance, power)))}")
    return (
        f"a released value makes a {sensitive} l times as likely as before; with {sensitive} as in the table, "
        f"{' and '.join(bounds)}. A single {sensitive} can become much more or less likely than that."
    )
