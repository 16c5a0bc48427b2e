"""The heuristics of the watchdog: complete merging, subset merging and subset response (Zarrabian
et al. 2023, Section 3).

All publish harmless symbols as they are. They differ in the risky ones, say b, c, d, e beside the
harmless a:

    complete merging   one output of all                       a, {b, c, d, e}
    subset merging     several small sets (Algorithm 1)        a, {b, c}, {d, e}
    subset response    within each of these sets an output     a, and for {b, c} for example the
                       at random (Algorithm 2)                 outputs b and {b, c}

`merged_release` merges by the partitions of `partitions`, and `subset_response` responds. What is
returned satisfies the notion, unless it was asked for as published.

`HEURISTICS` has the three by name; designs call them with the `STANDARD` options, and `heuristic`
with others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mechdesign.core.errors import InputError
from mechdesign.mechanisms.heuristic_options import (
    COMPLETE,
    RESPONSE,
    STANDARD,
    SUBSETS,
    HeuristicOptions,
)
from mechdesign.mechanisms.merged_release import merging
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import Rules, check_sensitive, table_rules
from mechdesign.mechanisms.search import Search
from mechdesign.mechanisms.subset_response import subset_response
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint


def heuristic(
    joint: Joint,
    notion: Notion,
    mechanism: str,
    options: HeuristicOptions = STANDARD,
    search: Search | None = None,
) -> Design:
    """Run a heuristic with options for figures of the paper and for study.

    Raises
    ------
    InputError
        If the mechanism is no heuristic, or an option does not belong to it.
    """
    options.check(mechanism)
    if mechanism not in HEURISTICS:
        raise InputError(
            f"mechanism ({mechanism!r}) must be one of {', '.join(HEURISTICS)}"
        )
    check_sensitive(joint)
    rules = table_rules(joint, notion)
    return HEURISTICS[mechanism](rules, search or Search(), options)


def subset_merging(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """Algorithm 1, repaired."""
    return merging(SUBSETS, rules, search, options)[1]


def complete_merging(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """All risky symbols as one, randomised alike, repaired."""
    return merging(COMPLETE, rules, search, options)[1]


HEURISTICS: Mapping[str, Callable[[Rules, Search, HeuristicOptions], Design]] = (
    MappingProxyType(
        {RESPONSE: subset_response, SUBSETS: subset_merging, COMPLETE: complete_merging}
    )
)
"""The heuristics by the name of their mechanism."""
