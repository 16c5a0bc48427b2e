"""Figure 6: subset merging on random tables, under LDP and ALIP."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    keys = run.draws(quick=25, full=1000)
    kinds.watchdog_figure(
        run, "subset-merging", "subset merging, random tables", keys, {1.0: 0.73}
    )


if __name__ == "__main__":
    common.main(6, __doc__, draw)
