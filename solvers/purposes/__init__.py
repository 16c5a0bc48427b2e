"""Channels for a task or for queries."""
