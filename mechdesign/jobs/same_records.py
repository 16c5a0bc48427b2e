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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from mechdesign.formats.census import Content
from mechdesign.jobs.entries import Entry
from mechdesign.jobs.ledger import Ledger

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
    db: Connection, entries: Sequence[Entry], content: Content, file: str | None
) -> SharedReleases:
    """Those of some releases that were of all or some of these records.

    Parameters
    ----------
    db : Connection
        The ledger, for the samples.
    entries : sequence of Entry
        Releases in it.
    content : Content
        The records at hand.
    file : str or None
        The hash of their bytes.
    """
    equal = {entry.id for entry in entries if is_same(entry, content, file)}
    samples: dict[str, bytes] = {}
    for entry in entries:
        if entry.unordered is not None and entry.unordered not in samples:
            samples[entry.unordered] = Ledger.sample(db, entry.unordered)
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
