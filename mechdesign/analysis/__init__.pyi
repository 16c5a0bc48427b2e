from .file_checking import check
from .frequencies import Frequencies, estimate_frequencies, identifiability
from .joint_frequencies import JointFrequencies, estimate_joint
from .weights import (
    CellPosteriors,
    ExpandedRecords,
    PosteriorTable,
    Regression,
    corrected_regression,
    expand_records,
    posterior_table,
    record_weights,
    row_posteriors,
)

__all__ = [
    "CellPosteriors",
    "ExpandedRecords",
    "Frequencies",
    "JointFrequencies",
    "PosteriorTable",
    "Regression",
    "check",
    "corrected_regression",
    "estimate_frequencies",
    "estimate_joint",
    "expand_records",
    "identifiability",
    "posterior_table",
    "record_weights",
    "row_posteriors",
]
