"""`design`: what is asked for is what is done, limits of time, interruptions, warm starts, records."""

from __future__ import annotations

import math
import re
import signal
import time
from dataclasses import asdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.request import MECHANISMS
from mechdesign.notions import ALIP, LDP, LIP
from mechdesign.tables.joint import Joint
from tests.cases.designs import is_private, uniform_table

SIZE_OF_A_LONG_SEARCH = (200, 15)
"""Symbols of a table on which a search takes seconds, however fast the machine is."""


DIGITS = 1e-5
"""Progress lines have five decimals."""


@pytest.fixture(scope="module")
def long_search():
    """A table and a budget whose search takes many seconds."""
    return uniform_table(*SIZE_OF_A_LONG_SEARCH), ALIP.from_epsilon(1.0)


def test_the_mechanisms_of_the_interface():
    assert {"optimal", "subset-response", "subset-merging", "complete-merging"} <= set(
        MECHANISMS
    )


def test_an_unknown_mechanism_is_refused(adult):
    with pytest.raises(
        InputError,
        match=r"mechanism \('best'\) must be one of optimal, subset-response",
    ):
        design(adult, LIP(1.0), mechanism="best")


@pytest.mark.parametrize("mechanism", ["subset-merging", "complete-merging"])
def test_heuristics_have_no_bound_and_no_fallback(adult, mechanism):
    found = design(adult, LIP(1.0), mechanism=mechanism)
    assert (found.mechanism, found.method, found.fallback_from) == (
        mechanism,
        "partition",
        None,
    )
    assert (found.certificate.upper_bound_nmi, found.certificate.gap_nmi) == (
        None,
        None,
    )
    assert is_private(found, adult)


def test_the_optimum_keeps_at_least_what_the_heuristics_keep(adult):
    for notion in (ALIP.from_epsilon(0.5), LIP(1.0), LDP(2.0)):
        best = design(adult, notion)
        for mechanism in ("subset-merging", "complete-merging"):
            assert (
                design(adult, notion, mechanism=mechanism).nmi
                <= best.certificate.upper_bound_nmi
            )
            assert design(adult, notion, mechanism=mechanism).nmi <= best.nmi + 1e-4


@pytest.mark.parametrize("method", ["vertices", "columns"])
def test_a_design_carries_what_was_asked_for_and_found(adult, method, tmp_path):
    notion = ALIP(0.7, 0.4)
    found = design(adult, notion, method=method)
    record = found.channel.record
    assert (found.mechanism, found.method, found.fallback_from) == (
        "optimal",
        method,
        None,
    )
    assert (found.notion, found.verified, found.repaired, found.borrowed) == (
        notion,
        True,
        False,
        (),
    )
    assert found.outputs == len(found.channel.outputs) == len(found.channel.rows[0])
    assert record.notion == {"name": "alip", "eps_l": 0.7, "eps_u": 0.4}
    assert (
        record.achieved
        == asdict(found.achieved)
        == asdict(audit_on_table(found.channel, adult, notion).achieved)
    )
    assert record.utility == {
        "nmi": found.nmi, "mutual_information": found.mutual_information, "entropy": found.entropy,
    }  # fmt: skip
    certificate = found.certificate
    assert record.certificate["upper_bound_nmi"] == certificate.upper_bound_nmi
    assert record.certificate["gap_nmi"] == certificate.gap_nmi
    assert record.certificate["scope"] == certificate.scope == "proven"
    assert record.provenance["mechanism"] == "optimal"
    assert record.provenance["method"] == method
    assert 0.0 < found.seconds < 100.0
    found.channel.save(tmp_path / "channel.json")
    assert Channel.load(tmp_path / "channel.json") == found.channel


@pytest.mark.parametrize("method", ["vertices", "columns"])
def test_the_same_call_gives_the_same_integers(method):
    joint = uniform_table(20)
    notion = ALIP.from_epsilon(0.7, 0.65)
    one, other = (design(joint, notion, method=method) for _ in range(2))
    assert one.channel.rows == other.channel.rows
    assert one.channel.outputs == other.channel.outputs
    assert one.certificate.upper_bound_nmi == other.certificate.upper_bound_nmi
    assert one.certificate.details["nodes"] == other.certificate.details["nodes"]


