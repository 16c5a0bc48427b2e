"""Figure 12: subset merging under ALIP, l1- and chi2-lift with their inverses, on the Adult table."""

from __future__ import annotations

import common
import kinds


def draw(run: common.Run) -> None:
    kinds.averages_figure(run, "l1 and chi2 privacy, Adult", [common.ADULT])


if __name__ == "__main__":
    common.main(12, __doc__, draw)
