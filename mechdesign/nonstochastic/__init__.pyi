from .blurring import BlurringPolicy, blurred_measure, preimage_epsilon
from .boxes import Boxes
from .domains import finite, integers, interval
from .hypothesis import TestingProblem, finite_problem, leakage_bound
from .indistinguishability import averaging_leakage, box_difference, individual_leakage, linear_levels
from .information import (
    brute_force_leakage,
    composed_maximal_leakage,
    identifiable_epsilon,
    maximal_leakage,
    maximin_information,
    overlap_partition,
    range_leakage,
    range_report,
    symmetric_leakage,
)
from .levels import epsilon_for, outputs_allowed, promises
from .mechanism_file import MechanismFile
from .microaggregation import identifiable_partition
from .noiseless import FibreCertificate, Ledger, certify, design_quantizer
from .optimise_thresholds import least_distortion, most_levels
from .quantizers import Quantizer, uniform_quantizer
from .queries import (
    LinearQuery,
    OrderStatistic,
    count_query,
    identity_query,
    linear_query,
    mean_query,
    median_query,
    sum_query,
)
from .ranges import JointRange
from .zero_error import capacity_bounds, one_shot_code

__all__ = [
    "BlurringPolicy",
    "Boxes",
    "FibreCertificate",
    "JointRange",
    "Ledger",
    "LinearQuery",
    "MechanismFile",
    "OrderStatistic",
    "Quantizer",
    "TestingProblem",
    "averaging_leakage",
    "blurred_measure",
    "box_difference",
    "brute_force_leakage",
    "capacity_bounds",
    "certify",
    "composed_maximal_leakage",
    "count_query",
    "design_quantizer",
    "epsilon_for",
    "finite",
    "finite_problem",
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
    "promises",
    "range_leakage",
    "range_report",
    "sum_query",
    "symmetric_leakage",
    "uniform_quantizer",
]
