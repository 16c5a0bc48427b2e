"""A total budget divided among the answers of groups of unlike sizes.

The outputs of all answers of one individual multiply (Farokhi 2019, Theorem 6), and may be
floor(2^total) together. `divided` takes three steps:

1. The largest error of an answer with K outputs is known without laying out any thresholds. Of a
   query with range R and sensitivity S it is min(R / K, S / (K - 1)) / 2 (`worst_errors`).
2. `outputs_program` chooses a number of outputs for each size of group, of least total error.
3. The thresholds follow, and are certified (`sizes.sized_quantizer`).

For example, somebody is in a group of 10 records and in one of 1,000, whose means are asked for,
and 8 outputs are allowed of both answers together. Equal shares are 2 outputs each, with the errors
0.05 and 0.0005 of the range. Of 1,000 records one individual moves the mean so little that 2
outputs are plenty. So the small group gets 4 of them, and the errors are 0.017 and 0.0005.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.nonstochastic.exact_sums import Floats
from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    MechanismFile,
    SizedQuantizer,
)
from mechdesign.nonstochastic.named_queries import build_query
from mechdesign.nonstochastic.noiseless import LARGEST_LEVELS
from mechdesign.nonstochastic.output_budgets import epsilon_for
from mechdesign.nonstochastic.outputs_program import largest_product, least_error
from mechdesign.nonstochastic.sizes import sized_quantizer

Integers = NDArray[np.int64]


def divided(
    plan: MechanismFile, groups: Groups, total: int, share: int, split: str
) -> tuple[MechanismFile, str]:
    """The mechanism with quantisers of least total error, and a notice of that error.

    Parameters
    ----------
    plan
        The mechanism without quantisers.
    groups
        The groups to answer, with their members.
    total
        Outputs of all answers of one individual together, floor(2^total_epsilon).
    share
        Outputs of each answer if all have the same number.
    split
        "error", or "lifted": then no answer has fewer outputs than by equal shares.
    """
    sizes, patterns = groups.patterns()
    error = _AnswerErrors.of(plan, groups, sizes)
    shares = [share] * len(sizes)
    # One cell, and the output that a value lies outside where it is disclosed.
    fewest = 1 + error.outside_outputs
    if split == "lifted":
        fewest = share
    outputs, bound = least_error(error, patterns, total, shares, fewest=fewest)
    sized: list[SizedQuantizer] = []
    for size, number in zip(sizes, outputs, strict=True):
        budget = replace(plan, epsilon=epsilon_for(number))
        sized.append(sized_quantizer(budget, size))
    least = error.total(outputs)
    notice = (
        f"the largest errors of all answers add up to {least:.6g}, "
        f"by equal shares to {error.total(shares):.6g}"
    )
    if least > bound:
        notice += f"; no division is proven to be below {bound:.6g}"
    mechanism = replace(
        plan,
        epsilon=epsilon_for(max(outputs)),
        provenance=plan.provenance | {"split": split},
        mechanisms=tuple(sized),
    )
    return mechanism, notice


def largest_answers(
    groups: Groups, sized: Mapping[int, SizedQuantizer]
) -> dict[int, int]:
    """The answers, by size of group, of the individual whose outputs have the largest product."""
    sizes, patterns = groups.patterns()
    outputs = [sized[size].certificate.outputs for size in sizes]
    row, _ = largest_product(patterns, outputs)
    answers = zip(sizes, patterns[row].tolist(), strict=True)
    return {size: times for size, times in answers if times}


@dataclass(frozen=True)
class _AnswerErrors:
    """The largest errors of the answers, by size of group and number of outputs.

    Parameters
    ----------
    weights : (sizes,) array
        The span of the query, times the groups of the size.
    ratios : (sizes,) integers
        Span over sensitivity of the query.
    outside_outputs
        1 where one output tells that a value lies outside, else 0.
    most
        The most cells that a quantiser may have.
    """

    weights: Floats
    ratios: Integers
    outside_outputs: int
    most: int

    @classmethod
    def of(
        cls, mechanism: MechanismFile, groups: Groups, sizes: Sequence[int]
    ) -> _AnswerErrors:
        """Those of the groups of these sizes, through a mechanism without quantisers."""
        ratios: list[int] = []
        spans: list[float] = []
        for size in sizes:
            query = build_query(mechanism.query, size, mechanism.domain)
            span = query.range[1] - query.range[0]
            spans.append(float(span))
            # A span is a whole number of sensitivities wherever all individuals are alike.
            ratios.append(span // query.sensitivity if span else 1)
        # In the order of `sizes`, which increase.
        groups_of_size = np.unique(groups.sizes, return_counts=True)[1]
        most = LARGEST_LEVELS
        if mechanism.query == "count":
            # An individual that counts as 0 or 1 has two answers (see `sizes.sized_quantizer`).
            most = 2
        return cls(
            weights=np.array(spans, dtype=np.float64) * groups_of_size,
            ratios=np.array(ratios),
            outside_outputs=int(mechanism.outside in DISCLOSED_OUTSIDE),
            most=most,
        )

    def __call__(self, size: Any, outputs: Any) -> Floats:
        """The error of all groups of a size (its place, from 0) with so many outputs each."""
        # The output of values that lie outside is no cell.
        cells = np.minimum(outputs - self.outside_outputs, self.most)
        return self.weights[size] * worst_errors(cells, self.ratios[size])

    def total(self, outputs: Sequence[int]) -> float:
        """The error of all groups, with one number of outputs for each size."""
        every_size = np.arange(len(outputs))
        return float(self(every_size, np.array(outputs)).sum())


def worst_errors(outputs: Integers, ratios: Any) -> Floats:
    """The largest error, as a share of the span, that the widest layout leaves.

    Parameters
    ----------
    outputs
        Outputs allowed on a fibre, at least 1.
    ratios
        Span over sensitivity of the queries.
    """
    cuts = np.maximum(outputs - 1, 1)
    # `noiseless.lay_out`: either K equal cells, or cells of width S / (K - 1).
    cells = np.minimum(1 / outputs, 1 / np.minimum(ratios * cuts, LARGEST_LEVELS))
    return np.where(outputs > 1, cells, 1.0) / 2
