"""Certificates of noiseless privacy against enumeration, and the theorems that they replace."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.nonstochastic import fibres
from mechdesign.nonstochastic.domains import FiniteDomain, finite, integers, interval
from mechdesign.nonstochastic.noiseless import certify
from mechdesign.nonstochastic.quantizers import Quantizer, uniform_quantizer
from mechdesign.nonstochastic.queries import (
    OrderStatistic,
    linear_query,
    mean_query,
    median_query,
    sum_query,
)
from tests.oracles.nonstochastic import certify_local

values = st.lists(st.integers(-6, 6), min_size=1, max_size=4)


def quantizer_of(lo, hi, shares):
    """A quantiser of [lo, hi] with thresholds at these shares (percent) of the range."""
    span = Fraction(hi) - lo
    cuts = sorted({lo + span * Fraction(s, 100) for s in shares}) if span else []
    return Quantizer(Fraction(lo), Fraction(hi), tuple(cuts))


shares = st.lists(st.integers(1, 100), max_size=8)


def enumerated(function, domains, quantizer):
    """The most outputs on a fibre, by visiting every dataset."""
    most = 0
    for i, domain in enumerate(domains):
        for rest in itertools.product(
            *(d.values for k, d in enumerate(domains) if k != i)
        ):
            outputs = {
                bisect_right(
                    quantizer.thresholds, Fraction(function((*rest[:i], x, *rest[i:])))
                )
                for x in domain.values
            }
            most = max(most, len(outputs))
    return most


@given(st.lists(st.tuples(st.integers(-4, 4), values), min_size=1, max_size=3), shares)
def test_linear_on_finite_domains(parts, cuts):
    weights, domains = [w for w, _ in parts], [finite(v) for _, v in parts]
    query = linear_query(weights, domains)
    quantizer = quantizer_of(*query.range, cuts)
    found = certify(query, quantizer)
    assert found.exact
    assert found.outputs == enumerated(
        lambda x: sum(w * v for w, v in zip(weights, x, strict=True)),
        domains,
        quantizer,
    )


@given(st.lists(st.tuples(st.integers(-4, 4), values), min_size=1, max_size=3), shares)
def test_relaxed_bases_only_raise_the_count(parts, cuts):
    """Where the sums of the others are too many, all numbers between the extremes take their place."""
    query = linear_query([w for w, _ in parts], [finite(v) for _, v in parts])
    quantizer = quantizer_of(*query.range, cuts)
    exact = certify(query, quantizer).outputs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fibres, "base_sums", lambda *_: None)
        relaxed = certify(query, quantizer)
    assert relaxed.attained <= exact <= relaxed.outputs


@given(st.integers(1, 4), st.integers(0, 12), shares)
def test_equal_steps_are_counted_by_their_ends(people, width, cuts):
    """The shortcut for arithmetic progressions agrees with the table."""
    query = sum_query(people, integers(0, width))
    quantizer = quantizer_of(*query.range, cuts)
    if (width + 1) ** people <= 3000:
        want = enumerated(sum, [integers(0, width)] * people, quantizer)
        assert certify(query, quantizer).outputs == want


def swept(weights, domains, quantizer):
    """The most outputs on a fibre: every base where a count can change, and the points between them."""
    cuts, most = quantizer.thresholds, 0
    for i, domain in enumerate(domains):
        others = [
            (w, d)
            for k, (w, d) in enumerate(zip(weights, domains, strict=True))
            if k != i
        ]
        fixed = [
            [w * v for v in d.values] for w, d in others if isinstance(d, FiniteDomain)
        ]
        lo = sum((min(w, 0) for w, d in others if not isinstance(d, FiniteDomain)), 0)
        hi = sum((max(w, 0) for w, d in others if not isinstance(d, FiniteDomain)), 0)
        for choice in itertools.product(*fixed):
            first, last = sum(choice) + lo, sum(choice) + hi
            ends = {t - weights[i] * x for t in cuts for x in (0, 1)} | {
                Fraction(first),
                Fraction(last),
            }
            inside = sorted(e for e in ends if first <= e <= last)
            for base in [
                *inside,
                *((a + b) / 2 for a, b in itertools.pairwise(inside)),
            ]:
                cells = [bisect_right(cuts, base + weights[i] * x) for x in (0, 1)]
                full = range(min(cells), max(cells) + 1)
                most = max(
                    most,
                    len(set(cells)) if isinstance(domain, FiniteDomain) else len(full),
                )
    return most


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=3),
    shares,
)
def test_linear_on_intervals_by_sweeping_the_bases(parts, cuts):
    """Everybody has [0, 1] or {0, 1}."""
    weights, domains = (
        [w for w, _ in parts],
        [finite((0, 1)) if f else interval(0, 1) for _, f in parts],
    )
    query = linear_query(weights, domains)
    quantizer = quantizer_of(*query.range, cuts)
    want = swept(weights, domains, quantizer)
    found = certify(query, quantizer)
    assert found.exact
    assert found.outputs == want


def test_numbers_beyond_64_bits():
    """Thresholds with denominators of a hundred digits are compared exactly, not in machine integers."""
    tiny = Fraction(1, 10**100)
    query = mean_query(2, interval(0, 1))
    half = Fraction(1, 2)
    inside = Quantizer(Fraction(0), Fraction(1), (tiny, half))
    beyond = Quantizer(Fraction(0), Fraction(1), (tiny, half + tiny + tiny))
    assert certify(query, inside).outputs == 3  # [0, 1/2] meets both thresholds
    assert certify(query, beyond).outputs == 2  # no interval of length 1/2 does


@given(st.integers(1, 4), st.integers(1, 4), values, shares)
def test_order_statistics(people, rank, members, cuts):
    domain = finite(members)
    query = OrderStatistic(min(rank, people), people, domain)
    quantizer = quantizer_of(*query.range, cuts)
    want = enumerated(lambda x: sorted(x)[query.rank - 1], [domain] * people, quantizer)
    assert certify(query, quantizer).outputs == want


@given(st.sampled_from([2, 4]), values, shares)
def test_even_medians(people, members, cuts):
    domain = finite(members)
    quantizer = quantizer_of(domain.lo, domain.hi, cuts)
    middle = people // 2

    def median(x):
        return Fraction(sorted(x)[middle - 1] + sorted(x)[middle], 2)

    want = enumerated(median, [domain] * people, quantizer)
    assert certify(median_query(people, domain), quantizer).outputs == want


def test_local_version():
    """Every cell that the domain meets is an output."""
    quantizer = uniform_quantizer(0, 10, 5)
    assert certify_local(quantizer).outputs == 5
    assert certify_local(quantizer, finite((0, 1, 9))).outputs == 2
    assert certify_local(quantizer, interval(1, 4)).outputs == 3
