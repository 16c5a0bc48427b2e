"""Recipes that draw at random: their keys come from a job of the ledger, or are used once and
forgotten.

Whatever draws from keys (channels of one column or of several, one draw a record or many) shares
this way of releasing a file (`write_file`), a table at hand (`release_table`) and a lazy table
(`for_lazy_table`). Each is a job (`jobs.job`), and this file keeps the order of its steps with
those of the output. For a file:

1. The job chooses its keys. If an earlier run wrote all of this, nothing is left to do.
2. The target is locked, and the file is drawn into a temporary file; again if its records turn out
   to belong to another job (`_drawn_by_job`).
3. Disclosures are refused, the output is synced and hashed, and the side files are written to
   their temporary places (`_seal`).
4. The ledger gets the entry, the files get their names, and the entry is marked as done
   (`Job.commit`).

A kill before step 4 leaves temporary files that the next run takes over, and nothing in the ledger.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.census import Content
from mechdesign.formats.column_names import require_column
from mechdesign.formats.digests import RecordCensus, RowHasher
from mechdesign.formats.opening import Batch
from mechdesign.formats.urls import FRAME, LAZY
from mechdesign.jobs.bare_records import BareRecords
from mechdesign.jobs.column_plan import ColumnGroup, Plan, make_plan, private_columns
from mechdesign.jobs.earlier_releases import EarlierReleases
from mechdesign.jobs.entries import Use
from mechdesign.jobs.file_run import FileRecipe, FileRun
from mechdesign.jobs.job import Job
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_notices import change_notices
from mechdesign.jobs.manifest import Manifest
from mechdesign.jobs.manifest_columns import ReleasedColumn
from mechdesign.jobs.recipe import ContentOf, Drawer, Frame, Recipe
from mechdesign.jobs.results import Applied
from mechdesign.jobs.target import Target
from mechdesign.leaks.crossing import Crossing
from mechdesign.leaks.evidence import LEVEL, decisive, log_evidence
from mechdesign.release.draws import Key


@dataclass(frozen=True, kw_only=True)
class KeyedRecipe(FileRecipe):
    """A recipe that draws from keys, one for each releasable.

    `keyless` says that nothing fixes the keys: they are new ones that nobody keeps.
    """

    draws: ClassVar[bool] = True

    keyless: bool = False

    @property
    @abstractmethod
    def releasables(self) -> Sequence[Channel | RowChannel | BoxChannel]:
        """What is released, one for each key."""

    @property
    @abstractmethod
    def groups(self) -> list[ColumnGroup]:
        """The columns of each releasable, by the names that it has for them."""

    @property
    def private_columns(self) -> list[str]:
        """Sensitive and correlated columns."""
        return [
            *private_columns(self.groups, self.options),
            *self.options.correlated,
        ]

    @property
    def useful_columns(self) -> list[str]:
        """The columns that are released, by their names in the table."""
        renamed = self.options.renamed
        names: list[str] = []
        for group in self.groups:
            names += [renamed.get(name, name) for name in group.columns]
        return names

    def plan(self, header: Sequence[Any]) -> Plan:
        """What becomes of each column of a table."""
        plan = make_plan(self.groups, header, self.options)
        name = self.options.row_numbers
        if name is not None:
            require_column(name, header)
            if name in self.useful_columns:
                raise InputError(
                    f"the column {quoted(name)} is useful and cannot number the records"
                )
        return plan

    def sensitive_in_table(self, k: int) -> tuple[str, ...] | None:
        """The sensitive columns of a releasable, by their names in the table; None if it does not
        say.
        """
        group = self.groups[k]
        if group.sensitive is None:
            return None
        return tuple(private_columns([group], self.options))

    def released_names(self, plan: Plan, k: int) -> tuple[str, ...]:
        """The columns of the output that a releasable releases."""
        names: list[str] = []
        for column in plan.columns:
            if column.release is not None and column.release[0] == k:
                names.append(column.name)
        return tuple(names)

    @abstractmethod
    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released, for the ledger: one use for each releasable."""

    @abstractmethod
    def described(
        self, drawer: Drawer, channel_files: Sequence[str | None]
    ) -> list[ReleasedColumn]:
        """What manifests say of each releasable; `channel_files` are the hashes of their files."""

    @abstractmethod
    def without_tables(self) -> Recipe:
        """The recipe as far as draws need it, for other machines."""

    @abstractmethod
    def codebook(self) -> str:
        """The codebook of the labels, as it is written."""

    def with_keys(self, keys: tuple[Key, ...]) -> Recipe:
        """The same with the keys of a job."""
        return replace(self, keys=keys)

    def write_file(self, run: FileRun, ledger: Ledger | None) -> Applied:
        """Release a file, entered in the ledger if there is one."""
        if ledger is None:
            return self._write_unrecorded(run)
        job = self._file_job(run, ledger)
        place = os.fspath(ledger.path)
        finished = job.finished(run.target, run.sides.paths)
        if finished is not None:
            # The data file is there. The side files may have been written with other options.
            output = finished.output or ""
            codebook = None
            if run.sides.codebook is not None:
                codebook = self.codebook()
            if run.sides.hold(output, codebook):
                run.refuse_notes_if_strict()
                return run.applied(finished.records, output, place, already=True)
        # The target is locked before anything is drawn, and entered when all of it is on disk; a
        # kill before `commit` leaves a temporary file that the next run takes over.
        with run.opened_target(
            leftover=job.unfinished(run.target), again=finished is not None
        ) as out:
            drawn = self._drawn_by_job(run, job, out)
            drawer = drawn.drawer
            # In this order: the complete output is hashed, the ledger holds the hash, the file gets
            # its name. Records of a file that the ledger does not know could be drawn twice.
            sha256 = self._seal(run, out, drawer, drawn.records, drawn.earlier)
            entry = job.entry(
                run.target, sha256, drawn.records, drawn.content, drawn.earlier.joint
            )
            job.commit(out, entry, drawn.content, drawer.releases, drawn.bare)
        return run.applied(drawn.records, sha256, place)

    def _write_unrecorded(self, run: FileRun) -> Applied:
        """Release a file without a ledger."""
        with run.opened_target() as out:
            drawer = self.drawer(run.table.header)
            records = run.draw(out, drawer)
            sha256 = self._seal(run, out, drawer, records, EarlierReleases())
            out.commit()
        return run.applied(records, sha256, None)

    def _file_job(self, run: FileRun, ledger: Ledger) -> Job:
        """The job of a file, known by its bytes before it is read."""
        return Job(
            ledger,
            self.uses(run.table.header),
            file=run.file_hash(ledger),
            identity=self.options.identifiers,
            fresh_draw=self.options.fresh_draw,
            settings=run.settings(),
            source=run.guarded.name,
            channels=self.releasables,
            channel_files=run.sides.channel_files,
        )

    def _drawn_by_job(self, run: FileRun, job: Job, out: Target) -> _DrawnFile:
        """Draw the file with the keys of a job, and what the ledger knows of its records.

        Only when all records were read is their content known. If the ledger has other keys for it,
        which happens when it was released from a file with other bytes, everything is drawn again.
        """
        hasher = job.ledger.hasher
        # Usually not more than twice: `met` has taken the keys of this content on.
        while True:
            census = RecordCensus(hasher)
            drawer = self.with_keys(job.keys).drawer(run.table.header)
            job.prepare(drawer.releases)
            bare = BareRecords(drawer.releases)
            inspect = _inspection(hasher, self.options.identifiers, census, bare)
            records = run.draw(out, drawer, inspect)
            content = census.content()
            earlier = job.met(content)
            if earlier is None:
                continue
            renewed = job.renewed(content, bare, drawer.releases)
            earlier = replace(earlier, notices=(*earlier.notices, *renewed))
            return _DrawnFile(drawer, records, content, bare, earlier)

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
        changes = change_notices(drawer.releases)
        run.add_notes((*earlier.notices, *changes))
        sha256 = out.seal()
        # How many records changed is a count of the original data: for the internal manifest alone.
        public_notes = tuple(note for note in run.notices if note not in changes)
        if run.sides.manifests:
            manifest = Manifest(
                output=sha256,
                records=records,
                columns_before=drawer.header,
                columns=drawer.plan.header,
                released=tuple(self.described(drawer, run.sides.channel_digests())),
                dataset=run.guarded.sha256,
                kept_private=drawer.plan.kept_private,
                identity=self.options.identifiers,
                draw=earlier.draws,
                earlier=earlier.runs,
                other_channels=bool(earlier.beside),
                insecure_seed=self.options.insecure_seed is not None,
                shuffled=self.options.shuffle,
                notes=public_notes,
                inner_notes=changes,
            )
            for path, audience in run.sides.manifests:
                text = manifest.text(audience)
                out.part_of_side(path).write_text(text, encoding="utf-8")
        if run.sides.codebook is not None:
            codebook = out.part_of_side(run.sides.codebook)
            codebook.write_bytes(self.codebook().encode())
        return sha256

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
        hashed, hashes = content(ledger.hasher, self.options.identifiers)
        job = Job(
            ledger,
            self.uses(header),
            content=hashed,
            identity=self.options.identifiers,
            fresh_draw=self.options.fresh_draw,
            source=FRAME,
            channels=self.releasables,
        )
        # None: another process released these records meanwhile, and the job has its keys now.
        earlier = job.met(hashed)
        while earlier is None:
            earlier = job.met(hashed)
        drawer = self.with_keys(job.keys).drawer(header)
        job.prepare(drawer.releases)
        released = release(drawer)
        bare = BareRecords(drawer.releases)
        bare.add(hashes)
        renewed = job.renewed(hashed, bare, drawer.releases)
        entry = job.entry(FRAME, None, hashed.records, hashed, earlier.joint)
        job.finish(entry, hashed, drawer.releases, bare)
        job.done(entry)
        notices = (*earlier.notices, *renewed, *change_notices(drawer.releases))
        return released, notices

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
        entry = job.entry(LAZY, None, 0)
        job.finish(entry)
        job.done(entry)
        return replace(lean, keys=job.keys)


@dataclass(frozen=True)
class _DrawnFile:
    """A file that was drawn by a job: its records, and what the ledger knows of them."""

    drawer: Drawer
    records: int
    content: Content
    bare: BareRecords
    earlier: EarlierReleases


def _inspection(
    hasher: RowHasher,
    identity: Sequence[str],
    census: RecordCensus,
    bare: BareRecords,
) -> Callable[[Batch], None]:
    """Shows every batch that was drawn to a census of its records, with and without
    identifiers.
    """

    def inspect(batch: Batch) -> None:
        as_text, by_value, without = hasher.readings(batch, identity)
        census.add_readings(as_text, by_value)
        bare.add(without)

    return inspect
