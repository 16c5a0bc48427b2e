"""A job: the draws of a release, and what they must not be.

The draw of a record is a function of the key, the channel and what identifies the record, so a job gives the same draws
as often as it runs, whatever interrupted it. It refuses a second independent draw of a record, and one random number
for two symbols of a record: the two outputs would depend on each other through it, and could tell more of the symbols
than both promise.

Which job it is, the ledger knows: with an identity by columns, all data sets share one; else every data set, in its
order, has its own.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from mechdesign.channel.channel import Channel as Releasable
from mechdesign.core.documents import canonical, versions
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, holds, real_path
from mechdesign.core.numbers import at_most, listed
from mechdesign.formats.digests import Content
from mechdesign.formats.inputs import STANDARD, on_failure
from mechdesign.formats.urls import Remote, is_url, place_of
from mechdesign.jobs.ledger import (
    DONE,
    FINISHING,
    Drawn,
    Entry,
    Ledger,
    Settings,
    Use,
)
from mechdesign.jobs.past_releases import (
    QUANTISED,
    is_same,
    joint_budget,
    local_budget,
    share_of,
)
from mechdesign.jobs.target import Target
from mechdesign.release.drawing import REDRAW, Release
from mechdesign.release.policies import REFUSE

KNOWN = 0.5
"""From this share on, records that are unique in both count as the same: by chance alone it is at most 1/e."""


def check_uses(uses: Sequence[Use]) -> None:
    """Refuse a channel that is applied to two columns of one data set."""
    seen: dict[str, Use] = {}
    for use in uses:
        if (first := seen.setdefault(use.channel, use)) is not use:
            raise InputError(
                f"the same channel cannot be applied to {listed(first.columns)} and to {listed(use.columns)} in one "
                "job: both would get the same random numbers; release them in two jobs (--ledger)"
            )


def check_treatment(old: Use, use: Use) -> None:
    """Refuse to read the same channel's symbols in another way than before.

    What is published for a record without a symbol may change: its random number meets no second symbol then.
    """
    if old.columns != use.columns:
        raise InputError(
            f"this channel was applied to {listed(old.columns)} before; on {listed(use.columns)} it would use the same "
            "random numbers again: draw anew (--fresh-draw) if that is another column"
        )
    # What both refuse to release is known to both, and then under the same symbol.
    if not (old.normalise == use.normalise or old.unknown == use.unknown == REFUSE):
        raise InputError(
            f"{listed(use.columns)} was released with the normalisation {old.normalise} before, not {use.normalise}, "
            "which gives some records another symbol; keep it, or draw anew (--fresh-draw)"
        )


@dataclass(frozen=True)
class Earlier:
    """What was released of the same records before.

    `draws` is the number of other draws, `runs` are their releases; `joint` the budget of all draws together, where a
    further one was asked for.
    """

    draws: int = 0
    runs: tuple[Entry, ...] = ()
    other_channels: bool = False
    joint: Mapping[str, Any] | None = None
    notices: tuple[str, ...] = ()


@dataclass
class Job:
    """A job that is ready to draw, with `keys`, one for each channel."""

    ledger: Ledger
    uses: Sequence[Use]
    _: KW_ONLY
    file: str | None = None
    content: InitVar[Content | None] = None
    identity: tuple[str, ...] = ()
    fresh_draw: bool = False
    settings: Settings = field(default_factory=dict[str, Any])
    source: str | None = None
    channels: Sequence[Releasable] = ()
    channel_files: Sequence[PathLike] = ()

    def __post_init__(self, content: Content | None) -> None:
        check_uses(self.uses)
        for path in self.channel_files:
            if (old := real_path(f"{os.fspath(real_path(path))}.jobs")).is_dir():
                raise InputError(
                    f"{old} has releases of a version before the first, which no ledger knows: remove it if its draws "
                    "need not be kept"
                )
        # As they come back from the file: lists for tuples.
        self.settings = json.loads(canonical(self.settings))
        self._started = _now()
        self._continued: Entry | None = None
        self._choose(content)

    def _choose(self, content: Content | None) -> None:
        """Find the draws of this data set, which shows in its bytes or else in its content."""
        with self.ledger.reading() as db:
            self.drawn = self._found(db, content)
        self.keys = tuple(map(self.ledger.key_of, self.drawn))

    def _found(self, db: Connection, content: Content | None) -> tuple[Drawn, ...]:
        released = [
            entry for entry in self.ledger.releases(db) if self._is_mine(entry, content)
        ]
        places = [
            *(os.fspath(real_path(path)) for path in self.channel_files),
            *[None] * len(self.uses),
        ]
        pairs = zip(self.uses, places, strict=False)
        return tuple(self._drawn(use, place, released, content) for use, place in pairs)

    def _is_mine(self, entry: Entry, content: Content | None) -> bool:
        if entry.identity != self.identity or self.identity:
            return entry.identity == self.identity
        same = content is not None and entry.ordered == content.ordered
        return same or (self.file is not None and entry.file == self.file)

    def _drawn(
        self,
        use: Use,
        place: str | None,
        released: Sequence[Entry],
        content: Content | None,
    ) -> Drawn:
        found = [
            (entry, old)
            for entry in released
            if (old := entry.of(use.channel)) is not None
        ]
        if not found:
            rows = self.file or (content and content.ordered)
            job = f"id {canonical(self.identity)}" if self.identity else f"rows {rows}"
            return Drawn(use=use, job=job, draw=0, channel_file=place)
        last, latest = found[-1]
        draw = max(old.draw for _, old in found if old.job == latest.job)
        # A run that was killed on the way to a fresh draw is finished first, with that draw.
        draw += int(self.fresh_draw and not (last.fresh and last.state == FINISHING))
        for _, old in found:
            if (old.job, old.draw) == (latest.job, draw):
                check_treatment(old.use, use)
        return Drawn(use=use, job=latest.job, draw=draw, channel_file=place)

    def prepare(self, releases: Sequence[Release]) -> None:
        """Tell the releases, one for each channel, with which symbols records were released before."""
        if self.identity:
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
        """The run that has written all of this to `target` already, if there is one; it is marked as done.

        So a job that was killed after its files had their names has nothing left to do, and one that is asked for
        the same thing again need not do it.
        """
        run = self._last(target)
        if run is None or not run.same_release(self.entry(target, None, 0)):
            return None
        if not (
            Remote(target).holds(run.output)
            if is_url(target)
            else holds(run.target, run.output)
        ):
            return None
        if not all(Path(path).is_file() for path in sides) and not is_url(target):
            return None
        if run.state == FINISHING:
            self.done(run)
        return run

    def unfinished(self, target: PathLike) -> bool:
        """Whether a run was killed while the files of `target` were getting their names."""
        run = self._last(target)
        return run is not None and run.state == FINISHING

    def _last(self, target: PathLike) -> Entry | None:
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
        joint: Any = None,
    ) -> Entry:
        """What the ledger will hold of a release of this job."""
        return Entry(
            id=secrets.token_hex(8),
            target=place_of(target),
            source=self.source,
            state=FINISHING,
            started=self._started,
            output=output,
            records=records,
            identity=self.identity,
            drawn=self.drawn,
            settings=self.settings,
            fresh=self.fresh_draw,
            versions=versions(),
            file=self.file,
            ordered=content and content.ordered,
            unordered=content and content.unordered,
            joint=joint,
        )

    def met(self, content: Content) -> Earlier | None:
        """What was released of these records before; None if they turned out to have another job, which is taken on.

        Raises InputError if they would be drawn a second time, and `fresh_draw` did not ask for that.
        """
        with self.ledger.reading() as db:
            earlier = self._met(db, content)
        if earlier is None:
            self._choose(content)
        return earlier

    def _met(
        self, db: Connection, content: Content, *, budget: bool = True
    ) -> Earlier | None:
        ours = {drawn.use.channel: drawn for drawn in self.drawn}
        own, foreign, others, before = [list[Entry]() for _ in range(4)]
        for entry in self.ledger.releases(db):
            pairs = [
                (old, ours[old.use.channel])
                for old in entry.drawn
                if old.use.channel in ours
            ]
            same = all(old.job == mine.job for old, mine in pairs)
            (others if not pairs else own if same else foreign).append(entry)
            # Of two jobs that know these records, one of them of an earlier version, the last one counts.
            claimed = not (same or self.identity) and self._is_mine(entry, content)
            if pairs and same and any(old.draw != mine.draw for old, mine in pairs):
                before.append(entry)
            elif claimed and self._found(db, content) != self.drawn:
                return None
        again = {entry.id for entry in before}
        repeated = any(
            entry.id not in again and is_same(entry, content, self.file)
            for entry in own
        )
        share, alike = share_of(db, foreign, content, self.file)
        if share >= KNOWN and not self.fresh_draw and not repeated:
            same = [
                entry for entry in alike if is_same(entry, content, self.file)
            ] or alike
            raise InputError(_refusal(share, same[-1], self.identity))
        before += alike if share >= KNOWN else []
        likeness, others = share_of(db, others, content, self.file)
        drawn = [
            old for entry in before for old in entry.drawn if old.use.channel in ours
        ]
        count = len(
            {(old.job, old.draw) for old in drawn}
            - {(mine.job, mine.draw) for mine in self.drawn}
        )
        notices = (
            [_AGAIN.format(count, "draw" if count == 1 else "draws")] if count else []
        )
        notices += [_SOME.format(share)] if 0 < share < KNOWN else []
        notices += [_FIRST] if self.fresh_draw and not count else []
        notices += [_OTHER_CHANNELS] if likeness >= KNOWN else []
        blind = [
            entry
            for entry in own
            if entry.unordered is None and entry.file != self.file
        ]
        notices += [_UNSEEN] if self.identity and blind else []
        joint = None
        if self.fresh_draw and count and budget:
            met = before + (others if likeness >= KNOWN else [])
            earlier = [
                each
                for entry in met
                for each in entry.drawn
                if each.use.form != QUANTISED
            ]
            every = [*self.drawn, *earlier]
            joint, told = joint_budget(every, self.channels)
            notices.append(told)
        return Earlier(count, tuple(before), likeness >= KNOWN, joint, tuple(notices))

    def finish(
        self,
        entry: Entry,
        content: Content | None = None,
        releases: Sequence[Release] = (),
    ) -> None:
        """Enter that a release is about to be made: its data are on disk, and files are about to get their names."""
        with self.ledger.changing() as db:
            # Another process may have released something since this job looked.
            if content is not None and self._met(db, content, budget=False) is None:
                raise InputError(_MEANWHILE)
            last = self.ledger.last_of(db, entry.target)
            if (
                last is not None
                and last.state == FINISHING
                and last.same_release(entry)
            ):
                # Killed at this point, it was going to write the same bytes.
                self.ledger.take_over(db, last, entry)
                self._continued = last
            self.ledger.enter(db, entry, content)
            pairs = (
                zip(releases, self.drawn, self.keys, strict=True)
                if self.identity and releases
                else ()
            )
            for release, drawn, key in pairs:
                for hashes, codes in self.ledger.known(db, drawn, key):
                    other = release.seen.find(hashes, codes)[1] != codes
                    if release.earlier.find(hashes[other], codes[other])[0].any():
                        raise InputError(_MEANWHILE)
                for part in release.new_records():
                    self.ledger.remember(db, entry, drawn, key, *part)

    def done(self, entry: Entry) -> None:
        """Enter that a release has been made."""
        with self.ledger.changing() as db:
            self.ledger.enter(
                db, entry.model_copy(update={"state": DONE, "finished": _now()})
            )

    def commit(
        self, out: Target, entry: Entry, content: Content, releases: Sequence[Release]
    ) -> None:
        """Enter a release and give its files their names; what fails is taken back, unless it may have been seen."""

        def take_back() -> None:
            seen = entry.target == STANDARD or is_url(entry.target)  # it may be
            if not seen and not holds(entry.target, entry.output):
                # The first error is the one to tell; an entry too many does no harm.
                with suppress(InputError), self.ledger.changing() as db:
                    if self._continued is None:
                        self.ledger.remove(db, entry)
                    else:  # what that run wrote may have been seen before it was removed
                        self.ledger.take_over(db, entry, self._continued)
                        self.ledger.enter(db, self._continued)

        with on_failure(take_back):
            out.commit(
                before=lambda: self.finish(entry, content, releases),
                after=lambda: self.done(entry),
            )


def changes_told(releases: Sequence[Release]) -> tuple[str, ...]:
    """What is to be said of records with another symbol than before."""
    told: list[str] = []
    for release in (each for each in releases if each.changes):
        done = "kept their old output"
        if release.changed == REDRAW:
            budget = local_budget(release.channel.rows)
            bound = "any amount" if math.isinf(budget) else f"at most {at_most(budget)}"
            done = f"were drawn anew: each further symbol of a record adds {bound} to what its releases tell (the "
            done += "local budget of the channel)"
        told.append(
            f"{release.changes:,} records have another symbol than before and {done}"
        )
    return tuple(told)


def _refusal(share: float, entry: Entry, identity: Sequence[str]) -> str:
    what = (
        "these records have"
        if share == 1
        else f"about {share:.0%} of these records have"
    )
    known = (
        f"the column {listed(entry.identity)}" if entry.identity else "their row number"
    )
    hint = (
        ""
        if identity
        else ", name what identifies a record (--identity COL) from the first release on"
    )
    return (
        f"{what} been released through this channel before (to {entry.target} on {entry.started[:10]}, known by "
        f"{known}), and would be drawn a second time, which can leak far more than one "
        f"release: release that file again as it was{hint}, or accept that (--fresh-draw)"
    )


_AGAIN = (
    "the same records have been released before with {} other {}: independent releases of a record can tell far more "
    "than each"
)

_MEANWHILE = "another job has released these records meanwhile; start again"

_SOME = (
    "about {:.0%} of these records have been released through this channel before, with draws of their own: name the "
    "column that identifies them (--identity), so that each keeps its draw from now on"
)

_FIRST = "these records have not been released before: their first draw is a fresh one in any case"

_UNSEEN = (
    "records were released before on a cluster, or by an earlier version, which left no trace of their symbols here: "
    "whether some have another symbol now cannot be seen"
)

_OTHER_CHANNELS = (
    "these data have been released through another channel, or in another column, as well: each release keeps its own "
    "promise, but together they can tell more than either"
)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
