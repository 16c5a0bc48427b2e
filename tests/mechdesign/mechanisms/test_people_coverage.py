"""The promise for the population holds for people with several, dependent records as often as its level says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import mechdesign as md

SHARES = np.array([0.6, 0.3, 0.1])
"""P(s) of the people."""

LENGTHS = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
"""P(1, 2 or 3 records given s)."""

VALUES = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])
"""P(value of a first record given s)."""

STAY = 0.5
"""How often a record has the value of the one before, whatever s is."""

LEVEL, EPSILON, TABLES, PEOPLE = 0.9, 0.3, 20, 1500


def _people(rng: np.random.Generator) -> pd.DataFrame:
    """The records of people who are drawn independently."""
    rows: list[tuple[str, str, str]] = []
    for number in range(PEOPLE):
        s = rng.choice(3, p=SHARES)
        value = rng.choice(3, p=VALUES[s])
        for record in range(1 + rng.choice(3, p=LENGTHS[s])):
            if record and rng.random() > STAY:
                value = rng.choice(3, p=VALUES[s])
            rows.append((f"p{number}", f"s{s}", f"a{value}"))
    return pd.DataFrame(rows, columns=["id", "s", "a"])


def _law(sequence: tuple[int, ...]) -> np.ndarray:
    """P(records given s), by s."""
    law = VALUES[:, sequence[0]].copy()
    for before, value in itertools.pairwise(sequence):
        law *= STAY * (before == value) + (1 - STAY) * VALUES[:, value]
    return law


def _largest_change(channel: md.Channel) -> float:
    """The largest |log| of a lift in the population, given the number of records."""
    coder = channel.coder
    assert coder is not None
    names = [[symbol[0] for symbol in column.symbols] for column in coder.columns]
    first = 0
    largest = 0.0
    for place, (stratum, part) in enumerate(
        zip(coder.strata, channel.parts, strict=True)
    ):
        boxes = len(stratum.boxes.splits) + 1
        length = int(coder.given_texts(stratum.codes)[0])
        if part.channel is not None:
            in_boxes = np.zeros((3, boxes))
            for sequence in itertools.product(range(3), repeat=length):
                texts = [f"a{value}" for value in sequence]
                texts += ["(none)"] * (len(names) - length)
                # A value that the table lacks has no code.
                codes = [
                    known.index(text) if text in known else -1
                    for known, text in zip(names, texts, strict=True)
                ]
                number = coder.numbers_of(np.array([place]), np.array([codes]))[0]
                in_boxes[:, number - first] += _law(sequence)
            rows = np.array([[float(v) for v in row] for row in part.channel.integers])
            released = in_boxes @ (rows / rows.sum(axis=1, keepdims=True))
            prior = SHARES * LENGTHS[:, length - 1]
            lifts = released / (prior / prior.sum() @ released)
            largest = max(largest, float(np.abs(np.log(lifts)).max()))
        first += boxes
    return largest


def _channel(rng: np.random.Generator, epsilon: float, number: int) -> md.Channel:
    """The channel of a sample, with a promise for its population."""
    design = md.design(
        _people(rng),
        md.LIP(epsilon),
        sensitive="s",
        release=["a"],
        person="id",
        promise="relative",
        confidence=LEVEL,
        slice_seed=number,
        time_limit=5.0,
    )
    assert any(part.channel is not None for part in design.channel.parts)
    return design.channel


@pytest.mark.slow
def test_people_of_a_sample_are_promised_for_their_population():
    rng = np.random.default_rng(8)
    broken = 0
    for number in range(TABLES):
        channel = _channel(rng, EPSILON, number)
        broken += _largest_change(channel) > EPSILON + 1e-9
    # Three standard deviations above what the level allows.
    expected = TABLES * (1 - LEVEL)
    assert broken <= expected + 3 * math.sqrt(expected * LEVEL)


@pytest.mark.slow
def test_the_measure_of_the_promise_sees_a_larger_budget():
    # Otherwise the test above could not fail.
    rng = np.random.default_rng(8)
    channels = [_channel(rng, 4 * EPSILON, number) for number in range(3)]
    assert max(map(_largest_change, channels)) > EPSILON
