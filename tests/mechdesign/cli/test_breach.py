"""`audit --breach RHO1,RHO2`: the verdict, the exit code, and refusals."""

from __future__ import annotations

import pytest

TABLE = "s,a,b,c\nx,30,10,5\ny,5,20,10\nz,1,9,10\n"


@pytest.fixture
def channel(folder, run):
    (folder / "t.csv").write_text(TABLE)
    options = ("--contingency", "--useful", "u", "--epsilon", "1")
    assert run("design", "t.csv", *options, "--output", "c.json").code == 0
    return folder / "c.json"


def test_no_breach(channel, run):
    result = run("audit", channel, "--breach", "0.3,0.6")
    assert result.code == 0
    words = " ".join(result.out.split())
    assert "No privacy breach from 0.3 up to 0.6: a property of probability" in words
    assert (
        "gets 0.32974 in the worst case (z, 0.2 before, by the output mix-3)" in words
    )
    assert "No privacy breach from 0.6 down to 0.3" in words


def test_a_breach_is_exit_code_1(channel, run):
    result = run("audit", channel, "--breach", "0.5,0.6", "--json")
    assert result.code == 1
    # The notion is kept all the same.
    assert result.record["satisfied"]
    (breach,) = result.record["breaches"]
    assert not breach["excluded"]
    assert breach["decided"] == "exact"
    assert breach["upward"]["worst"]["property"] == ["x"]
    assert "A PRIVACY BREACH from 0.5 up to 0.6" in " ".join(
        run("audit", channel, "--breach", "0.5,0.6").out.split()
    )


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("0.1", "--breach ('0.1') must be RHO1,RHO2, as in 0.1,0.5"),
        ("0.5,0.1", "a breach needs 0 < rho1 < rho2 < 1"),
        ("a,b", "--breach ('a') must be a positive number"),
    ],
)
def test_levels_that_cannot_be(channel, run, levels, message):
    result = run("audit", channel, "--breach", levels)
    assert result.code == 2
    assert message in result.err


def test_it_belongs_to_a_channel_file(channel, folder, run):
    (folder / "w.csv").write_text("u,A\na,1\nb,1\nc,1\n")
    result = run(
        "audit",
        "--matrix",
        "w.csv",
        "--table",
        "t.csv",
        "--contingency",
        "--epsilon",
        "1",
        "--breach",
        "0.1,0.5",
    )
    assert result.code == 2
    assert "--breach is for the file of a channel of one column" in result.err
