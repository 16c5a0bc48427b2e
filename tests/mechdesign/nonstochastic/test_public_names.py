"""The public names of `mechdesign.nonstochastic`: pinned, resolvable, and loaded only when used."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mechdesign.nonstochastic as ns

PUBLIC = [
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


def test_the_public_names_are_pinned():
    assert ns.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_says_what_it_is(name):
    found = getattr(ns, name)
    assert found.__name__ == name
    assert found.__doc__
    assert found.__module__.startswith("mechdesign.nonstochastic.")
    assert name in dir(ns)


def test_no_public_name_is_hidden_by_a_module_of_the_same_name():
    """Importing a submodule binds its name in the package, and the lazy import would never be asked."""
    assert {module.name for module in pkgutil.iter_modules(ns.__path__)} & set(PUBLIC) == set()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ns.nothing  # noqa: B018


def test_the_package_loads_nothing_heavy():
    code = "import sys, mechdesign.nonstochastic\nprint(' '.join(sys.modules))"
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "highspy", "pyarrow", "flint"} & set(run.stdout.split())
