"""What is known of a release besides its labels: its manifest, and its records without a symbol.

A manifest names its file by the hash, so a stale one is not believed. The public one says what was
released for empty and unknown cells; the internal one also has their numbers.

*Records without a symbol* change the frequencies of a file. For an empty or unknown cell `apply`
can release a draw from the marginal, or a fixed output. These labels say nothing of the useful
column, but they are counted with the others. With the share q of such records, whose labels have
the law r(y), the labels of a file have the frequencies

    P(y) = (1 - q) sum_x P(x) W(y | x) + q r(y),

where P(x) are the frequencies among the other records, which are the question. For a known q this
is a channel of its own, with the rows (1 - q) W(. | x) + q r (`OtherRecords.corrected`), so every
estimate and interval for a channel holds for it. If the number of such records is known exactly,
its variance in a sample counts though it is none, so intervals are rather too long.

Without q there are bounds (`OtherRecords.bounds`). A mean weight f of the labels, with the weight k
= sum_y r(y) b(y) of the other records, belongs to (f - q k) / (1 - q) = f + t (f - k) with t = q /
(1 - q), whatever q is: all values from f on, away from k. For example, half of the labels count for
a symbol, and a draw from the marginal does so in 0.3 of all cases: the share of the symbol is
anything from 0.5 to 1. If draws did so in 0.5 of all cases, it would be 0.5.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mechdesign.analysis.linear import Cells, Estimator, identify
from mechdesign.analysis.model import ReleaseModel
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.arguments import number
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
from mechdesign.release.identified_draws import KEEP
from mechdesign.release.released_values import FORMS, LABEL, by_output
from mechdesign.release.samplers import (
    Policy,
    policy_row,
    recorded_rules,
)
from mechdesign.tables.cell_values import NEAREST, REFUSE

STANDARD = "-"

NO_RELEASE = (
    "{} has no release through this channel; give the channel file with which the file "
    "was released"
)


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
    form : 'label', 'posterior-draw', 'representative' or 'within'
        In which the values were released; that of boxes, whose rows are read as they are, is
        'label'.
    keeps_changed : bool
        Whether a record whose symbol changed since an earlier release keeps what was released for
        its first one.
    """

    source: str
    policy: Policy
    shares: tuple[float | None, float | None] = (None, None)
    shuffled: bool = False
    form: str = LABEL
    keeps_changed: bool = False


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


NEAREST_COUNTS = (
    "rows that the table of the channel does not have were released as draws of the nearest row "
    "that it has: the estimates count them as that row"
)

CHANGED_COUNTS = (
    "a record whose symbol changed since an earlier release keeps what was released for its first "
    "one (--changed keep): the estimates count it with its first symbol"
)


def counted_otherwise(policy: Policy, *, keeps_changed: bool) -> tuple[str, ...]:
    """Notices of estimates that count some records with another symbol than they have."""
    notices: list[str] = []
    if policy.unknown == NEAREST:
        notices.append(NEAREST_COUNTS)
    if keeps_changed:
        notices.append(CHANGED_COUNTS)
    return tuple(notices)


NOT_CORRECTED = (
    "the release has draws in place of empty or unknown cells, and estimates from released {} "
    "cannot be corrected for them: design with --missing symbol, or release the records that have "
    "all cells"
)


@dataclass(frozen=True)
class RecordsWithout:
    """Whether records without a symbol are among the released ones, as far as it is known.

    Attributes
    ----------
    policy : Policy
        What was released for them: as it was given, or by the manifest, or else what `apply` does
        by default.
    are_known : bool
        Whether it was given, or is in the manifest.
    keeps_changed : bool
        As in `ReleaseFacts`.
    """

    policy: Policy
    are_known: bool
    keeps_changed: bool

    @property
    def are_there(self) -> bool:
        """Whether there may be any."""
        return not self.policy.lets_nothing_through

    @property
    def counted_otherwise(self) -> tuple[str, ...]:
        """Notices of estimates that count some records with another symbol than they have."""
        return counted_otherwise(self.policy, keeps_changed=self.keeps_changed)


def other_records(
    released: PathLike,
    channel: Channel,
    policy: Policy | None = None,
    manifest: PathLike | None = None,
) -> RecordsWithout:
    """Whether draws stand in place of empty or unknown cells in a released file.

    Raises
    ------
    InputError
        As `facts_of_release`, and as `refuse_other_channel`.
    """
    refuse_other_channel(released, channel)
    facts = facts_of_release(released, channel, manifest)
    if policy is None and facts is not None:
        policy = facts.policy
    is_known = policy is not None
    if policy is None:
        policy = Policy.recorded(recorded_rules([channel]))
    keeps_changed = facts is not None and facts.keeps_changed
    return RecordsWithout(policy, is_known, keeps_changed)


def refuse_other_channel(released: PathLike, channel: Channel) -> None:
    """Refuse a file whose manifest beside it says that other channels alone released it."""
    if os.fspath(released) == STANDARD:
        return
    path = manifest_place(released)
    try:
        found = manifest_of_either_kind(path)
        is_of_it = has_sha256(released, found.output)
    except InputError:
        # There is none, or it states nothing that can be read.
        return
    if is_of_it and column_of(found, channel) is None:
        raise InputError(NO_RELEASE.format(os.fspath(path)))


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
        raise InputError(NO_RELEASE.format(os.fspath(path)))
    refuse_false(found, channel, os.fspath(path))
    policy = Policy(
        unknown=column.unknown,
        missing=column.missing,
        normalise=column.normalise,
        trim=column.trim,
        missing_codes=column.missing_codes,
    )
    facts = ReleaseFacts(
        os.fspath(path),
        policy,
        shuffled=found.shuffled,
        form=column.form if column.form in FORMS else LABEL,
        keeps_changed=column.changed == KEEP,
    )
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


