"""Means and regressions of released rows: those of the file, with errors that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.analysis.law_estimates import estimate_shares
from mechdesign.analysis.law_statistics import estimate_means, estimate_regression
from mechdesign.report.releases import statistics_text
from tests.cases.boxes import with_parts
from tests.profiles import slow

RELEASED = ["job", "hours", "age"]


def population(rng, size):
    job = rng.choice(["clerk", "cook", "smith"], size, p=[0.5, 0.3, 0.2])
    age = rng.choice([20, 40, 60], size)
    hours = 20 + 10 * rng.integers(0, 3, size) + 10 * (job == "cook")
    high = rng.random(size) < 0.1 + 0.4 * (job == "smith") + 0.006 * age
    income = np.where(high, "high", "low")
    return pd.DataFrame({"job": job, "hours": hours, "age": age, "income": income})


@pytest.fixture(scope="module")
def frame():
    return population(np.random.default_rng(7), 900)


@pytest.fixture(scope="module")
def channel(frame):
    design = md.design(frame, md.LIP(0.25), sensitive="income", release=RELEASED)
    assert design.law.kept
    return design.channel


@pytest.fixture(scope="module")
def moved(frame):
    design = md.design(
        frame,
        md.LIP(0.25),
        sensitive="income",
        release=RELEASED,
        keep_frequencies=False,
    )
    assert not design.law.kept
    return design.channel


def slopes(frame):
    """By the normal equations of a dense matrix: cook and smith against clerk, and age."""
    columns = [
        np.ones(len(frame)),
        frame.job == "cook",
        frame.job == "smith",
        frame.age.astype(float),
    ]
    z = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    v = frame.hours.astype(float).to_numpy()
    return np.linalg.lstsq(z, v, rcond=None)[0]


def drawing(channel, frame):
    """A function of a seed: independent draws of all records, by their rows."""
    order = {cells: x for x, cells in enumerate(channel.useful.symbols)}
    places = [
        order[tuple(map(str, row))]
        for row in frame[list(channel.useful.columns)].itertuples(index=False)
    ]
    steps = np.cumsum(np.asarray(channel.matrix), axis=1)[places]
    outputs = pd.DataFrame(
        list(channel.output_cells), columns=list(channel.output_columns)
    )

    def draw(seed):
        rng = np.random.default_rng(seed)
        chosen = (rng.random(len(places))[:, None] > steps).sum(axis=1)
        chosen = np.minimum(chosen, len(outputs) - 1)
        return outputs.iloc[chosen].reset_index(drop=True)

    return draw


def test_estimates_are_those_of_the_file(channel, frame):
    released = drawing(channel, frame)(1)
    means = estimate_means(channel, released, "hours", ["job"])
    numbers = released.assign(hours=released.hours.astype(float))
    true = numbers.groupby("job").hours.mean()
    assert [name for (name,) in means.names] == list(true.index)
    assert means.estimates == pytest.approx(true.to_numpy(), abs=1e-10)
    fit = estimate_regression(channel, released, "hours", ["job", "age"])
    assert fit.names == (("(intercept)",), ("job", "cook"), ("job", "smith"), ("age",))
    assert fit.reference == {"job": "clerk"}
    released = released.astype({"hours": float, "age": float})
    assert fit.estimates == pytest.approx(slopes(released), abs=1e-9)


def test_without_draws_errors_are_those_of_the_sample(channel, frame):
    """The textbook's: s / sqrt(n) by group, and White's sandwich for coefficients."""
    rows = frame[RELEASED].astype(str)
    means = estimate_means(channel, rows, "hours", ["job"], fixed=True)
    groups = frame.groupby("job").hours
    expected = groups.std(ddof=1) / np.sqrt(groups.size())
    assert means.standard_errors == pytest.approx(expected.to_numpy(), rel=1e-9)
    assert not means.from_draws.any()
    fit = estimate_regression(channel, rows, "hours", ["age"], fixed=True)
    z = np.column_stack([np.ones(len(frame)), frame.age])
    beta = np.linalg.lstsq(z, frame.hours, rcond=None)[0]
    residuals = frame.hours.to_numpy() - z @ beta
    inverse = np.linalg.inv(z.T @ z)
    sandwich = inverse @ (z.T * residuals**2) @ z @ inverse * 900 / 898
    assert fit.standard_errors == pytest.approx(np.sqrt(np.diag(sandwich)), rel=1e-9)
    of_records = estimate_means(
        channel, rows, "hours", ["job"], fixed=True, target="records"
    )
    assert not of_records.standard_errors.any()


def inside(found, true):
    """Whether each interval has the true value; where no draw is random, both agree to rounding."""
    return (found.lower - 1e-9 <= true) & (true <= found.upper + 1e-9)


@pytest.mark.parametrize(
    ("kind", "runs"), [("moved", 60), slow("moved", 200), slow("kept", 200)]
)
def test_intervals_for_the_records_cover(kind, runs, channel, moved, frame):
    """Many releases of one table: means by group, slopes and shares of pairs."""
    channel = channel if kind == "kept" else moved
    by_job = frame.groupby("job").hours.mean().to_numpy()
    true_slopes = slopes(frame)
    pairs = frame.astype(str).groupby(["job", "age"]).size() / len(frame)
    hits: dict[str, list[bool]] = {"mean": [], "slope": [], "share": []}
    draw = drawing(channel, frame)
    for seed in range(runs):
        released = draw(seed)
        means = estimate_means(channel, released, "hours", ["job"], target="records")
        hits["mean"] += list(inside(means, by_job))
        fit = estimate_regression(
            channel, released, "hours", ["job", "age"], target="records"
        )
        hits["slope"] += list(inside(fit, true_slopes))
        (shares,) = estimate_shares(channel, released, ["job", "age"], target="records")
        for symbol, low, high in zip(
            shares.symbols, shares.lower, shares.upper, strict=True
        ):
            hits["share"].append(low - 1e-9 <= pairs.get(symbol, 0.0) <= high + 1e-9)
    for name, covered in hits.items():
        # Statistics of one release depend on each other: releases count, and not their statistics.
        allowed = 4 * np.sqrt(0.95 * 0.05 / runs)
        assert np.mean(covered) == pytest.approx(0.95, abs=allowed), name


@pytest.mark.slow
def test_intervals_for_the_population_cover():
    """Samples of one population, with a channel made from each."""
    rng = np.random.default_rng(11)
    whole = population(rng, 400_000)
    by_job = whole.groupby("job").hours.mean().to_numpy()
    true_slopes = slopes(whole)
    hits: dict[str, list[bool]] = {"mean": [], "slope": []}
    runs = 120
    for seed in range(runs):
        sample = whole.iloc[rng.choice(len(whole), 500, replace=False)]
        design = md.design(
            sample, md.LIP(0.25), sensitive="income", release=RELEASED, smallest_group=1
        )
        released = drawing(design.channel, sample)(seed)
        means = estimate_means(design.channel, released, "hours", ["job"])
        hits["mean"] += list(inside(means, by_job))
        fit = estimate_regression(design.channel, released, "hours", ["job", "age"])
        hits["slope"] += list(inside(fit, true_slopes))
    for name, covered in hits.items():
        allowed = 4 * np.sqrt(0.95 * 0.05 / runs)
        assert np.mean(covered) == pytest.approx(0.95, abs=allowed), name


def test_a_moved_law_is_corrected(moved, frame):
    """Over many releases the mean of the estimates is the table's, and the file's is not."""
    by_job = frame.groupby("job").hours.mean().to_numpy()
    corrected, plain = [], []
    draw = drawing(moved, frame)
    for seed in range(120):
        released = draw(seed)
        corrected.append(estimate_means(moved, released, "hours", ["job"]).estimates)
        numbers = released.astype({"hours": float})
        plain.append(numbers.groupby("job").hours.mean().to_numpy())
    error = np.std(corrected, axis=0) / np.sqrt(120)
    assert (np.abs(np.mean(corrected, axis=0) - by_job) < 5 * error + 1e-9).all()
    assert (np.abs(np.mean(plain, axis=0) - by_job) > 5 * error + 1e-9).any()


def test_public_channels_know_the_errors_of_kept_laws(channel, frame):
    released = drawing(channel, frame)(3)
    ours = estimate_means(channel, released, "hours", ["job"])
    public = estimate_means(channel.public(), released, "hours", ["job"])
    assert public.standard_errors == pytest.approx(ours.standard_errors, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c, f: estimate_means(c, f, "job"), "values that are no numbers"),
        (lambda c, f: estimate_means(c, f, "income"), "releases no column 'income'"),
        (lambda c, f: estimate_means(c, f, "hours", ["x"]), "releases no column 'x'"),
        (lambda c, f: estimate_regression(c, f, "hours", []), "columns that it is on"),
        (
            lambda c, f: estimate_regression(c, f, "hours", ["age", "age"]),
            "does not determine coefficients",
        ),
        (
            lambda c, f: estimate_means(c, f, "hours", target="all"),
            "must be population or records",
        ),
        (lambda c, f: estimate_means(c, f.head(1), "hours"), "at least two"),
        (lambda c, f: estimate_shares(c, f.head(1)), "at least two"),
        (lambda c, f: estimate_shares(c, f.head(0), ["job"]), "at least two"),
    ],
)
def test_refusals(call, words, channel, frame):
    with pytest.raises(md.InputError, match=words):
        call(channel, frame[RELEASED].astype(str))


@pytest.mark.parametrize("kind", ["kept", "moved"])
def test_a_group_without_a_record_has_no_mean(kind, channel, moved, frame):
    rows = frame[RELEASED].astype(str)
    of = channel if kind == "kept" else moved
    means = estimate_means(of, rows[rows.job != "smith"], "hours", ["job"])
    assert [row["estimate"] is None for row in means.rows()] == [False, False, True]
    assert means.rows()[2]["standard_error"] is None


@pytest.mark.parametrize("kind", ["kept", "moved"])
def test_means_and_their_intervals_lie_between_the_numbers(kind, channel, moved):
    of = channel if kind == "kept" else moved
    rows = pd.DataFrame(list(of.output_cells), columns=list(of.output_columns))
    least = rows[rows.hours == rows.hours.min()].head(1)
    most = rows[rows.hours == rows.hours.max()].head(1)
    for few in ([least] * 4 + [most], [most] * 4 + [least]):
        for row in estimate_means(of, pd.concat(few), "hours").rows():
            assert 20 <= row["lower"] <= row["estimate"] <= row["upper"] <= 50


def test_one_record_has_a_mean_and_no_error(channel, frame):
    rows = frame[RELEASED].astype(str)
    one = pd.concat([rows[rows.job != "smith"], rows[rows.job == "smith"].head(1)])
    found = estimate_means(channel, one, "hours", ["job"]).rows()[2]
    assert found["estimate"] == float(one.hours.iloc[-1])
    assert found["standard_error"] is found["lower"] is found["upper"] is None


def test_equal_numbers_say_nothing_of_the_spread_of_a_population(channel, frame):
    rows = frame[RELEASED].astype(str)
    smiths = rows[rows.job == "smith"]
    alike = smiths[smiths.hours == smiths.hours.iloc[0]].head(12)
    file = pd.concat([rows[rows.job != "smith"], alike])
    means = estimate_means(channel, file, "hours", ["job"])
    smith = means.rows()[2]
    assert smith["records"] == 12
    assert smith["standard_error"] is smith["lower"] is smith["upper"] is None
    assert not means.has_too_narrow
    # Of the records themselves no sample is drawn, so nothing has to be known of its spread.
    records = estimate_means(channel, file, "hours", ["job"], target="records")
    assert records.rows()[2]["standard_error"] is not None


def test_few_records_of_a_value_are_said_to_have_narrow_intervals(channel, frame):
    rows = frame[RELEASED].astype(str)
    others = rows[rows.job != "smith"]
    smiths = rows[rows.job == "smith"].drop_duplicates("hours")
    few = pd.concat([others, smiths.head(2)])
    for statistics in (
        estimate_means(channel, few, "hours", ["job"]),
        estimate_regression(channel, few, "hours", ["job"]),
    ):
        assert statistics.rows()[2]["records"] == 2
        assert statistics.has_too_narrow
        text = statistics_text(statistics, fixed=True, kept=True)
        assert "Intervals of values with fewer than 10 records" in text
    one = estimate_regression(
        channel, pd.concat([others, smiths.head(1)]), "hours", ["job"]
    )
    assert one.rows()[2]["standard_error"] is None
    assert "one record" in statistics_text(one, fixed=True, kept=True)


@pytest.mark.parametrize("times", [1, 3])
def test_a_number_that_few_records_have_is_no_firm_ground(channel, frame, times):
    """Equal hours but for a few records: their errors were those of the intercept."""
    rows = frame[RELEASED].astype(str)
    usual = rows.hours.mode()[0]
    few = pd.concat([rows[rows.hours == usual], rows[rows.hours != usual].head(times)])
    statistics = estimate_regression(channel, few, "age", ["hours"])
    assert statistics.rows()[1]["records"] == times
    assert statistics.has_too_narrow is (times > 1)
    assert (statistics.rows()[1]["standard_error"] is None) is (times == 1)


def test_a_column_that_is_constant_in_the_file_has_no_slope(moved, frame):
    """The table's own rows, by which a moved law is corrected, do not stand for the file."""
    rows = drawing(moved, frame)(5)
    constant = rows[rows.age == rows.age.mode()[0]]
    with pytest.raises(
        md.InputError, match="the coefficient of 'age': all its records"
    ):
        estimate_regression(moved, constant, "hours", ["age"])
    found = estimate_regression(moved, rows[rows.job != "smith"], "hours", ["job"])
    smith = found.rows()[2]
    assert smith["records"] == 0
    assert smith["estimate"] is smith["standard_error"] is None
    lines = statistics_text(found, fixed=False, kept=False).splitlines()
    assert [line for line in lines if "job, smith" in line and "no record" in line]


