"""Release all files of a folder or glob, as ``mechdesign apply`` does it (`release_path`).

All files of a folder or glob appear together or not at all. To the ledger every file is a data set.
So by row number each has a key of its own, and one that comes again the next night gets the draws
that it had; by identifier all share one key. The ledger knows the files by their last
names from the first entry on, and forgets them if the folder comes to nothing
(`ProvisionalLedger`).

`FolderRelease.write` takes these steps:

1. The temporary folder is locked (`FolderStage.locked`).
2. File after file is released into it, each a job with its manifest (`_release_files`). What an
   earlier release wrote is linked there first, so that a file that has not changed is only found
   complete.
3. All files are tested together: the outputs against each other (`refuse_copies`,
   `refuse_telling_files`), and the inputs as the one table that they are to whoever gets all of
   them (`refuse_as_one_table`).
4. The folder gets its name (`FolderStage.publish`).

Whatever fails before step 4 removes the temporary folder and withdraws the entries; what the target
held stays. A rehearsal (``--dry-run``) ends after step 3 and leaves nothing.

*Tests of the outputs.* Two things void the promise that no file shows by itself:

- Copies (`refuse_copies`). By row number the random numbers of a file follow from its content. Two
  files with the same records in the same order are one job in the ledger, by which they are found.
- The file of a record (`refuse_telling_files`). Everybody sees in which file a record is, so what
  was released must not differ from file to file by more than chance. For each released column its
  symbols are counted file by file, and `FileRecipe.split_warning` judges the table of counts. This
  one is refused::

               clerk   nurse
      a.csv      400       0
      b.csv        0     400

The input files are tested as one table (`refuse_as_one_table`).

*Names.* The names of the files and folders stay, but for their endings. `output_names` gives each
file its output, and refuses two files with one output. With the format parquet, for example,
``dt=1/a.csv.gz`` becomes ``dt=1/a.parquet``. `name_notes` looks at what the names disclose: folders
of Hive and Spark are called COLUMN=VALUE, and a value of a protected column must not be read from
one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.files import EXISTS, PathLike, on_failure, real_path
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.compression import compression_named
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import SUFFIXES, files_of
from mechdesign.jobs.column_plan import lookalikes
from mechdesign.jobs.file_run import FileRecipe
from mechdesign.jobs.folder_stage import (
    MARKER,
    FolderStage,
    ReleasedFolder,
    manifest_of,
    refuse_as_one_table,
)
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.ledger import ProvisionalLedger
from mechdesign.jobs.options import FileOptions, Released
from mechdesign.jobs.recipe import Recipe
from mechdesign.jobs.release_file import release_or_rehearse
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.stopping import keep_stoppable
from mechdesign.leaks.evidence import Crossing
from mechdesign.release.draws import Key
from mechdesign.tables.people import at_place
from mechdesign.tables.people_source import open_people
from mechdesign.tables.variable import Variable


class FolderRelease:
    """The release of all files of a folder: made once, then `write` is called once.

    Attributes
    ----------
    base, names
        The source folder, and the files in it by their paths from there.
    stage : FolderStage
        The temporary folder, in which the target is written.
    outputs : mapping
        The source file of each output file, both by their paths in their folders.
    """

    def __init__(
        self,
        recipe: FileRecipe,
        source: PathLike,
        target: PathLike,
        ledger: PathLike,
        key: Key | None,
        sides: Sides,
        files: FileOptions,
        dry_run: bool,
    ) -> None:
        self.recipe = recipe.for_folder()
        self._file_recipe = recipe
        self.target = target
        self.ledger = ledger
        self.key = key
        self.channel_files = sides.channel_files
        self.files = files
        self.dry_run = dry_run
        self.base, self.names = files_of(source)
        self.stage = FolderStage(target)
        inside = real_path(self.base)
        final = self.stage.final
        if final in (inside, *inside.parents) or inside in final.parents:
            raise InputError(
                f"{target} and {self.base} lie in each other: what one run wrote, the next would "
                "read"
            )
        self.outputs = output_names(self.names, files.format)

    def write(self) -> Released:
        """Release all files, or see that it can be done."""
        notes = name_notes(self.recipe, self.names, strict=self.files.strict)
        # Whoever cannot read the source folder cannot read this one; its owner must be able to
        # write to it.
        mode = self.base.stat().st_mode & 0o777 | 0o700
        with self.stage.locked(mode, mend=not self.dry_run) as held:
            ledger = ProvisionalLedger(
                self.ledger,
                self.stage.path,
                self.stage.final,
                rehearsal=self.dry_run,
                key=self.key,
            )
            with on_failure(ledger.withdraw):
                if held and not self.files.force:
                    self._refuse_other_release(held)
                notices = [*notes, *self._leaving_notes(held)]
                results = self._release_files(ledger, held)
                already = self._test_and_publish(ledger, results, held, notes)

        digest = ""
        if not self.dry_run:
            digest = hashlib.sha256(
                (self.stage.final / MARKER).read_bytes()
            ).hexdigest()
        for result in results.values():
            notices += result.notices
        return self.recipe.folder_result(
            list(results.values()),
            digest,
            already=already,
            notices=tuple(dict.fromkeys(notices)),
        )

    def _test_and_publish(
        self,
        ledger: ProvisionalLedger,
        results: Mapping[str, Released],
        held: Mapping[str, str],
        notes: tuple[str, ...],
    ) -> bool:
        """Test all files together and give the folder its name, unless an earlier run has done all
        of this: whether it has.
        """
        digests = {name: result.sha256 or "" for name, result in results.items()}
        marker = ReleasedFolder(files=digests, voids=notes)
        if marker.files == held and all(result.already for result in results.values()):
            return True
        self._test_together(ledger, results)
        if self.dry_run:
            return False
        # On file systems without links, the same files have been drawn once more.
        if held and not self.files.force:
            raise self._exists()
        # The files can be seen as soon as the folder has its name: their entries must not be
        # withdrawn from then on.
        self.stage.publish(marker, named=ledger.entered.clear)
        return False

    def _release_files(
        self, ledger: ProvisionalLedger, held: Mapping[str, str]
    ) -> dict[str, Released]:
        """Release every file into the temporary folder, entered in the ledger; by output."""
        files = replace(self.files, force=self.files.force or not held)
        results: dict[str, Released] = {}
        for output, name in self.outputs.items():
            self.stage.link_held(output)
            sides = Sides(
                manifest=self.stage.path / manifest_of(output),
                channel_files=self.channel_files,
            )
            results[output] = release_or_rehearse(
                self.recipe,
                self.base / name,
                self.stage.path / output,
                ledger,
                sides,
                files,
            )
            keep_stoppable()
        return results

    def _test_together(
        self, ledger: ProvisionalLedger, results: Mapping[str, Released]
    ) -> None:
        """Refuse files that disclose together what is protected.

        Before the folder has its name, for a disclosure that was published is not undone.
        """
        options = self.recipe.options
        if self.recipe.draws and not options.identifiers:
            refuse_copies(ledger, [*self.outputs])
        # A rehearsal has written no files to read.
        if not self.dry_run and not options.keep_order and options.into is None:
            first = next(iter(results.values()))
            refuse_telling_files(
                self.recipe,
                self.stage.path,
                [*self.outputs],
                first.columns,
                self.files.text,
            )
        refuse_as_one_table(
            self._file_recipe,
            [self.base / name for name in self.outputs.values()],
            self.files.text,
        )

    def _leaving_notes(self, held: Mapping[str, str]) -> tuple[str, ...]:
        """A note on files of the release that is there which the new one does not have."""
        leaving = sorted({*held} - {*self.outputs})
        if not leaving:
            return ()
        verb = "would leave" if self.dry_run else "leave"
        note = (
            f"{len(leaving)} of {len(held)} files {verb} {self.target}, since the input has them "
            f"no more: {leaving[0]}"
        )
        if len(leaving) > 1:
            note += f" to {leaving[-1]}"
        if self.files.strict:
            raise InputError(f"a note, which --strict makes an error: {note}")
        if self.files.warn is not None:
            # While the files are still there: drawing takes its time, and can be stopped.
            self.files.warn(note)
        return (note,)

    def _refuse_other_release(self, held: Mapping[str, str]) -> None:
        """Refuse a folder whose release is another one, or has lost a file."""
        if {*self.outputs} != {*held}:
            raise self._exists()
        for name in held:
            if not (self.stage.final / name).exists():
                raise InputError(
                    f"{self.target}: {name} was released there, and is gone: write the folder "
                    "anew (--force); what the ledger knows is drawn as before"
                )

    def _exists(self) -> InputError:
        """The error that the target is there already, and may not be replaced."""
        return InputError(EXISTS.format(self.target))


def refuse_copies(ledger: ProvisionalLedger, names: Sequence[str]) -> None:
    """By row number, files of the same content have the same random numbers, whether they are
    copies or not.
    """
    jobs: dict[str, str] = {}
    rehearsed = {entry.target: entry for entry in ledger.rehearsed}
    with ledger.reading() as db:
        for name in names:
            target = os.fspath(ledger.stage / name)
            entry = rehearsed.get(target) or ledger.last_of(db, target)
            if entry is None or not entry.records:
                continue
            other = jobs.setdefault(entry.drawn[0].job, name)
            if other != name:
                raise InputError(
                    f"{name} and {other} hold the same records in the same order, which would get "
                    "the same random numbers: leave one out, or name what identifies a record "
                    "(--identity)"
                )


def refuse_telling_files(
    recipe: FileRecipe,
    folder: Path,
    names: Sequence[str],
    columns: Sequence[str],
    text: TextOptions | None,
) -> None:
    """Refuse files of which the names tell of a released column.

    Parameters
    ----------
    recipe : FileRecipe
        What judges the counts.
    folder, names
        Where the released files lie, and their names there.
    columns : sequence of str
        The released columns.
    text : TextOptions, optional
        How a CSV is read.
    """
    people = recipe.people
    for column in columns:
        # Released files begin with their header, whatever stood above it in the originals.
        written = None if text is None else text.of_output
        counted = partial(open_people, people=people, text=written)
        name = column
        if people is not None:
            # The records of a person hang together: one of each is counted.
            counted = partial(counted, names=recipe.options.renamed)
            channel_name = {own: name for name, own in recipe.options.renamed.items()}
            name = at_place(channel_name.get(column, column), 0)
        crossing = _crossed(folder, names, name, counted)
        warning = recipe.split_warning(crossing, names, looks=len(columns))
        if warning is not None:
            raise InputError(
                f"the names of the files tell of {quoted(column)}: {warning}; arrange them in "
                "another way, or keep this knowingly (--keep-order)"
            )


def _crossed(
    folder: Path, names: Sequence[str], column: str, opened: Callable[[Path], Any]
) -> Crossing:
    """How often each symbol of a column was released in each file."""
    # The empty text counts, too.
    crossing = Crossing(limit=len(names) + 1)
    for name in names:
        with opened(folder / name) as table:
            for batch in table.batches(encode=[column], whole=False):
                cells = encode(batch.column(column), column)
                file = Encoded(np.zeros(len(cells), np.int64), (name,))
                crossing.add(file, cells)
    return crossing


def output_names(names: Sequence[str], format: str | None) -> dict[str, str]:
    """The source files by the names of their outputs, which end as files of the `format` do; None
    for the same format.
    """
    outputs: dict[str, str] = {}
    for name in names:
        output = PurePath(name)
        if format is not None:
            output = _with_format(output, format)
        other = outputs.setdefault(output.as_posix(), name)
        if other != name:
            raise InputError(
                f"{name} and {other} would both be written to {output}; give one another name"
            )
    return outputs


def _with_format(path: PurePath, format: str) -> PurePath:
    """A name that ends as files of this format do; one that does already stays as it is."""
    # Two endings may go: that of the compression, then that of the other format.
    plain = path
    if compression_named(path):
        plain = path.with_suffix("")
    ending = plain.suffix.lower()
    if ending in SUFFIXES.get(format, ()):
        return path
    if any(ending in endings for endings in SUFFIXES.values()):
        plain = plain.with_suffix("")
    return path.with_name(f"{plain.name}.{format}")


def name_notes(
    recipe: Recipe, names: Sequence[str], *, strict: bool
) -> tuple[str, ...]:
    """Notes on the names of folders and files, which stay; refuses partitions named like a
    protected column.
    """
    columns = _partition_columns(names)
    protected = [*recipe.useful_columns, *recipe.private_columns]
    for name, column in lookalikes(columns, protected, exempt=()):
        raise InputError(
            f"the names of folders hold {quoted(name)}, which looks like the column "
            f"{quoted(column)}, and would stay: arrange the files in another way"
        )
    _refuse_symbols(recipe, names)
    if not columns and len(names) == 1:
        return ()

    which = ""
    if columns:
        which = f", with {listed(columns)}"
    note = (
        f"names of folders and files stay{which}: see that they, and who shares one, "
        "tell nothing"
    )
    if strict:
        raise InputError(f"a note, which --strict makes an error: {note}")
    return (note,)


def _refuse_symbols(recipe: Recipe, names: Sequence[str]) -> None:
    """Refuse names that are symbols of a protected column: ``high/`` says it of all its records."""
    if len(names) == 1 and len(PurePath(names[0]).parts) == 1:
        # One file, whose name everybody chooses.
        return
    *folders, files = _names_by_level(names)
    # Files are often called a, b, c.
    files = {name for name in files if len(name) > 1}
    for column, symbols in _protected_symbols(recipe).items():
        for parts in (*folders, files):
            found = sorted(part for part in parts if part.casefold() in symbols)
            # Numbers and letters may count the folders, unless all of them are symbols.
            words = [part for part in found if len(part) > 1 and not part.isdigit()]
            if words or (len(found) > 1 and len(found) == len(parts)):
                raise InputError(
                    f"a folder or file has the name {quoted((words or found)[0])}, which is a "
                    f"symbol of the column {quoted(column)}, and would stay: it tells it of all "
                    "its records; arrange the files in another way"
                )


def _names_by_level(names: Sequence[str]) -> list[set[str]]:
    """The names of folders, level by level, and last those of the files, without their endings; of
    COLUMN=VALUE the value.
    """
    depth = max(len(PurePath(name).parts) for name in names)
    levels: list[set[str]] = [set() for _ in range(depth)]
    for name in names:
        *folders, file = PurePath(name).parts
        for level, folder in enumerate(folders):
            _, equals, value = folder.partition("=")
            levels[level].add(unquote(value) if equals else folder)
        levels[-1].add(file.split(".")[0])
    return levels


def _protected_symbols(recipe: Recipe) -> dict[str, set[str]]:
    """The texts of the symbols of each protected column, in small letters."""
    symbols: dict[str, set[str]] = {}
    if not isinstance(recipe, KeyedRecipe):
        return symbols
    for channel in recipe.channels:
        variables: list[Variable] = []
        if channel.sensitive is not None and not recipe.options.keep_sensitive:
            variables.append(channel.sensitive)
        variables += channel.hidden
        for variable in variables:
            for part, column in enumerate(variable.columns):
                texts = symbols.setdefault(column, set())
                texts |= {symbol[part].casefold() for symbol in variable.symbols}
    # The empty symbol is no name.
    return {column: texts - {""} for column, texts in symbols.items()}


def _partition_columns(names: Sequence[str]) -> list[str]:
    """The columns that the folders of some files are named by: COLUMN=VALUE, in the escapes of
    URLs.
    """
    columns: dict[str, None] = {}
    for name in names:
        for folder in PurePath(name).parts[:-1]:
            column, equals, _ = folder.partition("=")
            if equals:
                columns[unquote(column)] = None
    return list(columns)
