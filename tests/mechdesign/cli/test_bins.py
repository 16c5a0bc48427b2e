"""`--bin` from end to end: as a stranger types it, on made and on real data, and every way in which it refuses."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.channel.channel import Channel
from mechdesign.cli import main
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.classes import many_numbers
from mechdesign.mechanisms.number_of_bins import NUMBERS_OF_BINS
from mechdesign.release.released_values import distance_text, moved
from tests.cases.people import ADULT

BUDGET = ("--epsilon", "1")


@pytest.fixture
def people(folder):
    """600 records of s and of an age that tells of it."""
    ages = random.Random(1).sample([18 + i * 7 % 60 for i in range(600)], 600)
    lines = [
        f"{'no' if i * 13 % 60 < age - 10 else 'yes'},{age}"
        for i, age in enumerate(ages)
    ]
    (folder / "people.csv").write_text("\n".join(["s,age", *lines, ""]))
    (folder / "ages.csv").write_text("\n".join(["age", *map(str, ages), ""]))
    return folder


COLUMNS = ("--sensitive", "s", "--useful", "age")


def test_every_command_uses_the_edges_of_the_channel(people, run):
    made = run(
        "design",
        "people.csv",
        *COLUMNS,
        "--bin",
        "10",
        *BUDGET,
        "-o",
        "c.json",
        "--json",
    )
    assert made.code == 0
    (bins,) = made.record["bins"]
    assert bins["column"] == "age"
    assert bins["edges"] == [str(edge) for edge in range(10, 90, 10)]
    written = json.loads((people / "c.json").read_text())
    assert written["version"] == 2
    assert written["bins"]["age"]["edges"] == bins["edges"]
    assert "--bin 10" in written["provenance"]["command"]
    assert run("audit", "c.json").code == 0
    assert run("audit", "c.json", "--table", "people.csv", "--json").record["satisfied"]
    assert run("measure", "c.json", "--table", "people.csv").code == 0
    assert "[20, 30)" in run("show", "c.json").out
    for form in ("label", "posterior-draw", "representative", "within"):
        applied = run(
            "apply",
            "c.json",
            "ages.csv",
            "out.csv",
            "--as",
            form,
            "--force",
            "--insecure-seed",
            "1",
        )
        assert applied.code == 0, applied.err
        manifest = json.loads((people / "out.csv.manifest.json").read_text())
        assert form in json.dumps(manifest)
        checked = run(
            "check",
            "out.csv",
            "--channel",
            "c.json",
            "--original",
            "ages.csv",
            "--as",
            form,
        )
        assert checked.code == 0, checked.out
        estimate = run(
            "estimate", "out.csv", "--channel", "c.json", "--as", form, "--json"
        )
        assert estimate.code == 0, estimate.err
        assert "[20, 30)" in estimate.out
    (people / "out.csv").write_text(
        (people / "out.csv").read_text().replace("age\n", "age\n500\n", 1)
    )
    assert run("check", "out.csv", "--channel", "c.json", "--as", "within").code == 1


def test_the_report_shows_how_far_numbers_move(people, run):
    done = run(
        "design",
        "people.csv",
        *COLUMNS,
        "--bin",
        "quantiles:4",
        *BUDGET,
        "-o",
        "c.json",
        "--report",
        "r.html",
        "--full",
    )
    assert done.code == 0, done.err
    assert "How far numbers move" in done.out
    assert re.search(r"numbers are expected\s+to move by \d", done.out)
    assert "How far numbers move" in (people / "r.html").read_text()
    again = run("report", "c.json", "--report", "r.md")
    assert again.code == 0, again.err
    page = (people / "r.md").read_text()
    assert "How far numbers move" in page
    assert "(-inf, " in page
    assert run("report", "c.json", "--public-report", "p.md").code == 0
    assert "How far numbers move" not in (people / "p.md").read_text()


def test_distance_correlation_and_histogram_are_those_of_the_table(people, run):
    """E|V - R|, corr(V, R) and the shares of bins, by summing over records and outputs."""
    frame = pd.read_csv("people.csv")
    joint = md.Joint.from_table(frame, sensitive="s", useful="age", bins="auto:5")
    channel = md.design(joint, md.LIP(0.5)).channel
    (found,) = moved(channel)
    numbers = dict(zip(channel.outputs, _numbers(channel), strict=True))
    (bins,) = joint.useful.bins
    rows = dict(zip(joint.useful.names, channel.matrix, strict=True))
    released = np.array([numbers[label] for label in channel.outputs])
    weights = np.array(
        [rows[bins.labels[k]] for k in bins.bins_of(frame.age.astype(str).tolist())]
    ) / len(frame)
    distance = np.abs(frame.age.to_numpy()[:, None] - released)
    assert found.distance == pytest.approx((weights * distance).sum())
    left, right = (
        (weights * frame.age.to_numpy()[:, None]).sum(),
        (weights * released).sum(),
    )
    a, b = frame.age.to_numpy()[:, None] - left, released - right
    expected = (weights * a * b).sum() / np.sqrt(
        (weights * a**2).sum() * (weights * b**2).sum()
    )
    assert found.correlation == pytest.approx(expected)
    assert found.before == pytest.approx(np.array(joint.useful_counts) / 600)
    after = [
        sum(
            weights[:, released == n].sum()
            for n in set(released)
            if bins.bin_of(str(int(n))) == k
        )
        for k in range(5)
    ]
    assert found.after == pytest.approx(after)
    assert moved(channel.public()) == ()


def _numbers(channel):
    from mechdesign.release.released_values import numbers_released

    return map(int, numbers_released(channel)[0])


def test_bins_are_chosen_for_the_budget_and_the_curve_is_shown(people, run):
    """Of all numbers of bins on the curve the one taken has the least distance; what is shown is what they have."""
    done = run(
        "design",
        "people.csv",
        *COLUMNS,
        "--bin",
        "auto",
        *BUDGET,
        "--json",
        "-o",
        "c.json",
    )
    assert done.code == 0, done.err
    note = next(text for text in done.record["messages"] if "bins of 'age'" in text)
    pairs = re.search(r"on average \(2 (.*); auto:N", note)[1].split(", ")
    curve = [float(pair.split()[-1]) for pair in pairs]
    assert len(curve) == len(NUMBERS_OF_BINS)
    assert re.search(r"least at this budget, by ([\d.]+)", note)[1] == f"{min(curve):g}"
    bins = Channel.load("c.json").useful.bins[0]
    assert f"bins of 'age': {len(bins)} of them" in note
    assert (
        "--bin auto"
        in json.loads((people / "c.json").read_text())["provenance"]["command"]
    )
    joint = md.Joint.from_table(pd.read_csv("people.csv"), sensitive="s", useful="age")
    assert (
        md.design(joint, md.ALIP.from_epsilon(1.0), bins="auto").channel.useful.bins[0]
        == bins
    )
    limited = md.design(joint, md.LIP(1.0), bins={"age": "auto"}, time_limit=0.5)
    assert limited.seconds < 3.0


def test_dates_move_by_days():
    days = pd.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d")
    joint = md.Joint.from_table(
        pd.DataFrame({"s": list("aab") * 30, "x": days}), sensitive="s", useful="x"
    )
    result = md.design(joint, md.LIP(1.0), bins="auto")
    assert re.search(r"by [\d.]+ (days|hours) on average", result.messages[0])
    assert [distance_text(x, "time") for x in (30, 90, 7200, 86400 * 2)] == [
        "30 s",
        "1.5 minutes",
        "2 hours",
        "2 days",
    ]


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (["x"], "people.csv: --bin 'x' must be a width (10, 0.5, 7d, 1h), quantiles:N, auto, auto:N, or edges"),
        (["20,30"], "people.csv: the column 'age' has 49 different value(s) outside the edges 20 to 30"),
        (["s=10"], "people.csv: --bin names the column 's', which is not useful: 'age'"),
        (["10", "20"], "several --bin must each say their column: --bin COL=BINS"),
        (["age=10", "age=20"], "--bin names a column twice"),
        (["=10"], "several --bin must each say their column"),
        (["auto:1"], "people.csv: --bin 'auto:1': the number of bins must be a whole number"),
    ],
)  # fmt: skip
def test_bad_bins_exit_2_with_one_line(people, run, bins, message):
    result = run(
        "design",
        "people.csv",
        *COLUMNS,
        *BUDGET,
        *(word for text in bins for word in ("--bin", text)),
    )
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_bins_belong_to_one_place(people, run):
    assert (
        run(
            "design", "people.csv", *COLUMNS, "--bin", "20", *BUDGET, "-o", "c.json"
        ).code
        == 0
    )
    result = run("audit", "c.json", "--table", "people.csv", "--bin", "10")
    assert result.code == 2
    assert (
        "c.json has its own bins, and the table is sorted into them: leave --bin out"
        in result.err
    )
    result = run("compare", "people.csv", *COLUMNS, "--bin", "auto", "--epsilons", "1")
    assert result.code == 2
    assert (
        "--bin auto chooses the bins for one budget, which only `design` has; say auto:N for N bins"
        in result.err
    )
    result = run(
        "compare",
        "people.csv",
        *COLUMNS,
        "--bin",
        "20",
        "--epsilons",
        "1",
        "--mechanisms",
        "subset-merging",
    )
    assert result.code == 0, result.err
    (people / "other.csv").write_text("s,age\nno,20\nyes,x\n")
    result = run("audit", "c.json", "--table", "other.csv")
    assert (
        "other.csv: the column 'age': 1 different cell(s) are no number" in result.err
    )
    joint = md.Joint.from_table(pd.read_csv("people.csv"), sensitive="s", useful="age")
    crossed = md.Joint.from_table(
        pd.read_csv("people.csv").assign(b=1), sensitive="s", useful=["age", "b"]
    )
    with pytest.raises(
        InputError,
        match=r"(--bin|bins) auto is for one column; give bins for the others, or auto:N",
    ):
        md.design(crossed, md.LIP(1.0), bins={"age": "auto", "b": "auto"})
    assert (
        md.design(joint, md.LIP(1.0), bins=20).channel.useful
        == Channel.load("c.json").useful
    )


def test_a_column_that_identifies_records_is_refused(folder, run):
    rows = [f"{'ab'[i % 2]},p{i}" for i in range(100)]
    (folder / "ids.csv").write_text("\n".join(["s,id", *rows, ""]))
    asked = (
        "design",
        "ids.csv",
        "--sensitive",
        "s",
        "--useful",
        "id",
        *BUDGET,
        "--mechanism",
        "subset-merging",
    )
    result = run(*asked)
    assert result.code == 2
    assert (
        "the useful column 'id' has 100 symbols in 100 records, so it all but identifies them"
        in result.err
    )
    assert "or insist (--allow-identifier)" in result.err
    assert run(*asked, "--allow-identifier").code == 0
    joint = md.Joint.from_table(pd.read_csv("ids.csv"), sensitive="s", useful="id")
    with pytest.raises(InputError, match=r"insist \("):
        md.design(joint, md.LIP(1.0))
    assert md.design(
        joint, md.LIP(1.0), mechanism="subset-merging", allow_identifier=True
    ).verified
    fewer = md.Joint.from_table(
        pd.read_csv("ids.csv").assign(id=lambda f: f.id.str[:-1]),
        sensitive="s",
        useful="id",
    )
    assert md.design(fewer, md.LIP(1.0), mechanism="subset-merging").verified


def test_many_numbers_get_a_note(people, run):
    result = run(
        "design", "people.csv", *COLUMNS, *BUDGET, "--mechanism", "subset-merging"
    )
    assert (
        "the column 'age' has 60 different numbers, each a symbol of its own: --bin releases them"
        in result.err
    )
    result = run(
        "design",
        "people.csv",
        *COLUMNS,
        *BUDGET,
        "--mechanism",
        "subset-merging",
        "--bin",
        "1",
    )
    assert "symbol of its own" not in result.err
    for values in (range(40), [f"t{i}" for i in range(60)]):
        frame = pd.DataFrame({"s": ["a", "b"] * (len(values) // 2), "x": values})
        assert many_numbers(md.Joint.from_table(frame, sensitive="s", useful="x")) == ()


@pytest.mark.parametrize(
    ("column", "bins", "size"),
    [
        ("age", "10", 9),
        ("hours", "auto:6", 6),
        ("gain", "0,1,5000,inf", 3),
        pytest.param("fnlwgt", "quantiles:20", 20, marks=pytest.mark.slow),
    ],
)
def test_adult(data, folder, run, column, bins, size):
    frame = pd.read_csv(
        data / "adult" / "adult.data", header=None, names=ADULT, skipinitialspace=True
    )
    frame[["relationship", column]].to_parquet("adult.parquet")
    frame[[column]].to_csv("one.csv", index=False)
    frame[[column]].to_parquet("one.parquet")
    made = run("design", "adult.parquet", "--sensitive", "relationship", "--useful", column, "--bin", bins,
               "--epsilon", "2", "-o", "c.json", "--json", "--gap", "0.01", "--time-limit", "20")  # fmt: skip
    assert made.code == 0, made.err
    channel = Channel.load("c.json")
    (bins_of_it,) = channel.useful.bins
    assert len(channel.useful) == size
    expected = pd.Series(
        bins_of_it.bins_of(frame[column].astype(str).tolist())
    ).value_counts()
    found = dict(zip(channel.useful.names, channel.joint.useful_counts, strict=True))
    assert found == {bins_of_it.labels[k]: n for k, n in expected.items()}
    for kind in ("csv", "parquet"):
        done = run(
            "apply",
            "c.json",
            f"one.{kind}",
            f"out.{kind}",
            "--as",
            "within",
            "--insecure-seed",
            "1",
        )
        assert done.code == 0, done.err
    one, other = pd.read_csv("out.csv")[column], pd.read_parquet("out.parquet")[column]
    assert (one == other).all()
    assert other.dtype == frame[column].dtype
    assert set(other) <= set(frame[column])


@pytest.mark.slow
def test_smart_meters_and_taxi_trips(data, folder):
    kwh = pd.read_csv(data / "smart-meter" / "daily_kwh_537x49.csv")
    long = kwh.melt(id_vars=kwh.columns[0], var_name="day", value_name="kwh").dropna()
    long["weekend"] = long.day.str[-1].isin(["6", "7"]).map({True: "yes", False: "no"})
    result = md.design(
        md.Joint.from_table(long, sensitive="weekend", useful="kwh", bins="auto:8"),
        md.LIP(0.2),
    )
    with pytest.warns(
        UserWarning, match="stand in an order that tells of 'kwh'"
    ):  # household by household
        md.sanitise(long[["kwh"]], result.channel, insecure_seed=1)
    released = md.sanitise(
        long[["kwh"]], result.channel, form="representative", keep_order=True
    )
    assert released.kwh.dtype == float
    (found,) = moved(result.channel)
    assert (released.kwh - long.kwh).abs().mean() == pytest.approx(
        found.distance, rel=0.05
    )
    taxi = pd.read_csv(data / "nyc-taxi" / "yellow_2016_01_sample.csv")
    taxi = taxi[
        taxi.pickup_longitude.between(-74.1, -73.7)
        & taxi.pickup_latitude.between(40.6, 40.9)
    ]
    grid = md.Joint.from_table(
        taxi,
        sensitive="payment_type",
        useful=["pickup_longitude", "pickup_latitude"],
        bins={"pickup_longitude": 0.05, "pickup_latitude": 0.05},
    )
    assert grid.records == len(taxi)
    assert grid.useful.names[0].startswith("[-74.")
    channel = md.design(grid, md.LIP(1.0), mechanism="subset-merging").channel
    inside = md.sanitise(
        taxi[["pickup_longitude", "pickup_latitude"]], channel, form="within"
    )
    assert inside.pickup_longitude.between(-74.1, -73.7).all()
    hours = md.Joint.from_table(
        taxi, sensitive="payment_type", useful="tpep_pickup_datetime", bins="7d"
    )
    assert hours.useful.names[0] == "[2015-12-28, 2016-01-04)"


def test_numbers_that_are_moved_the_least_have_a_histogram_and_a_correlation(
    tmp_path, capsys
):
    """Against numpy's weighted covariance of the joint distribution of original and released numbers."""
    table, channel, page = tmp_path / "in.csv", tmp_path / "c.json", tmp_path / "r.md"
    table.write_text(
        "sex,hours\n"
        + "".join(f"{k % 2},{(k * k) % 40 - 5 * (k % 2)}\n" for k in range(600))
    )
    typed = [
        "--sensitive",
        "sex",
        "--useful",
        "hours",
        "--epsilon",
        "0.4",
        "--objective",
        "distance",
    ]
    assert (
        main(
            [
                "design",
                str(table),
                *typed,
                "--output",
                str(channel),
                "--report",
                str(page),
            ]
        )
        == 0
    )
    assert "a symbol of its own" not in capsys.readouterr().err
    made = Channel.load(channel)
    (found,) = moved(made)
    assert made.joint is not None
    one = np.array([float(name) for name in made.useful.names])
    other = np.array([float(name) for name in made.outputs])
    pairs = np.array([(a, b) for a in one for b in other]).T
    weights = (made.joint.p_x[:, None] * made.matrix).ravel()
    covariance = np.cov(pairs, aweights=weights, ddof=0)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found.correlation == pytest.approx(expected, abs=1e-9)
    assert found.distance == pytest.approx(
        float(weights @ np.abs(pairs[0] - pairs[1])), abs=1e-9
    )
    assert [float(label) for label in found.labels] == sorted(one)
    assert found.after == pytest.approx(
        [
            float(made.joint.p_x @ made.matrix[:, made.outputs.index(x)])
            if x in made.outputs
            else 0.0
            for x in found.labels
        ]
    )
    text = " ".join(page.read_text().split())
    assert "original and released numbers have the correlation" in text
    assert "| number | before | after |" in text


