"""The observer by messages: exact without cycles, near for many records, and better than scaling
where rows are rare.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.leaks import whole_file
from mechdesign.leaks.whole_file import (
    posterior_by_messages,
    posterior_given_file,
    success,
)
from tests.mechdesign.leaks.test_whole_file import COLUMNS, ROWS, SHARES, exact_mean
from tests.oracles.whole_file import mean_flows
from tests.profiles import scaled


def by_messages(law, released):
    """The flows of rows with one record each, as the oracle gives them."""
    pairs = [(row, y) for row, shares in enumerate(law) for y in shares]
    found = posterior_by_messages(
        np.array([row for row, _ in pairs]),
        np.array([y for _, y in pairs]),
        [float(law[row][y]) for row, y in pairs],
        np.ones(len(law), dtype=np.int64),
        np.array(released),
        np.ones((1, len(law))),
    )
    return dict(zip(pairs, found.flows.tolist(), strict=True)), found


def test_the_example_of_the_module():
    half = Fraction(1, 2)
    law = [{0: half, 1: half}, {0: half, 1: half}, {1: half, 2: half}]
    flows, found = by_messages(law, [1, 1, 1])
    assert flows[2, 2] == pytest.approx(1)
    assert flows[0, 1] == pytest.approx(0.5)
    assert flows[1, 1] == pytest.approx(0.5)
    assert found.posteriors[0] == pytest.approx([1, 1, 1])


@st.composite
def forests(draw):
    """Rows of one record each that share no cycle, and a file that they can give."""
    size = draw(st.integers(1, 6))
    law = []
    outputs = 1
    for _ in range(size):
        # One output of an earlier row, and new ones.
        new = draw(st.integers(0, 2))
        places = [draw(st.integers(0, outputs - 1)), *range(outputs, outputs + new)]
        outputs += new
        parts = [draw(st.integers(1, 9)) for _ in places]
        law.append(
            {
                y: Fraction(part, sum(parts))
                for y, part in zip(places, parts, strict=True)
            }
        )
    drawn = [draw(st.sampled_from(sorted(row))) for row in law]
    return law, [drawn.count(y) for y in range(outputs)]


@settings(max_examples=scaled(60), deadline=None)
@given(case=forests())
def test_without_cycles_the_beliefs_are_exact(case):
    """The flows are the conditional means given the counts of the file, found by listing."""
    law, released = case
    flows, found = by_messages(law, released)
    exact = mean_flows(law, released)
    for pair, flow in flows.items():
        assert flow == pytest.approx(float(exact.get(pair, 0)), abs=2e-5)
    assert found.rounds < whole_file.MOST_MESSAGES


@pytest.mark.parametrize("released", [350, 375, 450])
def test_large_tables_have_the_exact_mean(released):
    counts = np.array([300, 500])
    file = np.array([released, 800 - released])
    values = [225, 75, 125, 375]
    found = posterior_by_messages(ROWS, COLUMNS, values, counts, file, SHARES)
    exact = exact_mean((300, 500), 3, released)
    assert found.flows[0] == pytest.approx(exact, rel=0.005)
    assert np.bincount(COLUMNS, found.flows) == pytest.approx(file)


def rare_rows(seed, size=400, steps=6):
    """A plan among rows of one record: every fourth has the secret, and moves with 3/5."""
    generator = np.random.default_rng(seed)
    table = np.eye(size)
    holds = np.arange(size) % 4 == 0
    others = np.flatnonzero(~holds)
    for row in np.flatnonzero(holds).tolist():
        for column in generator.choice(others, steps, replace=False).tolist():
            moved = 0.6 / steps
            if table[column, column] > 0.6:
                table[row, column] += moved
                table[column, row] += moved
                table[row, row] -= moved
                table[column, column] -= moved
    rows, columns = np.nonzero(table)
    outputs = np.array([generator.choice(size, p=shares) for shares in table])
    return rows, columns, table, holds, outputs


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_where_rows_are_rare_messages_find_more_than_scaling_and_than_the_channel(seed):
    rows, columns, table, holds, outputs = rare_rows(seed)
    size = len(table)
    released = np.bincount(outputs, minlength=size)
    shares = holds[None].astype(float)
    values = table[rows, columns]
    ones = np.ones(size, dtype=np.int64)
    own = (holds @ table)[outputs]
    scaled = posterior_given_file(
        rows, columns, values, released, shares, most_rounds=200
    )
    messages = posterior_by_messages(rows, columns, values, ones, released, shares)
    channel_says = success(own, holds, 0.1)
    by_scaling = success(scaled.posteriors[0][outputs], holds, 0.1)
    by_messages = success(messages.posteriors[0][outputs], holds, 0.1)
    assert channel_says < by_scaling < by_messages
    assert by_messages > channel_says + 0.2


def test_chunks_do_not_matter(monkeypatch):
    rows, columns, table, holds, outputs = rare_rows(0, size=60)
    arguments = (
        rows,
        columns,
        table[rows, columns],
        np.ones(60, dtype=np.int64),
        np.bincount(outputs, minlength=60),
        holds[None].astype(float),
    )
    once = posterior_by_messages(*arguments)
    monkeypatch.setattr(whole_file, "CHUNK", 200)
    again = posterior_by_messages(*arguments)
    assert again.flows == pytest.approx(once.flows)


def test_messages_end():
    rows, columns, table, holds, outputs = rare_rows(1, size=60)
    found = posterior_by_messages(
        rows,
        columns,
        table[rows, columns],
        np.ones(60, dtype=np.int64),
        np.bincount(outputs, minlength=60),
        holds[None].astype(float),
        close=0,
        most_rounds=7,
    )
    assert found.rounds == 7


def test_other_files_are_refused():
    counts = np.array([1, 2])
    with pytest.raises(InputError, match="as many records as the table"):
        posterior_by_messages(
            ROWS, COLUMNS, [1, 1, 1, 1], counts, np.array([1, 1]), SHARES
        )
    with pytest.raises(InputError, match="can give the released counts"):
        posterior_by_messages(
            ROWS, COLUMNS, [1, 1, 1, 1], counts, np.array([1, 1, 1]), SHARES
        )
