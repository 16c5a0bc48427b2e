"""Spark in local mode, with tasks that may be tried twice."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mechdesign import (
    LIP,
    create_key,
    design,
    engine_errors,
    sanitise,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.frames import spark_frames
from mechdesign.jobs.channel_recipe import ChannelRecipe
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.release.samplers import Policy
from mechdesign.tables.joint import Joint
from tests.cases.released_records import (
    KEY,
    NAMED,
    SETTINGS,
    adult_by_relationship,
    adult_channel,
    crossed_channel,
    drawn_by_hand,
    mixing_channel,
    pay_mechanism,
    people,
)

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
# mapInArrow hands no pandas frame to anybody, but asks whether pandas is there, and warns of its version.
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def channel():
    return mixing_channel()


@pytest.fixture
def frame():
    return people(200)


def test_a_table_is_counted_where_the_data_are(spark, frame):
    """Groups alone come to the driver, with null as the missing cell and the same sentences."""
    frame["half"] = np.where(frame["n"] % 5 == 0, np.nan, frame["n"] % 4 / 2)
    frame.loc[3, "job"] = None
    roles = {"sensitive": ["job", "half"], "useful": "n"}
    source = in_spark(spark, frame.assign(n=frame["n"] % 3), 3)
    expected = Joint.from_table(frame.assign(n=frame["n"] % 3), missing="drop", **roles)
    found = Joint.from_table(source, missing="drop", **roles)
    assert found == expected
    assert found.notices == expected.notices
    with pytest.raises(
        InputError, match="has an empty cell; fill it, or say what it means"
    ):
        Joint.from_table(source, **roles)
    with pytest.raises(
        InputError, match=r"there is no column 'jobs'; did you mean 'job'\?"
    ):
        Joint.from_table(source, sensitive="jobs", useful="n")


def in_spark(spark, frame: pd.DataFrame, partitions: int):
    return spark.createDataFrame(
        pa.Table.from_pandas(frame, preserve_index=False)
    ).repartition(partitions)


def by_number(released) -> list[str]:
    table = released.toArrow()
    order = np.argsort(table.column("n").to_numpy())
    return table.column("job").take(pa.array(order)).to_pylist()


@pytest.mark.parametrize("identity", NAMED, ids=lambda identity: "-".join(identity))
@pytest.mark.parametrize("partitions", [1, 7])
def test_the_draws_are_those_of_one_machine(
    spark, channel, frame, identity, partitions
):
    released = sanitise(
        in_spark(spark, frame, partitions), channel, key=KEY, **identity, keep="all"
    )
    assert (
        by_number(released)
        == sanitise(frame, channel, key=KEY, **identity, keep="all")["job"].tolist()
    )
    assert released.rdd.getNumPartitions() == partitions


def test_the_draws_are_those_by_hand(spark, channel, frame):
    source = in_spark(spark, frame, 3)
    numbered = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    assert by_number(numbered) == drawn_by_hand(channel, frame["job"])
    named = sanitise(source, channel, key=KEY, identity="id", keep="all")
    assert by_number(named) == drawn_by_hand(channel, frame["job"], frame["id"])


def test_repartitioning_later_and_another_action_change_no_draw(spark, channel, frame):
    released = sanitise(
        in_spark(spark, frame, 5), channel, key=KEY, identity="id", keep="all"
    )
    expected = by_number(released)
    assert by_number(released.repartition(3)) == expected
    assert by_number(released) == expected


def test_the_other_columns_types_and_nulls_stay(spark, channel):
    rows = [(0, "a", None, [1, 2]), (1, "b", 2.5, None)]
    source = spark.createDataFrame(
        rows, "n bigint not null, job string not null, pay double, tags array<int>"
    )
    released = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    assert released.schema == source.schema
    for before, after in zip(rows, sorted(released.collect()), strict=True):
        assert (after.n, after.pay, after.tags) == (before[0], before[2], before[3])


def test_integer_symbols_become_strings(spark):
    from dataclasses import replace

    from mechdesign.tables.variable import Variable

    channel = replace(
        mixing_channel(),
        useful=Variable(("job",), (("1",), ("2",), ("3",))),
        joint=None,
    )
    frame = (
        people(40).replace({"job": {"a": 1, "b": 2, "c": 3}}).astype({"job": "int32"})
    )
    released = sanitise(
        in_spark(spark, frame, 2), channel, key=KEY, row_numbers="n", keep="all"
    )
    assert released.schema["job"].dataType.simpleString() == "string"
    assert (
        by_number(released)
        == sanitise(frame, channel, key=KEY, keep="all")["job"].tolist()
    )


def test_posterior_draws_of_integers_are_integers(spark):
    counts = np.array([[3, 1, 4], [1, 5, 2]])
    joint = Joint.from_counts(
        counts, useful_labels=["1", "2", "3"], useful="job", sensitive="s"
    )
    half = 2**52
    channel = Channel(
        joint.useful,
        ("u", "v"),
        ((2 * half, 0), (half, half), (0, 2 * half)),
        2 * half,
        joint=joint,
    )
    frame = (
        people(40).replace({"job": {"a": 1, "b": 2, "c": 3}}).astype({"job": "int32"})
    )
    options = {"key": KEY, "form": "posterior-draw", "keep": "all"}
    released = sanitise(in_spark(spark, frame, 2), channel, row_numbers="n", **options)
    assert released.schema["job"].dataType.simpleString() == "int"
    alone = sanitise(frame, channel, **options)["job"]
    assert alone.dtype == "int32"
    assert by_number(released) == alone.tolist()


def test_forms_policies_and_several_channels_are_those_of_frames(spark, channels):
    frame = people(40).assign(city=np.random.default_rng(1).choice([*"stt?"], 40))
    arguments = {
        "key": KEY,
        "keep": "all",
        "policy": Policy(unknown="marginal"),
        "row_numbers": "n",
    }
    for wishes in ({}, {"into": ["y", "z"]}, {"form": "posterior-draw"}):
        expected = sanitise(frame, channels, **arguments, **wishes)
        released = sanitise(in_spark(spark, frame, 2), channels, **arguments, **wishes)
        released = released.toArrow().to_pandas()
        assert list(released.columns) == list(expected.columns)
        released = released.sort_values("n", ignore_index=True)
        for name in released.columns:
            assert released[name].tolist() == expected[name].tolist()


def test_crossed_columns_become_one(spark):
    frame = pd.DataFrame({"city": [*"sst"] * 4, "n": range(12), "job": [*"aba"] * 4})
    released = sanitise(
        in_spark(spark, frame, 2),
        crossed_channel(),
        key=KEY,
        row_numbers="n",
        keep="all",
    )
    assert released.columns == ["city,job", "n"]
    expected = sanitise(frame, crossed_channel(), key=KEY, keep="all")[
        "city,job"
    ].tolist()
    assert [
        row[0] for row in sorted(released.collect(), key=lambda row: row.n)
    ] == expected


def test_a_task_that_fails_and_is_tried_again_draws_the_same(
    spark, channel, frame, tmp_path
):
    source = in_spark(spark, frame, 4)
    marks = str(tmp_path)

    def fails_once(batches):
        from pyspark import TaskContext

        task = TaskContext.get()
        yield from batches
        (Path(marks) / f"{task.partitionId()}-{task.attemptNumber()}").touch()
        if task.attemptNumber() == 0:
            raise RuntimeError("a machine is lost")

    released = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    tried = released.mapInArrow(fails_once, released.schema)
    assert by_number(tried) == drawn_by_hand(channel, frame["job"])
    assert {path.name[-2:] for path in tmp_path.iterdir()} == {"-0", "-1"}


def test_empty_frames_and_partitions(spark, channel):
    source = in_spark(spark, people(3), 7)
    released = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    assert by_number(released) == drawn_by_hand(channel, people(3)["job"])
    assert (
        sanitise(
            source.limit(0), channel, key=KEY, row_numbers="n", keep="all"
        ).collect()
        == []
    )


def test_no_plan_shows_the_key(spark, channel, frame, tmp_path):
    create_key(tmp_path / "job.key", KEY)
    released = sanitise(
        in_spark(spark, frame, 2),
        channel,
        key=tmp_path / "job.key",
        identity="id",
        keep="all",
    ).filter("pay > 0")
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        released.explain(True)
        released.explain("formatted")
    released.collect()
    plans = text.getvalue() + released._jdf.queryExecution().toString() + repr(released)
    assert "sanitise_partition" in plans
    for secret in (KEY.secret.hex(), repr(KEY.secret)[2:-1], "Key("):
        assert secret not in plans


@pytest.mark.parametrize(
    ("identity", "message"),
    [
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
def test_a_bad_record_is_one_clear_line(spark, channel, frame, identity, message):
    frame.loc[17, "job"] = "z"
    released = sanitise(
        in_spark(spark, frame, 3), channel, key=KEY, **identity, keep="all"
    )
    with pytest.raises(InputError, match=message), engine_errors():
        released.collect()


def test_a_bad_record_in_what_is_written_is_one_clear_line(
    spark, channel, frame, tmp_path
):
    frame.loc[17, "job"] = None
    released = sanitise(
        in_spark(spark, frame, 2), channel, key=KEY, identity="id", keep="all"
    )
    message = "^the record at place .* of its part: the column 'job' has an empty cell"
    with pytest.raises(InputError, match=message), engine_errors():
        released.write.parquet(str(tmp_path / "released.parquet"))
    assert not list(tmp_path.rglob("part-*"))
    assert not list(tmp_path.rglob("_SUCCESS"))


@pytest.mark.parametrize("partitions", [1, 2])
def test_row_numbers_of_two_records_are_refused(spark, channel, partitions):
    """Records of two partitions had one random number, without a word."""
    source = spark.createDataFrame(
        [(4, "a"), (1, "c"), (4, "b")], "n int, job string"
    ).repartition(partitions)
    with pytest.raises(
        InputError, match=r"^the column 'n' gives the row number 4 to two records"
    ):
        sanitise(source, channel, key=KEY, row_numbers="n")


def test_a_random_function_is_refused_by_what_it_does(spark, channel, frame):
    """The symbols of a record differed between two actions, and shared a random number."""
    from pyspark.sql import functions as sf

    @sf.udf("string")
    def random_symbol():
        return secrets.choice("abc")

    source = in_spark(spark, frame, 2).withColumn(
        "job", random_symbol.asNondeterministic()()
    )
    # The leak: two readings of the source have other symbols for the same records.
    assert by_number(source) != by_number(source)
    for identity in NAMED:
        with pytest.raises(InputError, match=r"^two readings of this table differ"):
            sanitise(source, channel, key=KEY, **identity)
    # A random column beside the symbols changes no draw.
    other = in_spark(spark, frame, 2).withColumn(
        "other", random_symbol.asNondeterministic()()
    )
    released = sanitise(other, channel, key=KEY, row_numbers="n", keep=["n"])
    assert by_number(released) == drawn_by_hand(channel, frame["job"])


def test_other_errors_of_spark_pass(spark):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="nowhere"), engine_errors():
        spark.table("nowhere").collect()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"identity": "id"}, "must draw the same: give a key"),
        ({"key": KEY}, "the rows of this table have no order that stays"),
        (
            {"key": KEY, "identity": "id", "row_numbers": "n"},
            "identity and row_numbers both identify records",
        ),
        ({"key": KEY, "identity": "who"}, "there is no column 'who'"),
        (
            {"key": KEY, "identity": "pay"},
            "the column 'pay' holds floats, which have more than one text",
        ),
        (
            {"key": KEY, "row_numbers": "pay"},
            "'pay' must hold an integer for every record, .* holds Float64",
        ),
        (
            {"key": KEY, "row_numbers": "n", "correlated": "pay"},
            "the correlated column 'pay' would stay",
        ),
        (
            {"key": KEY, "row_numbers": "n", "columns": {"job": "tags"}},
            "'tags' holds list<.*>, which is no",
        ),
    ],
)
def test_what_the_schema_tells_is_refused_at_once(spark, channel, arguments, message):
    source = spark.createDataFrame(
        [], "id string, n int, job string, pay double, tags array<int>"
    )
    with pytest.raises(InputError, match=message):
        sanitise(source, channel, **{"keep": "all"} | arguments)


def test_equal_names_are_refused(spark, channel):
    twice = spark.sql("select 'a' as job, 'b' as job, 1 as n")
    with pytest.raises(
        InputError, match="two columns have the same name 'job'; rename one"
    ):
        sanitise(twice, channel, key=KEY, row_numbers="n", keep="all")


KILLED = """
import os, signal, sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from mechdesign import sanitise
from tests.cases.released_records import KEY, NAMED, drawn_by_hand, mixing_channel, people

