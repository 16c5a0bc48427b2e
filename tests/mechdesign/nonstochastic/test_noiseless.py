"""Certificates of noiseless privacy against enumeration, and the theorems that they replace."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_right
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.nonstochastic import fibres
from mechdesign.nonstochastic.noiseless import certify
from mechdesign.nonstochastic.quantizers import Quantizer, uniform_quantizer
from mechdesign.nonstochastic.queries import (
    FiniteDomain,
    OrderStatistic,
    finite,
    integers,
    interval,
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
    cuts = set()
    if span:
        cuts = {lo + span * Fraction(share, 100) for share in shares}
    return Quantizer(Fraction(lo), Fraction(hi), tuple(sorted(cuts)))


shares = st.lists(st.integers(1, 100), max_size=8)


def enumerated(function, domains, quantizer):
    """The most outputs on a fibre, by visiting every dataset."""
    most = 0
    for i, domain in enumerate(domains):
        others = [d.values for k, d in enumerate(domains) if k != i]
        for rest in itertools.product(*others):
            outputs = set()
            for x in domain.values:
                answer = Fraction(function((*rest[:i], x, *rest[i:])))
                outputs.add(bisect_right(quantizer.thresholds, answer))
            most = max(most, len(outputs))
    return most


@given(st.lists(st.tuples(st.integers(-4, 4), values), min_size=1, max_size=3), shares)
def test_linear_on_finite_domains(parts, cuts):
    weights = [weight for weight, _ in parts]
    domains = [finite(members) for _, members in parts]
    query = linear_query(weights, domains)
    quantizer = quantizer_of(*query.range, cuts)

    def answer(x):
        return sum(map(operator.mul, weights, x))

    certificate = certify(query, quantizer)
    assert certificate.exact
    assert certificate.outputs == enumerated(answer, domains, quantizer)


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
        expected = enumerated(sum, [integers(0, width)] * people, quantizer)
        assert certify(query, quantizer).outputs == expected


def swept(weights, domains, quantizer):
    """The most outputs on a fibre, of domains [0, 1] and {0, 1}.

    Every base is visited at which a count can change, and a point between each two of them.
    """
    cuts = quantizer.thresholds
    most = 0
    for i, domain in enumerate(domains):
        # The others on {0, 1} have few sums; those on [0, 1] fill an interval around each.
        sums = {Fraction(0)}
        lo = Fraction(0)
        hi = Fraction(0)
        for k, other in enumerate(domains):
            if k == i:
                continue
            if isinstance(other, FiniteDomain):
                sums = {s + weights[k] * v for s in sums for v in other.values}
            else:
                lo += min(weights[k], 0)
                hi += max(weights[k], 0)
        changes = {t - weights[i] * x for t in cuts for x in (0, 1)}
        for s in sums:
            ends = {s + lo, s + hi}
            ends |= {base for base in changes if s + lo <= base <= s + hi}
            bases = sorted(ends)
            middles = [(a + b) / 2 for a, b in itertools.pairwise(bases)]
            for base in (*bases, *middles):
                cells = [bisect_right(cuts, base + weights[i] * x) for x in (0, 1)]
                if isinstance(domain, FiniteDomain):
                    outputs = len(set(cells))
                else:
                    outputs = max(cells) - min(cells) + 1
                most = max(most, outputs)
    return most


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=3),
    shares,
)
def test_linear_on_intervals_by_sweeping_the_bases(parts, cuts):
    """Everybody has [0, 1] or {0, 1}."""
    weights = [weight for weight, _ in parts]
    domains = []
    for _, is_finite in parts:
        domains.append(finite((0, 1)) if is_finite else interval(0, 1))
    query = linear_query(weights, domains)
    quantizer = quantizer_of(*query.range, cuts)
    certificate = certify(query, quantizer)
    assert certificate.exact
    assert certificate.outputs == swept(weights, domains, quantizer)


def test_numbers_beyond_64_bits():
    """Thresholds with denominators of a hundred digits are compared exactly, not in machine
    integers.
    """
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
    expected = enumerated(
        lambda x: sorted(x)[query.rank - 1], [domain] * people, quantizer
    )
    assert certify(query, quantizer).outputs == expected


@given(st.sampled_from([2, 4]), values, shares)
def test_even_medians(people, members, cuts):
    domain = finite(members)
    quantizer = quantizer_of(domain.lo, domain.hi, cuts)
    middle = people // 2

    def median(x):
        return Fraction(sorted(x)[middle - 1] + sorted(x)[middle], 2)

    expected = enumerated(median, [domain] * people, quantizer)
    assert certify(median_query(people, domain), quantizer).outputs == expected


def test_local_version():
    """Every cell that the domain meets is an output."""
    quantizer = uniform_quantizer(0, 10, 5)
    assert certify_local(quantizer).outputs == 5
    assert certify_local(quantizer, finite((0, 1, 9))).outputs == 2
    assert certify_local(quantizer, interval(1, 4)).outputs == 3
