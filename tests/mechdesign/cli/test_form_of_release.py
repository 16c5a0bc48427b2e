"""`check` and `estimate` read from the manifest in which form a file was released (--as)."""

from __future__ import annotations

import pytest

import mechdesign as md


@pytest.fixture
def released(folder, run, channel):
    """A file of symbols that were drawn from what the labels leave possible, and its manifest."""
    asked = ("--as", "posterior-draw", "--insecure-seed", "1")
    applied = run("apply", channel, "records.csv", "out.csv", *asked)
    assert applied.code == 0, applied.err
    return folder / "out.csv"


def test_the_manifest_says_the_form(run, channel, released):
    asked = ("out.csv", "--channel", channel)
    said = ("--as", "posterior-draw")
    for words in (("check", *asked), ("check", *asked, "--original", "records.csv")):
        result = run(*words, "--json")
        assert result.code == 0, result.out
        assert result.record == run(*words, *said, "--json").record
    estimated = run("estimate", *asked, "--json")
    assert estimated.code == 0, estimated.err
    assert estimated.record == run("estimate", *asked, *said, "--json").record
    loaded = md.load(channel)
    assert md.check(loaded, released).plausible
    found = md.estimate(loaded, released)
    assert found.records == 12


def test_without_a_manifest_the_remedy_is_named(run, refused, channel, released):
    (released.parent / "out.csv.manifest.json").unlink()
    asked = ("out.csv", "--channel", channel)
    result = run("check", *asked)
    assert result.code == 1
    remedy = "which was released with --as posterior-draw, or not at all"
    assert remedy in " ".join(result.out.split())
    assert remedy in refused("estimate", *asked)
    assert run("check", *asked, "--as", "posterior-draw").code == 0
    told = run("check", *asked, "--as", "label")
    assert told.code == 1


def test_a_form_that_is_told_stands_before_that_of_the_manifest(run, channel, released):
    assert run("check", "out.csv", "--channel", channel, "--as", "label").code == 1
