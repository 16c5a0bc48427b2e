"""What a release says of itself: a public manifest and an internal one.

The public manifest goes out with the data, so nothing in it is computed from the table or from the
data set, but for the number of records, which the data show anyway. (Hashes of the data set or of
the channel file with its table would let a reader test a guess of them; counts of symbols and
outputs, and achieved budgets, are functions of them.) Both have plain sentences on what the
guarantee covers and what voids it. Neither holds a key or a time: the same job writes the same
manifests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RELATIVE, TOTAL, RowChannel
from mechdesign.core.documents import document_text, versions
from mechdesign.core.json_values import without_infinities
from mechdesign.jobs.entries import Entry, Use
from mechdesign.jobs.manifest_records import (
    Audience,
    EarlierRelease,
    InternalColumn,
    InternalManifest,
    InternalRows,
    LevelCounts,
    PublicManifest,
    PublicRows,
    SymbolCount,
    ValueCount,
)
from mechdesign.jobs.manifest_sentences import covers, voids
from mechdesign.release.drawing import Release
from mechdesign.release.released_values import OF_SYMBOLS
from mechdesign.release.row_draws import RowDraws


@dataclass(frozen=True, kw_only=True)
class ReleasedColumn:
    """What the internal manifest says of one channel, and the channel."""

    description: InternalColumn | InternalRows
    channel: Channel | RowChannel | BoxChannel


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The facts of a release, from which both manifests are written."""

    output: str
    records: int
    columns_before: tuple[str, ...]
    columns: tuple[str, ...]
    released: tuple[ReleasedColumn, ...]
    dataset: str
    kept_private: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    draw: int = 0
    earlier: tuple[Entry, ...] = ()
    other_channels: bool = False
    insecure_seed: bool = False
    shuffled: bool = False
    notes: tuple[str, ...] = ()
    inner_notes: tuple[str, ...] = ()

    def text(self, audience: Audience) -> str:
        """The manifest as it is written: JSON with the hash of its content."""
        if audience == "internal":
            return document_text(self._internal())
        return document_text(self._public())

    def _public(self) -> PublicManifest:
        shown = {*PublicRows.model_fields}
        released: list[dict[str, Any]] = []
        for column in self.released:
            released.append(column.description.model_dump(include=shown))
        return PublicManifest.model_validate(
            self._common(internal=False) | {"released": tuple(released)}
        )

    def _internal(self) -> InternalManifest:
        released = [column.description.model_dump() for column in self.released]
        earlier: list[EarlierRelease] = []
        for run in self.earlier:
            draw = max(drawn.draw for drawn in run.drawn)
            earlier.append(
                EarlierRelease(draw=draw, target=run.target, output=run.output)
            )
        return InternalManifest.model_validate(
            self._common(internal=True)
            | {
                "released": tuple(released),
                "notes": (*self.notes, *self.inner_notes),
                "dataset": self.dataset,
                "earlier": tuple(earlier),
            }
        )

    def _common(self, *, internal: bool) -> dict[str, Any]:
        """What both manifests hold, by the names of their fields."""
        covered: list[str] = []
        for column in self.released:
            covered += covers(column.description, column.channel, internal=internal)
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
            "notes": self.notes,
            "versions": versions(),
            "covers": tuple(covered),
            "voids": tuple(voids(self, uses)),
        }


