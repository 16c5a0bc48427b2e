"""Optimal release channels for data correlated with a sensitive attribute, proven private in exact arithmetic.

Everything public is here and is imported when it is first used, so ``import mechdesign`` costs nothing::

    import mechdesign as md

    joint = md.Joint.from_table(frame, sensitive="relationship", useful="occupation")
    result = md.design(joint, md.ALIP(eps_l=1.3, eps_u=0.7))
    released = result.channel.apply(frame["occupation"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.auditing import Audit, audit
    from mechdesign.channel import Channel
    from mechdesign.comparison import Comparison, compare
    from mechdesign.comparison_rows import ComparisonRow
    from mechdesign.draws import Key
    from mechdesign.errors import InputError, MechdesignError, NotPrivate, SolverFailure
    from mechdesign.estimation import Frequencies, estimate_frequencies, identifiability
    from mechdesign.estimation_joint import JointFrequencies, estimate_joint
    from mechdesign.estimation_regression import corrected_regression
    from mechdesign.estimation_weights import expand_records, posterior_table, record_weights
    from mechdesign.joint import Joint
    from mechdesign.mechanisms import design
    from mechdesign.mechanisms.result import Certificate, Design
    from mechdesign.notions import (
        ALIP,
        LDP,
        LIP,
        AlphaLift,
        Chi2Lift,
        L1Lift,
        MaxLift,
        MinLift,
        Notion,
    )
    from mechdesign.policies import Policy
    from mechdesign.sanitise.apply_file import sanitise_file
    from mechdesign.sanitise.check_file import check_release
    from mechdesign.sanitise.frame import sanitise_frame

__version__ = "0.1.0"

__all__ = [
    "ALIP",
    "LDP",
    "LIP",
    "AlphaLift",
    "Audit",
    "Certificate",
    "Channel",
    "Chi2Lift",
    "Comparison",
    "ComparisonRow",
    "Design",
    "Frequencies",
    "InputError",
    "Joint",
    "JointFrequencies",
    "Key",
    "L1Lift",
    "MaxLift",
    "MechdesignError",
    "MinLift",
    "NotPrivate",
    "Notion",
    "Policy",
    "SolverFailure",
    "__version__",
    "audit",
    "check_release",
    "compare",
    "corrected_regression",
    "design",
    "estimate_frequencies",
    "estimate_joint",
    "expand_records",
    "identifiability",
    "posterior_table",
    "record_weights",
    "sanitise_file",
    "sanitise_frame",
]

_HOMES = {
    "ALIP": "notions",
    "LDP": "notions",
    "LIP": "notions",
    "AlphaLift": "notions",
    "Audit": "auditing",
    "Certificate": "mechanisms.result",
    "Channel": "channel",
    "Chi2Lift": "notions",
    "Comparison": "comparison",
    "ComparisonRow": "comparison_rows",
    "Design": "mechanisms.result",
    "Frequencies": "estimation",
    "InputError": "errors",
    "Joint": "joint",
    "JointFrequencies": "estimation_joint",
    "Key": "draws",
    "L1Lift": "notions",
    "MaxLift": "notions",
    "MechdesignError": "errors",
    "MinLift": "notions",
    "NotPrivate": "errors",
    "Notion": "notions",
    "Policy": "policies",
    "SolverFailure": "errors",
    "audit": "auditing",
    "check_release": "sanitise.check_file",
    "compare": "comparison",
    "corrected_regression": "estimation_regression",
    "design": "mechanisms",
    "estimate_frequencies": "estimation",
    "estimate_joint": "estimation_joint",
    "expand_records": "estimation_weights",
    "identifiability": "estimation",
    "posterior_table": "estimation_weights",
    "record_weights": "estimation_weights",
    "sanitise_file": "sanitise.apply_file",
    "sanitise_frame": "sanitise.frame",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'mechdesign' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"mechdesign.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
