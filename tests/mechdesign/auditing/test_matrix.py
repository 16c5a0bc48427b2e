from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.auditing.matrix import audit_file, audit_matrix
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.notions import ALIP, LIP, L1Lift, MaxLift
from mechdesign.tables.joint import Joint
from tests.oracles.lifts import is_smallest_budget


@pytest.fixture
def joint() -> Joint:
    return Joint.from_counts([[1, 2, 3], [3, 2, 5]], useful_labels=["a", "b", "c"])


def test_a_matrix_of_exact_decimals_is_judged_like_the_channel_it_is(joint):
    channel = Channel(joint.useful, ("u", "v"), [[10, 0], [3, 7], [0, 10]], 10)
    matrix = [["1.0", "0"], ["0.3", "0.7"], ["0e5", "1"]]
    assert audit_matrix(matrix, joint, LIP(0.3), outputs=["u", "v"]) == audit_on_table(
        channel, joint, LIP(0.3)
    )


def test_text_and_floats_mean_what_they_say(joint):
    # l(s0, u) = (P(a|s0) + w P(b|s0)) / P(u) = (1/6 + w/3) / (1/4 + w/4); 0.3 as a double is not 3/10.
    for cell in ("0.3", Decimal("0.3"), Fraction(3, 10), 0.3):
        w = Fraction(cell)
        lift = (Fraction(1, 6) + w / 3) / (Fraction(1, 4) + w / 4)
        other = (Fraction(3, 10) + w / 5) / (Fraction(1, 4) + w / 4)
        achieved = audit_matrix(
            [[1, 0], [cell, 1 - w], [0, 1]], joint, LIP(1.0)
        ).achieved
        assert is_smallest_budget(other / lift, achieved.eps_ldp)


def test_rows_within_1e_9_of_one_are_normalised_exactly(joint):
    third = [["0.3333333333"] * 3] * 3  # sums to 1 - 1e-10
    verdict = audit_matrix(third, joint, LIP(1e-300))
    assert verdict.satisfied
    assert verdict.achieved.eps_u == 0.0
    edge = [["0.5", "0.499999999"]] * 3  # sums to 1 - 1e-9
    assert audit_matrix(edge, joint, LIP(1e-300)).satisfied
    with pytest.raises(
        InputError,
        match=r"row 'a' of the matrix sums to 0.9999999989, not 1 within 1e-9",
    ):
        audit_matrix([["0.5", "0.4999999989"]] * 3, joint, LIP(1.0))


def test_rows_may_come_in_any_order(joint):
    matrix = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    there = audit_matrix(
        matrix, joint, LIP(0.3), symbols=["c", "b", "a"], outputs=["u", "v"]
    )
    assert there == audit_matrix(matrix[::-1], joint, LIP(0.3), outputs=["u", "v"])


def test_labels_may_be_any_sequence_of_texts(joint):
    matrix = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    verdict = audit_matrix(
        matrix,
        joint,
        LIP(1.0),
        symbols=np.array(["a", "b", "c"]),
        outputs=np.array(["u", "v"]),
    )
    assert verdict == audit_matrix(matrix, joint, LIP(1.0), outputs=["u", "v"])
    with pytest.raises(
        InputError, match=r"the matrix has the shape \(3, 2\), not \(0, 2\)"
    ):
        audit_matrix(matrix, joint, LIP(1.0), symbols=[])


def test_outputs_that_no_row_gives_are_ignored(joint):
    matrix = [["1", "0", "0"], ["0", "0.0", "1"], ["0", "0", "1"]]
    verdict = audit_matrix(matrix, joint, MaxLift(0.01), outputs=["u", "v", "w"])
    assert not verdict.satisfied
    assert verdict.worst.output in ("u", "w")


def test_a_zero_in_a_matrix_is_a_zero(joint):
    zero = Joint.from_counts([[0, 1, 1], [1, 1, 1]])
    assert audit_matrix(np.eye(3), zero, ALIP(700.0, 700.0)).achieved.eps_l == math.inf
    tiny = np.array([[1 - 1e-300, 0.0], [1e-300, 1.0], [0.0, 1.0]])
    assert 689.0 < audit_matrix(tiny, zero, ALIP(700.0, 700.0)).achieved.eps_l < 700.0


