"""Time and peak memory against the number of useful symbols, and enumeration against float cddlib."""

from __future__ import annotations

import pytest

from tests.benchmarks.measuring import isolated, seconds, table

pytestmark = pytest.mark.benchmark

EPSILON, SENSITIVE = 2.0, 5

PATIENCE = 120.0
"""Seconds after which a peer is given up."""


def test_enumeration_of_50_symbols():
    """|X| = 50, |S| = 5, epsilon 2, at least 25 times faster than float cddlib (which takes half a minute)."""
    ours = isolated("enumeration", n=50, m=SENSITIVE, epsilon=EPSILON)
    peer = isolated("enumeration", n=50, m=SENSITIVE, epsilon=EPSILON, peer=True)
    rows = [
        [
            name,
            str(run["vertices"]),
            seconds(run["cpu"]),
            seconds(run["wall"]),
            f"{run['memory']:.0f}",
        ]
        for name, run in (("float cddlib", peer), ("pivot", ours))
    ]
    table(
        "All vertices at |X| = 50, |S| = 5, epsilon 2",
        ["enumeration", "vertices", "processor s", "wall s", "peak MiB"],
        rows,
    )
    print(f"\ntimes faster: {peer['cpu'] / ours['cpu']:.0f}")
    assert ours["vertices"] == peer["vertices"]
    assert ours["cpu"] * 25.0 <= peer["cpu"]


def test_time_and_memory_against_the_number_of_symbols():
    """|X| from 10 to 200 at |S| = 5; a process per number. The start of Python alone takes about 60 MiB."""
    rows = []
    for n in (10, 20, 30, 50, 75, 100, 150, 200):
        best = isolated("design", n=n, m=SENSITIVE, epsilon=EPSILON)
        listed = isolated(
            "design",
            n=n,
            m=SENSITIVE,
            epsilon=EPSILON,
            method="vertices",
            timeout=PATIENCE,
        )
        peer = (
            isolated("enumeration", n=n, m=SENSITIVE, epsilon=EPSILON, peer=True)
            if n <= 30
            else None
        )
        assert best["gap"] <= 1e-4
        rows.append(
            [
                str(n),
                best["method"],
                seconds(best["wall"]),
                f"{best['memory'] - best['before']:.0f}",
                *(
                    ["-", "-", "-"]
                    if listed is None or "refused" in listed
                    else [
                        str(listed["vertices"]),
                        seconds(listed["wall"]),
                        f"{listed['memory'] - listed['before']:.0f}",
                    ]
                ),
                "-" if peer is None else seconds(peer["wall"]),
            ]
        )
    table(
        "design at |S| = 5, epsilon 2, gap 1e-4; seconds, and MiB on top of what Python and its libraries take",
        [
            "|X|",
            "auto chose",
            "s",
            "MiB",
            "vertices",
            "s by vertices",
            "MiB by vertices",
            "s of cddlib alone",
        ],
        rows,
    )
