"""Whole grids of the lift paper against a plain pipeline: ``python -m pytest -m benchmark tests/benchmarks -s``.

The peer is what one writes in an afternoon: float cddlib enumerates, scipy's linprog chooses, nothing is
verified and no bound is proven. Ours includes rounding to integers, the exact audit and the certificate.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mechdesign.mechanisms.design_call import design
from mechdesign.notions import ALIP
from mechdesign.tables.joint import Joint
from tests.benchmarks.measuring import Timing, alternately, seconds, table
from tests.cases.designs import uniform_table
from tests.oracles.float_designs import optimal

pytestmark = pytest.mark.benchmark

EPSILONS = [0.25 * k for k in range(1, 33)]
LAMS = (0.35, 0.5, 0.65)

REPEATS = 3

PEER = "cddlib + linprog"


def grid(
    joint: Joint, gap: float, methods: tuple[str, ...]
) -> tuple[dict[str, Timing], float]:
    """Times of the peer and of ours summed over the grid, and the largest difference in NMI between methods."""
    total = {name: Timing(0.0, 0.0) for name in (PEER, *methods)}
    apart = 0.0
    pipelines(
        joint, ALIP.from_epsilon(8.0), gap, methods, 1
    )  # the first call pays for the imports
    for notion in [
        ALIP.from_epsilon(epsilon, lam) for epsilon in EPSILONS for lam in LAMS
    ]:
        took = pipelines(joint, notion, gap, methods, REPEATS)
        for name, one in zip(total, took, strict=True):
            total[name] = total[name] + one
        apart = max(apart, float(np.ptp([one.result.nmi for one in took[1:]])))
    return total, apart


def pipelines(
    joint: Joint, notion: ALIP, gap: float, methods: tuple[str, ...], repeats: int
) -> list[Timing]:
    """The peer and then every method on one problem."""
    calls = [lambda: optimal(joint, notion.limits, margin=0.0)]
    calls += [
        partial(design, joint, notion, method=m, gap=gap, fallback=False)
        for m in methods
    ]
    return alternately(calls, repeats)


def show(title: str, total: dict[str, Timing], apart: float) -> None:
    peer = total[PEER]
    rows = [
        [name, seconds(t.cpu), seconds(t.wall), f"{peer.cpu / t.cpu:.1f}"]
        for name, t in total.items()
    ]
    table(
        title, ["pipeline", "processor s", "wall s", "times faster than the peer"], rows
    )
    if len(total) > 2:
        print(f"\nlargest difference in NMI between the methods: {apart:.1e}")


def test_figure_5_on_adult(adult):
    """32 budgets x 3 lam on Adult, no slower than the plain pipeline."""
    total, apart = grid(adult, 1e-4, ("auto",))
    show("Figure 5: Adult 5 x 15, 32 budgets x 3 lam, gap 1e-4", total, apart)
    assert total["auto"].cpu <= total[PEER].cpu


def test_figure_4_on_a_random_table():
    """The same on a random 17 x 5 table, at least 3 times faster."""
    total, apart = grid(uniform_table(17), 1e-4, ("auto",))
    show("Figure 4: random 17 x 5, 32 budgets x 3 lam, gap 1e-4", total, apart)
    assert total["auto"].cpu * 3.0 <= total[PEER].cpu


def test_columns_against_vertices_on_the_grid_of_figure_4():
    """Columns at gap 1e-6 agree with vertices to 1e-6; `auto` takes at most 1.2 times what vertices take."""
    total, apart = grid(uniform_table(17), 1e-6, ("auto", "vertices", "columns"))
    show("Figure 4 by every method, gap 1e-6", total, apart)
    print(f"columns / vertices: {total['columns'].cpu / total['vertices'].cpu:.2f}")
    print(f"auto / vertices: {total['auto'].cpu / total['vertices'].cpu:.2f}")
    assert apart <= 1e-6
    assert total["auto"].cpu <= 1.2 * total["vertices"].cpu