def test_numbers_beyond_doubles_are_released_in_bins(tmp_path, monkeypatch):
    """How far they move is not said; it is no internal error."""
    monkeypatch.chdir(tmp_path)
    texts = ("1e400", "99999999999999999999", "-1e-320", "12")
    lines = [f"{texts[k % 4]},{k // 4 % 2}" for k in range(160)]
    (tmp_path / "huge.csv").write_text("size,ill\n" + "\n".join(lines) + "\n")
    line = "design huge.csv --sensitive ill --useful size --bin size=quantiles:2"
    words = [*line.split(), "--at-most-times", "2", "--output", "channel.json"]
    assert main(words) == 0
    assert (tmp_path / "channel.json").exists()


@pytest.mark.parametrize("spec", ["quantiles:4", "auto", "auto:3"])
def test_rows_with_a_column_of_one_number_are_designed(folder, run, spec):
    lines = [f"{'no' if i % 3 else 'yes'},{'ab'[i % 2]},5" for i in range(60)]
    (folder / "one.csv").write_text("\n".join(["s,u,one", *lines, ""]))
    rows = ("--sensitive", "s", "--release", "u,one", "--bin", f"one={spec}")
    done = run("design", "one.csv", *rows, *BUDGET, "--json", "-o", "c.json")
    assert done.code == 0, done.err
    assert not any("bins of 'one'" in text for text in done.record["messages"])
