"""A job: which draws a release uses, so that no record is drawn twice by mistake.

The draw of a record is a function of the key, the channel and what identifies the record, so a job
gives the same draws as often as it runs, whatever interrupted it. It refuses a second independent
draw of a record, and one random number for two symbols of a record: the two outputs would depend on
each other through it, and could tell more of the symbols than both promise.

The ledger tells jobs apart: with an identity by columns, all data sets share one job; else every
data set, in its order, has its own.

`KeyedRecipe.write_file` makes a job for each file and calls its methods in this order:

1. `Job(...)` chooses the keys, by what the ledger knows before anything is read.
2. `finished` asks whether an earlier run has written all of this already.
3. `prepare` gives the draws the earlier symbols of identified records; then the file is drawn.
4. `met` compares the records, which are known now, with all releases in the ledger. If they belong
   to another job, it takes on that job's keys, and the file is drawn again from step 3.
5. `renewed` looks for the same records under other identifiers.
6. `commit` enters the release as `FINISHING`, gives the files their names, and enters it as `DONE`.

A kill before step 6 leaves no release in the ledger. A kill within step 6 leaves the entry
`FINISHING`: the next run draws the same bytes and takes the entry over, or finds the output
complete and only marks it as done.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import numpy as np

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.documents import versions
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, has_sha256, real_path
from mechdesign.core.json_values import canonical
from mechdesign.core.undoing import on_failure
from mechdesign.core.wording import listed
from mechdesign.formats.census import Content
from mechdesign.formats.urls import STANDARD, Remote, is_url, place_of
from mechdesign.jobs.bare_records import BareRecords
from mechdesign.jobs.counted_outputs import drawn_uses
from mechdesign.jobs.earlier import (
    FIRST_DRAW,
    OTHER_CHANNELS,
    RELEASED_MEANWHILE,
    SYMBOLS_UNKNOWN,
    Earlier,
    LedgerView,
    Relation,
    other_draws,
    redraw_notice,
    relation,
    renamed_records_refusal,
    second_draw_refusal,
    shared_records_notice,
)
from mechdesign.jobs.entries import DONE, FINISHING, Drawn, Entry, Settings, Use
from mechdesign.jobs.joint_budget import joint_budget
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.recipe import RecordedDraws
from mechdesign.jobs.renewed_identifiers import Wanted, notices_of_renewed
from mechdesign.jobs.same_records import is_same, releases_of
from mechdesign.jobs.target import Target
from mechdesign.release.draws import Key
from mechdesign.release.first_symbols import FirstSymbols
from mechdesign.release.policies import REFUSE
from mechdesign.release.spellings import OTHER_SPELLING

UNCERTAIN = 0.1
"""The error that is allowed for of an estimated share of records: ten times its standard error."""

KNOWN = 0.5
"""From this share on, records that are unique in both count as the same: by chance alone it is at
most 1/e.
"""


def check_uses(uses: Sequence[Use]) -> None:
    """Refuse a channel that is applied to two columns of one data set."""
    by_channel: dict[str, Use] = {}
    for use in uses:
        first = by_channel.setdefault(use.channel, use)
        if first is not use:
            raise InputError(
                f"the same channel cannot be applied to {listed(first.columns)} and to "
                f"{listed(use.columns)} in one job: both would get the same random numbers; "
                "release them in two jobs (--ledger)"
            )


def check_treatment(old: Use, use: Use) -> None:
    """Refuse to read the same channel's symbols in another way than before.

    What is published for a record without a symbol may change: its random number meets no second
    symbol then.
    """
    if old.columns != use.columns:
        raise InputError(
            f"this channel was applied to {listed(old.columns)} before; on {listed(use.columns)} "
            "it would use the same random numbers again: draw anew (--fresh-draw) if that is "
            "another column"
        )
    # If unknown symbols were refused then and are now, all symbols are known to both
    # normalisations.
    both_refuse = old.unknown == REFUSE and use.unknown == REFUSE
    if old.normalise != use.normalise and not both_refuse:
        raise InputError(
            f"{listed(use.columns)} was released with the normalisation {old.normalise} before, "
            f"not {use.normalise}, which gives some records another symbol; keep it, or draw anew "
            "(--fresh-draw)"
        )


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
    channels : sequence of Channel, RowChannel or BoxChannel
        The channels of the uses, for joint budgets.
    channel_files : sequence of paths
        The files that they were read from.
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
        channels: Sequence[Channel | RowChannel | BoxChannel] = (),
        channel_files: Sequence[PathLike] = (),
    ) -> None:
        check_uses(uses)
        for path in channel_files:
            _refuse_old_jobs(path)
        self.ledger = ledger
        self.identity = identity
        self.drawn: tuple[Drawn, ...] = ()
        self.keys: tuple[Key, ...] = ()
        self._uses = uses
        self._file = file
        self._fresh_draw = fresh_draw
        # As they come back from the ledger, to be compared with those there: lists for tuples.
        self._settings: Settings = json.loads(canonical(settings or {}))
        self._source = source
        self._channels = channels
        self._channel_files: list[str | None] = [None] * len(uses)
        for k, path in enumerate(channel_files[: len(uses)]):
            self._channel_files[k] = os.fspath(real_path(path))
        self._started = _now()
        # The entry of a killed run that this job takes over in `finish`.
        self._continued: Entry | None = None
        self._choose_draws(content)

    def _choose_draws(self, content: Content | None) -> None:
        """Choose the draws of this data set, which the ledger knows by its bytes or else by its
        content.
        """
        with self.ledger.reading() as db:
            self.drawn = self._draws_of(db, content)
        self.keys = tuple(self.ledger.key_of(drawn) for drawn in self.drawn)

    def _draws_of(self, db: Connection, content: Content | None) -> tuple[Drawn, ...]:
        entries = self.ledger.releases(db)
        released = [entry for entry in entries if self._is_of_this_job(entry, content)]
        draws: list[Drawn] = []
        for use, file in zip(self._uses, self._channel_files, strict=True):
            draws.append(self._draw_of(use, file, released, content))
        return tuple(draws)

    def _is_of_this_job(self, entry: Entry, content: Content | None) -> bool:
        """Whether a release has the keys of this data set."""
        if self.identity or entry.identity:
            return entry.identity == self.identity
        if content is not None:
            for reading in content.readings:
                if entry.ordered == reading.ordered:
                    return True
        return self._file is not None and entry.file == self._file

    def _draw_of(
        self,
        use: Use,
        channel_file: str | None,
        released: Sequence[Entry],
        content: Content | None,
    ) -> Drawn:
        """The draw of one channel: that of the last release through it, or a first or further
        one.
        """
        last: Entry | None = None
        earlier: list[Drawn] = []
        for entry in released:
            old = entry.of(use.channel)
            if old is not None:
                earlier.append(old)
                last = entry
        if last is None:
            return Drawn(
                use=use, job=self._new_job(content), draw=0, channel_file=channel_file
            )
        job = earlier[-1].job
        # Draws are numbered from 0 within a job; without a fresh draw the latest one is repeated.
        draw = max(old.draw for old in earlier if old.job == job)
        # A run that was killed on the way to a fresh draw is finished first, with that draw.
        finishing_fresh = last.fresh and last.state == FINISHING
        if self._fresh_draw and not finishing_fresh:
            draw += 1
        for old in earlier:
            if old.job == job and old.draw == draw:
                check_treatment(old.use, use)
        return Drawn(use=use, job=job, draw=draw, channel_file=channel_file)

    def _new_job(self, content: Content | None) -> str:
        """The name of a job that the ledger does not have yet; keys are derived from it."""
        if self.identity:
            return f"id {canonical(self.identity)}"
        rows = self._file
        if rows is None and content is not None:
            rows = content.ordered
        return f"rows {rows}"

    def prepare(self, releases: Sequence[RecordedDraws]) -> None:
        """Give the draws, one for each use, the symbols that identified records were released
        with before.
        """
        if not self.identity:
            return
        with self.ledger.reading() as db:
            for release, drawn, key in zip(
                releases, self.drawn, self.keys, strict=True
            ):
                known = self.ledger.known(db, drawn, key)
                release.earlier.reserve(sum(len(hashes) for hashes, _ in known))
                for hashes, codes in known:
                    release.earlier.look(hashes, codes)

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
        if is_url(target):
            if not Remote(target).holds(run.output):
                return None
        elif not has_sha256(run.target, run.output) or not all(
            Path(path).is_file() for path in sides
        ):
            return None
        if run.state == FINISHING:
            self.done(run)
        return run

    def unfinished(self, target: PathLike) -> bool:
        """Whether a run was killed while the files of `target` were getting their names."""
        run = self._last_run(target)
        return run is not None and run.state == FINISHING

    def _last_run(self, target: PathLike) -> Entry | None:
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
            identity=self.identity,
            drawn=self.drawn,
            settings=self._settings,
            fresh=self._fresh_draw,
            versions=versions(),
            file=self._file,
            ordered=ordered,
            unordered=unordered,
            joint=None if joint is None else dict(joint),
        )

    def met(self, content: Content) -> Earlier | None:
        """The earlier releases of these records.

        Returns
        -------
        Earlier or None
            None if the records, now that they are known, belong to another job: its draws are taken
            on.

        Raises
        ------
        InputError
            If the records would be drawn a second time, and `fresh_draw` did not ask for that.
        """
        with self.ledger.reading() as db:
            earlier = self._met(db, content)
        # Choosing draws opens the ledger anew, so this connection is closed first.
        if earlier is None:
            self._choose_draws(content)
        return earlier

    def _met(
        self, db: Connection, content: Content, *, budget: bool = True
    ) -> Earlier | None:
        """What `met` returns, in the transaction of `db`; without the joint budget, which takes
        long, if `budget` is false.
        """
        drawn = {mine.use.channel: mine for mine in self.drawn}
        view = LedgerView()
        for entry in self.ledger.releases(db):
            view.add(entry, drawn)
            # Of two jobs that know these records, one of them of an earlier version, the last one
            # counts.
            if (
                relation(entry, drawn) is Relation.FOREIGN
                and not self.identity
                and self._is_of_this_job(entry, content)
                and self._draws_of(db, content) != self.drawn
            ):
                return None

        # Other keys for the same records are a second draw of them.
        foreign = releases_of(db, view.foreign, content, self._file)
        before = [*view.redrawn]
        if foreign.share >= KNOWN:
            if not self._fresh_draw and not self._repeats(view, content):
                raise self._second_draw(foreign.share, foreign.entries, content)
            before += foreign.entries

        beside = releases_of(db, view.others, content, self._file)
        other_channels = beside.share >= KNOWN
        draws = other_draws(before, drawn)
        notices: list[str] = []
        if draws:
            notices.append(redraw_notice(draws))
        if 0 < foreign.share < KNOWN:
            notices.append(shared_records_notice(foreign.share))
        if self._fresh_draw and not draws:
            notices.append(FIRST_DRAW)
        if other_channels:
            notices.append(OTHER_CHANNELS)
        if self.identity and any(self._has_no_symbols(entry) for entry in view.own):
            notices.append(SYMBOLS_UNKNOWN)

        # A budget is only owed where the user asked for a further draw of known records.
        joint = None
        if self._fresh_draw and draws and budget:
            met = [*before]
            if other_channels:
                met += beside.entries
            total = joint_budget([*self.drawn, *drawn_uses(met)], self._channels)
            joint = total.budget
            notices.append(total.sentence)
        return Earlier(draws, tuple(before), other_channels, joint, tuple(notices))

    def _repeats(self, view: LedgerView, content: Content) -> bool:
        """Whether these very records were released by this job with these draws."""
        redrawn = {entry.id for entry in view.redrawn}
        same_draws = [entry for entry in view.own if entry.id not in redrawn]
        return any(is_same(entry, content, self._file) for entry in same_draws)

    def _second_draw(
        self, share: float, entries: Sequence[Entry], content: Content
    ) -> InputError:
        """The error that the records were released by another job; names the last release of all
        of them.
        """
        whole = [entry for entry in entries if is_same(entry, content, self._file)]
        last = (whole or entries)[-1]
        return InputError(second_draw_refusal(share, last, self.identity))

    def _has_no_symbols(self, entry: Entry) -> bool:
        """Whether the ledger has no symbols of the records of a release, which it did not see."""
        return entry.unordered is None and entry.file != self._file

    def renewed(
        self, content: Content, bare: BareRecords, releases: Sequence[RecordedDraws]
    ) -> tuple[str, ...]:
        """Notices of records that were drawn just now, and are known under other identifiers.

        Raises
        ------
        InputError
            If these are at least half of the records with new identifiers.
        """
        with self.ledger.reading() as db:
            return self._renewed(db, content, bare, releases)

    def _renewed(
        self,
        db: Connection,
        content: Content,
        bare: BareRecords,
        releases: Sequence[RecordedDraws],
    ) -> tuple[str, ...]:
        if self._fresh_draw:
            return ()
        notices: dict[str, None] = {}
        for k, (release, drawn) in enumerate(zip(releases, self.drawn, strict=True)):
            # What was forgotten of so many identifiers would count as new.
            if release.earlier.full:
                continue
            wanted = Wanted(drawn, self.identity, content, self._file)
            found = notices_of_renewed(db, self.ledger, wanted, bare.new(k))
            notices |= dict.fromkeys(found)
        return tuple(notices)

    def finish(
        self,
        entry: Entry,
        content: Content | None = None,
        releases: Sequence[RecordedDraws] = (),
        bare: BareRecords | None = None,
    ) -> None:
        """Enter that a release is about to be made: its data are on disk, and files are about to
        get their names.

        All checks and the entry are one transaction, so a kill leaves either all of it in the
        ledger or nothing.
        """
        with self.ledger.changing() as db:
            # Another process may have released something since this job looked. From here to the
            # end of the transaction no other process can, so the checks of `met` and `renewed` are
            # made once more before anything is entered.
            if content is not None and self._met(db, content, budget=False) is None:
                raise InputError(RELEASED_MEANWHILE)
            if self.identity and releases:
                self._refuse_other_identifiers(db, content, releases)
            if content is not None and bare is not None:
                self._refuse_renewed_meanwhile(db, content, bare, releases)
            last = self.ledger.last_of(db, entry.target)
            if (
                last is not None
                and last.state == FINISHING
                and last.same_release(entry)
            ):
                # Killed at this point, it was going to write the same bytes. In one transaction
                # with the new entry, the release counts once at any time.
                self.ledger.take_over(db, last, entry)
                self._continued = last
            # First the entry: a rehearsal ends here, after all checks and before anything is kept.
            self.ledger.enter(db, entry, content)
            if bare is not None:
                self.ledger.remember_bare(db, entry, bare.content.to_bytes())
            if self.identity and releases:
                self._remember_symbols(db, entry, releases)

    def _refuse_renewed_meanwhile(
        self,
        db: Connection,
        content: Content,
        bare: BareRecords,
        releases: Sequence[RecordedDraws],
    ) -> None:
        """Refuse records that are known under other identifiers by now.

        Another process may have released them under the same ones, and then they are not new any
        more.
        """
        try:
            self._renewed(db, content, bare, releases)
        except InputError:
            for release, drawn, key in zip(
                releases, self.drawn, self.keys, strict=True
            ):
                for hashes, codes in self.ledger.known(db, drawn, key):
                    seen = ~release.seen.find(hashes, codes)[0]
                    if release.earlier.find(hashes[seen], codes[seen])[0].any():
                        raise InputError(RELEASED_MEANWHILE) from None
            raise

    def _refuse_other_identifiers(
        self,
        db: Connection,
        content: Content | None,
        releases: Sequence[RecordedDraws],
    ) -> None:
        """Refuse records that were released before under other identifiers.

        Identifiers that differ in their spelling alone are compared one by one. All others show
        where the content of the records is known, and too many of their identifiers are not.
        """
        # Spellings: one identifier in two ways of writing would get two draws.
        for release, drawn in zip(releases, self.drawn, strict=True):
            spellings = release.spellings
            plain, written = self.ledger.spellings(db, drawn)
            if (
                spellings.differ(plain, written)
                or release.earlier.has_any(spellings.plain)
                or release.seen.has_any(plain)
            ):
                raise InputError(OTHER_SPELLING)
        if content is None or self._fresh_draw:
            return

        # Content: if a share s of the records was released before, at most 1 - s of the
        # identifiers can be new; `UNCERTAIN` allows for the error of the estimate of s.
        for release, drawn, key in zip(releases, self.drawn, self.keys, strict=True):
            earlier: list[Entry] = []
            for entry in self.ledger.releases(db):
                old = entry.of(drawn.use.channel)
                if old is not None and (old.job, old.draw) == (drawn.job, drawn.draw):
                    earlier.append(entry)
            same = releases_of(db, earlier, content, self._file)
            if not same.entries or release.seen.full:
                continue
            known = FirstSymbols()
            for hashes, codes in self.ledger.known(db, drawn, key):
                known.look(hashes, codes)
            records = 0
            new = 0
            for hashes, codes in release.seen.entries():
                records += len(hashes)
                new += int(np.count_nonzero(known.find(hashes, codes)[0]))
            if new > (1 - same.share + UNCERTAIN) * records:
                last = same.entries[-1]
                raise InputError(
                    renamed_records_refusal(same.share, last, self.identity)
                )

    def _remember_symbols(
        self, db: Connection, entry: Entry, releases: Sequence[RecordedDraws]
    ) -> None:
        """Keep the symbols of identified records; refuse if another process released one with
        another symbol.
        """
        for release, drawn, key in zip(releases, self.drawn, self.keys, strict=True):
            for hashes, codes in self.ledger.known(db, drawn, key):
                _, seen = release.seen.find(hashes, codes)
                changed = seen != codes
                # A change that this job knew of was dealt with when it drew.
                new, _ = release.earlier.find(hashes[changed], codes[changed])
                if new.any():
                    raise InputError(RELEASED_MEANWHILE)
            for hashes, codes in release.new_records():
                self.ledger.remember(db, entry, drawn, key, hashes, codes)
            known, _ = self.ledger.spellings(db, drawn)
            plain, written = release.spellings.new_pairs(known)
            self.ledger.remember_spellings(db, entry, drawn, plain, written)

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
        releases: Sequence[RecordedDraws],
        bare: BareRecords | None = None,
    ) -> None:
        """Enter a release and give its files their names; what fails is taken back, unless it may
        have been seen.
        """
        # The ledger knows of the release before anybody can see a file of it. In the other order a
        # kill in between would leave a release that the ledger never heard of, and the next run
        # would draw its records a second time.
        with on_failure(lambda: self._take_back(entry)):
            out.commit(
                before=lambda: self.finish(entry, content, releases, bare),
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


def _refuse_old_jobs(channel_file: PathLike) -> None:
    folder = real_path(f"{os.fspath(real_path(channel_file))}.jobs")
    if folder.is_dir():
        raise InputError(
            f"{folder} has releases of a version before the first, which no ledger knows: remove "
            "it if its draws need not be kept"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
