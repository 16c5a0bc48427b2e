"""Work counted while a function runs: no time is measured, so a loaded machine changes nothing."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mechdesign.formats import _rowhash
from mechdesign.release import first_symbols

COUNTED = ("unique", "concatenate", "append", "stack", "argsort", "sort", "isin")
"""The functions of numpy that copy or sort whatever they are given."""


class Work:
    """Elements of arrays that go through numpy's `COUNTED` functions, and steps from slot to slot
    in tables of hashes.
    """

    def __init__(self) -> None:
        self.elements = 0
        self.steps = 0

    def watch(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        """Count the calls that these modules make, and all walks through tables of hashes."""
        for module in modules:
            monkeypatch.setattr(module, "np", _CountingNumpy(self))
        monkeypatch.setattr(first_symbols, "_rowhash", _CountingTable(self))


class _CountingNumpy:
    def __init__(self, work: Work) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name not in COUNTED:
            return function

        def counted(arrays, *arguments, **options):
            parts = arrays if isinstance(arrays, list | tuple) else [arrays]
            self._work.elements += sum(np.size(part) for part in parts)
            return function(arrays, *arguments, **options)

        return counted


class _CountingTable:
    def __init__(self, work: Work) -> None:
        self._work = work

    def look(self, keys, *arguments):
        """The steps of linear probing are the distances of all hashes from their own slots."""
        before = _distances(keys)
        result = _rowhash.look(keys, *arguments)
        self._work.steps += _distances(keys) - before
        return result


def _distances(keys) -> int:
    slots = np.flatnonzero(keys)
    homes = (keys[slots].astype(object) * len(keys)) >> 64
    # A hash that found the end of the table taken went on at its beginning.
    return int(((slots - homes) % len(keys)).sum())
