"""`mechdesign nonstochastic ...`: what a release tells when nothing but possibilities are known."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.cli.line import PlainCommand, PlainGroup, command
from mechdesign.cli.parsing import columns
from mechdesign.core.errors import InputError

EXAMPLE = "Example:  mechdesign nonstochastic measure release.csv --x age,zip --y released"

NO = 1
"""Exit code when the answer is no."""

app = typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode="rich")

Table = Annotated[str, typer.Argument(metavar="TABLE", help="CSV or Parquet, one record a row.")]
PrivateColumns = Annotated[
    str | None, typer.Option("--x", metavar="COL[,COL..]", help="Private column(s); several are crossed.")
]
ReleasedColumns = Annotated[
    str | None, typer.Option("--y", metavar="COL[,COL..]", help="Released column(s); several are crossed.")
]
Feature = Annotated[
    str | None,
    typer.Option("--feature", metavar="COL[,COL..]", help="A feature of the private columns, to guess."),
]
Hypothesis = Annotated[
    str | None,
    typer.Option(
        "--hypothesis", metavar="COL=VALUE", help="A hypothesis to test: the column has this value."
    ),
]
Bits = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="BITS",
        help="Ask whether the release is epsilon-identifiable: exit 1 if it is not.",
    ),
]
ZeroError = Annotated[
    bool, typer.Option("--zero-error", help="Also bound the zero-error capacity (a mixed-integer program).")
]


Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="WHAT",
        help="What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the record out).",
    ),
]


@app.callback()
def _root() -> None: ...


def measure(
    context: typer.Context,
    table: Table,
    text: o.TextFormat,
    common: o.CommonOptions,
    x: PrivateColumns = None,
    y: ReleasedColumns = None,
    feature: Feature = None,
    hypothesis: Hypothesis = None,
    epsilon: Bits = None,
    zero_error: ZeroError = False,
    missing: Missing = "refuse",
) -> int:
    """Measure what the released columns tell about the private ones: ranges only, no probabilities (bits)."""
    private, released = columns("--x", x), columns("--y", y)
    if private is None or released is None:
        raise InputError(f"{'--x' if private is None else '--y'} COL is missing: which column?")
    tested = _equation(hypothesis)
    roles = {"x": private, "y": released, "hypothesis": (tested[0],) if tested else ()}
    roles["feature"] = columns("--feature", feature) or ()

    from mechdesign.cli.reporting import reporter_of
    from mechdesign.nonstochastic.table_measures import measure_table
    from mechdesign.nonstochastic.text_columns import read_text_columns

    reporter = reporter_of(context)
    with reporter.work("measuring"):
        read = read_text_columns(table, roles, missing, text=text.text())
        measured = measure_table(
            read.cells,
            read.roles["x"],
            read.roles["y"],
            feature=read.roles["feature"],
            hypothesis=tested,
            epsilon=epsilon,
            zero_error=zero_error,
        )
    reporter.done(
        "measured", f"{table} is measured", records=measured.records, identifiable=measured.identifiable
    )
    from mechdesign.report.ranges import ranges_record, ranges_text

    common.answer(lambda: ranges_record(measured), lambda: ranges_text(measured))
    return NO if measured.identifiable is False else 0


app.command("measure", cls=PlainCommand, epilog=EXAMPLE)(command(measure))


def _equation(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    column, sign, value = text.partition("=")
    if not sign or not column:
        raise InputError(
            f"--hypothesis {text!r} must be COL=VALUE: the column, and the value that is to be tested"
        )
    return column, value
