"""How many taxi trips can be told apart by where they start and end (Figure 6 of Farokhi's 'Noiseless privacy').

Latitude and longitude of a place are each released in floor(2^(epsilon/2)) cells, so a place costs epsilon bits
and a trip, with its two places, 2 epsilon (composition). A trip is unique if no other one starts and ends in the
same cells.

Set MECHDESIGN_DATA to the folder that holds nyc-taxi/.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from experiment import Table, data_folder, options, pyplot, show, write_csv

from mechdesign.nonstochastic.noiseless import design_quantizer
from mechdesign.nonstochastic.queries import identity_query, interval

LATITUDES = (40.49, 40.92)
LONGITUDES = (-74.27, -73.68)
RANGES = (LATITUDES, LONGITUDES, LATITUDES, LONGITUDES)
"""The ranges of the four coordinates of a trip, in degrees."""

EPSILONS = tuple(range(0, 25, 2))
COORDINATES = (
    "pickup_latitude",
    "pickup_longitude",
    "dropoff_latitude",
    "dropoff_longitude",
)


def load(folder: Path) -> tuple[np.ndarray, int]:
    """The coordinates of the trips inside the city, shape (trips, 4), and the trips read."""
    trips: list[list[float]] = []
    read = 0
    for colour in ("yellow", "green"):
        path = folder / "nyc-taxi" / f"{colour}_2016_01_sample.csv"
        with path.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                read += 1
                trip = [float(row[name]) for name in COORDINATES]
                if is_inside(trip):
                    trips.append(trip)
    return np.array(trips), read


def is_inside(trip: Sequence[float]) -> bool:
    """Whether both ends of a trip lie in the city."""
    return all(lo <= x <= hi for x, (lo, hi) in zip(trip, RANGES, strict=True))


def cells_of(trips: np.ndarray, epsilon: int) -> tuple[np.ndarray, int]:
    """The cells of every coordinate, shape (trips, 4), and the most outputs of one trip (counted)."""
    cells = np.empty(trips.shape, dtype=np.int64)
    outputs = 1
    for column, (lo, hi) in enumerate(RANGES):
        query = identity_query(interval(lo, hi))
        design = design_quantizer(query, Fraction(epsilon, 2), layout="uniform")
        cells[:, column] = design.quantizer.cells(trips[:, column])
        outputs *= design.certificate.outputs
    return cells, outputs


def unique_share(cells: np.ndarray) -> float:
    """Share of the rows that occur once."""
    counts = np.unique(cells, axis=0, return_counts=True)[1]
    return float(np.count_nonzero(counts == 1) / len(cells))


def picture(folder: Path, rows: Table, sizes: Sequence[int]) -> None:
    """Figure 6, one line for each number of trips."""
    plt = pyplot()
    if plt is None:
        return
    figure, axis = plt.subplots(figsize=(6, 4))
    for k, size in enumerate(sizes):
        axis.plot(
            EPSILONS,
            [row[f"unique_{size}"] for row in rows],
            marker="osv^D"[k],
            label=f"{size:,} trips",
        )
    axis.set(
        xlabel="epsilon (bits a place; a trip costs twice as much)",
        ylabel="share of unique trips",
        ylim=(0, 1),
    )
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "taxi.png", dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> Table:
    """Release, count, print, write."""
    arguments = options(__doc__, argv)
    trips, read = load(data_folder())
    print(
        f"{len(trips):,} of {read:,} trips begin and end in the city (the paper: the first million of 2014)"
    )
    sizes = sorted({1_000, 5_000, len(trips)})
    order = np.random.default_rng(0).permutation(len(trips))
    draws = 20 if arguments.full else 3
    rows: Table = []
    for epsilon in EPSILONS:
        cells, outputs = cells_of(trips, epsilon)
        row = {
            "epsilon": epsilon,
            "cells": round(outputs**0.5),
            "outputs_of_a_trip": outputs,
        }
        for size in sizes:
            # Of all trips together there is only one part.
            parts = draws if size < len(trips) else 1
            shares: list[float] = []
            for k in range(parts):
                part = np.roll(order, size * k)[:size]
                shares.append(unique_share(cells[part]))
            row[f"unique_{size}"] = float(np.mean(shares))
        rows.append(row)
    show(rows)
    print(
        "The share grows as trips get fewer: these curves lie left of the paper's, which has 50 times as many trips."
    )
    if arguments.out is not None:
        write_csv(arguments.out, "taxi", rows)
        picture(arguments.out, rows, sizes)
        print(f"table and picture are in {arguments.out}")
    return rows


if __name__ == "__main__":
    main()