def test_as_many_coefficients_as_records_leave_no_errors(channel, frame):
    rows = frame[RELEASED].astype(str)
    first = rows.iloc[0]
    others = rows[(rows.age != first.age) & (rows.hours != first.hours)]
    two = pd.concat([rows.head(1), others.head(1)])
    found = estimate_regression(channel, two, "hours", ["age"])
    assert np.isnan(found.standard_errors).all()
    text = statistics_text(found, fixed=True, kept=True)
    assert "equal numbers" not in text
    assert "too few records" in text


def test_empty_cells_do_not_make_categories_of_numbers(frame):
    """A regression on ages with gaps had a coefficient for every age."""
    gaps = frame.assign(age=frame.age.astype(str).where(frame.index % 7 > 0, ""))
    channel = md.design(
        gaps,
        md.LIP(0.25),
        sensitive="income",
        release=RELEASED,
        missing="symbol",
        smallest_group=1,
    ).channel
    rows = gaps[RELEASED].astype(str)
    refused = "'age' has released empty cells beside its numbers, .* have all cells"
    with pytest.raises(md.InputError, match=refused):
        estimate_regression(channel, rows, "hours", ["job", "age"])
    with pytest.raises(md.InputError, match=refused):
        estimate_means(channel, rows, "age", ["job"])
    groups = estimate_means(channel, rows, "hours", ["age"])
    assert '""' in statistics_text(groups, fixed=True, kept=True)


