"""A ninth and a tenth notion: a class with `register` is all that designers, auditor, files and commands need."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import pytest

import mechdesign as md
from mechdesign.cli import main
from mechdesign.core.errors import InputError
from mechdesign.core.limits import DistanceMean, LiftLimits, MeanLimits
from mechdesign.notions import (
    NOTIONS,
    Notion,
    check_budget,
    from_record,
    register,
    to_record,
)

COUNTS = [[9, 4, 2, 1], [2, 6, 5, 1], [1, 3, 8, 5]]


@dataclass(frozen=True)
class Narrow(Notion):
    """Every lift and every ratio of two lifts within one budget: LIP and LDP at once."""

    name: ClassVar[str] = "narrow"
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", check_budget("epsilon", self.epsilon, allow_infinite=False)
        )

    @property
    def limits(self) -> LiftLimits:
        return LiftLimits(lower=self.epsilon, upper=self.epsilon, ratio=self.epsilon)


@dataclass(frozen=True)
class CubeLift(Notion):
    """sum_s P(s) |l - 1|^3 <= (exp(eps_u) - 1)^3 and the same of 1/l with eps_l, on every output."""

    name: ClassVar[str] = "l3"
    eps_l: float
    eps_u: float

    @property
    def limits(self) -> MeanLimits:
        return MeanLimits(DistanceMean("l3", 3), lower=self.eps_l, upper=self.eps_u)


@pytest.fixture(autouse=True)
def registered():
    known = dict(NOTIONS)
    register(Narrow)
    register(CubeLift)
    yield
    NOTIONS.clear()
    NOTIONS.update(known)


@pytest.fixture
def joint():
    return md.Joint.from_counts(COUNTS)


def lifts(joint, channel):
    """Every lift as an exact fraction, one list for each output."""
    sums = [sum(row) for row in joint.counts]
    for y in range(len(channel.outputs)):
        column = [row[y] for row in channel.rows]
        masses = [
            sum(c * w for c, w in zip(row, column, strict=True)) for row in joint.counts
        ]
        yield [
            Fraction(m * sum(sums), r * sum(masses))
            for m, r in zip(masses, sums, strict=True)
        ]


def test_a_notion_on_lifts(joint, tmp_path):
    notion = Narrow(0.6)
    result = md.design(joint, notion)
    assert result.verified
    assert result.nmi > 0
    bound = Fraction(math.exp(0.6)) * (1 + Fraction(1, 2**40))
    for each in lifts(joint, result.channel):
        assert 1 / bound <= min(each)
        assert max(each) <= min(bound, bound * min(each))
    verdict = md.audit(result.channel, joint, notion)
    assert verdict.satisfied
    assert not md.audit(result.channel, joint, Narrow(0.1)).satisfied
    result.channel.save(tmp_path / "c.json")
    loaded = md.Channel.load(tmp_path / "c.json")
    assert from_record(loaded.record.notion) == notion
    assert loaded == result.channel


def test_a_notion_on_means(joint, tmp_path):
    notion = CubeLift.at(1.0, 0.5)
    result = md.design(joint, notion, mechanism="subset-merging")
    assert result.verified
    p_s = [Fraction(sum(row), joint.total) for row in joint.counts]
    bound = Fraction(math.expm1(0.5) ** 3) * (1 + Fraction(1, 2**40))
    for each in lifts(joint, result.channel):
        assert (
            sum(p * abs(one - 1) ** 3 for p, one in zip(p_s, each, strict=True))
            <= bound
        )
        assert (
            sum(p * abs(1 / one - 1) ** 3 for p, one in zip(p_s, each, strict=True))
            <= bound
        )
    verdict = md.audit(result.channel, joint, notion)
    assert verdict.used.eps_u <= 0.5
    assert not md.audit(
        result.channel, joint, CubeLift(math.inf, verdict.used.eps_u * 0.9)
    ).satisfied
    result.channel.save(tmp_path / "c.json")
    assert from_record(md.Channel.load(tmp_path / "c.json").record.notion) == notion
    with pytest.raises(InputError, match="l3 with its inverse allows are not convex"):
        md.design(joint, notion)


def test_comparisons_know_it(joint):
    rows = md.compare(
        joint,
        epsilons=[0.5, 1.0],
        lams=[0.5],
        mechanisms=["subset-merging"],
        notions=["narrow", "l3"],
    ).rows
    assert [(row.notion, row.epsilon, row.lam, row.eps_l) for row in rows] == [
        ("narrow", 0.5, None, 0.5),
        ("narrow", 1.0, None, 1.0),
        ("l3", 0.5, 0.5, 0.25),
        ("l3", 1.0, 0.5, 0.5),
    ]
    assert all(row.satisfied for row in rows)


def test_the_command_line_knows_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["s,a,b,c,d"] + [
        f"s{i},{','.join(map(str, row))}" for i, row in enumerate(COUNTS)
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table = ["t.csv", "--contingency"]
    assert (
        main(
            [
                "design",
                *table,
                "--notion",
                "narrow",
                "--epsilon",
                "0.6",
                "--output",
                "c.json",
                "--full",
            ]
        )
        == 0
    )
    assert "narrow (epsilon 0.6)" in capsys.readouterr().out
    assert main(["audit", "c.json"]) == 0
    assert "narrow" in capsys.readouterr().out
    made = [
        "design",
        *table,
        "--notion",
        "l3",
        "--epsilon",
        "1",
        "--mechanism",
        "subset-merging",
        "--json",
    ]
    assert main(made) == 0
    assert json.loads(capsys.readouterr().out)["notion"] == {
        "name": "l3",
        "eps_l": 0.5,
        "eps_u": 0.5,
    }
    assert (
        main(["design", *table, "--notion", "narrow", "--epsilon", "1", "--lam", "0.4"])
        == 2
    )
    assert (
        "the budget of alip, l1, chi2, alpha, kl and l3; --notion narrow takes"
        in capsys.readouterr().err
    )


def test_words_are_those_of_the_limits():
    assert Narrow(math.log(2)).limits.condition("diagnosis") == (
        "a released value makes any value of diagnosis 0.5 to 2 times as probable; "
        "no released value is more than 2 times as likely under one value of diagnosis as under another."
    )
    assert "the mean of |l - 1|^3 is at most" in CubeLift(
        math.inf, 1.0
    ).limits.condition("s")
    assert CubeLift(1.0, math.inf).text == "l3 (eps_l 1)"
    assert to_record(Narrow(1.0)) == {"name": "narrow", "epsilon": 1.0}


def test_a_name_belongs_to_one_notion():
    with pytest.raises(ValueError, match="there is a notion 'narrow' already"):
        register(Narrow)