mark = Path(sys.argv[1])
builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("mechdesign: a killed executor")
for name, value in [line.split("=", 1) for line in sys.argv[2:]]:
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frame = people(400)


def kills_once(batches):
    from pyspark import TaskContext

    first = TaskContext.get().partitionId() == 1
    for batch in batches:
        yield batch
        if first and not mark.exists():
            workers = [os.getpid()]
            while workers[-1] > 1:  # the process of the task, the daemon that forked it, and their executor
                status = Path(f"/proc/{workers[-1]}/stat").read_text()
                workers.append(int(status.rsplit(")", 1)[1].split()[1]))
                name = Path(f"/proc/{workers[-1]}/comm").read_text().strip()
                if name == "java":
                    mark.write_text("killed")
                    os.kill(workers[-1], signal.SIGKILL)
                    os._exit(1)


source = spark.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False)).repartition(6)
released = sanitise(source, mixing_channel(), key=KEY, row_numbers="n", keep="all")
rows = sorted(released.mapInArrow(kills_once, released.schema).collect(), key=lambda row: row.n)
assert mark.exists(), "no executor was killed"
assert [row.n for row in rows] == frame["n"].tolist()
assert [row.job for row in rows] == drawn_by_hand(mixing_channel(), frame["job"])
print("the same draws, and the executors", spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="finds the executor in /proc"
)
def test_an_executor_that_is_killed_changes_no_draw(tmp_path):
    """One of two executors is killed in the middle of a task, whose work is done again."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    own = {
        "spark.local.dir": str(tmp_path),
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": path,
    }
    settings = [f"{name}={value}" for name, value in (SETTINGS | own).items()]
    environment = os.environ | {
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment |= {"SPARK_WORKER_DIR": str(tmp_path / "work")}
    (tmp_path / "killed.py").write_text(KILLED)
    command = [
        sys.executable,
        str(tmp_path / "killed.py"),
        str(tmp_path / "mark"),
        *settings,
    ]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "the same draws" in run.stdout


def test_partitions_that_tell_of_the_sensitive_column_are_refused(spark, adult):
    """On Adult grouped by relationship, its number tells of most records; read in random order, of none."""
    from pyspark.sql.functions import rand

    frame, channel = adult_by_relationship(adult)[0], adult_channel(adult)
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    source = session.createDataFrame(pa.Table.from_pandas(frame)).repartitionByRange(
        8, "n"
    )
    with pytest.raises(
        InputError,
        match=r"^the partitions tell of 'occupation' .*orderBy.*\(keep_order=\)",
    ):
        sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    expected = sanitise(frame, channel, key=KEY, keep_order=True, keep="all")[
        "occupation"
    ].tolist()
    for released in (
        sanitise(
            source, channel, key=KEY, row_numbers="n", keep_order=True, keep="all"
        ),
        sanitise(source.orderBy(rand()), channel, key=KEY, row_numbers="n", keep="all"),
    ):
        assert released.toArrow().sort_by("n")["occupation"].to_pylist() == expected


@pytest.mark.parametrize("useful", ["job", ["city", "job"], "at", "pay", ["pay", "at"]])
def test_each_partition_is_counted(spark, monkeypatch, useful):
    """As drawing for its records counts them, one partition at a time: gaps, unknown symbols, moments and bins."""
    session, chance = spark.newSession(), np.random.default_rng(4)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    at = pd.to_datetime(10**5 * chance.integers(0, 3, 700), unit="s", utc=True)
    frame = people(700).assign(
        city=chance.choice([*"uv"], 700), rel=[*"ssttttt"] * 100, at=at
    )
    bins = {"bins": {"pay": 2}} if "pay" in useful else {}
    channel = design(
        Joint.from_table(frame, sensitive="rel", useful=useful, **bins), LIP(1)
    ).channel
    frame.loc[::9, "job"], frame.loc[1::9, "job"] = None, "?"
    source = in_spark(session, frame.drop(columns="rel"), 1).repartition(5, "n")
    counted, totals = [], spark_frames.partition_totals
    monkeypatch.setattr(
        spark_frames,
        "partition_totals",
        lambda drawer, count, first: totals(
            drawer, lambda places: counted.append(count(places)) or counted[-1], first
        ),
    )
    policy = Policy(missing="marginal", unknown="marginal")
    sanitise(source, channel, key=KEY, row_numbers="n", policy=policy, keep="all")
    parts = source.selectExpr("spark_partition_id() as part", "*").toArrow()
    recipe = ChannelRecipe.of(
        channel, ReleaseOptions(key=KEY, row_numbers="n", policy=policy)
    )
    expected = []
    for part in range(5):
        some = parts.filter(pc.field("part") == part).drop_columns("part").to_pandas()
        drawer = recipe.drawer([*some])
        drawer.draw(
            lambda at, some=some: some.assign(at=some["at"].dt.tz_convert("UTC")).iloc[
                :, at
            ],
            len(some),
        )
        expected.append([each.tolist() for each in drawer.counts])
    assert sorted(counted[0]) == sorted(expected)
    assert np.sum(counted[0]) == 700


def test_partitions_that_are_cut_in_another_way_when_they_are_released_are_refused(
    spark, channel
):
    """Spark joins small partitions of a shuffle: the useful column alone fills one, and whole records many."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "40")
    session.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "8k")
    session.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    session.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "1b")
    frame = people(600).assign(text=[os.urandom(40).hex() for _ in range(600)])
    source = session.createDataFrame(
        pa.Table.from_pandas(frame, preserve_index=False)
    ).repartition("job")
    released = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    with (
        pytest.raises(InputError, match=r"^the partitions tell of 'job'"),
        engine_errors(),
    ):
        released.collect()


