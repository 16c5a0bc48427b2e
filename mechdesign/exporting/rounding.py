"""Rows with sums of their own, rounded to the sum 2^53 of exported draws, and judged again.

A channel that keeps the law of its table may have the row sums c_x 2^40 (`Channel.totals`). A draw
of 53 bits has the denominator 2^53, so the integers of every row are brought to it: rounded down,
but not to 0, and what is missing goes to the largest one. No probability moves by more than the
number of its row's outputs times 2^-53. The promise is then decided again, exactly, for the rounded
channel.

For example, over 8 the row (1, 1, 1) with the sum 3 becomes (2, 2, 2), and then (4, 2, 2).
"""

from __future__ import annotations

from dataclasses import replace

from mechdesign.auditing.stated import keeps_promise, refuse_broken
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.integers import IntegerRows

FREE = "design it with free frequencies (--free-frequencies)"
"""The way to a channel whose rows all have the sum 2^53."""


def with_one_sum(channel: Channel) -> Channel:
    """The channel with rows of the sum 2^53; the same one where rows have no sums of their own.

    Raises
    ------
    InputError
        If nothing in the file can judge the rounded channel again.
    NotPrivate
        If the rounded channel does not keep the promise.
    """
    if channel.totals is None:
        return channel
    if channel.joint is None:
        raise InputError(
            "export rounds the rows of this channel, whose sums differ, and without its table it "
            "cannot judge them again: export the channel file that has the table"
        )
    if channel.record.after:
        raise InputError(
            "export rounds the rows of this channel, whose sums differ, and without the earlier "
            f"channels it cannot judge them again: {FREE}"
        )
    # A broken channel is refused as such, and not for its rounding.
    refuse_broken(channel)
    columns = len(channel.outputs)
    rows: list[list[int]] = []
    own_sums = zip(channel.integers.entries(), channel.row_totals, strict=True)
    for entries, total in own_sums:
        integers = _rounded([entry for _, entry in entries], total)
        row: list[int] = []
        for (output, _), integer in zip(entries, integers, strict=True):
            row += [output, integer]
        rows.append(row)
    rounded = replace(
        channel,
        rows=IntegerRows.of_pairs(rows, columns),
        denominator=DENOMINATOR,
        totals=None,
    )
    if keeps_promise(rounded) is False:
        raise NotPrivate(
            "the rows of this channel, whose sums differ, break the promise when they are rounded "
            f"to the sum 2^53 that export needs: {FREE}"
        )
    return rounded


def _rounded(entries: list[int], total: int) -> list[int]:
    """Positive integers with the sum 2^53, in proportion to positive ones with the sum `total`."""
    # What can occur must go on to occur: a lift may rest on the smallest entry.
    integers = [max(entry * DENOMINATOR // total, 1) for entry in entries]
    largest = max(range(len(integers)), key=lambda place: integers[place])
    integers[largest] += DENOMINATOR - sum(integers)
    return integers
