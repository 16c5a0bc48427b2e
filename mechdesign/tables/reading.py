"""Joint tables from CSV and Parquet files.

A file is microdata (one record a row, or counts in long form with a weight column), or a wide table
with the sensitive symbols in its first column and the useful symbols in its header.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, is_parquet
from mechdesign.formats.cells import Encoded, encode, require_column
from mechdesign.formats.csv_text import CsvText
from mechdesign.formats.parquet_text import ParquetText
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Key, Missing, Roles, Tally, UnusableCell

DEFAULT_USEFUL = "useful"
"""Name of the useful column of a wide table that does not say."""

DEFAULT_SENSITIVE = "sensitive"
"""Name of the sensitive column of a wide table whose first header cell is empty."""

Names = str | Sequence[str] | None


def read_joint(
    path: PathLike,
    *,
    sensitive: Names = None,
    useful: Names = None,
    weight: str | None = None,
    contingency: bool = False,
    probabilities: bool = False,
    missing: Missing = "refuse",
) -> Joint:
    """Read the joint table of a CSV or Parquet file, exactly.

    Parameters
    ----------
    path : path
        Which of the two it is shows in its first bytes, not in its name.
    sensitive, useful : str or sequence of str
        Columns of microdata; several are crossed. A text that is no column is split at its commas. For a wide table
        they only name the variables: `sensitive` in place of the first header cell, `useful` in place of 'useful'.
    weight : str, optional
        Column with the weight of each row of microdata: whole numbers or exact decimals.
    contingency : bool
        Whether the file is a wide table of counts.
    probabilities : bool
        Whether it is a wide table of probabilities (exact decimals that sum to 1 within 1e-6).
    missing : 'refuse', 'symbol' or 'drop'
        What an empty cell of the sensitive and useful columns is: in a CSV a cell without text, in Parquet a null.

    Returns
    -------
    Joint
        Symbols of microdata are sorted by text; wide tables keep their order.

    Raises
    ------
    InputError
        Naming the file, and the line, column or symbol that is not usable.
    """
    name = os.fspath(path)
    parquet = is_parquet(path)
    try:
        if contingency or probabilities:
            rows = _parquet_rows(name) if parquet else _csv_rows(name)
            return _wide(rows, _only(sensitive), _only(useful), weight, probabilities, missing)
        if sensitive is None or useful is None:
            raise InputError(
                "say which columns are sensitive (--sensitive) and useful (--useful), or that this is a count table "
                "(--contingency)"
            )
        read = _parquet_microdata if parquet else _csv_microdata
        return read(name, sensitive, useful, weight, missing)
    except InputError as error:
        if str(error).startswith(name):
            raise
        raise InputError(f"{name}: {error}") from None


def columns_named(names: str | Sequence[str], available: Sequence[str]) -> tuple[str, ...]:
    """The columns that `names` asks for.

    A sequence is taken as it is, a text whole if there is such a column, else split at its commas.

    Raises
    ------
    InputError
        If one of them is not available.
    """
    if not isinstance(names, str):
        columns = tuple(names)
    elif names in available:
        columns = (names,)
    else:
        columns = tuple(names.split(","))
    for column in columns:
        require_column(column, available)
    return columns


def _roles(
    sensitive: str | Sequence[str], useful: str | Sequence[str], weight: str | None, header: list[str]
) -> Roles:
    try:
        if weight is not None:
            require_column(weight, header)
        return Roles(columns_named(sensitive, header), columns_named(useful, header), weight)
    except InputError as error:
        for separator, word in ((";", "semicolons"), ("\t", "tabs")):
            if len(header) == 1 and separator in header[0]:
                raise InputError(
                    f"{error}; its cells seem to be separated by {word}: save it with commas"
                ) from None
        raise


def _csv_microdata(
    path: str,
    sensitive: str | Sequence[str],
    useful: str | Sequence[str],
    weight: str | None,
    missing: Missing,
) -> Joint:
    with CsvText(path) as table:
        roles = _roles(sensitive, useful, weight, table.header)
        at = [table.header.index(column) for column in roles.columns]
        tally, cells = Tally(roles, missing), itemgetter(*at)
        try:
            for rows in table.batches():
                tally.add({_with_gaps(key): number for key, number in Counter(map(cells, rows)).items()})
        except UnusableCell as error:
            column = table.header.index(error.column)
            text = error.text or ""
            line = table.find(lambda _, row: len(row) > column and row[column] == text)
            raise InputError(f"{path}, line {line}: {error}") from None
    return _joint(tally)


def _with_gaps(key: tuple[str, ...]) -> Key:
    return tuple(cell or None for cell in key) if "" in key else key


def _joint(tally: Tally) -> Joint:
    if not tally.records:
        raise InputError("the file has a header but no records")
    return Joint.from_tally(tally)


def _parquet_microdata(
    path: str,
    sensitive: str | Sequence[str],
    useful: str | Sequence[str],
    weight: str | None,
    missing: Missing,
) -> Joint:
    with ParquetText(path) as table:
        roles = _roles(sensitive, useful, weight, table.header)
        tally, start = Tally(roles, missing), 0
        for batch in table.batches(roles.columns):
            columns = [encode(batch.column(name), name) for name in roles.columns]
            try:
                tally.add_columns(columns)
            except UnusableCell as error:
                row = _first(columns[roles.columns.index(error.column)], error.text)
                raise InputError(f"{path}, row {start + row + 1}: {error}") from None
            start += batch.num_rows
    return _joint(tally)


def _first(column: Encoded, text: str | None) -> int:
    """Position of the first cell with that text (None: a missing one)."""
    wanted = {-1} if text is None else {code for code, other in enumerate(column.texts) if other == text}
    return next(i for i, code in enumerate(column.codes.tolist()) if code in wanted)


def _csv_rows(path: str) -> list[list[str]]:
    with CsvText(path, repeated_header=True) as table:
        return [table.header, *(row for rows in table.batches() for row in rows)]


def _parquet_rows(path: str) -> list[list[str]]:
    with ParquetText(path) as table:
        rows = [table.header]
        for batch in table.batches():
            columns = [encode(batch.column(name), name) for name in table.header]
            rows += map(list, zip(*map(_cells, columns), strict=True))
    return rows


def _cells(column: Encoded) -> list[str]:
    codes: list[int] = column.codes.tolist()
    return ["" if code < 0 else column.texts[code] for code in codes]


def _only(names: Names) -> str | None:
    if names is None or isinstance(names, str):
        return names
    if len(names) == 1:
        return names[0]
    raise InputError("a wide table has one sensitive and one useful variable; crossed columns need microdata")


def _wide(
    rows: list[list[str]],
    sensitive: str | None,
    useful: str | None,
    weight: str | None,
    probabilities: bool,
    missing: Missing,
) -> Joint:
    """A wide table: header of useful symbols, first column of sensitive ones."""
    if weight is not None:
        raise InputError("a wide table has no weight column; leave --weight out, or give microdata")
    header, body = rows[0], rows[1:]
    if not body:
        raise InputError("the file has a header but no rows")
    if len(header) < 2:
        raise InputError(
            "a wide table needs a first column of sensitive symbols and at least one useful column"
        )
    labels, columns = [row[0] for row in body], header[1:]
    if missing != "symbol" and ("" in labels or "" in columns):
        where = (
            f"row {labels.index('') + 1} of the table" if "" in labels else f"column {columns.index('') + 2}"
        )
        raise InputError(
            f"{where} has no label; name it, or let the empty text be a symbol (--missing symbol)"
        )
    build = Joint.from_probabilities if probabilities else Joint.from_counts
    return build(
        [row[1:] for row in body],
        sensitive_labels=labels,
        useful_labels=columns,
        sensitive=sensitive or header[0] or DEFAULT_SENSITIVE,
        useful=useful or DEFAULT_USEFUL,
    )
