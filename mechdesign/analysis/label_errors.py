"""How much less than the true values released labels say of frequencies: a factor on errors.

`estimate` gives a label y the weight b(y) with ``W b = c``, so that the mean weight of the records
estimates sum_x P(x) c(x) (`analysis.estimator`). Of N records the estimate has the variance
Var b(Y) / N, and the share among the true values Var c(X) / N. The factor is the square root of
their quotient, the largest of all symbols, or of groups where the labels do not tell symbols apart.

For example, a fair coin is told truly with the probability 0.75: b = (1.5, -0.5) for heads, and
Var b(Y) = 1 against Var c(X) = 1/4, so standard errors double.
"""

from __future__ import annotations

import numpy as np

from mechdesign.analysis.estimator import Estimator
from mechdesign.analysis.model import release_model
from mechdesign.channel.channel import Array, Channel

MOST_ENTRIES = 2**18
"""Entries of a matrix whose weights are computed for a sentence: below a second."""

MOST_SYMBOLS = 2_048
"""Symbols of such a matrix, whose square is computed, too (`estimator.MOST_SYMBOLS`)."""

SMALLEST_VARIANCE = 1e-12
"""Variance of a share below which it is that of a symbol that always or never occurs."""


def error_factor(channel: Channel) -> float | None:
    """The largest standard error of a frequency from labels, over that from true values.

    None without a table, where the labels identify no frequency but the sum of all, and for
    matrices of more than `MOST_ENTRIES` entries or `MOST_SYMBOLS` rows.
    """
    rows, columns = len(channel.useful), len(channel.outputs)
    if channel.joint is None or rows * columns > MOST_ENTRIES or rows > MOST_SYMBOLS:
        return None
    model = release_model(channel)
    estimator = Estimator.of(model)
    prior = channel.joint.p_x
    released = prior @ model.matrix
    of_labels = _variances(released, estimator.weights)
    of_values = _variances(prior, estimator.cells.functionals)
    varies = of_values > SMALLEST_VARIANCE
    if not varies.any():
        return None
    return float(np.sqrt((of_labels[varies] / of_values[varies]).max()))


def _variances(masses: Array, weights: Array) -> Array:
    """The variance of each column of weights under these masses."""
    means = masses @ weights
    variances: Array = masses @ (weights - means) ** 2
    return variances
