"""Releases through channels of which one was designed after the other: one promise counts both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

MORE = "together they can tell more than"
COUNTED = "which this one was designed after: its promise is about both together"


@pytest.fixture
def channels(folder, run):
    rng = np.random.default_rng(2)
    secret = rng.integers(0, 2, 300)
    columns = {
        "secret": [f"s{v}" for v in secret],
        "job": [f"j{v}" for v in (secret + rng.integers(0, 2, 300)) % 3],
        "town": [f"t{v}" for v in (secret + rng.integers(0, 2, 300)) % 3],
    }
    pd.DataFrame(columns).to_csv("people.csv", index=False)
    design = ("design", "people.csv", "--sensitive", "secret")
    first = ("--useful", "job", "--epsilon", "0.5", "--output", "job.json")
    assert run(*design, *first).code == 0
    second = ("--useful", "town", "--epsilon", "2", "--after", "job.json")
    assert run(*design, *second, "--output", "town.json").code == 0
    return folder


def release(run, channel, target, *options):
    """The notes of a release of all records, and its manifest."""
    done = run("apply", channel, "people.csv", target, "--shuffle", *options)
    assert done.code == 0, done.err
    return done.err, json.loads(Path(f"{target}.manifest.json").read_text())


def test_the_second_release_says_that_its_promise_is_about_both(channels, run):
    release(run, "job.json", "job.csv")
    notes, manifest = release(run, "town.json", "town.csv")
    assert COUNTED in notes
    assert MORE not in notes
    assert manifest["other_channels"] is False
    covered = " ".join(manifest["covers"])
    assert "may see one earlier release of the same record, too" in covered
    assert MORE not in " ".join(manifest["voids"])
    assert run("check", "town.csv", "--channel", "town.json").code == 0


def test_the_promise_of_the_first_one_is_not_about_the_second(channels, run):
    release(run, "town.json", "town.csv")
    notes, manifest = release(run, "job.json", "job.csv")
    assert MORE in notes
    assert manifest["other_channels"] is True
    assert MORE in " ".join(manifest["voids"])


def test_a_second_draw_of_the_first_is_not_counted(channels, run):
    release(run, "job.json", "job.csv")
    release(run, "job.json", "again.csv", "--fresh-draw")
    notes, manifest = release(run, "town.json", "town.csv")
    assert MORE in notes
    assert COUNTED not in notes
    assert manifest["other_channels"] is True


@pytest.mark.parametrize(
    "order", [("job.json", "town.json"), ("town.json", "job.json")]
)
def test_both_in_one_file_have_one_promise(channels, run, order):
    notes, manifest = release(run, order[0], "both.csv", "--also", order[1])
    assert MORE not in notes
    assert manifest["together"] is True
    assert MORE not in " ".join(manifest["voids"])
    counts = {use["names"][0]: use["earlier_count"] for use in manifest["released"]}
    assert counts == {"job": 0, "town": 1}


def test_a_channel_that_counts_one_of_two_others_does_not_count_both(channels, run):
    design = ("design", "people.csv", "--sensitive", "secret", "--useful", "town")
    assert run(*design, "--epsilon", "0.2", "--output", "free.json").code == 0
    notes, manifest = release(run, "job.json", "both.csv", "--also", "free.json")
    assert MORE in notes
    assert manifest["together"] is False
    assert MORE in " ".join(manifest["voids"])
    # By the ledger, too: the town was released before without regard to the job.
    release(run, "free.json", "town.csv")
    notes, manifest = release(run, "town.json", "again.csv")
    assert MORE in notes
    assert manifest["other_channels"] is True


def test_a_manifest_that_claims_one_promise_is_compared_with_the_channels(
    channels, run
):
    import mechdesign as md
    from mechdesign.jobs.manifest import judge_manifest
    from mechdesign.jobs.side_files import read_manifest

    release(run, "job.json", "job.csv")
    manifest = read_manifest("job.csv.manifest.json", "public")
    job = md.load("job.json")
    assert judge_manifest(manifest, job).fault is None
    forged = manifest.model_copy(update={"together": True})
    fault = judge_manifest(forged, job).fault
    assert fault is not None
    assert "none was designed after another" in fault
    column = manifest.released[0].model_copy(update={"earlier_count": 1})
    forged = manifest.model_copy(update={"released": (column,)})
    assert judge_manifest(forged, job).fault == (
        "it states another earlier count than the channel has"
    )
