"""`mechdesign quantize DATA OUT`: release numbers in cells, noiselessly private.

The range of the answers is cut into cells, and OUT has the cell in the place of the number.
Whatever the other records are, one individual moves an answer only within an interval. The cells
are so wide that no such interval meets more than floor(2^epsilon) of them, epsilon in bits.
Example: --epsilon 2 leaves one individual at most 4 outputs. With --range 0,100 the cells are 25
wide, and an age of 30 is released as 37.5, the middle of its cell.

`nonstochastic.quantize_table` does the work. Here the options are checked and put together, and
the result is printed; with --compare (`_compare`) a table of budgets is written and no release.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.parsing import names
from mechdesign.cli.released import KeptOptions, LedgerOption
from mechdesign.core.errors import InputError, errors_noting

if TYPE_CHECKING:
    from mechdesign.nonstochastic.quantize_table import QuantizeOptions
    from mechdesign.nonstochastic.release_answers import RangeRelease

QUANTIZE_EXAMPLE = (
    "Example:  mechdesign quantize meters.csv released.csv --column kwh --epsilon 2 --query mean "
    "--group-by day --range 0,100 --individual household"
)


@dataclass(frozen=True, kw_only=True)
class RangeBudget:
    """What is promised"""

    epsilon: str | None = option(
        "BITS",
        "Budget of one answer: one individual can bring about at most floor(2^BITS) outputs.",
    )
    total_epsilon: str | None = option(
        "BITS",
        "Budget of all answers of one individual together, in place of --epsilon; needs "
        "--individual.",
    )
    split: str | None = option(
        "HOW",
        "Division of --total-epsilon among answers: levels (equal outputs, the default), error "
        "(by size of group, for the least sum of the largest errors of all answers), lifted "
        "(error, and at least an equal share for each answer).",
    )
    range_text: str | None = option(
        "LO,HI",
        "The smallest and largest value that any cell could have; not taken from the data.",
        names="--range",
    )
    domain: str | None = option(
        "VALUES",
        "All values that a cell can have: V1,V2,.. or LO:HI:STEP, or a CSV file (symbol,share) "
        "with their probabilities. With --range, values between these are possible, too, and are "
        "counted.",
    )
    individual: str | None = option(
        "COL",
        "Column that identifies individuals; then the budgets of one individual's answers are "
        "added up.",
    )


@dataclass(frozen=True, kw_only=True)
class QueryFiles:
    """What is read and written."""

    source: str = argument("DATA", "CSV or Parquet file, one record a row.")
    target: str = argument("OUT", "Where to write the release (the same kind of file).")
    mechanism: str | None = option(
        "FILE", "Where to write the mechanism file (OUT.mechanism.json)."
    )
    compare: str | None = option(
        "GRID",
        "Compare budgets and release nothing: write the promises and the errors of each budget "
        "of START:STOP:STEP or E1,E2,.. into OUT (a CSV). For you alone, because errors depend "
        "on the data.",
    )
    plot: str | None = option(
        "FILE", "With --compare, draw error against budget: .png, .svg or .pdf."
    )


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What is answered, and how coarsely."""

    column: str | None = option("COL", "The column of numbers to release.")
    query: str = option(
        "NAME",
        "Released number: identity (each record's own value), mean, sum, count, median, min, "
        "max or quantile:P, of all records or of each group.",
        "identity",
    )
    group_by: str | None = option(
        "COL[,COL..]", "One answer for each value of these columns."
    )
    outside: str | None = option(
        "WHAT",
        "Treatment of values outside the range: refuse (an error), clip (to the nearest of it), "
        "mark (an empty answer), drop (leave the record out). The last two are one more output, "
        "for which there is one cell less.",
    )
    clip: bool = flag("The same as --outside clip.")
    equals: str | None = option(
        "VALUE", "With --query count: count the records with this value."
    )
    layout: str = option(
        "NAME",
        "Layout of the cells: widest (the smallest worst-case error), levels (the most levels), "
        "uniform (equal cells).",
        "widest",
    )
    thresholds: str | None = option(
        "HOW",
        "Thresholds in place of a layout: T1,T2,.. (between answers), or with --domain optimal "
        "(least mean squared error) or most (the most levels).",
    )
    missing: str = option(
        "WHAT",
        "Treatment of empty cells: refuse (an error), drop (leave the record out), symbol (a group "
        "of its own).",
        "refuse",
    )


