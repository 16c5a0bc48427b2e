"""Mechanisms against each other over budgets."""
