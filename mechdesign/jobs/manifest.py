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
(`released_channel`), the public one has the fields of `PublicColumn` alone. So a field that is
added to a description stays inside until somebody adds it to the public record.

*Each channel*, counted when all records have been drawn. `released_channel` gives a
`DescribedChannel`: its description is that of the internal manifest, and the public one has a part
of it.

All counts come from the drawer's release. The symbols of each variable are counted as they were
read, and two counts more: of empty cells and of unknown symbols. The outputs are counted as they
were released. Of 100 records, for example::

    symbols            clerk 60, nurse 37       release.symbol_counts = [[60, 37, 2, 1]]
    missing            2
    unknown_symbols    1
    outputs            A 55, B 45               release.output_counts = [55, 45]

*Proof.* What a manifest states is held against its channel. Whoever edits a manifest can renew its
hash, so the hash proves nothing. But what a manifest says of a channel, and its sentences, are
functions: of the channel, and of what the manifest says that its job did. So they are made again
here (`decided_by`, `side_files.covers`) and compared. If the channel promises alip (eps_l
1, eps_u 1), for example, and the manifest says eps_u 0.1, in an entry or in a sentence, that is a
fault.

Some of it stays a statement: what the job did (a draw, a seed, other channels), what another
channel promises, which is not at hand, and, of a public channel, that its promise was checked
before the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mechdesign import __version__
from mechdesign.auditing.stated import has_table
from mechdesign.channel.channel import Channel
from mechdesign.core.documents import (
    canonical,
    document_text,
    versions,
    without_infinities,
)
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.jobs.ledger import Entry, Use
from mechdesign.jobs.side_files import (
    Audience,
    EarlierRelease,
    InternalColumn,
    InternalManifest,
    PublicColumn,
    PublicManifest,
    SymbolCount,
    ValueCount,
    VariableCounts,
    covers,
    voids,
)
from mechdesign.release.drawing import FIXED, Release
from mechdesign.release.released_values import OF_SYMBOLS

# ----------------------------------------------------------------------------- channels


@dataclass(frozen=True)
class DescribedChannel:
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
        "earlier_count": len(channel.record.after),
        "law_kept": channel.keeps_law,
        "promise": channel.record.promise_kind,
        # Of boxes each stratum has its own. Those of the whole, for the population and for the
        # table, are audited anew for a sentence (`side_files`).
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
) -> DescribedChannel:
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
    return DescribedChannel(description, channel)


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
    if release.has_one_symbol:
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


# ---------------------------------------------------------------------------- manifests


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
    released : tuple of DescribedChannel
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
        Whether the records were released through other channels, too, which no promise of these
        counts.
    together : bool
        Whether the promise of one of several channels is about all of them together.
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
    released: tuple[DescribedChannel, ...]
    dataset: str
    kept_private: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    draw: int = 0
    earlier: tuple[Entry, ...] = ()
    other_channels: bool = False
    together: bool = False
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
            "together": self.together,
            "whole_file": self.whole_file,
            "notes": self.notes,
            "versions": versions(),
            "covers": tuple(covered),
            "voids": tuple(voids(self, uses)),
        }


# -------------------------------------------------------------------------------- proof

CHECKED_BY_JOB = (
    "that the promise was checked before the release, the manifest beside it states: the channel "
    "without its table does not prove it"
)
NEEDS_TABLE = (
    "the figures of the table in the internal manifest beside it are a statement: the channel with "
    "its table proves them"
)
OTHER_CHANNELS = (
    "what the manifest beside it says of other channels is a statement: check the file with each "
    "of them"
)
OTHER_VERSION = (
    "the sentences of the manifest beside it are a statement: mechdesign {} wrote them, and this "
    "is {}"
)

OF_TABLE = ("earlier_count", "law_kept", "achieved", "table_records", "zero_cells")
"""Entries that a channel without its table does not decide."""


@dataclass(frozen=True)
class ManifestVerdict:
    """What of a manifest holds: `fault` says what its channel disproves, None if nothing, and
    `stated` what stays a statement.
    """

    fault: str | None = None
    stated: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Form:
    """A form of the channel that the release may have been made with: the file with its table, or
    the public one, whose promise is not checked before a release.
    """

    channel: Channel
    checked: bool


def judge_manifest(
    manifest: PublicManifest | InternalManifest, channel: Channel
) -> ManifestVerdict:
    """Compare a manifest with one of its channels."""
    stated: list[str] = []
    for place, column in enumerate(manifest.released):
        if column.channel != channel.digest:
            continue
        verdict = _judge_column(manifest, place, channel)
        if verdict.fault is not None:
            return verdict
        stated += verdict.stated
    fault = _fault_of_job(manifest, channel)
    if fault is None and _has_our_words(manifest):
        said = manifest.voids
        fault = _difference(said, voids(manifest, manifest.released))
    if len({column.channel for column in manifest.released}) > 1:
        stated.append(OTHER_CHANNELS)
    if not _has_our_words(manifest):
        writer = manifest.versions.get("mechdesign", "of an unknown version")
        stated.append(OTHER_VERSION.format(quoted(writer), __version__))
    return ManifestVerdict(fault, tuple(dict.fromkeys(stated)))


