"""The file of a ledger: an SQLite file and the key beside it, created, checked, read and changed.

A ledger is only of use with its key: another key would draw the same records a second time. So the
two are set up and checked together, and nothing is released until both fit (`LedgerFile`):

1. A file with empty tables is created if there is none (`_create_file`); it gets its name when it
   is complete. So an empty file is a ledger that was cut, and refused, as are a key file without
   its ledger and a file that is no ledger.
2. If the fingerprint in the tables is that of the key, nothing is written (`_key_if_ready`). The
   content is compared with its mark (`mark_of`), and one that was cut or damaged is refused.
3. Else one transaction creates what is missing: the key file, and last the fingerprint of the key
   (`_set_up`). A crash before its end leaves tables without a fingerprint, and perhaps a key, which
   the next run takes. Once anything was released, a missing or another key is an error.

Every change is one transaction (`changing`) with a rollback journal, on disk when it is over.
Write-ahead logging needs shared memory, which no network drive has. Several processes take turns.

*The mark* on the whole content of a ledger shows whoever cuts or changes it from outside. A ledger
that has lost a release would let its records be drawn a second time, and one whose hashes
were damaged would blame the data. SQLite finds pages that are missing or do not fit together, but
no changed byte inside of a value, and no row that was deleted.

So the ledger carries a mark: the sum, modulo 2^256, of a keyed hash of every row. Two ledgers with
equal rows have one mark, in whatever order these were entered, and nobody without the key can make
it. `MarkedChanges` keeps it up to date at the cost of what changes: temporary triggers call Python
for every row that comes or goes, which adds or subtracts its hash. `mark_of` computes the mark of
all rows, once for each opening. For example, the two rows with the hashes 5 and 9 have the mark 14;
when the first becomes a row with the hash 7, the mark is 14 - 5 + 7 = 16.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.files import (
    MODE,
    PathLike,
    on_failure,
    open_locked,
    real_path,
    reason,
    sync_folder,
    text_of,
)
from mechdesign.core.wording import quoted
from mechdesign.jobs.keys import check_of, create_key, read_key
from mechdesign.release.draws import Key

NAME = "ledger.db"

FOLDER_MODE = 0o700
"""The mode of the folder of the default ledger."""

PATIENCE = 30.0
"""Seconds to wait for other processes, each of which has the ledger for milliseconds."""

APPLICATION = 0x6D64_6C67
"""The application in SQLite's own header: the letters mdlg."""

VERSION = 1
"""The version of the tables, in the same header."""

MAGIC = b"SQLite format 3\x00"
"""The first bytes of every SQLite file."""

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""SQLite's errors for a file, or for tables, that are damaged."""

TABLES = """
CREATE TABLE releases (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL,
                       target TEXT NOT NULL, entry TEXT NOT NULL);
CREATE TABLE samples (unordered TEXT PRIMARY KEY, sample BLOB NOT NULL);
CREATE TABLE keys (job TEXT PRIMARY KEY, path TEXT NOT NULL, fingerprint TEXT NOT NULL);
CREATE TABLE known (job TEXT NOT NULL, channel TEXT NOT NULL, draw INTEGER NOT NULL,
                    release TEXT NOT NULL, nonce BLOB NOT NULL, records BLOB NOT NULL,
                    symbols BLOB NOT NULL);
"""
"""The tables, two of which hold two kinds of rows, told apart by a prefix:

- `releases`: the entries as JSON, numbered in their order;
- `samples`: a sample of the hashes of each data set, by its hash; and by ``bare ID`` what is known
  of the records of the release ID without their identifiers, and by ``column ID CHANNEL`` what is
  known of the symbols that it released through a channel;
- `keys`: a row without a job: where the key of the ledger lies, and its fingerprint; and one by the
  job ``mark``: the mark of all other rows (`mark_of`);
- `known`: for a draw (job, channel, number) the hashes of identified records and, encrypted, the
  numbers of their symbols; and by the job ``spellings JOB`` two hashes of each identifier that was
  not in its plain spelling.
"""

SELECT_FINGERPRINT = "SELECT fingerprint FROM keys WHERE job = ''"


