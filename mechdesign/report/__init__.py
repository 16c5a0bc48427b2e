"""Texts and plain records for people and programs: read results, compute nothing."""
