"""Back-ends that are absent, fail or must be interrupted."""

from __future__ import annotations

import signal
import sys
import threading
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from solvers import _pivot
from solvers import enumeration as cdd_module
from solvers.enumeration import pivot as pivot_module
from solvers.enumeration import vertices
from solvers.errors import BackendFailure, EmptyPolytope
from tests.oracles.vertices import same_points
from tests.solvers.reference import ratio_polytope
from tests.solvers.test_enumeration import box, lift_box

# ---------------------------------------------------------------- back-ends that are absent or fail


def test_cdd_absent(monkeypatch):
    monkeypatch.setattr(cdd_module, "find_spec", lambda name: None)
    with pytest.raises(
        BackendFailure,
        match="enumeration by cddlib needs pycddlib; install pycddlib-standalone",
    ):
        vertices(lift_box(2, 3, 1.0), "cdd")


def test_exact_cdd_absent(monkeypatch):
    monkeypatch.setattr(cdd_module, "exact_available", lambda: False)
    with pytest.raises(
        BackendFailure,
        match="full pycddlib with GMP, which is not installed: pip uninstall",
    ):
        vertices(lift_box(2, 3, 1.0), "cdd-exact")


def test_exact_is_found_without_importing(monkeypatch):
    monkeypatch.setattr(
        cdd_module,
        "find_spec",
        lambda name: SimpleNamespace() if name == "cdd.gmp" else None,
    )
    assert cdd_module.exact_available()

    def no_cdd_at_all(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(cdd_module, "find_spec", no_cdd_at_all)
    assert not cdd_module.exact_available()


class _RationalsByFloats:
    """The calls of `cdd.gmp`, answered in doubles; insists on exact rationals coming in."""

    def __init__(self) -> None:
        import cdd

        self.plain, self.RepType, self.rows = cdd, cdd.RepType, 0

    def matrix_from_array(self, array, **options):
        assert all(isinstance(x, Fraction) for row in array for x in row)
        self.rows = len(array)
        return self.plain.matrix_from_array(
            [[float(x) for x in row] for row in array], **options
        )

    def polyhedron_from_matrix(self, matrix):
        return self.plain.polyhedron_from_matrix(matrix)

    def copy_generators(self, polyhedron):
        found = self.plain.copy_generators(polyhedron)
        return SimpleNamespace(
            lin_set=found.lin_set,
            array=[[Fraction(x) for x in row] for row in found.array],
        )


@pytest.mark.parametrize(
    "polytope", [lift_box(3, 6, 0.4), ratio_polytope(lift_box(3, 6, 0.4).rows, 1.5)]
)
def test_exact_cdd_goes_through_rationals(monkeypatch, polytope):
    import cdd

    fake = _RationalsByFloats()
    monkeypatch.setattr(cdd_module, "exact_available", lambda: True)
    monkeypatch.setitem(sys.modules, "cdd.gmp", fake)
    monkeypatch.setattr(cdd, "gmp", fake, raising=False)
    result = vertices(polytope, "cdd-exact")
    assert (result.method, result.exact) == ("cdd-exact", True)
    assert same_points(result.points, vertices(polytope, "pivot").points)
    # the equality, six signs, and the rows without auxiliary variables
    assert fake.rows >= 7 + 6
    with pytest.raises(EmptyPolytope):
        vertices(box([[1.0, 2.0]], 3.0, 4.0), "cdd-exact")


def test_cdd_numerical_inconsistency_names_a_way_out():
    """A real one: columns that differ by 1e-9 and less."""
    messages = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        base = rng.random((4, 3))
        p = base[:, rng.integers(0, 3, 7)] * (
            1.0 + 10 ** rng.uniform(-14.0, -8.0) * rng.standard_normal((4, 7))
        )
        p /= p.sum()
        rows = p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)
        try:
            vertices(box(rows, np.exp(-0.3), np.exp(0.3)), "cdd")
        except BackendFailure as error:
            messages.append(str(error))
    assert any("Numerical inconsistency" in m for m in messages)
    assert all("exact cddlib" in m for m in messages)


@pytest.mark.parametrize(
    ("generators", "reason"),
    [
        (
            SimpleNamespace(lin_set=set(), array=[[0.0, 1.0, 0.0]]),
            "it finds rays, and a polytope has none",
        ),
        (
            SimpleNamespace(lin_set=set(), array=[]),
            "it finds no vertex of a polytope that has some",
        ),
    ],
)
def test_cdd_nonsense_is_recognised(monkeypatch, generators, reason):
    import cdd

    monkeypatch.setattr(cdd, "copy_generators", lambda polyhedron: generators)
    with pytest.raises(
        BackendFailure,
        match=rf'cddlib gave up \(enumeration "cdd": {reason}\); choose the enumeration "pivot"',
    ):
        vertices(box([[1.0, 2.0]], 1.0, 1.5), "cdd")


def contradiction(monkeypatch):
    def give_up(polytope, **options):
        raise BackendFailure(
            "pivoting met 1 decisions that rounding makes contradictory"
        )

    monkeypatch.setattr("solvers.enumeration.pivot.attempt", give_up)


def test_auto_falls_back_and_says_so(monkeypatch):
    polytope = lift_box(3, 7, 0.5)
    expected = vertices(polytope, "pivot").points
    contradiction(monkeypatch)
    result = vertices(polytope)
    assert result.method == "cdd"
    assert same_points(result.points, expected)
    with pytest.raises(BackendFailure, match="contradictory"):
        vertices(polytope, "pivot")
    with pytest.raises(BackendFailure, match="contradictory"):
        vertices(lift_box(8, 40, 0.5))  # too many for cddlib


def test_contradictory_rounding_is_said(monkeypatch):
    told = pivot_module.Walk(3, bytearray(), [0], 5, 0, 2)
    monkeypatch.setattr(pivot_module, "walk", lambda *_, **__: told)
    with pytest.raises(
        BackendFailure,
        match="2 decisions that rounding makes contradictory; use exact cddlib",
    ):
        vertices(lift_box(2, 3, 1.0), "pivot")


# ---------------------------------------------------------------- the kernel


@pytest.mark.parametrize(
    "change",
    [{"n": 3}, {"lower": 3}, {"upper": 1}, {"magnitude": 1}, {"bases": 0}, {"most": 0}],
)
def test_kernel_refuses_shapes_that_do_not_fit(change):
    rows = np.ones((2, 4))
    arguments = [
        rows,
        np.ones((change.get("magnitude", 2), 4)),
        np.zeros(change.get("lower", 2)),
        np.ones(change.get("upper", 2)),
        change.get("n", 4),
        change.get("bases", 9),
        change.get("most", 9),
        1e-9,
        True,
        1.0,
    ]
    with pytest.raises(ValueError, match="must be float64 of shapes"):
        _pivot.enumerate_vertices(*arguments)


def test_kernel_runs_in_threads():
    polytope = lift_box(5, 25, 0.5)
    expected = vertices(polytope).points
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(vertices(polytope).points))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for points in found:
        np.testing.assert_array_equal(points, expected)


@pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="no interval timer on this platform"
)
def test_kernel_can_be_interrupted():
    """Ctrl-C, or any signal handler that raises, stops a long walk."""

    class Stop(Exception):
        pass

    def handler(signum, frame):
        raise Stop

    polytope = lift_box(6, 200, 0.5)  # some 10^8 vertices
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Stop):
            _pivot.enumerate_vertices(
                polytope.rows,
                polytope.magnitude,
                polytope.lower,
                polytope.upper,
                200,
                10**7,
                10**7,
                1e-10,
                True,
                60.0,
            )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
