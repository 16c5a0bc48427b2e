"""Promises about a table and promises about its population, on samples of known truths.

``python examples/population.py RESULTS.csv [DRAWS [TRUTH]] [--picture FILE]`` works on what
RESULTS.csv does not have yet, in batches, prints a line for each truth, notion, size and kind of
design, and draws the picture of all that is there. Truths: adult (5 x 15), even (3 x 6, no rare
cells), rare (2 x 8, symbols rarer and rarer).

A draw has three steps: counts of so many records are drawn from the truth (`sample`), a channel is
designed for these counts, and the share of the budget that it uses on the truth is computed
(`realised`). The promise about the population held if that share is at most 1.

Every design is that of the optimal mechanism, ended at a gap of half of H(X): what its local
searches find lies at the edge of the private set like the optimum, mostly uses as much of the
budget, and takes a hundredth of a second or two. For adult up to 10,000 records, where it takes
ten, it is ended before its searches: the best mixture of randomised responses and merged symbols at
that edge.
"""

from __future__ import annotations

import argparse
import csv
import math
from itertools import product
from pathlib import Path
from typing import Any

import adult
import numpy as np
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.core.arguments import fraction_of
from mechdesign.core.balls import SCALE, lower_end
from mechdesign.mechanisms import population

Array = NDArray[np.float64]

TRUTHS = ("adult", "even", "rare")
SIZES = (300, 1_000, 3_000, 10_000, 100_000, 1_000_000)
NOTIONS: dict[str, Any] = {
    "ldp": md.LDP(1.0),
    "lip": md.LIP(0.5),
    "alip": md.ALIP(0.6, 0.4),
    "max-lift": md.MaxLift(0.5),
    "min-lift": md.MinLift(0.5),
}
LEVEL = 0.95
GAP = 0.5
"""The gap at which a design ends, as a share of H(X)."""

WIDE_GAP = 1.1
"""Any design has this gap, so it ends before its searches."""

BATCH = 100
"""Draws after which the results are written."""

ROUNDING = 1e-12
"""A channel at the edge may use so much more than its budget, by rounding."""

CELL = ("truth", "notion", "records", "confidence")
COLUMNS: tuple[str, ...] = (*CELL, "draws", "held", "low", "median", "high", "kept")
"""The columns of the results: draws, and how many held; the least, median and largest share of the
budget; and the median of the information that is kept.
"""

Row = dict[str, Any]
"""A row of the results."""


def truth_of(name: str) -> Array:
    """P(s, x) of a truth."""
    if name == "adult":
        return adult.load().p
    rng = np.random.default_rng(1)
    if name == "even":
        table = rng.dirichlet(np.full(6, 3.0), 3) * np.array([[0.5], [0.3], [0.2]])
    else:
        table = 0.5 ** np.arange(8) * rng.uniform(0.2, 1.8, (2, 8))
    return table / table.sum()


def sample(
    truth: Array, records: int, rng: np.random.Generator
) -> tuple[md.Joint, list[int], int]:
    """Counts of so many records, the symbols of X that occur in them, and how many do not."""
    counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
    seen = np.flatnonzero(counts.sum(axis=0)).tolist()
    labels = [str(x) for x in seen]
    joint = md.Joint.from_counts(counts[:, seen].tolist(), useful_labels=labels)
    return joint, seen, truth.shape[1] - len(seen)


def realised(
    channel: md.Channel, joint: md.Joint, seen: list[int], truth: Array, limits: Any
) -> float:
    """The largest share of a budget that the channel uses on the truth.

    Symbols that the sample has not seen are released as unknown ones.
    """
    # An unknown symbol gets an output by the mixture of all rows.
    rows = np.tile(joint.p_x @ channel.matrix, (truth.shape[1], 1))
    rows[seen] = channel.matrix
    # P(y|s) and P(y) in the population. Their quotients are the lifts.
    given_s = truth / truth.sum(axis=1, keepdims=True) @ rows
    mass = truth.sum(axis=1) @ given_s
    highest = given_s.max(axis=0)
    lowest = given_s.min(axis=0)
    used = (
        (np.log(highest / mass).max(), limits.upper),
        (np.log(mass / lowest).max(), limits.lower),
        (np.log(highest / lowest).max(), limits.ratio),
    )
    return max(float(nats) / limit for nats, limit in used if math.isfinite(limit))


def study(
    name: str, notion: str, records: int, draws: int, batch: int = 0
) -> list[Row]:
    """Draws of one cell: the same samples designed without and with confidence."""
    truth = truth_of(name)
    gap = GAP
    if name == "adult" and records <= 10_000:
        gap = WIDE_GAP
    # Nobody reads here how many records would be needed, which takes seconds.
    population.LITTLE = 0.0
    rows: list[Row] = []
    for level in (None, LEVEL):
        # The same seed for both kinds of design, so that their samples are the same.
        rng = np.random.default_rng((records, batch))
        budgets: list[float] = []
        kept: list[float] = []
        for _ in range(draws):
            joint, seen, unseen = sample(truth, records, rng)
            options: dict[str, Any] = {"gap": gap}
            if level is not None:
                options |= {"confidence": level, "unseen": unseen}
            result = md.design(joint, NOTIONS[notion], **options)
            limits = NOTIONS[notion].limits
            budgets.append(realised(result.channel, joint, seen, truth, limits))
            kept.append(result.nmi)
        low, median, high = np.quantile(budgets, (0.0, 0.5, 1.0))
        rows.append(
            {
                "truth": name,
                "notion": notion,
                "records": records,
                "confidence": level or "",
                "draws": draws,
                "held": sum(budget <= 1.0 + ROUNDING for budget in budgets),
                "low": f"{low:.4f}",
                "median": f"{median:.4f}",
                "high": f"{high:.4f}",
                "kept": f"{np.median(kept):.4f}",
            }
        )
    return rows


