"""Recipes that draw at random: their keys come from a job of the ledger, or are used once and
forgotten.

`KeyedRecipe` keeps the order of the steps of a job (`jobs.job`) with those of the output; what is
released is said by `channel_recipe`. A file and a table at hand have these steps::

    write_file, for a file                       release_table, for a table at hand
    settled      counts fixed, or draws alone    settled
    Job          keys chosen by the bytes        Job          keys chosen by the records
    the target is locked                         -
    _drawn_file  drawn into a temporary file     Job.met      earlier releases looked up
    Job.met      earlier releases looked up      release      drawn
    Job.renewed  renewed identifiers looked for  Job.renewed  renewed identifiers looked for
    _seal        nothing disclosed; synced,      -
                 hashed, side files written
    Job.commit   entered, named, marked as done  Job.enter, Job.done

The orders differ because a file is drawn before its records are known, in one reading. If they turn
out to belong to another job, it is drawn again with that job's keys. Of a lazy table the ledger
sees no record, so `for_lazy_table` enters it at once, and it is drawn later, elsewhere, and perhaps
several times.

A kill before a file is entered leaves temporary files that the next run takes over, and nothing in
the ledger.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.files import PathLike
from mechdesign.formats.census import Content
from mechdesign.formats.digests import RecordCensus, RowHasher
from mechdesign.formats.opening import Batch
from mechdesign.formats.spellings import csv_as_text
from mechdesign.formats.urls import FRAME, LAZY
from mechdesign.jobs.bare_records import BareRecords
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.earlier_releases import (
    RELEASED_MEANWHILE,
    EarlierReleases,
    record_notices,
)
from mechdesign.jobs.file_run import FileRecipe, FileRun
from mechdesign.jobs.job import Job
from mechdesign.jobs.joint_budget import counts_all
from mechdesign.jobs.ledger import Entry, Ledger, Use
from mechdesign.jobs.manifest import DescribedChannel, Manifest
from mechdesign.jobs.options import Applied
from mechdesign.jobs.people_nights import PeopleAtHand
from mechdesign.jobs.recipe import (
    BadRecord,
    ContentOf,
    Drawer,
    Frame,
    Recipe,
    TablePart,
)
from mechdesign.jobs.same_records import ColumnRecords
from mechdesign.jobs.target import Target
from mechdesign.tables.people_source import FoldedTable

ESCAPED = (
    "cells that a spreadsheet would take for formulas (they begin with = + - @, a tab or a line "
    "break, and are no numbers) have an apostrophe before them (--escape-formulas): whoever checks "
    "the file or estimates from it says so, too"
)
"""What a manifest says of an output whose cells differ so from those of the channel."""

MOST_DRAWINGS = 5
"""Times that a file is drawn while other processes release its records: twice as a rule."""


@dataclass(frozen=True, kw_only=True)
class KeyedRecipe(FileRecipe):
    """A recipe that draws from keys, one for each releasable.

    `keyless` says that nothing fixes the keys: they are new ones that nobody keeps.
    `table_of_people` is the table at hand where it is one of people with several records.
    """

    draws: ClassVar[bool] = True

    channels: tuple[Channel, ...]
    keyless: bool = False
    table_of_people: FoldedTable | None = field(default=None, repr=False, compare=False)

    @cached_property
    def are_counted_together(self) -> bool:
        """Whether one of several channels was designed after all others (`design --after`): its
        promise is about all of them together.
        """
        for channel in self.channels:
            others = [other for other in self.channels if other is not channel]
            if others and counts_all(channel, others):
                return True
        return False

    @abstractmethod
    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released, for the ledger: one use for each channel."""

    @abstractmethod
    def described(
        self, drawer: Drawer, channel_files: Sequence[str | None]
    ) -> list[DescribedChannel]:
        """What manifests say of each channel; `channel_files` are the hashes of their files."""

    @abstractmethod
    def people_at_hand(self, ledger: Ledger) -> PeopleAtHand | None:
        """The people with several records of the table at hand, as the ledger knows them; None
        where each record is one of its own.
        """

    @abstractmethod
    def without_tables(self) -> Self:
        """The recipe as far as draws need it, for other machines."""

    @abstractmethod
    def codebook(self) -> str:
        """The codebook of the labels, as it is written."""

    @abstractmethod
    def settled(
        self,
        header: Sequence[Any],
        parts: Iterable[TablePart],
        *,
        is_whole: bool = True,
    ) -> Self:
        """As `Recipe.settled`."""

    def write_file(self, run: FileRun, ledger: Ledger | None) -> Applied:
        """Release a file, entered in the ledger if there is one."""
        try:
            with closing(run.parts(self)) as parts:
                settled = self.settled(run.table.header, parts)
        except BadRecord as error:
            raise run.fault(error) from None
        if settled is not self:
            run.settle(settled)
            return settled.write_file_as_settled(run, ledger)
        return self.write_file_as_settled(run, ledger)

    def write_file_as_settled(self, run: FileRun, ledger: Ledger | None) -> Applied:
        """Release a file with what `settled` decided for its records."""
        if ledger is None:
            return self._write_unrecorded(run)
        job = Job(
            ledger,
            self.uses(run.table.header),
            file=run.file_hash(ledger),
            identity=self.options.identifiers,
            fresh_draw=self.options.fresh_draw,
            settings=run.settings(),
            source=run.guarded.name,
            channels=self.channels,
            channel_files=run.sides.channel_files,
            people=self.people_at_hand(ledger),
        )
        ledger_place = os.fspath(ledger.path)
        finished = job.finished(run.target, run.sides.paths)
        if finished is not None and self._are_sides_written(run, finished):
            run.refuse_notes_if_strict()
            output = finished.output or ""
            # What else was released of the records, its manifest has said.
            return run.applied(finished.records, output, ledger_place, already=True)
        # The target is locked before anything is drawn, and entered when all of it is on disk; a
        # kill before `commit` leaves a temporary file that the next run takes over.
        with run.opened_target(
            leftover=job.unfinished(run.target), again=finished is not None
        ) as out:
            drawn = self._drawn_file(run, job, out)
            # In this order: the complete output is hashed, the ledger holds the hash, the file gets
            # its name. Records of a file that the ledger does not know could be drawn twice.
            sha256 = self._seal(run, out, drawn.drawer, drawn.records, drawn.earlier)
            entry = drawn.entry(job, run.target, sha256)
            job.commit(
                out,
                entry,
                drawn.content,
                drawn.drawer.releases,
                drawn.bare,
                drawn.columns,
            )
        whole_file = self._covers_whole_file(run, run.plan, drawn.earlier)
        return run.applied(drawn.records, sha256, ledger_place, whole_file=whole_file)

    def _write_unrecorded(self, run: FileRun) -> Applied:
        """Release a file without a ledger."""
        with run.opened_target() as out:
            drawer = self.drawer(run.table.header)
            records = run.draw(out, drawer)
            earlier = EarlierReleases()
            sha256 = self._seal(run, out, drawer, records, earlier)
            out.commit()
        whole_file = self._covers_whole_file(run, run.plan, earlier)
        return run.applied(records, sha256, None, whole_file=whole_file)

    def _covers_whole_file(
        self, run: FileRun, plan: Plan, earlier: EarlierReleases
    ) -> bool:
        """Whether the promise is proven for a reader of the whole file, too, which it is for the
        only release of these records.
        """
        # Another night has shown other records of the same people.
        is_second = earlier.draws or earlier.beside or earlier.nights.entries
        if is_second or run.keeps_more:
            return False
        return self.covers_whole_file(plan)

    def _are_sides_written(self, run: FileRun, finished: Entry) -> bool:
        """Whether an earlier run, which wrote the data file, wrote these side files, too.

        They may have been written with other options, which do not change the data.
        """
        codebook = None
        if run.sides.codebook is not None:
            codebook = self._codebook_of(run)
        return run.sides.hold(finished.output or "", codebook)

    def _codebook_of(self, run: FileRun) -> str:
        """The codebook as it is written beside an output: escaped where that is."""
        text = self.codebook()
        if run.format.escape:
            return csv_as_text(text)
        return text

    def _drawer_of(self, job: Job, header: Sequence[Any]) -> Drawer:
        """A drawer with the keys of a job, and the symbols that it released records with before."""
        drawer = replace(self, keys=job.keys).drawer(header)
        job.prepare(drawer.releases)
        return drawer

    def _drawn_file(self, run: FileRun, job: Job, out: Target) -> _DrawnRecords:
        """Draw the file into its temporary place with the keys of a job.

        Only when all records were read is their content known. If the ledger has other keys for it,
        which happens when it was released from a file with other bytes, everything is drawn again.
        The same holds where another process has released these records meanwhile.
        """
        hasher = job.ledger.hasher
        for _ in range(MOST_DRAWINGS):
            census = RecordCensus(hasher)
            drawer = self._drawer_of(job, run.table.header)
            bare = BareRecords(drawer.releases)
            columns = ColumnRecords(job.ledger, drawer.releases)
            inspect = _inspection(
                hasher, self.options.identifiers, census, bare, columns
            )
            records = run.draw(out, drawer, inspect)
            content = census.content()
            earlier = job.met(content)
            if earlier is None:
                # `met` has taken the keys of this content on.
                continue
            with suppress(StartAgain):
                return _drawn_records(
                    job, drawer, records, content, bare, columns, earlier
                )
        raise StartAgain(RELEASED_MEANWHILE)

    def _seal(
        self,
        run: FileRun,
        out: Target,
        drawer: Drawer,
        records: int,
        earlier: EarlierReleases,
    ) -> str:
        """Refuse what the output discloses, and write the side files to their temporary places;
        the hash of the output, which is complete and on disk.
        """
        run.refuse_disclosure(drawer)
        run.add_notes((*earlier.notices, *record_notices(drawer.releases)))
        sha256 = out.seal()
        if run.sides.manifests:
            notices = run.notices
            if run.format.escape:
                notices = (*notices, ESCAPED)
            manifest = self.manifest(
                drawer,
                run.records_of(records),
                output=sha256,
                dataset=run.guarded.sha256,
                columns_before=run.columns_before,
                columns=run.columns_after,
                notices=notices,
                earlier=earlier,
                channel_digests=run.sides.channel_digests(),
                whole_file=self._covers_whole_file(run, drawer.plan, earlier),
            )
            for path, audience in run.sides.manifests:
                text = manifest.text(audience)
                out.part_of_side(path).write_text(text, encoding="utf-8")
        if run.sides.codebook is not None:
            codebook = out.part_of_side(run.sides.codebook)
            codebook.write_bytes(self._codebook_of(run).encode())
        return sha256

    def manifest(
        self,
        drawer: Drawer,
        records: int,
        *,
        output: str,
        dataset: str,
        columns_before: Sequence[str],
        columns: Sequence[str],
        notices: Sequence[str],
        earlier: EarlierReleases,
        channel_digests: Sequence[str | None],
        whole_file: bool,
    ) -> Manifest:
        """The facts for both manifests of an output.

        `output` and `dataset` are the SHA-256 of the released file and of the input,
        `channel_digests` those of the channel files, as far as there are some, and `whole_file`
        says if the promise is proven for readers of the whole file.
        """
        # How many records changed, or have an unknown row, is a count of the original data: for
        # the internal manifest alone.
        changes = record_notices(drawer.releases)
        public_notes = tuple(note for note in notices if note not in changes)
        return Manifest(
            output=output,
            records=records,
            columns_before=tuple(columns_before),
            columns=tuple(columns),
            released=tuple(self.described(drawer, channel_digests)),
            dataset=dataset,
            kept_private=drawer.plan.kept_private,
            identity=self.options.identifiers,
            draw=earlier.draws,
            earlier=earlier.runs,
            other_channels=bool(earlier.beside) and not earlier.is_counted,
            together=self.are_counted_together,
            insecure_seed=self.options.insecure_seed is not None,
            shuffled=self.options.shuffle,
            whole_file=whole_file,
            notes=public_notes,
            inner_notes=changes,
        )

    def release_table(
        self,
        header: Sequence[Any],
        release: Callable[[Drawer], Frame],
        content: ContentOf,
    ) -> tuple[Frame, tuple[str, ...]]:
        """What `release` makes of a whole table, entered in the ledger of the options, if there
        is one.
        """
        if self.options.ledger is None:
            return release(self.drawer(header)), ()
        ledger = Ledger(self.options.ledger)
        # Of a table at hand the content is known before it is drawn, so it is drawn once.
        table_content, bare_hashes = content(ledger.hasher, self.options.identifiers)
        job = Job(
            ledger,
            self.uses(header),
            content=table_content,
            identity=self.options.identifiers,
            fresh_draw=self.options.fresh_draw,
            source=FRAME,
            channels=self.channels,
            people=self.people_at_hand(ledger),
        )
        # None: another process released these records meanwhile, and the job has its keys now.
        earlier = job.met(table_content)
        while earlier is None:
            earlier = job.met(table_content)
        drawer = self._drawer_of(job, header)
        released = release(drawer)
        # After the draw, by which the drawer knows the records with new identifiers.
        bare = BareRecords(drawer.releases)
        bare.add(bare_hashes)
        columns = ColumnRecords(ledger, drawer.releases)
        columns.add_last()
        drawn = _drawn_records(
            job, drawer, table_content.records, table_content, bare, columns, earlier
        )
        # Nobody has seen the table before it is returned, so it is entered and done at once.
        entry = drawn.entry(job, FRAME, None)
        job.enter(entry, table_content, drawer.releases, bare, columns)
        job.done(entry)
        return released, (*drawn.earlier.notices, *record_notices(drawer.releases))

    def for_lazy_table(self, header: Sequence[Any]) -> Recipe:
        """The recipe with keys that last; a ledger is told of the release, but sees no record of
        it.
        """
        if self.keyless:
            raise InputError(
                "a lazy table is computed again whenever it is asked for, or a task repeated, and "
                "must draw the same: give a key (Key.fresh(), or the path of a key file), or a "
                "ledger"
            )
        lean = self.without_tables()
        if self.options.ledger is None:
            return lean
        if not self.options.identifiers:
            raise InputError(
                "a ledger knows records of a lazy table by identifiers alone: name them (identity)"
            )
        job = Job(
            Ledger(self.options.ledger),
            self.uses(header),
            identity=self.options.identifiers,
            fresh_draw=self.options.fresh_draw,
            source=LAZY,
        )
        # Its records are not known here, nor their number: what can be entered is the draw alone,
        # so that a later release of them is told that their symbols cannot be compared.
        entry = job.entry(LAZY, None, 0)
        job.enter(entry)
        job.done(entry)
        return replace(lean, keys=job.keys)


