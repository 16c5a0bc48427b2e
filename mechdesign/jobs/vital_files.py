"""Files that no output may replace, whatever the user forces: a lost key loses all draws.

`keep_apart` compares the places of the outputs with those of vital files (channel files, inputs),
through links, and refuses every file with a key. `keep_off_ledger` does so for the ledger and its
key, and for the names of the files that SQLite makes beside the ledger while it writes. Both are
asked before any output is opened. Beside the ledger ``l.db``, for example, no output can be called
``l.db``, ``l.db.key`` or ``l.db-journal``, be it through a link.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, part_file, real_path
from mechdesign.formats.urls import STANDARD
from mechdesign.jobs.keys import TAG
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_file import begins

SQLITE_FILES = ("-journal", "-wal", "-shm")
"""The endings of the files that SQLite keeps beside a database."""


def keep_apart(
    outputs: Sequence[PathLike], vital: Sequence[tuple[str, PathLike]]
) -> None:
    """Refuse outputs that would replace a file that is still needed, whatever the user forces.

    `vital` are such files, with what messages call them; any file with a key is one, too.
    """
    for output in outputs:
        if os.fspath(output) == STANDARD:
            continue
        place = real_path(output)
        # By its first bytes: a key is vital whatever it is the key of.
        if begins(place, TAG.encode()):
            raise InputError(
                f"{os.fspath(output)} holds the key of a job, which is never overwritten; name "
                "another"
            )
        for description, path in vital:
            # The temporary file of an output is emptied, so its name is taken, too.
            same = real_path(path) in (place, part_file(place))
            if not same and place.exists() and Path(path).exists():
                # Two names of one file: a hard link.
                same = place.samefile(path)
            if same:
                raise InputError(
                    f"{os.fspath(output)} would overwrite {description} {os.fspath(path)}, which "
                    "is still needed; give another name"
                )


def keep_off_ledger(outputs: Sequence[PathLike], ledger: Ledger) -> None:
    """Refuse outputs that would replace a ledger or its key, or that SQLite would take for its own
    files beside the ledger, and remove.
    """
    keep_apart(
        outputs, [("the ledger", ledger.path), ("the key file", ledger.key_path)]
    )
    ledger_name = os.fspath(ledger.path)
    own_files = [real_path(f"{ledger_name}{ending}") for ending in SQLITE_FILES]
    for output in outputs:
        if os.fspath(output) != STANDARD and real_path(output) in own_files:
            raise InputError(
                f"{os.fspath(output)} is the name of a file that SQLite keeps beside the ledger, "
                "and removes; give another name"
            )
