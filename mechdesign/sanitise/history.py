"""What a ledger knows of a data file: the releases of its records, and their joint budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.formats.digests import Census
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.release.sampling import Releasable
from mechdesign.sanitise.budgets import joint_budget
from mechdesign.sanitise.entries import Entry
from mechdesign.sanitise.job import share_of
from mechdesign.sanitise.ledger import Ledger, reading_of
from mechdesign.sanitise.source import GuardedInput


@dataclass(frozen=True, kw_only=True)
class History:
    """The releases of a data set.

    `share` of its records were in `releases`; `budget` is that of all their draws together (`draws`, `eps_l`, `eps_u`,
    `eps_ldp`), None where there are none or a channel is not at hand; `told` says it.
    """

    records: int
    share: float
    releases: tuple[Entry, ...]
    budget: dict[str, Any] | None
    told: str


def history_of(
    ledger: Ledger,
    data: PathLike,
    *,
    text: TextOptions | None = None,
    channels: Sequence[Releasable] = (),
    progress: Progress | None = None,
) -> History:
    """What the records of a file were released through; `channels` need not be read from where they were then."""
    read = text or TextOptions()
    census = Census()
    with GuardedInput(data, progress=progress) as guarded:
        with open_source(guarded.path, read, name=guarded.name) as table:
            for batch in table.batches():
                census.add(ledger.hasher.records(batch))
        guarded.check()
        content, file = census.content(), ledger.file_hash(guarded.sha256, reading_of(asdict(read)))
    with ledger.reading() as db:
        share, found = share_of(db, ledger.releases(db), content, file)
    drawn = [each for entry in found for each in entry.drawn]
    budget, told = joint_budget(drawn, channels) if drawn else (None, "these records have not been released")
    return History(records=content.records, share=share, releases=tuple(found), budget=budget, told=told)
