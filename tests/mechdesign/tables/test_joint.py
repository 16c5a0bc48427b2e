from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from tests.profiles import scaled


def exact_lift(counts, s, x) -> Fraction:
    total = sum(map(sum, counts))
    column = sum(row[x] for row in counts)
    return Fraction(counts[s][x], column) / Fraction(sum(counts[s]), total)


def test_texts_of_digits_are_the_counts():
    counts = [["3", "010"], ["0", "999999999999999999"]]
    assert Joint.from_counts(counts) == Joint.from_counts([[3, 10], [0, 10**18 - 1]])


@pytest.mark.parametrize("text", ["5", " 5", "+5", "5.0", "50e-1", "0" * 30 + "5"])
def test_other_texts_beside_digits_are_the_same_counts(text):
    """None of them goes by the way of digits alone, but the first."""
    counts = Joint.from_counts([["1", text], ["3", "4"]])
    assert counts == Joint.from_counts([[1, 5], [3, 4]])


@pytest.mark.parametrize("text", ["", "²", "١", "1_0", "1 0", "-1", "0.5"])
def test_what_is_no_text_of_a_count_is_refused_beside_digits(text):
    with pytest.raises(InputError, match="the count at row 's0', column 'x1' is"):
        Joint.from_counts([["1", text], ["3", "4"]])


positive_tables = st.tuples(st.integers(1, 5), st.integers(2, 6)).flatmap(
    lambda shape: st.lists(
        st.lists(
            st.one_of(
                st.integers(1, 50), st.integers(1, 2**60), st.integers(1, 2**255)
            ),
            min_size=shape[1],
            max_size=shape[1],
        ),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(positive_tables)
@example([[2**53 + 1, 2**54 + 6], [3, 5]])
@example([[10**8, 94_906_267], [1, 2]])
def test_float_views_are_the_correctly_rounded_rationals(counts):
    joint = Joint.from_counts(counts)
    total = sum(map(sum, counts))
    assert joint.total == total
    assert joint.records == (total if total <= 10**12 else None)
    for s, row in enumerate(counts):
        assert joint.p_s[s] == float(Fraction(sum(row), total))
        for x, entry in enumerate(row):
            assert joint.p[s, x] == float(Fraction(entry, total))
            assert joint.lift[s, x] == float(exact_lift(counts, s, x))
    for x in range(len(counts[0])):
        assert joint.p_x[x] == float(Fraction(sum(row[x] for row in counts), total))


def test_float_views_are_read_only_and_computed_once():
    joint = Joint.from_counts([[1, 2], [3, 0]])
    for name in ("p", "p_s", "p_x", "lift"):
        view = getattr(joint, name)
        assert view is getattr(joint, name)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0.5


def test_lift_of_a_zero_cell_is_zero():
    assert Joint.from_counts([[1, 2], [3, 0]]).lift[1, 1] == 0.0


def test_the_lift_matrix_maps_the_prior_to_ones():
    joint = Joint.from_counts(np.random.default_rng(1).integers(1, 100, (4, 9)))
    np.testing.assert_allclose(joint.lift @ joint.p_x, 1.0, rtol=1e-14)


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(1e-9, 1.0)))
def test_probabilities_are_the_exact_rationals_of_their_bits(weights):
    table = weights / weights.sum()
    joint = Joint.from_probabilities(table)
    exact = [[Fraction(float(v)) for v in row] for row in table]
    total = sum(map(sum, exact), Fraction(0))
    assert not joint.is_counts
    assert joint.records is None
    for s in range(3):
        for x in range(4):
            assert Fraction(joint.counts[s][x], joint.total) == exact[s][x] / total


def test_decimals_fractions_and_text_are_exact_as_written():
    tenths = ((1, 2), (3, 4))
    for table in (
        [["0.1", "0.2"], ["0.3", "4e-1"]],
        [[Decimal("0.1"), Decimal("0.2")], [Decimal("0.3"), Decimal("0.4")]],
        [[Fraction(1, 10), Fraction(1, 5)], [Fraction(3, 10), Fraction(2, 5)]],
    ):
        assert Joint.from_probabilities(table).counts == tenths
    assert Joint.from_probabilities([[0.1, 0.2], [0.3, 0.4]]).counts != tenths


