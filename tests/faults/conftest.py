"""Processes that start command lines, shared by all tests: an import takes longer than most of them."""

from __future__ import annotations

import pytest

from tests.faults.job_cases import Nursery


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    with Nursery(tmp_path_factory.mktemp("printed")) as nursery:
        yield nursery
