"""`compare --objectives PURPOSE`: what it prints, and what it refuses."""

import json

import pytest

ADULT = "examples/adult_relationship_by_occupation.csv"

BASE = ("compare", "people.csv", "--sensitive", "s", "--useful", "x")


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Records of s, x and a third column t that x tells of."""
    monkeypatch.chdir(tmp_path)
    lines = ["s,x,t"]
    for k in range(300):
        x = k % 4
        lines.append(
            f"s{(k // 4) % 2 if x < 2 else k % 3 % 2},x{x},t{int(x > 1) ^ (k % 7 == 0)}"
        )
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")


def test_queries(people, run):
    done = run(*BASE, "--epsilon", "0.6", "--objectives", "frequencies")
    assert done.code == 0
    assert "Channels to estimate frequencies" in done.out
    for name in ("frequencies", "optimal", "subset-response", "subset-merging"):
        assert f"\n  {name} " in done.out
    assert "No channel with this promise has less than 'at best' says" in done.out
    assert "the released column itself has the variance" in done.err
    record = json.loads(
        run(*BASE, "--epsilon", "0.6", "--objectives", "frequencies", "--json").out
    )
    first = record["rows"][0]
    assert first["mechanism"] == "frequencies"
    assert first["figure"] >= first["figure_bound"]


def test_a_task(people, run):
    done = run(*BASE, "--epsilon", "0.6", "--objectives", "task", "--task", "t")
    assert done.code == 0
    assert "What channels tell of the task" in done.out
    assert "of the task" in done.out


def test_a_grid_has_the_ways_at_every_budget(people, run):
    done = run(*BASE, "--epsilons", "0.3,0.6", "--objectives", "prefix", "--json")
    assert {row["epsilon"] for row in done.record["rows"]} == {0.3, 0.6}


def test_queries_of_a_file(people, run, tmp_path):
    (tmp_path / "q.csv").write_text("query,x0,x1,x2,x3\nlow,1,1,0,0\n")
    done = run(*BASE, "--epsilon", "0.6", "--objectives", "q.csv")
    assert done.code == 0
    assert "Channels to estimate" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objectives", "prefix"), "no budget given"),
        (("--objectives", "task", "--epsilon", "1"), "belong together"),
        (("--task", "t"), "--task belongs to --objectives task"),
        (
            ("--objectives", "prefix", "--task", "t", "--epsilon", "1"),
            "belong together",
        ),
        (
            ("--objectives", "prefix", "--epsilon", "1", "--epsilons", "1"),
            "exclude each other",
        ),
        (
            ("--objectives", "prefix", "--epsilon", "1", "--confidence", "0.9"),
            "has no confidence (--confidence)",
        ),
        (
            ("--objectives", "prefix", "--epsilon", "1", "--recommend"),
            "leave it out with --release, --average and a purpose",
        ),
        (
            ("--objectives", "prefix", "--epsilon", "1", "--given", "t"),
            "belong to a release of rows",
        ),
        (("--objectives", "people.csv", "--epsilon", "1"), "people.csv"),
        (("--objectives", "costs.csv", "--epsilon", "1"), "needs one of frequencies"),
    ],
)
def test_bad_input(people, run, tmp_path, options, message):
    (tmp_path / "costs.csv").write_text(
        ",x0,x1,x2,x3\nx0,0,1,1,1\nx1,1,0,1,1\nx2,1,1,0,1\nx3,1,1,1,0\n"
    )
    done = run(*BASE, *options)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert len(done.err.strip().splitlines()) <= 2