@pytest.mark.parametrize(
    "array",
    [
        [[1, 2], [3, 4]],
        ((1, 2), (3, 4)),
        [[1.0, 2.0], [3.0, 4.0]],
        [["1", "2.0"], ["3e0", " 4 "]],
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([[1, 2], [3, 4]], dtype=object),
        [np.array([1, 2]), np.array([3, 4])],
        pd.DataFrame([[1, 2], [3, 4]]),
        pl.DataFrame({"a": [1, 3], "b": [2, 4]}),
    ],
)
def test_every_container_of_counts_gives_the_same_joint(array):
    assert Joint.from_counts(array) == Joint.from_counts([[1, 2], [3, 4]])


def test_default_labels_and_the_labels_of_a_pandas_frame():
    assert Joint.from_counts([[1, 2], [3, 4]]).sensitive.names == ("s0", "s1")
    assert Joint.from_counts(pd.DataFrame([[1, 2], [3, 4]])).useful.names == (
        "x0",
        "x1",
    )
    frame = pd.crosstab(pd.Series(["b", "a", "a"]), pd.Series([10, 20, 10]))
    joint = Joint.from_counts(frame)
    assert joint.sensitive.names == ("a", "b")
    assert joint.useful.names == ("10", "20")
    assert joint.counts == ((1, 1), (1, 0))


def test_counts_of_any_size_stay_exact():
    big = 2**256 - 1
    assert Joint.from_counts([[big, 1], [1, big]]).counts == ((big, 1), (1, big))


def test_rows_and_columns_without_mass_are_dropped_with_a_notice():
    joint = Joint.from_counts(
        [[0, 0, 0], [1, 0, 2], [3, 0, 0]], sensitive_labels=["p", "q", "r"]
    )
    assert joint.counts == ((1, 2), (3, 0))
    assert joint.sensitive.names == ("q", "r")
    assert joint.useful.names == ("x0", "x2")
    assert joint.notices == (
        "dropped 1 sensitive symbol(s) of zero mass: 'p'",
        "dropped 1 useful symbol(s) of zero mass: 'x1'",
    )


def test_a_single_sensitive_symbol_is_fine():
    assert Joint.from_counts([[1, 2]]).lift.tolist() == [[1.0, 1.0]]


def test_probabilities_that_need_normalising_say_so():
    joint = Joint.from_probabilities([["0.25", "0.25"], ["0.25", "0.2500005"]])
    assert joint.notices == (
        "the probabilities summed to 1.0000005; they were normalised",
    )
    assert sum(map(sum, joint.counts)) == joint.total


