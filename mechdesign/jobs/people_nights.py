"""People with several records, night after night: what the ledger knows of their earlier releases.

A channel for people promises for all records of a person in one file. The file of the next night
has other records of the same people, and what is released of them adds to what was released before.
So the ledger keeps two lists of hashes of every release of people: of the people, and of their
records (person and wave). The next release of these people is compared with all of them:

- A record that was released before, with other random numbers, is refused: it would be drawn a
  second time.
- A person who was released before is refused, unless ``--nights N`` allows N releases of new
  records to each; the ledger counts. Then `sentence` says what all N tell together at most
  (`auditing.independent_draws`).

For example, three nights of the same 200 people with ``--nights 2`` are two releases and an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.formats.arrow_arrays import arrow_texts
from mechdesign.formats.cells import Encoded
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.spellings import plain_spelling
from mechdesign.jobs.joint_budget import channels_of, is_counted
from mechdesign.jobs.ledger import Drawn, Entry, Ledger
from mechdesign.tables.people import SEQUENCE, People
from mechdesign.tables.people_source import FoldedTable

BoolMask: TypeAlias = NDArray[np.bool_]

BOXES_OF_NIGHTS = (
    "what several releases of a person tell together is computed on the table of a channel, and "
    "this one promises for a population (--confidence): release each person once"
)
"""The refusal of a second release of people through boxes."""


@dataclass(frozen=True, eq=False)
class PeopleAtHand:
    """The people of a table, as the ledger knows them.

    Attributes
    ----------
    people : People
    size : int
        The number of their records.
    persons : hashes
        Of the people, sorted.
    records : hashes
        Of person and wave of each record, sorted; none where no column orders the records.
    most : int
        How many releases of new records each may have.
    after : tuple of str
        The hashes of the channel files that the channel was designed after: with a release of the
        same records through these its promise is about both together.
    """

    people: People
    size: int
    persons: Hashes
    records: Hashes
    most: int
    after: tuple[str, ...]

    @classmethod
    def of(
        cls, ledger: Ledger, table: FoldedTable, most: int, after: tuple[str, ...]
    ) -> PeopleAtHand:
        """Those of a folded table."""
        people = table.people
        persons = hashes_of_people(ledger, people.person, table.person)
        records = np.zeros(0, np.uint64)
        person_of = table.records.person_of
        if table.wave is not None:
            of_records = [
                column.recoded(column.codes[person_of]) for column in table.person
            ]
            records = hashes_of_people(ledger, people.person, [*of_records, table.wave])
        return cls(
            people=people,
            size=len(person_of),
            persons=np.unique(persons),
            records=np.unique(records),
            most=most,
            after=after,
        )

    def are_those_of(self, persons: Hashes, records: Hashes) -> bool:
        """Whether these are the same people with the same records."""
        if not len(self.records):
            return False
        same_people = np.array_equal(self.persons, persons)
        return same_people and np.array_equal(self.records, records)


def hashes_of_people(
    ledger: Ledger, person: Sequence[str], columns: Sequence[Encoded]
) -> Hashes:
    """One hash for each row of columns that name people, or their records."""
    # Other columns name other people, who may have the same numbers.
    secret = ledger.key.derived("ledger", "people", *person).secret
    return RowHasher(secret).identifiers([_plain(column) for column in columns])


def _plain(column: Encoded) -> Encoded:
    """The column in its plain spelling, so that 017 and 17 are one person."""
    plain = plain_spelling(arrow_texts(column.texts))
    if plain is None:
        return column
    return Encoded(column.codes, tuple(plain.to_pylist()))


@dataclass(frozen=True)
class EarlierNights:
    """Earlier releases of people.

    Attributes
    ----------
    nights : int
        The most that one of the people at hand has had.
    entries : tuple of Entry
        The releases, in the order of the ledger.
    """

    nights: int = 0
    entries: tuple[Entry, ...] = ()


def earlier_nights(
    db: Connection,
    ledger: Ledger,
    entries: Sequence[Entry],
    drawn: Sequence[Drawn],
    people: PeopleAtHand,
    *,
    fresh_draw: bool,
) -> EarlierNights:
    """The earlier releases of these people, with other random numbers than those of `drawn`.

    Raises
    ------
    InputError
        If a record was released before, or a person as often as is allowed; not with `fresh_draw`.
    """
    own = {(mine.use.channel, mine.job, mine.draw) for mine in drawn}
    # Releases with the same random numbers of the same records tell no more than one of them.
    drawn_by: dict[frozenset[tuple[str, str, int]], BoolMask] = {}
    found: list[Entry] = []
    for entry in entries:
        draws = frozenset((old.use.channel, old.job, old.draw) for old in entry.drawn)
        known = ledger.people(db, entry)
        if known is None or draws <= own:
            continue
        persons, records = known
        if people.are_those_of(persons, records) and is_counted(entry, people.after):
            continue
        here = np.isin(people.persons, persons, assume_unique=True)
        if not here.any():
            continue
        again = np.isin(people.records, records, assume_unique=True)
        if again.any() and not fresh_draw:
            raise InputError(_again(int(np.count_nonzero(again)), entry))
        drawn_by[draws] = here | drawn_by.get(draws, False)
        found.append(entry)
    counts = np.zeros(len(people.persons), dtype=np.int64)
    for here in drawn_by.values():
        counts += here
    nights = int(counts.max(initial=0))
    if nights >= people.most and not fresh_draw:
        many = int(np.count_nonzero(counts >= people.most))
        raise InputError(_too_often(many, len(counts), people, found[-1]))
    return EarlierNights(nights, tuple(found))


def reached_by_releases(
    channels: Sequence[Channel], runs: Sequence[Entry], most: int
) -> tuple[float, float]:
    """The bounds of so many releases of people through these channels, outwards.

    Raises
    ------
    InputError
        If they are not independent, or not known: see `auditing.independent_draws`.
    """
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.independent_draws import reached_by_draws

    single = [channel.on_tables(BOXES_OF_NIGHTS) for channel in channels]
    is_dependent = any(entry.fresh or entry.identity for entry in runs)
    if is_dependent or any(channel.record.after for channel in single):
        raise InputError(
            "some of these people were released with --fresh-draw, --identity or a channel "
            "designed --after another one, so that their releases are not independent: what all of "
            "them tell together is not known"
        )
    return reached_by_draws(single, most)


def _again(records: int, entry: Entry) -> str:
    """The error that records of people would be drawn a second time."""
    return (
        f"{records:,} of these records, by person and wave, were released before (to "
        f"{entry.target} on {entry.started[:10]}) and would be drawn a second time, which can leak "
        "far more than one release: release that file again as it was, or only records that are "
        "new, or accept that (--fresh-draw)"
    )


def refuse_same_people(
    db: Connection, ledger: Ledger, entries: Sequence[Entry], people: PeopleAtHand
) -> None:
    """Raise InputError if a release with the same sequences, equally often, was of these very
    people: their records come again with other texts for the waves.
    """
    for entry in entries:
        known = ledger.people(db, entry)
        if known is None or not np.array_equal(known[0], people.persons):
            continue
        raise InputError(
            "the same sequences of the same people, equally often, were released before (to "
            f"{entry.target} on {entry.started[:10]}) with other waves: if these are the same "
            "records, whose waves are written otherwise, they would be drawn a second time, which "
            "can leak far more than one release: write the waves as before, or accept that "
            "(--fresh-draw)"
        )


def _too_often(many: int, people: int, at_hand: PeopleAtHand, entry: Entry) -> str:
    """The error that people have had as many releases as they may."""
    subject = f"{many:,} of {people:,} people were"
    if many == 1:
        subject = f"1 of {people:,} people was"
    times = "before" if at_hand.most == 1 else f"{how_often(at_hand.most)} before"
    return (
        f"{subject} released {times} (last to {entry.target} on {entry.started[:10]}), and the "
        "promise is about all records of a person in one release: what several releases tell adds "
        "up. Bring the records of a person together in one file, or allow each person N releases "
        "of new records (--nights N), which says what they tell together"
    )


def check_nights(people: People | None, nights: int, *, is_identified: bool) -> None:
    """Refuse a number of nights that cannot be counted.

    Raises
    ------
    InputError
        Saying why.
    """
    if nights < 1:
        raise InputError(f"--nights ({nights}) must be at least 1")
    if nights == 1:
        return
    if people is None:
        raise InputError(
            "--nights counts the releases of people, and the promise of this channel is about each "
            "record alone: design one with --person"
        )
    if people.wave is None:
        raise InputError(
            "--nights is for new records, which are told from old ones by their wave: design the "
            "channel with --wave COL, such as a date"
        )
    if is_identified:
        raise InputError(
            "--identity gives equal records the same draw every night, so that nights are not "
            "independent: leave it or --nights out"
        )
    if people.sensitive_of == SEQUENCE:
        raise InputError(
            "the secret is the sequence of the values of one file, and every night has another "
            "one: what several nights tell together is not defined (leave --nights out)"
        )


def how_often(releases: int) -> str:
    """A number of releases in words."""
    return "once" if releases == 1 else f"{releases} times"


def nights_sentence(
    at_hand: PeopleAtHand,
    channel: Channel,
    drawn: Sequence[Drawn],
    earlier: EarlierNights,
) -> str | None:
    """What all releases of a person tell together, in words; None for the only one.

    Raises
    ------
    InputError
        If it is not known: a channel is gone or has no table, or protects another secret.
    """
    people, most = at_hand.people, at_hand.most
    if most == 1 and earlier.nights:
        return (
            f"some of these people were released {how_often(earlier.nights)} before: what all "
            "their releases tell together is not bounded"
        )
    if most == 1:
        return None
    before = [old for entry in earlier.entries for old in entry.drawn]
    by_digest = channels_of([*drawn, *before], [channel])
    others = [other for name, other in by_digest.items() if name != channel.digest]
    lowest, highest = reached_by_releases([channel, *others], earlier.entries, most)
    secret = quoted(",".join(people.sensitive))
    person = listed(people.person)
    return (
        f"each person ({person}) is released at most {most} times, each time with new "
        f"records: the promise is about each release, and all {most} together make a value of "
        f"{secret} {at_least(lowest)} to {at_most(highest)} times as probable, where records of "
        f"different releases are independent given {secret} and follow the table of the channel; "
        "otherwise nothing is promised of them together"
    )
