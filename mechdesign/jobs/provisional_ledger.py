"""A ledger for releases that may come to nothing: those of a folder, and rehearsals.

A job enters its releases as in any ledger. `ProvisionalLedger` translates places in the temporary
folder to their last names on the way in and out (`_final_name`): the file ``.out.part/a.csv`` is
``out/a.csv`` in the ledger. It keeps what was entered (`entered`), so that `withdraw` can remove it
if the folder is not published. In a rehearsal the first entry ends the release with `Rehearsed`,
after all checks.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, real_path
from mechdesign.formats.census import Content
from mechdesign.jobs.entries import Entry
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.ledger_file import NAME, refuse_lone_key
from mechdesign.release.draws import Key


class ProvisionalLedger(Ledger):
    """A ledger that takes back what was entered, unless the releases are published.

    Files in the folder `stage` are known by the names that they get in `final`, and are withdrawn
    unless `entered` is cleared. In a rehearsal nothing is entered: where a release would be,
    `Rehearsed` is raised.
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
