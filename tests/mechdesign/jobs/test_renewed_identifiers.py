"""Records are known again under other identifiers, and look-alikes are not taken for them."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from mechdesign.core.errors import InputError
from mechdesign.frames.sanitising import sanitise
from mechdesign.jobs.bare_records import (
    CERTAIN,
    BareCensus,
    BareContent,
    likeness,
    numbers_bits,
    order_bits,
    pairs_bits,
)
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_file import sanitise_file
from tests.cases.released_records import mixing_channel

CHANNEL = mixing_channel()
RENEWED = "under other identifiers in the column 'id'"
DRAWN_TWICE = "and would be drawn a second time"


def people(records: int, seed: int, *, wide: bool = True) -> pd.DataFrame:
    """Records whose identifiers no other seed has; narrow ones have few different rows."""
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": [f"{seed}-{i}" for i in range(records)]})
    if wide:
        frame["age"] = chance.integers(18, 90, records)
        frame["pay"] = chance.integers(1000, 9000, records)
    frame["job"] = chance.choice([*"abc"], records)
    return frame


def renewed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(id=[f"new-{i}" for i in range(len(frame))])


def release(tmp_path, frame: pd.DataFrame, **options):
    frame.to_csv(tmp_path / "in.csv", index=False)
    # Some of these files have the records of others several times.
    asked = {"identity": "id", "ledger": tmp_path / "l.db", "unit": "record"} | options
    return sanitise_file(
        CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", force=True, **asked
    )


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("records", [100, 5000])
def test_the_same_rows_under_renewed_identifiers_are_refused(tmp_path, records, wide):
    frame = people(records, 1, wide=wide)
    release(tmp_path, frame)
    with pytest.raises(InputError, match=RENEWED):
        release(tmp_path, renewed(frame))
    # A fresh draw was asked for; the file is then known under both.
    release(tmp_path, renewed(frame), fresh_draw=True)
    release(tmp_path, renewed(frame))


CHANGED = {
    "reordered": lambda frame: frame.sample(frac=1, random_state=1),
    "a part": lambda frame: frame.iloc[200:600],
    "a small part among others": lambda frame: pd.concat(
        [frame.iloc[:150], people(100, 9)]
    ),
    "doubled": lambda frame: pd.concat([frame, frame]),
    "tripled in place": lambda frame: frame.loc[frame.index.repeat(3)],
}


@pytest.mark.parametrize("change", CHANGED)
def test_rows_that_are_one_of_their_kind_are_known_in_any_order(tmp_path, change):
    frame = people(1000, 1)
    release(tmp_path, frame)
    with pytest.raises(InputError, match=RENEWED):
        release(tmp_path, renewed(CHANGED[change](frame)))


def test_less_than_half_is_noted(tmp_path):
    frame = people(1000, 1)
    release(tmp_path, frame)
    mixed = pd.concat([renewed(frame.iloc[:300]), people(700, 2)])
    with pytest.raises(InputError, match="which strict makes an error"):
        release(tmp_path, mixed, strict=True, drop=["age", "pay"])
    notices = release(tmp_path, mixed).notices
    assert "about 30 % of the records with new identifiers" in notices[0]


def test_kept_identifiers_do_not_hide_renewed_ones(tmp_path):
    """Only half of the records are renewed, the others keep their draws."""
    frame = people(1000, 1)
    release(tmp_path, frame)
    with pytest.raises(InputError, match=RENEWED):
        release(tmp_path, pd.concat([frame.iloc[:900], renewed(frame).iloc[900:]]))


def test_what_comes_every_night_is_released(tmp_path):
    frame = people(1000, 1)
    for first in (0, 0, 100, 500):
        release(tmp_path, pd.concat([frame.iloc[first:], people(first, 2 + first)]))
    release(tmp_path, frame.sample(frac=1, random_state=3), keep_order=True)
    release(tmp_path, pd.concat([frame, frame]).sort_values("id"), keep_order=True)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))]
)
@pytest.mark.parametrize("records", [1, 3, 10, 40, 300])
@pytest.mark.parametrize("wide", [True, False])
def test_other_people_of_the_same_kind_are_released(tmp_path, records, wide, seed):
    release(tmp_path, people(records, 10 + seed, wide=wide))
    release(tmp_path, people(records, 20 + seed, wide=wide))


@pytest.mark.parametrize("arranged", ["sorted", "in turn"])
def test_equal_numbers_by_design_prove_nothing_in_a_small_table(tmp_path, arranged):
    jobs = [*"abc"] * 100
    if arranged == "sorted":
        jobs = sorted(jobs)
    for name in "xy":
        ids = [f"{name}{i}" for i in range(300)]
        frame = pd.DataFrame({"id": ids, "job": jobs})
        release(tmp_path, frame, keep_order=True)


def test_equal_numbers_by_chance_are_noted(tmp_path):
    frame = people(3000, 1, wide=False)
    frame["sex"] = np.resize(["m", "m", "f"], 3000)
    release(tmp_path, frame)
    again = renewed(frame).sample(frac=1, random_state=1)
    notices = release(tmp_path, again).notices
    assert "but for the identifiers, the same rows" in notices[0]


def test_with_identifiers_and_without_are_the_same_records(tmp_path):
    frame = people(500, 1)
    bare = frame.drop(columns="id")
    release(tmp_path, frame)
    with pytest.raises(InputError, match=f"known by the column 'id'.*{DRAWN_TWICE}"):
        release(tmp_path, bare, identity=None)
    other = {"ledger": tmp_path / "other.db"}
    release(tmp_path, bare, identity=None, **other)
    release(tmp_path, bare, identity=None, **other)
    with pytest.raises(InputError, match=f"known by their row number.*{DRAWN_TWICE}"):
        release(tmp_path, frame, **other)


def test_another_identifying_column(tmp_path):
    frame = people(500, 1)
    release(tmp_path, frame)
    number = renewed(frame).rename(columns={"id": "number"})
    with pytest.raises(InputError, match=f"known by the column 'id'.*{DRAWN_TWICE}"):
        release(tmp_path, number, identity="number")


def test_a_second_file_that_was_drawn_anew_may_come_again(tmp_path):
    first = people(500, 1)
    second = people(500, 2)
    release(tmp_path, first)
    release(tmp_path, second)
    release(tmp_path, first, fresh_draw=True)
    assert "other draw" in release(tmp_path, second).notices[0]


def test_frames(tmp_path):
    frame = people(500, 1)
    options = {"identity": "id", "ledger": tmp_path / "l.db"}
    sanitise(frame, CHANNEL, **options)
    sanitise(frame, CHANNEL, **options)
    with pytest.raises(InputError, match=RENEWED):
        sanitise(renewed(frame), CHANNEL, **options)
    with pytest.raises(InputError, match=RENEWED):
        release(tmp_path, renewed(frame))
    sanitise(people(500, 2), CHANNEL, **options)


def content_of(rows) -> BareContent:
    census = BareCensus()
    for part in np.array_split(np.asarray(rows, np.uint64), 3):
        census.add(part)
    return census.bare_content()


def test_the_content_comes_back_from_its_bytes():
    chance = np.random.default_rng(1)
    for rows in (chance.integers(1, 9, 100), chance.integers(1, 2**63, 9000), []):
        content = content_of(rows)
        again = BareContent.from_bytes(content.to_bytes())
        assert again.to_bytes() == content.to_bytes()
        if len(rows):
            assert likeness(content, again).certain
        assert (again.records, again.unordered) == (len(rows), content.unordered)


def test_pairs_apart_are_as_unlikely_as_the_bound_says():
    """All ways to deal pooled records into two data sets."""
    for pairs, singles, size in [(4, 0, 4), (3, 2, 4), (4, 3, 3), (5, 1, 5)]:
        pooled = [i // 2 for i in range(2 * pairs)] + [100 + i for i in range(singles)]
        apart: Counter[int] = Counter()
        for chosen in itertools.combinations(range(len(pooled)), size):
            taken = Counter(pooled[i] for i in chosen)
            apart[sum(taken[i] == 1 for i in range(pairs))] += 1
        total = math.comb(len(pooled), size)
        for s in range(pairs + 1):
            exact = sum(n for k, n in apart.items() if k >= s) / total
            assert exact <= 2 ** -pairs_bits(s, pairs, len(pooled)) + 1e-12


def test_equal_numbers_are_as_unlikely_as_computed():
    for counts in ([2, 2], [3, 1], [1, 1, 1, 1], [2, 1, 1]):
        kinds = [k for k, count in enumerate(counts) for _ in range(2 * count)]
        size = sum(counts)
        equal = 0
        for chosen in itertools.combinations(range(2 * size), size):
            taken = Counter(kinds[i] for i in chosen)
            equal += all(taken[k] == count for k, count in enumerate(counts))
        exact = equal / math.comb(2 * size, size)
        assert 2 ** -numbers_bits(np.array(counts), size) == pytest.approx(exact)
        merged = numbers_bits(np.array(counts[:1]), size)
        assert merged <= numbers_bits(np.array(counts), size) + 1e-9


def test_there_are_as_many_orders_as_the_bound_says():
    def steps(path):
        counts = np.zeros((3, 3), np.int64)
        np.add.at(counts, (path[:-1], path[1:]), 1)
        return counts

    orders: Counter[tuple[int, bytes]] = Counter()
    paths = [np.array(path) for path in itertools.product(range(3), repeat=8)]
    for path in paths:
        orders[path[0], steps(path).tobytes()] += 1
    bits = []
    for path in paths:
        bits.append(order_bits(steps(path)))
        assert 2 ** bits[-1] <= orders[path[0], steps(path).tobytes()] + 1e-9
    assert max(bits) > 2
    assert order_bits(steps(np.sort(np.resize([0, 1, 2], 99)))) == 0
    assert order_bits(steps(np.resize([0, 1, 2], 99))) == 0


def test_unrelated_records_are_not_alike():
    """Populations of any size: rows that are rare, common, or about one to a record."""
    for size in (50, 500, 5000, 500_000):
        for seed in range(10):
            chance = np.random.default_rng(seed)
            names = chance.integers(1, 2**63, size).astype(np.uint64)
            new = content_of(chance.choice(names, 5000))
            old = content_of(chance.choice(names, 5000))
            assert likeness(new, old).bits < 20 < CERTAIN


def test_the_total_never_takes_two_draws_for_one(tmp_path):
    """Released all the same, because nothing was certain, or knowingly."""
    ledger = Ledger(tmp_path / "l.db")

    def total(frame) -> str:
        frame.to_csv(tmp_path / "asked.csv", index=False)
        return history_of(ledger, tmp_path / "asked.csv").sentence

    few = people(60, 1, wide=False)
    release(tmp_path, few)
    release(tmp_path, few)
    assert "the one draw" in total(few)
    again = renewed(few).sample(frac=1, random_state=1)
    release(tmp_path, again)
    assert "all 2 draws" in total(few)
    assert "all 2 draws" in total(again)
    assert "all 2 draws" in total(few.drop(columns="id"))
    many = people(300, 2)
    release(tmp_path, many)
    release(tmp_path, people(300, 3))
    assert "the one draw" in total(many)
    release(tmp_path, many.assign(id=range(300)), fresh_draw=True)
    assert "all 2 draws" in total(many)
