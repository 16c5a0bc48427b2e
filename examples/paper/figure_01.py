"""Figure 1: histograms of the smallest and the largest log-lift of each symbol over random tables."""

from __future__ import annotations

import csv

import common
import numpy as np

from mechdesign.report.drawing import new_figure, save_figure

PUBLISHED = {"log Psi": (-12.0, -0.06), "log Lambda": (0.02, 1.64)}
BINS = 60

TABLES, SETS = 1000, 10
STARTS = range(0, SETS * TABLES, TABLES)


def draw(run: common.Run) -> None:
    lifts = [common.table(key).lift for key in run.draws(quick=200, full=SETS * TABLES)]
    extremes = {
        "log Psi": [np.log(lift.min(axis=0)) for lift in lifts],
        "log Lambda": [np.log(lift.max(axis=0)) for lift in lifts],
    }
    found = {name: np.concatenate(values[:TABLES]) for name, values in extremes.items()}
    print(
        f"Figure 1: asymmetry of the lift ({min(TABLES, len(lifts)):,} random tables)"
    )
    figure = new_figure(figsize=(8.0, 3.4), layout="constrained")
    with run.path(".csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["quantity", "from", "to", "share"])
        for axes, (name, values) in zip(
            figure.subplots(1, 2), found.items(), strict=True
        ):
            counts, edges = np.histogram(values, bins=BINS)
            shares = counts / len(values)
            writer.writerows(
                zip([name] * BINS, edges[:-1], edges[1:], shares, strict=True)
            )
            axes.stairs(shares, edges, fill=True, color="0.45")
            axes.set(xlabel=f"{name} (nats)", ylabel="share of symbols")
            low, high = PUBLISHED[name]
            ends = np.quantile(values, (0.005, 0.995))
            print(
                f"  {name:<10}  published [{low:g}, {high:g}]  reproduced [{values.min():.2f}, {values.max():.2f}]  "
                f"99% in [{ends[0]:.2f}, {ends[1]:.2f}]  tallest density {shares.max() / (edges[1] - edges[0]):.2f}"
            )
    if run.full:
        smallest = [
            float(np.concatenate(extremes["log Psi"][k : k + TABLES]).min())
            for k in STARTS
        ]
        print(
            f"  the smallest log Psi depends on the draw: from {min(smallest):.2f} to {max(smallest):.2f} over "
            f"{SETS} sets of {TABLES:,} tables"
        )
    save_figure(figure, run.path(".png"), overwrite=True)


if __name__ == "__main__":
    common.main(1, __doc__, draw)
