"""`estimate --of` on released boxes."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_columns_of_boxes_have_estimates_near_their_frequencies(released, run):
    ask = ("estimate", "out.csv", "--channel", "boxes.json", "--of", "a,b")
    record = run(*ask, "--json").record
    assert record["any_data"] is False
    for column, frequencies in zip(("a", "b"), record["frequencies"], strict=True):
        assert frequencies["columns"] == [column]
        shares = released[column].value_counts(normalize=True)
        for row in frequencies["rows"]:
            error = 5.0 * row["standard_error"]
            assert row["estimate"] == pytest.approx(shares[row[column]], abs=error)
            assert row["lower"] <= row["estimate"] <= row["upper"]
    text = run(*ask).out
    assert "own table" in " ".join(text.split())
    wide = run(*ask, "--any-data", "--json").record
    assert wide["any_data"] is True
    for own, other in zip(
        record["frequencies"][0]["rows"], wide["frequencies"][0]["rows"], strict=True
    ):
        assert other["lower"] <= own["estimate"] <= other["upper"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--of", "s"), "has no column 's' in its boxes"),
        (("--of", "a", "--method", "ml"), "leave --method, --target and --by out"),
        (("--any-data",), "--any-data is for the columns of released boxes"),
    ],
)
def test_refusals(released, run, options, message):
    refused = run("estimate", "out.csv", "--channel", "boxes.json", *options)
    assert refused.code == 2
    assert message in refused.err


def test_the_manifest_of_boxes_is_found(released, run):
    """It names the whole channel, of which that of the labels is a part."""
    note = "no valid manifest of it"
    ask = ("estimate", "out.csv", "--channel", "boxes.json")
    for options in ((), ("--of", "a")):
        told = run(*ask, *options)
        assert note not in told.out + told.err
    named = run(*ask, "--manifest", "out.csv.manifest.json", "--json")
    assert named.record["records"] == len(released)
    Path("out.csv.manifest.json").unlink()
    for options in ((), ("--of", "a")):
        told = run(*ask, *options)
        assert note in " ".join((told.out + told.err).split())
