"""LazyFrames and DuckDB relations: released batch by batch, with the draws of frames and files."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign import engine_errors, sanitise, sanitise_file
from mechdesign.core.errors import InputError
from mechdesign.release.samplers import Policy
from tests.cases.released_records import (
    KEY,
    NAMED,
    crossed_channel,
    drawn_by_hand,
    mixing_channel,
    people,
)

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

IDENTITIES = [{}, *NAMED]

KINDS = {
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "polars": lambda table: pl.from_arrow(table).lazy(),
}

every = pytest.mark.parametrize("lazy", KINDS.values(), ids=KINDS)


@pytest.fixture
def channel():
    return mixing_channel()


def arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def collected(released) -> pa.Table:
    with engine_errors():
        if isinstance(released, pl.LazyFrame):
            return released.collect(engine="streaming").to_arrow()
        return released.to_arrow_table()


@every
@pytest.mark.parametrize(
    "identity", IDENTITIES, ids=lambda identity: "-".join(identity) or "place"
)
def test_the_draws_are_those_of_one_machine(lazy, channel, identity):
    frame = people(500)
    source = lazy(arrow(frame))
    released = sanitise(source, channel, key=KEY, **{"keep": "all"} | identity)
    assert type(released) is type(source)
    expected = sanitise(frame, channel, key=KEY, **{"keep": "all"} | identity)[
        "job"
    ].tolist()
    for _ in range(2):
        table = collected(released)
        assert table.column_names == list(frame.columns)
        assert table["job"].to_pylist() == expected
        assert table["id"].to_pylist() == frame["id"].tolist()
    if not identity:
        assert expected == drawn_by_hand(channel, frame["job"])


def test_many_batches_are_numbered_through(channel, tmp_path):
    """Files of several row groups, read by several threads, and written from the lazy result."""
    size = 10_000
    frame = people(size)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(arrow(frame), source, row_group_size=500)
    sanitise_file(channel, source, target, insecure_seed=3, keep="all")
    by_file = pq.read_table(target)
    connection = duckdb.connect(config={"threads": 3})
    relation = sanitise(
        connection.read_parquet(str(source)), channel, insecure_seed=3, keep="all"
    )
    relation.write_parquet(str(tmp_path / "duckdb.parquet"))
    sanitise(
        pl.scan_parquet(source), channel, insecure_seed=3, keep="all"
    ).sink_parquet(tmp_path / "polars.parquet")
    for name in ("duckdb", "polars"):
        found = pq.read_table(tmp_path / f"{name}.parquet")
        assert found["job"].to_pylist() == by_file["job"].to_pylist()
        assert found["n"].to_pylist() == list(range(size))
    head = sanitise(
        pl.scan_parquet(source), channel, insecure_seed=3, first_row=7, keep="all"
    )
    again = sanitise(frame.head(90), channel, insecure_seed=3, first_row=7, keep="all")
    assert head.head(90).collect()["job"].to_list() == again["job"].tolist()


def test_a_ledger_gives_the_draws_of_the_file(channel, tmp_path):
    frame = people(300)
    pq.write_table(arrow(frame), tmp_path / "in.parquet")
    ledger = tmp_path / "ledger.db"
    sanitise_file(
        channel,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        ledger=ledger,
        identity="id",
    )
    expected = pq.read_table(tmp_path / "out.parquet")["job"].to_pylist()
    for lazy in KINDS.values():
        released = sanitise(lazy(arrow(frame)), channel, ledger=ledger, identity="id")
        assert collected(released)["job"].to_pylist() == expected
        with pytest.raises(
            InputError, match="knows records of a lazy table by identifiers alone"
        ):
            sanitise(lazy(arrow(frame)), channel, ledger=ledger)


@every
def test_other_columns_keep_their_types_values_and_nulls(lazy, channel):
    table = pa.table(
        {
            "job": pa.array(["a", "b", None]).dictionary_encode(),
            "price": pa.array(
                [Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(12, 2)
            ),
            "day": pa.array([dt.date(2024, 1, 31), None, dt.date(1969, 1, 1)]),
            "at": pa.array(
                [dt.datetime(2024, 1, 31, 8), None, dt.datetime(1969, 1, 1)],
                pa.timestamp("us"),
            ),
            "tags": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
            "big": pa.array([2**62, None, -1]),
            "wet": pa.array([True, None, False]),
        }
    )
    source = lazy(table)
    released = sanitise(
        source, channel, key=KEY, policy=Policy(missing="output:p"), keep="all"
    )
    before, after = collected(source.limit(3)), collected(released)
    assert after.drop_columns("job").equals(before.drop_columns("job"))
    expected = sanitise(
        table, channel, key=KEY, policy=Policy(missing="output:p"), keep="all"
    )
    assert after["job"].to_pylist() == expected["job"].to_pylist()


def test_types_of_duckdb_that_arrow_has_not_stay(channel):
    made = 'select \'a\' as job, uuid() as "a ""b""", 5::hugeint as h, interval 3 days as i'
    connection = duckdb.connect()
    connection.execute(
        f"create table people as {made}, 'x'::enum('x', 'y') as e, time '08:00' as t, '{{}}'::json as j, [1] as l"
    )
    source = connection.table("people")
    released = sanitise(source, channel, key=KEY, keep="all")
    assert released.columns == source.columns
    # The type of an enumeration names values that no record has, such as 'y' here.
    text = released.types[0]
    expected = [text if kind.id == "enum" else kind for kind in source.types]
    assert released.types == expected
    assert released.fetchall()[0][1:] == source.fetchall()[0][1:]


