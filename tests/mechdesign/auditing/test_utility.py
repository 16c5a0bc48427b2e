from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing import measures
from mechdesign.auditing.measures import utility
from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from tests.profiles import scaled

CLOSE = Decimal("5e-15")
"""How far below the truth the utility may be, in units of H(X)."""


def log(value: Fraction) -> Decimal:
    return Decimal(value.numerator).ln() - Decimal(value.denominator).ln()


def truth(channel: Channel, joint: Joint) -> tuple[Decimal, Decimal]:
    """I(X;Y) and H(X) to 100 digits, from the definitions."""
    with localcontext() as context:
        context.prec = 120
        total = sum(map(sum, joint.counts))
        p_x = [
            Fraction(sum(column), total) for column in zip(*joint.counts, strict=True)
        ]
        w = [[Fraction(v, channel.denominator) for v in row] for row in channel.rows]
        information = Decimal(0)
        for y in range(len(channel.outputs)):
            p_y = sum(p * row[y] for p, row in zip(p_x, w, strict=True))
            for p, row in zip(p_x, w, strict=True):
                if row[y]:
                    share = p * row[y]
                    information += (
                        Decimal(share.numerator)
                        / Decimal(share.denominator)
                        * log(row[y] / p_y)
                    )
        entropy = -sum(
            Decimal(p.numerator) / Decimal(p.denominator) * log(p) for p in p_x
        )
        return information, entropy


counts = st.one_of(st.integers(1, 20), st.integers(1, 2**60), st.integers(1, 2**255))


@settings(max_examples=scaled(40))
@given(st.data(), st.integers(2, 4), st.integers(1, 4))
def test_utility_is_just_below_the_truth(data, n, k):
    joint = Joint.from_counts(
        [data.draw(st.lists(counts, min_size=n, max_size=n)) for _ in range(2)]
    )
    rows = []
    for _ in range(n):
        cuts = data.draw(
            st.lists(
                st.sampled_from([0, 1, D // 3, D - 1, D]),
                min_size=k - 1,
                max_size=k - 1,
            )
        )
        cuts.sort()
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, D], strict=True)])
    used = [y for y in range(k) if any(row[y] for row in rows)]
    channel = Channel(
        joint.useful, tuple(map(str, used)), [[row[y] for y in used] for row in rows]
    )
    information, entropy = truth(channel, joint)
    found = utility(channel, joint)
    assert Decimal(found.mutual_information) <= information
    assert information - Decimal(found.mutual_information) <= CLOSE * entropy
    assert abs(Decimal(found.entropy) - entropy) <= CLOSE * entropy
    assert Decimal(found.nmi) <= information / entropy
    assert information / entropy - Decimal(found.nmi) <= CLOSE


