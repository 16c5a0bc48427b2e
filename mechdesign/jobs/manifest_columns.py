"""What manifests say of each channel of a release, counted when all records have been drawn.

There is one function for each kind of channel: `released_column` for one of a column or crossed
columns, `released_boxes` for one of boxes. What they give is `Released`: its description is that of
the internal manifest, and the public one has a part of it (`manifest.Manifest`).

All counts come from the drawer's release. The symbols of X are counted as they were read, and two
counts more: of empty cells and of unknown symbols. The outputs are counted as they were released.
Of 100 records, for example::

    symbols            clerk 60, nurse 37       release.symbol_counts = [60, 37, 2, 1]
    missing            2
    unknown_symbols    1
    outputs            A 55, B 45               release.output_counts = [55, 45]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import RELATIVE, TOTAL
from mechdesign.core.json_values import without_infinities
from mechdesign.jobs.entries import Use
from mechdesign.jobs.manifest_records import (
    InternalColumn,
    InternalRows,
    LevelCounts,
    SymbolCount,
    ValueCount,
)
from mechdesign.jobs.manifest_sentences import box_covers, covers
from mechdesign.release.drawing import Release
from mechdesign.release.released_values import OF_SYMBOLS


@dataclass(frozen=True)
class Released:
    """What a manifest says of one channel.

    `description` is the entry of the internal manifest, and `sentences` the function of
    `manifest_sentences` that says what the promise of channels of this kind is.
    """

    description: InternalColumn | InternalRows
    channel: Channel
    sentences: Callable[..., list[str]]

    def covers(self, *, internal: bool, whole_file: bool) -> list[str]:
        """What the promise of the channel is, for insiders or for the public; `whole_file` is
        whether it is proven for a reader of the whole file, too.
        """
        return self.sentences(
            self.description, self.channel, internal=internal, whole_file=whole_file
        )


def released_column(
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
    joint = channel.joint
    # A channel file may be without its table.
    table_records = None
    zero_cells = None
    if joint is not None:
        table_records = joint.records
        zero_cells = sum(row.count(0) for row in joint.counts)
    # Behind the counts of the symbols stand those of the cells without one.
    *symbol_counts, missing, unknown = release.symbol_counts[0].tolist()
    values: Sequence[tuple[str, ...]] = channel.output_cells
    if release.form in OF_SYMBOLS:
        values = channel.useful.symbols
    description = InternalColumn(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        notion=without_infinities(channel.record.notion),
        law_kept=channel.keeps_law,
        given=given,
        promise=channel.record.promise_kind,
        channel_file=channel_file,
        achieved=without_infinities(channel.record.achieved),
        table_records=table_records,
        zero_cells=zero_cells,
        symbols=_symbol_counts(channel.useful.symbols, symbol_counts),
        empty_cells=missing,
        unknown_symbols=unknown,
        changes=release.changes,
        outputs=_value_counts(values, release.output_counts.tolist()),
    )
    return Released(description, channel, covers)


def released_boxes(
    channel: Channel,
    release: Release,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    given: tuple[str, ...],
    channel_file: str | None = None,
) -> Released:
    """What a manifest says of a channel of boxes, when all records have been drawn.

    Parameters are those of `released_column`; `given` are the given columns by their names in the
    table. The outputs are counted with the last column: without
    filling they are those of all columns together.
    """
    # `design` makes the channels of all strata for one notion, so any of them has it. Each stratum
    # is proven on its own records, and together these are the records of the proof.
    notion: dict[str, Any] | None = None
    records = 0
    for part in channel.parts:
        if part.channel is None:
            continue
        notion = part.channel.record.notion
        if part.channel.joint is not None:
            records += part.channel.joint.records or 0
    description = InternalRows(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        notion=without_infinities(notion),
        promise=RELATIVE if channel.given else TOTAL,
        given=given,
        channel_file=channel_file,
        # Each stratum has its own achieved budgets. Those of the whole, for the population and for
        # the table, are audited anew for a sentence (`manifest_sentences.box_covers`).
        achieved=None,
        table_records=records or None,
        levels=_level_counts(channel, release),
        changes=release.changes,
    )
    return Released(description, channel, box_covers)


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


def _level_counts(channel: Channel, release: Release) -> tuple[LevelCounts, ...]:
    """Records of every symbol and every output, for each group of columns: those of the given
    columns, then those of the levels.
    """
    levels: list[LevelCounts] = []
    for k, variable in enumerate(channel.groups):
        # Behind the counts of the symbols stand those of the cells without one.
        *symbol_counts, missing, unknown = release.symbol_counts[k].tolist()
        levels.append(
            LevelCounts(
                columns=variable.columns,
                symbols=_symbol_counts(variable.symbols, symbol_counts),
                empty_cells=missing,
                unknown_symbols=unknown,
                outputs=_outputs_of(channel, release, k),
            )
        )
    return tuple(levels)


def _outputs_of(channel: Channel, release: Release, k: int) -> tuple[ValueCount, ...]:
    """The released values of the group k of columns, each with its records."""
    columns: Sequence[str] = channel.groups[k].columns
    if columns[0] not in release.names:
        # All columns have one label together, which stands with the last of them.
        if k + 1 < len(channel.groups):
            return ()
        columns = release.names[-1:]
    counts = release.value_counts(columns)
    return _value_counts(list(counts), list(counts.values()))
