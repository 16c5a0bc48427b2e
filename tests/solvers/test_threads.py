"""Searches use one thread of linear algebra, and leave the number of them as it was."""

from __future__ import annotations

import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import mechdesign as md
from mechdesign.mechanisms import designing
from solvers.pace import one_thread

# Its own library is there before the tests limit it.
assert scipy.linalg is not None

OPEN: set[str] = set()
"""Libraries that may have two threads: one that another test has loaded with one stays at it."""


def numbers() -> set[int]:
    """How many threads the libraries of linear algebra may have."""
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["filepath"] in OPEN
    }


@pytest.fixture(autouse=True)
def two_threads():
    """As on a machine of two processors; the suite runs with one."""
    with threadpool_limits(2, "blas"):
        for library in threadpool_info():
            if library["user_api"] == "blas" and library["num_threads"] == 2:
                OPEN.add(library["filepath"])
        assert numbers() == {2}
        yield


@pytest.mark.parametrize("for_scipy", [False, True])
def test_one_thread_inside_and_as_many_as_before_outside(for_scipy):
    with one_thread(for_scipy=for_scipy):
        assert numbers() == {1}
    assert numbers() == {2}


def test_the_number_comes_back_after_an_error():
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert numbers() == {2}


@pytest.mark.parametrize("objective", ["information", "frequencies", "truth"])
def test_a_design_runs_on_one_thread(monkeypatch, objective):
    seen: set[int] = set()
    requested = designing._requested

    def looking(request):
        seen.update(numbers())
        return requested(request)

    monkeypatch.setattr(designing, "_requested", looking)
    joint = md.Joint.from_counts([[4, 2, 1], [1, 2, 4]])
    md.design(joint, md.LIP(0.5), objective=objective)
    assert seen == {1}
    assert numbers() == {2}
