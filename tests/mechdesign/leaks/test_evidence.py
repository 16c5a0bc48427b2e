"""What order and other columns tell: the tests against chance are exact, and see what they must."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.formats.cells import Encoded
from mechdesign.leaks import evidence
from mechdesign.leaks.evidence import BLOCKS, LEVEL, Crossing, Order, decisive
from mechdesign.leaks.twins import Twins
from tests.profiles import scaled


def of_order(codes, size, step=7) -> float:
    collected = Order(size)
    for i in range(0, len(codes), step):
        collected.add(np.asarray(codes[i : i + step]))
    return collected.evidence()


@pytest.mark.parametrize(
    "symbols", ["aabb", "aaabbb", "aabbcc", "aaaab", "abcdef", "aaaaaa", "aaabbbcc"]
)
def test_the_mean_over_all_orders_is_at_most_one(symbols, monkeypatch):
    """E[Q / P] <= 1, so P(evidence >= log 1/a) <= a for every a (Markov)."""
    monkeypatch.setattr(evidence, "FIRST_BLOCK", 1)
    codes = [ord(symbol) - ord("a") for symbol in symbols]
    found = [of_order(each, 6) for each in set(itertools.permutations(codes))]
    assert np.mean(np.exp(found)) <= 1 + 1e-12
    if 1 < len(set(codes)) < len(codes):
        assert max(found) > min(found)


@pytest.mark.parametrize("seed", range(3))
def test_values_that_are_dealt_out_at_random_stand_for_nothing(seed):
    """The same of columns: over all pairings of values with symbols the mean e-value is at most one."""
    values = [*"uuvvw"]
    symbols = [*np.random.default_rng(seed).permutation([*"xxyyy"])]
    found: list[float] = []
    for each in set(itertools.permutations(symbols)):
        crossing = crossed(values, each)
        found.append(math.exp(evidence.log_evidence(*crossing.table())))
    assert np.mean(found) <= 1 + 1e-12


def encoded(texts) -> Encoded:
    known = list(dict.fromkeys(texts))
    return Encoded(np.array([known.index(text) for text in texts]), tuple(known))


def crossed(values, symbols, step=3, **more) -> Crossing:
    crossing = Crossing(**more)
    for i in range(0, len(values), step):
        crossing.add(encoded(values[i : i + step]), encoded(symbols[i : i + step]))
    return crossing


@pytest.mark.parametrize("size", [2, 3, 15, 500])
def test_order_is_seen_and_chance_is_not(size):
    chance = np.random.default_rng(1)
    mixed = chance.integers(0, size, 20_000)
    names = chance.permutation(size)
    assert not decisive(of_order(mixed, size, 999))
    for codes in (
        np.sort(mixed),
        names[np.sort(mixed)],
        np.sort(mixed)[::-1],
        np.arange(20_000) % size,
    ):
        assert decisive(of_order(codes, size, 999))


@pytest.mark.parametrize(
    ("records", "seen"), [(0, False), (1, False), (6, False), (15, False), (45, True)]
)
def test_few_records_are_no_evidence(records, seen):
    """A sorted file of some rows may well be so by chance; 45 records of three symbols are not."""
    assert decisive(of_order(np.sort(np.arange(records) % 3), 3)) == seen


def test_records_that_are_grouped_by_what_the_symbol_depends_on():
    """The sensitive column is gone, and its groups show in the frequencies of the useful one."""
    chance = np.random.default_rng(2)
    likely = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    groups = chance.integers(0, 3, 6000)
    symbols = np.array([chance.choice(3, p=likely[group]) for group in groups])
    assert not decisive(of_order(symbols, 3, 1000))
    assert decisive(of_order(symbols[np.argsort(groups, kind="stable")], 3, 1000))


def test_a_part_of_the_file_may_be_sorted():
    codes = np.random.default_rng(3).integers(0, 4, 50_000)
    codes[20_000:21_000].sort()
    assert decisive(of_order(codes, 4, 4096))


@given(st.lists(st.integers(0, 5), max_size=300), st.integers(1, 50))
@settings(max_examples=scaled(40))
def test_batches_do_not_matter(codes, step):
    assert of_order(codes, 6, step) == of_order(codes, 6, 1000)


def test_parts_are_joined_so_that_memory_does_not_grow():
    collected = Order(2)
    collected.add(np.zeros(3, np.int64))
    collected.add(np.arange(100_000) % 2)
    assert collected._parts.sum() == 100_003
    assert collected._block * BLOCKS >= 100_003


@given(
    st.lists(
        st.tuples(st.sampled_from("uvwz"), st.sampled_from("xyz")),
        min_size=1,
        max_size=60,
    )
)
@settings(max_examples=scaled(60))
def test_guesses_against_counting(pairs):
    """A record's symbol is guessed as the most frequent one among the other records with its value."""
    right = 0
    for i, (value, symbol) in enumerate(pairs):
        others = [s for j, (v, s) in enumerate(pairs) if v == value and j != i]
        tally = {s: others.count(s) for s in others}
        most = max(tally.values(), default=0)
        right += (
            [s for s, count in tally.items() if count == most] == [symbol]
            if most
            else 0
        )
    symbols = [symbol for _, symbol in pairs]
    alone = max(symbols.count(symbol) for symbol in symbols)
    found = crossed(*zip(*pairs, strict=True)).guessed()
    assert found[1] == alone / len(pairs)
    # Of values with two symbols that tie but for one record, the smaller count here is the safe side.
    assert found[0] <= right / len(pairs) + 1e-12
    if all(len({s for v, s in pairs if v == value}) == 1 for value, _ in pairs):
        assert found[0] == right / len(pairs)


