from .average_ways import AverageComparison, compare_average
from .purpose_ways import PurposeComparison, compare_purpose

__all__ = [
    "AverageComparison",
    "PurposeComparison",
    "compare_average",
    "compare_purpose",
]
