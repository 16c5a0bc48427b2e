"""Records whose symbol changed and that keep what was released for their first one: the manifest
says so, and what reads the release must know it.
"""

from __future__ import annotations

import json

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.cli import main
from mechdesign.jobs.release_file import sanitise_file

SECRETS = "000111" * 10
SYMBOLS = "abc" * 20
"""They say nothing of the secrets, so each is released as itself, and a record that keeps an
earlier value shows."""


def written(path, symbols):
    lines = [f"{i},{symbol}\n" for i, symbol in enumerate(symbols)]
    path.write_text("id,x\n" + "".join(lines))
    return path


@pytest.fixture
def nights(tmp_path):
    """Two nights; in the second one the symbols of the first two records are exchanged."""
    table = pd.DataFrame({"s": list(SECRETS), "x": list(SYMBOLS)})
    channel = md.design(table, md.LIP(0.1), sensitive="s", useful="x").channel
    first = written(tmp_path / "first.csv", SYMBOLS)
    second = written(tmp_path / "second.csv", "bac" + SYMBOLS[3:])
    how = {"identity": "id", "keep": "id", "keep_order": True}
    how["ledger"] = tmp_path / "ledger"
    sanitise_file(channel, first, tmp_path / "first-out.csv", **how)
    released = tmp_path / "second-out.csv"
    manifest = tmp_path / "second-out.csv.manifest.json"
    sanitise_file(channel, second, released, changed="keep", manifest=manifest, **how)
    channel.save(tmp_path / "channel.json")
    return channel, second, released


def test_kept_records_are_no_fault_of_a_release(nights):
    channel, original, released = nights
    counted: list[int] = []
    found = md.check(channel, released, original=original, advance=counted.append)
    assert sum(counted) == len(SYMBOLS)
    assert found.plausible
    assert found.frequencies.against == "any data"
    assert "2 records have a value that the channel never gives" in found.notices[0]
    assert "--changed keep" in found.notices[0]
    # Without a word of the manifest they are impossible.
    released.with_name("second-out.csv.manifest.json").unlink()
    found = md.check(channel, released, original=original)
    assert [finding.kind for finding in found.findings] == ["pair"]


def test_other_faults_of_such_a_release_are_found(nights):
    channel, original, released = nights
    original.write_text(original.read_text().replace("\n8,", "\n99,"))
    found = md.check(channel, released, original=original)
    assert [finding.kind for finding in found.findings] == ["cells"]


def test_a_release_without_kept_records_is_tested_beside_its_original(nights):
    channel, original, released = nights
    written(original, SYMBOLS)
    found = md.check(channel, released, original=original)
    assert found.plausible
    assert found.frequencies.against == "originals"
    assert not any("--changed keep" in notice for notice in found.notices)


def test_estimates_say_which_symbols_they_count(nights, capsys):
    channel, _, released = nights
    counted = "the estimates count it with its first symbol"
    estimated = md.estimate(channel, released)
    assert any(counted in notice for notice in estimated.notices)
    place = str(released.with_name("channel.json"))
    assert main(["estimate", str(released), "--channel", place, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert any(counted in notice for notice in said["notices"])


def test_no_figure_of_a_judge_is_bounded_then(nights):
    channel, original, released = nights
    lines = original.read_text().split()
    secrets = ["s", *SECRETS]
    both = [f"{line},{s}\n" for line, s in zip(lines, secrets, strict=True)]
    original.write_text("".join(both))
    judged = md.judge(released, original=original, channel=channel, sensitive="s")
    # The original is the table of the channel, for which there would be bounds.
    assert "keeps what was released for its first one" in " ".join(judged.promise)
    assert judged.bounds == {}
