"""Numbers in reports are never more favourable than the values behind them."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.wording import (
    about,
    at_least,
    at_most,
    budget,
    factor_at_least,
    factor_at_most,
)
from mechdesign.report.wording import (
    count,
    figure,
    item,
    label,
    paragraph,
    people_in,
    percent,
    percent_at_least,
    percent_at_most,
)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_bounds_are_rounded_outwards_and_not_far(value):
    assert value <= float(at_most(value)) <= value * 1.0002
    assert value * 0.9998 <= float(at_least(value)) <= value
    assert float(about(value)) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (at_most, 0.123451, "0.12346"),
        (at_least, 0.123459, "0.12345"),
        (about, 0.123456, "0.12346"),
        (at_most, 0.0, "0"),
        (at_most, math.inf, "inf"),
        (about, -math.inf, "-inf"),
        (about, -1.5, "-1.5"),
        (percent, 0.8508123, "85.1 %"),
        (percent_at_most, 0.8508123, "85.1 %"),
        (percent_at_least, 0.8508123, "85.0 %"),
        (percent, 1.0, "100 %"),
        (percent, 0.0, "0 %"),
        (percent, 0.999996, ">99.9 %"),
        (percent, 1e-9, "<0.1 %"),
        (percent_at_most, 0.999996, "<100 %"),
        (percent_at_most, 1e-9, "0.1 %"),
        (percent_at_least, 0.999996, "99.9 %"),
        (percent_at_least, 1e-9, ">0 %"),
        (budget, 0.5, "0.5"),
        (budget, 0.1234561, "0.1234561"),
        (budget, 0.65 * 0.3, "0.195"),
        (budget, 0.034999999999999996, "0.035"),
        (budget, 700.0, "700"),
        (factor_at_most, math.log(2.0), "2"),
        (factor_at_least, math.log(2.0), "0.5"),
        (factor_at_least, math.inf, "0"),
        (factor_at_most, 5e-324, "1.0001"),
        (figure, 0.123456, "0.123"),
        (figure, 1.5e-10, "1.50e-10"),
        (figure, 2.66e-17, "0.00"),
        (figure, -2.66e-17, "0.00"),
        (figure, None, "-"),
    ],
)
def test_numbers(function, value, text):
    assert function(value) == text


budgets = st.floats(min_value=5e-324, max_value=700.0)


@given(budgets)
def test_a_printed_budget_is_never_smaller_than_the_one_that_was_verified(nats):
    """A printed promise is never stronger: eps <= printed eps, and the factors lie outside exp(-eps) and exp(eps)."""
    assert nats <= float(budget(nats)) <= nats * 1.00001 + 5e-324
    with localcontext(prec=60):
        assert Decimal(factor_at_most(nats)) > Decimal(nats).exp()
        assert Decimal(factor_at_least(nats)) < (-Decimal(nats)).exp()


@given(st.floats(min_value=0.0, max_value=1.0))
def test_shares_are_rounded_in_their_direction_and_certainty_is_certain(share):
    """at least <= share <= at most; 0 % and 100 % are printed of 0 and 1 alone, but for valid one-sided bounds."""
    texts = {
        function(share) for function in (percent, percent_at_most, percent_at_least)
    }
    assert ("100 %" in texts) == (share == 1.0)
    assert ("0 %" in texts) == (share == 0.0)
    high, low = percent_at_most(share), percent_at_least(share)
    assert high == "<100 %" or Fraction(share) * 100 <= Fraction(
        high.removesuffix(" %")
    )
    assert low == ">0 %" or Fraction(low.removesuffix(" %")) <= Fraction(share) * 100


def test_counts():
    assert count(1, "record") == "1 record"
    assert count(31_580, "record") == "31,580 records"


def test_labels_are_shown_as_they_are_but_for_control_characters():
    assert label("é 日本 ?") == "é 日本 ?"
    assert label("\x1b[2J\n") == "\\x1b[2J\\n"
    assert label("") == '""'


def test_paragraphs_wrap_without_breaking_words():
    text = " ".join(["word"] * 60)
    lines = paragraph(text).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("  word") and len(line) <= 96 for line in lines)
    assert item("one " * 40).splitlines()[0].startswith("  - one")
    assert item("one " * 40).splitlines()[1].startswith("    one")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.397, "about 4 in 10"),
        (0.241, "about 1 in 4"),
        (0.5, "1 in 2"),
        (0.2, "1 in 5"),
        (0.657, "about 2 in 3"),
        (0.438, "about 9 in 20"),
        (0.003, "3 in 1,000"),
        (0.97, "about 19 in 20"),
        (0.00001, "fewer than 1 in 10,000"),
        (0.99999, "all but fewer than 1 in 10,000"),
        (0.0, "none"),
        (1.0, "all"),
    ],
)
def test_shares_of_people(share, text):
    assert people_in(share) == text


@given(st.floats(0.0002, 0.9998))
def test_a_share_of_people_is_near(share):
    words = people_in(share).removeprefix("about ")
    rest = words.startswith("all but ")
    people, crowd = (
        words.removeprefix("all but about ").removeprefix("all but ").split(" in ")
    )
    said = int(people) / int(crowd.replace(",", ""))
    if rest:
        said, share = 1 - said, share
    assert abs(said - share) <= 0.051 * share
