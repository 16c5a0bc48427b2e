from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.channel.output_cells import LONGEST_LABEL, output_labels
from mechdesign.core.integers import IntegerRows

D = 2**53


def labels(names, rows):
    return output_labels(names, IntegerRows.of(rows))


def partition(names, *groups):
    return labels(
        names, [[D if x in group else 0 for group in groups] for x in range(len(names))]
    )


def test_symbols_keep_their_names_and_merged_ones_stand_in_braces():
    assert partition(["Sales", "Armed-Forces", "Priv-house-serv"], [0], [1, 2]) == (
        "Sales",
        "{Armed-Forces, Priv-house-serv}",
    )


def test_unequal_weights_get_short_names():
    rows = [[D // 2, D // 2, 0], [D // 4, D // 4 * 3, 0], [0, D // 3, D - D // 3]]
    assert labels(["a", "b", "c"], rows) == ("mix-1", "mix-2", "c")


def test_equal_weights_below_one_are_a_merge_and_a_lone_symbol_is_itself():
    rows = [[D // 2, D // 2], [D // 2, D // 2 - 1]]
    assert labels(
        ["a", "b"], [[D // 2, D - D // 2, 0], [D // 2 + 3, 0, D - D // 2 - 3]]
    ) == (
        "{a, b}",
        "a",
        "b",
    )
    assert labels(["a", "b"], rows) == ("{a, b}", "{a, b} #2")


def test_what_exact_rounding_adds_does_not_change_a_name():
    rows = [[D - 5, 5, 0], [7, D - 7, 0], [20, 3, D - 23]]
    assert labels(["a", "b", "c"], rows) == ("a", "b", "c")


def test_members_with_commas_braces_or_blanks_are_quoted():
    names = ["a, b", "c", "{d}", 'say "e"', "", " f", "g\n", "naïve", "東京"]
    assert partition(names, range(9)) == (
        r'{"a, b", c, "{d}", "say \"e\"", "", " f", "g\n", naïve, 東京}',
    )
    assert partition(["young, rural", "old, urban", "old, rural"], [0, 2], [1]) == (
        '{"young, rural", "old, rural"}',
        "old, urban",
    )


def test_names_that_look_like_labels_are_kept_apart():
    assert partition(["{a, b}", "a", "b"], [0], [1, 2]) == ("{a, b}", "{a, b} #2")
    assert partition(["{a, b}", "a", "b", "{a, b} #2"], [1, 2], [0, 3]) == (
        "{a, b} #3",
        '{"{a, b}", "{a, b} #2"}',
    )
    rows = [[D // 2, D // 2], [D // 4, 3 * D // 4]]
    assert labels(["mix-1", "b"], rows) == ("mix-1 #2", "mix-2")


def test_long_merges_are_cut_and_count_the_rest():
    names = [f"category number {i}" for i in range(50)]
    (label,) = partition(names, range(50))
    assert (
        label
        == "{category number 0, category number 1, category number 2, category number 3, +46 more}"
    )
    assert len(label) <= LONGEST_LABEL
    half, other = partition(
        names, [*range(4), *range(10, 20)], [*range(4, 10), *range(20, 50)]
    )
    assert half.endswith("+10 more}")
    assert half != other
    twice = labels(names, [[D // 2, D // 2]] * 50)
    assert twice[1] == twice[0] + " #2"
    (label,) = partition(["x" * 300, "y" * 300], [0, 1])
    assert label == "{" + "x" * 50 + "…, +1 more}"


@given(
    st.lists(
        st.text('ab{}," #2mix-1', max_size=6), min_size=1, max_size=6, unique=True
    ),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_labels_are_unique_and_no_symbol_lends_its_name(names, k, random):
    rows = [[random.choice([0, 1, 1, 2, D]) for _ in range(k)] for _ in names]
    rows[0] = [
        value if any(row[y] for row in rows) else 1 for y, value in enumerate(rows[0])
    ]
    found = labels(names, rows)
    assert len(set(found)) == k
    assert found == labels(names, rows)
    for label, column in zip(found, zip(*rows, strict=True), strict=True):
        if label in names:
            assert set(np.flatnonzero(np.array(column) * 1e9 > max(column))) == {
                names.index(label)
            }
