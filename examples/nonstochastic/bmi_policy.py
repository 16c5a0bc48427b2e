"""Example 3 and Figure 5 of Farokhi's hypothesis-testing paper, on the Young People survey.

The policy hides from whoever sees a reported weight and height whether the body mass index reaches 30:
weights within 1/rho kg of that border are reported as the border. Set MECHDESIGN_DATA to the folder that
holds young-people/responses.csv; with ``--out FOLDER`` the table and Figure 5 are written too.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mechdesign import nonstochastic as ns
from mechdesign.nonstochastic.blurring import (
    BlurringPolicy,
    blurred_measure,
    leakage_bound,
    preimage_epsilon,
)
from mechdesign.nonstochastic.hypothesis import finite_problem

RHOS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Accuracies, in 1/kg: no report is farther than 1/rho from the weight."""

WEIGHT = (0, 200)
HEIGHT = (0, 250)
"""The domain, in kg and cm."""

Row = dict[str, float]


def bmi_boundary(others: np.ndarray) -> np.ndarray:
    """The weight (kg) at which the body mass index reaches 30, for heights in cm."""
    return 30 * (others[:, 0] / 100) ** 2


def load(folder: Path) -> tuple[np.ndarray, int]:
    """Weight (kg) and height (cm) of everybody who gave both, shape (N, 2), and the number of records."""
    path = folder / "young-people" / "responses.csv"
    with path.open(newline="", encoding="utf-8") as stream:
        records = list(csv.DictReader(stream))
    complete: list[tuple[str, str]] = []
    for record in records:
        if record["Weight"].strip() and record["Height"].strip():
            complete.append((record["Weight"], record["Height"]))
    return np.asarray(complete, dtype=float), len(records)


def measure(people: np.ndarray, rho: float) -> Row:
    """What the policy does to these people, and what it guarantees on the whole domain."""
    policy = BlurringPolicy(boundary=bmi_boundary, coordinate=0, rho=rho)
    reports = policy.apply(people)
    # Pairs of weight and height, as symbols of ranges.
    given = list(map(tuple, people.tolist()))
    reported = list(map(tuple, reports.tolist()))
    joint = ns.JointRange.from_columns(given, reported)
    obese = dict(zip(given, policy.hypothesis(people).tolist(), strict=True))
    problem = finite_problem(joint, obese)
    by_people = preimage_epsilon(joint, obese)
    hidden = [report in problem.ambiguous for report in reported]
    domain = blurred_measure(policy, [WEIGHT, HEIGHT], monotone=[1], cells=50_000)
    return {
        "rho": rho,
        "moved": int((people != reports).any(axis=1).sum()),
        "largest_move_kg": float(np.abs(people - reports).max()),
        "obese": int(policy.hypothesis(people).sum()),
        "people_hidden": sum(hidden),
        "outputs": len(problem.outputs),
        "outputs_ambiguous": len(problem.ambiguous),
        "epsilon_seen": float(by_people or 0),
        "epsilon_domain": domain.epsilon[0],
        "leakage_bound_nats": leakage_bound(domain.epsilon[0]),
    }


def write(folder: Path, people: np.ndarray, rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "bmi_policy.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([list(rows[0]), *(row.values() for row in rows)])
    if find_spec("matplotlib") is None:
        print(f"the table is in {folder}; for Figure 5 install matplotlib")
        return
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = (None, 1.0, 0.2, 0.1, 0.05)
    figure, axes = plt.subplots(1, len(shown), figsize=(4 * len(shown), 4), sharey=True)
    for axis, rho in zip(axes, shown, strict=True):
        points = people
        if rho is not None:
            policy = BlurringPolicy(boundary=bmi_boundary, coordinate=0, rho=rho)
            points = policy.apply(people)
        axis.hist2d(
            points[:, 0],
            points[:, 1],
            bins=(40, 40),
            range=((40, 160), (140, 210)),
            cmap="Greys",
        )
        axis.set(
            title="as given" if rho is None else f"rho = {rho:g} per kg",
            xlabel="weight, kg",
        )
    axes[0].set_ylabel("height, cm")
    figure.savefig(folder / "figure_5.png", dpi=120)
    plt.close(figure)
    print(f"the table and Figure 5 are in {folder}")


def main(argv: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the CSV file and Figure 5")
    options = parser.parse_args(argv)
    folder = os.environ.get("MECHDESIGN_DATA")
    if not folder:
        sys.exit(
            "MECHDESIGN_DATA must name the folder that holds young-people/responses.csv"
        )
    people, records = load(Path(folder))
    print(
        f"{len(people)} of {records} people gave weight and height (the paper: 1,010 records)"
    )
    print(f"weights {people[:, 0].min():g} to {people[:, 0].max():g} kg, heights {people[:, 1].min():g} to "
          f"{people[:, 1].max():g} cm; {len(np.unique(people, axis=0))} different pairs")  # fmt: skip
    rows = [measure(people, rho) for rho in RHOS]
    print("  ".join(f"{name:>18}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:18.6g}" for value in row.values()))
    print(
        "people_hidden: those whose report is shared with somebody on the other side of the border. The survey has\n"
        "few people near it, so its own epsilon (epsilon_seen, by pre-images) is far below that of the domain\n"
        f"{WEIGHT} kg x {HEIGHT} cm (epsilon_domain, proven), which is what the paper's Figure 4 shows."
    )
    if options.out is not None:
        write(options.out, people, rows)
    return rows


if __name__ == "__main__":
    main()
