from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.tables.variable import Variable
from tests.cases.released_records import SETTINGS, city_channel, mixing_channel

D = 2**53


def bare_channel(useful, outputs, rows, sensitive=None, **options) -> Channel:
    """A channel without its table."""
    return Channel(useful, outputs, rows, sensitive=sensitive, **options)


@pytest.fixture
def channel():
    """Publishes c as it is and merges a and b; nothing is random, so outputs can be foretold."""
    return bare_channel(
        Variable(("job",), (("a",), ("b",), ("c",))),
        ("c", "{a, b}"),
        ((0, D), (0, D), (D, 0)),
        Variable(("rel",), (("w",), ("h",))),
    )


@pytest.fixture
def coin():
    """A fair coin for every record."""
    return bare_channel(
        Variable(("job",), (("a",), ("b",))),
        ("head", "tail"),
        ((D // 2, D // 2), (D // 2, D // 2)),
    )


@pytest.fixture
def crossed():
    """X crossed from city and job, in this order."""
    return bare_channel(
        Variable(("city", "job"), (("p", "a"), ("p", "b"), ("q", "a"))),
        ("p, a", "rest"),
        ((D, 0), (0, D), (0, D)),
        Variable(("rel",), (("w",), ("h",))),
    )


@pytest.fixture
def channels():
    """Random ones, of job and of city."""
    return [mixing_channel(), city_channel()]


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for all; its workers run this Python and find the package where the tests do."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, and there is none on the path")
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv(
            "PYTHONPATH",
            os.pathsep.join(
                [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
            ),
        )
        builder = sql.SparkSession.builder.master("local[2,2]").appName(
            "mechdesign tests"
        )
        builder = builder.config("spark.local.dir", str(folder / "local"))
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()
