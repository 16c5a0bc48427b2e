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

*Whether it still fits.* A ledger carries a mark of all of its rows (`ledger_file`). The memory has
the mark of the rows that it was made of. Where the ledger has another one, because another process
has entered something, the memory is made anew. The changes of this process are known row by row
(`ledger_file.MarkedChanges`), and are taken over with the mark that they lead to.

For example, two files of a folder have 20 records each. The hashes of the first file are remembered
with the name of its sample. The 20 hashes of the second are looked for among them by bisection.
None is found, so the two files are not compared.
"""

from __future__ import annotations

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

ORDER_BYTES = 8
"""Bytes before the content of a column: what its order is worth (`same_records.packed`)."""

FEWEST_SHARED = int(CERTAIN / 2)
"""Fewest hashes in common of two contents that are alike for certain but not whole: a pair is worth
one bit at most, and more than half of the pairs are apart (`bare_records.pairs_bits`).
"""

SAMPLE_WORDS = 2
"""Words before the hashes of a sample: its limit and its size (`census.Content.sample`)."""


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
        self._clear()

    def _clear(self) -> None:
        """Remember nothing."""
        self.entries: dict[int, EntryT] = {}
        """By their numbers, which are their order."""
        self._samples = _SampleIndex()
        self._bare = _SampleIndex()
        self._equal = _EqualIndex()

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
        """Read all rows."""
        self._clear()
        for number, text in db.execute(
            "SELECT number, entry FROM releases ORDER BY number"
        ):
            self.entries[number] = self._entry_of(text)
        for name, sample in db.execute("SELECT unordered, sample FROM samples"):
            self._add_sample(name, sample)
        self._mark = mark_in(db)

    def take_over(self, changes: MarkedChanges) -> None:
        """Follow a transaction of this process, which is on disk."""
        # Another process may have changed the ledger since the memory was made.
        if self._mark is None or self._mark != changes.before:
            self._mark = None
            return
        for has_come, table, row in changes.rows:
            if table == "samples":
                self._change_sample(has_come, *row)
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

    def _change_sample(self, has_come: bool, name: str, sample: bytes) -> None:
        if has_come:
            self._add_sample(name, sample)
        else:
            # The other index may go on naming it: nobody asks for what has no entry any more.
            self._equal.remove(name)

    def _add_sample(self, name: str, sample: bytes) -> None:
        if name.startswith(COLUMN):
            _, _, channel = name.split(" ", 2)
            content = BareContent.from_bytes(sample[ORDER_BYTES:])
            self._equal.add(channel, name, content, sample)
        elif name.startswith(BARE):
            content = BareContent.from_bytes(sample)
            self._equal.add(BARE, name, content, sample)
            self._bare.add(name, content.values)
        else:
            self._samples.add(name, np.frombuffer(sample, np.uint64)[SAMPLE_WORDS:])

    def sharing(self, content: Content) -> set[str]:
        """The names of the samples that have a hash of these records."""
        names: set[str] = set()
        for reading in content.readings:
            names |= self._samples.having(reading.unique)
            if reading.single is not None:
                names |= self._samples.having(reading.single)
        return names

    def alike_bare(self, content: BareContent) -> set[str]:
        """The names of records without identifiers that these may be, in whole or in part."""
        names = self._bare.having(content.values, at_least=FEWEST_SHARED)
        for equal in self._equal.alike(BARE, content):
            names.update(equal)
        return names

    def alike_columns(self, channel: str, content: BareContent) -> list[list[str]]:
        """The names of the columns that a channel released, and that have the same symbols equally
        often as this one; those with the same bytes stand together.
        """
        return self._equal.alike(channel, content)


class _SampleIndex:
    """Which samples have a hash.

    The hashes lie in few sorted parts, each less than half as long as the one before. A new sample
    is a part of its own. While it is not short beside the last one, the two are merged. So every
    hash is merged about as often as the logarithm of their number says.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._parts: list[tuple[Hashes, Integers]] = []
        """The hashes, ascending, and the places of their samples in `_names`."""

    def add(self, name: str, hashes: Hashes) -> None:
        """Enter a sample."""
        if not len(hashes):
            return
        values = np.sort(hashes)
        places = np.full(len(values), len(self._names))
        self._names.append(name)
        while self._parts and len(self._parts[-1][0]) < 2 * len(values):
            old_values, old_places = self._parts.pop()
            values = np.concatenate([old_values, values])
            places = np.concatenate([old_places, places])
            order = np.argsort(values, kind="stable")
            values = values[order]
            places = places[order]
        self._parts.append((values, places))

    def having(self, hashes: Hashes, *, at_least: int = 1) -> set[str]:
        """The names of the samples that have at least so many of these different hashes."""
        found = [np.zeros(0, np.int64)]
        for values, places in self._parts:
            starts = np.searchsorted(values, hashes, "left")
            ends = np.searchsorted(values, hashes, "right")
            for k in np.flatnonzero(ends > starts).tolist():
                found.append(places[starts[k] : ends[k]])
        chosen, times = np.unique(np.concatenate(found), return_counts=True)
        return {self._names[place] for place in chosen[times >= at_least].tolist()}


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
