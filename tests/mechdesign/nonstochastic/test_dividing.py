"""A total budget divided by size of group: the least error by brute force, and a total that is
never more than told.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import dividing, interval
from mechdesign.nonstochastic.claims import read_verified, verify_file
from mechdesign.nonstochastic.dividing import largest_product, least_error, worst_errors
from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism
from mechdesign.nonstochastic.noiseless import epsilon_for, lay_out, outputs_allowed
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from mechdesign.nonstochastic.queries import build_query
from tests.cases.documents import rewrite
from tests.profiles import scaled


@pytest.mark.parametrize("query", ["mean", "sum", "median", "max", "count"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 60])
def test_the_error_of_a_layout_is_known_without_laying_it_out(query, size):
    found = build_query(query, size, interval(0, 1))
    lo, hi = found.range
    sensitivity = min(found.sensitivity, hi - lo)
    outputs = np.array([1, 2, 3, 4, 5, 9, 20])
    laid = [
        lay_out(lo, hi, sensitivity, k, "widest").worst_error / (hi - lo)
        for k in outputs.tolist()
    ]
    assert worst_errors(outputs, (hi - lo) // sensitivity) == pytest.approx(
        [*map(float, laid)], rel=1e-12
    )


def test_errors_where_a_layout_makes_no_more_cells():
    """The mean of 50,000 with 5 outputs: 100,000 cells and no more."""
    quantizer = lay_out(Fraction(0), Fraction(1), Fraction(1, 50_000), 5, "widest")
    assert worst_errors(np.array([5]), 50_000)[0] == pytest.approx(
        float(quantizer.worst_error)
    )


@st.composite
def cases(draw):
    sizes = draw(st.integers(1, 3))

    def row(numbers):
        return st.lists(numbers, min_size=sizes, max_size=sizes)

    patterns = np.array(draw(st.lists(row(st.integers(0, 2)), min_size=1, max_size=4)))
    # Every size has an answer: one more individual takes part in those that nobody has.
    without = patterns.sum(axis=0) == 0
    patterns = np.vstack([patterns, without.astype(int)])
    patterns = patterns[patterns.any(axis=1)]
    total = draw(st.integers(2, 60))
    weights = np.array(draw(row(st.integers(1, 9))))
    ratios = np.array(draw(row(st.integers(1, 40))))
    return patterns, total, lambda s, k: weights[s] * worst_errors(k, ratios[s])


def equal_share(patterns, total):
    most = int(patterns.sum(axis=1).max())
    share = 1
    while (share + 1) ** most <= total:
        share += 1
    return [share] * patterns.shape[1]


def products(patterns, choices):
    """(individuals, choices) the outputs of all answers of each individual together."""
    return np.array([np.prod(choices**row, axis=1) for row in patterns])


def least_by_brute_force(patterns, total, error, fewest=1):
    sizes = patterns.shape[1]
    choices = np.array([*itertools.product(range(fewest, total + 1), repeat=sizes)])
    allowed = products(patterns, choices).max(axis=0) <= total
    return float(error(np.arange(sizes), choices[allowed]).sum(axis=1).min())


def assert_least(case, fewest=1):
    patterns, total, error = case
    shares = equal_share(patterns, total)
    fewest = min(fewest, shares[0])
    outputs, bound = least_error(error, patterns, total, shares, fewest=fewest)
    assert min(outputs) >= fewest
    largest = products(patterns, np.array([outputs])).max()
    assert largest_product(patterns, outputs)[1] == largest <= total
    paid = float(error(np.arange(len(outputs)), np.array(outputs)).sum())
    least = least_by_brute_force(patterns, total, error, fewest)
    assert paid == bound == pytest.approx(least, rel=1e-9)


@settings(max_examples=scaled(25), deadline=None)
@given(cases())
def test_the_error_is_the_least_of_all_choices(case):
    """All vectors of outputs whose product is at most the total for everybody are tried."""
    assert_least(case)


@settings(max_examples=scaled(8), deadline=None)
@given(cases())
def test_nobody_has_less_than_an_equal_share_by_the_split_lifted(case):
    assert_least(case, equal_share(case[0], case[1])[0])


def test_products_that_doubles_do_not_tell_from_the_total_are_compared_in_integers(
    monkeypatch,
):
    """With tolerances of 3 % the program takes what is over the budget, which is left out choice by
    choice.
    """
    monkeypatch.setattr(dividing, "ROUNDING", 0.03)
    patterns = np.array([[1, 1], [2, 0]])

    def error(sizes, outputs):
        return np.array([7.0, 2.0])[sizes] / outputs

    for total in range(20, 60, 9):
        assert_least((patterns, total, error))


def test_a_solver_that_is_stopped_leaves_equal_shares_and_a_bound():
    outputs, bound = least_error(
        lambda s, k: 1.0 / k, np.array([[1, 1]]), 64, [8, 8], time_limit=0
    )
    assert outputs == [8, 8]
    assert bound == 0.0


AREAS = {"a": "pqrstuvw", "b": "pqr", "c": "uv", "d": "p"}
"""Who is in which group: sizes 8, 3, 2 and 1."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("in.csv", AREAS)
    return tmp_path


