"""A channel, 3,000 records, and their faithful release as CSV and as Parquet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.jobs.release_file import sanitise_file
from tests.cases.check_files import RECORDS, ROWS, write_csv
from tests.cases.releases import channel_of


@pytest.fixture(scope="module")
def channel():
    return channel_of(ROWS, [[30, 20, 10], [10, 20, 30]])


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    symbols = rng.choice(["a", "b", "c"], RECORDS, p=[1 / 3, 1 / 3, 1 / 3]).tolist()
    return [
        [str(i), symbol, f"0{i % 7}", "x, y" if i % 3 else ""]
        for i, symbol in enumerate(symbols)
    ]


@pytest.fixture
def files(tmp_path, channel, records):
    """The original and a faithful release, as CSV."""
    original = write_csv(tmp_path / "in.csv", records)
    sanitise_file(channel, original, tmp_path / "out.csv", insecure_seed=1, keep="all")
    return original, tmp_path / "out.csv"


@pytest.fixture
def parquet(tmp_path, channel, records):
    """The same as Parquet, with types, nulls and NaN."""
    columns = list(zip(*records, strict=True))
    table = pa.table(
        {
            "id": pa.array(map(int, columns[0]), pa.int32()),
            "x": pa.array(columns[1]).dictionary_encode(),
            "zip": pa.array(columns[2]),
            "score": pa.array(
                [
                    float("nan") if i % 5 == 0 else None if i % 7 == 0 else i / 8
                    for i in range(RECORDS)
                ]
            ),
            "parts": pa.array([[i, i + 1] for i in range(RECORDS)]),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=1000)
    sanitise_file(
        channel,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        insecure_seed=1,
        keep="all",
    )
    return tmp_path / "in.parquet", tmp_path / "out.parquet"
