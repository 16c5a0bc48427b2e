"""The lookup table holds the integers of the channel file, and every input covers [0, 2^53)."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from itertools import pairwise

import pytest

import mechdesign as md
from mechdesign.exporting.lookup import lookup_of
from tests.cases.exported_draws import (
    ROW_OPTIONS,
    D,
    odd_channel,
    row_channel,
    variable,
)


def intervals_of(level):
    rows = defaultdict(list)
    for entry in level.entries:
        rows[entry.node, entry.inputs].append((entry.low, entry.high))
    return rows


def assert_covered(level):
    for intervals in intervals_of(level).values():
        assert intervals[0][0] == 0
        assert intervals[-1][1] == D
        for (_, end), (begin, _) in pairwise(intervals):
            assert end == begin
        assert all(low < high for low, high in intervals)


def test_intervals_are_the_integers_of_the_channel():
    channel = odd_channel()
    (level,) = lookup_of(channel).levels
    assert_covered(level)
    lengths = {}
    for entry in level.entries:
        lengths[entry.inputs, entry.outputs] = entry.high - entry.low
    for symbol, row in zip(channel.useful.symbols, channel.rows, strict=True):
        for output, weight in zip(channel.outputs, row, strict=True):
            assert lengths.get((symbol, (output,)), 0) == weight


@pytest.mark.parametrize("kind", ROW_OPTIONS)
def test_paths_through_the_levels_have_the_law_of_the_row(kind):
    channel = row_channel(kind)
    lookup = lookup_of(channel)
    for level in lookup.levels:
        assert_covered(level)
    row = {"k": "u", "c": "y, z", "d": "odd", "b": "[20.5, 40)"}
    law = defaultdict(int)
    waiting = [(0, lookup.start, (), 1)]
    while waiting:
        k, node, texts, weight = waiting.pop()
        if k == len(lookup.levels):
            law[texts] += weight
            continue
        level = lookup.levels[k]
        inputs = tuple(row[name] for name in level.inputs.columns)
        for entry in level.entries:
            if (entry.node, entry.inputs) == (node, inputs):
                length = entry.high - entry.low
                waiting.append(
                    (k + 1, entry.child, texts + entry.outputs, weight * length)
                )
    exact = channel.distribution(row)
    scale = D ** len(lookup.levels)
    assert {texts: share * scale for texts, share in exact.items()} == law


def test_the_csv_has_a_line_for_every_interval():
    channel = row_channel("information")
    lookup = lookup_of(channel)
    text = md.export_channel(channel, "csv").text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == lookup.size
    assert [name for name in lines[0] if name.startswith("input")] == [
        "input k",
        "input c",
        "input d",
        "input b",
    ]
    assert [name for name in lines[0] if name.startswith("output")] == [
        "output k",
        "output c,d",
        "output b",
    ]
    last = lookup.levels[-1].entries[-1]
    assert lines[-1]["output b"] == last.outputs[0]
    assert lines[-1]["input c"] == ""
    assert int(lines[-1]["high"]) == last.high == D


def test_a_public_channel_has_the_same_lookup():
    """The lookup is of the probabilities alone: nothing of the table is in it."""
    channel = odd_channel()
    assert lookup_of(channel.public()) == lookup_of(channel)
    rows = row_channel("given")
    public = lookup_of(rows.public())
    for level, same in zip(lookup_of(rows).levels, public.levels, strict=True):
        assert level.entries == same.entries


def test_other_denominators_are_refused():
    channel = md.Channel(variable("job", "a", "b"), ("p", "q"), ((1, 2), (3, 0)), 3)
    with pytest.raises(
        md.InputError, match=r"the denominator 2\^53, as `design` makes"
    ):
        md.export_channel(channel)


def test_what_is_no_channel_is_refused():
    with pytest.raises(md.InputError, match="not an object of type str"):
        md.export_channel("channel.json")


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
        md.export_channel(odd_channel(), **arguments)
