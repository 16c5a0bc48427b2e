"""The release of all files of a folder or glob: they appear together or not at all.

To the ledger every file is a data set. So by row number each has a key of its own, and one that
comes again the next night gets the draws that it had; by identifier all share one key. The ledger
knows the files by their last names from the first entry on, and forgets them if the folder comes to
nothing (`ProvisionalLedger`).

`FolderRelease.write` takes these steps:

1. The temporary folder is locked (`FolderStage.locked`).
2. File after file is released into it, each a job with its manifest (`_release_files`). What an
   earlier release wrote is linked there first, so that a file that has not changed is only found
   complete.
3. All files are tested together: the outputs against each other (`folder_outputs`), and the inputs
   as the one table that they are to whoever gets all of them (`folder_table`).
4. The folder gets its name (`FolderStage.publish`).

Whatever fails before step 4 removes the temporary folder and withdraws the entries; what the target
held stays. A rehearsal (``--dry-run``) ends after step 3 and leaves nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from mechdesign.core.errors import InputError
from mechdesign.core.files import EXISTS, PathLike, real_path
from mechdesign.core.undoing import on_failure
from mechdesign.formats.folders import files_of
from mechdesign.jobs.file_recipe import FileRecipe
from mechdesign.jobs.folder_names import name_notes, output_names
from mechdesign.jobs.folder_outputs import refuse_copies, refuse_telling_files
from mechdesign.jobs.folder_stage import (
    MARKER,
    FolderStage,
    ReleasedFolder,
    manifest_of,
)
from mechdesign.jobs.folder_table import refuse_as_one_table
from mechdesign.jobs.options import FileOptions
from mechdesign.jobs.provisional_ledger import ProvisionalLedger
from mechdesign.jobs.release_file import release_or_rehearse
from mechdesign.jobs.results import Released
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.stopping import keep_stoppable
from mechdesign.release.draws import Key


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
                if held and not self.files.force and {*self.outputs} != {*held}:
                    raise self._exists()
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
        # A rehearsal has written no files to read.
        if not self.dry_run:
            self._refuse_telling_outputs(ledger, results)
        refuse_as_one_table(
            self._file_recipe,
            [self.base / name for name in self.outputs.values()],
            self.files.text,
        )

    def _refuse_telling_outputs(
        self, ledger: ProvisionalLedger, results: Mapping[str, Released]
    ) -> None:
        """Refuse copies of a file with the same random numbers, and files that tell of what is
        released.
        """
        options = self.recipe.options
        if self.recipe.draws and not options.identifiers:
            refuse_copies(ledger, [*self.outputs])
        if options.keep_order or options.into is not None:
            return
        first = next(iter(results.values()))
        refuse_telling_files(
            self.recipe,
            self.stage.path,
            [*self.outputs],
            first.columns,
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
