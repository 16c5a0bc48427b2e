"""Numbers and labels as people read them, never more favourable than they are."""

from __future__ import annotations

import textwrap
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from mechdesign.core.decimals import about as about
from mechdesign.core.decimals import at_least as at_least
from mechdesign.core.decimals import at_most as at_most

WIDTH = 96
"""Longest line of a text report, in characters."""


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A share of one as a percentage with three decimals."""
    return f"{(Decimal(share) * 100).quantize(Decimal('0.001'), rounding=rounding)} %"


def percent_at_most(share: float) -> str:
    """An upper bound on a share: rounded up."""
    return percent(share, ROUND_CEILING)


def label(text: str) -> str:
    """A symbol or column name, with what would move the cursor of a terminal escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text) or '""'


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
