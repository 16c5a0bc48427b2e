"""Jobs on files with a channel of rows: the same draws as frames, the ledger, manifests and refusals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mechdesign as md
from mechdesign import sanitise, sanitise_file
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_path import sanitise_path

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
        smallest_group=1,
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
    assert history.budget is not None
    assert history.budget["draws"] == 1
    # The whole leakage is at most what the given column tells, and what the promise bounds on top
    # of it.
    composed = md.compose([channel])
    assert composed.given is not None
    bound = composed.given.eps_u + composed.eps_u
    assert bound <= history.budget["eps_u"] < bound + 1e-9
    as_total = channel.with_record(replace(channel.record, promise_kind="total"))
    whole = md.audit(as_total, channel.joint, md.LIP(1.0)).achieved
    assert whole.eps_u <= history.budget["eps_u"]
    assert whole.eps_l <= history.budget["eps_l"]
    assert "of which the given columns tell" in history.sentence


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
        md.InputError, match="is another one than when the record was released before"
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


def test_manifests_call_given_columns_as_the_table_does(channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    frame.rename(columns={"k": "kind"}).to_csv(source, index=False)
    sanitise_file(
        channel,
        source,
        tmp_path / "out.csv",
        columns={"k": "kind"},
        manifest=tmp_path / "public.json",
    )
    public = json.loads((tmp_path / "public.json").read_text())
    assert public["released"][0]["given"] == ["kind"]
    assert "The column 'kind' is given" in " ".join(public["covers"])


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
    assert public["released"][0]["law_kept"] is True
    assert public["released"][0].get("counts") is None
    told = " ".join(public["covers"])
    assert "The promise is relative" in told
    assert "released as in the original data" in told
    internal = json.loads((tmp_path / "internal.json").read_text())
    column = internal["released"][0]
    counts = {
        tuple(entry["symbol"]): entry["records"]
        for entry in column["counts"][0]["symbols"]
    }
    assert counts == Counter(texts_of(frame))
    released = pd.read_csv(tmp_path / "out.csv")
    outputs = {
        tuple(entry["value"]): entry["records"]
        for entry in column["counts"][0]["outputs"]
    }
    assert {row: k for row, k in outputs.items() if k} == Counter(texts_of(released))


def test_a_manifest_claims_the_statistics_of_the_table_only_where_they_are(
    frame, tmp_path
):
    """A smallest group moves them, although the counts of the release are fixed."""
    rare = frame.head(300).assign(b=np.arange(300) % 40)
    rare.to_csv(tmp_path / "in.csv", index=False)
    for group, kept in ((1, True), (5, False)):
        channel = md.design(
            rare, md.LIP(0.5), sensitive="s", release=["a", "b"], smallest_group=group
        ).channel
        assert channel.keeps_law is kept
        sanitise_file(
            channel,
            tmp_path / "in.csv",
            tmp_path / f"out{group}.csv",
            insecure_seed=1,
            manifest=tmp_path / f"manifest{group}.json",
        )
        manifest = json.loads((tmp_path / f"manifest{group}.json").read_text())
        told = " ".join(manifest["covers"])
        assert manifest["released"][0]["law_kept"] is kept
        assert ("every statistic of the released columns is that" in told) is kept
        released = pd.read_csv(tmp_path / f"out{group}.csv")
        sizes = released.groupby(["a", "b"]).size()
        assert sizes.min() >= group


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
    with pytest.raises(md.InputError, match="two channels release the column 'k'"):
        sanitise(frame, [channel, channel], insecure_seed=1)
    assert not (tmp_path / "out.csv").exists()


def test_free_outputs_have_one_column_of_labels_and_a_codebook(frame, tmp_path):
    channel = md.design(
        frame,
        md.LIP(0.2),
        sensitive="s",
        release=["a", "b"],
        given="k",
        promise="relative",
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
    assert set(released.columns) == {"k", "a,b"}
    assert released["k"].tolist() == frame["k"].tolist()
    expected = channel.apply(frame, insecure_seed=1)
    assert released["a,b"].tolist() == expected["a,b"].astype(str).tolist()
    book = pd.read_csv(tmp_path / "codebook.csv", dtype=str, keep_default_na=False)
    shares = book["p_output_given_symbol"].astype(float)
    sums = shares.groupby([book["k"], book["a"], book["b"]]).sum()
    assert np.allclose(sums, 1.0)


def test_duckdb_relations_have_the_same_draws(channel, frame):
    duckdb = pytest.importorskip("duckdb")
    key = md.Key.insecure(9)
    numbered = frame.assign(row=np.arange(SIZE))
    assert len(numbered) == SIZE
    relation = duckdb.sql("select * from numbered")
    released = sanitise(relation, channel, key=key, row_numbers="row", keep="row")
    table = released.df().sort_values("row")
    # Batch by batch, so every record is drawn by itself, as for numbered records of a frame.
    alike = sanitise(numbered, channel, key=key, row_numbers="row", keep="row")
    assert texts_of(table) == texts_of(alike)


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


def test_the_whole_file_is_covered_only_where_nothing_else_is_in_it(
    channel, frame, tmp_path
):
    """Neither other columns nor an order may tell whose record is where, nor a seed the draws."""
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    unpromised = channel.with_record(replace(channel.record, notion=None))
    after = channel.with_record(replace(channel.record, after=("0" * 64,)))
    cases = [
        (True, channel, {"shuffle": True}),
        (False, channel, {"shuffle": False}),
        (False, channel, {"shuffle": True, "keep": ["other"]}),
        (False, channel, {"shuffle": True, "insecure_seed": 1}),
        (False, channel, {"shuffle": True, "draws": "independent"}),
        (False, unpromised, {"shuffle": True}),
        (False, after, {"shuffle": True}),
    ]
    for case, (covered, released, options) in enumerate(cases):
        done = sanitise_file(
            released,
            source,
            tmp_path / f"out{case}.csv",
            manifest=tmp_path / f"{case}.json",
            **options,
        )
        assert done.whole_file is covered
        manifest = json.loads((tmp_path / f"{case}.json").read_text())
        told = " ".join(manifest["covers"])
        assert ("and sees the whole file, too" in told) is covered


def test_the_whole_file_is_covered_by_the_only_release_of_its_records(
    channel, frame, tmp_path
):
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    ledger = tmp_path / "ledger.sqlite"

    def covered(released, target, **options):
        done = sanitise_file(
            released,
            source,
            tmp_path / target,
            ledger=ledger,
            shuffle=True,
            manifest=tmp_path / f"{target}.json",
            **options,
        )
        told = " ".join(json.loads((tmp_path / f"{target}.json").read_text())["covers"])
        assert ("and sees the whole file, too" in told) is done.whole_file
        return done.whole_file

    assert covered(channel, "first.csv")
    assert not covered(channel, "second.csv", fresh_draw=True)
    other = md.design(
        frame, sensitive="s", release=["a"], notion=md.LIP(0.2), smallest_group=1
    ).channel
    assert not covered(other, "beside.csv")


def test_a_folder_has_fixed_counts_only_if_all_its_files_have(channel, frame, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    frame.to_csv(folder / "a.csv", index=False)
    shuffled = {"shuffle": True, "force": True}
    alone = sanitise_path(
        channel, folder, tmp_path / "alone", ledger=tmp_path / "1", **shuffled
    )
    assert (alone.draws, alone.whole_file) == ("fixed", False)
    rng = np.random.default_rng(6)
    others = {name: rng.permutation(frame[name])[:500] for name in frame}
    pd.DataFrame(others).to_csv(folder / "b.csv", index=False)
    both = sanitise_path(
        channel, folder, tmp_path / "both", ledger=tmp_path / "2", **shuffled
    )
    assert (both.draws, both.whole_file) == ("independent", False)
    with pytest.raises(md.InputError, match="the records are not those of the table"):
        sanitise_path(
            channel, folder, tmp_path / "no", ledger=tmp_path / "3", draws="fixed"
        )


def test_counts_of_a_lazy_table_are_not_fixed(channel, frame, key):
    with pytest.raises(md.InputError, match="a lazy table is computed in parts"):
        sanitise(pl.from_pandas(frame).lazy(), channel, key=key, draws="fixed")


@pytest.mark.parametrize("line", [2, 1700, SIZE + 1])
def test_an_error_about_a_record_names_the_file_and_the_line(
    channel, frame, tmp_path, line
):
    """Also where the records are looked through before any is drawn."""
    frame.to_csv(tmp_path / "in.csv", index=False)
    lines = (tmp_path / "in.csv").read_text().splitlines()
    cells = lines[line - 1].split(",")
    cells[3] = ""
    lines[line - 1] = ",".join(cells)
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    message = rf"in\.csv, line {line}: the column 'a' has an empty cell"
    with pytest.raises(md.InputError, match=message):
        sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv")
