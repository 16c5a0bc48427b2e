"""Jobs on files with a channel of rows: the same draws as frames, the ledger, manifests and refusals."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mechdesign as md
from mechdesign import sanitise, sanitise_file
from mechdesign.jobs.folders import sanitise_path
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of

SIZE = 3000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, SIZE)
    b = rng.integers(0, 3, SIZE)
    s = rng.random(SIZE) < 0.3 + 0.1 * a + 0.05 * b
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(SIZE)],
            "s": np.where(s, "yes", "no"),
            "k": np.array(list("uv"))[rng.integers(0, 2, SIZE)],
            "a": np.array(list("xyz"))[a],
            "b": b,
            "other": rng.integers(0, 9, SIZE),
        }
    )


@pytest.fixture(scope="module")
def channel(frame):
    return md.design(
        frame,
        sensitive="s",
        release=["a", "b"],
        given=["k"],
        promise="relative",
        notion=md.LIP(0.2),
        time_limit=600.0,
    ).channel


@pytest.fixture(scope="module")
def key():
    return md.Key.insecure(7)


def texts_of(frame):
    return [
        tuple(map(str, row)) for row in frame[["k", "a", "b"]].itertuples(index=False)
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".csv.gz"])
def test_files_and_frames_have_the_same_draws(channel, frame, tmp_path, suffix):
    source = tmp_path / f"in{suffix}"
    target = tmp_path / f"out{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(source, index=False)
    else:
        frame.to_csv(source, index=False)
    sanitise_file(channel, source, target, insecure_seed=3)
    if suffix == ".parquet":
        released = pd.read_parquet(target)
        assert released["b"].dtype == frame["b"].dtype
    else:
        released = pd.read_csv(target)
    assert list(released.columns) == ["k", "a", "b"]
    assert released["k"].tolist() == frame["k"].tolist()
    assert released["a"].tolist() != frame["a"].tolist()
    expected = texts_of(channel.apply(frame, insecure_seed=3))
    assert texts_of(released) == expected
    for other in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        result = sanitise(other, channel, insecure_seed=3)
        if not isinstance(result, pd.DataFrame):
            result = result.to_pandas()
        assert texts_of(result) == expected


def test_the_ledger_gives_the_same_draws_and_the_total(channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    ledger = tmp_path / "ledger.db"
    frame.to_csv(source, index=False)
    channel.save(tmp_path / "channel.json")
    once = sanitise_file(
        channel,
        source,
        tmp_path / "one.csv",
        ledger=ledger,
        channel_files=[tmp_path / "channel.json"],
    )
    sanitise_file(channel, source, tmp_path / "two.csv", ledger=ledger)
    one = (tmp_path / "one.csv").read_bytes()
    assert one == (tmp_path / "two.csv").read_bytes()
    assert once.columns == ("k", "a", "b")
    again = sanitise(frame, channel, ledger=ledger)
    assert texts_of(again) == texts_of(pd.read_csv(tmp_path / "one.csv"))
    history = history_of(Ledger(ledger), source, channels=[channel])
    audit = md.audit(channel, frame)
    assert history.budget is not None
    assert history.budget["draws"] == 1
    # The whole leakage: what the given column tells, and what the promise bounds on top of it.
    assert history.budget["eps_u"] >= audit.given.eps_u + audit.achieved.eps_u
    assert history.budget["eps_u"] < audit.given.eps_u + audit.achieved.eps_u + 1e-9
    assert "of its whole row" in history.sentence


def test_a_further_draw_has_the_joint_budget_of_both(channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    ledger = tmp_path / "ledger.db"
    frame.to_csv(source, index=False)
    sanitise_file(channel, source, tmp_path / "one.csv", ledger=ledger)
    sanitise_file(channel, source, tmp_path / "two.csv", ledger=ledger, fresh_draw=True)
    one = pd.read_csv(tmp_path / "one.csv")
    two = pd.read_csv(tmp_path / "two.csv")
    assert one["k"].equals(two["k"])
    assert not one["a"].equals(two["a"])
    history = history_of(Ledger(ledger), source, channels=[channel])
    both = md.compose([channel, channel])
    assert history.budget is not None
    assert history.budget["draws"] == 2
    # The composition is relative to the given column, and the total is not.
    assert both.given is not None
    assert history.budget["eps_l"] >= both.given.eps_l + both.eps_l
    assert history.budget["eps_l"] < both.given.eps_l + both.eps_l + 1e-9
    assert "of which the given columns tell" in history.sentence
    lost = history_of(Ledger(ledger), source)
    assert lost.budget is None
    assert "2 draws is not known" in lost.sentence


def test_identified_records_keep_their_rows_in_any_order(channel, frame, tmp_path):
    ledger = tmp_path / "ledger.db"
    first = sanitise(frame, channel, ledger=ledger, identity="id", keep="id")
    mixed = frame.sample(frac=1, random_state=1)
    second = sanitise(mixed, channel, ledger=ledger, identity="id", keep="id")
    joined = first.merge(second, on="id")
    assert (joined["a_x"] == joined["a_y"]).all()
    assert (joined["b_x"] == joined["b_y"]).all()


def test_changed_records(channel, frame, tmp_path):
    ledger = tmp_path / "ledger.db"
    first = sanitise(frame, channel, ledger=ledger, identity="id")
    changed = frame.copy()
    changed.loc[:99, "a"] = np.where(frame["a"][:100] == "x", "y", "x")
    with pytest.raises(
        md.InputError, match="the symbols are other ones than when the record was"
    ):
        sanitise(changed, channel, ledger=ledger, identity="id")
    with pytest.warns(UserWarning, match="100 records have another symbol"):
        kept = sanitise(changed, channel, ledger=ledger, identity="id", changed="keep")
    assert texts_of(kept) == texts_of(first)


def test_redrawn_records_alone_get_other_draws(channel, frame, tmp_path):
    ledger = tmp_path / "ledger.db"
    first = sanitise(frame, channel, ledger=ledger, identity="id")
    changed = frame.copy()
    changed.loc[:99, "a"] = np.where(frame["a"][:100] == "x", "y", "x")
    with pytest.warns(UserWarning, match="any amount"):
        drawn = sanitise(
            changed, channel, ledger=ledger, identity="id", changed="redraw"
        )
    assert texts_of(drawn)[100:] == texts_of(first)[100:]
    assert texts_of(drawn)[:100] != texts_of(first)[:100]


def test_folders(channel, frame, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    frame[:1500].to_csv(source / "one.csv", index=False)
    frame[1500:].to_csv(source / "two.csv", index=False)
    sanitise_path(channel, source, tmp_path / "out", ledger=tmp_path / "ledger.db")
    released = pd.read_csv(tmp_path / "out" / "two.csv")
    assert list(released.columns) == ["k", "a", "b"]
    assert released["k"].tolist() == frame["k"][1500:].tolist()


def test_manifests_name_promise_and_given_columns(channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    sanitise_file(
        channel,
        source,
        tmp_path / "out.csv",
        insecure_seed=1,
        manifest=tmp_path / "public.json",
        internal_manifest=tmp_path / "internal.json",
    )
    public = json.loads((tmp_path / "public.json").read_text())
    assert public["released"][0]["promise"] == "relative"
    assert public["released"][0]["given"] == ["k"]
    assert "levels" not in public["released"][0]
    told = " ".join(public["covers"])
    assert "The promise is relative" in told
    assert "released as in the original data" in told
    internal = json.loads((tmp_path / "internal.json").read_text())
    levels = internal["released"][0]["levels"]
    assert [level["columns"] for level in levels] == [["k"], ["a"], ["b"]]
    counts = {entry["symbol"][0]: entry["records"] for entry in levels[1]["symbols"]}
    assert counts == Counter(frame["a"])
    released = pd.read_csv(tmp_path / "out.csv")
    outputs = {entry["value"][0]: entry["records"] for entry in levels[1]["outputs"]}
    assert outputs == Counter(released["a"])


def test_copies_of_released_columns_are_refused_but_not_of_given_ones(channel, frame):
    copied = frame.assign(copy=frame["a"])
    with pytest.raises(md.InputError, match="'copy' stands for the useful column 'a'"):
        sanitise(copied, channel, insecure_seed=1, keep="all", drop=["s", "id"])
    copied = frame.assign(copy=frame["k"], k2=frame["k"])
    released = sanitise(copied, channel, insecure_seed=1, keep="all", drop=["s", "id"])
    assert list(released.columns) == ["k", "a", "b", "other", "copy", "k2"]
    assert released["a"].tolist() != frame["a"].tolist()


def test_refusals_are_one_line_and_name_no_symbol_of_a_record(channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    frame.drop(columns="b").to_csv(source, index=False)
    with pytest.raises(md.InputError, match="'b'"):
        sanitise_file(channel, source, tmp_path / "out.csv", insecure_seed=1)
    with pytest.raises(md.InputError, match="says itself what is released"):
        sanitise(frame, channel, form="posterior-draw", insecure_seed=1)
    with pytest.raises(md.InputError, match="replaced, not added"):
        sanitise(frame, channel, into="new", insecure_seed=1)
    with pytest.raises(md.InputError, match="applied alone"):
        sanitise(frame, [channel, channel], insecure_seed=1)
    assert not (tmp_path / "out.csv").exists()


def test_free_outputs_have_one_column_a_level_and_a_codebook(frame, tmp_path):
    channel = md.design(
        frame,
        sensitive="s",
        release=["a", ("b", "k")],
        notion=md.LIP(0.2),
        objective="information",
        time_limit=600.0,
    ).channel
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    sanitise_file(
        channel,
        source,
        tmp_path / "out.csv",
        insecure_seed=1,
        codebook=tmp_path / "codebook.csv",
    )
    released = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert set(released.columns) == {"a", "b,k"}
    expected = channel.apply(frame, insecure_seed=1)
    assert released["a"].tolist() == expected["a"].astype(str).tolist()
    assert released["b,k"].tolist() == expected["b,k"].astype(str).tolist()
    book = pd.read_csv(tmp_path / "codebook.csv", dtype=str, keep_default_na=False)
    drawn = book[(book["level"] == "a") & (book["symbol"] != "any")]
    shares = drawn["p_output_given_symbol"].astype(float).groupby(drawn["symbol"]).sum()
    assert np.allclose(shares, 1.0)


def test_duckdb_relations_have_the_same_draws(channel, frame):
    duckdb = pytest.importorskip("duckdb")
    key = md.Key.insecure(9)
    numbered = frame.assign(row=np.arange(SIZE))
    assert len(numbered) == SIZE
    relation = duckdb.sql("select * from numbered")
    released = sanitise(relation, channel, key=key, row_numbers="row", keep="row")
    table = released.df().sort_values("row")
    assert texts_of(table) == texts_of(channel.apply(frame, key=key))


def test_parquet_files_keep_types(channel, frame, tmp_path):
    source = tmp_path / "in.parquet"
    frame.to_parquet(source, index=False)
    sanitise_file(
        channel, source, tmp_path / "out.parquet", insecure_seed=1, shuffle=True
    )
    released = pq.read_table(tmp_path / "out.parquet")
    assert released.schema.names == ["k", "a", "b"]
    assert released.schema.field("b").type == pa.int64()
    assert Counter(released["k"].to_pylist()) == Counter(frame["k"])


def test_renewed_identifiers_are_refused(frame, channel, tmp_path):
    options = {"identity": "id", "ledger": tmp_path / "l.db"}
    sanitise(frame, channel, **options)
    sanitise(frame.iloc[100:], channel, **options)
    renewed = frame.assign(id=[f"q{k}" for k in range(SIZE)])
    with pytest.raises(md.InputError, match="under other identifiers"):
        sanitise(renewed, channel, **options)
