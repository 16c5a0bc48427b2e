"""Columns that are released each by itself, against a listing of all released rows in fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.extremes import log_upper
from mechdesign.auditing.separate_columns import (
    audit_separate,
    cells_of,
    separate_law,
)
from mechdesign.tables.records import Records

CASES = 40


def random_records(rng, groups):
    count = int(rng.integers(6, 25))
    columns = {
        f"c{g}": rng.choice(list("uvw"), count, p=[0.5, 0.3, 0.2])
        for g in range(groups)
    }
    columns["secret"] = rng.choice(["s", "t", "r"], count)
    columns["secret"][:2] = ["s", "t"]
    return Records.from_table(
        pd.DataFrame(columns),
        sensitive="secret",
        groups=[f"c{g}" for g in range(groups)],
    )


def random_channel(rng, inputs):
    outputs = int(rng.integers(1, 4))
    rows = rng.multinomial(12, np.full(outputs, 1 / outputs), inputs).astype(np.int64)
    rows[0, :] = 0
    rows[0, -1] = 12
    return rows[:, rows.any(axis=0)]


def listed(records, given, channels):
    """P(stratum, secret, outputs) by going through every record and every tuple of outputs."""
    law = defaultdict(Fraction)
    for codes, secret, count in zip(
        records.codes.tolist(), records.secrets.tolist(), records.counts, strict=True
    ):
        for outputs in product(*(range(m.shape[1]) for m in channels)):
            share = Fraction(count, records.total)
            for level, y in enumerate(outputs):
                share *= Fraction(int(channels[level][codes[given + level], y]), 12)
            if share:
                law[tuple(codes[:given]), secret, outputs] += share
    return law


def worst_sides(law, relative):
    """eps_l, eps_u and eps_ldp of all released rows as the smallest doubles above them."""
    seen, within, prior = (defaultdict(Fraction) for _ in range(3))
    for (k, s, y), mass in law.items():
        seen[k, y] += mass
        within[k] += mass
        prior[k if relative else None, s] += mass
    high = low = ratio = Fraction(1)
    for k, y in seen:
        key = k if relative else None
        secrets = [s for at, s in prior if at == key]
        whole = within[k] if relative else 1
        lifts = [
            law.get((k, s, y), Fraction(0)) / seen[k, y] / (prior[key, s] / whole)
            for s in secrets
        ]
        high = max(high, *lifts)
        low = min(low, *lifts)
        if min(lifts) == 0:
            ratio = None
        elif ratio is not None:
            ratio = max(ratio, max(lifts) / min(lifts))
    up = lambda f: log_upper(f.numerator, f.denominator)  # noqa: E731
    return (
        up(1 / low) if low else math.inf,
        up(high),
        math.inf if ratio is None else up(ratio),
    )


@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("promise", ["total", "relative"])
def test_equals_a_listing_of_all_released_rows(given, promise):
    """The three sides are the smallest doubles that bound all lifts, for random tables and
    channels.
    """
    rng = np.random.default_rng(given + 10 * (promise == "total"))
    for _ in range(CASES):
        levels = int(rng.integers(1, 4))
        records = random_records(rng, given + levels)
        channels = [
            random_channel(rng, len(records.groups[given + level]))
            for level in range(levels)
        ]
        texts = [[(f"y{y}",) for y in range(m.shape[1])] for m in channels]
        verdict = audit_separate(records, given, promise, md.LDP(0.5), channels, texts)
        law = listed(records, given, channels)
        eps_l, eps_u, eps_ldp = worst_sides(law, promise == "relative")
        assert verdict.achieved.eps_ldp == eps_ldp
        assert verdict.satisfied == (eps_ldp <= 0.5)
        both = audit_separate(records, given, promise, md.LIP(0.5), channels, texts)
        assert both.achieved.eps_l == eps_l
        assert both.achieved.eps_u == eps_u
        assert both.satisfied == (max(eps_l, eps_u) <= 0.5)
        worst = max(
            both.worst.lift, 1 / both.worst.lift if both.worst.lift else math.inf
        )
        assert worst == pytest.approx(math.exp(max(eps_l, eps_u)), rel=1e-12)


def test_the_law_is_that_of_the_listing():
    rng = np.random.default_rng(4)
    for _ in range(CASES):
        records = random_records(rng, 3)
        channels = [random_channel(rng, len(records.groups[k])) for k in (1, 2)]
        law = separate_law(records, 1, channels, exact=True)
        floats = separate_law(records, 1, channels, exact=False)
        expected = listed(records, 1, channels)
        total = int(law.masses.sum())
        for (k, s, leaf), mass in np.ndenumerate(law.masses):
            key = (tuple(law.strata[k].tolist()), s, law.outputs(leaf))
            assert Fraction(mass, total) == expected.get(key, 0)
            assert floats.masses[k, s, leaf] == pytest.approx(mass / total, abs=1e-15)


def test_the_worst_row_is_named_by_its_texts():
    frame = pd.DataFrame(
        {
            "k": ["m", "m", "f", "f"] * 5,
            "x": ["a", "b", "a", "b"] * 5,
            "secret": ["s", "t", "t", "t"] * 5,
        }
    )
    records = Records.from_table(frame, sensitive="secret", groups=["k", "x"])
    identity = np.array([[1, 0], [0, 1]])
    verdict = audit_separate(
        records,
        1,
        "total",
        md.MaxLift(0.5),
        [identity],
        [[("a",), ("b",)]],
    )
    assert verdict.worst.row == ("m", "a")
    assert verdict.worst.sensitive == "s"
    assert verdict.worst.lift == 4.0


def test_cells_are_counted():
    rng = np.random.default_rng(1)
    records = random_records(rng, 2)
    strata = len(np.unique(records.codes[:, 0]))
    assert cells_of(records, 1, [5]) == strata * len(records.sensitive) * 5
    assert cells_of(records, 0, [5, 7]) == len(records.sensitive) * 35


def test_averages_are_refused():
    records = random_records(np.random.default_rng(2), 1)
    size = len(records.groups[0])
    with pytest.raises(md.InputError, match="bounds averages"):
        audit_separate(
            records,
            0,
            "total",
            md.L1Lift.from_epsilon(1.0),
            [np.eye(size, dtype=np.int64)],
            [[(name,) for name in records.groups[0].names]],
        )
