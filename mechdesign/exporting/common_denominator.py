"""A channel whose rows have sums of their own, with the one denominator 2^53 that a hash can draw.

A channel that keeps the law of its table has the sum c_x 2^40 in the row of c_x records. Statements
compare 53 bits of a hash with integers below 2^53, so its rows are rounded to that sum, and what
comes of it is judged anew: a promise is of the integers that are drawn.

For example, the row (2, 1) of the sum 3 becomes (6004799503160662, 3002399751580330), which are 2/3
and 1/3 to within 2^-53.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.auditing.verdict import audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.integers import IntegerRows


def over_one_denominator(channel: Channel) -> Channel:
    """The channel itself, or with its rows rounded to the sum 2^53 and verified exactly.

    Raises
    ------
    InputError
        If the channel has neither the denominator 2^53 nor its table, on which it is verified.
    NotPrivate
        If the rounded integers break the promise.
    """
    if channel.totals is None:
        if channel.denominator != DENOMINATOR:
            raise InputError(
                "export needs a channel with the denominator 2^53, as `design` makes them; this "
                f"one has {channel.denominator}"
            )
        return channel
    notion = channel.record.promise(channel.sensitive)
    if channel.joint is None or notion is None:
        raise InputError(
            "export rounds the rows of a channel that keeps the law of its table, and proves the "
            "promise anew: give the file as `design` wrote it, with its table, not the public one"
        )
    if channel.record.after:
        raise InputError(
            "export rounds the rows of a channel that keeps the law of its table, and its promise "
            "counts earlier releases, whose channels are not at hand: release with apply"
        )
    rounded = replace(
        channel, rows=_rounded(channel), denominator=DENOMINATOR, totals=None
    )
    if not audit(rounded, channel.joint, notion).satisfied:
        raise NotPrivate(
            "rounded to the denominator 2^53, the probabilities of this channel break its promise: "
            "release with apply, or design with a larger budget"
        )
    return rounded


def _rounded(channel: Channel) -> IntegerRows:
    """The rows over 2^53, rounded downwards; the largest entry of each takes what is left."""
    integers = channel.integers
    scaled: list[int] = []
    for entries, total in zip(integers.entries(), channel.row_totals, strict=True):
        row = [entry * DENOMINATOR // total for _, entry in entries]
        row[row.index(max(row))] += DENOMINATOR - sum(row)
        scaled += row
    values = np.array(scaled, dtype=np.int64)
    positive = values > 0
    kept = np.concatenate([[0], np.cumsum(positive)])
    return IntegerRows(
        integers.shape,
        kept[integers.indptr],
        integers.indices[positive],
        values[positive],
    )