def test_two_workers_prove_the_same_optimum():
    joint, notion = uniform_table(40), ALIP.from_epsilon(0.7)
    one = design(joint, notion, method="columns", gap=1e-5)
    two = design(joint, notion, method="columns", gap=1e-5, workers=2)
    assert two.nmi == pytest.approx(one.nmi, abs=1e-5)
    assert two.certificate.gap_nmi <= 1e-5
    assert two.certificate.upper_bound_nmi >= one.nmi
    assert is_private(two, joint)


@pytest.mark.parametrize("method", ["auto", "vertices", "columns"])
@pytest.mark.parametrize("time_limit", [0.0, 1e-9, 1e-3])
def test_no_time_at_all_still_gives_a_verified_channel(adult, method, time_limit):
    found = design(
        adult,
        ALIP.from_epsilon(1.0),
        method=method,
        time_limit=time_limit,
        fallback=False,
    )
    assert is_private(found, adult)
    assert found.certificate.upper_bound_nmi >= 0.8508
    assert found.certificate.gap_nmi >= found.certificate.upper_bound_nmi - found.nmi
    if found.certificate.gap_nmi > 1e-4:
        assert found.messages == (
            "the search ended early (time limit reached: allow more seconds or a larger gap); the limit is "
            f"{time_limit:g} s a search, and this is the best channel verified within it, with its proven gap",
        )


def test_without_time_the_columns_are_those_of_subset_merging(adult):
    """Its blocks are the first feasible channel, so nothing is ever worse than the fallback."""
    found = design(adult, ALIP.from_epsilon(1.0), method="columns", time_limit=0.0)
    merged = design(adult, ALIP.from_epsilon(1.0), mechanism="subset-merging")
    assert found.nmi >= merged.nmi - 1e-12
    assert (found.mechanism, found.fallback_from) == ("optimal", None)


def test_a_time_limit_ends_a_long_search_with_a_proven_gap(long_search):
    joint, notion = long_search
    found = design(joint, notion, time_limit=0.3)
    merged = design(joint, notion, mechanism="subset-merging")
    assert found.nmi >= merged.nmi
    assert found.certificate.scope == "proven"
    assert 1e-4 < found.certificate.gap_nmi < 1.0 - merged.nmi
    assert "time limit reached" in found.messages[0]
    assert audit_on_table(found.channel, joint, notion).satisfied


def test_ctrl_c_from_the_progress_line_ends_with_the_best_channel(long_search):
    joint, notion = long_search
    lines = []

    def interrupt(line):
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    found = design(joint, notion, progress=interrupt)
    assert found.messages == ("the search ended early (interrupted)",)
    assert found.certificate.gap_nmi > 1e-4
    assert found.certificate.upper_bound_nmi >= found.nmi
    assert audit_on_table(found.channel, joint, notion).satisfied
    assert len(lines) == 3
    assert str(lines[0]).startswith("utility 0.")


@pytest.mark.parametrize("method", ["vertices", "columns"])
def test_ctrl_c_at_the_first_word_still_gives_a_verified_channel(adult, method):
    def interrupt(_):
        raise KeyboardInterrupt

    found = design(adult, ALIP.from_epsilon(1.0), method=method, progress=interrupt)
    assert is_private(found, adult)
    assert found.certificate.upper_bound_nmi >= 0.8508


@pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="the platform has no interval timer"
)
def test_a_real_signal_in_the_middle_of_the_search_ends_with_the_best_channel(
    long_search,
):
    """Ctrl-C arrives between any two instructions; the timer starts when the search does."""
    joint, notion = long_search

    def ctrl_c(*_):
        raise KeyboardInterrupt

    waiting = [0.05]

    def arm(_):
        if waiting:
            signal.setitimer(signal.ITIMER_REAL, waiting.pop())

    before = signal.signal(signal.SIGALRM, ctrl_c)
    try:
        found = design(joint, notion, progress=arm)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert found.messages == ("the search ended early (interrupted)",)
    assert audit_on_table(found.channel, joint, notion).satisfied
    assert found.certificate.upper_bound_nmi - found.nmi <= found.certificate.gap_nmi


