"""Figure 13: subset merging under ALIP and alpha-lift of orders 2, 10 and 100 with their inverses, on random tables."""

from __future__ import annotations

from itertools import pairwise

import common
import kinds

ORDERS = ("alpha:2", "alpha:10", "alpha:100", "alip")


def draw(run: common.Run) -> None:
    keys = run.draws(quick=6, full=200)
    means = kinds.compared_notions(
        run, "alpha-lift, random tables", keys, [(name, 0.5) for name in ORDERS]
    )
    for relaxed, strict in pairwise(ORDERS):
        common.print_order(
            means, ("subset-merging", relaxed, 0.5), ("subset-merging", strict, 0.5)
        )
    common.print_repairs(means)


if __name__ == "__main__":
    common.main(13, __doc__, draw)
