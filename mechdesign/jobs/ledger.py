"""The ledger: which data were released through which channels, and what is known of their records.

It holds no value of anybody. Data sets and records stand in it as hashes under the key, which lies
in a file of its own (``LEDGER.key``, mode 0600). Whoever has the ledger alone learns how many
records were released where and when, and can test no guess; whoever has the key as well can undo
releases, and test guesses of records.

`Ledger` reads and writes the tables of the file (`ledger_file.TABLES`). It gives the keys of draws,
and for each release it holds, in the order in which a job enters them:

- its entry (`enter`, in the table `releases`), with a sample of the hashes of its records (in
  `samples`);
- a sample of the records without their identifiers (`remember_bare`, in `samples` by ``bare ID``);
- a sample of the symbols that each channel released (`remember_column`, in `samples` by ``column ID
  CHANNEL``);
- for each draw, the hashes of identified records with their encrypted symbols (`remember`, in
  `known`), and the identifiers that were not in their plain spelling (`remember_spellings`, in
  `known` by the job ``spellings JOB``);
- of people with several records, the hashes of the people and of their records (`remember_people`,
  in `known` by the job ``people``).

For example, a survey is released with its column ``id`` as identifier. `known` then has the hash of
every ``id`` and, encrypted, the number of the symbol in its record. When the survey is released
again with more records, the old ones are found by their hashes, and a symbol that has changed since
is noticed (`identified_records`).

Its methods get the connection `db` of a block ``with ledger.changing() as db:`` from the caller, so
that the caller decides what is one transaction. Those that only read take that of `reading` too.

*Releases that may come to nothing* are those of a folder, and rehearsals. A job enters its releases
as in any ledger. `ProvisionalLedger` translates places in the temporary folder to their last names
on the way in and out (`_final_name`): the file ``.out.part/a.csv`` is ``out/a.csv`` in the ledger.
It keeps what was entered (`entered`), so that `withdraw` can remove it if the folder is not
published. In a rehearsal the first entry ends the release with `Rehearsed`, after all checks.

*Entries* are JSON. An `Entry` has one `Drawn` for each channel of the release: how the channel was
used (`Use`), and which draw it was. A job enters it as `FINISHING` when the data are on disk, and
once more as `DONE` when all files have their names. So `FINISHING` in a ledger at rest is a run
that was killed in between. In part, an entry with one channel is::

    {"target": "/data/out.csv", "state": "done", "records": 1000, "identity": [],
     "output": "9f86..", "unordered": "3b1c..",
     "drawn": [{"use": {"channel": "52ab..", "columns": ["job"], "form": "label"},
                "job": "rows 5f0c..", "draw": 0}]}
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import AliasChoices, Field

from mechdesign.core.documents import Digest, Record
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, real_path
from mechdesign.core.integers import Integers
from mechdesign.formats.census import Content, Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.jobs.keys import key_of_draw
from mechdesign.jobs.ledger_file import (
    NAME,
    LedgerFile,
    MarkedChanges,
    refuse_lone_key,
)
from mechdesign.jobs.ledger_memory import BARE, COLUMN, LedgerMemory
from mechdesign.release.draws import Key

# ------------------------------------------------------------------------------ entries

FINISHING = "finishing"
"""The state of a release whose data are on disk, while its files are getting their names."""

DONE = "done"
"""The state of a release that is complete."""

Settings: TypeAlias = dict[str, Any]
"""Plain JSON values: whatever decides, beside data, channels and draws, which bytes are written."""

Natural = Annotated[int, Field(ge=0)]


class Use(Record):
    """How a run uses a channel, given by its digest.

    `columns` are the useful columns in the table, `form` is what is released of them, and the rest
    are options: what becomes of unknown symbols, of empty cells (`missing`) and of changed symbols.
    `draws` is how records are drawn: each by itself, or with fixed counts.
    """

    channel: Digest
    columns: tuple[str, ...]
    form: str
    unknown: str = "refuse"
    # Ledgers of earlier versions call it "null".
    missing: Annotated[str, Field(validation_alias=AliasChoices("missing", "null"))] = (
        "refuse"
    )
    normalise: str = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()
    changed: str = "refuse"
    draws: str = "independent"


class Drawn(Record):
    """The draw of a channel: one job is one key, draw 0 its own and others derived from it."""

    use: Use
    job: str
    draw: Natural
    channel_file: str | None = None


class Entry(Record):
    """One release.

    `file`, `ordered` and `unordered` are hashes of the data set under the key of the ledger: of its
    bytes and how they are read, of its records in order, and of its records in any order. `joint`
    is the budget that all draws of these records have together, where the user asked for a further
    one. `people` is the number of people whose records these are, where they are drawn together.
    Times are UTC, in ISO format.
    """

    id: str
    target: str
    source: str | None = None
    state: Literal["finishing", "done"]
    started: str
    finished: str | None = None
    output: Digest | None
    records: Natural
    people: Natural | None = None
    identity: tuple[str, ...] = ()
    drawn: tuple[Drawn, ...]
    settings: Settings = Field(default_factory=dict)
    fresh: bool = False
    versions: dict[str, str] = Field(default_factory=dict)
    file: str | None = None
    ordered: str | None = None
    unordered: str | None = None
    joint: dict[str, Any] | None = None

    def of(self, channel: str) -> Drawn | None:
        """What it drew through a channel, given by its digest; at most once (`check_uses`)."""
        for drawn in self.drawn:
            if drawn.use.channel == channel:
                return drawn
        return None

    @property
    def data_name(self) -> str | None:
        """A short name of the data set, which is the same for the same records."""
        if not self.unordered:
            return None
        return sha256(self.unordered.encode()).hexdigest()[:8]

    def same_release(self, other: Entry) -> bool:
        """Whether both write the same bytes."""
        # The input, the random numbers, and whatever else decides which bytes are written. Neither
        # place nor time nor version does, and the caller has asked for the releases to one place.
        return (
            self.file == other.file
            and self._draws() == other._draws()
            and self.settings == other.settings
        )

    def _draws(self) -> list[tuple[Use, str, int]]:
        """The draws without the files of their channels, which may have moved."""
        return [(drawn.use, drawn.job, drawn.draw) for drawn in self.drawn]


# ------------------------------------------------------------------------------- ledger

PEOPLE = "people"
"""Under which job the table `known` has the people of a release."""

KNOWN_PART = 1 << 16
"""Fewest records in a pair of arrays of `Ledger.known`, but for the last one."""

SHORT_PART = 1 << 10
"""Most records of one call of `Ledger.remember` whose symbols stay in memory: of long ones reading
them costs more than what is done for each call.
"""

HASH_BYTES = 8
"""Bytes of the hash of a record."""


class Rehearsed(Exception):
    """All that can be checked of a release has been checked; its arguments are the entry that the
    ledger would hold, and the notices for the user.
    """


class Ledger(LedgerFile):
    """A ledger that is open: its file and its key are there, and fit.

    Parameters are those of `LedgerFile`; `hasher` gives the hashes of records under the key.
    """

    def __init__(self, path: PathLike | None = None, *, key: Key | None = None) -> None:
        super().__init__(path, key=key)
        self.hasher = RowHasher(self.key.derived("ledger", "records").secret)
        self._memory = LedgerMemory(Entry.model_validate_json)
        self._deciphered: dict[bytes, NDArray[np.int32]] = {}
        """Symbols of `known` by their nonces, each of which is used once."""

    def _follow(self, changes: MarkedChanges) -> None:
        self._memory.take_over(changes)

    def memory(self, db: sqlite3.Connection) -> LedgerMemory[Entry]:
        """All releases, and what finds those that have something in common with others."""
        if self._changes is None or not self._changes.rows:
            self._memory.refresh(db)
            return self._memory
        # What was changed in a transaction that is going on may still be undone.
        if self._memory.fits(self._changes):
            return self._memory.amid(self._changes)
        memory = LedgerMemory(Entry.model_validate_json)
        memory.load(db)
        return memory

    def file_hash(self, sha256: str, reading: str = "") -> str:
        """The name of a data set in the ledger: a hash of its bytes and of how they are read.

        It depends on the key, so the SHA-256 of a guessed file finds nothing.
        """
        return self.key.derived("ledger", "file", sha256, reading).secret.hex()[:32]

    def key_of(self, drawn: Drawn) -> Key:
        """The key of a draw."""
        return key_of_draw(self.key.derived("job", drawn.job), drawn.draw)

    def releases(self, db: sqlite3.Connection) -> list[Entry]:
        """All releases in their order."""
        # By number, the order of the transactions: a run that began later may be entered first.
        return [*self.memory(db).entries.values()]

    def last_of(self, db: sqlite3.Connection, target: str) -> Entry | None:
        """The latest release to a place."""
        for entry in reversed(self.memory(db).entries.values()):
            if entry.target == target:
                return entry
        return None

    def enter(
        self, db: sqlite3.Connection, entry: Entry, content: Content | None = None
    ) -> None:
        """Enter a release, or a later state of it."""
        # A later state replaces the entry, and keeps its number: the order is that of the first.
        db.execute(
            "INSERT INTO releases (id, target, entry) VALUES (?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET entry = excluded.entry",
            (entry.id, entry.target, entry.model_dump_json()),
        )
        # Equal data sets share one sample, which is a function of their records.
        if content is not None:
            db.execute(
                "INSERT OR IGNORE INTO samples VALUES (?, ?)",
                (content.unordered, content.sample()),
            )

    @staticmethod
    def remove(db: sqlite3.Connection, entry: Entry) -> None:
        """Take back a release that was not made.

        Its sample stays: other releases may have the same records.
        """
        db.execute("DELETE FROM releases WHERE id = ?", (entry.id,))
        db.execute("DELETE FROM known WHERE release = ?", (entry.id,))
        db.execute("DELETE FROM samples WHERE unordered = ?", (name_of_bare(entry),))
        for drawn in entry.drawn:
            name = name_of_column(entry, drawn.use.channel)
            db.execute("DELETE FROM samples WHERE unordered = ?", (name,))

    def take_over(self, db: sqlite3.Connection, old: Entry, new: Entry) -> None:
        """Remove a release for another one that has its records."""
        # The symbols stay known throughout, since the records may have been seen.
        db.execute("UPDATE known SET release = ? WHERE release = ?", (new.id, old.id))
        db.execute("DELETE FROM releases WHERE id = ?", (old.id,))

    def known(
        self, db: sqlite3.Connection, drawn: Drawn, key: Key
    ) -> list[tuple[Hashes, Integers]]:
        """Hashes of the records that a draw was used on, and the symbols that they had.

        They come in pairs of arrays, in the order of the calls of `remember`. What a call gave is
        sorted by hash, and stands beside that of others where it is short.
        """
        rows = db.execute(
            "SELECT nonce, records, symbols FROM known WHERE job = ? AND channel = ? AND draw = ? "
            "ORDER BY rowid",
            (drawn.job, drawn.use.channel, drawn.draw),
        )
        known: list[tuple[Hashes, Integers]] = []
        hashes: list[Hashes] = []
        codes: list[NDArray[np.int32]] = []
        size = 0
        for nonce, records, symbols in rows:
            plain = self._deciphered.get(nonce)
            if plain is None:
                plain = np.frombuffer(_ciphered(key, nonce, symbols), "<i4")
            # A folder of many files asks for all of them once more for each file.
            if len(plain) <= SHORT_PART:
                self._deciphered[nonce] = plain
            hashes.append(np.frombuffer(records, "<u8"))
            codes.append(plain)
            size += len(plain)
            if size >= KNOWN_PART:
                known.append((np.concatenate(hashes), _together(codes)))
                hashes, codes, size = [], [], 0
        if hashes:
            known.append((np.concatenate(hashes), _together(codes)))
        return known

    @staticmethod
    def remember(
        db: sqlite3.Connection,
        entry: Entry,
        drawn: Drawn,
        key: Key,
        hashes: Hashes,
        codes: Integers,
    ) -> None:
        """Keep hashes and symbols for `known`; the symbols are encrypted under the key of the
        draw.
        """
        if not len(hashes):
            return
        # A new one for each row: two texts under one key and nonce would tell their difference.
        nonce = secrets.token_bytes(16)
        symbols = codes.astype("<i4", copy=False).tobytes()
        row = (
            drawn.job,
            drawn.use.channel,
            drawn.draw,
            entry.id,
            nonce,
            hashes.astype("<u8", copy=False).data,
            _ciphered(key, nonce, symbols),
        )
        db.execute("INSERT INTO known VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    @staticmethod
    def spellings(db: sqlite3.Connection, drawn: Drawn) -> tuple[Hashes, Hashes]:
        """The identifiers of a draw that were not in their plain spelling: hashes of that and of
        the text as it was, by the plain one.
        """
        rows = db.execute(
            "SELECT records, symbols FROM known WHERE job = ? AND channel = ? AND draw = ?",
            (_spellings_of(drawn), drawn.use.channel, drawn.draw),
        )
        plain = [np.zeros(0, np.uint64)]
        written = [np.zeros(0, np.uint64)]
        for plain_bytes, written_bytes in rows:
            plain.append(np.frombuffer(plain_bytes, "<u8"))
            written.append(np.frombuffer(written_bytes, "<u8"))
        # Of several texts with one plain spelling, the first that was entered counts.
        hashes, first = np.unique(np.concatenate(plain), return_index=True)
        return hashes, np.concatenate(written)[first]

    @staticmethod
    def remember_spellings(
        db: sqlite3.Connection,
        entry: Entry,
        drawn: Drawn,
        plain: Hashes,
        written: Hashes,
    ) -> None:
        """Keep hashes for `spellings`."""
        if not len(plain):
            return
        # Both columns are hashes under the key of the ledger, so nothing is encrypted, and the
        # nonce is empty.
        row = (
            _spellings_of(drawn),
            drawn.use.channel,
            drawn.draw,
            entry.id,
            b"",
            plain.astype("<u8", copy=False).tobytes(),
            written.astype("<u8", copy=False).tobytes(),
        )
        db.execute("INSERT INTO known VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    @staticmethod
    def remember_people(
        db: sqlite3.Connection, entry: Entry, persons: Hashes, records: Hashes
    ) -> None:
        """Keep the hashes of the people of a release, and of their records, for `people`."""
        # Both are hashes under the key of the ledger, so nothing is encrypted.
        row = (
            PEOPLE,
            entry.drawn[0].use.channel,
            entry.drawn[0].draw,
            entry.id,
            b"",
            persons.astype("<u8", copy=False).tobytes(),
            records.astype("<u8", copy=False).tobytes(),
        )
        db.execute("INSERT INTO known VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    @staticmethod
    def people(db: sqlite3.Connection, entry: Entry) -> tuple[Hashes, Hashes] | None:
        """What `remember_people` kept; None of a release of records."""
        row = db.execute(
            "SELECT records, symbols FROM known WHERE job = ? AND release = ?",
            (PEOPLE, entry.id),
        ).fetchone()
        if row is None:
            return None
        return np.frombuffer(row[0], "<u8"), np.frombuffer(row[1], "<u8")

    @staticmethod
    def new_records(db: sqlite3.Connection, entry: Entry, drawn: Drawn) -> int:
        """How many identified records a release drew for the first time."""
        (size,) = db.execute(
            "SELECT sum(length(records)) FROM known WHERE release = ? AND job = ? AND channel = ?",
            (entry.id, drawn.job, drawn.use.channel),
        ).fetchone()
        return (size or 0) // HASH_BYTES

    @staticmethod
    def sample(db: sqlite3.Connection, unordered: str) -> bytes:
        """The sample of a data set that was released."""
        row = db.execute(
            "SELECT sample FROM samples WHERE unordered = ?", (unordered,)
        ).fetchone()
        return row[0]

    @staticmethod
    def remember_bare(db: sqlite3.Connection, entry: Entry, bare: bytes) -> None:
        """Keep what is known of the records of a release without their identifiers."""
        db.execute(
            "INSERT OR REPLACE INTO samples VALUES (?, ?)", (name_of_bare(entry), bare)
        )

    @staticmethod
    def bare(db: sqlite3.Connection, entry: Entry) -> bytes | None:
        """What `remember_bare` kept; None of a release of an earlier version, or on a cluster."""
        row = db.execute(
            "SELECT sample FROM samples WHERE unordered = ?", (name_of_bare(entry),)
        ).fetchone()
        return None if row is None else row[0]

    @staticmethod
    def remember_column(
        db: sqlite3.Connection, entry: Entry, channel: str, column: bytes
    ) -> None:
        """Keep what is known of the symbols that a channel has released."""
        db.execute(
            "INSERT OR REPLACE INTO samples VALUES (?, ?)",
            (name_of_column(entry, channel), column),
        )

    @staticmethod
    def column(db: sqlite3.Connection, entry: Entry, channel: str) -> bytes | None:
        """What `remember_column` kept; None of a release of an earlier version, of whole rows, or
        on a cluster.
        """
        row = db.execute(
            "SELECT sample FROM samples WHERE unordered = ?",
            (name_of_column(entry, channel),),
        ).fetchone()
        return None if row is None else row[0]


def name_of_column(entry: Entry, channel: str) -> str:
    """Under which name the table `samples` has the symbols that a channel has released."""
    return f"{COLUMN}{entry.id} {channel}"


def name_of_bare(entry: Entry) -> str:
    """Under which name the table `samples` has the records of a release without identifiers."""
    return f"{BARE}{entry.id}"


def _spellings_of(drawn: Drawn) -> str:
    """Under which job the table `known` has the spellings of the identifiers of a draw."""
    return f"spellings {drawn.job}"


def _together(parts: Sequence[NDArray[np.int32]]) -> Integers:
    """Symbols of several calls of `Ledger.remember`."""
    return np.concatenate(parts).astype(np.int64)


def _ciphered(key: Key, nonce: bytes, text: bytes) -> bytes:
    """AES-256 in counter mode, which undoes itself."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = algorithms.AES(key.derived("known symbols").secret)
    return Cipher(cipher, modes.CTR(nonce)).encryptor().update(text)


