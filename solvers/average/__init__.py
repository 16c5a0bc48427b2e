"""Channels within budgets on averages, and of least leakage."""