few_counts = st.one_of(st.integers(1, 20), st.integers(1, 2**26))
entries = st.one_of(st.integers(0, 3), st.integers(0, D // 4))


@settings(max_examples=scaled(40))
@given(st.data(), st.integers(2, 4), st.integers(1, 3))
def test_arrays_of_large_channels_are_just_below_the_truth_too(data, n, k):
    """Masses are halves of 64 bits there, and doubles; the error is that of Python's integers."""
    joint = Joint.from_counts(
        [data.draw(st.lists(few_counts, min_size=n, max_size=n)) for _ in range(2)]
    )
    rows = data.draw(
        st.lists(
            st.lists(entries, min_size=k, max_size=k).map(
                lambda row: [*row, D - sum(row)]
            ),
            min_size=n,
            max_size=n,
        )
    )
    used = [y for y in range(k + 1) if any(row[y] for row in rows)]
    channel = Channel(
        joint.useful, tuple(map(str, used)), [[row[y] for y in used] for row in rows]
    )
    information, entropy = truth(channel, joint)
    with mock.patch.object(measures, "MANY_ENTRIES", 0):
        found = utility(channel, joint)
    assert Decimal(found.mutual_information) <= information
    assert information - Decimal(found.mutual_information) <= CLOSE * entropy
    assert Decimal(found.nmi) <= information / entropy
    assert information / entropy - Decimal(found.nmi) <= CLOSE


@pytest.mark.parametrize(("count", "in_arrays"), [(2**20, True), (2**30, False)])
def test_masses_of_large_channels_are_no_integers_of_python(count, in_arrays):
    """25 million entries of 5,000 symbols took 13 s; sums of counts that fit no halves do still."""
    joint = Joint.from_counts([[count, 1], [1, count]])
    channel = Channel(joint.useful, ("u", "v"), [[D // 4, 3 * D // 4], [D // 2] * 2])
    asked = []
    sums = measures.sum_of_logs

    def counted(groups, scale):
        asked.append(len(groups))
        return sums(groups, scale)

    with (
        mock.patch.object(measures, "MANY_ENTRIES", 4),
        mock.patch.object(measures, "sum_of_logs", counted),
    ):
        found = utility(channel, joint)
    # Of H(X), and of both outputs.
    assert asked == [1, 0 if in_arrays else 2]
    assert found == utility(channel, joint)


def test_a_nearly_constant_x_is_measured_as_well_as_any_other():
    joint = Joint.from_counts([[1, 10**30], [1, 10**30]])
    channel = Channel(joint.useful, ("u", "v"), [[D, 0], [1, D - 1]])
    information, entropy = truth(channel, joint)
    assert entropy < Decimal("1e-28")
    assert 0 <= information / entropy - Decimal(utility(channel, joint).nmi) <= CLOSE


def test_what_loses_nothing_has_exactly_all():
    joint = Joint.from_counts([[1, 2, 3], [3, 2, 1]])
    channel = Channel(
        joint.useful,
        ("u", "v", "w", "z"),
        [[5, 3, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]],
        8,
    )
    assert utility(channel, joint).nmi == 1.0
    assert utility(channel, joint).mutual_information == pytest.approx(
        utility(channel, joint).entropy, rel=1e-14
    )


def test_what_tells_nothing_has_exactly_nothing():
    joint = Joint.from_counts([[1, 2, 3], [3, 2, 1]])
    channel = Channel(joint.useful, ("u", "v"), [[5, 3]] * 3, 8)
    assert utility(channel, joint).nmi == 0.0
    assert utility(channel, joint).mutual_information == 0.0


def test_nothing_is_lost_of_a_constant():
    joint = Joint.from_counts([[1, 2], [3, 2]])
    single = Channel(joint.useful.select([0]), ("u",), [[8]], 8)
    found = utility(single, Joint(joint.sensitive, single.useful, ((3,), (5,))))
    assert (found.mutual_information, found.entropy, found.nmi) == (0.0, 0.0, 1.0)


def test_accuracy_does_not_depend_on_the_size():
    rng = np.random.default_rng(0)
    joint = Joint.from_counts(rng.integers(1, 1000, (2, 80)))
    rows = rng.integers(1, 2**20, (80, 20))
    rows[:, 0] += 2**26 - rows.sum(axis=1)
    channel = Channel(joint.useful, tuple(map(str, range(20))), rows, 2**26)
    information, entropy = truth(channel, joint)
    assert (
        0
        <= information - Decimal(utility(channel, joint).mutual_information)
        <= CLOSE * entropy
    )


def test_rows_are_matched_by_symbol_and_other_symbols_are_refused():
    joint = Joint.from_counts([[1, 2], [3, 2]])
    channel = Channel(joint.useful, ("u", "v"), [[3, 1], [1, 3]], 4)
    turned = Joint.from_counts([[2, 1], [2, 3]], useful_labels=["x1", "x0"])
    assert utility(channel, turned) == utility(channel, joint)
    other = Joint.from_counts([[1, 2], [3, 2]], useful_labels=["x0", "b"])
    with pytest.raises(
        InputError, match="the table has no useful symbol 'x1', which the channel has"
    ):
        utility(channel, other)
