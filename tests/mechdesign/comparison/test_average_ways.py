"""The optimum within an average budget beside the local methods: none of them keeps more."""

import numpy as np
import pytest

import mechdesign as md
from mechdesign.comparison.ways import average_rows
from mechdesign.mechanisms.averages import GREEDY, RESTARTS
from tests.profiles import slow

ROUNDING = 1e-7
"""Share of H(X) that the distance from the budget may cost: 1e-9 of it, at a steep budget."""


def joint(seed, secrets=3, symbols=5):
    random = np.random.default_rng(seed)
    return md.Joint.from_counts(random.integers(1, 40, (secrets, symbols)))


def ways(table, average, restarts=4, time_limit=None):
    rows, _ = average_rows(
        table, average, gap=1e-4, time_limit=time_limit, restarts=restarts
    )
    return rows


@pytest.mark.parametrize("measure", ["mi", "tv", "chi2", "maximal-leakage"])
@pytest.mark.parametrize("share", ["5%", slow("40%")])
def test_no_local_method_keeps_more(measure, share):
    for seed in range(2):
        table = joint(seed)
        optimum, *others = rows = ways(table, {measure: share})
        names = [GREEDY, RESTARTS] if measure == "mi" else [GREEDY]
        assert optimum.mechanism == "optimal"
        assert [row.mechanism for row in others] == [
            name.replace(" ", "-") for name in names
        ]
        for row in rows:
            assert row.notion == measure
            assert row.figure <= row.epsilon
            assert row.nmi <= row.upper_bound_nmi
        for row in others:
            assert optimum.nmi >= row.nmi - ROUNDING
        assert optimum.upper_bound_nmi - optimum.nmi <= 1e-4


def test_the_optimum_never_falls_below_although_its_search_has_no_time():
    optimum, *others = ways(joint(3, 6, 60), {"mi": "10%"}, 30, time_limit=0.3)
    assert optimum.nmi >= max(row.nmi for row in others) - ROUNDING


def test_greedy_merging_can_be_far_below():
    """Merging whole symbols keeps nothing of a column whose pairs all tell."""
    table = md.Joint.from_counts([[8, 3, 1], [2, 6, 4], [1, 1, 9]])
    optimum, greedy, restarts = [row.nmi for row in ways(table, {"mi": "10%"})]
    assert optimum > greedy + 0.05
    assert restarts > greedy


def test_the_local_methods_know_one_average():
    with pytest.raises(md.InputError, match="compare takes one average budget"):
        ways(joint(0), {"mi": "10%", "tv": "10%"})


@pytest.mark.parametrize("average", [slow({"mi": "25%"}), {"chi2": 0.1}])
def test_compare_has_the_ways_as_rows(average):
    table = joint(0)
    found = md.compare(table, average=average)
    rows = ways(table, average, 30)
    for row, way in zip(found.rows, rows, strict=True):
        assert (row.nmi, row.figure, row.outputs) == (way.nmi, way.figure, way.outputs)
    assert "figure" in found.to_frame().columns
    text = " ".join(found.summary().split())
    assert "greedy-merging" in text
    assert "An average promises nothing about one record" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": [1]}, "has no epsilons"),
        ({"notions": ["lip"]}, "has no notions"),
        ({"objectives": ["truth"]}, "has no objectives"),
        ({"confidence": 0.9}, "has no confidence"),
        ({"output": "rows.csv"}, "has no output"),
        ({"promise": "relative"}, "has no promise"),
    ],
)
def test_what_an_average_does_not_have_is_refused(options, message):
    with pytest.raises(md.InputError, match=message):
        md.compare(joint(0), average={"mi": 0.1}, **options)
