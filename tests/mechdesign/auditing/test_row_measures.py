"""Measures of row channels against plain arrays of the law of every record."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.measures import measure
from mechdesign.auditing.row_measures import measure_rows, row_utility
from tests.oracles import measures as plain
from tests.oracles import released_rows as oracle

CLOSE = 1e-11


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(21)
    secret = rng.choice(["s", "t", "u"], 400, p=[0.5, 0.3, 0.2])
    a = np.where(rng.random(400) < 0.4, secret, rng.choice(["x", "y"], 400))
    b = np.where(rng.random(400) < 0.4, a, rng.choice(["v", "w"], 400))
    k = np.where(rng.random(400) < 0.2, secret, "m")
    return pd.DataFrame({"secret": secret, "a": a, "b": b, "k": k})


def designed(frame, **options):
    return md.design_rows(
        frame,
        sensitive="secret",
        notion=md.LIP(0.4),
        **{"release": ["a", "b"], "time_limit": 600.0, **options},
    ).channel


def law_of(channel, records, of):
    """P(of an entry of the law, released row) as an array."""
    both = oracle.summed(oracle.joint_law(channel, records), lambda e: (of(e), e[2]))
    rows = sorted({row for row, _ in both})
    columns = sorted({column for _, column in both})
    law = np.zeros((len(rows), len(columns)))
    for (row, column), mass in both.items():
        law[rows.index(row), columns.index(column)] = float(mass)
    return law, columns


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "information"},
        {"least_mass": 0.2},
        {"given": "k", "promise": "relative"},
        {"release": [("a", "b")]},
    ],
    ids=str,
)
def test_leakages_are_those_of_the_law_of_released_rows(frame, options):
    channel = designed(frame, **options)
    found = measure_rows(channel, alphas=(2.0, 3.0), orders=(0.5, 3.0, math.inf))
    law, columns = law_of(channel, channel.table, lambda e: e[0])
    leaked = plain.leakage(law, (2.0, 3.0))
    for name, value in leaked.items():
        assert found.leakage[name] == pytest.approx(value, rel=1e-9, abs=CLOSE), name
    for order in (0.5, 3.0, math.inf):
        name = f"{order:g}"
        assert found.leakage[f"sibson_information[{name}]"] == pytest.approx(
            plain.sibson_information(law, order), abs=CLOSE
        )
        assert found.leakage[f"arimoto_information[{name}]"] == pytest.approx(
            plain.arimoto_information(law, order), abs=CLOSE
        )
    by_label = {output.output: output for output in found.outputs}
    assert set(by_label) == {", ".join(column) for column in columns}
    for k, column in enumerate(columns):
        output = by_label[", ".join(column)]
        assert output.probability == pytest.approx(law[:, k].sum())
        assert output.max_lift == pytest.approx(plain.max_lift(law)[k])
        assert output.posterior == pytest.approx(law[:, k] / law[:, k].sum())
    assert all(
        line.attained is None
        or (line.attained <= line.bound) == line.at_most
        or line.attained == pytest.approx(line.bound)
        for line in found.guarantees
    )


@pytest.mark.parametrize("given", [(), ("k",)])
@pytest.mark.parametrize("objective", ["truth", "information"])
def test_the_information_is_that_of_the_law_and_never_above_it(frame, given, objective):
    """I(X;Y|K) <= that of the plain law, and next to it; so is the figure of the design."""
    made = md.design_rows(
        frame,
        sensitive="secret",
        release=["a", "b"],
        given=given,
        promise="relative",
        notion=md.LIP(0.3),
        objective=objective,
        time_limit=600.0,
    )
    channel = made.channel
    whole, _ = law_of(channel, channel.table, lambda e: e[1])
    both = plain.mutual_information(whole)
    known, _ = law_of(channel, channel.table, lambda e: e[1][: len(given)])
    # I(K, X; K, Y) = H(K) + I(X; Y | K)
    expected = both - plain.entropy(known.sum(axis=1))
    entropy = plain.entropy(whole.sum(axis=1)) - plain.entropy(known.sum(axis=1))
    found = row_utility(channel)
    assert found.mutual_information == pytest.approx(expected, abs=CLOSE)
    assert found.entropy == pytest.approx(entropy)
    assert found.nmi == pytest.approx(made.nmi, abs=CLOSE)
    assert found.mutual_information <= made.nmi * made.entropy + 1e-15


def test_the_leakage_of_the_row_is_the_largest_for_any_distribution(frame):
    """log sum_y max_x W(y|x) over the rows of the table, the given columns being part of both."""
    channel = designed(frame, given="k", promise="relative", least_mass=0.2)
    law, _ = law_of(channel, channel.table, lambda e: e[1])
    conditional = law / law.sum(axis=1, keepdims=True)
    expected = math.log(conditional.max(axis=0).sum())
    found = measure_rows(channel).utility["maximal_leakage_of_useful"]
    assert found == pytest.approx(expected)


def test_one_level_is_a_channel_of_one_column(frame):
    """The same integers as a channel of one column have the same measures, to the last digit."""
    channel = designed(frame, release=["a"])
    level = channel.tree.levels[0]
    rows = np.zeros((level.size, level.size), dtype=object)
    rows[
        level.pair_inputs[level.rows.row_of], level.slot_outputs[level.rows.indices]
    ] = level.rows.values
    used = rows.any(axis=0)
    joint = md.Joint.from_table(frame, sensitive="secret", useful="a")
    outputs = tuple(np.array(channel.labels[0])[used].tolist())
    single = md.Channel(joint.useful, outputs, rows[:, used].tolist(), joint=joint)
    rowwise = measure_rows(channel)
    columnwise = measure(single, joint)
    assert rowwise.leakage == columnwise.leakage
    assert rowwise.achieved == columnwise.achieved
    assert rowwise.outputs == columnwise.outputs
    assert rowwise.guarantees == columnwise.guarantees
    for name, value in columnwise.utility.items():
        assert rowwise.utility[name] == pytest.approx(value, rel=1e-13)


def test_another_table_without_a_secret(frame):
    channel = designed(frame)
    found = measure_rows(channel, frame[frame["secret"] != "u"])
    assert len(found.outputs[0].posterior) == 2
    assert found.leakage["max_log_lift"] < math.inf


def test_orders_are_checked(frame):
    with pytest.raises(md.InputError, match=r"the order \(0\) must be positive"):
        measure_rows(designed(frame), orders=(0.0,))
