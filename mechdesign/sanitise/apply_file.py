"""Apply channels to a data file: one draw for each record, everything else as it was, all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from mechdesign.errors import InputError
from mechdesign.files import PARQUET_SUFFIXES, PathLike
from mechdesign.policies import Policy
from mechdesign.progress import Progress
from mechdesign.release import LABEL, POSTERIOR_DRAW
from mechdesign.sanitise.compression import Compression, compression_named
from mechdesign.sanitise.job import Job
from mechdesign.sanitise.job_store import default_path
from mechdesign.sanitise.neighbours import neighbours_of
from mechdesign.sanitise.plan import FileChannel
from mechdesign.sanitise.recipe import Into, Names, recipe_of
from mechdesign.sanitise.run import Applied, Run
from mechdesign.sanitise.source_guard import STANDARD, GuardedInput
from mechdesign.sanitise.streams import Source, open_source
from mechdesign.sanitise.text_options import TextOptions
from mechdesign.sanitise.writing import Sides, uses_of

_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


def sanitise_file(
    channel: FileChannel | Sequence[FileChannel],
    source: PathLike,
    target: PathLike,
    *,
    columns: Mapping[str, str] | None = None,
    form: str = LABEL,
    into: Into | None = None,
    identity: Names | None = None,
    policy: Policy | None = None,
    keep_sensitive: bool = False,
    correlated: Names = (),
    text: TextOptions | None = None,
    compression: Compression | None = None,
    job: PathLike | None = None,
    job_beside: PathLike | None = None,
    fresh_draw: bool = False,
    insecure_seed: int | None = None,
    manifest: PathLike | None = None,
    internal_manifest: PathLike | None = None,
    codebook: PathLike | None = None,
    channel_files: Sequence[PathLike] = (),
    force: bool = False,
    progress: Progress | None = None,
) -> Applied:
    """Write `source` with the useful columns replaced by draws of their channels.

    Records keep their order. In a CSV the other cells keep their text and their quotes; in Parquet the other columns
    keep their types, values and nulls. The label of Y, a text, takes the place and the name of X. For crossed columns
    it takes the place of the first of the channel's columns, under their names joined with commas, and the other
    ones are left out. The target is complete or not there at all.

    Parameters
    ----------
    channel : FileChannel, or several
    source, target : path
        CSV (as it is, or compressed with gzip or Zstandard) or Parquet: what it is shows in its first bytes, and the
        target is of the same kind. A CSV target is compressed if its name ends in .gz or .zst. ``-`` is standard
        input or output.
    columns : mapping, optional
        The file's name of a column of a channel where it has another one there.
    form : str
        ``label``: the label of Y; ``posterior-draw``: a symbol of X drawn from P(X|Y) under the table.
    into : names, optional
        Add the released columns at the end under these names, and keep X.
    identity : column names, optional
        What identifies a record, for its draw; its row number otherwise.
    policy : Policy, optional
        What to do with unknown symbols and missing cells; by default both are refused.
    keep_sensitive : bool
        Whether sensitive columns, and those of `correlated`, may stay in the output.
    correlated : column names
        Further columns that must not stay.
    text : TextOptions, optional
        Delimiter, quote and encoding of a CSV.
    compression : 'gzip' or 'zstd', optional
        Of a CSV target, whatever its name.
    job : path, optional
        The job file, made with its key if there is none: the same data get the same draws whenever it runs.
        Without it the key is forgotten, and another run draws again.
    job_beside : path, optional
        Of a channel file: the job is the one for this data set, or identity, that is kept beside it
        (`job_store.default_path`), unless `job` names another.
    fresh_draw : bool
        Whether the job is to draw anew what it has released before.
    insecure_seed : int, optional
        Reproducible draws, for tests only, and without a job: whoever knows the seed can undo the release.
    manifest, internal_manifest, codebook : path, optional
        Further files to write with the output: what may go with it; what must stay inside; what the labels mean.
    channel_files : sequence of paths
        The files that the channels were read from, whose hashes go into the internal manifest.
    force : bool
        Whether existing files are replaced.
    progress : Progress, optional
        Told of the bytes read; the input is read twice.

    Raises
    ------
    InputError
        Naming the file and the line, column or symbol: a missing column, an unknown symbol, an empty cell or null
        (unless the channel has the empty symbol), a sensitive column that would stay, a place that cannot be
        written, a job that would draw the same records again, a file that changes meanwhile.
    """
    with_job = job is not None or job_beside is not None
    if with_job and insecure_seed is not None:
        raise InputError("an insecure seed is for tests and has no job; give one of the two")
    if fresh_draw and not with_job:
        raise InputError("without a job every draw is fresh; give the job, or leave fresh_draw out")
    if codebook is not None and form == POSTERIOR_DRAW:
        raise InputError("a codebook says what labels mean, and posterior draws are symbols of their own")
    recipe = recipe_of(
        channel,
        columns=columns,
        identity=identity,
        form=form,
        into=into,
        policy=policy,
        keep_sensitive=keep_sensitive,
        correlated=correlated,
        insecure_seed=insecure_seed,
    )
    sides = Sides(manifest, internal_manifest, codebook, tuple(channel_files))
    folder = None if os.fspath(target) == STANDARD else Path(target).absolute().parent
    with (
        GuardedInput(source, spool=folder, progress=_first_half(progress)) as guarded,
        open_source(guarded.path, text, name=guarded.name) as table,
    ):
        packing = compression or _packing(table, target)
        run = Run(recipe, guarded, table, target, packing, sides, force, progress)
        if job is None and job_beside is None:
            return run.alone(insecure_seed=insecure_seed is not None)
        uses = uses_of(recipe, run.plan, table.header)
        beside = (
            None if job_beside is None else default_path(job_beside, guarded.sha256, recipe.wishes.identity)
        )
        path = Path(job or beside or "")
        look = partial(
            neighbours_of,
            path,
            job_beside,
            guarded.sha256,
            uses,
            identity=recipe.wishes.identity,
            fresh_draw=fresh_draw,
        )
        look()  # before a job comes into being
        settings = {
            "into": into,
            "text": asdict(text or TextOptions()),
            "compression": packing,
            "keep_sensitive": keep_sensitive,
        }
        known = Job(
            path,
            dataset=guarded.sha256,
            uses=uses,
            identity=tuple(recipe.wishes.identity),
            fresh_draw=fresh_draw,
            settings=settings,
        )
        try:
            return run.of_job(known, look, job_beside)
        finally:
            known.abandon()


def _first_half(progress: Progress | None) -> Progress | None:
    """The input is read twice: to hash it, and to write it."""
    return None if progress is None else lambda done, total: progress(done, 2 * total)


def _packing(table: Source, target: PathLike) -> Compression | None:
    """The compression that the target's name asks for; refuses a name of the other kind of file."""
    path = Path(target)
    packed = compression_named(path)
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    if suffix in (_TEXT_SUFFIXES if table.kind == "Parquet" else PARQUET_SUFFIXES):
        raise InputError(
            f"{os.fspath(target)}: the input is a {table.kind} file and so is the output; name it accordingly"
        )
    return packed
