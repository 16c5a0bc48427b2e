"""An outside matrix in a CSV file: useful symbols down the first column, outputs along the header."""

from __future__ import annotations

import os

from mechdesign.auditing import Audit
from mechdesign.csv_text import CsvText
from mechdesign.errors import InputError
from mechdesign.files import PathLike, is_parquet
from mechdesign.joint import Joint
from mechdesign.notions import Notion
from mechdesign.outside import audit_matrix


def audit_file(path: PathLike, joint: Joint, notion: Notion) -> Audit:
    """Decide exactly whether the matrix in a CSV file satisfies `notion` on `joint`.

    Decimals are exact as written; rows must sum to 1 within 1e-9 and are then normalised exactly.

    Raises
    ------
    InputError
        Naming the file, if it is no such matrix or its symbols are not those of the joint.
    """
    name = os.fspath(path)
    if is_parquet(path):
        raise InputError(f"{name} is a Parquet file; a matrix must be CSV")
    with CsvText(path, repeated_header=True) as table:
        header, rows = table.header, [row for batch in table.batches() for row in batch]
    if len(header) < 2 or not rows:
        raise InputError(
            f"{name}: a matrix needs a first column of useful symbols, a header of outputs, and rows"
        )
    try:
        return audit_matrix(
            [row[1:] for row in rows], joint, notion, symbols=[row[0] for row in rows], outputs=header[1:]
        )
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