def test_a_mechanism_for_single_records(spark):
    """The answers, and the records that are left out, are those of a frame."""
    frame, mechanism = people(300), pay_mechanism()
    expected = sanitise(frame, mechanism, keep="all")
    released = (
        sanitise(in_spark(spark, frame, 3), mechanism, keep="all").toArrow().to_pandas()
    )
    expected = expected.reset_index(drop=True)
    released = released.sort_values("n", ignore_index=True).astype(expected.dtypes)
    pd.testing.assert_frame_equal(released, expected)
    with pytest.raises(InputError, match="the partitions tell of 'pay'"):
        sanitise(
            in_spark(spark, frame, 1).repartitionByRange(3, "pay"),
            mechanism,
            keep="all",
        )
    with pytest.raises(InputError, match=r"^row number 7 .* 'pay' is empty there"):
        sanitise(
            in_spark(spark, frame.replace({"pay": {frame["pay"][7]: None}}), 1),
            mechanism,
            keep="all",
        )


@pytest.mark.parametrize("first", [spark_frames.LOOKED, 0], ids=["first", "sparsely"])
def test_what_gives_the_column_away_within_a_partition_is_an_error(
    monkeypatch, spark, channel, first
):
    """The first records of a partition are looked at, and some of all others."""
    monkeypatch.setattr(spark_frames, "LOOKED", first)
    frame = people(3000).assign(work=lambda all: all["job"])
    options = {"key": KEY, "row_numbers": "n", "keep_order": True}
    released = sanitise(in_spark(spark, frame, 2), channel, keep="all", **options)
    with (
        pytest.raises(
            InputError, match="a partition: the column 'work' stands for the useful"
        ),
        engine_errors(),
    ):
        released.collect()
    kept = sanitise(in_spark(spark, frame, 2), channel, keep="work", **options)
    assert kept.count() == 3000


