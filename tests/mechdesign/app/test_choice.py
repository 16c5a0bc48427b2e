"""The choice of the page: roles, budgets in words, refusals."""

from __future__ import annotations

from decimal import Decimal

import pytest

from mechdesign.app.choice import Choice, choice_of_form
from mechdesign.core.errors import InputError

COLUMN = {"illness": "protect", "job": "release"}
ROLES = {"illness": "protect", "job": "release", "town": "leave out", "age": "give"}


def test_roles_follow_the_order_of_the_table():
    choice = Choice(roles=ROLES)
    assert choice.sensitive == ("illness",)
    assert choice.released == ("job",)
    assert choice.given == ("age",)
    assert choice.used == ("illness", "age", "job")
    assert choice.is_rows


@pytest.mark.parametrize("factor", ["1.05", "1.1", "1.5", "2", "3", "7", "20"])
def test_lower_factor_promises_at_least_the_inverse(factor):
    choice = Choice(roles=ROLES, factor=factor)
    lower = Decimal(choice.at_least_times)
    assert lower * Decimal(factor) >= 1
    assert lower < 1
    assert Decimal(choice.at_most_times) == Decimal(factor)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"roles": {"a": "release"}}, "No column is protected"),
        ({"roles": {"a": "protect"}}, "No column is released"),
        ({"factor": "1"}, "factor must be"),
        ({"factor": "nan"}, "factor must be"),
        ({"factor": "many"}, "factor must be"),
        ({"time_limit": "0"}, "time limit must be"),
        ({"time_limit": "inf"}, "time limit must be"),
        ({"level": "1"}, "level must be"),
        ({"level": "0.95"}, "given columns are known"),
        ({"merge_rare": "10"}, "for one released column alone"),
        ({"roles": COLUMN, "merge_rare": "auto"}, "choose a population"),
        (
            {
                "roles": COLUMN,
                "merge_rare": "auto",
                "level": "0.95",
                "objective": "truth",
            },
            "released as groups",
        ),
        ({"merge_rare": "few"}, "whole number of records"),
        (
            {"roles": {"a": "protect", "b": "release"}, "promise": "relative"},
            "no column is given",
        ),
        (
            {"roles": {"a": "protect", "b,c": "release", "d": "release"}},
            "comma or an asterisk",
        ),
    ],
)
def test_refusals(change, message):
    with pytest.raises(InputError, match=message):
        Choice(**{"roles": ROLES, **change}).check()


def test_form_with_an_unknown_role_is_refused():
    before = Choice(roles={"a": "give"})
    form = {"role-0": "publish", "role-1": "release"}
    choice, refusal = choice_of_form(("a", "b"), form, before)
    assert refusal.startswith("Role of a: 'publish' is none of leave out, protect")
    assert choice.roles == {"a": "give", "b": "release"}


def test_form_numbers_the_columns():
    form = {"role-0": "protect", "role-1": "release", "bins-1": " 10 ", "factor": "3"}
    choice, refusal = choice_of_form(("a", "b"), form, Choice())
    assert refusal == ""
    assert choice.roles == {"a": "protect", "b": "release"}
    assert choice.used_bins == {"b": "10"}
    assert choice.at_least_times == "0.3334"
