"""What manifests say of each channel of a release, counted when all records have been drawn.

`released_channel` gives a `Released`: its description is that of the internal manifest, and the
public one has a part of it (`manifest.Manifest`).

All counts come from the drawer's release. The symbols of each variable are counted as they were
read, and two counts more: of empty cells and of unknown symbols. The outputs are counted as they
were released. Of 100 records, for example::

    symbols            clerk 60, nurse 37       release.symbol_counts = [[60, 37, 2, 1]]
    missing            2
    unknown_symbols    1
    outputs            A 55, B 45               release.output_counts = [55, 45]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.core.json_values import without_infinities
from mechdesign.jobs.entries import Use
from mechdesign.jobs.manifest_records import (
    InternalColumn,
    SymbolCount,
    ValueCount,
    VariableCounts,
)
from mechdesign.jobs.manifest_sentences import covers
from mechdesign.release.drawing import Release
from mechdesign.release.released_values import OF_SYMBOLS


@dataclass(frozen=True)
class Released:
    """What a manifest says of one channel: the entry of the internal manifest, and the channel."""

    description: InternalColumn
    channel: Channel

    def covers(self, *, internal: bool, whole_file: bool) -> list[str]:
        """What the promise of the channel is, for insiders or for the public; `whole_file` is
        whether it is proven for a reader of the whole file, too.
        """
        return covers(
            self.description, self.channel, internal=internal, whole_file=whole_file
        )


def decided_by(channel: Channel) -> dict[str, Any]:
    """The entries of a description that the channel alone decides, by their names."""
    # A channel file may be without its table. Of boxes these are the tables of all strata, whose
    # records are those of the proof.
    joints = [single.joint for single in channel.channels if single.joint is not None]
    zero_cells = sum(row.count(0) for joint in joints for row in joint.counts)
    return {
        "notion": without_infinities(channel.record.notion),
        "law_kept": channel.keeps_law,
        "promise": channel.record.promise_kind,
        # Of boxes each stratum has its own. Those of the whole, for the population and for the
        # table, are audited anew for a sentence (`manifest_sentences`).
        "achieved": without_infinities(channel.record.achieved),
        "table_records": sum(joint.records or 0 for joint in joints) or None,
        "zero_cells": zero_cells if joints else None,
    }


def released_channel(
    channel: Channel,
    release: Release,
    use: Use,
    names: tuple[str, ...],
    *,
    given: tuple[str, ...],
    sensitive: tuple[str, ...] | None,
    channel_file: str | None = None,
) -> Released:
    """What a manifest says of one channel, when all records have been drawn.

    Parameters
    ----------
    channel : Channel
    release : Release
        With its counts.
    use : Use
        How the channel was used.
    names : tuple of str
        The released columns.
    given : tuple of str
        The columns that are released as they are.
    sensitive : tuple of str or None
        The sensitive columns, by their names in the table.
    channel_file : str, optional
        The hash of the channel file.
    """
    description = InternalColumn(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        given=given,
        channel_file=channel_file,
        **decided_by(channel),
        counts=_counts(channel, release),
        changes=release.changes,
    )
    return Released(description, channel)


def _symbol_counts(
    symbols: Sequence[tuple[str, ...]], counts: Sequence[int]
) -> tuple[SymbolCount, ...]:
    """The symbols of X, each with its records."""
    pairs = zip(symbols, counts, strict=True)
    return tuple(SymbolCount(symbol=symbol, records=count) for symbol, count in pairs)


def _value_counts(
    values: Sequence[tuple[str, ...]], counts: Sequence[int]
) -> tuple[ValueCount, ...]:
    """The released values, each with its records."""
    pairs = zip(values, counts, strict=True)
    return tuple(ValueCount(value=value, records=count) for value, count in pairs)


def _counts(channel: Channel, release: Release) -> tuple[VariableCounts, ...]:
    """Records of every symbol and every output, for each variable that records are coded by."""
    counts: list[VariableCounts] = []
    for k, variable in enumerate(channel.groups):
        # Behind the counts of the symbols stand those of the cells without one.
        *symbol_counts, missing, unknown = release.symbol_counts[k].tolist()
        counts.append(
            VariableCounts(
                columns=variable.columns,
                symbols=_symbol_counts(variable.symbols, symbol_counts),
                empty_cells=missing,
                unknown_symbols=unknown,
                outputs=_outputs_of(channel, release, k),
            )
        )
    return tuple(counts)


def _outputs_of(channel: Channel, release: Release, k: int) -> tuple[ValueCount, ...]:
    """The released values of the variable at place k, each with its records."""
    if not channel.coder:
        values: Sequence[tuple[str, ...]] = channel.output_cells
        if release.form in OF_SYMBOLS:
            values = channel.useful.symbols
        return _value_counts(values, release.output_counts.tolist())
    columns: Sequence[str] = channel.groups[k].columns
    if columns[0] not in release.names:
        # All columns have one label together, which stands with the last of them.
        if k + 1 < len(channel.groups):
            return ()
        columns = release.names[-1:]
    counts = release.value_counts(columns)
    return _value_counts(list(counts), list(counts.values()))
