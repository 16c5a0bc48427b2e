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
from mechdesign.nonstochastic.quantize_options import QuantizeOptions
from mechdesign.nonstochastic.quantize_table import quantise_table
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


def main(argv: Sequence[str] | None = None) -> list[dict[str, Any]]:
    asked = options(__doc__, argv)
    source = data_folder() / "smart-meter" / "daily_kwh_537x49.csv"
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, first in enumerate((0, DAYS)):
            month(source, folder / f"{k}.csv", first)
        for total in TOTALS:
            wanted = QuantizeOptions(
                column="kwh",
                epsilon=None,
                query="mean",
                group_by=("day",),
                range_text=RANGE,
                individual="household",
                outside="clip",
            )
            made = folder / f"{total}.csv.mechanism.json"
            done = quantise_table(
                folder / "0.csv",
                folder / f"{total}.csv",
                wanted,
                total_epsilon=total,
                mechanism_path=made,
            )
            later = folder / f"{total}-next.csv"
            again = apply_mechanism(
                made, folder / "1.csv", later, individual="household"
            )
            for k, what, result, released in (
                (0, "first", done, folder / f"{total}.csv"),
                (1, "next", again, later),
            ):
                file = Path(f"{released}.mechanism.json")
                checked = check_quantised(file, released, data=folder / f"{k}.csv")
                rows.append(
                    {
                        "total": total,
                        "month": what,
                        "answers": result.answers,
                        "bits": result.total_epsilon,
                        "clipped": result.outside,
                        "mean error": result.mean_error,
                        "worst error": result.worst_error,
                        "audit": "kept" if verify_file(file).satisfied else "NO",
                        "check": "same" if checked.satisfied and checked.same else "NO",
                    }
                )
    show(rows)
    if asked.out:
        write_csv(asked.out, "monthly", rows)
    return rows


if __name__ == "__main__":
    main()