def together(rows: list[Row]) -> list[Row]:
    """One row for each cell and kind of design, in the order of their records.

    Medians are those of the medians of the batches.
    """
    batches_of: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        cell = tuple(str(row[key]) for key in CELL)
        batches_of.setdefault(cell, []).append(row)
    joined: list[Row] = []
    for cell, batches in batches_of.items():
        row: Row = dict(zip(CELL, cell, strict=True))
        for key in ("draws", "held"):
            row[key] = sum(int(batch[key]) for batch in batches)
        row["low"] = min(float(batch["low"]) for batch in batches)
        row["high"] = max(float(batch["high"]) for batch in batches)
        for key in ("median", "kept"):
            row[key] = float(np.median([float(batch[key]) for batch in batches]))
        joined.append(row)
    return sorted(joined, key=lambda row: int(row["records"]))


def limits_of(held: int, draws: int) -> tuple[float, float]:
    """Exact 95 % limits of the probability that a promise holds (Clopper and Pearson)."""
    alpha = fraction_of("0.025")
    low = lower_end(held, draws, alpha) / SCALE
    # The upper limit of what held is the lower limit of what did not.
    high = 1.0 - lower_end(draws - held, draws, alpha) / SCALE
    return low, high


def line(row: Row) -> str:
    """A row in words."""
    kind = "95 %" if row["confidence"] else "plain"
    low, high = limits_of(row["held"], row["draws"])
    return (
        f"{row['truth']:>5} {row['notion']:>8} {int(row['records']):>9,} {kind:>5}: held in {row['held']} of "
        f"{row['draws']} [{low:.4f}, {high:.4f}], realised {row['median']:.4f} of 1, kept {row['kept']:.4f}"
    )


def picture(rows: list[Row], path: str) -> None:
    """Realised budgets, least to largest and median, against the number of records.

    A truth in each column, a notion in each row.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(NOTIONS),
        len(TRUTHS),
        sharex=True,
        sharey=True,
        figsize=(8, 10),
        squeeze=False,
    )
    for i, notion in enumerate(NOTIONS):
        for j, truth in enumerate(TRUTHS):
            axis = axes[i, j]
            plain = rows_of(rows, truth=truth, notion=notion, confidence="")
            draw_band(axis, plain, "plain design", "C1")
            sure = rows_of(rows, truth=truth, notion=notion, confidence=LEVEL)
            draw_band(axis, sure, "with 95 % confidence", "C0")
            axis.axhline(1.0, color="black", linestyle="--", linewidth=0.8)
            axis.set(xscale="log", ylim=(0.0, 3.0))
            axis.set_title(f"{truth}, {NOTIONS[notion].text}", fontsize=8)
    axes[0, 0].legend(fontsize=7)
    figure.supxlabel("records")
    figure.supylabel("realised budget on the truth, as a share of the promised one")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def rows_of(rows: list[Row], **cell: object) -> list[Row]:
    """The rows with these values, compared as texts: results are read from a CSV."""
    matching: list[Row] = []
    for row in rows:
        if all(str(row[key]) == str(value) for key, value in cell.items()):
            matching.append(row)
    return matching


def draw_band(axis: Any, rows: list[Row], name: str, colour: str) -> None:
    """Draw the medians of a kind of design, and the band from the least to the largest."""
    if not rows:
        return
    sizes = [int(row["records"]) for row in rows]
    shares = [[row["low"], row["median"], row["high"]] for row in rows]
    # An infinite share has no place in a picture.
    low, median, high = np.minimum(shares, 10.0).T
    axis.fill_between(sizes, low, high, color=colour, alpha=0.2)
    axis.plot(sizes, median, color=colour, label=name)


def main() -> None:
    """Go on where the results end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("draws", type=int, nargs="?", default=20)
    parser.add_argument("truth", nargs="?", choices=TRUTHS)
    parser.add_argument("--picture")
    arguments = parser.parse_args()
    rows: list[Row] = []
    if arguments.results.exists():
        with arguments.results.open(newline="") as stream:
            rows += csv.DictReader(stream)
    truths = TRUTHS
    if arguments.truth:
        truths = (arguments.truth,)
    batches = range(math.ceil(arguments.draws / BATCH))
    # A batch of every cell before the next batch, so that early results are of all cells.
    for name, batch, records, notion in product(truths, batches, SIZES, NOTIONS):
        earlier = rows_of(rows, truth=name, notion=notion, records=records)
        # Every draw has two rows: without confidence, and with it.
        done = sum(int(row["draws"]) for row in earlier if row["confidence"])
        if done > batch * BATCH or done >= arguments.draws:
            continue
        draws = min(BATCH, arguments.draws - done)
        rows += study(name, notion, records, draws, batch)
        with arguments.results.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    rows = together(rows)
    print(*map(line, rows), sep="\n")
    if arguments.picture:
        picture(rows, arguments.picture)


if __name__ == "__main__":
    main()