def test_a_large_table():
    counts = np.random.default_rng(0).integers(1, 1000, (15, 5000))
    joint = Joint.from_counts(counts)
    assert joint.lift.shape == (15, 5000)
    assert joint.counts[14][4999] == counts[14, 4999]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[1, -2], [3, 4]], "count at row 's0', column 'x1' is negative"),
        (
            [[1, 2], [float("nan"), 4]],
            "count at row 's1', column 'x0' is not usable: 'nan' is not a finite number",
        ),
        (
            [[1, float("inf")], [3, 4]],
            "row 's0', column 'x1' is not usable: 'inf' is not a finite number",
        ),
        ([[1, 0.5], [3, 4]], "row 's0', column 'x1' is fractional"),
        (
            [[1, "two"], [3, 4]],
            "row 's0', column 'x1' is not usable: 'two' is not a number",
        ),
        ([[1, ""], [3, 4]], "row 's0', column 'x1' is not usable: the cell is empty"),
        ([[1, "-inf"], [3, 4]], "'-inf' is not a finite number"),
        ([[1, "1_000"], [3, 4]], "'1_000' is not a number"),
        ([[1, "1e999999999"], [3, 4]], "is too large or too small"),
        (
            [[1, None], [3, 4]],
            "row 's0', column 'x1' is not usable: 'None' is not a number",
        ),
        ([[1, True], [3, 4]], "is a truth value, not a number"),
        ([[1, 2**256], [3, 4]], r"row 's0', column 'x1' is 2\^256 or more"),
        ([[1, 2], [3]], "row 1 of the table has 1 entries, row 0 has 2"),
        ([], "the table is empty"),
        ([[], []], "the table is empty"),
        (np.zeros((0, 3), dtype=int), "the table is empty"),
        (np.array([1, 2]), "must have two dimensions"),
        (7, "must be rows of numbers, not int"),
        ([[0, 0], [0, 0]], "the table has no mass"),
        (
            [[1], [2]],
            "useful column 'useful' has a single symbol .'x0'.; there is nothing to release",
        ),
        ([[1, 0], [2, 0]], "single symbol .'x0'.; there is nothing to release"),
    ],
)
def test_bad_counts_are_refused(array, message):
    with pytest.raises(InputError, match=message):
        Joint.from_counts(array)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.4]], "the probabilities sum to 0.9 and not to 1"),
        ([["0.5", "0.500002"]], "the probabilities sum to 1.000002 and not to 1"),
        ([[1.5, -0.5]], "the probability at row 's0', column 'x1' is negative"),
        (
            [[1.0, float("nan")]],
            "the probability at row 's0', column 'x1' is not usable",
        ),
        (
            [[1.0 - 1e-90, 1e-90]],
            "2.256 or more once the table is scaled .*smallest entry is 1e-90.*fewer digits",
        ),
    ],
)
def test_bad_probabilities_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        Joint.from_probabilities(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sensitive_labels": ["a", "a"]},
            "the symbol 'a' of 'sensitive' occurs twice",
        ),
        (
            {"useful_labels": ["a", "b", "c"]},
            r"the table has 2 column\(s\) but 3 column label\(s\)",
        ),
        (
            {"useful_labels": "ab"},
            "column labels must be a sequence of texts, not one text",
        ),
        ({"useful_labels": ["a", None]}, "a label of column is missing"),
        ({"useful_labels": ["a", "\ud800"]}, "is not valid Unicode text"),
        (
            {"useful_labels": [("a", "b"), ("c", "d")]},
            r"has 2 part\(s\) but the columns 'useful' are 1",
        ),
        (
            {"useful": ["u", "u"], "useful_labels": [("a", "b"), ("c", "d")]},
            "columns with different names",
        ),
        (
            {"useful": "sensitive"},
            "the table of the column 'sensitive' with itself must have the same symbols",
        ),
        (
            {"useful": ("sensitive", "x"), "useful_labels": [("a", "b"), ("c", "d")]},
            "the useful columns must be the sensitive ones, all of them in the same order",
        ),
        ({"useful": (3,)}, "a column name must be text, not int"),
    ],
)
def test_bad_labels_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Joint.from_counts([[1, 2], [3, 4]], **options)


def test_the_constructor_itself_takes_only_a_clean_table():
    s, x = Variable(("s",), (("a",), ("b",))), Variable(("x",), (("u",), ("v",)))
    with pytest.raises(InputError, match="2 rows of 2 entries"):
        Joint(s, x, ((1, 2),))
    with pytest.raises(
        InputError, match=r"row 'b', column 'u' \('1\.5'\) must be an integer"
    ):
        Joint(s, x, ((1, 2), (1.5, 1)))
    with pytest.raises(InputError, match="the useful symbol 'v' has no mass"):
        Joint(s, x, ((1, 0), (1, 0)))


texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)


@given(st.lists(texts, min_size=2, max_size=6, unique=True))
def test_labels_are_kept_verbatim(labels):
    joint = Joint.from_counts([[1] * len(labels)], useful_labels=labels)
    assert joint.useful.names == tuple(labels)
    assert joint.useful.index == {(label,): i for i, label in enumerate(labels)}


@settings(max_examples=scaled(200))
@given(
    st.lists(
        st.tuples(*[st.text('a,b" ', max_size=4)] * 2),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_names_of_crossed_symbols_are_all_different(symbols):
    names = Variable(("a", "b"), tuple(symbols)).names
    assert len(set(names)) == len(symbols)


def test_names_of_crossed_symbols_are_plain_unless_they_clash():
    assert Variable(("a", "b"), (("x", "y"), ("x", "z"))).names == ("x, y", "x, z")
    assert Variable(("a", "b"), (("x, y", "z"), ("x", "y, z"))).names == (
        '"x, y", "z"',
        '"x", "y, z"',
    )


def test_long_labels_are_cut_in_messages():
    with pytest.raises(InputError, match=r"row 's0', column 'a{57}\.\.\.' is negative"):
        Joint.from_counts([[1, -1]], useful_labels=["b", "a" * 500])
