"""Tables, notions and independent answers for the tests of designs."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mechdesign.channel.channel import DENOMINATOR
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.heuristics import heuristic
from mechdesign.mechanisms.merged_sets import Risk
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.search_options import HeuristicOptions
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift, Notion
from mechdesign.tables.joint import Joint
from tests.oracles import lifts as exact_oracle
from tests.oracles.float_designs import optimal

METHODS = ("auto", "vertices", "columns")

subset_merging = partial(design, mechanism="subset-merging")
complete_merging = partial(design, mechanism="complete-merging")


def as_published(joint: Joint, notion: Notion, mechanism: str) -> Design:
    """A heuristic without its repair."""
    return heuristic(joint, notion, mechanism, HeuristicOptions(as_published=True))


def merged_by_risk(joint: Joint, notion: Notion, mechanism: str, risk: Risk) -> Design:
    """A heuristic that orders sets by a risk of its own."""
    return heuristic(joint, notion, mechanism, HeuristicOptions(risk=risk))


def uniform_table(n: int, m: int = 5, seed: int = 0) -> Joint:
    """The random tables of the lift paper: uniform entries, normalised; m sensitive and n useful symbols."""
    return Joint.from_probabilities(normalised(np.random.default_rng(seed), n, m))


def dirichlet_table(n: int, m: int, concentration: float, seed: int = 0) -> Joint:
    """Rows of Dirichlet draws, alike in sum: sparse and concentrated where `concentration` is below 1."""
    rows = np.random.default_rng(seed).dirichlet(np.full(n, concentration), m)
    return Joint.from_probabilities(rows / rows.sum())


def normalised(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    table = rng.random((m, n))
    return table / table.sum()


def notions_of(epsilon: float) -> list[Notion]:
    """Every lift notion, symmetric, lopsided and one-sided."""
    return [
        ALIP.from_epsilon(epsilon),
        ALIP.from_epsilon(epsilon, 0.35),
        ALIP.from_epsilon(epsilon, 0.65),
        ALIP(epsilon, math.inf),
        ALIP(math.inf, epsilon),
        LIP(epsilon),
        LDP(epsilon),
        MaxLift(epsilon),
        MinLift(epsilon),
    ]


def random_notion(
    rng: np.random.Generator, least: float = 0.01, most: float = 20.0
) -> Notion:
    """Any lift notion at a budget between `least` and `most`, evenly on the logarithmic scale."""
    choices = notions_of(float(np.exp(rng.uniform(math.log(least), math.log(most)))))
    return choices[rng.integers(len(choices))]


def independent_nmi(joint: Joint, notion: Notion) -> float:
    """NMI of the optimum by float cddlib and scipy's linprog over the set of the stated budget."""
    found = optimal(joint, notion.limits, margin=0.0)
    assert found is not None, "cddlib gave up: choose another table"
    weights, points = found
    uncertainty = float(weights @ _entropies(points))
    return 1.0 - uncertainty / float(_entropies(joint.p_x[None, :])[0])


def _entropies(points: np.ndarray) -> np.ndarray:
    return -np.where(
        points > 0.0, points * np.log(np.where(points > 0.0, points, 1.0)), 0.0
    ).sum(axis=1)


def is_private(design: Design, joint: Joint) -> bool:
    """Whether the integers of the channel keep the notion of the design, by the oracle in fractions."""
    rows = [list(row) for row in design.channel.rows]
    assert design.channel.denominator == DENOMINATOR
    assert all(sum(row) == DENOMINATOR for row in rows)
    return exact_oracle.satisfies(joint.counts, rows, design.notion.limits)


def lost_to_exactness(design: Design) -> float:
    """NMI of the float design that was rounded, minus that of the integers."""
    if design.envelope is None:  # published as it is
        return 0.0
    return (1.0 - design.envelope.value / design.entropy) - design.nmi
