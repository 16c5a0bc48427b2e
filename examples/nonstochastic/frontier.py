"""What a budget costs: levels and distortion of the best quantiser against equal cells, and of identifiable cells.

First the mean of the amounts that three people chose (five with ``--full``), each of 0, 10, 20, 50 or 100: the most
levels and the least mean square error for each budget, counted exactly. Fibres skip answers here, so the linear
program over thresholds is only sufficient and the integer program finds more levels. Then a column of 2,000 incomes,
released in cells of at least n 2^-epsilon records. Nothing but the package is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from experiment import Table, options, pyplot, show, write_csv

from mechdesign.nonstochastic.noiseless import design_quantizer
from mechdesign.nonstochastic.queries import finite, integers, linear_query, mean_query
from mechdesign.nonstochastic.thresholds_by_error import (
    CellLoss,
    edges_of,
    exact_weights,
    identifiable_partition,
    least_distortion,
)
from mechdesign.nonstochastic.thresholds_by_levels import (
    GapProblem,
    gap_problem,
    most_levels,
)

AMOUNTS = (0, 10, 20, 50, 100)
SHARES = (40, 25, 20, 10, 5)
"""Per cent of people with each amount, as known beforehand; they must not come from the data released."""

BUDGETS = (0, 1, 1.6, 2, 2.33)
TIME_LIMIT = 30.0
"""Seconds for each integer program; a bound is printed where it was not enough."""


def answers_weights(people: int) -> list[int]:
    """How likely each mean is (times 100^people), sorted by the mean: what the distortion is averaged over."""
    sums = {0: 1}
    for _ in range(people):
        grown: dict[int, int] = {}
        for total, weight in sums.items():
            for amount, share in zip(AMOUNTS, SHARES, strict=True):
                grown[total + amount] = grown.get(total + amount, 0) + weight * share
        sums = grown
    return [sums[total] for total in sorted(sums)]


def uniform_distortion(
    problem: GapProblem, epsilon: float, exact: CellLoss
) -> tuple[int, float]:
    """Levels in use and distortion of equal cells (the corrected Theorem 8), released as well as can be."""
    quantizer = design_quantizer(problem.query, epsilon, layout="uniform").quantizer
    cells = [quantizer.cell(value) for value in problem.values]
    gaps = [g for g in range(problem.gaps) if cells[g] != cells[g + 1]]
    return len(gaps) + 1, float(exact.total(edges_of(gaps, len(cells))))


def quantizer_frontier(people: int) -> Table:
    """Levels and root mean square error against the budget."""
    problem = gap_problem(mean_query(people, finite(AMOUNTS)))
    weights = answers_weights(people)
    exact = CellLoss(problem.values, exact_weights(weights, len(problem.values)))
    rows: Table = []
    for epsilon in BUDGETS:
        used, uniform = uniform_distortion(problem, epsilon, exact)
        levels = most_levels(problem, epsilon, time_limit=TIME_LIMIT)
        earliest = most_levels(problem, epsilon, method="earliest")
        best = least_distortion(
            problem, epsilon, weights=weights, time_limit=TIME_LIMIT
        )
        rows.append(
            {
                "epsilon": epsilon,
                "outputs": levels.outputs_allowed,
                "uniform_levels": used,
                "earliest_levels": earliest.levels,
                "most_levels": levels.levels,
                "at_most": int(levels.bound),
                "by": levels.method,
                "uniform_rmse": math.sqrt(uniform),
                "least_rmse": math.sqrt(best.distortion or 0.0),
                "proven": best.optimal,
            }
        )
    return rows


def partition_frontier() -> Table:
    """Root mean square error of cells of at least n 2^-epsilon records: optimal, and equal counts."""
    rng = np.random.default_rng(0)
    # Pensions of two sizes and wages: clusters, and a long tail.
    kinds = (
        rng.normal(9_000, 300, 500),
        rng.normal(14_000, 400, 300),
        rng.lognormal(10.3, 0.7, 1_200),
    )
    incomes = np.sort(np.concatenate(kinds))
    rows: Table = []
    for epsilon in (1, 2, 3, 4, 5, 6, 7, 8):
        best = identifiable_partition(incomes, epsilon)
        equal = np.array_split(incomes, len(incomes) // best.smallest)
        loss = 0.0
        for part in equal:
            loss += ((part - part.mean()) ** 2).sum()
        rows.append(
            {
                "epsilon": epsilon,
                "smallest_cell": best.smallest,
                "cells": best.sizes.size,
                "least_rmse": math.sqrt(best.distortion),
                "equal_counts_rmse": math.sqrt(loss / len(incomes)),
                "maximal_leakage": best.maximal_leakage,
            }
        )
    return rows


def picture(folder: Path, people: int, thresholds: Table, partitions: Table) -> None:
    """Both frontiers."""
    plt = pyplot()
    if plt is None:
        return
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for axis, rows, other in (
        (axes[0], thresholds, "uniform_rmse"),
        (axes[1], partitions, "equal_counts_rmse"),
    ):
        budgets = [row["epsilon"] for row in rows]
        axis.plot(
            budgets,
            [row[other] for row in rows],
            marker="s",
            linestyle="--",
            label=other.replace("_", " "),
        )
        axis.plot(
            budgets, [row["least_rmse"] for row in rows], marker="o", label="least rmse"
        )
        axis.set(
            xlabel="epsilon (bits)", ylabel="root mean square error", ylim=(0, None)
        )
        axis.legend()
    axes[0].set_title(f"mean of {people} amounts, noiseless")
    axes[1].set_title("2,000 incomes, identifiable")
    figure.tight_layout()
    figure.savefig(folder / "frontier.png", dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> Table:
    """Compute, print, write."""
    arguments = options(__doc__, argv)
    people = 5 if arguments.full else 3
    thresholds = quantizer_frontier(people)
    partitions = partition_frontier()
    print(
        f"Mean of {people} amounts of {', '.join(map(str, AMOUNTS))}, noiseless privacy:"
    )
    show(thresholds)
    print("2,000 incomes in cells of at least n 2^-epsilon records:")
    show(partitions)
    query = linear_query([10, 1], [integers(0, 1), integers(0, 9)])
    for method in ("earliest", "milp"):
        best = most_levels(query, 1, method=method)
        print(f"10 a + b, epsilon 1, {method}: {best.levels} levels ({best.because})")
    if arguments.out is not None:
        write_csv(arguments.out, "frontier_quantizers", thresholds)
        write_csv(arguments.out, "frontier_partitions", partitions)
        picture(arguments.out, people, thresholds, partitions)
        print(f"tables and picture are in {arguments.out}")
    return thresholds


if __name__ == "__main__":
    main()
