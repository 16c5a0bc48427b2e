"""What a manifest states, held against its channel.

Whoever edits a manifest can renew its hash, so the hash proves nothing. But what a manifest says of
a channel, and its sentences, are functions: of the channel, and of what the manifest says that its
job did. So they are made again here (`manifest.decided_by`, `manifest_records.covers`)
and compared. If the channel promises alip (eps_l 1, eps_u 1), for example, and the manifest says
eps_u 0.1, in an entry or in a sentence, that is a fault.

Some of it stays a statement: what the job did (a draw, a seed, other channels), what another
channel promises, which is not at hand, and, of a public channel, that its promise was checked
before the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mechdesign import __version__
from mechdesign.auditing.stated import has_table
from mechdesign.channel.channel import Channel
from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.jobs.manifest import decided_by
from mechdesign.jobs.manifest_records import (
    InternalManifest,
    PublicColumn,
    PublicManifest,
    covers,
    voids,
)
from mechdesign.release.drawing import FIXED

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

OF_TABLE = ("law_kept", "achieved", "table_records", "zero_cells")
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
