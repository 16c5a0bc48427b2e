"""Matplotlib, set up alike for every picture: colours, files, and SVG for a page.

A picture is made in three steps. `settings` opens the context in which the same figures give the
same bytes, `new_figure` makes an empty figure to draw in, and `save_figure` writes it to a file, or
`picture_of` makes it part of a page. No window is opened. Matplotlib is an extra of the package,
which `check_matplotlib` asks for before any work is done; it is imported when a figure is made.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