@every
def test_forms_policies_and_several_channels_are_those_of_frames(lazy, channels):
    frame = people(400).assign(city=np.random.default_rng(1).choice([*"stt?"], 400))
    arguments = {"key": KEY, "policy": Policy(unknown="marginal")}
    for wishes in (
        {},
        {"into": ["y", "z"]},
        {"form": "posterior-draw"},
        {"drop": ["pay"]},
    ):
        expected = arrow(sanitise(frame, channels, **arguments, **wishes)).to_pydict()
        assert (
            collected(
                sanitise(lazy(arrow(frame)), channels, **arguments, **wishes)
            ).to_pydict()
            == expected
        )
    crossed = pd.DataFrame({"city": [*"sst"] * 4, "k": range(12), "job": [*"aba"] * 4})
    released = collected(sanitise(lazy(arrow(crossed)), crossed_channel(), key=KEY))
    assert (
        released["city,job"].to_pylist()
        == sanitise(crossed, crossed_channel(), key=KEY)["city,job"].tolist()
    )


def test_what_is_asked_for_later_changes_no_draw(channel):
    frame = people(300)
    expected = sanitise(frame, channel, key=KEY, keep="all")
    lazy = sanitise(pl.from_pandas(frame).lazy(), channel, key=KEY, keep="all")
    chosen = expected[(expected["job"] == "p") & (expected["pay"] > 0)]
    found = (
        lazy.filter((pl.col("job") == "p") & (pl.col("pay") > 0))
        .select("n", "job")
        .collect()
    )
    assert found["n"].to_list() == chosen["n"].tolist()
    assert (
        lazy.select("job").tail(5).collect()["job"].to_list()
        == expected["job"].tolist()[-5:]
    )
    assert (
        lazy.slice(10, 20).collect()["job"].to_list() == expected["job"].tolist()[10:30]
    )
    relation = sanitise(
        duckdb.connect().from_arrow(arrow(frame)), channel, key=KEY, keep="all"
    )
    found = relation.filter("job = 'p' and pay > 0").project("n").fetchall()
    assert [n for (n,) in found] == chosen["n"].tolist()
    assert [
        row[0] for row in relation.project("job").limit(20, offset=10).fetchall()
    ] == expected["job"].tolist()[10:30]


def test_a_relation_can_be_written_into_its_own_database(channel):
    """The connection that reads answers one query at a time, so a cursor reads."""
    connection = duckdb.connect()
    connection.register("view", arrow(people(5000)))
    connection.execute("create table people as from view")
    released = sanitise(
        connection.cursor().table("people"), channel, key=KEY, keep="all"
    )
    connection.from_arrow(released.to_arrow_reader()).create("released")
    found = [
        row[0]
        for row in connection.execute("select job from released order by n").fetchall()
    ]
    assert found == drawn_by_hand(channel, people(5000)["job"])
    assert (
        released.limit(3).fetchall() == released.limit(3).fetchall()
    )  # and it can be left half read


@every
@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (
            {},
            "^row number 17 .counted from 0.: the channel does not know the symbol of 'job', which is none of its ",
        ),
        (
            {"row_numbers": "n"},
            "^row number 17: the channel does not know the symbol of 'job', which is none of its ",
        ),
        (
            {"identity": "id"},
            "^the record at place \\d+ .counted from 0. of its part: the channel does not know the symbol of 'job', which is none of its ",
        ),
    ],
)
def test_a_bad_record_is_one_clear_line(lazy, channel, identity, message):
    frame = people(200)
    frame.loc[17, "job"] = "z"
    released = sanitise(lazy(arrow(frame)), channel, key=KEY, **identity)
    with pytest.raises(InputError, match=message):
        collected(released)


