"""How fast the best channel within an average leakage is proven, on random tables.

``python -m pytest -m benchmark -n 0 tests/benchmarks/test_averages.py -s`` prints gap and seconds.
"""

from __future__ import annotations

import numpy as np
import pytest

from solvers.average.channels import best_channel_within, funnel_measures

pytestmark = pytest.mark.benchmark

LIMIT = 30.0
"""Seconds that a search may take here: three times the target, for slower machines."""


@pytest.mark.parametrize("share", [0.25, 0.05])
@pytest.mark.parametrize(
    ("secrets", "symbols", "gap"),
    [(5, 15, 1e-4), (5, 50, 1e-3), (3, 100, 1e-3), (2, 1000, 1e-3)],
)
def test_average_budget(secrets: int, symbols: int, gap: float, share: float):
    """A share of I(S;X) may leak; the gap is a share of H(X)."""
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.full(secrets, 3.0))
    joint = weights[:, None] * random.dirichlet(np.ones(symbols), size=secrets)
    joint /= joint.sum()
    entropy, leakage = funnel_measures(joint, "mi", np.eye(symbols))
    found = best_channel_within(
        joint, {"mi": share * leakage}, tolerance=gap * entropy, time_limit=LIMIT
    )
    print(
        f"\n{secrets} x {symbols}, {share:.0%} of I(S;X): kept {found.value / entropy:.4f}, "
        f"gap {found.gap / entropy:.1e}, {found.seconds:.1f} s"
    )
    assert found.gap <= gap * entropy
