"""What `audit`, `show` and `measure` say of a channel that is there: records, exit codes, texts."""

from __future__ import annotations

import csv
import io
import math
from decimal import Decimal

import numpy as np
import pytest

import mechdesign as md

MICRO = ("--sensitive", "group", "--useful", "job")
EPS = ("--epsilon", "1")


def test_audit_of_another_notion_says_no_with_exit_1(channel, run):
    result = run("audit", channel, "--notion", "ldp", "--epsilon", "1e-3", "--json")
    assert result.code == 1
    record = result.record
    assert record["satisfied"] is False
    assert record["notion"] == {"name": "ldp", "epsilon": 1e-3}
    assert set(record["worst"]) == {"sensitive", "output", "lift", "against"}
    text = run("audit", channel, "--notion", "ldp", "--epsilon", "1e-3")
    assert text.code == 1
    assert "VIOLATED" in text.out
    assert "against" in text.out


def test_audit_says_that_its_table_is_not_that_of_the_design(folder, run):
    header, *lines = (folder / "records.csv").read_text().splitlines(keepends=True)
    (folder / "fewer.csv").write_text(header + "".join(lines[::2]))
    (folder / "turned.csv").write_text(header + "".join(reversed(lines)))
    # Shares alone make a table: twice the same records are the same one.
    (folder / "twice.csv").write_text(header + "".join(lines * 2))
    (folder / "weights.csv").write_text(
        header.strip() + ",n\n" + "".join(line.strip() + ",1\n" for line in lines)
    )
    design = ("design", "weights.csv", *MICRO, *EPS, "--weight", "n")
    assert run(*design, "--output", "c.json").code == 0
    audit = ("audit", "c.json", "--table")
    other = " ".join(run(*audit, "fewer.csv").out.split())
    records = f"{len(lines[::2])} records"
    assert f"This is the verdict on fewer.csv ({records})." in other
    assert f"another one ({len(lines)} records)" in other
    for same in ("turned.csv", "twice.csv", "records.csv"):
        assert "verdict on" not in run(*audit, same).out
    assert "verdict on" not in run("audit", "c.json").out


def test_audit_with_a_budget_alone_keeps_the_notion_of_the_channel(folder, run):
    assert (
        run(
            "design",
            "records.csv",
            *MICRO,
            *EPS,
            "--notion",
            "ldp",
            "--output",
            "c.json",
        ).code
        == 0
    )
    assert run("audit", "c.json", "--epsilon", "2", "--json").record["notion"] == {
        "name": "ldp",
        "epsilon": 2.0,
    }


def test_audit_on_another_table(channel, folder, run):
    skewed = "group,clerk,baker,smith,weaver\na,99,1,1,1\nb,1,1,99,1\n"
    (folder / "skewed.csv").write_text(skewed, encoding="utf-8")
    assert run("audit", channel, "--table", "skewed.csv", "--contingency").code == 1


def test_shown_csv_is_the_matrix_and_audits_alike(channel, folder, run):
    text = run("show", channel, "--csv").out
    rows = list(csv.reader(io.StringIO(text)))
    loaded = md.Channel.load(channel)
    assert rows[0] == ["job", *loaded.outputs]
    assert [row[0] for row in rows[1:]] == list(loaded.useful.names)
    exact = [
        [Decimal(cell) * loaded.denominator for cell in row[1:]] for row in rows[1:]
    ]
    assert exact == [list(map(Decimal, row)) for row in loaded.rows]
    (folder / "W.csv").write_text(text, encoding="utf-8")
    outside = run(
        "audit", "--matrix", "W.csv", "--table", "records.csv", *MICRO, *EPS, "--json"
    )
    assert outside.code == 0
    record = run("audit", channel, "--json").record
    # A matrix states no figures.
    assert record.pop("figures")["wrong"] == []
    assert outside.record == record


