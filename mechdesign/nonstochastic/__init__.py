"""Privacy without probabilities: uncertain variables, what they leak, and how to blur them.

Sizes of discrete ranges are measured in bits (base 2), those of boxes in nats. Everything
public is here and is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.nonstochastic.blurring import BlurringPolicy, blurred_measure, preimage_epsilon
    from mechdesign.nonstochastic.boxes import Boxes
    from mechdesign.nonstochastic.designs import design_quantizer
    from mechdesign.nonstochastic.domains import finite, integers, interval
    from mechdesign.nonstochastic.guessing import (
        brute_force_leakage,
        composed_maximal_leakage,
        identifiable_epsilon,
        maximal_leakage,
    )
    from mechdesign.nonstochastic.hypothesis import TestingProblem, finite_problem, leakage_bound
    from mechdesign.nonstochastic.indistinguishability import (
        averaging_leakage,
        box_difference,
        individual_leakage,
        linear_levels,
    )
    from mechdesign.nonstochastic.information import (
        maximin_information,
        overlap_partition,
        range_leakage,
        range_report,
        symmetric_leakage,
    )
    from mechdesign.nonstochastic.levels import epsilon_for, guarantees, outputs_allowed
    from mechdesign.nonstochastic.mechanism_file import MechanismFile
    from mechdesign.nonstochastic.noiseless import Certificate, Ledger, certify, certify_table
    from mechdesign.nonstochastic.optimise_partition import identifiable_partition
    from mechdesign.nonstochastic.optimise_thresholds import least_distortion, most_levels
    from mechdesign.nonstochastic.quantizers import Quantizer, uniform_quantizer
    from mechdesign.nonstochastic.queries import (
        LinearQuery,
        MonotoneQuery,
        OrderStatistic,
        count_query,
        identity_query,
        linear_query,
        mean_query,
        median_query,
        sum_query,
    )
    from mechdesign.nonstochastic.ranges import JointRange
    from mechdesign.nonstochastic.tables import TabulatedQuery
    from mechdesign.nonstochastic.zero_error import capacity_bounds, one_shot_code

__all__ = [
    "BlurringPolicy",
    "Boxes",
    "Certificate",
    "JointRange",
    "Ledger",
    "LinearQuery",
    "MechanismFile",
    "MonotoneQuery",
    "OrderStatistic",
    "Quantizer",
    "TabulatedQuery",
    "TestingProblem",
    "averaging_leakage",
    "blurred_measure",
    "box_difference",
    "brute_force_leakage",
    "capacity_bounds",
    "certify",
    "certify_table",
    "composed_maximal_leakage",
    "count_query",
    "design_quantizer",
    "epsilon_for",
    "finite",
    "finite_problem",
    "guarantees",
    "identifiable_epsilon",
    "identifiable_partition",
    "identity_query",
    "individual_leakage",
    "integers",
    "interval",
    "leakage_bound",
    "least_distortion",
    "linear_levels",
    "linear_query",
    "maximal_leakage",
    "maximin_information",
    "mean_query",
    "median_query",
    "most_levels",
    "one_shot_code",
    "outputs_allowed",
    "overlap_partition",
    "preimage_epsilon",
    "range_leakage",
    "range_report",
    "sum_query",
    "symmetric_leakage",
    "uniform_quantizer",
]

_MODULES = {
    "blurring": "BlurringPolicy blurred_measure preimage_epsilon",
    "boxes": "Boxes",
    "designs": "design_quantizer",
    "domains": "finite integers interval",
    "guessing": "brute_force_leakage composed_maximal_leakage identifiable_epsilon maximal_leakage",
    "hypothesis": "TestingProblem finite_problem leakage_bound",
    "indistinguishability": "averaging_leakage box_difference individual_leakage linear_levels",
    "information": "maximin_information overlap_partition range_leakage range_report symmetric_leakage",
    "levels": "epsilon_for guarantees outputs_allowed",
    "mechanism_file": "MechanismFile",
    "noiseless": "Certificate Ledger certify certify_table",
    "optimise_partition": "identifiable_partition",
    "optimise_thresholds": "least_distortion most_levels",
    "quantizers": "Quantizer uniform_quantizer",
    "queries": (
        "LinearQuery MonotoneQuery OrderStatistic count_query identity_query linear_query "
        "mean_query median_query sum_query"
    ),
    "ranges": "JointRange",
    "tables": "TabulatedQuery",
    "zero_error": "capacity_bounds one_shot_code",
}
"""Which public names each module has."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
