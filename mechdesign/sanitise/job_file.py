"""The job file, version 1: which data a key has been used on, what was released, and what is under way."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from mechdesign.core.documents import hashed_text, read_hashed
from mechdesign.core.errors import InputError
from mechdesign.core.files import replacing
from mechdesign.core.numbers import quoted

FORMAT = "mechdesign.job"
VERSION = 1
WHAT = "job file"

MODE = 0o600
"""The hash of the data set would let others test a guess of it."""

RUNNING, FINISHING, DONE = "running", "finishing", "done"
STATES = (RUNNING, FINISHING, DONE)

Settings: TypeAlias = Mapping[str, Any]
"""Plain JSON values: whatever decides, beside data, channels and draws, which bytes are written."""

T = TypeVar("T")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECK = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Use:
    """How a run uses a channel.

    Parameters
    ----------
    channel : str
        Its `release.channel_digest`.
    columns : tuple of str
        The data set's columns that X is read from, in the order of the channel.
    form, unknown, null, normalise : str
        As in `release.Release` and `release.Policy`.
    """

    channel: str
    columns: tuple[str, ...]
    form: str
    unknown: str = "refuse"
    null: str = "refuse"
    normalise: str = "none"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One release, finished or not.

    `state` is ``running``; ``finishing`` from the moment when all data are on disk, `output` and `records` are known,
    and files are about to get their names; ``done``. `fresh` says that the run asked for a draw of its own. Times are
    UTC, in ISO format.
    """

    id: str
    target: str
    draw: int
    dataset: str
    uses: tuple[Use, ...]
    settings: Settings = field(default_factory=dict[str, Any])
    fresh: bool = False
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    state: str = RUNNING
    started: str
    finished: str | None = None
    output: str | None = None
    records: int | None = None

    @property
    def released(self) -> bool:
        """Whether somebody may have seen the result."""
        return self.state != RUNNING

    def same_release(self, other: Run) -> bool:
        """Whether both write the same bytes."""
        return (self.dataset, self.draw, self.uses, self.settings) == (
            other.dataset,
            other.draw,
            other.uses,
            other.settings,
        )


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """What a job file holds.

    Parameters
    ----------
    identity : tuple of str
        Columns that identify a record; empty for the row number.
    key_file : str
        Name of the key file, in the same folder.
    key_check : str
        A keyed hash of nothing, by which the key is known again.
    key_since : int
        The first draw that this key makes; the keys of those before are lost.
    runs : tuple of Run
        In the order in which they began.
    """

    identity: tuple[str, ...]
    key_file: str
    key_check: str
    key_since: int = 0
    runs: tuple[Run, ...] = ()

    @property
    def draw(self) -> int:
        """The draw of the latest release; 0 before the first."""
        return max((run.draw for run in self.runs if run.released), default=0)

    def last_release(self, target: str) -> Run | None:
        """The latest release to `target`."""
        return next((run for run in reversed(self.runs) if run.target == target and run.released), None)

    def with_run(self, run: Run) -> JobRecord:
        """With `run` in the place of the run of the same id, or at the end."""
        if all(old.id != run.id for old in self.runs):
            return replace(self, runs=(*self.runs, run))
        return replace(self, runs=tuple(run if old.id == run.id else old for old in self.runs))

    def without(self, unwanted: Callable[[Run], bool]) -> JobRecord:
        """Without these runs."""
        return replace(self, runs=tuple(run for run in self.runs if not unwanted(run)))


def write_job(path: Path, record: JobRecord) -> None:
    """Write the job file, whole or not at all.

    Raises
    ------
    InputError
        If the folder or the disk refuses.
    """
    text = hashed_text(FORMAT, VERSION, asdict(record))
    # Whoever writes holds the lock of the job, so these are of processes that were killed.
    with suppress(OSError):  # what the folder refuses, the next line will say
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
            left.unlink(missing_ok=True)
    with replacing(path, force=True, mode=MODE) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_job(path: Path) -> JobRecord:
    """Read a job file.

    Raises
    ------
    InputError
        If it is missing, no job file of this version, or was edited or damaged.
    """
    document = read_hashed(path, FORMAT, VERSION, tuple(JobRecord.__dataclass_fields__), WHAT)
    try:
        runs = tuple(_run(run) for run in _list(document, "runs"))
        identity = _texts(document, "identity")
        key_file = _typed(document, "key_file", str)
        if Path(key_file).name != key_file:
            raise InputError(f"key_file ({quoted(key_file)}) must be the name of a file in the same folder")
        return JobRecord(
            identity=identity,
            key_file=key_file,
            key_check=_matching(document, "key_check", _CHECK),
            key_since=_natural(document, "key_since"),
            runs=runs,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _run(value: Any) -> Run:
    record = _object(value, Run)
    state = _typed(record, "state", str)
    if state not in STATES:
        raise InputError(f"the state {quoted(state)} is not known")
    versions = _dict(record, "versions")
    return Run(
        id=_typed(record, "id", str),
        target=_typed(record, "target", str),
        draw=_natural(record, "draw"),
        dataset=_matching(record, "dataset", _DIGEST),
        uses=tuple(_use(use) for use in _list(record, "uses")),
        settings=_dict(record, "settings"),
        fresh=_typed(record, "fresh", bool),
        versions={key: _typed(versions, key, str) for key in versions},
        state=state,
        started=_typed(record, "started", str),
        finished=_typed(record, "finished", str) if record["finished"] is not None else None,
        output=_matching(record, "output", _DIGEST) if state != RUNNING else None,
        records=_natural(record, "records") if state != RUNNING else None,
    )


def _use(value: Any) -> Use:
    record = _object(value, Use)
    return Use(
        channel=_matching(record, "channel", _DIGEST),
        columns=_texts(record, "columns"),
        **{key: _typed(record, key, str) for key in ("form", "unknown", "null", "normalise")},
    )


def _object(value: Any, kind: type[Run | Use]) -> dict[str, Any]:
    expected = set(kind.__dataclass_fields__)
    if not isinstance(value, dict) or set(value) != expected:  # pyright: ignore[reportUnknownArgumentType]
        raise InputError(f"an entry must have {', '.join(sorted(expected))}, and nothing else")
    return value  # pyright: ignore[reportUnknownVariableType]


def _typed(record: Mapping[str, Any], key: str, kind: type[T]) -> T:
    value = record[key]
    if type(value) is not kind:
        raise InputError(f"{key} must be a {kind.__name__}")
    return value


def _list(record: Mapping[str, Any], key: str) -> list[Any]:
    return cast("list[Any]", _typed(record, key, list))


def _dict(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    return cast("dict[str, Any]", _typed(record, key, dict))


def _natural(record: Mapping[str, Any], key: str) -> int:
    if (value := _typed(record, key, int)) < 0:
        raise InputError(f"{key} must not be negative")
    return value


def _matching(record: Mapping[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    text = _typed(record, key, str)
    if pattern.fullmatch(text) is None:
        raise InputError(f"{key} must be a hash in hexadecimal digits")
    return text


def _texts(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = _list(record, key)
    if not all(isinstance(value, str) for value in values):
        raise InputError(f"{key} must be a list of texts")
    return tuple(values)