def test_a_leaky_matrix_is_refuted(folder, run):
    (folder / "W.csv").write_text(
        "job,y0,y1\nclerk,1,0\nbaker,0,1\nsmith,0,1\nweaver,0,1\n", encoding="utf-8"
    )
    result = run(
        "audit",
        "--matrix",
        "W.csv",
        "--table",
        "counts.csv",
        "--contingency",
        "--epsilon",
        "0.5",
        "--json",
    )
    assert result.code == 1
    assert result.record["worst"]["output"] == "y0"
    assert result.record["worst"]["lift"] == pytest.approx(0.5)


def test_show_lists_both_directions(channel, run):
    out = run("show", channel).out
    assert "What is published for each symbol" in out
    assert "What each output says (codebook)" in out
    record = run("show", channel, "--json").record
    loaded = md.Channel.load(channel)
    assert record["rows"] == [list(row) for row in loaded.rows]
    for posterior in record["codebook"].values():
        assert sum(posterior.values()) == pytest.approx(1.0)


def test_measures_are_those_of_the_joint_of_s_and_y(channel, run):
    result = run("measure", channel, "--alpha", "3", "--json")
    loaded = md.Channel.load(channel)
    p = loaded.joint.p @ loaded.matrix
    independent = np.outer(p.sum(axis=1), p.sum(axis=0))
    lift = p / independent
    leakage = result.record["leakage"]
    assert leakage["mutual_information"] == pytest.approx(
        float((p * np.log(lift)).sum())
    )
    assert leakage["max_log_lift"] == pytest.approx(float(np.log(lift.max())))
    assert leakage["total_variation"] == pytest.approx(
        float(np.abs(p - independent).sum()) / 2
    )
    assert "alpha_lift[3]" in leakage
    assert result.record["utility"]["maximal_leakage_of_useful"] == pytest.approx(
        math.log(loaded.matrix.max(axis=0).sum())
    )
    text = run("measure", channel)
    assert "max_log_lift" in text.out
    assert "nmi" in text.out


def test_measures_on_another_table_in_another_order(channel, folder, run):
    (folder / "t.csv").write_text(
        "group,weaver,smith,baker,clerk\na,1,1,1,3\nb,1,3,1,1\n", encoding="utf-8"
    )
    there = run("measure", channel, "--table", "t.csv", "--contingency", "--json")
    (folder / "u.csv").write_text(
        "group,baker,clerk,smith,weaver\na,1,3,1,1\nb,1,1,3,1\n", encoding="utf-8"
    )
    assert (
        there.record
        == run("measure", channel, "--table", "u.csv", "--contingency", "--json").record
    )
    (folder / "v.csv").write_text(
        "group,baker,clerk,pilot,weaver\na,1,3,1,1\nb,1,1,3,1\n", encoding="utf-8"
    )
    refused = run("measure", channel, "--table", "v.csv", "--contingency")
    assert refused.code == 2
    assert "no useful symbol 'smith', which the channel has" in refused.err
    (folder / "w.csv").write_text(
        "group,baker,clerk,pilot,smith,weaver\na,1,3,1,1,1\nb,1,1,1,3,1\n",
        encoding="utf-8",
    )
    unknown = run("measure", channel, "--table", "w.csv", "--contingency")
    assert unknown.code == 2
    assert "'pilot'" in unknown.err


def test_a_terminal_shows_the_first_rows_of_a_large_channel(folder, run):
    """Whole matrices are for files: 150 symbols would fill 300 lines."""
    chance = np.random.default_rng(8)
    lines = ["group,job"]
    for _ in range(6000):
        lines.append(f"{chance.choice(['s', 't'])},j{chance.integers(0, 150):03}")
    (folder / "many.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run(
        "design",
        "many.csv",
        *MICRO,
        *EPS,
        "--output",
        "many.json",
        "--mechanism",
        "subset-merging",
    )
    channel = md.Channel.load("many.json")
    assert len(channel.useful) == 150
    text = run("show", "many.json").out
    assert "and 50 more; --csv has all probabilities" in text
    assert len(text.splitlines()) < 220
    assert len(run("show", "many.json", "--csv").out.splitlines()) == 151
