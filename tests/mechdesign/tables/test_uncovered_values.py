"""Sensitive values without records: the bound on their shares, and lists that name them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import LDP, InputError, Joint, design
from mechdesign.cli import main
from mechdesign.tables.confidence import unseen_symbols
from mechdesign.tables.uncovered_values import (
    largest_uncovered_share,
    uncovered_sentence,
)

SHARES = [
    ("1/2", "1/2"),
    ("9/10", "1/10"),
    ("1/3", "1/3", "1/3"),
    ("3/5", "1/5", "1/5"),
    ("1/4", "1/4", "1/4", "1/4"),
    ("7/10", "1/10", "1/10", "1/10"),
    ("1/5", "1/5", "1/5", "1/5", "1/5"),
    ("1/20",) * 20,
]


def _missing(shares: list[Fraction], records: int) -> Fraction:
    """The probability that one of these values at least is in no record, by inclusion and
    exclusion.
    """
    probability = Fraction(0)
    for size in range(1, len(shares) + 1):
        sign = (-1) ** (size + 1)
        for values in itertools.combinations(shares, size):
            probability += sign * (1 - sum(values)) ** records
    return probability


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("records", [1, 2, 5, 10, 30, 60])
def test_no_common_value_is_missing_more_often_than_stated(
    level: float, records: int
) -> None:
    """P(a value of share above q has no record) <= 1 - level, exactly, whatever the population."""
    bound = Fraction(largest_uncovered_share(records, level))
    for texts in SHARES:
        shares = [Fraction(text) for text in texts]
        common = [share for share in shares if share > bound]
        if len(common) <= 8:
            assert _missing(common, records) <= 1 - Fraction(repr(level))


def test_the_bound_solves_its_equation_and_is_rounded_up() -> None:
    for records in (1, 7, 944, 31_580, 10**9):
        q = largest_uncovered_share(records, 0.95)
        assert math.exp(records * math.log1p(-q) - math.log(q)) <= 0.05
        less = 0.999 * q
        assert math.exp(records * math.log1p(-less) - math.log(less)) > 0.05
    # 0.826 %: the sentence rounds up.
    share = 100 * largest_uncovered_share(944, 0.95)
    assert share < 0.83 < share * 1.01
    assert "0.83 % of the population" in uncovered_sentence(0.95, 944)
    assert "%" not in uncovered_sentence(0.95)


def test_a_listed_secret_without_records_is_refused_with_confidence() -> None:
    joint = Joint.from_counts(
        [[500, 300, 100], [400, 350, 150], [0, 0, 0]],
        sensitive_labels=["x", "y", "z"],
    )
    assert joint.empty_sensitive == ("z",)
    assert design(joint, LDP(1.0)).verified
    with pytest.raises(InputError, match="names 'z', which the table has no records"):
        design(joint, LDP(1.0), confidence=0.9)


def test_listed_useful_symbols_without_records_are_unseen_ones(tmp_path: Path) -> None:
    joint = Joint.from_counts(
        [[500, 300, 0], [400, 350, 0]], useful_labels=["a", "b", "c"]
    )
    assert joint.empty_useful == ("c",)
    result = design(joint, LDP(0.2), confidence=0.9)
    assert result.confidence is not None
    assert result.confidence.unseen == 1
    more = design(joint, LDP(0.2), confidence=0.9, unseen=2)
    assert more.confidence is not None
    assert more.confidence.unseen == 2
    path = tmp_path / "symbols.csv"
    path.write_text("useful\na\nb\nd\n")
    assert unseen_symbols(str(path), joint) == 2
    path.write_text("useful\na\nb\nc\n")
    assert unseen_symbols(str(path), joint) == 1


def test_a_list_of_secrets_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "counts.csv"
    table.write_text("s,a,b\nx,500,300\ny,400,350\n")
    listed = tmp_path / "secrets.csv"
    line = ["design", str(table), "--contingency", "--useful", "letter"]
    line += ["--epsilon", "1", "--secrets", str(listed)]
    confident = [*line, "--confidence", "0.9"]
    listed.write_text("s\nx\ny\n")
    assert main([*confident, "--full"]) == 0
    answer = " ".join(capsys.readouterr().out.split())
    assert "does not cover sensitive values of which the table has no record" in answer
    assert main(line) != 0
    assert "--secrets needs --confidence" in capsys.readouterr().err
    listed.write_text("s\nx\ny\nz\n")
    assert main(confident) != 0
    assert "names 'z', which the table has no records of" in capsys.readouterr().err
    listed.write_text("s\nx\n")
    assert main(confident) != 0
    assert "does not list 'y', which the table has" in capsys.readouterr().err