# ------------------------------------------------------------------- provisional ledger


class ProvisionalLedger(Ledger):
    """A ledger that takes back what was entered, unless the releases are published.

    Files in the folder `stage` are known by the names that they get in `final`, and are withdrawn
    unless `entered` is cleared. In a rehearsal nothing is entered: where a release would be,
    `Rehearsed` is raised, and `rehearsed` has the entry.
    """

    def __init__(
        self,
        path: PathLike,
        stage: Path,
        final: Path,
        *,
        rehearsal: bool,
        key: Key | None,
    ) -> None:
        self.stage = stage
        self.final = final
        self.entered: list[Entry] = []
        self.rehearsed: list[Entry] = []
        self._rehearsal = rehearsal
        # Releases that continue one that was killed: what that one wrote may have been seen.
        self._continued: set[str] = set()
        if rehearsal and not os.path.exists(path):
            refuse_lone_key(real_path(path))
            # A rehearsal makes no ledger where none is.
            path = Ledger(stage / f".{NAME}", key=key).path
        super().__init__(path, key=key)

    def last_of(self, db: Connection, target: str) -> Entry | None:
        """The latest release to a place."""
        entry = super().last_of(db, self._final_name(target))
        if entry is None:
            return None
        return entry.model_copy(update={"target": target})

    def enter(
        self, db: Connection, entry: Entry, content: Content | None = None
    ) -> None:
        """Enter a release, or what has become of it."""
        if self._rehearsal:
            self.rehearsed.append(entry)
            raise Rehearsed(entry)
        final = entry.model_copy(update={"target": self._final_name(entry.target)})
        super().enter(db, final, content)
        if content is not None and entry.id not in self._continued:
            self.entered.append(entry)

    def take_over(self, db: Connection, old: Entry, new: Entry) -> None:
        """Replace a release by another one, which is never withdrawn."""
        super().take_over(db, old, new)
        self._continued.add(new.id)

    def withdraw(self) -> None:
        """Forget what was entered, unless others have released something since, who may rely on
        it.
        """
        if not self.entered:
            return
        # An error is being raised already, and an entry too many does no harm: at worst it refuses
        # a draw that would have been the first one.
        with suppress(InputError), self.changing() as db:
            ours = [entry.id for entry in self.entered]
            all_ids = [entry.id for entry in self.releases(db)]
            # All that was entered from the first of ours on: nothing else must be among it.
            since = all_ids[all_ids.index(ours[0]) :]
            if set(since) <= set(ours):
                for entry in self.entered:
                    self.remove(db, entry)

    def _final_name(self, target: str) -> str:
        """The place of a file of the temporary folder in the last one; any other as it is."""
        path = Path(target)
        if self.stage not in path.parents:
            return target
        return os.fspath(self.final / path.relative_to(self.stage))


@contextmanager
def opened_ledger(
    path: PathLike | None, key: Key | None, *, rehearsal: bool
) -> Generator[Ledger | None]:
    """The ledger, if there is a path; a rehearsal leaves it as it is."""
    if path is None:
        yield None
    elif not rehearsal:
        yield Ledger(path, key=key)
    else:
        with TemporaryDirectory() as scratch:
            stage = Path(scratch)
            yield ProvisionalLedger(path, stage, stage, rehearsal=True, key=key)
