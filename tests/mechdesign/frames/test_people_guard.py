"""Frames in which people have several records, released record by record: said, and refused."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.frames.transformer import ReleaseTransformer
from tests.cases.released_records import KEY
from tests.mechdesign.cli.test_people import panel

NAMED = "the column 'id' names 120 people with up to 4 records each"
BY_ORDER = "the order of the records tells which of them are of one person"
ASKED = {"sensitive": "ill", "release": ["health", "job"]}


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def frame():
    return panel()


@pytest.fixture(scope="module")
def together(frame):
    """The records of each person stand together."""
    return frame.sort_values(["id", "year"], ignore_index=True)


@pytest.fixture(scope="module")
def channel(frame):
    return md.design(frame, md.LIP(0.5), **ASKED, unit="record").channel


@pytest.mark.parametrize(
    "more", [{}, {"confidence": 0.9, "slice_seed": 1}], ids=["table", "population"]
)
@pytest.mark.parametrize(
    "kind",
    [
        lambda frame: frame.assign(tags=[[1]] * len(frame), raw=b"x"),
        pl.from_pandas,
        arrow,
        lambda frame: pl.from_pandas(frame).lazy(),
        lambda frame: duckdb.from_arrow(arrow(frame)),
        lambda frame: frame.set_index("id"),
    ],
    ids=["pandas", "polars", "arrow", "lazy", "duckdb", "index"],
)
def test_a_design_from_a_frame_says_what_people_reach_together(frame, kind, more):
    with pytest.warns(UserWarning, match=NAMED):
        design = md.design(kind(frame), md.LIP(0.5), **ASKED, **more)
    message = design.messages[0]
    assert NAMED in message
    assert message.endswith("(unit='record')")
    assert NAMED[1:] in " ".join(design.summary().split())
    assert "names 120 people" in design._repr_html_()
    # Boxes have no law of the records of the table.
    assert ("all records of a person together, each drawn" in message) == (not more)


@pytest.mark.parametrize(
    "kind",
    [
        lambda frame: frame.assign(id=frame.id.str[1:].astype("float16")),
        lambda frame: as_view(arrow(frame), "id"),
        lambda frame: as_view(arrow(frame), "job"),
    ],
    ids=["half", "view", "other"],
)
def test_columns_that_their_library_does_not_group_are_looked_at(frame, kind):
    with pytest.warns(UserWarning, match=NAMED):
        md.design(kind(frame), md.LIP(0.5), **ASKED)


def as_view(table, name):
    """The table with the texts of a column as views of them."""
    texts = table.column(name).cast(pa.string()).combine_chunks()
    views = pa.array(texts.to_pylist(), pa.string_view())
    return table.set_column(table.column_names.index(name), name, views)


def test_a_column_without_a_name_is_looked_at_as_well(frame):
    """narwhals groups by no empty name, and such an index comes back from a CSV."""
    with pytest.warns(UserWarning, match="the column '' names 120 people"):
        md.design(frame.rename(columns={"id": ""}), md.LIP(0.5), **ASKED)


def test_who_says_what_the_unit_is_hears_nothing(frame):
    decided = md.design(frame, md.LIP(0.5), **ASKED, unit="record")
    assert decided.messages == ()
    people = md.design(frame, md.LIP(0.5), **ASKED, person="id", wave="year")
    assert not any(NAMED in message for message in people.messages)
    # One released column has a promise for each of its values, whatever it names.
    md.design(frame, md.LIP(0.5), sensitive="ill", useful="id", allow_identifier=True)
    with pytest.raises(InputError, match=r"unit .'person'. must be 'record'"):
        md.design(frame, md.LIP(0.5), **ASKED, unit="person")


def test_apply_refuses_an_order_of_people(frame, together, channel):
    for records in (together, pl.from_pandas(together), arrow(together)):
        remedy = r" \(put them in random order first\)"
        with pytest.raises(InputError, match=f"{BY_ORDER}{remedy}.*{NAMED}"):
            channel.apply(records)
    assert len(channel.apply(together, unit="record")) == len(together)
    # Nothing but released columns comes out, and in random order they tell of nobody.
    assert list(channel.apply(frame).columns) == ["health", "job"]
    boxes = md.design(
        frame, md.LIP(0.5), **ASKED, confidence=0.9, fill=True, unit="record"
    ).channel
    with pytest.raises(InputError, match=BY_ORDER):
        boxes.apply(together)
    assert len(boxes.apply(together, unit="record")) == len(together)


def test_the_index_of_a_column_stays_and_names_people(frame):
    asked = {"sensitive": "ill", "useful": "health", "unit": "record"}
    channel = md.design(frame, md.LIP(0.5), **asked).channel
    column = frame.set_index("id")["health"]
    with pytest.raises(InputError, match="index level 0, id' names 120 people"):
        channel.apply(column)
    assert channel.apply(column, unit="record").index.name == "id"
    assert len(channel.apply(frame["health"])) == len(frame)


def test_sanitise_refuses_an_index_of_people_that_stays(frame, channel):
    indexed = frame.set_index("id")
    with pytest.raises(InputError, match="index level 0, id' names 120 people"):
        md.sanitise(indexed, channel, key=KEY, keep_index=True)
    # In random order people are not to be told without it.
    assert md.sanitise(indexed, channel, key=KEY).index.name is None
    together = indexed.sort_index(kind="stable")
    with pytest.raises(InputError, match=f"{BY_ORDER}.*index level 0, id"):
        md.sanitise(together, channel, key=KEY)


def test_a_lazy_table_in_the_order_of_people_is_refused(together, channel):
    connection = duckdb.connect()
    connection.register("view", arrow(together))
    connection.execute("create table panel as from view")
    for lazy in (pl.from_pandas(together).lazy(), connection.table("panel")):
        with pytest.raises(InputError, match=f"{BY_ORDER}.*{NAMED}"):
            md.sanitise(lazy, channel, key=KEY)


def test_a_transformer_looks_at_the_order_as_well(together, channel):
    table = together[["id", "health", "job"]]
    fitted = ReleaseTransformer(channel, drop=["id"]).fit(table)
    with pytest.raises(InputError, match=f"{BY_ORDER}.*{NAMED}"):
        fitted.transform(table)
    keeping = {"drop": ["id"], "keep_order": True, "unit": "record"}
    decided = ReleaseTransformer(channel, **keeping).fit(table)
    assert list(decided.transform(table).columns) == ["health", "job"]
    array = together[["id", "health"]].to_numpy()
    asked = {"useful": "x1", "drop": ["x0"], "insecure_seed": 1}
    release = ReleaseTransformer(md.LIP(0.5), **asked).fit(array, together["ill"])
    with pytest.raises(InputError, match=f"{BY_ORDER}.*'x0' names 120 people"):
        release.transform(array)
    chance = np.random.default_rng(1)
    mixed = chance.permutation(array)
    with pytest.warns(UserWarning, match="other data than those of fit"):
        assert len(release.transform(mixed)) == len(array)
