"""The parts that a report is laid out in, for whatever renderer, and how much of a table or label has room in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from mechdesign.comparison.curve import Curve
from mechdesign.report.record import Lifts
from mechdesign.report.wording import isolated, label

LONGEST_LABEL = 60
"""Characters of a label that a page shows."""

MOST_ROWS = 200
"""Rows of a table on a page."""

MOST_SHARES = 6
"""Outputs of a symbol, or symbols of an output, that a page lists before it puts the rest together."""

ALL_IN_JSON = "A report that ends in .json has all of it."

MOST_MAP_ROWS = 50
MOST_MAP_COLUMNS = 16
"""Rows and columns of a heat map that can be told apart, on a page and on a telephone."""


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Remark(NamedTuple):
    """A paragraph about the report itself: what was left out, shortened or put together."""

    text: str


class Bullets(NamedTuple):
    """A list of sentences."""

    items: tuple[str, ...]


class Facts(NamedTuple):
    """Names and what is said of them, one a line."""

    items: tuple[tuple[str, str], ...]


class Cell(NamedTuple):
    """A text; `strength` in [0, 1] shades its ground, `tint` in [-1, 1] colours it."""

    text: str
    strength: float = 0.0
    tint: float | None = None


def cells(*texts: str) -> tuple[Cell, ...]:
    """A row of texts."""
    return tuple(map(Cell, texts))


class Grid(NamedTuple):
    """A table: `heads` cells of each row name it, those in `left` are words; `folded` if a picture shows the same."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 1
    left: tuple[int, ...] = ()
    folded: bool = False


class CurveChart(NamedTuple):
    """Pictures of a trade-off curve: utility, largest gain and largest loss of belief."""

    description: str
    curve: Curve


class Maps(NamedTuple):
    """Tables of tinted cells that stand side by side; `scale` are the steps of their colours, from pale to dark."""

    maps: tuple[Grid, ...]
    scale: tuple[Cell, ...]


class Picture(NamedTuple):
    """An SVG for a page, which says what it shows; a table has the same numbers."""

    svg: str


class Lines(NamedTuple):
    """Lines for a shell, each with its purpose."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = (
    Text | Remark | Bullets | Facts | Grid | CurveChart | Maps | Picture | Lines
)


class Section(NamedTuple):
    """A heading with an anchor, and what stands under it."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


class Document(NamedTuple):
    """A laid out report; `banner` says who may read it, `highlights` are its few main facts."""

    title: str
    banner: str
    internal: bool
    lead: str
    highlights: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str


def short(text: str) -> str:
    """`text` as a label, with its middle left out if it is long."""
    shown = label(text)
    if len(shown) > LONGEST_LABEL:
        shown = f"{shown[: LONGEST_LABEL - 13]}…{shown[-12:]}"
    return isolated(shown)


def label_remarks(labels: Sequence[str]) -> list[Block]:
    """What is said where `short` changes one of the labels."""
    said = f"Labels longer than {LONGEST_LABEL} characters are shown without their middle. {ALL_IN_JSON}"
    return [Remark(said)] * any(len(label(text)) > LONGEST_LABEL for text in labels)


def grid(
    caption: str,
    header: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    what: str,
    left: tuple[int, ...] = (),
) -> list[Block]:
    """A table of the rows that a page has room for, and what is said where these are not all; nothing for none."""
    said = f"The first {MOST_ROWS:,} of {len(rows):,} ({what}) are shown. {ALL_IN_JSON}"
    table = Grid(caption, header, tuple(rows[:MOST_ROWS]), left=left)
    return [*[table] * bool(rows), *[Remark(said)] * (len(rows) > MOST_ROWS)]


class Blocked(NamedTuple):
    """Lifts with X or Y down and S along, neighbours put together; `note` says so, empty if none are."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    note: str


def blocked(lifts: Lifts, down: str, across: str) -> Blocked:
    """At most `MOST_MAP_ROWS` x `MOST_MAP_COLUMNS` blocks, each with its lift that is farthest from 1.

    Never more favourable than the single lifts, where both sides have one bound.
    """
    rows, columns = len(lifts.columns), len(lifts.sensitive)
    high, wide = -(-rows // MOST_MAP_ROWS), -(-columns // MOST_MAP_COLUMNS)
    down_at, across_at = range(0, rows, high), range(0, columns, wide)

    def farthest(x: int, s: int) -> float:
        found = (
            lift for line in lifts.values[s : s + wide] for lift in line[x : x + high]
        )
        return max(
            found, key=lambda lift: abs(math.log(lift)) if lift > 0.0 else math.inf
        )

    values = tuple(tuple(farthest(x, s) for s in across_at) for x in down_at)
    note = ""
    if high > 1 or wide > 1:
        sizes = [
            f"{size} neighbours of {what}"
            for size, what in ((high, down), (wide, across))
            if size > 1
        ]
        note = (
            f"There is no room for {rows:,} x {columns:,} lifts: up to {' and '.join(sizes)} are put together, and "
            "each cell shows the one lift among them that is farthest from 1."
        )
    names = tuple(_span(lifts.columns, row, high) for row in down_at)
    return Blocked(
        names,
        tuple(_span(lifts.sensitive, column, wide) for column in across_at),
        values,
        note,
    )


def _span(names: Sequence[str], start: int, size: int) -> str:
    members = names[start : start + size]
    return (
        short(members[0])
        if len(members) == 1
        else f"{short(members[0])} – {short(members[-1])}"
    )
