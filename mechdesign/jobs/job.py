"""A job: the release of one data set in the ledger, from the choice of its keys to its last name.

The draw of a record is a function of the key, the channel and what identifies the record, so a job
gives the same draws as often as it runs, whatever interrupted it. This file keeps the order of the
steps; what each of them decides is next door: which draw it is, and whether the records
have another one already (`earlier_releases`), and what becomes of records with identifiers
(`identified_records`).

`KeyedRecipe.write_file` makes a job for each file and calls its methods in this order:

1. `Job(...)` chooses the keys, by what the ledger knows of these bytes.
2. `finished` asks whether an earlier run has written all of this already.
3. `prepare` gives the draws the earlier symbols of identified records; then the file is drawn.
4. `met` compares the records, which are known now, with all releases in the ledger. If they belong
   to another job, it takes on that job's keys, and the file is drawn again from step 3.
5. `renewed` looks for the same records under other identifiers, and `same_columns` for the same
   released columns beside other ones.
6. `commit` enters the release as `FINISHING`, gives the files their names, and enters it as `DONE`.

A kill before step 6 leaves no release in the ledger. A kill within step 6 leaves the entry
`FINISHING`: the next run draws the same bytes and takes the entry over, or finds the output
complete and only marks it as done. A frame in memory has no files: `enter` and `done` stand in the
place of step 6.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.core.documents import canonical, versions
from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.files import (
    STANDARD,
    PathLike,
    has_sha256,
    is_url,
    on_failure,
    real_path,
)
from mechdesign.formats.census import Content
from mechdesign.formats.urls import Remote, place_of
from mechdesign.jobs.bare_records import BareRecords
from mechdesign.jobs.earlier_releases import (
    FIRST_DRAW,
    RELEASED_MEANWHILE,
    DrawChoice,
    EarlierReleases,
    Relation,
    alike_column_notice,
    check_uses,
    count_other_draws,
    counted,
    find_earlier_releases,
    redraw_notice,
    relation,
    same_column_refusal,
    with_joint_budget,
)
from mechdesign.jobs.identified_records import (
    IdentifiedRecords,
    ReleaseAtHand,
    notices_of_renewed,
)
from mechdesign.jobs.ledger import DONE, FINISHING, Drawn, Entry, Ledger, Settings, Use
from mechdesign.jobs.people_nights import (
    PeopleAtHand,
    earlier_nights,
    nights_sentence,
    refuse_same_people,
)
from mechdesign.jobs.same_records import (
    ColumnRecords,
    SameColumns,
    packed,
    same_columns,
)
from mechdesign.jobs.target import Target
from mechdesign.release.drawing import Release
from mechdesign.release.draws import Key


class Job:
    """A job that is ready to draw, with `keys`, one for each use of a channel.

    Parameters
    ----------
    ledger : Ledger
    uses : sequence of Use
        How each channel is used.
    file : str, optional
        The hash of the data set's bytes, as the ledger knows it.
    content : Content, optional
        The hashes of its records, where they are known before anything is drawn.
    identity : tuple of str
        The columns that identify a record; none where its row number does.
    fresh_draw : bool
        Whether to draw anew what was released before.
    settings : dict
        What else decides which bytes are written.
    source : str, optional
        Where the data set lies.
    channels : sequence of Channel
        The channels of the uses, for joint budgets.
    channel_files : sequence of paths
        The files that they were read from.
    people : PeopleAtHand, optional
        The people of the data set, where they are drawn with all of their records.
    """

    def __init__(
        self,
        ledger: Ledger,
        uses: Sequence[Use],
        *,
        file: str | None = None,
        content: Content | None = None,
        identity: tuple[str, ...] = (),
        fresh_draw: bool = False,
        settings: Settings | None = None,
        source: str | None = None,
        channels: Sequence[Channel] = (),
        channel_files: Sequence[PathLike] = (),
        people: PeopleAtHand | None = None,
    ) -> None:
        check_uses(uses)
        files: list[str | None] = [None] * len(uses)
        for k, path in enumerate(channel_files[: len(uses)]):
            files[k] = os.fspath(real_path(path))
        self.ledger = ledger
        self.identity = identity
        self._people = people
        self.drawn: tuple[Drawn, ...] = ()
        self.keys: tuple[Key, ...] = ()
        # The releases that were known when the draws were chosen.
        self._chosen_by: set[str] = set()
        self._choice = DrawChoice(
            uses=uses,
            channel_files=files,
            identity=identity,
            file=file,
            fresh_draw=fresh_draw,
        )
        # As they come back from the ledger, to be compared with those there: lists for tuples.
        self._settings: Settings = json.loads(canonical(settings or {}))
        self._source = source
        self._channels = channels
        self._started = _now()
        # The entry of a killed run that this job takes over in `enter`.
        self._continued: Entry | None = None
        with ledger.reading() as db:
            self._take_on(ledger.releases(db), content)

    def _take_on(self, entries: Sequence[Entry], content: Content | None) -> None:
        """Choose the draws by these releases, and use them from here on."""
        self.drawn = self._choice.draws(entries, content)
        self.keys = tuple(self.ledger.key_of(draw) for draw in self.drawn)
        self._chosen_by = {entry.id for entry in entries}

    def prepare(self, releases: Sequence[Release]) -> None:
        """Give the draws, one for each use, the symbols that identified records were released
        with before.
        """
        identified = self._identified(releases)
        if not identified:
            return
        with self.ledger.reading() as db:
            for records in identified:
                records.recall(db)

    def _identified(self, releases: Sequence[Release]) -> list[IdentifiedRecords]:
        """The identified records of each draw; none where row numbers identify the records."""
        if not self.identity or not releases:
            return []
        identified: list[IdentifiedRecords] = []
        for drawn, key, release in zip(self.drawn, self.keys, releases, strict=True):
            identified.append(IdentifiedRecords(self.ledger, drawn, key, release))
        return identified

    def finished(
        self, target: PathLike, sides: Sequence[PathLike] = ()
    ) -> Entry | None:
        """The run that has written all of this to `target` already, if there is one; it is marked
        as done.

        So a job that was killed after its files had their names has nothing left to do, and one
        that is asked for the same thing again need not do it.
        """
        run = self._last_run(target)
        if run is None or not run.same_release(self.entry(target, None, 0)):
            return None
        # The ledger says what was about to be there; only the bytes say that they still are.
        if is_url(target):
            is_there = Remote(target).holds(run.output)
        else:
            is_there = has_sha256(run.target, run.output)
            is_there = is_there and all(Path(path).is_file() for path in sides)
        if not is_there:
            return None
        if run.state == FINISHING:
            self.done(run)
        return run

    def unfinished(self, target: PathLike) -> bool:
        """Whether a run was killed while the files of `target` were getting their names."""
        run = self._last_run(target)
        return run is not None and run.state == FINISHING

    def _last_run(self, target: PathLike) -> Entry | None:
        """The last release to a target; None for standard output, of which every one is another."""
        if os.fspath(target) == STANDARD:
            return None
        with self.ledger.reading() as db:
            return self.ledger.last_of(db, place_of(target))

    def entry(
        self,
        target: PathLike,
        output: str | None,
        records: int,
        content: Content | None = None,
        joint: Mapping[str, Any] | None = None,
    ) -> Entry:
        """What the ledger will hold of a release of this job."""
        people = None
        if self._people is not None:
            people, records = records, self._people.size
        ordered = None
        unordered = None
        if content is not None:
            ordered = content.ordered
            unordered = content.unordered
        return Entry(
            id=secrets.token_hex(8),
            target=place_of(target),
            source=self._source,
            state=FINISHING,
            started=self._started,
            output=output,
            records=records,
            people=people,
            identity=self.identity,
            drawn=self.drawn,
            settings=self._settings,
            fresh=self._choice.fresh_draw,
            versions=versions(),
            file=self._choice.file,
            ordered=ordered,
            unordered=unordered,
            joint=None if joint is None else dict(joint),
        )

    def met(self, content: Content) -> EarlierReleases | None:
        """The earlier releases of these records.

        Returns
        -------
        EarlierReleases or None
            None if the records, now that they are known, belong to another job: its draws are taken
            on.

        Raises
        ------
        InputError
            If the records would be drawn a second time, and `fresh_draw` did not ask for that.
        """
        with self.ledger.reading() as db:
            entries = self.ledger.releases(db)
            if self._has_other_draws(entries, content):
                self._take_on(entries, content)
                return None
            earlier = self._earlier(db, entries, content)
        earlier = self._with_nights(earlier)
        # A budget is only owed where the user asked for a further draw of known records.
        if self._choice.fresh_draw and earlier.draws:
            return with_joint_budget(earlier, self.drawn, self._channels)
        return earlier

    def _has_other_draws(self, entries: Sequence[Entry], content: Content) -> bool:
        """Whether these records have other draws than this job has chosen.

        A file with other bytes was a new job when it was opened, and turns out to hold records that
        were released before: the same table in another packing, for example. Or another process has
        made the fresh draw that was chosen, which is none any more.
        """
        if self._choice.fresh_draw:
            chosen = {(one.use.channel, one.job, one.draw) for one in self.drawn}
            for entry in entries:
                if entry.id in self._chosen_by:
                    continue
                for one in entry.drawn:
                    if (one.use.channel, one.job, one.draw) in chosen:
                        return True
        if self.identity:
            return False
        by_channel = {mine.use.channel: mine for mine in self.drawn}
        for entry in entries:
            if relation(entry, by_channel) is not Relation.FOREIGN:
                continue
            if self._choice.is_of_data_set(entry, content):
                # Of two jobs that know these records, one of them of an earlier version, the last
                # one counts, which may be this one.
                return self._choice.draws(entries, content) != self.drawn
        return False

    def _earlier(
        self, db: Connection, entries: Sequence[Entry], content: Content
    ) -> EarlierReleases:
        """The earlier releases of these records, in the transaction of `db`; refuses a second
        draw.
        """
        earlier = find_earlier_releases(
            db, self.ledger, entries, self._choice, self.drawn, content
        )
        earlier = counted(earlier, self._channels)
        if self._people is None:
            return earlier
        nights = earlier_nights(
            db,
            self.ledger,
            entries,
            self.drawn,
            self._people,
            fresh_draw=self._choice.fresh_draw,
        )
        return replace(earlier, nights=nights)

    def _with_nights(self, earlier: EarlierReleases) -> EarlierReleases:
        """The same with a notice of what all releases of a person tell together."""
        if self._people is None:
            return earlier
        sentence = nights_sentence(
            self._people, self._channels[0], self.drawn, earlier.nights
        )
        if sentence is None:
            return earlier
        return replace(earlier, notices=(*earlier.notices, sentence))

    def renewed(
        self, content: Content, bare: BareRecords, releases: Sequence[Release]
    ) -> tuple[str, ...]:
        """Notices of records that were drawn just now, and are known under other identifiers.

        Raises
        ------
        InputError
            If these are at least half of the records with new identifiers.
        StartAgain
            If another process has released these records meanwhile.
        """
        with self.ledger.reading() as db:
            return self._renewed_or_meanwhile(db, content, bare, releases)

    def _renewed(
        self,
        db: Connection,
        content: Content,
        bare: BareRecords,
        releases: Sequence[Release],
    ) -> tuple[str, ...]:
        """What `renewed` returns, in the transaction of `db`."""
        # A fresh draw is a second one of all records, whatever identifies them.
        if self._choice.fresh_draw:
            return ()
        notices: dict[str, None] = {}
        for k, (release, drawn) in enumerate(zip(releases, self.drawn, strict=True)):
            # What was forgotten of so many identifiers would count as new.
            if release.earlier.full:
                continue
            at_hand = ReleaseAtHand(drawn, self.identity, content, self._choice.file)
            of_channel = notices_of_renewed(db, self.ledger, at_hand, bare.new(k))
            # Several channels may give the same notice.
            notices |= dict.fromkeys(of_channel)
        return tuple(notices)

    def same_columns(
        self,
        columns: ColumnRecords,
        earlier: EarlierReleases,
        releases: Sequence[Release],
    ) -> EarlierReleases:
        """The earlier releases with those of the same released columns, whatever stood beside them.

        Raises
        ------
        InputError
            If a column was released before, with other draws, and no fresh draw was asked for.
        StartAgain
            If another process has released these records meanwhile.
        """
        with self.ledger.reading() as db:
            same = self._same_columns(db, columns, releases)
        notices = [*earlier.notices]
        if same.notable:
            notices.append(alike_column_notice(same.notable[-1]))
        # The user asked for this draw: those before it count for the joint budget.
        known = {entry.id for entry in earlier.runs}
        added = [entry for entry in same.certain if entry.id not in known]
        if not added:
            return replace(earlier, notices=tuple(notices))
        runs = (*earlier.runs, *added)
        by_channel = {mine.use.channel: mine for mine in self.drawn}
        draws = count_other_draws(runs, by_channel)
        notices = [note for note in notices if note != FIRST_DRAW]
        notices.append(redraw_notice(draws))
        earlier = replace(earlier, runs=runs, draws=draws, notices=tuple(notices))
        return with_joint_budget(earlier, self.drawn, self._channels)

    def _same_columns(
        self,
        db: Connection,
        columns: ColumnRecords,
        releases: Sequence[Release],
    ) -> SameColumns:
        """The releases of the same columns, in the transaction of `db`; refuses a second draw."""
        certain: list[Entry] = []
        notable: list[Entry] = []
        for k, drawn in enumerate(self.drawn):
            new = columns.new(k)
            if new is None:
                continue
            same = same_columns(db, self.ledger, drawn, self.identity, new)
            certain += same.certain
            notable += same.notable
        if certain and not self._choice.fresh_draw:
            for records in self._identified(releases):
                if records.are_released_meanwhile(db):
                    raise StartAgain(RELEASED_MEANWHILE)
            raise InputError(same_column_refusal(certain[-1]))
        if self._people is not None and not self._choice.fresh_draw:
            refuse_same_people(db, self.ledger, notable, self._people)
        return SameColumns(tuple(certain), tuple(notable))

    def enter(
        self,
        entry: Entry,
        content: Content | None = None,
        releases: Sequence[Release] = (),
        bare: BareRecords | None = None,
        columns: ColumnRecords | None = None,
    ) -> None:
        """Enter that a release is about to be made: its data are on disk, and files are about to
        get their names.

        All checks and the entry are one transaction, so a kill leaves either all of it in the
        ledger or nothing.
        """
        identified = self._identified(releases)
        with self.ledger.changing() as db:
            # Another process may have released something since this job looked. From here to the
            # end of the transaction no other process can, so the checks of `met` and `renewed` are
            # made once more before anything is entered.
            self._check_again(db, content, releases, bare, identified)
            if columns is not None:
                self._same_columns(db, columns, releases)
            self._take_over_killed(db, entry)
            # First the entry: a rehearsal ends here, after all checks and before anything is kept.
            self.ledger.enter(db, entry, content)
            if self._people is not None:
                people = self._people
                self.ledger.remember_people(db, entry, people.persons, people.records)
            if bare is not None:
                self.ledger.remember_bare(db, entry, bare.content.to_bytes())
            if columns is not None:
                self._remember_columns(db, entry, columns)
            for records in identified:
                records.remember(db, entry)

    def _remember_columns(
        self, db: Connection, entry: Entry, columns: ColumnRecords
    ) -> None:
        """Keep what is known of the released columns."""
        for k, drawn in enumerate(self.drawn):
            column = columns.content(k)
            if column is not None:
                stored = packed(column)
                self.ledger.remember_column(db, entry, drawn.use.channel, stored)

    def _check_again(
        self,
        db: Connection,
        content: Content | None,
        releases: Sequence[Release],
        bare: BareRecords | None,
        identified: Sequence[IdentifiedRecords],
    ) -> None:
        """Refuse what `met`, `renewed` and the symbols of identified records forbid by now."""
        entries = self.ledger.releases(db)
        if content is not None:
            if self._has_other_draws(entries, content):
                raise StartAgain(RELEASED_MEANWHILE)
            self._earlier(db, entries, content)
        for records in identified:
            records.refuse_other_spellings(db)
        if content is not None and not self._choice.fresh_draw:
            for records in identified:
                records.refuse_renamed(db, entries, content, self._choice)
        if content is not None and bare is not None:
            self._renewed_or_meanwhile(db, content, bare, releases)

    def _renewed_or_meanwhile(
        self,
        db: Connection,
        content: Content,
        bare: BareRecords,
        releases: Sequence[Release],
    ) -> tuple[str, ...]:
        """Notices of records that are known under other identifiers; refuses most of them.

        Another process may have released the records under the same identifiers since `prepare`.
        Then they are not new any more, and nothing is wrong with them.
        """
        try:
            return self._renewed(db, content, bare, releases)
        except InputError:
            for records in self._identified(releases):
                if records.are_released_meanwhile(db):
                    raise StartAgain(RELEASED_MEANWHILE) from None
            raise

    def _take_over_killed(self, db: Connection, entry: Entry) -> None:
        """Let an entry replace that of a killed run, which was going to write the same bytes."""
        last = self.ledger.last_of(db, entry.target)
        if last is None or last.state != FINISHING or not last.same_release(entry):
            return
        # In one transaction with the new entry, so the release counts once at any time.
        self.ledger.take_over(db, last, entry)
        self._continued = last

    def done(self, entry: Entry) -> None:
        """Enter that a release has been made."""
        finished = entry.model_copy(update={"state": DONE, "finished": _now()})
        with self.ledger.changing() as db:
            self.ledger.enter(db, finished)

    def commit(
        self,
        out: Target,
        entry: Entry,
        content: Content,
        releases: Sequence[Release],
        bare: BareRecords | None = None,
        columns: ColumnRecords | None = None,
    ) -> None:
        """Enter a release and give its files their names; what fails is taken back, unless it may
        have been seen.
        """
        # The ledger knows of the release before anybody can see a file of it. In the other order a
        # kill in between would leave a release that the ledger never heard of, and the next run
        # would draw its records a second time.
        with on_failure(lambda: self._take_back(entry)):
            out.commit(
                before=lambda: self.enter(entry, content, releases, bare, columns),
                after=lambda: self.done(entry),
            )

    def _take_back(self, entry: Entry) -> None:
        """Remove a release from the ledger whose files did not get their names."""
        # Bytes that were sent cannot be called back, nor can a file that has its name: the entry
        # must stay, or these records could be drawn again.
        may_have_been_seen = entry.target == STANDARD or is_url(entry.target)
        if may_have_been_seen or has_sha256(entry.target, entry.output):
            return
        # The first error is the one to raise; an entry too many does no harm.
        with suppress(InputError), self.ledger.changing() as db:
            if self._continued is None:
                self.ledger.remove(db, entry)
            else:
                # What that run wrote may have been seen before it was removed.
                self.ledger.take_over(db, entry, self._continued)
                self.ledger.enter(db, self._continued)


def _now() -> str:
    """The time in UTC, in ISO format."""
    return datetime.now(UTC).isoformat(timespec="seconds")
