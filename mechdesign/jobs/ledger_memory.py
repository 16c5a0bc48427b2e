"""What a process remembers of a ledger, so that each file of a large folder costs what it holds.

A release compares its records with those of all earlier releases. In a folder of thousands of
files, each file meets the releases of all files before it. `LedgerMemory` names those that can have
anything in common with the records at hand, and only they are read and compared:

- a data set shares records with a sample only if it shares a hash with it (`sharing`);
- a column is that of an earlier release only if both have the same symbols equally often
  (`alike_columns`);
- records without identifiers are those of an earlier release only if that holds of them, or if both
  have as many hashes in common as a certain likeness needs (`alike_bare`).

A release that is named may turn out to have nothing in common, and none is left out.

*Scanned or indexed.* To sort the hashes of thousands of releases takes seconds, and hundreds of
megabytes. A nightly job has one file, or few, and reads the samples one by one instead. The samples
are indexed for the file `SCANNED` + 1 of a process.

*Whether it still fits.* A ledger carries a mark of all of its rows (`ledger_file`). The memory has
the mark of the rows that it was made of. Where the ledger has another one, because another process
has entered something, the memory is made anew. The changes of this process are known row by row
(`ledger_file.MarkedChanges`), and are taken over with the mark that they lead to.

For example, two files of a folder have 20 records each. The hashes of the first file are remembered
with the name of its sample. The 20 hashes of the second are looked for among them by bisection.
None is found, so the two files are not compared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from hashlib import sha256
from sqlite3 import Connection
from typing import Generic, TypeVar

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.census import ALL, Content, Hashes
from mechdesign.jobs.bare_records import CERTAIN, BareContent
from mechdesign.jobs.ledger_file import MarkedChanges, mark_in

EntryT = TypeVar("EntryT")

COLUMN = "column "
"""How the names of released columns begin in the table `samples`."""

BARE = "bare "
"""How the names of records without identifiers begin there."""

SAMPLE = ""
"""How all others begin: samples of data sets, which are named by their hashes."""

ORDER_BYTES = 8
"""Bytes before the content of a column: what its order is worth (`same_records.packed`)."""

FEWEST_SHARED = int(CERTAIN / 2)
"""Fewest hashes in common of two contents that are alike for certain but not whole: a pair is worth
one bit at most, and more than half of the pairs are apart (`bare_records.pairs_bits`).
"""

SAMPLE_WORDS = 2
"""Words before the hashes of a sample: its limit and its size (`census.Content.sample`)."""

SCANNED = 4
"""Contents of a kind for which all samples are read. To index them takes as long as a few scans."""

SELECT_SAMPLES = "SELECT unordered, sample FROM samples"


class LedgerMemory(Generic[EntryT]):
    """The entries of a ledger, and what finds its samples by what is in them.

    Parameters
    ----------
    entry_of : function
        Makes an entry of its text.
    """

    def __init__(self, entry_of: Callable[[str], EntryT]) -> None:
        self._entry_of = entry_of
        self._mark: str | None = None
        self._asked: dict[str, set[str]] = {}
        """For each kind of samples the contents that were looked for."""
        self._unsettled: dict[str, bool] = {}
        """Samples that came (True) or went in a transaction that is going on."""
        self._clear()

    def _clear(self) -> None:
        """Remember nothing."""
        self.entries: dict[int, EntryT] = {}
        """By their numbers, which are their order."""
        self._index: _Index | None = None

    def refresh(self, db: Connection) -> None:
        """Make it fit the ledger, within a transaction that has changed nothing."""
        mark = mark_in(db)
        if mark is not None and mark == self._mark:
            return
        if db.in_transaction:
            self.load(db)
            return
        # In one transaction, or another process could change the rows in between.
        db.execute("BEGIN")
        self.load(db)
        db.execute("COMMIT")

    def load(self, db: Connection) -> None:
        """Read all entries."""
        self._clear()
        for number, text in db.execute(
            "SELECT number, entry FROM releases ORDER BY number"
        ):
            self.entries[number] = self._entry_of(text)
        self._mark = mark_in(db)

    def fits(self, changes: MarkedChanges) -> bool:
        """Whether it is that of the ledger before a transaction: another process may have changed
        it since the memory was made.
        """
        return self._mark is not None and self._mark == changes.before

    def amid(self, changes: MarkedChanges) -> LedgerMemory[EntryT]:
        """What there is amid a transaction that `fits`."""
        view = copy.copy(self)
        view.entries = dict(self.entries)
        view._unsettled = {}
        for has_come, table, row in changes.rows:
            if table == "samples":
                view._unsettled[row[0]] = has_come
            else:
                number, _, _, text = row
                view._change_entry(has_come, number, text)
        return view

    def take_over(self, changes: MarkedChanges) -> None:
        """Follow a transaction of this process, which is on disk."""
        if not self.fits(changes):
            self._mark = None
            return
        for has_come, table, row in changes.rows:
            if table == "samples":
                if self._index is not None:
                    self._index.change(has_come, *row)
            else:
                number, _, _, text = row
                self._change_entry(has_come, number, text)
        self._mark = changes.after

    def _change_entry(self, has_come: bool, number: int, text: str) -> None:
        if not has_come:
            self.entries.pop(number, None)
            return
        last = next(reversed(self.entries), 0)
        self.entries[number] = self._entry_of(text)
        # A later state of an entry goes and comes again, and keeps its place.
        if number < last:
            self.entries = dict(sorted(self.entries.items()))

    def sharing(self, db: Connection, content: Content) -> set[str]:
        """The names of the samples that have a hash of these records."""
        index = self._index_for(db, SAMPLE, content.unordered)
        if index is not None:
            return self._settled(SAMPLE, index.sharing(content))
        hashes = [reading.unique for reading in content.readings]
        for reading in content.readings:
            if reading.single is not None:
                hashes.append(reading.single)
        wanted = np.unique(np.concatenate(hashes))
        names: set[str] = set()
        for name, sample in db.execute(SELECT_SAMPLES):
            if kind_of(name) == SAMPLE and _common(wanted, hashes_of(sample)):
                names.add(name)
        return names

    def alike_bare(self, db: Connection, content: BareContent) -> set[str]:
        """The names of records without identifiers that these may be, in whole or in part."""
        index = self._index_for(db, BARE, content.unordered)
        if index is not None:
            return self._settled(BARE, index.alike_bare(content))
        keys = {*_keys_of(content)}
        wanted = np.unique(content.values)
        names: set[str] = set()
        for name, sample in db.execute(SELECT_SAMPLES):
            if kind_of(name) != BARE:
                continue
            old = BareContent.from_bytes(sample)
            is_part = _common(wanted, old.values) >= FEWEST_SHARED
            if is_part or not keys.isdisjoint(_keys_of(old)):
                names.add(name)
        return names

    def alike_columns(
        self, db: Connection, channel: str, content: BareContent
    ) -> list[list[str]]:
        """The names of the columns that a channel released, and that have the same symbols equally
        often as this one; those with the same bytes stand together.
        """
        index = self._index_for(db, COLUMN, content.unordered)
        if index is not None:
            alike = index.alike_columns(channel, content)
            if not self._unsettled:
                return alike
            names = {name for equal in alike for name in equal}
            settled = self._settled(COLUMN, names)
            return [[name] for name in settled if channel_in(name) == channel]
        keys = {*_keys_of(content)}
        equal: dict[bytes, list[str]] = {}
        for name, sample in db.execute(SELECT_SAMPLES):
            if kind_of(name) != COLUMN or channel_in(name) != channel:
                continue
            old = BareContent.from_bytes(sample[ORDER_BYTES:])
            if not keys.isdisjoint(_keys_of(old)):
                equal.setdefault(sample, []).append(name)
        return list(equal.values())

    def _settled(self, kind: str, names: set[str]) -> set[str]:
        """Names of samples of a kind in the index, and those amid a transaction: what came may be
        alike, and what went is not there.
        """
        for name, has_come in self._unsettled.items():
            if not has_come:
                names.discard(name)
            elif kind_of(name) == kind:
                names.add(name)
        return names

    def _index_for(self, db: Connection, kind: str, content: str) -> _Index | None:
        """The index, if it is worth making; `content` is the hash of what is looked for."""
        asked = self._asked.setdefault(kind, set())
        asked.add(content)
        if self._index is None and len(asked) > SCANNED:
            self._index = _Index()
            for name, sample in db.execute(SELECT_SAMPLES):
                self._index.add(name, sample)
        return self._index


def kind_of(name: str) -> str:
    """What a sample is of, by its name in the ledger."""
    for kind in (COLUMN, BARE):
        if name.startswith(kind):
            return kind
    return SAMPLE


def channel_in(name: str) -> str:
    """The channel in the name of a released column."""
    _, _, channel = name.split(" ", 2)
    return channel


def hashes_of(sample: bytes) -> Hashes:
    """The hashes of a sample of a data set."""
    return np.frombuffer(sample, np.uint64)[SAMPLE_WORDS:]


def _common(wanted: Hashes, hashes: Hashes) -> int:
    """How many of some hashes are among those wanted, which ascend."""
    if not len(wanted):
        return 0
    places = np.searchsorted(wanted, hashes)
    places[places == len(wanted)] = 0
    return int(np.count_nonzero(wanted[places] == hashes))


# ------------------------------------------------------------------------------- index


class _Index:
    """The samples of a ledger by what is in them."""

    def __init__(self) -> None:
        self._samples = _SampleIndex()
        self._bare = _SampleIndex()
        self._equal = _EqualIndex()

    def change(self, has_come: bool, name: str, sample: bytes) -> None:
        """Follow a row that came or went."""
        if has_come:
            self.add(name, sample)
        else:
            # The other index may go on naming it: nobody asks for what has no entry any more.
            self._equal.remove(name)

    def add(self, name: str, sample: bytes) -> None:
        """Enter a sample."""
        kind = kind_of(name)
        if kind == COLUMN:
            content = BareContent.from_bytes(sample[ORDER_BYTES:])
            self._equal.add(channel_in(name), name, content, sample)
        elif kind == BARE:
            content = BareContent.from_bytes(sample)
            self._equal.add(BARE, name, content, sample)
            self._bare.add(name, content.values)
        else:
            self._samples.add(name, hashes_of(sample))

    def sharing(self, content: Content) -> set[str]:
        """As `LedgerMemory.sharing`."""
        names: set[str] = set()
        for reading in content.readings:
            names |= self._samples.having(reading.unique)
            if reading.single is not None:
                names |= self._samples.having(reading.single)
        return names

    def alike_bare(self, content: BareContent) -> set[str]:
        """As `LedgerMemory.alike_bare`."""
        names = self._bare.having(content.values, at_least=FEWEST_SHARED)
        for equal in self._equal.alike(BARE, content):
            names.update(equal)
        return names

    def alike_columns(self, channel: str, content: BareContent) -> list[list[str]]:
        """As `LedgerMemory.alike_columns`."""
        return self._equal.alike(channel, content)


class _SampleIndex:
    """Which samples have a hash.

    The hashes lie in few sorted parts, each less than half as long as the one before. New samples
    wait until somebody asks, and are then a part of their own. While it is not short beside the
    last one, the two are merged. So every hash is merged about as often as the logarithm of their
    number says.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._waiting: list[tuple[int, Hashes]] = []
        """Places in `_names`, and hashes, of samples that are in no part yet."""
        self._parts: list[tuple[Hashes, Integers]] = []
        """The hashes, ascending, and the places of their samples in `_names`."""

    def add(self, name: str, hashes: Hashes) -> None:
        """Enter a sample."""
        if len(hashes):
            self._waiting.append((len(self._names), hashes))
            self._names.append(name)

    def having(self, hashes: Hashes, *, at_least: int = 1) -> set[str]:
        """The names of the samples that have at least so many of these different hashes."""
        self._sort_in()
        found = [np.zeros(0, np.int64)]
        for values, places in self._parts:
            starts = np.searchsorted(values, hashes, "left")
            ends = np.searchsorted(values, hashes, "right")
            for k in np.flatnonzero(ends > starts).tolist():
                found.append(places[starts[k] : ends[k]])
        chosen, times = np.unique(np.concatenate(found), return_counts=True)
        return {self._names[place] for place in chosen[times >= at_least].tolist()}

    def _sort_in(self) -> None:
        """Make the samples that wait a part."""
        if not self._waiting:
            return
        values = [hashes for _, hashes in self._waiting]
        sizes = [*map(len, values)]
        places = [np.repeat([place for place, _ in self._waiting], sizes)]
        size = sum(sizes)
        while self._parts and len(self._parts[-1][0]) < 2 * size:
            of_part, places_of_part = self._parts.pop()
            values.append(of_part)
            places.append(places_of_part)
            size += len(of_part)
        together = np.concatenate(values)
        order = np.argsort(together, kind="stable")
        self._parts.append((together[order], np.concatenate(places)[order]))
        self._waiting = []


