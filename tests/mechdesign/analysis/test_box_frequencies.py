"""Frequencies of columns from released boxes, against the populations that the records come from."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.analysis.box_frequencies import box_question, estimate_box_column
from mechdesign.core.errors import InputError
from tests.mechdesign.mechanisms.test_box_design import A, B, sample, truth

SHARES = [0.55, 0.3, 0.15]


def channel_of(frame, seed=5, **options):
    settings = {"cells": 7, "time_limit": 600.0, **options}
    return md.design(
        frame,
        sensitive="s",
        release=["a", "b"],
        notion=md.LIP(0.7),
        confidence=0.9,
        slice_seed=seed,
        **settings,
    ).channel


@pytest.fixture(scope="module")
def made():
    frame = sample(truth(SHARES), 3000, 3)
    return frame, channel_of(frame)


def test_expected_labels_give_back_the_frequencies_of_the_proof(made):
    """pi W is what is released of the records of the proof; their symbols come back exactly."""
    _, channel = made
    (part,) = channel.parts
    inner = part.channel
    joint = inner.joint
    place = [inner.useful.names.index(name) for name in joint.useful.names]
    shares = joint.p.sum(axis=0) @ inner.matrix[place]
    released = {
        label: round(10**9 * share)
        for label, share in zip(inner.outputs, shares.tolist(), strict=True)
    }
    for column, symbols in (("a", A), ("b", B)):
        estimate = estimate_box_column(channel, released, column)
        k = [variable.columns for variable in channel.coder.columns].index((column,))
        counts = np.array([box[k] for box in part.inside]).sum(axis=0)
        assert [text for (text,) in estimate.symbols] == symbols
        expected = counts / counts.sum()
        np.testing.assert_allclose(estimate.unbiased, expected, atol=1e-6)


def test_symbols_alone_in_their_boxes_need_no_counts(made):
    """Bounds and estimates agree where the boxes tell a symbol, and else bounds enclose them."""
    frame, channel = made
    released = channel.apply(frame, insecure_seed=1)["box"]
    question = box_question(channel, "a")
    own = estimate_box_column(channel, released, "a")
    bounds = estimate_box_column(channel, released, "a", any_data=True)
    for x in range(len(question.symbols)):
        told = (question.possible[x] == question.alone[x]).all()
        if told:
            assert bounds.unbiased[x] == pytest.approx(own.unbiased[x], abs=1e-9)
        assert bounds.lower[x] <= own.estimates[x] <= bounds.upper[x]
    assert bounds.unidentified > 0.0
    assert own.unidentified == 0.0
    # A public channel has no counts, and the same bounds.
    public = estimate_box_column(channel.public(), released, "a")
    np.testing.assert_allclose(public.upper, bounds.upper)


def test_a_file_is_estimated_like_its_column(made, tmp_path):
    frame, channel = made
    released = channel.apply(frame, insecure_seed=1)
    released.to_csv(tmp_path / "released.csv", index=False)
    asked = {"of": ["a", "b"], "any_data": True}
    of_file = md.estimate(channel, tmp_path / "released.csv", **asked)
    of_column = md.estimate(channel, released["box"], **asked)
    assert [one.columns for one in of_file] == [("a",), ("b",)]
    for one, other in zip(of_file, of_column, strict=True):
        np.testing.assert_array_equal(one.lower, other.lower)
        np.testing.assert_array_equal(one.unbiased, other.unbiased)
    boxes = md.estimate(channel, tmp_path / "released.csv")
    assert boxes.names == channel.single().useful.names


def test_a_box_with_any_other_symbol_holds_none_alone(made):
    _, channel = made
    question = box_question(channel, "a")
    members = channel.coder.members(channel.parts[0].boxes)
    place = [variable.columns for variable in channel.coder.columns].index(("a",))
    for g, names in enumerate(question.groups):
        for name in names:
            inside, is_closed = members[int(name.split()[1]) - 1].get(
                place, (set(range(len(A))), False)
            )
            assert question.possible[sorted(inside), g].all()
            if not is_closed:
                assert not question.alone[:, g].any()


def test_what_boxes_do_not_tell_is_refused(made):
    frame, channel = made
    with pytest.raises(InputError, match="has no column 's' in its boxes"):
        estimate_box_column(channel, {"box 1": 5}, "s")
    filled = channel_of(frame, fill=True)
    with pytest.raises(InputError, match="without filling"):
        estimate_box_column(filled, {"box 1": 5}, "a")


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [False, True])
def test_intervals_hold_in_95_of_100_draws(fresh):
    """Released from the same records, and from new ones of the same population."""
    population = truth(SHARES)
    true = {"a": population.sum(axis=(0, 2)), "b": population.sum(axis=(0, 1))}
    draws = 120
    held = {"own": 0, "any": 0}
    asked = 0
    for seed in range(draws):
        frame = sample(population, 2000, seed)
        channel = channel_of(frame, seed=seed)
        released = frame
        if fresh:
            released = sample(population, 1500, 10_000 + seed)
        labels = channel.apply(released, insecure_seed=seed)["box"]
        for column, shares in true.items():
            for kind, any_data in (("own", False), ("any", True)):
                estimate = estimate_box_column(
                    channel, labels, column, any_data=any_data
                )
                inside = (estimate.lower <= shares) & (shares <= estimate.upper)
                held[kind] += int(inside.sum())
            asked += len(shares)
    print(f"fresh {fresh}: {held} of {asked}")
    # The errors of one draw depend on each other: room of four deviations of independent draws.
    least = 0.95 - 4.0 * np.sqrt(0.95 * 0.05 / (3 * draws))
    assert held["own"] >= least * asked
    assert held["any"] >= 0.95 * asked