@dataclass(frozen=True)
class _DrawnRecords:
    """Records that a job drew, and what the ledger knows of them.

    `content` and `bare` have their hashes with and without identifiers, `columns` the symbols that
    were released; `earlier` has their earlier releases, with all notices on them.
    """

    drawer: Drawer
    records: int
    content: Content
    bare: BareRecords
    columns: ColumnRecords
    earlier: EarlierReleases

    def entry(self, job: Job, target: PathLike, output: str | None) -> Entry:
        """What the ledger will hold of them; `output` is the hash of the output."""
        return job.entry(target, output, self.records, self.content, self.earlier.joint)


def _drawn_records(
    job: Job,
    drawer: Drawer,
    records: int,
    content: Content,
    bare: BareRecords,
    columns: ColumnRecords,
    earlier: EarlierReleases,
) -> _DrawnRecords:
    """Records that were just drawn; refuses those that are known under other identifiers, or beside
    other columns.
    """
    renewed = job.renewed(content, bare, drawer.releases)
    earlier = replace(earlier, notices=(*earlier.notices, *renewed))
    earlier = job.same_columns(columns, earlier, drawer.releases)
    return _DrawnRecords(drawer, records, content, bare, columns, earlier)


def _inspection(
    hasher: RowHasher,
    identity: Sequence[str],
    census: RecordCensus,
    bare: BareRecords,
    columns: ColumnRecords,
) -> Callable[[Batch], None]:
    """A function that shows every batch that was drawn to a census of its records, with and without
    identifiers.
    """

    def inspect(batch: Batch) -> None:
        as_text, by_value, without = hasher.readings(batch, identity)
        census.add_readings(as_text, by_value)
        bare.add(without)
        columns.add_last()

    return inspect
