"""`mechdesign nonstochastic ...`: what a release tells when nothing but possibilities are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer

from mechdesign.cli import options as o
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import PlainCommand, PlainGroup, argument, command, flag, option
from mechdesign.cli.parsing import columns
from mechdesign.core.errors import InputError

EXAMPLE = "Example:  mechdesign nonstochastic measure release.csv --x age,zip --y released"

app = typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode="rich")


@dataclass(frozen=True, kw_only=True)
class RangeOptions:
    """What is measured."""

    table: str = argument("TABLE", "CSV or Parquet, one record a row.")
    x: str | None = option("COL[,COL..]", "Private column(s); several are crossed.")
    y: str | None = option("COL[,COL..]", "Released column(s); several are crossed.")
    feature: str | None = option("COL[,COL..]", "A feature of the private columns, to guess.")
    hypothesis: str | None = option("COL=VALUE", "A hypothesis to test: the column has this value.")
    epsilon: str | None = option("BITS", "Is the release epsilon-identifiable? Exit 1 if it is not.")
    zero_error: bool = flag("Also bound the zero-error capacity (a mixed-integer program).")
    missing: str = option(
        "WHAT",
        "What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the record out).",
        "refuse",
    )


@app.callback()
def _root() -> None: ...


def measure(reporter: Reporter, asked: RangeOptions, text: o.TextFormat, common: o.CommonOptions) -> int:
    """Measure what the released columns tell about the private ones: ranges only, no probabilities (bits)."""
    private, released = columns("--x", asked.x), columns("--y", asked.y)
    if private is None or released is None:
        raise InputError(f"{'--x' if private is None else '--y'} COL is missing: which column?")
    column, sign, value = (asked.hypothesis or "").partition("=")
    if asked.hypothesis is not None and not (sign and column):
        raise InputError(
            f"--hypothesis {asked.hypothesis!r} must be COL=VALUE: the column, and the value that is to be tested"
        )
    tested = (column, value) if sign else None
    roles = {"x": private, "y": released, "hypothesis": (column,) if tested else ()}
    roles["feature"] = columns("--feature", asked.feature) or ()

    from mechdesign.nonstochastic.table_measures import measure_table, read_text_columns

    with reporter.work("measuring"):
        cells, found = read_text_columns(asked.table, roles, asked.missing, text=text.text())
        x, y, feature = (found[name] for name in ("x", "y", "feature"))
        how: dict[str, Any] = {"epsilon": asked.epsilon, "zero_error": asked.zero_error}
        measured = measure_table(cells, x, y, feature=feature, hypothesis=tested, **how)
    told = {name: measured[name] for name in ("records", "identifiable")}
    reporter.done("measured", f"{asked.table} is measured", **told)
    from mechdesign.report.ranges import ranges_text

    common.answer(lambda: measured, lambda: ranges_text(measured))
    return NO if measured["identifiable"] is False else 0


app.command("measure", cls=PlainCommand, epilog=EXAMPLE)(command(measure))
