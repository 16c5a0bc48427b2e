"""A small table, and the page on a thread."""

from __future__ import annotations

import multiprocessing
import random
import sys
import threading

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed")
pytest.importorskip("uvicorn", reason="the extra app is not installed")

from mechdesign.app.server import LocalServer
from mechdesign.app.session import Session

SECRETS = ("ill", "well")
JOBS = ("clerk", "cook", "nurse")
TOWNS = ("north", "south")


def write_people(path, records=600):
    """People whose job tells something of their illness."""
    rng = random.Random(1)
    lines = ["illness,job,town,age,note"]
    for number in range(records):
        secret = rng.choice(SECRETS)
        job = rng.choice(JOBS if secret == "ill" else JOBS[1:])
        town = rng.choice(TOWNS)
        note = "" if number % 50 == 0 else "seen"
        lines.append(f"{secret},{job},{town},{rng.randrange(18, 80)},{note}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def people(tmp_path):
    return write_people(tmp_path / "people.csv")


@pytest.fixture
def served():
    """A running page: its session and its address."""
    session = Session()
    server = LocalServer(session)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield session, server.address
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


IMPORTED_BY_TASKS = [
    "highspy",
    "jinja2",
    "matplotlib.figure",
    "mechdesign.analysis.file_checking",
    "mechdesign.app.releasing",
    "mechdesign.app.session",
    "mechdesign.jobs.release_file",
    "mechdesign.mechanisms.designing",
    "mechdesign.report.drawing",
    "mechdesign.report.record",
    "mechdesign.report.writing",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
]


@pytest.fixture
def quick_work(monkeypatch):
    """Work is forked from a process that has imported what it needs, for which a new one takes a second."""
    if sys.platform != "linux":
        return
    context = multiprocessing.get_context("forkserver")
    # Counts before the first process of all.
    context.set_forkserver_preload(IMPORTED_BY_TASKS)
    monkeypatch.setattr("mechdesign.app.memory_table.get_context", lambda _: context)