class LedgerFile:
    """A ledger's file and its key; opening it creates both if they do not exist.

    Parameters
    ----------
    path : path, optional
        By default `default_path`.
    key : Key, optional
        The key of the ledger if it is kept elsewhere, and not in a file beside it.

    Raises
    ------
    InputError
        If the file is no ledger, is damaged or cannot be written, or its key is missing or another
        one.
    """

    def __init__(self, path: PathLike | None = None, *, key: Key | None = None) -> None:
        given_path = default_path() if path is None else Path(path)
        self.path = Path(text_of(real_path(given_path)))
        if self.path.is_dir() or not self.path.name:
            raise InputError(
                f"{given_path} is a folder; give the name of a file for the ledger (--ledger)"
            )
        self.key_path = self.path.with_name(self.path.name + ".key")
        self._external_key = key
        self._changes: MarkedChanges | None = None
        """Those of the transaction that is going on."""
        try:
            self._create_file()
        except OSError as error:
            raise self._not_writable(reason(error)) from None
        # Read first: most runs find a ledger that is ready, perhaps in a read-only place.
        ready_key = self._key_if_ready()
        if ready_key is None:
            ready_key = self._set_up()
        self.key = ready_key

    @contextmanager
    def changing(self) -> Generator[sqlite3.Connection]:
        """A transaction: all of it is on disk at the end of the block, or nothing of it if the
        block fails.
        """
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            # If the commit itself fails, the transaction may have ended: then there is nothing to
            # roll back.
            with on_failure(db.rollback):
                changes = MarkedChanges(db, self.key)
                self._changes = changes
                try:
                    yield db
                finally:
                    self._changes = None
                changes.enter()
                db.execute("COMMIT")
            self._follow(changes)

    def _follow(self, changes: MarkedChanges) -> None:
        """Called with the changes of a transaction that is on disk."""

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection for reading, which also works in read-only places."""
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
            raise self._failure(error) from None

    def _create_file(self) -> None:
        """Create an empty file if there is none; refuse a file that is no ledger."""
        if self.path == real_path(_data_folder() / "mechdesign" / NAME):
            self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        # Looked for before the ledger, for another process creates the ledger first and its key
        # last.
        key_exists = os.path.lexists(self.key_path)
        if not self.path.exists():
            if key_exists:
                refuse_lone_key(self.path)
            _create_tables(self.path)
        elif not self.path.stat().st_size:
            raise InputError(
                f"the ledger {self.path} is empty, so it was cut, and what it knew is lost: put a "
                "copy of it back, or remove the file and its key if nothing was ever released with "
                "them"
            )
        elif not begins(self.path, MAGIC):
            raise InputError(
                f"{self.path} is not a ledger (no SQLite file); name another (--ledger)"
            )

    def _lacks_key_file(self) -> bool:
        """Whether the key should lie beside the ledger, and does not."""
        return self._external_key is None and not os.path.lexists(self.key_path)

    def _key_if_ready(self) -> Key | None:
        """The key, if the ledger has its tables and this key, so that nothing need be written."""
        if self._lacks_key_file():
            return None
        with self.reading() as db:
            self._check_pages(db)
            self._check_tables(db)
            row = db.execute(SELECT_FINGERPRINT).fetchone()
            if row is None:
                return None
            key = self._checked_key(row[0], used=self._is_used(db))
            if check_of(key) != row[0]:
                return None
            # In one transaction, or another process could change the rows in between.
            db.execute("BEGIN")
            mark = mark_in(db)
            # A ledger of an earlier version has none.
            if mark is not None and mark != mark_of(db, key):
                raise self._damaged("its content does not fit its mark")
        return key

    def _check_pages(self, db: sqlite3.Connection) -> None:
        """Refuse a file with pages that are missing, or do not fit together."""
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged("pages are missing or changed")

    def _damaged(self, how: str) -> InputError:
        return InputError(
            f"the ledger {self.path} is damaged ({how}), and a record that it forgot would be "
            "drawn a second time: put a copy of it back"
        )

    def _set_up(self) -> Key:
        """Create what is missing of tables and key."""
        with self.reading() as db, _transaction(db):
            self._check_tables(db)
            row = db.execute(SELECT_FINGERPRINT).fetchone()
            used = self._is_used(db)
            if self._lacks_key_file() and not used:
                # On disk before the transaction ends: no release can be entered under a key that a
                # crash would lose.
                key = Key.fresh()
                create_key(self.key_path, key)
            else:
                key = self._checked_key(row[0] if row else None, used=used)
            rows = [
                ("", os.fspath(self.key_path), check_of(key)),
                (MARK, "", mark_of(db, key)),
            ]
            db.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", rows)
        return key

    def _check_tables(self, db: sqlite3.Connection) -> None:
        """Refuse the file of another program or version, and one that has lost its tables."""
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if (application, version) != (APPLICATION, VERSION):
            origin = "of another program"
            if application == APPLICATION:
                origin = f"of version {version}"
            raise InputError(
                f"{self.path} is a file {origin}, and no ledger of version {VERSION}"
            )
        rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not {*COLUMNS, "keys"} <= {name for (name,) in rows}:
            raise self._damaged("it has lost its tables")

    @staticmethod
    def _is_used(db: sqlite3.Connection) -> bool:
        """Whether anything was released with the ledger."""
        (releases,) = db.execute("SELECT count(*) FROM releases").fetchone()
        return releases > 0

    def _checked_key(self, fingerprint: str | None, *, used: bool) -> Key:
        """The key, which must be the one of the fingerprint if it was used."""
        if self._external_key is not None:
            key = self._external_key
            name = "the key of --key-from"
        else:
            if used and not os.path.lexists(self.key_path):
                raise InputError(
                    f"the key file {self.key_path} of the ledger is gone, and without it nobody "
                    "can tell which data have been released: put it back, say where the key is "
                    "(--key-from), or begin another ledger (--ledger FILE), which forgets them all"
                )
            key = read_key(self.key_path)
            name = f"the key file {self.key_path}"
        if used and check_of(key) != fingerprint:
            raise InputError(
                f"{name} is not the one of the ledger {self.path}; another key would draw the same "
                "records a second time: give the right one"
            )
        return key

    def _failure(self, error: sqlite3.DatabaseError) -> InputError:
        """An error of SQLite in words."""
        # Errors that Python's own module raises have no code. The low byte is the class of the
        # error.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StartAgain(
                f"another process keeps the ledger {self.path} busy; try again"
            )
        if code in DAMAGE:
            return self._damaged(str(error))
        if code == sqlite3.SQLITE_READONLY:
            return self._not_writable("read-only file system")
        return self._not_writable(str(error))

    def _not_writable(self, why: str) -> InputError:
        return InputError(
            f"the ledger {self.path} cannot be written: {why}; name another place (--ledger)"
        )


@contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None]:
    """A transaction, which is undone if the block fails."""
    db.execute("BEGIN IMMEDIATE")
    with on_failure(db.rollback):
        yield
        db.execute("COMMIT")


def refuse_lone_key(path: Path) -> None:
    """Refuse a place where the ledger is missing, though its key is there."""
    key_path = path.with_name(path.name + ".key")
    if os.path.lexists(key_path):
        raise InputError(
            f"there is no ledger {path}, but its key {key_path.name} is there: put the ledger "
            "back, or remove the key if nothing was ever released with it"
        )


def _create_tables(path: Path) -> None:
    """Create a ledger with empty tables, complete or not at all, unless another process does."""
    part = path.with_name(f".{path.name}.part")
    end = time.monotonic() + PATIENCE
    while not path.exists():
        # Whoever makes a ledger here has the lock, so nobody replaces one that is there. A killed
        # run leaves the part, and the next one takes it over.
        try:
            descriptor = open_locked(
                part, busy=f"another process makes the ledger {path}"
            )
        except StartAgain:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
            continue
        # On a full disk, for example, an empty part would stay.
        with open(descriptor, "wb") as stream, on_failure(part.unlink):
            if path.exists():
                part.unlink()
                return
            stream.truncate(0)
            stream.write(_empty_tables())
            stream.flush()
            os.fsync(stream.fileno())
            os.chmod(part, MODE)
            part.rename(path)
        sync_folder(path.parent)


def _empty_tables() -> bytes:
    """The bytes of a ledger without rows."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in TABLES.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        return db.serialize()
    finally:
        db.close()


