"""Releases of data frames and lazy tables, one module an engine."""
