"""A cross-validated guess of S from all columns of a row: what an analyst with the file would try
first.

The model is that of `learners`: gradient boosting where scikit-learn is installed, else naive
Bayes. `guess_from_rows` splits the records into `FOLDS` parts. A model learns from all parts but
one and gives P(s | row) for the records of that one (`_out_of_fold`). The figures are those of
these probabilities: how often the likeliest symbol is right, and the area under the ROC curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.leaks.coded_table import CodedColumn
from mechdesign.leaks.learners import Learner, area_under_curve, learner_for

FOLDS = 5
"""Parts of the records; each is guessed by a model that has not seen it."""

MOST_RECORDS = 100_000
"""Records that are used, evenly spread: boosting on more takes minutes and changes little."""

LEAST_RECORDS = 10_000
"""Records that are used of any number of symbols, where there are so many."""

MOST_SCORES = 3_000_000
"""Records times symbols that are used: a model scores each symbol for each record in every round,
so that with 60 symbols 50,000 records take as long as 100,000 with 30.
"""

SUREST = 0.05
"""The share of the records of which the guess is surest."""

SEED = 0
"""Of the folds: the same table gives the same figures."""


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
    columns: Sequence[CodedColumn], secret: Integers, symbols: Sequence[str]
) -> RowGuess:
    """Guess S from the columns, fold by fold.

    Parameters
    ----------
    columns : sequence of CodedColumn
        All of N records.
    secret : (N,) integers
        The symbol of S of each record.
    symbols : sequence of str
    """
    # Every step-th record, rounded upwards, so that there are no more than these.
    most = min(MOST_RECORDS, max(MOST_SCORES // len(symbols), LEAST_RECORDS))
    step = max(1, -(-len(secret) // most))
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
    folds = np.random.default_rng(SEED).permutation(records) % FOLDS
    shares = np.zeros((records, symbols))
    for fold in range(FOLDS):
        held_out = folds == fold
        shares[held_out] = learner.shares(
            learner.features[~held_out],
            classes[~held_out],
            learner.features[held_out],
        )
    return shares
