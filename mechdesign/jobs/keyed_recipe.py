"""Recipes that draw at random: their keys come from a job of the ledger, or are used once and
forgotten.

`KeyedRecipe` is the base of whatever draws from keys: channels of one column or of several, one
draw a record or many. It has three ways to release, each of which is a job (`jobs.job`), and keeps
the order of the job's steps with those of the output::

    write_file, for a file                       release_table, for a table at hand
    settled      counts fixed, or draws alone    settled
    Job          keys chosen by the bytes        Job          keys chosen by the records
    the target is locked                         -
    _drawn_file  drawn into a temporary file     Job.met      earlier releases looked up
    Job.met      earlier releases looked up      release      drawn
    Job.renewed  renewed identifiers looked for  Job.renewed  renewed identifiers looked for
    _seal        nothing disclosed; synced,      -
                 hashed, side files written
    Job.commit   entered, named, marked as done  Job.finish, Job.done

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
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

from mechdesign.auditing.stated import refuse_broken
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed
from mechdesign.formats.cell_forms import csv_as_text
from mechdesign.formats.census import Content
from mechdesign.formats.digests import RecordCensus, RowHasher
from mechdesign.formats.opening import Batch
from mechdesign.formats.urls import FRAME, LAZY
from mechdesign.jobs.bare_records import BareRecords
from mechdesign.jobs.column_groups import ColumnGroup, in_table
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.earlier_releases import EarlierReleases
from mechdesign.jobs.entries import Entry, Use
from mechdesign.jobs.file_run import FileRun
from mechdesign.jobs.grouped_recipe import GroupedRecipe
from mechdesign.jobs.job import Job
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_notices import RELEASED_MEANWHILE, record_notices
from mechdesign.jobs.manifest import Manifest
from mechdesign.jobs.manifest_columns import Released, released_channel
from mechdesign.jobs.option_keys import key_for_columns, key_in_options
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.people_nights import PeopleAtHand, check_nights
from mechdesign.jobs.people_run import check_people
from mechdesign.jobs.recipe import (
    BadRecord,
    ContentOf,
    Drawer,
    Frame,
    Recipe,
    TablePart,
)
from mechdesign.jobs.release_drawer import ReleaseDrawer
from mechdesign.jobs.released_columns import ColumnRecords
from mechdesign.jobs.results import Applied
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.target import Target
from mechdesign.leaks.crossing import Crossing
from mechdesign.leaks.evidence import LEVEL, decisive, log_evidence
from mechdesign.release.drawing import INDEPENDENT
from mechdesign.release.draws import Key
from mechdesign.release.released_values import LABEL
from mechdesign.tables.people import RECORDS, People
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
class KeyedRecipe(GroupedRecipe):
    """A recipe that draws from keys, one for each releasable.

    `keyless` says that nothing fixes the keys: they are new ones that nobody keeps.
    `table_of_people` is the table at hand where it is one of people with several records.
    """

    draws: ClassVar[bool] = True

    channels: tuple[Channel, ...]
    keyless: bool = False
    table_of_people: FoldedTable | None = field(default=None, repr=False, compare=False)

    @classmethod
    def keyed(cls, channels: tuple[Channel, ...], options: ReleaseOptions) -> Self:
        """The recipe of channels that are checked for these options, with a key for each.

        Raises
        ------
        InputError
            If an option is not for people with several records, or a key file cannot be read.
        NotPrivate
            If the table of a channel disproves its promise.
        """
        for channel in channels:
            # A file can be edited and its hash renewed, so its table has to prove the promise.
            refuse_broken(
                channel, f"the channel for {listed(channel.released_columns)}"
            )
        people = _people_of(channels)
        check_nights(people, options.nights, is_identified=bool(options.identifiers))
        if people is not None:
            check_people(people, options)
        key, keyless = key_in_options(options)
        keys: list[Key] = []
        for channel in channels:
            keys.append(key_for_columns(key, channel.released_columns, options))
        return cls(
            channels=channels,
            keys=tuple(keys),
            options=replace(options, key=None),
            keyless=keyless,
        )

    @property
    def people(self) -> People | None:
        """The people of the one channel, where it is for people with several records."""
        return _people_of(self.channels)

    @property
    def groups(self) -> list[ColumnGroup]:
        """The released and sensitive columns of each channel."""
        merged = self.options.form == LABEL
        groups: list[ColumnGroup] = []
        for channel in self.channels:
            columns = channel.released_columns
            sensitive = None
            if channel.sensitive is not None:
                sensitive = channel.sensitive.columns
            if not channel.writes_rows:
                groups.append(ColumnGroup(columns, sensitive, merged))
                continue
            # Without parts, every column is released by itself.
            parts: tuple[tuple[str, ...], ...] = ()
            names: tuple[str, ...] = ()
            if not channel.releases_symbols:
                # One label for all released columns, beside the given ones.
                given = [(name,) for name in channel.given_columns]
                parts = (*given, channel.randomised_columns)
                names = channel.output_columns
            groups.append(
                ColumnGroup(
                    columns,
                    sensitive,
                    merged_parts=parts,
                    names=names,
                    given=channel.given_columns,
                )
            )
        return groups

    @property
    def law_kept(self) -> bool | None:
        """Whether a channel of rows keeps the law of its table."""
        if len(self.channels) != 1:
            return None
        channel = self.channels[0]
        return channel.keeps_law if channel.releases_symbols else None

    @property
    def form(self) -> str:
        """What is released of the columns, as the ledger calls it."""
        return self.options.form

    def drawer(self, header: Sequence[Any]) -> ReleaseDrawer:
        """Ready for the parts of a table with this header."""
        return ReleaseDrawer(self, self.channels, header)

    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released, for the ledger: one use for each channel."""
        plan = self.plan(header)
        uses: list[Use] = []
        for channel, numbers in zip(self.channels, plan.inputs, strict=True):
            columns = tuple(header[number] for number in numbers)
            if channel.people is not None:
                # The columns of the records, and not those of the folded table.
                columns = in_table(channel.people.columns, self.options)
            use = Use(
                channel=channel.digest,
                columns=columns,
                form=self.form,
                changed=self.options.changed,
                draws=self.options.draws or INDEPENDENT,
                **asdict(self.options.rules),
            )
            uses.append(use)
        return uses

    def described(
        self, drawer: Drawer, channel_files: Sequence[str | None]
    ) -> list[Released]:
        """What manifests say of each channel; `channel_files` are the hashes of their files."""
        columns: list[Released] = []
        uses = self.uses(drawer.header)
        for k, (channel, use) in enumerate(zip(self.channels, uses, strict=True)):
            names = self.released_names(drawer.plan, k)
            given = in_table(channel.given_columns, self.options)
            sensitive = self.sensitive_in_table(k)
            people = channel.people
            if people is not None:
                names = use.columns
                given = (RECORDS, *in_table(people.given, self.options))
                sensitive = in_table(people.sensitive, self.options)
            release: Any = drawer.releases[k]
            released = released_channel(
                channel,
                release,
                use,
                names,
                given=given,
                sensitive=sensitive,
                channel_file=channel_files[k] if k < len(channel_files) else None,
            )
            columns.append(released)
        return columns

    @abstractmethod
    def without_tables(self) -> Recipe:
        """The recipe as far as draws need it, for other machines."""

    @abstractmethod
    def codebook(self) -> str:
        """The codebook of the labels, as it is written."""

    def check_sides(self, sides: Sides) -> None:
        """Refuse a codebook of values."""
        if sides.codebook is None:
            return
        if self.options.form != LABEL:
            raise InputError(
                "a codebook says what labels mean, and other forms need none"
            )
        if any(channel.releases_symbols for channel in self.channels):
            raise InputError(
                "a codebook says what labels mean, and this channel releases the symbols of the "
                "columns themselves"
            )

    def people_at_hand(self, ledger: Ledger) -> PeopleAtHand | None:
        """The people with several records of the table at hand, as the ledger knows them; None
        where each record is one of its own.
        """
        if self.table_of_people is None:
            return None
        after: list[str] = []
        for one in self.channels:
            for channel in one.channels:
                after += channel.record.after
        nights = self.options.nights
        return PeopleAtHand.of(ledger, self.table_of_people, nights, tuple(after))

    def settled(
        self,
        header: Sequence[Any],
        parts: Iterable[TablePart],
        *,
        is_whole: bool = True,
    ) -> KeyedRecipe:
        """The recipe for these very records; by default itself."""
        return self

    def with_keys(self, keys: tuple[Key, ...]) -> Recipe:
        """The same with the keys of a job."""
        return replace(self, keys=keys)

    def folder_result(
        self,
        results: Sequence[Any],
        sha256: str,
        *,
        already: bool,
        notices: tuple[str, ...],
    ) -> Applied:
        """What the files of a folder report together: fixed counts only if all files have them."""
        first: Applied = results[0]
        draws = {result.draws for result in results}
        people = None
        if first.people is not None:
            people = sum(result.people for result in results)
        return replace(
            first,
            records=sum(result.records for result in results),
            people=people,
            sha256=sha256,
            already=already,
            notices=notices,
            draws=first.draws if len(draws) == 1 else INDEPENDENT,
        )

    def split_warning(
        self, crossing: Crossing, names: Sequence[str], *, looks: int
    ) -> str | None:
        """The file of a record is a kind of order: symbols must not differ between files by more
        than chance.
        """
        if not decisive(log_evidence(*crossing.table()), looks):
            return None
        return (
            "what was released differs between them (by chance once in "
            f"{round(1 / LEVEL):,} times at most)"
        )

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
        drawer = self.with_keys(job.keys).drawer(header)
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
            other_channels=bool(earlier.beside),
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
        job.finish(entry, table_content, drawer.releases, bare, columns)
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
        job.finish(entry)
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


def _people_of(channels: Sequence[Channel]) -> People | None:
    """The people of a channel that stands alone; refuses one among several."""
    people = [channel.people for channel in channels]
    if len(people) > 1 and any(people):
        raise InputError(
            "a channel for people with several records is applied alone, because its promise is "
            "about all records of a person: design one channel for all columns"
        )
    return people[0]


def check_rows(options: ReleaseOptions) -> None:
    """Refuse options of a column of labels for a channel that says itself what it writes."""
    if options.form != LABEL:
        raise InputError(
            "a channel of rows says itself what is released of each column; leave the form "
            "(--as) out"
        )
    if options.into is not None:
        raise InputError(
            "the columns of a channel of rows are replaced, not added beside the originals, "
            "which would void its promise; leave --add (into) out"
        )