@every
def test_what_gives_the_column_away_is_an_error_at_the_end(lazy, channel):
    frame = people(3000)
    for told, options, message in (
        (
            frame.sort_values("job"),
            {"keep_order": True},
            "the records stand in an order that tells of 'job'",
        ),
        (
            frame.assign(work=frame["job"]),
            {"keep": ["work"]},
            "the column 'work' stands for the useful column",
        ),
    ):
        source = lazy(arrow(told))
        with pytest.raises(InputError, match=message):
            collected(sanitise(source, channel, key=KEY, keep="all"))
        assert (
            len(
                collected(
                    sanitise(source, channel, key=KEY, **{"keep": "all"} | options)
                )
            )
            == 3000
        )


@every
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "must draw the same: give a key"),
        (
            {"key": KEY, "shuffle": True},
            "the order of a lazy table is that of its engine",
        ),
        ({"key": KEY, "identity": "who"}, "there is no column 'who'"),
        ({"key": KEY, "columns": {"job": "work"}}, "there is no column 'work'"),
        ({"key": KEY, "correlated": "pay"}, "the correlated column 'pay' would stay"),
        (
            {"key": KEY, "row_numbers": "pay"},
            "'pay' must hold an integer for every record",
        ),
        (
            {"key": KEY, "identity": "id", "first_row": 3},
            "first_row numbers records by their place",
        ),
    ],
)
def test_what_the_header_tells_is_refused_at_once(lazy, channel, arguments, message):
    with pytest.raises(InputError, match=message):
        sanitise(lazy(arrow(people(10))), channel, **{"keep": "all"} | arguments)


def polars_tables() -> dict[str, pl.LazyFrame]:
    lazy = pl.from_pandas(people(400)).lazy()
    chance = np.random.default_rng()

    def later(part):
        return part.with_columns(pay=pl.lit(float(time.perf_counter_ns())))

    def other_symbols(part):
        return part.with_columns(job=pl.Series(chance.choice([*"abc"], len(part))))

    return {
        "random sample": lazy.select(
            pl.struct(pl.all()).sample(400, shuffle=True).alias("row")
        ).unnest("row"),
        "random order": lazy.map_batches(
            lambda part: part[chance.permutation(len(part))]
        ),
        "random rows": lazy.map_batches(lambda part: part.sample(fraction=0.5)),
        "random symbols": lazy.map_batches(other_symbols),
        "time": lazy.map_batches(later),
    }


def duckdb_tables() -> dict[str, duckdb.DuckDBPyRelation]:
    connection = duckdb.connect()
    connection.register("view", arrow(people(400)))
    connection.execute("create table people as from view")
    # With a seed, because two unseeded offsets below 300 agree in one of 300 runs.
    connection.execute("select setseed(0.5)").fetchall()
    sql = connection.sql
    symbols = "['a', 'b', 'c'][1 + (3 * random())::int % 3] as job"
    return {
        "random order": sql("from people order by random()"),
        "random rows": sql("from people where random() < 0.5"),
        "random column": sql(
            "select id, n, job, pay from (select *, random() as u from people) where u < 0.5"
        ),
        "random offset": sql("from people limit 100 offset (300 * random())::int"),
        "sample": sql("from people using sample reservoir(50 rows)"),
        "random symbols": sql(f"select id, n, {symbols}, pay from people"),
        "time": sql("select id, n, job, epoch_us(now()) as pay from people"),
    }


TABLES = {
    **{("polars", name): polars_tables for name in polars_tables()},
    **{("duckdb", name): duckdb_tables for name in duckdb_tables()},
}


@pytest.mark.parametrize(("engine", "name"), TABLES, ids="-".join)
def test_a_random_or_time_function_is_refused_by_what_it_does(channel, engine, name):
    table = TABLES[engine, name]()[name]
    # The leak: another reading has other records at the same places, each with a new draw.
    assert not collected(table).equals(collected(table))
    with pytest.raises(
        InputError, match=r"^two readings of this table differ, .* if only the order"
    ):
        sanitise(table, channel, key=KEY, keep="all")


