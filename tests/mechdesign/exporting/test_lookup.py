"""The lookup table holds the integers of the channel file, and every input covers [0, 2^53)."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.exporting.lookup import lookup_of
from mechdesign.notions import to_record
from tests.cases.exported_draws import (
    ROW_OPTIONS,
    D,
    odd_channel,
    row_channel,
)


def intervals_of(lookup):
    rows = defaultdict(list)
    for entry in lookup.entries:
        rows[entry.inputs].append((entry.low, entry.high))
    return rows


def assert_covered(lookup):
    for intervals in intervals_of(lookup).values():
        assert intervals[0][0] == 0
        assert intervals[-1][1] == D
        for (_, end), (begin, _) in pairwise(intervals):
            assert end == begin
        assert all(low < high for low, high in intervals)


def test_intervals_are_the_integers_of_the_channel():
    channel = odd_channel()
    lookup = lookup_of(channel)
    assert_covered(lookup)
    lengths = {}
    for entry in lookup.entries:
        lengths[entry.inputs, entry.outputs] = entry.high - entry.low
    for symbol, row in zip(channel.useful.symbols, channel.rows, strict=True):
        for output, weight in zip(channel.outputs, row, strict=True):
            assert lengths.get((symbol, (output,)), 0) == weight


@pytest.mark.parametrize("kind", ROW_OPTIONS)
def test_intervals_have_the_law_of_the_row(kind):
    channel = row_channel(kind)
    lookup = lookup_of(channel)
    assert_covered(lookup)
    for symbol in channel.useful.symbols:
        row = dict(zip(channel.useful.columns, symbol, strict=True))
        exact = channel.distribution(row)
        lengths = {}
        for entry in lookup.entries:
            if entry.inputs == symbol:
                lengths[entry.outputs] = entry.high - entry.low
        assert set(lengths) == set(exact)
        for texts, share in exact.items():
            # Rows over other sums are rounded: the largest entry takes what the others left.
            assert abs(lengths[texts] - share * D) <= len(exact)
            assert channel.totals is not None or lengths[texts] == share * D


def test_the_csv_has_a_line_for_every_interval():
    channel = row_channel("information")
    lookup = lookup_of(channel)
    text = md.export(channel, "csv").text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == lookup.size
    heads = [name for name in lines[0] if name.startswith("input")]
    assert heads == ["input k", "input c", "input d", "input b"]
    heads = [name for name in lines[0] if name.startswith("output")]
    assert heads == ["output k", "output c,d,b"]
    last = lookup.entries[-1]
    assert lines[-1]["output c,d,b"] == last.outputs[1]
    assert int(lines[-1]["high"]) == last.high == D


def test_a_public_channel_has_the_same_lookup():
    """The lookup is of the probabilities alone: nothing of the table is in it."""
    channel = odd_channel()
    assert lookup_of(channel.public()) == lookup_of(channel)
    rows = row_channel("free")
    public = lookup_of(rows.public())
    assert lookup_of(rows).entries == public.entries


def test_the_law_of_a_table_is_exported_with_the_table_alone():
    """Rounded rows are judged anew, which a public channel does not allow."""
    with pytest.raises(
        md.InputError, match="export the channel file that has the table"
    ):
        md.export(row_channel("plain").public())


def test_rounded_rows_that_break_the_promise_are_refused():
    """One of many masses stands exactly on its limit, and the rounding moves it beyond."""
    joint = md.Joint.from_counts([[1, 2], [2, 1]])
    rows = ((1, 2), (4, 2))
    channel = md.Channel(
        joint.useful, ("p", "q"), rows, joint=joint, totals=(3, 6), denominator=6
    )
    # The least double whose exponential is at least the lift 10/9 of p.
    budget = math.log(10 / 9) * (1.0 - 2.0**-50)
    while not md.audit(channel, joint, md.MaxLift(budget)).satisfied:
        budget = math.nextafter(budget, 1.0)
    record = replace(channel.record, notion=to_record(md.MaxLift(budget)))
    with pytest.raises(md.NotPrivate, match="break the promise when they are rounded"):
        md.export(channel.with_record(record))


def test_earlier_releases_are_not_judged_anew():
    channel = row_channel("plain")
    record = replace(channel.record, after=("0" * 64,))
    with pytest.raises(md.InputError, match="without the earlier"):
        md.export(channel.with_record(record))


def test_one_sum_that_is_another_is_rounded_with_the_table_alone():
    """`design` gives rows of one sum that is not 2^53 where it keeps the law of a table."""
    joint = md.Joint.from_counts([[1, 2], [2, 1]])
    rows = ((1, 2), (3, 0))
    channel = md.Channel(joint.useful, ("p", "q"), rows, 3, joint=joint)
    found = lookup_of(channel)
    assert found.is_rounded
    third = 2**53 // 3
    assert [(entry.low, entry.high) for entry in found.entries] == [
        (0, third),
        (third, 2**53),
        (0, 2**53),
    ]
    with pytest.raises(md.InputError, match=r"to the sum 2\^53, and without its table"):
        md.export(replace(channel, joint=None))


def test_what_is_no_channel_is_refused():
    with pytest.raises(md.InputError, match="channel must be a Channel, not str"):
        md.export("channel.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"to": "excel"}, r"to \('excel'\) must be one of"),
        ({"dialect": "oracle"}, r"dialect \('oracle'\) must be one of"),
        ({"table": ""}, "need names"),
        ({"identity": ""}, "need names"),
    ],
    ids=str,
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(md.InputError, match=message):
        md.export(odd_channel(), **arguments)


def test_a_symbol_with_nul_is_in_no_script():
    frame = pd.DataFrame({"s": ["a", "b"] * 30, "x": ["u", "v\0", "w"] * 20})
    channel = md.design(frame, md.LIP(0.5), sensitive="s", useful="x").channel
    for form in ("sql", "csv", "r"):
        with pytest.raises(md.InputError, match="'x' has a symbol with NUL, which no"):
            md.export(channel, form)
