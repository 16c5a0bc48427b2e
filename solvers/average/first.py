"""The first columns of a search for averages, from which its master program begins.

P(x) itself comes first: as the only output it leaks nothing and tells nothing. The unit vectors
follow: they release X as it is, with all information and all leakage. Mixtures of two symbols leak
little for what they keep, so they are a good start in between: the symbols are mixed so that their
lifts come nearest to 1. For example, the lifts (1.5, 0.5) and (0.5, 1.5) mixed half and half are
(1, 1), and leak nothing.
"""

from __future__ import annotations

import time

import numpy as np

from solvers.average.problem import AverageProblem
from solvers.points import Points

MOST_FIRST_PAIRS = 6000
"""Pairs of symbols with which the master begins at most, chosen at random where there are more."""

LEAST_SHARE = 1e-6
"""Pairs in which one symbol has less are left to the unit vectors."""

INFORMATIVE_GAP = 1e-3
"""Gap (nats) of the channel that keeps most in a polytope: it is only a start."""

INFORMATIVE_SHARE = 0.3
"""Share of the time that its search may take."""


def first_columns(problem: AverageProblem, start: Points | None, end: float) -> Points:
    """P(x), unit vectors, mixtures of two symbols, and what the caller knows.

    All but P(x) are left out where they lie outside the inner polytope. With one, the outputs of
    the channel that keeps most in it come last; their search takes a share of the time until `end`,
    on the clock of `time.process_time`.
    """
    units = Points.units(np.arange(len(problem.point)), len(problem.point))
    # This order counts: the first channels of both goals (`goals`) rely on it.
    parts = [Points.from_dense(problem.point), problem.members(units)]
    parts.append(problem.members(_quiet_pairs(problem)))
    if start is not None:
        parts.append(problem.members(start))
    if problem.inner is not None:
        parts.append(_informative(problem, end))
    return Points.concatenate(parts)


def _quiet_pairs(problem: AverageProblem) -> Points:
    """Pairs of symbols, mixed so that their lifts come nearest to 1 in mean square.

    With lifts a and b = a + d of the two, the share c of the second minimises sum_s P(s) (a_s + c
    d_s - 1)^2: c = sum P (1 - a) d / sum P d^2.
    """
    first, second = np.triu_indices(len(problem.point), 1)
    if len(first) > MOST_FIRST_PAIRS:
        # A fixed seed: equal problems begin with equal columns.
        random = np.random.default_rng(0)
        chosen = random.choice(len(first), MOST_FIRST_PAIRS, replace=False)
        first = first[chosen]
        second = second[chosen]
    secrets = problem.secrets[:, None]
    lifts = problem.matrix[:, first]
    differences = problem.matrix[:, second] - lifts
    numerator = (secrets * (1.0 - lifts) * differences).sum(axis=0)
    denominator = (secrets * differences**2).sum(axis=0)
    # Symbols with the same lifts have no difference: 0 / 0 is NaN, and no proper share below.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = numerator / denominator
    proper = (share > LEAST_SHARE) & (share < 1.0 - LEAST_SHARE)
    mixed = share[proper]
    indices = np.column_stack([first[proper], second[proper]]).ravel()
    data = np.column_stack([1.0 - mixed, mixed]).ravel()
    sizes = np.full(len(mixed), 2)
    return Points.of_sizes(sizes, indices.astype(np.int32), data, len(problem.point))


def _informative(problem: AverageProblem, end: float) -> Points:
    """Outputs of the channel that keeps most under the polytope alone."""
    # Imported here, because only these columns need the envelope, which loads vertex enumeration.
    from solvers.envelope.polytope import lower_envelope

    assert problem.inner is not None
    envelope = lower_envelope(
        problem.inner,
        problem.point,
        gap=INFORMATIVE_GAP,
        time_limit=INFORMATIVE_SHARE * (end - time.process_time()),
    )
    return envelope.points
