import os

from .analysis.estimating import estimate
from .analysis.file_checking import check
from .analysis.frequencies import Frequencies, estimate_frequencies
from .auditing.composition import Composition
from .auditing.either import audit
from .auditing.joint_leakage import compose
from .auditing.verdict import Audit
from .channel.channel import Channel
from .channel.file import load
from .comparison.rows import ComparisonRow
from .comparison.run import Comparison, compare
from .core.errors import InputError, MechdesignError, NotPrivate, SolverFailure
from .exporting.export import Export, export
from .frames.sanitising import engine_errors, sanitise
from .frames.transformer import ReleaseTransformer
from .jobs.keys import create_key, read_key
from .jobs.options import Applied
from .jobs.release_file import sanitise_file
from .judging.figures import Judgement
from .judging.judge import judge
from .leaks.assessment import Assessment, assess
from .mechanisms import DesignRequest, design
from .mechanisms.budget import budget_for
from .mechanisms.queries import Queries
from .mechanisms.result import Certificate, Design
from .notions import (
    ALIP,
    KL,
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
from .release.samplers import Policy
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
    "KL",
    "LDP",
    "LIP",
    "AlphaLift",
    "Applied",
    "Assessment",
    "Audit",
    "Certificate",
    "Channel",
    "Chi2Lift",
    "Comparison",
    "ComparisonRow",
    "Composition",
    "Design",
    "DesignRequest",
    "Export",
    "Frequencies",
    "InputError",
    "Joint",
    "Judgement",
    "Key",
    "L1Lift",
    "MaxLift",
    "MechdesignError",
    "MinLift",
    "NotPrivate",
    "Notion",
    "Policy",
    "Queries",
    "ReleaseTransformer",
    "SolverFailure",
    "__version__",
    "assess",
    "audit",
    "budget_for",
    "check",
    "compare",
    "compose",
    "create_key",
    "design",
    "engine_errors",
    "estimate",
    "estimate_frequencies",
    "export",
    "judge",
    "load",
    "read_key",
    "report",
    "sanitise",
    "sanitise_file",
]
