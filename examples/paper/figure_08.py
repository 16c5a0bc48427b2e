"""Figure 8: optimum (AORR), subset random response and subset merging on random tables: utility, leakage, time."""

from __future__ import annotations

import common
import kinds

from mechdesign.report.drawing import LOOKS, new_figure, save_figure


def draw(run: common.Run) -> None:
    means = kinds.compared_mechanisms(
        run, "three mechanisms, random tables", run.draws(quick=5, full=100)
    )
    figure = new_figure(figsize=(5.0, 3.6), layout="constrained")
    axes = figure.subplots()
    print("  mean seconds at epsilon 0.5, 2 and 4")
    for (colour, marker), name in zip(
        LOOKS, (*common.NEAR_OPTIMAL, "subset-merging"), strict=False
    ):
        curve = common.of_curve(means, (name, "alip", 0.65))
        seconds = [m.row.seconds for m in curve.values()]
        axes.semilogy(
            list(curve), seconds, color=colour, marker=marker, markersize=4, label=name
        )
        print(
            f"    {name:<16}"
            + "".join(f"  {curve[e].row.seconds:.4f}" for e in (0.5, 2.0, 4.0))
        )
    axes.set(xlabel="epsilon (nats)", ylabel="seconds for one table")
    axes.legend(frameon=False)
    save_figure(figure, run.path(".png", "_time"), overwrite=True)


if __name__ == "__main__":
    common.main(8, __doc__, draw)
