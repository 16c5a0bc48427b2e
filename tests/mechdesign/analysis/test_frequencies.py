"""Estimated frequencies: values, intervals, targets, what cannot be known, and refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom, norm

import mechdesign as md
from mechdesign.analysis import identifiability
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.tables.variable import Variable
from tests.cases.releases import channel_of, draw, labels_of

ROWS = ((8, 1, 1), (1, 8, 1), (2, 2, 6))
COUNTS = [[30, 20, 10], [10, 20, 30]]


@pytest.fixture
def channel():
    return channel_of(ROWS, COUNTS)


@pytest.fixture
def merging():
    """a is published as it is, b and c as one."""
    return channel_of(((1, 0), (0, 1), (0, 1)), COUNTS)


def test_unbiased_estimates_solve_the_linear_equations(channel):
    counts = {"y0": 300, "y1": 500, "y2": 200}
    result = md.estimate_frequencies(channel, counts)
    expected = np.linalg.solve(channel.matrix.T, [0.3, 0.5, 0.2])
    np.testing.assert_allclose(result.estimates, expected, atol=1e-12)
    assert result.names == ("a", "b", "c")
    assert result.records == 1000
    assert (result.method, result.target, result.level) == (
        "unbiased",
        "population",
        0.95,
    )
    assert result.as_dict() == dict(zip("abc", result.estimates.tolist(), strict=True))
    row = result.rows()[0]
    assert (row["name"], row["estimate"]) == ("a", result.estimates[0])


def test_standard_errors_are_those_of_weighted_labels(channel):
    """Each record contributes the number b(y): the variance of their mean."""
    labels = ["y0"] * 30 + ["y1"] * 50 + ["y2"] * 20
    inverse = np.linalg.inv(channel.matrix)
    numbers = inverse[[0] * 30 + [1] * 50 + [2] * 20]
    result = md.estimate_frequencies(channel, labels)
    np.testing.assert_allclose(
        result.standard_errors, numbers.std(axis=0, ddof=1) / 10, rtol=1e-9
    )
    np.testing.assert_allclose(result.covariance, np.cov(numbers.T) / 100, rtol=1e-9)


IDENTITY = Channel(Variable(("x",), (("a",), ("b",))), ("u", "v"), ((1, 0), (0, 1)), 1)


@pytest.mark.parametrize(
    ("n", "k", "level"),
    [(100, 0, 0.95), (100, 1, 0.95), (40, 13, 0.9), (1000, 300, 0.99)],
)
def test_the_interval_of_a_share_is_that_of_wilson_with_continuity_correction(
    n, k, level
):
    """Newcombe 1998 (Statistics in Medicine 17), method 4, in its closed form."""
    z = float(norm.ppf((1 + level) / 2))
    p = k / n
    low = (
        2 * n * p
        + z**2
        - 1
        - z * np.sqrt(max(z**2 - 2 - 1 / n + 4 * p * (n * (1 - p) + 1), 0))
    ) / (2 * (n + z**2))
    high = (
        2 * n * p + z**2 + 1 + z * np.sqrt(z**2 + 2 - 1 / n + 4 * p * (n * (1 - p) - 1))
    ) / (2 * (n + z**2))
    found = md.estimate_frequencies(IDENTITY, {"u": k, "v": n - k}, level=level)
    assert (found.lower[0], found.upper[0]) == pytest.approx(
        (low if k else 0.0, high), abs=1e-12
    )


@pytest.mark.parametrize("chance", [1.0, 0.9, 0.6])
@pytest.mark.parametrize("records", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_intervals_of_rare_symbols_hold(records, chance):
    """sum over counts of P(count) [share in interval] >= level - 0.01, enumerated; a normal one had
    0.41 here.
    """
    whole = 2**53
    ends = []
    own = int(chance * whole)
    channel = Channel(
        Variable(("x",), (("a",), ("b",))),
        ("u", "v"),
        ((own, whole - own), (whole - own, own)),
        whole,
    )
    # Half of the records or fewer are expected, so that no other count is possible but for one in a million.
    counts = np.arange(int(binom.isf(1e-6, records, 0.5)) + 1)
    for k in counts.tolist():
        found = md.estimate_frequencies(channel, {"u": k, "v": records - k})
        assert found.lower[0] < found.upper[0]
        ends.append((found.lower[0], found.upper[0]))
    low, high = np.array(ends).T
    for share in (0.001, 0.002, 0.005, 0.008, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5):
        chances = binom.pmf(
            counts, records, share * chance + (1 - share) * (1 - chance)
        )
        assert chances[(low <= share) & (share <= high)].sum() >= 0.94


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        pa.array,
        lambda v: pd.Series(v, dtype="category"),
    ],
)
def test_every_kind_of_column_counts_the_same(channel, kind):
    labels = ["y2", "y0", "y1", "y1"]
    expected = md.estimate_frequencies(channel, {"y0": 1, "y1": 2, "y2": 1})
    np.testing.assert_array_equal(
        md.estimate_frequencies(channel, kind(labels)).estimates, expected.estimates
    )


def test_without_a_table_the_estimates_of_an_invertible_channel_are_the_same(channel):
    public = dataclasses.replace(channel, joint=None)
    counts = {"y0": 30, "y1": 50, "y2": 20}
    one, other = (md.estimate_frequencies(c, counts) for c in (channel, public))
    np.testing.assert_allclose(one.estimates, other.estimates, atol=1e-12)


def test_intervals_for_the_records_leave_out_the_sampling(channel):
    counts = {"y0": 300, "y1": 500, "y2": 200}
    wide, narrow = (
        md.estimate_frequencies(channel, counts, target=t)
        for t in ("population", "records")
    )
    np.testing.assert_array_equal(wide.estimates, narrow.estimates)
    p = wide.estimates
    n = 1000
    expected = wide.covariance * (n - 1) / n - (np.diag(p) - np.outer(p, p)) / n
    np.testing.assert_allclose(narrow.covariance, expected, atol=1e-12)


def test_what_is_published_as_it_is_is_known_exactly_for_the_records():
    identity = channel_of(((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    result = md.estimate_frequencies(
        identity, {"y0": 20, "y1": 30, "y2": 50}, target="records"
    )
    np.testing.assert_allclose(result.estimates, [0.2, 0.3, 0.5])
    np.testing.assert_allclose(result.standard_errors, 0.0, atol=1e-9)


def test_symbols_that_were_merged_are_estimated_together(merging):
    result = md.estimate_frequencies(merging, {"y0": 25, "y1": 75})
    assert result.names == ("a", "{b, c}")
    np.testing.assert_allclose(result.estimates, [0.25, 0.75])
    assert "rank 2 for 3 symbols" in result.notices[0]
    likely = md.estimate_frequencies(merging, {"y0": 25, "y1": 75}, method="ml")
    np.testing.assert_allclose(likely.estimates, [0.25, 0.75], atol=1e-9)


def test_symbols_that_were_merged_can_be_refused(merging):
    with pytest.raises(
        InputError,
        match=r"cannot tell apart the frequencies within \{b, c\}.*unidentified='groups'",
    ):
        md.estimate_frequencies(merging, {"y0": 25, "y1": 75}, unidentified="refuse")


def test_functionals_that_are_identified_can_be_asked_for(merging):
    asked = {
        "rest": ["b", "c"],
        "first": "a",
        "contrast": {"a": 2.0, "b": -1.0, "c": -1.0},
    }
    result = md.estimate_frequencies(merging, {"y0": 25, "y1": 75}, functionals=asked)
    assert result.names == ("rest", "first", "contrast")
    np.testing.assert_allclose(result.estimates, [0.75, 0.25, -0.25], atol=1e-12)
    assert result.lower[2] < -0.25 < result.upper[2]


def test_functionals_have_the_variance_of_their_combination(channel):
    counts = {"y0": 300, "y1": 500, "y2": 200}
    whole = md.estimate_frequencies(channel, counts, target="records")
    sums = md.estimate_frequencies(
        channel,
        counts,
        target="records",
        functionals={"ab": ["a", "b"], "score": {"b": 1, "c": 3}},
    )
    mixing = np.array([[1, 1, 0], [0, 1, 3]])
    np.testing.assert_allclose(
        sums.covariance, mixing @ whole.covariance @ mixing.T, atol=1e-12
    )


def test_a_square_that_is_not_identified_makes_the_variance_an_upper_bound():
    """c = 2b (values 0, 1/2, 1) is linear in what the labels show, its square is not."""
    tied = channel_of(((1, 0), (1, 1), (0, 1)))
    counts = {"y0": 60, "y1": 40}
    score = {"score": {"b": 0.5, "c": 1.0}}
    result = md.estimate_frequencies(tied, counts, functionals=score, target="records")
    assert result.estimates[0] == pytest.approx(0.4)
    assert any("upper bounds" in notice for notice in result.notices)
    # The smallest possible second moment is the square of the mean.
    assert result.standard_errors[0] == pytest.approx(np.sqrt((0.4 - 0.16) / 100))


@pytest.mark.parametrize(
    ("functionals", "match"),
    [
        ({"b": "b"}, r"'b' cannot be estimated: the channel has rank 2"),
        ({"z": "z"}, r"names 'z', which the channel does not know"),
        ({"n": 3}, r"must be a symbol, symbols or coefficients"),
        ({"n": {"a": "much"}}, r"the coefficient of 'a' in 'n' must be a number"),
        ({"n": {"a": 0.0}}, r"finite coefficients, not all zero"),
        ({"n": {"a": float("nan")}}, r"finite coefficients, not all zero"),
        ({}, r"must be a mapping"),
        ("a", r"must be a mapping"),
    ],
)
def test_functionals_that_make_no_sense_are_refused(merging, functionals, match):
    with pytest.raises(InputError, match=match):
        md.estimate_frequencies(merging, {"y0": 25, "y1": 75}, functionals=functionals)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"method": "bayes"}, r"the method \('bayes'\) must be unbiased or ml"),
        ({"target": "world"}, r"the target \('world'\) must be population or records"),
        ({"level": 1.0}, r"the level \(1\) must be strictly between 0 and 1"),
        ({"level": 0.0}, r"the level \(0\)"),
        (
            {"unidentified": "guess"},
            r"unidentified \('guess'\) must be groups or refuse",
        ),
        ({"form": "text"}, r"the form of the release \('text'\)"),
    ],
)
def test_arguments_out_of_range_are_refused(channel, arguments, match):
    with pytest.raises(InputError, match=match):
        md.estimate_frequencies(channel, {"y0": 2, "y1": 2}, **arguments)


@pytest.mark.parametrize(
    ("released", "match"),
    [
        (
            ["y0", "yy"],
            r"entry 1 of the released column: the channel has no output 'yy'",
        ),
        (["y0", None], r"entry 1 of the released column is missing"),
        ({"yy": 3}, r"the channel has no output 'yy'"),
        ({"y0": 1.5}, r"the count of 'y0' \('1.5'\) must be a whole number"),
        ({"y0": -1}, r"the count of 'y0'"),
        ({"y0": "many"}, r"the count of 'y0'"),
        (["y0"], r"at least two released records, not 1"),
        ({}, r"at least two released records, not 0"),
        (3, r"must be a column"),
    ],
)
def test_released_data_that_are_not_the_channels_are_refused(channel, released, match):
    with pytest.raises(InputError, match=match):
        md.estimate_frequencies(channel, released)


def test_maximum_likelihood_equals_unbiased_inside_and_is_never_negative(channel):
    counts = {"y0": 300, "y1": 500, "y2": 200}
    one, other = (
        md.estimate_frequencies(channel, counts, method=m) for m in ("unbiased", "ml")
    )
    np.testing.assert_allclose(one.estimates, other.estimates, atol=1e-6)
    np.testing.assert_allclose(one.standard_errors, other.standard_errors, rtol=2e-3)
    assert other.likelihood is not None
    assert other.likelihood.deficit < 1e-5
    outside = {"y0": 900, "y1": 50, "y2": 50}
    assert md.estimate_frequencies(channel, outside).unbiased.min() < 0
    assert md.estimate_frequencies(channel, outside, method="ml").estimates.min() >= 0


IMPOSSIBLE = {"y0": 900, "y1": 50, "y2": 50}
"""Counts whose unbiased estimates are partly below 0 and partly above 1."""


def test_an_impossible_estimate_is_reported_as_the_nearest_possible_one(channel):
    result = md.estimate_frequencies(channel, IMPOSSIBLE)
    exact = np.linalg.solve(channel.matrix.T, [0.9, 0.05, 0.05])
    np.testing.assert_allclose(result.unbiased, exact, atol=1e-12)
    assert exact.min() < -0.01
    assert exact.max() > 1.01
    np.testing.assert_array_equal(result.estimates, np.clip(result.unbiased, 0.0, 1.0))
    assert result.notices[-1].startswith("3 of 3 unbiased estimates are impossible")
    assert [row["unbiased"] for row in result.rows()] == result.unbiased.tolist()


def test_a_contrast_may_be_negative_and_stays_within_its_coefficients(channel):
    contrast = {"contrast": {"a": -1.0, "b": 1.0}}
    result = md.estimate_frequencies(channel, IMPOSSIBLE, functionals=contrast)
    assert result.unbiased[0] < -1.0
    assert result.estimates[0] == result.lower[0] == -1.0
    assert result.upper[0] > -1.0


@pytest.mark.parametrize("target", ["population", "records"])
@pytest.mark.parametrize("method", ["unbiased", "ml"])
def test_every_estimate_lies_within_its_interval_and_both_within_0_and_1(
    channel, method, target
):
    """0 <= lower <= estimate <= upper <= 1, however few the records and however odd their counts."""
    rng = np.random.default_rng(31)
    impossible = 0
    for _ in range(100):
        records = int(rng.integers(2, 40))
        numbers = rng.multinomial(records, rng.dirichlet([0.3, 0.3, 0.3]))
        counts = dict(zip(channel.outputs, numbers.tolist(), strict=True))
        result = md.estimate_frequencies(channel, counts, method=method, target=target)
        assert (result.lower >= 0.0).all()
        assert (result.lower <= result.estimates).all()
        assert (result.estimates <= result.upper).all()
        assert (result.upper <= 1.0).all()
        impossible += bool((result.unbiased < 0.0).any())
    assert impossible > 10


def test_posterior_draws_are_estimated_through_the_whole_chain(channel):
    """V(z|x) = sum_y W(y|x) P(z|y); labels are then the symbols themselves."""
    chain = channel.matrix @ channel.posteriors
    expected = np.linalg.solve(chain.T, [0.35, 0.35, 0.3])
    result = md.estimate_frequencies(
        channel, {"a": 350, "b": 350, "c": 300}, form="posterior-draw"
    )
    np.testing.assert_allclose(result.estimates, expected, atol=1e-10)
    with pytest.raises(
        InputError,
        match="posterior-draw needs the table that the channel was designed for",
    ):
        md.estimate_frequencies(
            dataclasses.replace(channel, joint=None), {"a": 5}, form="posterior-draw"
        )


def test_identifiability_of_a_channel(channel, merging):
    assert identifiability(channel).identified
    assert identifiability(merging).group_names == (("a",), ("b", "c"))


@pytest.mark.parametrize("runs", [200, pytest.param(800, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("method", "target"),
    [("unbiased", "population"), ("unbiased", "records"), ("ml", "records")],
)
def test_intervals_cover_as_often_as_they_say(channel, method, target, runs):
    """Within four binomial standard deviations of the level, for each symbol."""
    rng = np.random.default_rng(11)
    p = np.array([0.5, 0.3, 0.2])
    n = 800
    level = 0.9
    symbols = rng.choice(3, n, p=p)
    covered = np.zeros(3)
    for _ in range(runs):
        if target == "population":
            symbols = rng.choice(3, n, p=p)
        truth = p if target == "population" else np.bincount(symbols, minlength=3) / n
        counts = np.zeros(3, dtype=int)
        for x in range(3):
            counts += rng.multinomial(
                (symbols == x).sum(), channel.matrix[x] / channel.matrix[x].sum()
            )
        released = dict(zip(channel.outputs, counts.tolist(), strict=True))
        result = md.estimate_frequencies(
            channel, released, method=method, target=target, level=level
        )
        covered += (result.lower <= truth) & (truth <= result.upper)
    slack = 4 * np.sqrt(level * (1 - level) / runs)
    assert np.abs(covered / runs - level).max() < slack


def test_the_records_interval_is_shorter_but_too_short_for_the_population(channel):
    """The two targets are different questions: an interval for the one does not cover the other as
    often.
    """
    rng = np.random.default_rng(12)
    p = np.array([0.5, 0.3, 0.2])
    hits = 0
    strong = channel_of(((98, 1, 1), (1, 98, 1), (1, 1, 98)))
    for _ in range(300):
        codes = draw(strong.matrix, rng.choice(3, 400, p=p), rng)
        result = md.estimate_frequencies(
            strong, labels_of(strong, codes), target="records", level=0.9
        )
        hits += result.lower[0] <= p[0] <= result.upper[0]
    assert hits / 300 < 0.6


def test_a_group_never_has_the_name_of_a_symbol():
    odd = channel_of(((1, 0), (0, 1), (0, 1)), names=("{b, c}", "b", "c"))
    assert md.estimate_frequencies(odd, {"y0": 5, "y1": 5}).names == (
        "{b, c}",
        "{b, c}+",
    )


@pytest.mark.parametrize("target", ["population", "records"])
@pytest.mark.parametrize("method", ["unbiased", "ml"])
def test_no_interval_is_a_point(method, target):
    """Records that all say the same have no variance, and still leave their population open."""
    found = md.estimate_frequencies(
        IDENTITY, {"u": 100, "v": 0}, method=method, target=target
    )
    assert found.estimates.tolist() == pytest.approx([1.0, 0.0])
    assert (found.lower < found.upper).all()
    assert found.upper[1] > (0.03 if target == "population" else 0.004)


@pytest.mark.parametrize("target", ["population", "records"])
def test_likely_intervals_contain_the_unbiased_ones(channel, target):
    """So they hold whenever these do, which `tests/benchmarks/test_interval_coverage.py` counts."""
    rng = np.random.default_rng(3)
    for records in (2, 30, 1000):
        counts = dict(
            zip(
                channel.outputs,
                rng.multinomial(records, [0.9, 0.08, 0.02]).tolist(),
                strict=True,
            )
        )
        one, other = (
            md.estimate_frequencies(channel, counts, method=m, target=target)
            for m in ("unbiased", "ml")
        )
        assert (other.lower <= one.lower).all()
        assert (one.upper <= other.upper).all()


def test_an_interval_that_reaches_the_end_of_what_is_possible_ends_there(channel):
    found = md.estimate_frequencies(channel, {"y0": 16, "y1": 56, "y2": 28})
    assert 0 < found.estimates[0] < 0.1
    assert found.lower[0] == 0.0


def test_two_records_say_little():
    few = md.estimate_frequencies(IDENTITY, {"u": 1, "v": 1})
    assert (few.upper - few.lower > 0.9).all()
