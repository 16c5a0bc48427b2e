import os

from .analysis.files import check_release
from .analysis.frequencies import Frequencies, estimate_frequencies, identifiability
from .analysis.joint_frequencies import JointFrequencies, estimate_joint
from .analysis.weights import (
    corrected_regression,
    expand_records,
    posterior_table,
    record_weights,
)
from .auditing.joint_leakage import Composition, compose
from .auditing.population import audit
from .auditing.verdict import Audit
from .channel.channel import Channel
from .comparison.rows import ComparisonRow
from .comparison.run import Comparison, compare
from .core.errors import InputError, MechdesignError, NotPrivate, SolverFailure
from .mechanisms import design
from .mechanisms.budget import budget_for
from .mechanisms.result import Certificate, Design
from .notions import (
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
from .release.draws import Key
from .release.policies import Policy
from .sanitise.apply import sanitise_file
from .sanitise.streams import sanitise_frame
from .tables.joint import Joint

__version__: str

def report(
    design: Design | Channel,
    path: str | os.PathLike[str],
    *,
    public: bool = False,
    curve: float | None = None,
    overwrite: bool = False,
) -> None: ...

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
    "Composition",
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
    "budget_for",
    "check_release",
    "compare",
    "compose",
    "corrected_regression",
    "design",
    "estimate_frequencies",
    "estimate_joint",
    "expand_records",
    "identifiability",
    "posterior_table",
    "record_weights",
    "report",
    "sanitise_file",
    "sanitise_frame",
]
