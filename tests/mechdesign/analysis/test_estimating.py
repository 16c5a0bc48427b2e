"""`estimate` takes the estimator of the channel, for frames and files alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign import sanitise_file
from mechdesign.analysis import linear
from mechdesign.analysis.law_estimates import estimate_shares
from mechdesign.release.samplers import Policy
from mechdesign.report.releases import column_frequencies_text

NOTION = md.LIP(0.5)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(4)
    job = rng.choice(["clerk", "cook", "smith"], 900, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["f", "m"], 900)
    high = rng.random(900) < 0.2 + 0.4 * (job == "smith") + 0.1 * (sex == "m")
    income = np.where(high, "high", "low")
    return pd.DataFrame({"job": job, "sex": sex, "income": income})


@pytest.fixture(scope="module")
def rows(frame):
    return md.design(frame, NOTION, sensitive="income", release=["job", "sex"]).channel


def test_a_kept_law_gives_the_shares_of_the_table(frame, rows):
    released = rows.apply(frame)
    job, sex = md.estimate(rows, released)
    assert job.columns == ("job",)
    assert sex.columns == ("sex",)
    for one in (job, sex):
        true = frame[one.columns[0]].value_counts(normalize=True)
        for symbol, share in zip(one.symbols, one.estimates, strict=True):
            # The counts of a draw of the whole table are fixed.
            assert share == pytest.approx(true[symbol[0]], abs=1e-12)


def test_columns_that_are_crossed(frame, rows):
    (both,) = md.estimate(rows, rows.apply(frame), of=["job", "sex"])
    true = frame.groupby(["job", "sex"]).size() / len(frame)
    found = dict(zip(both.symbols, both.estimates, strict=True))
    assert found.keys() == set(true.index)
    for symbol, share in found.items():
        assert share == pytest.approx(true[symbol], abs=1e-12)


def test_fixed_counts_leave_the_error_of_the_sample(frame, rows):
    released = rows.apply(frame)
    (drawn,) = md.estimate(rows, released, of="job", target="records")
    (fixed,) = md.estimate(rows, released, of="job", target="records", fixed=True)
    # Cooks all stay what they are.
    assert drawn.standard_errors.any()
    assert not fixed.standard_errors.any()
    (sample,) = md.estimate(rows, released, of="job", fixed=True)
    p = sample.estimates
    assert sample.standard_errors == pytest.approx(np.sqrt(p * (1 - p) / len(frame)))


def test_a_file_says_by_its_manifest_how_it_was_drawn(frame, rows, tmp_path):
    frame.drop(columns="income").to_csv(tmp_path / "in.csv", index=False)
    md.sanitise_file(
        rows,
        tmp_path / "in.csv",
        tmp_path / "out.csv",
        ledger=tmp_path / "l.db",
        manifest=tmp_path / "out.csv.manifest.json",
    )
    (drawn,) = md.estimate(rows, tmp_path / "out.csv", of="job", target="records")
    (independent,) = md.estimate(
        rows, tmp_path / "out.csv", of="job", target="records", fixed=False
    )
    assert not drawn.standard_errors.any()
    assert independent.standard_errors.any()


def test_free_outputs_are_undone(frame):
    channel = md.design(frame, NOTION, sensitive="income", useful="job").channel
    released = channel.apply(frame["job"])
    mine = md.estimate(channel, released)
    other = md.estimate_frequencies(channel, released)
    assert mine.estimates == pytest.approx(other.estimates)
    with pytest.raises(md.InputError, match="of and fixed are for a release of rows"):
        md.estimate(channel, released, of="job")


@pytest.mark.parametrize("useful", [["job"], ["job", "sex"]])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_labels_is_its_column(frame, useful, library):
    channel = md.design(frame, NOTION, sensitive="income", useful=useful).channel
    table = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame),
    }[library]
    released = channel.apply(table, insecure_seed=1)
    found = md.estimate(channel, released)
    of_column = md.estimate(channel, released[",".join(useful)])
    np.testing.assert_array_equal(found.estimates, of_column.estimates)


def test_options_of_other_channels_are_refused(frame, rows):
    with pytest.raises(md.InputError, match="method is for a channel of labels"):
        md.estimate(rows, rows.apply(frame), method="ml")


def test_a_row_that_is_never_released_is_refused(frame, rows):
    odd = frame.assign(job="astronaut")
    with pytest.raises(md.InputError, match="record 1 of the released frame is a row"):
        md.estimate(rows, odd)


def test_one_column_comes_back_as_it_went_in(frame):
    """A column for a column, and a frame for a frame."""
    channel = md.design(frame, NOTION, sensitive="income", release="job").channel
    column = channel.apply(frame["job"], insecure_seed=3)
    table = channel.apply(frame, insecure_seed=3)
    assert isinstance(column, pd.Series)
    assert list(table.columns) == ["job"]
    assert column.tolist() == table["job"].tolist()
    assert channel.apply(frame["job"].tolist(), insecure_seed=3) == column.tolist()


@pytest.mark.parametrize(
    "options", [{"smallest_group": 60}, {"keep_frequencies": False}]
)
def test_what_the_release_moved_is_taken_off(frame, options):
    """The shares are the table's: exactly where counts are fixed, else on average."""
    rare = frame.assign(job=frame["job"].where(frame.index % 50 != 0, "judge"))
    channel = md.design(
        rare, NOTION, sensitive="income", release=["job", "sex"], **options
    ).channel
    assert not channel.keeps_law
    true = rare.groupby(["job", "sex"]).size() / len(rare)
    draws = 1 if "smallest_group" in options else 60
    means = dict.fromkeys(true.index, 0.0)
    errors = dict.fromkeys(true.index, 0.0)
    for seed in range(draws):
        released = channel.apply(rare, insecure_seed=seed)
        (found,) = md.estimate(channel, released, of=["job", "sex"], target="records")
        assert set(found.symbols) == set(true.index)
        for symbol, share, error in zip(
            found.symbols, found.unbiased, found.standard_errors, strict=True
        ):
            means[symbol] += share / draws
            errors[symbol] = error / np.sqrt(draws)
    for symbol, share in means.items():
        # One of eight values in a thousand runs is off by more; the seeds are fixed.
        allowed = 4.0 * errors[symbol] if draws > 1 else 1e-12
        assert abs(share - true[symbol]) <= allowed + 1e-12