def _has_our_words(manifest: PublicManifest | InternalManifest) -> bool:
    """Whether the sentences of this version are those that the manifest must have."""
    return manifest.versions.get("mechdesign") == __version__


def _judge_column(
    manifest: PublicManifest | InternalManifest,
    place: int,
    channel: Channel,
) -> ManifestVerdict:
    """Compare what a manifest says of one of its uses of a channel."""
    first: str | None = None
    for form in _forms(channel):
        fault = _fault_of_column(manifest, place, form, is_whole=has_table(channel))
        if fault is None:
            is_stated = form.checked and not has_table(channel)
            return ManifestVerdict(stated=(CHECKED_BY_JOB,) * is_stated)
        first = first or fault
    needs_table = isinstance(manifest, InternalManifest) and not has_table(channel)
    if needs_table and _wrong_entry(manifest.released[place], channel) is None:
        return ManifestVerdict(stated=(NEEDS_TABLE,))
    return ManifestVerdict(first)


def _forms(channel: Channel) -> list[_Form]:
    """The forms of a channel that a release may have been made with."""
    forms = [_Form(channel, True)]
    if not has_table(channel):
        return [*forms, _Form(channel, False)]
    # Without a public form no release was made with it.
    with suppress(InputError):
        forms.append(_Form(channel.public(), False))
    return forms


def _fault_of_column(
    manifest: PublicManifest | InternalManifest,
    place: int,
    form: _Form,
    *,
    is_whole: bool,
) -> str | None:
    """What a manifest says of a use of a channel that this form of it does not make true;
    `is_whole` is whether the table is at hand.
    """
    column = manifest.released[place]
    wrong = _wrong_entry(column, form.channel, is_whole=is_whole)
    if wrong is not None or not _has_our_words(manifest):
        return wrong
    sentences = _sentences(manifest, column, form)
    size = len(sentences)
    said = manifest.covers
    if len(manifest.released) == 1:
        return _difference(said, sentences)
    # Those of other channels stand before and after.
    for start in range(len(said) - size + 1):
        if list(said[start : start + size]) == sentences:
            return None
    missing = [sentence for sentence in sentences if sentence not in said]
    return f"it leaves out {quoted(missing[0] if missing else sentences[0])}"


def _wrong_entry(
    column: PublicColumn,
    channel: Channel,
    *,
    is_whole: bool = False,
) -> str | None:
    """An entry of a use that the channel decides, and decides otherwise."""
    for name, value in decided_by(channel).items():
        if name not in type(column).model_fields:
            continue
        if name in OF_TABLE and not is_whole:
            continue
        if canonical(getattr(column, name)) == canonical(value):
            continue
        if name == "notion":
            return "it states another promise than the channel has"
        return f"it states another {name.replace('_', ' ')} than the channel has"
    return None


def _sentences(
    manifest: PublicManifest | InternalManifest,
    column: PublicColumn,
    form: _Form,
) -> list[str]:
    """The sentences on the promise of a use, made again."""
    return covers(
        column,
        form.channel,
        internal=isinstance(manifest, InternalManifest),
        whole_file=manifest.whole_file,
        checked=form.checked,
    )


def _difference(said: Sequence[str], true: Sequence[str]) -> str | None:
    """Where sentences differ from those that they must be."""
    for sentence in said:
        if sentence not in true:
            return f"it says {quoted(sentence)}"
    for sentence in true:
        if sentence not in said:
            return f"it leaves out {quoted(sentence)}"
    if list(said) != list(true):
        return "its sentences stand in another order"
    return None


def _fault_of_job(
    manifest: PublicManifest | InternalManifest, channel: Channel
) -> str | None:
    """What a manifest says of its job that cannot be, whatever the job was."""
    released: list[str] = []
    hidden: list[str] = []
    are_fixed = True
    for column in manifest.released:
        released += [*column.names, *column.given]
        hidden += column.sensitive or ()
        are_fixed = are_fixed and column.draws == FIXED
    for name in hidden:
        known = {*released, *manifest.kept_private}
        if name in manifest.columns and name not in known:
            return f"it does not name {quoted(name)} among the sensitive columns of the file"
    # As `ChannelRecipe.covers_whole_file` and `KeyedRecipe` say it of the job.
    record = channel.channels[0].record if channel.channels else None
    is_alone = manifest.shuffled and not (
        manifest.insecure_seed or manifest.draw or manifest.other_channels
    )
    if manifest.together and not any(
        column.earlier_count for column in manifest.released
    ):
        return "it states one promise for several channels, and none was designed after another"
    is_proven = record is not None and record.notion is not None and not record.after
    others = [name for name in manifest.columns if name not in released]
    is_whole = are_fixed and is_alone and is_proven and not others
    if manifest.whole_file and not is_whole:
        return "it states a promise for readers of the whole file that nothing proves"
    return None


def refuse_false(
    manifest: PublicManifest | InternalManifest,
    channel: Channel,
    name: str,
) -> None:
    """Raise InputError if the channel disproves a manifest, which messages call `name`."""
    fault = judge_manifest(manifest, channel).fault
    if fault is not None:
        raise InputError(f"{name} is false: {fault}")
