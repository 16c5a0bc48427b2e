"""Budgets of single symbols: which symbol a text means, and that nobody else gets the budget."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.columns import FilledCounts
from mechdesign.auditing.lifts import allowed_sides, demands_of, own_budgets
from mechdesign.channel.record import ChannelRecord
from mechdesign.notions import to_record
from mechdesign.tables.variable import Variable
from tests.profiles import scaled

TIGHT = md.ALIP(eps_l=0.1, eps_u=0.1)
WIDE = 3.0


def crossed(
    columns: tuple[str, str], parts: tuple[tuple[str, ...], tuple[str, ...]]
) -> md.Joint:
    """Every combination of the symbols of two columns, each protected for itself."""
    symbols = tuple(itertools.product(*parts))
    counts = tuple((7 + k, 20 - k) for k in range(len(symbols)))
    return md.Joint(
        Variable(columns, symbols, protects_columns=True),
        Variable(("u",), (("p",), ("q",))),
        counts,
    )


def wide_ones(joint: md.Joint, notion: md.Notion) -> list[tuple[str, str]]:
    """(column, name) of the symbols that have the wide budget on the upper side."""
    return [
        (secret.sensitive.columns[0], name)
        for secret, demand in zip(joint.secrets, demands_of(joint, notion), strict=True)
        for name, upper in zip(secret.sensitive.names, demand.upper, strict=True)
        if upper == WIDE
    ]


def test_a_symbol_that_reads_like_column_equals_symbol_keeps_its_own_budget() -> None:
    joint = md.Joint.from_counts(
        [[9, 1], [5, 5], [1, 9]], sensitive_labels=["a=x", "x", "z"], sensitive="a"
    )
    assert wide_ones(joint, TIGHT.with_budgets({"a=x": (WIDE, WIDE)})) == [("a", "a=x")]
    assert wide_ones(joint, TIGHT.with_budgets({"x": (WIDE, WIDE)})) == [("a", "x")]
    assert wide_ones(joint, TIGHT.with_budgets({"a=z": (WIDE, WIDE)})) == [("a", "z")]


def test_a_text_that_could_mean_two_symbols_is_refused_with_what_to_write() -> None:
    joint = crossed(("a", "b"), (("x", "y"), ("x", "a=x")))
    with pytest.raises(
        md.InputError,
        match=r"'a=x' stands in two columns: write COLUMN=SYMBOL .*'b=a=x'",
    ):
        demands_of(joint, TIGHT.with_budgets({"a=x": (WIDE, WIDE)}))
    with pytest.raises(md.InputError, match="is no sensitive symbol"):
        demands_of(joint, TIGHT.with_budgets({"b=y": (WIDE, WIDE)}))
    joint = crossed(("a", "a=b"), (("b=c", "d"), ("c", "e")))
    with pytest.raises(md.InputError, match="stands in two columns"):
        demands_of(joint, TIGHT.with_budgets({"a=b=c": (WIDE, WIDE)}))


NAMES = st.sampled_from(["x", "y", "a=x", "b=x", "a=b=x", '"a"="x"', "", "="])


@settings(max_examples=scaled(60))
@given(
    columns=st.sampled_from([("a", "b"), ("a", "a=b"), ("x", "y"), ("b", "a")]),
    parts=st.tuples(
        *[st.lists(NAMES, min_size=1, max_size=4, unique=True).map(tuple)] * 2
    ),
)
def test_every_name_means_its_own_symbol_alone(columns, parts) -> None:
    """A budget under the name of a symbol goes to it and to no other, and comes back from the file
    so.
    """
    joint = crossed(columns, parts)
    names = [name for names in joint.sensitive.secret_names for name in names]
    assert len(set(names)) == len(names)
    for column, symbol, name in joint.sensitive.protected:
        notion = TIGHT.with_budgets({name: (WIDE, WIDE)})
        assert wide_ones(joint, notion) == [(column, symbol[0])]
        assert [
            upper == WIDE for _, upper in allowed_sides(joint.sensitive, notion)
        ] == [n == name for n in names]
        record = ChannelRecord(
            notion=to_record(notion), budgets=own_budgets(joint, notion)
        )
        assert record.promise(joint.sensitive) == notion


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.1, 0.9]))
def test_masses_of_an_output_are_its_counts_times_its_entries(seed, share):
    """By filled counts and by all of them: the sum over x of count(s, x) W(y|x)."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, (4, 6)) * (rng.random((4, 6)) >= share)
    inputs = np.flatnonzero(rng.random(6) < rng.random())
    values = rng.integers(1, 9, len(inputs))
    expected = counts[:, inputs] @ values
    filled = FilledCounts(counts.tolist())
    assert filled.masses(inputs.tolist(), values.tolist()) == expected.tolist()
