"""A job on files and its key in frames: the same records get the same draws."""

from __future__ import annotations

import csv
import subprocess
import sys
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign import sanitise, sanitise_file
from mechdesign.core.errors import InputError
from tests.cases.released_records import KEY, drawn_by_hand, mixing_channel, people


@pytest.fixture
def channel():
    return mixing_channel()


@pytest.fixture(params=[".csv", ".parquet"])
def suffix(request):
    return request.param


def by_file(channel, frame, folder, suffix, identity):
    """What a job on a file of the frame releases."""
    source, target = folder / f"in{suffix}", folder / f"out{suffix}"
    if suffix == ".csv":
        frame.to_csv(source, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), source)
    sanitise_file(
        channel, source, target, ledger=folder / "ledger.db", identity=identity
    )
    if suffix == ".parquet":
        return pq.read_table(target).column("job").to_pylist()
    with open(target, encoding="utf-8", newline="") as stream:
        return [row["job"] for row in csv.DictReader(stream)]


@pytest.mark.parametrize("identity", [None, "id", "n"])
def test_a_frame_with_the_ledger_gets_the_draws_of_the_file(
    channel, tmp_path, suffix, identity
):
    frame = people(500)
    in_file = by_file(channel, frame, tmp_path, suffix, identity)
    assert len(set(in_file)) == len(channel.outputs)
    released = sanitise(
        frame, channel, ledger=tmp_path / "ledger.db", identity=identity
    )
    assert released["job"].tolist() == in_file


@pytest.mark.parametrize("identity", ["id", "n"])
def test_a_dask_frame_with_the_ledger_too(channel, tmp_path, suffix, identity):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    frame = people(500)
    in_file = by_file(channel, frame, tmp_path, suffix, identity)
    source = dd.from_pandas(frame, npartitions=3)
    released = sanitise(
        source, channel, ledger=tmp_path / "ledger.db", identity=identity
    )
    assert released.compute(scheduler="synchronous")["job"].tolist() == in_file


def test_a_frame_takes_the_latest_draw_of_the_ledger(channel, tmp_path):
    frame = people(300)
    source, target, ledger = (
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        tmp_path / "ledger.db",
    )
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), source)
    seen = []
    for fresh in (False, True):
        sanitise_file(
            channel,
            source,
            target,
            ledger=ledger,
            identity="id",
            fresh_draw=fresh,
            force=True,
        )
        seen.append(pq.read_table(target).column("job").to_pylist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the draw before
            assert (
                sanitise(frame, channel, ledger=ledger, identity="id")["job"].tolist()
                == seen[-1]
            )
    assert seen[0] != seen[1]
    with pytest.raises(
        InputError,
        match=r"have been released through this channel before .*known by the column",
    ):
        sanitise(frame, channel, ledger=ledger)


@pytest.mark.filterwarnings(
    "ignore:these records were released through this channel before in this"
)
def test_channel_apply_with_the_key_gives_the_draws_of_a_frame(channel):
    frame = people(300).astype({"job": "category"})
    for arguments in ({}, {"identity": "id"}):
        expected = sanitise(frame, channel, key=KEY, **arguments)["job"]
        named = {name: frame[column].tolist() for name, column in arguments.items()}
        pd.testing.assert_series_equal(
            channel.apply(frame["job"], key=KEY, **named), expected
        )
    assert channel.apply(frame["job"], key=KEY).tolist() == drawn_by_hand(
        channel, frame["job"]
    )


def test_arrow_tables_are_released_without_pandas(channel, tmp_path):
    """Each worker of Spark would load it, which takes as long as the draws for a million records."""
    channel.save(tmp_path / "channel.json")
    code = f"""
import sys
import numpy as np
import pyarrow as pa
from mechdesign.channel.channel import Channel
from mechdesign.formats.arrow_arrays import arrow_integers, arrow_texts
from mechdesign.release.draws import Key
from mechdesign import sanitise
channel = Channel.load({str(tmp_path / "channel.json")!r})
columns = [arrow_integers(np.arange(9)), arrow_texts([*"123456789"]), arrow_texts([*"abcabcabc"])]
table = pa.Table.from_arrays(columns, ["n", "id", "job"])
for options in ({{"row_numbers": "n"}}, {{"identity": "n"}}, {{"identity": "id"}}, {{}}):
    released = sanitise(table, channel, key=Key.insecure(7), **options)
    print(*released["job"].to_pylist(), "pandas" in sys.modules, sep=";")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        *labels, loaded = line.split(";")
        assert len(labels) == 9
        assert {*labels} <= {*channel.outputs}
        assert loaded == "False"
