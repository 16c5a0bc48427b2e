"""What a release says of itself: a public manifest and an internal one.

The public manifest goes out with the data, so nothing in it is computed from the table or from the
data set, but for the number of records, which the data show anyway. (Hashes of the data set or of
the channel file with its table would let a reader test a guess of them; counts of symbols and
outputs, and achieved budgets, are functions of them.) Both have plain sentences on what the
guarantee covers and what voids it. Neither holds a key or a time: the same job writes the same
manifests.

A job collects the facts in a `Manifest` when its output is complete, and writes its `text` for each
audience. Both texts share `_common`. The internal one adds the data set, the earlier releases and
all counts; of the description of each channel, which is made for the internal one
(`manifest_columns`), the public one has the fields of `PublicColumn` alone. So a field that is
added to a description stays inside until somebody adds it to the public record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechdesign.core.documents import document_text, versions
from mechdesign.jobs.entries import Entry
from mechdesign.jobs.manifest_columns import Released
from mechdesign.jobs.manifest_records import (
    Audience,
    EarlierRelease,
    InternalManifest,
    PublicColumn,
    PublicManifest,
)
from mechdesign.jobs.manifest_sentences import voids


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The facts of a release, from which both manifests are written.

    Attributes
    ----------
    output, dataset : str
        SHA-256 of the released file and of the input.
    records : int
        Of the output.
    columns_before, columns : tuple of str
        Those of the input and of the output.
    released : tuple of Released
        One for each channel.
    kept_private : tuple of str
        Sensitive and correlated columns that were left in the data.
    identity : tuple of str
        The columns that identify a record; none where its row number does.
    draw : int
        The number of other draws of the same records.
    earlier : tuple of Entry
        The releases with these draws.
    other_channels : bool
        Whether the records were released through other channels, too.
    insecure_seed, shuffled : bool
        Whether the draws come from a seed, and whether the records are in random order.
    whole_file : bool
        Whether the promise is proven for a reader of the whole file, too.
    notes, inner_notes : tuple of str
        Notes for all readers, and those that count records of the original data.
    """

    output: str
    records: int
    columns_before: tuple[str, ...]
    columns: tuple[str, ...]
    released: tuple[Released, ...]
    dataset: str
    kept_private: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    draw: int = 0
    earlier: tuple[Entry, ...] = ()
    other_channels: bool = False
    insecure_seed: bool = False
    shuffled: bool = False
    whole_file: bool = False
    notes: tuple[str, ...] = ()
    inner_notes: tuple[str, ...] = ()

    def text(self, audience: Audience) -> str:
        """The manifest as it is written: JSON with the hash of its content."""
        if audience == "internal":
            return document_text(self._internal())
        return document_text(self._public())

    def _public(self) -> PublicManifest:
        """What goes out with the data."""
        # By the names of the fields that are shown, so that counts stay inside.
        shown = {*PublicColumn.model_fields}
        released: list[dict[str, Any]] = []
        for column in self.released:
            released.append(column.description.model_dump(include=shown))
        facts = self._common(internal=False)
        facts["released"] = tuple(released)
        return PublicManifest.model_validate(facts)

    def _internal(self) -> InternalManifest:
        """What stays with the data holder."""
        released = [column.description.model_dump() for column in self.released]
        earlier: list[EarlierRelease] = []
        for run in self.earlier:
            # One number for a release of several channels: that of its latest draw.
            draw = max(drawn.draw for drawn in run.drawn)
            earlier.append(
                EarlierRelease(draw=draw, target=run.target, output=run.output)
            )
        facts = self._common(internal=True)
        facts["released"] = tuple(released)
        facts["notes"] = (*self.notes, *self.inner_notes)
        facts["dataset"] = self.dataset
        facts["earlier"] = tuple(earlier)
        return InternalManifest.model_validate(facts)

    def _common(self, *, internal: bool) -> dict[str, Any]:
        """What both manifests hold, by the names of their fields."""
        covered: list[str] = []
        for column in self.released:
            covered += column.covers(internal=internal, whole_file=self.whole_file)
        uses = [column.description for column in self.released]
        return {
            "output": self.output,
            "records": self.records,
            "columns": self.columns,
            "columns_before": self.columns_before,
            "identity": self.identity,
            "draw": self.draw,
            "insecure_seed": self.insecure_seed,
            "shuffled": self.shuffled,
            "kept_private": self.kept_private,
            "other_channels": self.other_channels,
            "whole_file": self.whole_file,
            "notes": self.notes,
            "versions": versions(),
            "covers": tuple(covered),
            "voids": tuple(voids(self, uses)),
        }
