"""A job: one key, and what may be done with it.

The draw of a record is a function of the key, the channel and what identifies the record. So a job gives the same
draws as often as it runs, whatever interrupted it; `job_rules` says what it refuses.

What a job refuses: a second independent draw of a record, and one random number for two symbols of a record.

The number of a record belongs to the key, the channel and what identifies the record. If it met two different symbols
of X, the two outputs would depend on each other through it, and could tell more of the symbols than both promise.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mechdesign.core.documents import canonical, versions
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, holds, real_path
from mechdesign.core.numbers import listed, quoted
from mechdesign.release.draws import Key
from mechdesign.sanitise.job_file import DONE, FINISHING, JobRecord, JobRun, Settings, Use
from mechdesign.sanitise.job_store import JobStore, check_of, key_of_draw
from mechdesign.sanitise.source import STANDARD

REFUSE = "refuse"
TEXT = "text"
"""Among the settings of a run, how its CSV was read."""

SHORT = 12
"""Hexadecimal digits of a hash that are enough for people to tell data sets apart."""


def check_uses(uses: Sequence[Use]) -> None:
    """Refuse a channel that is applied to two columns of one data set."""
    seen: dict[str, Use] = {}
    for use in uses:
        first = seen.setdefault(use.channel, use)
        if first is not use:
            raise InputError(
                f"the same channel cannot be applied to {_columns(first)} and to {_columns(use)} in one job: both "
                "would get the same random numbers; release them in two jobs (--job)"
            )


def check_identity(had: Sequence[str], wanted: Sequence[str], name: str) -> None:
    """Refuse another way to identify records."""
    if tuple(had) != tuple(wanted):
        raise InputError(
            f"the job {name} identifies records by {_identity(had)}, not by {_identity(wanted)}; use another job "
            "(--job)"
        )


def check_dataset(runs: Sequence[JobRun], dataset: str, name: str) -> None:
    """Refuse another data set where records are known by their row numbers."""
    for run in runs:
        if run.dataset != dataset:
            raise InputError(
                f"the job {name} is that of the data set {run.dataset[:SHORT]}.., and this is {dataset[:SHORT]}..: row "
                "numbers would give records the random numbers of others; if records have an identifier, name its "
                "column (--identity COL), else use another job (--job) or draw anew (--fresh-draw)"
            )


def check_treatment(runs: Sequence[JobRun], uses: Sequence[Use], name: str) -> None:
    """Refuse to read the same channel's symbols in another way than before.

    What is published for a record without a symbol may change: its random number meets no second symbol then.
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


def check_reading(runs: Sequence[JobRun], dataset: str, settings: Settings, name: str) -> None:
    """Refuse to read the same bytes in another way, where rows may be others and get the random numbers of these."""
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
    released: Sequence[JobRun],
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


