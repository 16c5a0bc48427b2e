"""What the manifest of a release says about the release, for whoever analyses it.

A manifest names its file by the hash, so a stale one is not believed. The public one says what was
released for empty and unknown cells; the internal one also has their numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, has_sha256
from mechdesign.jobs.folder_stage import manifest_of
from mechdesign.jobs.manifest import judge_manifest, refuse_false
from mechdesign.jobs.side_files import (
    InternalColumn,
    InternalManifest,
    PublicColumn,
    PublicManifest,
    read_manifest,
)
from mechdesign.release.samplers import Policy, recorded_rules

STANDARD = "-"


@dataclass(frozen=True)
class ReleaseFacts:
    """What is known of a release beside its cells.

    Attributes
    ----------
    source : str
        Where it is known from, for notices.
    policy : Policy
        What was released for empty and unknown cells.
    shares : pair of float or None
        Of empty cells and of unknown symbols among its records, from an internal manifest.
    shuffled : bool
    """

    source: str
    policy: Policy
    shares: tuple[float | None, float | None] = (None, None)
    shuffled: bool = False


def facts_of_release(
    released: PathLike,
    channel: Channel,
    manifest: PathLike | None = None,
) -> ReleaseFacts | None:
    """What the manifest says of a file that this channel released.

    Parameters
    ----------
    manifest : path, optional
        Its manifest, public or internal. By default the one beside it, which counts only if it can
        be read and is about this very file.

    Raises
    ------
    InputError
        If a manifest that was named cannot be read, or is about another file or channel.
    """
    if manifest is not None:
        return _facts_of(released, channel, manifest)
    if os.fspath(released) == STANDARD:
        return None
    try:
        return _facts_of(released, channel, manifest_place(released))
    except InputError:
        # There is none, or it is about something else: then nothing is known.
        return None


NOT_CORRECTED = (
    "the release has draws in place of empty or unknown cells, and estimates from released {} "
    "cannot be corrected for them: design with --missing symbol, or release the records that have "
    "all cells"
)


@dataclass(frozen=True)
class OtherRecords:
    """Whether records without a symbol are among the released ones, as far as it is known.

    Attributes
    ----------
    policy : Policy
        What was released for them: as it was given, or by the manifest, or else what `apply` does
        by default.
    are_known : bool
        Whether it was given, or is in the manifest.
    """

    policy: Policy
    are_known: bool

    @property
    def are_there(self) -> bool:
        """Whether there may be any."""
        return not self.policy.lets_nothing_through


def other_records(
    released: PathLike,
    channel: Channel,
    policy: Policy | None = None,
    manifest: PathLike | None = None,
) -> OtherRecords:
    """Whether draws stand in place of empty or unknown cells in a released file."""
    facts = facts_of_release(released, channel, manifest)
    if policy is None and facts is not None:
        policy = facts.policy
    is_known = policy is not None
    if policy is None:
        policy = Policy.recorded(recorded_rules([channel]))
    return OtherRecords(policy, is_known)


def has_fixed_counts(path: PathLike, channel: Channel) -> bool:
    """True if the manifest beside a release says that its counts were fixed, and the channel does
    not disprove it.
    """
    try:
        manifest = read_manifest(manifest_place(path), "public")
    except InputError:
        return False
    # The digest ties the manifest to this very file.
    if not has_sha256(path, manifest.output):
        return False
    if judge_manifest(manifest, channel).fault is not None:
        return False
    return all(column.draws == "fixed" for column in manifest.released)


def _facts_of(released: PathLike, channel: Channel, path: PathLike) -> ReleaseFacts:
    """The facts in one manifest."""
    found = manifest_of_either_kind(path)
    if not has_sha256(released, found.output):
        raise InputError(
            f"{os.fspath(path)} is the manifest of another file than {os.fspath(released)}, by its "
            "hash; leave it out, or give the file as it was released"
        )
    column = column_of(found, channel)
    if column is None:
        raise InputError(
            f"{os.fspath(path)} has no release through this channel; give the channel file that "
            "the file was released with"
        )
    refuse_false(found, channel, os.fspath(path))
    policy = Policy(
        unknown=column.unknown,
        missing=column.missing,
        normalise=column.normalise,
        trim=column.trim,
        missing_codes=column.missing_codes,
    )
    facts = ReleaseFacts(os.fspath(path), policy, shuffled=found.shuffled)
    if isinstance(column, InternalColumn) and found.records and len(column.counts) == 1:
        (counts,) = column.counts
        shares = (
            counts.empty_cells / found.records,
            counts.unknown_symbols / found.records,
        )
        return replace(facts, shares=shares)
    return facts


def manifest_place(released: PathLike) -> PathLike:
    """Where `apply` writes the manifest of a file: beside it, or in the released folder."""
    beside = f"{os.fspath(released)}.manifest.json"
    path = Path(released)
    for folder in path.parents:
        inside = folder / manifest_of(path.relative_to(folder).as_posix())
        if not os.path.lexists(beside) and inside.is_file():
            return inside
    return beside


def manifest_of_either_kind(path: PathLike) -> PublicManifest | InternalManifest:
    """A manifest for either audience."""
    try:
        return read_manifest(path, "public")
    except InputError as error:
        public_fault = error
    try:
        return read_manifest(path, "internal")
    except InputError:
        # The public form is the usual one: its fault is the better message.
        raise public_fault from None


def column_of(
    manifest: PublicManifest | InternalManifest,
    channel: Channel,
) -> PublicColumn | None:
    """What the manifest says of the release through this channel, None if there is none."""
    digest = channel.digest
    for column in manifest.released:
        if column.channel == digest:
            return column
    return None
