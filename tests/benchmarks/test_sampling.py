"""Draws on codes, with their key stream, against the plain way in floating point; one core each."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.formats import _rowhash
from mechdesign.formats.arrow_arrays import arrow_offsets, arrow_texts
from mechdesign.mechanisms.design_call import design
from mechdesign.notions import ALIP
from mechdesign.release.draws import Identifiers, Key, RowNumbers, Sampler
from tests.benchmarks.measuring import alternately, seconds, table

ROWS = 5_000_000


@pytest.mark.benchmark
def test_draws_on_codes(adult):
    channel = design(adult, ALIP.from_epsilon(1.0)).channel
    codes = (
        np.random.default_rng(0).integers(0, len(channel.useful), ROWS).astype(np.int32)
    )
    sampler, cumulated = (
        Sampler(channel.rows, channel.denominator),
        np.cumsum(channel.matrix, axis=1),
    )

    def ours():
        return sampler.draw(codes, RowNumbers(0, ROWS).source(Key.fresh()))

    def plain():
        uniform = np.random.default_rng(1).random(ROWS)
        return sum(
            (uniform >= cumulated[codes, y]).astype(np.int8)
            for y in range(cumulated.shape[1])
        )

    names = arrow_texts([*map(str, range(ROWS // 10))])

    def identified():
        return sampler.draw(
            codes[: len(names)], Identifiers([names]).source(Key.fresh())
        )

    draw, peer, by_name = alternately([ours, plain, identified], 3)
    rates = {"by row number": ROWS / draw.cpu, "NumPy, floating point": ROWS / peer.cpu}
    rates["by identifier"] = ROWS / 10 / by_name.cpu
    table(
        "draws of Adult's channel at epsilon 1, millions of records a second and core",
        ["", "millions"],
        [[name, f"{rate / 1e6:.1f}"] for name, rate in rates.items()],
    )
    assert rates["by row number"] > 2 * rates["NumPy, floating point"]


@pytest.mark.benchmark
def test_identifiers_hashed_at_once():
    """One by one, and as many as the vectors hold; where the processor has none, all three are the same."""
    ends, text = arrow_offsets(arrow_texts([*map(str, range(10**6, 2 * 10**6))]))
    found = np.zeros(len(ends) - 1, np.uint64)

    def hashed(lanes):
        return lambda: (
            _rowhash.words(found, bytes(32), bytes(16), [(ends, text)], lanes)
            or found.sum()
        )

    runs = alternately([hashed(lanes) for lanes in (1, 4, 8)], 5)
    assert len({run.result for run in runs}) == 1
    table(
        "keyed BLAKE2b of a million identifiers",
        ["at once, at most", "processor s"],
        [
            [str(lanes), seconds(run.cpu)]
            for lanes, run in zip((1, 4, 8), runs, strict=True)
        ],
    )
