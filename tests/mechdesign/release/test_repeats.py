from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode
from mechdesign.formats.digests import RowHasher
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.release.identified_draws import FirstSymbols
from mechdesign.tables.joint import Joint

D = 2**53

IDENTIFIERS = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "x", "y"]))


@given(
    st.lists(
        st.lists(st.tuples(IDENTIFIERS, st.integers(0, 2)), max_size=9), max_size=12
    )
)
def test_every_record_is_held_against_the_first_of_its_identifier(parts):
    known = {}
    seen = FirstSymbols()
    hasher = RowHasher(bytes(32))
    for part in parts:
        columns = list(zip(*(identifier for identifier, _ in part), strict=True)) or [
            (),
            (),
        ]
        codes = np.array([code for _, code in part], dtype=np.int64)
        first, own = seen.look(
            hasher.identifiers([encode(list(column), "") for column in columns]), codes
        )
        for i, (identifier, code) in enumerate(part):
            assert first[i] == (identifier not in known)
            assert own[i] == known.setdefault(identifier, code)
    assert not seen.full


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2**64 - 2), st.integers(0, 9)), max_size=30),
        max_size=9,
    )
)
def test_a_table_that_grows_forgets_nothing(parts):
    known = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mechdesign.release.identified_draws.SLOTS", 3)
        seen = FirstSymbols()
    for part in parts:
        hashes = np.array([word for word, _ in part], np.uint64)
        first, own = seen.look(hashes, np.array([code for _, code in part], np.int64))
        for i, (word, code) in enumerate(part):
            assert (bool(first[i]), own[i]) == (
                word not in known,
                known.setdefault(word, code),
            )
    found = {
        word: code
        for part in seen.entries()
        for word, code in zip(*map(list, part), strict=True)
    }
    assert found == {word or 2**64 - 1: code for word, code in known.items()}


@pytest.fixture
def channel():
    joint = Joint.from_counts(
        [[3, 1], [1, 4]], useful_labels=[*"pq"], useful="job", sensitive="rel"
    )
    return Channel(
        joint.useful,
        ("y", "z"),
        ((D // 2, D // 2), (D // 4, D - D // 4)),
        D,
        joint=joint,
    )


def people(path, count, again):
    lines = [f"{i},p" for i in range(count)]
    lines[-1] = again
    path.write_text("id,job\n" + "\n".join(lines) + "\n")
    return path


def test_an_identifier_that_comes_again_far_below(channel, tmp_path):
    count = 150_000
    wrong = people(tmp_path / "wrong.csv", count, "5,q")
    with pytest.raises(
        InputError,
        match="the identifier belongs to records with different symbols of 'job'",
    ):
        sanitise_file(
            channel, wrong, tmp_path / "out.csv", identity="id", insecure_seed=1
        )
    assert not (tmp_path / "out.csv").exists()
    right = people(tmp_path / "right.csv", count, "5,p")
    done = sanitise_file(
        channel, right, tmp_path / "out.csv", identity="id", insecure_seed=1
    )
    assert done.records == count
    assert done.notices == ()
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[6] == lines[-1]


def test_more_identifiers_than_are_remembered_are_told_of(
    channel, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "mechdesign.release.identified_draws.FirstSymbols",
        lambda: FirstSymbols(remembered=2),
    )
    source = people(tmp_path / "in.csv", 9, "8,q")
    told = sanitise_file(
        channel,
        source,
        tmp_path / "out.csv",
        identity="id",
        ledger=tmp_path / "night.db",
    )
    assert [
        text
        for text in told.notices
        if "uses its random number twice, was not looked at" in text
    ]


@pytest.mark.slow
def test_what_was_known_before_comes_sorted_into_a_table_that_need_not_grow():
    """In one that grows, the first of them would fill one end of it, and each search walk past all
    of these.
    """
    hashes = np.sort(
        np.random.default_rng(1).integers(1, 2**64 - 1, 200_000, dtype=np.uint64)
    )
    codes = np.arange(len(hashes))
    seen = FirstSymbols()
    grown = FirstSymbols()
    seen.reserve(len(hashes))
    table = seen._keys
    for part in np.array_split(np.arange(len(hashes)), 7):
        assert seen.look(hashes[part], codes[part])[0].all()
    assert seen._keys is table
    mixed = np.random.default_rng(2).permutation(len(hashes))
    grown.look(hashes[mixed], codes[mixed])
    for each in (seen, grown):
        new, found = each.find(hashes, np.zeros(len(hashes), np.int64))
        assert not new.any()
        assert (found == codes).all()
    full = FirstSymbols(remembered=10)
    full.reserve(1000)
    full.look(hashes[:1000], codes[:1000])
    assert full.full
