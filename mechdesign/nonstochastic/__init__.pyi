from .blurring import BlurredMeasure, BlurringPolicy, blurred_measure, preimage_epsilon
from .hypothesis import TestingProblem, finite_problem, reporting_policy
from .indistinguishability import Boxes, box_difference, linear_levels
from .mechanism_file import MechanismFile
from .noiseless import (
    FibreCertificate,
    certify,
    composed_epsilon,
    design_quantizer,
    epsilon_for,
    outputs_allowed,
    promises,
)
from .quantizers import Quantizer, uniform_quantizer
from .queries import (
    LinearQuery,
    OrderStatistic,
    count_query,
    finite,
    identity_query,
    integers,
    interval,
    linear_query,
    mean_query,
    median_query,
    sum_query,
)
from .ranges import (
    JointRange,
    brute_force_leakage,
    identifiable_epsilon,
    maximal_leakage,
    overlap_partition,
    range_leakage,
    range_report,
    symmetric_leakage,
)
from .thresholds_by_error import identifiable_partition, least_distortion
from .thresholds_by_levels import most_levels
from .zero_error import capacity_bounds, one_shot_code

__all__ = [
    "BlurredMeasure",
    "BlurringPolicy",
    "Boxes",
    "FibreCertificate",
    "JointRange",
    "LinearQuery",
    "MechanismFile",
    "OrderStatistic",
    "Quantizer",
    "TestingProblem",
    "blurred_measure",
    "box_difference",
    "brute_force_leakage",
    "capacity_bounds",
    "certify",
    "composed_epsilon",
    "count_query",
    "design_quantizer",
    "epsilon_for",
    "finite",
    "finite_problem",
    "identifiable_epsilon",
    "identifiable_partition",
    "identity_query",
    "integers",
    "interval",
    "least_distortion",
    "linear_levels",
    "linear_query",
    "maximal_leakage",
    "mean_query",
    "median_query",
    "most_levels",
    "one_shot_code",
    "outputs_allowed",
    "overlap_partition",
    "preimage_epsilon",
    "promises",
    "range_leakage",
    "range_report",
    "reporting_policy",
    "sum_query",
    "symmetric_leakage",
    "uniform_quantizer",
]
