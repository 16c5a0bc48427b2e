"""Counts are fixed only where it is proven that the whole file keeps the promise."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.channel.output_cells import own_rows
from mechdesign.jobs.channel_recipe import ChannelRecipe
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.release.drawing import fixed_records


def channel_of(rows, totals):
    joint = md.Joint.from_counts([[3, 1], [1, 3]], useful_labels=["a", "b"])
    return md.Channel(
        joint.useful,
        ("a", "b"),
        rows,
        denominator=16,
        joint=joint,
        totals=totals,
        published=own_rows(joint.useful, [0, 1]),
    )


def test_whole_counts_of_outputs_are_fixed():
    channel = channel_of(((6, 2), (4, 12)), (8, 16))
    assert fixed_records(channel).tolist() == [4, 4]
    column = ["a"] * 4 + ["b"] * 4
    for seed in range(9):
        drawn = channel.apply(column, insecure_seed=seed, draws="fixed")
        assert drawn.count("a") == 4


def test_counts_that_are_not_whole_are_not_fixed():
    """Each output has 3.75 and 4.25 records in the mean: for these nothing is proven."""
    channel = channel_of(((6, 2), (3, 13)), (8, 16))
    assert fixed_records(channel) is None
    column = ["a"] * 4 + ["b"] * 4
    with pytest.raises(md.InputError, match="need a channel that keeps the law"):
        channel.apply(column, insecure_seed=1, draws="fixed")


def test_draws_of_a_column_are_fixed_independent_or_refused():
    channel = channel_of(((6, 2), (4, 12)), (8, 16))
    with pytest.raises(md.InputError, match=r"draws \('fix'\) must be one of"):
        channel.apply(["a"] * 4 + ["b"] * 4, insecure_seed=1, draws="fix")
    with pytest.raises(md.InputError, match="their counts cannot be fixed"):
        channel.apply(["a"] * 4 + ["b"] * 3, insecure_seed=1, draws="fixed")


def test_counts_are_fixed_where_every_row_has_as_many_records():
    """Then all rows have one sum, and the channel has a denominator in place of totals."""
    channel = channel_of(((3, 1), (1, 3)), (4, 4))
    assert channel.totals is None
    assert channel.keeps_law
    assert fixed_records(channel).tolist() == [4, 4]
    for seed in range(9):
        drawn = channel.apply(["a"] * 4 + ["b"] * 4, insecure_seed=seed)
        assert drawn.count("a") == 4


def settled(records, size):
    """What is decided for records that come in parts of `size`, and how many of them were asked
    for.
    """
    recipe = ChannelRecipe.of(
        channel_of(((6, 2), (4, 12)), (8, 16)), ReleaseOptions(insecure_seed=1)
    )
    asked = 0

    def parts():
        nonlocal asked
        for start in range(0, len(records), size):
            part = pa.array(records[start : start + size])
            asked += len(part)
            yield (lambda number, part=part: part), len(part)

    return recipe.settled(["useful"], parts()).options.draws, asked


@pytest.mark.parametrize("size", [1, 3, 8])
def test_records_of_the_design_are_known_in_any_order_and_parts(size):
    assert settled([*"abbaabab"], size) == ("fixed", 8)
    assert settled([*"abbaabaa"], size)[0] == "independent"
    assert settled([*"abbaaba"], size)[0] == "independent"


@pytest.mark.parametrize("records", [1_000, 10_000, 100_000])
def test_another_table_is_known_by_its_first_records(records):
    """However many there are, none is looked at after one symbol has too many."""
    draws, asked = settled([*"ab"] * (records // 2), 2)
    assert draws == "independent"
    assert asked == 10


def test_no_counts_are_fixed_where_the_table_has_more_records_than_an_integer():
    """As a file can say; records at hand are then drawn independently."""
    many = 10**30
    joint = md.Joint.from_counts(
        [[3 * many, many], [many, 3 * many]], useful_labels=["a", "b"]
    )
    channel = replace(channel_of(((3, 1), (1, 3)), (4, 4)), joint=joint)
    assert fixed_records(channel) is None
    assert len(channel.apply(["a"] * 4 + ["b"] * 4, insecure_seed=1)) == 8
