"""Joint tables from CSV and Parquet files.

A file is microdata (one record a row, or counts in long form with a weight column), or a wide table
with the sensitive symbols in its first column and the useful symbols in its header.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mechdesign.core.errors import InputError, naming
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import listed, quoted
from mechdesign.formats.cells import (
    Encoded,
    empty_as_missing,
    encode,
    require_column,
    separators,
)
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import Batch, Source, files_of, is_folder, open_source
from mechdesign.tables.exact_table import Entry, exact_table, refuse_margins
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Missing, Roles, Tally, UnusableCell, check_missing
from mechdesign.tables.variable import Variable

WIDE = "if this is a count table, sensitive symbols down its first column, say so (--contingency)"
LONG = "for one record a row leave --contingency out and name the columns (--sensitive, --useful)"
HEADLESS = "if the first row is data, put a line with the names of the columns above it"
COUNTED = "if a column says how many records each row stands for, name it (--weight COL; there are {})"
WEIGHTS = "the column {} is taken for numbers of records, {:,} in all; if it holds survey weights, say so (--weighted)"

FEWEST_RECORDS = 20
"""In fewer records all values may differ by chance."""

_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")

ColumnNames = str | Sequence[str] | None


def read_joint(
    path: PathLike,
    *,
    sensitive: ColumnNames = None,
    useful: ColumnNames = None,
    weight: str | None = None,
    contingency: bool = False,
    probabilities: bool = False,
    weighted: bool = False,
    missing: Missing = "refuse",
    bins: Any = None,
    text: TextOptions | None = None,
) -> Joint:
    """Read the joint table of a CSV or Parquet file, folder or glob, exactly; `bins` are as in `Joint.binned`."""
    several, wide = is_folder(path), contingency or probabilities
    if contingency and probabilities:
        raise InputError(
            "--contingency reads counts and --probabilities probabilities: give one of them"
        )
    if wide and weight is not None:
        raise InputError(
            "--weight belongs to a long table; --contingency and --probabilities have none"
        )
    if weighted and not contingency and weight is None:
        raise InputError(
            "--weighted says what counts are: give --contingency or --weight COL too"
        )
    if not wide and (sensitive is None or useful is None):
        absent = "--sensitive" if sensitive is None else "--useful"
        raise InputError(
            f"{absent} COL is missing: which column? (a wide table needs --contingency)"
        )
    check_missing(missing)
    base, names = files_of(path) if several else (None, [path])
    tally, whole, spare = None, os.fspath(path), list[str]()
    for name in names:
        with (
            open_source(
                base / name if base else name, text, repeated_names=wide
            ) as source,
            naming(source.name),
        ):
            if wide:
                if several:
                    raise InputError(
                        "a wide table is one file; leave the others out, or give microdata"
                    )
                what = (
                    "probability"
                    if probabilities
                    else "weight"
                    if weighted
                    else "count"
                )
                joint = _wide(source, (_only(sensitive), _only(useful)), what, missing)
                return joint if bins is None else joint.binned(bins)
            roles = _roles(sensitive or (), useful or (), weight, source)
            sensitive, useful = (
                roles.sensitive,
                roles.useful,
            )  # of all files the same ones
            spare = [name for name in source.header if name not in roles.columns]
            tally = tally or Tally(roles, missing)
            _count(source, tally)
            whole = whole if several else source.name
    assert tally is not None  # there is at least one file
    with naming(whole):
        if not tally.records:
            raise InputError(
                f"{'the files have headers' if several else 'the file has a header'} but no records"
            )
        tally.is_counts &= not weighted
        joint = Joint.from_tally(tally)
        repeated = tally.records > sum(
            count > 0 for row in joint.counts for count in row
        )
        joint = joint if bins is None else joint.binned(bins)
        more = notices_of((joint.sensitive, joint.useful), joint.records)
        if weight is None and spare and is_grid(joint.counts):
            more = (
                *more,
                f"no two rows have the same symbols: {COUNTED.format(listed(spare))}",
            )
        if weight is not None and tally.is_counts and repeated:
            more = (*more, WEIGHTS.format(quoted(weight), joint.total))
        return replace(joint, notices=(*joint.notices, *more))


def columns_named(
    names: str | Sequence[str], available: Sequence[str]
) -> tuple[str, ...]:
    """The columns `names`: a sequence as it is, a text whole if there is such a column, else split at its commas."""
    if not isinstance(names, str):
        columns = tuple(names)
    elif names in available:
        columns = (names,)
    else:
        columns = tuple(names.split(","))
    for column in columns:
        require_column(column, available)
    return columns


def coded_columns(source: Source, batch: Batch, names: Sequence[str]) -> list[Encoded]:
    """Columns of a batch as codes into texts; in a CSV an empty cell is a missing one, in Parquet a null."""
    columns = [encode(batch.column(name), name) for name in names]
    return (
        [empty_as_missing(column) for column in columns]
        if source.kind == "CSV"
        else columns
    )


def _roles(
    sensitive: str | Sequence[str],
    useful: str | Sequence[str],
    weight: str | None,
    source: Source,
) -> Roles:
    header = source.header
    try:
        if weight is not None:
            require_column(weight, header)
        return Roles(
            columns_named(sensitive, header), columns_named(useful, header), weight
        )
    except InputError as error:
        if separators(header):
            raise
        first = next(iter(source.batches()), None)
        if first is not None and is_count_table(header, first.rows()):
            raise InputError(f"{error}; {WIDE}") from None
        if looks_like_data(header):
            raise InputError(f"{error}; {HEADLESS}") from None
        raise


def _count(source: Source, tally: Tally) -> None:
    before, names = 0, tally.roles.columns
    for batch in source.batches(encode=names, whole=False):
        try:
            tally.add_columns(coded_columns(source, batch, names))
        except UnusableCell as error:
            raise InputError(
                f"{source.where(before + error.position)}: {error}"
            ) from None
        before += batch.num_rows


def _only(names: ColumnNames) -> str | None:
    if names is None or isinstance(names, str):
        return names
    if len(names) == 1:
        return names[0]
    raise InputError(
        "a wide table has one sensitive and one useful variable; crossed columns need microdata"
    )


def _wide(
    source: Source, named: tuple[str | None, str | None], what: Entry, missing: Missing
) -> Joint:
    """A wide table: header of useful symbols, first column of sensitive ones."""
    header, body = (
        source.header,
        [row for batch in source.batches() for row in batch.rows()],
    )
    if not body:
        raise InputError("the file has a header but no rows")
    if len(header) < 2:
        raise InputError(
            "a wide table needs a first column of sensitive symbols and a useful one beside it"
        )
    labels, columns = [row[0] for row in body], header[1:]
    if missing != "symbol" and ("" in labels or "" in columns):
        where = (
            f"row {labels.index('') + 1} of the table"
            if "" in labels
            else f"column {columns.index('') + 2}"
        )
        raise InputError(
            f"{where} has no label; name it, or let empty text be a symbol (--missing symbol)"
        )
    names = (named[0] or header[0] or "sensitive", named[1] or "useful")
    try:
        table = exact_table(
            [row[1:] for row in body], (labels, columns), names, what=what
        )
    except InputError as error:
        if is_microdata(body):
            raise InputError(f"{error}; {LONG}") from None
        raise
    joint = Joint.from_exact(table, is_counts=what == "count")
    refuse_margins(joint.sensitive, joint.useful, joint.counts, unnamed=True)
    more = (
        [f"the first cell of the header is a number: {HEADLESS}"]
        if looks_like_data(header[:1])
        else []
    )
    return replace(joint, notices=(*joint.notices, *more))


def is_grid(counts: Sequence[Sequence[int]]) -> bool:
    """Whether most pairs of symbols occur, and each in one row: then rows are cells of a table, not records."""
    cells = [count for row in counts for count in row]
    return (
        min(len(counts), len(counts[0])) > 1
        and max(cells) == 1
        and 2 * sum(cells) > len(cells)
    )


def looks_like_data(header: Sequence[str]) -> bool:
    """Whether a line of names holds a number, or a name twice: then it is a record more likely."""
    return len(set(header)) < len(header) or any(map(_NUMBER.fullmatch, header))


def is_count_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows are labels, all different, with numbers behind them."""
    labels = (row[0] for row in rows)
    return (
        min(len(header) - 1, len(rows)) > 1
        and not any(map(_NUMBER.fullmatch, labels))
        and not is_microdata(rows)
    )


def is_microdata(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows begin alike, or have a word in the place of a number: then they are records more likely."""
    cells = {cell.strip().lower() for row in rows for cell in row[1:]} - {
        "",
        "nan",
        "inf",
    }
    return len({row[0] for row in rows}) < len(rows) or not all(
        map(_NUMBER.fullmatch, cells)
    )


def notices_of(variables: Sequence[Variable], records: int | None) -> tuple[str, ...]:
    """What is worth a look in the symbols of a file of so many records."""
    columns = [
        pair
        for v in variables
        for pair in zip(v.columns, zip(*v.symbols, strict=True), strict=True)
    ]
    found = {
        "the name of the column is one of its symbols, too; if the first row of the file is a record, put a line with "
        "the names of the columns above it": [
            name for name, symbols in columns if name in symbols
        ],
        "every symbol begins with a blank, which belongs to it, also in files to release": [
            name
            for name, symbols in columns
            if all(symbol[:1] == " " for symbol in symbols)
        ],
        "every record has another symbol, as an identifier has; bins or groups tell more": [
            ",".join(v.columns)
            for v in variables
            if records is not None and len(v) == records >= FEWEST_RECORDS
        ],
    }
    return tuple(f"{listed(names)}: {text}" for text, names in found.items() if names)
