"""`releases`: what the ledger knows, as a list and added up for one data set."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from mechdesign.auditing.joint_leakage import compose
from mechdesign.channel.channel import Channel
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_file import default_path


@pytest.fixture
def people(folder):
    jobs = random.Random(1).sample(["clerk", "smith"] * 20, 40)
    rows = [f"{i},{job},{i / 4}\n" for i, job in enumerate(jobs)]
    (folder / "in.csv").write_text("id,job,score\n" + "".join(rows))
    (folder / "turned.csv").write_text(
        "id;job;score\n" + "".join(reversed(rows)).replace(",", ";")
    )
    return folder


def test_nothing_is_known_at_first(people, run, refused):
    assert run("releases").out.startswith("No release is known (")
    assert json.loads(run("releases", "--json").out)["releases"] == []
    assert "nothing has been released with it" in refused(
        "releases", "--ledger", "none.db"
    )
    assert "nothing has been released with it" in refused("releases", "total", "in.csv")
    assert not (people / "none.db").exists()


@pytest.mark.parametrize("words", [(), ("total", "in.csv")])
@pytest.mark.parametrize("named", [("--ledger", "ledger.db"), ()])
def test_a_ledger_that_is_gone_is_not_called_an_empty_one(
    people, refused, words, named
):
    """The key that was left says that something has been released."""
    path = Path("ledger.db") if named else default_path()
    Ledger(path).path.unlink()
    assert "but its key ledger.db.key is there" in refused("releases", *words, *named)


@pytest.mark.parametrize("words", [("in.csv",), ("total",), ("sum", "in.csv")])
def test_usage(people, refused, words):
    assert "give `releases` alone for a list, or `releases total DATA`" in refused(
        "releases", *words
    )


def test_the_list_and_the_total(channel, people, run):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    assert run("apply", channel, "in.csv", "2.csv").code == 0
    assert run("apply", channel, "in.csv", "3.csv", "--fresh-draw").code == 0
    lines = run("releases").out.splitlines()
    assert [line.split()[-3:] for line in lines] == [
        ["draw", "from", "to"],
        ["1", "in.csv", "1.csv"],
        ["1", "in.csv", "2.csv"],
        ["2", "in.csv", "3.csv"],
    ]
    record = json.loads(run("releases", "--json").out)
    assert [entry["records"] for entry in record["releases"]] == [40] * 3
    assert len({entry["data"] for entry in record["releases"]}) == 1
    assert [entry["channels"][0]["draw"] for entry in record["releases"]] == [0, 0, 1]
    # Sorted and with another delimiter, it is the same data set.
    total = run("releases", "total", "turned.csv", "--delimiter", ";", "--json")
    joint = compose([Channel.load(channel)] * 2)
    found = json.loads(total.out)
    assert (found["draws"], found["share"], len(found["releases"])) == (2, 1.0, 3)
    assert (found["eps_l"], found["eps_u"], found["eps_ldp"]) == (
        joint.eps_l,
        joint.eps_u,
        joint.eps_ldp,
    )
    text = run("releases", "total", "turned.csv", "--delimiter", ";").out
    assert text.splitlines()[-1].startswith(
        "turned.csv: all 2 draws of a record together make any value of "
    )
    printed = dict(
        zip(
            *[iter(re.sub(r"[(),]|\.$", "", text.splitlines()[-1]).split()[-6:])] * 2,
            strict=True,
        )
    )
    assert all(
        found[name] <= float(value) < found[name] * 1.001
        for name, value in printed.items()
    )
    assert set(printed) == {"eps_l", "eps_u", "eps_ldp"}
    assert record["releases"][2]["joint"]["eps_ldp"] == joint.eps_ldp


def test_other_data_and_parts(channel, people, run):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    (people / "other.csv").write_text("id,job,score\nx,clerk,y\n")
    none = run("releases", "total", "other.csv")
    assert none.out == "other.csv: these records have not been released.\n"
    assert json.loads(run("releases", "total", "other.csv", "--json").out)["draws"] == 0
    more = (people / "in.csv").read_text() + "".join(
        f"{i},clerk,new\n" for i in range(100, 140)
    )
    (people / "more.csv").write_text(more)
    text = run("releases", "total", "more.csv").out
    assert "About 50 % of the records of more.csv were in these releases." in text
    assert "the one draw of a record makes any value of" in text


def test_a_channel_that_has_moved(channel, people, run):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    (people / "far").mkdir()
    moved = people / "far" / "c.json"
    channel.rename(moved)
    lost = run("releases", "total", "in.csv")
    assert lost.code == 0
    assert "is not known: the channel" in lost.out
    assert json.loads(run("releases", "total", "in.csv", "--json").out)["eps_l"] is None
    assert (
        "makes any value of"
        in run("releases", "total", "in.csv", "--channel", moved).out
    )


def test_releases_of_several_columns_are_added_up_over_the_table_of_all(
    folder, run, refused
):
    random.seed(3)
    rows = [
        (random.choice("uv"), random.choice("abc"), random.choice("xy"))
        for _ in range(200)
    ]
    (folder / "t.csv").write_text(
        "s,one,two\n" + "".join(f"{','.join(row)}\n" for row in rows)
    )
    (folder / "in.csv").write_text(
        "one,two\n" + "".join(f"{','.join(row[1:])}\n" for row in rows)
    )
    for column in ("one", "two"):
        asked = (
            "--sensitive",
            "s",
            "--useful",
            column,
            "--epsilon",
            "0.5",
            "--output",
            f"{column}.json",
        )
        assert run("design", "t.csv", *asked).code == 0
        assert (
            run(
                "apply", f"{column}.json", "in.csv", f"{column}.csv", "--keep-order"
            ).code
            == 0
        )
    assert "give the table of all (--table)" in run("releases", "total", "in.csv").out
    found = json.loads(
        run("releases", "total", "in.csv", "--table", "t.csv", "--json").out
    )
    both = run("compose", "one.json", "two.json", "--table", "t.csv", "--json").record
    assert {name: found[name] for name in ("eps_l", "eps_u", "eps_ldp")} == {
        name: both[name] for name in ("eps_l", "eps_u", "eps_ldp")
    }
    assert "leave it out of the list" in refused("releases", "--table", "t.csv")


def test_two_draws_of_renewed_identifiers_have_two_numbers(channel, people, run):
    """Nothing was certain: so few rows of two kinds are alike by chance."""
    rows = [f"{i},{'clerk' if i % 3 else 'smith'}\n" for i in range(20)]
    (people / "a.csv").write_text("id,job\n" + "".join(rows))
    renewed = [f"n{row}" for row in reversed(rows)]
    (people / "b.csv").write_text("id,job\n" + "".join(renewed))
    for name in ("a", "b"):
        words = ("--identity", "id", "--keep-order")
        assert run("apply", channel, f"{name}.csv", f"o{name}.csv", *words).code == 0
    total = run("releases", "total", "a.csv").out
    lines = [line.split()[-3:] for line in total.splitlines()[1:3]]
    assert lines == [["1", "a.csv", "oa.csv"], ["2", "b.csv", "ob.csv"]]
    assert "all 2 draws of a record together" in total
    record = run("releases", "total", "a.csv", "--json").record
    numbers = [entry["channels"][0]["number"] for entry in record["releases"]]
    assert numbers == [1, 2]
    # The plain list knows as much, and counts data that were never released before as one draw.
    others = "".join(f"m{row}" for row in rows).replace("smith", "clerk")
    (people / "c.csv").write_text("id,job\n" + others)
    assert run("apply", channel, "c.csv", "oc.csv", *words).code == 0
    plain = [line.split()[-3:] for line in run("releases").out.splitlines()[1:]]
    assert plain == [*lines, ["1", "c.csv", "oc.csv"]]
