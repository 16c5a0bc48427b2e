"""Checks of released files, or of frames in their place, against their channel.

`check` first makes the law of the labels (`_LabelLaw`): a row W(. | x) of probabilities for
each symbol, and one more each for missing and unknown symbols, by the policy of the job. The file
is then read, and its labels are tested, in one of three ways:

- Beside its original (`_check_beside`). The records of both files are counted by symbol and label
  (`counting.count_pairs`). A label without mass in the row of its symbol is a finding; the counts
  of each symbol are tested against its row (`checking.check_pairs`).
- Alone (`_check_alone`). The labels are counted, and their shares are tested against the P(y) that
  the channel's table predicts (`check_table`). For data of another origin they are tested against
  all mixtures of the rows (`check_any_data`).
- With an original whose records the release has in random order, by its manifest. Records cannot be
  paired then, so the file is checked alone, as of any data.

For example, the row of a is (1, 0) and that of b is (0.2, 0.8), for the labels A and B. A record of
a with the label B is a finding. If 400 of 1,000 records of b have the label A, their frequency is
implausible beside the original. Alone, for any data, it is plausible: a share of 0.25 of a among
the records would explain it.

*Frames in the place of files* (`taking_frames`). The cells of a frame have one text each, as a
release gives it to them (`formats.cells.encode`). So a frame becomes a Parquet file of these texts,
in a folder that its owner alone can read and that is gone afterwards. Messages name it as the
argument that it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, cast

import numpy as np

from mechdesign.analysis import checking, counting
from mechdesign.analysis.checking import Counts, ReleaseCheck
from mechdesign.analysis.law_estimates import reader_of
from mechdesign.analysis.model import ReleaseModel, release_model
from mechdesign.analysis.release_facts import (
    column_of,
    facts_of_release,
    law_of_rule,
    manifest_of_either_kind,
    manifest_place,
)
from mechdesign.analysis.released_table import Advance, Released, released_file
from mechdesign.analysis.row_checking import check_filled, check_rows, is_wide
from mechdesign.auditing.stated import refuse_broken
from mechdesign.channel.channel import Array, Channel
from mechdesign.channel.file import require_channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, has_sha256
from mechdesign.formats.cells import encode_anything
from mechdesign.formats.column_names import require_text_names
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.jobs.manifest import ManifestVerdict, judge_manifest
from mechdesign.jobs.side_files import InternalManifest, PublicManifest
from mechdesign.release.coding import NearestRows
from mechdesign.release.released_values import LABEL
from mechdesign.release.samplers import OUTPUT, Policy
from mechdesign.tables.variable import Variable

_NO_SENSITIVE = (
    "the channel does not say which columns are sensitive: see that none is in the file"
)
_SHUFFLED = (
    "its manifest says that the records are in random order: it is checked without the "
    "original"
)
_IN_ORDER = (
    "the records were compared in the order of both files: a release in random order "
    "(--shuffle) is checked without --original, or with its manifest beside it "
    "(FILE.manifest.json)"
)
_KEPT = (
    "by its manifest a record whose symbol changed since an earlier release keeps what was "
    "released for its first one (--changed keep): {}frequencies were tested without the original"
)
_KEPT_OTHERS = (
    "{} a value that the channel never gives for the symbol of the original, and "
)
_OTHER_MANIFEST = (
    "the manifest beside it (FILE.manifest.json) is of another file, or this one was changed after "
    "its release: what that manifest says is not used"
)
_NO_RELEASE = (
    "the manifest beside it (FILE.manifest.json) has no release through this channel: what it "
    "says of others is not used"
)
_ALONE_OF_ROWS = (
    "a release of filled boxes is checked by its rows alone: leave --original out"
)
_ALONE_OF_LABELS = (
    "a release of boxes is checked by its labels alone: leave --original out"
)
_FALSE = (
    "the manifest beside it (FILE.manifest.json) is false: {}; do not hand it out, and release the "
    "file again for a true one"
)
_OTHER_COLUMNS = "it says that the file has other columns than it has"
_NOT_PAIRED = (
    "the records do not match those of the original, so frequencies were not tested"
)
_ANY_DATA = (
    "without original and table only what no frequencies of the useful column could "
    "give is found; a wrong channel may pass"
)
_ALONE = (
    "people are compared by the released columns of all their records; other columns of the file "
    "are not compared"
)
_FIXED = (
    "a fixed label for missing or unknown symbols has no expected frequency without "
    "the original"
)


P = ParamSpec("P")


def taking_frames(check: Callable[P, ReleaseCheck]) -> Callable[P, ReleaseCheck]:
    """A check of files that takes data frames for `released` and `original`, too."""

    @wraps(check)
    def of_frames(channel: Any, released: Any, **options: Any) -> ReleaseCheck:
        original = options.get("original")
        if is_path(released) and (original is None or is_path(original)):
            return check(channel, released, **options)  # pyright: ignore[reportCallIssue]
        with TemporaryDirectory(prefix="mechdesign-") as folder:
            released = _file_of("released", released, folder)
            if original is not None:
                options["original"] = _file_of("original", original, folder)
            try:
                found = check(channel, released, **options)  # pyright: ignore[reportCallIssue]
            except InputError as error:
                raise InputError(_without(folder, str(error))) from None
        findings = tuple(
            replace(finding, text=_without(folder, finding.text))
            for finding in found.findings
        )
        notices = tuple(_without(folder, notice) for notice in found.notices)
        return replace(found, findings=findings, notices=notices)

    return cast("Callable[P, ReleaseCheck]", of_frames)


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of columns, of which one may stand by itself."""
    return (names,) if isinstance(names, str) else tuple(names)


