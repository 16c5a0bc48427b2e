"""Matplotlib, set up alike for every picture: colours, lines, files, and SVG for a page.

A picture is made in three steps. `settings` opens the context in which the same figures give the
same bytes, `new_figure` makes an empty figure to draw in, and `save_figure` writes it to a file, or
`picture_of` makes it part of a page. No window is opened. Matplotlib is an extra of the package,
which `check_matplotlib` asks for before any work is done; it is imported when a figure is made.

*Lines of a comparison.* `series` groups the rows of a comparison by mechanism and by curve, and
makes a line (`Series`) of each group. Colour and marker belong to the mechanism, dashes to the
curve: two mechanisms at lam 0.5 and 0.65 give four lines, with two colours, two markers and two
kinds of dashes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, replacing
from mechdesign.report.blocks import Picture

FORMATS = (".png", ".svg", ".pdf")
"""Endings of picture files."""

COLOURS = (
    "#000000",
    "#0072b2",
    "#e69f00",
    "#d55e00",
    "#009e73",
    "#56b4e9",
    "#cc79a7",
    "#7f7f7f",
)
"""Colours of Okabe and Ito (2008), which colour-blind readers can tell apart."""

INK = "#1b1b1b"
"""The colour of text on a page."""

RESOLUTION = 160
"""Dots per inch of a PNG."""

SETTINGS = {
    # Matplotlib draws the identifiers in an SVG at random unless they are salted.
    "svg.hashsalt": "mechdesign",
    # Texts stay texts in an SVG, and TrueType fonts (type 42) in a PDF: both can be searched.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 9.0,
}
"""Parameters of matplotlib for every figure."""

UNDATED: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""Metadata of each format without the date, which would change the bytes of the same figure."""

UNIT = 72.0
"""Units of an SVG in an inch of matplotlib; on the page one unit is one pixel at most."""

FONT_SIZE = 11.0
"""Size of the texts of a picture on a page, in pixels."""

PAGE = {
    "font.size": FONT_SIZE,
    "axes.edgecolor": "#707070",
    "axes.labelcolor": INK,
    "hatch.color": "#bfbfbf",
}
"""Parameters of matplotlib for pictures in a page."""


def check_matplotlib(
    purpose: str = "plots need", extra: str = "plots", besides: str = ""
) -> None:
    """Refuse to draw where matplotlib is missing, before any work is done.

    The sentence begins with the `purpose`, names the `extra` of this package that has it, and ends
    with the way to go on without it, `besides`.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{purpose} matplotlib, which is not installed: pip install "
            f"'mechdesign[{extra}]'{besides}"
        )


def check_ending(path: PathLike, kind: str, endings: Sequence[str]) -> str:
    """The ending of a file, in small letters; InputError if files of the `kind` have others."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        raise InputError(
            f"{os.fspath(path)}: a {kind} must end in {', '.join(endings)}, not "
            f"{ending or 'nothing'}"
        )
    return ending


def save_figure(figure: Any, path: PathLike, *, overwrite: bool) -> None:
    """Write a matplotlib figure in the format of its ending, without the date, whole or
    not at all.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    with settings(), replacing(path, force=overwrite) as temporary:
        figure.savefig(
            temporary,
            format=kind,
            dpi=RESOLUTION,
            metadata=UNDATED[kind],
            bbox_inches="tight",
        )


def settings(**others: object) -> Any:
    """A context in which figures are drawn and written; `others` are further parameters
    of matplotlib.
    """
    return import_module("matplotlib").rc_context({**SETTINGS, **others})


def new_figure(*, figsize: tuple[float, float], layout: str) -> Any:
    """An empty `matplotlib.figure.Figure`, without a window. Its types are too loose
    for strict checking.
    """
    return import_module("matplotlib.figure").Figure(figsize=figsize, layout=layout)


def picture_of(figure: Any, words: str) -> Picture:
    """A figure as an SVG picture of a page, with `words` as its alternative text."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=UNDATED["svg"])
    width = UNIT * figure.get_size_inches()[0]
    return Picture(text.getvalue(), words, width)


# ---------------------------------------------------------------- lines of a comparison

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
