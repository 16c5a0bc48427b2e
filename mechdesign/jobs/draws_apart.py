"""Which draws in a ledger are two, though job and number of the draw are one.

Releases of one job have one key, and so one draw of every record, as long as the identifiers of the
records are what they were. A release that drew records for the first time which an earlier one had
already, to judge by their content, knew them under other identifiers: it counts as a job of its
own.

`draws_apart` goes through the releases in their order. For each draw of each it compares two
numbers: how many identifiers were new then (the ledger counts them), and how many records can be
new, (1 - s) n, where earlier releases with that draw had the share s of its n records. If more
identifiers were new than records can be, the draw gets a job name of its own in the result, and the
joint budget counts one draw more. For example, 1,000 records were released, and the same 1,000 with
other numbers: all 1,000 identifiers are new, s is 1, so the records have two draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from sqlite3 import Connection
from typing import Any

import numpy as np

from mechdesign.formats.digests import Content, Hashes
from mechdesign.jobs.bare_records import BareContent, Likeness, likeness, share_of
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.same_records import SHARE_ERROR


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