def quantize(
    reporter: Reporter,
    files: QueryFiles,
    budget: RangeBudget,
    asked: QueryOptions,
    kept: KeptOptions,
    draws: LedgerOption,
    text: table_options.TextFormat,
    common: options.CommonOptions,
    force: options.Force = False,
) -> int:
    """Release a column, or its mean, sum, count or median, rounded so that one individual barely
    affects the result.

    No noise and no probabilities: whatever the other records are, one individual can bring about at
    most floor(2^epsilon) different outputs (noiseless privacy). The count is exact and is written,
    with all thresholds, into a mechanism file beside the release.
    """
    _check_budget(files, budget, asked)
    from mechdesign.jobs.ledger_file import default_path
    from mechdesign.jobs.stopping import Stopped, stoppable
    from mechdesign.nonstochastic.quantize_table import quantise_table

    quantising = _options(asked, budget)
    start = time.perf_counter()
    # With --compare OUT is a table of budgets, for the owner of the data alone.
    if files.compare is not None:
        _compare(reporter, files, quantising, text, common, force)
        return 0
    try:
        with stoppable(), reporter.work("quantising", unit="B") as work:
            release = quantise_table(
                files.source,
                files.target,
                quantising,
                total_epsilon=budget.total_epsilon,
                text=text.text(),
                mechanism_path=files.mechanism,
                force=force,
                ledger=draws.ledger or default_path(),
                key_from=draws.key,
                records=kept.kept_arguments(),
                progress=work.at,
            )
    # A signal came before OUT had its name, so nothing was written. Ctrl-C goes on to `main`.
    except Stopped as stopped:
        reporter.error(str(stopped), event="stopped", exit_code=stopped.exit_code)
        return stopped.exit_code
    mechanism_path = _mechanism_path(files, quantising)
    # OUT is complete: a Ctrl-C while the answer is printed is no failure.
    reporter.finished = True
    _answer(reporter, release, files.target, mechanism_path, start, common)
    return 0


def _mechanism_path(files: QueryFiles, quantising: QuantizeOptions) -> str:
    """Where the mechanism file is, or the folder of several."""
    from mechdesign.formats.opening import is_folder

    if quantising.query == "identity" and is_folder(files.source):
        # A folder of files gets a mechanism file for each of them.
        return f"{files.target}/_manifests"
    return files.mechanism or f"{files.target}.mechanism.json"


def _answer(
    reporter: Reporter,
    release: RangeRelease,
    target: str,
    mechanism_path: str,
    start: float,
    common: options.CommonOptions,
) -> None:
    """Log a release that began at `start` (seconds of `time.perf_counter`), and print it."""
    from mechdesign.nonstochastic.reports import quantize_record, text_of

    reporter.notices(release.notices)
    reporter.done(
        "quantised",
        f"written to {target}",
        output=target,
        mechanism=mechanism_path,
        records=release.records,
    )
    seconds = time.perf_counter() - start
    common.answer(
        lambda: quantize_record(release, target, mechanism_path, seconds),
        lambda: (
            f"{text_of('quantize', release)}\n\n"
            f"Written to {target}; the mechanism and its guarantee to {mechanism_path}."
        ),
    )


def _check_budget(files: QueryFiles, budget: RangeBudget, asked: QueryOptions) -> None:
    """Raise InputError unless there is a column, and exactly one of the budgets.

    A grid of budgets to compare counts as one of them: --compare releases nothing by another.
    """
    if asked.column is None:
        raise InputError("--column COL is missing")
    budgets = (budget.epsilon, budget.total_epsilon, files.compare)
    number = sum(value is not None for value in budgets)
    if number == 0:
        raise InputError("--epsilon BITS is missing")
    if number > 1:
        raise InputError(
            "--epsilon is the budget of one answer, --total-epsilon of all, and --compare has "
            "several: give one of them"
        )
    if files.plot is not None and files.compare is None:
        raise InputError("--plot draws what --compare computes: give it too")


