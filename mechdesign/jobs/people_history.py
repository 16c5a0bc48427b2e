"""What all that a ledger knows to be released of a person tells together.

The people of a file may have been released in two ways, and both are counted:

- record by record, through channels whose promise is about each record: the outputs of all their
  records in the file, each drawn by itself (`leaks.people_composed`);
- as people, through channels for people, perhaps in several nights: the file need not have those
  records any more, since the ledger knows the people by their hashes (`people_nights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.formats.text_options import TextOptions
from mechdesign.jobs.counted_outputs import drawn_uses
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.joint_budget import TableOf, channels_of
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.people_nights import (
    hashes_of_people,
    how_often,
    reached_by_releases,
)
from mechdesign.leaks.people_composed import composed_for_people, together_sentence
from mechdesign.tables.people_tables import read_records


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
    channels: Sequence[Channel | BoxChannel],
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
    channels: Sequence[Channel | BoxChannel],
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
