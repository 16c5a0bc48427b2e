"""Draws of fixed counts tell of a record no more than its own released value, even to an observer
who knows the table and sees the whole file; independent draws tell more. By listing, in fractions.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.release import fixed_counts
from mechdesign.release.draws import Key
from mechdesign.release.fixed_counts import integer_flows
from tests.oracles.random_choices import outcomes
from tests.oracles.whole_file import (
    fixed_sigmas,
    independent_sigmas,
    posteriors,
    posteriors_of_people,
)
from tests.profiles import scaled

KEY = Key.insecure(4)


@st.composite
def tables(draw):
    """Slots with rows and secrets, and a table of means of some assignments to output slots."""
    size = draw(st.integers(2, 5))
    labels = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    rows = sorted(draw(labels))
    outputs = draw(labels)
    secrets = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    unit = 4
    values = Counter()
    for _ in range(unit):
        order = draw(st.permutations(range(size)))
        for row, slot in zip(rows, order, strict=True):
            values[row, outputs[slot]] += 1
    return rows, secrets, outputs, values, unit


def drawn_flows(rows, outputs, values, unit):
    """Every (probability, outputs of each row) that `integer_flows` can draw."""
    with pytest.MonkeyPatch.context() as patch:

        def algorithm(chance):
            patch.setattr(fixed_counts, "KeyedChance", lambda _: chance)
            return integer_flows(
                [row for row, _ in values],
                [output for _, output in values],
                list(values.values()),
                np.bincount(rows),
                np.bincount(outputs),
                unit,
                KEY,
            )

        for chance, flows in outcomes(algorithm):
            of_row = {row: [] for row in rows}
            for row, output, count in zip(
                flows.rows.tolist(),
                flows.columns.tolist(),
                flows.counts.tolist(),
                strict=True,
            ):
                of_row[row] += [output] * count
            yield chance, of_row


def own_posteriors(rows, secrets, values):
    """P(s = 1 | y) = sum_x t(x) F(x, y) / q(y), which the promise bounds."""
    share = {}
    for row in rows:
        mine = [s for x, s in zip(rows, secrets, strict=True) if x == row]
        share[row] = Fraction(sum(mine), len(mine))
    joint = Counter()
    total = Counter()
    for (row, output), value in values.items():
        joint[output] += share[row] * value
        total[output] += value
    return {output: joint[output] / total[output] for output in total}


@settings(max_examples=scaled(40), deadline=None)
@given(table=tables())
def test_the_whole_file_tells_what_the_own_value_tells(table):
    """P(s_i | all released values) = P(s_i | y_i), for every file that fixed counts can give."""
    rows, secrets, outputs, values, unit = table
    flows = drawn_flows(rows, outputs, values, unit)
    own = own_posteriors(rows, secrets, values)
    found = posteriors(secrets, fixed_sigmas(rows, flows))
    for file, posterior in found.items():
        assert sorted(file) == sorted(outputs)
        assert posterior == own[file[0]]


@st.composite
def tables_of_people(draw):
    """As `tables`, of people who have one record (rows 0 and 1) or two (rows 2 and 3)."""
    size = draw(st.integers(2, 4))
    rows = sorted(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    lengths = [1 + row // 2 for row in rows]
    shorter = lengths.count(1)
    outputs = [draw(st.integers(2 * length - 2, 2 * length - 1)) for length in lengths]
    secrets = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    unit = 2
    values = Counter()
    for _ in range(unit):
        # Sequences are released as ones of the same length.
        order = [
            *draw(st.permutations(range(shorter))),
            *draw(st.permutations(range(shorter, size))),
        ]
        for row, slot in zip(rows, order, strict=True):
            values[row, outputs[slot]] += 1
    return rows, lengths, secrets, outputs, values, unit


@settings(max_examples=scaled(40), deadline=None)
@given(table=tables_of_people())
def test_a_file_of_people_tells_what_the_own_sequence_tells(table):
    """Whoever knows all lengths and a person's new number believes P(s_i | y_i); whoever knows the
    lengths alone a mean of it over the released sequences of that length."""
    rows, lengths, secrets, outputs, values, unit = table
    flows = drawn_flows(rows, outputs, values, unit)
    own = own_posteriors(rows, secrets, values)
    with_number, alone = posteriors_of_people(
        secrets, lengths, fixed_sigmas(rows, flows)
    )
    for (file, number), posterior in with_number.items():
        assert posterior == own[file[number]]
    for file, posterior in alone.items():
        possible = [own[y] for y in file if 1 + y // 2 == lengths[0]]
        assert min(possible) <= posterior <= max(possible)


SECRET_ROWS = ([0, 1], [0, 1])
"""Two records: of row 0 with the secret 0, and of row 1 with the secret 1."""

EXCHANGE = Counter({(0, 0): 3, (0, 1): 1, (1, 0): 1, (1, 1): 3})
"""Each keeps its row with probability 3/4 and gets the other one else."""


def test_independent_draws_tell_more():
    """Both rows released as 0: one moved for sure, so each is 0 or 1 with probability 1/2.

    The value 0 itself is given by secret 1 with probability 1/4. Of the file 0, 1 either both moved
    or none: 1/16 against 9/16, which is surer than the promised 1/4.
    """
    rows, secrets = SECRET_ROWS
    law = {
        row: {output: Fraction(EXCHANGE[row, output], 4) for output in range(2)}
        for row in range(2)
    }
    own = own_posteriors(rows, secrets, EXCHANGE)
    found = posteriors(secrets, list(independent_sigmas(rows, law)))
    assert own == {0: Fraction(1, 4), 1: Fraction(3, 4)}
    assert found == {
        (0, 0): Fraction(1, 2),
        (0, 1): Fraction(1, 10),
        (1, 0): Fraction(9, 10),
        (1, 1): Fraction(1, 2),
    }
    flows = drawn_flows(rows, [0, 1], EXCHANGE, 4)
    fixed = posteriors(secrets, fixed_sigmas(rows, flows))
    assert fixed == {(0, 1): Fraction(1, 4), (1, 0): Fraction(3, 4)}
