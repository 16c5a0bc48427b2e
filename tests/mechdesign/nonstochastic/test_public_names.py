"""The public names of `mechdesign.nonstochastic`: pinned, resolvable, and loaded only when used."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mechdesign.nonstochastic as ns

PUBLIC = [
    "BlurredMeasure",
    "BlurringPolicy",
    "Boxes",
    "blurred_measure",
    "box_difference",
    "finite_problem",
    "linear_levels",
    "preimage_epsilon",
    "FibreCertificate",
    "JointRange",
    "LinearQuery",
    "MechanismFile",
    "OrderStatistic",
    "Quantizer",
    "TestingProblem",
    "brute_force_leakage",
    "capacity_bounds",
    "certify",
    "composed_epsilon",
    "count_query",
    "design_quantizer",
    "epsilon_for",
    "finite",
    "promises",
    "identifiable_epsilon",
    "identifiable_partition",
    "identity_query",
    "integers",
    "interval",
    "least_distortion",
    "linear_query",
    "maximal_leakage",
    "mean_query",
    "reporting_policy",
    "median_query",
    "most_levels",
    "one_shot_code",
    "outputs_allowed",
    "overlap_partition",
    "range_leakage",
    "range_report",
    "sum_query",
    "symmetric_leakage",
    "uniform_quantizer",
]


def test_the_public_names_are_pinned():
    assert sorted(ns.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_says_what_it_is(name):
    found = getattr(ns, name)
    assert found.__name__ == name
    assert found.__doc__
    assert found.__module__.startswith("mechdesign.nonstochastic.")
    assert name in dir(ns)


def test_no_public_name_is_hidden_by_a_module_of_the_same_name():
    """Importing a submodule binds its name in the package, and the lazy import would never be
    asked.
    """
    assert {module.name for module in pkgutil.iter_modules(ns.__path__)} & set(
        PUBLIC
    ) == set()


def test_every_public_name_is_in_the_reference():
    page = Path(__file__).parents[3] / "docs" / "reference" / "api-ranges.md"
    listed = re.findall(
        r"^::: mechdesign\.nonstochastic\.(\w+)$", page.read_text("utf-8"), re.M
    )
    assert sorted(listed) == sorted(ns.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonstochastic attribute nothing"):
        ns.nothing  # noqa: B018


def test_the_package_loads_nothing_heavy():
    code = "import sys, mechdesign.nonstochastic\nprint(' '.join(sys.modules))"
    root = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"numpy", "scipy", "highspy", "pyarrow", "flint"} & set(
        run.stdout.split()
    )
