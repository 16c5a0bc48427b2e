"""Audit of a matrix from another tool: an array, or a file with useful symbols in the first column.

Its rows have P(y|x) of every useful symbol x of a table. `outside` takes decimals and floats as the
exact rationals that they are, divides each row by its exact sum, and brings the matrix to integers
over one denominator, column by column. From there on the verdict is that of any channel
(`verdict.audit_columns`). `audit_matrix` does this for an array. `audit_file` does it for a file,
and adds what the matrix promises for the population (`population_promise`).

Example: the row 0.333, 0.667 is 333/1000, 667/1000, and 0.5, 0.5 is 1/2, 1/2. Over the common
denominator 1000 the first column is (333, 500).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mechdesign.auditing.columns import Entries
from mechdesign.auditing.law import Law, columns_law
from mechdesign.auditing.population_promise import (
    PopulationPromise,
    Released,
    promise_of,
)
from mechdesign.auditing.verdict import Audit, audit_columns
from mechdesign.core.arguments import non_negative, repeated
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import all_rows, open_beside
from mechdesign.notions import Notion
from mechdesign.tables.columns import other_spelling
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint

ROW_SUM_TOLERANCE = Fraction(1, 10**9)
"""A row may miss 1 by this much and is then divided by its exact sum: it forgives the last digit of
a printed table, far below any probability that matters.
"""


def audit_matrix(
    matrix: Any,
    joint: Joint,
    notion: Notion,
    *,
    symbols: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Audit:
    """Decide exactly whether a row-stochastic matrix satisfies `notion` on `joint`."""
    cells = np.asarray(matrix, dtype=object)
    if cells.ndim != 2 or not cells.size:
        raise InputError(
            "the matrix must have rows of numbers, one row per useful symbol, of one length"
        )
    if symbols is None:
        symbols = joint.useful.names
    if outputs is None:
        outputs = [f"y{k}" for k in range(cells.shape[1])]
    names = list(symbols)
    labels = list(outputs)
    size = (len(names), len(labels))
    if size != cells.shape:
        raise InputError(
            f"the matrix has the shape {cells.shape}, not {size} for its symbols and outputs"
        )
    released = outside(cells.tolist(), joint, names, labels)
    return audit_columns(released.columns, released.outputs, joint, notion)


class MatrixAudit(NamedTuple):
    """The verdict on a matrix, and what else can be said of it.

    Attributes
    ----------
    audit : Audit
    population : PopulationPromise or None
        The promise for the population; None unless the table counts records and has one secret.
    law : Law or None
        What an analyst reads; None where outputs are labels and no symbols of the table.
    outputs : tuple of str
        The outputs that occur.
    """

    audit: Audit
    population: PopulationPromise | None
    law: Law | None
    outputs: tuple[str, ...]


def audit_file(
    path: PathLike, joint: Joint, notion: Notion, *, text: TextOptions | None = None
) -> MatrixAudit:
    """Decide exactly whether the matrix in a CSV or Parquet file satisfies `notion` on `joint`.

    Decimals are exact as written (a double of Parquet is the shortest decimal that names it); rows
    must sum to 1 within 1e-9 and are then normalised exactly. `text` is the format of a CSV; ``-``
    is standard input.
    """
    with open_beside(path, text) as source:
        name = source.name
        header = source.header
        rows = all_rows(source)
    if len(header) < 2 or not rows:
        raise InputError(
            f"{name}: a matrix needs a column of useful symbols, a header of outputs, and rows"
        )
    with errors_naming(name):
        if header[0] and header[0] in joint.useful.names:
            raise InputError(
                "the first column of a matrix has the useful symbols, and here it has "
                f"probabilities of the output {quoted(header[0])}: write the symbols before it"
            )
        symbols: list[str] = []
        probabilities: list[Sequence[Any]] = []
        for row in rows:
            symbols.append(row[0])
            probabilities.append(row[1:])
        matrix = outside(probabilities, joint, symbols, header[1:])
        audit = audit_columns(matrix.columns, matrix.outputs, joint, notion)
        law = columns_law(joint, matrix.columns, matrix.denominator, matrix.outputs)
        promise: PopulationPromise | None = None
        if joint.is_sample:
            promise = promise_of(matrix, joint, notion, confidence_set(joint))
    return MatrixAudit(audit, promise, law, tuple(matrix.outputs))


def outside(
    rows: Sequence[Sequence[Any]], joint: Joint, symbols: list[str], outputs: list[str]
) -> Released:
    """Rows of probabilities from outside as a release: columns of integers over one denominator.

    The rows belong to these useful symbols of the table, and their entries to these outputs.

    Raises
    ------
    InputError
        If an output or a symbol occurs twice, the symbols are not those of the table, or a row is
        no distribution.
    """
    order = _order(symbols, joint)
    twice = repeated(outputs)
    if twice is not None:
        raise InputError(
            f"the output {quoted(twice)} of the matrix occurs twice; labels must be different"
        )
    shares: list[list[Fraction]] = []
    for row, name in zip(rows, symbols, strict=True):
        shares.append(_cells(row, name, outputs))
    totals = [sum(row) for row in shares]
    for total, name in zip(totals, symbols, strict=True):
        if not _is_one(total):
            remedy = ""
            if all(_is_one(sum(column)) for column in zip(*shares, strict=True)):
                remedy = "; its columns do: exchange rows and columns"
            raise InputError(
                f"row {quoted(name)} of the matrix sums to {float(total):.12g}, not 1 within "
                f"1e-9{remedy}"
            )
    # Over the exact sums, so that the audited rows are distributions exactly.
    shares = [
        [cell / total for cell in row]
        for row, total in zip(shares, totals, strict=True)
    ]
    # Over the least common denominator every entry is an integer, with nothing rounded.
    denominator = 1
    for row_shares in shares:
        denominator = math.lcm(denominator, *(s.denominator for s in row_shares))
    columns: dict[str, Entries] = {}
    for label, column in zip(outputs, zip(*shares, strict=True), strict=True):
        inputs: list[int] = []
        values: list[int] = []
        for x, share in zip(order, column, strict=True):
            # Entries name positive probabilities only (`Entries`).
            if share:
                inputs.append(x)
                values.append(int(share * denominator))
        # An output that never occurs promises nothing and is left out.
        if inputs:
            columns[label] = (tuple(inputs), tuple(values))
    return Released(list(columns), list(columns.values()), denominator)


def _order(names: list[str], joint: Joint) -> list[int]:
    """The position in the table of each symbol of the matrix; both must have the same symbols."""
    position = {name: x for x, name in enumerate(joint.useful.names)}
    twice = repeated(names)
    if twice is not None:
        raise InputError(
            f"the useful symbol {quoted(twice)} has two rows in the matrix"
        )
    unknown = [name for name in names if name not in position]
    if unknown:
        raise InputError(
            f"the table has no useful symbol {listed(unknown)}, which the matrix has"
            + other_spelling([unknown[0]], [(name,) for name in position])
        )
    present = set(names)
    missing = [name for name in position if name not in present]
    if missing:
        raise InputError(
            f"the matrix has no row for the useful symbol {listed(missing)} of the table"
        )
    return [position[name] for name in names]


def _is_one(total: Fraction | int) -> bool:
    """Whether a sum of written probabilities is 1."""
    return abs(total - 1) <= ROW_SUM_TOLERANCE


def _cells(row: Sequence[Any], name: str, labels: list[str]) -> list[Fraction]:
    """The entries of a row, checked one by one."""
    where = "row {}, output {} of the matrix"
    cells: list[Fraction] = []
    for cell, label in zip(row, labels, strict=True):
        cells.append(non_negative(cell, where, name, label))
    return cells
