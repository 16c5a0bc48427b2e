"""The temporary folder in which a folder is released, and how it gets its name.

This keeps the promise that a released folder is the old one, the new one, or (between two renames)
for a moment none, and never half of one. For the target ``out``::

    .out.part/a.csv, b.csv                 the files, each a release of its own
    .out.part/_manifests/a.csv.json, ...   their manifests
    .out.part/_SUCCESS                     the lock; at last the marker, with hashes of the files
    out        -> .out.old                 an older release steps aside
    .out.part  -> out                      and is removed when the new one has its name

The order of `FolderStage.publish` is: the names in all folders on disk, the marker on disk, two
renames, and the parent folder on disk. Only then the old release is removed. A run that was killed
between the renames left ``.out.old``; the next run gives it its name back (`_mend`).

*One table.* The files are tested as the one table that they are to whoever gets them all.
Each file was tested when it was released. Together they can disclose more. The files may have been
split by what is protected. An order of records may go on from file to file. A kept column may copy
a protected one, but too few records of a single file show it.

So `refuse_as_one_table` reads all input files once more:

1. Files with the same header become one `_JoinedTable`, with one drawer for all of them.
2. `_JoinedTable.add` has the drawer read a file as if it released it, and throws the draws away.
   What stays are the drawer's checks, which see the files as one, and the counts of the symbols in
   this file.
3. `_JoinedTable.refuse` asks whether the file of a record tells its symbol (`_refuse_split`; not
   with --keep-order), and then asks the checks of a single file (`DisclosureChecks.refuse`).

For example, these counts of the useful column refuse the folder, because the name of a file tells
the symbol::

                 clerk   nurse
    north.csv      900     100
    south.csv      100     900
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechdesign.core.documents import (
    Digest,
    FileDocument,
    read_document,
    write_document,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import (
    PathLike,
    on_failure,
    open_locked,
    part_file,
    real_path,
    reason,
    sync_folder,
)
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.inputs import forget_state
from mechdesign.formats.opening import Source
from mechdesign.jobs.file_run import FileRecipe
from mechdesign.jobs.options import ALL
from mechdesign.jobs.people_run import for_people
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.stopping import uninterrupted
from mechdesign.jobs.writing import schema_of
from mechdesign.leaks.evidence import decisive, log_evidence
from mechdesign.release.samplers import REFUSE
from mechdesign.tables.people_source import open_people

REPLACED = ".{}.old"
"""The name of the folder that is being replaced, for the moment between two renames."""

MARKER = "_SUCCESS"
MANIFESTS = "_manifests"
"""What a released folder holds beside its data, by names that are no data to Spark and Hive."""


class ReleasedFolder(FileDocument):
    """The marker of a complete folder: its data files with hashes, and what voids the promise."""

    FORMAT: ClassVar[str] = "mechdesign.folder"
    WHAT: ClassVar[str] = "marker of a released folder"

    files: dict[str, Digest]
    voids: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """All files of the folder."""
        return {MARKER, *self.files, *(manifest_of(name) for name in self.files)}


def manifest_of(name: str) -> str:
    """The place of a file's manifest in the folder."""
    return f"{MANIFESTS}/{name}.json"


class FolderStage:
    """The temporary folder beside a target: `locked` for the whole release, within which `publish`
    is called at most once.

    Attributes
    ----------
    target : path
        The released folder as the user names it.
    final, path : Path
        The real place of the released folder, and that of the temporary one.
    """

    def __init__(self, target: PathLike) -> None:
        self.target = target
        self.final = real_path(target)
        self.path = part_file(self.final)
        # Where the folder that is replaced waits until the new one has its name.
        self._aside = self.final.with_name(REPLACED.format(self.final.name))

    @contextmanager
    def locked(self, mode: int, *, mend: bool) -> Generator[Mapping[str, str]]:
        """Make the folder with these permissions, and lock it; gives the files that the target
        holds with their hashes.

        With `mend`, what a killed run left half renamed is put in order first. At the end the
        folder is removed, with all that was not published.
        """
        try:
            self.path.mkdir(mode=mode, exist_ok=True)
            lock = open_locked(
                self.path / MARKER,
                busy=f"another job is writing {self.target}; wait until it finishes",
            )
        except OSError as error:
            raise InputError(
                f"{self.target} cannot be written: {reason(error)}"
            ) from None
        try:
            # Only under the lock: a run at work renames the same folders.
            if mend:
                self._mend()
            yield _held_files(self.final, self.target)
        except InputError as error:
            text = str(error).replace(os.fspath(self.path), os.fspath(self.target))
            # Whether to start again does not depend on the name.
            named = InputError(text)
            named.exit_code = error.exit_code
            raise named from None
        finally:
            # The lock lasts until its folder is gone, so that no other run writes to it meanwhile.
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(lock)

    def _mend(self) -> None:
        """Finish what a run began that was killed while folders changed their names."""
        if not self._aside.exists():
            return
        if self.final.exists():
            shutil.rmtree(self._aside)
        else:
            self._put_back()

    def _put_back(self) -> None:
        """Give the replaced folder its name back, if the new one could not take it."""
        if self._aside.exists():
            self._aside.rename(self.final)

    def link_held(self, output: str) -> None:
        """Have what an earlier release wrote at hand, so that a job that is done already need not
        write it again.
        """
        for name in (output, manifest_of(output)):
            here = self.path / name
            there = self.final / name
            here.parent.mkdir(parents=True, exist_ok=True)
            if there.is_file() and not here.exists():
                # A file system without links: then it is written once more.
                with suppress(OSError):
                    os.link(there, here)

    def publish(self, marker: ReleasedFolder, named: Callable[[], None]) -> None:
        """Give the folder its name; a crash leaves the old one, the new one, or none until the
        next run.

        `named` is called when it has its name, and no signal comes in between.
        """
        # In reverse order what is in a folder comes before the folder itself.
        for path in sorted(self.path.rglob("*"), reverse=True):
            if path.is_dir():
                sync_folder(path)
            elif path.relative_to(self.path).as_posix() not in marker.names:
                # Left by a run that was killed.
                path.unlink()
        # The marker comes last: a folder that has it is complete.
        write_document(self.path / MARKER, marker, overwrite=True)
        with uninterrupted():
            # A folder cannot replace one that holds files, so there are two renames. A kill between
            # them leaves the old release aside, where `_mend` finds it.
            try:
                if self.final.exists():
                    self.final.rename(self._aside)
                with on_failure(self._put_back):
                    self.path.rename(self.final)
                forget_state(self.final)
            except OSError as error:
                raise InputError(
                    f"{self.final} cannot be given its name: {reason(error)}"
                ) from None
            named()
            sync_folder(self.final.parent)
        # Only when the new name is on disk: until then a power cut may bring the old folder back.
        shutil.rmtree(self._aside, ignore_errors=True)


