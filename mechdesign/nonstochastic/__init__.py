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
    from mechdesign.nonstochastic.boxes import (
        Boxes,
    )
    from mechdesign.nonstochastic.continuous import MeasuredRange, box_space, largest_region_difference
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
    from mechdesign.nonstochastic.operations import (
        chain,
        product,
        restrict_x,
    )
    from mechdesign.nonstochastic.ranges import (
        JointRange,
    )
    from mechdesign.nonstochastic.spaces import (
        UncertainSpace,
    )
    from mechdesign.nonstochastic.zero_error import (
        CapacityBounds,
        OneShotCode,
        capacity_bounds,
        fractional_cover,
        one_shot_code,
        subrange_leakage,
    )

__all__ = [
    "BlurredMeasure",
    "BlurringPolicy",
    "Boxes",
    "CapacityBounds",
    "Difference",
    "JointRange",
    "LinearLevels",
    "MeasuredRange",
    "OneShotCode",
    "OverlapPartition",
    "RangeReport",
    "TestingProblem",
    "UncertainSpace",
    "WorstAttribute",
    "accuracy",
    "averaging_leakage",
    "best_accuracy",
    "blurred_measure",
    "box_difference",
    "box_space",
    "brute_force_leakage",
    "capacity_bounds",
    "chain",
    "composed_maximal_leakage",
    "conditional_range_entropy",
    "finite_difference",
    "finite_problem",
    "fractional_cover",
    "identifiability",
    "identifiable_bound",
    "individual_leakage",
    "is_identifiable",
    "is_indistinguishable",
    "is_one_shot",
    "largest_difference",
    "largest_region_difference",
    "largest_stochastic_leakage",
    "leakage_bound",
    "least_accuracy",
    "linear_levels",
    "maximal_leakage",
    "maximin_information",
    "one_shot_attribute",
    "one_shot_code",
    "one_shot_leakage",
    "overlap_partition",
    "preimage_epsilon",
    "product",
    "range_entropy",
    "range_information",
    "range_leakage",
    "range_report",
    "restrict_x",
    "shift_bound",
    "stochastic_maximal_leakage",
    "subrange_leakage",
    "symmetric_leakage",
    "total_variation",
    "worst_attribute",
]

_HOMES = {
    "BlurredMeasure": "blurring",
    "BlurringPolicy": "blurring",
    "Boxes": "boxes",
    "CapacityBounds": "zero_error",
    "Difference": "indistinguishability",
    "JointRange": "ranges",
    "LinearLevels": "indistinguishability",
    "MeasuredRange": "continuous",
    "box_space": "continuous",
    "largest_region_difference": "continuous",
    "OneShotCode": "zero_error",
    "OverlapPartition": "information",
    "RangeReport": "information",
    "TestingProblem": "hypothesis",
    "UncertainSpace": "spaces",
    "WorstAttribute": "guessing",
    "accuracy": "hypothesis",
    "averaging_leakage": "indistinguishability",
    "best_accuracy": "hypothesis",
    "blurred_measure": "blurring",
    "box_difference": "indistinguishability",
    "brute_force_leakage": "guessing",
    "capacity_bounds": "zero_error",
    "chain": "operations",
    "composed_maximal_leakage": "guessing",
    "conditional_range_entropy": "information",
    "finite_difference": "indistinguishability",
    "finite_problem": "hypothesis",
    "fractional_cover": "zero_error",
    "identifiability": "guessing",
    "identifiable_bound": "guessing",
    "individual_leakage": "indistinguishability",
    "is_identifiable": "guessing",
    "is_indistinguishable": "indistinguishability",
    "is_one_shot": "guessing",
    "largest_difference": "indistinguishability",
    "largest_stochastic_leakage": "guessing",
    "leakage_bound": "hypothesis",
    "least_accuracy": "hypothesis",
    "linear_levels": "indistinguishability",
    "maximal_leakage": "guessing",
    "maximin_information": "information",
    "one_shot_attribute": "guessing",
    "one_shot_code": "zero_error",
    "one_shot_leakage": "guessing",
    "overlap_partition": "information",
    "preimage_epsilon": "blurring",
    "product": "operations",
    "range_entropy": "information",
    "range_information": "information",
    "range_leakage": "information",
    "range_report": "information",
    "restrict_x": "operations",
    "shift_bound": "indistinguishability",
    "stochastic_maximal_leakage": "guessing",
    "subrange_leakage": "zero_error",
    "symmetric_leakage": "information",
    "total_variation": "hypothesis",
    "worst_attribute": "guessing",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
