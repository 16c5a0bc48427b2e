"""The cells of many symbols as codes, column by column.

With the symbols (nurse, 30), (clerk, 30) and (nurse, 41) the first column has the texts nurse and
clerk and the codes 0, 1, 0, the second one the texts 30 and 41 and the codes 0, 0, 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.core.integers import Integers


@dataclass(frozen=True, eq=False)
class CodedCells:
    """The cells of every symbol as codes, column by column.

    `codes` is an (n, columns) array of places in `texts`, which has the different texts of each
    column in the order of their first use.
    """

    columns: tuple[str, ...]
    codes: Integers
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, columns: tuple[str, ...], symbols: Sequence[tuple[str, ...]]
    ) -> CodedCells:
        """The cells of some symbols."""
        codes = np.empty((len(symbols), len(columns)), dtype=np.int64)
        texts: list[tuple[str, ...]] = []
        for k, cells in enumerate(zip(*symbols, strict=True)):
            places = {text: place for place, text in enumerate(dict.fromkeys(cells))}
            codes[:, k] = list(map(places.__getitem__, cells))
            texts.append(tuple(places))
        return cls(columns, codes, tuple(texts))
