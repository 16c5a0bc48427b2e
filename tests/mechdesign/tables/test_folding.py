"""Long tables folded into one row a person."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode
from mechdesign.tables.columns import RecordFault
from mechdesign.tables.folding import fold
from mechdesign.tables.people import ABSENT, RECORDS, People
from mechdesign.tables.people_source import fold_frame
from mechdesign.tables.people_tables import PeopleRoles, people_of_table

ROLES = PeopleRoles(person=("p",), wave="w", sensitive=("s",), released=("a", "b"))


def panel(*rows):
    return pd.DataFrame(rows, columns=["p", "w", "s", "a", "b"])


def test_people_stand_in_the_order_of_their_first_records_and_records_in_that_of_waves():
    frame = panel(
        ("y", 10, "no", "a1", "b1"),
        ("x", 2, "yes", "a2", "b2"),
        ("y", 9, "no", "a3", "b3"),
    )
    joint = people_of_table(frame, ROLES)
    assert joint.useful.columns == (RECORDS, "a 1", "b 1", "a 2", "b 2")
    assert joint.sensitive.columns == ("s",)
    # 9 comes before 10, which texts do not.
    assert set(joint.useful.symbols) == {
        ("2", "a3", "b3", "a1", "b1"),
        ("1", "a2", "b2", ABSENT, ABSENT),
    }
    assert joint.total == 2
    assert joint.useful.people == People(
        person=("p",),
        wave="w",
        columns=("a", "b"),
        given=(),
        longest=2,
        sensitive=("s",),
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=1, max_size=30
    ),
    st.randoms(),
)
def test_folding_and_unfolding_give_every_record_its_own_cell(rows, random):
    """Every person has the sequence that going through the records one by one gives; what is
    unfolded is what came."""
    numbers: dict[int, int] = {}
    long = []
    for person, cell in rows:
        numbers[person] = numbers.get(person, 0) + 1
        long.append((f"p{person}", numbers[person] * 7, "s", cell, "b"))
    random.shuffle(long)
    frame = panel(*long)
    expected: dict[str, list[tuple[int, str]]] = {}
    for person, wave, _, cell, _ in long:
        expected.setdefault(person, []).append((wave, cell))
    people = ROLES.people(max(map(len, expected.values())))
    table = fold_frame(people, frame)
    assert len(table.records) == len(expected)
    for k, sequence in enumerate(expected.values()):
        cells = [cell for _, cell in sorted(sequence)]
        found = []
        for place in range(people.longest):
            column = table.columns[f"a {place + 1}"]
            found.append(column.texts[column.codes[k]])
        assert found == cells + [ABSENT] * (people.longest - len(cells))
    back = table.records.unfolded(table.people, table.columns)["a"]
    assert [back.texts[code] for code in back.codes] == frame["a"].tolist()


def test_a_cell_with_the_text_of_an_absent_one_is_told_by_the_number_of_records():
    frame = panel(
        ("x", 1, "s", ABSENT, "b"), ("y", 1, "t", "a", "b"), ("y", 2, "t", "a", "b")
    )
    table = fold_frame(ROLES.people(2), frame)
    back = table.records.unfolded(table.people, table.columns)["a"]
    assert [back.texts[code] for code in back.codes] == [ABSENT, "a", "a"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [("x", 1, "s", "a", "b"), ("x", 1.0, "s", "a", "b")],
            "1 of 1 people have two records in one wave",
        ),
        (
            [("x", 1, "s", "a", "b"), ("x", 2, "t", "a", "b"), ("y", 1, "s", "a", "b")],
            "different values in the records of 1 of 2 people",
        ),
        ([("x", None, "s", "a", "b")], "'w' is empty"),
        ([(None, 1, "s", "a", "b")], "'p' is empty"),
        ([("x", 1, "s", None, "b")], "'a' has an empty cell"),
    ],
)
def test_records_that_make_no_people_are_refused(rows, words):
    with pytest.raises(InputError, match=re.escape(words)):
        people_of_table(panel(*rows), ROLES)


def test_empty_cells_may_be_symbols():
    frame = panel(("x", 1, "s", None, "b"), ("y", 1, "t", "a", "b"))
    joint = people_of_table(frame, ROLES, "symbol")
    assert ("1", "", "b") in joint.useful.symbols
    with pytest.raises(InputError, match="must be refuse or symbol"):
        people_of_table(frame, ROLES, "drop")


def test_more_records_than_the_most_are_refused_by_their_number():
    person = encode(["x"] * 101, "p")
    with pytest.raises(InputError, match="1 of 1 people have more than 100 records"):
        fold({"p": person}, None)
    with pytest.raises(InputError, match="there are no records"):
        fold({"p": encode([], "p")}, None)


def test_a_person_may_be_named_by_several_columns():
    household = encode([1, 1, 2], "h")
    member = encode([1, 2, 1], "m")
    folded = fold({"h": household, "m": member}, None)
    assert folded.person_of.tolist() == [0, 1, 2]


def test_without_a_wave_records_stand_in_the_order_of_the_table():
    folded = fold({"p": encode(["x", "y", "x"], "p")}, None)
    assert folded.place_of.tolist() == [0, 0, 1]
    assert folded.lengths.tolist() == [2, 1]


def test_a_fault_names_its_record():
    with pytest.raises(RecordFault) as fault:
        fold({"p": encode(["x", None], "p")}, None)
    assert fault.value.position == 1


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"released": ("a", "p")}, "'p' has two roles"),
        ({"released": ("a", "s")}, "'s' has two roles"),
        ({"wave": "s"}, "'s' orders the records"),
        ({"person": ()}, "at least one column"),
        ({"sensitive_of": "wave"}, "must be one of"),
    ],
)
def test_roles_that_exclude_each_other_are_refused(roles, words):
    from dataclasses import replace

    frame = panel(("x", 1, "s", "a", "b"), ("y", 1, "t", "a", "c"))
    with pytest.raises(InputError, match=re.escape(words)):
        people_of_table(frame, replace(ROLES, **roles))


def test_the_wave_may_be_released():
    frame = panel(
        ("x", 1, "s", "a", "b"), ("x", 3, "s", "a", "b"), ("y", 2, "t", "a", "c")
    )
    roles = PeopleRoles(person=("p",), wave="w", sensitive=("s",), released=("w", "a"))
    joint = people_of_table(frame, roles)
    assert ("2", "1", "a", "3", "a") in joint.useful.symbols


def test_a_symbol_and_its_records_belong_together():
    people = ROLES.people(2)
    symbol = people.symbol([("a", "b")])
    assert symbol == ("1", "a", "b", ABSENT, ABSENT)
    assert people.records(symbol) == (("a", "b"),)
    with pytest.raises(
        InputError, match="3 records; the channel knows people with 1 to 2"
    ):
        people.symbol([("a", "b")] * 3)
    with pytest.raises(InputError, match="record 1 has 1 texts"):
        people.symbol([("a",)])


def test_a_sequence_of_secrets_is_a_secret():
    from dataclasses import replace

    frame = panel(
        ("x", 1, "s", "a", "b"),
        ("x", 2, "t", "a", "b"),
        ("y", 1, "t", "a", "c"),
        ("y", 2, "t", "a", "c"),
    )
    joint = people_of_table(frame, replace(ROLES, sensitive_of="sequence"))
    assert joint.sensitive.columns == ("s 1", "s 2")
    assert joint.sensitive.symbols == (("s", "t"), ("t", "t"))


def test_pandas_integers_with_gaps_stay_integers():
    frame = panel(
        ("x", 1, "s", 1, "b"), ("y", 1, "t", np.nan, "c"), ("z", 1, "t", 2, "c")
    )
    joint = people_of_table(frame, ROLES, "symbol")
    assert {symbol[1] for symbol in joint.useful.symbols} == {"1", "2", ""}


@pytest.mark.parametrize(
    "twins",
    [
        ("7", "007"),
        ("7", " 7"),
        ("P1", "P001"),
        ("Mu\u0308", "M\u00fc"),
        ("a", "a\u200b"),
    ],
)
def test_two_spellings_of_one_person_are_refused(twins):
    one, other = twins
    frame = panel(
        (one, 1, "no", "a", "b"), (other, 2, "no", "c", "b"), ("8", 1, "yes", "a", "b")
    )
    with pytest.raises(InputError, match="differ only in blanks, leading zeros"):
        people_of_table(frame, ROLES)
    assert people_of_table(frame.iloc[1:], ROLES).total == 2


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_record_of_nobody_is_refused(blank):
    frame = panel(("7", 1, "no", "a", "b"), (blank, 2, "no", "a", "b"))
    with pytest.raises(RecordFault, match="belongs to no person or wave"):
        people_of_table(frame, ROLES)