class _EqualIndex:
    """Which contents of a group have the same kinds of records equally often."""

    def __init__(self) -> None:
        # By group and by what equal contents have in common, then by the bytes in the ledger.
        self._names: dict[tuple[str, str], dict[bytes, dict[str, None]]] = {}
        self._places: dict[str, tuple[list[tuple[str, str]], bytes]] = {}

    def add(self, group: str, name: str, content: BareContent, stored: bytes) -> None:
        """Enter a content by its name in the ledger."""
        self.remove(name)
        digest = sha256(stored).digest()
        keys = [(group, key) for key in _keys_of(content)]
        self._places[name] = keys, digest
        for key in keys:
            self._names.setdefault(key, {}).setdefault(digest, {})[name] = None

    def remove(self, name: str) -> None:
        """Forget a content."""
        if name not in self._places:
            return
        keys, digest = self._places.pop(name)
        for key in keys:
            names = self._names[key][digest]
            del names[name]
            if not names:
                del self._names[key][digest]

    def alike(self, group: str, content: BareContent) -> list[list[str]]:
        """The names of the contents that are equal to this one, together where their bytes are."""
        found: dict[bytes, list[str]] = {}
        for key in _keys_of(content):
            for digest, names in self._names.get((group, key), {}).items():
                found[digest] = list(names)
        return list(found.values())


def _keys_of(content: BareContent) -> Sequence[str]:
    """What every content has in common that `bare_records.likeness` calls whole beside this one.

    Either the records are equal, or there is each kind the same number of times as often, which is
    known of complete samples alone.
    """
    if content.limit < ALL:
        return (content.unordered,)
    values, counts = content.in_units(ALL)
    kinds = values.astype("<u8").tobytes() + counts.astype("<u8").tobytes()
    return content.unordered, sha256(kinds).hexdigest()
