"""What a release says of itself: a public manifest, an internal one, and a codebook.

The public manifest goes out with the data, so nothing in it is computed from the table or from the data set, but for
the number of records, which the data show anyway. (Hashes of the data set or of the channel file with its table would
let a reader test a guess of them; counts of symbols and outputs, and achieved budgets, are functions of them.) Both
say in plain sentences what the guarantee covers and what voids it. Neither holds a key or a time: the same job writes
the same manifests. The codebook is a CSV file that says what the released labels mean.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal, TypeAlias

from mechdesign.auditing.population_promise import population_promise
from mechdesign.channel.channel import Channel as Releasable
from mechdesign.core.documents import (
    Digest,
    FileDocument,
    Record,
    document_text,
    read_document,
    versions,
    without_infinities,
)
from mechdesign.core.files import PathLike
from mechdesign.core.integers import IntegerRows
from mechdesign.core.numbers import factor_at_least, factor_at_most, listed, quoted
from mechdesign.jobs.ledger import Entry, Natural, Use
from mechdesign.release import drawing, policies
from mechdesign.release.drawing import OF_SYMBOLS, Release
from mechdesign.tables.confidence import scope_of


@cache
def _sentences() -> Any:
    """The macros of ``manifest.jinja``, of which each gives sentences, a line each; lines that go on are joined."""
    from jinja2 import Environment, StrictUndefined

    text = (
        files("mechdesign.jobs").joinpath("manifest.jinja").read_text(encoding="utf-8")
    )
    made: Any = Environment(undefined=StrictUndefined, trim_blocks=True)
    made.filters |= {"listed": listed, "quoted": quoted}
    made.filters |= {"at_most": factor_at_most, "at_least": factor_at_least}
    made.globals |= {"drawing": drawing, "policies": policies}
    return made.from_string(re.sub(r"\n +", " ", text)).module


def covers(released: ReleasedColumn, *, internal: bool) -> list[str]:
    """What the promise for one channel's columns is."""
    channel, joint, confidence = (
        released.channel,
        released.channel.joint,
        released.channel.record.confidence,
    )
    scope = [] if confidence is None else scope_of(confidence)
    population = None
    if (
        internal
        and not scope
        and joint is not None
        and joint.is_counts
        and not joint.sensitive.each
    ):
        # What is left of the promise of a plain design for the population of its counts.
        population = population_promise(channel, joint)
    return str(
        _sentences().covers(released.told, internal, scope, population)
    ).splitlines()


def voids(manifest: Manifest) -> list[str]:
    """What the promise does not survive: first what is the case here, then what may be."""
    uses = [released.told for released in manifest.released]
    names = [name for use in uses for name in use.names]
    useful = list(dict.fromkeys(name for use in uses for name in use.columns))
    plain = [name for name in useful if name in manifest.columns and name not in names]
    others = [
        name
        for name in manifest.columns
        if name not in (*names, *manifest.kept_private, *plain)
    ]
    return str(_sentences().voids(manifest, uses, useful, plain, others)).splitlines()


Audience: TypeAlias = Literal["public", "internal"]


class PublicColumn(Record):
    """What a manifest says of one channel to whoever has the data."""

    channel: Digest
    columns: tuple[str, ...]
    names: tuple[str, ...]
    form: str
    unknown: str
    null: str
    normalise: str
    changed: str = policies.REFUSE
    sensitive: tuple[str, ...] | None
    notion: dict[str, Any] | None


class SymbolCount(Record):
    """Records of one symbol of X, which is given as one text for each column."""

    symbol: tuple[str, ...]
    records: Natural


class ValueCount(Record):
    """Records of one released value, given as one text for each released column."""

    value: tuple[str, ...]
    records: Natural


class InternalColumn(PublicColumn):
    """What the data holder is told besides: counts, budgets achieved, and the file."""

    channel_file: Digest | None
    achieved: dict[str, Any] | None
    table_records: Natural | None
    zero_cells: Natural | None
    symbols: tuple[SymbolCount, ...]
    missing: Natural
    unknown_symbols: Natural
    changes: Natural = 0
    outputs: tuple[ValueCount, ...]


class EarlierRelease(Record):
    """A release of the same records with another draw."""

    draw: Natural
    target: str
    output: Digest | None


