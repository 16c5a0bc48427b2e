"""What a ledger knows of a data file: the releases of its records, and what they tell together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.files import PathLike
from mechdesign.core.json_values import canonical
from mechdesign.core.progress import Progress
from mechdesign.formats.digests import Census
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.jobs.counted_outputs import column_totals, drawn_uses
from mechdesign.jobs.entries import Entry
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
    channels: Sequence[Channel | RowChannel] = (),
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
    channels : sequence of Channel or RowChannel
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
    census = Census()
    with GuardedInput(data, progress=progress) as guarded:
        with open_source(guarded.path, reading, name=guarded.name) as records:
            for batch in records.batches():
                census.add(ledger.hasher.records(batch))
        guarded.check()
        file = ledger.file_hash(guarded.sha256, canonical(asdict(reading)))
    with ledger.reading() as db:
        shared = releases_of(db, ledger.releases(db), census.content(), file)
    budget: Budget | None = None
    sentences: list[str] = []
    draws = drawn_uses(shared.entries)
    if draws:
        joint = joint_budget(draws, channels, table)
        budget = joint.budget
        sentences.append(joint.sentence)
    for column, total in column_totals(shared.entries).items():
        sentences.append(total.sentence(column))
    if not sentences:
        sentences.append("these records have not been released")
    return History(shared.share, shared.entries, budget, "; ".join(sentences))
