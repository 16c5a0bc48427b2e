"""The parts of a laid-out report, independent of any renderer, and the limits on tables and labels.

A `Document` has sections, and a section has blocks: texts, lists, tables, pictures. Renderers
(`writing`, `terminal`) know these types and nothing of privacy. The section on a channel may be: ::

    Section("channel", "The channel", (
        Text("Every value of job is replaced by one of 3 outputs, ..."),
        Grid("P(output | job) in %", ("job", "mix-1", "mix-2"),
             ((Cell("clerk"), Cell("81.8", strength=0.818), Cell("18.2", strength=0.182)), ..))))

What is too large for a page is cut or joined here, with a remark that says so:

- `label_remarks` says that labels are shown without their middle (`wording.short`);
- `grid` shows the first `MOST_ROWS` rows of a table;
- `blocked` joins rows and columns of a heat map into blocks. `by_likeness` puts lines of similar
  lifts side by side, `groups_by_likeness` cuts this order into groups of one size (120 lines in
  at most 50 groups are 40 groups of 3), and each block shows its lift that is farthest from 1:
  0.4 among 1.1, 0.9 and 0.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from mechdesign.report.record import Lifts
from mechdesign.report.wording import LONGEST_LABEL, label, short

MOST_ROWS = 200
"""Rows of a table on a page."""

MOST_SHARES = 6
"""Outputs of a symbol, or symbols of an output, that a page lists; the rest are summed up."""

ALL_IN_JSON = "A report that ends in .json has all of it."

MOST_MAP_ROWS = 50
MOST_MAP_COLUMNS = 16
"""Rows and columns of a heat map that can be told apart, on a page and on a telephone."""

SMALLEST_LIFT = 1e-3
"""Lifts below count as this one when rows of a map are ordered; a zero has no logarithm."""


class Text(NamedTuple):
    """A paragraph."""

    text: str


def paragraphs(texts: Iterable[str]) -> tuple[Text, ...]:
    """A paragraph for each text."""
    return tuple(map(Text, texts))


class Remark(NamedTuple):
    """A paragraph about the report itself: parts left out, shortened or joined."""

    text: str


class Bullets(NamedTuple):
    """A list of sentences."""

    items: tuple[str, ...]


class Facts(NamedTuple):
    """Names with a text each, one a line."""

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
    """A table.

    The first `heads` cells of a row name it; columns in `left` hold words. It is `folded` if a
    picture shows the same.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 1
    left: tuple[int, ...] = ()
    folded: bool = False


class ChartLine(NamedTuple):
    """A line of a picture: its name, the lengths of its strokes and gaps, and its places."""

    name: str
    dashes: str
    places: tuple[tuple[float, float], ...]


class CurveChart(NamedTuple):
    """A picture of shares over budgets, in units of its SVG; `words` say what it shows.

    `impossible` are the corners of the area that no channel reaches, if that is proven; `ticks`
    places on the `axis` of budgets with their texts; and `chosen` is the marked place.
    """

    words: str
    axis: str
    lines: tuple[ChartLine, ...]
    impossible: tuple[tuple[float, float], ...]
    ticks: tuple[tuple[float, str], ...]
    chosen: tuple[float, float]
    width: float
    height: float


class Maps(NamedTuple):
    """Tables of tinted cells side by side; `scale` has the steps of their colours, from
    pale to dark.
    """

    maps: tuple[Grid, ...]
    scale: tuple[Cell, ...]


class Picture(NamedTuple):
    """A picture for a page, as SVG, with its alternative text and its width in pixels.

    A table has the same numbers.
    """

    svg: str
    words: str
    width: float


class Lines(NamedTuple):
    """Lines for a shell, each with its purpose."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = (
    Text | Remark | Bullets | Facts | Grid | CurveChart | Maps | Picture | Lines
)


class Section(NamedTuple):
    """A heading with an anchor, and the blocks under it."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


class Document(NamedTuple):
    """A laid-out report; `banner` names its readers, `highlights` are its few main facts."""

    title: str
    banner: str
    internal: bool
    lead: str
    highlights: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str


def label_remarks(labels: Sequence[str]) -> list[Block]:
    """A remark if `short` changes one of the labels."""
    if all(len(label(text)) <= LONGEST_LABEL for text in labels):
        return []
    text = (
        f"Labels longer than {LONGEST_LABEL} characters are shown without their middle. "
        f"{ALL_IN_JSON}"
    )
    return [Remark(text)]


