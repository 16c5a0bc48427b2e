"""Columns of a CSV or Parquet file as text, exactly as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import Encoded, Numbering
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import Source, open_source
from mechdesign.tables.reading import coded_columns, columns_named
from mechdesign.tables.tally import Missing

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class TextColumns:
    """Columns of a file: `cells` by name, and which of them each role asked for."""

    cells: dict[str, list[str]]
    roles: dict[str, tuple[str, ...]]


def read_text_columns(
    path: PathLike,
    roles: Mapping[str, str | Sequence[str]],
    missing: str = "refuse",
    *,
    text: TextOptions | None = None,
) -> TextColumns:
    """Read the columns that some roles ask for, one text per record."""
    with open_source(path, text) as source:
        resolved = {role: columns_of(source, names) for role, names in roles.items()}
        wanted = list(dict.fromkeys(name for names in resolved.values() for name in names))
        numberings = {name: Numbering() for name in wanted}
        parts: dict[str, list[Indices]] = {name: [] for name in wanted}
        for _, columns in usable_records(source, wanted, missing):
            for name, column in zip(wanted, columns, strict=True):
                parts[name].append(numberings[name].number([column]))
    cells: dict[str, list[str]] = {}
    for name, numbering in numberings.items():
        texts = [text for (text,) in numbering.texts]
        cells[name] = [texts[k] for part in parts[name] for k in part.tolist()]
    return TextColumns(cells, resolved)


def columns_of(source: Source, names: str | Sequence[str]) -> tuple[str, ...]:
    """As `columns_named`, of a file that the message names."""
    try:
        return columns_named(names, source.header)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from None


def usable_records(
    source: Source, names: Sequence[str], missing: str
) -> Iterator[tuple[Indices, list[Encoded]]]:
    """Some records at a time: their numbers in the file (from 0), and their columns as `read_text_columns` has them."""
    if missing not in get_args(Missing):
        raise InputError(f"missing ({quoted(missing)}) must be one of {', '.join(get_args(Missing))}")
    before, left = 0, 0
    for batch in source.batches(encode=names, whole=False):
        columns = coded_columns(source, batch, names)
        empty = np.logical_or.reduce([column.codes < 0 for column in columns])
        rows = np.arange(before, before + batch.num_rows)
        if missing == "refuse" and empty.any():
            first = int(np.argmax(empty))
            name = next(n for n, column in zip(names, columns, strict=True) if column.codes[first] < 0)
            raise InputError(
                f"{source.name}: column {quoted(name)} is empty in record {before + first + 1}; "
                "say --missing symbol (a value of its own) or --missing drop"
            )
        if missing == "drop" and empty.any():
            rows = rows[~empty]
            columns = [Encoded(column.codes[~empty], column.texts, column.is_float) for column in columns]
        before += batch.num_rows
        left += len(rows)
        if len(rows):
            yield rows, columns
    if not left:
        raise InputError(f"{source.name}: no records are left; a range needs at least one value")
