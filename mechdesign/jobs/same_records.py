"""Which releases in the ledger were of the records at hand, or of some of them.

The hash of all records in any order shows data sets that are equal (`is_same`). For the others the
ledger has a sample of each data set: the smallest hashes of its records. The same records have the
same hashes, so up to the smaller of the two limits both samples are complete, and the share of the
hashes there that are in both estimates the share of the records (`Content.share_in`). With the
hashes 3, 8, 11, 20 at hand, and 3, 11, 15, 20 in an old release, the share is 3/4.

`releases_of` finds all releases that share records, and the share that they had together. Its
callers compare that with `SAME_FROM`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from mechdesign.formats.census import Content
from mechdesign.jobs.entries import Entry
from mechdesign.jobs.ledger import Ledger

SAME_FROM = 0.5
"""From this share on, records that are unique in both data sets count as the same: by chance alone
it is at most 1/e.
"""

SHARE_ERROR = 0.1
"""The error that is allowed for of an estimated share of records: ten times its standard error."""


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
        share = content.share_in([samples[name] for name in sharing])
    shared: list[Entry] = []
    for entry in entries:
        if entry.id in equal or entry.unordered in sharing:
            shared.append(entry)
    return SharedReleases(share, shared)
