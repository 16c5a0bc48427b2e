"""The verbs of channels on mechanism files: audit, show, measure, apply and check tell them by their first bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options as o
from mechdesign.cli.console import NO
from mechdesign.cli.line import option
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.cli.console import Reporter
    from mechdesign.formats.inputs import TextOptions

FORMAT = b'"mechdesign.quantizer"'
"""The format of a mechanism file, which its first line says."""

HEAD = 4096
"""Bytes that are looked at."""


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """With a mechanism file of `quantize` in place of a channel"""

    equals: str | None = option("VALUE", "For a count: count the records with this value.")
    outside: str | None = option(
        "WHAT",
        "A value outside the range: refuse it, or clip it to the end (default: as the mechanism was made).",
    )


def is_mechanism(path: str | None) -> bool:
    """Whether a file says that it is a mechanism file; what cannot be read is none."""
    try:
        with open(path or "", "rb") as stream:
            return FORMAT in stream.read(HEAD)
    except OSError:
        return False


def audit_mechanism(path: str, reporter: Reporter, common: o.CommonOptions) -> int:
    """Count everything again that the file claims."""
    from mechdesign.nonstochastic.mechanism_file import verify_file
    from mechdesign.report.ranges import verdict_record, verdict_text

    with reporter.work("auditing"):
        found = verify_file(path)
    kept = "keeps" if found.satisfied else "violates"
    reporter.done("audited", f"{path} {kept} what it says", satisfied=found.satisfied)
    common.answer(lambda: verdict_record(found), lambda: verdict_text(found))
    return 0 if found.satisfied else NO


def show_mechanism(path: str, reporter: Reporter, common: o.CommonOptions, *, as_csv: bool) -> None:
    """Print the cells."""
    from mechdesign.nonstochastic.mechanism_file import read_verified
    from mechdesign.report.ranges import cells_csv, cells_text, verdict_record

    found = read_verified(path)
    reporter.done("shown", f"{path} is shown")
    common.answer(lambda: verdict_record(found), lambda: (cells_csv if as_csv else cells_text)(found))


def measure_mechanism(path: str, reporter: Reporter, common: o.CommonOptions) -> None:
    """Print the budget and the error of each size of group."""
    from mechdesign.nonstochastic.mechanism_file import read_verified
    from mechdesign.report.ranges import budget_rows, budget_text

    found = read_verified(path)
    reporter.done("measured", f"{path} is measured")
    common.answer(lambda: {"sizes": budget_rows(found)}, lambda: budget_text(found))


def release_of(
    path: str,
    source: str,
    target: str,
    numbers: MechanismOptions,
    renamed: dict[str, str],
    individual: tuple[str, ...],
    how: dict[str, Any],
) -> Callable[..., Any]:
    """The release of the numbers of a table through the mechanism; it takes a `progress`."""
    from mechdesign.sanitise.quantized import OUTSIDE, apply_mechanism

    if len(individual) > 1 or len(renamed) > 1:
        raise InputError("a mechanism has one column, and one column that identifies individuals")
    if numbers.outside not in (None, *OUTSIDE):
        raise InputError(f"--outside {numbers.outside!r} must be one of {', '.join(OUTSIDE)}")
    return partial(
        apply_mechanism,
        path,
        source,
        target,
        column=next(iter(renamed.values()), None),
        individual=next(iter(individual), None),
        equals=numbers.equals,
        outside=numbers.outside,
        **{key: how[key] for key in ("text", "compression", "force")},
    )


def applied(done: Any, target: str) -> tuple[dict[str, Any], str]:
    """What is said of such a release, as JSON and for people."""
    from mechdesign.report.ranges import applied_record, applied_text

    return applied_record(done, target), applied_text(done, target)


def check_against(
    path: str,
    released: str,
    reporter: Reporter,
    common: o.CommonOptions,
    numbers: MechanismOptions,
    *,
    original: str | None,
    renamed: dict[str, str],
    text: TextOptions,
) -> int:
    """Check a released file against the mechanism."""
    from mechdesign.report.ranges import release_check_text
    from mechdesign.sanitise.quantized_check import check_quantised

    with reporter.work("checking"):
        found = check_quantised(
            path,
            released,
            data=original,
            column=next(iter(renamed.values()), None),
            equals=numbers.equals,
            text=text,
        )
    reporter.done("checked", f"{released} is checked", plausible=found.satisfied, records=found.answers)
    record = {"plausible": found.satisfied, **asdict(found)}
    common.answer(lambda: record, lambda: release_check_text(found, released))
    return 0 if found.satisfied else NO
