"""Data files in, sanitised data files out."""
