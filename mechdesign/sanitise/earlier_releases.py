"""Earlier releases of the same records by other jobs of the same channel, which drew for themselves."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, real_path
from mechdesign.core.numbers import listed
from mechdesign.sanitise.job_file import JobRecord, JobRun, Use, read_job
from mechdesign.sanitise.job_store import FOLDER_MODE, FOLDER_SUFFIX, SHORT, jobs_folder

ELSEWHERE = ".elsewhere"
"""Ending of a note beside the channel file that holds the path of a job that is kept in another place."""


@dataclass(frozen=True)
class Neighbours:
    """What other jobs have released through the same channels."""

    same: tuple[JobRun, ...]
    draws: int
    other_channels: bool
    notices: tuple[str, ...]


def neighbours_of(
    own: Path,
    channel: PathLike | None,
    dataset: str,
    uses: Sequence[Use],
    *,
    identity: Sequence[str],
    fresh_draw: bool,
) -> Neighbours:
    """Look through the jobs that are kept beside the channel file and beside its copies, and beside the own job."""
    same: list[JobRun] = []
    draws = 0
    others = other_channels = False
    channels = {use.channel for use in uses}
    wanted = {(use.channel, use.columns) for use in uses}
    for path, job in _jobs(own, channel):
        every = [run for run in job.runs if run.released]
        released = [run for run in every if channels & {use.channel for use in run.uses}]
        found = [
            run
            for run in released
            if run.dataset == dataset and wanted & {(use.channel, use.columns) for use in run.uses}
        ]
        if found and not fresh_draw:
            raise InputError(
                f"the job {path} has released these data through this channel before (records known by "
                f"{_identity(job)}): another job would draw the same records a second time, which can leak far more "
                "than one release; use that job (--job), or accept that (--fresh-draw)"
            )
        same += found
        draws += len({run.draw for run in found})
        others = others or any(run.dataset != dataset for run in released)
        other_channels = other_channels or any(run.dataset == dataset for run in every if run not in found)
    notices: list[str] = []
    if same:
        notices.append(_AGAIN)
    if others:
        notices.append(_OTHERS if identity else f"{_OTHERS}; {_NAME_IT}")
    if other_channels:
        notices.append(_OTHER_CHANNELS)
    return Neighbours(tuple(same), draws, other_channels, tuple(notices))


def _jobs(own: Path, channel: PathLike | None) -> Iterator[tuple[Path, JobRecord]]:
    """Every other job nearby, once, and its path.

    The channel's own folder holds nothing but jobs, so a file there that cannot be read is told. The other folders
    belong to copies of the channel, if they do at all, and may hold any files.
    """
    beside = None if channel is None else jobs_folder(channel)
    places = [] if beside is None else [beside]
    if channel is not None:
        parents = (Path(channel).parent, real_path(channel).parent)
        places += [found for parent in parents for found in sorted(parent.glob(f"*{FOLDER_SUFFIX}"))]
    places.append(own.parent)
    paths = [path for place in places for path in sorted(place.glob("*.json"))]
    if beside is not None:
        paths += [Path(os.fsdecode(note.read_bytes())) for note in sorted(beside.glob(f"*{ELSEWHERE}"))]
    seen = {real_path(own)}
    for path in paths:
        if real_path(path) in seen:
            continue
        seen.add(real_path(path))
        try:
            yield path, read_job(path)
        except InputError:
            if path.parent == beside:
                raise


def remember(job: Path, channel: PathLike) -> None:
    """Leave a note beside the channel file of a job that is kept elsewhere, so that other runs find it.

    Where the folder of the channel cannot be written, there is no note.
    """
    folder, real = jobs_folder(channel), os.fsencode(real_path(job))
    if os.fsencode(real_path(folder)) == os.path.dirname(real):
        return
    note = folder / f"{hashlib.sha256(real).hexdigest()[:SHORT]}{ELSEWHERE}"
    with suppress(OSError):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        if not note.exists():
            note.write_bytes(real)


def _identity(job: JobRecord) -> str:
    return f"the column {listed(job.identity)}" if job.identity else "their row number"


_AGAIN = "another job has released these records before: independent releases of a record can tell far more than each"

_OTHERS = (
    "other data sets have been released through this channel with draws of their own: records that occur in both are "
    "released twice"
)

_NAME_IT = "name the column that identifies them (--identity), so that each keeps its draw from now on"

_OTHER_CHANNELS = (
    "these data have been released through another channel, or in another column, as well: each release keeps its own "
    "promise, but together they can tell more than either"
)
