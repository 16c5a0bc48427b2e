"""The lines of a comparison, and the colour, marker and dashes that set each apart.

`series` groups the rows of a comparison by mechanism and by curve, and makes a line (`Series`) of
each group. Colour and marker belong to the mechanism, dashes to the curve: two mechanisms at lam
0.5 and 0.65 give four lines, with two colours, two markers and two kinds of dashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.report.drawing import COLOURS

Curve: TypeAlias = tuple[str, float | None]
"""The notion and the lam of a line: what was asked for, whichever mechanism answers."""

LOOKS = tuple(zip(COLOURS, "os^DvPX*", strict=True))
"""A colour and the marker that goes with it, which sets lines apart in print in grey, too."""

DASHES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (4, 1.6)),
    (0, (6, 1.6, 1, 1.6)),
    (0, (1, 1.6)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
)
"""Dashes of the curves: offset, and lengths of strokes and gaps in widths of the line."""


class Series(NamedTuple):
    """One line of the picture: a mechanism at a curve, with the marks that set it apart.

    `rows` ascend in the budget, `dashes` are one of `DASHES`, and markers are `filled` or white.
    """

    label: str
    rows: tuple[ComparisonRow, ...]
    colour: str
    marker: str
    dashes: tuple[float, tuple[float, ...]]
    filled: bool

    @property
    def face(self) -> str:
        """The colour inside of its markers."""
        if self.filled:
            return self.colour
        return "white"


def series(rows: Sequence[ComparisonRow]) -> list[Series]:
    """The lines in the order of the rows.

    Mechanisms differ in colour and marker, curves (notion and lam) in their dashes. With a single
    mechanism the curves take colours, too.
    """
    grouped: dict[tuple[str, Curve], list[ComparisonRow]] = {}
    for row in rows:
        grouped.setdefault((row.mechanism, row.curve), []).append(row)
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _ in grouped))
    curves = list(dict.fromkeys(curve for _, curve in grouped))
    # What differs between lines is in their names, and what they have in common is not.
    names_mechanisms = len(mechanisms) > 1 or len(curves) == 1
    names_curves = len(curves) > 1
    lines: list[Series] = []
    for (mechanism, curve), members in grouped.items():
        names: list[str] = []
        if names_mechanisms:
            names.append(mechanism)
        if names_curves:
            names.append(curve_name(*curve))
        # Colours are told apart more easily than dashes, so a single mechanism leaves them to its
        # curves.
        dash = curves.index(curve)
        look = mechanisms.index(mechanism)
        if len(mechanisms) == 1:
            look = dash
        # Both lists repeat when they are exhausted: more lines cannot be told apart anyway.
        colour, marker = LOOKS[look % len(LOOKS)]
        lines.append(
            Series(
                label=", ".join(names),
                rows=tuple(sorted(members, key=lambda row: row.epsilon)),
                colour=colour,
                marker=marker,
                dashes=DASHES[dash % len(DASHES)],
                # Markers have no dashes: filled and white ones set neighbouring curves apart.
                filled=dash % 2 == 0,
            )
        )
    return lines


def curve_name(notion: str, lam: float | None) -> str:
    """``alip, lam 0.5``."""
    if lam is None:
        return notion
    return f"{notion}, lam {lam:g}"
