"""The check of a released file of rows, without a table of all rows by all rows.

A channel of many rows has a few outputs for each input, and thousands of inputs. So the counts of
the file are kept for the pairs that occur, and the law of the channel for those that can:

- Alone, the released rows are counted and compared with the P(y) that the table predicts. A row
  that the channel never releases is a finding.
- Beside its original the pairs of a true and a released row are counted. A pair that the channel
  never makes is a finding; the counts of each true row are tested against its row of the channel.

Filled boxes (`check_filled`) release rows of the table, too. Whatever records were released, the
rows that fill a box are drawn as often as its table has them there, so they are tested in each box
by itself. How often each box is filled follows from the table, and so do the shares of all rows.

Records that were drawn with fixed counts deviate less than independent ones, so no faithful file of
them is called implausible more often than the level says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.analysis import checking
from mechdesign.analysis.checking import PAIR, Counts
from mechdesign.analysis.counting import (
    CountedFile,
    Counting,
    count_release,
    pairs,
    symbol_codes,
)
from mechdesign.analysis.released_table import (
    Released,
    cells_of,
    common_columns,
    first_difference,
    slices,
)
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_law import RowLaw
from mechdesign.core.files import PathLike
from mechdesign.core.integers import NOWHERE, Integers, places_in
from mechdesign.core.wording import quoted
from mechdesign.release.coding import NearestRows
from mechdesign.release.samplers import Policy, normalised, normalised_cells

WIDE = 1 << 20
"""Inputs times outputs from which a file is checked here: a dense table of them, of which the other
check holds several, would take 8 MB."""

NO_TABLE = (
    "the channel is public: rows that it can release are told from others, and no frequencies are "
    "tested"
)


def is_wide(channel: Channel) -> bool:
    """True for a channel whose dense table of inputs by outputs would be large."""
    return len(channel.useful) * len(channel.outputs) > WIDE


def check_rows(
    channel: Channel,
    file: Released,
    *,
    original: PathLike | None,
    level: float,
    policy: Policy,
    any_data: bool,
) -> checking.ReleaseCheck:
    """Check a released file of rows, beside its original where that is given.

    Raises
    ------
    InputError
        If a file cannot be read, or the original has a row that the channel does not know.
    """
    if original is not None:
        counted, times = _count_pairs(channel, file, original, policy)
        test = checking.check_rows_of(_rows_of(channel, times), level)
        return checking.ReleaseCheck(counted.records, counted.findings, test, None, ())
    counted = count_release(file)
    counts = counted.counts[0]
    if any_data or channel.joint is None:
        notice = NO_TABLE if channel.joint is None else _ANY_DATA
        test = checking.FrequencyTest("any data", 1.0, level, (), int(counts.sum()), {})
        return checking.ReleaseCheck(
            counted.records, counted.findings, test, None, (notice,)
        )
    test = checking.check_table(file.labels.names, channel.output_masses, counts, level)
    return checking.ReleaseCheck(
        counted.records, counted.findings, test, None, (checking.TABLE_NOTICE,)
    )


_ANY_DATA = (
    "without the original only rows that the channel never releases are found; a wrong channel may "
    "pass"
)


def check_filled(
    channel: Channel,
    law: RowLaw,
    file: Released,
    *,
    level: float,
    any_data: bool,
) -> checking.ReleaseCheck:
    """Check a released file of filled boxes, whose rows have the law `law`."""
    counted = count_release(file)
    # What is written where nothing is released stands last, and is no draw.
    counts = counted.counts[0][: len(law.outputs)]
    # The rows of the law are those of the boxes, one box after the other.
    rows: list[tuple[str, checking.Array, Counts]] = []
    first = 0
    for part in channel.parts:
        if part.channel is None:
            continue
        for text, filling in zip(
            channel.boxed.coder.box_texts(part.boxes), part.fill, strict=True
        ):
            shares = np.array([records for *_, records in filling], dtype=np.float64)
            rows.append((text, shares, counts[first : first + len(filling)]))
            first += len(filling)
    within = replace(checking.check_rows_of(rows, level), against="any data")
    if any_data:
        return checking.ReleaseCheck(
            counted.records, counted.findings, within, None, (_ANY_BOXES,)
        )
    names = file.labels.names[: len(counts)]
    test = checking.check_table(names, law.expected, counts, level)
    return checking.ReleaseCheck(
        counted.records, counted.findings, test, within, (checking.TABLE_NOTICE,)
    )


_ANY_BOXES = (
    "rows are tested within their boxes, whose own frequencies depend on the data"
)


class _Pairs:
    """The pairs of an input and an output of a channel that can occur, as ascending numbers."""

    def __init__(self, channel: Channel) -> None:
        integers = channel.integers
        self.width = len(channel.outputs)
        # Rows are stored one after the other, each with ascending outputs.
        self.numbers = integers.row_of * self.width + integers.indices

    def places(self, xs: Integers, ys: Integers) -> Integers:
        """The place of each pair, `NOWHERE` where the channel never makes it."""
        return places_in(self.numbers, xs * self.width + ys)


def _count_pairs(
    channel: Channel, file: Released, original: PathLike, policy: Policy
) -> tuple[CountedFile, Integers]:
    """What is impossible in a release beside its original, and the counts of all possible pairs."""
    useful = replace(normalised(channel.useful, policy.cell_form), columns=file.useful)
    possible = _Pairs(channel)
    nearest = NearestRows.of(channel, policy)
    times = np.zeros(len(possible.numbers), dtype=np.int64)
    with (
        file.opened(file.path, file.text_beside_original) as after,
        file.opened(original, file.text, policy.cell_form) as before,
    ):
        # The pairs are counted here; a table of all of them would be too large.
        counting = Counting(file, after, 1)
        common, findings = common_columns(before, after, file)
        loose = before.kind != after.kind
        olds = slices(before, file.useful, common)
        news = slices(after, file.columns, [*common, *file.identity])
        left = 0
        for old, new in pairs(olds, news):
            if old is None or new is None:
                rest: Any = new if old is None else old
                left += len(rest)
                continue
            ys = counting.label_codes(new)
            cells = normalised_cells(cells_of(old, file.useful), policy.cell_form)
            xs = symbol_codes(
                before,
                cells,
                useful,
                counting.records,
                policy,
                nearest,
                channel.given,
            )
            known = (ys >= 0) & (xs < len(useful))
            places = possible.places(xs[known], ys[known])
            wrong = np.flatnonzero(known)[places == NOWHERE]
            if wrong.size:
                counting.offend(
                    PAIR,
                    int(wrong[0]),
                    f"the channel never gives {quoted(file.labels.names[ys[wrong[0]]])} for "
                    f"{quoted(useful.names[xs[wrong[0]]])}",
                    len(wrong),
                )
            times += np.bincount(places[places >= 0], minlength=len(times))
            difference = first_difference(old, new, common, loose, file.escaped)
            if difference is not None:
                counting.offend(
                    "cells",
                    difference.position,
                    f"the column {quoted(difference.column)} differs from the original; a release "
                    "leaves other columns as they are",
                    1,
                )
            counting.add(new, np.zeros_like(ys), ys)
    findings += counting.offenders.values()
    if left:
        text = (
            f"{after.name} and its original differ by {left:,} records; a release has the same, "
            "in order"
        )
        findings.insert(0, checking.Finding("rows", text))
        # Pairs of records that do not belong together must not be tested.
        times[:] = 0
    counted = CountedFile(counting.records, counting.counts, tuple(findings))
    return counted, times


def _rows_of(
    channel: Channel, times: Integers
) -> Iterator[tuple[str, checking.Array, Counts]]:
    """For each true row its name, its probabilities and the counts of its outputs."""
    integers = channel.integers
    shares = channel.shares
    starts = integers.indptr.tolist()
    for x, name in enumerate(channel.useful.names):
        span = slice(starts[x], starts[x + 1])
        yield name, shares[span], times[span]
