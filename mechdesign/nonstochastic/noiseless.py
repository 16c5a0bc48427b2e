"""Noiseless privacy (Farokhi 2019): exact certificates, and quantisers for a budget.

A mechanism is epsilon-noiselessly private if its output takes at most 2^epsilon values as the data
of any one individual vary, for all data of the others (Definitions 1 and 2). With x_-i the data of
all individuals but i:

    |[[Y | x_-i]]| <= 2^epsilon for every i and every x_-i        (eq. (16))

A certificate is the largest of these numbers: counted, attained by a witness where it is exact, and
never taken from a theorem that only bounds it. The outputs of several mechanisms on one fibre are
at most the product of their numbers (Theorem 6).

Quantisers are designed from two numbers, the query's range R and its sensitivity S: every fibre
lies in an interval of length at most S, which meets at most min(q, ceil(q S / R) + 1) of q equal
cells (Theorem 8, corrected: docs/explanation/corrections.md, 'Noiseless privacy').

For example, the sum of two values in [0, 1] has R = 2 and S = 1. Four equal cells have width 1/2,
and an interval of length 1 meets at most ceil(4 / 2) + 1 = 3 of them: log2(3) bits.
`design_quantizer` lays the cells out by such a theorem (`lay_out`), and `certify` counts them again
on the query itself (`fibres`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from mechdesign.core.balls import log2_of_powers_above
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.fibres import most_outputs
from mechdesign.nonstochastic.output_budgets import (
    Allowance,
    allowance,
    epsilon_for,
)
from mechdesign.nonstochastic.quantizers import (
    EvenThresholds,
    Quantizer,
    uniform_quantizer,
)
from mechdesign.nonstochastic.queries import LinearQuery, Query, check_whole


@dataclass(frozen=True)
class FibreCertificate:
    """The most outputs that one individual can bring about.

    Parameters
    ----------
    outputs
        Proven: no fibre has more.
    attained
        A fibre has this many; equal to `outputs` if the certificate is exact.
    witness
        A fibre with `attained` outputs, in words.
    """

    outputs: int
    attained: int
    witness: str

    @property
    def exact(self) -> bool:
        """Whether `outputs` is the maximum, not only a bound on it."""
        return self.outputs == self.attained

    @property
    def epsilon(self) -> float:
        """The smallest budget (bits, a double rounded upwards) that the mechanism keeps."""
        return epsilon_for(self.outputs)


def certify(query: Query, quantizer: Quantizer) -> FibreCertificate:
    """Count the most outputs that ``quantizer`` of ``query`` gives while one individual varies.

    Exact for linear queries (sums, means, counts, the identity), order statistics and medians,
    unless there are too many sums to list: then a proven bound.

    Raises
    ------
    InputError
        If the answers can leave the range of the quantiser.
    """
    lo, hi = query.range
    if lo < quantizer.lo or hi > quantizer.hi:
        raise InputError(
            f"the answers range over {float(lo):g} to {float(hi):g}, beyond the quantiser's "
            f"{float(quantizer.lo):g} to {float(quantizer.hi):g}; widen it"
        )
    if isinstance(query, LinearQuery):
        linear = query
        position = ""
    else:
        linear, position = query.largest_fibre
    count = most_outputs(linear, quantizer.thresholds)
    weight = linear.blocks[count.block].weight
    individual = f"an individual of weight {weight}, the others contribute {count.base}"
    if isinstance(query, LinearQuery):
        witness = individual
    elif query.middle > 1:
        witness = f"{position}; {individual}"
    else:
        # The answer is the individual's own value, so the places of the others are the witness.
        witness = position
    return FibreCertificate(count.outputs, count.attained, witness)


Layout = Literal["uniform", "widest", "levels"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

LARGEST_LEVELS = 100_000
"""Most cells of a design: no release needs more than five digits, and thresholds are kept one by
one."""


@dataclass(frozen=True)
class QuantizerDesign:
    """A quantiser for a query, with its proof."""

    quantizer: Quantizer
    allowance: Allowance
    certificate: FibreCertificate


def uniform_levels(outputs: int, sensitivity: Fraction, span: Fraction) -> int:
    """The largest q with ``min(q, ceil(q S / R) + 1) <= outputs`` (1 for a constant query)."""
    if span == 0 or sensitivity == 0:
        return 1
    # q <= K fits whatever the fibres are; else ceil(q S / R) <= K - 1, so q <= (K - 1) R / S.
    return max(outputs, math.floor((outputs - 1) * span / sensitivity))


def lay_out(
    lo: Fraction, hi: Fraction, sensitivity: Fraction, outputs: int, layout: Layout
) -> Quantizer:
    """Thresholds such that an interval of length `sensitivity` meets at most `outputs` cells.

    Parameters
    ----------
    lo, hi
        The range of the answers.
    layout
        - "uniform": the most equal cells (`uniform_levels`).
        - "levels": the most cells of any widths.
        - "widest": the smallest widest cell, so the smallest worst-case error: `outputs` equal
          cells, or cells of width S / (K - 1), of which an interval of length S meets at most K.
    """
    if layout not in LAYOUTS:
        raise InputError(f"layout ({layout!r}) must be one of {', '.join(LAYOUTS)}")
    span = hi - lo
    if outputs == 1 or span == 0 or sensitivity == 0:
        return Quantizer(lo, hi)
    outputs = min(outputs, LARGEST_LEVELS)
    # A larger sensitivity is safe and makes fewer cells: all layouts stay within LARGEST_LEVELS of
    # them.
    sensitivity = max(sensitivity, span * (outputs - 1) / LARGEST_LEVELS)
    if layout == "uniform":
        return uniform_quantizer(lo, hi, uniform_levels(outputs, sensitivity, span))
    if layout == "levels":
        return _most(lo, hi, sensitivity, outputs)
    # Cells of width S / (K - 1) would be wider than K equal ones.
    if span / outputs < sensitivity / (outputs - 1):
        return uniform_quantizer(lo, hi, outputs)
    # As many thresholds at this spacing as fit inside (lo, hi), the end cells equal.
    spacing = sensitivity / (outputs - 1)
    count = math.ceil(span / spacing)
    first = lo + (span - (count - 1) * spacing) / 2
    return Quantizer(lo, hi, EvenThresholds(first, spacing, count))


def _most(lo: Fraction, hi: Fraction, sensitivity: Fraction, outputs: int) -> Quantizer:
    """(K - 1) ceil(R / S) thresholds: groups of K - 1, each group S above the one before.

    No quantiser has more when the fibres are all intervals of length S: the thresholds j and
    j + K - 1 cannot be closer than S, so the first of group ceil(R / S) + 1 would be above hi.
    """
    groups = math.ceil((hi - lo) / sensitivity)
    # All groups lie inside the range if the first one fits into what the others leave of it. There
    # its thresholds are in the middle of K - 1 equal parts.
    room = (hi - lo) - (groups - 1) * sensitivity
    within = [room * (2 * b + 1) / (2 * (outputs - 1)) for b in range(outputs - 1)]
    cuts: list[Fraction] = []
    for group in range(groups):
        start = lo + group * sensitivity
        cuts += [start + offset for offset in within]
    return Quantizer(lo, hi, tuple(cuts))


def design_quantizer(
    query: Query, epsilon: object, *, layout: Layout = "widest"
) -> QuantizerDesign:
    """A quantiser that makes the query epsilon-noiselessly private, counted exactly afterwards.

    Parameters
    ----------
    query
        Any query; only its range and its sensitivity are used for the design.
    epsilon
        Budget in bits; floor(2^epsilon) outputs are allowed.
    layout
        See `lay_out`.

    Raises
    ------
    InputError
        If the budget is not usable.
    SolverFailure
        If the count exceeds the budget after all.
    """
    allowed = allowance(epsilon)
    lo, hi = query.range
    # An individual cannot move the answer farther than its whole range.
    sensitivity = min(query.sensitivity, hi - lo)
    quantizer = lay_out(lo, hi, sensitivity, allowed.outputs, layout)
    certificate = certify(query, quantizer)
    # The layouts keep the budget by theorem; the exact count has the last word all the same.
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the quantiser gives up to {certificate.outputs} outputs where {allowed.outputs} are "
            "allowed; please report it"
        )
    return QuantizerDesign(quantizer, allowed, certificate)


def composed_epsilon(releases: Iterable[tuple[int, int]]) -> float:
    """Bits of several releases together, rounded upwards (Theorem 6).

    It is log2 of the product of their outputs. Post-processing adds nothing (Theorem 7).

    Parameters
    ----------
    releases
        The most outputs on a fibre of each release, and how often it was made.

    Raises
    ------
    InputError
        If one of these numbers is not an integer of at least 1.
    """
    pairs: list[tuple[int, int]] = []
    for outputs, times in releases:
        pairs.append((check_whole("outputs", outputs), check_whole("times", times)))
        # Refuses more outputs than any budget allows.
        epsilon_for(outputs)
    return log2_of_powers_above(pairs)
