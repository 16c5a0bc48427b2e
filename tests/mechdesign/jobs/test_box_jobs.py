"""Jobs on files with a channel for boxes of rows: frames and files, ledger, manifests, refusals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign import sanitise, sanitise_file
from mechdesign.jobs.job import Job
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_path import sanitise_path
from tests.cases.boxes import with_parts

SIZE = 4000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    a = rng.integers(0, 5, SIZE)
    b = rng.integers(0, 4, SIZE)
    s = rng.random(SIZE) < 0.05 + 0.2 * a + 0.03 * b
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(SIZE)],
            "s": np.where(s, "yes", "no"),
            "k": np.array(list("uv"))[rng.integers(0, 2, SIZE)],
            "a": np.array(list("vwxyz"))[a],
            "b": b,
            "other": rng.integers(0, 9, SIZE),
        }
    )


def designed(frame, **options):
    return md.design(
        frame,
        sensitive="s",
        release=["a", "b"],
        notion=md.LIP(0.2),
        confidence=0.9,
        time_limit=600.0,
        slice_seed=3,
        **{"cells": 6, **options},
    ).channel


@pytest.fixture(scope="module")
def channel(frame):
    return designed(frame)


@pytest.fixture(scope="module")
def stratified(frame):
    return designed(frame, given=["k"], promise="relative", fill=True)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_and_frames_have_the_same_draws(channel, frame, tmp_path, suffix):
    source = tmp_path / f"in{suffix}"
    target = tmp_path / f"out{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(source, index=False)
    else:
        frame.to_csv(source, index=False)
    done = sanitise_file(channel, source, target, insecure_seed=3)
    assert done.columns == ("box",)
    released = pd.read_parquet(target) if suffix == ".parquet" else pd.read_csv(target)
    assert list(released.columns) == ["box"]
    expected = channel.apply(frame, insecure_seed=3)["box"].tolist()
    assert released["box"].tolist() == expected
    assert sanitise(frame, channel, insecure_seed=3)["box"].tolist() == expected
    assert sanitise(frame, channel, insecure_seed=4)["box"].tolist() != expected


def test_draws_have_the_law_of_the_channel(channel, frame):
    laws = {}
    for _, row in frame[["a", "b"]].drop_duplicates().iterrows():
        law = channel.distribution({"a": row["a"], "b": str(row["b"])})
        laws[row["a"], row["b"]] = law
    (a, b), law = max(laws.items(), key=lambda entry: len(entry[1]))
    rows = pd.DataFrame({"a": [a] * 20_000, "b": b})
    drawn = channel.apply(rows, insecure_seed=8)["box"].value_counts(normalize=True)
    assert set(drawn.index) <= {label for (label,) in law}
    assert len(law) > 1
    for (label,), share in law.items():
        error = 5 * np.sqrt(float(share * (1 - share)) / len(rows))
        assert abs(drawn.get(label, 0.0) - float(share)) <= error + 1e-12


def law_of_filled_rows(part, channel, label_law):
    """The exact law of a filled row: sum over outputs of P(y) P(row | box y), in fractions."""
    law = Counter()
    for (*_, label), share in label_law.items():
        box = int(label.removeprefix("box ")) - 1
        size = sum(row[-1] for row in part.fill[box])
        for *codes, records in part.fill[box]:
            names = tuple(
                variable.names[code]
                for variable, code in zip(channel.coder.columns, codes, strict=True)
            )
            law[names] += share * Fraction(records, size)
    return law


def test_filled_rows_have_the_law_of_the_table(stratified, frame):
    """Summed over all records and outputs, every row is released as often as the table has it."""
    for part in stratified.parts:
        name = stratified.coder.given[0].names[part.stratum[0]]
        rows = frame[frame["k"] == name]
        law = Counter()
        for (a, b), group in rows.groupby(["a", "b"]):
            outputs = stratified.distribution({"k": name, "a": a, "b": str(b)})
            for row, share in law_of_filled_rows(part, stratified, outputs).items():
                law[row] += len(group) * share
        counts = Counter(zip(rows["a"], rows["b"].astype(str), strict=True))
        assert law == counts


def test_filled_rows_are_drawn_with_all_columns_at_once(stratified, frame):
    released = sanitise(frame, stratified, insecure_seed=2)
    assert list(released.columns) == ["k", "a", "b"]
    assert released["k"].tolist() == frame["k"].tolist()
    assert released["b"].dtype == frame["b"].dtype
    assert released["a"].tolist() != frame["a"].tolist()
    # Only rows of the stratum's own records are released.
    own = set(map(tuple, frame[["k", "a", "b"]].to_numpy().tolist()))
    assert set(map(tuple, released.to_numpy().tolist())) <= own
    part = stratified.parts[0]
    name = stratified.coder.given[0].names[part.stratum[0]]
    row = frame[frame["k"] == name].iloc[0]
    outputs = stratified.distribution({"k": name, "a": row["a"], "b": str(row["b"])})
    expected = law_of_filled_rows(part, stratified, outputs)
    assert sum(expected.values()) == 1
    copies = pd.concat([row.to_frame().T] * 20_000, ignore_index=True)
    drawn = stratified.apply(copies, insecure_seed=9)
    shares = Counter(zip(drawn["a"], drawn["b"].astype(str), strict=True))
    assert set(shares) <= set(expected)
    for symbols, share in expected.items():
        error = abs(shares[symbols] / 20_000 - float(share))
        assert error <= 5 * np.sqrt(float(share) / 20_000)


def test_the_ledger_gives_the_same_draws_and_the_total(channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    ledger = tmp_path / "ledger.db"
    frame.to_csv(source, index=False)
    file = tmp_path / "boxes.json"
    channel.save(file)
    for target in ("one.csv", "two.csv"):
        sanitise_file(
            md.load(file),
            source,
            tmp_path / target,
            ledger=ledger,
            channel_files=[file],
        )
    one = (tmp_path / "one.csv").read_bytes()
    assert one == (tmp_path / "two.csv").read_bytes()
    history = history_of(Ledger(ledger), source)
    assert history.budget["eps_u"] == md.audit(channel).achieved.eps_u
    assert "for the population, with 90 % confidence" in history.sentence
    sanitise_file(channel, source, tmp_path / "new.csv", ledger=ledger, fresh_draw=True)
    assert one != (tmp_path / "new.csv").read_bytes()
    further = history_of(Ledger(ledger), source, channels=[channel])
    assert further.budget is None
    assert "2 draws is not known" in further.sentence


def test_given_columns_add_what_the_ledger_cannot_know(stratified, frame, tmp_path):
    ledger = tmp_path / "ledger.db"
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    sanitise_file(stratified, source, tmp_path / "out.csv", ledger=ledger)
    history = history_of(Ledger(ledger), source, channels=[stratified])
    assert history.budget is None
    assert "beside what 'k' tells" in history.sentence


def test_a_release_that_was_killed_is_completed_with_the_same_draws(
    channel, frame, tmp_path, monkeypatch
):
    source = tmp_path / "in.csv"
    ledger = tmp_path / "ledger.db"
    frame.to_csv(source, index=False)
    sanitise_file(channel, source, tmp_path / "before.csv", ledger=ledger)

    def killed(*_arguments):
        raise KeyboardInterrupt

    for step in ("entry", "commit", "done"):
        target = tmp_path / f"{step}.csv"
        with monkeypatch.context() as patch:
            patch.setattr(Job, step, killed)
            with pytest.raises(KeyboardInterrupt):
                sanitise_file(channel, source, target, ledger=ledger)
        if step != "done":
            assert not target.exists()
        sanitise_file(channel, source, target, ledger=ledger)
        assert target.read_bytes() == (tmp_path / "before.csv").read_bytes()


def test_identified_records_keep_their_draws(stratified, frame, tmp_path):
    ledger = tmp_path / "ledger.db"
    first = sanitise(frame, stratified, ledger=ledger, identity="id", keep="id")
    mixed = frame.sample(frac=1, random_state=1)
    second = sanitise(mixed, stratified, ledger=ledger, identity="id", keep="id")
    joined = first.merge(second, on="id")
    assert (joined["a_x"] == joined["a_y"]).all()
    assert (joined["b_x"] == joined["b_y"]).all()
    changed = frame.copy()
    changed.loc[:99, "a"] = np.where(frame["a"][:100] == "x", "y", "x")
    with pytest.raises(
        md.InputError, match="the symbols are other ones than when the record was"
    ):
        sanitise(changed, stratified, ledger=ledger, identity="id")


def test_folders(channel, frame, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    frame[:1500].to_csv(source / "one.csv", index=False)
    frame[1500:].to_csv(source / "two.csv", index=False)
    sanitise_path(channel, source, tmp_path / "out", ledger=tmp_path / "ledger.db")
    released = pd.read_csv(tmp_path / "out" / "two.csv")
    assert list(released.columns) == ["box"]
    assert len(released) == len(frame) - 1500


def test_manifests_and_codebook(stratified, channel, frame, tmp_path):
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    sanitise_file(
        channel,
        source,
        tmp_path / "out.csv",
        insecure_seed=1,
        manifest=tmp_path / "public.json",
        internal_manifest=tmp_path / "internal.json",
        codebook=tmp_path / "codebook.csv",
    )
    public = json.loads((tmp_path / "public.json").read_text())
    told = " ".join(public["covers"])
    assert "a sample of, with 90 % confidence" in told
    assert "The promise does not cover sensitive values" in told
    assert "counts" not in public["released"][0]
    internal = json.loads((tmp_path / "internal.json").read_text())
    figures = " ".join(internal["covers"])
    # How common a value without a record can be is for insiders, who know the number of records.
    assert "None of these has a share above" in figures
    assert "None of these has a share above" not in told
    assert "In the population: eps_l 0." in figures
    assert "records of the proof: eps_l 0." in figures
    assert "In the population" not in told
    levels = internal["released"][0]["counts"]
    released = pd.read_csv(tmp_path / "out.csv")
    outputs = {entry["value"][0]: entry["records"] for entry in levels[-1]["outputs"]}
    assert {k: v for k, v in outputs.items() if v} == Counter(released["box"])
    counts = {entry["symbol"][0]: entry["records"] for entry in levels[0]["symbols"]}
    assert counts == Counter(frame["a"])
    book = pd.read_csv(tmp_path / "codebook.csv")
    sums = book.groupby("box")["p_output_given_symbol"].sum()
    assert np.allclose(sums, 1.0)
    assert set(released["box"]) <= set(book["output"])
    sanitise_file(
        stratified,
        source,
        tmp_path / "filled.csv",
        insecure_seed=1,
        manifest=tmp_path / "relative.json",
    )
    told = " ".join(json.loads((tmp_path / "relative.json").read_text())["covers"])
    assert "The promise is relative" in told
    assert "drawn from the box of rows that was released" in told
    with pytest.raises(md.InputError, match="codebook says what labels mean"):
        sanitise_file(
            stratified,
            source,
            tmp_path / "more.csv",
            insecure_seed=1,
            codebook=tmp_path / "book.csv",
        )


def test_outputs_are_closed_and_copies_are_refused(channel, frame):
    released = sanitise(frame, channel, insecure_seed=1, keep=["other"])
    assert list(released.columns) == ["box", "other"]
    copied = frame.assign(copy=frame["a"])
    with pytest.raises(md.InputError, match="'copy' stands for the useful column 'a'"):
        sanitise(copied, channel, insecure_seed=1, keep="all", drop=["s", "id"])
    with pytest.raises(md.InputError, match="another column 'box'"):
        sanitise(frame.assign(box="1"), channel, insecure_seed=1, keep=["box"])


def test_unknown_symbols_are_in_a_box_and_missing_cells_are_refused(
    channel, frame, tmp_path
):
    source = tmp_path / "in.csv"
    frame.assign(a="never seen").to_csv(source, index=False)
    sanitise_file(channel, source, tmp_path / "out.csv", insecure_seed=1)
    released = set(pd.read_csv(tmp_path / "out.csv")["box"])
    laws = [channel.distribution({"a": "never seen", "b": str(b)}) for b in range(4)]
    assert released <= {label for law in laws for (label,) in law}
    frame.assign(a=[None] + ["x"] * (SIZE - 1)).to_csv(source, index=False)
    with pytest.raises(
        md.InputError,
        match="line 2: the column 'a' has an empty cell, which no box covers",
    ):
        sanitise_file(channel, source, tmp_path / "none.csv", insecure_seed=1)
    with pytest.raises(md.InputError, match="covers symbols that its table did not"):
        sanitise(frame, channel, insecure_seed=1, policy=md.Policy(unknown="marginal"))
    with pytest.raises(md.InputError, match="applied alone"):
        sanitise(frame, [channel, channel], insecure_seed=1)
    assert not (tmp_path / "none.csv").exists()


def test_a_public_channel_refuses_rows_of_boxes_without_records(channel, frame):
    """Their marginal is that of counts, which it does not have."""
    public = channel.public()
    (part,) = public.parts
    own = part.channel
    confidence = {**own.record.confidence, "unseen": 1}
    rows = list(own.rows)
    # A box all of whose outputs come from other boxes, too.
    for left_out in range(len(rows)):
        others = rows[:left_out] + rows[left_out + 1 :]
        if all(map(any, zip(*others, strict=True))):
            break
    symbols = [name for k, name in enumerate(own.useful.symbols) if k != left_out]
    fewer = replace(
        own,
        useful=replace(own.useful, symbols=tuple(symbols)),
        rows=others,
        totals=own.totals[:left_out] + own.totals[left_out + 1 :],
        record=replace(own.record, confidence=confidence),
    )
    lacking = with_parts(public, (replace(part, channel=fewer),))
    with pytest.raises(md.InputError, match="no record of the table was in the box"):
        sanitise(frame, lacking, insecure_seed=1)


def test_folders_named_by_symbols_of_boxed_columns_are_refused(
    stratified, frame, tmp_path
):
    """They would say of their records what the boxes hide; given columns hide nothing."""
    for column, refused in (("a", True), ("k", False)):
        for name, part in frame.groupby(column):
            folder = tmp_path / column / f"part={name * 2 if refused else name}"
            folder.mkdir(parents=True)
            part.to_csv(folder / "x.csv", index=False)
    first, *others = stratified.coder.columns
    doubled = replace(first, symbols=tuple((2 * n,) for n in "vwxyz"))
    coder = replace(stratified.coder, columns=(doubled, *others))
    channel = replace(stratified, coder=coder)
    options = {"ledger": tmp_path / "ledger", "keep_order": True}
    with pytest.raises(md.InputError, match=r"is a symbol of the column 'a'"):
        sanitise_path(channel, tmp_path / "a", tmp_path / "out", **options)
    done = sanitise_path(stratified, tmp_path / "k", tmp_path / "out", **options)
    assert done.records == SIZE


def test_counts_of_boxes_are_not_fixed(channel, frame):
    with pytest.raises(
        md.InputError, match="boxes are drawn for each record by itself"
    ):
        sanitise(frame, channel, draws="fixed")