def test_a_public_file_does_not_say_what_was_moved(frame):
    channel = md.design(
        frame, NOTION, sensitive="income", release=["job"], keep_frequencies=False
    ).channel
    released = channel.apply(frame)
    with pytest.raises(md.InputError, match="how far shares moved is not known"):
        estimate_shares(channel.public(), released)


@pytest.mark.parametrize(("limit", "most"), [("MOST_ENTRIES", 5), ("MOST_SYMBOLS", 2)])
def test_wide_and_long_channels_are_not_undone(frame, monkeypatch, limit, most):
    monkeypatch.setattr(linear, limit, most)
    channel = md.design(frame, NOTION, sensitive="income", useful="job").channel
    with pytest.raises(md.InputError, match="too many to undo its draws"):
        md.estimate(channel, channel.apply(frame["job"]))


def test_a_manifest_says_that_empty_cells_were_drawn(frame, rows, tmp_path):
    """What `apply` released for cells without a symbol reaches the estimates."""
    column = md.design(frame, NOTION, sensitive="income", release=["job"]).channel
    has_job = np.random.default_rng(7).random(900) > 0.3
    gaps = frame.assign(job=frame["job"].where(has_job))
    gaps.to_csv(tmp_path / "in.csv", index=False)
    policy = Policy(missing="marginal")
    for name, channel in (("rows", rows), ("column", column)):
        out = tmp_path / f"{name}.csv"
        manifest = f"{out}.manifest.json"
        sanitise_file(
            channel,
            tmp_path / "in.csv",
            out,
            policy=policy,
            insecure_seed=1,
            manifest=manifest,
        )
    with pytest.raises(md.InputError, match="draws in place of empty or unknown cells"):
        md.estimate(rows, tmp_path / "rows.csv")
    found = md.estimate(column, tmp_path / "column.csv")
    assert any("had empty cells" in text for text in found.notices)
    (tmp_path / "column.csv.manifest.json").unlink()
    # Without it nobody knows of them.
    assert [one.columns for one in md.estimate(column, tmp_path / "column.csv")] == [
        ("job",)
    ]


def test_arguments_in_the_wrong_order_are_named(rows):
    with pytest.raises(md.InputError, match="channel must be a Channel, not str"):
        md.estimate("released.csv", rows)


def test_columns_with_the_names_of_figures_keep_their_values():
    rng = np.random.default_rng(2)
    table = {name: rng.choice(["u", "v"], 300) for name in ("s", "estimate", "lower")}
    frame = pd.DataFrame(table)
    channel = md.design(
        frame, NOTION, sensitive="s", release=["estimate", "lower"]
    ).channel
    (both,) = md.estimate(channel, channel.apply(frame), of=["estimate", "lower"])
    assert both.keys == ("estimate_", "lower_")
    for row, symbol, share in zip(
        both.rows(), both.symbols, both.estimates, strict=True
    ):
        assert (row["estimate_"], row["lower_"]) == symbol
        assert row["estimate"] == share
    found = dict(zip(both.symbols, both.estimates, strict=True))
    text = column_frequencies_text(both)
    assert f"{found['u', 'v']:.3f}" in text
