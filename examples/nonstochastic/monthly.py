"""A smart-meter company releases mean consumption every month, and a regulator audits what it got.

The first 24 days are designed for a total of so many bits a household; the next 24 days go through the same mechanism
file. Every release is audited and checked against the data. Set MECHDESIGN_DATA to the folder that holds
smart-meter/.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiment import data_folder, options, show, write_csv

from mechdesign.nonstochastic.claims import verify_file
from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from mechdesign.nonstochastic.release_answers import RangeRelease
from mechdesign.nonstochastic.released_check import check_quantised

DAYS = 24
"""Two periods that do not overlap within the 49 days of data."""

TOTALS = (24, 48, 72)
RANGE = "0,200"
"""kWh a day that a household could use; public, and not taken from the data."""


def month(source: Path, target: Path, first: int) -> None:
    """`DAYS` days of the wide table of households by days, long: one record a household and day."""
    with (
        source.open(newline="", encoding="utf-8") as stream,
        target.open("w", encoding="utf-8") as sink,
    ):
        reader = csv.reader(stream)
        days = next(reader)[1 + first : 1 + first + DAYS]
        sink.write("household,day,kwh\n")
        for row in reader:
            for day, cell in zip(days, row[1 + first :], strict=False):
                if cell not in ("", "NA"):
                    sink.write(f"{row[0]},{day},{cell}\n")


def audited(
    result: RangeRelease, file: Path, released: Path, data: Path
) -> dict[str, Any]:
    """What the regulator finds: the claims of the file recounted, and the data released again."""
    check = check_quantised(file, released, data=data)
    return {
        "answers": result.answers,
        "bits": result.total_epsilon,
        "clipped": result.outside,
        "mean error": result.mean_error,
        "worst error": result.worst_error,
        "audit": "kept" if verify_file(file).satisfied else "NO",
        "check": "same" if check.satisfied and check.same else "NO",
    }


def two_months(folder: Path, total: int) -> list[dict[str, Any]]:
    """A row for each month, of which the first is designed for so many bits a household."""
    release_options = QuantizeOptions(
        column="kwh",
        epsilon=None,
        query="mean",
        group_by=("day",),
        range_text=RANGE,
        individual="household",
        outside="clip",
    )
    data = folder / "0.csv"
    released = folder / f"{total}.csv"
    file = folder / f"{total}.csv.mechanism.json"
    result = quantise_table(
        data, released, release_options, total_epsilon=total, mechanism_path=file
    )
    first = audited(result, file, released, data)

    # The same mechanism file: thresholds for new sizes of groups are laid out by its rule.
    data = folder / "1.csv"
    released = folder / f"{total}-next.csv"
    result = apply_mechanism(file, data, released, individual="household")
    # The mechanism in use is written beside the release.
    next_file = Path(f"{released}.mechanism.json")
    following = audited(result, next_file, released, data)
    return [
        {"total": total, "month": "first", **first},
        {"total": total, "month": "next", **following},
    ]


def main(argv: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Release and audit two months for each total, print, write."""
    arguments = options(__doc__, argv)
    source = data_folder() / "smart-meter" / "daily_kwh_537x49.csv"
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, first in enumerate((0, DAYS)):
            month(source, folder / f"{k}.csv", first)
        for total in TOTALS:
            rows += two_months(folder, total)
    show(rows)
    if arguments.out:
        write_csv(arguments.out, "monthly", rows)
    return rows


if __name__ == "__main__":
    main()
