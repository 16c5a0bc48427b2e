"""The common display of results at a prompt and in notebooks: words, a table and a picture.

A result that has words alone inherits `Described` and so has `summary()`; one that has a table and
a picture, too, inherits `Displayed` with `to_frame()` and `plot()`. Each calls the function of its
name in the module of displays (`report.display`), which chooses by the class of the result. Classes
of results thus need nothing of what draws them. Notebooks call `_repr_html_`.
"""

from __future__ import annotations

from typing import Any

from mechdesign.core.above import above


class Described:
    """A result that is shown as words alone, those of the command line."""

    def summary(self) -> str:
        """The text that the command line prints, without a final newline."""
        return above("display").summary(self)

    def _repr_html_(self) -> str:
        # Every start loads this module, and only notebooks need the signs of HTML.
        from html import escape

        # Symbols are texts of users, and may have the signs of HTML in them.
        return f"<pre>{escape(self.summary())}</pre>"


class Displayed(Described):
    """A result with the words of the command line, a data frame, and a picture.

    Notebooks show the words and the frame.
    """

    def to_frame(self) -> Any:
        """The underlying table as a pandas data frame.

        Without pandas it is a polars data frame, and without polars a pyarrow table.
        """
        return above("display").frame(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw into the matplotlib axes `ax` (new ones by default) and return them."""
        return above("display").plot(self, ax)

    def _repr_html_(self) -> str:
        return above("display").html(self)
