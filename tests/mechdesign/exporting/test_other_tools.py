"""PostgreSQL, Spark and R draw what DuckDB and the obvious way draw; each where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

import mechdesign as md
from tests.cases.exported_draws import (
    KEY,
    ROW_OPTIONS,
    drawn,
    drawn_rows,
    look_alikes,
    odd_channel,
    odd_records,
    row_channel,
    row_records,
)
from tests.cases.released_records import SETTINGS

NAMES = {"table": "people", "identity": "person"}


@pytest.mark.parametrize("kind", ["odd", *ROW_OPTIONS])
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_every_statement_parses_in_its_dialect(dialect, kind):
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    channel = odd_channel() if kind == "odd" else row_channel(kind)
    exported = md.export(channel, dialect=dialect, **NAMES)
    for statement in exported.statements:
        (tree,) = sqlglot.parse(statement, dialect=dialect)
        assert isinstance(tree, sqlglot.exp.Create)
    (tree,) = sqlglot.parse(exported.query, dialect=dialect)
    assert isinstance(tree, sqlglot.exp.Select)
    # The key is a parameter in every place.
    parameters = [*tree.find_all(sqlglot.exp.Placeholder, sqlglot.exp.Parameter)]
    assert len(parameters) == 3


class Server:
    """A PostgreSQL server of its own, in a folder, without a port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The server refuses to run as root.
        self.user = "nobody" if os.getuid() == 0 else None
        if self.user is not None:
            shutil.chown(folder, self.user)

    def run(self, *command: str, text: str | None = None, check: bool = True):
        return subprocess.run(
            command,
            cwd=self.folder,
            input=text,
            user=self.user,
            check=check,
            capture_output=True,
            text=True,
            env={**os.environ, "MECHDESIGN_KEY": KEY, "PGTZ": "UTC"},
        )

    def start(self) -> None:
        data = str(self.folder / "data")
        self.run(
            "initdb",
            "-D",
            data,
            "-U",
            "owner",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        )
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        log = str(self.folder / "log")
        subprocess.run(
            ["pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start"],
            cwd=self.folder,
            user=self.user,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "fast", "stop")

    def psql(self, script: str, *, check: bool = True):
        arguments = [
            "-h",
            str(self.folder),
            "-U",
            "owner",
            "-d",
            "postgres",
            "-q",
            "-A",
            "-t",
        ]
        return self.run(
            "psql",
            *arguments,
            "-X",
            "-v",
            "ON_ERROR_STOP=1",
            "-F",
            "\x1f",
            "-R",
            "\x1e",
            text=script,
            check=check,
        )


