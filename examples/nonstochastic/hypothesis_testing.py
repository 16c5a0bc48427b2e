"""Examples 1, 2 and 4 and Figures 4, 6, 7 and 8 of Farokhi's 'Non-stochastic hypothesis testing for privacy'.

Run it as it is for the tables; with ``--out FOLDER`` it also writes them as CSV, and as pictures where
matplotlib is installed. Example 3 on real data and Figure 5 are in bmi_policy.py.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mechdesign import nonstochastic as ns
from mechdesign.nonstochastic.blurring import (
    BlurringPolicy,
    blurred_measure,
    leakage_bound,
)
from mechdesign.nonstochastic.indistinguishability import (
    Boxes,
    averaging_leakage,
    box_difference,
    individual_leakage,
    linear_levels,
)

WEIGHT, HEIGHT = (0, 200), (0, 250)  # kilograms and centimetres, as in Example 3
RHOS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
EPSILONS = tuple(k / 4 for k in range(1, 21))
SIZES = (10, 100, 1000)

Table = tuple[tuple[str, ...], list[tuple[float, ...]]]


def bmi_boundary(others: np.ndarray) -> np.ndarray:
    """The weight (kg) at which the body mass index reaches 30, for heights in cm."""
    return 30 * (others[:, 0] / 100) ** 2


def examples_1_and_2() -> list[str]:
    dice = ns.JointRange.from_pairs((x, "no" if x % 2 else "yes") for x in range(1, 7))
    lines = [
        f"Example 1, an unfair dice: [[X|yes]] = {sorted(dice.x_given('yes'))}, "
        f"[[X|no]] = {sorted(dice.x_given('no'))}, L0(X;Y) = {ns.range_leakage(dice):g} bit"
    ]
    for error, published in ((10, -0.1251), (20, -0.2364)):
        problem = ns.TestingProblem(
            Boxes.interval(100 - error, 150 + error),
            Boxes.interval(150 - error, 250 + error),
        )
        at_150 = Boxes.interval(100 - error, 150)
        relative = problem.performance(at_150) - math.log(problem.outputs.measure)
        lines.append(
            f"Example 2, heights measured within {error} cm: the test at 150 cm is consistent "
            f"({problem.is_consistent(at_150)}), performance - h0(Y) = {relative:.4f} nats (published {published})"
        )
    return lines


def figure_4() -> Table:
    """Privacy of the blurring policy for BMI >= 30 against its accuracy rho (1/kg)."""
    rows = []
    for rho in RHOS:
        policy = BlurringPolicy(boundary=bmi_boundary, coordinate=0, rho=rho)
        measured = blurred_measure(policy, [WEIGHT, HEIGHT], monotone=[1], cells=50_000)
        # Far from the edges the strip is 2/rho wide, so epsilon is about (2/rho) 250 / (200 * 250).
        rows.append((rho, measured.claimed[0], *measured.epsilon, 0.01 / rho))
    return ("rho", "published", "proven_at_least", "at_most", "asymptote"), rows


def figure_6() -> Table:
    """The bound of the leakage L0(Y;H) (nats): Proposition 1 as published, corrected, and what is attained."""
    rows = []
    for epsilon in EPSILONS:
        # One hypothesis possible everywhere, the other on a share epsilon / (1 + epsilon) of [0, 1].
        half = Boxes.interval(0, epsilon / (1 + epsilon))
        attained = ns.TestingProblem(Boxes.interval(0, 1), half).leakage
        rows.append(
            (
                epsilon,
                -math.log(1 - math.exp(-epsilon)),
                leakage_bound(epsilon),
                attained,
            )
        )
    return ("epsilon", "published", "corrected", "attained"), rows


def figure_7() -> Table:
    """Levels of a quantiser of the mean of n values for an indistinguishability budget (bits)."""
    rows = []
    for n in SIZES:
        for epsilon in EPSILONS:
            published = max(1, math.floor(n * (2 ** (epsilon - 1) - 1)))
            levels = linear_levels(epsilon, [1] * n, (0, 1)).levels
            rows.append(
                (n, epsilon, published, levels, box_difference([1] * n, (0, 1), levels))
            )
    return (
        "n",
        "epsilon",
        "published_levels",
        "tight_levels",
        "outputs_that_differ",
    ), rows


def figure_8() -> Table:
    """Leakage of the quantised mean (nats): of all values, and of one of them, at the published levels."""
    rows = []
    for n in (2, 3, 5, 10, 20, 50, 100):
        for epsilon in (1, 2, 3, 4, 5):
            published = max(1, n * (2 ** (epsilon - 1) - 1))
            tight = linear_levels(epsilon, [1] * n, (0, 1)).levels
            leaks = [
                leak(n, q)
                for q in (published, tight)
                for leak in (averaging_leakage, individual_leakage)
            ]
            rows.append((n, epsilon, published, tight, *leaks))
    header = ("n", "epsilon", "published_levels", "tight_levels")
    return (*header, "all_published", "one_published", "all_tight", "one_tight"), rows


def show(title: str, table: Table, every: int = 1) -> None:
    header, rows = table
    print(f"\n{title}")
    print("  ".join(f"{name:>16}" for name in header))
    for row in rows[::every]:
        print("  ".join(f"{value:16.6g}" for value in row))


def write(folder: Path, tables: dict[str, Table]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (header, rows) in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([header, *rows])
    if find_spec("matplotlib") is None:
        print(f"\ntables are in {folder}; for pictures install matplotlib")
        return
    draw(folder, tables)
    print(f"\ntables and pictures are in {folder}")


def draw(folder: Path, tables: dict[str, Table]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def save(name: str, x: str, y: str, scale: str) -> None:
        plt.xlabel(x)
        plt.ylabel(y)
        plt.xscale("log" if scale == "loglog" else "linear")
        plt.yscale("linear" if scale == "linear" else "log")
        plt.legend()
        plt.savefig(folder / f"{name}.png", dpi=120)
        plt.close()

    _, rows = tables["figure_4"]
    rho, _, proven, _, asymptote = zip(*rows, strict=True)
    plt.plot(rho, proven, "k-", label="proven")
    plt.plot(rho, asymptote, "k--", label="asymptote")
    save("figure_4", "accuracy rho (1/kg)", "privacy epsilon", "loglog")

    _, rows = tables["figure_6"]
    epsilon, published, corrected, attained = zip(*rows, strict=True)
    plt.plot(epsilon, published, "r:", label="published (false)")
    plt.plot(epsilon, corrected, "k-", label="corrected")
    plt.plot(epsilon, attained, "k.", label="attained")
    save("figure_6", "epsilon", "bound of L0(Y;H), nats", "linear")

    _, rows = tables["figure_7"]
    for n in SIZES:
        mine = [row for row in rows if row[0] == n]
        plt.plot([r[1] for r in mine], [r[3] for r in mine], label=f"n = {n}, tight")
        plt.plot([r[1] for r in mine], [r[2] for r in mine], "k:", lw=0.8)
    save("figure_7", "epsilon, bits (dotted: published)", "levels q", "log")

    _, rows = tables["figure_8"]
    ns_, epsilons = sorted({r[0] for r in rows}), sorted({r[1] for r in rows})
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for axis, column, title in zip(
        axes, (4, 5), ("all values: L0(X;Y)", "one value: L0(X_i;Y)"), strict=True
    ):
        leak = {(r[0], r[1]): r[column] for r in rows}
        picture = axis.imshow(
            [[leak[n, e] for n in ns_] for e in epsilons],
            origin="lower",
            aspect="auto",
            cmap="gray",
        )
        axis.set(title=title + ", nats", xlabel="n", ylabel="epsilon, bits")
        axis.set_xticks(range(len(ns_)), [str(int(n)) for n in ns_])
        axis.set_yticks(range(len(epsilons)), [str(int(e)) for e in epsilons])
        figure.colorbar(picture, ax=axis)
    figure.savefig(folder / "figure_8.png", dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> dict[str, Table]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for CSV files and pictures")
    options = parser.parse_args(argv)
    print("\n".join(examples_1_and_2()))
    tables = {
        "figure_4": figure_4(),
        "figure_6": figure_6(),
        "figure_7": figure_7(),
        "figure_8": figure_8(),
    }
    show(
        "Figure 4: privacy of the BMI policy against accuracy (Example 3)",
        tables["figure_4"],
    )
    show(
        "Figure 6: leakage of an epsilon-private policy (nats)",
        tables["figure_6"],
        every=2,
    )
    show(
        "Figure 7 and Example 4: levels of a quantised mean",
        tables["figure_7"],
        every=4,
    )
    show("Figure 8: leakage of a quantised mean (nats)", tables["figure_8"])
    print(
        "\nAt the published levels L0(X;Y) of all values grows with n and that of one value does not depend on it;\n"
        "the paper says that the leakage falls with n, without saying of what. Both grow with epsilon."
    )
    if options.out is not None:
        write(options.out, tables)
    return tables


if __name__ == "__main__":
    main()
