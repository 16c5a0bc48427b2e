"""What results share in notebooks and at a prompt: words, a table and a picture."""

from __future__ import annotations

from importlib import import_module
from typing import Any

HOME = "mechdesign.report.display"
"""Where words and pictures are made. It is looked up by name when something is shown, and never needed before."""


class Displayed:
    """The words of the command line, a data frame, a picture, and the first two in a notebook."""

    def summary(self) -> str:
        """The words that the command line prints, without a final newline."""
        return import_module(HOME).summary(self)

    def to_frame(self) -> Any:
        """The table behind it as a pandas data frame (polars or pyarrow where pandas is not installed)."""
        return import_module(HOME).frame(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw it into matplotlib axes, new ones unless some are given, and return them."""
        return import_module(HOME).plot(self, ax)

    def _repr_html_(self) -> str:
        return import_module(HOME).html(self)


class Described:
    """Results that are shown as words alone: subclasses write their own `summary`."""

    def summary(self) -> str:
        """The result in words, without a final newline."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary())}</pre>"
