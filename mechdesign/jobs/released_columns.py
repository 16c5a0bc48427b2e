"""Whether the released column of a job is that of an earlier release, whatever stands beside it.

A copy of a file without some of its columns holds other records, to judge by whole rows, and its
records would get a second draw each. So the ledger keeps a sample of the symbols of the released
column alone for each channel, with their sequence (`ColumnRecords`), and `same_columns` compares
it with those of all releases through the same channel that have other draws:

- the same symbols in the same order, which chance does not explain: the same records;
- the same symbols equally often: maybe the same records in another order. That may well be a table
  by design, such as twelve months with a hundred records each, so it is noted and not refused.

For example, ``cut -d, -f2 people.csv`` has the sequence of ``job`` in people.csv. With 1,000 people
and five jobs in no particular order, an equal sequence is worth more than 2,000 bits.

What is sampled is a keyed hash of the number of each symbol in its channel, so that the ledger
holds no symbol.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from sqlite3 import Connection

import numpy as np

from mechdesign.formats.census import Hashes
from mechdesign.jobs.bare_records import BareContent, BareRecords, CodedCensus
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.likeness import NOTABLE, likeness
from mechdesign.jobs.recipe import RecordedDraws
from mechdesign.release.drawing import Release


class ColumnRecords:
    """Visits the symbols of the released column of each channel while a table is drawn."""

    def __init__(self, ledger: Ledger, releases: Sequence[RecordedDraws]) -> None:
        self._columns: dict[int, tuple[Release, BareRecords]] = {}
        for k, release in enumerate(releases):
            # Of boxes a record has no single symbol.
            if isinstance(release, Release) and release.channel.coder is None:
                census = partial(CodedCensus, _symbol_hashes(ledger, release))
                self._columns[k] = release, BareRecords([release], census)

    def add_last(self) -> None:
        """Visit the records that were just drawn."""
        for release, records in self._columns.values():
            records.add(release.codes[0])

    def content(self, k: int) -> BareContent | None:
        """The column that a channel has released; None of a channel of rows."""
        if k not in self._columns:
            return None
        return self._columns[k][1].content

    def new(self, k: int) -> BareContent | None:
        """The same of the records that no earlier release through the channel had."""
        if k not in self._columns:
            return None
        return self._columns[k][1].new(0)


def _symbol_hashes(ledger: Ledger, release: Release) -> Hashes:
    """A hash for each symbol of a channel, and for missing and unknown ones."""
    secret = ledger.key.derived("ledger", "column", release.digest).secret
    hashes = np.zeros(len(release.symbol_counts[0]), np.uint64)
    for code in range(len(hashes)):
        digest = hashlib.blake2b(str(code).encode(), key=secret, digest_size=8).digest()
        hashes[code] = int.from_bytes(digest, "little")
    return hashes


def packed(column: BareContent) -> bytes:
    """A column as the ledger keeps it: the bits that its order is worth, then its content."""
    return struct.pack("<d", column.order) + column.to_bytes()


def unpacked(stored: bytes) -> BareContent:
    """The column from `packed`."""
    (order,) = struct.unpack("<d", stored[:8])
    return replace(BareContent.from_bytes(stored[8:]), order=order)


@dataclass(frozen=True)
class SameColumns:
    """The releases whose column is that at hand: `certain` ones, and those that may be alike by
    design.
    """

    certain: tuple[Entry, ...] = ()
    notable: tuple[Entry, ...] = ()


def same_columns(
    db: Connection,
    ledger: Ledger,
    drawn: Drawn,
    identity: Sequence[str],
    new: BareContent,
) -> SameColumns:
    """The earlier releases of a column through the same channel with other draws.

    Parameters
    ----------
    db, ledger
        A transaction of the ledger.
    drawn : Drawn
        The draw at hand.
    identity : sequence of str
        What identifies the records; with identifiers only new ones are compared.
    new : BareContent
        The column of the records that have no draw yet.
    """
    certain: list[Entry] = []
    notable: list[Entry] = []
    if not new.records:
        return SameColumns()
    for entry in ledger.releases(db):
        old = entry.of(drawn.use.channel)
        if old is None:
            continue
        # A further draw of the same job was asked for, and the same one is no further draw.
        if old.job == drawn.job and (old.draw != drawn.draw or not identity):
            continue
        stored = ledger.column(db, entry, drawn.use.channel)
        if stored is None:
            continue
        match how_alike(new, unpacked(stored)):
            case "certain":
                certain.append(entry)
            case "notable":
                notable.append(entry)
            case _:
                pass
    return SameColumns(tuple(certain), tuple(notable))


def how_alike(new: BareContent, old: BareContent) -> str:
    """'certain' if two columns have one sequence beyond chance, 'notable' if they have the same
    symbols equally often, else 'different'.
    """
    alike = likeness(new, old)
    if not alike.whole or alike.bits < NOTABLE:
        return "different"
    if alike.certain and new.ordered == old.ordered:
        return "certain"
    return "notable"


def with_same_columns(
    db: Connection, ledger: Ledger, found: Sequence[Entry], entries: Sequence[Entry]
) -> list[Entry]:
    """Those of `entries` that are among the found ones, or released a column that one of these
    released, too; in the order of the ledger.
    """
    names = {entry.id for entry in found}
    columns: dict[str, list[BareContent]] = {}
    for entry in found:
        for channel, content in _columns_of(db, ledger, entry):
            columns.setdefault(channel, []).append(content)
    for entry in entries:
        for channel, content in _columns_of(db, ledger, entry):
            known = columns.get(channel, [])
            if any(how_alike(content, other) != "different" for other in known):
                names.add(entry.id)
    return [entry for entry in entries if entry.id in names]


def _columns_of(
    db: Connection, ledger: Ledger, entry: Entry
) -> list[tuple[str, BareContent]]:
    """The channels of a release, each with the column that it released."""
    columns: list[tuple[str, BareContent]] = []
    for drawn in entry.drawn:
        stored = ledger.column(db, entry, drawn.use.channel)
        if stored is not None:
            columns.append((drawn.use.channel, unpacked(stored)))
    return columns
