"""What the scripts of this folder share: tables, means over draws, comparison with the paper, CSV and pictures.

The figures are those of Zarrabian et al. 2023 (Entropy 25, 679). A random table is rand(|S|, |X|)
divided by its sum, as in Section 3.1.3 there; the Adult counts lie in the folder above.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import mechdesign as md
from mechdesign.report.drawing import curve_name, save_figure
from mechdesign.report.plots import trade_off_figure

ADULT = "adult"
"""Key of the Adult table; a random table's key is (|S|, |X|, number of the draw)."""

SMALL = (5, 17)
LARGE = (15, 200)
"""|S| and |X| of the paper's random tables."""

SEED = 2023

LAMS = (0.35, 0.5, 0.65)
FULL_GRID = tuple(k / 4 for k in range(1, 33))
QUICK_GRID = tuple(k / 2 for k in range(1, 17))

NEAR_OPTIMAL = ("optimal", "subset-response")

SAME = 5e-5
"""Difference of utilities below which two curves are said to be equal: half the proven gap."""

Key = str | tuple[int, int, int]
Curve = tuple[str, str, float | None]


@dataclass(frozen=True)
class Run:
    """How a script was called."""

    number: int
    folder: Path
    full: bool
    workers: int

    def path(self, ending: str, part: str = "") -> Path:
        """``figure_05.csv`` in the folder chosen."""
        return self.folder / f"figure_{self.number:02d}{part}{ending}"

    @property
    def grid(self) -> tuple[float, ...]:
        """The paper's budgets, or every second one."""
        return FULL_GRID if self.full else QUICK_GRID

    def draws(self, quick: int, full: int, shape: tuple[int, int] = SMALL) -> list[Key]:
        """Keys of random tables; the quick ones are the first of the full ones."""
        return [(*shape, k) for k in range(full if self.full else quick)]


@dataclass(frozen=True)
class Plan:
    """What is run on every table; `keep` chooses among mechanisms x notions x lams."""

    mechanisms: tuple[str, ...]
    epsilons: tuple[float, ...]
    notions: tuple[str, ...] = ("alip",)
    lams: tuple[float, ...] | None = LAMS
    keep: tuple[Curve, ...] | None = None
    time_limit: float | None = None


@dataclass(frozen=True)
class Mean:
    """A row averaged over tables: means in `row`, standard error of the NMI, shares of repaired and violating."""

    row: md.ComparisonRow
    draws: int
    error: float
    repaired: float


@dataclass(frozen=True)
class Published:
    """A number that the paper states about a curve at a budget."""

    curve: Curve
    epsilon: float
    nmi: float


def arguments(number: int, doc: str | None) -> Run:
    """Read the options that every script has."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paper-figures"),
        help="folder for CSV and picture",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="under 30 seconds (default)")
    size.add_argument(
        "--full",
        action="store_true",
        help="the paper's grid, at least 200 random tables",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="processes (default: all cores)",
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return Run(number, given.out, given.full, max(1, given.workers))


def table(key: Key) -> md.Joint:
    """The Adult counts, or a random table that the key alone determines."""
    if isinstance(key, tuple):
        sensitive, useful, draw = key
        p = np.random.default_rng([SEED, sensitive, useful, draw]).random(
            (sensitive, useful)
        )
        return md.Joint.from_probabilities(p / p.sum())
    above = str(Path(__file__).parents[1])
    if above not in sys.path:
        sys.path.append(above)
    import adult

    return adult.load()


def spread(work: Callable[[Any], Any], items: Sequence[Any], workers: int) -> list[Any]:
    """``map(work, items)`` over processes, in order."""
    if workers == 1 or len(items) < 2 * workers:
        return [work(item) for item in items]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        return list(
            pool.map(work, items, chunksize=max(1, len(items) // (8 * workers)))
        )


def curves(keys: Sequence[Key], plan: Plan, run: Run) -> list[Mean]:
    """Run the plan on all tables and average."""
    per_table = spread(_Task(plan), list(keys), run.workers)
    return [_mean(rows) for rows in zip(*per_table, strict=True)]


@dataclass(frozen=True)
class _Task:
    """The plan on one table: an object, because other processes get it by pickling."""

    plan: Plan

    def __call__(self, key: Key) -> list[md.ComparisonRow]:
        plan = self.plan
        comparison = md.compare(
            table(key),
            epsilons=plan.epsilons,
            lams=plan.lams,
            mechanisms=plan.mechanisms,
            notions=plan.notions,
            time_limit=plan.time_limit,
        )
        if plan.keep is None:
            return list(comparison.rows)
        rows: list[md.ComparisonRow] = []
        for row in comparison.rows:
            if (row.mechanism, *row.curve) in plan.keep:
                rows.append(row)
        return rows


AVERAGED = ("nmi", "upper_bound_nmi", "max_log_lift", "min_log_lift", "seconds")
"""The figures of a row that are averaged over tables."""


def _average(values: Sequence[float | None]) -> float | None:
    """The mean; None unless every table has a value."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    return statistics.fmean(numbers)


