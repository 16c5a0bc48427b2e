"""Queries and tasks beside given columns, against sums over the strata written from the definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md

RECORDS = 2000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(4)
    k = rng.choice(["f", "m"], RECORDS)
    s = rng.choice(["no", "yes"], RECORDS, p=[0.6, 0.4])
    x = (rng.integers(0, 3, RECORDS) + (s == "yes") + (k == "f")) % 4
    t = np.where((x + rng.integers(0, 2, RECORDS)) % 3 == 0, "high", "low")
    return pd.DataFrame({"s": s, "k": k, "x": x.astype(str), "t": t})


def designed(frame, **options):
    return md.design(
        frame,
        options.pop("notion", md.LIP(0.6)),
        sensitive="s",
        release=["x"],
        given=["k"],
        time_limit=20.0,
        **options,
    )


def strata(result):
    """P(x|k), P(k), W_k(y|x) and the symbols of every stratum."""
    joint = result.channel.joint
    symbols = np.array(joint.useful.symbols)
    for k in sorted(set(symbols[:, 0])):
        members = np.flatnonzero(symbols[:, 0] == k)
        mass = joint.p_x[members].sum()
        matrix = result.channel.matrix[members]
        matrix = matrix[:, matrix.any(axis=0)]
        yield k, mass, joint.p_x[members] / mass, matrix, symbols[members, 1]


def variance_within(p, w):
    """N times the total variance of the best estimates of the shares of one stratum."""
    masses = p @ w
    information = (w / masses) @ w.T
    return float(np.trace(np.linalg.inv(information)) - p @ p)


@pytest.mark.parametrize("promise", ["total", "relative"])
def test_variances_of_the_strata_add_up(frame, promise):
    result = designed(frame, objective="frequencies", promise=promise)
    assert result.verified
    variance = sum(mass * variance_within(p, w) for _, mass, p, w, _ in strata(result))
    noise_free = sum(mass * (1 - p @ p) for _, mass, p, _, _ in strata(result))
    assert result.purpose.variance == pytest.approx(variance, rel=1e-6)
    assert result.purpose.noise_free == pytest.approx(noise_free, rel=1e-9)
    assert result.purpose.variance_lower_bound <= result.purpose.variance
    assert result.purpose.variance_lower_bound >= 0.99 * result.purpose.variance
    of_information = designed(frame, objective="information", promise=promise)
    other = sum(
        mass * variance_within(p, w)
        for _, mass, p, w, _ in strata(of_information)
        if np.linalg.matrix_rank(w) == len(p)
    )
    if all(
        np.linalg.matrix_rank(w) == len(p) for *_, p, w, _ in strata(of_information)
    ):
        assert result.purpose.variance_lower_bound <= other + 1e-9


def information(joint):
    """I(row; column) of joint masses."""
    rows = joint.sum(axis=1, keepdims=True)
    columns = joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    return float((joint[positive] * np.log((joint / (rows * columns))[positive])).sum())


def test_the_information_about_a_task_is_that_of_the_strata(frame):
    result = designed(frame, objective="task", task="t")
    assert result.verified
    kept = largest = 0.0
    for k, mass, p, w, symbols in strata(result):
        part = frame[frame["k"] == k]
        given_x = np.array(
            [
                [(part.loc[part["x"] == x, "t"] == t).mean() for x in symbols]
                for t in ("high", "low")
            ]
        )
        largest += mass * information(given_x * p)
        kept += mass * information((given_x * p) @ w)
    assert result.purpose.task_kept == pytest.approx(kept / largest, abs=1e-6)
    assert result.purpose.task_kept <= result.purpose.task_upper_bound
    assert result.purpose.task_upper_bound <= result.purpose.task_kept + 2e-3


def test_what_purposes_of_strata_refuse(frame):
    shown = frame.assign(t=np.where(frame["k"] == "f", "high", "low"))
    with pytest.raises(md.InputError, match="say nothing about the task 't'"):
        designed(shown, objective="task", task="t")
    queries = md.Queries(np.ones((1, 8)))
    with pytest.raises(md.InputError, match="an objective of queries of one's own"):
        designed(frame, objective=queries)
    with pytest.raises(
        md.InputError, match="ldp with a total promise is not built with given"
    ):
        designed(frame, notion=md.LDP(1.0), objective="information")


def test_the_file_has_the_figures(frame, tmp_path):
    result = designed(frame, objective="frequencies")
    result.channel.save(tmp_path / "c.json")
    loaded = md.load(tmp_path / "c.json")
    assert loaded.record.utility["variance"] == result.purpose.variance
    assert md.audit(loaded, loaded.joint, result.notion).satisfied


@pytest.mark.parametrize("objective", ["information", "frequencies"])
def test_labels_of_one_column_are_no_symbols_of_it(frame, objective, tmp_path):
    """They stand in a column of the name of the released one, and its law is not theirs."""
    result = designed(frame, objective=objective, promise="relative")
    result.channel.save(tmp_path / "c.json")
    channel = md.load(tmp_path / "c.json")
    assert channel.output_columns == channel.useful.columns == ("k", "x")
    symbols = {symbol[1] for symbol in channel.useful.symbols}
    assert any(cells[1] not in symbols for cells in channel.output_cells)
    assert not channel.releases_symbols
    assert not channel.keeps_law
    assert not channel.tells_shares
    released = channel.apply(frame[["k", "x"]], insecure_seed=1)
    released.to_csv(tmp_path / "out.csv", index=False)
    found = md.estimate(channel, released)
    of_file = md.estimate(channel, tmp_path / "out.csv")
    np.testing.assert_array_equal(found.estimates, of_file.estimates)
    shares = channel.joint.p_x
    assert found.names == channel.useful.names
    assert np.abs(found.unbiased - shares).max() < 0.1
