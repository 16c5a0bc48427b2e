"""Apply channels to a data file: one draw for each record, everything else as it was, all of it or nothing.

A run goes from the opened input to the committed output. No output replaces a file that is needed to repeat or to
understand a release, whatever the user forces.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from mechdesign.channel.channel import Channel as Releasable
from mechdesign.core.documents import canonical, document_text
from mechdesign.core.errors import InputError, naming
from mechdesign.core.files import NamelessFile, PathLike, part_of, real_path
from mechdesign.core.numbers import listed
from mechdesign.core.progress import Progress
from mechdesign.formats.compression import Compression
from mechdesign.formats.digests import Census
from mechdesign.formats.inputs import STANDARD, GuardedInput, TextOptions
from mechdesign.formats.opening import CUT, KINDS, Source, open_source, packing_of
from mechdesign.formats.outputs import free_notes
from mechdesign.formats.urls import is_url, local, place_of
from mechdesign.jobs.column_plan import refuse_inner
from mechdesign.jobs.job import Earlier, Job, changes_told
from mechdesign.jobs.keys import TAG
from mechdesign.jobs.ledger import Ledger, Rehearsed, begins
from mechdesign.jobs.options import FileKeywords, ReleaseOptions, takes
from mechdesign.jobs.past_releases import charged
from mechdesign.jobs.recipe import Drawer, Looks
from mechdesign.jobs.shuffling import shuffle_file
from mechdesign.jobs.target import Target
from mechdesign.jobs.writing import (
    Sides,
    Told,
    Writing,
    sides_hold,
    uses_of,
    write_release,
    write_sides,
)
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.number_cells import NumbersRecipe, recipe_of
from mechdesign.nonstochastic.release_answers import Quantised, Tally
from mechdesign.release.drawing import LABEL, REMEMBERED


def keep_apart(
    outputs: Sequence[PathLike], vital: Sequence[tuple[str, PathLike]]
) -> None:
    """Refuse outputs that would replace a file that is still needed."""
    for output in outputs:
        if os.fspath(output) == STANDARD:
            continue
        place = real_path(output)
        if begins(place, TAG.encode()):
            raise InputError(
                f"{os.fspath(output)} holds the key of a job, which is never overwritten; name another"
            )
        for what, path in vital:
            there = place.exists() and Path(path).exists()
            if real_path(path) in (place, part_of(place)) or (
                there and place.samefile(path)
            ):
                raise InputError(
                    f"{os.fspath(output)} would overwrite {what} {os.fspath(path)}, which is still needed; give "
                    "another name"
                )


@dataclass(frozen=True)
class Applied:
    """What was written: `sha256` is of the output's bytes, `ledger` the place of the one in which it is entered.

    `already` says that an earlier run of the job had written all of it; `notices` are for the user; `others` is the
    number of columns that stay as they were, of which the promise says nothing.
    """

    records: int
    columns: tuple[str, ...]
    sha256: str
    ledger: str | None = None
    already: bool = False
    notices: tuple[str, ...] = ()
    others: int = 0


@dataclass
class Run:
    """A run, once its input is open and its columns are found."""

    recipe: Any  # of channels, or of a mechanism
    guarded: GuardedInput
    table: Source
    target: PathLike
    how: Writing
    folder: Path | None
    sides: Sides
    force: bool
    strict: bool
    reading: dict[str, Any]
    progress: Progress | None

    def __post_init__(self) -> None:
        tells = (
            self.sides.codebook is not None
            and self.recipe.channels[0].joint is not None
        )
        self.told: list[str] = [_CODEBOOK] if tells else []
        schema = getattr(
            self.table, "schema", None
        )  # of Parquet files, whose columns can hold others
        with naming(self.table.name):
            self.plan = self.recipe.plan(self.table.header)
            if schema is not None and not self.recipe.options.keep_sensitive:
                kept = {*self.plan.others} - {*self.recipe.options.kept}
                refuse_inner(
                    schema, kept, self.recipe.private_columns, self.recipe.replaced
                )
        if (
            schema is not None
            and self.how.kind == "Parquet"
            and (notes := free_notes(schema))
        ):
            self.told.append(
                f"the file's own notes stay as they are: {listed(notes)}; see that they tell nothing of its records"
            )

    def write(self, ledger: Ledger | None) -> Any:
        """With the keys of a ledger, which knows of this run and of those before; else with one that nobody keeps."""
        if ledger is not None:
            vital = (("the ledger", ledger.path), ("the key file", ledger.key_path))
            keep_apart((self.target, *self.sides.paths), vital)
        if isinstance(self.recipe, NumbersRecipe):
            return self._quantised(ledger)
        job = None if ledger is None else self._job(ledger)
        place = None if ledger is None else os.fspath(ledger.path)
        done = None if job is None else job.finished(self.target, self.sides.paths)
        if done is not None and sides_hold(self.sides, self.recipe, done.output or ""):
            self._heed(())
            return self._applied(done.records, done.output or "", place, already=True)
        with Target(
            self.target,
            force=self.force,
            sources=(self.guarded.path,),
            sides=self.sides.paths,
            private=() if self.sides.internal is None else (self.sides.internal,),
            leftover=job is not None and job.unfinished(self.target),
            again=done is not None,
        ) as out:
            while True:
                census = Census()
                drawer, records = self._prepared(out, job, census)
                content = census.content()
                earlier = Earlier() if job is None else job.met(content)
                if earlier is not None:
                    break
            sha256 = self._sealed(out, drawer, records, earlier)
            if job is None:
                out.commit()
            else:
                entry = job.entry(self.target, sha256, records, content, earlier.joint)
                job.commit(out, entry, content, drawer.releases)
        return self._applied(records, sha256, place)

    def _job(self, ledger: Ledger) -> Job:
        asked = self.recipe.options
        # The last ones only where they are used: releases of earlier versions had none.
        used = {
            "shuffle": asked.shuffle,
            "drop": asked.drop,
            "escape_formulas": self.how.escape,
        }
        used["format"] = self.how.kind != self.table.kind and self.how.kind
        always = {
            "into": asked.into,
            "text": self.reading,
            "compression": self.how.packing,
        }
        always |= {"keep_sensitive": asked.keep_sensitive}
        return Job(
            ledger,
            uses_of(self.recipe, self.plan, self.table.header),
            file=ledger.file_hash(self.guarded.sha256, canonical(self.reading)),
            identity=asked.identifiers,
            fresh_draw=asked.fresh_draw,
            settings=always | {name: value for name, value in used.items() if value},
            source=self.guarded.name,
            channels=self.recipe.channels,
            channel_files=self.sides.channel_files,
        )

    def _quantised(self, ledger: Ledger | None) -> Quantised:
        """Through a mechanism: nothing is drawn, and the ledger adds up what is told of the column."""
        census, beside = Census(), self.sides.manifest
        kept = (self.guarded.path, *self.sides.channel_files)
        with Target(
            self.target, force=self.force, sources=kept, sides=self.sides.paths
        ) as out:
            look: Told | None = ledger and (
                lambda batch: census.add(ledger.hasher.records(batch))
            )
            drawer, _ = self._drawn(out, self.recipe, look)
            self._refuse_hints(drawer)
            done = drawer.result(out.seal())
            self._heed(done.notices)
            done = replace(done, notices=(*self.plan.notices, *self.told))
            if beside is not None:
                out.part_of_side(beside).write_text(
                    document_text(done.mechanism.document), encoding="utf-8"
                )
            if ledger is not None:
                place = place_of(self.target)
                try:
                    done = charged(
                        ledger,
                        census.content(),
                        done,
                        source=self.guarded.name,
                        target=place,
                    )
                except Rehearsed:
                    return done
            out.commit()
        return done

    def _heed(self, more: Sequence[str]) -> None:
        """There is more to be noted; nothing must be, if the user is strict."""
        self.told += more
        for note in (*self.plan.notices, *self.told) if self.strict else ():
            raise InputError(
                f"{self.table.name}: a note, which --strict makes an error: {note}"
            )

    def _prepared(
        self, out: Target, job: Job | None, census: Census
    ) -> tuple[Drawer, int]:
        """As `_drawn`, with the keys of a job, whose ledger gets to know the records."""
        if job is None:
            return self._drawn(out, self.recipe)
        recipe = replace(self.recipe, keys=job.keys)
        return self._drawn(
            out, recipe, lambda batch: census.add(job.ledger.hasher.records(batch)), job
        )

    def _drawn(
        self, out: Target, recipe: Any, look: Told | None = None, job: Job | None = None
    ) -> tuple[Any, int]:
        """The output in its temporary place; who drew it, and the number of records."""
        drawer = recipe.drawer(self.table.header)
        if job is not None:
            job.prepare(drawer.releases)
        write = partial(
            write_release, drawer, self.table, advance=self._advance, look=look
        )
        if recipe.options.shuffle:
            with closing(NamelessFile(self.folder)) as plain:
                records = write(plain.path, replace(self.how, packing=None))
                key = recipe.keys[0].derived("order", self.guarded.sha256)
                shuffle_file(
                    plain.path,
                    out.part,
                    key,
                    self.how.text,
                    self.how.packing,
                    self.folder,
                )
        else:
            records = write(out.part, self.how)
        if self.table.cut:
            self.told += [CUT] if CUT not in self.told else []
        if any(
            release.seen.full or release.earlier.full for release in drawer.releases
        ):
            self.told += [_FORGOTTEN] if _FORGOTTEN not in self.told else []
        self.guarded.check()
        return drawer, records

    def _sealed(
        self, out: Target, drawer: Drawer, records: int, earlier: Earlier
    ) -> str:
        """The hash of the output, which is complete; everything else in its temporary place."""
        self._refuse_hints(drawer)
        changes = changes_told(drawer.releases)
        self._heed((*earlier.notices, *changes))
        sha256 = out.seal()
        notes = tuple(
            note for note in (*self.plan.notices, *self.told) if note not in changes
        )
        known = {"output": sha256, "records": records, "dataset": self.guarded.sha256}
        write_sides(
            self.sides, out, drawer, earlier, notes=notes, inner_notes=changes, **known
        )
        return sha256

    def _refuse_hints(self, drawer: Looks) -> None:
        """Refuse columns and an order that would give away what is released."""
        drawer.refuse_twins(f"{self.table.name}: ")
        drawer.refuse_order(f"{self.table.name}: ")

    def _advance(self, share: float) -> None:
        if self.progress is not None:
            size = self.guarded.size
            self.progress(size + round(share * size), 2 * size)

    def _applied(
        self, records: int, sha256: str, ledger: str | None, *, already: bool = False
    ) -> Applied:
        notices = (*self.plan.notices, *self.told)
        return Applied(
            records,
            self.plan.released,
            sha256,
            ledger,
            already,
            notices,
            len(self.plan.others),
        )


_FORGOTTEN = (
    f"there are more than {REMEMBERED:,} identifiers: whether one of the later ones comes again with another symbol, "
    "and so uses its random number twice, was not looked at"
)

_CODEBOOK = (
    "the last column of the codebook is computed from the table that the channel was designed for: leave it out of "
    "what is published if the frequencies in that table are secret"
)


@takes(FileKeywords)
def sanitise_file(
    channel: Releasable | Sequence[Releasable] | MechanismFile,
    source: PathLike,
    target: PathLike,
    *,
    text: TextOptions | None = None,
    compression: Compression | None = None,
    format: str | None = None,
    ledger: Ledger | PathLike | None = None,
    manifest: PathLike | None = None,
    internal_manifest: PathLike | None = None,
    codebook: PathLike | None = None,
    channel_files: Sequence[PathLike] = (),
    force: bool = False,
    strict: bool = False,
    escape_formulas: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    tally: Tally | None = None,
    **options: Unpack[FileKeywords],
) -> Any:
    """Write `source` with the useful columns replaced by draws of their channels.

    Records keep their order. In a CSV the other cells keep their text and their quotes; in Parquet the other columns
    keep their types, values and nulls. The label of Y, a text, takes the place and the name of X. For crossed columns
    it takes the place of the first of the channel's columns, under their names joined with commas, and the other
    ones are left out. The target is complete or not there at all.

    Parameters
    ----------
    channel : Releasable, or several; or a MechanismFile for single records
    source, target : path
        CSV (as it is, or compressed with gzip or Zstandard) or Parquet: what it is shows in its first bytes, and the
        target is of the same kind unless `format` says otherwise. A CSV target is compressed if its name ends in .gz or
        .zst. ``-`` is standard input or output.
    text : TextOptions, optional
        Delimiter, quote and encoding of a CSV.
    compression : 'gzip' or 'zstd', optional
        Of a CSV target, whatever its name.
    format : 'csv' or 'parquet', optional
        What the target is. All cells of a CSV are text in Parquet; those of Parquet are written in a CSV as channels
        see them: types, metadata, and what tells a null from an empty text, are lost.
    ledger : path, optional
        The ledger, made with its key if there is none: the same data get the same draws whenever they are released,
        and are not drawn a second time. Without it the key is forgotten, and another run draws again.
    manifest, internal_manifest, codebook : path, optional
        Further files to write with the output: what may go with it; what must stay inside; what the labels mean.
    channel_files : sequence of paths
        The files that the channels were read from: their hashes go into the internal manifest, their places into the
        ledger.
    force : bool
        Whether existing files are replaced.
    strict : bool
        Whether whatever would be noted is an error, and nothing is written.
    escape_formulas : bool
        Whether CSV cells that a spreadsheet would take for a formula get an apostrophe before them.
    jobs : int
        Threads: with 2, or 3 at most, records are read and drawn while others are written. The bytes are the same.
    progress : Progress, optional
        Told of the bytes read; the input is read twice.
    tally : Tally, optional
        What several releases of a mechanism, one for each file, add up to.

    Returns
    -------
    Applied, or Quantised through a mechanism, whose new file is the manifest

    Raises
    ------
    InputError
        Naming file and line, column or symbol: what is missing or unknown, would stay though sensitive, cannot be
        written, would be drawn a second time, or changes meanwhile.
    """
    if jobs < 1:
        raise InputError(f"the number of jobs ({jobs}) must be 1 or more (--jobs)")
    asked = ReleaseOptions(
        **options, ledger=ledger.path if isinstance(ledger, Ledger) else ledger
    )
    if codebook is not None and asked.form != LABEL:
        raise InputError("a codebook says what labels mean, and other forms need none")
    recipe = recipe_of(channel, asked, tally)
    if isinstance(recipe, NumbersRecipe) and (
        codebook is not None or internal_manifest is not None
    ):
        raise InputError(
            "a mechanism has neither codebook nor internal manifest: its file tells all (--manifest)"
        )
    sides = Sides(manifest, internal_manifest, codebook, tuple(channel_files))
    source, target = local(source), local(target)
    outside = os.fspath(target) == STANDARD or is_url(target)
    if is_url(target) and is_url(source) and place_of(source) == place_of(target):
        raise InputError(f"{target} is the input file itself; write to another file")
    folder = None if outside else Path(target).absolute().parent
    # The input is read twice: to hash it, and to write it.
    first: Progress | None = progress and (
        lambda done, total: progress(done, 2 * total)
    )
    with (
        GuardedInput(source, spool=folder, progress=first) as guarded,
        open_source(guarded.path, text, name=guarded.name) as table,
    ):
        if format not in (None, *KINDS):
            raise InputError(
                f"the format ({format!r}) must be csv or parquet (--format)"
            )
        kind = KINDS[format] if format else table.kind
        packing = packing_of(table, target, kind, compression)
        if escape_formulas and kind != "CSV":
            raise InputError(
                f"{target}: a Parquet file has no formulas to escape (--escape-formulas)"
            )
        how = Writing(kind, text, packing, escape_formulas, jobs)
        reading = asdict(text or TextOptions())
        run = Run(
            recipe,
            guarded,
            table,
            target,
            how,
            folder,
            sides,
            force,
            strict,
            reading,
            progress,
        )
        if ledger is not None and not isinstance(ledger, Ledger):
            ledger = Ledger(ledger)
        return run.write(ledger)
