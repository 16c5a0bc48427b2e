"""The columns of a released file besides the released ones: left as they are, or left out.

A release changes nothing in other columns, adds none, and has no private column. Each of these has
a function:

- `first_difference` compares the cells of a batch column by column, and returns the first record
  that differs: ``Difference(position=4, column="age", original="30", released="31")``.
- `header_changes` compares the names, the order and, between two Parquet files, the types.
- `private_columns` looks for columns that should have been left out, by their names and by names
  that look like theirs (`lookalikes`).

`common_columns` puts the last two together, with the columns whose cells are to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mechdesign.analysis.checking import Finding
from mechdesign.analysis.released_table import Released
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.arrow_arrays import without_nulls
from mechdesign.formats.cells import encode
from mechdesign.formats.csv import CsvSource
from mechdesign.formats.formulas import as_text
from mechdesign.formats.opening import Source
from mechdesign.jobs.lookalikes import lookalikes


class Difference(NamedTuple):
    """A cell that a release changed: its record in the batch, its column, and both texts."""

    position: int
    column: str
    original: str
    released: str


def first_difference(
    original: Any, released: Any, names: Sequence[str], loose: bool, escaped: bool
) -> Difference | None:
    """The first cell of two batches that differs, by record and then by column.

    `loose` compares texts, for files of different kinds: a CSV has nothing else. With `escaped` the
    release has formulas as texts (--escape-formulas), so those of the original are made texts too.
    """
    differences: list[Difference] = []
    for name in names:
        before = original.column(name)
        after = released.column(name)
        if escaped:
            cells = encode(before, name)
            texts = tuple(map(as_text, cells.texts))
            before = replace(cells, texts=texts).expanded()
        at = _first_unequal(before, after, name, loose)
        if at is not None:
            original_text = str(before[at].as_py())
            released_text = str(after[at].as_py())
            differences.append(Difference(at, name, original_text, released_text))
    # The position stands first, so the least of all is in the first record that differs.
    return min(differences, default=None)


def _first_unequal(before: Any, after: Any, name: str, loose: bool) -> int | None:
    """Position of the first cell that differs; NaN equals NaN, and of texts 1.50 equals 1.5."""
    before = _comparable(before, name, loose)
    after = _comparable(after, name, loose)
    # Nearly always all cells are equal, which Arrow decides without Python values.
    if before.type == after.type and before.equals(after):
        return None
    pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
    # Only now cell by cell: unequal types may still hold equal values, and NaN differs from itself.
    for i, (one, other) in enumerate(pairs):
        if one != other and not _same_value(one, other, loose):
            return i
    return None


def _comparable(column: Any, name: str, loose: bool) -> Any:
    """The column as texts, or without a dictionary."""
    import pyarrow as pa

    # A CSV has no null: a missing value is the empty text there.
    if loose:
        return without_nulls(encode(column, name).expanded())
    # Equal values may have different codes in the dictionaries of two files.
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def _same_value(one: Any, other: Any, loose: bool) -> bool:
    """Whether two unequal cells are the same value: NaN, or texts of one number."""
    # Of values with types only NaN is unequal to itself and yet has the same text.
    if not loose:
        return repr(one) == repr(other)
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def common_columns(
    before: Source, after: Source, file: Released
) -> tuple[list[str], list[Finding]]:
    """The columns that a release and its original have both, and what the headers show."""
    compared = set(before.header) - {*file.columns, *file.ignored}
    common = [name for name in after.header if name in compared]
    findings = private_columns(after, file)
    return common, findings + header_changes(before, after, file, common)


def private_columns(table: Source, file: Released) -> list[Finding]:
    """Columns that a release must not have: sensitive, useful, or like a sensitive one."""
    # Released labels may stand under the name of the useful column that they replace.
    allowed = {*file.columns, *file.ignored}
    problems: list[str] = []
    for role, names in (("sensitive", file.private), ("useful", file.useful)):
        for name in names:
            if name in table.header and name not in allowed:
                problems.append(f"the {role} column {quoted(name)}")
    expected_names = allowed | {*file.private, *file.useful}
    for name, like in lookalikes(table.header, file.private, expected_names):
        problems.append(
            f"the column {quoted(name)}, which looks like the sensitive column {quoted(like)},"
        )
    return [
        Finding("private column", f"{table.name}: {problem} is in the released file")
        for problem in problems
    ]


def header_changes(
    before: Source, after: Source, file: Released, common: list[str]
) -> list[Finding]:
    """Columns that were added, moved, or changed in type (a CSV has no types to compare).

    Columns that are missing are no finding: a release has those alone that were asked for.
    """
    # These may come, go or move: the release replaces them, or `private_columns` reports them.
    special = {*file.useful, *file.columns, *file.private, *file.ignored}
    old = [name for name in before.header if name not in special]
    new = [name for name in after.header if name not in special]
    added = [name for name in new if name not in old]
    stayed = [name for name in old if name in new]
    problems: list[str] = []
    if added:
        problems.append(f"the column {listed(added)} is not in the original")
    elif stayed != new:
        problems.append("the columns are in another order than in the original")
    if not isinstance(before, CsvSource) and not isinstance(after, CsvSource):
        for name in common:
            old_type = str(before.schema.field(name).type)
            new_type = str(after.schema.field(name).type)
            if old_type != new_type:
                problems.append(
                    f"the column {quoted(name)} has the type {new_type}, but {old_type} in the "
                    "original"
                )
    return [Finding("columns", f"{after.name}: {problem}") for problem in problems]