class Job:
    """A job that is ready to draw."""

    def __init__(
        self,
        path: PathLike,
        *,
        dataset: str,
        uses: Sequence[Use],
        identity: Sequence[str] = (),
        fresh_draw: bool = False,
        settings: Settings | None = None,
    ) -> None:
        self._store = JobStore(path)
        self.path = self._store.path
        self._dataset, self._uses, self._identity = dataset, tuple(uses), tuple(identity)
        self._fresh = fresh_draw
        # As they come back from the file: lists for tuples.
        self._settings: Settings = json.loads(canonical(dict(settings or {})))
        self._created = False
        check_uses(self._uses)
        with self._store.locked():
            record = self._opened()
        self.key_path = self._store.key_path
        self._key_check = record.key_check
        released = [run for run in record.runs if run.released]
        self.earlier = tuple(run for run in released if run.draw != self.draw)
        used = {use.channel for use in self._uses}
        self.other_channels = any(use.channel not in used for run in released for use in run.uses)
        self.notices = notices(
            released,
            dataset,
            self.draw,
            by_row=not identity,
            fresh_draw=fresh_draw,
            other_channels=self.other_channels,
        )

    def finished(self, target: PathLike, sides: Sequence[PathLike] = ()) -> JobRun | None:
        """The run that has written all of this to `target` already, if there is one; it is marked as done.

        So a job that was killed after its files had their names has nothing left to do, and one that is asked for
        the same thing again need not do it.
        """
        if os.fspath(target) == STANDARD or not all(Path(path).is_file() for path in (target, *sides)):
            return None
        wanted = self._run(target)
        with self._store.locked():
            record = self._current()
            run = record.last_release(wanted.target)
            if run is not None and run.same_release(wanted) and holds(run.target, run.output):
                return self._marked_done(record, run)
        return None

    def unfinished(self, target: PathLike) -> bool:
        """Whether a run was killed while the files of `target` were getting their names."""
        if os.fspath(target) == STANDARD:
            return False
        run = self._store.peek().last_release(os.fspath(real_path(target)))
        return run is not None and run.state == FINISHING

    @contextmanager
    def running(self, target: PathLike) -> Generator[RunningJob]:
        """Enter a run into the job file for the time of a ``with`` block, in which `target` is locked.

        If the block fails before anything was released, the entry is gone, and so is a job that began with it.
        """
        run = RunningJob(self, self._run(target))
        try:
            with self._store.locked():
                record = self._current()
                # Whoever has the lock of a target knows that the other runs of it are dead.
                record = record.without(lambda old: old.target == run.record.target and not old.released)
                self._store.save(record.with_run(run.record))
            yield run
        except BaseException:
            # The first error is the one to tell; a run that stays "running" does no harm.
            with suppress(InputError):
                self._withdraw(run.record)
            raise

    def abandon(self) -> None:
        """Remove a job that this object has made, if nothing was done with it."""
        if self._created:
            with suppress(InputError), self._store.locked():
                if not self._current().runs:
                    self._store.remove()
                self._created = False

    def _run(self, target: PathLike) -> JobRun:
        standard = os.fspath(target) == STANDARD
        return JobRun(
            id=secrets.token_hex(8),
            target=STANDARD if standard else os.fspath(real_path(target)),
            draw=self.draw,
            dataset=self._dataset,
            uses=self._uses,
            settings=self._settings,
            fresh=self._fresh,
            versions=versions(),
            started=_now(),
        )

    def _opened(self) -> JobRecord:
        """The record of the job, with its key in place; sets `key` and `draw`."""
        record = self._store.load()
        if record is None:
            self.draw = 0
            self._created = True
            return self._with_new_key(())
        check_identity(record.identity, self._identity, os.fspath(self.path))
        released = [run for run in record.runs if run.released]
        # A run that was killed on the way to a fresh draw is finished first, with that draw.
        killed = bool(released) and released[-1].fresh and released[-1].state == FINISHING
        self.draw = record.draw + int(self._fresh and bool(released) and not killed)
        self._check(record)
        key = self._store.key(record)
        if key is None and (self._fresh or not released):
            return self._with_new_key(record.runs)
        if key is None or self.draw < record.key_since:
            raise InputError(
                f"the key file {self._store.key_path} of this job is gone, and another key would draw the same records "
                "a second time, which can tell far more than one release: put it back, or accept that (--fresh-draw)"
            )
        self.key = key_of_draw(key, self.draw)
        return record

    def _check(self, record: JobRecord) -> None:
        """Refuse what does not go with the releases of the same draw."""
        before = [run for run in record.runs if run.released and run.draw == self.draw]
        name = os.fspath(self.path)
        if not self._identity:
            check_dataset(before, self._dataset, name)
        check_reading(before, self._dataset, self._settings, name)
        check_treatment(before, self._uses, name)

    def _with_new_key(self, runs: tuple[JobRun, ...]) -> JobRecord:
        key = Key.fresh()
        record = JobRecord(
            identity=self._identity,
            key_file=self._store.key_path.name,
            key_check=check_of(key),
            key_since=self.draw,
            runs=runs,
        )
        self._store.start(record, key)
        self.key = key_of_draw(key, self.draw)
        return record

    def _current(self) -> JobRecord:
        """The record as it is now; the lock must be held."""
        record = self._store.load()
        if record is None or record.key_check != self._key_check:
            raise InputError(f"the job {self.path} was removed or replaced meanwhile; start again")
        return record

    def _marked_done(self, record: JobRecord, run: JobRun) -> JobRun:
        if run.state != DONE:
            run = run.model_copy(update={"state": DONE, "finished": _now()})
            self._store.save(record.with_run(run))
        return run

    def finish(self, run: JobRun) -> None:
        """Enter that `run` is about to be released (see `RunningJob.finishing`)."""
        with self._store.locked():
            record = self._current()
            # Another process may have released something since this job was opened.
            self._check(record)
            # A run that was killed at this point was going to write the same bytes.
            record = record.without(
                lambda old: old.target == run.target and old.state == FINISHING and old.same_release(run)
            )
            self._store.save(record.with_run(run))

    def done(self, run: JobRun) -> None:
        """Enter that `run` has been released."""
        with self._store.locked():
            self._marked_done(self._current(), run)

    def _withdraw(self, run: JobRun) -> None:
        with self._store.locked():
            record = self._current()
            entry = next((old for old in record.runs if old.id == run.id), run)
            if entry.released and (entry.target == STANDARD or holds(entry.target, entry.output)):
                return  # it may have been seen
            record = record.without(lambda old: old.id == run.id)
            if self._created and not record.runs:
                self._store.remove()
                self._created = False
            else:
                self._store.save(record)


class RunningJob:
    """A run that is under way; its methods are what `Target.commit` calls."""

    def __init__(self, job: Job, record: JobRun) -> None:
        self._job = job
        self.record = record

    def finishing(self, output: str, records: int) -> None:
        """All data are on disk, and files are about to get their names."""
        self.record = self.record.model_copy(
            update={"state": FINISHING, "output": output, "records": records}
        )
        self._job.finish(self.record)

    def done(self) -> None:
        """The output has its name."""
        self._job.done(self.record)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