# ------------------------------------------------------------------------ other records


def law_of_rule(channel: Channel, form: str, name: str, rule: str) -> Array:
    """Probabilities of the labels for a missing or unknown symbol; zeros where it is refused, or
    where it has the law of the nearest row.

    `name` is the field of the policy, for messages.
    """
    row = np.zeros(len(channel.outputs))
    if rule not in (REFUSE, NEAREST):
        # Integers in proportion to the probabilities, so that the release draws from them exactly.
        masses = policy_row(channel, rule, name)
        total = sum(masses)
        row = np.array([mass / total for mass in masses])
    if form == LABEL:
        return row
    # A draw from the posterior follows the output.
    return row @ by_output(channel, form)


@dataclass(frozen=True)
class OtherRecords:
    """The records of a release without a symbol: empty cells, unknown symbols, or both.

    Attributes
    ----------
    names : tuple of str
        What they are, in words.
    laws : (kinds, labels) array
        The probabilities of their labels.
    share : float or None
        Their share of all records, and `mixed` the law of the labels of all of them together; None
        where the share of one kind is not known.
    mixed : (labels,) array
    """

    names: tuple[str, ...]
    laws: Array
    share: float | None
    mixed: Array

    @classmethod
    def of(
        cls,
        channel: Channel,
        form: str,
        policy: Policy | None,
        shares: tuple[float | None, float | None] = (None, None),
    ) -> OtherRecords | None:
        """The records that a policy lets through; None where it refuses all of them.

        Parameters
        ----------
        shares : pair of float or None
            Of the empty cells and of the unknown symbols, among all records.

        Raises
        ------
        InputError
            If a share is no number from 0 up to 1, or is given of what the policy refuses.
        """
        names: list[str] = []
        laws: list[Array] = []
        known: list[float | None] = []
        kinds = (("missing", "empty cells"), ("unknown", "unknown symbols"))
        for (field, name), share in zip(kinds, shares, strict=True):
            rule = REFUSE if policy is None else getattr(policy, field)
            if share is not None:
                share = _checked_share(field, share)
            if rule == NEAREST:
                # They count as the nearest row, whose draw was released.
                continue
            if rule == REFUSE:
                if share:
                    raise InputError(
                        f"{field}_share says that the release has {name}; say what was released "
                        f"for them, too (--{field} marginal or output:LABEL)"
                    )
                continue
            names.append(name)
            laws.append(law_of_rule(channel, form, field, rule))
            known.append(share)
        if not names:
            return None
        total = _total(known)
        if total is not None and total >= 1.0:
            raise InputError(
                f"the shares of records without a symbol ({total:g}) must be below 1 together"
            )
        mixed = np.zeros_like(laws[0])
        for law, share in zip(laws, known, strict=True):
            mixed = mixed + (share or 0.0) * law
        return cls(tuple(names), np.array(laws), total, mixed)

    def corrected(self, model: ReleaseModel) -> ReleaseModel:
        """The model of the labels of all records, given the symbol of one that has a symbol."""
        if self.share is None:
            raise InputError("the share of records without a symbol is not known")
        return replace(model, matrix=(1.0 - self.share) * model.matrix + self.mixed)

    def extended(self, estimator: Estimator) -> Estimator:
        """The estimator of the mean weights of all labels, of whatever records.

        Each kind of other records is one more symbol, with its mean weight for each cell.
        """
        model = estimator.model
        weights = self.laws @ estimator.weights
        cells = estimator.cells
        wider = replace(
            model,
            symbols=(*model.symbols, *(f"({name})" for name in self.names)),
            matrix=np.vstack([model.matrix, self.laws]),
            prior=None,
        )
        functionals = np.vstack([cells.functionals, weights])
        return Estimator(
            wider,
            identify(wider.symbols, wider.matrix),
            Cells(cells.names, functionals, disjoint=False),
        )

    def bounds(
        self, estimator: Estimator, lower: Array, upper: Array
    ) -> tuple[Array, Array]:
        """Bounds of the cells, whatever the shares, from those of the mean weights (m,)."""
        weights = self.laws @ estimator.weights
        least, most = estimator.cells.bounds
        # Away from the weight of the other records everything is possible, towards it nothing.
        low = np.where((weights <= lower).all(axis=0), lower, least)
        high = np.where((weights >= upper).all(axis=0), upper, most)
        return np.clip(low, least, most), np.clip(high, least, most)


def _total(shares: Sequence[float | None]) -> float | None:
    """The sum of shares, None if one is not known."""
    total = 0.0
    for share in shares:
        if share is None:
            return None
        total += share
    return total


def _checked_share(field: str, share: float) -> float:
    """A share as a float, from 0 up to 1."""
    value = number(f"{field}_share", share, "from 0 up to, but not including, 1")
    if not 0.0 <= value < 1.0:
        raise InputError(f"{field}_share ({value:g}) must be at least 0 and below 1")
    return value
