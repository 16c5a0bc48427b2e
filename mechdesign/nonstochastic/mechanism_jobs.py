"""A mechanism file at work: single records through the engine of channels, groups through exact sums in one pass."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import document_text
from mechdesign.core.errors import FileError, InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.formats.column_names import require_column
from mechdesign.formats.compression import Compression
from mechdesign.formats.digests import Census
from mechdesign.formats.folders import FolderSource, is_folder
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import CUT, Batch, open_source, packing_of
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.urls import STANDARD, is_url, local, place_of
from mechdesign.jobs.folders import sanitise_path
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.provisional_ledger import opened_ledger
from mechdesign.jobs.target import Target
from mechdesign.nonstochastic.answering import (
    BadCell,
    Groups,
    numbers_of,
    truths_of,
    usable_records,
)
from mechdesign.nonstochastic.claims import read_verified
from mechdesign.nonstochastic.dividing import largest_answers
from mechdesign.nonstochastic.ledger_entries import charged
from mechdesign.nonstochastic.mechanism_file import MechanismFile, Outside, ranks_of
from mechdesign.nonstochastic.release_answers import Quantised, Tally
from mechdesign.nonstochastic.sizes import released_number
from mechdesign.release.draws import Key

RECORDS = "records"
"""Header of the number of records of each group."""


class Asked(TypedDict, total=False):
    """How a table is read, what is released where it is not as the mechanism says, and what is written."""

    text: TextOptions | None
    column: str | None
    individual: str | None
    equals: str | None
    compression: Compression | None
    mechanism_path: PathLike | None
    force: bool
    progress: Progress | None
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
    **asked: Unpack[Asked],
) -> Quantised:
    """Release a table through a mechanism file: the same column, query, groups, range and budget."""
    held = read_verified(mechanism).mechanism
    held = held.meeting(outside or held.outside)
    return release_table(
        held, source, target, query=held.query, keep=(mechanism,), **asked
    )


def release_table(
    designed: MechanismFile | Callable[[Any], MechanismFile],
    source: PathLike,
    target: PathLike,
    *,
    query: str,
    keep: Sequence[PathLike] = (),
    **asked: Unpack[Asked],
) -> Quantised:
    """As `apply_mechanism`, with the mechanism for the table at hand; thresholds that it lacks are laid out as needed.

    `keep` are files that are still needed and never overwritten.
    """
    source, target = local(source), local(target)
    standard = os.fspath(target) == STANDARD or is_url(target)
    whole = query == "identity" and is_folder(source)
    beside = asked.get("mechanism_path") or (
        None if standard or whole else f"{os.fspath(target)}.mechanism.json"
    )
    if beside and Path(beside).absolute() == Path(target).absolute():
        raise InputError(
            f"{os.fspath(target)} cannot be the release and its mechanism file at once"
        )
    column, individual, equals = (
        asked.get(name) for name in ("column", "individual", "equals")
    )
    if query == "identity":
        if equals is not None:
            raise InputError(
                "a value to count is for a mechanism that counts, not for the identity"
            )
        made = (
            designed
            if isinstance(designed, MechanismFile)
            else _designed(designed, source, asked)
        )
        how: dict[str, Any] = {
            name: value for name, value in asked.items() if name in _AS_THEY_ARE
        }
        how |= {
            "columns": {made.column: column} if column else None,
            "manifest": beside,
            "channel_files": keep,
        }
        how |= {
            "identity": None if individual is None else [individual],
            "ledger": asked.get("ledger"),
        }
        result = sanitise_path(made, source, target, **how, **asked.get("records", {}))
        # The result of the recipe of a mechanism.
        return cast("Quantised", result)
    if any(
        value not in (None, False, ()) for value in asked.get("records", {}).values()
    ):
        raise InputError(
            f"the {query} releases an answer for each group, and no records: leave out --add, --drop, --keep, "
            "--keep-order, --shuffle, --format, --escape-formulas"
        )
    with ExitStack() as stack:
        table: Any
        if is_folder(source):
            table = stack.enter_context(FolderSource(source, asked.get("text")))
            paths, check = (
                table.paths,
                lambda: None,
            )  # each is checked when it has been read
        else:
            folder = None if standard else Path(target).absolute().parent
            guarded = stack.enter_context(GuardedInput(source, spool=folder))
            table = stack.enter_context(
                open_source(guarded.path, asked.get("text"), name=guarded.name)
            )
            paths, check = (guarded.path,), guarded.check
        sides = [beside] if beside else []
        force, sources = asked.get("force", False), (*paths, *keep)
        out = stack.enter_context(
            Target(target, force=force, sources=sources, sides=sides)
        )
        rehearsed = asked.get("dry_run", False)
        ledger = opened_ledger(
            asked.get("ledger"), asked.get("key_from"), rehearsal=rehearsed
        )
        book = stack.enter_context(ledger)
        mechanism = designed if isinstance(designed, MechanismFile) else designed(table)
        run = Answering(mechanism, table, column, equals, asked.get("progress"), book)
        columns = run.grouped(individual)
        with open(out.part, "wb") as stream:
            table.write_table(
                stream,
                columns,
                compression=packing_of(table, target, None, asked.get("compression")),
            )
        check()
        done = run.tally.result(out.seal(), run.answers_each)
        done = replace(done, notices=(*done.notices, CUT)) if table.cut else done
        if asked.get("strict") and done.notices:
            raise InputError(
                f"{table.name}: a note, which --strict makes an error: {done.notices[0]}"
            )
        for side in sides:
            out.part_of_side(side).write_text(
                document_text(done.mechanism.document), encoding="utf-8"
            )
        with suppress(Rehearsed):
            if book is not None:
                place = place_of(target)
                done = charged(
                    book,
                    run.census.content(),
                    done,
                    equals,
                    source=table.name,
                    target=place,
                )
            if not rehearsed:
                out.commit()
    return done


def _designed(
    designed: Callable[[Any], MechanismFile], source: PathLike, asked: Asked
) -> MechanismFile:
    if os.fspath(source) == STANDARD:
        raise InputError(
            "the answers of a total budget are counted first, and the data read twice: name a file, not standard input"
        )
    made = FolderSource if is_folder(source) else open_source
    with made(source, asked.get("text")) as table:
        return designed(table)


_AS_THEY_ARE = (
    "text",
    "compression",
    "force",
    "progress",
    "key_from",
    "dry_run",
    "strict",
)


class Answering:
    """A table answered through a mechanism: every answer exact, its cell released."""

    def __init__(
        self,
        mechanism: MechanismFile,
        table: Any,
        column: str | None = None,
        equals: str | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.mechanism, self.table, self.equals = mechanism, table, equals
        self.column = column or mechanism.column
        if equals is not None and mechanism.query != "count":
            raise InputError(
                f"a value to count is for a mechanism that counts, not for the {mechanism.query}"
            )
        self.tally = Tally(mechanism, self.column)
        self.census = Census()
        self.answers_each: int | None = None
        self._progress, self._ledger = progress, ledger
        require_column(self.column, table.header)

    def batches(
        self, individual: str | None
    ) -> Iterator[tuple[Batch, NDArray[np.int64], list[Any]]]:
        """The records to release, as `usable_records` has them: the numbers, the groups, the individual if named."""
        names = [
            self.column,
            *self.mechanism.group_by,
            *([individual] if individual else []),
        ]
        for name in names[1:]:
            require_column(name, self.table.header)
        stored = (
            self.column
            if self.table.kind == "Parquet" and self.mechanism.query != "count"
            else None
        )
        missing, fresh = (
            self.mechanism.provenance.get("missing", "refuse"),
            not self.mechanism.mechanisms,
        )
        whole = self._ledger is not None
        for found in usable_records(
            self.table, names, missing, stored=stored, whole=whole, advise=fresh
        ):
            if self._ledger is not None:
                self.census.add(self._ledger.hasher.records(found[0]))
            yield found
            if self._progress is not None:
                self._progress(self.table.position, self.table.size)

    def who(self, individual: str) -> Groups:
        """Who is in which group, from a pass of its own."""
        groups = Groups()
        for _, rows, columns in self.batches(individual):
            groups.add(columns[1:-1], np.zeros(len(rows)), columns[-1])
        return groups

    def most(self, groups: Groups) -> int | None:
        """The most answers that one individual takes part in."""
        return groups.most_answers(single=self.mechanism.query == "identity")

    def grouped(self, individual: str | None) -> dict[str, Any]:
        """One answer for each group, from its exact sum: the columns of the output."""
        keys, tally, query = self.mechanism.group_by, self.tally, self.mechanism.query
        groups, marked = Groups(ordered=ranks_of(query, 1) != (0, 0)), set[int]()
        for _, rows, found in self.batches(individual):
            try:
                if query == "count":
                    numbers = truths_of(found[0], self.column, self.equals)
                else:
                    numbers = numbers_of(found[0], self.column)
                values, told = tally.inside(numbers)
            except BadCell as error:
                place = self.table.where(int(rows[error.position]))
                raise FileError(self.table.name, f"{place}: {error.what}") from None
            own, who = found[1 : 1 + len(keys)], found[-1] if individual else None
            dropped = told if self.mechanism.outside == "drop" else None
            group = groups.add(own, values[numbers.codes], who, dropped)
            marked.update(
                group[told].tolist() if told is not None and dropped is None else ()
            )
            tally.records += len(rows)
        if not tally.records:
            raise InputError(
                f"{self.table.name}: no records; an answer needs at least one"
            )
        self.answers_each = self.most(groups)
        (kept, answers), names, sizes = (
            self._answers(groups, marked),
            groups.keys,
            groups.sizes,
        )
        if self.mechanism.divided and individual:
            tally.largest = largest_answers(groups, tally.sized)
        tally.answers = len(answers)
        if not answers:
            raise InputError(
                f"{self.table.name}: no value lies in the range, and nothing is left to answer"
            )
        columns: dict[str, Any] = {
            key: [names[g][k] for g in kept] for k, key in enumerate(keys)
        }
        return columns | {
            RECORDS: [sizes[g] for g in kept],
            self.mechanism.answer: answers,
        }

    def _answers(
        self, groups: Groups, marked: set[int]
    ) -> tuple[list[int], list[float | str | None]]:
        """The groups of some records, and what is released for them; a `marked` one, with a value outside, is empty."""
        query, ordered = (
            self.mechanism.query,
            ranks_of(self.mechanism.query, 1) != (0, 0),
        )
        many, unit = (
            groups.ranked(lambda size: ranks_of(query, size))
            if ordered
            else groups.totals()
        )
        kept, released = list[int](), list[float | str | None]()
        answers, errors = np.zeros((2, len(groups)))
        times = np.ones(len(groups), dtype=np.int64)

        @cache
        def placing(
            size: int,
        ) -> tuple[int, int, Callable[[int], int], Callable[[int], float]]:
            quantizer, own = (
                self.tally.quantizer(size),
                unit / size if query == "mean" else unit,
            )
            shown = cache(lambda cell: float(released_number(query, quantizer, cell)))
            return *own.as_integer_ratio(), quantizer.placing(own), shown

        for g, (total, size) in enumerate(zip(many, groups.sizes, strict=True)):
            times[g] = size > 0 and g not in marked
            if size == 0:
                continue
            kept.append(g)
            up, down, place, shown = placing(size)
            if times[g]:
                released.append(shown(place(total)))
                answers[g] = total * up / down
                errors[g] = abs(released[-1] - answers[g])
            else:
                released.append(None if self.table.kind == "Parquet" else "")
        self.tally.tell(answers, errors, times)
        return kept, released
