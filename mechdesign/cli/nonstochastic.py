"""`mechdesign nonstochastic ...`: what a release tells when nothing but possibilities are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer

from mechdesign.cli import options as o
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import (
    PlainCommand,
    PlainGroup,
    argument,
    command,
    flag,
    option,
)
from mechdesign.cli.parsing import columns
from mechdesign.core.errors import InputError

EXAMPLE = (
    "Example:  mechdesign nonstochastic measure release.csv --x age,zip --y released"
)

app = typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode="rich")


@dataclass(frozen=True, kw_only=True)
class Table:
    """What is measured."""

    table: str = argument("TABLE", "CSV or Parquet, one record a row.")
    missing: str = option(
        "WHAT",
        "What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the record out).",
        "refuse",
    )


@dataclass(frozen=True, kw_only=True)
class Hypothesis(Table):
    """What is tested."""

    hypothesis: str | None = option(
        "COL=VALUE", "A hypothesis to test: the column has this value."
    )

    @property
    def tested(self) -> tuple[str, str] | None:
        """The column of the hypothesis, and its value."""
        column, sign, value = (self.hypothesis or "").partition("=")
        if self.hypothesis is not None and not (sign and column):
            raise InputError(
                f"--hypothesis {self.hypothesis!r} must be COL=VALUE: the column, and the value that is to be tested"
            )
        return (column, value) if sign else None


@dataclass(frozen=True, kw_only=True)
class Tested(Hypothesis):
    """What is tested."""

    y: str | None = option("COL[,COL..]", "Released column(s); several are crossed.")


@dataclass(frozen=True, kw_only=True)
class RangeOptions(Tested):
    """What is measured."""

    x: str | None = option("COL[,COL..]", "Private column(s); several are crossed.")
    epsilon: str | None = option(
        "BITS", "Is the release epsilon-identifiable? Exit 1 if it is not."
    )
    feature: str | None = option(
        "COL[,COL..]", "A feature of the private columns, to guess."
    )
    zero_error: bool = flag(
        "Also bound the zero-error capacity (a mixed-integer program)."
    )


@dataclass(frozen=True, kw_only=True)
class PartitionOptions(Table):
    """What is partitioned."""

    x: str | None = option(
        "COL", "The column of numbers: each that occurs is a symbol."
    )
    epsilon: str | None = option(
        "BITS", "Each cell gets at least a share 2^-BITS of the symbols."
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Hypothesis):
    """What is reported."""

    x: str | None = option(
        "COL[,COL..]",
        "The column(s) of numbers to report: what occurs can be reported.",
    )
    epsilon: str | None = option(
        "E", "Reports that tell nothing are at least E times those that tell."
    )
    within: str | None = option("D", "No report is farther than D from its value.")


@app.callback()
def _root() -> None: ...


def measure(
    reporter: Reporter, asked: RangeOptions, text: o.TextFormat, common: o.CommonOptions
) -> int:
    """Measure what the released columns tell about the private ones: ranges only, no probabilities (bits)."""
    private, released, tested = (
        columns("--x", asked.x),
        columns("--y", asked.y),
        asked.tested,
    )
    if private is None or released is None:
        raise InputError(
            f"{'--x' if private is None else '--y'} COL is missing: which column?"
        )
    roles = {"x": private, "y": released, "hypothesis": tested[:1] if tested else ()}
    roles["feature"] = columns("--feature", asked.feature) or ()

    from mechdesign.nonstochastic.table_measures import measure_table, read_text_columns

    with reporter.work("measuring"):
        cells, found = read_text_columns(
            asked.table, roles, asked.missing, text=text.text()
        )
        x, y, feature = (found[name] for name in ("x", "y", "feature"))
        how: dict[str, Any] = {"epsilon": asked.epsilon, "zero_error": asked.zero_error}
        measured = measure_table(cells, x, y, feature=feature, hypothesis=tested, **how)
    told = {name: measured[name] for name in ("records", "identifiable")}
    reporter.done("measured", f"{asked.table} is measured", **told)
    from mechdesign.nonstochastic.reports import text_of

    common.answer(lambda: measured, lambda: text_of("measure", measured))
    return NO if measured["identifiable"] is False else 0


def hypothesis(
    reporter: Reporter, asked: Tested, text: o.TextFormat, common: o.CommonOptions
) -> None:
    """Test a hypothesis on what was released: the best test there is, and how private the release is against it."""
    released, tested = columns("--y", asked.y), asked.tested
    if released is None or tested is None:
        raise InputError(
            "--y COL and --hypothesis COL=VALUE are needed: what was released, what is tested?"
        )
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import (
        read_text_columns,
        tested_hypothesis,
    )

    with reporter.work("testing"):
        roles = {"y": released, "hypothesis": tested[:1]}
        cells, found = read_text_columns(
            asked.table, roles, asked.missing, text=text.text()
        )
        record = tested_hypothesis(cells, found["y"], *tested)
    reporter.done("tested", f"{asked.table} is tested")
    common.answer(lambda: record, lambda: text_of("hypothesis", record))


def policy(
    reporter: Reporter,
    asked: PolicyOptions,
    text: o.TextFormat,
    common: o.CommonOptions,
) -> None:
    """Report numbers as others, as near as can be, so that few reports settle a hypothesis: the best such policy."""
    names, tested = columns("--x", asked.x), asked.tested
    if names is None or tested is None or asked.epsilon is None:
        raise InputError("--x COL, --hypothesis COL=VALUE and --epsilon E are needed")
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import policy_table

    with reporter.work("searching"):
        read: dict[str, Any] = {"missing": asked.missing, "text": text.text()}
        record = policy_table(
            asked.table, names, tested, asked.epsilon, asked.within, **read
        )
    reporter.done("found", f"a policy for {asked.table} is found")
    common.answer(lambda: record, lambda: text_of("policy", record))


def partition(
    reporter: Reporter,
    asked: PartitionOptions,
    text: o.TextFormat,
    common: o.CommonOptions,
) -> None:
    """Partition the numbers that can occur into epsilon-identifiable cells of least mean squared error."""
    if asked.x is None or asked.epsilon is None:
        raise InputError(
            f"{'--x COL' if asked.x is None else '--epsilon BITS'} is missing"
        )
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import partition_column

    with reporter.work("partitioning"):
        record = partition_column(
            asked.table, asked.x, asked.epsilon, asked.missing, text=text.text()
        )
    reporter.done("partitioned", f"{asked.table} is partitioned")
    common.answer(lambda: record, lambda: text_of("partition", record))


TEST = "Example:  mechdesign nonstochastic hypothesis release.csv --y released --hypothesis smoker=yes"
MOVES = "Example:  mechdesign nonstochastic policy people.csv --x weight --hypothesis obese=yes --epsilon 3 --within 10"
CELLS = "Example:  mechdesign nonstochastic partition ages.csv --x age --epsilon 3"

for work, example in (
    (measure, EXAMPLE),
    (hypothesis, TEST),
    (policy, MOVES),
    (partition, CELLS),
):
    app.command(work.__name__, cls=PlainCommand, epilog=example)(command(work))
