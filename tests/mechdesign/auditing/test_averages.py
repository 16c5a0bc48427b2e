"""Average leakages against measures in floating point, and verdicts on budgets next to them."""

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.auditing.averages import average_leakage, average_verdicts
from mechdesign.channel.record import AverageBudget
from tests.cases.documents import rewrite

COUNTS = [[8, 3, 1, 5], [2, 6, 4, 3], [1, 1, 9, 2]]

MEASURES = ("mi", "tv", "chi2", "maximal-leakage")


def plain(joint, channel, measure):
    """The definition of each average, in floating point."""
    p = joint.p @ channel.matrix
    mass = p.sum(axis=0)
    lifts = p / (joint.p_s[:, None] * mass)
    if measure == "mi":
        return float((p * np.log(lifts)).sum())
    if measure == "tv":
        return float((joint.p_s[:, None] * mass * abs(lifts - 1.0)).sum() / 2.0)
    if measure == "chi2":
        return float((joint.p_s[:, None] * mass * (lifts - 1.0) ** 2).sum())
    return math.log((p / joint.p_s[:, None]).max(axis=0).sum())


@pytest.fixture
def design():
    joint = md.Joint.from_counts(np.array(COUNTS))
    return md.design(joint, average={"mi": "25%"})


@pytest.mark.parametrize("measure", MEASURES)
def test_averages_are_those_of_their_definitions(design, measure):
    joint = design.channel.joint
    leakage = average_leakage(design.channel, joint, measure)
    assert leakage == pytest.approx(plain(joint, design.channel, measure), rel=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_budget_is_kept_from_the_leakage_on(design, measure):
    joint = design.channel.joint
    leakage = average_leakage(design.channel, joint, measure)
    for budget, kept in ((leakage, True), (math.nextafter(leakage, 0.0), False)):
        asked = [AverageBudget(measure=measure, budget=budget)]
        assert average_verdicts(design.channel, joint, asked)[0].kept is kept


def test_an_audit_fails_on_a_smaller_budget_and_on_a_smaller_achieved_leakage(
    design, tmp_path
):
    path = tmp_path / "channel.json"
    design.channel.save(path)
    honest = md.load(path)
    notion = honest.record.promise(honest.sensitive)
    assert md.audit(honest, honest.joint, notion).satisfied
    leakage = honest.record.averages[0].achieved
    for key in ("budget", "achieved"):

        def tamper(document, key=key):
            document["averages"][0][key] = 0.99 * leakage

        rewrite(path, tamper, tmp_path / "tampered.json")
        channel = md.load(tmp_path / "tampered.json")
        verdict = md.audit(channel, channel.joint, notion)
        assert not verdict.satisfied
        assert verdict.averages[0].leakage == leakage


def test_a_public_file_is_refused_and_nothing_is_written(design, tmp_path):
    with pytest.raises(md.InputError, match="no public file or report"):
        design.channel.save(tmp_path / "c.json", public=True)
    assert not list(tmp_path.iterdir())


def test_the_file_keeps_the_average(design, tmp_path):
    design.channel.save(tmp_path / "c.json")
    loaded = md.Channel.load(tmp_path / "c.json")
    assert loaded.record.averages == design.channel.record.averages


def test_protected_columns_have_no_average(design):
    joint = md.Joint.from_counts(
        np.array([*COUNTS, [2, 2, 2, 2]]),
        sensitive_labels=[("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")],
        sensitive=("one", "two"),
    ).protecting_each()
    asked = [AverageBudget(measure="mi", budget=1.0)]
    with pytest.raises(md.InputError, match="leave protect_each out"):
        average_verdicts(design.channel, joint, asked)
