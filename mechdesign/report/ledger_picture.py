"""A picture of where the information of each released column went, for pages of rows and boxes.

Every column has a horizontal bar of length H(X_j), in nats. Its first part is what a released row
tells of the column, I(X_j; Y_j), and the hatched rest was lost to privacy::

    age   ██████████░░░░░░      0.9 of 1.5 nats kept
    city  ████░░                0.4 of 0.6

A row report has these figures as `ColumnLedger`, a box report as `ColumnKept`; both are a `Ledger`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mechdesign.report import blocks, drawing, wording

PICTURE_WIDTH = 5.5
"""Inches, which fit a telephone when the page scales them down."""


# Blue and a light grey, which differ in print as well.
KEPT_COLOUR = "#2b6cb0"
LOST_COLOUR = "#d9d9d9"


class Ledger(Protocol):
    """The information of a column, and how much of it is kept, in nats.

    `ColumnLedger` of rows has these, and `box_utility.ColumnKept` of boxes.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, or several crossed ones."""
        ...

    @property
    def entropy(self) -> float:
        """What is in it."""
        ...

    @property
    def kept(self) -> float:
        """What a released row tells of it."""
        ...


def ledger_picture(ledgers: Sequence[Ledger]) -> blocks.Picture:
    """A bar for every column, of the length H(X_j): what is kept, and what privacy took."""
    words = (
        "For every column, the information that is kept and what is lost to privacy; "
        "the table below has the numbers."
    )
    names: list[str] = []
    kept: list[float] = []
    lost: list[float] = []
    for ledger in ledgers:
        names.append(blocks.short(wording.title(ledger.columns)))
        # Rounding can put I(X_j; Y_j) above H(X_j); the two bars still make up H(X_j).
        kept.append(min(ledger.kept, ledger.entropy))
        lost.append(max(0.0, ledger.entropy - ledger.kept))
    with drawing.settings(**drawing.PAGE):
        # Inches: a bar needs 0.4, the axis and the legend above it the rest.
        height = 1.1 + 0.4 * len(ledgers)
        figure = drawing.new_figure(
            figsize=(PICTURE_WIDTH, height), layout="constrained"
        )
        axes = figure.subplots()
        places = list(range(len(ledgers)))
        axes.barh(places, kept, color=KEPT_COLOUR, label="kept")
        axes.barh(
            places,
            lost,
            left=kept,
            color=LOST_COLOUR,
            hatch="//",
            label="lost to privacy",
        )
        # A dollar sign in the name of a column is no formula.
        axes.set_yticks(places, labels=names, parse_math=False)
        # The first column at the top, as in the table.
        axes.invert_yaxis()
        axes.set_xlabel("information in the column (nats)")
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        return drawing.picture_of(figure, words)
