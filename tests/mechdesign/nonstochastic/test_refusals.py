"""What used to hang, crash or lie: each is now refused in one line, or answered."""

from __future__ import annotations

import csv
from fractions import Fraction

import pytest

from mechdesign.core.documents import hashed_text
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import (
    OrderStatistic,
    composed_epsilon,
    count_query,
    design_quantizer,
    epsilon_for,
    fibres,
    finite,
    identifiable_partition,
    integers,
    interval,
    sum_query,
    uniform_quantizer,
)
from mechdesign.nonstochastic.mechanism_file import FORMAT, VERSION, MechanismFile
from mechdesign.nonstochastic.noiseless import promises
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: integers(0, 10**10),
            r"10,000,000,001 values.*interval\(0, 10000000000\) needs no list",
        ),
        (lambda: integers(0, 2.5), "end of the range .'2.5'. must be an integer"),
        (lambda: uniform_quantizer(0, 1, 10**9), "levels .* at most 1,000,000"),
        (lambda: uniform_quantizer(0, 1, 2.5), "levels .'2.5'. must be an integer"),
        (
            lambda: uniform_quantizer(0, 1, 3).cells(["a"]),
            "the answers must be numbers",
        ),
        (
            lambda: OrderStatistic(1.5, 3, interval(0, 1)),
            r"rank .'1.5'. must be an integer of at least 1",
        ),
        (lambda: epsilon_for(2.5), "must be an integer of at least 1"),
        (
            lambda: epsilon_for(1 << 20_000),
            r"outputs \(some 2\^20000\) must be at most 2\^10000",
        ),
        (lambda: composed_epsilon([(2.5, 1)]), r"outputs \('2.5'\) must be an integer"),
        (lambda: promises(0, 1), r"outputs \('0'\) must be an integer of at least 1"),
        (lambda: identifiable_partition(["a", "b"], 1), "points must be numbers"),
        (
            lambda: identifiable_partition([1e200, -1e200], 1),
            "overflow when squared; use a larger unit",
        ),
    ],
)
def test_refused_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [count_query(20_000), sum_query(1_000, finite([0, 1, 10**9]))],
    ids=["count", "sum"],
)
def test_too_many_sums_to_list_give_a_bound_that_keeps_the_budget(query, monkeypatch):
    # Small limits, so that small queries exceed them.
    monkeypatch.setattr(fibres, "LARGEST_SPAN", 1_000)
    monkeypatch.setattr(fibres, "LARGEST_SUMSET", 10_000)
    monkeypatch.setattr(fibres, "MOST_ADDITIONS", 1_000)
    designed = design_quantizer(query, 1)
    assert designed.certificate.outputs <= 2
    assert designed.quantizer.levels > 1


def test_bits_of_very_many_releases():
    """An individual with a reading every half hour for years: 20,000 bits, and no huge integer is
    written.
    """
    assert composed_epsilon([(2, 20_000)]) == 20_000.0
    many = composed_epsilon([(3, 10**12)])
    assert (
        Fraction(many)
        >= 10**12 * Fraction(epsilon_for(3))
        > Fraction(many) * (1 - Fraction(1, 2**52))
    )


def test_an_individual_with_many_records(tmp_path):
    (tmp_path / "in.csv").write_text("who,kwh\n" + "a,1\n" * 15_000, encoding="utf-8")
    options = QuantizeOptions(
        column="kwh", epsilon=1, range_text="0,10", individual="who"
    )
    done = quantise_table(tmp_path / "in.csv", tmp_path / "out.csv", options)
    assert (done.answers_each, done.total_epsilon) == (15_000, 15_000.0)
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as stream:
        assert sum(1 for _ in csv.reader(stream)) == 15_001


@pytest.mark.parametrize(
    ("query", "range_text", "message"),
    [
        (
            "sum",
            "0,1e308",
            "the sum of 12 values up to 1e.308 can be beyond all doubles",
        ),
        ("identity", "-1.7e308,1.7e308", "is wider than any double; use a larger unit"),
    ],
)
def test_releases_that_no_double_can_hold(tmp_path, query, range_text, message):
    (tmp_path / "in.csv").write_text("v\n" + "1e308\n" * 12, encoding="utf-8")
    options = QuantizeOptions(column="v", epsilon=0, query=query, range_text=range_text)
    with pytest.raises(InputError, match=message):
        quantise_table(tmp_path / "in.csv", tmp_path / "out.csv", options)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("guarantee", "outputs", "message"),
    [
        ({"outputs": 1}, 2, "the guarantee speaks of '1' outputs, but there are 2"),
        ({"outputs": 2}, True, r"outputs \('True'\) must be a whole number"),
    ],
)
def test_a_mechanism_file_that_promises_too_much(tmp_path, guarantee, outputs, message):
    """Hashed correctly, but by somebody who lies: the reader counts again."""
    mechanism = {
        "individuals": 10,
        "range": ["0", "10"],
        "thresholds": ["5"],
        "outputs": outputs,
        "witness": "",
    }
    content = {
        "query": "count",
        "column": "v",
        "group_by": [],
        "range": ["0", "1"],
        "epsilon": 1.0,
        "outputs_allowed": 2,
        "mechanisms": [mechanism],
        "guarantee": guarantee,
        "provenance": {},
    }
    (tmp_path / "m.json").write_text(
        hashed_text(FORMAT, VERSION, content), encoding="utf-8"
    )
    with pytest.raises(InputError, match=message):
        MechanismFile.load(tmp_path / "m.json")
