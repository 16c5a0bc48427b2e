"""The measures of a channel: rounded outwards around 80 digits, output by output, with guarantees
that hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mechdesign.auditing import measures
from mechdesign.auditing.columns import FilledCounts
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.auditing.measures import measure
from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.design_call import design
from mechdesign.notions import ALIP
from mechdesign.report.plain_values import to_json
from mechdesign.report.terminal import measures_text
from mechdesign.tables.joint import Joint
from tests.mechdesign.auditing.test_verdict_means import cases
from tests.oracles import measures as floats
from tests.oracles.lifts import lifts
from tests.oracles.means import CONTEXT, decimal
from tests.profiles import scaled

ALPHAS = (2.0, 2.5, math.inf)
ORDERS = (0.5, 1.0, 3.0)


def holds(line):
    """Whether the attained value, where it is known, keeps to the bound."""
    attained = line.bound if line.attained is None else line.attained
    return attained <= line.bound if line.at_most else attained >= line.bound


@settings(max_examples=scaled(60))
@given(cases())
def test_everything_agrees_with_the_plain_formulas(case):
    """The textbook formulas in floating point, `mechdesign.measures`, are within rounding."""
    joint, channel = case
    result = measure(channel, joint, ALPHAS, ORDERS)
    p = joint.p @ channel.matrix
    expected = floats.leakage(p, ALPHAS)
    for order in ORDERS:
        expected[f"sibson_information[{order:g}]"] = floats.sibson_information(p, order)
        expected[f"arimoto_information[{order:g}]"] = floats.arimoto_information(
            p, order
        )
    assert set(result.leakage) == set(expected)
    for name, value in expected.items():
        assert result.leakage[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name


@settings(max_examples=scaled(60))
@given(cases())
def test_every_output_is_rounded_outwards_around_its_exact_value(case):
    joint, channel = case
    total = joint.total
    p_s = [Fraction(sum(row), total) for row in joint.counts]
    for out, column in zip(
        measure(channel, joint).outputs, lifts(joint.counts, channel.rows), strict=True
    ):
        exact = {
            "max_lift": max(column),
            "l1_lift": sum(p * abs(v - 1) for p, v in zip(p_s, column, strict=True)),
            "chi2_lift": sum(
                p * (v - 1) ** 2 for p, v in zip(p_s, column, strict=True)
            ),
        }
        if min(column) > 0:
            exact["l1_lift_inverse"] = sum(
                p * abs(1 / v - 1) for p, v in zip(p_s, column, strict=True)
            )
            exact["chi2_lift_inverse"] = sum(
                p * (1 / v - 1) ** 2 for p, v in zip(p_s, column, strict=True)
            )
        else:
            assert (
                out.l1_lift_inverse
                == out.chi2_lift_inverse
                == out.max_log_lift_ratio
                == math.inf
            )
            assert out.alpha_lift_inverse[2.0] == math.inf
            assert out.min_log_lift == -math.inf
        for name, value in exact.items():
            got = getattr(out, name)
            assert Fraction(got) >= value, name
            assert Fraction(math.nextafter(got, -1.0)) < value or value == 0, name
        assert (
            Fraction(out.min_lift)
            <= min(column)
            < Fraction(math.nextafter(out.min_lift, 9e9))
        )
        with localcontext(CONTEXT):
            square = sum(
                decimal(p) * decimal(v) ** 2 for p, v in zip(p_s, column, strict=True)
            ).sqrt()
            assert Decimal(out.alpha_lift[2.0]) >= square - Decimal(10) ** -70
            if max(column) > 1:
                assert Decimal(out.max_log_lift) >= decimal(max(column)).ln()
        assert out.posterior == pytest.approx(
            [float(p * v) for p, v in zip(p_s, column, strict=True)]
        )


@settings(max_examples=scaled(80))
@given(cases())
def test_every_guarantee_holds_and_the_worst_output_is_the_leakage(case):
    joint, channel = case
    result = measure(channel, joint, ALPHAS, ORDERS, breaches=(0.01, 0.3, 0.7))
    for line in result.guarantees:
        assert holds(line), line
        assert line.attained is not None
    assert result.leakage["l1_lift"] == max(out.l1_lift for out in result.outputs)
    assert result.leakage["min_log_lift"] == min(
        out.min_log_lift for out in result.outputs
    )
    assert math.fsum(out.probability for out in result.outputs) == pytest.approx(1.0)
    assert {line.source.removesuffix(", corrected") for line in result.guarantees} == {
        *(f"Proposition 1.{k}" for k in (1, 2, 3, 4)),
        *(f"Proposition {k}.{j}" for k in (3, 4, 5, 6) for j in (1, 2, 3)),
        "Proposition A1",
    }


def test_a_statement_that_is_false_as_printed_is_labelled_corrected():
    """The page of corrections names the propositions, and nothing else is labelled so."""
    page = Path(__file__).parents[3] / "docs/explanation/corrections.md"
    section = page.read_text(encoding="utf-8").split("## On the lift")[1].split("##")[0]
    false: set[str] = set()
    for numbers in re.findall(r"\*\*Propositions ([^*]+)\*\* bound", section):
        false |= set(re.findall(r"\d\.\d", numbers))
    joint = Joint.from_counts([[3, 1], [1, 5]])
    result = measure(design(joint, ALIP(1.0, 1.0)).channel, joint)
    labelled = {
        line.source.removeprefix("Proposition ").removesuffix(", corrected")
        for line in result.guarantees
        if line.source.endswith(", corrected")
    }
    assert labelled == false == {"1.2", "3.1", "3.2", "5.1", "5.2"}


def test_a_zero_lift_is_infinite_leakage_never_a_skipped_cell():
    joint = Joint.from_counts([[1, 0, 3], [2, 1, 3]])
    released = Channel(
        joint.useful,
        joint.useful.names,
        [[D * (i == j) for j in range(3)] for i in range(3)],
    )
    leakage = measure(released, joint).leakage
    for name in (
        "max_log_lift_ratio",
        "l1_lift_inverse",
        "chi2_lift_inverse",
        "alpha_lift_inverse[2]",
    ):
        assert leakage[name] == math.inf
    assert leakage["min_log_lift"] == -math.inf
    record = json.loads(to_json(asdict(measure(released, joint))))
    assert record["leakage"]["l1_lift_inverse"] == "inf"
    assert record["leakage"]["min_log_lift"] == "-inf"
    assert record["outputs"][1]["posterior"] == [0.0, 1.0]


def test_a_constant_channel_leaks_exactly_nothing():
    joint = Joint.from_counts([[1, 2, 3], [2, 1, 3]])
    result = measure(Channel(joint.useful, ("all",), [[D]] * 3), joint, ALPHAS, ORDERS)
    for name, value in result.leakage.items():
        assert value == (1.0 if name.startswith("alpha_lift") else 0.0), name


def test_many_sensitive_symbols_leave_the_worst_property_open():
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (13, 4)))
    lines = [
        line
        for line in measure(design(joint, ALIP(1.0, 1.0)).channel, joint).guarantees
        if line.source.endswith("A1")
    ]
    assert [line.attained for line in lines] == [None, None, None]
    assert all(map(holds, lines))


def test_texts_show_every_guarantee_and_output(adult):
    channel = design(adult, ALIP.from_epsilon(1.0), mechanism="subset-merging").channel
    result = measure(channel, adult)
    text = measures_text(result)
    for line in result.guarantees:
        assert line.source in text
        assert line.measure in text
    shown = dict(line.split() for line in text.split("\n\n")[1].splitlines()[1:])
    for name, value in result.leakage.items():
        low, high = (
            (float(shown[name]), value)
            if name == "min_log_lift"
            else (value, float(shown[name]))
        )
        assert low <= high, name
    *_, table = measures_text(result, per_output=True).partition(
        "\n\nOutput by output\n"
    )
    table = table.splitlines()
    assert len(table) == 1 + len(channel.outputs)
    assert table[0].split()[:3] == ["output", "probability", "max_lift"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphas": (1.0,)}, r"alpha \(1\) must be above 1"),
        ({"orders": (0.0,)}, r"the order \(0\) must be positive"),
        ({"orders": (math.nan,)}, r"the order \(nan\) must be positive"),
        (
            {"breaches": (1.0,)},
            r"prior of a property \(1\) must be strictly between 0 and 1",
        ),
    ],
)
def test_bad_orders_and_priors_are_refused(adult, arguments, message):
    channel = design(
        adult, ALIP.from_epsilon(1.0), mechanism="complete-merging"
    ).channel
    with pytest.raises(InputError, match=message):
        measure(channel, adult, **arguments)


@settings(max_examples=scaled(40))
@given(
    st.lists(
        st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=4, max_size=4
    )
)
def test_of_several_secrets_every_line_speaks_of_all(counts):
    """Guarantees hold for the largest leakage of any secret, and outputs have the extreme lifts of
    all.
    """
    assume(all(map(any, counts)) and all(map(any, zip(*counts, strict=True))))
    labels = [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")]
    joint = Joint.from_counts(
        counts, sensitive_labels=labels, sensitive=("p", "q")
    ).protecting_each()
    names = joint.useful.names
    channel = Channel(
        joint.useful,
        names,
        np.eye(len(names), dtype=np.int64),
        denominator=1,
        joint=joint,
    )
    result = measure(channel, joint, ALPHAS, ORDERS)
    assert all(holds(line) for line in result.guarantees)
    for line in result.guarantees:
        if line.measure in result.leakage:
            assert result.leakage[line.measure] == line.attained
    for measure_of in ("max_log_lift", "min_log_lift", "l1_lift", "chi2_lift_inverse"):
        extreme = min if measure_of.startswith("min") else max
        assert (
            extreme(getattr(out, measure_of) for out in result.outputs)
            == result.leakage[measure_of]
        )
    for y, out in enumerate(result.outputs):
        every = [
            lift
            for secret in joint.secrets
            for lift in lifts(secret.counts, channel.rows)[y]
        ]
        assert out.max_lift >= max(every)
        assert out.min_lift <= min(every)
    assert all(len(out.posterior) == 4 for out in result.outputs)


def test_what_leaks_of_the_useful_symbols_is_rounded_up():
    """A leakage of 2^-62 is not said to be none."""
    joint = Joint.from_counts([[1, 2], [2, 1]])
    d = 2**62
    rows = [[d // 2 + 1, d // 2 - 1], [d // 2, d // 2]]
    channel = Channel(joint.useful, ("a", "b"), rows, denominator=d, joint=joint)
    assert 0.0 < measure(channel, joint).utility["maximal_leakage_of_useful"] < 1e-18


def test_outputs_that_tell_nothing_are_one_output_for_the_utility(monkeypatch):
    """A draw from the frequencies of 5,000 symbols took 12 s: 25 million logarithms of one sum."""
    counts = [[3, 1, 2, 4], [1, 5, 2, 2]]
    joint = Joint.from_counts(counts)
    shares = [D // 8, D // 16, D // 16, D // 4]
    own = D - sum(shares)
    rows = [[*shares, 0, 0, 0, 0] for _ in range(4)]
    for x, row in enumerate(rows):
        row[4 + x] = own // 4
        row[4 + (x + 1) % 4] = own - own // 4
    channel = Channel(joint.useful, tuple("abcdefgh"), rows, joint=joint)
    asked = []
    sums = measures.sum_of_logs
    monkeypatch.setattr(
        measures,
        "sum_of_logs",
        lambda groups, scale: asked.append(len(groups)) or sums(groups, scale),
    )
    found = measures.utility(channel, joint)
    # Of H(X), and of the four outputs of two symbols with the others together.
    assert asked == [1, 5]
    shares_of_pairs = joint.p_x[:, None] * np.array(rows) / D
    expected = floats.mutual_information(shares_of_pairs)
    assert found.mutual_information == pytest.approx(expected, abs=1e-14)
    assert found.mutual_information <= expected + 1e-15


def test_outputs_that_tell_nothing_are_not_summed_for_guess_and_beliefs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A draw from the frequencies of 5,000 symbols has 25 million entries, and one posterior."""
    joint = Joint.from_counts([[3, 1, 2], [1, 4, 5]])
    constant = (4, 6, 3)
    rows = [[7, 0, *constant], [0, 7, *constant], [3, 4, *constant]]
    channel = Channel(joint.useful, ("u", "v", "k", "l", "m"), rows, 20, joint)
    p = joint.p @ channel.matrix
    summed: list[int] = []
    masses_of_each = FilledCounts.masses_of_each

    def counted(self: FilledCounts, outputs: Sequence[Any]) -> Iterator[list[int]]:
        summed.append(len(outputs))
        return masses_of_each(self, outputs)

    monkeypatch.setattr(FilledCounts, "masses_of_each", counted)
    after, before = measures.best_guess(channel, joint)
    assert float(after) == pytest.approx(p.max(axis=0).sum(), rel=1e-12)
    assert before == Fraction(10, 16)
    posteriors = p / p.sum(axis=0)
    for (low, high), row in zip(belief_ranges(channel, joint), posteriors, strict=True):
        assert low <= row.min() <= low + 1e-15
        assert high >= row.max() >= high - 1e-15
    # Both outputs that tell something, and one of the others for the beliefs.
    assert summed == [2, 3]
