"""Tasks that a fresh process imports by their names."""

from __future__ import annotations

import time


def endless(table, choice, say):
    """A search that ends only with its process."""
    say("one step")
    while True:
        time.sleep(60)


def broken(table, choice, say):
    """A defect whose message quotes a cell."""
    raise KeyError(table.frame["illness"][0].as_py())
