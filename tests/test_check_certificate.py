"""The program of `examples/` that checks certificates without this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.stated import statement_of
from mechdesign.mechanisms.proving import with_certificate
from mechdesign.mechanisms.queries import Queries
from mechdesign.tables.variable import Variable
from tests.cases.documents import rewrite

PROGRAM = Path(__file__).parents[1] / "examples" / "check_certificate.py"

GAINS = [[1, 0, 0.5], [0, 1, 0], [0.25, 0, 1]]

KINDS = {
    "information": (3, 7, md.LIP(0.1), {}),
    "alip": (2, 12, md.ALIP(0.1, 0.2), {}),
    "ldp": (3, 6, md.LDP(0.3), {}),
    "max-lift": (4, 6, md.MaxLift(0.1), {}),
    "min-lift": (3, 6, md.MinLift(0.1), {}),
    "truth": (3, 7, md.LIP(0.3), {"objective": "truth"}),
    "free": (2, 6, md.LDP(0.5), {"objective": "truth", "keep_frequencies": False}),
    "distance": (4, 6, md.LDP(0.5), {"objective": "distance"}),
    "squared": (
        2,
        5,
        md.MaxLift(0.2),
        {"objective": "distance", "distance": "squared"},
    ),
    "stay": (2, 5, md.MinLift(0.2), {"objective": "truth", "stay": "0.25"}),
    "forbid": (2, 5, md.LIP(0.4), {"objective": "truth", "forbid": [("0", "4")]}),
    "many": (2, 160, md.LIP(0.3), {"objective": "truth"}),
    "costs": (2, 4, md.LIP(0.2), {"objective": (1 - np.eye(4)) / 3}),
    "task": (3, 6, md.LIP(0.2), {"objective": "task", "task": "T"}),
    "frequencies": (3, 6, md.LDP(0.4), {"objective": "frequencies"}),
    "prefix": (3, 5, md.LIP(0.2), {"objective": "prefix"}),
    "ranges": (2, 5, md.LIP(0.2), {"objective": "ranges"}),
    "own queries": (2, 4, md.LIP(0.2), {"objective": Queries(np.eye(4)[:2])}),
    "as they are": (2, 4, md.LIP(9.0), {"objective": Queries(np.eye(4)[:2])}),
    "tv": (3, 6, md.LIP(1.0), {"average": {"tv": 0.05}}),
    "leakage": (3, 5, None, {"average": {"maximal-leakage": None}, "keep": "60%"}),
    "guess": (3, 5, md.LDP(1.0), {"average": {"guess": 0.55}}),
    "mi": (2, 9, md.LIP(1.0), {"average": {"mi": 0.01}}),
    "mi alone": (2, 7, None, {"average": {"mi": 0.02}}),
    "chi2": (2, 8, md.LDP(1.5), {"average": {"chi2": 0.02}}),
    "gain": (3, 5, None, {"average": {"gain": (GAINS, 0.62)}}),
    "mi, three": (3, 4, md.LIP(1.0), {"average": {"mi": 0.02}}),
    "chi2, three": (3, 4, md.LDP(1.5), {"average": {"chi2": 0.03}}),
    "task within mi": (
        2,
        6,
        md.LIP(1.0),
        {"objective": "task", "task": "T", "average": {"mi": 0.02}},
    ),
    "task within tv": (
        3,
        5,
        None,
        {"objective": "task", "task": "T", "average": {"tv": 0.06}},
    ),
    "frequencies within chi2": (
        2,
        3,
        md.LIP(1.0),
        {"objective": "frequencies", "average": {"chi2": 0.03}},
    ),
    "prefix within tv": (3, 4, None, {"objective": "prefix", "average": {"tv": 0.06}}),
    "two averages": (3, 5, md.LIP(1.5), {"average": {"mi": 0.02, "tv": 0.05}}),
    "costs within mi": (
        3,
        6,
        md.LIP(1.0),
        {"objective": "truth", "average": {"mi": 0.02}},
    ),
    "costs within chi2": (
        3,
        5,
        None,
        {
            "objective": "distance",
            "average": {"chi2": 0.03},
            "keep_frequencies": False,
        },
    ),
    "costs within averages": (
        3,
        5,
        None,
        {
            "objective": (1 - np.eye(5)) / 3,
            "average": {"tv": 0.05, "maximal-leakage": 0.15, "guess": 0.43},
        },
    ),
    "costs within gains": (
        3,
        5,
        None,
        {"objective": "truth", "average": {"gain": (GAINS, 0.55)}},
    ),
    "population": (3, 5, md.LIP(0.5), {"confidence": 0.9}),
    "population, quotients": (2, 5, md.LDP(0.5), {"confidence": 0.9}),
    "population, known": (
        2,
        5,
        md.MaxLift(0.3),
        {"confidence": 0.9, "known_shares": {"s0": "0.55", "s1": "0.45"}},
    ),
    "population, costs": (
        3,
        5,
        md.LIP(0.2),
        {"confidence": 0.9, "objective": "truth"},
    ),
    "population, free": (
        3,
        4,
        md.LDP(0.4),
        {"confidence": 0.9, "objective": "distance", "keep_frequencies": False},
    ),
}


ROWS = {
    "rows": {"smallest_group": 1},
    "groups": {"smallest_group": 5},
    "free rows": {"keep_frequencies": False},
    "rows within mi": {"average": {"mi": 0.01}, "smallest_group": 1},
    "rows within tv": {"average": {"tv": 0.05}, "smallest_group": 1},
    "numbers": {"objective": "distance", "smallest_group": 1},
    "relative": {"given": ["region"], "promise": "relative", "smallest_group": 1},
    "forbidden": {
        "forbid": [("region=1", "region=0"), ("27", "20"), ("1, 1, 21", "1, 2, 21")],
        "smallest_group": 1,
    },
    "never": {
        "never": [{"region": "1", "job": "2"}],
        "forbid": [("age=25", "age=25")],
        "keep_frequencies": False,
    },
    "weights": {"column_weights": {"job": 3, "age": 0.5}, "smallest_group": 1},
}


# What a design of columns asks, and the mechanism's options.
COLUMNS = {
    "each": (md.LIP(0.2), {"sensitive": ["s", "region"], "protect_each": True}),
    "each, costs": (
        md.LIP(0.2),
        {"sensitive": ["s", "region"], "protect_each": True, "objective": "truth"},
    ),
    "budgets": (md.LIP(0.4), {"budgets": {"0": (0.1, 0.2)}}),
    "prefixes of texts": (md.LIP(0.4), {"useful": "word", "objective": "prefix"}),
    "budgets, costs": (
        md.LIP(0.4),
        {"budgets": {"0": (0.1, 0.2)}, "objective": "truth"},
    ),
}

# After a release of the same column, or of another released one.
AFTER = {
    "after": (md.LIP(0.4), "code", {"useful": "code"}),
    "after, quotients": (md.LDP(0.7), "code", {"useful": "code"}),
    "after, each": (
        md.LIP(0.6),
        "code",
        {"useful": "code", "sensitive": ["s", "region"], "protect_each": True},
    ),
    "after, costs": (md.LIP(0.4), "code", {"useful": "code", "objective": "truth"}),
    "after, distance": (
        md.LDP(0.7),
        "code",
        {"useful": "code", "objective": "distance"},
    ),
    "after, rows": (
        md.LIP(0.45),
        "code",
        {"release": ["code", "region"], "smallest_group": 1},
    ),
}


def records():
    rng = np.random.default_rng(3)
    region = rng.integers(0, 2, 200)
    job = (region + rng.integers(0, 2, 200)) % 3
    age = 20 + rng.integers(0, 8, 200)
    columns = {"s": (region + job + rng.integers(0, 2, 200)) % 2, "region": region}
    code = (2 * columns["s"] + region + rng.integers(0, 3, 200)) % 5
    word = np.array(["?", "11", "5", "9"])[code % 4]
    columns |= {"job": job, "age": age, "code": code, "word": word}
    return pd.DataFrame(columns).astype(str)


def design_rows(kind):
    given = ROWS[kind].get("given", [])
    released = [name for name in ("region", "job", "age") if name not in given]
    made = md.design(
        records(), md.LIP(0.3), sensitive="s", release=released, **ROWS[kind]
    )
    assert made.least.cost_lower_bound > 0.0
    return made.channel


def design_columns(kind):
    notion, options = COLUMNS[kind]
    options = {"sensitive": "s", "useful": "age", **options}
    return md.design(records(), notion, **options).channel


def design_after(kind):
    """The channel, and the one of the release before."""
    notion, before, options = AFTER[kind]
    options = {"sensitive": "s", **options}
    protected = {
        key: value
        for key, value in options.items()
        if key in ("sensitive", "protect_each")
    }
    first = md.design(records(), md.LIP(0.3), useful=before, **protected).channel
    made = md.design(records(), notion, after=[first], **options)
    return made.channel, first


def design_table(kind):
    secrets, symbols, notion, options = KINDS[kind]
    counts = np.random.default_rng(4).integers(1, 40, (secrets, symbols))
    if "confidence" in options:
        # With few records hardly anything is private for the whole set.
        counts *= 300
    labels = [str(k * k) for k in range(symbols)]
    joint = md.Joint.from_counts(counts.tolist(), useful_labels=labels)
    if "task" in options:
        of_task = np.random.default_rng(8).integers(1, 40, (3, symbols))
        sensitive = Variable(("T",), (("a",), ("b",), ("c",)))
        task = md.Joint.from_counts(of_task.tolist(), useful_labels=labels)
        options = {**options, "task": replace(task, sensitive=sensitive)}
    promise = () if notion is None else (notion,)
    return md.design(joint, *promise, **options).channel


@pytest.fixture(scope="module")
def file_of(tmp_path_factory):
    """The file of a kind that needs no other one; it is designed once."""
    folder = tmp_path_factory.mktemp("kinds")

    @cache
    def file(kind):
        if kind in KINDS:
            channel = design_table(kind)
        elif kind in ROWS:
            channel = design_rows(kind)
        else:
            channel = design_columns(kind)
        channel.save(folder / f"{kind}.json")
        return folder / f"{kind}.json"

    return file


@pytest.fixture(scope="module", params=AFTER)
def file_after(request, tmp_path_factory):
    """A file after an earlier release, and that one."""
    folder = tmp_path_factory.mktemp("after")
    channel, first = design_after(request.param)
    channel.save(folder / "channel.json")
    first.save(folder / "first.json")
    return folder / "channel.json", folder / "first.json"


def better(document):
    """State a bound that no proof of the file reaches."""
    certificate, utility = document["certificate"], document["utility"]
    proof = certificate["proof"]["kind"]
    if proof == "task":
        utility["task_upper_bound"] -= 1e-3
    elif proof == "queries":
        utility["variance_lower_bound"] += 1e-2
    elif proof == "entropy":
        certificate["upper_bound_nmi"] -= 1e-3
    else:
        utility["cost_lower_bound"] += 1e-3


def code_of_check(paths):
    """The program on these files, where nothing can import the package."""
    return "\n".join(
        [
            "import sys",
            "sys.modules['mechdesign'] = sys.modules['solvers'] = None",
            f"sys.path.insert(0, {str(PROGRAM.parent)!r})",
            f"sys.argv = {[str(PROGRAM), *map(str, paths)]!r}",
            "import runpy",
            f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')",
        ]
    )


def check_alone(*paths):
    """In a new Python: `-I` leaves the folder and PYTHONPATH out of the path."""
    return subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", code_of_check(paths)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def check(ready, tmp_path):
    """In a process that has numpy already: most files are checked faster than it is imported."""

    def checked(*paths):
        return ready.run(code_of_check(paths), folder=tmp_path, environment=os.environ)

    return checked


FORMS = ("truth", "costs", "task", "ranges", "mi", "population", "groups", "each")
"""Kinds with proofs of different forms, and the least leakage of a share."""

SOME_OR_ALL = pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((*FORMS, "leakage"), id="some"),
        pytest.param((*KINDS, *ROWS, *COLUMNS), id="all", marks=pytest.mark.slow),
    ],
)


@SOME_OR_ALL
def test_every_kind_is_proven(file_of, kinds):
    run = check_alone(*map(file_of, kinds))
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    # The least leakage of a share has two bounds.
    assert run.stdout.count("is proven") == len(kinds) + 1


@SOME_OR_ALL
def test_no_forged_bound_is(file_of, tmp_path, check, kinds):
    forged = []
    for kind in kinds:
        forged.append(tmp_path / f"{kind}.json")
        rewrite(file_of(kind), better, forged[-1])
    run = check(*forged)
    assert run.returncode == 1
    for path in forged:
        assert f"{path}: " in run.stdout
    assert run.stderr == ""
    # That of the leakage is as it was.
    assert run.stdout.count("NOT proven") == len(forged)
    assert run.stdout.count(" is proven") == 1


@pytest.mark.parametrize("kind", ["information", "truth", "groups", "each", "guess"])
def test_other_multipliers_and_other_tables_prove_less(file_of, kind, tmp_path, check):
    def other_prices(document):
        proof = document["certificate"]["proof"]
        proof["prices"] = proof["prices"][1:] + proof["prices"][:1]
        proof["lifts"] = [row[1:] + row[:1] for row in proof.get("lifts", [])]

    def other_table(document):
        document["joint"][0][0] += 40

    for k, change in enumerate((other_prices, other_table)):
        forged = tmp_path / f"forged{k}.json"
        rewrite(file_of(kind), change, forged)
        run = check(forged)
        assert run.returncode == 1, (change, run.stdout, run.stderr)
        assert "NOT proven" in run.stdout


def test_bounds_after_earlier_releases_need_them(file_after, tmp_path, check):
    path, first = file_after
    run = check(path, "--after", first)
    assert run.returncode == 0, run.stdout + run.stderr
    run = check(path)
    assert run.returncode == 1
    assert "give the releases it was designed after" in run.stderr
    forged = tmp_path / "forged.json"
    rewrite(path, better, forged)
    run = check(forged, "--after", first)
    assert run.returncode == 1
    assert "NOT proven" in run.stdout


def test_files_without_a_proof_are_refused(file_of, tmp_path, check):
    path = tmp_path / "without.json"
    rewrite(
        file_of("information"),
        lambda document: document["certificate"].pop("proof"),
        path,
    )
    run = check(path)
    assert run.returncode == 1
    assert "no proof in this file" in run.stderr
    assert json.loads(path.read_text())["certificate"]["scope"] == "proven"


def test_other_sets_of_populations_are_refused(tmp_path, check):
    path = tmp_path / "population.json"
    made = md.design(
        records(), md.LIP(0.5), sensitive="s", useful="job", confidence=0.9
    )
    made.channel.save(path)
    rewrite(path, lambda document: document["confidence"].update(unseen=2))
    run = check(path)
    assert run.returncode == 1
    assert "does not know this set of populations" in run.stderr


def test_slopes_that_prove_nothing_are_refused(file_of, tmp_path, check):
    def steeper(document):
        for charge in document["certificate"]["proof"]["averages"]:
            charge["price"] /= 2.0

    for kind, message in {
        "costs within mi": "NOT proven",
        "costs within chi2": "NOT proven",
        "costs within gains": "slopes of an average that prove nothing",
    }.items():
        path = tmp_path / f"{kind}.json"
        rewrite(file_of(kind), steeper, path)
        run = check(path)
        assert run.returncode == 1
        assert message in run.stdout + run.stderr


def test_multipliers_of_a_secret_that_a_stratum_lacks_prove_nothing(tmp_path, check):
    """Its lift is 0 there, below every least one: that must not make the bound larger."""
    table = records()
    lacking = table.region == "0"
    table.loc[~lacking & (table.age > "25"), "s"] = "2"
    options = {"release": ["job", "age"], "given": ["region"], "promise": "relative"}
    made = md.design(
        table, md.LIP(0.3), sensitive="s", smallest_group=1, unit="record", **options
    )
    path = tmp_path / "channel.json"
    made.channel.save(path)
    assert check(path).returncode == 0

    def forge(document):
        useful, symbols = document["useful"], document["sensitive"]["symbols"]
        place = useful["columns"].index("region")
        row = document["certificate"]["proof"]["lifts"][symbols.index(["2"])]
        for y, symbol in enumerate(useful["symbols"]):
            if symbol[place] == "0":
                row[y] = 1.0
        document["utility"]["cost_lower_bound"] = document["utility"]["cost"]

    rewrite(path, forge)
    assert "NOT proven" in check(path).stdout
    channel = md.load(path)
    (one,) = with_certificate(statement_of(channel), channel).unproven
    assert one.proven <= made.least.cost_lower_bound + 1e-9


BESIDE_GIVEN = {
    "information": (md.LIP(0.2), {"release": ["job", "code"]}),
    "information, total": (md.LIP(0.5), {"promise": "total"}),
    "quotients": (md.LDP(0.4), {}),
    "budgets": (md.LIP(0.4), {"budgets": {"0": (0.1, 0.2)}}),
    "prefixes of texts": (md.LIP(0.4), {"release": ["word"], "objective": "prefix"}),
    "task": (md.LIP(0.2), {"objective": "task", "task": "T"}),
    "frequencies": (md.LIP(0.2), {"objective": "frequencies"}),
    "prefix": (md.LIP(0.2), {"objective": "prefix"}),
}


# Nearer to the channel than is proven.
CLOSER = {
    "upper_bound_nmi": -1e-4,
    "task_upper_bound": -1e-4,
    "variance_lower_bound": 1e-4,
}


@pytest.mark.parametrize("kind", BESIDE_GIVEN)
def test_free_outputs_beside_given_columns_are_checked(tmp_path, kind, check):
    notion, options = BESIDE_GIVEN[kind]
    options = {
        "release": ["code"],
        "promise": "relative",
        "objective": "information",
        "unit": "record",
        **options,
    }
    table = records()
    table["T"] = table["code"] > "1"
    made = md.design(table, notion, sensitive="s", given=["region"], **options)
    path = tmp_path / "channel.json"
    made.channel.save(path)
    run = check(path)
    assert run.returncode == 0, run.stderr
    assert " is proven" in run.stdout

    def forge(document):
        for figures in (document["certificate"], document["utility"]):
            for name, by in CLOSER.items():
                if figures.get(name) is not None:
                    figures[name] += by

    rewrite(path, forge)
    assert "NOT proven" in check(path).stdout


@pytest.mark.parametrize(
    ("notion", "options", "reason"),
    [
        (
            md.KL(0.1, 0.1),
            {"useful": "x", "objective": "truth"},
            "a promise on averages over secrets",
        ),
    ],
)
def test_what_it_leaves_to_the_audit_it_names(tmp_path, notion, options, reason):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "s": rng.choice(["p", "q", "r"], 400),
            "x": rng.choice([*"abcde"], 400),
            "region": rng.choice(["u", "v"], 400),
        }
    )
    design = md.design(frame, notion, sensitive="s", **options)
    path = tmp_path / "channel.json"
    design.channel.save(path)
    done = subprocess.run(
        [sys.executable, PROGRAM, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
