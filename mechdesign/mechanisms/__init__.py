"""Mechanisms: each computes a channel P(Y|X) for a table and a notion, verified exactly before it
is returned.

`design` (`design_call`) runs the mechanism or the objective that a `DesignRequest` names
(`designing`). Whatever one computes in floating point is rounded to integers (`rounding`), and
these are audited. The files go by what is released and what for:

    optimal, rules, posteriors       most information about X; the promise as a set of posteriors
    heuristics, merged_sets          heuristics that merge symbols
    least_cost*                      least expected cost on the column's own symbols
    average*, least_leakage          average leakages (the privacy funnel)
    purposes, query_design           other purposes: a task column, linear queries
    population*                      a promise for the population behind the table
    plan_*, smallest_groups          rows of several columns, released as rows of the table
    strata_design                    one column beside given ones
    box_*                            rows in boxes, for the population, split by a tree
"""

# Names are listed once, in __init__.pyi: pyright reads it, and lazy_loader imports on first use, so
# that an audit or a report loads no solver for the name of a result.
# pyright: basic
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
