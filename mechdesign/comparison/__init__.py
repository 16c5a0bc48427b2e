"""Comparisons of mechanisms over budgets: runs, curves of reports, and recommendations."""
