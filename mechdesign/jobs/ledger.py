"""The ledger: one SQLite file that knows which data were released through which channels, and the key beside it.

It holds no value of anybody. Data sets and records stand in it as hashes under the key, which lies in a file of its own
(``LEDGER.key``, mode 0600): whoever has the ledger alone learns how many records were released where and when, and can
test no guess; whoever has the key as well can undo releases, and test guesses of records.

Every change is one transaction with a rollback journal (write-ahead logging needs shared memory, which no network drive
has), on disk when it is over. Several processes take turns.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import quote

import numpy as np
from pydantic import Field

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, real_path, reason
from mechdesign.core.integers import Integers
from mechdesign.core.nameless_file import MODE
from mechdesign.core.records import Digest, Record
from mechdesign.core.undoing import on_failure
from mechdesign.formats.digests import Content, Hashes, RowHasher
from mechdesign.jobs.keys import check_of, create_key, key_of_draw, read_key
from mechdesign.release.draws import Key

NAME = "ledger.db"
FOLDER_MODE = 0o700

PATIENCE = 30.0
"""Seconds to wait for other processes, each of which has the ledger for milliseconds."""

APPLICATION, VERSION = 0x6D64_6C67, 1
"""What SQLite's own header says of the file: the letters mdlg, and the version of the tables."""

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""What SQLite says of a file that it, or a ledger's table, cannot be read from."""

TABLES = """
CREATE TABLE releases (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, target TEXT NOT NULL, entry TEXT NOT NULL);
CREATE TABLE samples (unordered TEXT PRIMARY KEY, sample BLOB NOT NULL);
CREATE TABLE keys (job TEXT PRIMARY KEY, path TEXT NOT NULL, fingerprint TEXT NOT NULL);
CREATE TABLE known (job TEXT NOT NULL, channel TEXT NOT NULL, draw INTEGER NOT NULL, release TEXT NOT NULL,
                    nonce BLOB NOT NULL, records BLOB NOT NULL, symbols BLOB NOT NULL);
"""
"""Of a release its entry as JSON; of a data set its sample; where the key of the ledger lies; of records by identifier
their hash and, encrypted, the number of their symbol."""

_OWN = "SELECT fingerprint FROM keys WHERE job = ''"


def default_path() -> Path:
    """The ledger in the user's data folder."""
    if "XDG_DATA_HOME" in os.environ:
        base = Path(os.environ["XDG_DATA_HOME"])
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path.home() / (
            "Library/Application Support"
            if sys.platform == "darwin"
            else ".local/share"
        )
    return base / "mechdesign" / NAME


FINISHING, DONE = "finishing", "done"

Settings: TypeAlias = dict[str, Any]
"""Plain JSON values: whatever decides, beside data, channels and draws, which bytes are written."""

Natural = Annotated[int, Field(ge=0)]


class Use(Record):
    """How a run uses a channel."""

    channel: Digest
    columns: tuple[str, ...]
    form: str
    unknown: str = "refuse"
    null: str = "refuse"
    normalise: str = "none"
    changed: str = "refuse"


class Drawn(Record):
    """The draw of a channel: one job is one key, draw 0 its own and others derived from it."""

    use: Use
    job: str
    draw: Natural
    channel_file: str | None = None


class Entry(Record):
    """One release.

    `state` is ``finishing`` from the moment when all data are on disk and files are about to get their names; then
    ``done``. `file`, `ordered` and `unordered` are hashes of the data set under the key of the ledger: of its bytes
    and how they are read, of its records in order, in any order. `joint` is the budget that all draws of these records
    have together, where the user asked for a further one. Times are UTC, in ISO format.
    """

    id: str
    target: str
    source: str | None = None
    state: Literal["finishing", "done"]
    started: str
    finished: str | None = None
    output: Digest | None
    records: Natural
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
        """What it drew through a channel."""
        return next((each for each in self.drawn if each.use.channel == channel), None)

    @property
    def data_name(self) -> str | None:
        """A short name of the data set, which is the same for the same records."""
        return (
            sha256(self.unordered.encode()).hexdigest()[:8] if self.unordered else None
        )

    def same_release(self, other: Entry) -> bool:
        """Whether both write the same bytes."""
        mine, others = (
            [(d.use, d.job, d.draw) for d in entry.drawn] for entry in (self, other)
        )
        return (
            self.file == other.file
            and mine == others
            and self.settings == other.settings
        )


class Rehearsed(Exception):
    """All that can be checked of a release has been checked; its argument is the entry that the ledger would hold."""


