"""Which constants of column generation the real tables defend: each one neutralised in turn.

The problems are those that `design` gives to the solver: MECHDESIGN_DATA names the folder of the real data,
random tables join them. Time is that of the processor, and limits count it too, so that a busy machine
changes neither. A constant is defended by a table that takes longer, or ends with a wider gap, without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdesign.mechanisms import rules
from mechdesign.mechanisms.design_call import design
from mechdesign.notions import ALIP
from mechdesign.tables.joint import Joint
from solvers import Envelope, lower_envelope
from solvers.envelope import column_pool, generation
from solvers.envelope.generation import Generation
from tests.benchmarks.measuring import table
from tests.benchmarks.test_real_tables import SOURCES, crossing

pytestmark = pytest.mark.benchmark

DESIGN_SECONDS = 10.0

SECONDS = float(os.environ.get("MECHDESIGN_SECONDS", "6"))
"""Processor time of one envelope."""

ADULT_CROSSINGS = (
    ("race", "age workclass", 1.0),
    ("race", "age workclass", 2.0),
    ("race", "occupation education", 2.0),
    ("income", "occupation education hours", 2.0),
    ("sex", "age education", 4.0),
    ("relationship", "occupation", 1.0),
    ("relationship", "occupation education", 2.0),
    ("marital", "education workclass", 1.0),
)
"""Sensitive column, useful columns and epsilon."""

COUNTS = 1_000_000
"""Records of a random table."""


@dataclass(frozen=True)
class Problem:
    """One envelope as `design` asks for it."""

    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """Constants of `generation` or `column_pool`, or methods of `Generation`, in the place of the true ones."""

    name: str
    constants: dict[str, object]
    methods: dict[str, Callable[..., Any]]


def _constant(name: str, value: object) -> Setting:
    return Setting(f"{name} = {value}", {name: value}, {})


def _method(name: str, replacement: Callable[..., Any]) -> Setting:
    return Setting(f"without {name}", {}, {name: replacement})


SETTINGS = (
    Setting("as it is", {}, {}),
    _constant("CUTOFF_SHARE", 0.5),
    _constant("COLUMN_SHARE", 0.0),
    _constant("EARLY_SLACK", 0.0),
    _constant("FIRST_RADIUS", 0.1),
    _constant("MOST_SCALE", 1.0),
    _constant("MIX", 0.9),
    _constant("ENOUGH", 5),
    _constant("MOST_LOWERINGS", 0),
    _method("_walk", lambda run: 0),
    _method("_polish", lambda run, pivots: None),
    Setting(
        "without local searches first",
        {},
        {"prepare": lambda run: None, "price": Generation._price_exactly},
    ),
)


def test_generation_ablation(monkeypatch, capsys):
    """Processor seconds, value and relative gap of every problem under every setting; all values agree."""
    folder = os.environ.get("MECHDESIGN_DATA")
    if folder is None:
        pytest.skip("MECHDESIGN_DATA does not name the folder of real data")
    problems = [_captured(*case) for case in _tables(Path(folder))]
    monkeypatch.setattr(time, "monotonic", time.process_time)
    rows: list[list[str]] = []
    reference: dict[str, Envelope] = {}
    for setting in SETTINGS:
        total = 0.0
        row = [setting.name]
        for problem in problems:
            with _installed(setting):
                began = time.process_time()
                envelope = lower_envelope(*problem.arguments, **problem.options)
                seconds = time.process_time() - began
            total += seconds
            row.append(f"{seconds:.2f} ({envelope.gap:.0e})")
            best = reference.setdefault(problem.name, envelope)
            # Whatever is neutralised, bounds hold: no value lies below any of them.
            assert envelope.bound <= best.value + 1e-9
            assert best.bound <= envelope.value + 1e-9
        rows.append([*row, f"{total:.2f}"])
        with capsys.disabled():
            print(" | ".join(rows[-1]), flush=True)
    header = ["setting", *(problem.name for problem in problems), "total"]
    with capsys.disabled():
        table("Processor seconds (gap in nats) of an envelope", header, rows)


@contextmanager
def _installed(setting: Setting) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in setting.constants.items():
            module = generation if hasattr(generation, name) else column_pool
            patch.setattr(module, name, value)
        for name, replacement in setting.methods.items():
            patch.setattr(Generation, name, replacement)
        yield


def _tables(folder: Path) -> Iterator[tuple[str, Joint, float]]:
    adult = SOURCES["adult"](folder)
    for sensitive, useful, epsilon in ADULT_CROSSINGS:
        joint = crossing(adult, [sensitive], useful.split())
        yield f"{sensitive} x {useful.replace(' ', '*')}, {epsilon:g}", joint, epsilon
    rng = np.random.default_rng(7)
    yield "uniform 15 x 200, 2", _drawn(rng.random((15, 200))), 2.0
    masses = rng.dirichlet(np.ones(15))[:, None]
    yield "Dirichlet 15 x 200, 2", _drawn(masses * rng.dirichlet([0.3] * 200, 15)), 2.0


def _drawn(weights: np.ndarray) -> Joint:
    counts = np.round(COUNTS * weights / weights.sum()).astype(int)
    return Joint.from_counts(counts.tolist())


def _captured(name: str, joint: Joint, epsilon: float) -> Problem:
    """The largest envelope of a design, with the decompositions that it begins with."""
    problems: list[Problem] = []

    def recorded(*arguments: Any, **options: Any) -> Envelope:
        decompositions = list(options.get("incumbents", tuple)())
        options["incumbents"] = lambda: decompositions
        envelope = lower_envelope(*arguments, **options)
        replayed = options | {"time_limit": SECONDS, "progress": None}
        problems.append(Problem(name, arguments, replayed))
        return envelope

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "lower_envelope", recorded)
        design(joint, ALIP.from_epsilon(epsilon), time_limit=DESIGN_SECONDS)
    return max(problems, key=lambda problem: problem.arguments[0].n)
