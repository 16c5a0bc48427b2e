"""Posterior tables, weights of records, and regressions with them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mechdesign as md
from mechdesign.analysis import (
    corrected_regression,
    expand_records,
    posterior_table,
    record_weights,
)
from mechdesign.core.errors import InputError
from tests.cases.releases import channel_of, draw, labels_of

ROWS = ((8, 1, 1), (1, 8, 1), (2, 2, 6))


@pytest.fixture
def channel():
    return channel_of(ROWS, [[30, 20, 10], [10, 20, 30]])


@pytest.fixture
def public(channel):
    return dataclasses.replace(channel, joint=None)


def test_the_posterior_table_is_that_of_the_channel(channel):
    table = posterior_table(channel)
    np.testing.assert_allclose(table.matrix, channel.posteriors, rtol=1e-12)
    assert table.as_dict() == {
        label: pytest.approx(entry) for label, entry in channel.codebook().items()
    }


def test_a_public_channel_takes_an_estimated_prior(channel, public):
    with pytest.raises(
        InputError,
        match=r"which a public channel does not carry; give them \(prior=...\)",
    ):
        posterior_table(public)
    prior = md.estimate_frequencies(
        public, {"y0": 30, "y1": 40, "y2": 30}, method="ml"
    ).as_dict()
    table = posterior_table(public, prior)
    joint = np.array([prior[name] for name in table.symbols])[:, None] * channel.matrix
    np.testing.assert_allclose(table.matrix.T, joint / joint.sum(axis=0))


def test_a_label_without_mass_has_no_posterior():
    plain = channel_of(((1, 0), (0, 1)), names=("a", "b"))
    table = posterior_table(plain, [1.0, 0.0])
    assert table.matrix[0].tolist() == [1.0, 0.0]
    assert np.isnan(table.matrix[1]).all()
    with pytest.raises(InputError, match="the prior does not fit them"):
        expand_records(plain, ["y0", "y1"], kind="posterior", prior=[1.0, 0.0])


@pytest.mark.parametrize(
    ("prior", "match"),
    [
        ([0.5, 0.5], r"one entry for each of the 3 symbols"),
        (
            [0.5, 0.6, -0.1],
            r"probabilities that sum to 1; unbiased estimates can be negative",
        ),
        ([0.5, 0.6, 0.1], r"probabilities that sum to 1"),
        ([0.5, float("nan"), 0.5], r"probabilities that sum to 1"),
        (["x", "y", "z"], r"the prior must be numbers"),
        ({"a": 0.5, "b": 0.5}, r"no entry for 'c'"),
        ({"a": 0.5, "b": 0.5, "z": 0.0}, r"names 'z', which the channel does not know"),
    ],
)
def test_priors_that_are_none_are_refused(channel, prior, match):
    with pytest.raises(InputError, match=match):
        posterior_table(channel, prior)


def test_weights_of_both_kinds(channel):
    np.testing.assert_allclose(
        record_weights(channel), np.linalg.inv(channel.matrix), atol=1e-12
    )
    np.testing.assert_allclose(
        record_weights(channel, kind="posterior"), channel.posteriors
    )
    with pytest.raises(InputError, match=r"the kind of weights \('best'\)"):
        record_weights(channel, kind="best")
    with pytest.raises(InputError, match="take no prior"):
        record_weights(channel, prior=[0.2, 0.3, 0.5])
    merging = channel_of(((1, 0), (0, 1), (0, 1)))
    with pytest.raises(InputError, match="only their sum"):
        record_weights(merging)


def test_expanded_records_say_how_they_were_weighted(channel):
    expanded = expand_records(channel, ["y0", "y2"])
    assert expanded.kind == "unbiased"
    assert expanded.symbols == ("a", "b", "c")
    assert len(expanded) == 6
    assert expanded.record.tolist() == [0, 0, 0, 1, 1, 1]
    assert expanded.symbol.tolist() == [0, 1, 2, 0, 1, 2]
    np.testing.assert_allclose(np.bincount(expanded.record, expanded.weight), 1.0)


MEANS = np.array([1.0, 3.0, -2.0])


def sample(channel, n, rng):
    symbols = rng.choice(3, n, p=[0.4, 0.35, 0.25])
    age = rng.normal(symbols, 1.0)
    outcome = MEANS[symbols] + 0.5 * age + rng.normal(0, 1, n)
    return symbols, age, outcome, labels_of(channel, draw(channel.matrix, symbols, rng))


def test_sums_with_unbiased_weights_have_the_expectation_of_the_truth(channel):
    """E sum_i b(Y_i, x) t_i = sum_i [X_i = x] t_i, by enumerating all labels of a few records."""
    from itertools import product

    table = record_weights(channel)
    symbols = [0, 2, 1, 1]
    outcomes = np.array([1.0, -4.0, 2.5, 7.0])
    mean = np.zeros(3)
    for labels in product(range(3), repeat=4):
        chance = float(
            np.prod(
                [channel.matrix[x, y] for x, y in zip(symbols, labels, strict=True)]
            )
        )
        mean += chance * (table[list(labels)].T @ outcomes)
    np.testing.assert_allclose(mean, [1.0, 9.5, -4.0], atol=1e-12)


def test_means_by_symbol_are_ratios_of_weighted_sums(channel):
    rng = np.random.default_rng(3)
    _, _, outcome, labels = sample(channel, 500, rng)
    expanded = expand_records(channel, labels)
    up = np.bincount(expanded.symbol, expanded.weight * outcome[expanded.record])
    down = np.bincount(expanded.symbol, expanded.weight)
    result = corrected_regression(channel, labels, outcome)
    assert result.names == ("a", "b", "c")
    np.testing.assert_allclose(result.coefficients, up / down, rtol=1e-9)


def test_the_corrected_coefficients_are_right_where_the_naive_ones_are_attenuated(
    channel,
):
    rng = np.random.default_rng(4)
    truth = np.array([*MEANS, 0.5])
    corrected = np.zeros(4)
    naive = np.zeros(4)
    covered = np.zeros(4)
    runs = 250
    guesses = dict(
        zip(channel.outputs, channel.posteriors.argmax(axis=1).tolist(), strict=True)
    )
    for _ in range(runs):
        _, age, outcome, labels = sample(channel, 6000, rng)
        result = corrected_regression(
            channel, labels, outcome, covariates={"age": age}, level=0.9
        )
        corrected += result.coefficients / runs
        covered += (result.lower <= truth) & (truth <= result.upper)
        guess = np.array([guesses[label] for label in labels])
        design = np.column_stack([guess == 0, guess == 1, guess == 2, age])
        naive += np.linalg.lstsq(design, outcome, rcond=None)[0] / runs
    np.testing.assert_allclose(
        corrected, truth, atol=0.06
    )  # four standard errors of the mean of the runs
    assert np.abs(naive - truth).max() > 0.4
    assert np.abs(covered / runs - 0.9).max() < 4 * np.sqrt(0.09 / runs)


def test_a_channel_that_publishes_everything_gives_ordinary_least_squares():
    identity = channel_of(((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    rng = np.random.default_rng(5)
    symbols, age, outcome, labels = sample(identity, 200, rng)
    result = corrected_regression(
        identity,
        labels,
        outcome,
        features={"score": {"b": 1.0, "c": 4.0}},
        covariates={"one": np.ones(200), "age": age},
    )
    design = np.column_stack([np.array([0.0, 1.0, 4.0])[symbols], np.ones(200), age])
    expected, *_ = np.linalg.lstsq(design, outcome, rcond=None)
    np.testing.assert_allclose(result.coefficients, expected, rtol=1e-8)
    residuals = outcome - design @ expected
    bread = np.linalg.inv(design.T @ design)
    sandwich = bread @ ((design * residuals[:, None] ** 2).T @ design) @ bread
    np.testing.assert_allclose(result.covariance, sandwich, rtol=1e-6)
    assert (result.records, result.level) == (200, 0.95)


def test_identified_features_of_a_merging_channel_are_enough():
    merging = channel_of(((1, 0), (0, 1), (0, 1)))
    labels = ["y0", "y0", "y1", "y1"]
    result = corrected_regression(
        merging, labels, [1.0, 3.0, 10.0, 20.0], features={"a": "a", "rest": ["b", "c"]}
    )
    np.testing.assert_allclose(result.coefficients, [2.0, 15.0])
    with pytest.raises(InputError, match="only their sum"):
        corrected_regression(merging, labels, [1.0, 3.0, 10.0, 20.0])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            {"outcome": [1.0]},
            r"the outcome must have one number for each of the 4 released records",
        ),
        ({"outcome": ["x"] * 4}, r"the outcome must be numbers"),
        (
            {"outcome": [1.0, np.nan, 2.0, 3.0]},
            r"the outcome has a missing or infinite value",
        ),
        ({"covariates": {"age": [1.0]}}, r"the covariate 'age' must have one number"),
        (
            {"covariates": {"one": [1.0] * 4, "two": [2.0] * 4}},
            r"no unique solution: the regressors are collinear",
        ),
        ({"level": 0.0}, r"the level \(0\)"),
        ({"features": {"z": "z"}}, r"does not know"),
    ],
)
def test_regressions_that_cannot_be_done_are_refused(channel, arguments, match):
    labels = ["y0", "y1", "y2", "y1"]
    given = {"outcome": [1.0, 2.0, 3.0, 4.0], "features": {"a": "a"}} | arguments
    with pytest.raises(InputError, match=match):
        corrected_regression(channel, labels, **given)


def test_products_of_features_must_be_identified():
    """A score is seen through the labels, its square is not (half of b looks like c)."""
    tied = channel_of(((1, 0), (1, 1), (0, 1)))
    with pytest.raises(
        InputError,
        match="the product of the features 'score' and 'score' is not identified",
    ):
        corrected_regression(
            tied, ["y0", "y1"], [1.0, 2.0], features={"score": {"b": 0.5, "c": 1.0}}
        )
