"""Facts of docs/explanation/ranges-theory.md that no mechanism's own test shows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

CLOSE = 1e-9


def squares(values):
    """The sum of squares around the mean, the cost of a cell."""
    values = np.asarray(values, dtype=float)
    if values.size == 0:
        return 0.0
    return float(((values - values.mean()) ** 2).sum())


@given(st.lists(st.integers(0, 40), max_size=12), st.data())
def test_cell_costs_satisfy_the_quadrangle_inequality(numbers, data):
    """cost(a, c) + cost(b, d) <= cost(a, d) + cost(b, c) for a <= b <= c <= d, sorted values."""
    values = sorted(numbers)
    places = st.integers(0, len(values))
    a, b, c, d = sorted(data.draw(st.tuples(places, places, places, places)))
    crossed = squares(values[a:c]) + squares(values[b:d])
    nested = squares(values[a:d]) + squares(values[b:c])
    assert crossed <= nested + CLOSE


def test_with_unequal_weights_contiguous_cells_can_lose():
    """Values 0, 1, 100, 101, weights 1/2, 1/2, 0, 0 and k = 2: 1/4 against 0."""
    values = np.array([0.0, 1.0, 100.0, 101.0])
    weights = np.array([0.5, 0.5, 0.0, 0.0])

    def cost(cell):
        mean = np.average(values[cell], weights=weights[cell])
        return float((weights[cell] * (values[cell] - mean) ** 2).sum())

    found = {}
    for chosen in combinations(range(4), 2):
        if 0 in chosen:
            rest = [i for i in range(4) if i not in chosen]
            masses = weights[list(chosen)].sum() * weights[rest].sum()
            # A cell without any weight costs nothing.
            found[chosen] = (
                cost(list(chosen)) + cost(rest) if masses else cost(list(chosen))
            )
    assert found == pytest.approx({(0, 1): 0.25, (0, 2): 0.0, (0, 3): 0.0})


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_estimates_err_by_what_equal_cells_leave(outputs, power, seed):
    """E |x - estimate|^p >= rho w^(p+1) / (2^p (p+1) K^p), any cells and guesses, any density."""
    rng = np.random.default_rng(seed)
    width = 3.0
    pieces = 40
    # A step density on pieces of [0, width], each with an output and a guess of its output.
    density = rng.uniform(0.2, 2.0, pieces)
    density /= density.mean() * width
    cell = rng.integers(0, outputs, pieces)
    guesses = rng.uniform(0.0, width, outputs)[cell]
    edges = np.linspace(0.0, width, pieces + 1)

    def antiderivative(x):
        return np.sign(x) * np.abs(x) ** (power + 1) / (power + 1)

    integrals = antiderivative(edges[1:] - guesses) - antiderivative(
        edges[:-1] - guesses
    )
    error = float((density * integrals).sum())
    rho = float(density.min())
    bound = rho * width ** (power + 1) / (2**power * (power + 1) * outputs**power)
    assert error >= bound - CLOSE
    equal = np.arange(outputs) * width / outputs
    halves = (width / outputs / 2) ** (power + 1) / (power + 1)
    assert 2 * len(equal) * halves / width == pytest.approx(bound / rho / width)