class Ledger:
    """A ledger and its key; opening it makes both where they are not there."""

    def __init__(self, path: PathLike | None = None, *, key: Key | None = None) -> None:
        """A `key` that is given is kept elsewhere: none lies beside the ledger."""
        self._given = key
        given = default_path() if path is None else Path(path)
        self.path = real_path(given)
        if self.path.is_dir() or not self.path.name:
            raise InputError(
                f"{given} is a folder; give the name of a file for the ledger (--ledger)"
            )
        self.key_path = self.path.with_name(self.path.name + ".key")
        self._open()
        self.hasher = RowHasher(self.key.derived("ledger", "records").secret)

    def _open(self) -> None:
        try:
            if self.path == real_path(default_path()):
                self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            key_was_there = os.path.lexists(
                self.key_path
            )  # looked for first: it comes into being last
            if not self.path.exists():
                if key_was_there:
                    raise InputError(
                        f"there is no ledger {self.path}, but its key {self.key_path.name} is there: put the ledger "
                        "back, or remove the key if nothing was ever released with it"
                    )
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, MODE))
            elif self.path.stat().st_size and not begins(
                self.path, b"SQLite format 3\x00"
            ):
                raise InputError(
                    f"{self.path} is not a ledger (no SQLite file); name another (--ledger)"
                )
        except OSError as error:
            raise self._refused(reason(error)) from None
        if self._is_ready():
            return
        with self.changing() as db:
            if not self._has_tables(db):
                for statement in TABLES.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            row = db.execute(_OWN).fetchone()
            # The key last: after a crash in between, the ledger gets another one as long as nothing was released.
            if (
                self._given is None
                and not os.path.lexists(self.key_path)
                and not self._count(db)
            ):
                self.key = Key.fresh()
                create_key(self.key_path, self.key)
            else:
                self._read_key(row and row[0], used=bool(self._count(db)))
            own = ("", os.fspath(self.key_path), check_of(self.key))
            db.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", own)

    def _is_ready(self) -> bool:
        """Read the key, where the ledger has its tables and its key, so that nothing need be written."""
        if not self.path.stat().st_size or (
            self._given is None and not os.path.lexists(self.key_path)
        ):
            return False
        with self.reading() as db:
            row = self._has_tables(db) and db.execute(_OWN).fetchone()
            if not row:
                return False
            self._read_key(row[0], used=bool(self._count(db)))
            return check_of(self.key) == row[0]

    def _has_tables(self, db: sqlite3.Connection) -> bool:
        """Whether the file is a ledger, or is empty; refuses what it is of anything else."""
        asked = (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
        application, version, tables = (
            db.execute(question).fetchone()[0] for question in asked
        )
        if tables and (application, version) != (APPLICATION, VERSION):
            known = (
                f"of version {version}"
                if application == APPLICATION
                else "of another program"
            )
            raise InputError(
                f"{self.path} is a file {known}, and no ledger of version {VERSION}"
            )
        return bool(tables)

    @staticmethod
    def _count(db: sqlite3.Connection) -> int:
        return db.execute("SELECT count(*) FROM releases").fetchone()[0]

    def _read_key(self, fingerprint: str | None, *, used: bool) -> None:
        if self._given is None and used and not os.path.lexists(self.key_path):
            raise InputError(
                f"the key file {self.key_path} of the ledger is gone, and without it nobody can tell which data have "
                "been released: put it back, say where the key is (--key-from), or begin another ledger (--ledger "
                "FILE), which forgets them all"
            )
        self.key = self._given or read_key(self.key_path)
        if used and check_of(self.key) != fingerprint:
            what = (
                f"the key file {self.key_path}"
                if self._given is None
                else "the key of --key-from"
            )
            raise InputError(
                f"{what} is not the one of the ledger {self.path}; another key would draw the same records a second "
                "time: give the right one"
            )

    @contextmanager
    def changing(self) -> Generator[sqlite3.Connection]:
        """A transaction: all of it is on disk at the end of the block, or nothing of it if the block fails."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            with on_failure(db.rollback):  # of nothing, where it has ended
                yield db
                db.execute("COMMIT")

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection, to look; works in read-only places, too."""
        try:
            place = f"file:{quote(os.fspath(self.path))}?mode=rw"
            db = sqlite3.connect(
                place, uri=True, timeout=PATIENCE, isolation_level=None
            )
            try:
                # The folder is written, too, before a journal counts as gone.
                db.execute("PRAGMA synchronous = EXTRA")
                yield db
            finally:
                db.close()
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise InputError(
                    f"another process keeps the ledger {self.path} busy; try again"
                ) from None
            if code in DAMAGE:
                told = f"the ledger {self.path} is damaged ({error}); put a copy of it back"
                raise InputError(told) from None
            why = (
                "read-only file system"
                if code == sqlite3.SQLITE_READONLY
                else str(error)
            )
            raise self._refused(why) from None

    def _refused(self, why: str) -> InputError:
        return InputError(
            f"the ledger {self.path} cannot be written: {why}; name another place (--ledger)"
        )

    def file_hash(self, sha256: str, reading: str = "") -> str:
        """A data set's bytes, and how they are read, as the ledger knows them."""
        return self.key.derived("ledger", "file", sha256, reading).secret.hex()[:32]

    def key_of(self, drawn: Drawn) -> Key:
        """The key of a draw."""
        return key_of_draw(self.key.derived("job", drawn.job), drawn.draw)

    @staticmethod
    def releases(db: sqlite3.Connection) -> list[Entry]:
        """All releases in their order."""
        rows = db.execute("SELECT entry FROM releases ORDER BY number")
        return [Entry.model_validate_json(text) for (text,) in rows]

    def last_of(self, db: sqlite3.Connection, target: str) -> Entry | None:
        """The latest release to a place."""
        last = (
            "SELECT entry FROM releases WHERE target = ? ORDER BY number DESC LIMIT 1"
        )
        row = db.execute(last, (target,)).fetchone()
        return row and Entry.model_validate_json(row[0])

    def enter(
        self, db: sqlite3.Connection, entry: Entry, content: Content | None = None
    ) -> None:
        """Enter a release, or what has become of it."""
        db.execute(
            "INSERT INTO releases (id, target, entry) VALUES (?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET entry = excluded.entry",
            (entry.id, entry.target, entry.model_dump_json()),
        )
        if content is not None:
            db.execute(
                "INSERT OR IGNORE INTO samples VALUES (?, ?)",
                (content.unordered, content.sample()),
            )

    @staticmethod
    def remove(db: sqlite3.Connection, entry: Entry) -> None:
        """Take back a release that was not made."""
        db.execute("DELETE FROM releases WHERE id = ?", (entry.id,))
        db.execute("DELETE FROM known WHERE release = ?", (entry.id,))

    def take_over(self, db: sqlite3.Connection, old: Entry, new: Entry) -> None:
        """Remove a release for another one that has its records."""
        db.execute("UPDATE known SET release = ? WHERE release = ?", (new.id, old.id))
        db.execute("DELETE FROM releases WHERE id = ?", (old.id,))

    @staticmethod
    def known(
        db: sqlite3.Connection, drawn: Drawn, key: Key
    ) -> list[tuple[Hashes, Integers]]:
        """Hashes of the records that a draw was used on, sorted, and the symbols that they had."""
        rows = db.execute(
            "SELECT nonce, records, symbols FROM known WHERE job = ? AND channel = ? AND draw = ? ORDER BY rowid",
            (drawn.job, drawn.use.channel, drawn.draw),
        )
        codes = (
            (records, _ciphered(key, nonce, symbols))
            for nonce, records, symbols in rows
        )
        return [
            (np.frombuffer(a, "<u8"), np.frombuffer(b, "<i4").astype(np.int64))
            for a, b in codes
        ]

    @staticmethod
    def remember(
        db: sqlite3.Connection,
        entry: Entry,
        drawn: Drawn,
        key: Key,
        hashes: Hashes,
        codes: Integers,
    ) -> None:
        """Keep what `known` gives, the symbols encrypted under the key of the draw."""
        if len(hashes):
            nonce = secrets.token_bytes(16)
            symbols = _ciphered(key, nonce, codes.astype("<i4", copy=False).tobytes())
            which = drawn.job, drawn.use.channel, drawn.draw, entry.id
            row = (*which, nonce, hashes.astype("<u8", copy=False).data, symbols)
            db.execute("INSERT INTO known VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    @staticmethod
    def sample(db: sqlite3.Connection, unordered: str) -> bytes:
        """The sample of a data set that was released."""
        return db.execute(
            "SELECT sample FROM samples WHERE unordered = ?", (unordered,)
        ).fetchone()[0]


def _ciphered(key: Key, nonce: bytes, data: bytes) -> bytes:
    """AES-256 in counter mode, which undoes itself."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = algorithms.AES(key.derived("known symbols").secret)
    return Cipher(cipher, modes.CTR(nonce)).encryptor().update(data)


def begins(path: Path, start: bytes) -> bool:
    """Whether a file begins with these bytes."""
    if not path.is_file():  # a pipe would wait for somebody to write to it
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(len(start)) == start
    except OSError:  # which is told where it is opened
        return False
