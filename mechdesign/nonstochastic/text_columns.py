"""Columns of a CSV or Parquet file as text, exactly as written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, is_parquet
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import encode
from mechdesign.formats.csv_text import CsvText
from mechdesign.formats.parquet_text import ParquetText
from mechdesign.tables.reading import columns_named

MISSING = ("refuse", "symbol", "drop")


@dataclass(frozen=True)
class TextColumns:
    """Columns of a file: `cells` by name, and which of them each role asked for."""

    cells: dict[str, list[str]]
    roles: dict[str, tuple[str, ...]]


def read_text_columns(
    path: PathLike, roles: Mapping[str, str | Sequence[str]], missing: str = "refuse"
) -> TextColumns:
    """Read the columns that some roles ask for, one text per record.

    Parameters
    ----------
    path
        A CSV or Parquet file; its first bytes tell which.
    roles
        For each role its columns: a sequence of names, or a text, which is the name of a column or
        else names between commas.
    missing
        What an empty cell (Parquet: a null) is: "refuse", "symbol" (the empty text is a value) or
        "drop" (records with one are left out).

    Raises
    ------
    InputError
        If the file, a column or an empty cell is not usable, or no record is left.
    """
    if missing not in MISSING:
        raise InputError(f"missing ({quoted(missing)}) must be one of {', '.join(MISSING)}")
    name = os.fspath(path)
    try:
        found = _from_parquet(name, roles) if is_parquet(path) else _from_csv(name, roles)
    except InputError as error:
        if str(error).startswith(name):
            raise
        raise InputError(f"{name}: {error}") from None
    cells = found.cells
    gaps = {k for column in cells.values() for k, text in enumerate(column) if text == ""}
    if gaps and missing == "refuse":
        row = min(gaps)
        column = next(c for c, texts in cells.items() if texts[row] == "")
        raise InputError(
            f"{name}: column {quoted(column)} is empty in record {row + 1}; "
            "say --missing symbol (a value of its own) or --missing drop"
        )
    if gaps and missing == "drop":
        cells = {c: [text for k, text in enumerate(column) if k not in gaps] for c, column in cells.items()}
    if not all(cells.values()):
        raise InputError(f"{name}: no records are left; a range needs at least one value")
    return TextColumns(cells, found.roles)


def _named(roles: Mapping[str, str | Sequence[str]], header: Sequence[str]) -> TextColumns:
    """The roles resolved, and an empty list of cells for each column."""
    resolved = {role: columns_named(names, header) for role, names in roles.items()}
    return TextColumns({column: [] for names in resolved.values() for column in names}, resolved)


def _from_csv(path: str, roles: Mapping[str, str | Sequence[str]]) -> TextColumns:
    with CsvText(path) as table:
        found = _named(roles, table.header)
        places = {column: table.header.index(column) for column in found.cells}
        for rows in table.batches():
            for column, place in places.items():
                found.cells[column].extend(row[place] for row in rows)
    return found


def _from_parquet(path: str, roles: Mapping[str, str | Sequence[str]]) -> TextColumns:
    with ParquetText(path) as table:
        found = _named(roles, table.header)
        for batch in table.batches(list(found.cells)):
            for column, cells in found.cells.items():
                encoded = encode(batch.column(column), column)
                cells.extend("" if code < 0 else encoded.texts[code] for code in encoded.codes.tolist())
    return found
