"""`mechdesign compose`."""

from __future__ import annotations

import math
from pathlib import Path

import mechdesign as md
from mechdesign.auditing.joint_leakage import compose


def test_two_channels_of_one_table(designed, run, channel):
    b = designed("job", 0.4)
    result = run("compose", channel, b, "--json")
    assert result.code == 0
    found = compose([md.Channel.load(channel), md.Channel.load(b)])
    record = result.record
    assert (record["eps_l"], record["eps_u"], record["eps_ldp"]) == (
        found.eps_l,
        found.eps_u,
        found.eps_ldp,
    )
    assert record["worst"] == {
        "sensitive": found.worst.sensitive,
        "outputs": list(found.worst.outputs),
        "lift": found.worst.lift,
    }
    lift = found.worst.lift
    assert math.isclose(
        abs(math.log(lift)), max(found.eps_l, found.eps_u), rel_tol=1e-12
    )
    assert record["sum"]["eps_u"] == found.sum.eps_u
    assert record["exact"] is True
    text = run("compose", channel, b)
    for said in ("together", "no bound", "Worst: the outputs"):
        assert said in text.out


def test_channels_of_two_columns_need_the_table(designed, run, channel, refused):
    towns = designed("town", 1.0)
    assert "different columns" in refused("compose", channel, towns)
    result = run("compose", channel, towns, "--table", "records.csv", "--json")
    assert result.code == 0
    joint = md.Joint.from_table(_frame(), sensitive="group", useful=("job", "town"))
    found = compose([md.Channel.load(channel), md.Channel.load(towns)], joint)
    assert result.record["eps_u"] == found.eps_u
    assert (result.record["eps_ldp"], found.eps_ldp) == ("inf", math.inf)


def _frame():
    import pandas as pd

    return pd.read_csv("records.csv", dtype=str)


def test_refusals(folder, run, channel, refused):
    assert "give --table" in refused("compose", channel, "--sensitive", "group")
    assert "is a mechanism file" in refused("compose", channel, _mechanism())
    assert "no such file" in refused("compose", channel, "absent.json").lower()


def _mechanism():
    Path("q.json").write_text('{"format": "mechdesign.quantizer"}', encoding="utf-8")
    return "q.json"


def test_channels_that_protect_different_columns(designed, run, channel, refused):
    """What they tell of one column is not said where the other one's channel promises something of its own."""
    towns = designed("job", 1.0, sensitive="town")
    asked = ("compose", channel, towns, "--table", "records.csv")
    assert (
        "protect different columns ('group', 'town'): say about which you ask"
        in refused(*asked)
    )
    alone = run(*asked, "--sensitive", "group", "--json")
    assert alone.code == 0
    each = run(*asked, "--sensitive", "group,town", "--protect-each", "--json")
    assert (
        each.record["eps_ldp"] == "inf"
        or each.record["eps_ldp"] >= alone.record["eps_ldp"]
    )