def test_what_gives_the_column_away_in_no_partition_alone_is_an_error(spark, channel):
    frame = people(600).assign(work=lambda all: all["job"])
    source = in_spark(spark, frame, 60)
    with pytest.raises(InputError, match=r"^the column 'work' stands for the useful"):
        sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    kept = sanitise(source, channel, key=KEY, row_numbers="n", keep="work")
    assert kept.count() == 600


def test_numbers_that_stand_for_other_numbers_are_an_error(spark):
    frame = (
        people(2000)
        .round({"pay": 1})
        .assign(pence=lambda all: (100 * all["pay"]).round().astype(int))
    )
    with (
        pytest.raises(InputError, match="a partition: the column 'pence' stands for"),
        engine_errors(),
    ):
        sanitise(
            in_spark(spark, frame, 1), pay_mechanism(), keep_order=True, keep="all"
        ).collect()


def test_an_order_is_seen_whatever_is_selected(spark, channel):
    """The column that is drawn may be left out then; its order shows in the others."""
    frame = people(200).sort_values("job", ignore_index=True)
    released = sanitise(
        in_spark(spark, frame, 1).sort("job"),
        channel,
        key=KEY,
        row_numbers="n",
        keep="all",
    )
    for some in (
        released,
        released.filter("pay > 0").select("id"),
        released.groupBy("id").count(),
    ):
        with (
            pytest.raises(
                InputError, match=r"^a partition: the records stand in an order"
            ),
            engine_errors(),
        ):
            some.collect()


