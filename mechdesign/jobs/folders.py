"""A folder or a glob of data files: each is a job of its own, and all of them appear together or
not at all.

To the ledger every file is a data set. So by row number each has a key of its own, and one that
comes again the next night gets the draws that it had; by identifier all share one key. They are
written to a folder beside the target, ``.NAME.part``, which takes its name when all are complete.
The ledger knows them by their last names meanwhile, and forgets them if it comes to nothing.

`sanitise_path` releases one file, or hands a folder to `_FolderRelease.write`: make and lock the
temporary folder, release file after file into it, test all files together, and rename. For the
target ``out``::

    .out.part/a.csv, b.csv                 one release a file, each entered in the ledger
    .out.part/_manifests/a.csv.json, ...   its manifest
    .out.part/_SUCCESS                     the lock; at last the marker, with hashes of the files
    out        -> .out.old                 an older release steps aside
    .out.part  -> out                      and is removed when the new one has its name
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Unpack

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.documents import FileDocument, read_document, write_document
from mechdesign.core.errors import InputError
from mechdesign.core.file_locks import open_locked
from mechdesign.core.files import (
    EXISTS,
    PathLike,
    part_file,
    real_path,
    reason,
    sync_folder,
)
from mechdesign.core.progress import Progress
from mechdesign.core.records import Digest
from mechdesign.core.undoing import on_failure
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.compression import Compression
from mechdesign.formats.folders import files_of, is_folder
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.urls import is_url, local
from mechdesign.jobs.channel_recipe import OffersRecipe, recipe_of
from mechdesign.jobs.file_run import FileRecipe
from mechdesign.jobs.folder_names import name_notes, output_names
from mechdesign.jobs.folder_table import refuse_as_one_table
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.options import FileKeywords, FileOptions, options_of
from mechdesign.jobs.provisional_ledger import ProvisionalLedger, opened_ledger
from mechdesign.jobs.release_file import release_file
from mechdesign.jobs.results import Released
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.stopping import keep_stoppable, uninterrupted
from mechdesign.leaks.crossing import Crossing
from mechdesign.release.draws import Key

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
        return {MARKER, *self.files, *(_manifest(name) for name in self.files)}


def _manifest(name: str) -> str:
    """The place of a file's manifest in the folder."""
    return f"{MANIFESTS}/{name}.json"


def sanitise_path(
    channels: Channel | Sequence[Channel] | OffersRecipe,
    source: PathLike,
    target: PathLike,
    *,
    dry_run: bool = False,
    key_from: Key | None = None,
    ledger: PathLike | None,
    manifest: PathLike | None = None,
    internal_manifest: PathLike | None = None,
    codebook: PathLike | None = None,
    channel_files: Sequence[PathLike] = (),
    text: TextOptions | None = None,
    compression: Compression | None = None,
    format: str | None = None,
    escape_formulas: bool = False,
    force: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
    **options: Unpack[FileKeywords],
) -> Released:
    """What `sanitise_file` does, for a file or for all files of a folder or glob; or only check
    that it can be done.

    `key_from` is the key of the ledger, where it is kept elsewhere. `warn` is called, before
    anything is read, with what an existing folder is about to lose.
    """
    source = local(source)
    target = local(target)
    if ledger is None and key_from is not None:
        raise InputError("--key-from is the key of a ledger: leave --insecure-seed out")
    asked = options_of("sanitise_path", FileKeywords, options, ledger=ledger)
    recipe = recipe_of(channels, asked)
    sides = Sides(manifest, internal_manifest, codebook, tuple(channel_files))
    files = FileOptions(
        text=text,
        compression=compression,
        format=format,
        escape_formulas=escape_formulas,
        force=force,
        strict=strict,
        progress=progress,
        warn=warn,
    )
    if is_folder(source):
        folder = _folder_release(
            recipe, source, target, ledger, key_from, sides, files, dry_run
        )
        return folder.write()
    if not dry_run:
        book: Ledger | PathLike | None = ledger
        if ledger is not None and key_from is not None:
            book = Ledger(ledger, key=key_from)
        return _released(recipe, source, target, book, sides, files)
    if ledger is None:
        raise InputError("--dry-run asks the ledger: leave --insecure-seed out")
    with opened_ledger(ledger, key_from, rehearsal=True) as rehearsal:
        return _released(recipe, source, target, rehearsal, sides, files)


