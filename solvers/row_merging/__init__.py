"""Rows merged into groups that are not smaller than asked."""
