"""Fixtures and settings that every test may use."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests import profiles

ROOT = Path(__file__).parents[1]

NUMBERS = count()

# Every core has a process of the suite. Threads of the linear algebra, which numpy starts when it
# is imported, would wait for each other in them and in the commands that they start: designs for
# queries took nine times the processor time.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# The suite starts hundreds of processes. Where Python is told to keep no bytecode, each would compile the package anew,
# and each process of the suite all of the tests: two thirds of the time that it takes to collect them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is released or entered in a ledger is forced to the disk before anybody is told of it, and the suite would wait
# for that thousands of times. Its folders are in memory where there is room for many times what they ever hold.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

profiles.register()

# A suite that nohup or a shell in the background starts ignores signals, and so would its children.
# The commands leave an ignored signal ignored, so tests of signals need the usual state. A hang-up
# still does not end the suite itself: its handler does nothing, and children start without it.
for _name, _handler in (
    ("SIGINT", signal.default_int_handler),
    ("SIGTERM", signal.SIG_DFL),
    ("SIGHUP", lambda _number, _frame: None),
):
    # Windows lacks SIGHUP.
    _signal = getattr(signal, _name, None)
    if _signal is not None and signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, _handler)


MOST_WORKERS = 4
"""Processes for the whole suite, where there are so many cores; more would wait for each other's disk and memory."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """All cores for the whole suite; one process where tests are named, or print what they measured (``-s``)."""
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    return (
        min(os.cpu_count() or 1, MOST_WORKERS)
        if whole and config.option.capture != "no"
        else 0
    )


def import_share(config: pytest.Config, worker: int, workers: int) -> None:
    """Import every test module whose turn it is: each of several processes has another share.

    In a fresh copy of the project all test modules have to be compiled, which takes twice as long as the rest of the
    collection. So each process compiles its own share first, and then finds those of the others compiled.
    """
    modules = []
    for argument in config.args:
        place = config.invocation_params.dir / argument.partition("::")[0]
        modules += sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    for path in modules[worker::workers]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        # The collection imports a module that fails once more, and says why.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Search for garbage only when all tests are there: what is collected stays until the end.

    Each process would search its growing modules and tests some thirty times, two fifths of the time that it takes to
    collect them. Later, what has lived for a while is searched seldom: most of it are modules that tests import.
    """
    gc.disable()
    try:
        worker = getattr(session.config, "workerinput", None)
        if worker is not None:
            number = int(worker["workerid"].removeprefix("gw"))
            import_share(session.config, number, worker["workercount"])
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(gc.get_threshold()[0], 50, 50)
        gc.enable()


@pytest.fixture(autouse=True)
def _own_ledger(tmp_path_factory, monkeypatch):
    """Each test has a data folder of its own, in which the ledger of releases is, made when something needs it.

    And no frame was released before.
    """
    if "mechdesign.frames.sanitising" in sys.modules:
        sys.modules["mechdesign.frames.sanitising"]._DRAWN.clear()
    monkeypatch.setenv(
        "XDG_DATA_HOME",
        str(tmp_path_factory.getbasetemp() / "data" / str(next(NUMBERS))),
    )


@pytest.fixture(scope="session")
def ready():
    """A server that starts commands without importing the package for each."""
    from tests.ready_commands import ready_commands

    with ready_commands() as commands:
        yield commands


@pytest.fixture
def small_by_products(monkeypatch):
    """What comes with an answer is small: the guess of a secret learns in few rounds, and a report has a curve of
    four budgets.

    For tests of other things. Those of the guess and of the curve are in leaks/test_row_guess.py and
    comparison/test_curve.py.
    """
    from mechdesign.comparison import curve
    from mechdesign.leaks import learners

    monkeypatch.setattr(learners, "ROUNDS", 10)
    monkeypatch.setattr(curve, "FACTORS", curve.FACTORS[: curve.FEWEST])


@pytest.fixture(scope="session")
def adult_path() -> Path:
    """The Adult count table that the project carries: 5 relationships x 15 occupations, 31,580 records."""
    return ROOT / "examples" / "adult_relationship_by_occupation.csv"


@pytest.fixture(scope="session")
def adult(adult_path):
    """The Adult joint of the published figures."""
    from mechdesign.tables.reading import read_joint

    return read_joint(adult_path, contingency=True, useful="occupation")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data, where there is one."""
    folder = os.environ.get("MECHDESIGN_DATA")
    if not folder:
        pytest.skip("MECHDESIGN_DATA does not name the folder of real data")
    return Path(folder)
