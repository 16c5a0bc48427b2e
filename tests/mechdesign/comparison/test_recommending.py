"""The knee of a curve, and the cheapest mechanism that is nearly optimal there."""

from __future__ import annotations

import pytest

from mechdesign.comparison.recommending import knee, recommend
from mechdesign.comparison.rows import ComparisonRow


def row(mechanism, epsilon, nmi, *, seconds=1.0, notion="alip", lam=0.5, satisfied=True):
    return ComparisonRow(
        mechanism,
        notion,
        epsilon,
        lam,
        epsilon / 2,
        epsilon / 2,
        nmi,
        None,
        0.1,
        -0.1,
        satisfied,
        False,
        seconds,
    )


def curve(mechanism, values, **options):
    return [row(mechanism, float(k + 1), nmi, **options) for k, nmi in enumerate(values)]


@pytest.mark.parametrize(
    ("utilities", "at"),
    [
        ((0.0, 0.8, 0.9, 1.0), 1),
        ((0.0, 0.5, 0.9, 1.0), 2),
        ((0.2, 0.25, 0.9, 0.95), 2),
        ((0.0, 1 / 3, 2 / 3, 1.0), None),
        ((0.0, 0.1, 0.3, 1.0), None),
        ((0.7, 0.7, 0.7, 0.7), None),
        ((0.0, 1.0), None),
        ((0.5,), None),
    ],
)
def test_knee(utilities, at):
    assert knee(range(len(utilities)), utilities) == at


def test_the_knee_does_not_depend_on_units():
    values = [0.1, 0.6, 0.75, 0.85, 0.9]
    assert knee([1, 2, 3, 4, 5], values) == knee([10, 20, 30, 40, 50], [3 * v + 1 for v in values])


def test_the_cheapest_within_one_percent_is_named():
    rows = [
        *curve("optimal", (0.2, 0.90, 0.95, 1.0), seconds=5.0),
        *curve("subset-response", (0.2, 0.8915, 0.95, 1.0), seconds=2.0),
        *curve("subset-merging", (0.1, 0.8905, 0.93, 1.0), seconds=0.5),
    ]
    (found,) = recommend(rows)
    assert (found.epsilon, found.row.mechanism, found.cheapest.mechanism) == (
        2.0,
        "optimal",
        "subset-response",
    )
    assert found.share == pytest.approx(0.8915 / 0.90)
    assert found.seconds == pytest.approx(8.0)


def test_without_a_cheaper_one_it_is_the_optimum_itself():
    rows = [*curve("optimal", (0.2, 0.9, 1.0)), *curve("complete-merging", (0.0, 0.4, 1.0), seconds=0.1)]
    assert recommend(rows)[0].cheapest.mechanism == "optimal"


def test_without_the_optimum_nothing_is_said_of_nearness():
    rows = [*curve("complete-merging", (0.0, 0.4, 1.0)), *curve("subset-merging", (0.2, 0.9, 1.0))]
    (found,) = recommend(rows)
    assert (found.row.mechanism, found.epsilon, found.cheapest, found.share) == (
        "subset-merging",
        2.0,
        None,
        None,
    )


def test_rows_that_violate_their_notion_are_not_recommended():
    rows = [
        *curve("optimal", (0.2, 0.9, 1.0)),
        *curve("subset-merging", (0.2, 0.9, 1.0), seconds=0.1, satisfied=False),
    ]
    assert recommend(rows)[0].cheapest.mechanism == "optimal"


def test_one_recommendation_for_each_notion_and_lam():
    rows = [*curve("optimal", (0.2, 0.9, 1.0)), *curve("optimal", (0.2, 0.3, 1.0), notion="ldp", lam=None)]
    assert [(r.notion, r.lam, r.epsilon) for r in recommend(rows)] == [
        ("alip", 0.5, 2.0),
        ("ldp", None, None),
    ]