def default_path() -> Path:
    """The ledger in the user's data folder.

    Raises
    ------
    InputError
        If the environment gives no absolute path: each working folder would have a ledger of its
        own, and a second release from another one would not be noticed.
    """
    folder = _data_folder()
    if not folder.is_absolute():
        raise InputError(
            f"the folder of the ledger ({quoted(folder)}, by HOME or XDG_DATA_HOME) is no "
            "absolute path; set it, or name the ledger (--ledger)"
        )
    return folder / "mechdesign" / NAME


def _data_folder() -> Path:
    """The folder for data of the user's programs, as the operating system has it."""
    # Empty is the same as not set, says the specification.
    if chosen := os.environ.get("XDG_DATA_HOME"):
        return Path(chosen)
    if sys.platform == "win32":
        local = Path.home() / "AppData" / "Local"
        return Path(os.environ.get("LOCALAPPDATA", local))
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support"
    return Path.home() / ".local/share"


def begins(path: Path, start: bytes) -> bool:
    """Whether a file begins with these bytes."""
    # Opening a pipe would wait for somebody to write to it.
    if not path.is_file():
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(len(start)) == start
    except OSError:
        # Whoever opens the file for its data reports the error.
        return False


COLUMNS = {
    "releases": ("number", "id", "target", "entry"),
    "samples": ("unordered", "sample"),
    "known": ("job", "channel", "draw", "release", "nonce", "records", "symbols"),
}
"""The marked tables, with their columns."""

