"""What a ledger knows of a data file: the releases of its records, and their joint budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from mechdesign.core.documents import canonical
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.formats.digests import Census
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.release.sampling import Releasable
from mechdesign.sanitise.budgets import Budget, joint_budget
from mechdesign.sanitise.entries import Entry
from mechdesign.sanitise.job import share_of
from mechdesign.sanitise.ledger import Ledger
from mechdesign.sanitise.source import GuardedInput


def history_of(
    ledger: Ledger,
    data: PathLike,
    *,
    text: TextOptions | None = None,
    channels: Sequence[Releasable] = (),
    progress: Progress | None = None,
) -> tuple[float, list[Entry], Budget | None, str]:
    """Which share of the records of a file was released, in which releases, and their budget, also as a sentence.

    `channels` are those that have to be read from elsewhere than where they were at the release.
    """
    read = text or TextOptions()
    census = Census()
    with GuardedInput(data, progress=progress) as guarded:
        with open_source(guarded.path, read, name=guarded.name) as table:
            for batch in table.batches():
                census.add(ledger.hasher.records(batch))
        guarded.check()
        file = ledger.file_hash(guarded.sha256, canonical(asdict(read)))
    with ledger.reading() as db:
        share, found = share_of(db, ledger.releases(db), census.content(), file)
    drawn = [each for entry in found for each in entry.drawn]
    budget, told = joint_budget(drawn, channels) if drawn else (None, "these records have not been released")
    return share, found, budget, told
