"""The guess of a secret from whole rows."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.leaks import learners
from mechdesign.leaks.coded_table import CodedColumn
from mechdesign.leaks.disclosure import PRIOR, scores_left_out
from mechdesign.leaks.learners import MOST_COLUMNS, guess_from_rows


def test_boosting_uses_one_thread(monkeypatch):
    """Several wait for each other by spinning: on a busy machine that took ten times as long."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    seen = []

    class Watched(ensemble.HistGradientBoostingClassifier):
        def fit(self, *arguments):
            pools = threadpoolctl.threadpool_info()
            seen.extend(p["num_threads"] for p in pools if p["user_api"] == "openmp")
            return super().fit(*arguments)

    monkeypatch.setattr(ensemble, "HistGradientBoostingClassifier", Watched)
    codes = np.tile(np.array([0, 1], np.int32), 20)
    with threadpoolctl.threadpool_limits(limits=2, user_api="openmp"):
        guess = guess_from_rows(
            [CodedColumn("x", codes, ("a", "b"))], codes, ["a", "b"]
        )
    assert guess.model == "gradient boosting"
    assert set(seen) == {1}


def wide_table(records, columns, seed=3):
    """A secret, and columns of noise with as many values each as there are digits."""
    chance = np.random.default_rng(seed)
    secret = chance.integers(0, 2, records)
    noise = [
        CodedColumn(
            f"c{place}",
            chance.integers(0, 10, records, dtype=np.int32),
            tuple("0123456789"),
        )
        for place in range(columns)
    ]
    return secret, noise


@pytest.fixture(params=["gradient boosting", "naive Bayes"])
def model(request, monkeypatch):
    """Each of the two models, whether scikit-learn is there or not."""
    if request.param == "naive Bayes":
        monkeypatch.setattr(learners, "find_spec", lambda _: None)
    else:
        pytest.importorskip("sklearn")
    return request.param


def test_of_many_columns_noise_seems_to_tell_nothing(model):
    """Chosen among all records, 50 of 2,000 columns of noise would guess those held out."""
    secret, noise = wide_table(200, 2_000)
    guess = guess_from_rows(noise, secret, ["a", "b"])
    assert guess.model == model
    assert 0.3 < guess.auc < 0.65


def test_of_many_columns_the_telling_ones_are_taken(model):
    """Among 300 columns of noise, one copies the secret, in nine cases of ten."""
    secret, noise = wide_table(400, 300)
    wrong = np.random.default_rng(4).random(400) < 0.1
    copied = np.where(wrong, 1 - secret, secret).astype(np.int32)
    noise.insert(150, CodedColumn("copy", copied, ("a", "b")))
    assert len(noise) > MOST_COLUMNS
    right = guess_from_rows(noise, secret, ["a", "b"]).right
    # The columns of noise that it takes beside the copy mislead naive Bayes.
    assert right > {"gradient boosting": 0.85, "naive Bayes": 0.7}[model]


def test_numbers_among_many_columns_are_taken_by_size(model):
    """A number that grows with the secret, and repeats no value: exact values would tell nothing."""
    secret, noise = wide_table(400, 100)
    places = np.argsort(secret + np.random.default_rng(4).normal(0, 0.2, 400))
    codes = np.empty(400, np.int32)
    codes[places] = np.arange(400)
    noise.append(CodedColumn("size", codes, tuple(f"{k}.5" for k in range(400))))
    guess = guess_from_rows(noise, secret, ["a", "b"])
    if model == "gradient boosting":  # naive Bayes knows no order
        assert guess.right > 0.85


def test_scores_are_those_of_a_loop_over_records():
    """(n_vs - 1 + k P(s)) / (n_v - 1 + k), with P(s) from the other records, record by record."""
    chance = np.random.default_rng(8)
    classes = chance.integers(0, 3, 30)
    features = np.stack([chance.integers(0, width, 30) for width in (2, 7)], axis=1)
    scores = scores_left_out(features, np.array([2, 7]), classes, 3)
    for column, score in zip(features.T, scores, strict=True):
        total = 0.0
        for record in range(30):
            others = np.arange(30) != record
            same = others & (column == column[record])
            right = classes == classes[record]
            share = (np.sum(right & others) + PRIOR / 3) / (29 + PRIOR)
            both = np.sum(same & right) + PRIOR * share
            total += np.log(both / (np.sum(same) + PRIOR))
        assert score == pytest.approx(total / 30)


@pytest.mark.parametrize(
    ("most", "model"), [(5, "gradient boosting"), (4, "naive Bayes")]
)
def test_a_symbol_of_one_record_and_more_symbols_than_boosting_takes(
    most, model, monkeypatch
):
    """From 10,000 records on boosting puts some of every symbol aside: one record does not do."""
    pytest.importorskip("sklearn.ensemble")
    monkeypatch.setattr(learners, "MOST_SYMBOLS", most)
    records = 13_000
    column = CodedColumn("x", (np.arange(records) % 3).astype(np.int32), tuple("abc"))
    # The first symbol has all records but four, so that boosting soon stops.
    secret = np.zeros(records, np.int64)
    secret[[10, 20, 30, 40]] = [1, 2, 3, 4]
    guess = guess_from_rows([column], secret, tuple("stuvw"))
    assert guess.model == model
    assert guess.right == pytest.approx(1 - 4 / records)


@pytest.mark.parametrize("symbols", [2, 20, 60, 100])
def test_the_work_of_boosting_does_not_grow_with_the_symbols(monkeypatch, symbols):
    """Trees, their leaves and the scores of records are limited, however many symbols there are."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    seen = []

    class Counted(ensemble.HistGradientBoostingClassifier):
        def fit(self, features, classes):
            seen.append((self.max_iter, self.max_leaf_nodes, len(features)))
            # Few rounds are enough here.
            self.max_iter = 1
            return super().fit(features, classes)

    monkeypatch.setattr(ensemble, "HistGradientBoostingClassifier", Counted)
    monkeypatch.setattr(learners, "MOST_SCORES", 40_000)
    monkeypatch.setattr(learners, "LEAST_RECORDS", 2_000)
    # Every value is in every part of the records that are taken.
    secret = np.repeat(np.arange(symbols, dtype=np.int32), 4_000 // symbols)
    names = [str(symbol) for symbol in range(symbols)]
    guess = guess_from_rows([CodedColumn("x", secret, tuple(names))], secret, names)
    assert guess.records <= max(40_000 // symbols, 2_000)
    for rounds, leaves, records in seen:
        assert rounds == min(100, 2_000 // symbols)
        assert leaves == min(31, 500 // symbols)
        assert records < guess.records
    assert len(seen) == 5
