"""The masses of outputs are sums of products of integers, however large these are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mechdesign.auditing import columns
from mechdesign.auditing.columns import FEW, masses_by_output
from mechdesign.tables.joint import Joint

WIDTH = FEW + 8


@given(data=st.data(), most=st.sampled_from([3, 2**26, 2**40]))
def test_masses_are_exact(data, most):
    """m_s = sum over x of count(s, x) W(y|x), next to the largest values that halves can hold."""
    counts = st.lists(st.integers(1, most), min_size=WIDTH, max_size=WIDTH)
    joint = Joint.from_counts(data.draw(st.lists(counts, min_size=2, max_size=3)))
    ends = st.sampled_from([1, 2**31 - 1, 2**31, 2**53, 2**62 - 1, 2**62, 2**70])
    values = data.draw(st.lists(ends, min_size=WIDTH, max_size=WIDTH))
    columns = [(range(WIDTH), values), (range(3), values[:3])]
    for (inputs, entries), output in zip(
        columns, masses_by_output(columns, joint), strict=True
    ):
        wanted = []
        for row in joint.counts:
            total = 0
            for x, value in zip(inputs, entries, strict=True):
                total += row[x] * value
            wanted.append(total)
        assert output.masses == wanted
        assert output.output == sum(wanted)


def test_the_largest_sums_that_halves_may_have_fit_into_64_bits(monkeypatch):
    assert (columns.MOST_COUNTED - 1) * (2**columns.HALF - 1) < 2**63
    assert columns.LARGEST_VALUE == 2 ** (2 * columns.HALF)
    called = []
    small = columns._small_masses
    monkeypatch.setattr(
        columns,
        "_small_masses",
        lambda *values: called.append(1) or small(*values),
    )
    joint = Joint.from_counts([[2**26] * WIDTH, [2**26] * 8 + [1] * FEW])
    list(masses_by_output([(range(WIDTH), [2**62 - 1] * WIDTH)], joint))
    assert called
