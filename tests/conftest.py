"""Fixtures and settings that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

# Timings depend on the machine, so no deadline; derandomised, so that a run can be repeated.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")


@pytest.fixture(scope="session", autouse=True)
def _own_ledger(tmp_path_factory):
    """The user's data folder, with the ledger of releases in it, is one of the tests."""
    before = os.environ.get("XDG_DATA_HOME")
    os.environ["XDG_DATA_HOME"] = os.fspath(tmp_path_factory.mktemp("data"))
    yield
    os.environ.pop("XDG_DATA_HOME") if before is None else os.environ.update(XDG_DATA_HOME=before)


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
