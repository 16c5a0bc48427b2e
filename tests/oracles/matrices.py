"""The verdict on a matrix in memory, by what the product does with one in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mechdesign.auditing.matrix import outside
from mechdesign.auditing.verdict import Audit, audit_columns
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint


def audit_matrix(
    matrix: Any,
    joint: Joint,
    notion: Notion,
    *,
    symbols: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Audit:
    """Whether a row-stochastic matrix satisfies `notion` on `joint`; its rows are those of the table by default."""
    rows = matrix.tolist() if isinstance(matrix, np.ndarray) else matrix
    labels = [f"y{k}" for k in range(len(rows[0]))] if outputs is None else [*outputs]
    found = outside(rows, joint, [*(symbols or joint.useful.names)], labels)
    return audit_columns(found.columns, found.outputs, joint, notion)
