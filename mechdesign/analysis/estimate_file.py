"""Estimates from a released file, counted in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from mechdesign.analysis.check_file import columns_and_labels
from mechdesign.analysis.counting import Advance, Columns, count_release, slices, symbol_codes
from mechdesign.analysis.frequencies import Frequencies, Method, Target, estimate_frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies, estimate_joint
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.tables.variable import Variable


def estimate_file(
    released: PathLike,
    channel: Channel,
    *,
    method: str = "unbiased",
    level: float = 0.95,
    target: str = "population",
    by: str | None = None,
    columns: Mapping[str, str] | None = None,
    released_columns: Sequence[str] | None = None,
    form: str = "label",
    identity: Sequence[str] = (),
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> Frequencies | JointFrequencies:
    """Estimate the frequencies of the useful column of a released CSV or Parquet file."""
    where, labels = columns_and_labels(channel, dict(columns or {}), released_columns, form)
    if by is not None and identity:
        raise InputError("joint frequencies (--by) count every record: leave the identity (--identity) out")
    where = replace(where, identity=tuple(identity))
    how, what = cast("Method", method), cast("Target", target)
    if by is not None:
        if by in where.released:
            raise InputError(f"--by {by!r} is the released column itself; name a column that was kept")
        crossed = _crossed(released, labels, where, by, text, advance)
        return estimate_joint(channel, crossed, method=how, level=level, target=what, form=form)
    counted = count_release(released, labels, where, text=text, advance=advance)
    wrong = [finding for finding in counted.findings if finding.kind in ("label", "identity")]
    if wrong:
        raise InputError(wrong[0].text)
    counts = dict(zip(labels.names, counted.labels.tolist(), strict=True))
    return estimate_frequencies(channel, counts, method=how, level=level, target=what, form=form)


def _crossed(
    released: PathLike,
    labels: Variable,
    columns: Columns,
    by: str,
    text: TextOptions | None,
    advance: Advance | None = None,
) -> dict[tuple[str, str], int]:
    """Records of each label and value of a kept column; a missing value is the empty text."""
    total: dict[tuple[str, str], int] = {}
    with open_source(released, text) as table:
        records = 0
        for batch in slices(table, [*columns.released, by]):
            codes = symbol_codes(table, batch.cells(columns.released), labels, records)
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
