"""Released files against their channel: is one a plausible draw, and what does it tell? Each is read once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import checking, counting
from mechdesign.analysis.frequencies import Frequencies, estimate_frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies, estimate_joint
from mechdesign.analysis.model import ReleaseModel, release_model
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, expected
from mechdesign.core.files import PathLike, holds
from mechdesign.core.numbers import listed, quoted
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.release.binned import LABEL, by_output, released_variable
from mechdesign.release.policies import MARGINAL, OUTPUT, REFUSE, Policy, normalised
from mechdesign.sanitise.manifest import read_manifest
from mechdesign.tables.variable import Variable

Array = NDArray[np.float64]


def check_release(
    channel: Channel | PathLike,
    released: PathLike | Channel,
    *,
    original: PathLike | None = None,
    columns: Mapping[str, str] | None = None,
    released_columns: Sequence[str] | None = None,
    form: str = "label",
    policy: Policy | None = None,
    level: float = checking.LEVEL,
    any_data: bool = False,
    keep_sensitive: bool = False,
    ignored: Sequence[str] = (),
    identity: Sequence[str] = (),
    correlated: Sequence[str] = (),
    escape_formulas: bool = False,
    text: TextOptions | None = None,
    advance: counting.Advance | None = None,
) -> checking.ReleaseCheck:
    """Check a released file against its channel, and against its original where that is at hand.

    Parameters
    ----------
    channel : Channel
        With or without its table.
    released : path
        CSV or Parquet.
    original : path, optional
        Then rows, pairs of symbol and label, and all other columns are compared, and the frequencies of the labels
        are tested symbol by symbol.
    columns : mapping, optional
        The files' name of a column of the channel where it has another one there.
    released_columns : sequence of str, optional
        Names of the released columns where they were added under other names.
    form : 'label' or 'posterior-draw'
    policy : Policy, optional
        What the job published for missing and unknown symbols.
    level : float
        Chance that a faithful release is called implausible for its frequencies.
    any_data : bool
        Without the original: do not expect the frequencies of the channel's table, only some that the channel can give.
    keep_sensitive : bool
        Whether the sensitive columns may be in the released file.
    ignored : sequence of str
        Columns that are not compared: removed, or released by another channel.
    identity : sequence of str
        Columns that identify a record, where the job drew by them: records with the same identifier must have the same
        label, and count once. Takes about 150 bytes of memory for each identifier.
    correlated : sequence of str
        Further columns that must not be in the released file (unless `keep_sensitive`).
    escape_formulas : bool
        Whether the release was written with an apostrophe before what spreadsheets take for a formula.
    text : TextOptions, optional
        How CSV files are written: delimiter, quotes, encoding.
    advance : callable, optional
        Called with the number of further records that are checked, for progress.

    Raises
    ------
    InputError
        If a file cannot be read, a column is not there, or the original has a symbol that the channel does not know.
    """
    channel, released = _in_order(channel, released)
    level = checking.check_chance(level)
    policy, names = policy or Policy(), dict(columns or {})
    where, labels = columns_and_labels(channel, names, released_columns, form, keep_sensitive, ignored)
    private = () if keep_sensitive else (*where.private, *correlated)
    where = replace(where, identity=tuple(identity), private=private, escaped=escape_formulas)
    model = release_model(channel, form)
    extra = _policy_rows(channel, model, policy, form)
    notices = [] if channel.sensitive is not None else [_NO_SENSITIVE]
    if original is not None and _is_shuffled(released):
        original, any_data, notices = None, True, [*notices, _SHUFFLED]
    how: dict[str, Any] = {"text": text, "advance": advance}
    if original is None:
        counted = counting.count_release(released, labels, where, **how)
        test, also, more = _tested_labels(model, extra, policy, counted, level, any_data)
    else:
        rows, also = np.vstack([model.matrix, *extra]), None
        useful = replace(normalised(channel.useful, policy.normalise), columns=where.useful)
        how |= {"refused": (policy.null == REFUSE, policy.unknown == REFUSE), "normalise": policy.normalise}
        counted = counting.count_pairs(original, released, useful, labels, rows > 0.0, where, **how)
        # Where the files have no records in common, the labels of no symbol are tested.
        pairs = np.zeros(rows.shape, dtype=np.int64) if counted.pairs is None else counted.pairs
        test = checking.check_pairs((*model.symbols, "(missing)", "(unknown)"), rows, pairs, level)
        more = [_NOT_PAIRED] if counted.pairs is None else []
    return checking.ReleaseCheck(counted.records, counted.findings, test, also, (*notices, *more))


def _is_shuffled(released: PathLike) -> bool:
    """Whether the manifest beside a release says that its records are in random order."""
    with suppress(InputError):
        told = read_manifest(f"{os.fspath(released)}.manifest.json", "public")
        return told.shuffled and holds(released, told.output)
    return False


def _in_order(first: object, second: object) -> tuple[Channel, PathLike]:
    """The channel and the path, which older versions took in the other order."""
    channel, path = (second, first) if isinstance(second, Channel) else (first, second)
    expected("channel", channel, Channel)
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"released must be the path of a CSV or Parquet file, not {type(path).__name__}")
    return cast("Channel", channel), cast("PathLike", path)


def columns_and_labels(
    channel: Channel,
    names: Mapping[str, str],
    released_columns: Sequence[str] | None = None,
    form: str = "label",
    keep_sensitive: bool = False,
    ignored: Sequence[str] = (),
) -> tuple[counting.Columns, Variable]:
    """Where things stand in the files, and what the released columns can hold; as in `check_release`."""
    sensitive = channel.sensitive.columns if channel.sensitive is not None else ()
    known = [*channel.useful.columns, *sensitive]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"the channel has no column {listed(unknown)} to rename (it has {listed(known)})")
    useful = tuple(names.get(name, name) for name in channel.useful.columns)
    usual = (",".join(useful),) if form == LABEL else useful
    published = usual if released_columns is None else tuple(released_columns)
    if len(published) != len(usual):
        raise InputError(f"the channel releases {len(usual)} column(s), not {listed(list(published))}")
    private = () if keep_sensitive else tuple(names.get(name, name) for name in sensitive)
    labels = replace(released_variable(channel, form), columns=published)
    where = counting.Columns(useful=useful, released=published, private=private, ignored=tuple(ignored))
    return where, labels


def _policy_rows(channel: Channel, model: ReleaseModel, policy: Policy, form: str) -> list[Array]:
    """Chances of the labels for a missing and for an unknown symbol; none where these are refused."""
    rows: list[Array] = []
    for name, rule in (("null", policy.null), ("unknown", policy.unknown)):
        if rule == REFUSE:
            rows.append(np.zeros(len(model.labels)))
            continue
        if rule == MARGINAL:
            if channel.joint is None:
                raise InputError(f"{name}=marginal needs the channel's table, which no public channel has")
            row: Array = channel.output_masses
        else:
            label = rule.removeprefix(OUTPUT)
            if label not in channel.outputs:
                raise InputError(f"{name}={rule}: {quoted(label)} is no output of the channel")
            row = np.array([float(output == label) for output in channel.outputs])
        rows.append(row if form == LABEL else row @ by_output(channel, form))
    return rows


def _tested_labels(
    model: ReleaseModel,
    extra: list[Array],
    policy: Policy,
    counted: counting.CountedFile,
    level: float,
    any_data: bool,
) -> tuple[checking.FrequencyTest, checking.FrequencyTest | None, list[str]]:
    fixed = [rule for rule in (policy.null, policy.unknown) if rule.startswith(OUTPUT)]
    reachable = np.vstack([model.matrix, *(row for row in extra if row.any())])
    anything = checking.check_any_data(model.labels, reachable, counted.labels, level)
    if any_data:
        return anything, None, [_ANY_DATA]
    if model.prior is None or fixed:
        return anything, None, [_PUBLIC if model.prior is None else _FIXED, _ANY_DATA]
    return checking.check_table(model.labels, model.reference, counted.labels, level), anything, [_TABLE]


_NO_SENSITIVE = "the channel does not say which columns are sensitive: see that none is in the file"
_SHUFFLED = "its manifest says that the records are in random order: it is checked without the original"
_NOT_PAIRED = "the records do not match those of the original, so frequencies were not tested"
_TABLE = (
    "without the original the frequencies are compared with those that the channel's own table predicts; data of "
    "another origin may differ from them (--any-data)"
)
_ANY_DATA = (
    "without original and table only what no frequencies of the useful column could give is found; a wrong channel "
    "may pass"
)
_PUBLIC = "a public channel carries no table, so there are no expected frequencies"
_FIXED = "a fixed label for missing or unknown symbols has no expected frequency without the original"


def estimate_file(
    released: PathLike,
    channel: Channel,
    *,
    by: str | None = None,
    columns: Mapping[str, str] | None = None,
    released_columns: Sequence[str] | None = None,
    form: str = "label",
    identity: Sequence[str] = (),
    escape_formulas: bool = False,
    text: TextOptions | None = None,
    advance: counting.Advance | None = None,
    **how: Any,
) -> Frequencies | JointFrequencies:
    """Estimate the frequencies of the useful column of a released CSV or Parquet file.

    `how` is what `estimate_frequencies` takes besides; with `by`, `estimate_joint`.
    """
    where, labels = columns_and_labels(channel, dict(columns or {}), released_columns, form)
    if by is not None and identity:
        raise InputError("joint frequencies (--by) count every record: leave the identity (--identity) out")
    where = replace(where, identity=tuple(identity), escaped=escape_formulas)
    if by is not None:
        if by in where.released:
            raise InputError(f"--by {by!r} is the released column itself; name a column that was kept")
        crossed = _crossed(released, labels, where, by, text, advance)
        return estimate_joint(channel, crossed, form=form, **how)
    counted = counting.count_release(released, labels, where, text=text, advance=advance)
    wrong = [finding for finding in counted.findings if finding.kind in ("label", "identity")]
    if wrong:
        raise InputError(wrong[0].text)
    counts = dict(zip(labels.names, counted.labels.tolist(), strict=True))
    return estimate_frequencies(channel, counts, form=form, **how)


def _crossed(
    released: PathLike,
    labels: Variable,
    columns: counting.Columns,
    by: str,
    text: TextOptions | None,
    advance: counting.Advance | None = None,
) -> dict[tuple[str, str], int]:
    """Records of each label and value of a kept column; a missing value is the empty text."""
    total: dict[tuple[str, str], int] = {}
    with open_source(released, text) as table:
        records, written = 0, columns.written(labels, table)
        for batch in counting.slices(table, [*columns.released, by]):
            codes = counting.symbol_codes(table, batch.cells(columns.released), written, records)
            (kept,) = batch.cells((by,))
            texts = [*kept.texts, ""]
            flat = codes * len(texts) + np.where(kept.codes < 0, len(texts) - 1, kept.codes)
            seen, times = np.unique(flat, return_counts=True)
            for pair, n in zip(seen.tolist(), times.tolist(), strict=True):
                key = labels.names[pair // len(texts)], texts[pair % len(texts)]
                total[key] = total.get(key, 0) + n
            records += len(codes)
            if advance is not None:
                advance(len(codes))
    return total
