"""The membership game of Farokhi's 'Noiseless privacy' (Figure 3) on daily smart-meter data.

An adversary names two households; the curator draws one of them and n - 1 others, and releases their
mean consumption of every day through a quantiser that is epsilon-noiselessly private for each day. The
adversary, who knows the consumption of both households, says which one is in the group: by correlation, by
square error, or by common peaks. Adv = 2 |P(right) - 1/2|.

Set MECHDESIGN_DATA to the folder that holds smart-meter/. Quick by default; ``--full`` plays 20,000 games a point.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from experiment import Table, data_folder, options, pyplot, show, write_csv

from mechdesign.nonstochastic.noiseless import design_quantizer
from mechdesign.nonstochastic.queries import interval, mean_query

SIZES = (2, 4, 8, 16, 32)
EPSILONS = (1, 2, 3, 4, 5, 6, 7, 8)
LARGEST_DAY = 500
"""kWh a day that no household of the file reaches (the largest has 477); the paper does not give its range."""

WIDER = (500, 1000, 2000, 5000)
"""Further ranges, kWh a day: the paper does not give its own."""

POLICIES = ("correlation", "square_error", "peaks")


def load(folder: Path) -> np.ndarray:
    """Consumption of the households without faulty readings: (households, days), kWh."""
    names = (folder / "smart-meter" / "clean_vids.txt").read_text(encoding="utf-8")
    clean = {line.strip() for line in names.splitlines() if not line.startswith("#")}
    path = folder / "smart-meter" / "daily_kwh_537x49.csv"
    homes: list[list[float]] = []
    with path.open(newline="", encoding="utf-8") as stream:
        for household, *days in csv.reader(stream):
            if household in clean:
                homes.append([float(cell) for cell in days])
    return np.array(homes)


def correlation(house: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Pearson's correlation of each row; 0 where a release never changes."""
    x = house - house.mean(axis=1, keepdims=True)
    y = released - released.mean(axis=1, keepdims=True)
    scale = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.divide((x * y).sum(axis=1), scale, out=np.zeros(len(x)), where=scale > 0)


def square_error(house: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Minus the square distance, so that larger is nearer."""
    return -((house - released) ** 2).sum(axis=1)


def peaks(house: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Number of days that are local maxima of both."""
    return np.count_nonzero(_peaks(house) & _peaks(released), axis=1).astype(float)


def _peaks(series: np.ndarray) -> np.ndarray:
    return (series[:, 1:-1] > series[:, :-2]) & (series[:, 1:-1] > series[:, 2:])


def advantage(
    houses: tuple[np.ndarray, np.ndarray], released: np.ndarray
) -> dict[str, float]:
    """Adv of each policy; the first household is the one in the group. A tie is a toss of a coin."""
    advantages: dict[str, float] = {}
    for name, policy in zip(POLICIES, (correlation, square_error, peaks), strict=True):
        inside, outside = (policy(house, released) for house in houses)
        right = np.mean(inside > outside) + np.mean(inside == outside) / 2
        advantages[name] = float(2 * abs(right - 0.5))
    return advantages


def play(
    homes: np.ndarray, size: int, games: int, seed: int, largest: float = LARGEST_DAY
) -> Table:
    """One row for the plain means and one for each budget, on the same games.

    A household uses at most `largest` kWh a day.
    """
    rng = np.random.default_rng(seed)
    # Of `size` + 1 households in random order the last is the one that is not in the group.
    orders = rng.permuted(np.tile(np.arange(len(homes)), (games, 1)), axis=1)
    drawn = orders[:, : size + 1]
    houses = homes[drawn[:, 0]], homes[drawn[:, size]]
    means = homes[drawn[:, :size]].mean(axis=1)
    plain = {"n": size, "epsilon": "none", "outputs": "all", "levels": "all"}
    rows: Table = [{**plain, **advantage(houses, means)}]
    query = mean_query(size, interval(0, largest))
    for epsilon in EPSILONS:
        # The corrected Theorem 8, counted exactly; the published number of levels can break the
        # budget.
        design = design_quantizer(query, epsilon, layout="uniform")
        released = design.quantizer.release(means)
        row = {
            "n": size,
            "epsilon": epsilon,
            "outputs": design.certificate.outputs,
            "levels": design.quantizer.levels,
        }
        rows.append({**row, **advantage(houses, released)})
    return rows


def picture(folder: Path, rows: Table) -> None:
    """Figure 3: Adv against epsilon, one panel a policy, one line a group size; dashed without protection."""
    plt = pyplot()
    if plt is None:
        return
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharey=True)
    for axis, policy in zip(axes, POLICIES, strict=True):
        for k, size in enumerate(SIZES):
            line = [row[policy] for row in rows if row["n"] == size]
            axis.plot(
                EPSILONS,
                line[1:],
                marker="osv^D"[k],
                color=f"C{k}",
                label=f"n = {size}",
            )
            axis.axhline(line[0], color=f"C{k}", linestyle="--", linewidth=0.8)
        axis.set(
            title=policy.replace("_", " "), xlabel="epsilon (bits a day)", ylim=(0, 1)
        )
    axes[0].set_ylabel("Adv")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(folder / "membership.png", dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> Table:
    """Play, print, write."""
    arguments = options(__doc__, argv)
    homes = load(data_folder())
    games = 20_000 if arguments.full else 1_500
    print(
        f"{homes.shape[0]} households, {homes.shape[1]} days (the paper: 300 Ausgrid homes, 365 days); {games:,} games"
    )
    print(
        f"range of one household 0 to {LARGEST_DAY} kWh a day; a standard error of Adv is {games**-0.5:.3f}"
    )
    rows = [row for size in SIZES for row in play(homes, size, games, seed=size)]
    show(rows)
    for size, epsilon in ((4, 2), (8, 3)):
        row = next(r for r in rows if (r["n"], r["epsilon"]) == (size, epsilon))
        values = ", ".join(f"{policy} {row[policy]:.2f}" for policy in POLICIES)
        print(
            f"n = {size}, epsilon = {epsilon}: {values} (the paper, on its own data: almost zero)"
        )
    for largest in WIDER:
        row = next(r for r in play(homes, 4, games, 4, largest) if r["epsilon"] == 2)
        values = ", ".join(f"{policy} {row[policy]:.2f}" for policy in POLICIES)
        print(f"n = 4, epsilon = 2, range 0 to {largest:,} kWh: {values}")
    print(
        "A release covers one day; the 49 days of one household add up to 49 epsilon."
    )
    if arguments.out is not None:
        write_csv(arguments.out, "membership", rows)
        picture(arguments.out, rows)
        print(f"table and picture are in {arguments.out}")
    return rows


if __name__ == "__main__":
    main()
