"""`mechdesign quantize --domain --thresholds`: thresholds of least error or most levels, and listed ones."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import thresholds_by_error
from mechdesign.nonstochastic.claims import verify_file
from mechdesign.nonstochastic.queries import finite, identity_query, mean_query
from mechdesign.nonstochastic.thresholds_by_error import (
    PROVEN_ON_A_LINE,
    CellLoss,
    best_cells,
    least_distortion,
    thresholds_for,
)
from mechdesign.tables.bin_edges import row_minima
from tests.cases.documents import rewrite

AMOUNTS = (0, 10, 20, 50, 100)
SHARES = (40, 25, 20, 10, 5)


@pytest.fixture
def amounts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k},{k % 4},{AMOUNTS[k * k % 5]}\n" for k in range(12))
    (tmp_path / "in.csv").write_text("who,g,amount\n" + rows, encoding="utf-8")
    prior = "".join(f"{v},{s}\n" for v, s in zip(AMOUNTS, SHARES, strict=True))
    (tmp_path / "prior.csv").write_text("symbol,share\n" + prior, encoding="utf-8")
    return tmp_path


ASKED = (
    "quantize",
    "in.csv",
    "o.csv",
    "--column",
    "amount",
    "--individual",
    "who",
    "--force",
    "--json",
)
MEAN = ("--query", "mean", "--group-by", "g", "--epsilon", "1.6")


def test_the_least_error_for_a_prior(amounts, run):
    """E (X - released)^2 of the mean of three is smaller than with equal cells, for at most three outputs."""
    made = run(*ASKED, *MEAN, "--domain", "prior.csv", "--thresholds", "optimal").record
    found = verify_file("o.csv.mechanism.json")
    assert (made["outputs"], found.satisfied, found.outputs) == (3, True, 3)
    quantizer = found.mechanism.mechanisms[0].quantizer
    assert len(quantizer.released) == quantizer.levels == made["levels"][0]
    prior = {
        sum(values) / Fraction(3): 0 for values in itertools.product(AMOUNTS, repeat=3)
    }
    for picks in itertools.product(range(5), repeat=3):
        prior[sum(AMOUNTS[k] for k in picks) / Fraction(3)] += int(
            np.prod([SHARES[k] for k in picks])
        )

    def error(cells):
        return sum(
            p * (v - cells.midpoint(cells.cell(v))) ** 2 for v, p in prior.items()
        )

    run(*ASKED, *MEAN, "--domain", ",".join(map(str, AMOUNTS)))
    assert error(quantizer) < error(
        verify_file("o.csv.mechanism.json").mechanism.mechanisms[0].quantizer
    )
    best = thresholds_for(mean_query(3, finite(AMOUNTS)), 1.6, SHARES)
    assert best.quantizer == quantizer
    assert best.distortion == pytest.approx(float(error(quantizer)) / 10**6)


def test_the_most_levels(amounts, run):
    asked = (*ASKED, *MEAN, "--domain", "0,10,20,50,100")
    widest = run(*asked).record["levels"][0]
    assert run(*asked, "--thresholds", "most").record["levels"][0] > widest
    assert verify_file("o.csv.mechanism.json").outputs == 3
    assert (
        run(
            "apply", "o.csv.mechanism.json", "in.csv", "p.csv", "--identity", "who"
        ).code
        == 0
    )
    assert (amounts / "o.csv").read_bytes() == (amounts / "p.csv").read_bytes()
    said = " ".join(run("audit", "o.csv.mechanism.json").out.split())
    assert "each value one of 5 from 0 to 100" in said
    assert "Theorem 4" not in said


def test_listed_thresholds_and_values_beside_the_domain(amounts, run):
    made = run(
        *ASKED, "--epsilon", "1", "--range", "0,100", "--thresholds", "15"
    ).record
    assert (made["levels"], made["outputs"]) == ([2, 2], 2)
    many = run(*ASKED, "--epsilon", "1", "--range", "0,100", "--thresholds", "15,30")
    assert "one individual can bring about 3 outputs, and 2 are allowed" in many.err
    clipped = run(
        *ASKED,
        "--epsilon",
        "1",
        "--domain",
        "0:100:25",
        "--thresholds",
        "optimal",
        "--outside",
        "clip",
    )
    assert clipped.record["outside"] > 0
    assert verify_file("o.csv.mechanism.json").satisfied


def test_a_prior_on_some_values_of_a_range(amounts, run):
    """Cells of least error for a skewed prior, released for any number of the range, which is what is counted."""
    (amounts / "x.csv").write_text(
        "who,v\n" + "".join(f"{k},{k * 7.3 % 97!r}\n" for k in range(40)),
        encoding="utf-8",
    )
    asked = (
        "quantize",
        "x.csv",
        "y.csv",
        "--column",
        "v",
        "--epsilon",
        "2",
        "--range",
        "0,100",
        "--json",
    )
    done = run(*asked, "--domain", "prior.csv", "--thresholds", "optimal")
    assert (done.code, done.record["outputs"], done.record["outside"]) == (0, 4, 0), (
        done.err
    )
    found = verify_file("y.csv.mechanism.json")
    quantizer = found.mechanism.mechanisms[0].quantizer
    # To join 10 and 20 costs the least: 25 * 20 / 45 * 10^2.
    assert (found.satisfied, tuple(quantizer.thresholds), quantizer.hi) == (
        True,
        (5, 35, 75),
        100,
    )
    assert [float(v) for v in quantizer.released] == [0, 130 / 9, 50, 100]
    # Of a mean, values between those of the domain can bring about more outputs, and then it is refused.
    refused = run(
        *ASKED,
        *MEAN,
        "--domain",
        "prior.csv",
        "--range",
        "0,100",
        "--thresholds",
        "most",
    )
    assert (
        refused.code,
        "with these thresholds one individual can bring about" in refused.err,
    ) == (2, True)
    assert "Theorem 4, corrected" in run("audit", "y.csv.mechanism.json").out
    assert (
        run(
            "check", "y.csv", "--channel", "y.csv.mechanism.json", "--original", "x.csv"
        ).code
        == 0
    )


def test_decimals_of_any_size_make_a_domain(amounts, run):
    """0.07 and 5,000 have no common unit of 62 bits as doubles, which the values of one individual do not need."""
    (amounts / "in.csv").write_text(
        "who,amount\n1,0.07\n2,5000\n3,100\n4,100.5\n", encoding="utf-8"
    )
    asked = (
        *ASKED,
        "--epsilon",
        "1.6",
        "--domain",
        "0.07,100,100.5,5000",
        "--thresholds",
    )
    for way in ("optimal", "most"):
        assert run(*asked, way).record["levels"] == [3, 3]
    run(*asked, "optimal", "--keep", "all")
    assert (amounts / "o.csv").read_text().split() == [
        "who,amount",
        "1,0.07",
        "2,5000.0",
        "3,100.25",
        "4,100.25",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--range", "0,100", "--thresholds", "optimal"),
            "of a finite domain (--domain)",
        ),
        (
            ("--domain", "0,10", "--range", "5,8", "--thresholds", "most"),
            "thresholds must lie above",
        ),
        (("--domain", "0,10"), "line 4: the value is none of the 2 of the domain"),
        (("--domain", "0:10"), "must be a number or START:STOP:STEP"),
        (("--domain", "0:10:0"), "the step (0) must be positive"),
        (("--domain", "0:10:x"), "'x' is not a number"),
        (("--domain", "none.csv"), "none.csv"),
        (
            ("--domain", "0:100:10", "--thresholds", "best"),
            "'best': 'best' is not a number",
        ),
        (("--domain", "0,1", "--query", "count"), "--domain is not for --query count"),
        (
            ("--domain", "0:100:10", "--query", "median", "--thresholds", "optimal"),
            "another query gets its thresholds by --layout",
        ),
        (
            ("--domain", "0:100:1", "--query", "mean", "--thresholds", "optimal"),
            "answers are too many to price all cells",
        ),
    ],
)
def test_bad_input(amounts, run, options, message):
    done = run(*ASKED, "--epsilon", "1", *options)
    assert (done.code, message in done.err) == (2, True), done.err
    assert not (amounts / "o.csv").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["0", "1/3", "100"], "values must be doubles"),
        (["0", "50"], "from the lower end of the range"),
    ],
)
def test_edited_domains_are_refused(amounts, run, values, message):
    run(
        *ASKED,
        "--epsilon",
        "1",
        "--domain",
        "0,10,20,50,100",
        "--thresholds",
        "optimal",
    )
    rewrite(
        amounts / "o.csv.mechanism.json",
        lambda document: document.update(values=values),
        amounts / "e.json",
    )
    with pytest.raises(InputError, match=message):
        verify_file("e.json")


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 9)),
        min_size=1,
        max_size=12,
        unique_by=lambda t: t[0],
    ),
    st.integers(1, 6),
)
def test_cells_on_a_line_against_all_of_them(pairs, cells):
    """min over all contiguous partitions into at most `cells` cells of the weighted squared error, exactly."""
    values, weights = zip(*sorted(pairs), strict=True)
    weights = [w + (not any(weights)) for w in weights]
    priced = CellLoss([Fraction(v) for v in values], [Fraction(w) for w in weights])
    best = min(
        priced.total([0, *cut, len(values)])
        for k in range(min(cells, len(values)))
        for cut in itertools.combinations(range(1, len(values)), k)
    )
    assert (
        priced.total(
            best_cells([*map(Fraction, values)], [*map(Fraction, weights)], cells)
        )
        == best
    )
    found = least_distortion(
        identity_query(finite(values)), Fraction(5, 2), weights=weights
    )
    assert found.levels <= 5
    assert len(values) == 1 or found.because == PROVEN_ON_A_LINE


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_row_minima_of_monge_matrices(height, width, seed):
    """min over the columns allowed of each row, for sums of products that satisfy the quadrangle inequality."""
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.integers(0, 99, height)), np.sort(rng.integers(0, 99, width))
    offset = rng.integers(0, 999, width)
    matrix = offset[None, :] - x[:, None] * y[None, :]
    first = np.sort(rng.integers(0, width, height))
    last = np.maximum(first, np.sort(rng.integers(0, width, height)))
    place = row_minima(
        lambda r, c: matrix[r, c].astype(float), np.arange(height), first, last
    )
    for r in range(height):
        assert matrix[r, place[r]] == matrix[r, first[r] : last[r] + 1].min()


def test_thresholds_that_are_not_proven_say_so(amounts, run, monkeypatch):
    """The program is stopped at once: its thresholds keep the budget, and a note says that they may not be the best."""
    monkeypatch.setattr(
        thresholds_by_error.least_distortion,
        "__kwdefaults__",
        {"weights": None, "time_limit": 1e-9},
    )
    done = run(
        *ASKED[:-1], *MEAN, "--domain", "0,10,20,50,100", "--thresholds", "optimal"
    )
    assert done.code == 0, done.err
    assert (
        "the thresholds for groups of 3 may not be the best ones: stopped by the time limit"
        in done.err
    )
    assert verify_file("o.csv.mechanism.json").satisfied


def test_a_value_of_a_prior_is_not_there_twice(amounts, run):
    """1 and 1.0 are the same number, and one of their shares was forgotten."""
    (amounts / "twice.csv").write_text(
        "symbol,share\n1,1\n1.0,2\n3,3\n", encoding="utf-8"
    )
    done = run(*ASKED, *MEAN, "--domain", "twice.csv", "--thresholds", "optimal")
    assert done.code == 2
    assert (
        "--domain twice.csv: the value 1.0 is there twice, in other words; add up its shares"
        in done.err
    )
