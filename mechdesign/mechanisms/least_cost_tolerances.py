"""Tolerances and limits of the search for a channel of least cost, each with its reason."""

from __future__ import annotations

from fractions import Fraction

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Margins tried in turn until the integers pass the exact audit; see `rules.MARGINS`."""

LARGE_FROM = 300
"""Symbols from which the first margin is `LARGE_MARGIN`, and shares are not halved in refusals: a
second solve would take minutes."""

LARGE_MARGIN = 1e-7
"""The first margin of large tables: what an interior point solution needs."""

LARGEST_DEVIATION = Fraction(1, 10**12)
"""How much an expected share may change where frequencies are kept: exact equality has no common
denominator."""

REACHES = (20.0, 15.0, 12.0, 10.0, 8.0, 5.0)
"""Nats beyond which a budget counts as so many, to be tried in turn: exp(-20) is more than the
simplex method leaves of a zero, but symbols of a share of 1e-7 need more. Bounds hold for the
budgets as they are."""

SHARPEST_GAP = 1e-6
"""Gap aimed at where no time limit is set, however large a gap was asked for."""

REFUSAL_MARGIN = 1e-9
"""Margin of the programs behind a refusal, taken off the shares that it names, so that these
work."""

MOST_TRIED = 20
"""Symbols tried alone to explain why none of the channels can stay as asked."""

BISECTIONS = 20
"""Halvings of all shares for the same explanation; six digits of the largest share."""
