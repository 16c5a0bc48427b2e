"""What is released of a column in bins: the draws that the bins themselves get, and the numbers
that stand for them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign import sanitise
from mechdesign.analysis.file_checking import check
from mechdesign.core.errors import InputError
from mechdesign.release.released_values import moved, numbers_released, symbols_released
from mechdesign.release.samplers import Policy
from tests.profiles import scaled


def plain(channel: md.Channel) -> md.Channel:
    """The same channel on columns that hold the labels of the bins themselves."""
    useful = replace(channel.useful, bins=())
    return replace(channel, useful=useful, joint=replace(channel.joint, useful=useful))


def made(
    frame: pd.DataFrame, bins="10", useful="x", epsilon: float = 2.0
) -> md.Channel:
    joint = md.Joint.from_table(frame, sensitive="s", useful=useful, bins=bins)
    return md.design(joint, md.LIP(epsilon), mechanism="subset-merging").channel


@settings(max_examples=scaled(15))
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 40)), min_size=12, max_size=60
    ),
    st.integers(0, 99),
)
def test_a_column_is_released_as_its_bins_are(records, seed):
    """The draw of a record depends on its bin alone: byte for byte what the bins themselves get
    with this key.
    """
    frame = pd.DataFrame([*records, ("a", 0), ("b", 40)], columns=["s", "x"])
    channel = made(frame)
    (bins,) = channel.useful.bins
    sorted_by_hand = frame.x.map(lambda v: bins.labels[min(v // 10, len(bins) - 1)])
    for form in ("label", "posterior-draw"):
        released = sanitise(frame[["x"]], channel, insecure_seed=seed, form=form)
        again = sanitise(
            sorted_by_hand.to_frame(), plain(channel), insecure_seed=seed, form=form
        )
        assert released.x.tolist() == again.x.tolist()
    assert (
        channel.apply(frame.x, insecure_seed=seed).tolist()
        == plain(channel).apply(sorted_by_hand, insecure_seed=seed).tolist()
    )
    assert (
        channel.apply(frame.x.map("0{}.0".format), insecure_seed=seed).tolist()
        == channel.apply(frame.x, insecure_seed=seed).tolist()
    )


def test_the_number_of_an_output_is_the_median_of_what_is_behind_it():
    """Lower median of the bins' medians under P(x | y), by hand; of an output that is a bin, the
    bin's own.
    """
    frame = pd.DataFrame({"s": list("aabbb") * 9, "x": list(range(45))})
    joint = md.Joint.from_table(frame, sensitive="s", useful="x", bins=5)
    d = 2**53
    size = len(joint.useful)
    rows = [
        [
            d // 2 if y == x else d // 2 if y == (x + 1) % size else 0
            for y in range(size)
        ]
        for x in range(size)
    ]
    mixed = md.Channel(
        joint.useful, tuple(f"y{k}" for k in range(size)), rows, joint=joint
    )
    medians = [Fraction(each) for each in joint.useful.bins[0].representatives]
    expected = []
    for y in range(size):
        behind = sorted(
            (medians[x], rows[x][y] * joint.useful_counts[x])
            for x in range(size)
            if rows[x][y]
        )
        total = sum(w for _, w in behind)
        expected.append(
            next(
                m
                for k, (m, _) in enumerate(behind)
                if 2 * sum(w for _, w in behind[: k + 1]) >= total
            )
        )
    assert [Fraction(text) for text in numbers_released(mixed)[0]] == expected
    assert symbols_released(mixed) is None
    own = md.Channel(joint.useful, joint.useful.names, rows, joint=joint)
    assert [Fraction(text) for text in numbers_released(own)[0]] == medians
    assert symbols_released(own) == list(range(size))


@pytest.mark.parametrize("origin", [0, 1_700_000_000])
def test_the_correlation_does_not_depend_on_where_numbers_begin(origin):
    """As seconds since 1970, moments a few seconds apart differ in their tenth digit."""
    seconds = [(7 * k * k) % 50 for k in range(60)]
    times = pd.to_datetime(pd.Series(seconds) + origin, unit="s").astype(str)
    frame = pd.DataFrame({"s": list("aab") * 20, "x": times})
    channel = made(frame, "10s", epsilon=1.0)
    (found,) = moved(channel)
    (shown,) = numbers_released(channel)
    (bins,) = channel.useful.bins
    weights = []
    own = []
    released = []
    for second, time in zip(seconds, times, strict=True):
        row = channel.useful.symbols.index((bins.labels[bins.bins_of([time])[0]],))
        weights += list(channel.matrix[row])
        own += [second] * len(shown)
        released += [pd.Timestamp(text).timestamp() - origin for text in shown]
    wanted = np.cov(own, released, aweights=weights)
    assert found.correlation == pytest.approx(
        wanted[0, 1] / np.sqrt(wanted[0, 0] * wanted[1, 1])
    )
    assert found.distance == pytest.approx(
        np.average(np.abs(np.subtract(own, released)), weights=weights)
    )


def test_what_is_constant_is_correlated_with_nothing():
    frame = pd.DataFrame(
        {"s": ["ab"[k % 20 < 9] for k in range(60)], "x": [k % 20 for k in range(60)]}
    )
    (found,) = moved(made(frame, epsilon=1e-6))
    assert found.correlation is None


def test_a_draw_within_a_bin_is_one_of_the_values_of_the_table_as_often_as_it_has_them():
    """P(value | bin) is the share of the value in its bin: chi-square over 60,000 records, by a
    fixed seed.
    """
    frame = pd.DataFrame({"s": ["a", "b"] * 40, "x": [1] * 30 + [4] * 10 + [7] * 40})
    joint = md.Joint.from_table(frame, sensitive="s", useful="x", bins=5)
    d = 2**53
    channel = md.Channel(
        joint.useful, joint.useful.names, [[d, 0], [d // 4, d - d // 4]], joint=joint
    )
    column = pd.DataFrame({"x": np.repeat([1, 7], 30_000)})
    released = sanitise(
        column, channel, insecure_seed=5, form="within", keep_order=True
    ).x
    assert released.dtype == column.x.dtype
    found = Counter(released[:30_000].tolist())
    assert set(found) == {
        1,
        4,
    }  # the output [0, 5) is a bin, and no value of another is drawn for it
    assert abs(found[1] / 30_000 - 0.75) < 0.01
    shares = Counter(released[30_000:].tolist())
    assert abs(shares[7] / 30_000 - 0.75) < 0.01
    assert set(shares) == {1, 4, 7}


@pytest.mark.parametrize(
    "form", ["label", "posterior-draw", "representative", "within"]
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("values", "bins"),
    [
        (list(range(60)), "auto:4"),
        ([k / 4 for k in range(60)], "quantiles:5"),
        (pd.date_range("2024-01-01", periods=60, freq="13h").tolist(), "7d"),
        (
            pd.date_range("2024-01-01", periods=60).date.tolist(),
            "2024-01-01,2024-02-01,inf",
        ),
    ],
)
def test_files_are_released_and_checked_in_every_form(
    tmp_path, form, kind, values, bins
):
    frame = pd.DataFrame({"s": list("aab") * 20, "x": values}).sample(
        frac=1, random_state=1
    )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    channel = made(frame, bins, epsilon=1.0)
    source = tmp_path / f"in.{kind}"
    target = tmp_path / f"out.{kind}"
    kept = table.drop_columns(["s"])
    pq.write_table(kept, source) if kind == "parquet" else frame[["x"]].to_csv(
        source, index=False
    )
    channel.save(tmp_path / "channel.json")
    loaded = md.Channel.load(tmp_path / "channel.json")
    assert loaded == channel
    md.sanitise_file(loaded, source, target, insecure_seed=1, form=form)
    found = check(loaded, target, original=source, form=form)
    assert found.plausible
    assert found.records == 60
    assert check(loaded, target, form=form).findings == ()
    if kind == "parquet" and form in ("representative", "within"):
        assert pq.read_schema(target).field("x").type == table.schema.field("x").type


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            "representative",
            r"representative is for columns that are released in bins \(bins=\), and 'y' is not",
        ),
        ("within", None),
        (
            "number",
            r"the form \('number'\) must be one of 'label', 'posterior-draw', 'representative', 'within'",
        ),
    ],
)
def test_forms_of_crossed_columns(form, message):
    frame = pd.DataFrame(
        {
            "s": list("aab") * 20,
            "x": range(60),
            "y": list("uv") * 30,
            "z": np.arange(60) / 8,
        }
    ).sample(frac=1, random_state=1, ignore_index=True)
    channel = made(frame, {"x": 30, "z": "quantiles:2"}, ["x", "y", "z"])
    if message is None:
        released = sanitise(
            frame.drop(columns="s"), channel, insecure_seed=1, form=form
        )
        assert [str(kind) for kind in released.dtypes] == [
            str(kind) for kind in frame.dtypes[1:]
        ]
        assert set(released.x) <= set(frame.x)
        assert set(released.y) == {"u", "v"}
        assert set(released.z) <= set(frame.z)
        return
    with pytest.raises(InputError, match=message):
        sanitise(frame.drop(columns="s"), channel, form=form)


def test_numbers_need_bins_and_the_table():
    frame = pd.DataFrame({"s": list("aab") * 20, "x": range(60)})
    channel = made(frame, 20)
    for form in ("representative", "within"):
        with pytest.raises(
            InputError, match=rf"{form} is for columns that are released in bins"
        ):
            sanitise(pd.DataFrame({"x": ["[0, 20)"]}), plain(channel), form=form)
        with pytest.raises(
            InputError,
            match=f"{form} needs what the table has inside the bins of 'x', and this",
        ):
            sanitise(frame[["x"]], channel.public(), form=form)
        mixing = replace(
            channel.public(),
            outputs=tuple(f"y{k}" for k in range(len(channel.outputs))),
        )
        with pytest.raises(InputError, match=f"^{form} needs what the table has"):
            sanitise(frame[["x"]], mixing, form=form)
    assert len(channel.public().apply(frame.x)) == 60


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            "abc",
            r"the column 'x' has a cell that is no number, and the channel sorts these into bins; correct it",
        ),
        (
            "61",
            r"the column 'x' has a value outside the channel's bins, 0 to 60; say what to publish for it \(policy=Policy\(unknown=..\)\)",
        ),
    ],
)
def test_a_cell_without_a_bin_is_refused_and_not_shown_or_released_as_unknown(
    tmp_path, cell, message
):
    frame = pd.DataFrame({"s": list("aab") * 20, "x": range(60)}).sample(
        frac=1, random_state=1
    )
    channel = made(frame, 20)
    column = [*frame.x.astype(str), cell]
    with pytest.raises(InputError, match=message) as refused:
        channel.apply(column)
    assert cell not in str(refused.value).replace("0 to 60", "")
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["x", *column, ""]))
    with pytest.raises(InputError, match=rf"in\.csv, line 62: {message}"):
        md.sanitise_file(channel, path, tmp_path / "out.csv")
    assert len(channel.apply(column, policy=Policy(unknown="marginal"))) == 61
    md.sanitise_file(
        channel,
        path,
        tmp_path / "out.csv",
        insecure_seed=1,
        policy=Policy(unknown="marginal"),
    )
    with pytest.raises(InputError, match=rf"in\.csv, line 62: {message}"):
        check(channel, tmp_path / "out.csv", original=path)
    assert check(
        channel, tmp_path / "out.csv", original=path, policy=Policy(unknown="marginal")
    ).plausible


def test_a_moment_with_a_zone_among_those_without_one_is_named():
    days = [f"2024-01-{day:02} 08:00" for day in range(1, 21)]
    frame = pd.DataFrame({"s": list("ab") * 10, "x": days})
    joint = md.Joint.from_table(frame, sensitive="s", useful="x", bins={"x": "5d"})
    channel = md.design(joint, md.LIP(0.5)).channel
    with pytest.raises(InputError, match="no date and time without a zone"):
        channel.apply(["2024-01-03 08:00+01:00"])
