"""Tolerances and limits of the search for a channel of least cost, each with its reason.

Margins are relative distances from the limits of the notion, reaches are budgets in nats, gaps are
shares of `LeastCostProgram.spread`.
"""

from __future__ import annotations

from fractions import Fraction

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Margins tried in turn until the integers pass the exact audit; see `rules.MARGINS`."""

LARGE_FROM = 300
"""Symbols from which the first margin is `LARGE_MARGIN`, and shares are not halved in refusals: a
second solve would take minutes."""

LARGE_MARGIN = 1e-7
"""The first margin of large tables, which an interior point solution needs."""

TANGENT_MARGIN = 1e-7
"""The first margin where averages are limited: tangents come no nearer in few rounds."""

LARGEST_DEVIATION = Fraction(1, 10**12)
"""Largest change of an expected share where frequencies are preserved: integers over a common
denominator cannot preserve them exactly."""

REACHES = (20.0, 15.0, 12.0, 10.0, 8.0, 5.0)
"""Nats to which larger budgets are reduced, to be tried in turn. exp(-20) is larger than the error
of a zero in the simplex method, but symbols of a share of 1e-7 need smaller reaches. Bounds hold
for the budgets as they are."""

SHARPEST_GAP = 1e-6
"""Gap of a search without time limit, even where the request allows a larger one."""

REFUSAL_MARGIN = 1e-9
"""Margin of the programs behind a refusal, and taken off the shares that it names, so that these
work."""

MOST_TRIED = 20
"""Symbols tried alone to explain why no channel keeps all shares."""

BISECTIONS = 20
"""Halvings of all shares for the same explanation; six digits of the largest share."""
