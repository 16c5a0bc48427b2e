"""Verdicts on frequencies: how often a faithful release fails, and which wrong ones do."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.analysis.checking import check_any_data, check_pairs, check_table
from mechdesign.core.errors import InputError

RUNS = 400
LEVEL = 0.1

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
MATRIX = np.array(
    [
        [0.80, 0.15, 0.04, 0.01],
        [0.10, 0.80, 0.05, 0.05],
        [0.05, 0.15, 0.80, 0.00],
        [0.25, 0.25, 0.25, 0.25],
    ]
)
SYMBOLS = tuple("abcd")
LABELS = tuple("wxyz")


def release(rng, records, matrix=MATRIX, prior=PRIOR):
    symbols = rng.multinomial(records, prior)
    return np.array(
        [rng.multinomial(n, row) for n, row in zip(symbols, matrix, strict=True)]
    )


@pytest.mark.parametrize("runs", [100, pytest.param(RUNS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("records", [20, 300, 20_000])
def test_a_faithful_release_fails_no_more_often_than_the_level_says(records, runs):
    rng = np.random.default_rng(records)
    failed = np.zeros(3)
    fixed = np.round(PRIOR * records).astype(int)
    for run in range(runs):
        if run % 2:
            counts = release(rng, records)
        else:  # the very records of the table
            counts = np.array(
                [rng.multinomial(n, row) for n, row in zip(fixed, MATRIX, strict=True)]
            )
        labels = counts.sum(axis=0)
        failed += [
            not check_pairs(SYMBOLS, MATRIX, counts, LEVEL).plausible,
            not check_table(LABELS, PRIOR @ MATRIX, labels, LEVEL).plausible,
            not check_any_data(LABELS, MATRIX, labels, LEVEL).plausible,
        ]
    slack = 4 * np.sqrt(LEVEL * (1 - LEVEL) / runs)
    assert failed.max() / runs <= LEVEL + slack


def test_p_values_with_the_original_are_not_needlessly_large():
    """Conservative by the factor 2 of two combinations and by discreteness, not by orders of
    magnitude.
    """
    rng = np.random.default_rng(5)
    p_values = np.array(
        [
            check_pairs(SYMBOLS, MATRIX, release(rng, 20_000), LEVEL).p_value
            for _ in range(RUNS)
        ]
    )
    assert (p_values <= 0.2).mean() > 0.04


def test_any_data_of_another_origin_passes_the_test_for_any_data():
    rng = np.random.default_rng(6)
    for prior in np.eye(4):
        labels = release(rng, 5000, prior=prior).sum(axis=0)
        assert check_any_data(LABELS, MATRIX, labels).plausible
        assert not check_table(LABELS, PRIOR @ MATRIX, labels).plausible


WRONG = {
    "two labels swapped": MATRIX[:, [1, 0, 2, 3]],
    "two symbols swapped": MATRIX[[1, 0, 2, 3]],
    "not sanitised": np.eye(4),
    "a little more truth": 0.9 * MATRIX + 0.1 * np.eye(4),
    "drawn twice": MATRIX @ MATRIX,
    "uniform": np.full((4, 4), 0.25),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_channel_fails_with_the_original_at_hand(name):
    rng = np.random.default_rng(7)
    counts = release(rng, 20_000, WRONG[name])
    result = check_pairs(SYMBOLS, MATRIX, counts)
    assert not result.plausible
    assert result.p_value < 1e-6
    assert result.suspects


def test_the_suspects_are_the_symbols_that_were_drawn_wrongly():
    rng = np.random.default_rng(8)
    wrong = MATRIX.copy()
    wrong[1] = [0.2, 0.7, 0.05, 0.05]
    result = check_pairs(SYMBOLS, MATRIX, release(rng, 20_000, wrong))
    assert [suspect.name for suspect in result.suspects] == ["b"]
    assert result.suspects[0].records > 5000
    assert result.suspects[0].p_value >= result.p_value


def test_small_deviations_everywhere_are_found_together():
    """No symbol is suspicious alone; all of them are."""
    size = 60
    rng = np.random.default_rng(9)
    matrix = np.tile([0.5, 0.5], (size, 1))
    counts = np.array([rng.multinomial(400, [0.535, 0.465]) for _ in range(size)])
    result = check_pairs([str(i) for i in range(size)], matrix, counts, 0.0001)
    assert not result.plausible
    assert result.suspects == ()


def test_a_pair_that_the_channel_never_gives_decides():
    counts = np.array([[80, 15, 4, 1], [10, 80, 5, 5], [5, 15, 80, 1], [3, 2, 3, 2]])
    result = check_pairs(SYMBOLS, MATRIX, counts)
    assert result.p_value < 1e-200
    counts[2, 3] = 0
    assert check_pairs(SYMBOLS, MATRIX, counts).plausible


def test_few_records_are_enumerated_and_many_are_not():
    counts = np.array([[8, 1, 1, 0], [100, 800, 50, 50], [0, 0, 0, 0], [1, 0, 0, 0]])
    assert check_pairs(SYMBOLS, MATRIX, counts).methods == {
        "exact multinomial": 2,
        "exact binomials": 1,
    }


def test_deterministic_rows_and_no_records_are_plausible():
    assert (
        check_pairs(("a",), np.array([[0.0, 1.0]]), np.array([[0, 50]])).p_value == 1.0
    )
    assert check_pairs(SYMBOLS, MATRIX, np.zeros((4, 4), dtype=int)).plausible
    assert check_table(LABELS, PRIOR @ MATRIX, np.zeros(4, dtype=int)).plausible
    assert check_any_data(LABELS, MATRIX, np.zeros(4, dtype=int)).plausible


@pytest.mark.parametrize("name", ["two labels swapped", "not sanitised", "uniform"])
def test_other_channels_fail_against_the_table(name):
    labels = release(np.random.default_rng(10), 20_000, WRONG[name]).sum(axis=0)
    result = check_table(LABELS, PRIOR @ MATRIX, labels)
    assert not result.plausible
    assert result.suspects


def test_a_joint_shift_too_small_for_each_label_is_seen_by_the_relative_entropy():
    size = 30
    expected = np.full(size, 1 / size)
    counts = np.full(size, 1000)
    counts[::2] += 75
    counts[1::2] -= 75
    result = check_table([str(i) for i in range(size)], expected, counts)
    assert not result.plausible
    assert result.suspects == ()


def test_frequencies_that_no_data_can_give_fail_the_test_for_any_data():
    labels = np.array([0, 0, 0, 3000])  # z has at most a quarter
    result = check_any_data(LABELS, MATRIX, labels)
    assert not result.plausible
    assert "z" in {suspect.name for suspect in result.suspects}


def test_the_hull_is_seen_where_no_single_label_is_out_of_range():
    """Rows (.5 .5 0 0) and (0 0 .5 .5): y0 and y1 have equal shares whatever the data."""
    matrix = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    result = check_any_data(LABELS, matrix, np.array([400, 100, 300, 200]))
    assert not result.plausible
    assert result.suspects == ()
    assert check_any_data(LABELS, matrix, np.array([250, 260, 240, 250])).plausible


def test_a_channel_that_can_give_anything_is_never_refuted_without_the_original():
    assert (
        check_any_data(
            LABELS, np.eye(4)[[1, 0, 3, 2]], np.array([1, 0, 999, 7])
        ).p_value
        == 1.0
    )


@pytest.mark.parametrize("level", [0.0, 0.5, -1.0, 2.0])
def test_levels_out_of_range_are_refused(level):
    with pytest.raises(InputError, match="the chance of a false alarm"):
        check_pairs(SYMBOLS, MATRIX, np.zeros((4, 4), dtype=int), level)
    with pytest.raises(InputError, match="the chance of a false alarm"):
        check_table(LABELS, PRIOR @ MATRIX, np.zeros(4, dtype=int), level)
    with pytest.raises(InputError, match="the chance of a false alarm"):
        check_any_data(LABELS, MATRIX, np.zeros(4, dtype=int), level)


def test_no_p_value_is_zero():
    """The tails are too small for a double; a faithful release could still be like that."""
    counts = np.array([0, 0, 0, 100_000])
    pairs = check_pairs(SYMBOLS, MATRIX, np.diag(counts[::-1]), LEVEL)
    for test in (pairs, check_table(LABELS, PRIOR @ MATRIX, counts, LEVEL)):
        assert not test.plausible
        assert test.suspects
        for p in (test.p_value, *(suspect.p_value for suspect in test.suspects)):
            assert 0.0 < p < 1e-200
