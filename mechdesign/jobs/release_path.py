"""Release a file, or all files of a folder or glob: the one function behind ``mechdesign apply``.

`sanitise_path` turns its arguments into a recipe, places of side files and options, and looks at
the source. A single file goes to `release_file`, with the ledger, or with one that enters nothing
if the user asks for a rehearsal (``--dry-run``). A folder or glob goes to `folders.FolderRelease`,
which opens its own ledger, for it knows the files by their last names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, is_url, local
from mechdesign.core.progress import Progress
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import is_folder
from mechdesign.jobs.channel_recipe import OffersRecipe, recipe_of
from mechdesign.jobs.file_run import FileRecipe
from mechdesign.jobs.folders import FolderRelease
from mechdesign.jobs.ledger import Ledger, opened_ledger
from mechdesign.jobs.options import FileKeywords, FileOptions, Released, options_of
from mechdesign.jobs.release_file import release_or_rehearse
from mechdesign.jobs.side_files import Sides
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
    release_options = options_of("sanitise_path", FileKeywords, options, ledger=ledger)
    recipe = recipe_of(channels, release_options)
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
        return release_or_rehearse(recipe, source, target, book, sides, files)
    if ledger is None:
        raise InputError("--dry-run asks the ledger: leave --insecure-seed out")
    with opened_ledger(ledger, key_from, rehearsal=True) as rehearsal:
        return release_or_rehearse(recipe, source, target, rehearsal, sides, files)


def _folder_release(
    recipe: FileRecipe,
    source: PathLike,
    target: PathLike,
    ledger: PathLike | None,
    key: Key | None,
    sides: Sides,
    files: FileOptions,
    dry_run: bool,
) -> FolderRelease:
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
    return FolderRelease(recipe, source, target, ledger, key, sides, files, dry_run)