def grid(
    caption: str,
    header: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    what: str,
    left: tuple[int, ...] = (),
    total: int | None = None,
) -> list[Block]:
    """A table of as many rows as a page has room for, with a remark if some are left
    out; nothing without rows.

    `rows` may be the first ones alone, at least `MOST_ROWS`, of `total`.
    """
    total = len(rows) if total is None else total
    if not rows:
        return []
    blocks: list[Block] = [Grid(caption, header, tuple(rows[:MOST_ROWS]), left=left)]
    if total > MOST_ROWS:
        text = f"The first {MOST_ROWS:,} of {total:,} ({what}) are shown. {ALL_IN_JSON}"
        blocks.append(Remark(text))
    return blocks


Groups: TypeAlias = tuple[tuple[int, ...], ...]
"""Positions of the symbols that share a row or a column of a map."""


class Blocked(NamedTuple):
    """Lifts with X or Y down and S along; symbols of similar lifts are joined where `note` says so.

    `groups` has the sensitive symbols of every column.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    note: str
    groups: Groups


def groups_by_likeness(lines: Sequence[Sequence[float]], most: int) -> Groups:
    """At most so many groups of lines, each of lines with similar lifts; in the given order where
    every line is a group of its own.
    """
    # Lines in a group, rounded up; an order by likeness is then cut into groups of this size.
    size = -(-len(lines) // most)
    if size <= 1:
        return tuple((place,) for place in range(len(lines)))
    order = by_likeness(lines)
    starts = range(0, len(order), size)
    return tuple(tuple(order[start : start + size]) for start in starts)


def blocked(lifts: Lifts, down: str, across: str, columns: Groups) -> Blocked:
    """At most `MOST_MAP_ROWS` rows of blocks, each with its lift that is farthest from 1.

    `columns` are groups of sensitive symbols, the same for all maps that stand side by side. A
    block is never more favourable than its single lifts, where both sides have one bound.
    """
    # The map has S across, so the lifts are transposed: a line for each symbol of X or Y.
    lines = list(zip(*lifts.values, strict=True))
    rows = groups_by_likeness(lines, MOST_MAP_ROWS)
    values: list[tuple[float, ...]] = []
    for members in rows:
        row: list[float] = []
        for symbols in columns:
            block: list[float] = []
            for x in members:
                block += [lines[x][s] for s in symbols]
            # A mean would hide a lift that breaks the promise among harmless ones.
            row.append(_farthest(block))
        values.append(tuple(row))
    return Blocked(
        rows=_block_names(lifts.columns, rows),
        columns=_block_names(lifts.sensitive, columns),
        values=tuple(values),
        note=_note(lifts, rows, columns, down, across),
        groups=columns,
    )


def _farthest(lifts: Sequence[float]) -> float:
    """The lift that is farthest from 1 in the logarithm."""

    # After an output with the lift 0 the symbol is excluded: nothing is farther from 1.
    def distance(lift: float) -> float:
        return abs(math.log(lift)) if lift > 0.0 else math.inf

    return max(lifts, key=distance)


def by_likeness(lines: Sequence[Sequence[float]]) -> list[int]:
    """An order in which lines of similar lifts are neighbours: by the first principal
    axis of their logarithms.
    """
    # Logarithms, because halving is as far from 1 as doubling.
    logarithms = np.log(np.maximum(np.asarray(lines, dtype=float), SMALLEST_LIFT))
    centred = logarithms - logarithms.mean(axis=0)
    # The first right singular vector of the centred lines is the direction in which they differ
    # most. Its sign is arbitrary, so the order may be reversed, which changes no neighbours.
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    return np.argsort(centred @ axis, kind="stable").tolist()


def _note(lifts: Lifts, rows: Groups, columns: Groups, down: str, across: str) -> str:
    """What was joined; empty where nothing was."""
    sizes: list[str] = []
    for groups, name in ((rows, down), (columns, across)):
        size = max(map(len, groups), default=1)
        if size > 1:
            sizes.append(f"{size} neighbours of {name}")
    if not sizes:
        return ""
    return (
        f"There is no room for {len(lifts.columns):,} x {len(lifts.sensitive):,} lifts: up to "
        f"{' and '.join(sizes)} are joined, ordered by the likeness of their lifts, and each cell "
        "shows the one lift among them that is farthest from 1."
    )


def _block_names(names: Sequence[str], groups: Groups) -> tuple[str, ...]:
    """A name for each group of positions in `names`."""
    joined: list[str] = []
    for members in groups:
        joined.append(_joined([names[member] for member in members]))
    return tuple(joined)


def _joined(names: Sequence[str]) -> str:
    """The name of a block: its member, or the first one and the number of the others."""
    if len(names) == 1:
        return short(names[0])
    return f"{short(names[0])} and {len(names) - 1} more"
