"""Figure 3: complete merging on the Adult table, under LDP and ALIP."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    kinds.watchdog_figure(
        run,
        "complete-merging",
        "complete merging, Adult",
        [common.ADULT],
        {1.0: 0.28, 2.0: 0.73},
    )


if __name__ == "__main__":
    common.main(3, __doc__, draw)