def test_texts_that_spark_takes_for_equal_are_different_symbols(spark, channel):
    frame, policy = people(2000), Policy(unknown="marginal")
    frame["job"] = np.where(
        np.random.default_rng(3).random(2000) < 0.5,
        frame["job"].str.upper(),
        frame["job"],
    )
    source = in_spark(spark, frame, 4).selectExpr(
        "id", "n", "job collate utf8_lcase as job", "pay"
    )
    released = sanitise(
        source, channel, key=KEY, row_numbers="n", policy=policy, keep="all"
    )
    assert (
        by_number(released)
        == sanitise(frame, channel, key=KEY, policy=policy, keep="all")["job"].tolist()
    )


def test_names_that_mean_something_in_expressions(spark, channel):
    names = {"n": "row.`n", "pay": "*", "id": "ID.x", "job": "job"}
    frame = people(50).rename(columns=names).assign(**{"id.X": 1})
    released = sanitise(
        in_spark(spark, frame, 2), channel, key=KEY, row_numbers="row.`n", keep="all"
    ).toArrow()
    assert released.column_names == list(frame.columns)
    expected = sanitise(frame, channel, key=KEY, row_numbers="row.`n", keep="all")
    assert released.sort_by("row.`n").to_pylist() == expected.to_dict("records")