FILLED = {
    "own boxes": {"objective": "truth"},
    "free labels": {"objective": "information"},
    "given": {"given": ["k"], "promise": "relative"},
}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    table = population(rng, 2400)
    return table.assign(k=rng.choice(["u", "v"], len(table)))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("own boxes", marks=pytest.mark.slow),
        pytest.param("free labels", marks=pytest.mark.slow),
        "given",
    ],
)
def test_filled_boxes_have_estimates_like_rows(kind, people):
    """50 releases of one table: shares, means and slopes are centred, and their spread is the
    standard error of the draws.
    """
    asked = {"release": RELEASED, "confidence": 0.9, "fill": True, **FILLED[kind]}
    made = md.design(
        people,
        md.LIP(1.0),
        sensitive="income",
        cells=6,
        slice_seed=1,
        time_limit=5.0,
        **asked,
    )
    true = {
        "mean": people.groupby("job").hours.mean().to_numpy(),
        "slope": slopes(people),
        "share": (people.astype(str).groupby(["job", "age"]).size() / len(people)),
    }
    found: dict[str, list[np.ndarray]] = {name: [] for name in true}
    errors: dict[str, np.ndarray] = {}
    for seed in range(50):
        released = md.sanitise(people, made.channel, insecure_seed=seed)
        means = md.estimate(
            made.channel, released, mean="hours", by="job", target="records"
        )
        fit = md.estimate(
            made.channel,
            released,
            regress="hours",
            on=["job", "age"],
            target="records",
        )
        (shares,) = md.estimate(
            made.channel, released, ["job", "age"], target="records"
        )
        order = [shares.symbols.index(pair) for pair in true["share"].index]
        found["mean"].append(means.estimates)
        found["slope"].append(fit.estimates)
        found["share"].append(shares.estimates[order])
        errors |= {
            "mean": means.standard_errors,
            "slope": fit.standard_errors,
            "share": shares.standard_errors[order],
        }
    for name, expected in true.items():
        drawn = np.array(found[name])
        centred = np.abs(drawn.mean(axis=0) - np.asarray(expected))
        # What no draw moves is exact, up to rounding.
        assert (centred < 4.5 / np.sqrt(50) * errors[name] + 1e-9).all(), name
        # Of 50 draws a standard deviation is off by a tenth; four times that is allowed.
        moves = errors[name] > 0.0
        ratio = drawn.std(axis=0, ddof=1)[moves] / errors[name][moves]
        assert 0.6 < ratio.min() <= ratio.max() < 1.4, name


