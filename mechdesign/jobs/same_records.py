"""Which releases in the ledger were of the records at hand, or of some of them.

1. The hash of all records in any order shows data sets that are equal (`is_same`).
2. For the others the ledger has a sample of each data set: the smallest hashes of its records. The
   limit of a sample is its largest hash, so below it no hash is missing. Equal records have equal
   hashes. So the share of the records is estimated from the hashes up to the smaller of the two
   limits: how many of those at hand are in the old sample as well (`Content.share_in`).

For example, the hashes at hand are 3, 8, 11, 20, and those of an old release 3, 11, 15, 20, 26. Up
to the limit 20 three of the four at hand are in both, so the share is 3/4.

`releases_of` finds all releases that share records, and the share that they had together, without
what many releases have by chance (`Content.share_beyond_chance`). Its callers compare that with
`SAME_FROM`.

*The released column*, whatever stands beside it. A copy of a file without some of its columns holds
other records, to judge by whole rows, and its records would get a second draw each. So the ledger
keeps a sample of the symbols of the released column alone for each channel, with their sequence
(`ColumnRecords`), and `same_columns` compares it with those of all releases through the same
channel that have other draws:

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

from mechdesign.formats.census import Content, Hashes
from mechdesign.jobs.bare_records import (
    NOTABLE,
    BareContent,
    BareRecords,
    CodedCensus,
    likeness,
)
from mechdesign.jobs.ledger import Drawn, Entry, Ledger, name_of_column
from mechdesign.release.drawing import Release

SAME_FROM = 0.5
"""From this share on, records that are in both data sets, and unique in each, count as the same.
Chance alone does not reach it. Other individuals may look the same, but a record that is expected m
times in the old data set is there exactly once with probability m e^-m, which is at most 1/e.
"""

SHARE_ERROR = 0.1
"""The error that is allowed for in an estimated share of records: ten times its standard error."""


@dataclass(frozen=True)
class SharedReleases:
    """The releases that share records with a data set, and which share of its records they had."""

    share: float
    entries: list[Entry]


def is_same(entry: Entry, content: Content, file: str | None) -> bool:
    """Whether a release was of these very records, in whatever order.

    Releases that were carried over from before ledgers are known by the hash of their bytes,
    `file`, alone.
    """
    for reading in content.readings:
        if entry.unordered == reading.unordered:
            return True
    return file is not None and entry.file == file


def releases_of(
    db: Connection,
    ledger: Ledger,
    entries: Sequence[Entry],
    content: Content,
    file: str | None,
) -> SharedReleases:
    """Those of some releases that were of all or some of these records.

    Parameters
    ----------
    db, ledger
        A transaction of the ledger, for the samples.
    entries : sequence of Entry
        Releases in it.
    content : Content
        The records at hand.
    file : str or None
        The hash of their bytes.
    """
    equal = {entry.id for entry in entries if is_same(entry, content, file)}
    candidates = ledger.memory(db).sharing(db, content)
    samples: dict[str, bytes] = {}
    for entry in entries:
        if entry.unordered in candidates and entry.unordered not in samples:
            samples[entry.unordered] = ledger.sample(db, entry.unordered)
    # The samples that share a record at all: equal data sets have one sample, looked at once.
    sharing = {
        name for name, sample in samples.items() if content.share_in([sample]) > 0
    }
    # The share in all samples together: each release may have had another part of the records.
    share = 1.0
    if not equal:
        share = content.share_beyond_chance([samples[name] for name in sharing])
    shared: list[Entry] = []
    for entry in entries:
        if entry.id in equal or entry.unordered in sharing:
            shared.append(entry)
    return SharedReleases(share, shared)


# --------------------------------------------------------------------- released columns


class ColumnRecords:
    """Visits the symbols of the released column of each channel while a table is drawn."""

    def __init__(self, ledger: Ledger, releases: Sequence[Release]) -> None:
        self._columns: dict[int, tuple[Release, BareRecords]] = {}
        for k, release in enumerate(releases):
            if release.has_one_symbol:
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
    channel = drawn.use.channel
    verdicts = _verdicts(db, ledger, channel, new)
    if not verdicts:
        return SameColumns()
    for entry in ledger.releases(db):
        verdict = verdicts.get(name_of_column(entry, channel))
        old = entry.of(channel)
        if verdict is None or old is None:
            continue
        # A further draw of the same job was asked for, and the same one is no further draw.
        if old.job == drawn.job and (old.draw != drawn.draw or not identity):
            continue
        if verdict == "certain":
            certain.append(entry)
        else:
            notable.append(entry)
    return SameColumns(tuple(certain), tuple(notable))


def _verdicts(
    db: Connection, ledger: Ledger, channel: str, new: BareContent
) -> dict[str, str]:
    """How much a column is like those that the channel released before, by their names; those that
    are different are left out.
    """
    verdicts: dict[str, str] = {}
    # Equal ones stand together, and are compared once.
    for names in ledger.memory(db).alike_columns(db, channel, new):
        verdict = how_alike(new, unpacked(ledger.sample(db, names[0])))
        if verdict != "different":
            verdicts |= dict.fromkeys(names, verdict)
    return verdicts


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