@pytest.mark.parametrize("engine", KINDS)
def test_a_random_order_is_released_by_identity(channel, engine):
    tables = {"polars": polars_tables, "duckdb": duckdb_tables}[engine]()
    frame = people(400)
    names = frame["id"].tolist()
    expected = dict(
        zip(names, drawn_by_hand(channel, frame["job"], names), strict=True)
    )
    released = sanitise(
        tables["random order"], channel, key=KEY, identity="id", keep="all"
    )
    for _ in range(2):
        table = collected(released).to_pydict()
        assert table["job"] == [expected[name] for name in table["id"]]
    # Random symbols are no data of their identifiers, whose draws would depend on each other.
    for identity in ({"identity": "id"}, {"row_numbers": "n"}):
        with pytest.raises(InputError, match=r"^two readings of this table differ"):
            sanitise(tables["random symbols"], channel, key=KEY, **identity)


@every
def test_row_numbers_that_batches_share_are_refused(lazy, channel):
    """Records of two batches had one random number, without a word."""
    count = 300_000
    frame = people(count).assign(n=np.arange(count) % (count // 2))
    with pytest.raises(
        InputError, match="'n' gives the row number 0 to two records, whose draws"
    ):
        sanitise(lazy(arrow(frame)), channel, key=KEY, row_numbers="n")


def test_every_later_reading_is_compared_with_the_first(channel):
    """A table that changes after it was read twice is not released in its new order."""
    connection = duckdb.connect()
    connection.register("view", arrow(people(200)))
    connection.execute("create table people as from view")
    released = sanitise(connection.table("people"), channel, key=KEY, keep="all")
    expected = drawn_by_hand(channel, people(200)["job"])
    assert collected(released)["job"].to_pylist() == expected
    connection.execute("create or replace table people as from view order by id desc")
    with pytest.raises(InputError, match=r"^two readings of this table differ"):
        collected(released)
    connection.execute("create or replace table people as from view limit 150")
    with pytest.raises(InputError, match=r"^two readings of this table differ"):
        collected(released)
    chance, readings = np.random.default_rng(), []

    def moves_at_last(part):
        readings.append(len(part))
        if len(readings) <= 2:
            return part
        return part[chance.permutation(len(part))]

    lazy = pl.from_pandas(people(200)).lazy().map_batches(moves_at_last)
    # Whoever says what the unit is has no reading for the order of people.
    released = sanitise(lazy, channel, key=KEY, keep="all", unit="record")
    with pytest.raises(InputError, match=r"^two readings of this table differ"):
        collected(released)


def test_tables_whose_readings_agree_are_known_by_place(channel, tmp_path):
    frame = people(100)
    lazy, connection = pl.from_pandas(frame).lazy(), duckdb.connect()
    connection.register("view", arrow(frame))
    connection.execute("create table people as from view")
    sql = connection.sql
    lazy.collect().write_parquet(tmp_path / "people.parquet")
    lazy.collect().write_csv(tmp_path / "people.csv")
    ordered = [
        lazy.with_columns(pay=pl.col("pay") * 2).filter(pl.col("n") < 50),
        lazy.sort("n").with_row_index().drop("index").cache(),
        pl.concat([lazy.slice(0, 60), lazy.slice(60, 40)]),
        pl.concat([lazy.drop("pay"), lazy.select("pay")], how="horizontal").select(
            frame.columns
        ),
        lazy.drop_nulls()
        .unique(maintain_order=True)
        .set_sorted("n")
        .rename({"pay": "p"})
        .rename({"p": "pay"}),
        pl.scan_parquet(tmp_path / "people.parquet"),
        pl.scan_csv(tmp_path / "people.csv").head(80),
        sql("select * from people where n < 50"),
        sql("select a.* from people a join people b using (n) order by a.n"),
        sql("from people limit 40"),
        sql("from people union all from people"),
    ]
    for table in ordered:
        # Of the last one every record is there twice.
        released = sanitise(table, channel, key=KEY, keep="all", unit="record")
        found = collected(released)
        jobs = (frame["job"].tolist() * 2)[: len(found)]
        assert found["job"].to_pylist() == drawn_by_hand(channel, jobs)


def test_enumerations_of_lazy_tables_become_text(channel):
    """The type of an enumeration named values that no released record has."""
    kind = pl.Enum(["secret", "u", "v"])
    frame = pl.from_pandas(people(40)).with_columns(
        kind=pl.Series(["u", "v"] * 20, dtype=kind)
    )
    released = sanitise(frame.lazy(), channel, key=KEY, keep="all")
    assert released.collect_schema()["kind"] == pl.String
    assert released.collect()["kind"].to_list() == ["u", "v"] * 20