def write(path, areas, value=lambda area, person: (ord(area) * ord(person)) % 97 / 10):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("who,area,v\n")
        for area, people in areas.items():
            for person in people:
                stream.write(f"{person},{area},{value(area, person)}\n")


def options(**changes):
    values = {
        "column": "v",
        "epsilon": None,
        "query": "mean",
        "group_by": ("area",),
        "range_text": "0,10",
        "individual": "who",
        "split": "error",
    }
    return QuantizeOptions(**(values | changes))


def spent(areas, mechanism):
    """The largest product over individuals, from who is in which group and what is counted for its
    size.
    """
    outputs = {m.individuals: m.certificate.outputs for m in mechanism.mechanisms}
    largest = 1
    for person in set("".join(areas.values())):
        groups = [people for people in areas.values() if person in people]
        largest = max(largest, math.prod(outputs[len(people)] for people in groups))
    return largest


@pytest.mark.parametrize("split", ["error", "lifted"])
@pytest.mark.parametrize("query", ["mean", "sum", "median", "count"])
def test_the_total_is_the_largest_product_of_an_individual(folder, query, split):
    changes = {"query": query}
    if query == "count":
        changes |= {"range_text": None, "equals": "4.6"}
    release = quantise_table(
        "in.csv", "o.csv", options(split=split, **changes), total_epsilon="6.2"
    )
    product = spent(AREAS, release.mechanism)
    assert product <= outputs_allowed("6.2") == 73
    assert release.total_epsilon == epsilon_for(product)
    verified = read_verified("o.csv.mechanism.json")
    assert verified.satisfied
    assert verified.total_epsilon == release.total_epsilon
    equal = quantise_table(
        "in.csv", "e.csv", options(split="levels", **changes), total_epsilon="6.2"
    ).mechanism

    def errors(mechanism):
        error_of = {
            m.individuals: m.quantizer.worst_error for m in mechanism.mechanisms
        }
        return sum(error_of[len(people)] for people in AREAS.values())

    assert errors(release.mechanism) <= errors(equal)
    if split == "lifted":
        by_size = zip(release.mechanism.mechanisms, equal.mechanisms, strict=True)
        for lifted, share in by_size:
            assert lifted.certificate.outputs >= share.certificate.outputs


def test_all_answers_of_one_individual_together_have_no_more_outputs_than_stated(
    folder,
):
    """One varies all own values over a fine grid, whatever the others are: vectors of cells are
    counted.
    """
    areas = {"a": "pqr", "b": "pq", "c": "p"}
    write("in.csv", areas)
    release = quantise_table("in.csv", "o.csv", options(), total_epsilon="5")
    cuts = {
        m.individuals: m.quantizer.edges[1:-1] for m in release.mechanism.mechanisms
    }
    grid = [Fraction(k, 13) for k in range(131)]
    most = 1
    for others in range(0, 11):
        outputs = 1
        for n in (3, 2, 1):
            answers = [(own + others * (n - 1)) / Fraction(n) for own in grid]
            outputs *= len({bisect_right(cuts[n], answer) for answer in answers})
        most = max(most, outputs)
    assert 16 < most <= 2**release.total_epsilon * (1 + 1e-12)
    assert release.total_epsilon <= 5


def test_the_next_table_spends_what_its_own_groups_spend(folder):
    """Sizes the file lacks get the fewest outputs that it has; the total is that of who is in which
    group now.
    """
    quantise_table("in.csv", "o.csv", options(), total_epsilon="6")
    areas = {"a": "pqrstuvwxyz", "b": "pqr", "c": "uv", "d": "p", "e": "pq"}
    write("next.csv", areas)
    release = apply_mechanism(
        "o.csv.mechanism.json", "next.csv", "n.csv", individual="who"
    )
    assert release.new_sizes == (11,)
    earlier = read_verified("o.csv.mechanism.json").mechanism
    fewest = min(m.certificate.outputs for m in earlier.mechanisms)
    outputs = {
        m.individuals: m.certificate.outputs for m in release.mechanism.mechanisms
    }
    assert outputs[11] == fewest
    assert release.total_epsilon == epsilon_for(spent(areas, release.mechanism)) > 6
    assert read_verified("n.csv.mechanism.json").total_epsilon == release.total_epsilon
    unnamed = apply_mechanism("o.csv.mechanism.json", "next.csv", "u.csv")
    assert unnamed.answers_each is None
    assert unnamed.total_epsilon == unnamed.mechanism.epsilon


def test_the_ledger_is_charged_the_same_total(folder):
    """Not the most outputs for every answer; a second release of these data adds its own."""
    first = quantise_table(
        "in.csv", "o.csv", options(), total_epsilon="6", ledger="l.db"
    )
    assert first.releases_epsilon == first.total_epsilon
    second = quantise_table(
        "in.csv", "m.csv", options(query="median"), total_epsilon="3", ledger="l.db"
    )
    assert second.releases == 2
    assert second.releases_epsilon == pytest.approx(
        first.total_epsilon + second.total_epsilon
    )


