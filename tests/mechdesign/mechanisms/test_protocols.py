"""Protocols of local differential privacy beside the channel made for frequencies."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms.queries import FREQUENCIES
from mechdesign.mechanisms.query_design import (
    HADAMARD,
    OUE,
    RAPPOR,
    RESPONSE,
    SELECTION,
    protocols,
)


def column(counts):
    labels = [f"v{x}" for x in range(len(counts))]
    return md.Joint.from_counts(
        np.diag(counts).tolist(),
        sensitive="job",
        useful="job",
        sensitive_labels=labels,
        useful_labels=labels,
    )


def bits(k, own, other):
    """P(y|x) of unary encodings, bit by bit."""
    outputs = itertools.product((0, 1), repeat=k)
    columns = []
    for output in outputs:
        row = []
        for x in range(k):
            chances = [own if x == j else other for j in range(k)]
            row.append(
                math.prod(
                    c if bit else 1 - c for c, bit in zip(chances, output, strict=True)
                )
            )
        columns.append(row)
    return np.array(columns).T


def sylvester(k):
    """P(y|x) up to a factor, by the parity of common bits."""
    size = 1 << k.bit_length()
    return [
        [math.e if (x & y).bit_count() % 2 == 0 else 1.0 for y in range(size)]
        for x in range(1, k + 1)
    ]


def variance(w, p):
    """N times the total variance of the best linear unbiased estimates, from the definition."""
    w = np.array(w) / np.sum(w, axis=1, keepdims=True)
    information = (w / (p @ w)) @ w.T
    return np.trace(np.linalg.inv(information)) - p @ p


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_channels_are_those_of_the_protocols(k):
    joint = column(list(range(10, 10 + k)))
    e = math.e
    expected = {
        RESPONSE: (e - 1) * np.eye(k) + 1,
        RAPPOR: bits(k, 1 / (1 + e**-0.5), 1 / (1 + e**0.5)),
        OUE: bits(k, 0.5, 1 / (1 + e)),
        HADAMARD: sylvester(k),
    }
    found, remarks = protocols(joint, md.LDP(1.0), FREQUENCIES)
    assert remarks == []
    by_name = {one.name: one.rounded for one in found}
    assert set(by_name) == {*expected, SELECTION}
    for name, w in expected.items():
        rounded = by_name[name]
        assert rounded.audit.satisfied
        assert rounded.audit.achieved.eps_ldp == pytest.approx(1.0, abs=1e-9)
        own = variance(rounded.channel.matrix, joint.p_x)
        assert own == pytest.approx(variance(w, joint.p_x), rel=1e-8)


def compared(joint, notion, epsilon):
    return md.compare(
        joint, epsilons=[epsilon], notions=[notion], objectives=[FREQUENCIES]
    )


def test_no_protocol_is_better_than_the_channel_made_for_it():
    joint = column([400, 250, 120, 90, 60, 40])
    comparison = compared(joint, "ldp", 1.0)
    figures = {row.mechanism: row.figure for row in comparison.rows}
    known = (RESPONSE, SELECTION, RAPPOR, OUE, HADAMARD)
    assert {name.replace(" ", "-") for name in known} <= set(figures)
    assert all(row.figure >= row.figure_bound for row in comparison.rows)
    assert figures[FREQUENCIES] <= min(figures.values()) * 1.001
    assert "Hadamard-response" in comparison.summary()


def test_protocols_with_too_many_outputs_say_so():
    joint = column([30] * 15)
    found, remarks = protocols(joint, md.LDP(1.0), FREQUENCIES)
    assert {one.name for one in found} == {RESPONSE, SELECTION, HADAMARD}
    assert any("RAPPOR) has 32,768 outputs, too many to list" in r for r in remarks)
    # r (1 - r) / (p - q)^2, summed over 15 values of the share 1/15.
    q = 1 / (1 + math.e)
    rate = (0.5 - q) / 15 + q
    own = 15 * rate * (1 - rate) / (0.5 - q) ** 2
    assert any(f"its own estimates is {own:.5g}" in r for r in remarks)
    _, remarks = protocols(joint, md.LDP(1.0), "prefix")
    assert not any("own estimates" in remark for remark in remarks)


def test_other_tables_and_notions_have_none():
    labels = [f"v{x}" for x in range(3)]
    other = md.Joint.from_counts([[3, 4, 5], [6, 2, 3]], useful_labels=labels)
    for joint, notion, epsilon in (
        (other, "ldp", 1.0),
        (column([3, 4, 5]), "lip", 0.5),
    ):
        comparison = compared(joint, notion, epsilon)
        names = {row.mechanism for row in comparison.rows}
        assert RESPONSE.replace(" ", "-") not in names
        assert not any("outputs" in notice for notice in comparison.notices)
