"""`mechdesign nonstochastic ...`: measures, tests and policies that need no probabilities.

What counts is which values can occur together, not how often. Five commands read columns of a
table as text, call one function of `nonstochastic.table_measures`, and print its record: `measure`
(leakage in bits), `hypothesis` (the best test on a release), `policy` (reports of numbers of which
few settle a hypothesis), `blur` (a border in the place of numbers near it), and `partition` (cells
that hold enough values each). `shift` needs no table: it counts the outputs of a quantised sum that
one individual shifts.

If each of 8 private values can occur with 2 released ones, and each released value leaves 4 of the
8 possible, whoever sees it has gained log2(8 / 4) = 1 bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import typer

from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.failures import NO
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

app = typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode="rich")


@dataclass(frozen=True, kw_only=True)
class Table:
    """What is measured."""

    table: str = argument("TABLE", "CSV or Parquet, one record a row.")
    missing: str = option(
        "WHAT",
        "What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the "
        "record out).",
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
        if self.hypothesis is None:
            return None
        # The first "=" ends the column, so the value may have some.
        column, sign, value = self.hypothesis.partition("=")
        if not sign or not column:
            raise InputError(
                f"--hypothesis {self.hypothesis!r} must be COL=VALUE: the column, and the value "
                "that is to be tested"
            )
        return column, value


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
        "COL", "The column of numbers: each distinct number is a symbol."
    )
    epsilon: str | None = option(
        "BITS", "Each cell gets at least a share 2^-BITS of the symbols."
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Hypothesis):
    """What is reported."""

    x: str | None = option(
        "COL[,COL..]",
        "The column(s) of numbers to report; every value that occurs is a possible report.",
    )
    epsilon: str | None = option(
        "E", "Ambiguous reports are at least E times as many as telling ones."
    )
    within: str | None = option("D", "The largest distance of a report from its value.")


@dataclass(frozen=True, kw_only=True)
class BlurOptions(Table):
    """What is blurred."""

    x: str | None = option("COL", "The column of numbers to report.")
    border: str | None = option(
        "COL|NUMBER",
        "What nobody is to find out: whether the number reaches this border. A number, or the "
        "column with the border of each record.",
    )
    within: str | None = option(
        "D", "Numbers at most so far from the border are reported as the border."
    )
    y: str | None = option(
        "COL[,COL..]", "What is released beside the report (default: the border alone)."
    )


@dataclass(frozen=True, kw_only=True)
class ShiftOptions:
    """What is counted."""

    individuals: int | None = option("N", "How many values are added up or averaged.")
    coefficients: str | None = option(
        "C,C,..", "Their weights, if they differ (in the place of --individuals)."
    )
    range: str = option("LO,HI", "The range of every value.", "0,1")
    epsilon: str | None = option(
        "BITS", "The most levels at which at most 2^BITS outputs differ."
    )
    levels: int | None = option("Q", "Count the outputs that differ at Q levels.")


@app.callback()
def _root() -> None: ...


MEASURE_EXAMPLE = (
    "Example:  mechdesign nonstochastic measure release.csv --x age,zip --y released"
)


def measure(
    reporter: Reporter,
    asked: RangeOptions,
    text: table_options.TextFormat,
    common: options.CommonOptions,
) -> int:
    """Measure the leakage of released columns about private ones, without probabilities (bits)."""
    private = columns("--x", asked.x)
    released = columns("--y", asked.y)
    if private is None:
        raise InputError("--x COL is missing: which column?")
    if released is None:
        raise InputError("--y COL is missing: which column?")
    tested = asked.tested
    roles = {
        "x": private,
        "y": released,
        "hypothesis": (),
        "feature": columns("--feature", asked.feature) or (),
    }
    # The column of the hypothesis is read like the others; its value is no column.
    if tested is not None:
        roles["hypothesis"] = tested[:1]
    # Imported here: the help needs none of it.
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import measure_table, read_text_columns

    with reporter.work("measuring"):
        table, resolved = read_text_columns(
            asked.table, roles, asked.missing, text=text.text()
        )
        measures = measure_table(
            table,
            resolved["x"],
            resolved["y"],
            feature=resolved["feature"],
            hypothesis=tested,
            epsilon=asked.epsilon,
            zero_error=asked.zero_error,
        )
    reporter.done(
        "measured",
        f"{asked.table} is measured",
        records=measures["records"],
        identifiable=measures["identifiable"],
    )
    common.answer(lambda: measures, lambda: text_of("measure", measures))
    # None where no epsilon was given, so there was no question to say no to.
    return NO if measures["identifiable"] is False else 0


HYPOTHESIS_EXAMPLE = (
    "Example:  mechdesign nonstochastic hypothesis release.csv --y released "
    "--hypothesis smoker=yes"
)


def hypothesis(
    reporter: Reporter,
    asked: Tested,
    text: table_options.TextFormat,
    common: options.CommonOptions,
) -> None:
    """Find the best test of a hypothesis on a release, and the privacy of the release against
    it.
    """
    released = columns("--y", asked.y)
    tested = asked.tested
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
        table, resolved = read_text_columns(
            asked.table, roles, asked.missing, text=text.text()
        )
        record = tested_hypothesis(table, resolved["y"], *tested)
    reporter.done("tested", f"{asked.table} is tested")
    common.answer(lambda: record, lambda: text_of("hypothesis", record))


POLICY_EXAMPLE = (
    "Example:  mechdesign nonstochastic policy people.csv --x weight --hypothesis obese=yes "
    "--epsilon 3 --within 10"
)


def policy(
    reporter: Reporter,
    asked: PolicyOptions,
    text: table_options.TextFormat,
    common: options.CommonOptions,
) -> None:
    """Find the nearest reports of numbers of which few settle a hypothesis."""
    names = columns("--x", asked.x)
    tested = asked.tested
    if names is None or tested is None or asked.epsilon is None:
        raise InputError("--x COL, --hypothesis COL=VALUE and --epsilon E are needed")
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import policy_table

    with reporter.work("searching"):
        record = policy_table(
            asked.table,
            names,
            tested,
            asked.epsilon,
            asked.within,
            missing=asked.missing,
            text=text.text(),
        )
    reporter.done("found", f"a policy for {asked.table} is found")
    common.answer(lambda: record, lambda: text_of("policy", record))


BLUR_EXAMPLE = (
    "Example:  mechdesign nonstochastic blur people.csv --x weight --border heavy_from "
    "--within 5"
)


def blur(
    reporter: Reporter,
    asked: BlurOptions,
    text: table_options.TextFormat,
    common: options.CommonOptions,
) -> None:
    """Report a border in the place of every number near it, and measure what that hides."""
    if asked.x is None or asked.border is None or asked.within is None:
        raise InputError("--x COL, --border COL|NUMBER and --within D are needed")
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import blur_table

    beside = columns("--y", asked.y) or ()
    if isinstance(beside, str):
        beside = (beside,)
    with reporter.work("blurring"):
        record = blur_table(
            asked.table,
            asked.x,
            asked.border,
            asked.within,
            beside=beside,
            missing=asked.missing,
            text=text.text(),
        )
    reporter.done("blurred", f"{asked.table} is measured as it would be blurred")
    common.answer(lambda: record, lambda: text_of("blur", record))


SHIFT_EXAMPLE = (
    "Example:  mechdesign nonstochastic shift --individuals 100 --range 0,40 "
    "--epsilon 3"
)


def shift(asked: ShiftOptions, common: options.CommonOptions) -> None:
    """Count the outputs of a quantised sum or mean that one individual shifts."""
    from mechdesign.nonstochastic.indistinguishability import levels_record
    from mechdesign.nonstochastic.queries import check_whole
    from mechdesign.nonstochastic.reports import text_of

    if (asked.individuals is None) == (asked.coefficients is None):
        raise InputError("either --individuals N or --coefficients C,C,.. is needed")
    if (asked.epsilon is None) == (asked.levels is None):
        raise InputError("either --epsilon BITS or --levels Q is needed")
    if asked.coefficients is not None:
        coefficients: list[str] = asked.coefficients.split(",")
    else:
        coefficients = ["1"] * check_whole("--individuals", asked.individuals)
    bounds = asked.range.split(",")
    if len(bounds) != 2:
        raise InputError(f"--range {asked.range!r} must be LO,HI: two numbers")
    record = levels_record(
        coefficients, bounds, epsilon=asked.epsilon, levels=asked.levels
    )
    common.answer(lambda: record, lambda: text_of("shift", record))


PARTITION_EXAMPLE = (
    "Example:  mechdesign nonstochastic partition ages.csv --x age --epsilon 3"
)


def partition(
    reporter: Reporter,
    asked: PartitionOptions,
    text: table_options.TextFormat,
    common: options.CommonOptions,
) -> None:
    """Partition a column of numbers into epsilon-identifiable cells of least mean squared error."""
    if asked.x is None:
        raise InputError("--x COL is missing")
    if asked.epsilon is None:
        raise InputError("--epsilon BITS is missing")
    from mechdesign.nonstochastic.reports import text_of
    from mechdesign.nonstochastic.table_measures import partition_column

    with reporter.work("partitioning"):
        record = partition_column(
            asked.table, asked.x, asked.epsilon, asked.missing, text=text.text()
        )
    reporter.done("partitioned", f"{asked.table} is partitioned")
    common.answer(lambda: record, lambda: text_of("partition", record))


# Here and not in `application`: in the group of their own these commands may have names, such as
# `measure`, that others have outside of it.
app.command("measure", cls=PlainCommand, epilog=MEASURE_EXAMPLE)(command(measure))
app.command("hypothesis", cls=PlainCommand, epilog=HYPOTHESIS_EXAMPLE)(
    command(hypothesis)
)
app.command("policy", cls=PlainCommand, epilog=POLICY_EXAMPLE)(command(policy))
app.command("blur", cls=PlainCommand, epilog=BLUR_EXAMPLE)(command(blur))
app.command("shift", cls=PlainCommand, epilog=SHIFT_EXAMPLE)(command(shift))
app.command("partition", cls=PlainCommand, epilog=PARTITION_EXAMPLE)(command(partition))
