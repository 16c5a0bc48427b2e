from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mechdesign import sanitise
from mechdesign.core.errors import InputError
from tests.cases.released_records import KEY, mixing_channel

JOBS = [*"abc"]
HOME = [{"rel": "s0", "rooms": 2}] * 3


@pytest.mark.parametrize("names", [["rel"], [None, "Rel "]])
def test_an_index_with_the_name_of_the_sensitive_column(names):
    index = pd.MultiIndex.from_arrays([[1, 2, 3]] * len(names), names=names)
    frame = pd.DataFrame({"job": JOBS}, index=index)
    with pytest.raises(
        InputError,
        match=r"the index '[Rr]el ?' looks like the sensitive column 'rel' .*reset_index",
    ):
        sanitise(frame, mixing_channel(), key=KEY, keep="all")
    kept = sanitise(frame, mixing_channel(), key=KEY, keep_sensitive=True, keep="all")
    assert kept.index.equals(index)
    # An index with a name is a column that nobody asked for.
    alone = sanitise(frame, mixing_channel(), key=KEY)
    assert alone.index.equals(pd.RangeIndex(3))
    index.names = ["id"] * len(names)
    named = sanitise(frame.set_axis(index), mixing_channel(), key=KEY, keep="all")
    assert named.index.equals(index)


@pytest.mark.parametrize("kind", [pa.table, pl.DataFrame])
def test_fields_inside_of_columns(kind):
    frame = kind({"job": JOBS, "home": HOME})
    with pytest.raises(
        InputError,
        match="the column 'home' holds the field 'rel', which looks like the sensitive",
    ):
        sanitise(frame, mixing_channel(), key=KEY, keep="all")
    twin = kind({"job": JOBS, "home": [{"Job": job} for job in JOBS]})
    with pytest.raises(
        InputError,
        match="the column 'home' holds the field 'Job', which looks like the useful",
    ):
        sanitise(twin, mixing_channel(), key=KEY, keep="all")
    kept = sanitise(frame, mixing_channel(), key=KEY, keep_sensitive=True, keep="all")
    assert (kept.to_pydict() if kind is pa.table else kept.to_dict(as_series=False))[
        "home"
    ] == HOME


def test_a_key_that_is_none():
    with pytest.raises(
        InputError,
        match=r"the key must be a Key \(Key\.fresh\(\), read_key\), not bytes",
    ):
        sanitise(pd.DataFrame({"job": JOBS}), mixing_channel(), key=b"x" * 32)
