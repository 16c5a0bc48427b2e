from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.release.drawing import Repeats
from mechdesign.sanitise.apply import sanitise_file
from mechdesign.tables.joint import Joint

D = 2**53

IDENTIFIERS = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "x", "y"]))


@given(st.lists(st.lists(st.tuples(IDENTIFIERS, st.integers(0, 2)), max_size=9), max_size=12))
def test_the_first_part_that_contradicts_an_earlier_one_is_found(parts):
    seen = {}
    repeats = Repeats()
    for part in parts:
        own = dict(part)
        records = [(identifier, own[identifier]) for identifier, _ in part]  # no contradiction within a part
        wrong = {identifier for identifier, code in records if seen.get(identifier, code) != code}
        columns = list(zip(*(identifier for identifier, _ in records), strict=True)) or [(), ()]
        found = repeats.conflict(columns, np.array([code for _, code in records], dtype=np.int64))
        assert (found is not None) == bool(wrong)
        if found is not None:
            assert records[found][0] in wrong
            return
        seen |= own
    assert not repeats.full


def test_memory_has_an_end():
    repeats = Repeats(remembered=3)
    assert repeats.conflict([["a", "b"]], np.array([0, 1])) is None
    assert not repeats.full
    assert repeats.conflict([["c", "d"]], np.array([0, 0])) is None
    assert repeats.full
    found = [repeats.conflict([[name]], np.array([7])) is not None for name in "abcd"]
    assert sum(found) == 3
    assert found[:2] == [True, True]


@pytest.fixture
def channel():
    joint = Joint.from_counts([[3, 1], [1, 4]], useful_labels=[*"pq"], useful="job", sensitive="rel")
    return Channel(joint.useful, ("y", "z"), ((D // 2, D // 2), (D // 4, D - D // 4)), D, joint=joint)


def people(path, count, again):
    lines = [f"{i},p" for i in range(count)]
    lines[-1] = again
    path.write_text("id,job\n" + "\n".join(lines) + "\n")
    return path


def test_an_identifier_that_comes_again_far_below(channel, tmp_path):
    count = 150_000
    wrong = people(tmp_path / "wrong.csv", count, "5,q")
    with pytest.raises(
        InputError, match="the identifier '5' stands for records with different symbols of 'job'"
    ):
        sanitise_file(channel, wrong, tmp_path / "out.csv", identity="id", insecure_seed=1)
    assert not (tmp_path / "out.csv").exists()
    right = people(tmp_path / "right.csv", count, "5,p")
    done = sanitise_file(channel, right, tmp_path / "out.csv", identity="id", insecure_seed=1)
    assert done.records == count
    assert done.notices == ()
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[6] == lines[-1]


def test_more_identifiers_than_are_remembered_are_told_of(channel, tmp_path, monkeypatch):
    monkeypatch.setattr("mechdesign.release.drawing.Repeats", lambda: Repeats(remembered=2))
    source = people(tmp_path / "in.csv", 9, "8,q")
    told = sanitise_file(
        channel, source, tmp_path / "out.csv", identity="id", job=tmp_path / "j" / "night.json"
    )
    assert [text for text in told.notices if "uses its random number twice, was not looked at" in text]
