"""Fixed counts: sums always, means exactly (by listing all coins), floors and ceilings, refusals,
and what depends on the key.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.release import fixed_counts, table_rounding
from mechdesign.release.draws import Key
from mechdesign.release.fixed_counts import integer_flows
from tests.oracles.random_choices import outcomes
from tests.profiles import scaled

KEY = Key.insecure(3)


@st.composite
def plans(draw, most_records=6, most_bits=4):
    """Pairs with whole sums of rows and columns: a mean of some assignments of records."""
    records = draw(st.integers(1, most_records))
    unit = 2 ** draw(st.integers(0, most_bits))
    labels = st.lists(st.integers(0, 3), min_size=records, max_size=records)
    rows = draw(labels)
    columns = draw(labels)
    cuts = draw(st.lists(st.integers(0, unit), max_size=4))
    values = defaultdict(int)
    for low, high in pairwise(sorted([0, *cuts, unit])):
        order = draw(st.permutations(range(records)))
        for row, slot in zip(rows, order, strict=True):
            values[row, columns[slot]] += high - low
    return plan_of(values, rows, columns, unit)


def plan_of(values, rows, columns, unit):
    pairs = [pair for pair, value in values.items() if value]
    return {
        "rows": [row for row, _ in pairs],
        "columns": [column for _, column in pairs],
        "values": [values[pair] for pair in pairs],
        "row_units": np.bincount(rows),
        "column_units": np.bincount(columns),
        "unit": unit,
    }


def with_coins(monkeypatch, plan, key=KEY):
    """Every (probability, flows) that the coins give."""

    def algorithm(chance):
        monkeypatch.setattr(fixed_counts, "KeyedChance", lambda _: chance)
        return integer_flows(**plan, key=key)

    yield from outcomes(algorithm)


def counts_of(flows):
    places = zip(flows.rows.tolist(), flows.columns.tolist(), strict=True)
    return dict(zip(places, flows.counts.tolist(), strict=True))


def column_sums(flows, size):
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, flows.columns, flows.counts)
    return sums


def check_means(monkeypatch, plan):
    """E[count] = value / unit for all coins, and the floor or the ceiling each time."""
    mean = defaultdict(Fraction)
    whole = Fraction(0)
    pairs = list(zip(plan["rows"], plan["columns"], strict=True))
    for chance, flows in with_coins(monkeypatch, plan):
        whole += chance
        counts = counts_of(flows)
        assert set(counts) <= set(pairs)
        assert all(count > 0 for count in counts.values())
        assert np.bincount(flows.rows, flows.counts).tolist() == [*plan["row_units"]]
        if plan["column_units"] is not None:
            sums = column_sums(flows, len(plan["column_units"]))
            assert sums.tolist() == [*plan["column_units"]]
        for pair, value in zip(pairs, plan["values"], strict=True):
            count = counts.get(pair, 0)
            assert value // plan["unit"] <= count <= -(-value // plan["unit"])
            mean[pair] += chance * count
    assert whole == 1
    for pair, value in zip(pairs, plan["values"], strict=True):
        assert mean[pair] == Fraction(value, plan["unit"])


@settings(max_examples=scaled(60), deadline=None)
@given(plan=plans())
def test_the_mean_of_every_count_is_its_value(plan):
    """E[G(x, y)] = F(x, y) / unit, exactly."""
    with pytest.MonkeyPatch.context() as patch:
        check_means(patch, plan)


@settings(max_examples=scaled(40), deadline=None)
@given(plan=plans(), data=st.data())
def test_free_columns_keep_means_and_vary_by_less_than_one(plan, data):
    """Row sums are exact, and column sums the floor or the ceiling of their mean."""
    # Other columns than the sums were made for: each pair gets any of three.
    values = defaultdict(int)
    for row, value in zip(plan["rows"], plan["values"], strict=True):
        values[row, data.draw(st.integers(0, 2))] += value
    rows = [row for row, count in enumerate(plan["row_units"]) for _ in range(count)]
    free = plan_of(values, rows, [0], plan["unit"])
    free["column_units"] = None
    means = [Fraction(0)] * 3
    for (_, column), value in values.items():
        means[column] += Fraction(value, plan["unit"])
    with pytest.MonkeyPatch.context() as patch:
        check_means(patch, free)
        for _, flows in with_coins(patch, free):
            for mean, total in zip(means, column_sums(flows, 3).tolist(), strict=True):
                assert abs(total - mean) < 1


@pytest.mark.parametrize("seed", range(20))
def test_free_columns_of_larger_tables_vary_by_less_than_one(seed):
    size, width, unit = 20, 9, 2**20
    generator = np.random.default_rng(seed)
    cuts = np.sort(generator.integers(1, unit, (size, width - 1)), axis=1)
    shares = np.diff(cuts, prepend=0, append=unit, axis=1)
    rows, columns = np.nonzero(shares)
    values = shares[rows, columns]
    ones = np.ones(size, dtype=np.int64)
    flows = integer_flows(rows, columns, values, ones, None, unit, Key.insecure(seed))
    sums = column_sums(flows, width)
    assert (np.abs(sums - shares.sum(axis=0) / unit) < 1).all()
    assert np.bincount(flows.rows, flows.counts).tolist() == [1] * size


def test_the_example_of_the_module(monkeypatch):
    plan = {
        "rows": [0, 0, 1, 1],
        "columns": [0, 1, 0, 1],
        "values": [5, 3, 3, 1],
        "row_units": [2, 1],
        "column_units": [2, 1],
        "unit": 4,
    }
    found = defaultdict(Fraction)
    for chance, flows in with_coins(monkeypatch, plan):
        found[tuple(sorted(counts_of(flows).items()))] += chance
    often = (((0, 0), 1), ((0, 1), 1), ((1, 0), 1))
    rarely = (((0, 0), 2), ((1, 1), 1))
    assert found == {often: Fraction(3, 4), rarely: Fraction(1, 4)}


def circulant(size, unit=2**40):
    """Each of `size` rows, of one record each, is spread over four columns near it and far away."""
    shares = [unit // 2 + 1, unit // 4 + 12345, unit // 8 + 777]
    shares.append(unit - sum(shares))
    rows = np.tile(np.arange(size), 4)
    steps = np.repeat([0, 1, 17, size // 3], size)
    ones = np.ones(size, dtype=np.int64)
    return {
        "rows": rows,
        "columns": (rows + steps) % size,
        "values": np.repeat(shares, size),
        "row_units": ones,
        "column_units": ones,
        "unit": unit,
    }


def test_the_order_of_the_pairs_changes_nothing():
    plan = circulant(60)
    once = integer_flows(**plan, key=KEY)
    order = np.random.default_rng(5).permutation(len(plan["rows"]))
    for name in ("rows", "columns", "values"):
        plan[name] = plan[name][order]
    again = integer_flows(**plan, key=KEY)
    for name in ("rows", "columns", "counts", "row_counts"):
        assert np.array_equal(getattr(once, name), getattr(again, name))
    place = once.rows * 60 + once.columns
    assert (np.diff(place) > 0).all()


def test_other_keys_give_other_counts():
    flows = [integer_flows(**circulant(60), key=Key.insecure(i)) for i in range(5)]
    assert len({tuple(flow.columns.tolist()) for flow in flows}) == 5


def test_equal_entries_do_not_move_together():
    """Of 60 records 30 keep their row in the mean; without cycles first, often none or all do.

    Independent draws have a standard deviation of 3.9 records, draws without cycles one of 25.
    """
    plan = circulant(60)
    kept = []
    for seed in range(30):
        flows = integer_flows(**plan, key=Key.insecure(seed))
        kept.append(int((flows.rows == flows.columns).sum()))
    assert np.std(kept) < 14


def test_many_keys_have_the_means():
    """150 draws of a table: each frequency within 6 standard errors of its mean."""
    plan = circulant(10)
    total = np.zeros((10, 10))
    draws = 150
    for seed in range(draws):
        flows = integer_flows(**plan, key=Key.insecure(seed))
        total[flows.rows, flows.columns] += flows.counts
    mean = np.zeros((10, 10))
    mean[plan["rows"], plan["columns"]] = plan["values"] / plan["unit"]
    error = np.sqrt(mean * (1 - mean) / draws)
    assert (np.abs(total / draws - mean) <= 6 * error).all()


def test_values_of_more_than_64_bits():
    unit = 2**53
    large = 10**6 * unit
    plan = {
        "rows": [0, 0, 1, 1],
        "columns": [0, 1, 0, 1],
        "values": [large + 1, large - 1, large - 1, large + 1],
        "row_units": [2 * 10**6, 2 * 10**6],
        "column_units": [2 * 10**6, 2 * 10**6],
        "unit": unit,
    }
    flows = integer_flows(**plan, key=KEY)
    # The fractions are 2^-53 and 1 - 2^-53.
    assert flows.counts.tolist() == [10**6] * 4


def test_whole_values_are_kept():
    flows = integer_flows([0, 1], [1, 0], [6, 2], [3, 1], [1, 3], 2, KEY)
    assert counts_of(flows) == {(0, 1): 3, (1, 0): 1}


def test_a_table_without_records():
    flows = integer_flows([], [], [], [0, 0], [0], 2, KEY)
    assert flows.counts.tolist() == []
    assert flows.row_counts.tolist() == [0, 0]


@pytest.mark.parametrize("size", [500, 2000, 8000])
def test_every_binary_place_moves_an_entry_at_most_once(monkeypatch, size):
    """Entries moved, over pairs and binary places, do not grow with the table."""
    moved = []
    moves = table_rounding._moves

    def counted(in_row, in_column, chance):
        moved.append(len(in_row))
        return moves(in_row, in_column, chance)

    monkeypatch.setattr(table_rounding, "_moves", counted)
    integer_flows(**circulant(size), key=KEY)
    assert len(moved) <= 40
    assert sum(moved) <= 4 * size * 40 * 0.6


def refused(match, **changed):
    plan = {
        "rows": [0, 0, 1, 1],
        "columns": [0, 1, 0, 1],
        "values": [5, 3, 3, 1],
        "row_units": [2, 1],
        "column_units": [2, 1],
        "unit": 4,
        **changed,
    }
    with pytest.raises(InputError, match=match):
        integer_flows(**plan, key=KEY)


@pytest.mark.parametrize("unit", [0, 3, 12, -4, 2**63])
def test_units_are_powers_of_two(unit):
    refused("the unit of fixed counts must be a power of two", unit=unit)


@pytest.mark.parametrize(
    "values", [[5, 3, 4, 0], [5, 3, 3.0, 1], [-5, 3, 3, 1], [[5, 3], [3, 1]]]
)
def test_values_are_positive_integers(values):
    refused("must be positive whole numbers", values=values)


def test_large_values_are_positive_integers():
    refused("must be positive whole numbers", values=[2**70, -(2**70), 1, 1])


def test_sums_of_rows_and_columns_are_checked():
    refused("the pairs of row 2 do not add up", row_units=[2, 2])
    refused("the pairs of column 1 do not add up", column_units=[1, 2])
    refused("the pairs of row 1 do not add up", values=[6, 3, 3, 1])


def test_pairs_have_a_count():
    refused("a pair has a row without a count", row_units=[2])
    refused("a pair has a column without a count", column_units=[3])


def test_arguments_fit():
    refused("must have the same length", rows=[0, 0, 1])
    refused("row_units must be non-negative whole numbers", row_units=[2.0, 1.0])
    refused("columns must be non-negative whole numbers", columns=[0, 1, 0, -1])