def released_column(
    channel: Channel,
    release: Release,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    channel_file: str | None = None,
) -> ReleasedColumn:
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
    sensitive : tuple of str or None
        The sensitive columns, by their names in the table.
    channel_file : str, optional
        The hash of the channel file.
    """
    joint = channel.joint
    table_records = None
    zero_cells = None
    if joint is not None:
        table_records = joint.records
        zero_cells = sum(row.count(0) for row in joint.counts)
    # Behind the counts of the symbols stand those of the cells without one.
    *symbol_counts, missing, unknown = release.symbol_counts.tolist()
    symbols: list[SymbolCount] = []
    for symbol, count in zip(channel.useful.symbols, symbol_counts, strict=True):
        symbols.append(SymbolCount(symbol=symbol, records=count))
    values = [(label,) for label in channel.outputs]
    if release.form in OF_SYMBOLS:
        values = channel.useful.symbols
    outputs: list[ValueCount] = []
    for value, count in zip(values, release.output_counts.tolist(), strict=True):
        outputs.append(ValueCount(value=value, records=count))
    description = InternalColumn(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        notion=without_infinities(channel.record.notion),
        channel_file=channel_file,
        achieved=without_infinities(channel.record.achieved),
        table_records=table_records,
        zero_cells=zero_cells,
        symbols=tuple(symbols),
        missing=missing,
        unknown_symbols=unknown,
        changes=release.changes,
        outputs=tuple(outputs),
    )
    return ReleasedColumn(description=description, channel=channel)


def released_rows(
    channel: RowChannel,
    release: RowDraws,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    given: tuple[str, ...],
    channel_file: str | None = None,
) -> ReleasedColumn:
    """What a manifest says of a channel of rows, when all records have been drawn.

    Parameters are those of `released_column`; `given` are the given columns by their names in the
    table.
    """
    table_records = None
    if channel.table is not None and channel.table.is_counts:
        table_records = channel.table.total
    description = InternalRows(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        notion=without_infinities(channel.record.notion),
        promise=channel.record.promise,
        given=given,
        channel_file=channel_file,
        achieved=without_infinities(channel.record.achieved),
        table_records=table_records,
        levels=_level_counts(channel, release),
        changes=release.changes,
    )
    return ReleasedColumn(description=description, channel=channel)


def released_boxes(
    channel: BoxChannel,
    release: RowDraws,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    given: tuple[str, ...],
    channel_file: str | None = None,
) -> ReleasedColumn:
    """What a manifest says of a channel of boxes, when all records have been drawn.

    Parameters are those of `released_rows`. The outputs are counted with the last column: without
    filling they are those of all columns together.
    """
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
        achieved=None,
        table_records=records or None,
        levels=_level_counts(channel, release),
        changes=release.changes,
    )
    return ReleasedColumn(description=description, channel=channel)


def _level_counts(
    channel: RowChannel | BoxChannel, release: RowDraws
) -> tuple[LevelCounts, ...]:
    """Records of every symbol and every output of the given columns and of the levels."""
    levels: list[LevelCounts] = []
    for k, variable in enumerate(channel.groups):
        # Behind the counts of the symbols stand those of the cells without one.
        *symbol_counts, missing, unknown = release.symbol_counts[k].tolist()
        symbols: list[SymbolCount] = []
        for symbol, count in zip(variable.symbols, symbol_counts, strict=True):
            symbols.append(SymbolCount(symbol=symbol, records=count))
        outputs: list[ValueCount] = []
        for value, count in _outputs_of(channel, release, k):
            outputs.append(ValueCount(value=value, records=count))
        levels.append(
            LevelCounts(
                columns=variable.columns,
                symbols=tuple(symbols),
                missing=missing,
                unknown_symbols=unknown,
                outputs=tuple(outputs),
            )
        )
    return tuple(levels)


def _outputs_of(
    channel: RowChannel | BoxChannel, release: RowDraws, k: int
) -> list[tuple[tuple[str, ...], int]]:
    """Released values of a group of columns with their records."""
    given = len(channel.given)
    if k < given:
        return list(
            zip(
                channel.given[k].symbols, release.output_counts[k].tolist(), strict=True
            )
        )
    group = k
    if isinstance(channel, BoxChannel) and not channel.fills:
        # All columns have one label together, which stands with the last of them.
        if k + 1 < len(channel.groups):
            return []
        group = given
    values: list[tuple[tuple[str, ...], int]] = []
    for place, count in enumerate(release.output_counts[group].tolist()):
        values.append((channel.texts_of(group - given, place), count))
    return values
