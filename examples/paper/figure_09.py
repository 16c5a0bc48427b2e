"""Figure 9: optimum (AORR), subset random response and subset merging on the Adult table."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    kinds.compared_mechanisms(run, "three mechanisms, Adult", [common.ADULT])


if __name__ == "__main__":
    common.main(9, __doc__, draw)
