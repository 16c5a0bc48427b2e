"""What audit, show, measure, report, check and apply do with a mechanism file of `quantize`.

A mechanism file has the thresholds at which a query on numbers is quantised, where a channel has
probabilities. The commands are for channels, but take such a file in the place of a channel. Each
asks `is_mechanism`, which reads the beginning of the file, and hands it to its function here.

The functions are alike. `nonstochastic` loads the file and counts again what its thresholds
disclose; a `reports` function turns the outcome into a record for --json or a text. Where a verdict
is the answer (audit, report, check) a wrong claim of the file makes the exit code 1; the other
commands refuse such a file (`read_verified`).

Only these functions import `nonstochastic`, each when it is called: a command on a channel does not
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.failures import NO
from mechdesign.cli.line import option
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.nonstochastic.release_answers import RangeRelease

FORMAT = b'"mechdesign.quantizer"'
"""The format of a mechanism file, which is in its first line."""

HEAD = 4096
"""Bytes of a file that are searched for the format: more than its first line takes."""


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """With a mechanism file of `quantize` in place of a channel"""

    equals: str | None = option(
        "VALUE", "For a count: count the records with this value."
    )
    outside: str | None = option(
        "WHAT",
        "A value outside the range: refuse, clip, mark or drop it (default: as the mechanism was "
        "designed).",
    )


def is_mechanism(path: str | None) -> bool:
    """Whether a file has the format of a mechanism file; a file that cannot be read has not."""
    # Whatever is wrong with the file is said by the command that then loads it as a channel.
    try:
        with open(path or "", "rb") as stream:
            return FORMAT in stream.read(HEAD)
    except OSError:
        return False


def audit_mechanism(
    path: str,
    reporter: Reporter,
    common: options.CommonOptions,
    *,
    with_sizes: bool = False,
) -> int:
    """Recount every claim of a mechanism file; the exit code is 0 if all are right.

    `with_sizes` adds budget and error of every size of group, if the claims are right.
    """
    from mechdesign.nonstochastic.claims import verify_file
    from mechdesign.nonstochastic.reports import budget_rows, text_of, verdict_record

    with reporter.work("auditing"):
        verified = verify_file(path)
    result = "violates"
    if verified.satisfied:
        result = "keeps"
    reporter.done(
        "audited", f"{path} {result} what it says", satisfied=verified.satisfied
    )
    record = dict(verdict_record(verified))
    text = text_of("audit", verified)
    # Budgets and errors of a file whose claims are wrong would be wrong, too.
    if with_sizes and verified.satisfied:
        rows = budget_rows(verified)
        record["sizes"] = rows
        text += "\n\n" + text_of("budget", verified, rows)
    common.answer(lambda: record, lambda: text)
    return 0 if verified.satisfied else NO


def show_mechanism(path: str, common: options.CommonOptions, *, as_csv: bool) -> None:
    """Print the cells of a mechanism file, for people or as CSV with exact ends."""
    from mechdesign.nonstochastic.claims import read_verified
    from mechdesign.nonstochastic.reports import cells_csv, text_of, verdict_record

    verified = read_verified(path)
    text = cells_csv if as_csv else partial(text_of, "show")
    common.answer(lambda: verdict_record(verified), lambda: text(verified))


def measure_mechanism(
    path: str, reporter: Reporter, common: options.CommonOptions
) -> None:
    """Print budget and error of every size of group of a mechanism file."""
    from mechdesign.nonstochastic.claims import read_verified
    from mechdesign.nonstochastic.reports import budget_rows, text_of

    verified = read_verified(path)
    rows = budget_rows(verified)
    reporter.done("measured", f"{path} is measured")
    common.answer(lambda: {"sizes": rows}, lambda: text_of("budget", verified, rows))


def report_mechanism(
    path: str,
    files: Mapping[str, str | None],
    text: Callable[[], str],
    reporter: Reporter,
    common: options.CommonOptions,
    *,
    force: bool,
) -> int:
    """Write the report of a mechanism file, one version for all readers.

    A report on a channel has a public version without the counts of the table. A mechanism file has
    nothing of its table but the sizes of groups, which count as public.

    Parameters
    ----------
    files
        The paths of the reports by their option; None for those not asked for.
    text
        Gives the sentence that names them.
    """
    from mechdesign.nonstochastic.claims import verify_file
    from mechdesign.nonstochastic.reports import save_mechanism_reports

    verified = verify_file(path)
    targets = [target for target in files.values() if target is not None]
    save_mechanism_reports(verified, path, targets, overwrite=force)
    satisfied = verified.satisfied
    reporter.done("reported", text(), **files, satisfied=satisfied)
    common.answer(lambda: {**files, "satisfied": satisfied}, text)
    return 0 if satisfied else NO


@dataclass(frozen=True, kw_only=True)
class MechanismCheck:
    """The verdict on a released file: its record for --json, and its text."""

    plausible: bool
    answers: int
    record: Mapping[str, Any]
    text: str


def check_mechanism(
    path: str,
    released: str,
    number_options: MechanismOptions,
    text: table_options.TextFormat,
    *,
    name: str,
    original: str | None,
    column: str | None,
) -> MechanismCheck:
    """Check a released file against a mechanism file.

    Parameters
    ----------
    name
        The released file, in words.
    original
        The data that were released.
    column
        The name of the released column in them, if it is another one.
    """
    from mechdesign.nonstochastic.released_check import check_quantised
    from mechdesign.nonstochastic.reports import text_of

    check = check_quantised(
        path,
        released,
        data=original,
        column=column,
        equals=number_options.equals,
        text=text.text(),
    )
    return MechanismCheck(
        plausible=check.satisfied,
        answers=check.answers,
        record={"plausible": check.satisfied, **asdict(check)},
        text=text_of("check", check, name),
    )


def mechanism_release(
    path: str,
    source: str,
    target: str,
    number_options: MechanismOptions,
    arguments: Mapping[str, Any],
    individuals: tuple[str, ...],
) -> Callable[..., Any]:
    """The release of the numbers of a table through the mechanism; it takes a `progress`.

    Parameters
    ----------
    arguments
        Those of `apply_mechanism`, but for `column`. The table's name of that column is in the
        entry `columns` of `records`, as for a channel.
    individuals
        The columns that identify individuals, at most one.

    Raises
    ------
    InputError
        If more than one column is renamed, or identifies individuals.
    """
    from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism

    # A mechanism releases one column. More than one could only be meant for a channel.
    records = dict(arguments["records"])
    renamed = records.pop("columns")
    if len(individuals) > 1 or len(renamed) > 1:
        raise InputError(
            "a mechanism has one column, and one column that identifies individuals"
        )
    return partial(
        apply_mechanism,
        path,
        source,
        target,
        **{**arguments, "records": records},
        equals=number_options.equals,
        outside=number_options.outside,
        column=next(iter(renamed.values()), None),
        individual=next(iter(individuals), None),
    )


def answer_mechanism_release(
    release: RangeRelease, target: str, common: options.CommonOptions, *, dry_run: bool
) -> None:
    """Print the result of a release through a mechanism."""
    from mechdesign.nonstochastic.reports import applied_record, text_of

    common.answer(
        lambda: applied_record(release, target),
        lambda: text_of("apply", release, target, rehearsed=dry_run),
    )
