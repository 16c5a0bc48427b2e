from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from mechdesign.channel import channel as channel_module
from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord, SymbolBudgets
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

X = Variable(("x",), (("a",), ("b",), ("c",)))


@pytest.fixture
def joint() -> Joint:
    return Joint.from_counts(
        [[1, 2, 3], [3, 2, 5]], useful_labels=["a", "b", "c"], useful="x"
    )


@pytest.fixture
def channel(joint) -> Channel:
    return Channel(
        joint.useful, ("u", "v"), [[D, 0], [D // 4, 3 * (D // 4)], [0, D]], joint=joint
    )


def test_it_shows_its_probabilities(channel):
    assert channel.matrix.tolist() == [[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]]
    assert channel.rows == ((D, 0), (D // 4, 3 * D // 4), (0, D))
    assert channel.sensitive == channel.joint.sensitive
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        channel.denominator = 2


def test_posteriors_are_correctly_rounded(channel):
    masses = [Fraction(4 + 1, 16), Fraction(3 + 8, 16)]
    assert channel.output_masses.tolist() == [float(m) for m in masses]
    expected = [
        [Fraction(4, 16), Fraction(1, 16), 0],
        [0, Fraction(3, 16), Fraction(8, 16)],
    ]
    assert channel.posteriors.tolist() == [
        [float(q / m) for q in row] for row, m in zip(expected, masses, strict=True)
    ]
    assert channel.codebook() == {
        "u": {"a": 0.8, "b": 0.2},
        "v": {"b": 3 / 11, "c": 8 / 11},
    }


def test_posteriors_need_the_table(channel):
    public = dataclasses.replace(channel, joint=None)
    for use in (
        lambda: public.posteriors,
        lambda: public.output_masses,
        public.codebook,
    ):
        with pytest.raises(
            InputError, match=r"carries no joint table \(a public one\)"
        ):
            use()


def test_a_channel_for_study_is_not_written(channel, tmp_path):
    study = channel.with_record(
        ChannelRecord(unwritable="this one is for study and is not written")
    )
    with pytest.raises(InputError, match="is for study and is not written"):
        study.save(tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


def test_apply_draws_outputs_of_the_symbol(channel):
    column = pd.Series(["a", "b", "c"] * 500, name="x")
    released = channel.apply(column, insecure_seed=1)
    assert isinstance(released, pd.Series)
    assert set(released[column == "a"]) == {"u"}
    assert set(released[column == "c"]) == {"v"}
    share = (released[column == "b"] == "u").mean()
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 500)
    assert not channel.apply(column).equals(channel.apply(column))
    with pytest.raises(InputError, match="does not know the symbol of"):
        channel.apply(["a", "d"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"denominator": 0},
            r"the denominator \('0'\) must be an integer in \[1, 2\^62\]",
        ),
        ({"denominator": True}, r"the denominator \('True'\) must be an integer"),
        ({"denominator": 2.0**53}, r"the denominator \(.*\) must be an integer"),
        ({"denominator": 2**63}, r"the denominator \(.*\) must be an integer"),
        ({"outputs": ("u", "u")}, r"the output label 'u' occurs twice"),
        ({"outputs": ()}, r"at least one output"),
        ({"outputs": ("u", 7)}, r"an output label must be text, not int"),
        ({"outputs": ("u", "\ud800")}, r"not valid Unicode text"),
        (
            {"outputs": ("u", "v", "w")},
            r"the rows form a 3 x 2 table, but there are 3 useful symbols and 3 outputs",
        ),
        (
            {"rows": [[D, 0], [0, D]]},
            r"the rows form a 2 x 2 table, but there are 3 useful symbols and 2 outputs",
        ),
        (
            {"rows": [[D, 0], [1, 2], [0, D]]},
            r"row 'b' sums to 3, not to the denominator 9007199254740992",
        ),
        (
            {"rows": [[D, 0], [0, D + 1], [0, D]]},
            r"row 'b', output 'v': the entry 9007199254740993 is larger than",
        ),
        (
            {"rows": [[D, 0], [0, 0.5], [0, D]]},
            r"row 'b': entry 2 \('0.5'\) is not a non-negative integer",
        ),
        (
            {"rows": [[D, 0], [D + 1, -1], [0, D]]},
            r"row 'b': entry 2 \('-1'\) is not a non-negative integer",
        ),
        (
            {"rows": [[D, 0], [D, 0], [D, 0]]},
            r"the output 'v' has no mass: no row ever gives it",
        ),
    ],
)
def test_what_is_no_channel_is_refused(changes, message):
    fields = {
        "useful": X,
        "outputs": ("u", "v"),
        "rows": [[D, 0], [0, D], [0, D]],
        "denominator": D,
    }
    with pytest.raises(InputError, match=message):
        Channel(**{**fields, **changes})


def test_a_joint_of_other_variables_is_refused(joint):
    rows = [[D], [D], [D]]
    other = Joint.from_counts([[1, 2, 3], [3, 2, 5]], useful="y")
    with pytest.raises(
        InputError,
        match="useful variable of the joint table is not the one of the channel",
    ):
        Channel(joint.useful, ("u",), rows, joint=other)
    with pytest.raises(
        InputError,
        match="sensitive variable of the joint table is not the one of the channel",
    ):
        Channel(
            joint.useful,
            ("u",),
            rows,
            joint=joint,
            sensitive=Variable(("s",), (("1",),)),
        )


def test_other_denominators_are_fine():
    channel = Channel(X, ("u", "v"), [[1, 2], [3, 0], [0, 3]], 3)
    assert channel.matrix == pytest.approx(
        np.array([[1 / 3, 2 / 3], [1.0, 0.0], [0.0, 1.0]])
    )
    assert Channel(
        X, ("u", "v"), [[2**62, 0], [2**61, 2**61], [0, 2**62]], 2**62
    ).matrix[1].tolist() == [
        0.5,
        0.5,
    ]


def test_another_record_leaves_the_rows_as_they_were_checked(monkeypatch):
    """Rows are checked once, and what is computed of them is kept; what the record says is not."""
    table = Joint.from_counts([[3, 1], [2, 4]])
    channel = Channel(table.useful, ("a", "b"), ((3, 1), (1, 3)), 4, table)
    columns = channel.columns
    digest = channel.digest
    checked = []
    monkeypatch.setattr(
        channel_module, "check_rows", lambda *given: checked.append(given)
    )
    other = channel.with_record(ChannelRecord(promise_kind="relative"))
    assert not checked
    assert other.columns is columns
    assert other.rows == channel.rows
    assert other.record.promise_kind == "relative"
    assert channel.record.promise_kind != "relative"
    assert channel.digest == digest
    assert "_digest" not in vars(other)
    # A record is checked in any case.
    nobody = SymbolBudgets(symbol=("nobody",), eps_l=1.0, eps_u=1.0)
    unknown = ChannelRecord(budgets=(nobody,))
    with pytest.raises(InputError, match="nobody"):
        channel.with_record(unknown)