CHANCE = np.random.default_rng(4)
SYMBOLS = [*CHANCE.choice([*"xyz"], 400)]
CODES = [{"x": "1", "y": "2", "z": "3"}[symbol] for symbol in SYMBOLS]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (SYMBOLS, True),
        (CODES, True),
        (
            [f"{code}{i % 4}" for i, code in enumerate(CODES)],
            True,
        ),  # finer, and tells as much
        (
            ["9" if i % 100 == 0 else code for i, code in enumerate(CODES)],
            True,
        ),  # nearly
        (["9" if i % 3 == 0 else code for i, code in enumerate(CODES)], False),
        ([str(i) for i in range(400)], False),  # an identifier
        (
            [f"{code}{i // 4}" for i, code in enumerate(CODES)],
            False,
        ),  # of a few records each
        ([*CHANCE.choice([*"uvw"], 400)], False),
        (["u"] * 400, False),
    ],
)
def test_what_stands_for_a_symbol(values, told):
    assert crossed(values, SYMBOLS, 50).stands_for(10) == told


def test_few_records_show_a_copy_by_its_text_alone():
    assert crossed(["a", "b"], ["a", "b"]).stands_for()
    assert not crossed(["1", "2", "1", "2"], ["a", "b", "a", "b"]).stands_for()
    assert not crossed(["a", "a"], ["a", "a"]).stands_for()
    assert not crossed(["a"], ["a"]).stands_for()


def test_a_column_of_many_values_is_given_up_unless_it_is_a_copy():
    texts = [str(i // 2) for i in range(200)]
    found = crossed(texts, texts, 50, limit=20)
    assert found.full
    assert not found.values
    assert found.stands_for()
    assert not crossed([f"n{text}" for text in texts], texts, 50, limit=20).stands_for()


def test_twins_looks_at_some_batches_only(monkeypatch):
    monkeypatch.setattr(evidence, "LOOKED", 100)
    looked: list[tuple[int, int]] = []

    def batch(first, count):
        def some(step):
            looked.append((first, step))
            return lambda name: encoded(
                (SYMBOLS if name == "x" else CODES)[first : first + count : step]
            )

        return some

    twins = Twins(["code", "x2"], ["x"])
    for first in range(0, 400, 20):
        twins.add(20, batch(first, 20))
    batches = dict.fromkeys(first for first, _ in looked)
    assert [*batches] == [0, 20, 40, 60, 80, 200]
    assert twins.copies() == [("code", "x"), ("x2", "x")]
    twins = Twins(["code"], ["x"])
    twins.add(400, batch(0, 400))
    assert (0, 4) in looked
    assert LEVEL == 1e-5


@pytest.mark.parametrize(("errors", "nearly"), [(4, True), (6, False)])
def test_a_column_stands_for_another_if_it_removes_95_percent_of_the_errors(
    errors, nearly
):
    """Half the records are guessed right without the column, so that 200 of 400 errors can be removed.

    The column leaves twice `errors` of them: 4 % or 6 % of 200.
    """
    symbols = ["a"] * 200 + ["b"] * 200
    values = ["1"] * 200 + ["2"] * 200
    values[:errors] = ["2"] * errors
    values[-errors:] = ["1"] * errors
    assert crossed(values, symbols, 50).stands_for() == nearly


@pytest.mark.parametrize(("other", "same"), [(4, True), (6, False)])
def test_a_copy_has_the_same_text_in_95_percent_of_the_records(other, same):
    symbols = ["a", "b"] * 50
    copy = ["c"] * other + symbols[other:]
    assert crossed(copy, symbols, 50).same == same
