"""The page as HTML, from its template; every text is escaped.

One template draws the whole page from the state of the session. It gets texts and numbers alone, so
what the page shows can be read off `rendered`. The page is drawn anew after every action; only its
progress is fetched by script.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from mechdesign.app import choice as c
from mechdesign.app.pictures import HEIGHT, TICKS, WIDTH, curve_line, curve_place
from mechdesign.app.session import Session


def rendered(session: Session) -> str:
    """The whole page for the state of the session."""
    running = session.running
    assessed: dict[str, str] = {}
    if session.assessed is not None:
        assessed = {entry.column: entry.text for entry in session.assessed.columns}
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
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("app.html.jinja")


@cache
def resource(name: str) -> bytes:
    """A file of this package that the page needs."""
    return (files("mechdesign.app") / name).read_bytes()
