"""The masses of outputs are sums of products of integers, however large these are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing import columns
from mechdesign.auditing.columns import FEW, masses_by_output
from mechdesign.auditing.lifts import LargestQuotients, demands_of, extreme_lifts
from mechdesign.auditing.population_extremes import Population, Screen
from mechdesign.notions import LIP
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint
from tests.profiles import scaled

WIDTH = FEW + 8


@given(data=st.data(), most=st.sampled_from([3, 2**26, 2**40]))
def test_masses_are_exact(data, most):
    """m_s = sum over x of count(s, x) W(y|x), next to the largest values that halves can hold."""
    counts = st.lists(st.integers(1, most), min_size=WIDTH, max_size=WIDTH)
    joint = Joint.from_counts(data.draw(st.lists(counts, min_size=2, max_size=3)))
    ends = st.sampled_from([1, 2**31 - 1, 2**31, 2**53, 2**62 - 1, 2**62, 2**70])
    values = data.draw(st.lists(ends, min_size=WIDTH, max_size=WIDTH))
    columns = [(range(WIDTH), values), (range(3), values[:3])]
    for (inputs, entries), output in zip(
        columns, masses_by_output(columns, joint), strict=True
    ):
        wanted = []
        for row in joint.counts:
            total = 0
            for x, value in zip(inputs, entries, strict=True):
                total += row[x] * value
            wanted.append(total)
        assert output.masses == wanted
        assert output.output == sum(wanted)


@settings(max_examples=scaled(12))  # thousands of numbers each
@given(data=st.data())
def test_masses_of_a_table_that_is_mostly_empty_are_exact(data):
    """The same of a table with one count for each useful symbol, and one symbol that all have."""
    width = 16 * WIDTH
    counts = [[0] * width for _ in range(12)]
    for x in range(width):
        counts[x % 12][x] = data.draw(st.sampled_from([1, 7, 2**20]))
    for row in counts:
        row[0] += 1
    filled = columns.FilledCounts(counts)
    assert filled._is_sparse
    ends = st.sampled_from([1, 2**31 - 1, 2**31, 2**53, 2**62 - 1, 2**62])
    for step in (1, 3):
        inputs = range(0, width, step)
        values = data.draw(st.lists(ends, min_size=len(inputs), max_size=len(inputs)))
        wanted = []
        for row in counts:
            wanted.append(
                sum(row[x] * value for x, value in zip(inputs, values, strict=True))
            )
        assert filled.masses(inputs, values) == wanted


@pytest.mark.parametrize("most", [2**20, 2**62, 2**64 - 1, 3**500])
@pytest.mark.parametrize("largest_count", [2**12, 2**24])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_masses_of_many_outputs_come_from_few_products(
    monkeypatch, most, largest_count, is_sparse
):
    """One output after the other only where the entries do not fit into halves, and most counts
    are zero. Counts decide how many bits the digits of longer entries have.
    """
    rng = np.random.default_rng(0)
    width = 16 * WIDTH
    counts = np.zeros((12, width), np.int64)
    counts[np.arange(width) % 12, np.arange(width)] = rng.integers(
        1, largest_count, width
    )
    if not is_sparse:
        counts += 1
    filled = columns.FilledCounts(counts.tolist())
    assert filled._is_sparse == is_sparse
    outputs = []
    for _ in range(60):
        inputs = np.flatnonzero(rng.random(width) < 0.5).tolist()
        outputs.append((inputs, [most - 7 * x for x in inputs]))
    outputs[-1][1][0] = most
    assert sum(len(inputs) for inputs, _ in outputs) > columns.FEW_ENTRIES
    wanted = [
        [sum(row[x] * value for x, value in zip(*output, strict=True)) for row in rows]
        for output in outputs
        for rows in [counts.tolist()]
    ]
    one_by_one = []
    masses = columns.FilledCounts.masses
    monkeypatch.setattr(
        columns.FilledCounts,
        "masses",
        lambda *given: one_by_one.append(1) or masses(*given),
    )
    # In batches of some outputs each.
    monkeypatch.setattr(columns, "AT_ONCE", 10_000)
    monkeypatch.setattr(columns, "LONG_BYTES", 500_000)
    assert list(filled.masses_of_each(outputs)) == wanted
    fits = most < columns.LARGEST_VALUE
    assert bool(one_by_one) == (is_sparse and not fits)


def test_the_largest_sums_that_halves_may_have_fit_into_64_bits(monkeypatch):
    assert (columns.MOST_COUNTED - 1) * (2**columns.HALF - 1) < 2**63
    assert columns.LARGEST_VALUE == 2 ** (2 * columns.HALF)
    called = []
    in_halves = columns.FilledCounts._in_halves
    monkeypatch.setattr(
        columns.FilledCounts,
        "_in_halves",
        lambda *values: called.append(1) or in_halves(*values),
    )
    joint = Joint.from_counts([[2**26] * WIDTH, [2**26] * 8 + [1] * FEW])
    list(masses_by_output([(range(WIDTH), [2**62 - 1] * WIDTH)], joint))
    assert called


def test_of_outputs_that_tell_nothing_one_is_looked_at():
    """A channel that draws every record anew has constant columns, whose lifts are all 1."""
    constant = (range(3), (5, 5, 5))
    other = (range(3), (5, 5, 6))
    short = ((0, 1), (5, 5))
    outputs = [other, constant, short, (range(3), (7, 7, 7)), constant]
    assert columns.first_of_constants(outputs, 3) == [0, 1, 2]


def test_the_audit_of_a_channel_drawn_anew_compares_one_output(monkeypatch):
    joint = Joint.from_counts([[4, 3, 3], [2, 5, 3]])
    demands = demands_of(joint, LIP(0.5))
    compared = []
    add = LargestQuotients.add
    monkeypatch.setattr(
        LargestQuotients, "add", lambda *given: compared.append(given[3]) or add(*given)
    )
    drawn = [(range(3), (count,) * 3) for count in joint.useful_counts]
    assert all(extreme.used == 0.0 for extreme in extreme_lifts(drawn, demands))
    assert set(compared) == {0}
    # An output that tells something is still the worst one.
    telling = [*drawn, ((0,), (4,))]
    assert {extreme.y for extreme in extreme_lifts(telling, demands)} == {3}


def test_nearly_equal_outputs_of_a_population_are_not_looked_at(monkeypatch):
    """Pairs that are forbidden change a few outputs of a channel that draws all records anew."""
    joint = Joint.from_counts([[400, 300, 300], [200, 500, 300]])
    population = Population(confidence_set(joint, 0.95))
    nearly = [(range(3), (10**9, 10**9 + k, 10**9)) for k in range(1, 9)]
    telling = (range(3), (2 * 10**9, 10**9, 10**9))
    looked_at = []
    whole = Screen.largest_lifts

    def counted(screen, inputs, values):
        looked_at.append(values)
        return whole(screen, inputs, values)

    monkeypatch.setattr(Screen, "largest_lifts", counted)
    outputs = [*nearly, telling]
    assert population.contenders(outputs) == [8]
    assert looked_at == [telling[1]]
    # Of equal steepness all are.
    assert population.contenders([telling, *nearly, telling]) == [0, 9]


def test_the_audit_of_a_population_computes_one_output_of_a_channel_drawn_anew():
    joint = Joint.from_counts([[400, 300, 300], [200, 500, 300]])
    population = Population(confidence_set(joint, 0.95))
    drawn = [(range(3), (count,) * 3) for count in joint.useful_counts]
    assert population.contenders(drawn) == [0]
    assert population.contenders([*drawn, ((0, 1), (400, 1))]) == [3]
