"""A serial number brings back the order in which the records once stood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mechdesign.core.errors import InputError
from mechdesign.frames.sanitising import sanitise
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.leaks.inspection import inspect_file
from tests.cases.released_records import KEY, mixing_channel, pay_mechanism, people

CHANNEL = mixing_channel()
TELLS = r"sorted by the column 'id', the records tell of the useful column 'job'"


def records(count=1_500, seed=1):
    """Records in a random order, with a job and a column that has nothing to do with it."""
    chance = np.random.default_rng(seed)
    jobs = chance.choice([*"abc"], count)
    return pd.DataFrame({"job": jobs, "town": chance.choice([*"xyz"], count)})


NUMBERS = {
    "serial": lambda rank: rank,
    "with letters": lambda rank: [f"P{n:05}" for n in rank],
    "from the last": lambda rank: len(rank) - rank,
    "times": lambda rank: [f"2026-01-{1 + n // 100:02} {n % 100:02}" for n in rank],
}


def numbered(frame, by, kind="serial"):
    """Numbers that were given in the order of a column, and a file that was shuffled since."""
    rank = frame[by].argsort(kind="stable").argsort(kind="stable").to_numpy()
    return frame.assign(id=NUMBERS[kind](rank))


def released(frame, tmp_path, **options):
    frame.to_csv(tmp_path / "in.csv", index=False)
    options = {"keep": "all", "force": True} | options
    return sanitise_file(CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", **options)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("keep", ["all", "id"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_numbers_in_the_order_of_the_column(tmp_path, kind, keep, shuffle):
    frame = numbered(records(), "job", kind)
    with pytest.raises(InputError, match=TELLS):
        released(frame, tmp_path, keep=keep, shuffle=shuffle)
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(InputError, match=TELLS):
        sanitise(frame, CHANNEL, key=KEY, keep=keep)


def test_what_the_user_may_do_about_it(tmp_path):
    frame = numbered(records(), "job")
    released(frame, tmp_path, drop="id")
    released(frame, tmp_path, keep_order=True)
    released(frame, tmp_path, keep=())
    random = np.random.default_rng(5).permutation(len(frame))
    released(frame.assign(id=random), tmp_path)


def test_numbers_that_follow_the_column_in_part(tmp_path):
    """Half of them were given at random: the order is beyond chance all the same."""
    frame = records(4_000)
    codes = frame["job"].map({"a": 0, "b": 1, "c": 2})
    noise = np.random.default_rng(2).normal(0, 2, len(frame))
    frame["id"] = (codes + noise).argsort().argsort()
    with pytest.raises(InputError, match=TELLS):
        released(frame, tmp_path)
    # A measurement that tells as much, which every column does that is kept, is no number.
    frame["id"] = codes + noise
    released(frame, tmp_path)


def test_numbers_in_the_order_of_a_secret_that_is_dropped(tmp_path):
    frame = records()
    frame["rel"] = np.random.default_rng(3).choice([*"hw"], len(frame))
    with pytest.raises(InputError, match=r"tell of the sensitive column 'rel'"):
        released(numbered(frame, "rel"), tmp_path, drop="rel")


@pytest.mark.parametrize("seed", range(10))
def test_numbers_at_random_are_no_alarm(tmp_path, seed):
    frame = records(seed=seed)
    frame["id"] = np.random.default_rng(100 + seed).permutation(len(frame))
    released(frame, tmp_path)


def test_values_that_nearly_all_differ(tmp_path):
    """Their numbers were given by their first appearance, and so rose with every order."""
    frame, mechanism = people(300), pay_mechanism()
    sanitise(frame, mechanism, keep="all")
    by_pay = frame.assign(id=frame["pay"].rank().astype(int)).drop(columns="n")
    with pytest.raises(InputError, match="tell of the useful column 'pay'"):
        sanitise(by_pay, mechanism, keep="all")


def test_inspect_has_the_same_figure(tmp_path):
    """It said 'guessed 0.000 %' of a number that gives every job away."""
    numbered(records(), "job").to_csv(tmp_path / "in.csv", index=False)
    inspection = inspect_file(CHANNEL, tmp_path / "in.csv")
    (tells,) = (each.about["job"] for each in inspection.columns if each.column == "id")
    assert tells.stands_for
    assert tells.guessed > 0.99
    assert tells.alone < 0.4
    (town,) = (
        each.about["job"] for each in inspection.columns if each.column == "town"
    )
    assert not town.stands_for
