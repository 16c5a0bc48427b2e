"""A folder or a glob of data files: each is a job of its own, and all of them appear together or
not at all.

To the ledger every file is a data set. So by row number each has a key of its own, and one that
comes again the next night gets the draws that it had; by identifier all share one key. The ledger
knows the files by their last names from the first entry on, and forgets them if the folder comes to
nothing (`ProvisionalLedger`).

`sanitise_path` releases one file, or hands a folder to `_FolderRelease.write`. In this order that
locks the temporary folder (`FolderStage`), releases file after file into it, tests all files
together, and publishes the folder under its name. Whatever fails before the last step removes the
temporary folder and withdraws the entries; what the target held stays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import (
    EXISTS,
    PathLike,
    real_path,
)
from mechdesign.core.progress import Progress
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
from mechdesign.jobs.folder_stage import (
    MARKER,
    FolderStage,
    ReleasedFolder,
    manifest_of,
)
from mechdesign.jobs.folder_table import refuse_as_one_table
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.options import FileKeywords, FileOptions, options_of
from mechdesign.jobs.provisional_ledger import ProvisionalLedger, opened_ledger
from mechdesign.jobs.release_file import release_file
from mechdesign.jobs.results import Released
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.stopping import keep_stoppable
from mechdesign.leaks.crossing import Crossing
from mechdesign.release.draws import Key


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
    # A folder opens its own ledger, which knows the files by their last names.
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
    # All files appear at once because `FolderStage` renames a local folder. A URL is published
    # file by file (`Remote.publish`).
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
                if held and not self.files.force and {*self.outputs} != {*held}:
                    raise self._exists()
                notices = [*notes, *self._leaving_notes(held)]
                results = self._release_files(ledger, held)
                digests = {name: made.sha256 or "" for name, made in results.items()}
                marker = ReleasedFolder(files=digests, voids=notes)
                already = marker.files == held and all(
                    result.already for result in results.values()
                )
                if not already:
                    self._test_together(ledger, results)
                if not (already or self.dry_run):
                    # On file systems without links, the same files have been drawn once more.
                    if held and not self.files.force:
                        raise self._exists()
                    # The files can be seen as soon as the folder has its name: their entries must
                    # not be withdrawn from then on.
                    self.stage.publish(marker, named=ledger.entered.clear)

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
            results[output] = _released(
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
        # A rehearsal has written no files to read.
        if not self.dry_run:
            self._refuse_disclosure(ledger, results)
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

    def _exists(self) -> InputError:
        """The error that the target is there already, and may not be replaced."""
        return InputError(EXISTS.format(self.target))

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
            with open_source(self.stage.path / name, self.files.text) as table:
                for batch in table.batches(encode=[column], whole=False):
                    cells = encode(batch.column(column), column)
                    file = Encoded(np.zeros(len(cells), np.int64), (name,))
                    crossing.add(file, cells)
        return crossing


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
