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
    from mechdesign.analysis.check_file import check_release
    from mechdesign.analysis.frequencies import (
        Frequencies,
        JointFrequencies,
        estimate_frequencies,
        estimate_joint,
        identifiability,
    )
    from mechdesign.analysis.weights import (
        corrected_regression,
        expand_records,
        posterior_table,
        record_weights,
    )
    from mechdesign.auditing.verdict import Audit, audit
    from mechdesign.channel.channel import Channel
    from mechdesign.comparison.rows import ComparisonRow
    from mechdesign.comparison.run import Comparison, compare
    from mechdesign.core.errors import InputError, MechdesignError, NotPrivate, SolverFailure
    from mechdesign.mechanisms import design
    from mechdesign.mechanisms.result import Certificate, Design
    from mechdesign.notions import ALIP, LDP, LIP, AlphaLift, Chi2Lift, L1Lift, MaxLift, MinLift, Notion
    from mechdesign.release.draws import Key
    from mechdesign.release.policies import Policy
    from mechdesign.sanitise.apply import sanitise_file
    from mechdesign.sanitise.frames import sanitise_frame
    from mechdesign.tables.joint import Joint

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
    "Audit": "auditing.verdict",
    "Certificate": "mechanisms.result",
    "Channel": "channel.channel",
    "Chi2Lift": "notions",
    "Comparison": "comparison.run",
    "ComparisonRow": "comparison.rows",
    "Design": "mechanisms.result",
    "Frequencies": "analysis.frequencies",
    "InputError": "core.errors",
    "Joint": "tables.joint",
    "JointFrequencies": "analysis.frequencies",
    "Key": "release.draws",
    "L1Lift": "notions",
    "MaxLift": "notions",
    "MechdesignError": "core.errors",
    "MinLift": "notions",
    "NotPrivate": "core.errors",
    "Notion": "notions",
    "Policy": "release.policies",
    "SolverFailure": "core.errors",
    "audit": "auditing.verdict",
    "check_release": "analysis.check_file",
    "compare": "comparison.run",
    "corrected_regression": "analysis.weights",
    "design": "mechanisms",
    "estimate_frequencies": "analysis.frequencies",
    "estimate_joint": "analysis.frequencies",
    "expand_records": "analysis.weights",
    "identifiability": "analysis.frequencies",
    "posterior_table": "analysis.weights",
    "record_weights": "analysis.weights",
    "sanitise_file": "sanitise.apply",
    "sanitise_frame": "sanitise.frames",
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
