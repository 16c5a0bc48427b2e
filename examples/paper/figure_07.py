"""Figure 7: subset merging on the Adult table, under LDP and ALIP."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    kinds.watchdog_figure(
        run, "subset-merging", "subset merging, Adult", [common.ADULT], {1.0: 0.73}
    )


if __name__ == "__main__":
    common.main(7, __doc__, draw)
