"""Releases of files through a mechanism: single records, or one answer for each group.

Both begin in `release_table`. `apply_mechanism` calls it with the mechanism of a file, and
`quantize_table` with a function that designs one for the table. Beside the release stands a
mechanism file: the thresholds that were in use, and what they guarantee.

A mechanism of the query ``identity`` releases record by record, and has its way through the jobs of
channels (`_release_records`). All other queries, a sum for example, release one answer for each
group (`_release_groups`):

1. Input, target and ledger are opened, and a mechanism designed if none is given.
2. One pass over the table gives the answers (`Answering`). They are written to a temporary file
   beside the target, and the mechanism file to another one.
3. The input is compared with what it was at first.
4. The release is entered in the ledger, which adds up the releases of the same records. Only then
   do the files get their names, the release last: it is never there without its mechanism file
   (`_publish`).

A rehearsal (``dry_run``) ends in the ledger, after all checks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from mechdesign.core.documents import document_text
from mechdesign.core.errors import InputError
from mechdesign.core.files import STANDARD, PathLike, is_url, local
from mechdesign.core.progress import Progress
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import (
    CUT,
    FolderSource,
    is_folder,
    open_source,
    packing_of,
)
from mechdesign.formats.urls import place_of
from mechdesign.jobs.ledger import Ledger, Rehearsed, opened_ledger
from mechdesign.jobs.release_path import sanitise_path
from mechdesign.jobs.target import Target, keep_off_ledger
from mechdesign.nonstochastic.claims import read_verified
from mechdesign.nonstochastic.mechanism_file import MechanismFile, Outside
from mechdesign.nonstochastic.release_answers import RangeRelease, charged
from mechdesign.nonstochastic.table_answers import Answering
from mechdesign.release.draws import Key

Design = MechanismFile | Callable[[Any], MechanismFile]
"""A mechanism, or a function that designs it for a table."""


PASSED_ON = (
    "text",
    "compression",
    "force",
    "progress",
    "warn",
    "key_from",
    "dry_run",
    "strict",
)
"""Options that a release of single records passes on to the jobs as they are."""


class ReleaseArguments(TypedDict, total=False):
    """Options of a release: reading, other names of columns, and writing.

    `column` is the column of numbers, where it has another name than in the mechanism. `individual`
    is the column that identifies individuals, and `equals` the value that a count counts.
    """

    text: TextOptions | None
    column: str | None
    individual: str | None
    equals: str | None
    compression: Compression | None
    mechanism_path: PathLike | None
    force: bool
    progress: Progress | None
    warn: Callable[[str], None]
    ledger: PathLike | None
    key_from: Key | None
    dry_run: bool
    strict: bool
    records: dict[str, Any]
    """Options of `sanitise_file` for releases record by record."""


def apply_mechanism(
    mechanism: PathLike,
    source: PathLike,
    target: PathLike,
    *,
    outside: Outside | None = None,
    **arguments: Unpack[ReleaseArguments],
) -> RangeRelease:
    """Release a table by the column, query, groups, range and budget of a mechanism file."""
    verified = read_verified(mechanism).mechanism
    treated = verified.meeting(outside or verified.outside)
    return release_table(
        treated, source, target, query=treated.query, keep=(mechanism,), **arguments
    )


def release_table(
    designed: Design,
    source: PathLike,
    target: PathLike,
    *,
    query: str,
    keep: Sequence[PathLike] = (),
    **arguments: Unpack[ReleaseArguments],
) -> RangeRelease:
    """As `apply_mechanism`, with a mechanism or a design of one.

    Thresholds for sizes of groups that the mechanism lacks are laid out by its rule.

    Parameters
    ----------
    designed
        The mechanism, or a function that designs it for the table at hand.
    query
        Its query.
    keep
        Files that are still needed and must not be overwritten.
    """
    source = local(source)
    target = local(target)
    mechanism_path = _mechanism_path(source, target, query, arguments)
    if mechanism_path and Path(mechanism_path).absolute() == Path(target).absolute():
        raise InputError(
            f"{os.fspath(target)} cannot be the release and its mechanism file at once"
        )
    if query == "identity":
        return _release_records(
            designed, source, target, mechanism_path, keep, arguments
        )
    return _release_groups(
        designed, source, target, mechanism_path, query, keep, arguments
    )


def _mechanism_path(
    source: PathLike, target: PathLike, query: str, arguments: ReleaseArguments
) -> PathLike | None:
    """The path of the mechanism file of a release.

    None if there is none, or one for every file of a folder.
    """
    path = arguments.get("mechanism_path")
    if path:
        return path
    files_of_folder = query == "identity" and is_folder(source)
    if _is_standard(target) or files_of_folder:
        return None
    return f"{os.fspath(target)}.mechanism.json"


def _is_standard(target: PathLike) -> bool:
    """Whether a target is standard output or a URL: other files cannot be beside it."""
    return os.fspath(target) == STANDARD or is_url(target)


def _release_records(
    designed: Design,
    source: PathLike,
    target: PathLike,
    mechanism_path: PathLike | None,
    keep: Sequence[PathLike],
    arguments: ReleaseArguments,
) -> RangeRelease:
    """Release single records through the jobs of channels."""
    if arguments.get("equals") is not None:
        raise InputError(
            "a value to count is for a mechanism that counts, not for the identity"
        )
    if isinstance(designed, MechanismFile):
        mechanism = designed
    else:
        mechanism = _designed(designed, source, arguments)
    # The jobs rename columns by a mapping, and take any number of identifiers.
    columns: dict[str, str] | None = None
    column = arguments.get("column")
    if column:
        columns = {mechanism.column: column}
    identity: list[str] | None = None
    individual = arguments.get("individual")
    if individual is not None:
        identity = [individual]
    options: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in PASSED_ON:
            options[name] = value
    result = sanitise_path(
        mechanism,
        source,
        target,
        **options,
        columns=columns,
        manifest=mechanism_path,
        channel_files=keep,
        identity=identity,
        ledger=arguments.get("ledger"),
        **arguments.get("records", {}),
    )
    # The recipe of a mechanism has results of this type.
    return cast("RangeRelease", result)


def _designed(
    design: Callable[[Any], MechanismFile],
    source: PathLike,
    arguments: ReleaseArguments,
) -> MechanismFile:
    """The mechanism for a table, from a pass of its own."""
    if os.fspath(source) == STANDARD:
        raise InputError(
            "the answers of a total budget are counted first, and the data read twice: name a "
            "file, not standard input"
        )
    if is_folder(source):
        with FolderSource(source, arguments.get("text")) as folder:
            return design(folder)
    with open_source(source, arguments.get("text")) as table:
        return design(table)


def _release_groups(
    designed: Design,
    source: PathLike,
    target: PathLike,
    mechanism_path: PathLike | None,
    query: str,
    keep: Sequence[PathLike],
    arguments: ReleaseArguments,
) -> RangeRelease:
    """Release an answer for each group, in the steps that the module lists."""
    _refuse_record_options(query, arguments)
    sides: list[PathLike] = []
    if mechanism_path:
        sides.append(mechanism_path)
    rehearsal = arguments.get("dry_run", False)
    with ExitStack() as stack:
        opened = _opened_input(stack, source, target, arguments)
        out = stack.enter_context(
            Target(
                target,
                force=arguments.get("force", False),
                sources=(*opened.paths, *keep),
                sides=sides,
                # Nothing is drawn, so the same job writes the same bytes.
                repeatable=True,
            )
        )
        ledger = stack.enter_context(
            opened_ledger(
                arguments.get("ledger"), arguments.get("key_from"), rehearsal=rehearsal
            )
        )
        if ledger is not None:
            keep_off_ledger((target, *sides), ledger)
        answering = _answering(designed, opened.table, arguments, ledger)
        _write_answers(out, target, answering, arguments)
        # Before anything has its name: the answers are not those of a table that changed.
        opened.check_unchanged()
        result = answering.tally.result(out.seal(), answering.answers_each)
        result = _with_notes(
            result, opened.table, strict=arguments.get("strict", False)
        )
        for path in sides:
            text = document_text(result.mechanism.document)
            out.part_of_side(path).write_text(text, encoding="utf-8")
        return _publish(out, ledger, answering, result, target, rehearsal=rehearsal)


def _refuse_record_options(query: str, arguments: ReleaseArguments) -> None:
    """Raise InputError for an option of single records."""
    for value in arguments.get("records", {}).values():
        if value not in (None, False, ()):
            raise InputError(
                f"the {query} releases an answer for each group, and no records: leave out --add, "
                "--drop, --keep, --keep-order, --shuffle, --format, --escape-formulas"
            )


@dataclass(frozen=True)
class _GroupInput:
    """A table to answer, with its paths and a check that it did not change while it was read."""

    table: Any
    paths: tuple[PathLike, ...]
    check_unchanged: Callable[[], None]


def _no_check() -> None:
    """No check: every file of a folder is checked when it has been read."""


def _opened_input(
    stack: ExitStack, source: PathLike, target: PathLike, arguments: ReleaseArguments
) -> _GroupInput:
    """Open a table or a folder of tables."""
    if is_folder(source):
        folder = stack.enter_context(FolderSource(source, arguments.get("text")))
        return _GroupInput(folder, tuple(folder.paths), _no_check)
    spool: Path | None = None
    if not _is_standard(target):
        # Standard input is copied beside the target, where there is room for it.
        spool = Path(target).absolute().parent
    guarded = stack.enter_context(GuardedInput(source, spool=spool))
    opened = open_source(guarded.path, arguments.get("text"), name=guarded.name)
    table = stack.enter_context(opened)
    return _GroupInput(table, (guarded.path,), guarded.check)


def _answering(
    designed: Design, table: Any, arguments: ReleaseArguments, ledger: Ledger | None
) -> Answering:
    """The table with its mechanism, which may have to be designed for it first."""
    mechanism = designed
    if not isinstance(mechanism, MechanismFile):
        mechanism = mechanism(table)
    return Answering(
        mechanism,
        table,
        arguments.get("column"),
        arguments.get("equals"),
        arguments.get("progress"),
        ledger,
    )


def _write_answers(
    out: Target, target: PathLike, answering: Answering, arguments: ReleaseArguments
) -> None:
    """Answer all groups, and write a record for each to the unfinished file of the target."""
    table = answering.table
    columns = answering.grouped(arguments.get("individual"))
    packing = packing_of(table, target, None, arguments.get("compression"))
    with open(out.part, "wb") as stream:
        table.write_table(stream, columns, compression=packing)


def _with_notes(result: RangeRelease, table: Any, *, strict: bool) -> RangeRelease:
    """The result with a note of an input that was cut off; with `strict` any note is an error, that
    of a cell which holds whole records too.
    """
    if strict and table.hidden_note is not None:
        raise InputError(f"a note, which --strict makes an error: {table.hidden_note}")
    if table.cut:
        result = replace(result, notices=(*result.notices, CUT))
    if strict and result.notices:
        raise InputError(
            f"{table.name}: a note, which --strict makes an error: {result.notices[0]}"
        )
    return result


def _publish(
    out: Target,
    ledger: Ledger | None,
    answering: Answering,
    result: RangeRelease,
    target: PathLike,
    *,
    rehearsal: bool,
) -> RangeRelease:
    """Enter a release in the ledger and give its files their names; the result with its total."""
    # A file of the same name may have other bytes than these: nothing is charged for it then.
    out.refuse_others()
    # A rehearsal leaves the ledger by an exception, with nothing entered.
    with suppress(Rehearsed):
        if ledger is not None:
            result = _charge(ledger, answering, result, target)
        # The ledger first: a crash between the two charges for a release that is not there, and
        # never leaves a release that is not charged.
        if not rehearsal:
            out.commit()
    return result


def _charge(
    ledger: Ledger, answering: Answering, result: RangeRelease, target: PathLike
) -> RangeRelease:
    """Enter a release in the ledger; the result with the total of these records."""
    if answering.census is None:
        return result
    return charged(
        ledger,
        answering.census.content(),
        result,
        answering.equals,
        source=answering.table.name,
        target=place_of(target),
    )
