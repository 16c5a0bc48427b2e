"""Figure 5: the optimal channel (AORR) on the Adult table."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    kinds.optimum_figure(run, "optimal channel, Adult", [common.ADULT], {2.0: 0.96})


if __name__ == "__main__":
    common.main(5, __doc__, draw)
