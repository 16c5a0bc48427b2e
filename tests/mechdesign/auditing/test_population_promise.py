"""What a plain channel promises of the population, what is to blame and what merging gives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import mechdesign as md
from mechdesign import InputError, Joint, design
from mechdesign.auditing import population_extremes
from mechdesign.auditing import population_promise as population_promise_module
from mechdesign.auditing.population import audit_population, audit_with_confidence
from mechdesign.auditing.population_extremes import OutOfTime
from mechdesign.auditing.population_promise import population_promise
from mechdesign.channel.channel import Channel
from mechdesign.notions import ALIP, LDP, LIP, Chi2Lift
from mechdesign.report.first_screen import _population_text
from mechdesign.tables import confidence as confidence_module
from mechdesign.tables.confidence import confidence_set

TABLE = [[2000, 1500, 2, 900, 700], [1500, 2100, 9, 800, 600], [900, 800, 1, 700, 900]]
JOINT = Joint.from_counts(TABLE, useful_labels=["a", "b", "rare", "c", "d"])
PUBLISHED = design(JOINT, ALIP(3.0, 3.0)).channel


def published_as(groups: tuple[tuple[str, ...], ...]) -> Channel:
    """The channel with each group of outputs published as one."""
    names = {label: " + ".join(group) for group in groups for label in group}
    labels = [names.get(label, label) for label in PUBLISHED.outputs]
    outputs = tuple(dict.fromkeys(labels))
    rows = [
        [
            sum(v for v, own in zip(row, labels, strict=True) if own == y)
            for y in outputs
        ]
        for row in PUBLISHED.rows
    ]
    return Channel(
        PUBLISHED.useful, outputs, rows, PUBLISHED.denominator, PUBLISHED.joint
    )


def test_the_rare_symbol_is_blamed_and_merging_it_mends() -> None:
    promise = population_promise(PUBLISHED, JOINT, ALIP(3.0, 3.0))
    assert promise.level == 0.95
    assert (
        promise.achieved
        == audit_population(PUBLISHED, JOINT, LDP(1.0), confidence_set(JOINT)).achieved
    )
    assert promise.largest.output == promise.smallest.output == "rare"
    assert promise.largest.symbols == ("rare",)
    assert promise.largest.records == (
        JOINT.counts[JOINT.sensitive.names.index(promise.largest.sensitive)][2],
    )
    assert math.log(promise.largest.lift) == pytest.approx(
        promise.achieved.eps_u, rel=1e-12
    )
    assert -math.log(promise.smallest.lift) == pytest.approx(
        promise.achieved.eps_l, rel=1e-12
    )
    merged = promise.merged
    assert merged is not None
    assert "rare" in merged.groups[0]
    assert merged.achieved.eps_u < 0.6 * promise.achieved.eps_u
    assert 0.0 < merged.lost < 0.01
    after = population_promise(published_as(merged.groups), JOINT, ALIP(3.0, 3.0))
    assert after.achieved == merged.achieved


def test_lost_information_is_that_of_the_merged_channel() -> None:
    from mechdesign.auditing.measures import utility

    merged = population_promise(PUBLISHED, JOINT).merged
    assert merged is not None
    rest = utility(published_as(merged.groups), JOINT).nmi
    assert merged.lost == pytest.approx(utility(PUBLISHED, JOINT).nmi - rest, abs=1e-12)


def test_two_outputs_are_not_merged_into_nothing() -> None:
    joint = Joint.from_counts([[30, 20], [20, 30]])
    promise = population_promise(design(joint, LDP(0.3)).channel, joint, LDP(0.3))
    assert promise.merged is None
    assert promise.achieved.eps_ldp > 0.3


def test_the_promise_tightens_with_records() -> None:
    """A hundred times the records: closer to the table's own budgets, never inside them."""
    many = Joint.from_counts(
        (100 * np.array(TABLE)).tolist(), useful_labels=["a", "b", "rare", "c", "d"]
    )
    few_promise = population_promise(PUBLISHED, JOINT)
    many_promise = population_promise(PUBLISHED, many)
    assert many_promise.achieved.eps_u < few_promise.achieved.eps_u
    assert many_promise.achieved.eps_ldp > 0.0


def test_averages_are_looked_at_as_lifts() -> None:
    channel = design(JOINT, Chi2Lift(1.0, 1.0), mechanism="subset-merging").channel
    assert population_promise(channel, JOINT, Chi2Lift(1.0, 1.0)).achieved.eps_u > 0.0


def test_probabilities_have_no_population() -> None:
    joint = Joint.from_probabilities([[0.25, 0.25], [0.25, 0.25]])
    with pytest.raises(InputError, match="confidence needs counts of records"):
        population_promise(design(joint, LDP(1.0)).channel, joint)