class _Told(FileDocument):
    output: Digest
    records: Natural
    columns: tuple[str, ...]
    columns_before: tuple[str, ...]
    identity: tuple[str, ...]
    draw: Natural
    insecure_seed: bool
    shuffled: bool = False
    notes: tuple[str, ...] = ()
    versions: dict[str, str]
    covers: tuple[str, ...]
    voids: tuple[str, ...]


class PublicManifest(_Told):
    """What goes out with the data."""

    FORMAT: ClassVar[str] = "mechdesign.manifest"
    WHAT: ClassVar[str] = "manifest"

    released: tuple[PublicColumn, ...]


class InternalManifest(_Told):
    """What stays with the data holder."""

    FORMAT: ClassVar[str] = "mechdesign.internal-manifest"
    WHAT: ClassVar[str] = "internal manifest"

    released: tuple[InternalColumn, ...]
    dataset: Digest
    earlier: tuple[EarlierRelease, ...]


@dataclass(frozen=True, kw_only=True)
class ReleasedColumn:
    """One channel, and what was done with it."""

    told: InternalColumn
    channel: Releasable


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What there is to say of a release."""

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
        internal = audience == "internal"
        kind, column_kind = (
            (InternalManifest, InternalColumn)
            if internal
            else (PublicManifest, PublicColumn)
        )
        shown = {*column_kind.model_fields}
        content: dict[str, Any] = {
            **{
                name: value
                for name, value in vars(self).items()
                if name in _Told.model_fields
            },
            "released": tuple(
                column.told.model_dump(include=shown) for column in self.released
            ),
            "versions": versions(),
            "covers": tuple(
                line
                for column in self.released
                for line in covers(column, internal=internal)
            ),
            "voids": tuple(voids(self)),
            "notes": (*self.notes, *(self.inner_notes if internal else ())),
        }
        if internal:
            runs = [
                (max(each.draw for each in run.drawn), run.target, run.output)
                for run in self.earlier
            ]
            earlier = tuple(
                EarlierRelease(draw=draw, target=to, output=sha256)
                for draw, to, sha256 in runs
            )
            content |= {"dataset": self.dataset, "earlier": earlier}
        return document_text(kind.model_validate(content))


def released_column(
    channel: Releasable,
    release: Release,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    channel_file: str | None = None,
) -> ReleasedColumn:
    """What a manifest says of one channel, when all records have been drawn."""
    record = channel.record
    joint = channel.joint
    values = (
        channel.useful.symbols
        if release.form in OF_SYMBOLS
        else [(y,) for y in channel.outputs]
    )
    *counts, missing, unknown = release.symbol_counts.tolist()
    symbols = zip(channel.useful.symbols, counts, strict=True)
    outputs = zip(values, release.output_counts.tolist(), strict=True)
    told = InternalColumn(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        notion=without_infinities(record.notion),
        channel_file=channel_file,
        achieved=without_infinities(record.achieved),
        table_records=None if joint is None else joint.records,
        zero_cells=None if joint is None else sum(row.count(0) for row in joint.counts),
        symbols=tuple(
            SymbolCount(symbol=symbol, records=count) for symbol, count in symbols
        ),
        missing=missing,
        unknown_symbols=unknown,
        changes=release.changes,
        outputs=tuple(
            ValueCount(value=value, records=count) for value, count in outputs
        ),
    )
    return ReleasedColumn(told=told, channel=channel)


def read_manifest(
    path: PathLike, audience: Audience
) -> PublicManifest | InternalManifest:
    """Read a manifest."""
    return read_document(
        path, InternalManifest if audience == "internal" else PublicManifest
    )


def codebook_text(channel: Releasable) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, `p_output_given_symbol` (of the channel) and
    `p_symbol_given_output` (under the table that the channel was designed for; empty where it carries none).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        [
            "output",
            *channel.useful.columns,
            "p_output_given_symbol",
            "p_symbol_given_output",
        ]
    )
    weight = None if channel.joint is None else channel.joint.useful_counts
    for label, (at, values) in zip(
        channel.outputs, IntegerRows.of(channel.rows).columns, strict=True
    ):
        masses = (
            []
            if weight is None
            else [weight[x] * w for x, w in zip(at, values, strict=True)]
        )
        for i, (x, w) in enumerate(zip(at, values, strict=True)):
            backward = repr(masses[i] / sum(masses)) if masses else ""
            writer.writerow(
                [
                    label,
                    *channel.useful.symbols[x],
                    repr(w / channel.denominator),
                    backward,
                ]
            )
    return stream.getvalue()