def test_progress_tells_utility_bound_and_gap_and_never_promises_too_much():
    lines = []
    found = design(
        uniform_table(60),
        ALIP.from_epsilon(0.5),
        method="columns",
        progress=lines.append,
    )
    shown = re.compile(
        r"utility (-?[\d.]+), at most ([\d.]+), gap ([\d.e+-]+) \(\d+ columns, \d+ nodes\)"
    )
    numbers = [tuple(map(float, shown.fullmatch(str(line)).groups())) for line in lines]
    assert len(numbers) >= 2
    for (low, high, gap), (later, lower, _) in pairwise(numbers):
        assert low <= later + DIGITS
        assert lower <= high + DIGITS
        assert gap == pytest.approx(high - low, abs=0.05 * gap + 2 * DIGITS)
    exact = [
        (line.figures["nmi"], line.figures["upper_bound_nmi"], line.figures["gap_nmi"])
        for line in lines
    ]
    assert np.allclose(exact, numbers, rtol=0.05, atol=DIGITS)
    assert all(low <= found.nmi + DIGITS for low, _, _ in numbers)
    assert all(high >= found.nmi - DIGITS for _, high, _ in numbers)


def test_a_warm_start_gives_the_same_answers_in_no_more_rounds():
    """A sweep over neighbouring budgets: columns and prices of the last one are the start of the next."""
    joint = uniform_table(60)
    cold, warm, last = [], [], None
    for epsilon in (0.8, 0.85, 0.9, 0.95, 1.0):
        notion = ALIP.from_epsilon(epsilon)
        alone = design(joint, notion, method="columns")
        last = design(joint, notion, method="columns", start=last)
        assert last.nmi == pytest.approx(alone.nmi, abs=1e-4)
        assert last.certificate.gap_nmi <= 1e-4
        assert last.certificate.upper_bound_nmi >= alone.nmi
        assert audit_on_table(last.channel, joint, notion).satisfied
        cold.append(alone.certificate.details["rounds"])
        warm.append(last.certificate.details["rounds"])
    assert sum(warm[1:]) < sum(cold[1:])


def test_a_warm_start_across_notions_and_far_budgets_does_no_harm(adult):
    start = design(adult, ALIP.from_epsilon(4.0), method="columns")
    for notion in (ALIP.from_epsilon(0.2), LDP(1.0), LIP(0.5)):
        found = design(adult, notion, start=start, method="columns")
        alone = design(adult, notion, method="columns")
        assert found.nmi == pytest.approx(alone.nmi, abs=1e-4)
        assert is_private(found, adult)


def test_a_start_without_columns_or_of_another_table_is_left_aside(adult):
    notion = ALIP.from_epsilon(1.0)
    alone = design(adult, notion)
    for start in (
        design(adult, notion, mechanism="subset-merging"),
        design(adult, ALIP(math.inf, 50.0)),  # published as it is
        design(uniform_table(9), notion),
    ):
        assert design(adult, notion, start=start).nmi == pytest.approx(
            alone.nmi, abs=1e-9
        )


def test_a_start_of_another_table_with_as_many_symbols_does_no_harm(adult):
    notion = ALIP.from_epsilon(1.0)
    found = design(
        adult, notion, start=design(uniform_table(15), notion), method="columns"
    )
    assert found.nmi == pytest.approx(0.8508, abs=1e-4)
    assert found.certificate.upper_bound_nmi >= 0.8508
    assert is_private(found, adult)


def test_probabilities_and_huge_counts_are_designed_like_small_ones():
    """A table, its multiple by 10^60 and its probabilities are the same joint distribution."""
    counts = np.array([[12, 5, 9, 3], [3, 30, 2, 7], [8, 8, 1, 20]])
    notion = ALIP.from_epsilon(0.9)
    plain = design(Joint.from_counts(counts), notion)
    huge = design(Joint.from_counts((counts.astype(object) * 10**60).tolist()), notion)
    assert huge.channel.rows == plain.channel.rows
    shares = Joint.from_probabilities(
        [[Fraction(c, 108) for c in row] for row in counts.tolist()]
    )
    assert design(shares, notion).channel.rows == plain.channel.rows


def test_seconds_include_the_whole_of_a_design(adult):
    started = time.process_time()
    found = design(adult, ALIP.from_epsilon(1.0))
    assert 0.0 < found.seconds <= time.process_time() - started
