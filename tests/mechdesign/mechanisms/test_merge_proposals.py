"""What merging would keep where a promise for the population keeps little, and what it costs."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms.box_design import (
    NO_PROPOSALS,
    design_boxes,
    level_for_all,
    level_of_all,
    merge_proposals,
)
from mechdesign.mechanisms.box_request import BoxRequest
from mechdesign.report.proposals import proposal_lines
from mechdesign.tables.records import Records

SYMBOLS = [f"x{k}" for k in range(8)]

AMPLE = 600.0
"""Seconds that no search of this page comes near to: what is found must not depend on the machine."""


def shares(rare=0.3):
    """P(s, x) of eight alike symbols; the third secret has the share `rare`."""
    generator = np.random.default_rng(8)
    rows = generator.dirichlet(np.full(len(SYMBOLS), 8.0), size=3)
    return np.array([1.0 - 0.3 - rare, 0.3, rare])[:, None] * rows


def sampled(population, records, seed):
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(records, population.ravel())
    return md.Joint.from_counts(
        counts.reshape(population.shape),
        sensitive_labels=["a", "b", "c"],
        useful_labels=SYMBOLS,
        sensitive="s",
        useful="x",
    )


def confident(joint, **options):
    settings = {"confidence": 0.95, "time_limit": AMPLE, "gap": 0.01, **options}
    return md.design(joint, md.LIP(0.5), **settings)


def proposed(design, seconds=AMPLE):
    end = time.process_time() + seconds
    return merge_proposals(design, end, gap=0.01, slice_seed=1)


def test_proposals_keep_more_and_name_what_they_merge():
    joint = sampled(shares(), 600, 1)
    design = confident(joint, gap=0.05)
    proposals = proposed(design)
    assert proposals.tried == 2
    proposal = proposals.shown[0]
    assert proposal.options == "--merge-rare auto"
    assert proposal.nmi > design.nmi + 0.1
    for symbols in proposal.merged:
        assert len(symbols) > 1
        assert set(symbols) <= set(SYMBOLS)
    text = " ".join(proposal_lines(proposals, design.nmi, 0.95))
    assert "--merge-rare auto keeps about" in text
    assert "85 %, or 95 % if each of them has 98.34 %" in " ".join(text.split())


def test_rare_values_are_proposed_to_be_promised_together():
    joint = sampled(shares(rare=0.02), 1500, 2)
    design = confident(joint, gap=0.05)
    proposals = proposed(design)
    # Merging symbols alone gains nothing and is not shown; a reader has chosen against it, too.
    assert proposals.tried == 2
    (rare,) = proposals.shown
    assert "--rare" in rare.options
    assert rare.nmi > design.nmi + 0.3
    assert "c" in rare.together
    line = " ".join(" ".join(proposal_lines(proposals, design.nmi, 0.95)).split())
    assert "promised together, as one value" in line
    assert "among the 3 promises that were tried has 85 %, or 95 % if each" in line


def test_nothing_is_proposed_without_time_or_need_or_where_it_is_not_built():
    joint = sampled(shares(), 600, 1)
    design = confident(joint, gap=0.05)
    assert proposed(design, seconds=0.0).shown == ()
    assert proposed(md.design(joint, md.LIP(0.5))) == NO_PROPOSALS
    assert proposed(confident(joint, unseen=2, gap=0.05)) == NO_PROPOSALS
    enough = confident(sampled(shares(), 2_000_000, 1))
    assert enough.nmi > 0.7
    assert proposed(enough) == NO_PROPOSALS
    assert proposal_lines(NO_PROPOSALS, 0.1, 0.95) == []


def test_ctrl_c_ends_the_advice_with_the_search():
    """A command went on for 25 seconds with the needed records and with proposals."""

    def interrupt(_):
        raise KeyboardInterrupt

    joint = sampled(shares(), 600, 1)
    design = md.design(joint, md.LIP(0.1), confidence=0.95, progress=interrupt)
    assert design.nmi < 0.05
    assert design.was_interrupted
    assert design.messages == ("the search ended early (interrupted)",)
    assert proposed(design) == NO_PROPOSALS


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("promises", [1, 2, 3])
def test_levels_for_a_choice_among_promises_add_up(level, promises):
    each = level_for_all(level, promises)
    assert promises * (1 - Fraction(repr(each))) <= 1 - Fraction(repr(level))
    assert each - (1 - (1 - level) / promises) < 1e-4 + 1e-12
    assert level_of_all(level, promises) == pytest.approx(
        max(0.0, 1 - promises * (1 - level))
    )


def worst_log_lift(laws, population):
    """The largest absolute log-lift of (x, outputs) laws on a population."""
    joint = population @ laws
    lifts = joint / np.outer(joint.sum(axis=1), joint.sum(axis=0))
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(lifts)).max())


def boxed_laws(channel):
    """(x, outputs) laws of a channel for boxes of one column."""
    outputs = [label for (label,) in channel.output_cells]
    laws = np.zeros((len(SYMBOLS), len(outputs)))
    for x, symbol in enumerate(SYMBOLS):
        for (label,), share in channel.distribution({"x": symbol}).items():
            laws[x, outputs.index(label)] = float(share)
    return laws


# 2 of 3 or more, and 8 of 10 or more, have a probability of 0.93 even at exactly 90 %.
@pytest.mark.parametrize(
    ("draws", "misses"), [(3, 1), pytest.param(10, 2, marks=pytest.mark.slow)]
)
def test_the_worse_of_two_promises_at_the_shared_level_still_holds(draws, misses):
    """Proposition 7: even the choice that knows the truth and takes the worse channel."""
    population = shares()
    level = level_for_all(0.9, 2)
    kept = 0
    for seed in range(draws):
        joint = sampled(population, 1500, seed)
        plain = confident(joint, confidence=level, gap=0.05)
        records = Records.from_joint(joint, [("x",)])
        request = BoxRequest(
            notion=md.LIP(0.5),
            level=level,
            cells=6,
            gap=0.05,
            time_limit=AMPLE,
            seed=seed,
        )
        merged = design_boxes(records, request)
        order = [plain.channel.useful.names.index(x) for x in SYMBOLS]
        worst = max(
            worst_log_lift(plain.channel.matrix[order], population),
            worst_log_lift(boxed_laws(merged.channel), population),
        )
        kept += worst <= 0.5
    assert kept >= draws - misses
