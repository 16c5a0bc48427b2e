import os

from .analysis.estimating import estimate
from .analysis.file_checking import check
from .analysis.frequencies import Frequencies, estimate_frequencies, identifiability
from .analysis.joint_frequencies import JointFrequencies, estimate_joint
from .analysis.regression import corrected_regression
from .analysis.weights import expand_records, posterior_table, record_weights
from .auditing.boxes import BoxAudit
from .auditing.composition import Composition
from .auditing.either import audit
from .auditing.joint_leakage import compose
from .auditing.verdict import Audit
from .channel.box_channel import BoxChannel
from .channel.channel import Channel
from .channel.loading import load
from .comparison.average_ways import AverageComparison, compare_average
from .comparison.purpose_ways import PurposeComparison, compare_purpose
from .comparison.rows import ComparisonRow
from .comparison.run import Comparison, compare
from .core.errors import InputError, MechdesignError, NotPrivate, SolverFailure
from .exporting.export import Export, export
from .frames.sanitising import (
    engine_errors,
    sanitise,
    sanitise_dask,
    sanitise_spark,
    spark_errors,
)
from .frames.transformer import ReleaseTransformer
from .jobs.keys import create_key, read_key
from .jobs.release_file import sanitise_file
from .jobs.results import Applied
from .judging.figures import Judgement
from .judging.judge import judge
from .leaks.assessment import Assessment, assess
from .mechanisms import DesignRequest, design
from .mechanisms.box_result import BoxDesign
from .mechanisms.budget import budget_for
from .mechanisms.queries import Queries
from .mechanisms.result import Certificate, Design
from .nonstochastic.frame_answers import answer_groups
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
from .release.policies import Policy
from .tables.joint import Joint

__version__: str

def report(
    design: Design | Channel | BoxDesign | BoxChannel,
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
    "AverageComparison",
    "BoxAudit",
    "BoxChannel",
    "BoxDesign",
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
    "JointFrequencies",
    "Judgement",
    "Key",
    "L1Lift",
    "MaxLift",
    "MechdesignError",
    "MinLift",
    "NotPrivate",
    "Notion",
    "Policy",
    "PurposeComparison",
    "Queries",
    "ReleaseTransformer",
    "SolverFailure",
    "__version__",
    "answer_groups",
    "assess",
    "audit",
    "budget_for",
    "check",
    "compare",
    "compare_average",
    "compare_purpose",
    "compose",
    "corrected_regression",
    "create_key",
    "design",
    "engine_errors",
    "estimate",
    "estimate_frequencies",
    "estimate_joint",
    "expand_records",
    "export",
    "identifiability",
    "judge",
    "load",
    "posterior_table",
    "read_key",
    "record_weights",
    "report",
    "sanitise",
    "sanitise_dask",
    "sanitise_file",
    "sanitise_spark",
    "spark_errors",
]