@pytest.fixture(scope="module")
def server():
    if shutil.which("initdb") is None or shutil.which("psql") is None:
        pytest.skip("PostgreSQL is not installed")
    # The socket's path must be short.
    folder = Path(os.path.realpath(f"/tmp/mechdesign-{os.getpid()}-{time.time_ns()}"))
    folder.mkdir()
    running = Server(folder)
    try:
        running.start()
        yield running
        running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def loaded(records, types):
    """Statements that put a data frame into the table of people."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    lines = [f"DROP TABLE IF EXISTS people; CREATE TABLE people({columns});"]
    for record in records[[*types]].astype(object).values.tolist():
        cells = []
        for cell in record:
            text = str(cell).replace("'", "''")
            cells.append("NULL" if pd.isna(cell) else f"'{text}'")
        lines.append(f"INSERT INTO people VALUES ({', '.join(cells)});")
    return "\n".join(lines)


EXECUTE = "\n\\getenv key MECHDESIGN_KEY\nEXECUTE mechdesign_release(:'key');\n"


def rows_of(output: str) -> list:
    rows = output.removesuffix("\x1e").removesuffix("\n").split("\x1e")
    return [tuple(row.split("\x1f")) for row in rows]


@pytest.mark.slow
def test_postgres_draws_the_same(server):
    channel = odd_channel()
    records = odd_records(300)
    exported = md.export(channel, dialect="postgres", **NAMES)
    server.psql(loaded(records, {"person": "text", "the job": "text"}))
    done = server.psql(exported.text + EXECUTE)
    assert rows_of(done.stdout) == drawn(channel, records, "person", KEY)


NUMBERS = ("0.1", "0.3", "0.7", "0.05", "2.5", "9007199254740993", "-0.7", "1.1")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["real", "double precision", "numeric", "bigint"])
def test_postgres_sorts_numbers_on_edges_into_the_bins_of_apply(server, kind):
    """0.7 of single precision is less than 0.7, and 2^53 + 1 is no double."""
    kept = list(NUMBERS)
    if kind == "bigint":
        kept = ["0", "1", "2", "9007199254740993", "9007199254740992"]
    if kind in ("real", "double precision"):
        kept.remove("9007199254740993")
    frame = pd.DataFrame({"x": kept * 10, "s": ["a", "b"] * (5 * len(kept))})
    edges = [-1, "0.1", "0.3", "0.7", "1.1", "9007199254740993", "1e17"]
    channel = md.design(
        frame,
        md.LIP(3.0),
        sensitive="s",
        useful="x",
        bins=",".join(map(str, edges)),
        objective="truth",
    ).channel
    records = pd.DataFrame({"n": range(len(kept)), "x": kept})
    exported = md.export(channel, dialect="postgres", table="people", identity="n")
    server.psql(loaded(records, {"n": "bigint", "x": kind}))
    done = server.psql(exported.text + EXECUTE)
    # Nothing is randomised, so that a label is the bin.
    released = sorted(label for (label,) in rows_of(done.stdout))
    assert released == sorted(channel.apply(kept))


NO_CASE = """CREATE COLLATION IF NOT EXISTS no_case (
  provider = icu, locale = 'und-u-ks-level1', deterministic = false
);
"""
"""A collation for which texts are equal that differ in case or accents."""


@pytest.mark.slow
def test_a_collation_of_postgres_takes_no_symbol_or_identifier_for_another(server):
    channel, records = look_alikes()
    exported = md.export(channel, dialect="postgres", **NAMES)
    kind = "text COLLATE no_case"
    server.psql(NO_CASE + loaded(records, {"person": kind, "job": kind}))
    done = server.psql(exported.text + EXECUTE)
    assert rows_of(done.stdout) == drawn(channel, records, "person", KEY)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROW_OPTIONS)
def test_postgres_draws_the_same_rows(server, tmp_path, kind):
    channel = row_channel(kind)
    records = row_records(200)
    exported = md.export(channel, dialect="postgres", table="people", identity="n")
    types = {"n": "bigint", "k": "text", "c": "text", "d": "text", "b": "numeric"}
    server.psql(loaded(records, types))
    done = server.psql(exported.text + EXECUTE)
    by_hand = drawn_rows(channel, tmp_path / "rows.json", records, "n", KEY)
    assert rows_of(done.stdout) == by_hand


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"the job": "astronaut"}, "the channel does not know a symbol of the job"),
        ({"person": None}, "a record has no identifier"),
        ({"person": "n° 1"}, "two records have the same identifier"),
    ],
    ids=str,
)
def test_postgres_refuses_what_cannot_be_drawn(server, change, message):
    records = odd_records(20).astype(object)
    for column, cell in change.items():
        records.loc[7, column] = cell
    exported = md.export(odd_channel(), dialect="postgres", **NAMES)
    server.psql(loaded(records, {"person": "text", "the job": "text"}))
    done = server.psql(exported.text + EXECUTE, check=False)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("key", ["NULL", "''", "'abc'"])
def test_postgres_refuses_what_is_no_key(server, key):
    exported = md.export(odd_channel(), dialect="postgres", **NAMES)
    server.psql(loaded(odd_records(3), {"person": "text", "the job": "text"}))
    script = f"{exported.text}\nEXECUTE mechdesign_release({key});\n"
    done = server.psql(script, check=False)
    assert done.returncode != 0
    assert "the key must be 64 lower-case hexadecimal digits" in done.stderr


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def in_spark(spark, channel, records, schema, identity):
    exported = md.export(channel, dialect="spark", table="people", identity=identity)
    names = [part.rsplit(" ", 1)[0].strip("`") for part in schema.split(", ")]
    cells = records[names].astype(object)
    rows = cells.where(cells.notna(), None).values.tolist()
    spark.createDataFrame(rows, schema).createOrReplaceTempView("people")
    for statement in exported.statements:
        spark.sql(statement)
    return [
        tuple(row) for row in spark.sql(exported.query, args={"key": KEY}).collect()
    ]


@pytest.mark.slow
def test_spark_draws_the_same(spark):
    channel = odd_channel()
    records = odd_records(200)
    rows = in_spark(
        spark, channel, records, "`person` string, `the job` string", "person"
    )
    assert rows == drawn(channel, records, "person", KEY)


@pytest.mark.slow
def test_spark_draws_the_same_rows(spark, tmp_path):
    channel = row_channel("given")
    records = row_records(200)
    schema = "n bigint, k string, c string, d string, b int"
    rows = in_spark(spark, channel, records, schema, "n")
    assert rows == drawn_rows(channel, tmp_path / "rows.json", records, "n", KEY)


@pytest.mark.slow
def test_spark_refuses_what_cannot_be_drawn(spark):
    records = odd_records(20).astype(object)
    records.loc[7, "the job"] = "astronaut"
    with pytest.raises(Exception, match="does not know a symbol of the job"):
        in_spark(
            spark, odd_channel(), records, "`person` string, `the job` string", "person"
        )


def test_the_r_script_names_its_columns_and_has_no_key():
    exported = md.export(odd_channel(), "r", identity='the "id"')
    assert exported.query is None
    script = exported.text
    assert 'identity <- "the \\"id\\""' in script
    assert 'inputs <- c("the job")' in script
    assert f'"{exported.lookup.digest} draw "' in script
    with pytest.raises(md.InputError, match="'b' is released in bins, which the R"):
        md.export(row_channel("plain"), "r")


HASHES = {
    "tools::sha256sum": "tools::sha256sum(bytes = charToRaw(text))",
    "digest::digest": 'digest::digest(charToRaw(text), "sha256", serialize = FALSE)',
}
"""Functions of R that give a SHA-256: that of the script (R 4.5), and one of a package."""


def hash_of_r():
    """The first of `HASHES` that this R has; the test is skipped where it has none."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    for function, call in HASHES.items():
        question = ["Rscript", "-e", f"stopifnot(is.function({function}))"]
        if subprocess.run(question, capture_output=True, check=False).returncode == 0:
            return call
    pytest.skip("this R is older than 4.5 and has no SHA-256")


