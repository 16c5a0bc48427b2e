"""Quantisers for a budget from two numbers: the query's range R and its sensitivity S.

Every fibre lies in an interval of length at most S, so these designs hold for every query. Farokhi
2020, Theorem 8, allows q <= 2^epsilon R / S equal cells; that is false, because an interval of
length S can straddle one cell more (theory.md, section 9). An interval of length S meets at most
min(q, ceil(q S / R) + 1) of q equal cells, and this is attained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.levels import Allowance, allowance
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.quantizers import EvenThresholds, Quantizer, uniform_quantizer
from mechdesign.nonstochastic.queries import Query

Layout = Literal["uniform", "widest", "levels"]
LAYOUTS: tuple[Layout, ...] = ("uniform", "widest", "levels")

LARGEST_LEVELS = 100_000
"""Cells of a design: finer than five digits, no release needs to be, and thresholds are kept one by one."""


@dataclass(frozen=True)
class QuantizerDesign:
    """A quantiser for a query, with its proof."""

    query: Query
    quantizer: Quantizer
    allowance: Allowance
    certificate: FibreCertificate
    layout: str


def uniform_levels(outputs: int, sensitivity: Fraction, span: Fraction) -> int:
    """The largest q with ``min(q, ceil(q S / R) + 1) <= outputs`` (1 for a constant query)."""
    if span == 0 or sensitivity == 0:
        return 1
    return max(outputs, math.floor((outputs - 1) * span / sensitivity))


def _spaced(lo: Fraction, hi: Fraction, spacing: Fraction) -> Quantizer:
    """As many thresholds at this spacing as fit inside (lo, hi), the end cells equal."""
    count = math.ceil((hi - lo) / spacing)
    first = lo + ((hi - lo) - (count - 1) * spacing) / 2
    return Quantizer(lo, hi, EvenThresholds(first, spacing, count))


def _most(lo: Fraction, hi: Fraction, sensitivity: Fraction, outputs: int) -> Quantizer:
    """(K - 1) ceil(R / S) thresholds: groups of K - 1, each group S above the one before.

    No quantiser has more when the fibres are all intervals of length S: the thresholds j and
    j + K - 1 cannot be closer than S, so the first of group ceil(R / S) + 1 would be above hi.
    """
    groups = math.ceil((hi - lo) / sensitivity)
    room = (hi - lo) - (groups - 1) * sensitivity
    within = [room * (2 * b + 1) / (2 * (outputs - 1)) for b in range(outputs - 1)]
    return Quantizer(lo, hi, tuple(lo + a * sensitivity + w for a in range(groups) for w in within))


def lay_out(
    lo: Fraction,
    hi: Fraction,
    sensitivity: Fraction,
    outputs: int,
    layout: Layout,
    most: int = LARGEST_LEVELS,
) -> Quantizer:
    """Thresholds such that an interval of length `sensitivity` meets at most `outputs` cells."""
    if layout not in LAYOUTS:
        raise InputError(f"layout ({layout!r}) must be one of {', '.join(LAYOUTS)}")
    span = hi - lo
    if outputs == 1 or span == 0 or sensitivity == 0:
        return Quantizer(lo, hi)
    outputs = min(outputs, most)
    sensitivity = max(sensitivity, span * (outputs - 1) / most)
    if layout == "uniform":
        return uniform_quantizer(lo, hi, uniform_levels(outputs, sensitivity, span))
    if layout == "levels":
        return _most(lo, hi, sensitivity, outputs)
    if span / outputs < sensitivity / (outputs - 1):
        return uniform_quantizer(lo, hi, outputs)
    return _spaced(lo, hi, sensitivity / (outputs - 1))


def design_quantizer(query: Query, epsilon: object, *, layout: Layout = "widest") -> QuantizerDesign:
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
    quantizer = lay_out(lo, hi, min(query.sensitivity, hi - lo), allowed.outputs, layout)
    certificate = certify(query, quantizer)
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the quantiser gives up to {certificate.outputs} outputs where {allowed.outputs} are allowed; "
            "please report it"
        )
    return QuantizerDesign(query, quantizer, allowed, certificate, layout)
