"""Models that learn a symbol from the columns of a row.

With scikit-learn (extra ``sklearn``) it is histogram gradient boosting. Without it, or where there
are more than `MOST_SYMBOLS` symbols, it is naive Bayes on the columns' values, which is weaker: it
misses what columns say only together.

`learner_for` makes a (records, columns) array of features, whose rows can be learnt from and
predicted for. Of very many columns each model first chooses those that say most by themselves
(`_chosen_first`). `area_under_curve` measures its probabilities.

*A cross-validated guess of S* from all columns of a row is what an analyst with the file would try
first. `guess_from_rows` splits the records into `FOLDS` parts. A model learns from all parts
but one and gives P(s | row) for the records of that one (`_out_of_fold`). The figures are those of
these probabilities: how often the likeliest symbol is right, and the area under the ROC curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import finite_number
from mechdesign.core.integers import Integers
from mechdesign.leaks.coded_table import CodedColumn, Codes
from mechdesign.leaks.disclosure import scores_left_out

MOST_COLUMNS = 50
"""Columns that a model takes. Of more it takes those that say most by themselves, because boosting
on thousands takes minutes.
"""

CHOICE_RECORDS = 10_000
"""Records of which that is measured, evenly spread."""

CHOICE_CELLS = 1 << 22
"""Cells of the tables that are counted at once for it (32 MB)."""

CHOICE_BINS = 16
"""Bins of numbers, with as many records each, for that choice."""

MOST_CATEGORIES = 255
"""Values of a column that boosting can tell apart; the rarer ones are put together."""

MOST_SYMBOLS = 100
"""Symbols of S up to which boosting is used. It grows a tree for each of them in every round."""

LEAVES = 31
"""Leaves of a tree at most, as scikit-learn has them."""

ROUNDS = 100
"""Rounds at most, as scikit-learn has them."""

MOST_TREES = 2000
"""Trees of a model at most: those of 100 rounds for 20 symbols. More symbols have fewer rounds."""

LEAVES_OF_A_ROUND = 500
"""Leaves of all trees of a round at most, because time grows with them. Of many symbols each has
few records, which large trees learn by heart: with 60 symbols and 100,000 records trees of 8 leaves
guess 10.7 % right, those of 31 leaves 9.3 %.
"""

FEWEST_OF_A_SYMBOL = 5
"""Records of a symbol below which the area under the curve is left out: a model may not have seen
any of them.
"""

SMOOTHING = 1.0
"""Records added to every cell of naive Bayes, so that nothing has probability zero."""

BOOSTING = "gradient boosting"

SEED = 0
"""Of the models: the same table gives the same figures."""

ALL_COLUMNS = slice(None)

Predict: TypeAlias = Callable[..., NDArray[np.float64]]
"""Gives P(s | row) of records that it has not seen, (records, symbols), from: the places of the
columns, the features and symbols of the records seen, the features of the others, and the number of
symbols.
"""


@dataclass(frozen=True, eq=False)
class Learner:
    """A model, and the records as it takes them.

    Attributes
    ----------
    model : {"gradient boosting", "naive Bayes"}
    features : (records, columns) array
    """

    model: str
    features: NDArray[Any]
    _predict: Predict
    _symbols: int

    def shares(
        self,
        seen: NDArray[Any],
        classes: Integers,
        unseen: NDArray[Any],
        columns: Any = ALL_COLUMNS,
    ) -> NDArray[np.float64]:
        """P(s | row) of rows of `features` that it has not seen.

        Parameters
        ----------
        seen, unseen : arrays
            Rows of `features`, with the columns `columns` alone.
        classes : array
            The symbol of each record seen.
        columns : slice or places
            The places of these columns.

        Returns
        -------
        (unseen, symbols) array
        """
        return self._predict(columns, seen, classes, unseen, self._symbols)


def learner_name(symbols: int) -> str:
    """The model that tells so many symbols apart here."""
    if symbols <= MOST_SYMBOLS and find_spec("sklearn") is not None:
        return BOOSTING
    return "naive Bayes"


def learner_for(columns: Sequence[CodedColumn], symbols: int, step: int = 1) -> Learner:
    """A learner for every `step`-th record of these columns."""
    predict: Predict
    model = learner_name(symbols)
    if model == BOOSTING:
        features, categorical = _features(columns, step)
        predict = partial(_boosting, categorical)
    else:
        parts = [_lumped(column.codes[::step]) for column in columns]
        features = np.stack(parts, axis=1)
        categorical = np.ones(len(columns), bool)
        predict = _naive_bayes
    if len(columns) > MOST_COLUMNS:
        predict = partial(_chosen_first, predict, categorical)
    return Learner(model, features, predict, symbols)


def _features(
    columns: Sequence[CodedColumn], step: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Every step-th record as boosting takes it, and which columns are categorical.

    Numbers with more values than there are categories are ordered; a blank among them is a missing
    value.
    """
    features: list[NDArray[np.float64]] = []
    categorical: list[bool] = []
    for column in columns:
        codes = column.codes[::step]
        numbers: NDArray[np.float64] | None = None
        if len(column.values) > MOST_CATEGORIES:
            numbers = numbers_in(column.values)
        if numbers is None:
            features.append(_lumped(codes).astype(np.float64))
        else:
            features.append(numbers[codes])
        categorical.append(numbers is None)
    return np.stack(features, axis=1), np.array(categorical)