def is_path(data: object) -> bool:
    """Whether data are in a file."""
    return isinstance(data, str | os.PathLike)


def _file_of(name: str, data: Any, folder: str) -> str:
    """The file of a frame; a path stays as it is."""
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.parquet as pq

    if is_path(data):
        return data
    try:
        table = nw.from_native(data, eager_only=True)
    except TypeError:
        raise InputError(
            f"{name} must be the path of a CSV or Parquet file, or a pandas, polars or pyarrow "
            f"table; not {type(data).__name__}"
        ) from None
    require_text_names(table.columns)
    columns: dict[str, Any] = {}
    for column in table.columns:
        cells = encode_anything(table[column].to_native(), column)
        texts = np.array([*cells.texts, None], dtype=object)
        # Missing cells have the code -1, which is the last text.
        columns[column] = pa.array(texts[cells.codes], pa.string())
    path = str(Path(folder, name))
    pq.write_table(pa.table(columns), path)
    return path


def _without(folder: str, text: str) -> str:
    """A message that names the frame as the argument that it was."""
    return text.replace(f"{folder}{os.sep}", "")


@taking_frames
def check(
    channel: Channel,
    released: Any,
    *,
    original: Any = None,
    columns: Mapping[str, str] | None = None,
    released_columns: str | Sequence[str] | None = None,
    form: str | None = None,
    policy: Policy | None = None,
    level: float = checking.LEVEL,
    any_data: bool = False,
    keep_sensitive: bool = False,
    ignored: str | Sequence[str] = (),
    identity: str | Sequence[str] = (),
    correlated: str | Sequence[str] = (),
    escape_formulas: bool = False,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> checking.ReleaseCheck:
    """Check a released file against its channel, and against its original where that is at hand.

    Parameters
    ----------
    channel : Channel
        With or without its table. Of boxes the labels are compared, without given columns; of
        filled ones the rows.
    released : path or data frame
        CSV or Parquet. A frame has no manifest beside it.
    original : path or data frame, optional
        Not with boxes. Then rows, pairs of symbol and label, and all other columns are compared,
        and the frequencies of the labels are tested symbol by symbol.
    columns : mapping, optional
        The files' name of a column of the channel where it has another one there.
    released_columns : str or sequence of str, optional
        Names of the released columns where they were added under other names.
    form : 'label', 'posterior-draw', 'representative' or 'within', optional
        By default that of the manifest beside the file, if it is about this file, or else labels.
    policy : Policy, optional
        The job's policy for missing and unknown symbols. By default that of the manifest beside
        the file, if it is about this file, or else the one that the channel was designed with.
    level : float
        Probability of a false alarm about the frequencies of a faithful release.
    any_data : bool
        Without the original: accept any frequencies that the channel can give, not only those that
        follow from its table.
    keep_sensitive : bool
        Whether the sensitive columns may be in the released file.
    ignored : str or sequence of str
        Columns that are not compared: removed, or released by another channel.
    identity : str or sequence of str
        Columns that identify a record, where the job drew by them: records with the same identifier
        must have the same label, and count once. Takes about 150 bytes of memory for each
        identifier.
    correlated : str or sequence of str
        Further columns that must not be in the released file (unless `keep_sensitive`).
    escape_formulas : bool
        Whether the release has an apostrophe before texts that spreadsheets take for formulas.
    text : TextOptions, optional
        How CSV files are written: delimiter, quotes, encoding.
    advance : callable, optional
        Called with the number of further records that are checked, for progress.

    Raises
    ------
    InputError
        If a file cannot be read, a column is not there, or the original has a symbol that the
        channel does not know.
    NotPrivate
        If the channel has its table, which disproves its promise.
    """
    require_channel("channel", channel)
    ignored, identity, correlated = map(_several, (ignored, identity, correlated))
    if released_columns is not None:
        released_columns = _several(released_columns)
    # A draw of a channel that breaks its promise must not be called plausible.
    refuse_broken(channel)
    if channel.fills:
        labels = reader_of(channel, channel.row_law)
    else:
        labels = channel.single()
    if original is not None and labels is not channel:
        # Symbols of boxes are in no file.
        raise InputError(_ALONE_OF_ROWS if channel.fills else _ALONE_OF_LABELS)
    facts = facts_of_release(released, channel)
    if form is None:
        form = LABEL if facts is None else facts.form
    if policy is None and facts is not None:
        policy = facts.policy
    if policy is None:
        policy = Policy.recorded(labels.record.rules)
    manifest, of_manifest = _judged_manifest(released, channel, text)
    level = checking.check_chance(level)
    # With None no column is private, not even a sensitive one; `()` keeps those of the channel.
    hidden: Sequence[str] | None = correlated
    if keep_sensitive:
        hidden = None
    file = released_file(
        labels,
        released,
        columns,
        released_columns,
        form,
        hidden,
        ignored=tuple(ignored),
        identity=tuple(identity),
        escaped=escape_formulas,
        text=text,
        advance=advance,
    )
    if channel.fills:
        check = check_filled(
            channel, channel.row_law, file, level=level, any_data=any_data
        )
    else:
        check = _check_symbols(
            file,
            labels,
            form,
            level=level,
            original=original,
            policy=policy,
            # The table of the labels of boxes lacks the slice, which is released as well.
            any_data=any_data or labels is not channel,
            # Records in random order cannot be paired with those of the original.
            shuffled=manifest is not None and manifest.shuffled,
            keeps_changed=facts is not None and facts.keeps_changed,
        )
    # A release in random order fails every comparison of records, however faithful it is.
    if original is not None and not check.plausible and manifest is None:
        check = replace(check, notices=(_IN_ORDER, *check.notices))
    return _with_what_is_stated(check, labels, of_manifest)


def _check_symbols(
    file: Released,
    channel: Channel,
    form: str,
    *,
    level: float,
    original: PathLike | None,
    policy: Policy,
    any_data: bool,
    shuffled: bool,
    keeps_changed: bool,
) -> checking.ReleaseCheck:
    """The check of a release of one column or of rows, beside its original where their records pair
    up.
    """
    # The records of the original need not be those of the channel's table, so the frequencies of
    # the table are not expected either.
    is_lost = original is not None and shuffled
    if is_lost:
        original = None
        any_data = True

    def checked(
        file: Released, original: PathLike | None, any_data: bool
    ) -> checking.ReleaseCheck:
        if is_wide(channel) and form == LABEL:
            return check_rows(
                channel,
                file,
                original=original,
                level=level,
                policy=policy,
                any_data=any_data,
            )
        law = _LabelLaw.of(channel, form, policy)
        if original is None:
            return _check_alone(file, law, level, any_data)
        return _check_beside(file, law, level, original, channel.useful)

    check = checked(file, original, any_data)
    if original is not None and keeps_changed and not check.plausible:
        # The progress has counted the records already.
        again = replace(file, advance=None)
        check = _with_kept_records(check, checked(again, None, any_data=True))
    if is_lost:
        check = replace(check, notices=(_SHUFFLED, *check.notices))
    return check


def _with_kept_records(
    beside: checking.ReleaseCheck, alone: checking.ReleaseCheck
) -> checking.ReleaseCheck:
    """The check beside the original of a release in which some records keep what was released for
    an earlier symbol, which nobody can tell from a wrong draw: frequencies are those of `alone`.
    """
    others = ""
    rest: list[checking.Finding] = []
    for finding in beside.findings:
        if finding.kind == checking.PAIR:
            have = "record has" if finding.records == 1 else "records have"
            others = _KEPT_OTHERS.format(f"{finding.records:,} {have}")
        else:
            rest.append(finding)
    notices = (_KEPT.format(others), *alone.notices)
    return replace(alone, findings=tuple(rest), notices=notices)


def _with_what_is_stated(
    check: checking.ReleaseCheck, channel: Channel, of_manifest: ManifestVerdict
) -> checking.ReleaseCheck:
    """The check with what the manifest and the channel leave unproven, or disprove."""
    check = replace(check, notices=(*of_manifest.stated, *check.notices))
    if of_manifest.fault is not None:
        false = checking.Finding("manifest", _FALSE.format(of_manifest.fault))
        check = replace(check, findings=(*check.findings, false))
    if channel.useful.people is not None:
        notices = (*check.notices, _ALONE)
        check = replace(check, unit=checking.PERSON, notices=notices)
    # A notice and no finding: the release may be faultless, only this cannot be seen from here.
    if channel.sensitive is None:
        check = replace(check, notices=(_NO_SENSITIVE, *check.notices))
    return check


def _judged_manifest(
    released: PathLike, channel: Channel, text: TextOptions | None
) -> tuple[PublicManifest | InternalManifest | None, ManifestVerdict]:
    """The manifest beside a release, if it is about this very file; what of it holds, and why it is
    not used, if it is not.

    A manifest is a statement: what it promises is compared with the channel, which proves it.
    """
    path = manifest_place(released)
    if not os.path.lexists(path):
        return None, ManifestVerdict()
    try:
        manifest = manifest_of_either_kind(path)
    except InputError as error:
        stated = f"the manifest beside it is not used: {error}"
        return None, ManifestVerdict(stated=(stated,))
    # The digest ties the manifest to the file: a stale one must not change the check.
    if not has_sha256(released, manifest.output):
        return None, ManifestVerdict(stated=(_OTHER_MANIFEST,))
    if column_of(manifest, channel) is None:
        return manifest, ManifestVerdict(stated=(_NO_RELEASE,))
    with open_source(released, text and text.of_output) as source:
        header = source.header
    named = set(manifest.columns)
    unnamed = [name for name in header if name not in named]
    # People, and the places of their records, are numbered anew; no manifest names these columns.
    people = channel.people
    numbered = 0
    if people is not None:
        numbered = 1 if people.wave is None else 2
    is_true = len(header) - len(unnamed) == len(manifest.columns)
    if not is_true or len(unnamed) > numbered:
        return manifest, ManifestVerdict(_OTHER_COLUMNS)
    return manifest, judge_manifest(manifest, channel)


def _check_beside(
    file: Released,
    law: _LabelLaw,
    level: float,
    original: PathLike,
    useful: Variable,
) -> checking.ReleaseCheck:
    """The check of a release against its original, record by record."""
    # Masses are integers over a denominator, so what the channel never gives is exactly zero.
    possible = law.rows > 0.0
    counted = counting.count_pairs(
        file, original, useful, possible, law.policy, law.nearest
    )
    test = checking.check_pairs(law.symbols, law.rows, counted.counts, level)
    notices: tuple[str, ...] = ()
    # Such a file has all of its counts set to zero, and the test of nothing is passed.
    if any(finding.kind == "rows" for finding in counted.findings):
        notices = (_NOT_PAIRED,)
    return checking.ReleaseCheck(counted.records, counted.findings, test, None, notices)


def _check_alone(
    file: Released, law: _LabelLaw, level: float, any_data: bool
) -> checking.ReleaseCheck:
    """The check of a release without its original."""
    counted = counting.count_release(file)
    # Without symbols there is one row of counts.
    test, also, notices = _tested_labels(law, counted.counts[0], level, any_data)
    return checking.ReleaseCheck(
        counted.records, counted.findings, test, also, tuple(notices)
    )


def _tested_labels(
    law: _LabelLaw, counts: Counts, level: float, any_data: bool
) -> tuple[checking.FrequencyTest, checking.FrequencyTest | None, list[str]]:
    """The test of labels without their symbols, a second one for any data, and notices.

    The table predicts frequencies only where the channel has one and no record outside of the table
    gets a fixed label. Else the test for any data is the only one.
    """
    model = law.model
    any_test = checking.check_any_data(model.labels, law.possible_rows, counts, level)
    if any_data:
        return any_test, None, [_ANY_DATA]
    if model.prior is None:
        return any_test, None, [checking.PUBLIC_NOTICE, _ANY_DATA]
    # Nobody knows how many records are missing or unknown, so nobody knows how much a fixed label
    # is raised. Labels from the marginal P(y) leave the frequencies of the table as they are.
    if law.has_fixed_label:
        return any_test, None, [_FIXED, _ANY_DATA]
    table_test = checking.check_table(model.labels, model.reference, counts, level)
    return table_test, any_test, [checking.TABLE_NOTICE]


@dataclass(frozen=True)
class _LabelLaw:
    """The law of a released label given its symbol, under a channel and a policy.

    `rows` has a row for each symbol of the channel, then those of a missing and an unknown symbol.
    """

    model: ReleaseModel
    policy: Policy
    rows: Array
    nearest: NearestRows | None

    @classmethod
    def of(cls, channel: Channel, form: str, policy: Policy) -> _LabelLaw:
        """The law of a channel in one form of its release: labels, or draws from posteriors."""
        model = release_model(channel, form)
        missing = law_of_rule(channel, form, "missing", policy.missing)
        unknown = law_of_rule(channel, form, "unknown", policy.unknown)
        rows = np.vstack([model.matrix, missing, unknown])
        return cls(model, policy, rows, NearestRows.of(channel, policy))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the rows."""
        return (*self.model.symbols, "(missing)", "(unknown)")

    @property
    def possible_rows(self) -> Array:
        """The rows of all symbols that are released: a row of zeros is of one that is refused."""
        return self.rows[self.rows.any(axis=1)]

    @property
    def has_fixed_label(self) -> bool:
        """Whether a missing or unknown symbol always gets the same label."""
        rules = (self.policy.missing, self.policy.unknown)
        return any(rule.startswith(OUTPUT) for rule in rules)
