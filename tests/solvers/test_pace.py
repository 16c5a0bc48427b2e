"""Seconds by the clock for seconds of processor time."""

from __future__ import annotations

import math
import os
import time

import pytest

from solvers import pace


@pytest.mark.parametrize("load", [0.0, 1.0, 2.0])
def test_an_idle_machine_is_as_fast_as_its_clock(monkeypatch, load):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert pace.passing(3.0) == 3.0


def test_a_busy_machine_has_more_time_within_bounds(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    # Nothing is measured yet.
    monkeypatch.setattr(pace, "_measured", pace._Measured())
    monkeypatch.setattr(os, "getloadavg", lambda: (8.0, 0.0, 0.0))
    assert pace.passing(3.0) == 3.0 * 4.0 * pace.ROOM
    monkeypatch.setattr(os, "getloadavg", lambda: (1e9, 0.0, 0.0))
    assert pace.passing(3.0) == 3.0 * pace.SLOWEST


def test_a_process_that_has_more_than_its_share_gets_no_more_time(monkeypatch):
    """At a load of six on each processor a program ran for 21 s in place of one."""
    used = iter([10.0, 10.1, 12.0, 12.1, 14.0])
    passed = iter([100.0, 104.0, 104.0])
    monkeypatch.setattr(pace.time, "process_time", lambda: next(used))
    monkeypatch.setattr(pace.time, "perf_counter", lambda: next(passed))
    monkeypatch.setattr(pace, "_measured", pace._Measured())
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (12.0, 0.0, 0.0))
    # A tenth of a second says nothing, two seconds in four by the clock do.
    assert pace.passing(1.0) == 6.0 * pace.ROOM
    assert pace.passing(1.0) == 2.0 * pace.ROOM
    assert pace.passing(1.0) == 2.0 * pace.ROOM
    # Several threads use more than passes by.
    assert pace.passing(1.0) == pace.ROOM


def test_no_limit_stays_none_and_what_is_over_is_over():
    assert pace.passing(math.inf) == math.inf
    assert pace.passing(-1.0) == pace.passing(-math.inf) == 0.0


def test_a_system_that_does_not_tell_its_load(monkeypatch):
    def unknown():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", unknown)
    assert pace.passing(3.0) == 3.0


def test_a_limit_counts_from_now_in_processor_time():
    assert pace.end_of(None) == math.inf
    earliest = time.process_time() + 2.0
    assert earliest <= pace.end_of(2.0) <= time.process_time() + 2.0
