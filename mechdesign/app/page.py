"""The page as HTML, from its template; every text is escaped.

`rendered` draws the whole page from the state of the session, by the template ``app.html.jinja``.
The template gets the state, the lists of options (`choice`) and the places of the curve
(`pictures`), and computes nothing but formats and heights. The page is drawn anew after every
action; only its progress is fetched by script.

A form may send a level or a limit of rare values that is in no list. `_levels` and `_merges` add it
to its list, so that the page shows what is chosen.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from mechdesign.app import choice as c
from mechdesign.app.memory_table import ENDINGS
from mechdesign.app.pictures import HEIGHT, TICKS, WIDTH, curve_line, curve_place
from mechdesign.app.releasing import ORDERS
from mechdesign.app.results import ColumnSays
from mechdesign.app.session import ARCHIVE, Session


def rendered(session: Session) -> str:
    """The whole page for the state of the session."""
    # First, because asking whether a task runs takes its answer into the state.
    running = session.running
    assessed: dict[str, ColumnSays] = {}
    if session.assessed is not None:
        assessed = {entry.column: entry for entry in session.assessed.columns}
    return _template().render(
        session=session,
        running=running,
        choice=session.choice,
        assessed=assessed,
        curve_line=curve_line(session.curve),
        width=WIDTH,
        height=HEIGHT,
        curve_place=curve_place,
        ticks=TICKS,
        levels=_levels(session.choice.level),
        roles=c.ROLES,
        objectives=c.OBJECTIVES,
        promises=c.PROMISES,
        missing=c.MISSING,
        units=c.UNITS,
        orders=ORDERS,
        endings=",".join(ENDINGS),
        archive=ARCHIVE,
        merges=_merges(session.choice.merge_rare),
        smallest_factor=c.SMALLEST_FACTOR,
        largest_factor=c.LARGEST_FACTOR,
        factor_step=c.FACTOR_STEP,
    )


def _levels(chosen: str) -> dict[str, str]:
    """The levels of the list, and the chosen one if it is another."""
    levels = dict(c.LEVELS)
    if chosen not in levels:
        levels[chosen] = f"the population, at the level {chosen}"
    return levels


def _merges(chosen: str) -> dict[str, str]:
    """What may become of rare values, and the chosen number if it is another."""
    merges = dict(c.MERGES)
    if chosen not in merges:
        merges[chosen] = f"in fewer than {chosen} records are merged"
    return merges


# Read and compiled once, when the first page is drawn.
@cache
def _template() -> Any:
    """The template of the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mechdesign.app", "."),
        # A name that is misspelt in the template is an error, and not an empty place on the page.
        undefined=StrictUndefined,
        # Names and cells of the table may hold HTML.
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("app.html.jinja")


@cache
def resource(name: str) -> bytes:
    """A file of this package that the page needs; the server checks the name."""
    return (files("mechdesign.app") / name).read_bytes()
