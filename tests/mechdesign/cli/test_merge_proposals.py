"""`design --confidence` says what merging would keep, and writes the channel that was asked for."""

from __future__ import annotations

import json
from pathlib import Path

from mechdesign.mechanisms import box_design
from tests.mechdesign.mechanisms.test_merge_proposals import sampled, shares

BASE = ("design", "t.csv", "--sensitive", "s", "--useful", "x", "--weight", "n")
LIP = ("--notion", "lip", "--epsilon", "0.5", "--gap", "0.05")


def written():
    """The table of 600 records, which is in t.csv from here on."""
    joint = sampled(shares(), 600, 1)
    lines = ["s,x,n"]
    for name, row in zip(joint.sensitive.names, joint.counts, strict=True):
        for symbol, count in zip(joint.useful.names, row, strict=True):
            lines.append(f"{name},{symbol},{count}")
    Path("t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return joint


def test_the_proposal_stands_beside_an_unchanged_channel(folder, run, monkeypatch):
    # The slices of proposals are drawn afresh; here they are always the same one.
    monkeypatch.setattr(box_design.secrets, "randbits", lambda bits: 1)
    joint = written()
    asked = (*BASE, *LIP, "--confidence", "0.95", "--time-limit", "600")
    text = run(*asked, "--output", "one.json").out
    assert "Merging keeps more than" in text
    assert "--merge-rare auto keeps about" in text
    assert len(text.splitlines()) <= 26
    record = run(*asked, "--output", "two.json", "--json").record
    assert record["proposals"][0]["options"] == "--merge-rare auto"
    assert record["proposals"][0]["nmi"] > record["nmi"]
    # Nothing is merged that was not asked for.
    channel = json.loads(Path("two.json").read_text(encoding="utf-8"))
    assert len(channel["useful"]["symbols"]) == len(joint.useful)
    plain = run(*BASE, *LIP, "--json").record
    assert plain["proposals"] is None


def test_ctrl_c_during_the_proposals_leaves_the_channel(folder, run, monkeypatch):
    """The search was over, and its channel was lost: 'interrupted; nothing was written'."""

    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(box_design, "merge_proposals", interrupted)
    written()
    done = run(*BASE, *LIP, "--confidence", "0.95", "--output", "one.json", "--json")
    assert done.code == 0, done.err
    assert done.record["proposals"] == []
    assert run("audit", "one.json").code == 0