def test_a_matrix_without_names_of_its_rows_is_refused(joint, tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("a,b,c\n1,0,0\n0,1,0\n0,0,1\n")
    with pytest.raises(
        InputError, match="it has probabilities of the output 'a': write"
    ):
        audit_file(path, joint, LIP(1.0))


@pytest.mark.parametrize(
    ("matrix", "names", "message"),
    [
        (
            [["1"]] * 3,
            {"symbols": ["a", "b", "d"]},
            r"the table has no useful symbol 'd', which the matrix has",
        ),
        (
            [["1"]] * 3,
            {"symbols": ["a", "b", "a"]},
            r"the useful symbol 'a' has two rows in the matrix",
        ),
        (
            [["1"]] * 2,
            {"symbols": ["a", "b"]},
            r"the matrix has no row for the useful symbol 'c' of the table",
        ),
        (
            [["1", "0"]] * 3,
            {"outputs": ["u", "u"]},
            r"the output 'u' of the matrix occurs twice",
        ),
        (
            [["1", "0"], ["1", "x"], ["1", "0"]],
            {},
            r"row 'b', output 'y1' of the matrix: 'x' is not a number",
        ),
        (
            [["1", "0"], ["1", ""], ["1", "0"]],
            {},
            r"row 'b', output 'y1' of the matrix: the cell is empty",
        ),
        (
            [["1", "0"], ["1", "nan"], ["1", "0"]],
            {},
            r"row 'b', output 'y1' of the matrix: 'nan' is not a finite",
        ),
        (
            [[1, 0], [1, math.inf], [1, 0]],
            {},
            r"row 'b', output 'y1' of the matrix: .*inf.* is not a finite",
        ),
        (
            [["1", "0"], ["1.5", "-0.5"], ["1", "0"]],
            {},
            r"row 'b', output 'y1' of the matrix is negative \('-0.5'\)",
        ),
        (
            [["1", "0"], ["0.5", "0.4"], ["1", "0"]],
            {},
            r"row 'b' of the matrix sums to 0.9, not 1 within 1e-9",
        ),
        (
            [["0.5", "0.5", "0.5"], ["0.5", "0", "0"], ["0", "0.5", "0.5"]],
            {},
            r"row 'a' of the matrix sums to 1.5, .*; its columns do: exchange rows and columns",
        ),
        (
            [["1"]] * 3,
            {"symbols": ["A", "b", "c"]},
            r"no useful symbol 'A', which the matrix has; one of them differs in nothing but",
        ),
        (
            [["1", "0"], ["0", "0"], ["1", "0"]],
            {},
            r"row 'b' of the matrix sums to 0, not 1 within 1e-9",
        ),
        (
            [["1", "0"], ["1", "1e-999999999"], ["1", "0"]],
            {},
            r"row 'b', output 'y1' .* too small to be kept exactly",
        ),
    ],
)
def test_what_is_no_stochastic_matrix_is_refused(joint, matrix, names, message):
    with pytest.raises(InputError, match=message):
        audit_matrix(matrix, joint, LIP(1.0), **names)


def test_of_several_secrets_no_average_is_judged_and_no_population(tmp_path):
    """The 1/l of averages of a crossing bounds none of its columns, and a set of the crossing is
    not theirs.
    """
    labels = [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")]
    joint = Joint.from_counts(
        [[1, 2], [3, 4], [5, 6], [7, 9]], sensitive_labels=labels, sensitive=("p", "q")
    )
    with pytest.raises(InputError, match=r"l1 bounds averages: with protect-each"):
        audit_matrix([[1, 0], [0, 1]], joint.protecting_each(), L1Lift(1.0, 1.0))
    path = tmp_path / "w.csv"
    path.write_text("x,u,v\nx0,1,0\nx1,0,1\n")
    answer = audit_file(path, joint.protecting_each(), LIP(1.0))
    assert answer.audit.satisfied
    assert answer.population is None
    assert audit_file(path, joint, LIP(1.0)).population is not None


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([], "must have rows of numbers, one row per useful symbol, of one length"),
        (
            [[0.5, 0.5], [1.0]],
            "must have rows of numbers, one row per useful symbol, of one length",
        ),
        (
            [0.5, 0.5],
            "must have rows of numbers, one row per useful symbol, of one length",
        ),
        (
            [[0.5, 0.5]] * 3,
            r"has the shape \(3, 2\), not \(2, 2\) for its symbols and outputs",
        ),
    ],
)
def test_an_array_that_is_no_matrix_of_the_table(matrix, message):
    with pytest.raises(InputError, match=message):
        audit_matrix(matrix, Joint.from_counts([[3, 1], [1, 3]]), LIP(1.0))


def test_an_outside_matrix_has_its_law(tmp_path):
    """Shares before and after, in fractions: b gets half of the records of a."""
    joint = Joint.from_counts([[2, 4, 1], [4, 0, 1]], useful_labels=["a", "b", "c"])
    path = tmp_path / "w.csv"
    # In another order than the table has them.
    path.write_text("x,b,a,c\nc,0,0,1\na,0.5,0.5,0\nb,1,0,0\n")
    law = audit_file(path, joint, LIP(9.0)).law
    assert law is not None
    assert not law.kept
    assert law.total_variation == pytest.approx(3 / 12, abs=1e-15)
    change = law.largest_share_change
    assert change is not None
    assert {change.before, change.after} in ({6 / 12, 3 / 12}, {4 / 12, 7 / 12})
    path.write_text("x,b,a,c\nc,0,0,1\na,0.4,0.6,0\nb,0.4,0.6,0\n")
    kept = audit_file(path, joint, LIP(9.0)).law
    assert kept is not None
    assert kept.kept
    path.write_text("x,b,a,other\nc,0,0,1\na,0,1,0\nb,1,0,0\n")
    assert audit_file(path, joint, LIP(9.0)).law is None