@pytest.mark.filterwarnings("ignore:the released column .* has the type str")
def test_boxes_whose_stratum_releases_nothing(people):
    """A stratum of three records, which the slice does not have, is no part; of one that releases
    nothing the others are estimated.
    """
    rare = people.assign(k=np.where(np.arange(len(people)) < 3, "w", people.k))
    made = md.design(
        rare,
        md.LIP(1.0),
        sensitive="income",
        release=RELEASED,
        given=["k"],
        promise="relative",
        confidence=0.9,
        fill=True,
        cells=3,
        slice_seed=1,
        time_limit=5.0,
    )
    channel = made.channel
    first, *others = channel.parts
    assert len(others) == 1
    silent = with_parts(channel, (replace(first, channel=None, fill=()), *others))
    assert silent.silent_strata == ["k u"]
    released = silent.apply(rare[rare.k != "w"], insecure_seed=1)
    (found,) = md.estimate(silent, released, ["job"])
    assert found.records == (rare.k == "v").sum()


def shifted(offset, unit):
    """Numbers far from zero, very large or very small, and a release that keeps all of them."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, 300)
    y = 2 * x + rng.integers(0, 3, 300)
    frame = pd.DataFrame(
        {
            "income": rng.choice(["high", "low"], 300),
            "x": [repr(offset + int(k) * unit) for k in x],
            "y": [repr(offset + int(k) * unit) for k in y],
        }
    )
    design = md.design(frame, md.LIP(3.0), sensitive="income", release=["x", "y"])
    return design.channel, frame[["x", "y"]], x, y


@pytest.mark.parametrize(
    ("offset", "unit"), [(10**9, 1), (0, 1e200), (0, 1e-200), (16 * 10**11, 1)]
)
def test_errors_hold_for_large_small_and_distant_numbers(offset, unit):
    channel, released, x, y = shifted(offset, unit)
    mean = estimate_means(channel, released, "y")
    error = np.sqrt(y.var(ddof=1) / len(y))
    assert mean.estimates[0] == pytest.approx(offset + unit * y.mean(), rel=1e-14)
    assert mean.standard_errors[0] == pytest.approx(unit * error, rel=1e-6)
    slope = estimate_regression(channel, released, "y", ["x"])
    centred = x - x.mean()
    beta = centred @ y / (centred @ centred)
    residuals = y - y.mean() - beta * centred
    variance = (centred**2 @ residuals**2) / (centred @ centred) ** 2
    assert slope.estimates[1] == pytest.approx(beta, rel=1e-6)
    expected = np.sqrt(variance * len(y) / (len(y) - 2))
    assert slope.standard_errors[1] == pytest.approx(expected, rel=1e-6)


def test_the_text_shows_the_width_of_an_interval():
    """1e+09, 1e+09 to 1e+09 would claim that the mean is known."""
    channel, released, _, y = shifted(10**9, 1)
    found = estimate_means(channel, released, "y")
    text = statistics_text(found, fixed=False, kept=True)
    assert f"{10**9 + y.mean():.13g}" in text
    # Two digits of the standard error, which is .14.
    assert f"{found.lower[0]:.12g} to {found.upper[0]:.12g}" in text


def test_a_regression_of_equal_numbers_has_no_errors():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "income": rng.choice(["high", "low"], 60),
            "x": rng.choice(["u", "v"], 60),
            "y": 7,
        }
    )
    design = md.design(frame, md.LIP(3.0), sensitive="income", release=["x", "y"])
    found = estimate_regression(design.channel, frame[["x", "y"]], "y", ["x"])
    assert found.estimates.tolist() == [7, 0]
    assert np.isnan(found.standard_errors).all()
    assert "equal numbers" in statistics_text(found, fixed=False, kept=True)
