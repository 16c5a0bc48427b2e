"""Who lists the vertices makes no difference to the optimum."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import mechdesign as md
from mechdesign.core.errors import InputError
from solvers import Polytope, lower_envelope
from solvers.enumeration import exact_available
from solvers.errors import InvalidOption

BACK_ENDS = ["auto", "pivot", "pycddlib"] + ["pycddlib-exact"] * exact_available()

NUMERICAL = 1e-9
"""What the optima may differ by: the same vertices, in doubles, and integers of the same size."""

GAP = 1e-7


def tables():
    chance = np.random.default_rng(20)
    yield [[3, 1, 1, 1], [1, 1, 3, 1]]
    for shape in ((2, 5), (3, 6), (4, 7), (5, 6)):
        yield chance.integers(1, 60, shape).tolist()
    yield (
        chance.integers(0, 3, (3, 6)) * chance.integers(1, 40, (3, 6))
        + np.eye(3, 6, dtype=int)
    ).tolist()


@pytest.mark.parametrize("counts", list(tables()), ids=str)
@pytest.mark.parametrize(
    "notion", [md.ALIP(0.4, 0.3), md.LIP(0.3), md.MaxLift(0.3)], ids=repr
)
def test_every_back_end_finds_the_optimum(counts, notion):
    """|nmi(a) - nmi(b)| <= proven gap + rounding, for any two back-ends, and each says who it was."""
    joint = md.Joint.from_counts(counts)
    reference = md.design(joint, notion, method="columns", gap=GAP)
    for name in BACK_ENDS:
        found = md.design(joint, notion, method="vertices", enumerate=name, gap=GAP)
        assert found.verified
        assert abs(found.nmi - reference.nmi) <= GAP + NUMERICAL
        if found.method == "vertices":
            used = {
                "auto": "pivot",
                "pivot": "pivot",
                "pycddlib": "cdd",
                "pycddlib-exact": "cdd-exact",
            }
            assert found.certificate.details["enumeration"] == used[name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"enumerate": "cdd", "method": "vertices"},
            "enumerate [(]'cdd'[)] must be one of auto, pivot, pycddlib, p",
        ),
        (
            {"enumerate": "pivot"},
            "needs the method vertices [(]method='vertices'[)], not auto",
        ),
        (
            {"enumerate": "pycddlib", "method": "columns"},
            "needs the method vertices .*, not columns",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        md.design(md.Joint.from_counts([[3, 1], [1, 3]]), md.LIP(0.3), **options)


def test_an_exact_back_end_that_is_not_installed_is_said_before_any_work(monkeypatch):
    monkeypatch.setattr(
        import_module("mechdesign.mechanisms.search_options"),
        "exact_available",
        lambda: False,
    )
    joint = md.Joint.from_counts([[3, 1], [1, 3]])
    with pytest.raises(
        InputError,
        match="needs the full pycddlib with GMP, which is not installed: pip uninstall",
    ):
        md.design(joint, md.LIP(0.3), method="vertices", enumerate="pycddlib-exact")


def test_the_solver_refuses_an_enumeration_that_would_not_be_used():
    half = Polytope(np.array([[1.0, 0.0]]), np.array([0.0]), np.array([1.0]))
    with pytest.raises(InvalidOption, match="needs method='vertices'"):
        lower_envelope(half, [0.5, 0.5], enumeration="pivot")
