"""The common display of results at a prompt and in notebooks: words, a table and a picture.

A result inherits `Displayed` and so has `summary()`, `to_frame()` and `plot()`. Each imports the
module `RENDERER` by its name when it is called, and gives it the result; the module chooses by the
class of the result. Classes of results thus need nothing of what draws them. Results that have
words alone inherit `Described` and write their own `summary`. Notebooks call `_repr_html_`.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import Any

RENDERER = "mechdesign.report.display"
"""The module that makes words and pictures. Results import it by name, when they are shown:
it lies above them in the order of imports, and it is heavy."""

BOX_RENDERER = "mechdesign.report.boxes"
"""The module with the words of channels for boxes, imported in the same way."""


class Displayed:
    """A result with the words of the command line, a data frame, and a picture.

    Notebooks show the words and the frame.
    """

    def summary(self) -> str:
        """The text that the command line prints, without a final newline."""
        return import_module(RENDERER).summary(self)

    def to_frame(self) -> Any:
        """The underlying table as a pandas data frame.

        Without pandas it is a polars data frame, and without polars a pyarrow table.
        """
        return import_module(RENDERER).frame(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw into the matplotlib axes `ax` (new ones by default) and return them."""
        return import_module(RENDERER).plot(self, ax)

    def _repr_html_(self) -> str:
        return import_module(RENDERER).html(self)


class Described:
    """Results that are shown as words alone: subclasses write their own `summary`."""

    def summary(self) -> str:
        """The result in words, without a final newline."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        # Symbols are texts of users, and may have the signs of HTML in them.
        return f"<pre>{escape(self.summary())}</pre>"
