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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from mechdesign.auditing.population_promise import population_promise
from mechdesign.channel.record import ChannelRecord
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
from mechdesign.release.drawing import (
    KEEP,
    OF_SYMBOLS,
    POSTERIOR_DRAW,
    REDRAW,
    REPRESENTATIVE,
    WITHIN,
    Release,
)
from mechdesign.release.policies import MARGINAL, OUTPUT, REFUSE
from mechdesign.release.sampling import Releasable
from mechdesign.sanitise.entries import Entry, Natural, Use
from mechdesign.tables.confidence import scope_of

_KINDS = {"unknown": "a symbol that the channel does not know", "null": "an empty cell"}


def covers(released: ReleasedColumn, *, internal: bool) -> list[str]:
    """What the promise for one channel's columns is."""
    use = released.told
    about = f" for {listed(use.sensitive)}" if use.sensitive else ""
    promise = f"the promise {_notion(use.notion)}{about}" if use.notion else f"no promise on record{about}"
    size = ""
    if internal and use.table_records is not None:
        size = f" of {use.table_records:,} {'record' if use.table_records == 1 else 'records'}"
        if use.zero_cells:
            size += f" ({use.zero_cells:,} {'cell' if use.zero_cells == 1 else 'cells'} zero)"
    told = [
        f"{_named(use.names)} released through a channel with {promise}.",
        "It is about each record alone, and about the released value alone, against an observer who knows the channel "
        "and the table that it was designed for, and nothing else of the record.",
    ]
    if released.confidence is not None:
        told += scope_of(released.confidence)
    else:
        told.append(
            f"It is about that table{size}: on the population that its records come from, or on other data that the "
            "channel is applied to, more can be told, and the more so the fewer records the table has."
        )
        told += _population(released.channel) if internal else []
    told += [_FORMS[use.form].format(listed(use.columns))] if use.form in _FORMS else []
    for rule, kind in _KINDS.items():
        if getattr(use, rule) == MARGINAL:
            told.append(
                f"A record with {kind} gets a value drawn as for a record of which nothing is known, which tells "
                "nothing of it."
            )
    return told


def _population(channel: Releasable) -> list[str]:
    """What is left of the promise of a plain design for the population of its counts."""
    joint = channel.joint
    if joint is None or not joint.is_counts or joint.sensitive.each:
        return []
    found = population_promise(channel, joint)
    most, least = factor_at_most(found.achieved.eps_u), factor_at_least(found.achieved.eps_l)
    return [
        f"For the population that these {joint.records:,} records are a sample of, with {100 * found.level:g} % "
        f"confidence: at most {most} times as likely as before, and at least {least} times."
    ]


_FORMS = {
    POSTERIOR_DRAW: "The values are drawn from the symbols of {} that the channel's output leaves possible, as likely "
    "as the table says: they tell no more than the output.",
    REPRESENTATIVE: "Each value is the median of the bins that the channel's output stands for: it tells no more.",
    WITHIN: "Each value is drawn from those that the table has in the bins of {} which the channel's output leaves "
    "possible: it tells no more of its record than the output, but it is a value that the table has.",
}


def voids(manifest: Manifest) -> list[str]:
    """What the promise does not survive: first what is the case here, then what may be."""
    uses = [released.told for released in manifest.released]
    columns, names = manifest.columns, [name for use in uses for name in use.names]
    kept_private, identity, draw = manifest.kept_private, manifest.identity, manifest.draw
    told: list[str] = []
    if manifest.insecure_seed:
        told.append(
            "The draws come from a number and not from a secret key (--insecure-seed): whoever guesses it undoes the "
            "release. This is for tests only."
        )
    if kept_private:
        told.append(f"{_named(kept_private)} left in the data, though sensitive: nothing is protected.")
    useful = [name for use in uses for name in use.columns]
    plain = [name for name in dict.fromkeys(useful) if name in columns and name not in names]
    if plain:
        told.append(
            f"{_named(plain)} left in the data beside the released values, which protect nothing then."
        )
    others = [name for name in columns if name not in (*names, *kept_private, *plain)]
    if others:
        tell = "it tells" if len(others) == 1 else "they tell"
        told.append(
            f"{_named(others)} left in the data unchanged: whatever {tell} of a record voids the promise."
        )
    if not manifest.shuffled:
        told.append(
            "The records stand in the order in which they came: whatever the place of a record tells of it voids the "
            "promise."
        )
    if len(uses) > 1 or manifest.other_channels:
        told.append(
            "Several channels have been applied to the same records: each keeps its own promise, but together they can "
            "tell more than any of them."
        )
    if draw:
        told.append(
            f"These records were released before, with {draw} other {'draw' if draw == 1 else 'draws'}: independent "
            "releases of a record can tell far more than the sum of what each may."
        )
    for use in uses:
        for rule, kind in _KINDS.items():
            value: str = getattr(use, rule)
            if value.startswith(OUTPUT):
                label = quoted(value.removeprefix(OUTPUT))
                told.append(
                    f"A record with {kind} in {listed(use.columns)} gets {label}: what "
                    "that tells of it, the promise does not cover."
                )
    told.append(
        f"Other knowledge of {listed(list(dict.fromkeys(useful)))} voids it; so does a second independent release of "
        "the same records: with another key, from another copy of the data, or in another job."
    )
    if identity:
        told.append(f"A record is known by {listed(identity)}: records that share it share random numbers.")
        told += [_CHANGES[use.changed] for use in uses[:1] if use.changed in _CHANGES]
    return told


