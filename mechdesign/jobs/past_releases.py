"""What a ledger knows of a data file: the releases of its records, and what they tell together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from sqlite3 import Connection
from typing import NamedTuple

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.files import PathLike
from mechdesign.core.json_values import canonical
from mechdesign.core.progress import Progress
from mechdesign.formats.digests import Content, RecordCensus
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.jobs.counted_outputs import column_totals, drawn_uses
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.job import UNCERTAIN
from mechdesign.jobs.joint_budget import Budget, TableOf, joint_budget
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.same_records import releases_of


class History(NamedTuple):
    """The releases of the records of a file.

    `share` is the share of its records that were in them; `budget` the joint budget of all draws,
    None where there are none or it is not known; `sentence` says what all of them tell together.
    """

    share: float
    entries: list[Entry]
    budget: Budget | None
    sentence: str


def history_of(
    ledger: Ledger,
    data: PathLike,
    *,
    text: TextOptions | None = None,
    channels: Sequence[Channel | RowChannel | BoxChannel] = (),
    table: TableOf | None = None,
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
    channels : sequence of Channel, RowChannel or BoxChannel
        Those that are no more where they were at the release.
    table : function, optional
        Gives a table of all released columns for the channels.
    progress : Progress, optional

    Raises
    ------
    InputError
        If the file or the ledger cannot be read.
    """
    reading = text or TextOptions()
    census = RecordCensus(ledger.hasher)
    with GuardedInput(data, progress=progress) as guarded:
        with open_source(guarded.path, reading, name=guarded.name) as records:
            for batch in records.batches():
                census.add(batch)
        guarded.check()
        file = ledger.file_hash(guarded.sha256, canonical(asdict(reading)))
    with ledger.reading() as db:
        shared = releases_of(db, ledger.releases(db), census.content(), file)
        draws = _draws_apart(db, ledger, shared.entries)
    budget: Budget | None = None
    sentences: list[str] = []
    if draws:
        joint = joint_budget(draws, channels, table)
        budget = joint.budget
        sentences.append(joint.sentence)
    for column, total in column_totals(shared.entries).items():
        sentences.append(total.sentence(column))
    if not sentences:
        sentences.append("these records have not been released")
    return History(shared.share, shared.entries, budget, "; ".join(sentences))


def _draws_apart(
    db: Connection, ledger: Ledger, entries: Sequence[Entry]
) -> list[Drawn]:
    """The draws of some releases, in which no two draws of a record count as one.

    Releases of one job have one key, and so one draw of every record, as long as the identifiers of
    the records are what they were. A release that drew records for the first time which an earlier
    one had already, to judge by their content, knew them under other identifiers.
    """
    draws: list[Drawn] = []
    samples: dict[tuple[str, str, int], list[bytes]] = {}
    for entry in entries:
        for drawn in drawn_uses([entry]):
            if not entry.identity or entry.unordered is None:
                draws.append(drawn)
                continue
            earlier = samples.setdefault((drawn.use.channel, drawn.job, drawn.draw), [])
            sample = ledger.sample(db, entry.unordered)
            content = Content.of_sample(
                sample, records=entry.records, unordered=entry.unordered
            )
            share = 1.0
            if sample not in earlier:
                share = content.share_in(earlier)
            new = ledger.new_records(db, entry, drawn)
            if new > (1 - share + UNCERTAIN) * entry.records:
                drawn = drawn.model_copy(update={"job": f"{drawn.job}, {entry.id}"})
            earlier.append(sample)
            draws.append(drawn)
    return draws