REMEMBERED = ("releases", "samples")
"""The tables of which a process remembers the rows (`ledger_memory`)."""

MODULUS = 2**256

MARK = "mark"
"""In the place of a job in the table `keys`: the row that has the mark."""

SELECT_MARK = "SELECT fingerprint FROM keys WHERE job = 'mark'"


def mark_in(db: sqlite3.Connection) -> str | None:
    """The mark that a ledger carries; None in a ledger of an earlier version."""
    row = db.execute(SELECT_MARK).fetchone()
    return None if row is None else row[0]


def mark_of(db: sqlite3.Connection, key: Key) -> str:
    """The mark of all rows, in hexadecimal digits."""
    secret = _secret(key)
    total = 0
    for table, columns in COLUMNS.items():
        rows = db.execute(f"SELECT {', '.join(columns)} FROM {table}")
        for row in rows:
            total += _hash_of(secret, table, row)
    return _text(total)


class MarkedChanges:
    """The changes of one transaction: made at its beginning, entered at its end.

    Parameters
    ----------
    db : sqlite3.Connection
        Within a transaction.
    key : Key
        The key of the ledger.

    Attributes
    ----------
    before, after : str
        The mark before the transaction, and the one that `enter` has written.
    rows : list
        The rows of the tables `REMEMBERED` that came (True) or went, in their order.
    """

    def __init__(self, db: sqlite3.Connection, key: Key) -> None:
        self._db = db
        self._secret = _secret(key)
        self._difference = 0
        # A ledger of an earlier version gets its mark with its next change.
        self.before = mark_in(db) or mark_of(db, key)
        self.after = self.before
        self.rows: list[tuple[bool, str, tuple[Any, ...]]] = []
        db.create_function("mechdesign_came", -1, self._came)
        db.create_function("mechdesign_went", -1, self._went)
        # A row that is replaced goes, too.
        db.execute("PRAGMA recursive_triggers = ON")
        for table, columns in COLUMNS.items():
            self._add_triggers(table, columns)

    def enter(self) -> None:
        """Write the new mark."""
        self.after = _text(int(self.before, 16) + self._difference)
        self._db.execute(
            "INSERT OR REPLACE INTO keys VALUES (?, '', ?)", (MARK, self.after)
        )

    def _add_triggers(self, table: str, columns: tuple[str, ...]) -> None:
        """Tell Python of every row of a table that comes or goes in this connection."""
        old = ", ".join(f"OLD.{column}" for column in columns)
        new = ", ".join(f"NEW.{column}" for column in columns)
        came = f"SELECT mechdesign_came('{table}', {new});"
        went = f"SELECT mechdesign_went('{table}', {old});"
        bodies = {"INSERT": came, "DELETE": went, "UPDATE": went + came}
        for change, body in bodies.items():
            name = f"mark_{table}_{change.lower()}"
            self._db.execute(
                f"CREATE TEMP TRIGGER {name} AFTER {change} ON main.{table} BEGIN {body} END"
            )

    def _came(self, table: str, *row: Any) -> None:
        self._difference += _hash_of(self._secret, table, row)
        self._keep(True, table, row)

    def _went(self, table: str, *row: Any) -> None:
        self._difference -= _hash_of(self._secret, table, row)
        self._keep(False, table, row)

    def _keep(self, has_come: bool, table: str, row: tuple[Any, ...]) -> None:
        if table in REMEMBERED:
            self.rows.append((has_come, table, row))


def _secret(key: Key) -> bytes:
    """The secret of the hashes of rows."""
    return key.derived("ledger", "mark").secret


def _hash_of(secret: bytes, table: str, row: Iterable[Any]) -> int:
    """The hash of a row: of its values, each with its type and its length before it."""
    digest = hashlib.blake2b(key=secret, digest_size=32)
    for value in (table, *row):
        data = value if isinstance(value, bytes) else str(value).encode()
        kind = b"b" if isinstance(value, bytes) else b"t"
        digest.update(kind + len(data).to_bytes(8, "little"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "little")


def _text(total: int) -> str:
    """A mark as the table holds it."""
    return f"{total % MODULUS:064x}"
