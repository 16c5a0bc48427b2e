"""The key that draws again what a job on files has released, for frames and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mechdesign.draws import Key
from mechdesign.errors import InputError
from mechdesign.exact import listed
from mechdesign.files import PathLike
from mechdesign.sanitise.job_store import JobStore, key_of_draw
from mechdesign.sanitise.key_file import read_key

JOB_SUFFIX = ".json"


def key_at(path: PathLike, identity: Sequence[str] = ()) -> Key:
    """The key of a key file, or that of the latest draw of a job file (a name that ends in .json).

    Parameters
    ----------
    path : path
    identity : sequence of str
        Columns that identify a record; empty for the row number.

    Raises
    ------
    InputError
        If the file cannot be read, or the job identifies records by something else: these would be other draws.
    """
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
    """Refuse work that may be done several times over without a key that all of them use.

    Raises
    ------
    InputError
        If there is neither a key nor a seed.
    """
    if key is None and insecure_seed is None:
        raise InputError(
            "a cluster computes the same records again when a task or a request is repeated, and must draw the same: "
            "give a key (Key.fresh(), or the path of a key file)"
        )


def _spoken(identity: Sequence[str]) -> str:
    return f"the column {listed(list(identity))}" if identity else "its row number"
