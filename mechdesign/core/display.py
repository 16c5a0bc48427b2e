"""The common display of results at a prompt and in notebooks: words, a table and a picture.

A result that has words alone inherits `Described` and so has `summary()`; one that has a table and
a picture, too, inherits `Displayed` with `to_frame()` and `plot()`. Each calls the function of its
name in the module of displays (`report.display`), which chooses by the class of the result. Classes
of results thus need nothing of what draws them. Notebooks call `_repr_html_`.

*Modules above.* A result shows itself by the module of displays, a channel saves itself by the
module of channel files, a joint table is read from files by the module of tables, a mechanism for
numbers has a recipe of releases, and `design` and `apply` look for people with several records in
frames. These modules know every kind of result, channel or
frame, so they lie above these classes, and are imported when they are first needed: displays are
heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# ------------------------------------------------------------------------ modules above

MODULES: dict[str, str] = {}
"""The module for each purpose: "display" (`report.display`), "channel_file" (`channel.file`),
"table_files" (`tables.reading`), "numbers" (`nonstochastic.numbers_recipe`), "people"
(`frames.people_guard`), and "application" (`cli.application`).
"""


def above(purpose: str) -> Any:
    """The module for a purpose."""
    return import_module(MODULES[purpose])


# ------------------------------------------------------------------------------ display


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
