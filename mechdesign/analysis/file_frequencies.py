"""Frequencies estimated from a released file.

The labels of the file are counted in one pass; counts are all that the estimators need.
`estimate_file` hands them to `frequencies` or, crossed with a column that was kept, to
`joint_frequencies`. For example, 60 records with the label A and 40 with B are the counts {"A": 60,
"B": 40}; crossed they are {("A", "yes"): 25, ("A", "no"): 35, ("B", "yes"): 40}. A label that the
channel cannot give is an error here: no estimate would be right then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.analysis import counting
from mechdesign.analysis.frequencies import (
    Frequencies,
    estimate_frequencies,
)
from mechdesign.analysis.joint_frequencies import JointFrequencies, estimate_joint
from mechdesign.analysis.release_facts import counted_otherwise, facts_of_release
from mechdesign.analysis.released_table import (
    Advance,
    Released,
    cells_of,
    released_file,
    slices,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.column_names import require_columns
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.release.samplers import Policy

NO_MANIFEST = (
    "no valid manifest of it says whether draws stand in place of empty or unknown cells; if so, "
    "say which (--missing, --unknown), because the estimates take every label for that of a known "
    "symbol"
)


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
    advance: Advance | None = None,
    policy: Policy | None = None,
    manifest: PathLike | None = None,
    missing_share: float | None = None,
    unknown_share: float | None = None,
    **settings: Any,
) -> Frequencies | JointFrequencies:
    """Estimate frequencies of a released file.

    The `settings` are those of `estimate_frequencies`; with `by`, a kept column, those of
    `estimate_joint`. Without a `policy`, what was released for cells without a symbol is looked up
    in the manifest: the one named, or the one beside the file. A notice says so if it is unknown.
    Of boxes the frequencies are those of the boxes themselves.
    """
    labels = channel.single()
    # The manifest names the whole channel, of which that of the labels is a part.
    facts = facts_of_release(released, channel, manifest)
    shares = (missing_share, unknown_share)
    notices: tuple[str, ...] = ()
    if policy is None and facts is not None:
        policy = facts.policy
    # A manifest counts records, and with an identity each identifier counts once here.
    if facts is not None and not identity:
        shares = (
            facts.shares[0] if missing_share is None else missing_share,
            facts.shares[1] if unknown_share is None else unknown_share,
        )
    if policy is None:
        policy = Policy.recorded(channel.record.rules)
        if policy.lets_nothing_through:
            notices = (NO_MANIFEST,)
    keeps_changed = facts is not None and facts.keeps_changed
    notices = (*notices, *counted_otherwise(policy, keeps_changed=keeps_changed))
    file = released_file(
        labels,
        released,
        columns,
        released_columns,
        form,
        identity=tuple(identity),
        escaped=escape_formulas,
        text=text,
        advance=advance,
    )
    if by is not None:
        if identity:
            raise InputError(
                "joint frequencies (--by) count every record: leave the identity (--identity) out"
            )
        if by in file.columns:
            raise InputError(
                f"--by {by!r} is the released column itself; name a column that was kept"
            )
        if not policy.lets_nothing_through:
            raise InputError(
                "joint frequencies (--by) need a symbol in every record, and this release has "
                "draws in place of empty or unknown cells, whose share may differ from value to "
                "value: leave --by out"
            )
        joint = estimate_joint(labels, _crossed(file, by), form=form, **settings)
        return replace(joint, notices=(*joint.notices, *notices))
    counted = counting.counts_by_label(file)
    counts = dict(zip(file.labels.names, counted.tolist(), strict=True))
    estimated = estimate_frequencies(
        labels,
        counts,
        form=form,
        policy=policy,
        missing_share=shares[0],
        unknown_share=shares[1],
        **settings,
    )
    return replace(estimated, notices=(*estimated.notices, *notices))


def _check_kept(by: str, header: Sequence[str]) -> None:
    """Refuse several columns in one name, and say which of them the file does not have."""
    # Where the file has a column of that name, its comma separates nothing.
    parts = by.split(",")
    if by in header or len(parts) == 1:
        return
    require_columns(parts, header)
    raise InputError(
        f"--by {by!r} names {len(parts)} columns, and joint frequencies with a released column are "
        "those with one kept column: name one of them, or join them in one column of the table "
        "before it is released"
    )


def _crossed(file: Released, by: str) -> dict[tuple[str, str], int]:
    """Records of each label and value of a kept column; a missing value is the empty text."""
    total: dict[tuple[str, str], int] = {}
    # Of the batches before, for the place of a wrong label in an error.
    records = 0
    with open_source(file.path, file.text) as table:
        written = file.written(table)
        _check_kept(by, table.header)
        for batch in slices(table, [*file.columns, by]):
            cells = cells_of(batch, file.columns)
            codes = counting.symbol_codes(table, cells, written, records)
            (kept,) = cells_of(batch, (by,))
            # The code -1 of a missing value becomes the last one.
            texts = [*kept.texts, ""]
            values = np.where(kept.codes < 0, len(texts) - 1, kept.codes)
            # One number for each pair of a label and a value. Codes of values are those of the
            # batch, so pairs are added up by their texts.
            pairs, times = np.unique(codes * len(texts) + values, return_counts=True)
            for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
                label, value = divmod(pair, len(texts))
                key = (file.labels.names[label], texts[value])
                total[key] = total.get(key, 0) + count
            records += len(codes)
            if file.advance is not None:
                file.advance(len(codes))
    return total
