"""Released rows against their channel: what is impossible, the level of the tests, and what they
find.
"""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.analysis.row_checking import check_rows
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode
from tests.mechdesign.analysis.test_row_frequencies import people

COLUMNS = ["a", "b"]


def encoded(frame):
    return {name: encode(list(frame[name]), name) for name in frame.columns}


@pytest.fixture(scope="module")
def channel():
    return designed(0.4)


def designed(budget, **options):
    return md.design_rows(
        people(),
        sensitive="secret",
        release=COLUMNS,
        notion=md.LIP(budget),
        **options,
    ).channel


@pytest.mark.parametrize("with_original", [True, False])
@pytest.mark.parametrize("objective", ["truth", "information"])
def test_faithful_releases_fail_at_most_as_often_as_the_level(with_original, objective):
    """P(p-value <= 0.1) <= 0.1 under the channel: 20 of 60 draws would be six standard errors
    above.
    """
    channel = designed(0.4, objective=objective)
    frame = people()[COLUMNS]
    original = encoded(frame) if with_original else None
    rejected = 0
    for seed in range(60):
        released = encoded(channel.apply(frame, insecure_seed=seed))
        check = check_rows(channel, released, original, level=0.1)
        assert not check.findings
        rejected += not check.plausible
    assert rejected < 20


@pytest.mark.parametrize("with_original", [True, False])
def test_a_shuffled_level_is_found(channel, with_original):
    frame = people()
    released = channel.apply(frame[COLUMNS], insecure_seed=1)
    shuffled = released.assign(
        b=released["b"].sample(frac=1, random_state=2).to_numpy()
    )
    original = encoded(frame[COLUMNS]) if with_original else None
    assert not check_rows(channel, encoded(shuffled), original).plausible


def test_another_channel_is_found(channel):
    frame = people()[COLUMNS]
    other = designed(0.05)
    released = encoded(other.apply(frame, insecure_seed=1))
    assert not check_rows(channel, released, encoded(frame)).plausible


def test_impossible_rows_and_private_columns_are_named(channel):
    frame = people()[COLUMNS]
    released = channel.apply(frame, insecure_seed=1)
    strange = released.assign(b=["zz", *released["b"][1:]], secret="s")
    check = check_rows(channel, encoded(strange))
    assert [finding.kind for finding in check.findings] == ["columns", "row"]
    assert "record 1 cannot come from this channel" in check.findings[1].text
    assert not check.plausible


def test_the_untouched_identity_of_a_pair_without_mass_is_impossible():
    """Where a row has no mass on an output, a record with that output is named."""
    channel = designed(0.2)
    frame = people()[COLUMNS]
    table = channel.tree.levels[0]
    texts = {name: code for code, name in enumerate(channel.levels[0].names)}
    without = None
    for symbol, code in texts.items():
        pair = table.pairs(channel.tree.roots[:1], np.array([code]))[0]
        _, entries = table.expanded(np.array([pair]))
        reached = set(table.slot_outputs[table.rows.indices[entries]].tolist())
        for output in set(table.slot_outputs.tolist()) - reached:
            without = (symbol, channel.labels[0][output])
    assert without is not None
    symbol, output = without
    released = channel.apply(frame, insecure_seed=3)
    record = int(np.flatnonzero(frame["a"] == symbol)[0])
    donor = int(np.flatnonzero(released["a"] == output)[0])
    released.iloc[record] = released.iloc[donor]
    check = check_rows(channel, encoded(released), encoded(frame))
    assert [finding.kind for finding in check.findings] == ["pairs"]
    assert f"record {record + 1} cannot" in check.findings[0].text


def test_given_columns_must_be_those_of_the_original():
    frame = people()
    channel = md.design_rows(
        frame,
        sensitive="secret",
        release=["a"],
        given=["k"],
        promise="relative",
        notion=md.LIP(0.4),
    ).channel
    columns = frame[["k", "a"]]
    released = channel.apply(columns, insecure_seed=1)
    assert check_rows(channel, encoded(released), encoded(columns)).plausible
    assert check_rows(channel, encoded(released)).plausible
    swapped = columns.assign(k=columns["k"].map({"m": "n", "n": "m"}))
    check = check_rows(channel, encoded(released), encoded(swapped))
    assert check.findings[0].kind == "given"
    assert check.findings[0].records == len(frame)


def test_public_channels_and_any_data_find_impossible_rows_only(channel):
    frame = people()[COLUMNS]
    released = encoded(channel.apply(frame, insecure_seed=1))
    public = check_rows(channel.public(), released)
    assert public.plausible
    assert public.frequencies.records == 0
    assert "carries no table" in public.notices[0]
    assert (
        "only impossible rows"
        in check_rows(channel, released, any_data=True).notices[0]
    )


def test_refusals(channel):
    frame = people()[COLUMNS]
    released = encoded(channel.apply(frame, insecure_seed=1))
    short = check_rows(channel, released, encoded(frame.head(5)))
    assert short.findings[0].text == "the release has 900 records, the original 5"
    with pytest.raises(InputError, match="the original has no column 'b'"):
        check_rows(channel, released, encoded(frame[["a"]]))
    with pytest.raises(
        InputError, match="a value of 'a' that the channel does not know"
    ):
        check_rows(channel, released, encoded(frame.assign(a="zz")))
    with pytest.raises(InputError, match="must be above 0"):
        check_rows(channel, released, level=0.7)
