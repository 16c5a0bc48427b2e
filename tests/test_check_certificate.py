"""The program of `examples/` that checks certificates without this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
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
    "tv": (3, 6, md.LIP(1.0), {"average": {"tv": 0.05}}),
    "leakage": (3, 5, None, {"average": {"maximal-leakage": None}, "keep": "60%"}),
    "guess": (3, 5, md.LDP(1.0), {"average": {"guess": 0.55}}),
    "mi": (2, 9, md.LIP(1.0), {"average": {"mi": 0.01}}),
    "mi alone": (2, 7, None, {"average": {"mi": 0.02}}),
    "chi2": (2, 8, md.LDP(1.5), {"average": {"chi2": 0.02}}),
    "gain": (3, 5, None, {"average": {"gain": (GAINS, 0.62)}}),
}


ROWS = {
    "rows": {"smallest_group": 1},
    "groups": {"smallest_group": 5},
    "free rows": {"keep_frequencies": False},
    "numbers": {"objective": "distance", "smallest_group": 1},
    "relative": {"given": ["region"], "promise": "relative", "smallest_group": 1},
}


def design_rows(kind, path):
    rng = np.random.default_rng(3)
    region = rng.integers(0, 2, 200)
    job = (region + rng.integers(0, 2, 200)) % 3
    age = 20 + rng.integers(0, 8, 200)
    columns = {"s": (region + job + rng.integers(0, 2, 200)) % 2, "region": region}
    frame = pd.DataFrame({**columns, "job": job, "age": age}).astype(str)
    given = ROWS[kind].get("given", [])
    released = [name for name in ("region", "job", "age") if name not in given]
    made = md.design(frame, md.LIP(0.3), sensitive="s", release=released, **ROWS[kind])
    assert made.least.cost_lower_bound > 0.0
    made.channel.save(path)


def design(kind, path):
    if kind in ROWS:
        design_rows(kind, path)
        return
    secrets, symbols, notion, options = KINDS[kind]
    counts = np.random.default_rng(4).integers(1, 40, (secrets, symbols))
    labels = [str(k * k) for k in range(symbols)]
    joint = md.Joint.from_counts(counts.tolist(), useful_labels=labels)
    if "task" in options:
        of_task = np.random.default_rng(8).integers(1, 40, (3, symbols))
        sensitive = Variable(("T",), (("a",), ("b",), ("c",)))
        task = md.Joint.from_counts(of_task.tolist(), useful_labels=labels)
        options = {**options, "task": replace(task, sensitive=sensitive)}
    promise = () if notion is None else (notion,)
    md.design(joint, *promise, **options).channel.save(path)


def check(*paths):
    """Without the package: `-I` leaves the folder and PYTHONPATH out of the path."""
    lines = [
        "import sys",
        "sys.modules['mechdesign'] = sys.modules['solvers'] = None",
        f"sys.argv = {[str(PROGRAM), *map(str, paths)]!r}",
        "import runpy",
        f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')",
    ]
    return subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", "\n".join(lines)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_kind_is_proven(tmp_path):
    kinds = [*KINDS, *ROWS]
    paths = [tmp_path / f"{kind}.json" for kind in kinds]
    for kind, path in zip(kinds, paths, strict=True):
        design(kind, path)
    run = check(*paths)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    # The least leakage of a share has two bounds.
    assert run.stdout.count("is proven") == len(kinds) + 1


@pytest.mark.parametrize(
    "kind", ["information", "truth", "groups", "task", "prefix", "guess", "mi"]
)
def test_forged_bounds_and_proofs_are_not(kind, tmp_path):
    good = tmp_path / "good.json"
    design(kind, good)

    def better(document):
        utility = document["utility"]
        if kind == "task":
            utility["task_upper_bound"] -= 1e-3
        elif kind == "prefix":
            utility["variance_lower_bound"] += 1e-2
        elif kind in ("information", "guess", "mi"):
            document["certificate"]["upper_bound_nmi"] -= 1e-3
        else:
            utility["cost_lower_bound"] += 1e-3

    def other_prices(document):
        proof = document["certificate"]["proof"]
        proof["prices"] = proof["prices"][1:] + proof["prices"][:1]
        proof["lifts"] = [row[1:] + row[:1] for row in proof.get("lifts", [])]

    def other_table(document):
        document["joint"][0][0] += 40

    for k, change in enumerate((better, other_prices, other_table)):
        forged = tmp_path / f"forged{k}.json"
        rewrite(good, change, forged)
        run = check(forged)
        assert run.returncode == 1, (change, run.stdout, run.stderr)
        assert "NOT proven" in run.stdout


def test_files_without_a_proof_are_refused(tmp_path):
    path = tmp_path / "good.json"
    design("information", path)
    rewrite(path, lambda document: document["certificate"].pop("proof"))
    run = check(path)
    assert run.returncode == 1
    assert "no proof that this program can check" in run.stderr
    assert json.loads(path.read_text())["certificate"]["scope"] == "proven"
