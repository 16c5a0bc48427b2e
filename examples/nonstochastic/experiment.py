"""What the experiments on real data share: where the data are, CSV files, and pictures where they can be made."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Table = list[dict[str, Any]]


def options(description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """``--full`` (minutes instead of seconds) and ``--out FOLDER``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--full", action="store_true", help="more draws, as in the paper"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the CSV file and the picture"
    )
    return parser.parse_args(argv)


def data_folder() -> Path:
    """The folder of real data, from MECHDESIGN_DATA."""
    folder = os.environ.get("MECHDESIGN_DATA")
    if not folder:
        sys.exit(
            "MECHDESIGN_DATA must name the folder of real data (smart-meter, redd, nyc-taxi)"
        )
    return Path(folder)


def show(rows: Table) -> None:
    """The table on the screen."""
    widths = {name: max(len(name), 9) for name in rows[0]}
    print("  ".join(f"{name:>{width}}" for name, width in widths.items()))
    for row in rows:
        print(
            "  ".join(f"{_text(row[name]):>{width}}" for name, width in widths.items())
        )


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_csv(folder: Path, name: str, rows: Table) -> None:
    """The table as FOLDER/name.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([list(rows[0]), *(row.values() for row in rows)])


def pyplot() -> Any | None:
    """matplotlib.pyplot for files, or None (with a word) where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        print("for the picture install matplotlib")
        return None
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt
