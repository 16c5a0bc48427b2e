"""The verdict on boxes is one on every stratum, against the outputs of all of them."""

from __future__ import annotations

import math

import pytest

import mechdesign as md
from mechdesign.auditing.columns import columns_on
from mechdesign.auditing.population_extremes import Population, achieved_of
from mechdesign.tables.confidence import set_of_record
from tests.mechdesign.report.test_box_section import designed


@pytest.fixture(scope="module")
def strata():
    return designed(("k",))[1].channel


@pytest.mark.parametrize("budget", [0.01, 0.3, 0.8, 3.0])
def test_the_verdict_is_that_of_the_worst_output_of_all_strata(strata, budget):
    verdict = md.audit(strata, notion=md.LIP(budget))
    used = {}
    for part in strata.parts:
        channel = part.channel
        population = Population(set_of_record(channel.record.confidence, channel.joint))
        given = strata.coder.given_texts(part.stratum)
        for y, column in enumerate(columns_on(channel, channel.joint)):
            achieved = achieved_of(population.extremes(column, y))
            label = strata.output_cells.index((*given, channel.outputs[y]))
            used[strata.outputs[label]] = max(achieved.eps_l, achieved.eps_u)
    assert verdict.satisfied is (max(used.values()) <= budget)
    assert used[verdict.worst.output] == max(used.values())
    assert max(verdict.achieved.eps_l, verdict.achieved.eps_u) == max(used.values())
    lift = abs(math.log(verdict.worst.lift))
    assert lift == pytest.approx(max(used.values()), abs=1e-9)
    assert verdict.records == sum(part.channel.joint.total for part in strata.parts)
    assert len(verdict.strata) == len(strata.parts)
    assert verdict.satisfied is all(part.satisfied for part in verdict.strata)


def test_only_a_verdict_on_counts_has_their_figures(strata):
    """Of a table there is no second one, and no group of values."""
    frame, _ = designed()
    design = md.design(frame, md.LIP(0.8), sensitive="secret", useful="a")
    on_table = md.audit(design.channel)
    assert on_table.on_table is None
    assert on_table.level is None
    assert on_table.strata == ()
    of_boxes = md.audit(strata).to_record()
    assert set(on_table.to_record()) < set(of_boxes)
    assert of_boxes["strata"] == 2
    assert of_boxes["confidence"] == 0.9
