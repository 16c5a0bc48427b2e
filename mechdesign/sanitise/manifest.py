"""What a release says of itself, as JSON beside the data: a public manifest and an internal one.

The public one goes out with the data, so nothing in it is computed from the table or from the data set, but for the
number of records, which the data show anyway. (Hashes of the data set or of the channel file with its table would let
a reader test a guess of them; counts of symbols and outputs, and achieved budgets, are functions of them.)
Neither holds a key or a time: the same job writes the same manifests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

from mechdesign.files import PathLike
from mechdesign.hashed_json import hashed_text, read_hashed
from mechdesign.joint import Joint
from mechdesign.release import POSTERIOR_DRAW, Release
from mechdesign.sanitise.job_file import Run, Use
from mechdesign.sanitise.manifest_words import covers, voids
from mechdesign.sanitise.versions import versions

FORMAT = "mechdesign.manifest"
INTERNAL_FORMAT = "mechdesign.internal-manifest"
VERSION = 1

PUBLIC_KEYS = (
    "output",
    "records",
    "columns",
    "columns_before",
    "released",
    "identity",
    "draw",
    "insecure_seed",
    "versions",
    "covers",
    "voids",
)
INTERNAL_KEYS = (*PUBLIC_KEYS, "dataset", "earlier")

Audience: TypeAlias = Literal["public", "internal"]


class Record(Protocol):
    """What a channel file says of its channel."""

    @property
    def notion(self) -> dict[str, Any] | None:
        """Notion and budgets."""
        ...

    @property
    def achieved(self) -> dict[str, Any] | None:
        """Budgets achieved."""
        ...


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What only the internal manifest tells of a released column.

    Parameters
    ----------
    channel_file : str or None
        SHA-256 of the channel file.
    achieved : mapping or None
    table_records, zero_cells : int or None
        Of the table that the channel was designed for.
    symbols : sequence of (symbol, count)
        Records of each symbol of X, which is given as one text for each column.
    missing, unknown : int
        Records that the policies for them were used on.
    outputs : sequence of (value, count)
        Records of each released value, given as one text for each released column.
    """

    channel_file: str | None
    achieved: Mapping[str, Any] | None
    table_records: int | None
    zero_cells: int | None
    symbols: tuple[tuple[tuple[str, ...], int], ...]
    missing: int
    unknown: int
    outputs: tuple[tuple[tuple[str, ...], int], ...]