def _options(asked: QueryOptions, budget: RangeBudget) -> QuantizeOptions:
    """The options of the release, as `quantise_table` takes them.

    The fields of both groups have the names of those of `QuantizeOptions`; the few that are texts
    with a meaning (domain, thresholds, groups) are read here.
    """
    from mechdesign.comparison.rows import parse_grid
    from mechdesign.nonstochastic.quantize_table import QuantizeOptions

    # What is not read below has the same meaning there, as the texts that were typed.
    typed: dict[str, Any] = asdict(asked) | asdict(budget)
    # The budget of all answers is an argument of its own.
    del typed["total_epsilon"]
    clip = typed.pop("clip")
    if clip and asked.outside not in (None, "clip"):
        raise InputError(
            f"--clip and --outside {asked.outside} say different things: give one of them"
        )
    if clip:
        typed["outside"] = "clip"
    elif asked.outside is None:
        typed["outside"] = "refuse"
    typed["domain"] = _domain(budget.domain)
    # Two words are a way to place the thresholds, and stay as they are.
    if asked.thresholds not in (None, "optimal", "most"):
        typed["thresholds"] = parse_grid(
            "--thresholds (optimal, most, or numbers)", asked.thresholds
        )
    group_by = None if asked.group_by is None else [asked.group_by]
    typed["group_by"] = names("--group-by", group_by)
    return QuantizeOptions(**typed)


def _domain(text: str | None) -> Sequence[float] | Mapping[float, object] | None:
    """The values of a domain, or with a CSV file their probabilities by value.

    ``0:10:5`` is [0, 5, 10]. A file with the lines ``0,0.25`` and ``5,0.75`` is {0: 0.25, 5: 0.75},
    its shares as they were written.
    """
    from mechdesign.comparison.rows import parse_grid
    from mechdesign.tables.confidence import read_shares

    if text is None:
        return None
    if not text.endswith(".csv"):
        return parse_grid("--domain", text)
    shares: dict[float, object] = {}
    for value, share in read_shares(text).items():
        number = parse_grid(f"--domain {text}, value", value)[0]
        # Texts are distinct in the file, but 1 and 1.0 are the same number.
        if number in shares:
            raise InputError(
                f"--domain {text}: the value {value} is there twice, in other words; add up its "
                "shares"
            )
        shares[number] = share
    return shares


def _compare(
    reporter: Reporter,
    files: QueryFiles,
    quantising: QuantizeOptions,
    text: table_options.TextFormat,
    common: options.CommonOptions,
    force: bool,
) -> None:
    """Write the promises and errors of several budgets, and draw them.

    Both files are checked before the work, which can take minutes.
    """
    from mechdesign.comparison.rows import parse_grid
    from mechdesign.core.files import STANDARD, check_target, replacing
    from mechdesign.nonstochastic.quantize_table import compare_budgets
    from mechdesign.nonstochastic.reports import curve_csv, text_of

    if files.target == STANDARD:
        raise InputError(
            "--compare writes a file: name it, or take --json for standard output"
        )
    # Nothing is released here, so there is no ledger and no mechanism file.
    check_target(files.target, force=force, sources=(files.source,))
    if files.plot is not None:
        from mechdesign.report.plots import check_plot

        check_plot(files.plot, force=force, sources=(files.source, files.target))
    epsilons = sorted(set(parse_grid("--compare", files.compare or "")))
    with reporter.work("comparing budgets", unit="B") as work:
        rows = compare_budgets(
            files.source, quantising, epsilons, text=text.text(), progress=work.at
        )
    with replacing(files.target, force=force) as part:
        part.write_text(curve_csv(rows), encoding="utf-8", newline="\n")
    if files.plot is not None:
        from mechdesign.nonstochastic.reports import save_curve

        with errors_noting(f"{files.target} is written"):
            save_curve(rows, files.plot, overwrite=force)
    places = {"output": files.target, "plot": files.plot}
    reporter.done("compared", f"written to {files.target}", **places)
    common.answer(lambda: {"rows": rows, **places}, lambda: text_of("curve", rows))
