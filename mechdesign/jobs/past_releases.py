"""What a ledger knows of a data file: the releases of its records, and what they tell together.

`history_of` answers "what could somebody know who has all that was released of these records?", and
changes nothing:

1. It reads the file once for the hashes of its records, with and without the columns that identify
   them in some release (`_contents`).
2. It finds the releases that share records by the first hash (`same_records.releases_of`) or by the
   second (`_renewed`: they came under other identifiers then).
3. It takes draws apart that only look like one (`draws_apart`).
4. It adds up what all of them tell: the joint budget of the draws (`joint_budget`), and the counted
   outputs of each column (`counted_outputs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.core.files import PathLike
from mechdesign.core.json_values import canonical
from mechdesign.core.progress import Progress
from mechdesign.formats.census import Content
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import Source, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.jobs.bare_records import BareContent, BareRecords
from mechdesign.jobs.counted_outputs import column_totals, drawn_uses
from mechdesign.jobs.draws_apart import draws_apart
from mechdesign.jobs.entries import Entry
from mechdesign.jobs.joint_budget import Budget, TableOf, joint_budget
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.likeness import Likeness, likeness, share_of
from mechdesign.jobs.people_history import PeopleHistory, people_history
from mechdesign.jobs.released_columns import with_same_columns
from mechdesign.jobs.same_records import SharedReleases, releases_of


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
    channels: Sequence[Channel | BoxChannel] = (),
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
    channels : sequence of Channel or BoxChannel
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
