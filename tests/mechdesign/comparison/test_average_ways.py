"""The optimum within an average budget beside the local methods: none of them keeps more."""

import numpy as np
import pytest

import mechdesign as md
from mechdesign.comparison.ways import OPTIMUM, compare_average
from mechdesign.mechanisms.averages import GREEDY, RESTARTS

ROUNDING = 1e-7
"""Share of H(X) that the distance from the budget may cost: 1e-9 of it, at a steep budget."""


def joint(seed, secrets=3, symbols=5):
    random = np.random.default_rng(seed)
    return md.Joint.from_counts(random.integers(1, 40, (secrets, symbols)))


@pytest.mark.parametrize("measure", ["mi", "tv", "chi2", "maximal-leakage"])
@pytest.mark.parametrize("share", ["5%", "40%"])
def test_no_local_method_keeps_more(measure, share):
    for seed in range(2):
        table = joint(seed)
        found = compare_average(table, {measure: share}, restarts=4)
        optimum, *others = found.ways
        assert optimum.name == OPTIMUM
        names = [GREEDY, RESTARTS] if measure == "mi" else [GREEDY]
        assert [way.name for way in others] == names
        for way in found.ways:
            assert way.leakage <= found.average.budget
            assert way.kept <= (found.design.certificate.upper_bound_nmi or 0.0)
        for way in others:
            assert optimum.kept >= way.kept - ROUNDING
        assert (found.design.certificate.gap_nmi or 0.0) <= 1e-4


def test_the_optimum_never_falls_below_although_its_search_has_no_time():
    found = compare_average(joint(3, 6, 60), {"mi": "10%"}, time_limit=0.3)
    optimum, *others = found.ways
    assert optimum.kept >= max(way.kept for way in others) - ROUNDING


def test_greedy_merging_can_be_far_below():
    """Merging whole symbols keeps nothing of a column whose pairs all tell."""
    table = md.Joint.from_counts([[8, 3, 1], [2, 6, 4], [1, 1, 9]])
    found = compare_average(table, {"mi": "10%"}, restarts=4)
    kept = {way.name: way.kept for way in found.ways}
    assert kept[OPTIMUM] > kept[GREEDY] + 0.05
    assert kept[RESTARTS] > kept[GREEDY]


def test_the_table_of_ways():
    found = compare_average(joint(0), {"mi": "25%"}, restarts=2)
    assert repr(found).startswith("AverageComparison(certified optimum: kept 0.")
    assert [way.name for way in found.ways] == [OPTIMUM, GREEDY, RESTARTS]


@pytest.mark.parametrize("restarts", [0, True, 1.5, "2"])
def test_bad_restarts_are_refused(restarts):
    with pytest.raises(
        md.InputError, match=r"restarts .* (whole number, at least 1|that is whole)"
    ):
        compare_average(joint(0), {"mi": 0.1}, restarts=restarts)


def test_the_local_methods_know_one_average():
    with pytest.raises(md.InputError, match="compare takes one average budget"):
        compare_average(joint(0), {"mi": "10%", "tv": "10%"})


def test_compare_has_the_ways_as_rows():
    table = joint(0)
    found = md.compare(table, average={"mi": "25%"})
    ways = compare_average(table, {"mi": "25%"}).ways
    names = ["optimal", "greedy-merging", "best-of-restarts"]
    assert [row.mechanism for row in found.rows] == names
    for row, way in zip(found.rows, ways, strict=True):
        assert row.notion == "mi"
        assert (row.nmi, row.figure) == (way.kept, way.leakage)
        assert row.figure <= row.epsilon
        assert row.nmi <= row.upper_bound_nmi
    assert "figure" in found.to_frame().columns
    assert "best-of-restarts" in found.summary()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": [1]}, "has no epsilons and lams"),
        ({"notions": ["lip"]}, "has no notions"),
        ({"objectives": ["truth"]}, "has no objectives and task"),
        ({"confidence": 0.9}, "has no confidence"),
        ({"output": "rows.csv"}, "has no output"),
        ({"promise": "relative"}, "has no release, given and promise"),
    ],
)
def test_what_an_average_does_not_have_is_refused(options, message):
    with pytest.raises(md.InputError, match=message):
        md.compare(joint(0), average={"mi": 0.1}, **options)
