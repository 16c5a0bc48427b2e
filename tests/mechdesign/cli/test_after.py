"""Channels after other releases, several secrets and budgets of symbols, as typed."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

import mechdesign as md


@pytest.fixture
def people(folder):
    """Microdata with enough records that no combination is ruled out."""
    rng = random.Random(1)
    lines = ["race,sex,job,town"]
    lines += [
        ",".join(
            (rng.choice("ab"), rng.choice("fm"), rng.choice("xyz"), rng.choice("NSE"))
        )
        for _ in range(400)
    ]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "people.csv"


TYPED = ("--sensitive", "race", "--useful", "job")


def test_design_after(run, people):
    assert (
        run("design", people, *TYPED, "--epsilon", "0.1", "--output", "a.json").code
        == 0
    )
    refused = run("audit", "a.json", "--after", "a.json", "--all-measures")
    assert refused.code == 2
    assert "not for several releases together (--after)" in refused.err
    made = run(
        "design",
        people,
        *TYPED,
        "--epsilon",
        "0.2",
        "--after",
        "a.json",
        "--output",
        "b.json",
        "--json",
    )
    assert made.code == 0, made.err
    after = made.record["after"]
    first, second = md.Channel.load("a.json"), md.Channel.load("b.json")
    together = md.compose([first, second])
    assert together.eps_u <= 0.1
    assert after["together"]["eps_u"] == together.eps_u
    assert after["before"]["eps_u"] == md.compose([first]).eps_u
    assert after["at_once"]["gain"] >= -1e-3
    assert json.loads(Path("b.json").read_text(encoding="utf-8"))["after"] == [
        json.loads(Path("a.json").read_text(encoding="utf-8"))["sha256"]
    ]
    alone = run("audit", "b.json")
    assert (alone.code, "was not checked" in alone.out.replace("\n  ", " ")) == (
        0,
        True,
    )
    judged = run("audit", "b.json", "--after", "a.json", "--json")
    assert judged.code == 0
    assert judged.record["achieved"]["eps_u"] == together.eps_u
    assert "Judged together" in run("audit", "b.json", "--after", "a.json").out
    twice = run("audit", "b.json", "--after", "a.json", "--after", "b.json")
    assert "1 of these is not among the 1 that" in twice.out.replace("\n  ", " ")
    args = [part for name in "abc" for part in ("--after", f"{name}.json")]
    make_third = run("design", people, *TYPED, "--epsilon", "0.3", "--output", "c.json")
    assert make_third.code == 0
    thrice = run("audit", "b.json", *args).out.replace("\n  ", " ")
    assert "2 of these are not among the 1 that" in thrice
    first = run("audit", "a.json", "--after", "b.json").out.replace("\n  ", " ")
    assert "It was designed without regard to earlier releases." in first
    strict = run("audit", "b.json", "--after", "a.json", "--epsilon", "0.1", "--json")
    assert strict.code == 1
    assert strict.record["worst"]["before"]
    text = run("design", people, *TYPED, "--epsilon", "0.2", "--after", "a.json").out
    assert "After 1 other release of the same records" in text
    assert "One channel for everything at once" in text
    assert run("report", "b.json", "--report", "b.md").code == 0
    assert "designed after 1 release" in Path("b.md").read_text(encoding="utf-8")


def test_design_after_a_release_of_another_column(run, people, refused):
    typed = ("--sensitive", "race", "--useful", "town", "--epsilon", "0.1")
    assert run("design", people, *typed, "--output", "town.json").code == 0
    made = run(
        "design",
        people,
        *TYPED,
        "--epsilon",
        "0.3",
        "--after",
        "town.json",
        "--output",
        "job.json",
        "--json",
    )
    assert made.code == 0, made.err
    joint = md.Channel.load("job.json").joint
    assert joint.useful.columns == ("job",)
    assert "different columns" in refused("audit", "job.json", "--after", "town.json")
    judged = run(
        "audit", "job.json", "--after", "town.json", "--table", people, "--json"
    )
    assert judged.code == 0
    assert (
        judged.record["achieved"]["eps_ldp"]
        == made.record["after"]["together"]["eps_ldp"]
    )


def test_a_budget_that_is_used_up_is_a_no(run, people):
    assert (
        run("design", people, *TYPED, "--epsilon", "0.2", "--output", "a.json").code
        == 0
    )
    result = run(
        "design",
        people,
        *TYPED,
        "--epsilon",
        "0.1",
        "--after",
        "a.json",
        "--output",
        "b.json",
    )
    assert result.code == 1
    assert "breaks the promise already" in result.err
    assert len(result.err.splitlines()) == 1


def test_each_secret_and_budgets(run, people, refused):
    typed = ("--sensitive", "race,sex", "--useful", "job", "--epsilon", "0.1")
    crossed = run("design", people, *typed, "--json").record
    each = run(
        "design", people, *typed, "--protect-each", "--output", "e.json", "--json"
    )
    assert each.code == 0, each.err
    assert each.record["nmi"] >= crossed["nmi"] - 1e-4
    assert each.record["population"] is None
    document = json.loads(Path("e.json").read_text(encoding="utf-8"))
    assert (document["version"], document["sensitive"]["each"]) == (2, True)
    assert run("audit", "e.json", "--json").record["satisfied"]
    assert run("audit", "e.json", "--table", people, "--json").record["satisfied"]
    own = ("--budget", "race=a=0.01,0.02", "--budget", "m=inf,0.05")
    made = run(
        "design",
        people,
        *typed,
        "--protect-each",
        *own,
        "--output",
        "o.json",
        "--report",
        "o.md",
        "--full",
    )
    assert made.code == 0, made.err
    assert "'race=a' 0.99" in made.out.replace("\n  ", " ")
    assert (
        "; each of race and sex (4 symbols) is protected." in made.out.splitlines()[0]
    )
    assert "# Release of job, protecting each of race and sex\n" in Path(
        "o.md"
    ).read_text(encoding="utf-8")
    budgets = json.loads(Path("o.json").read_text(encoding="utf-8"))["budgets"]
    assert {"symbol": ["a"], "column": "race", "eps_l": 0.01, "eps_u": 0.02} in budgets
    assert {"symbol": ["m"], "column": "sex", "eps_l": "inf", "eps_u": 0.05} in budgets
    channel = md.Channel.load("o.json")
    race = channel.joint.secrets[0]
    assert md.audit(
        channel, race, md.ALIP(0.05, 0.05).with_budgets({"a": (0.01, 0.02)})
    ).satisfied
    assert run("report", "o.json", "--report", "again.html").code == 0
    assert (
        run("compare", people, *typed[:4], "--protect-each", "--epsilons", "0.1").code
        == 0
    )
    line = channel.record.provenance["command"]
    assert "--protect-each" in line
    assert "--budget race=a=0.01,0.02" in line
    assert "several sensitive columns" in refused(
        "design", people, *TYPED, "--epsilon", "1", "--protect-each"
    )
    assert "SYMBOL=EPS_L,EPS_U" in refused(
        "design", people, *TYPED, "--epsilon", "1", "--budget", "a=1"
    )
    assert "names 'a' twice" in refused(
        "design",
        people,
        *TYPED,
        "--epsilon",
        "1",
        "--budget",
        "a=1,1",
        "--budget",
        "a=2,2",
    )
    assert "no sensitive symbol" in refused(
        "design", people, *TYPED, "--epsilon", "1", "--budget", "q=1,1"
    )
    assert math.isfinite(each.record["achieved"]["eps_u"])


def test_what_after_does_not_go_with(run, people, channel, refused):
    typed = ("design", people, *TYPED, "--epsilon", "1", "--after", channel)
    assert "confidence is not built with" in refused(*typed, "--confidence", "0.9")
    assert "not to --matrix" in refused(
        "audit", "--matrix", "w.csv", "--table", people, "--after", channel
    )


def test_an_audit_says_which_earlier_releases_it_left_out(folder, run):
    typed = (
        "design",
        "records.csv",
        "--sensitive",
        "group",
        "--useful",
        "job",
        "--epsilon",
    )
    for name, epsilon in (("a.json", "0.1"), ("b.json", "0.2")):
        assert run(*typed, epsilon, "--output", name).code == 0
    both = ("--after", "a.json", "--after", "b.json")
    assert run(*typed, "2", *both, "--output", "c.json", "--report", "c.md").code == 0
    assert "channels that ignore the earlier releases" in (folder / "c.md").read_text(
        encoding="utf-8"
    )
    missing = "1 of the 2 releases that the channel was designed after were not given"
    assert missing in " ".join(run("audit", "c.json", *both[:2]).out.split())
    assert missing not in " ".join(run("audit", "c.json", *both).out.split())