def _folder_release(
    recipe: FileRecipe,
    source: PathLike,
    target: PathLike,
    ledger: PathLike | None,
    key: Key | None,
    sides: Sides,
    files: FileOptions,
    dry_run: bool,
) -> _FolderRelease:
    """The release of a folder; refuses options that only single files have."""
    if is_url(target):
        raise InputError(
            f"{target}: of URLs, single files are written; release the files one by one"
        )
    if ledger is None or recipe.options.fresh_draw or sides.paths:
        raise InputError(
            "the files of a folder are kept apart by their ledger, and each has its manifest "
            "in OUT/_manifests: leave --insecure-seed, --fresh-draw, --manifest, "
            "--internal-manifest and --codebook out"
        )
    return _FolderRelease(recipe, source, target, ledger, key, sides, files, dry_run)


def _released(
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


class _FolderRelease:
    """The release of all files of a folder: made once, then `write` is called once.

    Attributes
    ----------
    base, names
        The source folder, and the files in it by their paths from there.
    final, stage
        The target folder, and the temporary one beside it in which it is written.
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
        self.final = real_path(target)
        self.stage = part_file(self.final)
        inside = real_path(self.base)
        if self.final in (inside, *inside.parents) or inside in self.final.parents:
            raise InputError(
                f"{target} and {self.base} lie in each other: what one run wrote, the next would "
                "read"
            )
        self.outputs = output_names(self.names, files.format)

    def write(self) -> Released:
        """Release all files, or see that it can be done."""
        notes = name_notes(self.recipe, self.names, strict=self.files.strict)
        results: dict[str, Released] = {}
        with self._staged() as (ledger, held):
            if held and not self.files.force and {*self.outputs} != {*held}:
                raise self._exists()
            leaving = self._leaving_notes(held)

            # Every file is a whole release into the temporary folder, entered in the ledger.
            for output, name in self.outputs.items():
                self._link_held(output)
                results[output] = self._write_one(output, name, ledger, held)
                keep_stoppable()

            digests = {name: result.sha256 or "" for name, result in results.items()}
            marker = ReleasedFolder(files=digests, voids=notes)
            already = marker.files == held and all(
                result.already for result in results.values()
            )
            # Before the folder has its name, for a disclosure that was published is not undone.
            if not (already or self.dry_run):
                self._refuse_disclosure(ledger, results)
            if not already:
                refuse_as_one_table(
                    self._file_recipe,
                    [self.base / name for name in self.outputs.values()],
                    self.files.text,
                )
            if not (already or self.dry_run):
                # On file systems without links, the same files have been drawn once more.
                if held and not self.files.force:
                    raise self._exists()
                self._publish(ledger, marker)

        digest = ""
        if not self.dry_run:
            digest = hashlib.sha256((self.final / MARKER).read_bytes()).hexdigest()
        notices = [*notes, *leaving]
        for result in results.values():
            notices += result.notices
        return self.recipe.folder_result(
            list(results.values()),
            digest,
            already=already,
            notices=tuple(dict.fromkeys(notices)),
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

    def _exists(self) -> InputError:
        return InputError(EXISTS.format(self.target))

    def _link_held(self, output: str) -> None:
        """Have what an earlier release wrote at hand, so that a job that is done already need not
        write it again.
        """
        for name in (output, _manifest(output)):
            here = self.stage / name
            there = self.final / name
            here.parent.mkdir(parents=True, exist_ok=True)
            if there.is_file() and not here.exists():
                # A file system without links: then it is written once more.
                with suppress(OSError):
                    os.link(there, here)

    def _write_one(
        self,
        output: str,
        name: str,
        ledger: ProvisionalLedger,
        held: Mapping[str, str],
    ) -> Released:
        sides = Sides(
            manifest=self.stage / _manifest(output), channel_files=self.channel_files
        )
        files = replace(self.files, force=self.files.force or not held)
        return _released(
            self.recipe, self.base / name, self.stage / output, ledger, sides, files
        )

    def _refuse_disclosure(
        self, ledger: ProvisionalLedger, results: Mapping[str, Released]
    ) -> None:
        """Refuse copies of a file with the same random numbers, and files that tell of what is
        released.
        """
        options = self.recipe.options
        if self.recipe.draws and not options.identifiers:
            _refuse_copies(ledger, [*self.outputs])
        if options.keep_order or options.into is not None:
            return
        first = next(iter(results.values()))
        for column in first.columns:
            crossing = self._crossed(column)
            warning = self.recipe.split_warning(
                crossing, [*self.outputs], looks=len(first.columns)
            )
            if warning is not None:
                raise InputError(
                    f"the names of the files tell of {quoted(column)}: {warning}; arrange them in "
                    "another way, or keep this knowingly (--keep-order)"
                )

    def _crossed(self, column: str) -> Crossing:
        """How often each symbol was released in each file."""
        # The empty text counts, too.
        crossing = Crossing(limit=len(self.outputs) + 1)
        for name in self.outputs:
            with open_source(self.stage / name, self.files.text) as table:
                for batch in table.batches(encode=[column], whole=False):
                    cells = encode(batch.column(column), column)
                    file = Encoded(np.zeros(len(cells), np.int64), (name,))
                    crossing.add(file, cells)
        return crossing

    @contextmanager
    def _staged(self) -> Generator[tuple[ProvisionalLedger, Mapping[str, str]]]:
        """The ledger for the folder that will be the target, and what the target holds.

        At the end the folder with what was not published is removed.
        """
        mode = self.base.stat().st_mode & 0o777 | 0o700
        try:
            self.stage.mkdir(mode=mode, exist_ok=True)
            lock = open_locked(
                self.stage / MARKER,
                busy=f"another job is writing {self.target}; wait until it finishes",
            )
        except OSError as error:
            raise InputError(
                f"{self.target} cannot be written: {reason(error)}"
            ) from None
        try:
            # Only under the lock: a run at work renames the same folders.
            if not self.dry_run:
                self._mend()
            held = _held_files(self.final, self.target)
            ledger = ProvisionalLedger(
                self.ledger,
                self.stage,
                self.final,
                rehearsal=self.dry_run,
                key=self.key,
            )
            with on_failure(ledger.withdraw):
                yield ledger, held
        except InputError as error:
            text = str(error).replace(os.fspath(self.stage), os.fspath(self.target))
            raise InputError(text) from None
        finally:
            # The lock lasts until its folder is gone, so that no other run writes to it meanwhile.
            shutil.rmtree(self.stage, ignore_errors=True)
            os.close(lock)

    @property
    def _aside(self) -> Path:
        """Where the folder that is replaced waits until the new one has its name."""
        return self.final.with_name(REPLACED.format(self.final.name))

    def _mend(self) -> None:
        """Finish what a run began that was killed while folders changed their names."""
        if not self._aside.exists():
            return
        if self.final.exists():
            shutil.rmtree(self._aside)
        else:
            self._aside.rename(self.final)

    def _put_back(self) -> None:
        """Give the replaced folder its name back, if the new one could not take it."""
        if self._aside.exists():
            self._aside.rename(self.final)

    def _publish(self, ledger: ProvisionalLedger, marker: ReleasedFolder) -> None:
        """Give the folder its name; a crash leaves the old one, the new one, or none until the
        next run.
        """
        # In reverse order what is in a folder comes before the folder itself.
        for path in sorted(self.stage.rglob("*"), reverse=True):
            if path.is_dir():
                sync_folder(path)
            elif path.relative_to(self.stage).as_posix() not in marker.names:
                # Left by a run that was killed.
                path.unlink()
        # The marker comes last: a folder that has it is complete.
        write_document(self.stage / MARKER, marker, overwrite=True)
        with uninterrupted():
            # A folder cannot replace one that holds files, so there are two renames. A kill between
            # them leaves the old release aside, where `_mend` finds it.
            try:
                if self.final.exists():
                    self.final.rename(self._aside)
                with on_failure(self._put_back):
                    self.stage.rename(self.final)
            except OSError as error:
                raise InputError(
                    f"{self.final} cannot be given its name: {reason(error)}"
                ) from None
            # The files can be seen from here on: their entries must not be withdrawn any more.
            ledger.entered.clear()
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


def _refuse_copies(ledger: ProvisionalLedger, names: Sequence[str]) -> None:
    """By row number, files of the same content have the same random numbers, whether they are
    copies or not.
    """
    jobs: dict[str, str] = {}
    with ledger.reading() as db:
        for name in names:
            entry = ledger.last_of(db, os.fspath(ledger.stage / name))
            if entry is None or not entry.records:
                continue
            other = jobs.setdefault(entry.drawn[0].job, name)
            if other != name:
                raise InputError(
                    f"{name} and {other} hold the same records in the same order, which would get "
                    "the same random numbers: leave one out, or name what identifies a record "
                    "(--identity)"
                )
