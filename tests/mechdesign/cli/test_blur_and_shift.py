"""`nonstochastic blur` and `nonstochastic shift`: the figures, and every refusal."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

PEOPLE = """weight,height,limit
80,170,86.7
88,170,86.7
86,170,86.7
60,160,76.8
75,160,76.8
78,160,76.8
95,180,97.2
"""


@pytest.fixture
def table(folder):
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return "people.csv"


@pytest.fixture
def answer(run):
    def record(*arguments):
        result = run("nonstochastic", *arguments, "--json")
        assert result.code == 0, result.err
        return json.loads(result.out)

    return record


def by_hand(within):
    """Epsilon by the values behind each report, from the rows themselves."""
    rows = [tuple(map(float, line.split(",")[::2])) for line in PEOPLE.split()[1:]]
    sides: dict[tuple[float, float], set[bool]] = {}
    reports = []
    for weight, limit in rows:
        report = limit if abs(weight - limit) <= within else weight
        reports.append((report, limit))
        sides.setdefault((report, limit), set()).add(weight >= limit)
    hidden = sum(len(sides[report]) == 2 for report in reports)
    if hidden == len(rows):
        return None
    return Fraction(hidden, len(rows) - hidden)


@pytest.mark.parametrize("within", [0.5, 1, 2, 5, 20])
def test_the_values_behind_each_report_are_counted(answer, table, within):
    asked = ("--x", "weight", "--border", "limit", "--within", str(within))
    record = answer("blur", table, *asked)
    expected = by_hand(within)
    assert record["epsilon"] == (None if expected is None else float(expected))
    assert record["largest_distance"] <= within


def test_a_border_of_one_number_and_what_is_released_beside(answer, table):
    asked = ("--x", "weight", "--border", "80", "--within", "5")
    whole = answer("blur", table, *asked)
    assert (whole["records_moved"], whole["epsilon"]) == (2, 0.75)
    # Beside the height, those below the border are told from the one above it.
    assert answer("blur", table, *asked, "--y", "height")["epsilon"] == 0


def test_nothing_is_hidden_where_one_side_never_occurs_near_the_border(run, table):
    asked = ("--x", "weight", "--border", "100", "--within", "5")
    result = run("nonstochastic", "blur", table, *asked)
    assert result.code == 2
    assert "no output is compatible with the null hypothesis" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--x", "weight", "--within", "2"), "--border COL|NUMBER and --within D"),
        (
            ("--x", "weight", "--border", "limits", "--within", "2"),
            "there is no column 'limits'; did you mean 'limit'?",
        ),
        (("--x", "weight", "--border", "limit", "--within", "0"), "must be positive"),
        (
            ("--x", "weight", "--border", "limit", "--within", "x"),
            "within: 'x' is not a number",
        ),
    ],
)
def test_a_blur_that_cannot_be(run, table, arguments, message):
    result = run("nonstochastic", "blur", table, *arguments)
    assert result.code == 2
    assert message in result.err


def test_levels_within_a_budget_and_what_they_shift(answer):
    most = answer("shift", "--individuals", "100", "--range", "0,40", "--epsilon", "3")
    assert (most["levels"], most["outputs_that_differ"]) == (499, 8)
    assert most["published_levels"] == 300
    one_more = answer("shift", "--individuals", "100", "--levels", "500")
    assert one_more["outputs_that_differ"] == 9
    assert one_more["published_levels"] is None
    weighted = answer(
        "shift", "--coefficients", "11,10,7", "--range", "0,2", "--levels", "10"
    )
    assert (weighted["individuals"], weighted["outputs_that_differ"]) == (3, 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon", "1"), "either --individuals N or --coefficients C,C,.."),
        (("--individuals", "3"), "either --epsilon BITS or --levels Q is needed"),
        (
            ("--individuals", "0", "--epsilon", "1"),
            "--individuals ('0') must be an integer of at least 1",
        ),
        (
            ("--individuals", "3", "--epsilon", "1", "--range", "3"),
            "--range '3' must be LO,HI",
        ),
        (
            ("--coefficients", "1,x", "--epsilon", "1"),
            "'x'",
        ),
        (
            ("--individuals", "3", "--range", "2,2", "--epsilon", "1"),
            "the query is constant on these bounds",
        ),
    ],
)
def test_a_shift_that_cannot_be(run, arguments, message):
    result = run("nonstochastic", "shift", *arguments)
    assert result.code == 2
    assert message in result.err
