"""A folder or a glob of data files: each is a job of its own, and all of them appear together or not at all.

To the ledger every file is a data set. So by row number each has a key of its own, and one that comes again the next
night gets the draws that it had; by identifier all share one key. They are written to a folder beside the target,
``.NAME.part``, which takes its name when all are complete. The ledger knows them by their last names meanwhile, and
forgets them if it comes to nothing. Also the rehearsal of a release: everything but the last step.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePath
from sqlite3 import Connection
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast
from urllib.parse import unquote

import numpy as np

from mechdesign.core.documents import FileDocument, read_document, write_document
from mechdesign.core.errors import InputError
from mechdesign.core.file_locks import open_locked
from mechdesign.core.files import (
    EXISTS,
    PathLike,
    part_of,
    real_path,
    reason,
    sync_folder,
)
from mechdesign.core.records import Digest
from mechdesign.core.undoing import on_failure
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.compression import compression_named
from mechdesign.formats.digests import Content
from mechdesign.formats.folders import files_of, is_folder
from mechdesign.formats.opening import SUFFIXES, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.urls import is_url, local
from mechdesign.jobs.column_plan import lookalikes
from mechdesign.jobs.ledger import NAME, Entry, Ledger, Rehearsed
from mechdesign.jobs.release_file import Applied, sanitise_file
from mechdesign.jobs.target import keep_stoppable, uninterrupted
from mechdesign.leaks.evidence import LEVEL, Crossing, decisive, log_evidence
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.release_answers import Tally
from mechdesign.release.draws import Key

ASIDE, MARKER, MANIFESTS = ".{}.old", "_SUCCESS", "_manifests"
"""The folder that is being replaced; what a released one holds besides, by names that are no data to Spark and Hive."""


class ReleasedFolder(FileDocument):
    """The marker of a folder that is complete: its data files with their hashes, and what may void the promise."""

    FORMAT: ClassVar[str] = "mechdesign.folder"
    WHAT: ClassVar[str] = "marker of a released folder"

    files: dict[str, Digest]
    voids: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """All files of the folder."""
        return {MARKER, *self.files, *map(_manifest, self.files)}


def _manifest(name: str) -> str:
    return f"{MANIFESTS}/{name}.json"


class ProvisionalLedger(Ledger):
    """A ledger for releases that may come to nothing.

    Files in the folder `stage` are known by the names that they get in `final`, and are withdrawn unless they are
    published. A rehearsal ends with `Rehearsed` where a release would be entered and its files get their names.
    """

    def __init__(
        self,
        path: PathLike,
        stage: Path,
        final: Path,
        *,
        rehearsal: bool,
        key: Key | None,
    ) -> None:
        self.stage, self.final, self._rehearsal = stage, final, rehearsal
        self.entered: list[Entry] = []
        self._taken: set[str] = set()
        if rehearsal and (not os.path.exists(path) or not os.path.getsize(path)):
            path = Ledger(stage / f".{NAME}", key=key).path
        super().__init__(path, key=key)

    def last_of(self, db: Connection, target: str) -> Entry | None:
        """The latest release to a place."""
        entry = super().last_of(db, self._named(target))
        return entry and entry.model_copy(update={"target": target})

    def enter(
        self, db: Connection, entry: Entry, content: Content | None = None
    ) -> None:
        """Enter a release, or what has become of it."""
        if self._rehearsal:
            raise Rehearsed(entry)
        super().enter(
            db, entry.model_copy(update={"target": self._named(entry.target)}), content
        )
        self.entered += (
            [entry] if content is not None and entry.id not in self._taken else []
        )

    def take_over(self, db: Connection, old: Entry, new: Entry) -> None:
        """Remove a release for another one, which is not withdrawn: what the first one wrote may have been seen."""
        super().take_over(db, old, new)
        self._taken.add(new.id)

    def withdraw(self) -> None:
        """Forget what was entered, unless others have released something since, who may rely on it."""
        with suppress(InputError), self.changing() as db:
            ours, known = (
                [entry.id for entry in self.entered],
                [entry.id for entry in self.releases(db)],
            )
            if ours and {*ours}.issuperset(known[known.index(ours[0]) :]):
                for entry in self.entered:
                    self.remove(db, entry)

    def _named(self, target: str) -> str:
        path = Path(target)
        return (
            os.fspath(self.final / path.relative_to(self.stage))
            if self.stage in path.parents
            else target
        )


@contextmanager
def opened_ledger(
    path: PathLike | None, key: Key | None, *, rehearsal: bool
) -> Generator[Ledger | None]:
    """The ledger, where one is wanted; in a rehearsal it is left as it is."""
    if path is None:
        yield None
    elif not rehearsal:
        yield Ledger(path, key=key)
    else:
        with TemporaryDirectory() as scratch:
            yield ProvisionalLedger(
                path, Path(scratch), Path(scratch), rehearsal=True, key=key
            )


def sanitise_path(
    channels: Sequence[Any] | MechanismFile,
    source: PathLike,
    target: PathLike,
    *,
    dry_run: bool = False,
    key_from: Key | None = None,
    **how: Any,
) -> Any:
    """What `sanitise_file` does, for a file or for all files of a folder or glob; or only see that it can be done.

    `key_from` is the key of the ledger, where it is kept elsewhere.
    """
    ledger: PathLike | None = how["ledger"]
    source, target = local(source), local(target)
    if ledger is None and key_from is not None:
        raise InputError("--key-from is the key of a ledger: leave --insecure-seed out")
    if is_folder(source):
        if is_url(target):
            raise InputError(
                f"{target}: of URLs, single files are written; release the files one by one"
            )
        sides = [
            how.pop(name, None) is not None
            for name in ("manifest", "internal_manifest", "codebook")
        ]
        if ledger is None or how.get("fresh_draw") or any(sides):
            raise InputError(
                "the files of a folder are kept apart by their ledger, and each has its manifest in OUT/_manifests: "
                "leave --insecure-seed, --fresh-draw, --manifest, --internal-manifest and --codebook out"
            )
        return _sanitise_folder(
            channels, source, target, key_from, how, dry_run=dry_run
        )
    if not dry_run:
        if key_from is not None:
            how["ledger"] = Ledger(ledger, key=key_from)
        return sanitise_file(channels, source, target, **how)
    if ledger is None:
        raise InputError("--dry-run asks the ledger: leave --insecure-seed out")
    with opened_ledger(ledger, key_from, rehearsal=True) as book:
        return _applied(channels, source, target, how | {"ledger": book})


def _applied(
    channels: Any, source: PathLike, target: PathLike, how: dict[str, Any]
) -> Any:
    try:
        return sanitise_file(channels, source, target, **how)
    except Rehearsed as done:
        entry: Entry = done.args[0]
        columns = tuple(column for drawn in entry.drawn for column in drawn.use.columns)
        return Applied(entry.records, columns, entry.output or "")


def _sanitise_folder(
    channels: Any,
    source: PathLike,
    target: PathLike,
    key: Key | None,
    how: dict[str, Any],
    *,
    dry_run: bool,
) -> Any:
    force = how.pop("force", False)
    base, names = files_of(source)
    final, inside = real_path(target), real_path(base)
    if final in (inside, *inside.parents) or inside in final.parents:
        raise InputError(
            f"{target} and {base} lie in each other: what one run wrote, the next would read"
        )
    outs = _placed(names, how.get("format"))
    told, exists = _of_names(channels, names, how), InputError(EXISTS.format(target))
    done: dict[str, Any] = {}
    tally, renamed = None, cast("Mapping[str, str]", how.get("columns") or {})
    if isinstance(channels, MechanismFile):
        tally = how["tally"] = Tally(
            channels, renamed.get(channels.column, channels.column)
        )
    with _staged(final, base, target, how, key, dry_run=dry_run) as (book, held):
        if held and not force and {*outs} != {*held}:
            raise exists
        for out, name in outs.items():
            for here, there in (
                (book.stage / each, final / each) for each in (out, _manifest(out))
            ):
                here.parent.mkdir(parents=True, exist_ok=True)
                if there.is_file() and not here.exists():
                    with suppress(
                        OSError
                    ):  # a file system without links: then it is written once more
                        os.link(there, here)
            own = {
                "ledger": book,
                "manifest": book.stage / _manifest(out),
                "force": force or not held,
            }
            done[out] = _applied(channels, base / name, book.stage / out, how | own)
            keep_stoppable()
        marker = ReleasedFolder(
            files={name: each.sha256 for name, each in done.items()}, voids=told
        )
        same = (
            marker.files == held
            and tally is None
            and all(each.already for each in done.values())
        )
        if not (same or dry_run):
            if (
                held and not force
            ):  # where files have no links, they have been drawn once more
                raise exists
            if not how.get("identity") and tally is None:
                _refuse_twins(book, [*outs])
            if not how.get("keep_order") and how.get("into") is None:
                if tally is None:
                    _refuse_split(
                        book.stage,
                        [*outs],
                        done[next(iter(outs))].columns,
                        how.get("text"),
                    )
                else:
                    _refuse_steps(book.stage, [*outs], tally.column, how.get("text"))
            _publish(book, marker)
    records, first = sum(each.records for each in done.values()), done[next(iter(outs))]
    digest = (
        "" if dry_run else hashlib.sha256((final / MARKER).read_bytes()).hexdigest()
    )
    notices = dict.fromkeys(
        [*told, *(text for each in done.values() for text in each.notices)]
    )
    if tally is not None:
        return replace(tally.result(digest), notices=tuple(notices))
    return replace(
        first, records=records, sha256=digest, already=same, notices=tuple(notices)
    )


def _placed(names: Sequence[str], format: str | None) -> dict[str, str]:
    """The files by their names in the target, which end as the format does that is asked for."""
    found: dict[str, str] = {}
    for name in names:
        path = PurePath(name)
        plain = path.with_suffix("") if compression_named(path) else path
        if format is not None and (ending := plain.suffix.lower()) not in SUFFIXES.get(
            format, ()
        ):
            known = any(ending in endings for endings in SUFFIXES.values())
            path = path.with_name(f"{plain.stem if known else plain.name}.{format}")
        if (other := found.setdefault(path.as_posix(), name)) != name:
            raise InputError(
                f"{name} and {other} would both be written to {path}; give one another name"
            )
    return found


def _of_names(
    channels: Any, names: Sequence[str], how: Mapping[str, Any]
) -> tuple[str, ...]:
    """What is to be known of the names of folders and files, which stay; refuses partitions by what is protected."""
    parts = [
        part for name in names for part in PurePath(name).parts[:-1] if "=" in part
    ]
    keys = list(dict.fromkeys(unquote(part.partition("=")[0]) for part in parts))
    renamed: Mapping[str, str] = how.get("columns") or {}
    if isinstance(channels, MechanismFile):
        columns = [channels.column]
    else:
        variables = [
            each
            for channel in channels
            for each in (channel.useful, channel.sensitive)
            if each
        ]
        columns = [name for each in variables for name in each.columns]
    columns = [renamed.get(name, name) for name in columns]
    for name, like in lookalikes(keys, [*columns, *how.get("correlated", ())], ()):
        raise InputError(
            f"the names of folders hold {quoted(name)}, which looks like the column {quoted(like)}, and would stay: "
            "arrange the files in another way"
        )
    if not keys and len(names) == 1:
        return ()
    which = f", with {listed(keys)}" if keys else ""
    told = f"names of folders and files stay{which}: see that they, and who shares one, tell nothing"
    if how.get("strict"):
        raise InputError(f"a note, which --strict makes an error: {told}")
    return (told,)


def _held(final: Path, target: PathLike) -> Mapping[str, str]:
    """The data files that an earlier release wrote to the folder; refuses one that holds anything else."""
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


@contextmanager
def _staged(
    final: Path,
    base: Path,
    target: PathLike,
    how: Mapping[str, Any],
    key: Key | None,
    *,
    dry_run: bool,
) -> Generator[tuple[ProvisionalLedger, Mapping[str, str]]]:
    """The ledger for the folder that will be the target, and what the target holds; what is left is removed."""
    stage = part_of(final)
    try:
        stage.mkdir(mode=base.stat().st_mode & 0o777 | 0o700, exist_ok=True)
        lock = open_locked(
            stage / MARKER,
            busy=f"another job is writing {target}; wait until it finishes",
        )
    except OSError as error:
        raise InputError(f"{target} cannot be written: {reason(error)}") from None
    try:
        old = final.with_name(ASIDE.format(final.name))
        if old.exists() and not dry_run:  # of a run that was killed while names changed
            shutil.rmtree(old) if final.exists() else old.rename(final)
        held = _held(final, target)
        book = ProvisionalLedger(
            how["ledger"], stage, final, rehearsal=dry_run, key=key
        )
        with on_failure(book.withdraw):
            yield book, held
    except InputError as error:
        raise InputError(
            str(error).replace(os.fspath(stage), os.fspath(target))
        ) from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        os.close(lock)


def _refuse_twins(book: ProvisionalLedger, names: Sequence[str]) -> None:
    """By row number, files of the same content have the same random numbers, whether they are copies or not."""
    jobs: dict[str, str] = {}
    with book.reading() as db:
        for name in names:
            entry = book.last_of(db, os.fspath(book.stage / name))
            if (
                entry
                and entry.records
                and (other := jobs.setdefault(entry.drawn[0].job, name)) != name
            ):
                raise InputError(
                    f"{name} and {other} hold the same records in the same order, which would get the same random "
                    "numbers: leave one out, or name what identifies a record (--identity)"
                )


def _refuse_split(
    stage: Path, names: Sequence[str], columns: Sequence[str], text: TextOptions | None
) -> None:
    """The file that a record is in is a kind of order: refuse files of which more was released alike than by chance."""
    for column in columns:
        if decisive(
            log_evidence(*_crossed(stage, names, column, text).table()), len(columns)
        ):
            raise InputError(
                f"the names of the files tell of {quoted(column)}: what was released differs between them (by chance "
                f"once in {round(1 / LEVEL):,} times at most); arrange them in another way, or keep this knowingly "
                "(--keep-order)"
            )


def _refuse_steps(
    stage: Path, names: Sequence[str], column: str, text: TextOptions | None
) -> None:
    """Files of months may have other numbers; refuse those that were made by the number: each begins where one ends."""
    crossing = _crossed(stage, names, column, text)
    numbers = [float(symbol or "nan") for symbol in crossing.symbols]
    files, symbols, counts = crossing.table()
    own = [np.array(numbers)[symbols[files == crossing.values[name]]] for name in names]
    ends = sorted(
        (np.nanmin(each), np.nanmax(each)) for each in own if np.isfinite(each).any()
    )
    apart = len(ends) > 1 and all(one[1] <= other[0] for one, other in pairwise(ends))
    if apart and decisive(log_evidence(files, symbols, counts)):
        raise InputError(
            f"the names of the files tell of {quoted(column)}: each file has numbers of its own; arrange them in "
            "another way, or keep this knowingly (--keep-order)"
        )


def _crossed(
    stage: Path, names: Sequence[str], column: str, text: TextOptions | None
) -> Crossing:
    """How often each symbol was released in each file."""
    crossing = Crossing()
    for name in names:
        with open_source(stage / name, text) as table:
            for batch in table.batches(encode=[column], whole=False):
                cells = encode(batch.column(column), column)
                crossing.add(Encoded(np.zeros(len(cells), np.int64), (name,)), cells)
    return crossing


def _publish(book: ProvisionalLedger, marker: ReleasedFolder) -> None:
    """Give the folder its name; a crash leaves the old one, the new one, or none until the next run."""
    stage, final, aside = (
        book.stage,
        book.final,
        book.final.with_name(ASIDE.format(book.final.name)),
    )
    for path in sorted(stage.rglob("*"), reverse=True):
        if path.is_dir():
            sync_folder(path)
        elif (
            path.relative_to(stage).as_posix() not in marker.names
        ):  # of a run that was killed
            path.unlink()
    write_document(stage / MARKER, marker, overwrite=True)
    with uninterrupted():
        try:
            if final.exists():
                final.rename(aside)
            with on_failure(lambda: aside.rename(final) if aside.exists() else None):
                stage.rename(final)
        except OSError as error:
            raise InputError(
                f"{final} cannot be given its name: {reason(error)}"
            ) from None
        book.entered.clear()
        sync_folder(final.parent)
    shutil.rmtree(aside, ignore_errors=True)
