"""Figure 2: complete merging on random tables, under LDP and ALIP."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    keys = run.draws(quick=25, full=1000)
    kinds.watchdog_figure(
        run,
        "complete-merging",
        "complete merging, random tables",
        keys,
        {1.0: 0.17, 2.0: 0.52},
    )


if __name__ == "__main__":
    common.main(2, __doc__, draw)
