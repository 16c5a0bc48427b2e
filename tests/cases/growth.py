"""Work counted while a function runs: no time is measured, so a loaded machine changes nothing."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mechdesign.formats import _rowhash
from mechdesign.release import identified_draws

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
        monkeypatch.setattr(identified_draws, "_rowhash", _CountingTable(self))


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
    size = np.uint64(len(keys))
    half = np.uint64(32)
    high, low = keys[slots] >> half, keys[slots] & np.uint64(2**32 - 1)
    # The upper word of the product of a hash and the size, which has less than 32 bits.
    homes = (high * size + (low * size >> half)) >> half
    # A hash that found the end of the table taken went on at its beginning.
    return int(((slots - homes.astype(np.int64)) % len(keys)).sum())


MOST_GROWTH = 2.5
"""Twice the records may cost a little more than twice as much: tables double, sorting has a
logarithm. A pass that is quadratic costs four times as much.
"""

BYTES_OF_A_RECORD = 24
"""What a record may add to the memory of a pass that keeps none: buffers are not all as full. A
Python object for each record, or some numbers of 8 bytes, take more.
"""


def assert_linear(works: Sequence[float]) -> None:
    """Each work is for twice the records of the one before."""
    for smaller, larger in pairwise(works):
        assert 0 < larger <= MOST_GROWTH * smaller, works


def assert_bounded(peaks: Sequence[float], records: Sequence[int]) -> None:
    """The peaks of memory for so many records do not depend on these."""
    # The smallest file may not have filled all buffers yet.
    added = (peaks[-1] - peaks[-2]) / (records[-1] - records[-2])
    assert added <= BYTES_OF_A_RECORD, peaks


@dataclass(frozen=True)
class Cost:
    """What a function took: calls of functions, elements that were copied or sorted, and the
    largest memory of Python and numpy in bytes.
    """

    calls: int
    elements: int
    peak: int


def peak_of(function: Callable[[], object]) -> int:
    """Run a function; the largest memory of Python and numpy in bytes."""
    tracemalloc.start()
    try:
        function()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak


def calls_of(function: Callable[[], object]) -> int:
    """Run a function; how many functions were called and left."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


def cost_of(function: Callable[[], object]) -> Cost:
    """Run a function twice, once for its memory: counting calls takes memory, too."""
    peak = peak_of(function)
    work = Work()
    with pytest.MonkeyPatch.context() as patch:
        loaded = [
            module
            for name, module in sorted(sys.modules.items())
            if name.startswith("mechdesign.") and getattr(module, "np", None) is np
        ]
        work.watch(patch, *loaded)
        calls = calls_of(function)
    return Cost(calls, work.elements, peak)