EDITS = [
    (lambda g: g.update(answers_by_size=[[8, 1]]), "says total_epsilon"),
    (lambda g: g.update(total_epsilon=1.0), "says total_epsilon '1.0', but it is"),
    (
        lambda g: g.update(answers_by_size=[[9, 1]]),
        "answers_by_size must list sizes of groups",
    ),
    (lambda g: g.update(answers_by_size=[[8, 4]]), "answers, at most 3 in all"),
    (lambda g: g.update(answers_by_size=[[8, 0]]), "answers_by_size must list"),
    (lambda g: g.update(answers_by_size=7), "answers_by_size must list"),
    (lambda g: g.update(answers_by_size=[[8, 1], [8, 1]]), "answers_by_size must list"),
    (lambda g: g.pop("answers_by_size"), "answers_by_size must list"),
]


@pytest.mark.parametrize(("change", "message"), EDITS)
def test_edited_answers_are_found(folder, change, message):
    quantise_table("in.csv", "o.csv", options(), total_epsilon="6")
    rewrite(
        folder / "o.csv.mechanism.json", lambda document: change(document["guarantee"])
    )
    assert not verify_file("o.csv.mechanism.json").satisfied
    with pytest.raises(InputError, match=message):
        read_verified("o.csv.mechanism.json")


def test_refusals_of_a_split(folder):
    with pytest.raises(
        InputError, match=r"split \('fair'\) must be one of levels, error, lifted"
    ):
        quantise_table("in.csv", "o.csv", options(split="fair"), total_epsilon="6")
    with pytest.raises(
        InputError, match="split says how total_epsilon is shared by the answers"
    ):
        quantise_table("in.csv", "o.csv", options(epsilon="2"))
    with pytest.raises(
        InputError, match="sizes of groups, which would depend on values: outside drop"
    ):
        quantise_table("in.csv", "o.csv", options(outside="drop"), total_epsilon="6")
    with pytest.raises(
        InputError,
        match="split error weighs the errors of layout widest: leave out thresholds",
    ):
        quantise_table("in.csv", "o.csv", options(thresholds=(5.0,)), total_epsilon="6")
    with pytest.raises(InputError, match="leave out thresholds and other layouts"):
        quantise_table("in.csv", "o.csv", options(layout="levels"), total_epsilon="6")
    with pytest.raises(
        InputError, match=r"0.5 bits for 3 answers are less than one bit for each"
    ):
        quantise_table("in.csv", "o.csv", options(), total_epsilon="0.5")
    quantise_table("in.csv", "o.csv", options(), total_epsilon="6")
    for outside in ("mark", "drop"):
        with pytest.raises(
            InputError, match="one more output than this mechanism has room for"
        ):
            apply_mechanism(
                "o.csv.mechanism.json",
                "in.csv",
                "n.csv",
                outside=outside,
                individual="who",
            )


def test_outputs_outside_the_range_are_part_of_the_product(folder):
    write("in.csv", AREAS, lambda area, person: 99 if person == "s" else 3)
    release = quantise_table(
        "in.csv", "o.csv", options(outside="mark"), total_epsilon="7"
    )
    assert min(m.quantizer.levels for m in release.mechanism.mechanisms) >= 1
    assert all(m.certificate.outputs >= 2 for m in release.mechanism.mechanisms)
    assert release.total_epsilon == epsilon_for(spent(AREAS, release.mechanism)) <= 7


def test_patterns_are_counted_in_slices_of_individuals(folder, monkeypatch):
    from mechdesign.nonstochastic import groups

    whole = quantise_table("in.csv", "o.csv", options(), total_epsilon="6").mechanism
    monkeypatch.setattr(groups, "COUNTED", 9)
    assert (
        quantise_table(
            "in.csv", "s.csv", options(), total_epsilon="6"
        ).mechanism.guarantee
        == whole.guarantee
    )


def test_feeders_suburbs_and_a_city_of_real_households(folder, data):
    """The figure of docs/how-to/ranges-again.md: the first day of the 516 households whose readings
    have no faults.
    """
    clean = set((data / "smart-meter" / "clean_vids.txt").read_text().split())
    rows = (data / "smart-meter" / "daily_kwh_537x49.csv").read_text().splitlines()[1:]
    kept = [row.split(",")[:2] for row in rows if row.split(",")[0] in clean]
    lines = [
        f"{who},{area},{use}\n"
        for k, (who, use) in enumerate(kept)
        for area in ("city", f"suburb {k // 129}", f"feeder {k // 20}")
    ]
    (folder / "areas.csv").write_text("who,area,v\n" + "".join(lines), encoding="utf-8")
    release = quantise_table(
        "areas.csv", "o.csv", options(range_text="0,500"), total_epsilon=9
    )
    assert {
        m.individuals: m.certificate.outputs for m in release.mechanism.mechanisms
    } == {
        16: 85,
        20: 85,
        129: 3,
        516: 2,
    }
    assert "add up to 8.26672, by equal shares to 48.0516" in release.notices[0]
    assert release.total_epsilon == epsilon_for(85 * 3 * 2)