def _held_files(final: Path, target: PathLike) -> Mapping[str, str]:
    """The data files that an earlier release wrote to the folder; refuses one that holds anything
    else.
    """
    if final.exists() and not final.is_dir():
        raise InputError(f"{target} is a file; give the name of a folder")
    marker = ReleasedFolder(files={}, voids=())
    with suppress(InputError):
        marker = read_document(final / MARKER, ReleasedFolder)
    for path in sorted(final.rglob("*")):
        if not path.is_dir() and path.relative_to(final).as_posix() not in marker.names:
            raise InputError(
                f"{target} holds {path.name}, which no release to it wrote; name another folder"
            )
    return marker.files


# --------------------------------------------------------------- the files as one table


def refuse_as_one_table(
    recipe: FileRecipe, paths: Sequence[Path], text: TextOptions | None
) -> None:
    """Raise InputError if files disclose together what a release through a recipe protects.

    Files with other columns than the others are a table of their own.
    """
    if len(paths) < 2:
        return
    recipe = _without_identity(recipe)
    names, form = recipe.options.renamed, recipe.options.rules.cell_form
    people = recipe.people
    if people is not None:
        recipe = replace(recipe, options=for_people(recipe.options))
    tables: dict[tuple[str, ...], _JoinedTable] = {}
    for path in paths:
        with open_people(path, people, text, names=names, form=form) as table:
            header = tuple(table.header)
            if header not in tables:
                tables[header] = _JoinedTable(recipe.drawer(header))
            tables[header].add(table)
    for joined in tables.values():
        joined.refuse()


def _without_identity(recipe: FileRecipe) -> FileRecipe:
    """The recipe for records that nothing identifies: nobody sees what is drawn here.

    A record may come in several files, with another symbol in each. The columns that identify it
    are left out: they name individuals, and each file was tested with them.
    """
    options = recipe.options
    names = options.identifiers
    kept = tuple(name for name in options.kept if name not in names)
    drop = tuple(dict.fromkeys((*options.drop, *names)))
    if options.keeps_all and options.into is None:
        kept = (*kept, ALL)
    changed = replace(
        options,
        identity=(),
        changed=REFUSE,
        drop=drop,
        keep=kept,
        ledger=None,
        nights=1,
        fresh_draw=False,
    )
    return replace(recipe, options=changed)


class _JoinedTable:
    """Files of the same columns, one after the other: `add` reads each, then `refuse` is called."""

    def __init__(self, drawer: Drawer) -> None:
        self._drawer = drawer
        self._records = 0
        self._symbol_counts: list[list[Integers]] = []

    def add(self, table: Source) -> None:
        """Read the next file."""
        drawer = self._drawer
        header = drawer.header
        # The drawer counts all files together; what it adds here are the symbols of this one.
        before = [counts.copy() for counts in drawer.counts]
        encoded, stored = drawer.reads(schema_of(table))
        for batch in table.batches(encode=encoded, read=stored):
            # Drawing counts the symbols, and puts them in their order.
            drawer.draw(
                lambda number, batch=batch: batch.column(header[number]),
                batch.num_rows,
                first_row=self._records,
            )
            drawer.checks.add(
                batch.num_rows, lambda step, batch=batch: batch.some(step).column
            )
            self._records += batch.num_rows
        added: list[Integers] = []
        for counts, earlier in zip(drawer.counts, before, strict=True):
            added.append(counts - earlier)
        self._symbol_counts.append(added)

    def refuse(self) -> None:
        """Raise InputError if the files as one table disclose what is protected."""
        options = self._drawer.recipe.options
        if not (options.keep_order or options.into is not None):
            self._refuse_split()
        self._drawer.checks.refuse("the files of the folder as one table: ")

    def _refuse_split(self) -> None:
        """Raise InputError if the file of a record discloses its symbol.

        Each channel has a table of counts, which `log_evidence` weighs against chance.

        Numbers may differ from file to file (months do); files that were split by them are refused
        by what is released (`FileRecipe.split_warning`).
        """
        if not self._drawer.recipe.draws:
            return
        useful = self._drawer.plan.inputs
        for k, numbers in enumerate(useful):
            # A contingency table with a row for each file and a column for each symbol.
            table = np.array([counts[k] for counts in self._symbol_counts])
            files, symbols = np.nonzero(table)
            evidence = log_evidence(files, symbols, table[files, symbols])
            if decisive(evidence, len(useful)):
                names = ",".join(str(self._drawer.header[number]) for number in numbers)
                raise InputError(
                    f"the names of the files tell of {quoted(names)}: its symbols differ from "
                    "file to file more than by chance; arrange them in another way, or keep this "
                    "knowingly (--keep-order)"
                )