_CHANGES = {
    KEEP: "A record whose symbol changed since an earlier release keeps the value that was released for its first one.",
    REDRAW: "A record whose symbol changed since an earlier release was drawn anew: its releases together tell more "
    "than each.",
}


def _named(names: Sequence[str]) -> str:
    what = listed(names)
    return f"The column {what} is" if len(names) == 1 else f"The columns {what} are"


def _notion(notion: Mapping[str, Any]) -> str:
    budgets = ", ".join(f"{name} {value}" for name, value in notion.items() if name != "name")
    return f"{notion['name']} ({budgets})"


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
    changed: str = REFUSE
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
    confidence: Mapping[str, Any] | None
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
        kind, column_kind = (InternalManifest, InternalColumn) if internal else (PublicManifest, PublicColumn)
        shown = {*column_kind.model_fields}
        content: dict[str, Any] = {
            **{name: value for name, value in vars(self).items() if name in _Told.model_fields},
            "released": tuple(column.told.model_dump(include=shown) for column in self.released),
            "versions": versions(),
            "covers": tuple(line for column in self.released for line in covers(column, internal=internal)),
            "voids": tuple(voids(self)),
            "notes": (*self.notes, *(self.inner_notes if internal else ())),
        }
        if internal:
            runs = [(max(each.draw for each in run.drawn), run.target, run.output) for run in self.earlier]
            earlier = tuple(EarlierRelease(draw=draw, target=to, output=sha256) for draw, to, sha256 in runs)
            content |= {"dataset": self.dataset, "earlier": earlier}
        return document_text(kind.model_validate(content))


def released_column(
    release: Release,
    use: Use,
    names: tuple[str, ...],
    *,
    sensitive: tuple[str, ...] | None,
    channel_file: str | None = None,
) -> ReleasedColumn:
    """What a manifest says of one channel, when all records have been drawn."""
    channel = release.channel
    record: ChannelRecord | None = getattr(channel, "record", None)
    counts = [int(count) for count in release.symbol_counts]
    size = len(channel.useful)
    values = channel.useful.symbols if release.form in OF_SYMBOLS else [(y,) for y in channel.outputs]
    cells = None if channel.joint is None else [cell for row in channel.joint.counts for cell in row]
    told = InternalColumn(
        **use.model_dump(),
        names=names,
        sensitive=sensitive,
        notion=without_infinities(record.notion) if record is not None else None,
        channel_file=channel_file,
        achieved=without_infinities(record.achieved) if record is not None else None,
        table_records=None if channel.joint is None else channel.joint.records,
        zero_cells=None if cells is None else cells.count(0),
        symbols=tuple(
            SymbolCount(symbol=symbol, records=count)
            for symbol, count in zip(channel.useful.symbols, counts[:size], strict=True)
        ),
        missing=counts[size],
        unknown_symbols=counts[size + 1],
        changes=release.changes,
        outputs=tuple(
            ValueCount(value=value, records=int(count))
            for value, count in zip(values, release.output_counts, strict=True)
        ),
    )
    confidence = record.confidence if record is not None else None
    return ReleasedColumn(told=told, confidence=confidence, channel=channel)


def read_manifest(path: PathLike, audience: Audience) -> PublicManifest | InternalManifest:
    """Read a manifest."""
    return read_document(path, InternalManifest if audience == "internal" else PublicManifest)


OUTPUT_COLUMN = "output"
FORWARD = "p_output_given_symbol"
BACKWARD = "p_symbol_given_output"


def codebook_text(channel: Releasable) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, `p_output_given_symbol` (of the channel) and
    `p_symbol_given_output` (under the table that the channel was designed for; empty where it carries none).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([OUTPUT_COLUMN, *channel.useful.columns, FORWARD, BACKWARD])
    weight = None if channel.joint is None else channel.joint.useful_counts
    for label, (at, values) in zip(channel.outputs, IntegerRows.of(channel.rows).columns, strict=True):
        masses = [] if weight is None else [weight[x] * w for x, w in zip(at, values, strict=True)]
        for i, (x, w) in enumerate(zip(at, values, strict=True)):
            backward = repr(masses[i] / sum(masses)) if masses else ""
            writer.writerow([label, *channel.useful.symbols[x], repr(w / channel.denominator), backward])
    return stream.getvalue()
