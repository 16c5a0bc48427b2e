"""Privacy without probabilities: uncertain variables, what they leak, and how to blur them.

Sizes of discrete ranges are measured in bits (base 2), those of continuous ones in nats. Everything
public is here and is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.nonstochastic.blurring import (
        BlurredMeasure,
        BlurringPolicy,
        blurred_measure,
        preimage_epsilon,
    )
    from mechdesign.nonstochastic.boxes import Boxes
    from mechdesign.nonstochastic.composition import Ledger, certify_together
    from mechdesign.nonstochastic.continuous import MeasuredRange, box_space, largest_region_difference
    from mechdesign.nonstochastic.designs import QuantizerDesign, design_quantizer
    from mechdesign.nonstochastic.domains import FiniteDomain, IntervalDomain, finite, integers, interval
    from mechdesign.nonstochastic.gaps import GapProblem, gap_problem
    from mechdesign.nonstochastic.guessing import (
        WorstAttribute,
        brute_force_leakage,
        composed_maximal_leakage,
        identifiability,
        identifiable_bound,
        is_identifiable,
        is_one_shot,
        largest_stochastic_leakage,
        maximal_leakage,
        one_shot_attribute,
        one_shot_leakage,
        stochastic_maximal_leakage,
        worst_attribute,
    )
    from mechdesign.nonstochastic.hypothesis import (
        TestingProblem,
        accuracy,
        best_accuracy,
        finite_problem,
        leakage_bound,
        least_accuracy,
        total_variation,
    )
    from mechdesign.nonstochastic.indistinguishability import (
        Difference,
        LinearLevels,
        averaging_leakage,
        box_difference,
        finite_difference,
        individual_leakage,
        is_indistinguishable,
        largest_difference,
        linear_levels,
        shift_bound,
    )
    from mechdesign.nonstochastic.information import (
        OverlapPartition,
        RangeReport,
        conditional_range_entropy,
        maximin_information,
        overlap_partition,
        range_entropy,
        range_information,
        range_leakage,
        range_report,
        symmetric_leakage,
    )
    from mechdesign.nonstochastic.levels import Allowance, allowance, epsilon_for, outputs_allowed
    from mechdesign.nonstochastic.mechanism_file import MechanismFile
    from mechdesign.nonstochastic.noiseless import Certificate, certify, certify_local, certify_table
    from mechdesign.nonstochastic.noiseless_guarantees import Guarantee, estimation_error, guarantees
    from mechdesign.nonstochastic.operations import chain, product, restrict_x
    from mechdesign.nonstochastic.optimise_distortion import least_distortion
    from mechdesign.nonstochastic.optimise_levels import OptimalQuantizer, most_levels
    from mechdesign.nonstochastic.optimise_partition import Partition, identifiable_partition
    from mechdesign.nonstochastic.optimise_policy import ReportingPolicy, most_private_policy, private_policy
    from mechdesign.nonstochastic.quantizers import Quantizer, uniform_quantizer
    from mechdesign.nonstochastic.queries import (
        EvenMedian,
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
    from mechdesign.nonstochastic.spaces import UncertainSpace
    from mechdesign.nonstochastic.tables import TabulatedQuery
    from mechdesign.nonstochastic.zero_error import (
        CapacityBounds,
        OneShotCode,
        capacity_bounds,
        fractional_cover,
        one_shot_code,
        subrange_leakage,
    )

__all__ = [
    "Allowance",
    "BlurredMeasure",
    "BlurringPolicy",
    "Boxes",
    "CapacityBounds",
    "Certificate",
    "Difference",
    "EvenMedian",
    "FiniteDomain",
    "GapProblem",
    "Guarantee",
    "IntervalDomain",
    "JointRange",
    "Ledger",
    "LinearLevels",
    "LinearQuery",
    "MeasuredRange",
    "MechanismFile",
    "MonotoneQuery",
    "OneShotCode",
    "OptimalQuantizer",
    "OrderStatistic",
    "OverlapPartition",
    "Partition",
    "Quantizer",
    "QuantizerDesign",
    "RangeReport",
    "ReportingPolicy",
    "TabulatedQuery",
    "TestingProblem",
    "UncertainSpace",
    "WorstAttribute",
    "accuracy",
    "allowance",
    "averaging_leakage",
    "best_accuracy",
    "blurred_measure",
    "box_difference",
    "box_space",
    "brute_force_leakage",
    "capacity_bounds",
    "certify",
    "certify_local",
    "certify_table",
    "certify_together",
    "chain",
    "composed_maximal_leakage",
    "conditional_range_entropy",
    "count_query",
    "design_quantizer",
    "epsilon_for",
    "estimation_error",
    "finite",
    "finite_difference",
    "finite_problem",
    "fractional_cover",
    "gap_problem",
    "guarantees",
    "identifiability",
    "identifiable_bound",
    "identifiable_partition",
    "identity_query",
    "individual_leakage",
    "integers",
    "interval",
    "is_identifiable",
    "is_indistinguishable",
    "is_one_shot",
    "largest_difference",
    "largest_region_difference",
    "largest_stochastic_leakage",
    "leakage_bound",
    "least_accuracy",
    "least_distortion",
    "linear_levels",
    "linear_query",
    "maximal_leakage",
    "maximin_information",
    "mean_query",
    "median_query",
    "most_levels",
    "most_private_policy",
    "one_shot_attribute",
    "one_shot_code",
    "one_shot_leakage",
    "outputs_allowed",
    "overlap_partition",
    "preimage_epsilon",
    "private_policy",
    "product",
    "range_entropy",
    "range_information",
    "range_leakage",
    "range_report",
    "restrict_x",
    "shift_bound",
    "stochastic_maximal_leakage",
    "subrange_leakage",
    "sum_query",
    "symmetric_leakage",
    "total_variation",
    "uniform_quantizer",
    "worst_attribute",
]

_MODULES = {
    "blurring": "BlurredMeasure BlurringPolicy blurred_measure preimage_epsilon",
    "boxes": "Boxes",
    "composition": "Ledger certify_together",
    "continuous": "MeasuredRange box_space largest_region_difference",
    "designs": "QuantizerDesign design_quantizer",
    "domains": "FiniteDomain IntervalDomain finite integers interval",
    "gaps": "GapProblem gap_problem",
    "guessing": (
        "WorstAttribute brute_force_leakage composed_maximal_leakage identifiability "
        "identifiable_bound is_identifiable is_one_shot largest_stochastic_leakage maximal_leakage "
        "one_shot_attribute one_shot_leakage stochastic_maximal_leakage worst_attribute"
    ),
    "hypothesis": (
        "TestingProblem accuracy best_accuracy finite_problem leakage_bound least_accuracy total_variation"
    ),
    "indistinguishability": (
        "Difference LinearLevels averaging_leakage box_difference finite_difference "
        "individual_leakage is_indistinguishable largest_difference linear_levels shift_bound"
    ),
    "information": (
        "OverlapPartition RangeReport conditional_range_entropy maximin_information overlap_partition "
        "range_entropy range_information range_leakage range_report symmetric_leakage"
    ),
    "levels": "Allowance allowance epsilon_for outputs_allowed",
    "mechanism_file": "MechanismFile",
    "noiseless": "Certificate certify certify_local certify_table",
    "noiseless_guarantees": "Guarantee estimation_error guarantees",
    "operations": "chain product restrict_x",
    "optimise_distortion": "least_distortion",
    "optimise_levels": "OptimalQuantizer most_levels",
    "optimise_partition": "Partition identifiable_partition",
    "optimise_policy": "ReportingPolicy most_private_policy private_policy",
    "quantizers": "Quantizer uniform_quantizer",
    "queries": (
        "EvenMedian LinearQuery MonotoneQuery OrderStatistic count_query identity_query linear_query "
        "mean_query median_query sum_query"
    ),
    "ranges": "JointRange",
    "spaces": "UncertainSpace",
    "tables": "TabulatedQuery",
    "zero_error": (
        "CapacityBounds OneShotCode capacity_bounds fractional_cover one_shot_code subrange_leakage"
    ),
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