def _mean(rows: Sequence[md.ComparisonRow]) -> Mean:
    """The rows of one curve and budget, one for each table, as one row."""
    nmi = [row.nmi for row in rows]
    means: dict[str, Any] = {}
    for name in AVERAGED:
        means[name] = _average([getattr(row, name) for row in rows])
    row = replace(
        rows[0],
        satisfied=all(r.satisfied for r in rows),
        repaired=any(r.repaired for r in rows),
        **means,
    )
    error = statistics.stdev(nmi) / math.sqrt(len(nmi)) if len(nmi) > 1 else 0.0
    return Mean(row, len(rows), error, sum(r.repaired for r in rows) / len(rows))


def of_curve(means: Sequence[Mean], curve: Curve) -> dict[float, Mean]:
    """One curve by budget."""
    return {m.row.epsilon: m for m in means if (m.row.mechanism, *m.row.curve) == curve}


def curve_text(curve: Curve) -> str:
    """``subset-merging, alip, lam 0.5``."""
    return f"{curve[0]}, {curve_name(*curve[1:])}"


def save(run: Run, means: Sequence[Mean], what: str) -> None:
    """Write the rows and the three panels."""
    names = [f.name for f in fields(md.ComparisonRow)]
    with run.path(".csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*names, "draws", "standard_error_nmi", "repaired_share"])
        writer.writerows(
            [
                "" if c is None else c
                for c in (*astuple(m.row), m.draws, m.error, m.repaired)
            ]
            for m in means
        )
    figure = trade_off_figure([m.row for m in means])
    figure.suptitle(f"Figure {run.number}: {what}")
    save_figure(figure, run.path(".png"), overwrite=True)


def heading(run: Run, what: str, means: Sequence[Mean]) -> None:
    """First line of the output of a script."""
    draws = means[0].draws
    tables = f"means over {draws:,} tables" if draws > 1 else "one table"
    print(f"Figure {run.number}: {what} ({'full' if run.full else 'quick'}; {tables})")


def print_published(means: Sequence[Mean], published: Sequence[Published]) -> None:
    """Published numbers beside the reproduced ones."""
    print(f"  {'curve':<36} epsilon  published  reproduced  difference  std. error")
    for claim in published:
        mean = of_curve(means, claim.curve)[claim.epsilon]
        name = curve_text(claim.curve)
        print(
            f"  {name:<36} {claim.epsilon:7g}  {claim.nmi:9.2f}  {mean.row.nmi:10.4f}  "
            f"{mean.row.nmi - claim.nmi:+10.4f}  {mean.error:10.4f}"
        )


def print_order(
    means: Sequence[Mean],
    better: Curve,
    worse: Curve,
    *,
    above: float = 0.0,
    below: float = math.inf,
) -> None:
    """Where the first curve has more utility than the second, where less, and where as much."""
    first = of_curve(means, better)
    second = of_curve(means, worse)
    budgets = sorted(e for e in first.keys() & second.keys() if above < e < below)
    gain = {e: first[e].row.nmi - second[e].row.nmi for e in budgets}
    # In this order they are printed.
    budgets_of: dict[str, list[float]] = {"above": [], "equal": [], "below": []}
    for e in budgets:
        if gain[e] > SAME:
            budgets_of["above"].append(e)
        elif gain[e] < -SAME:
            budgets_of["below"].append(e)
        else:
            budgets_of["equal"].append(e)
    parts: list[str] = []
    for word, where in budgets_of.items():
        if where:
            parts.append(f"{word} at {intervals(where, budgets)}")
    part_of_grid = ""
    if above:
        part_of_grid = f", epsilon > {above:g}"
    elif below < math.inf:
        part_of_grid = f", epsilon < {below:g}"
    extreme = max(budgets, key=lambda e: abs(gain[e]))
    print(
        f"  {curve_text(better)} against {curve_text(worse)}{part_of_grid}: "
        f"{'; '.join(parts)} (largest difference {gain[extreme]:+.4f} at {extreme:g})"
    )


def intervals(chosen: Sequence[float], grid: Sequence[float]) -> str:
    """``1.25 to 3, 4``: runs of neighbours on the grid."""
    runs: list[list[float]] = []
    for value in chosen:
        if runs and grid.index(value) == grid.index(runs[-1][-1]) + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(
        f"{run[0]:g}" if len(run) == 1 else f"{run[0]:g} to {run[-1]:g}" for run in runs
    )


def print_lams(means: Sequence[Mean], mechanism: str, notion: str = "alip") -> None:
    """The paper says that lam 0.65 beats lam 0.5 for epsilon above 1; this is what was found."""
    print_order(means, (mechanism, notion, 0.65), (mechanism, notion, 0.5), above=1.0)


def print_repairs(means: Sequence[Mean]) -> None:
    """How many tables needed the repair, without which the paper's procedure violates the notion."""
    worst = max(means, key=lambda m: m.repaired)
    if worst.repaired == 0.0:
        print("  no table needed a repair")
        return
    if worst.draws == 1:
        print(f"  repaired: {sum(m.row.repaired for m in means)} of {len(means)} rows")
        return
    where = curve_text((worst.row.mechanism, *worst.row.curve))
    print(
        f"  repaired: up to {100 * worst.repaired:.0f}% of the tables ({where}, epsilon {worst.row.epsilon:g})"
    )


def main(number: int, doc: str | None, work: Callable[[Run], None]) -> None:
    """Run a script: read its options, do the work, say how long it took."""
    run = arguments(number, doc)
    start = time.perf_counter()
    work(run)
    print(
        f"  {time.perf_counter() - start:.1f} s; written to {run.path('.csv')} and {run.path('.png')}"
    )
