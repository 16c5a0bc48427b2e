"""The parts that a report is laid out in, for whatever renderer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mechdesign.report.record import Curve


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Remark:
    """A paragraph about the report itself: what was left out, shortened or put together."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and what is said of them, one a line."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cell:
    """A text; `strength` in [0, 1] shades its ground."""

    text: str
    strength: float = 0.0


@dataclass(frozen=True)
class Grid:
    """A table: the first `heads` cells of each row name it, the cells in `left` are words, the others numbers.

    `folded` says that a picture shows the same.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 1
    left: tuple[int, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class LiftMap:
    """A picture of lifts: symbols of S along, those of X or Y down; `marks` is above, below or empty a cell."""

    title: str
    description: str
    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    ends: float


@dataclass(frozen=True)
class CurveChart:
    """Pictures of a trade-off curve: utility, largest gain and largest loss of belief."""

    title: str
    description: str
    curve: Curve


@dataclass(frozen=True)
class Maps:
    """Heat maps that stand side by side."""

    maps: tuple[LiftMap, ...]


@dataclass(frozen=True)
class Lines:
    """Lines for a shell, each with its purpose."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = Text | Remark | Bullets | Facts | Grid | CurveChart | Maps | Lines


@dataclass(frozen=True)
class Section:
    """A heading with an anchor, and what stands under it."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A laid out report; `banner` says who may read it, `highlights` are its few main facts."""

    title: str
    banner: str
    internal: bool
    lead: str
    highlights: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str
