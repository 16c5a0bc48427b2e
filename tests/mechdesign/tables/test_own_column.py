"""A table of a column with itself: what is protected is what is released."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from tests.oracles.own_column import (
    box_posteriors,
    least_uncertainty,
    staircase_posteriors,
    uncertainty_at_few_nats,
)

CELLS = ["c", "a", "b", "a", "c", "c", "a", "c", None]


def frame(cells=CELLS):
    return pd.DataFrame({"x": cells, "w": range(1, len(cells) + 1)})


def own(counts) -> Joint:
    """A table of the column x with itself."""
    cells = [f"v{k:02d}" for k, count in enumerate(counts) for _ in range(count)]
    return Joint.from_table(pd.DataFrame({"x": cells}), sensitive="x", useful="x")


def test_the_table_is_its_diagonal():
    joint = Joint.from_table(frame(), sensitive="x", useful="x", missing="drop")
    assert joint.is_of_itself
    assert joint.sensitive == joint.useful
    assert joint.useful.names == ("a", "b", "c")
    assert joint.counts == ((3, 0, 0), (0, 1, 0), (0, 0, 4))
    assert joint.records == 8


def test_missing_cells_and_weights():
    joint = Joint.from_table(
        frame(), sensitive="x", useful="x", weight="w", missing="symbol"
    )
    assert joint.useful.names == ("", "a", "b", "c")
    assert [joint.counts[k][k] for k in range(4)] == [9, 13, 3, 20]


def test_crossed_columns_with_themselves():
    table = pd.DataFrame({"x": list("aabb"), "z": list("uvuu")})
    joint = Joint.from_table(table, sensitive=["x", "z"], useful=["x", "z"])
    assert joint.useful.names == ("a, u", "a, v", "b, u")
    assert joint.counts == ((1, 0, 0), (0, 1, 0), (0, 0, 2))
    with pytest.raises(InputError, match="leave it out where the released columns"):
        joint.protecting_each()
    with pytest.raises(InputError, match="is named 2 times"):
        Joint.from_table(table, sensitive=["x", "z"], useful=["z", "x"])


def test_bins_are_those_of_both_sides():
    ages = pd.DataFrame({"age": [21, 25, 34, 47, 48, 49]})
    joint = Joint.from_table(ages, sensitive="age", useful="age", bins=10)
    assert joint.sensitive == joint.useful
    assert joint.useful.names == ("[20, 30)", "[30, 40)", "[40, 50]")
    assert joint.counts == ((2, 0, 0), (0, 1, 0), (0, 0, 3))


def test_nothing_may_be_beside_the_diagonal():
    with pytest.raises(InputError, match="nothing beside its diagonal"):
        Joint.from_counts(
            [[1, 1], [0, 2]],
            sensitive="x",
            useful="x",
            sensitive_labels=["a", "b"],
            useful_labels=["a", "b"],
        )


COUNTS = st.lists(st.integers(5, 60), min_size=2, max_size=6)


@given(COUNTS, st.floats(0.2, 2.5))
def test_local_differential_privacy_of_the_column_itself(counts, epsilon):
    """The design keeps what the best mixture of all 2^n staircase posteriors keeps."""
    joint = own(counts)
    found = md.design(joint, md.LDP(epsilon), gap=1e-6)
    least = least_uncertainty(joint.p_x, staircase_posteriors(joint.p_x, epsilon))
    entropy = -(joint.p_x * np.log(joint.p_x)).sum()
    best = 1.0 - least / entropy
    assert found.nmi == pytest.approx(best, abs=2e-6)
    assert found.certificate.upper_bound_nmi >= best - 1e-12


@given(COUNTS, st.floats(0.1, 1.5), st.floats(0.1, 1.5))
def test_lifts_of_the_column_itself(counts, eps_l, eps_u):
    joint = own(counts)
    found = md.design(joint, md.ALIP(eps_l=eps_l, eps_u=eps_u), gap=1e-5)
    posteriors = box_posteriors(joint.p_x, np.exp(-eps_l), np.exp(eps_u))
    least = least_uncertainty(joint.p_x, posteriors)
    entropy = -(joint.p_x * np.log(joint.p_x)).sum()
    assert found.nmi == pytest.approx(1.0 - least / entropy, abs=2e-5)


@pytest.mark.parametrize("counts", [(40, 35, 25), (30, 20, 20, 15, 15), (50, 50)])
def test_few_nats_of_pointwise_maximal_leakage(counts):
    """In the high-privacy regime the optimum has a closed form."""
    joint = own(counts)
    epsilon = -np.log(1.0 - joint.p_x.min())
    found = md.design(joint, md.MaxLift(epsilon), gap=1e-7)
    entropy = -(joint.p_x * np.log(joint.p_x)).sum()
    best = 1.0 - uncertainty_at_few_nats(joint.p_x, epsilon) / entropy
    assert found.nmi == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("symbols", [3, 4, 6])
@pytest.mark.parametrize("factor", [1.2, 1.5, 2.0, 2.6])
def test_maximal_leakage_of_equally_frequent_symbols(symbols, factor):
    """Every permutation of (c, .., c, rest, 0, .., 0) is an extreme posterior, with c = e^epsilon / n;
    all have one entropy, so any mixture with the mean of the table is optimal.
    """
    c = factor / symbols
    full = int(1.0 / c + 1e-12)
    posterior = np.array([c] * full + [1.0 - full * c])
    posterior = posterior[posterior > 1e-12]
    least = -(posterior * np.log(posterior)).sum()
    found = md.design(own([20] * symbols), md.MaxLift(np.log(factor)), gap=1e-7)
    assert found.nmi == pytest.approx(1.0 - least / np.log(symbols), abs=1e-6)
    assert found.certificate.upper_bound_nmi >= found.nmi - 1e-12


@given(st.integers(5, 60), st.integers(5, 60), st.floats(0.05, 1.5))
def test_maximal_leakage_of_two_symbols(first, second, epsilon):
    """Two outputs: each is as sure of one symbol as its largest lift and the sum of 1 allow."""
    joint = own([first, second])
    p = joint.p_x
    highest = np.minimum(np.exp(epsilon) * p, 1.0)
    # Masses m of the two posteriors with the mean p.
    m = (p[0] - (1.0 - highest[1])) / (highest[0] - (1.0 - highest[1]))
    least = 0.0
    for mass, v in ((m, highest[0]), (1.0 - m, highest[1])):
        posterior = np.array([v, 1.0 - v])
        posterior = posterior[posterior > 0.0]
        least -= mass * float((posterior * np.log(posterior)).sum())
    found = md.design(joint, md.MaxLift(epsilon), gap=1e-7)
    best = 1.0 + least / (p * np.log(p)).sum()
    assert found.nmi == pytest.approx(best, abs=1e-6)


def test_wide_columns_are_proven_too():
    """Thirty symbols to within 1 %, where trees proved nothing of use."""
    counts = np.random.default_rng(3).integers(20, 900, 30).tolist()
    found = md.design(own(counts), md.LDP(1.0), gap=1e-4)
    assert found.certificate.gap_nmi <= 1e-4


def test_a_release_replaces_the_column():
    table = frame(CELLS[:-1])
    joint = Joint.from_table(table, sensitive="x", useful="x")
    channel = md.design(joint, md.LDP(1.0)).channel
    released = md.sanitise(table, channel, insecure_seed=1)
    assert list(released.columns) == ["x"]
    assert set(released["x"]) <= set(channel.outputs)


def test_the_transformer_protects_the_column_itself():
    table = pd.DataFrame({"x": ["a", "b", "c", "c"] * 20, "z": range(80)})
    release = md.ReleaseTransformer(
        md.LDP(1.0), sensitive="x", useful="x", keep="z", keep_order=True
    )
    released = release.fit_transform(table)
    assert list(released.columns) == ["x", "z"]
    assert not set(released["x"]) & {"a", "b", "c"}
    joint = Joint.from_table(table, sensitive="x", useful="x")
    assert release.channel_.joint == joint


def test_lazy_tables():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"x": ["a", "b", "a"]}).lazy()
    joint = Joint.from_table(table, sensitive="x", useful="x")
    assert joint.counts == ((2, 0), (0, 1))
