"""Figure 4: the optimal channel (AORR) on random tables."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    keys = run.draws(quick=10, full=200)
    kinds.optimum_figure(run, "optimal channel, random tables", keys, {2.0: 0.94})


if __name__ == "__main__":
    common.main(4, __doc__, draw)
