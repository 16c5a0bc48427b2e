"""Promises about a table and promises about its population: draw samples of known truths and look at the truth.

``python examples/population.py RESULTS.csv [DRAWS [TRUTH]] [--picture FILE]`` works on what RESULTS.csv does not have
yet, in batches, prints a line for each truth, notion, size and kind of design, and draws the picture of all that is
there. Truths: adult (5 x 15), even (3 x 6, no rare cells), rare (2 x 8, symbols rarer and rarer).

Every design is that of the optimal mechanism, ended at a gap of half of H(X): what its local searches find lies at the
edge of the private set like the optimum, mostly uses as much of the budget, and takes a hundredth of a second or two.
For adult up to 10,000 records, where it takes ten, it is ended before its searches: the best mixture of randomised
responses and merged symbols at that edge.
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
from mechdesign.core.binomial import SCALE, lower_end
from mechdesign.core.rationals import fraction_of
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
GAP, WIDE_GAP = 0.5, 1.1
BATCH = 100
CELL = ("truth", "notion", "records", "confidence")
COLUMNS: tuple[str, ...] = (*CELL, "draws", "held", "low", "median", "high", "kept")


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
    joint = md.Joint.from_counts(
        counts[:, seen].tolist(), useful_labels=[str(x) for x in seen]
    )
    return joint, seen, truth.shape[1] - len(seen)


def realised(
    channel: md.Channel, joint: md.Joint, seen: list[int], truth: Array, limits: Any
) -> float:
    """The largest share of a budget that the channel uses on the truth; unseen symbols are released as unknown ones."""
    rows = np.tile(joint.p_x @ channel.matrix, (truth.shape[1], 1))
    rows[seen] = channel.matrix
    given_s = truth / truth.sum(axis=1, keepdims=True) @ rows
    mass = truth.sum(axis=1) @ given_s
    high, low = (
        np.log(given_s.max(axis=0) / mass).max(),
        np.log(mass / given_s.min(axis=0)).max(),
    )
    ratio = np.log(given_s.max(axis=0) / given_s.min(axis=0)).max()
    sides = ((high, limits.upper), (low, limits.lower), (ratio, limits.ratio))
    return max(float(value) / limit for value, limit in sides if math.isfinite(limit))


def study(
    name: str, notion: str, records: int, draws: int, batch: int = 0
) -> list[dict[str, Any]]:
    """Draws of one cell: the same samples designed without and with confidence."""
    truth, wanted = truth_of(name), NOTIONS[notion]
    gap = WIDE_GAP if name == "adult" and records <= 10_000 else GAP
    population.LITTLE = (
        0.0  # nobody reads here how many records would be needed, which takes seconds
    )
    found: list[dict[str, Any]] = []
    for level in (None, LEVEL):
        rng = np.random.default_rng((records, batch))
        budgets: list[float] = []
        kept: list[float] = []
        for _ in range(draws):
            joint, seen, unseen = sample(truth, records, rng)
            more: dict[str, Any] = (
                {} if level is None else {"confidence": level, "unseen": unseen}
            )
            result = md.design(joint, wanted, gap=gap, **more)
            budgets.append(realised(result.channel, joint, seen, truth, wanted.limits))
            kept.append(result.nmi)
        held = sum(budget <= 1.0 + 1e-12 for budget in budgets)
        shown = [
            f"{x:.4f}"
            for x in (*np.quantile(budgets, (0.0, 0.5, 1.0)), np.median(kept))
        ]
        values = (name, notion, records, level or "", draws, held, *shown)
        found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def together(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each cell and kind of design, in the order of their records; medians are those of the batches'."""
    cells: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(tuple(str(row[key]) for key in CELL), []).append(row)
    found: list[dict[str, Any]] = []
    for cell, parts in cells.items():
        row: dict[str, Any] = dict(zip(CELL, cell, strict=True))
        row |= {key: sum(int(part[key]) for part in parts) for key in ("draws", "held")}
        how = {"low": min, "high": max, "median": np.median, "kept": np.median}
        row |= {
            key: float(take([float(part[key]) for part in parts]))
            for key, take in how.items()
        }
        found.append(row)
    return sorted(found, key=lambda row: int(row["records"]))


def limits_of(held: int, draws: int) -> tuple[float, float]:
    """Exact 95 % limits of the probability of what came true in so many draws (Clopper and Pearson)."""
    alpha = fraction_of("0.025")
    return lower_end(held, draws, alpha) / SCALE, 1.0 - lower_end(
        draws - held, draws, alpha
    ) / SCALE


def line(row: dict[str, Any]) -> str:
    """A row in words."""
    kind = "95 %" if row["confidence"] else "plain"
    low, high = limits_of(row["held"], row["draws"])
    return (
        f"{row['truth']:>5} {row['notion']:>8} {int(row['records']):>9,} {kind:>5}: held in {row['held']} of "
        f"{row['draws']} [{low:.4f}, {high:.4f}], realised {row['median']:.4f} of 1, kept {row['kept']:.4f}"
    )


def picture(rows: list[dict[str, Any]], path: str) -> None:
    """Realised budgets, least to largest and median, against the number of records: a truth in each column."""
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
            for level, name, colour in (
                ("", "plain design", "C1"),
                (str(LEVEL), "with 95 % confidence", "C0"),
            ):
                own = [
                    r
                    for r in rows
                    if (r["truth"], r["notion"], str(r["confidence"]))
                    == (truth, notion, level)
                ]
                sizes = [int(row["records"]) for row in own]
                ends = np.minimum(
                    [[row[k] for k in ("low", "median", "high")] for row in own], 10.0
                )
                if own:
                    axis.fill_between(
                        sizes, ends[:, 0], ends[:, 2], color=colour, alpha=0.2
                    )
                    axis.plot(sizes, ends[:, 1], color=colour, label=name)
            axis.axhline(1.0, color="black", linestyle="--", linewidth=0.8)
            axis.set(xscale="log", ylim=(0.0, 3.0))
            axis.set_title(f"{truth}, {NOTIONS[notion].text}", fontsize=8)
    axes[0, 0].legend(fontsize=7)
    figure.supxlabel("records")
    figure.supylabel("realised budget on the truth, as a share of the promised one")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Go on where the results end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("draws", type=int, nargs="?", default=20)
    parser.add_argument("truth", nargs="?", choices=TRUTHS)
    parser.add_argument("--picture")
    typed = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if typed.results.exists():
        with typed.results.open(newline="") as stream:
            rows += csv.DictReader(stream)
    for name in (typed.truth,) if typed.truth else TRUTHS:
        cells = [(notion, records) for records in SIZES for notion in NOTIONS]
        for batch, (notion, records) in product(
            range(math.ceil(typed.draws / BATCH)), cells
        ):
            own = [
                r
                for r in rows
                if (r["truth"], r["notion"], int(r["records"]))
                == (name, notion, records)
            ]
            done = sum(int(row["draws"]) for row in own if row["confidence"])
            if done > batch * BATCH or done >= typed.draws:
                continue
            rows += study(name, notion, records, min(BATCH, typed.draws - done), batch)
            with typed.results.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, COLUMNS)
                writer.writeheader()
                writer.writerows(rows)
    rows = together(rows)
    print(*map(line, rows), sep="\n")
    if typed.picture:
        picture(rows, typed.picture)


if __name__ == "__main__":
    main()
