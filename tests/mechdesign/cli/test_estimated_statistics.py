"""`estimate --mean` and `--regress` on released files, up to real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechdesign.cli import main

DESIGN = ("design", "people.csv", "--sensitive", "income", "--release", "job,hours,sex")
COLUMNS = [
    "age",
    "employer",
    "fnlwgt",
    "education",
    "years",
    "status",
    "job",
    "relation",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def people(place):
    rng = np.random.default_rng(5)
    job = rng.choice(["clerk", "cook", "smith"], 1200)
    sex = rng.choice(["f", "m"], 1200)
    hours = 20 + 10 * rng.integers(0, 3, 1200) + 10 * (job == "cook")
    high = rng.random(1200) < 0.2 + 0.3 * (job == "smith")
    frame = pd.DataFrame(
        {
            "job": job,
            "hours": hours,
            "sex": sex,
            "income": np.where(high, "high", "low"),
        }
    )
    frame.to_csv("people.csv", index=False)
    return frame


@pytest.fixture
def run(capsys):
    def runner(*command, code=0):
        assert main([*command]) == code
        out = capsys.readouterr()
        return out.out if code == 0 else out.err

    return runner


def released(run, *options):
    run(*DESIGN, "--epsilon", "0.6", *options, "--output", "c.json")
    run("apply", "c.json", "people.csv", "out.csv", "--shuffle")
    return ("estimate", "out.csv", "--channel", "c.json")


def test_means_are_those_of_the_table_where_counts_are_fixed(people, run):
    estimate = released(run)
    answer = json.loads(run(*estimate, "--mean", "hours", "--by", "job", "--json"))
    assert answer["statistic"] == "mean"
    assert answer["fixed_counts"] is True
    found = {row["name"]: row["estimate"] for row in answer["rows"]}
    assert found == pytest.approx(people.groupby("job").hours.mean().to_dict())
    text = " ".join(run(*estimate, "--mean", "hours", "--by", "job,sex").split())
    assert "Mean of hours by job, sex from 1,200 released rows" in text
    assert "the draws add no error" in text
    assert "clerk, f" in text


def test_regressions(people, run):
    estimate = released(run)
    ask = (*estimate, "--regress", "hours", "--on", "job,sex")
    answer = json.loads(run(*ask, "--json"))
    assert answer["statistic"] == "least squares"
    base = answer["reference"]
    terms = [
        (c, v) for c in ("job", "sex") for v in sorted(set(people[c])) if v != base[c]
    ]
    z = np.column_stack([np.ones(1200), *[people[c] == v for c, v in terms]]).astype(
        float
    )
    beta = np.linalg.lstsq(z, people.hours.to_numpy(float), rcond=None)[0]
    names = ["(intercept)", *[f"{c}, {v}" for c, v in terms]]
    assert [row["name"] for row in answer["rows"]] == names
    assert [row["estimate"] for row in answer["rows"]] == pytest.approx(list(beta))
    assert f"job is compared with {base['job']}." in run(*ask)


def test_independent_draws_add_to_the_errors(people, run):
    run(*DESIGN, "--epsilon", "0.6", "--output", "c.json")
    run(
        "apply",
        "c.json",
        "people.csv",
        "out.csv",
        "--shuffle",
        "--draws",
        "independent",
    )
    ask = (
        "estimate",
        "out.csv",
        "--channel",
        "c.json",
        "--mean",
        "hours",
        "--by",
        "job",
    )
    rows = json.loads(run(*ask, "--json"))["rows"]
    assert any(row["from_draws"] > 0 for row in rows)
    assert all(row["from_draws"] <= row["standard_error"] for row in rows)
    assert "from draws" in run(*ask)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mean", "hours", "--of", "job"), "two questions"),
        (("--on", "job"), "give regress (--regress), too"),
        (("--mean", "job"), "values that are no numbers"),
        (("--mean", "hours", "--method", "ml"), "leave them out"),
        (("--mean", "income"), "releases no column 'income'"),
        (("--regress", "hours"), "needs columns that it is on"),
    ],
)
def test_refusals(options, words, people, run):
    assert words in run(*released(run), *options, code=2)


def test_labels_have_no_means(people, run):
    asked = ("--objective", "information")
    estimate = released(run, *asked)
    assert "this channel releases labels" in run(*estimate, "--mean", "hours", code=2)


@pytest.mark.slow
@pytest.mark.skipif(
    "MECHDESIGN_DATA" not in os.environ, reason="MECHDESIGN_DATA names no folder"
)
def test_intervals_cover_on_census_data(place, run, monkeypatch):
    """Releases of one table of 2,000 people by independent draws, all through the commands.

    Each release has a ledger of its own: with one ledger the same records would get
    the same draws every time.
    """
    path = Path(os.environ["MECHDESIGN_DATA"]) / "adult" / "adult.data"
    frame = pd.read_csv(
        path, header=None, names=COLUMNS, skipinitialspace=True, dtype=str
    )
    frame = frame.sample(2000, random_state=1)[["age", "job", "sex", "hours", "income"]]
    frame.to_csv("people.csv", index=False)
    design = ("design", "people.csv", "--sensitive", "income", "--epsilon", "0.5")
    run(*design, "--release", "age,job,sex,hours", "--output", "c.json")
    numbers = frame.astype({"hours": float, "age": float})
    means = numbers.groupby("sex").hours.mean()
    z = np.column_stack([np.ones(2000), numbers.age, frame.sex == "Female"]).astype(
        float
    )
    beta = np.linalg.lstsq(z, numbers.hours.to_numpy(), rcond=None)[0]
    shares = frame.job.value_counts(normalize=True)
    hits: dict[str, list[bool]] = {"mean": [], "slope": [], "share": []}
    runs = 60

    def covers(row, true):
        return row["lower"] - 1e-9 <= true <= row["upper"] + 1e-9

    for release in range(runs):
        monkeypatch.setenv("XDG_DATA_HOME", str(place / f"data{release}"))
        out = f"out{release}.csv"
        run("apply", "c.json", "people.csv", out, "--shuffle", "--draws", "independent")
        ask = ("estimate", out, "--channel", "c.json", "--target", "records", "--json")
        for row in json.loads(run(*ask, "--mean", "hours", "--by", "sex"))["rows"]:
            hits["mean"].append(covers(row, means[row["name"]]))
        fit = json.loads(run(*ask, "--regress", "hours", "--on", "age,sex"))["rows"]
        hits["slope"] += [covers(*pair) for pair in zip(fit, beta, strict=True)]
        for row in json.loads(run(*ask, "--of", "job"))["frequencies"][0]["rows"]:
            hits["share"].append(covers(row, shares[row["job"]]))
    for name, covered in hits.items():
        allowed = 4 * np.sqrt(0.95 * 0.05 / runs)
        assert np.mean(covered) == pytest.approx(0.95, abs=allowed), name
