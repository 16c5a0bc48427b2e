"""Files and frames whose order or whose other columns give away what a channel protects; records in random order."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign import (
    LIP,
    Joint,
    create_key,
    design,
    sanitise,
    sanitise_file,
)
from mechdesign.core.errors import InputError
from mechdesign.formats.csv_text import TextOptions
from mechdesign.jobs import writing
from mechdesign.jobs.side_files import read_manifest
from tests.cases.released_records import KEY, city_channel, mixing_channel

CHANCE = random.Random(8)
JOBS = CHANCE.choices("abc", k=600)
CODES = {"a": "11", "b": "12", "c": "13"}


def write(path, jobs=JOBS, **more):
    # No order of these identifiers is that of the records, or follows from it.
    numbers = np.random.default_rng(4).permutation(len(jobs))
    frame = pd.DataFrame(
        {
            "id": [f"p{number}" for number in numbers],
            "job": jobs,
            **more,
        }
    )
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=100, index=False)
    else:
        frame.to_csv(path, index=False, encoding="utf-8")
    return path


def read(path, **more):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return pd.read_csv(path, dtype=str, **more).to_dict("records")


@pytest.fixture(params=["in.csv", "in.parquet"])
def source(request, tmp_path):
    return tmp_path / request.param


@pytest.fixture
def channel():
    return mixing_channel()


def test_a_sorted_file_is_refused_and_leaves_nothing(source, channel):
    write(source, sorted(JOBS))
    out = source.with_name(f"out{source.suffix}")
    for more in ({}, {"ledger": source.with_name("l.db")}):
        with pytest.raises(
            InputError,
            match=r"order that tells of 'job' .*\(shuffle=\).*\(keep_order=\)",
        ):
            sanitise_file(
                channel,
                source,
                out,
                manifest=source.with_name("m.json"),
                **{"keep": "all"} | more,
            )
        left = {path.name for path in source.parent.iterdir()} - {"l.db", "l.db.key"}
        assert left == {source.name}
    assert (
        sanitise_file(channel, source, out, keep_order=True, keep="all").records == 600
    )
    assert [row["id"] for row in read(out)] == [row["id"] for row in read(source)]


@pytest.mark.parametrize("numeric", [False, True])
def test_a_file_sorted_by_the_secret_is_refused(source, channel, numeric):
    """The released column is drawn without regard to the secret, and so shows no order of it."""
    if numeric:
        # Nearly every record has a number of its own, so that no two neighbours are alike.
        secret = np.sort(np.random.default_rng(6).random(600)).tolist()
    else:
        secret = sorted(CHANCE.choices(["s0", "s1"], k=600))
    write(source, rel=secret)
    out = source.with_name(f"out{source.suffix}")
    with pytest.raises(InputError, match=r"order that tells of 'rel' .*\(shuffle=\)"):
        sanitise_file(channel, source, out)
    assert not out.exists()
    sanitise_file(channel, source, out, shuffle=True)
    sanitise_file(channel, source, out, keep_order=True, force=True)
    with pytest.raises(InputError, match=r"'n' rises or falls .* tells of 'rel'"):
        sanitise_file(
            channel,
            write(source, rel=secret, n=range(600)),
            out,
            shuffle=True,
            keep="n",
            force=True,
        )
    write(source, rel=CHANCE.sample(secret, k=600))
    sanitise_file(channel, source, out, force=True)


def test_a_file_in_random_order_passes(source, channel):
    write(source)
    assert (
        sanitise_file(channel, source, source.with_name(f"out{source.suffix}")).records
        == 600
    )


def test_records_in_random_order(source, channel, monkeypatch):
    """Each record once, with the draw of its identifier; the same order again, and another one for other data."""
    write(source, sorted(JOBS))
    out, again = (
        source.with_name(f"{name}{source.suffix}") for name in ("out", "again")
    )
    options = {"insecure_seed": 3, "identity": "id"}
    sanitise_file(channel, source, out, keep_order=True, **{"keep": "all"} | options)
    kept = read(out)
    manifest = source.with_name("m.json")
    assert (
        sanitise_file(
            channel,
            source,
            again,
            shuffle=True,
            manifest=manifest,
            **{"keep": "all"} | options,
        ).records
        == 600
    )
    mixed = read(again)
    assert [row["id"] for row in mixed] != [row["id"] for row in kept]
    assert sorted(map(str, mixed)) == sorted(map(str, kept))
    assert read_manifest(manifest, "public").shuffled
    for room in (1 << 20, 700):  # one bucket, and several
        monkeypatch.setattr(writing, "ROOM", room)
        sanitise_file(
            channel, source, out, shuffle=True, force=True, **{"keep": "all"} | options
        )
        if room > 1000:
            assert out.read_bytes() == again.read_bytes()
        else:
            assert sorted(map(str, read(out))) == sorted(map(str, mixed))
    write(source, [*sorted(JOBS)[:-1], "a"])
    sanitise_file(
        channel, source, out, shuffle=True, force=True, **{"keep": "all"} | options
    )
    assert [row["id"] for row in read(out)] != [row["id"] for row in mixed]


def test_buckets_do_not_change_the_order(source, channel, monkeypatch):
    write(source, sorted(JOBS))
    outs = []
    for room in (1 << 20, 900):
        monkeypatch.setattr(writing, "ROOM", room)
        out = source.with_name(f"{room}{source.suffix}")
        sanitise_file(channel, source, out, shuffle=True, insecure_seed=1)
        outs.append(read(out))
    assert outs[0] == outs[1]


def test_places_are_uniform(tmp_path, coin):
    """Each record comes to each place equally often."""
    (tmp_path / "in.csv").write_text("id,job\n" + "".join(f"{i},a\n" for i in range(4)))
    places = Counter()
    for seed in range(120):
        sanitise_file(
            coin,
            tmp_path / "in.csv",
            tmp_path / "out.csv",
            shuffle=True,
            insecure_seed=seed,
            force=True,
            keep="all",
        )
        _, *records = (tmp_path / "out.csv").read_text().splitlines()
        places.update((record[0], place) for place, record in enumerate(records))
    assert len(places) == 16
    # 4.2 standard deviations below the mean, and above.
    assert all(10 <= times <= 50 for times in places.values())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (TextOptions(delimiter=";", encoding="utf-16"), "out.csv"),
        (TextOptions(delimiter="|", quote=None), "out.csv.gz"),
    ],
)
def test_other_ways_to_write_a_csv(tmp_path, channel, text, name):
    numbers = np.random.default_rng(4).permutation(600).tolist()
    rows = [
        ["id", "job", "note"],
        *([str(numbers[i]), job, "ä" * (i % 3)] for i, job in enumerate(sorted(JOBS))),
    ]
    body = "\r\n".join(
        text.delimiter.join(row) for row in rows
    )  # without an end of the last line
    (tmp_path / "in.csv").write_bytes(body.encode(text.encoding))
    options = {"text": text, "insecure_seed": 1}
    sanitise_file(
        channel,
        tmp_path / "in.csv",
        tmp_path / "kept.csv",
        keep_order=True,
        **{"keep": "all"} | options,
    )
    sanitise_file(
        channel,
        tmp_path / "in.csv",
        tmp_path / name,
        shuffle=True,
        **{"keep": "all"} | options,
    )
    how = {"sep": text.delimiter, "encoding": text.encoding, "keep_default_na": False}
    kept, mixed = read(tmp_path / "kept.csv", **how), read(tmp_path / name, **how)
    assert mixed != kept
    assert sorted(map(str, mixed)) == sorted(map(str, kept))


def test_every_type_of_parquet_is_shuffled(tmp_path, channel):
    count = 500
    numbers = np.random.default_rng(4).permutation(count)
    table = pa.table(
        {
            "n": pa.array(numbers),
            "job": pa.array(sorted(JOBS)[:count]).dictionary_encode(),
            "list": pa.array([[int(i)] * (i % 3) for i in numbers]),
            "record": pa.array([{"k": str(i)} if i % 5 else None for i in numbers]),
            "kind": pa.array(["uv"[i % 2] for i in range(count)]).dictionary_encode(),
            "gone": pa.nulls(count),
        }
    ).replace_schema_metadata({"about": "people"})
    pq.write_table(
        table, tmp_path / "in.parquet", row_group_size=77, compression="zstd"
    )
    sanitise_file(
        channel,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        shuffle=True,
        keep="all",
    )
    after = pq.read_table(tmp_path / "out.parquet")
    assert after.schema.metadata == {b"about": b"people"}
    assert after["n"].to_pylist() != table["n"].to_pylist()
    before = table.sort_by("n").drop(["job"])
    assert after.sort_by("n").drop(["job"]).to_pylist() == before.to_pylist()
    assert (
        pq.ParquetFile(tmp_path / "out.parquet")
        .metadata.row_group(0)
        .column(0)
        .compression
        == "ZSTD"
    )


def test_what_makes_no_sense_together(tmp_path, channel):
    write(tmp_path / "in.csv")
    with pytest.raises(
        InputError, match="is shuffled or kept: give shuffle or keep_order"
    ):
        sanitise_file(
            channel,
            tmp_path / "in.csv",
            tmp_path / "out.csv",
            shuffle=True,
            keep_order=True,
        )
    with pytest.raises(InputError, match=r"shuffle \('yes'\) must be True or False"):
        sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", shuffle="yes")
    with pytest.raises(InputError, match="there is no column 'nope'"):
        sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", drop="nope")
    with pytest.raises(
        InputError, match=r"'job' is released and cannot be left out \(drop=\)"
    ):
        sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", drop="job")


def test_the_order_of_a_ledgers_job_is_that_of_its_key(source, channel):
    write(source, sorted(JOBS))
    out = source.with_name(f"out{source.suffix}")
    ledger = source.with_name("l.db")
    sanitise_file(channel, source, out, ledger=ledger, shuffle=True)
    first = out.read_bytes()
    assert sanitise_file(
        channel, source, out, ledger=ledger, shuffle=True, force=True
    ).already
    out.unlink()
    assert not sanitise_file(channel, source, out, ledger=ledger, shuffle=True).already
    assert out.read_bytes() == first
    with pytest.raises(InputError, match="stand in an order"):
        sanitise_file(channel, source, out, ledger=ledger, force=True)
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("more", "drop"),
    [
        ({"code": [CODES[job] for job in JOBS]}, "code"),
        ({"finer": [f"{job}{i % 5}" for i, job in enumerate(JOBS)]}, "finer"),
        ({"work": JOBS}, "work"),
        ({"Job ": ["?"] * 600}, "Job "),
        ({"jоb": ["?"] * 600}, "jоb"),  # a Cyrillic letter
        ({"rel.1": ["?"] * 600}, "rel.1"),
        ({"rel_code": ["?"] * 600}, "rel_code"),
        ({"rеl": ["?"] * 600}, "rеl"),
    ],
)
def test_twins_are_refused_by_name(source, channel, more, drop):
    write(source, **more)
    out = source.with_name(f"out{source.suffix}")
    with pytest.raises(
        InputError,
        match=rf"the column '{drop}' (stands for|looks like) the (useful|sens).*(keep=)",
    ):
        sanitise_file(channel, source, out, keep="all")
    assert not out.exists()
    sanitise_file(channel, source, out, keep=["all", drop], insecure_seed=1)
    kept = read(out)
    assert drop in kept[0]
    sanitise_file(
        channel, source, out, drop=[drop], insecure_seed=1, force=True, keep="all"
    )
    assert read(out) == [{name: row[name] for name in ("id", "job")} for row in kept]


def test_a_twin_of_a_sensitive_column_that_is_left_out(source, channel):
    groups = CHANCE.choices(["s0", "s1"], k=600)
    write(source, rel=groups, family=[f"{group}/1" for group in groups])
    out = source.with_name(f"out{source.suffix}")
    with pytest.raises(
        InputError, match="'family' stands for the sensitive column 'rel'"
    ):
        sanitise_file(channel, source, out, drop="rel", keep="all")
    sanitise_file(channel, source, out, drop=["rel", "family"], keep="all")
    assert set(read(out)[0]) == {"id", "job"}


def test_two_rows_with_a_copy(tmp_path, channel):
    (tmp_path / "in.csv").write_text("id,work,job\n1,a,a\n2,b,b\n")
    with pytest.raises(InputError, match="'work' stands for the useful column 'job'"):
        sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", keep="all")


def test_a_column_that_is_added_is_no_release_and_not_looked_at(tmp_path, channel):
    write(tmp_path / "in.csv", sorted(JOBS), code=[CODES[job] for job in sorted(JOBS)])
    sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", into="y")
    kept = read(tmp_path / "in.csv")
    assert [
        {name: row[name] for name in ("id", "job", "code")}
        for row in read(tmp_path / "out.csv")
    ] == kept


def test_the_identifier_may_be_left_out(tmp_path, channel):
    write(tmp_path / "in.csv")
    sanitise_file(
        channel,
        tmp_path / "in.csv",
        tmp_path / "out.csv",
        identity="id",
        drop="id",
        insecure_seed=1,
    )
    frame = pd.read_csv(tmp_path / "in.csv")
    expected = sanitise(frame, channel, identity="id", insecure_seed=1)
    with open(tmp_path / "out.csv", newline="") as stream:
        assert list(csv.reader(stream))[1:] == [[label] for label in expected["job"]]


def test_frames_are_warned_of_their_order(channel):
    numbers = np.random.default_rng(4).permutation(600)
    frame = pd.DataFrame({"job": sorted(JOBS), "n": numbers})
    with pytest.warns(
        UserWarning, match=r"stand in an order that tells of 'job' .*\(keep_order=\)"
    ):
        sanitise(frame, channel, key=KEY, keep="all")
    kept = sanitise(
        frame, channel, key=KEY, keep_order=True, row_numbers="n", keep="all"
    )
    mixed = sanitise(frame, channel, key=KEY, shuffle=True, row_numbers="n", keep="all")
    assert mixed.index.equals(frame.index)
    assert mixed["n"].tolist() != kept["n"].tolist()
    pd.testing.assert_frame_equal(
        mixed.sort_values("n", ignore_index=True),
        kept.sort_values("n", ignore_index=True),
    )
    # A column that rises in the old order would restore it.
    with pytest.raises(
        InputError, match="the column 'rank' rises or falls with the order of the"
    ):
        sanitise(
            frame.assign(rank=range(600)),
            channel,
            key=KEY,
            shuffle=True,
            row_numbers="n",
            keep=["n", "rank"],
        )
    again = sanitise(
        pa.Table.from_pandas(frame, preserve_index=False),
        channel,
        key=KEY,
        shuffle=True,
        row_numbers="n",
        keep="all",
    )
    assert again["n"].to_pylist() == mixed["n"].tolist()
    named = sanitise(
        frame.set_index(frame["n"].rename("who")),
        channel,
        key=KEY,
        shuffle=True,
        row_numbers="n",
        keep="all",
    )
    # The labels of the old rows would restore their order, too.
    assert named.index.equals(pd.RangeIndex(600))
    with pytest.raises(
        InputError, match="the column 'code' stands for the useful column 'job'"
    ):
        sanitise(
            frame.assign(code=frame["job"].map(CODES)), channel, key=KEY, keep="all"
        )


def test_partitions_of_a_cluster_are_looked_at(channel, tmp_path):
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    jobs = [*sorted(JOBS[:300]), *sorted(JOBS[300:])]
    frame = dask.from_pandas(
        pd.DataFrame({"job": jobs, "n": range(600)}), npartitions=2
    )
    with pytest.raises(
        InputError,
        match="a partition: the records stand in an order that tells of 'job'",
    ):
        sanitise(frame, channel, key=KEY, keep="all").compute(scheduler="synchronous")
    twin = frame.assign(work=frame["job"])
    with pytest.raises(
        InputError,
        match="a partition: the column 'work' stands for the useful column 'job'",
    ):
        sanitise(twin, channel, key=KEY, keep_order=True, keep="all").compute(
            scheduler="synchronous"
        )
    kept = sanitise(frame, channel, key=KEY, keep_order=True, keep="all").compute(
        scheduler="synchronous"
    )
    assert kept["n"].tolist() == list(range(600))
    with pytest.raises(
        InputError,
        match="the order of a lazy table is that of its engine, or of the partitions of a cluster: shuffle it there",
    ):
        sanitise(frame, channel, key=KEY, shuffle=True, keep="all")


def test_several_channels_are_all_looked_at(tmp_path):
    write(tmp_path / "in.csv", city=sorted(CHANCE.choices("st", k=600)))
    with pytest.raises(InputError, match="order that tells of 'city'"):
        sanitise_file(
            [mixing_channel(), city_channel()],
            tmp_path / "in.csv",
            tmp_path / "out.csv",
        )


def test_what_manifests_say_of_order(tmp_path, channel):
    write(tmp_path / "in.csv")
    for options, told in (({}, True), ({"shuffle": True}, False)):
        manifest = tmp_path / "m.json"
        sanitise_file(
            channel,
            tmp_path / "in.csv",
            tmp_path / "out.csv",
            manifest=manifest,
            force=True,
            **options,
        )
        facts = json.loads(manifest.read_text())
        assert facts["shuffled"] == ("shuffle" in options)
        assert (
            any("in the order in which they came" in line for line in facts["voids"])
            == told
        )


def test_a_key_file_gives_a_frame_its_order(channel, tmp_path):
    create_key(tmp_path / "k.key", KEY)
    frame = pd.DataFrame({"job": sorted(JOBS)})
    options = {"shuffle": True, "insecure_seed": None}
    one, two = (
        sanitise(frame, channel, key=key, **options)
        for key in (tmp_path / "k.key", KEY)
    )
    assert one.equals(two)


def test_what_stands_for_the_bin_of_a_number_is_refused_wherever_the_number_stands(
    source,
):
    """Of files the useful column comes as codes or texts, and its bins are hidden all the same."""
    ages = [20 + CHANCE.random() * 40 for _ in JOBS]
    table = pd.DataFrame({"age": ages, "rel": CHANCE.choices("wh", k=len(ages))})
    channel = design(
        Joint.from_table(table, sensitive="rel", useful="age", bins={"age": 10}), LIP(1)
    ).channel
    work = [f"u{age // 10:.0f}" for age in ages]
    options = {"key": KEY, "row_numbers": "n"}
    for name, kind in (("in memory", float), ("texts", repr)):
        frame = pd.DataFrame({"n": range(600), "age": [*map(kind, ages)], "work": work})
        with pytest.raises(
            InputError, match="'work' stands for the useful column 'age'"
        ):
            sanitise(frame, channel, **{"keep": "all"} | options)
        assert len(sanitise(frame, channel, keep="work", **options)) == 600, name
    for kind in (float, repr):
        write(source, work=work, age=[*map(kind, ages)])
        with pytest.raises(
            InputError, match="'work' stands for the useful column 'age'"
        ):
            sanitise_file(
                channel, source, source.with_stem("out"), insecure_seed=1, keep="all"
            )
    assert not source.with_stem("out").exists()
