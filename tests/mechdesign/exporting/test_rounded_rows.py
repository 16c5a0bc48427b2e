"""Rows with sums of their own are exported as rows of the sum 2^53, judged again."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.channel.channel import DENOMINATOR
from mechdesign.cli import main
from mechdesign.core.integers import IntegerRows
from mechdesign.exporting import lookup
from mechdesign.exporting.lookup import lookup_of
from mechdesign.mechanisms import least_cost_instead


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> md.Channel:
    """A channel that keeps frequencies by rows with sums of their own."""
    monkeypatch.setattr(least_cost_instead, "MANY_SYMBOLS", 2)
    monkeypatch.setattr(least_cost_instead, "MOST_SECRETS", 100)
    joint = md.Joint.from_counts(np.random.default_rng(2).integers(1, 40, (3, 7)))
    made = md.design(joint, md.LDP(0.5), objective="truth").channel
    assert made.totals is not None
    return made


def lengths_of(channel: md.Channel) -> dict[tuple[str, str], int]:
    lookup = lookup_of(channel)
    lengths: dict[tuple[str, str], int] = defaultdict(int)
    for entry in lookup.entries:
        lengths[entry.inputs[0], entry.outputs[0]] += entry.high - entry.low
    return lengths


def test_every_row_has_the_sum_of_a_draw_and_moves_by_next_to_nothing(channel) -> None:
    lookup = lookup_of(channel)
    assert lookup.is_rounded
    lengths = lengths_of(channel)
    rows = zip(channel.useful.names, channel.rows, channel.row_totals, strict=True)
    for name, row, total in rows:
        found = [lengths.get((name, label), 0) for label in channel.outputs]
        assert sum(found) == DENOMINATOR
        for length, entry in zip(found, row, strict=True):
            moved = abs(Fraction(length, DENOMINATOR) - Fraction(int(entry), total))
            assert moved <= Fraction(len(row), DENOMINATOR)
            assert (length > 0) == (entry > 0)


def test_the_smallest_entries_do_not_vanish(channel) -> None:
    """Of the sum 2^60, 1 is a hundredth of 2^-53."""
    total = 1 << 60
    n = len(channel.useful)
    rows = [[total - n + 1, *[1] * (n - 1)], *[[1 << 50] * n] * (n - 1)]
    totals = (total, *[n << 50] * (n - 1))
    odd = md.Channel(
        channel.useful,
        channel.useful.names,
        rows,
        joint=channel.joint,
        totals=totals,
    )
    lengths = lengths_of(odd)
    names = channel.useful.names
    assert [lengths[names[0], y] for y in names[1:]] == [1] * (n - 1)
    assert lengths[names[0], names[0]] == DENOMINATOR - n + 1


def test_the_file_says_what_was_rounded(channel, tmp_path, capsys) -> None:
    path = str(tmp_path / "c.json")
    channel.save(path)
    for to in ("sql", "r"):
        text = md.export(channel, to).text
        assert "rounded to multiples of 2^-53" in text
        assert "has exactly the probability of the channel" not in text
    assert main(["export", path, "--json"]) == 0
    done = capsys.readouterr()
    assert json.loads(done.out)["intervals"] == lookup_of(channel).size
    assert "rounded to multiples of 2^-53" in " ".join(done.err.split())


def test_rows_of_one_sum_are_not_rounded() -> None:
    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    made = md.design(joint, md.LDP(1.0), objective="truth")
    assert made.channel.totals is None
    assert lookup.with_one_sum(made.channel) is made.channel
    text = md.export(made.channel).text
    assert "has exactly the probability of the channel" in text
    assert "rounded" not in text


def test_without_its_table_nothing_can_be_judged_again(channel) -> None:
    with pytest.raises(
        md.InputError, match="export the channel file that has the table"
    ):
        md.export(channel.public())


def test_without_the_earlier_channels_nothing_can_be_judged_again(channel) -> None:
    first = md.design(channel.joint, md.LIP(0.1), objective="truth").channel
    later = md.design(channel.joint, md.LIP(0.6), objective="truth", after=[first])
    assert later.channel.totals is not None
    with pytest.raises(md.InputError, match="without the earlier channels"):
        md.export(later.channel)


def test_rounding_that_breaks_the_promise_is_refused(channel, monkeypatch) -> None:
    """Round on purpose to what tells everything."""

    def wrong(entries, total):
        return [DENOMINATOR - len(entries) + 1, *[1] * (len(entries) - 1)]

    monkeypatch.setattr(lookup, "_rounded", wrong)
    with pytest.raises(
        md.NotPrivate, match=r"rounded to the sum 2\^53 that export needs"
    ):
        md.export(channel)


def test_a_broken_channel_is_refused_as_such(channel) -> None:
    n = len(channel.useful)
    identity = IntegerRows.of(
        [[total * (x == y) for y in range(n)] for x, total in enumerate(channel.totals)]
    )
    broken = replace(channel, rows=identity, outputs=channel.useful.names)
    with pytest.raises(md.NotPrivate, match="breaks its promise ldp"):
        md.export(broken)