def test_columns_of_any_bytes_stay(spark, channel, frame):
    """They are looked at, too, alone and within others, and are no texts."""
    extra = {
        "picture": "unhex(concat('fffe', hex(n)))",
        "parts": "array(x'ff')",
        "text": "cast(x'fe' as string)",
    }
    source = in_spark(spark, frame, 2).selectExpr(
        "*", *(f"{made} as {name}" for name, made in extra.items())
    )
    released = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    assert by_number(released.select("n", "job")) == drawn_by_hand(
        channel, frame["job"]
    )
    assert released.drop("job").exceptAll(source.drop("job")).count() == 0


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_moments_stay(spark, channel, frame, zone):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    source = in_spark(session, frame, 2).selectExpr(
        "*", "timestamp_seconds(n) at", "timestamp_ntz '2020-01-01' day"
    )
    released = sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    assert released.schema == source.schema
    assert released.drop("job").exceptAll(source.drop("job")).count() == 0


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_moments_identify_records_in_every_time_zone(spark, channel, frame, zone):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    source = in_spark(session, frame, 2).selectExpr(
        "*", "timestamp_seconds(7777 * n) at"
    )
    released = sanitise(source, channel, key=KEY, identity="at", keep="all")
    here = frame.assign(at=pd.to_datetime(7777 * frame["n"], unit="s", utc=True))
    assert (
        by_number(released)
        == sanitise(here, channel, key=KEY, identity="at", keep="all")["job"].tolist()
    )