def in_r(channel, identity, folder, locale="C.UTF-8"):
    """Run the script on records.csv of the folder."""
    script = md.export(channel, "r", identity=identity).text
    own = HASHES["tools::sha256sum"]
    assert own in script
    (folder / "draw.R").write_text(script.replace(own, hash_of_r()), encoding="utf-8")
    md.export(channel, "csv").save(folder / "lookup.csv", overwrite=True)
    return subprocess.run(
        ["Rscript", "draw.R", "lookup.csv", "records.csv", "released.csv"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "MECHDESIGN_KEY": KEY, "LC_ALL": locale},
    )


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_r_draws_the_same(tmp_path, locale):
    channel = odd_channel()
    records = odd_records(200)
    # With the mark at the beginning that Excel writes.
    records.to_csv(tmp_path / "records.csv", index=False, encoding="utf-8-sig")
    assert in_r(channel, "person", tmp_path, locale).returncode == 0
    released = pd.read_csv(tmp_path / "released.csv", dtype=str, keep_default_na=False)
    rows = [(text,) for text in released["the job"]]
    assert rows == drawn(channel, records, "person", KEY)


R_CASES = {
    "id,A,B\n1,x,z,\n": "a line of records.csv has more or fewer cells",
    "id,A,B\n1,x,z\n2,x\n": "a line of records.csv has more or fewer cells",
    'id,A,B\n1,"x,z\n2,x,z\n3,x,z\n': "a quote is not closed in records.csv",
    "id,A,B,A\n1,x,z,a\n": "the records have two columns A",
    "id,A,B\n1,x,q\n": "the channel does not know a symbol of A,B",
    "id,A,B\n": "",
    'id,A,B\n1,"x\ny",z\n': "",
    'id,A,B\n1,x,"y\nz"\n': "",
}
"""Records for a channel of rows, and what R says of them."""


@pytest.mark.slow
@pytest.mark.parametrize("text", R_CASES)
def test_r_reads_the_records_whole_or_not_at_all(tmp_path, text):
    # The first two rows are alike when their cells are joined by a line break.
    symbols = [("x\ny", "z"), ("x", "y\nz"), ("x", "z")]
    frame = pd.DataFrame(symbols * 20, columns=["A", "B"])
    channel = md.design(
        frame.assign(g=["s", "t"] * 30),
        md.LIP(3),
        sensitive="g",
        release=["A", "B"],
        unit="record",
    ).channel
    (tmp_path / "records.csv").write_text(text, encoding="utf-8")
    process = in_r(channel, "id", tmp_path)
    assert R_CASES[text] in process.stderr
    output = tmp_path / "released.csv"
    assert output.exists() is (R_CASES[text] == "")
    if output.exists():
        # The channel keeps every row here, and R quotes every cell.
        released = pd.read_csv(output, dtype=str)
        original = pd.read_csv(tmp_path / "records.csv", dtype=str)
        assert released.values.tolist() == original[["A", "B"]].values.tolist()
