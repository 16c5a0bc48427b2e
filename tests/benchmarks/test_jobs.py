"""The machinery of the benchmarks works, on sizes that take no time; this one runs by default."""

from __future__ import annotations

import pytest

from tests.benchmarks.measuring import (
    Timing,
    alternately,
    isolated,
    seconds,
    table,
    timed,
)

pytest.importorskip("resource", reason="peak memory is measured with it")


def test_a_design_in_a_process_of_its_own():
    run = isolated("design", n=6, m=3, epsilon=1.0)
    assert run["gap"] == pytest.approx(run["upper"] - run["nmi"], abs=1e-12)
    assert 0.0 < run["cpu"] < 60.0
    assert run["memory"] >= run["before"] > 10.0


@pytest.mark.slow
def test_both_enumerations_find_the_same_number():
    ours, peer = (
        isolated("enumeration", n=6, m=3, epsilon=1.0, peer=peer)
        for peer in (False, True)
    )
    assert ours["vertices"] == peer["vertices"] > 0


def test_a_process_that_does_not_end_is_given_up():
    assert isolated("design", timeout=0.01, n=6, m=3, epsilon=1.0) is None


def test_the_least_time_counts_and_calls_take_turns():
    order = []
    one, two = alternately(
        [lambda: order.append("a"), lambda: order.append("b") or 7], repeats=2
    )
    assert order == ["a", "b", "a", "b"]
    assert two.result == 7
    assert timed(lambda: None).wall <= 1.0
    assert (one + two).cpu == one.cpu + two.cpu
    assert Timing(1.0, 2.0) + Timing(3.0, 4.0) == Timing(4.0, 6.0)


def test_tables_are_markdown(capsys):
    table("Title", ["a", "b"], [["1", "2"]])
    assert capsys.readouterr().out.splitlines()[2:] == [
        "Title",
        "",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 |",
    ]
    assert [seconds(v) for v in (0.012345, 3.14159, 123.4, None)] == [
        "0.0123",
        "3.14",
        "123",
        "-",
    ]
