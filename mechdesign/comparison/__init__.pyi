from .ways import AverageComparison, PurposeComparison, compare_average, compare_purpose

__all__ = [
    "AverageComparison",
    "PurposeComparison",
    "compare_average",
    "compare_purpose",
]
