"""Joint frequencies with a kept column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.analysis import estimate_joint
from mechdesign.core.errors import InputError
from tests.cases.releases import channel_of, draw, labels_of
from tests.profiles import slow

ROWS = ((8, 1, 1), (1, 8, 1), (2, 2, 6))


@pytest.fixture
def channel():
    return channel_of(ROWS, [[30, 20, 10], [10, 20, 30]])


def test_a_kept_column_splits_the_estimates(channel):
    """Each column of the joint table is the estimate of its records, times their share."""
    labels = ["y0"] * 30 + ["y1"] * 50 + ["y2"] * 20
    towns = (["N", "S"] * 50)[:100]
    result = estimate_joint(channel, labels, towns)
    assert result.others == ("N", "S")
    for j, town in enumerate(result.others):
        inside = [
            label for label, other in zip(labels, towns, strict=True) if other == town
        ]
        alone = md.estimate_frequencies(channel, inside)
        np.testing.assert_allclose(
            result.estimates[:, j], alone.estimates * len(inside) / 100, atol=1e-12
        )
    np.testing.assert_allclose(
        result.estimates.sum(axis=1),
        md.estimate_frequencies(channel, labels).estimates,
        atol=1e-12,
    )
    assert result.rows()[0] == {
        "name": "a",
        "other": "N",
        "estimate": result.estimates[0, 0],
        "standard_error": result.standard_errors[0, 0],
        "lower": result.lower[0, 0],
        "upper": result.upper[0, 0],
        "unbiased": result.unbiased[0, 0],
    }


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("unbiased", "population"),
        ("ml", "records"),
        slow("unbiased", "records"),
        slow("ml", "population"),
    ],
)
def test_every_estimate_lies_within_its_interval_and_both_within_0_and_1(
    channel, method, target
):
    """0 <= lower <= estimate <= upper <= 1 in every cell, and unbiased estimates sum to 1."""
    rng = np.random.default_rng(32)
    impossible = 0
    for _ in range(100):
        records = int(rng.integers(2, 40))
        labels = rng.choice(channel.outputs, records, p=rng.dirichlet([0.3, 0.3, 0.3]))
        towns = rng.choice(["N", "S"], records, p=[0.8, 0.2])
        result = estimate_joint(channel, labels, towns, method=method, target=target)
        assert (result.lower >= 0.0).all()
        assert (result.lower <= result.estimates).all()
        assert (result.estimates <= result.upper).all()
        assert (result.upper <= 1.0).all()
        assert result.unbiased.sum() == pytest.approx(1.0)
        if (result.unbiased < -1e-6).any():
            impossible += 1
            assert (method == "ml") == (not result.notices)
    assert impossible > 10


def test_standard_errors_are_those_of_the_contributions_of_each_record(channel):
    labels = np.array(["y0"] * 30 + ["y1"] * 50 + ["y2"] * 20)
    towns = np.array((["N", "S", "S"] * 34)[:100])
    inverse = dict(zip(channel.outputs, np.linalg.inv(channel.matrix), strict=True))
    numbers = np.array(
        [
            inverse[label][0] * (town == "S")
            for label, town in zip(labels, towns, strict=True)
        ]
    )
    result = estimate_joint(channel, labels, towns)
    assert result.standard_errors[0, 1] == pytest.approx(numbers.std(ddof=1) / 10)


def test_a_constant_column_gives_the_frequencies_themselves(channel):
    counts = {("y0", "N"): 300, ("y1", "N"): 500, ("y2", "N"): 200}
    plain = {"y0": 300, "y1": 500, "y2": 200}
    for method in ("unbiased", "ml"):
        for target in ("population", "records"):
            joint = estimate_joint(channel, counts, method=method, target=target)
            alone = md.estimate_frequencies(
                channel, plain, method=method, target=target
            )
            np.testing.assert_allclose(
                joint.estimates[:, 0], alone.estimates, atol=1e-9
            )
            np.testing.assert_allclose(
                joint.standard_errors[:, 0], alone.standard_errors, rtol=2e-3
            )


def test_counts_and_columns_agree(channel):
    labels = ["y0", "y1", "y1", "y2"]
    towns = ["N", "N", "S", None]
    from_columns = estimate_joint(channel, labels, pd.Series(towns))
    counts = {("y0", "N"): 1, ("y1", "N"): 1, ("y1", "S"): 1, ("y2", ""): 1}
    assert from_columns.others == ("", "N", "S")
    np.testing.assert_allclose(
        from_columns.estimates, estimate_joint(channel, counts).estimates
    )


def test_maximum_likelihood_fits_each_value_by_itself(channel):
    counts = {
        ("y0", "N"): 90,
        ("y1", "N"): 5,
        ("y2", "N"): 5,
        ("y0", "S"): 30,
        ("y1", "S"): 40,
        ("y2", "S"): 30,
    }
    result = estimate_joint(channel, counts, method="ml")
    assert result.estimates.min() >= 0
    assert result.estimates.sum() == pytest.approx(1.0)
    inside = md.estimate_frequencies(
        channel, {"y0": 30, "y1": 40, "y2": 30}, method="ml"
    )
    np.testing.assert_allclose(result.estimates[:, 1], inside.estimates / 2, atol=1e-9)


def test_a_value_of_no_record_is_fitted_as_nothing(channel):
    """Counts may name values that do not occur; a column cannot."""
    counts = {("y0", "u"): 5, ("y1", "u"): 9, ("y2", "u"): 6, ("y0", "v"): 0}
    found = md.analysis.estimate_joint(channel, counts, method="ml")
    assert found.estimates[:, found.others.index("v")].tolist() == [0.0, 0.0, 0.0]
    assert (found.lower < found.upper).all()


@pytest.mark.parametrize("target", ["population", slow("records")])
def test_intervals_cover(channel, target):
    rng = np.random.default_rng(21)
    joint = np.array([[0.3, 0.1], [0.1, 0.25], [0.05, 0.2]])
    runs = 200
    n = 600
    level = 0.9
    covered = np.zeros((3, 2))
    pairs = rng.choice(6, n, p=joint.ravel())
    for _ in range(runs):
        if target == "population":
            pairs = rng.choice(6, n, p=joint.ravel())
        x = pairs // 2
        z = pairs % 2
        truth = (
            joint
            if target == "population"
            else np.bincount(pairs, minlength=6).reshape(3, 2) / n
        )
        first = labels_of(channel, draw(channel.matrix, x, rng))
        result = estimate_joint(
            channel, first, z.astype(str), target=target, level=level
        )
        covered += (result.lower <= truth) & (truth <= result.upper)
    slack = 4.5 * np.sqrt(level * (1 - level) / runs)
    assert level - slack < covered.min() / runs
    assert covered.mean() / runs < level + 0.05


def test_merged_symbols_and_functionals_stay_together(channel):
    merging = channel_of(((1, 0), (0, 1), (0, 1)))
    counts = {("y0", "N"): 25, ("y1", "S"): 75}
    result = estimate_joint(merging, counts)
    assert result.names == ("a", "{b, c}")
    np.testing.assert_allclose(result.estimates, [[0.25, 0.0], [0.0, 0.75]], atol=1e-12)
    assert "rank 2" in result.notices[0]
    score = estimate_joint(
        channel,
        counts | {("y2", "S"): 1},
        functionals={"score": {"b": 2.0, "c": -3.0}},
        target="records",
    )
    assert score.estimates.shape == (1, 2)
    assert score.lower.min() < 0  # not cut: it is no frequency


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"released": ["y0", "y1"], "other": ["N"]}, r"have 2 and 1 records"),
        ({"released": ["y0", "yy"], "other": ["N", "S"]}, r"no output 'yy'"),
        ({"released": {("y0", "N"): 1}}, r"at least two released records"),
        ({"released": {("yy", "N"): 5}}, r"no output 'yy'"),
        ({"released": {"y0": 5}}, r"mapping of \(label, value\) to count"),
        ({"released": {("y0", "N"): 5}, "other": ["N"]}, r"take no second column"),
        (
            {"released": ["y0"] * 2, "other": ["N"] * 2, "method": "best"},
            r"the method \('best'\)",
        ),
        ({"released": ["y0"] * 2, "other": ["N"] * 2, "level": 2}, r"the level \(2\)"),
    ],
)
def test_refusals(channel, arguments, match):
    with pytest.raises(InputError, match=match):
        estimate_joint(channel, **arguments)
