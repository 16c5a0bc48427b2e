"""Thresholds for groups of any size, placed by the rule of a mechanism, and what is released for their cells."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from typing import cast

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import FiniteDomain, exact_number, finite
from mechdesign.nonstochastic.levels import epsilon_for, outputs_allowed
from mechdesign.nonstochastic.mechanism_file import (
    TOLD,
    MechanismFile,
    SizedQuantizer,
    build_query,
)
from mechdesign.nonstochastic.noiseless import LAYOUTS, Layout, lay_out
from mechdesign.nonstochastic.optimise_thresholds import most_levels, thresholds_for
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import LinearQuery

THRESHOLDS = ("optimal", "most", "given")
"""Ways to place thresholds that are no layout of equal cells: of least squared error, the most, or listed ones."""

LARGEST_DOUBLE = Fraction(sys.float_info.max)
"""Released numbers are doubles."""


def sized_quantizer(
    mechanism: MechanismFile, size: int, told: list[str] | None = None
) -> SizedQuantizer:
    """Thresholds for another size of group, by the layout and within the budget of a mechanism; `told` gets notices."""
    named = mechanism.provenance.get("layout")
    if named not in (*LAYOUTS, *THRESHOLDS):
        raise InputError(
            f"the mechanism has no thresholds for groups of {size} and does not say its layout; design anew"
        )
    query = build_query(mechanism.query, size, mechanism.domain)
    lo, hi = query.range
    if max(abs(lo), abs(hi)) > LARGEST_DOUBLE:
        raise InputError(
            f"the {mechanism.query} of {size:,} values up to {float(mechanism.domain.hi):g} can be beyond all doubles "
            f"({float(LARGEST_DOUBLE):.4g}); use a larger unit, or the mean"
        )
    allowed = outputs_allowed(mechanism.epsilon)
    if mechanism.divided and mechanism.mechanisms:
        # Whoever is in a group of an unknown size may be in all the others, too.
        allowed = min(m.certificate.outputs for m in mechanism.mechanisms)
    outputs = allowed - (mechanism.outside in TOLD)
    if not outputs:
        raise InputError(
            f"to {mechanism.outside} what lies outside the range is one output, and epsilon allows no other: "
            "raise it to 1 bit or more"
        )
    # A record that counts as 0 or 1 has two outputs at most, and finer cells would tell nothing more.
    outputs = min(outputs, 2) if mechanism.query == "count" else outputs
    epsilon = epsilon_for(outputs)
    # Thresholds may be placed for some values of a range, and are counted for all of it.
    points = mechanism.provenance.get("points")
    space = finite(points) if points else mechanism.domain
    if named in LAYOUTS:
        quantizer = lay_out(
            lo, hi, min(query.sensitivity, hi - lo), outputs, cast("Layout", named)
        )
    elif named == "given":
        cuts = [
            exact_number("a threshold", t)
            for t in mechanism.provenance.get("thresholds", ())
        ]
        quantizer = Quantizer(lo, hi, tuple(t for t in cuts if lo < t <= hi))
    elif not isinstance(query, LinearQuery) or not isinstance(space, FiniteDomain):
        raise InputError(
            f"{named} thresholds are for the identity, mean or sum of a finite domain (--domain); another query gets "
            "its thresholds by --layout"
        )
    else:
        weights, found = (
            mechanism.provenance.get("weights"),
            build_query(mechanism.query, size, space),
        )
        best = (
            most_levels(found, epsilon)
            if named == "most"
            else thresholds_for(found, epsilon, weights)
        )
        quantizer = replace(best.quantizer, lo=lo, hi=hi)
        if not best.optimal and told is not None:
            told.append(
                f"the thresholds for groups of {size} may not be the best ones: {best.because}"
            )
    made = mechanism.certified(size, quantizer)
    if made.certificate.outputs > allowed:
        raise InputError(
            f"with these thresholds one individual can bring about {made.certificate.outputs} outputs, and "
            f"{allowed} are allowed; leave some out, or raise the budget"
        )
    return made


def released_number(query: str, quantizer: Quantizer, cell: int) -> Fraction:
    """What is released for a cell: its middle, or the middle of the whole numbers in it for a count."""
    if query != "count":
        return quantizer.midpoint(cell)
    below, above = quantizer.edge(cell), quantizer.edge(cell + 1)
    last = math.floor(above) if cell == quantizer.levels - 1 else math.ceil(above) - 1
    return Fraction(math.ceil(below) + last, 2)
