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
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

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
from mechdesign.jobs.stopping import uninterrupted

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
