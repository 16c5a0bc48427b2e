"""What is wrong with the columns of a released file, seen from the headers and types alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechdesign.checking import Finding
from mechdesign.exact import listed, quoted
from mechdesign.sanitise.lookalikes import lookalikes
from mechdesign.sanitise.rereading import Table
from mechdesign.variable import Variable


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where things stand in the files.

    Parameters
    ----------
    useful : tuple of str
        Columns of X in the original.
    released : tuple of str
        Columns of the released file with what the channel published.
    private : tuple of str
        Columns that must not be in the released file.
    ignored : tuple of str
        Columns that are not compared: removed or released by other means.
    identity : tuple of str
        Columns that identify a record; empty where every row is one.
    """

    useful: tuple[str, ...]
    released: tuple[str, ...]
    private: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()


def private_columns(table: Table, columns: Columns) -> list[Finding]:
    """Columns that a release has no more."""
    allowed = {*columns.released, *columns.ignored}
    found = [
        f"the {what} column {quoted(name)}"
        for what, names in (("sensitive", columns.private), ("useful", columns.useful))
        for name in names
        if name in table.header and name not in allowed
    ]
    known = allowed | {*columns.private, *columns.useful}
    found += [
        f"the column {quoted(name)}, which looks like the sensitive column {quoted(like)},"
        for name, like in lookalikes(table.header, columns.private, known)
    ]
    return [Finding("private column", f"{table.name}: {what} is in the released file") for what in found]


def header_changes(before: Table, after: Table, columns: Columns) -> list[Finding]:
    """Columns that have gone, come or moved."""
    special = {*columns.useful, *columns.released, *columns.private, *columns.ignored}
    old = [name for name in before.header if name not in special]
    new = [name for name in after.header if name not in special]
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    found: list[Finding] = []
    if gone:
        found.append(
            Finding("columns", f"{after.name}: the column {listed(gone)} of the original is not there")
        )
    if come:
        found.append(Finding("columns", f"{after.name}: the column {listed(come)} is not in the original"))
    if not gone and not come and old != new:
        found.append(
            Finding("columns", f"{after.name}: the columns are in another order than in the original")
        )
    return found


def compared(before: Table, after: Table, columns: Columns) -> list[str]:
    """Columns to compare: in both files, and no released or ignored ones."""
    left_out = {*columns.released, *columns.ignored}
    return [name for name in after.header if name in before.header and name not in left_out]


def type_changes(before: Table, after: Table, names: Sequence[str]) -> list[Finding]:
    """Columns that have another type than in the original."""
    changed = [name for name in names if before.type_of(name) != after.type_of(name)]
    return [
        Finding(
            "columns",
            f"{after.name}: the column {quoted(name)} has the type {after.type_of(name)}, but "
            f"{before.type_of(name)} in the original",
        )
        for name in changed
    ]


def renamed(names: Sequence[str], mapping: Mapping[str, str]) -> tuple[str, ...]:
    """`names` as the files call them."""
    return tuple(mapping.get(name, name) for name in names)


def as_labels(labels: Sequence[str], name: str) -> Variable:
    """A variable of one column whose symbols are the output labels."""
    return Variable((name,), tuple((label,) for label in labels))
