"""Thresholds for groups of any size, by the rule of a mechanism, and the numbers of their cells.

A mechanism file has thresholds for the sizes of groups that it has met, and in its provenance the
rule that placed them. `sized_quantizer` follows it for any other size:

1. The query of a group of this size has a range and a sensitivity of its own (`build_query`). The
   answers that one individual can bring about, while all others stay as they are, are a *fibre*.
2. The budget allows floor(2^epsilon) outputs on a fibre (`_allowed`). One of them may be that a
   value lies outside the range; the others are cells (`_cells_allowed`).
3. The rule places the thresholds: a layout of cells (`noiseless.lay_out`), the listed thresholds
   within the range (`_listed`), or a program for finite domains (`_optimal`).
4. The outputs are counted, whatever the rule is (`MechanismFile.certified`); too many are refused.

For example, values lie in [0, 60], their mean is asked for, and one bit allows 2 outputs. One
individual moves the mean of 12 records by 5 at most, and that of 30 by 2. So the widest layout has
cells of width 5 for groups of 12, and of width 2 for groups of 30.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    MechanismFile,
    SizedQuantizer,
)
from mechdesign.nonstochastic.noiseless import (
    LAYOUTS,
    Layout,
    epsilon_for,
    lay_out,
    outputs_allowed,
)
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import (
    FiniteDomain,
    LinearQuery,
    Query,
    build_query,
    exact_number,
    finite,
)
from mechdesign.nonstochastic.thresholds_by_error import thresholds_for
from mechdesign.nonstochastic.thresholds_by_levels import most_levels

THRESHOLDS = ("optimal", "most", "given")
"""Ways to place thresholds beside the layouts: least squared error, the most, or listed ones."""

LARGEST_DOUBLE = Fraction(sys.float_info.max)
"""Largest answer: released numbers are doubles."""


def sized_quantizer(
    mechanism: MechanismFile, size: int, notices: list[str] | None = None
) -> SizedQuantizer:
    """Thresholds for another size of group, by the layout and within the budget of a mechanism.

    Parameters
    ----------
    size
        Records of the group.
    notices
        A list that gets a sentence if the thresholds may not be the best ones.

    Raises
    ------
    InputError
        If the mechanism has no rule, the answers leave the doubles, or the thresholds break the
        budget.
    """
    layout = mechanism.provenance.get("layout")
    if layout not in (*LAYOUTS, *THRESHOLDS):
        raise InputError(
            f"the mechanism has no thresholds for groups of {size} and does not say its layout; "
            "design anew"
        )
    query = build_query(mechanism.query, size, mechanism.domain)
    lo, hi = query.range
    if max(abs(lo), abs(hi)) > LARGEST_DOUBLE:
        raise InputError(
            f"the {mechanism.query} of {size:,} values up to {float(mechanism.domain.hi):g} can "
            f"be beyond all doubles ({float(LARGEST_DOUBLE):.4g}); use a larger unit, or the mean"
        )
    allowed = _allowed(mechanism)
    outputs = _cells_allowed(mechanism, allowed)
    if layout in LAYOUTS:
        # An individual cannot move the answer farther than its whole range.
        sensitivity = min(query.sensitivity, hi - lo)
        quantizer = lay_out(lo, hi, sensitivity, outputs, cast("Layout", layout))
    elif layout == "given":
        listed = mechanism.provenance.get("thresholds", ())
        quantizer = _listed(query, listed)
    else:
        optimal, notice = _optimal(mechanism, query, size, outputs)
        # Thresholds may be placed for some values of a range, and are certified for all of it.
        quantizer = replace(optimal, lo=lo, hi=hi)
        if notice and notices is not None:
            notices.append(notice)
    # The exact count has the last word, whatever the rule promises.
    sized = mechanism.certified(size, quantizer)
    if sized.certificate.outputs > allowed:
        raise InputError(
            f"with these thresholds one individual can bring about {sized.certificate.outputs} "
            f"outputs, and {allowed} are allowed; leave some out, or raise the budget"
        )
    return sized


def _allowed(mechanism: MechanismFile) -> int:
    """The outputs that an answer of a group of a further size may have."""
    if mechanism.divided and mechanism.mechanisms:
        # An individual in a group of a further size may be in all the others, too.
        return min(m.certificate.outputs for m in mechanism.mechanisms)
    return outputs_allowed(mechanism.epsilon)


def _cells_allowed(mechanism: MechanismFile, allowed: int) -> int:
    """The cells that a fibre may meet, so that the answer has at most `allowed` outputs."""
    cells = allowed
    if mechanism.outside in DISCLOSED_OUTSIDE:
        # One output is that a value lies outside.
        cells -= 1
    if not cells:
        raise InputError(
            f"to {mechanism.outside} what lies outside the range is one output, and epsilon "
            "allows no other: raise it to 1 bit or more"
        )
    if mechanism.query == "count":
        # An individual counts as 0 or 1, so a fibre has two answers, and finer cells separate no
        # more.
        return min(cells, 2)
    return cells


def _listed(query: Query, thresholds: Sequence[object]) -> Quantizer:
    """The listed thresholds that lie in the range of the answers."""
    lo, hi = query.range
    # A threshold outside of the range of smaller groups separates nothing there.
    exact = [exact_number("a threshold", t) for t in thresholds]
    return Quantizer(lo, hi, tuple(t for t in exact if lo < t <= hi))


def _optimal(
    mechanism: MechanismFile, query: Query, size: int, outputs: int
) -> tuple[Quantizer, str]:
    """The optimal thresholds, and a notice if they are not proven to be."""
    layout = mechanism.provenance["layout"]
    points = mechanism.provenance.get("points")
    domain = mechanism.domain
    if points:
        # The thresholds of an interval are optimal for the values that were named in it.
        domain = finite(points)
    if not isinstance(query, LinearQuery) or not isinstance(domain, FiniteDomain):
        raise InputError(
            f"{layout} thresholds are for the identity, mean or sum of a finite domain "
            "(--domain); another query gets its thresholds by --layout"
        )
    finite_query = build_query(mechanism.query, size, domain)
    epsilon = epsilon_for(outputs)
    if layout == "most":
        best = most_levels(finite_query, epsilon)
    else:
        weights = mechanism.provenance.get("weights")
        best = thresholds_for(finite_query, epsilon, weights)
    notice = ""
    if not best.optimal:
        notice = f"the thresholds for groups of {size} may not be the best ones: {best.because}"
    return best.quantizer, notice


def released_number(query: str, quantizer: Quantizer, cell: int) -> Fraction:
    """The middle of a cell, which is released; for a count that of the whole numbers in it."""
    if query != "count":
        return quantizer.midpoint(cell)
    below = quantizer.edge(cell)
    above = quantizer.edge(cell + 1)
    first = math.ceil(below)
    if cell == quantizer.levels - 1:
        # The last cell is closed above.
        last = math.floor(above)
    else:
        last = math.ceil(above) - 1
    return Fraction(first + last, 2)
