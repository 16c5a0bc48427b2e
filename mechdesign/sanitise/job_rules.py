"""What a job refuses: a second independent draw of a record, and one random number for two symbols of a record.

The number of a record belongs to the key, the channel and what identifies the record. If it met two different symbols
of X, the two outputs would depend on each other through it, and could tell more of the symbols than both promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.errors import InputError
from mechdesign.exact import listed, quoted
from mechdesign.sanitise.job_file import Run, Settings, Use

REFUSE = "refuse"
TEXT = "text"
"""Among the settings of a run, how its CSV was read."""

SHORT = 12
"""Hexadecimal digits of a hash that are enough for people to tell data sets apart."""


def check_uses(uses: Sequence[Use]) -> None:
    """Refuse a channel that is applied to two columns of one data set.

    Raises
    ------
    InputError
        Naming the columns.
    """
    seen: dict[str, Use] = {}
    for use in uses:
        first = seen.setdefault(use.channel, use)
        if first is not use:
            raise InputError(
                f"the same channel cannot be applied to {_columns(first)} and to {_columns(use)} in one job: both "
                "would get the same random numbers; release them in two jobs (--job)"
            )


def check_identity(had: Sequence[str], wanted: Sequence[str], name: str) -> None:
    """Refuse another way to identify records.

    Raises
    ------
    InputError
        If it is not the one of the job called `name`.
    """
    if tuple(had) != tuple(wanted):
        raise InputError(
            f"the job {name} identifies records by {_identity(had)}, not by {_identity(wanted)}; use another job "
            "(--job)"
        )


def check_dataset(runs: Sequence[Run], dataset: str, name: str) -> None:
    """Refuse another data set where records are known by their row numbers.

    Parameters
    ----------
    runs : sequence of Run
        What was released with the same draw.

    Raises
    ------
    InputError
        If it was from another data set.
    """
    for run in runs:
        if run.dataset != dataset:
            raise InputError(
                f"the job {name} is that of the data set {run.dataset[:SHORT]}.., and this is {dataset[:SHORT]}..: row "
                "numbers would give records the random numbers of others; if records have an identifier, name its "
                "column (--identity COL), else use another job (--job) or draw anew (--fresh-draw)"
            )


def check_treatment(runs: Sequence[Run], uses: Sequence[Use], name: str) -> None:
    """Refuse to read the same channel's symbols in another way than before.

    What is published for a record without a symbol may change: its random number meets no second symbol then.

    Parameters
    ----------
    runs : sequence of Run
        What was released with the same draw.

    Raises
    ------
    InputError
        If columns or normalisation differ, so that a record may have another symbol.
    """
    for use in uses:
        for old in (old for run in runs for old in run.uses if old.channel == use.channel):
            if old.columns != use.columns:
                raise InputError(
                    f"the job {name} has applied this channel to {_columns(old)}; on {_columns(use)} it would use the "
                    "same random numbers again; use another job (--job)"
                )
            # What both refuse to release is known to both, and then under the same symbol.
            same = old.normalise == use.normalise or old.unknown == use.unknown == REFUSE
            if not same:
                raise InputError(
                    f"the job {name} has released {_columns(use)} with the normalisation {old.normalise}, not "
                    f"{use.normalise}, which gives some records another symbol; keep it, or use another job (--job)"
                )


def check_reading(runs: Sequence[Run], dataset: str, settings: Settings, name: str) -> None:
    """Refuse to read the same bytes in another way, where rows may be others and get the random numbers of these.

    Parameters
    ----------
    runs : sequence of Run
        What was released with the same draw.
    settings : mapping
        With delimiter, quote and encoding under ``text``, if there are any.

    Raises
    ------
    InputError
        Naming what is another one now.
    """
    now: Mapping[str, Any] = settings.get(TEXT, {})
    for run in runs:
        before: Mapping[str, Any] = run.settings.get(TEXT, {}) if run.dataset == dataset else {}
        for what in sorted(before.keys() & now.keys()):
            if before[what] != now[what]:
                raise InputError(
                    f"the job {name} has read these data with the {what} {_said(before[what])}, not "
                    f"{_said(now[what])}: records could get the random numbers of others; keep it, or draw anew "
                    "(--fresh-draw)"
                )


def _said(value: Any) -> str:
    return "none" if value is None else quoted(value)


def notices(
    released: Sequence[Run],
    dataset: str,
    draw: int,
    *,
    by_row: bool,
    fresh_draw: bool,
    other_channels: bool,
) -> tuple[str, ...]:
    """What the user should know of the releases before this one."""
    told: list[str] = []
    if fresh_draw and not draw:
        told.append("this job has released nothing before: its first draw is a fresh one in any case")
    before = len({run.draw for run in released if run.draw < draw})
    if before:
        told.append(
            f"the same records have been released before with {before} other {'draw' if before == 1 else 'draws'}: "
            "independent releases of a record can tell far more than each"
        )
    if other_channels:
        told.append(
            "other channels have been applied to these records in this job: each release keeps its own promise, but "
            "together they can tell more than either"
        )
    if not by_row and any(run.dataset != dataset for run in released):
        told.append(
            "the data set has changed since an earlier release: records whose symbol is another one now are released "
            "twice"
        )
    return tuple(told)


def _columns(use: Use) -> str:
    return listed(list(use.columns))


def _identity(columns: Sequence[str]) -> str:
    return f"the column {listed(list(columns))}" if columns else "their row number"
