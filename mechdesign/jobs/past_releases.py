"""What a ledger knows of a data file: the releases of its records, and what they tell together.

`history_of` answers "what could somebody know who has all that was released of these records?", and
changes nothing:

1. It reads the file once for the hashes of its records, with and without the columns that identify
   them in some release (`_contents`).
2. It finds the releases that share records by the first hash (`same_records.releases_of`) or by the
   second (they came under other identifiers then).
3. It takes draws apart that only look like one (`draws_apart`).
4. It adds up what all of them tell: the joint budget of the draws (`joint_budget`), and the counted
   outputs of each column (`joint_budget`).

*People.* The people of a file may have been released in two ways, and both are counted:

- record by record, through channels whose promise is about each record: the outputs of all their
  records in the file, each drawn by itself (`leaks.people_notice`);
- as people, through channels for people, perhaps in several nights: the file need not have those
  records any more, since the ledger knows the people by their hashes (`people_nights`).

*Draws apart* are two, though job and number of the draw are one. Releases of one job have one key,
and so one draw of every record, as long as the identifiers of the records are what they were. A
release that drew records for the first time which an earlier one had already, to judge by their
content, knew them under other identifiers: it counts as a job of its own.

`draws_apart` goes through the releases in their order. For each draw of each it compares two
numbers: how many identifiers were new then (the ledger counts them), and how many records can be
new, (1 - s) n, where earlier releases with that draw had the share s of its n records. If more
identifiers were new than records can be, the draw gets a job name of its own in the result, and the
joint budget counts one draw more. For example, 1,000 records were released, and the same 1,000 with
other numbers: all 1,000 identifiers are new, s is 1, so the records have two draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from sqlite3 import Connection
from typing import Any, NamedTuple

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.digests import Content, Hashes, RecordCensus
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import Source, open_source
from mechdesign.jobs.bare_records import (
    BareContent,
    BareRecords,
    Likeness,
    likeness,
    share_of,
)
from mechdesign.jobs.joint_budget import (
    Budget,
    TableOf,
    channels_of,
    column_totals,
    drawn_uses,
    joint_budget,
)
from mechdesign.jobs.ledger import Drawn, Entry, Ledger
from mechdesign.jobs.people_nights import (
    hashes_of_people,
    how_often,
    reached_by_releases,
)
from mechdesign.jobs.same_records import (
    SHARE_ERROR,
    SharedReleases,
    releases_of,
    with_same_columns,
)
from mechdesign.leaks.people_notice import composed_for_people, together_sentence
from mechdesign.tables.people_tables import read_records

# -------------------------------------------------------------------------- draws apart


def draws_apart(
    db: Connection, ledger: Ledger, entries: Sequence[Entry]
) -> list[Entry]:
    """Some releases in their order, in which no two draws of a record count as one."""
    records = _ReleasedRecords(db, ledger, entries)
    apart: list[Entry] = []
    # By channel, job and number of the draw: the releases so far that count as this draw.
    earlier: dict[tuple[str, str, int], list[Entry]] = {}
    for entry in entries:
        if not records.compares(entry):
            apart.append(entry)
            continue
        draws: list[Drawn] = []
        for drawn in entry.drawn:
            before = earlier.setdefault((drawn.use.channel, drawn.job, drawn.draw), [])
            new = ledger.new_records(db, entry, drawn)
            # Where most records keep their draws, nothing is compared.
            if new > SHARE_ERROR * entry.records:
                share = records.share_of(entry, before)
                # More are new than can be, by more than the error of the estimate: the others came
                # under other identifiers before.
                if new > (1 - share + SHARE_ERROR) * entry.records:
                    drawn = drawn.model_copy(update={"job": f"{drawn.job}, {entry.id}"})
            before.append(entry)
            draws.append(drawn)
        apart.append(entry.model_copy(update={"drawn": tuple(draws)}))
    return apart


class _ReleasedRecords:
    """What the ledger keeps of the records of some releases, and how they compare.

    All samples are read when it is made, and sorted into groups without a common hash (`_groups`):
    only releases of one group are compared.
    """

    def __init__(
        self, db: Connection, ledger: Ledger, entries: Sequence[Entry]
    ) -> None:
        self._samples: dict[str, bytes] = {}
        self._bare: dict[str, BareContent] = {}
        unique: dict[str, Hashes] = {}
        bare: dict[str, Hashes] = {}
        for entry in entries:
            if not self.compares(entry):
                continue
            self._samples[entry.id] = ledger.sample(db, entry.unordered or "")
            unique[entry.id] = self._content(entry).unique
            stored = ledger.bare(db, entry)
            if stored is not None:
                self._bare[entry.id] = BareContent.from_bytes(stored)
                bare[entry.id] = self._bare[entry.id].values
        self._sample_groups = _groups(unique)
        self._bare_groups = _groups(bare)

    @staticmethod
    def compares(entry: Entry) -> bool:
        """Whether the records of a release have identifiers, and left a sample."""
        return bool(entry.identity) and entry.unordered is not None

    def _content(self, entry: Entry) -> Content:
        """The records of a release, as far as its sample has them."""
        return Content.of_sample(
            self._samples[entry.id],
            records=entry.records,
            unordered=entry.unordered or "",
        )

    def share_of(self, entry: Entry, before: Sequence[Entry]) -> float:
        """The share of the records of a release that earlier ones had, with or without their
        identifiers: the larger of two estimates.
        """
        return max(
            self._share_identified(entry, before), self._share_bare(entry, before)
        )

    def _share_identified(self, entry: Entry, before: Sequence[Entry]) -> float:
        """The share by whole records, identifiers included."""
        group = self._sample_groups[entry.id]
        samples: list[bytes] = []
        for old in before:
            if self._sample_groups[old.id] == group:
                samples.append(self._samples[old.id])
        # An equal sample counts as the same records, all of them. `share_in` may find fewer: it
        # counts only records that are unique, and none where a few lie below the smallest limit.
        if self._samples[entry.id] in samples:
            return 1.0
        return self._content(entry).share_in(samples)

    def _share_bare(self, entry: Entry, before: Sequence[Entry]) -> float:
        """The share by records without identifiers; 0 where the ledger does not have these."""
        if entry.id not in self._bare:
            return 0.0
        new = self._bare[entry.id]
        group = self._bare_groups[entry.id]
        alike: list[Likeness] = []
        for old in before:
            if self._bare_groups.get(old.id) != group:
                continue
            comparison = likeness(new, self._bare[old.id])
            # Different people may look the same: a part counts only where chance is out of the
            # question, and all rows together always.
            if comparison.whole or comparison.certain:
                alike.append(comparison)
        return share_of(new, alike)


def _groups(hashes: Mapping[str, Hashes]) -> dict[str, int]:
    """The group of each data set, given the hashes of some of its records.

    Data sets that share a hash are linked, and a group is a connected component of the links: of
    the hashes a {1, 2}, b {2, 3}, c {3} and d {7}, the groups are {a, b, c} and {d}. Data sets of
    different groups share nothing and need not be compared, so a list of many nights stays fast.
    """
    if not hashes:
        return {}
    # The package takes a quarter of a second to import.
    sparse: Any = import_module("scipy.sparse")
    graphs: Any = import_module("scipy.sparse.csgraph")

    # All hashes in one array, each with the place of the data set that owns it.
    count = len(hashes)
    values = np.concatenate([*hashes.values()])
    owners = np.repeat(np.arange(count), [len(owned) for owned in hashes.values()])
    # Sorted, equal hashes are neighbours. A link from each to the next is enough: the chain of all
    # owners of a hash has the same component as the links of all their pairs.
    order = np.argsort(values, kind="stable")
    values = values[order]
    owners = owners[order]
    repeated = np.flatnonzero(values[1:] == values[:-1])
    links = sparse.coo_array(
        (np.ones(len(repeated), bool), (owners[repeated], owners[repeated + 1])),
        (count, count),
    )
    _, groups = graphs.connected_components(links, directed=False)
    return dict(zip(hashes, groups.tolist(), strict=True))


# ------------------------------------------------------------------------------ history


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
        shared = releases_of(db, ledger, entries, content, file)
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
