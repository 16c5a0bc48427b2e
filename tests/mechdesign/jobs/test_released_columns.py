"""A copy without some columns, or a hundred coarse files: what is a second draw, and what is none."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign import sanitise
from mechdesign.core.errors import InputError
from mechdesign.formats.census import SAMPLE, Census
from mechdesign.jobs.bare_records import BareCensus, CodedCensus
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.release_path import sanitise_path
from mechdesign.jobs.same_records import SAME_FROM
from mechdesign.tables.joint import Joint
from tests.cases.released_records import mixing_channel, people
from tests.profiles import slow

CHANNEL = mixing_channel()
SEQUENCE = "the same symbols in the same order have been released through this channel"
EQUALLY_OFTEN = "the same symbols, equally often, have been released"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(1000).to_csv("people.csv", index=False)
    CHANNEL.save("channel.json")
    return tmp_path


def released(frame, name, **options):
    frame.to_csv(f"{name}.csv", index=False)
    return sanitise_file(
        CHANNEL,
        f"{name}.csv",
        f"{name}-out.csv",
        ledger="l.db",
        channel_files=["channel.json"],
        internal_manifest=f"{name}.json",
        **options,
    )


COPIES = {
    "the column alone": lambda frame: frame[["job"]],
    "fewer columns": lambda frame: frame[["id", "job"]],
    "another column": lambda frame: frame.assign(more=range(len(frame))),
    "a changed column": lambda frame: frame.assign(pay=frame["pay"].round(1)),
}


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("first", ["whole", "copy"])
def test_a_copy_with_other_columns_is_no_other_data_set(folder, copy, first):
    frames = [people(1000), COPIES[copy](people(1000))]
    if first == "copy":
        frames.reverse()
    released(frames[0], "one")
    with pytest.raises(InputError, match=SEQUENCE):
        released(frames[1], "two")
    assert not (folder / "two-out.csv").exists()


def test_a_copy_under_identifiers(folder):
    """The identifier came with the file, or was dropped: the column is the same."""
    released(people(1000)[["id", "job"]], "one", identity="id")
    renamed = people(1000)[["job"]].assign(n=range(1000))
    # Without its identifier every row is a symbol alone, which tells the same.
    known = f"{SEQUENCE}|these records have been released through this channel"
    for frame, identity in ((people(1000)[["job"]], None), (renamed, "n")):
        with pytest.raises(InputError, match=known):
            released(frame, f"by {identity}", identity=identity)


def test_draws_of_copies_are_counted(folder):
    frame = people(1000)
    released(frame, "one")
    released(frame[["job"]], "two", fresh_draw=True)
    done = released(frame[["id", "job"]], "three", fresh_draw=True)
    assert any("all 3 draws" in note for note in done.notices)
    assert json.loads((folder / "three.json").read_text())["draw"] == 2
    for name in ("one", "two", "three"):
        history = history_of(Ledger("l.db"), f"{name}.csv", channels=[CHANNEL])
        assert "all 3 draws" in history.sentence


def test_another_order_of_the_column_is_noted(folder):
    """Three symbols agree by chance once in a few thousand times: no proof, but worth a note."""
    frame = people(20_000)
    released(frame[["id", "job"]], "one")
    shuffled = frame[["n", "job"]].sample(frac=1, random_state=1)
    done = released(shuffled, "two")
    assert any(EQUALLY_OFTEN in note for note in done.notices)
    history = history_of(Ledger("l.db"), "two.csv", channels=[CHANNEL])
    assert "all 2 draws" in history.sentence


def test_frames_too(folder):
    frame = people(1000)
    sanitise(frame, CHANNEL, ledger="l.db")
    with pytest.raises(InputError, match=SEQUENCE):
        sanitise(frame[["job"]], CHANNEL, ledger="l.db")
    sanitise(frame, CHANNEL, ledger="l.db")


@pytest.mark.parametrize(
    "column",
    [["a"] * 1000, ["a", "b", "c"] * 300, [*"a" * 400, *"b" * 300, *"c" * 300]],
    ids=["constant", "in turns", "sorted"],
)
def test_a_column_whose_order_follows_from_itself_proves_nothing(folder, column):
    """Other records may well have it, as those of the next day."""
    for day in (1, 2):
        frame = pd.DataFrame({"day": day, "n": range(len(column)), "job": column})
        released(
            frame.sample(frac=1, random_state=day).sort_values("n"),
            f"day{day}",
            keep_order=True,
        )


def test_the_next_records_are_no_copy(folder):
    for seed in range(5):
        done = released(people(1000, seed=seed)[["job"]], f"night{seed}")
        assert not any(SEQUENCE in note for note in done.notices)


# A hundred files of other people who look alike.


def contents(files: int, *, kinds: int, seed: int):
    chance = np.random.default_rng(seed)
    weights = 1 / np.arange(1, kinds + 1) ** 0.6
    weights /= weights.sum()
    values = chance.integers(1, 2**63, kinds).astype(np.uint64)
    for _ in range(files):
        census = Census()
        census.add(values[chance.choice(kinds, 300, p=weights)])
        yield census.content()


@pytest.mark.parametrize("kinds", [slow(300), slow(2_000), 20_000])
def test_a_hundred_coarse_files_are_no_second_draw(kinds):
    samples = []
    together = 0.0
    for content in contents(100, kinds=kinds, seed=kinds):
        if samples:
            assert content.share_beyond_chance(samples) < SAME_FROM
            together = max(together, content.share_in(samples))
        samples.append(content.sample())
    # Without the correction the last of them were refused.
    assert together > SAME_FROM or kinds == 300


def census_of(values):
    census = Census()
    census.add(np.asarray(values, np.uint64))
    return census.content()


@pytest.mark.parametrize("parts", [2, 5, 20])
def test_parts_of_many_releases_are_known_together(parts):
    """No two records look the same, so chance has no part in it."""
    values = np.random.default_rng(1).permutation(np.arange(1, 10_001)) << 40
    releases = np.array_split(values, parts)
    samples = [census_of(release).sample() for release in releases]
    some = np.concatenate([release[: 2_000 // parts] for release in releases])
    assert census_of(some).share_beyond_chance(samples) > 0.9


def test_versions_of_one_file_count_as_one():
    """Every night has the records of the night before, and some more; a few look the same."""
    chance = np.random.default_rng(1)
    values = chance.integers(1, 3_000, 2_000).astype(np.uint64) << np.uint64(40)
    samples = [census_of(values[: 1_000 + 100 * k]).sample() for k in range(8)]
    whole = census_of(values)
    assert whole.share_beyond_chance(samples) >= whole.share_in([samples[-1]])


def test_a_folder_of_coarse_files(folder):
    """Public data of 11 coarse columns were refused at file 81."""
    chance = np.random.default_rng(2)
    (folder / "in").mkdir()
    for k in range(40):
        columns = {f"c{j}": chance.choice([*"uvwxy"], 100) for j in range(4)}
        columns["job"] = chance.choice([*"abc"], 100)
        pd.DataFrame(columns).to_csv(folder / "in" / f"{k:02}.csv", index=False)
    done = sanitise_path(CHANNEL, "in", "out", ledger="l.db")
    assert done.records == 4_000


NAMES = {
    "folders": ["high/x.csv", "low/x.csv"],
    "files": ["day/high.csv", "day/low.csv"],
    "a value": ["part=high/x.csv", "part=low/x.csv"],
    "large letters": ["High/x.csv", "other/x.csv"],
    "the useful column": ["a/x.csv", "b/x.csv"],
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_that_are_symbols_are_refused(folder, kind):
    """They said of all their records what the channel hides."""
    for k, name in enumerate(NAMES[kind]):
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        people(200, seed=k).to_csv(path, index=False)
    with pytest.raises(
        InputError, match=r"which is a symbol of the column '(rel|job)'"
    ):
        sanitise_path(named_channel(), "in", "out", ledger="l.db")
    assert not (folder / "out").exists()


def test_other_names_stay(folder):
    for k, name in enumerate(["day=1/part-0.csv", "day=2/highest.csv", "day=2/a.csv"]):
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        people(200, seed=k).to_csv(path, index=False)
    assert sanitise_path(named_channel(), "in", "out", ledger="l.db").records == 600


def named_channel():
    """The channel of these tests, with words for the symbols of its sensitive column."""
    joint = Joint.from_counts(
        [[10, 4, 3], [2, 8, 5]],
        useful_labels=[*"abc"],
        sensitive_labels=["high", "low"],
        useful="job",
        sensitive="rel",
    )
    return md.Channel(joint.useful, CHANNEL.outputs, CHANNEL.rows, joint=joint)


@given(
    st.integers(1, 100),
    st.lists(st.lists(st.integers(0, 99), max_size=90), max_size=4),
    st.booleans(),
)
def test_a_census_of_codes_is_that_of_their_hashes(kinds, batches, twice):
    """With up to 64 kinds and with more, read once or again after further records."""
    hashes = np.random.default_rng(kinds).integers(0, 2**64, kinds, np.uint64)
    coded, plain = CodedCensus(hashes), BareCensus()
    for batch in batches:
        codes = np.array(batch, np.int64) % kinds
        coded.add(codes)
        plain.add(hashes[codes])
        if twice:
            coded.bare_content()
    got, wanted = coded.bare_content(), plain.bare_content()
    assert got.to_bytes() == wanted.to_bytes()
    assert got.order == pytest.approx(wanted.order)


def test_a_census_of_codes_keeps_no_more_than_its_sample():
    hashes = np.random.default_rng(0).integers(0, 2**64, 3 * SAMPLE, np.uint64)
    coded, plain = CodedCensus(hashes), BareCensus()
    for start in range(0, len(hashes), SAMPLE):
        codes = np.arange(start, start + SAMPLE)
        coded.add(codes)
        plain.add(hashes[codes])
        assert coded.bare_content().to_bytes() == plain.bare_content().to_bytes()
