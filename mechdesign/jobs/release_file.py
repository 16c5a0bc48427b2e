"""Release a data file: one output for each record, everything else as it was, all of it or
nothing.

`release_file` opens the input, guarded against changes while it is read, and the ledger, and hands
a `FileRun` and the ledger to the recipe; the recipe draws, enters and renames
(`KeyedRecipe.write_file`). `sanitise_file` is the public function for channels.

The input is read at least twice: once to hash it, so that the ledger can tell whether it was
released before, and once to draw. Where counts can be fixed, `settled` reads the released columns
before that, and the guard of people may read others. Where the output is a file, temporary files
lie in its folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import STANDARD, PathLike, check_target, is_url, local
from mechdesign.core.progress import Progress
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import KINDS, Source, is_folder, open_source, packing_of
from mechdesign.formats.urls import place_of
from mechdesign.jobs.channel_recipe import OffersRecipe, recipe_of
from mechdesign.jobs.file_run import FileRecipe, FileRun
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.options import FileKeywords, FileOptions, Released, options_of
from mechdesign.jobs.people_run import PeopleRun, for_people, refuse_people
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.target import keep_off_ledger
from mechdesign.jobs.writing import FileFormat
from mechdesign.tables.people import People
from mechdesign.tables.people_source import PeopleSource
from mechdesign.tables.people_tables import first_records, records_of_source


def sanitise_file(
    channel: Channel | Sequence[Channel] | OffersRecipe,
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
    progress: Progress | None = None,
    **options: Unpack[FileKeywords],
) -> Released:
    """Write `source` with the useful columns replaced by draws of their channels.

    Records keep their order. In a CSV the other cells keep their text and their quotes; in Parquet
    the other columns keep their types, values and nulls. The label of Y, a text, takes the place
    and the name of X. For crossed columns it takes the place of the first of the channel's columns,
    under their names joined with commas, and the other ones are left out. The target is complete or
    not there at all.

    Parameters
    ----------
    channel : Channel, or several; or a MechanismFile for single records
    source, target : path
        CSV (as it is, or compressed with gzip or Zstandard) or Parquet, recognised by its first
        bytes. The target is of the same kind unless `format` says otherwise. A CSV target is
        compressed if its name ends in .gz or .zst. ``-`` is standard input or output.
    text : TextOptions, optional
        Delimiter, quote and encoding of a CSV.
    compression : 'gzip' or 'zstd', optional
        Of a CSV target, whatever its name.
    format : 'csv' or 'parquet', optional
        What the target is. All cells of a CSV are text in Parquet; those of Parquet are written in
        a CSV as channels see them: types, metadata, and what tells a null from an empty text, are
        lost.
    ledger : path, optional
        The ledger, made with its key if there is none: the same data get the same draws whenever
        they are released, and are not drawn a second time. Without it the key is forgotten, and
        another run draws again.
    manifest, internal_manifest, codebook : path, optional
        Further files to write with the output: what may go with it; what must stay inside; what the
        labels mean.
    channel_files : sequence of paths
        The files that the channels were read from: their hashes go into the internal manifest,
        their places into the ledger.
    force : bool
        Whether existing files are replaced.
    strict : bool
        Whether any note for the user is an error, and nothing is written.
    escape_formulas : bool
        Whether CSV cells that a spreadsheet would take for formulas get an apostrophe before them.
    progress : Progress, optional
        Called with the bytes read; the input is read twice.
    **options : fields of `ReleaseOptions`
        columns, identity, form, into, policy, keep_sensitive, correlated, drop, keep, shuffle,
        keep_order, changed, fresh_draw, draws, unit, nights, insecure_seed; explained
        in
        ``help(mechdesign.jobs.options.ReleaseOptions)``.

    Returns
    -------
    Applied, or RangeRelease through a mechanism, whose new file is the manifest

    Raises
    ------
    InputError
        Naming file and line, column or symbol: what is missing or unknown, would stay though
        sensitive, cannot be written, would be drawn a second time, or changes meanwhile.
    """
    book = ledger
    if isinstance(ledger, Ledger):
        ledger = ledger.path
    release_options = options_of("sanitise_file", FileKeywords, options, ledger=ledger)
    return release_file(
        recipe_of(channel, release_options),
        source,
        target,
        ledger=book,
        sides=Sides(manifest, internal_manifest, codebook, tuple(channel_files)),
        files=FileOptions(
            text=text,
            compression=compression,
            format=format,
            escape_formulas=escape_formulas,
            force=force,
            strict=strict,
            progress=progress,
        ),
    )


def release_file(
    recipe: FileRecipe,
    source: PathLike,
    target: PathLike,
    *,
    ledger: Ledger | PathLike | None,
    sides: Sides,
    files: FileOptions,
) -> Released:
    """Write `source` as a recipe releases it.

    Raises
    ------
    InputError
        As `sanitise_file`.
    """
    # Before anything is opened or hashed, which may take minutes.
    recipe.check_sides(sides)
    source = local(source)
    target = local(target)
    # Of local files `Target` sees to it, through all links; a URL is only known by its text.
    if is_url(target) and is_url(source) and place_of(source) == place_of(target):
        raise InputError(f"{target} is the input file itself; write to another file")
    # Temporary files lie beside the output: there is room for it, and a rename is atomic.
    folder = None
    if not (os.fspath(target) == STANDARD or is_url(target)):
        folder = Path(target).absolute().parent
    with (
        GuardedInput(
            source, spool=folder, progress=_first_half(files.progress)
        ) as guarded,
        open_source(guarded.path, files.text, name=guarded.name) as table,
    ):
        fields: dict[str, Any] = {
            "guarded": guarded,
            "target": target,
            "format": _output_format(table, target, files),
            "folder": folder,
            "sides": sides,
            "files": files,
        }
        if recipe.people is None:
            run = FileRun(recipe=recipe, table=table, **fields)
            with errors_naming(table.name):
                refuse_people(
                    recipe,
                    table.header,
                    partial(records_of_source, table),
                    partial(first_records, table),
                )
        else:
            if not isinstance(recipe, KeyedRecipe):
                raise TypeError("people are released through a channel")
            run = _run_of_people(recipe, recipe.people, table, fields)
            recipe = cast("FileRecipe", run.recipe)
        if ledger is None:
            return recipe.write_file(run, None)
        if not isinstance(ledger, Ledger):
            ledger = Ledger(ledger)
        # Before any output is opened, and whatever the user forces: a lost key loses all draws.
        keep_off_ledger((target, *sides.paths), ledger)
        try:
            return recipe.write_file(run, ledger)
        except Rehearsed as end:
            # The ledger, which ends a rehearsal, knows nothing of the run's notices.
            raise Rehearsed(end.args[0], run.notices) from None


def _run_of_people(
    recipe: KeyedRecipe, people: People, table: Source, fields: dict[str, Any]
) -> PeopleRun:
    """The run of a file of people with several records."""
    options = recipe.options
    source = PeopleSource(
        table,
        people,
        names=options.renamed,
        form=options.rules.cell_form,
        keep_waves=True,
    )
    return PeopleRun(
        recipe=replace(
            recipe, options=for_people(options), table_of_people=source.table
        ),
        # It has the interface of a file, and whatever goes with one goes with it.
        table=cast("Source", source),
        kept=options.kept,
        **fields,
    )


def release_or_rehearse(
    recipe: FileRecipe,
    source: PathLike,
    target: PathLike,
    ledger: Ledger | PathLike | None,
    sides: Sides,
    files: FileOptions,
) -> Released:
    """Release one file, or see that it can be done if the ledger is that of a rehearsal."""
    try:
        return release_file(
            recipe, source, target, ledger=ledger, sides=sides, files=files
        )
    except Rehearsed as end:
        entry, notices = end.args
        return recipe.rehearsed(entry, notices)


def check_places(source: PathLike, target: PathLike, files: FileOptions) -> None:
    """Refuse an input that cannot be read, and a name that its release cannot have, before the work
    of other steps. A pipe can be read only once, so it is left alone, as URLs and folders are.
    """
    source = local(source)
    target = local(target)
    is_read_once = os.path.exists(source) and not os.path.isfile(source)
    if is_url(source) or is_folder(source) or is_read_once:
        return
    if os.fspath(source) == STANDARD or os.fspath(target) == STANDARD or is_url(target):
        return
    # What a finished step wrote is there, and the step itself knows it again.
    check_target(target, force=True, sources=(source,))
    with open_source(source, files.text) as table:
        _output_format(table, target, files)


def _first_half(progress: Progress | None) -> Progress | None:
    """The progress of hashing the input: it is read twice, to hash it and to write it."""
    if progress is None:
        return None
    return lambda done, total: progress(done, 2 * total)


def _output_format(table: Source, target: PathLike, files: FileOptions) -> FileFormat:
    """How the target is written: as the source is, but for what the user asks for."""
    kind = table.kind
    if files.format is not None:
        if files.format not in KINDS:
            raise InputError(
                f"the format ({files.format!r}) must be csv or parquet (--format)"
            )
        kind = KINDS[files.format]
    packing = packing_of(table, target, kind, files.compression, files.text)
    if files.escape_formulas and kind != "CSV":
        raise InputError(
            f"{target}: a Parquet file has no formulas to escape (--escape-formulas)"
        )
    return FileFormat(kind, files.text, packing, files.escape_formulas)
