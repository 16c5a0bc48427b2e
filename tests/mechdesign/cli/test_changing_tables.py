"""A table that another program writes while a command reads it is refused by every command."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.csv import CsvSource
from mechdesign.formats.inputs import RawInput, forget_state, inputs_held
from mechdesign.formats.opening import open_source
from mechdesign.formats.parquet import ParquetSource

RECORDS = pd.DataFrame({"group": ["a", "b", "b", "a"] * 30, "job": ["x", "y"] * 60})

MICRO = ("--sensitive", "group", "--useful", "job")


@pytest.fixture
def growing(monkeypatch):
    """Makes a CSV file grow by a record while its first records are used."""

    def grow(path):
        read = CsvSource.batches

        def batches(source, **options):
            for batch in read(source, **options):
                if source.name == str(path):
                    with open(path, "a") as stream:
                        stream.write("a,x\n")
                yield batch

        monkeypatch.setattr(CsvSource, "batches", batches)

    return grow


@pytest.fixture
def table(tmp_path):
    RECORDS.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def command_lines(table, channel):
    rows = ("--sensitive", "group", "--release", "job")
    return {
        "design": ("design", table, *MICRO, "--epsilon", "1"),
        "rows": ("design", table, *rows, "--epsilon", "1"),
        "assess": ("assess", table, "--sensitive", "group"),
        "judge": ("judge", table, "--original", table, "--sensitive", "group"),
        "audit": ("audit", channel, "--table", table),
        "check": ("check", table, "--channel", channel),
        "estimate": ("estimate", table, "--channel", channel),
        "inspect": ("inspect", table, "--channel", channel),
        "apply": ("apply", channel, table, table.with_name("out.csv")),
    }


@pytest.mark.parametrize(
    "verb",
    [
        "design",
        "rows",
        "assess",
        "judge",
        "audit",
        "check",
        "estimate",
        "inspect",
        "apply",
    ],
)
def test_a_table_that_grows_is_refused(run, growing, table, verb):
    joint = md.Joint.from_table(RECORDS, sensitive="group", useful="job")
    channel = table.with_name("channel.json")
    md.design(joint, md.ALIP(eps_l=1, eps_u=1)).channel.save(channel)
    growing(table)
    ended = run(*map(str, command_lines(table, channel)[verb]))
    assert ended.code == 75, ended.err
    assert "t.csv changed while it was read" in ended.err
    assert "start again when it is complete" in ended.err


@pytest.fixture
def changing_between(monkeypatch):
    """Makes a file grow by a record each time that a command has closed it."""

    def change(path):
        close = RawInput.close

        def closed(raw):
            close(raw)
            if raw.name == str(path):
                with open(path, "a") as stream:
                    stream.write("a,x\n")

        monkeypatch.setattr(RawInput, "close", closed)

    return change


@pytest.mark.parametrize(
    "verb",
    ["design", "rows", "assess", "judge", "inspect"],
)
def test_a_table_that_changes_between_two_passes_is_refused(
    run, changing_between, table, verb
):
    joint = md.Joint.from_table(RECORDS, sensitive="group", useful="job")
    channel = table.with_name("channel.json")
    md.design(joint, md.ALIP(eps_l=1, eps_u=1)).channel.save(channel)
    changing_between(table)
    ended = run(*map(str, command_lines(table, channel)[verb]))
    assert ended.code == 75, ended.err
    assert "t.csv changed while it was read" in ended.err
    assert "start again when it is complete" in ended.err


def test_a_file_that_a_command_wrote_itself_may_be_read_again(table):
    with inputs_held():
        open_source(table).close()
        table.write_text("group,job\na,x\n")
        forget_state(table.parent)
        with open_source(table) as source:
            assert sum(batch.num_rows for batch in source.batches()) == 1


def test_a_table_may_change_between_two_commands(run, table):
    for record in ("a,x", "b,y"):
        ended = run("assess", table, "--sensitive", "group")
        assert ended.code == 0, ended.err
        with open(table, "a") as stream:
            stream.write(f"{record}\n")


def pack(path):
    path.write_bytes(gzip.compress(RECORDS.to_csv(index=False).encode()))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", lambda path: RECORDS.to_csv(path, index=False)),
        ("t.csv.gz", pack),
        ("t.parquet", lambda path: RECORDS.to_parquet(path, row_group_size=50)),
    ],
)
def test_every_kind_of_file_is_looked_at_after_its_last_record(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    with open_source(path) as source:
        assert sum(batch.num_rows for batch in source.batches()) == len(RECORDS)
        # The same bytes again are a change, too: another program is writing them.
        path.write_bytes(path.read_bytes())
        with pytest.raises(InputError, match=f"{name} changed while it was read"):
            list(source.batches())


def test_a_file_object_is_not_looked_at(table):
    with open(table, "rb") as stream, open_source(stream) as source:
        assert isinstance(source, (CsvSource, ParquetSource))
        with open(table, "a") as other:
            other.write("a,x\n")
        assert list(source.batches())