def numbers_in(values: Sequence[str]) -> NDArray[np.float64] | None:
    """The values as numbers, NaN for a blank; None where one of them is no finite number."""
    numbers = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        if not value.strip():
            continue
        number = finite_number(value)
        if number is None:
            return None
        numbers[place] = number
    return numbers


def _lumped(codes: Codes) -> NDArray[np.int64]:
    """Codes by falling frequency; the rarest values share one."""
    # Boosting takes categories below `MOST_CATEGORIES`, so the most frequent ones come first.
    counts = np.bincount(codes)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, MOST_CATEGORIES - 1)[codes]


def _chosen_first(
    predict: Predict,
    categorical: NDArray[np.bool_],
    _: Any,
    seen: NDArray[Any],
    classes: Integers,
    unseen: NDArray[Any],
    symbols: int,
) -> NDArray[np.float64]:
    """Predict from the columns that say most by themselves.

    They are chosen among the records that the model learns from: chosen among all, columns of noise
    would seem to tell of the records held out.
    """
    # Rounded upwards, for at most `CHOICE_RECORDS`.
    step = -(-len(classes) // CHOICE_RECORDS)
    scores = _scores(seen[::step], categorical, classes[::step], symbols)
    chosen = np.sort(np.argsort(-scores, kind="stable")[:MOST_COLUMNS])
    return predict(chosen, seen[:, chosen], classes, unseen[:, chosen], symbols)


def _scores(
    features: NDArray[Any],
    categorical: NDArray[np.bool_],
    classes: Integers,
    symbols: int,
) -> NDArray[np.float64]:
    """How well each column predicts S by itself (`scores_left_out`)."""
    at_once = max(1, CHOICE_CELLS // (MOST_CATEGORIES * symbols + len(classes)))
    parts: list[NDArray[np.float64]] = []
    for first in range(0, features.shape[1], at_once):
        values = features[:, first : first + at_once].copy()
        for place in np.flatnonzero(~categorical[first : first + at_once]):
            values[:, place] = _binned(values[:, place])
        codes = values.astype(np.int64)
        parts.append(scores_left_out(codes, codes.max(axis=0) + 1, classes, symbols))
    return np.concatenate(parts)


def _binned(numbers: NDArray[np.float64]) -> Integers:
    """The numbers in bins of about as many records each; missing ones have a bin of their own."""
    missing = np.isnan(numbers)
    present = np.sort(numbers[~missing])
    # Quantiles, so that a few far values do not leave the other bins empty.
    edges = present[np.arange(1, CHOICE_BINS) * len(present) // CHOICE_BINS]
    bins = np.searchsorted(edges, numbers, side="right")
    bins[missing] = CHOICE_BINS
    return bins


def _boosting(
    categorical: NDArray[np.bool_],
    columns: Any,
    seen: NDArray[np.float64],
    classes: Integers,
    unseen: NDArray[np.float64],
    symbols: int,
) -> NDArray[np.float64]:
    """P(s | row) by histogram gradient boosting; `columns` are the places of the features."""
    # scikit-learn has no complete types.
    boosting: Any = import_module("sklearn.ensemble").HistGradientBoostingClassifier
    # The records seen may lack rare symbols, which then have the probability 0. So have symbols
    # that one record has: for early stopping scikit-learn takes some records of every symbol, and
    # must leave others to learn from.
    shares = np.zeros((len(unseen), symbols))
    repeated = np.bincount(classes, minlength=symbols)[classes] > 1
    if repeated.any():
        seen = seen[repeated]
        classes = classes[repeated]
    present = np.unique(classes)
    if len(present) == 1:
        shares[:, present[0]] = 1.0
        return shares
    leaves = min(LEAVES, LEAVES_OF_A_ROUND // len(present))
    model = boosting(
        categorical_features=categorical[columns],
        max_iter=min(ROUNDS, MOST_TREES // len(present)),
        max_leaf_nodes=leaves,
        random_state=SEED,
    )
    with _one_thread():
        model.fit(seen, classes)
        shares[:, present] = model.predict_proba(unseen)
    return shares


def _one_thread() -> AbstractContextManager[Any]:
    """One thread, as the searches have: on a busy machine those of boosting wait for each other,
    and use ten times the processor time.
    """
    # scikit-learn depends on it; it has no complete types.
    limits: Any = import_module("threadpoolctl").threadpool_limits
    return limits(limits=1)


def _naive_bayes(
    _: Any,
    seen: NDArray[np.int64],
    classes: Integers,
    unseen: NDArray[np.int64],
    symbols: int,
) -> NDArray[np.float64]:
    """P(s) prod_j P(x_j | s), smoothed, in logarithms."""
    mass = np.bincount(classes, minlength=symbols)
    scores = np.tile(np.log(mass + SMOOTHING), (len(unseen), 1))
    for j in range(seen.shape[1]):
        # (values, symbols): P(x_j | s). A value of the unseen records alone has its place, too.
        width = int(max(seen[:, j].max(), unseen[:, j].max())) + 1
        cells = np.bincount(seen[:, j] * symbols + classes, minlength=width * symbols)
        table = cells.reshape(width, symbols) + SMOOTHING
        table = table / (mass + SMOOTHING * width)
        scores += np.log(table)[unseen[:, j]]
    # The largest becomes 0, so that the exponentials of many columns do not all vanish.
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    return shares / shares.sum(axis=1, keepdims=True)


def area_under_curve(
    shares: NDArray[np.float64], classes: Integers, counts: NDArray[np.int64]
) -> float | None:
    """The mean over the symbols of the probability that a record with the symbol scores above one
    without it.
    """
    # A rarer symbol may be missing from what a model learnt from.
    if counts.min() < FEWEST_OF_A_SYMBOL:
        return None
    areas: list[float] = []
    for symbol, count in enumerate(counts.tolist()):
        # Of two symbols both have the same area.
        if symbol == 0 and len(counts) == 2:
            continue
        # The sum of the ranks, less its smallest value, counts the pairs of a record with the
        # symbol and a record below it without it (Mann and Whitney).
        ranks = _mid_ranks(shares[:, symbol])
        above = ranks[classes == symbol].sum() - count * (count + 1) / 2
        areas.append(float(above / (count * (len(classes) - count))))
    return float(np.mean(areas))


def _mid_ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, ties at their mean."""
    _, place, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    middle = last - (sizes - 1) / 2
    return middle[place]


# ---------------------------------------------------------------------- guess from rows

FOLDS = 5
"""Parts of the records; each is guessed by a model that has not seen it."""

FEWER_FOLDS = 3
"""Parts of more records than `FEWER_FOLDS_FROM`: a model has enough to learn from two of them."""

FEWER_FOLDS_FROM = 40_000

MOST_RECORDS = 60_000
"""Records that are used, evenly spread. With 100,000 in five parts the area under the curve is
larger by 0.008 to 0.013, and it takes three times as long.
"""

LEAST_RECORDS = 10_000
"""Records that are used of any number of symbols, where there are so many."""

MOST_SCORES = 3_000_000
"""Records times symbols that are used: a model scores each symbol for each record in every round,
so that with 60 symbols 50,000 records take as long as 100,000 with 30.
"""

SUREST = 0.05
"""The share of the records of which the guess is surest."""


@dataclass(frozen=True)
class RowGuess:
    """How well S can be guessed from the whole row, measured on records that the model has not
    seen.

    Attributes
    ----------
    model : {"gradient boosting", "naive Bayes", "none"}
    records : int
        Records used.
    right : float
        Share guessed right.
    right_without : float
        The same when nothing is known of a record.
    auc : float or None
        Area under the ROC curve; of several symbols the mean of one against the rest. None where a
        symbol is too rare to be in every fold.
    surest_right : float
        Share guessed right among the 5 % of the records of which the model is surest.
    """

    model: str
    records: int
    right: float
    right_without: float
    auc: float | None
    surest_right: float


def guess_from_rows(
    columns: Sequence[CodedColumn],
    secret: Integers,
    symbols: Sequence[str],
    weights: Integers | None = None,
) -> RowGuess:
    """Guess S from the columns, fold by fold.

    Parameters
    ----------
    columns : sequence of CodedColumn
        All of N rows.
    secret : (N,) integers
        The symbol of S of each row.
    symbols : sequence of str
    weights : (N,) integers, optional
        How many records each row stands for; by default one.
    """
    # Every step-th record, rounded upwards, so that there are no more than these.
    most = min(MOST_RECORDS, max(MOST_SCORES // len(symbols), LEAST_RECORDS))
    total = len(secret) if weights is None else int(weights.sum())
    step = max(1, -(-total // most))
    if weights is not None:
        # Any records: those of a row stand together, and every step-th would be no sample of them.
        chosen = np.random.default_rng(SEED).choice(
            total, -(-total // step), replace=False
        )
        rows = np.searchsorted(np.cumsum(weights), chosen, side="right")
        secret = secret[rows]
        columns = [
            CodedColumn(column.name, column.codes[rows], column.values)
            for column in columns
        ]
        step = 1
    classes = secret[::step].astype(np.int64)
    records = len(classes)
    counts = np.bincount(classes, minlength=len(symbols))
    without = float(counts.max() / records)
    if not columns or records < 2 * FOLDS or np.count_nonzero(counts) < 2:
        # Too little for a model: the most frequent symbol is the guess.
        return RowGuess("none", records, without, without, None, without)

    learner = learner_for(columns, len(symbols), step)
    shares = _out_of_fold(learner, classes, len(symbols))
    guesses = shares.argmax(axis=1)
    right = guesses == classes
    # The records with the largest probability of any symbol; a stable sort decides ties alike on
    # every machine.
    surest = np.argsort(-shares.max(axis=1), kind="stable")
    surest = surest[: max(1, int(SUREST * records))]
    return RowGuess(
        model=learner.model,
        records=records,
        right=float(right.mean()),
        right_without=without,
        auc=area_under_curve(shares, classes, counts),
        surest_right=float(right[surest].mean()),
    )


def _out_of_fold(
    learner: Learner, classes: Integers, symbols: int
) -> NDArray[np.float64]:
    """P(s | row) of every record from a model of the other folds: (records, symbols)."""
    records = len(classes)
    # Folds of nearly equal size; each record belongs to one of them.
    parts = FOLDS if records <= FEWER_FOLDS_FROM else FEWER_FOLDS
    folds = np.random.default_rng(SEED).permutation(records) % parts
    shares = np.zeros((records, symbols))
    for fold in range(parts):
        held_out = folds == fold
        shares[held_out] = learner.shares(
            learner.features[~held_out],
            classes[~held_out],
            learner.features[held_out],
        )
    return shares
