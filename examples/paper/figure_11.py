"""Figure 11: subset merging under ALIP, l1- and chi2-lift with their inverses, on random tables."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    kinds.averages_figure(
        run, "l1 and chi2 privacy, random tables", run.draws(quick=6, full=200)
    )


if __name__ == "__main__":
    common.main(11, __doc__, draw)
