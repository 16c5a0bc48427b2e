"""Whether the records of a job were released before under other identifiers, or under none.

New identifiers give the records of an old release new draws, a second one each. Each release in
the ledger left its records without their identifiers (`bare_records`). The records whose
identifiers are new in this job are compared with those of every release that they may have been in
(`Wanted.compared_with`), by `likeness`. Then `notices_of_renewed` decides:

- the same for certain, and at least half of the new ones (`SAME_FROM`): an error;
- the same for certain, but fewer: a notice;
- equal numbers of every row, which may be chance: a notice.

It is asked twice: when the records were drawn, and in the transaction that enters the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from mechdesign.core.errors import InputError
from mechdesign.formats.census import Content
from mechdesign.jobs.bare_records import BareContent
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_notices import (
    alike_records_notice,
    renamed_records_notice,
    renamed_records_refusal,
    second_draw_refusal,
)
from mechdesign.jobs.likeness import NOTABLE, Likeness, likeness, share_of
from mechdesign.jobs.same_records import SAME_FROM, is_same, releases_of


@dataclass(frozen=True)
class Wanted:
    """A data set that is about to be released: its draw through one channel, what identifies its
    records, their content, and the hash of its bytes.
    """

    drawn: Drawn
    identity: tuple[str, ...]
    content: Content
    file: str | None

    def compared_with(self, db: Connection, entry: Entry) -> bool:
        """Whether a release may have had these records under other identifiers."""
        old = entry.of(self.drawn.use.channel)
        if old is None:
            return False
        if not self.identity and not entry.identity:
            # None could have changed: both know their records by row number.
            return False
        if old.job == self.drawn.job and old.draw != self.drawn.draw:
            # The user asked for that further draw; the same identifiers have two there.
            return not releases_of(db, [entry], self.content, self.file).entries
        return True

    def repeats(self, entries: Sequence[Entry]) -> bool:
        """Whether a data set without identifiers was released just so before."""
        if self.identity:
            return False
        for entry in entries:
            old = entry.of(self.drawn.use.channel)
            if (
                old is not None
                and not entry.identity
                and (old.job, old.draw) == (self.drawn.job, self.drawn.draw)
                and is_same(entry, self.content, self.file)
            ):
                return True
        return False


def notices_of_renewed(
    db: Connection, ledger: Ledger, wanted: Wanted, new: BareContent
) -> tuple[str, ...]:
    """What the user should know of the records whose identifiers are new.

    Raises
    ------
    InputError
        If at least half of them were released before under other identifiers, for certain.
    """
    entries = ledger.releases(db)
    if not new.records or wanted.repeats(entries):
        return ()
    certain: list[tuple[Entry, Likeness]] = []
    notable: list[Entry] = []
    for entry in entries:
        if not wanted.compared_with(db, entry):
            continue
        stored = ledger.bare(db, entry)
        # A release on a cluster, or of an earlier version, left none.
        if stored is None:
            continue
        alike = likeness(new, BareContent.from_bytes(stored))
        if alike.certain:
            certain.append((entry, alike))
        elif alike.whole and alike.bits >= NOTABLE:
            notable.append(entry)
    # What is certain counts together: each release may have had another part of the records.
    if certain:
        last = certain[-1][0]
        share = share_of(new, [alike for _, alike in certain])
        if share < SAME_FROM:
            return (renamed_records_notice(share, last),)
        raise InputError(_refusal(share, last, wanted.identity))
    if notable:
        return (alike_records_notice(notable[-1]),)
    return ()


def _refusal(share: float, last: Entry, identity: Sequence[str]) -> str:
    """The error: other values in the same identifying columns, or another way to identify."""
    if identity and last.identity == tuple(identity):
        return renamed_records_refusal(share, last, identity)
    return second_draw_refusal(share, last, identity)
