"""Releases of data files: a file appears whole or not at all, and every draw can be repeated."""
