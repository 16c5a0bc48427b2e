"""One run of a job: from the opened input to the committed output."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mechdesign.errors import InputError
from mechdesign.exact import listed
from mechdesign.files import PathLike
from mechdesign.progress import Progress
from mechdesign.repeats import REMEMBERED
from mechdesign.sanitise.apart import keep_apart
from mechdesign.sanitise.compression import Compression
from mechdesign.sanitise.job import Job
from mechdesign.sanitise.lookalikes import refuse_inner
from mechdesign.sanitise.neighbours import Neighbours, remember
from mechdesign.sanitise.parquet_notes import free_notes
from mechdesign.sanitise.plan import secret_columns
from mechdesign.sanitise.recipe import Drawer, Recipe
from mechdesign.sanitise.source_guard import GuardedInput
from mechdesign.sanitise.streams import Source
from mechdesign.sanitise.target import Target, open_target
from mechdesign.sanitise.writing import Earlier, Sides, sides_hold, write_release, write_sides


@dataclass(frozen=True)
class Applied:
    """What was written.

    Attributes
    ----------
    records : int
    columns : tuple of str
        The released columns.
    sha256 : str
        Of the output's bytes.
    job : str or None
        The job file.
    already : bool
        Whether all of it had been written by an earlier run of the same job, and nothing was left to do.
    notices : tuple of str
        What the user should know.
    """

    records: int
    columns: tuple[str, ...]
    sha256: str
    job: str | None = None
    already: bool = False
    notices: tuple[str, ...] = ()


class Run:
    """A run, once its input is open and its columns are found."""

    def __init__(
        self,
        recipe: Recipe,
        guarded: GuardedInput,
        table: Source,
        target: PathLike,
        packing: Compression | None,
        sides: Sides,
        force: bool,
        progress: Progress | None,
    ) -> None:
        self._recipe = recipe
        self._guarded = guarded
        self._table = table
        self._target = target
        self._packing: Compression | None = packing
        self._sides = sides
        self._force = force
        self._progress = progress
        self._forgotten: tuple[str, ...] = ()
        tells = sides.codebook is not None and recipe.channels[0].joint is not None
        self._told: tuple[str, ...] = (_CODEBOOK,) if tells else ()
        try:
            self.plan = recipe.plan(table.header)
            self._check_inside()
        except InputError as error:
            raise InputError(f"{table.name}: {error}") from None

    def _check_inside(self) -> None:
        """Columns of a Parquet file can hold others, and the file notes of any kind."""
        schema, wishes = getattr(self._table, "schema", None), self._recipe.wishes
        if schema is None:
            return
        notes = free_notes(schema.metadata)
        if notes:
            self._told += (
                f"the file's own notes stay as they are: {listed(notes)}; see that they tell nothing of its records",
            )
        if not wishes.keep_sensitive:
            kept = [column.name for column in self.plan.columns if column.release is None]
            secret = [*secret_columns(self._recipe.channels, wishes), *wishes.correlated]
            refuse_inner(schema, kept, secret)

    def alone(self, *, insecure_seed: bool) -> Applied:
        """With the key of the recipe, which nobody keeps."""
        with self._opened() as out:
            sha256, records = self._written(out, self._recipe, Earlier(), insecure_seed=insecure_seed)
            out.commit()
        return self._applied(records, sha256, notices=self._forgotten)

    def of_job(self, job: Job, look: Callable[[], Neighbours], channel: PathLike | None = None) -> Applied:
        """With the key of the job, which knows of this run and of those before.

        Parameters
        ----------
        job : Job
        look : callable
            Looks through the other jobs, and refuses what they have released.
        channel : path, optional
            The file that the job is kept beside.
        """
        neighbours = look()
        keep_apart(
            (self._target, *self._sides.paths), (("the job file", job.path), ("the key file", job.key_path))
        )
        notices = (*job.notices, *neighbours.notices)
        others = job.other_channels or neighbours.other_channels
        earlier = Earlier(job.draw + neighbours.draws, (*job.earlier, *neighbours.same), others)
        done = job.finished(self._target, self._sides.paths)
        if done is not None and sides_hold(self._sides, self._recipe, done.output or ""):
            return self._applied(done.records or 0, done.output or "", job.path, notices, already=True)
        with self._opened(leftover=job.unfinished(self._target)) as out, job.running(self._target) as run:
            sha256, records = self._written(out, replace(self._recipe, key=job.key), earlier)
            if channel is not None:
                remember(job.path, channel)

            def before() -> None:
                # First the own entry, then the look at the others: of two jobs at the same time one sees the other.
                run.finishing(sha256, records)
                look()

            out.commit(before=before, after=run.done)
        return self._applied(records, sha256, job.path, (*notices, *self._forgotten))

    def _opened(self, *, leftover: bool = False) -> Target:
        return open_target(
            self._target,
            force=self._force,
            sources=(self._guarded.path,),
            sides=self._sides.paths,
            leftover=leftover,
        )

    def _written(
        self, out: Target, recipe: Recipe, earlier: Earlier, *, insecure_seed: bool = False
    ) -> tuple[str, int]:
        """Everything in its temporary place; the hash of the output, and the number of records."""
        drawer = Drawer(recipe, self._table.header)
        records = write_release(drawer, self._table, out.part, self._packing, self._advance)
        if any(release.repeats.full for release in drawer.releases):
            self._forgotten = (_FORGOTTEN,)
        self._guarded.check()
        sha256 = out.seal()
        write_sides(
            self._sides,
            out,
            drawer,
            output=sha256,
            records=records,
            dataset=self._guarded.sha256,
            earlier=earlier,
            insecure_seed=insecure_seed,
        )
        return sha256, records

    def _advance(self, share: float) -> None:
        if self._progress is not None:
            size = self._guarded.size
            self._progress(size + round(share * size), 2 * size)

    def _applied(
        self,
        records: int,
        sha256: str,
        job: Path | None = None,
        notices: tuple[str, ...] = (),
        *,
        already: bool = False,
    ) -> Applied:
        return Applied(
            records,
            self.plan.released,
            sha256,
            job=None if job is None else os.fspath(job),
            already=already,
            notices=(*self.plan.notices, *self._told, *notices),
        )


_FORGOTTEN = (
    f"there are more than {REMEMBERED:,} identifiers: whether one of the later ones comes again with another symbol, "
    "and so uses its random number twice, was not looked at"
)

_CODEBOOK = (
    "the last column of the codebook is computed from the table that the channel was designed for: leave it out of "
    "what is published if the frequencies in that table are secret"
)
