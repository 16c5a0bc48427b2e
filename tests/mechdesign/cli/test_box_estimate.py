"""`estimate` on released boxes."""

from __future__ import annotations

from pathlib import Path

import pytest

import mechdesign as md
from tests.mechdesign.mechanisms.test_box_design import sample, truth


@pytest.fixture
def released(folder, run):
    frame = sample(truth([0.55, 0.3, 0.15]), 2000, 3)
    frame.to_csv("t.csv", index=False)
    run(
        *("design", "t.csv", "--sensitive", "s", "--release", "a,b"),
        *("--epsilon", "1.4", "--confidence", "0.9", "--cells", "6"),
        *("--slice-seed", "3", "--output", "boxes.json"),
    )
    run("apply", "boxes.json", "t.csv", "out.csv", "--insecure-seed", "4")
    return frame


def test_boxes_have_estimates_near_their_frequencies(released, run):
    channel = md.load("boxes.json")
    rows = run("estimate", "out.csv", "--channel", "boxes.json", "--json").record
    true = channel.single().joint
    shares = dict(zip(true.useful.names, true.p_x.tolist(), strict=True))
    assert sum(row["estimate"] for row in rows["frequencies"]) == pytest.approx(1.0)
    for row in rows["frequencies"]:
        error = 5.0 * row["standard_error"]
        assert row["estimate"] == pytest.approx(shares[row["name"]], abs=error)
        assert row["lower"] <= row["estimate"] <= row["upper"]


def test_columns_of_boxes_are_refused(released, run):
    refused = run("estimate", "out.csv", "--channel", "boxes.json", "--of", "a")
    assert refused.code == 2
    assert "leave it out, and the boxes are estimated" in refused.err
    with pytest.raises(md.InputError, match="this channel releases labels"):
        md.estimate(md.load("boxes.json"), "out.csv", of="a")


def test_the_manifest_of_boxes_is_found(released, run):
    """It names the whole channel, of which that of the labels is a part."""
    note = "no valid manifest of it"
    ask = ("estimate", "out.csv", "--channel", "boxes.json")
    told = run(*ask)
    assert note not in told.out + told.err
    named = run(*ask, "--manifest", "out.csv.manifest.json", "--json")
    assert named.record["records"] == len(released)
    Path("out.csv.manifest.json").unlink()
    told = run(*ask)
    assert note in " ".join((told.out + told.err).split())
