"""Other jobs beside the same channel: has one of them released these records already, with draws of its own?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mechdesign.errors import InputError
from mechdesign.exact import listed
from mechdesign.sanitise.job_file import JobRecord, Run, read_job


@dataclass(frozen=True)
class Neighbours:
    """What other jobs have released through the same channels.

    Parameters
    ----------
    same : tuple of Run
        From the same data set.
    draws : int
        With how many draws.
    notices : tuple of str
        What the user should know.
    """

    same: tuple[Run, ...]
    draws: int
    notices: tuple[str, ...]


def neighbours_of(
    own: Path, folder: Path, dataset: str, channels: set[str], *, by_row: bool, fresh_draw: bool
) -> Neighbours:
    """Look through the jobs of a folder.

    Parameters
    ----------
    own : Path
        The job that is going to run, which is left out.
    folder : Path
        That of the jobs beside the channel file; it need not be there.
    dataset : str
        SHA-256 of the data set.
    channels : set of str
        Digests of the channels that are going to be applied.
    by_row : bool
        Whether records are known by their row number.
    fresh_draw : bool
        Whether a second draw is accepted.

    Raises
    ------
    InputError
        If another job has released the same data through one of the channels, and no second draw is accepted; or if
        one of the job files cannot be read.
    """
    same: list[Run] = []
    draws = 0
    others = False
    for path in sorted(folder.glob("*.json")):
        if path.absolute() == own.absolute():
            continue
        job = read_job(path)
        released = [run for run in job.runs if run.released and channels & {use.channel for use in run.uses}]
        found = [run for run in released if run.dataset == dataset]
        if found and not fresh_draw:
            raise InputError(
                f"the job {path} has released these data through this channel before (records known by "
                f"{_identity(job)}): another job would draw the same records a second time, which can leak far more "
                "than one release; use that job (--job), or accept that (--fresh-draw)"
            )
        same += found
        draws += len({run.draw for run in found})
        others = others or (by_row and not job.identity and bool(released) and not found)
    notices: list[str] = []
    if same:
        notices.append(_AGAIN)
    if others:
        notices.append(_OTHERS)
    return Neighbours(tuple(same), draws, tuple(notices))


def _identity(job: JobRecord) -> str:
    return f"the column {listed(job.identity)}" if job.identity else "their row number"


_AGAIN = "another job has released these records before: independent releases of a record can tell far more than each"

_OTHERS = (
    "other data sets have been released through this channel with draws of their own: if records occur in both, name "
    "the column that identifies them (--identity), so that each keeps its draw"
)
