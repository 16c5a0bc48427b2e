"""The two files of a job on disk, and the lock by which processes change them one after the other.

The key that draws again what a job on files has released, for frames and clusters.
"""

from __future__ import annotations

import hashlib
import os
import urllib.parse
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, open_locked, real_path, reason
from mechdesign.core.numbers import listed
from mechdesign.release.draws import Key
from mechdesign.sanitise.job_file import JobRecord, read_job, write_job
from mechdesign.sanitise.keys import create_key, read_key

FOLDER_MODE = 0o700
LOCK_MODE = 0o600
"""A folder of jobs holds keys."""

PATIENCE = 30.0
"""Seconds to wait for another process that writes the job file, which takes milliseconds."""

KEY_SUFFIX = ".key"

FOLDER_SUFFIX = ".jobs"
"""Ending of the folder of jobs beside a channel file."""

SHORT = 16
"""Hexadecimal digits of the data set's hash in the name of its job file."""

LONGEST_STEM = 200
"""Characters of an identifier's name in the name of a job file; a longer name is hashed."""


def default_path(channel: PathLike, dataset: str, identity: Sequence[str] = ()) -> Path:
    """Where the job of a channel file and a data set is kept: ``CHANNEL.jobs/..json``.

    With an identity by columns all data sets share one job, so that a record keeps its draw from night to night.
    """
    stem = dataset[:SHORT]
    if identity:
        stem = "id-" + "+".join(urllib.parse.quote(name, safe=" ") for name in identity)
        if len(stem) > LONGEST_STEM:
            stem = "id-" + hashlib.sha256("\0".join(identity).encode()).hexdigest()
    return jobs_folder(channel) / f"{stem}.json"


def jobs_folder(channel: PathLike) -> Path:
    """The folder beside a channel file, wherever links lead to it from, in which its jobs are kept."""
    path = Path(channel)
    real = real_path(path) if path.is_symlink() else path
    return real.with_name(real.name + FOLDER_SUFFIX)


class JobStore:
    """A job file and the key beside it. Every method but `locked` and `peek` needs the lock."""

    def __init__(self, path: PathLike) -> None:
        # Through a link to it, a job is the same one, with the same lock and the key beside the file itself.
        self.path = real_path(path) if Path(path).is_symlink() else Path(path)
        if not self.path.name or self.path.is_dir():
            raise InputError(f"{os.fspath(path)} is a folder; give the name of a job file (--job)")
        self.key_path = self.path.with_suffix(KEY_SUFFIX)
        if self.key_path == self.path:
            raise InputError(
                f"the job file {self.path} has the ending of its key; give it another one (.json)"
            )
        self._lock_path = self.path.with_name(f".{self.path.name}.lock")
        self._made_folder = False

    def _make_folder(self) -> None:
        if not self.path.parent.is_dir():
            self.path.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            self._made_folder = True

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other processes from the job."""
        if self.path.exists():
            self.peek()  # a lock beside what is no job would be left behind
        try:
            self._make_folder()
            lock = open_locked(
                self._lock_path,
                busy=f"another process keeps the job {self.path} busy; try again",
                wait=PATIENCE,
                mode=LOCK_MODE,
            )
        except OSError as error:
            raise InputError(
                f"the job {self.path} cannot be written: {reason(error)}; name another place for it (--job)"
            ) from None
        try:
            yield
        finally:
            os.close(lock)

    def peek(self) -> JobRecord:
        """The record as it is: files are replaced whole, so reading needs no lock."""
        return read_job(self.path)

    def load(self) -> JobRecord | None:
        """The record, None if there is no job yet."""
        if self.path.exists():
            record = read_job(self.path)
            self.key_path = self.path.with_name(record.key_file)
            return record
        if os.path.lexists(self.key_path):
            raise InputError(
                f"there is no job file {self.path}, but its key {self.key_path.name} is there: put the job file back, "
                "or remove the key if nothing was ever released with it"
            )
        return None

    def key(self, record: JobRecord) -> Key | None:
        """The key of the job, None if it is gone."""
        if not os.path.lexists(self.key_path):
            return None
        key = read_key(self.key_path)
        if check_of(key) != record.key_check:
            raise InputError(
                f"the key file {self.key_path} is not the one of the job {self.path}; another key would draw the same "
                "records a second time: put the right one back"
            )
        return key

    def start(self, record: JobRecord, key: Key) -> None:
        """Write a job and its new key.

        The job first: a crash in between leaves a job whose key is not there, which gets another one as long as
        nothing has been released. A key without a job would have to be refused.
        """
        write_job(self.path, record)
        create_key(self.key_path, key)

    def save(self, record: JobRecord) -> None:
        """Replace the job file."""
        write_job(self.path, record)

    def remove(self) -> None:
        """Leave no job behind with which nothing was ever released."""
        with suppress(OSError):
            # In the order in which a crash does no harm, as in `start`.
            self.key_path.unlink(missing_ok=True)
            self.path.unlink()
            self._lock_path.unlink()
            if self._made_folder:
                self.path.parent.rmdir()


def check_of(key: Key) -> str:
    """By which a key is known again; it tells nothing of the key."""
    return key.derived("job file", "check").secret.hex()[:32]


def key_of_draw(key: Key, draw: int) -> Key:
    """The key of a job's first draw (0), which is its own, or of a further one."""
    return key if draw == 0 else key.derived("draw", str(draw))


JOB_SUFFIX = ".json"


def key_at(path: PathLike, identity: Sequence[str] = ()) -> Key:
    """The key of a key file, or that of the latest draw of a job file (a name that ends in .json)."""
    if Path(path).suffix != JOB_SUFFIX:
        return read_key(path)
    store = JobStore(path)
    record = store.peek()
    if tuple(identity) != record.identity:
        raise InputError(
            f"the job {store.path} identifies a record by {_spoken(record.identity)}, not by {_spoken(identity)}: "
            "other draws of the same records would tell more than the budget"
        )
    store.key_path = store.path.with_name(record.key_file)
    key = store.key(record)
    if key is None or record.draw < record.key_since:
        raise InputError(f"the key file {store.key_path} of the job {store.path} is gone")
    return key_of_draw(key, record.draw)


def needs_key(key: Key | PathLike | None, insecure_seed: int | None) -> None:
    """Refuse work that may be done several times over without a key that all of them use."""
    if key is None and insecure_seed is None:
        raise InputError(
            "a cluster computes the same records again when a task or a request is repeated, and must draw the same: "
            "give a key (Key.fresh(), or the path of a key file)"
        )


def _spoken(identity: Sequence[str]) -> str:
    return f"the column {listed(list(identity))}" if identity else "its row number"
