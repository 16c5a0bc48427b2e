"""Reports on rows speak of rows, of given columns, of groups, and of each column."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.report.collect import design_behind
from mechdesign.report.promises import OTHER_PRIOR, PUBLIC_ROWS
from tests.cases.people import people


@pytest.fixture(scope="module")
def relative():
    """Rows of a and b, of which b is given: it tells much of the secret by itself."""
    frame = people()
    frame["b"] = frame["secret"].where(frame.index % 5 > 0, "other")
    return md.design(
        frame,
        md.LIP(0.4),
        sensitive="secret",
        release=["a"],
        given=["b"],
        promise="relative",
    )


@pytest.fixture(scope="module")
def total():
    return md.design(people(), md.LIP(0.4), sensitive="secret", release=["a", "b"])


@pytest.fixture(scope="module")
def grouped():
    """Smallest groups that move the law."""
    frame = people()
    design = md.design(
        frame, md.LIP(1.0), sensitive="secret", release=["a", "b"], smallest_group=60
    )
    assert design.law is not None
    assert not design.law.kept
    return design


def test_averages_stand_on_the_first_screen():
    design = md.design(
        people(),
        sensitive="secret",
        release=["a", "b"],
        average={"mi": 0.02, "tv": 0.1},
    )
    said = " ".join(design.summary().split())
    assert "Average: the mutual information (nats) is at most 0.02; it is 0.01" in said
    assert "An average promises nothing about one record" in said


def record_of(design, tmp_path, **options):
    path = tmp_path / "report.json"
    md.report(design, path, overwrite=True, **options)
    return json.loads(path.read_text(encoding="utf-8"))


def largest_ratio(channel):
    """max P(y | s) / P(y | t) over released rows and secrets, from the integers."""
    joint = channel.joint
    totals = channel.row_totals
    masses: dict[tuple[int, int], Fraction] = {}
    for x, row in enumerate(channel.integers.entries()):
        for y, weight in row:
            for s, counts in enumerate(joint.counts):
                share = Fraction(int(weight), int(totals[x])) * counts[x]
                masses[s, y] = masses.get((s, y), Fraction(0)) + share
    sums = [sum(counts) for counts in joint.counts]
    largest = Fraction(0)
    for y in range(len(channel.outputs)):
        shares = [masses.get((s, y), Fraction(0)) / n for s, n in enumerate(sums)]
        if min(shares) == 0:
            return float("inf")
        largest = max(largest, max(shares) / min(shares))
    return float(largest)


@pytest.mark.parametrize("public", [False, True])
def test_no_factor_for_other_priors_with_a_relative_promise(relative, tmp_path, public):
    """The given columns alone tell more: P(y|s) / P(y|t) is far above e^0.4."""
    assert largest_ratio(relative.channel) > 2 * 1.5
    record = record_of(relative, tmp_path, public=public)
    said = " ".join(record["holds_for"])
    assert OTHER_PRIOR[:30] not in said
    assert "knows this table, the channel and b of the record" in said
    assert "A part of a released row without b can reveal what b reveals" in said
    assert (
        "compared with records of the same given columns"
        in (record["promise"]["statement"])
    )


def test_probabilities_before_are_those_of_the_whole_table(relative, tmp_path):
    record = record_of(relative, tmp_path, curve=0)
    said = " ".join(record["holds_for"])
    assert "compares with records of the same b" in said
    assert record["asked"]["relative_to"] == ["b"]
    md.report(relative, tmp_path / "report.md", curve=0)
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Times as likely as by b alone" in page
    # The maps have lifts against the whole table, which the promise does not limit.
    assert "outside what is allowed" not in page
    assert "I(X;Y\\|K)" in page
    # Lifts of zero are no negative ones.
    assert "-0 |" not in page
    assert "beyond b is kept" in page


def test_given_columns_have_no_curve_of_channels_that_change_them(relative, tmp_path):
    record = record_of(relative, tmp_path, curve=5)
    assert record["curve"] is None
    assert "change the given columns" in record["absent"]["curve"]


def test_a_curve_has_no_points_of_channels_without_the_groups(grouped, tmp_path):
    curve = record_of(grouped, tmp_path, curve=5)["curve"]
    points = [row["mechanism"] for row in curve["rows"] if row["mechanism"] == "truth"]
    assert len(points) == 1


@pytest.mark.parametrize(
    "options", [{"column_weights": {"a": 3}}, {"never": [{"a": "s", "b": "t"}]}]
)
def test_what_a_comparison_cannot_repeat_is_in_the_objective(options):
    design = md.design(
        people(), md.LIP(0.4), sensitive="secret", release=["a", "b"], **options
    )
    objective = design.channel.record.objective
    assert objective is not None
    assert objective.is_special
    assert objective.constraints == 0


def test_rows_are_called_rows(total, tmp_path):
    record = record_of(total, tmp_path, curve=0)
    assert record["promise"]["statement"].startswith("a released row makes")
    md.report(total, tmp_path / "report.md", curve=0)
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "It covers the released columns alone" in page
    assert "released value" not in page
    assert "is released as one of" in page


def test_a_report_has_what_each_column_keeps(total, tmp_path):
    rows = {
        row[0]: row[1:]
        for row in record_of(total, tmp_path, curve=0)["least"]["by_column"]
    }
    frame = people()
    for name, share in total.truth.items():
        unchanged, constant = rows[name]
        shown = float(unchanged.removesuffix(" %")) / 100
        assert shown <= share < shown + 0.0011
        frequent = frame[name].value_counts(normalize=True).max()
        shown = float(constant.removesuffix(" %"))
        assert shown == pytest.approx(100 * frequent, abs=0.06)


def test_the_file_of_a_design_says_the_same_of_columns_and_groups(grouped):
    channel = grouped.channel
    joint = channel.joint
    assert joint is not None
    behind = design_behind(channel, joint, grouped.notion)
    assert behind.truth == grouped.truth
    # Of the file the released counts are known, and not which number was asked for.
    assert behind.smallest_group >= grouped.smallest_group == 60
    assert behind.nmi == pytest.approx(grouped.nmi, abs=1e-12)
    free = replace(
        channel,
        totals=tuple(3 * t for t in channel.row_totals),
        rows=[[3 * w for w in row] for row in channel.rows],
    )
    assert design_behind(free, joint, grouped.notion).smallest_group == (
        behind.smallest_group
    )


def test_groups_are_in_the_report(grouped, total, tmp_path):
    said = " ".join(record_of(grouped, tmp_path, curve=0)["holds_for"])
    assert "Every released row occurs at least 60 times" in said
    frame = pd.concat([people(), people().head(1).assign(a="alone")])
    single = md.design(
        frame, md.LIP(0.4), sensitive="secret", release=["a", "b"], smallest_group=1
    )
    said = " ".join(record_of(single, tmp_path, curve=0)["holds_for"])
    assert "1 row of the table belongs to a single record" in said


def test_a_public_report_says_that_its_rows_are_those_of_the_table(total, tmp_path):
    public = record_of(total, tmp_path, public=True)
    assert PUBLIC_ROWS in public["holds_for"]
    column = md.design(people(), md.LIP(0.4), sensitive="secret", useful="a")
    assert PUBLIC_ROWS not in record_of(column, tmp_path, public=True)["holds_for"]


def test_the_rule_stands_in_reports_and_on_the_first_screen(total, relative, tmp_path):
    """Prop. 6: a mean of P(s | y) over released rows is at most the largest of them."""
    md.report(total, tmp_path / "report.md", curve=0)
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    rule = "Of the people whom any rule picks by their released rows"
    assert page.count(rule) == 1
    shares = re.search(
        r"\(([0-9.]+) %\) are expected to .* of all people do \(([0-9.]+) %\)", page
    )
    assert shares is not None
    most, before = (float(share) / 100 for share in shares.groups())
    joint = total.channel.joint
    p_s = [sum(counts) / joint.total for counts in joint.counts]
    # The largest lift that was promised is e^0.4.
    assert before == pytest.approx(min(p_s, key=lambda p: abs(p - before)), abs=0.0006)
    assert before < most <= before * math.exp(0.4) + 0.002
    md.report(relative, tmp_path / "relative.md", curve=0)
    assert rule not in (tmp_path / "relative.md").read_text(encoding="utf-8")
