"""A mark on the whole content of a ledger: whoever cuts or changes it from outside is noticed.

A ledger that has lost a release would let its records be drawn a second time, and one whose hashes
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
import sqlite3
from collections.abc import Iterable
from typing import Any

from mechdesign.release.draws import Key

COLUMNS = {
    "releases": ("number", "id", "target", "entry"),
    "samples": ("unordered", "sample"),
    "known": ("job", "channel", "draw", "release", "nonce", "records", "symbols"),
}
"""The marked tables, with their columns."""

MODULUS = 2**256

MARK = "mark"
"""In the place of a job in the table `keys`: the row that has the mark."""

SELECT_MARK = "SELECT fingerprint FROM keys WHERE job = 'mark'"


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
    """

    def __init__(self, db: sqlite3.Connection, key: Key) -> None:
        self._db = db
        self._secret = _secret(key)
        self._difference = 0
        row = db.execute(SELECT_MARK).fetchone()
        # A ledger of an earlier version gets its mark with its next change.
        self._before = int(row[0] if row else mark_of(db, key), 16)
        db.create_function("mechdesign_came", -1, self._came)
        db.create_function("mechdesign_went", -1, self._went)
        # A row that is replaced goes, too.
        db.execute("PRAGMA recursive_triggers = ON")
        for table, columns in COLUMNS.items():
            self._add_triggers(table, columns)

    def enter(self) -> None:
        """Write the new mark."""
        text = _text(self._before + self._difference)
        self._db.execute("INSERT OR REPLACE INTO keys VALUES (?, '', ?)", (MARK, text))

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

    def _went(self, table: str, *row: Any) -> None:
        self._difference -= _hash_of(self._secret, table, row)


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