@dataclass(frozen=True, kw_only=True)
class ReleasedColumn:
    """One channel, and what was done with it.

    Parameters
    ----------
    use : Use
        Channel, columns of X, form and policies.
    names : tuple of str
        The output's columns that it filled.
    sensitive : tuple of str or None
        The columns it protects, by the names of the data set; None where the channel does not say.
    notion : mapping or None
    counted : Counted
    """

    use: Use
    names: tuple[str, ...]
    sensitive: tuple[str, ...] | None
    notion: Mapping[str, Any] | None
    counted: Counted


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What there is to say of a release.

    Parameters
    ----------
    output : str
        SHA-256 of the released file.
    records : int
    columns_before, columns : tuple of str
        Of the input, and of the output.
    released : tuple of ReleasedColumn
    dataset : str
        SHA-256 of the input.
    kept_private : tuple of str
        Sensitive and correlated columns that stay in the output because the user said so.
    identity : tuple of str
        Columns that identify a record; empty for the row number.
    draw : int
        How many times the records were drawn anew (`Job.draw`).
    earlier : tuple of Run
        Releases with other draws (`Job.earlier`).
    other_channels : bool
        Whether other channels were applied to the same records in the same job (`Job.other_channels`).
    insecure_seed : bool
    """

    output: str
    records: int
    columns_before: tuple[str, ...]
    columns: tuple[str, ...]
    released: tuple[ReleasedColumn, ...]
    dataset: str
    kept_private: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    draw: int = 0
    earlier: tuple[Run, ...] = ()
    other_channels: bool = False
    insecure_seed: bool = False

    def text(self, audience: Audience) -> str:
        """The manifest as it is written: JSON with the hash of its content."""
        internal = audience == "internal"
        content: dict[str, Any] = {
            "output": self.output,
            "records": self.records,
            "columns": self.columns,
            "columns_before": self.columns_before,
            "released": [_column(column, internal=internal) for column in self.released],
            "identity": self.identity,
            "draw": self.draw,
            "insecure_seed": self.insecure_seed,
            "versions": versions(),
            "covers": [
                sentence
                for column in self.released
                for sentence in covers(
                    column.use,
                    column.names,
                    column.sensitive,
                    column.notion,
                    table_records=column.counted.table_records if internal else None,
                    zero_cells=column.counted.zero_cells if internal else None,
                )
            ],
            "voids": voids(
                columns=self.columns,
                uses=[column.use for column in self.released],
                names=[name for column in self.released for name in column.names],
                kept_private=self.kept_private,
                identity=self.identity,
                draw=self.draw,
                other_channels=self.other_channels,
                insecure_seed=self.insecure_seed,
            ),
        }
        if internal:
            earlier = [{"draw": run.draw, "target": run.target, "output": run.output} for run in self.earlier]
            content |= {"dataset": self.dataset, "earlier": earlier}
        return hashed_text(INTERNAL_FORMAT if internal else FORMAT, VERSION, content)


def released_column(
    release: Release,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    record: Record | None = None,
    channel_file: str | None = None,
) -> ReleasedColumn:
    """What a manifest says of one channel, when all records have been drawn.

    Parameters
    ----------
    release : Release
    use : Use
    names : tuple of str
        The output's columns that it filled.
    sensitive : tuple of str or None
        The columns it protects, by the names of the data set.
    record : Record, optional
        `Channel.record`.
    channel_file : str, optional
        SHA-256 of the channel file.
    """
    channel = release.channel
    counts = [int(count) for count in release.symbol_counts]
    size = len(channel.useful)
    values = channel.useful.symbols if release.form == POSTERIOR_DRAW else [(y,) for y in channel.outputs]
    return ReleasedColumn(
        use=use,
        names=names,
        sensitive=sensitive,
        notion=record.notion if record is not None else None,
        counted=Counted(
            channel_file=channel_file,
            achieved=record.achieved if record is not None else None,
            table_records=None if channel.joint is None else channel.joint.records,
            zero_cells=None if channel.joint is None else _zero_cells(channel.joint),
            symbols=tuple(zip(channel.useful.symbols, counts[:size], strict=True)),
            missing=counts[size],
            unknown=counts[size + 1],
            outputs=tuple(zip(values, map(int, release.output_counts), strict=True)),
        ),
    )


def read_manifest(path: PathLike, audience: Audience) -> dict[str, Any]:
    """Read a manifest.

    Raises
    ------
    InputError
        If it is missing, no manifest of this kind and version, or was edited or damaged.
    """
    if audience == "internal":
        return read_hashed(path, INTERNAL_FORMAT, VERSION, INTERNAL_KEYS, "internal manifest")
    return read_hashed(path, FORMAT, VERSION, PUBLIC_KEYS, "manifest")


def _column(column: ReleasedColumn, *, internal: bool) -> dict[str, Any]:
    use, counted = column.use, column.counted
    content: dict[str, Any] = {
        "channel": use.channel,
        "columns": use.columns,
        "names": column.names,
        "form": use.form,
        "unknown": use.unknown,
        "null": use.null,
        "normalise": use.normalise,
        "sensitive": column.sensitive,
        "notion": _plain(column.notion),
    }
    if internal:
        content |= {
            "channel_file": counted.channel_file,
            "achieved": _plain(counted.achieved),
            "table_records": counted.table_records,
            "zero_cells": counted.zero_cells,
            "symbols": [{"symbol": symbol, "records": count} for symbol, count in counted.symbols],
            "missing": counted.missing,
            "unknown_symbols": counted.unknown,
            "outputs": [{"value": value, "records": count} for value, count in counted.outputs],
        }
    return content


def _plain(value: Any) -> Any:
    """`value` with infinities as channel files write them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    return "inf" if value == math.inf else value


def _zero_cells(joint: Joint) -> int:
    return sum(cell == 0 for row in joint.counts for cell in row)