@pytest.mark.parametrize("form", ["label", "posterior-draw"])
def test_moments_are_symbols_in_every_time_zone(spark, form):
    """As `Joint.from_table` counts them, in UTC."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    at = pd.to_datetime(
        10**5 * np.random.default_rng(3).integers(0, 3, 600), unit="s", utc=True
    )
    rel = np.random.default_rng(4).permutation([*"stt"] * 200)
    frame = people(600).drop(columns="job").assign(rel=rel, at=at)
    source = in_spark(session, frame, 2)
    joint = Joint.from_table(source, sensitive="rel", useful="at")
    assert joint.useful.names[0] == "1970-01-01 00:00:00+00:00"
    how = {
        "key": KEY,
        "row_numbers": "n",
        "drop": ["rel"],
        "form": form,
        "keep": "all",
    }
    released = sanitise(source, channel := design(joint, LIP(1)).channel, **how)
    there = released.orderBy("n").toArrow()["at"]
    if form == "posterior-draw":
        assert released.schema["at"] == source.schema["at"]
        there = there.cast(pa.timestamp("us", "UTC"))
    here = sanitise(pa.Table.from_pandas(frame), channel, **how)["at"]
    assert there.to_pylist() == here.cast(there.type).to_pylist()


def test_no_name_leads_to_what_was_left_out(spark, channel):
    """Spark looks for names that are not there among the columns that a selection was made of."""
    from pyspark.errors import AnalysisException

    frame = people(12).assign(city=[*"sst"] * 4, job=[*"aba"] * 4)
    released = [
        sanitise(
            in_spark(spark, frame, 2),
            channel,
            key=KEY,
            row_numbers="n",
            drop=["city"],
            keep="all",
        ),
        sanitise(
            in_spark(spark, frame, 2),
            crossed_channel(),
            key=KEY,
            row_numbers="n",
            keep="all",
        ),
    ]
    for each in released:
        for name in ("city", "c2", "drawn"):
            with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
                each.orderBy(name)
            with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
                each.filter(f"{name} is not null")


def test_a_stream_is_released_where_its_order_is_kept(spark, channel, frame, tmp_path):
    in_spark(spark, frame, 2).write.parquet(str(tmp_path / "in"))
    source = spark.readStream.schema(
        "id string, n long, job string, pay double"
    ).parquet(str(tmp_path / "in"))
    options = {"key": KEY, "row_numbers": "n", "keep_order": True, "keep": "all"}
    with pytest.warns(UserWarning, match="several records in this stream"):
        sanitise(source, channel, **options)
    released = sanitise(source, channel, **options, unit="record")
    writer = released.writeStream.option(
        "checkpointLocation", str(tmp_path / "marks")
    ).trigger(availableNow=True)
    assert writer.start(str(tmp_path / "out")).awaitTermination(60)
    assert by_number(spark.read.parquet(str(tmp_path / "out"))) == drawn_by_hand(
        channel, frame["job"]
    )


def test_a_kept_column_that_names_people_is_refused(spark):
    """The cluster counts the records of each; all records of a person tell more than one."""
    chance = np.random.default_rng(4)
    secrets_of = chance.choice(["ill", "well"], 200)
    persons = np.repeat(np.arange(200), 4)
    symptom = np.where(chance.random(800) < 0.8, secrets_of[persons], "none")
    panel = pd.DataFrame(
        {
            "person": persons,
            "n": np.arange(800),
            "symptom": symptom,
            "secret": secrets_of[persons],
        }
    )
    asked = {"sensitive": "secret", "useful": "symptom", "unit": "record"}
    channel = design(panel, LIP(0.5), **asked).channel
    table = in_spark(spark, panel, 2)
    options = {"key": KEY, "row_numbers": "n", "keep": ["person"]}
    with pytest.raises(InputError, match="'person' names 200 people"):
        sanitise(table, channel, **options)
    released = sanitise(table, channel, **options, unit="record", keep_order=True)
    assert released.count() == len(panel)