def test_nothing_is_merged_for_a_design_with_confidence_or_with_too_many_outputs(
    monkeypatch,
):
    """What is promised does not depend on it; only the remedy is left out."""
    rows = np.array([[60, 40, 3, 2], [40, 60, 1, 4]])
    joint = Joint.from_counts(rows)
    confident = design(joint, LIP(0.5), confidence=0.95)
    assert confident.population is not None
    assert confident.population.merged is None
    channel = design(joint, LIP(0.5)).channel
    tried = population_promise(channel, joint)
    assert tried.merged is not None
    monkeypatch.setattr("mechdesign.auditing.population_promise.MOST_TRIED", 0)
    untried = population_promise(channel, joint)
    assert untried.merged is None
    assert untried.achieved == tried.achieved


class Clock:
    """Processor time that passes by a second whenever somebody looks."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in (population_extremes, population_promise_module):
            monkeypatch.setattr(module.time, "process_time", self.look)

    def look(self):
        self.now += 1.0
        return self.now


def limited_design():
    table = md.Joint.from_counts(
        [[9, 4, 3, 7, 5], [2, 8, 5, 3, 6], [5, 5, 9, 1, 4]], useful="u", sensitive="s"
    )
    return md.design(table, md.ALIP(0.5, 0.5), time_limit=60)


def with_time(design, seconds):
    """The design with so many seconds for the figure, of which nothing is known yet."""
    population_extremes.population_of.cache_clear()
    return replace(design, time_left=seconds)


def test_the_figure_for_the_population_ends_with_its_time(monkeypatch):
    design = limited_design()
    assert 0.25 * 60 <= design.time_left <= 60
    whole = replace(design).population
    assert whole is not None
    outputs = len(design.channel.outputs)
    clock = Clock(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("mechdesign.auditing.population_promise.MOST_TRIED", 0)
        assert with_time(design, 60.0).population is not None
    looks = clock.now
    # First the remedy is left out, then the figure itself.
    promise = with_time(design, looks - 0.5).population
    assert promise.achieved == whole.achieved
    assert promise.merged is None
    late = with_time(design, outputs - 1.5)
    assert late.population is None
    assert late.has_population
    population_extremes.population_of.cache_clear()
    with pytest.raises(OutOfTime):
        population_promise(design.channel, design.channel.joint, seconds=1.0)
    assert replace(design, time_left=None).population.achieved == whole.achieved


def test_the_first_screen_says_that_the_figure_is_missing():
    design = with_time(limited_design(), 0.0)
    text = " ".join(_population_text(design).split())
    assert (
        text == "Population: not computed within the time limit; `audit` computes it."
    )


def test_without_a_limit_there_is_none():
    table = md.Joint.from_counts([[9, 4, 3], [2, 8, 5]], useful="u", sensitive="s")
    design = md.design(table, md.ALIP(0.5, 0.5))
    assert design.time_left is None
    assert design.population is not None


def test_the_verdict_and_the_figures_after_it_screen_the_outputs_once(monkeypatch):
    design = md.design(
        md.Joint.from_counts([[90, 40, 3], [20, 80, 5]], useful="u", sensitive="s"),
        md.LIP(1.0),
        confidence=0.95,
    )
    screened = []
    whole = population_extremes.Screen.largest_lifts

    def counted(screen, *column):
        screened.append(column)
        return whole(screen, *column)

    monkeypatch.setattr(population_extremes.Screen, "largest_lifts", counted)
    population_extremes.population_of.cache_clear()
    assert audit_with_confidence(
        design.channel, design.channel.joint, design.notion
    ).satisfied
    once = len(screened)
    assert once == len(design.channel.outputs)
    assert design.population is not None
    assert len(screened) == once


def test_no_confidence_set_is_begun_that_takes_too_long(monkeypatch):
    """It cannot be stopped, so its time is foreseen."""
    table = Joint.from_counts([[40, 30, 20], [25, 50, 15]])
    channel = design(table, LIP(1.0)).channel
    begun = []
    monkeypatch.setattr(
        population_promise_module,
        "confidence_set",
        lambda *given: begun.append(1) or confidence_set(*given),
    )
    population_promise(channel, table, seconds=60.0)
    assert begun == [1]
    monkeypatch.setattr(confidence_module, "END_TIME", 1e3)
    with pytest.raises(OutOfTime, match="confidence set takes longer"):
        population_promise(channel, table, seconds=60.0)
    assert begun == [1]
    # Without a limit it is computed, however long that takes.
    population_promise(channel, table)
    assert begun == [1, 1]
