"""Unbiased estimators of linear functionals: weights of the labels, from the channel alone.

A cell is a functional sum_x P(x) c(x) to estimate. A record with the label y counts as the weight
b(y) for it, with ``W b = c``, and the mean weight of the records is the estimate. `Estimator.of`
chooses the cells (`choose_cells`) and finds out what the channel identifies (`identify`); the
weights follow when they are asked for.

For example, W has the rows (0.8, 0.2) and (0.3, 0.7), and the cell is the first symbol, c = (1, 0).
Then b = (1.4, -0.6): 0.8 * 1.4 - 0.2 * 0.6 = 1 and 0.3 * 1.4 - 0.7 * 0.6 = 0. If half of the
records have the first label, the estimate is 0.5 * 1.4 - 0.5 * 0.6 = 0.4.

For the frequencies among the records themselves the variance of an estimate is (the mean of b(y)^2
minus sum_x P(x) c(x)^2) / N. `products` estimates that second sum, from the labels as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.analysis.functionals import Cells, choose_cells
from mechdesign.analysis.linear import Identification, coefficients, identify
from mechdesign.analysis.model import ReleaseModel
from mechdesign.channel.channel import Array
from mechdesign.core.errors import InputError

MOST_ENTRIES = 2**23
"""Entries of W whose singular values are computed: 8 s for 2,896 symbols and as many outputs."""

MOST_SYMBOLS = 5_792
"""Symbols of which this is done: what labels do not tell apart is a matrix of symbols by symbols,
some 270 MB then, however few the outputs are."""


@dataclass(frozen=True)
class Estimator:
    """Cells with the weights b(y) that estimate them: ``W b = c`` (`analysis.linear`)."""

    model: ReleaseModel
    identification: Identification
    cells: Cells

    @classmethod
    def of(
        cls, model: ReleaseModel, functionals: Any = None, unidentified: str = "groups"
    ) -> Estimator:
        """Choose the cells; raises as `choose_cells`, and InputError for a channel too large for
        its singular values.
        """
        symbols, labels = model.matrix.shape
        if model.matrix.size > MOST_ENTRIES or symbols > MOST_SYMBOLS:
            raise InputError(
                f"the channel has {symbols:,} symbols and {labels:,} outputs, too many to undo its "
                "draws: of a release of rows estimate columns (--of COL,..; of=)"
            )
        identification = identify(model.symbols, model.matrix)
        cells = choose_cells(model, identification, functionals, unidentified)
        return cls(model, identification, cells)

    def weights_for(self, functionals: Array) -> Array:
        """(labels, m) array b for other functionals of the same release."""
        model = self.model
        rank = self.identification.rank
        return coefficients(model.matrix, functionals, model.reference, rank)

    @cached_property
    def weights(self) -> Array:
        """(labels, m) array b for the cells."""
        return self.weights_for(self.cells.functionals)

    @cached_property
    def outer(self) -> Array:
        """(|X|, m * m) products of every two cells."""
        c = self.cells.functionals
        return (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)

    def products(self, frequencies: Array, estimate: Array) -> tuple[Array, bool]:
        """Estimate of ``sum_x P(x) c_i(x) c_j(x)``, and whether it is unbiased for all i and j.

        Where a square is not identified, the diagonal has the smallest value that it can have
        (Cauchy and Schwarz), so that variances are too large rather than too small.
        """
        c = self.cells.functionals
        if self.cells.disjoint:
            # Indicators: squares are themselves, and products of two are zero.
            return np.diag(estimate), True
        identified = self.identification.identifies(self.outer)
        # A product c_i c_j is a functional, too, with weights of its own.
        values = self.weights_for(self.outer).T @ frequencies
        values = np.where(identified, values, np.outer(estimate, estimate).ravel())
        return values.reshape(c.shape[1], c.shape[1]), bool(identified.all())
