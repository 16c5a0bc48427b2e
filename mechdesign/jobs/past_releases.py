"""What a ledger knows of a data file: the releases of its records, and what they tell together.

`history_of` answers "what could somebody know who has all that was released of these records?", and
changes nothing:

1. It reads the file once for the hashes of its records, with and without the columns that identify
   them in some release (`_contents`).
2. It finds the releases that share records by the first hash (`same_records.releases_of`) or by the
   second (`_renewed`: they came under other identifiers then).
3. It takes draws apart that only look like one (`draws_apart`).
4. It adds up what all of them tell: the joint budget of the draws (`joint_budget`), and the counted
   outputs of each column (`joint_budget`).

*People.* The people of a file may have been released in two ways, and both are counted:

- record by record, through channels whose promise is about each record: the outputs of all their
  records in the file, each drawn by itself (`leaks.people_notice`);
- as people, through channels for people, perhaps in several nights: the file need not have those
  records any more, since the ledger knows the people by their hashes (`people_nights`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from sqlite3 import Connection
from typing import Any, NamedTuple

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.formats.census import Content
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import Source, open_source
from mechdesign.jobs.bare_records import (
    BareContent,
    BareRecords,
    Likeness,
    likeness,
    share_of,
)
from mechdesign.jobs.draws_apart import draws_apart
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.joint_budget import (
    Budget,
    TableOf,
    channels_of,
    column_totals,
    drawn_uses,
    joint_budget,
)
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.people_nights import (
    hashes_of_people,
    how_often,
    reached_by_releases,
)
from mechdesign.jobs.same_records import SharedReleases, releases_of, with_same_columns
from mechdesign.leaks.people_notice import composed_for_people, together_sentence
from mechdesign.tables.people_tables import read_records


class History(NamedTuple):
    """The releases of the records of a file.

    `share` is the share of its records that were in them; `budget` the joint budget of all draws,
    None where there are none or it is not known; `sentence` says what all of them tell together.
    `people` is what all that was released of a person tells, where a person was named.
    """

    share: float
    entries: list[Entry]
    budget: Budget | None
    sentence: str
    people: PeopleHistory | None = None


def history_of(
    ledger: Ledger,
    data: PathLike,
    *,
    text: TextOptions | None = None,
    channels: Sequence[Channel] = (),
    table: TableOf | None = None,
    person: Sequence[str] = (),
    progress: Progress | None = None,
) -> History:
    """Look up the records of a file in a ledger.

    Parameters
    ----------
    ledger : Ledger
    data : path
        Known by the content of its records, in any order and packing.
    text : TextOptions, optional
        How a CSV is read.
    channels : sequence of Channel
        Those that are no more where they were at the release.
    table : function, optional
        Gives a table of all released columns for the channels.
    person : sequence of str
        Columns that name a person with several records.
    progress : Progress, optional

    Raises
    ------
    InputError
        If the file or the ledger cannot be read.
    """
    reading = text or TextOptions()
    with ledger.reading() as db:
        entries = ledger.releases(db)
    # Every way in which some release identified its records; this file may be of any of them.
    identities = {entry.identity for entry in entries}
    with GuardedInput(data, progress=progress) as guarded:
        with open_source(guarded.path, reading, name=guarded.name) as records:
            content, bare = _contents(ledger, records, identities)
        # Only now: hash and content must be of the same bytes.
        guarded.check()
        file = ledger.file_hash(guarded.sha256, canonical(reading.record()))
    with ledger.reading() as db:
        shared = releases_of(db, entries, content, file)
        renamed = _renamed(db, ledger, entries, bare)
        share = max(shared.share, renamed.share)
        sharing = {entry.id for entry in (*shared.entries, *renamed.entries)}
        # In the order of the ledger, by which `draws_apart` knows which draw came first.
        found = [entry for entry in entries if entry.id in sharing]
        # Also those of the same released column beside other columns.
        found = with_same_columns(db, ledger, found, entries)
        entries = draws_apart(db, ledger, found)
    people: PeopleHistory | None = None
    if person:
        people = people_history(
            ledger, data, person, entries, text=reading, channels=channels, table=table
        )

    draws = drawn_uses(entries)
    budget: Budget | None = None
    sentences: list[str] = []
    if draws:
        joint = joint_budget(draws, channels, table)
        budget = joint.budget
        sentences.append(joint.sentence)
    for column, total in column_totals(entries).items():
        sentences.append(total.sentence(column))
    if not sentences:
        sentences.append("these records have not been released")
    return History(share, entries, budget, "; ".join(sentences), people)


def _contents(
    ledger: Ledger, records: Source, identities: Iterable[tuple[str, ...]]
) -> tuple[Content, dict[tuple[str, ...], BareContent]]:
    """The content of a file, and that of its records without the columns of each identity."""
    census = RecordCensus(ledger.hasher)
    bare = {identity: BareRecords(()) for identity in identities}
    for batch in records.batches():
        census.add(batch)
        for identity, without in bare.items():
            without.add(ledger.hasher.readings(batch, identity)[2])
    contents = {identity: without.content for identity, without in bare.items()}
    return census.content(), contents


def _renamed(
    db: Connection,
    ledger: Ledger,
    entries: Sequence[Entry],
    bare: Mapping[tuple[str, ...], BareContent],
) -> SharedReleases:
    """The releases that have some of these records under other identifiers, or maybe all.

    `bare` has the content of the file without the columns of each identity.
    """
    alike: list[Likeness] = []
    shared: list[Entry] = []
    for entry in entries:
        stored = ledger.bare(db, entry)
        if stored is None:
            continue
        old = BareContent.from_bytes(stored)
        # What was released without identifiers may have got some since, in any of the columns.
        variants = [*bare.values()]
        if entry.identity:
            variants = [bare[entry.identity]]
        comparisons = [likeness(new, old) for new in variants]
        sharing = [other for other in comparisons if other.whole or other.certain]
        if sharing:
            shared.append(entry)
            alike += sharing
    # The columns that identify the records now are one of these sets; which one is not known.
    share = 0.0
    for new in bare.values():
        share = max(share, share_of(new, alike))
    return SharedReleases(share, shared)


@dataclass(frozen=True)
class PeopleHistory:
    """What is known of people: figures for JSON, and a sentence."""

    record: dict[str, Any]
    sentence: str


def people_history(
    ledger: Ledger,
    data: PathLike,
    person: Sequence[str],
    entries: Sequence[Entry],
    *,
    text: TextOptions | None,
    channels: Sequence[Channel],
    table: TableOf | None,
) -> PeopleHistory:
    """What was released of the people of a file.

    Parameters
    ----------
    ledger : Ledger
    data : path
        The records.
    person : sequence of str
        The columns that name a person, by the names that the channels for people have for them.
    entries : sequence of Entry
        The releases of these records.
    text, channels, table
        As for `past_releases.history_of`.
    """
    single = [entry for entry in entries if entry.people is None]
    record: dict[str, Any] = {"person": [*person], "records": None, "nights": None}
    sentences: list[str] = []
    draws = _different(drawn_uses(single))
    if draws:
        try:
            found = channels_of(draws, channels)
            refusal = "a channel for boxes of rows is among them"
            drawn: list[Any] = []
            for draw in draws:
                drawn.append(found[draw.use.channel].on_tables(refusal))
            joint = None if table is None else table(drawn)
            together = composed_for_people(data, drawn, joint, person, text)
            sensitive = drawn[0].sensitive.columns
            sentences.append(together_sentence(together, person, sensitive))
            record["records"] = asdict(together)
        except InputError as error:
            sentences.append(
                f"what all records of a person tell together is not known: {error}"
            )
    nights = _nights(ledger, data, person, text)
    if nights is not None:
        known, most, runs = nights
        record["nights"] = {"people": known, "most": most}
        sentences.append(_of_nights(record["nights"], person, runs, channels))
    if not sentences:
        sentences.append("nothing was released of these people")
    return PeopleHistory(record, "; ".join(sentences))


def _different(draws: Sequence[Drawn]) -> list[Drawn]:
    """One of each draw: whoever has one twice has learnt nothing more."""
    by_draw = {(draw.use.channel, draw.job, draw.draw): draw for draw in draws}
    return [*by_draw.values()]


def _nights(
    ledger: Ledger, data: PathLike, person: Sequence[str], text: TextOptions | None
) -> tuple[int, int, list[Entry]] | None:
    """How many of these people were released as people, at most how often, and where."""
    records = read_records(data, person, text)
    folded = records.by_person(person)
    named = [
        records.columns[name].recoded(records.columns[name].codes[folded.first])
        for name in person
    ]
    persons = np.unique(hashes_of_people(ledger, person, named))
    counts = np.zeros(len(persons), dtype=np.int64)
    found: dict[frozenset[tuple[str, str, int]], np.ndarray] = {}
    runs: list[Entry] = []
    with ledger.reading() as db:
        for entry in ledger.releases(db):
            known = ledger.people(db, entry)
            if known is None:
                continue
            here = np.isin(persons, known[0], assume_unique=True)
            if here.any():
                draws = frozenset(
                    (old.use.channel, old.job, old.draw) for old in entry.drawn
                )
                found[draws] = here | found.get(draws, False)
                runs.append(entry)
    for here in found.values():
        counts += here
    if not runs:
        return None
    return int(np.count_nonzero(counts)), int(counts.max()), runs


def _of_nights(
    nights: dict[str, Any],
    person: Sequence[str],
    runs: Sequence[Entry],
    channels: Sequence[Channel],
) -> str:
    """What the releases of people tell together, whose bounds become entries of `nights`."""
    people, most = nights["people"], nights["most"]
    subject = f"{people:,} people ({listed(person)}) were released "
    subject += f"up to {most} times" if most > 1 else how_often(most)
    try:
        by_digest = channels_of(drawn_uses(runs), channels)
        used: list[Any] = [*by_digest.values()]
        lowest, highest = reached_by_releases(used, runs, most)
    except InputError as error:
        return f"{subject}; what that tells together is not known: {error}"
    nights["lowest"], nights["highest"] = lowest, highest
    secret = quoted(",".join(used[0].sensitive.columns))
    if most == 1:
        return (
            f"{subject} as people, which makes a value of {secret} {at_least(lowest)} to "
            f"{at_most(highest)} times as probable"
        )
    return (
        f"{subject} as people: together these make a value of {secret} {at_least(lowest)} to "
        f"{at_most(highest)} times as probable, where records of different releases are "
        f"independent given {secret}; otherwise nothing bounds them"
    )
