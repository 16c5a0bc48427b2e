"""Queries and tasks within an average budget, whose exact leakage is that of the auditor."""

from __future__ import annotations

import pytest

from mechdesign import audit, load
from mechdesign.auditing.averages import average_leakage
from mechdesign.core.errors import InputError
from mechdesign.mechanisms import design
from mechdesign.notions import ALIP, LDP
from mechdesign.tables.joint import Joint
from tests.profiles import slow

COUNTS = [[30, 5, 1, 8], [3, 20, 9, 2], [1, 2, 17, 6]]
TASK = [[25, 4, 2, 3], [9, 23, 25, 13]]
ENDS = {"gap": 5e-3, "time_limit": 3.0}


def options(purpose):
    if purpose == "task":
        return {
            "objective": "task",
            "task": Joint.from_counts(TASK, sensitive="task"),
        }
    # The proof of a smaller gap takes the whole time.
    return {"objective": purpose, "gap": 0.08}


@pytest.mark.parametrize(
    ("purpose", "promise"),
    [
        ("frequencies", ()),
        ("task", (ALIP(0.4, 0.4),)),
        slow("frequencies", (ALIP(0.4, 0.4),)),
        slow("task", ()),
    ],
)
@pytest.mark.parametrize(
    ("measure", "budget", "beside_promise"),
    [
        # Alone, the smaller budgets of mi and chi2 have no proof within the limit of time.
        ("mi", 0.2, 0.05),
        ("tv", 0.1, 0.1),
        ("chi2", 0.4, 0.1),
        ("maximal-leakage", 0.2, 0.2),
        ("guess", "50%", "50%"),
    ],
)
def test_the_average_is_kept_exactly(
    purpose, measure, budget, beside_promise, promise, tmp_path
):
    table = Joint.from_counts(COUNTS)
    if promise:
        budget = beside_promise
    asked = {"average": {measure: budget}, **ENDS, **options(purpose)}
    result = design(table, *promise, **asked)
    assert result.verified
    (average,) = result.channel.record.averages
    leaked = average_leakage(result.channel, table, measure)
    assert leaked == average.achieved <= average.budget
    if promise:
        assert audit(result.channel, table, *promise).satisfied
    if purpose == "task":
        kept = result.purpose.task_kept
        assert kept <= result.purpose.task_upper_bound <= kept + 5e-3
    else:
        variance = result.purpose.variance
        assert 0.9 * variance <= result.purpose.variance_lower_bound <= variance
    result.channel.save(tmp_path / "c.json")
    assert load(tmp_path / "c.json").record.averages == result.channel.record.averages


def test_a_smaller_budget_keeps_less():
    table = Joint.from_counts(COUNTS)
    some = [
        design(table, average={"mi": e}, **options("task"), **ENDS).purpose
        for e in (0.01, 0.05, 0.2)
    ]
    assert some[0].task_upper_bound < some[1].task_kept
    assert some[1].task_upper_bound < some[2].task_kept


def test_one_average_alone():
    with pytest.raises(InputError, match="queries and tasks stand beside one average"):
        design(
            Joint.from_counts(COUNTS),
            average={"mi": 0.05, "tv": 0.1},
            **options("frequencies"),
        )


@pytest.mark.parametrize("promise", [(), (LDP(1.5),)])
def test_frequencies_of_a_skewed_column(promise):
    """A posterior that learns of a rare symbol still has the frequent one as its largest entry."""
    table = Joint.from_counts([[60, 9, 4, 2], [20, 8, 3, 7]])
    result = design(table, *promise, average={"tv": 0.06}, **options("frequencies"))
    assert result.verified
    variance = result.purpose.variance
    assert 0.9 * variance <= result.purpose.variance_lower_bound <= variance
