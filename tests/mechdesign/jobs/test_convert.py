"""A release of a CSV as Parquet and the other way round (`--format`)."""

from __future__ import annotations

import csv
import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats.csv_text import TextOptions
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.release_path import sanitise_path
from mechdesign.release.samplers import Policy
from tests.cases.released_records import mixing_channel
from tests.profiles import scaled

CHANNEL = mixing_channel()
JOBS = [symbol for (symbol,) in CHANNEL.useful.symbols]
ANY = Policy(unknown="marginal")
CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)


def release(folder, source, target, **options):
    options = {"insecure_seed": 1, "keep_order": True, "force": True} | options
    return sanitise_file(
        CHANNEL, folder / source, folder / target, **{"keep": "all"} | options
    )


def read_csv(path, **how):
    with open(path, newline="", **{"encoding": "utf-8"} | how) as file:
        return list(csv.reader(file, strict=True))


@settings(max_examples=scaled(20))
@given(
    st.lists(st.tuples(CELLS, st.sampled_from(JOBS), CELLS), min_size=1, max_size=20)
)
def test_there_and_back_every_text_is_the_same(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("there")
    with open(folder / "in.csv", "w", encoding="utf-8", newline="") as file:
        # Everything is quoted: Python before 3.13 leaves a lone carriage return bare.
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([["note", "job", "more"], *rows])
    release(folder, "in.csv", "plain.csv")
    release(folder, "in.csv", "out.parquet", format="parquet")
    table = pq.read_table(folder / "out.parquet")
    assert set(table.schema.types) == {pa.string()}
    released = read_csv(folder / "plain.csv")
    assert [[*row.values()] for row in table.to_pylist()] == released[1:]
    release(folder, "out.parquet", "back.csv", format="csv", policy=ANY)
    back = read_csv(folder / "back.csv")
    assert [[row[0], row[2]] for row in back] == [[row[0], row[2]] for row in released]


def test_cells_of_parquet_are_written_as_channels_see_them(tmp_path):
    moment = datetime.datetime(2024, 1, 31, 8)
    columns = {
        "job": pa.array([JOBS[0]] * 3).dictionary_encode(),
        "i": pa.array([7, None, -1], pa.int8()),
        "f": [1.0, float("nan"), 1e-7],
        "t": [True, None, False],
        "d": [moment, None, moment.replace(microsecond=5)],
        "n": pa.nulls(3),
        "s": ["=1+1", 'a "b", c', ""],
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    release(tmp_path, "in.parquet", "out.csv", format="csv", escape_formulas=True)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.partition(",")[2] for line in lines] == [
        "i,f,t,d,n,s",
        "7,1.0,True,2024-01-31 08:00:00,,'=1+1",
        ',,,,,"a ""b"", c"',
        "-1,1e-07,False,2024-01-31 08:00:00.000005,,",
    ]
    text = TextOptions(delimiter=";", quote=None, encoding="utf-16")
    release(tmp_path, "in.parquet", "out.csv.gz", format="csv", drop=["s"], text=text)
    release(tmp_path, "out.csv.gz", "again.csv", text=text, policy=ANY)
    assert (tmp_path / "again.csv").read_text("utf-16").splitlines()[
        0
    ] == "job;i;f;t;d;n"


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        (
            [[1]],
            {},
            r"in\.parquet: the column 'c' holds list.*or leave it out \(drop=\)",
        ),
        (["\0"], {}, "a cell holds NUL, which no CSV can"),
        (
            ["1;2"],
            {"text": TextOptions(delimiter=";", quote=None)},
            "cannot be written without quotes",
        ),
        (
            ["\u0416"],
            {"text": TextOptions(encoding="cp1252")},
            "a cell cannot be written in cp1252",
        ),
        (["1"], {"format": "orc"}, r"the format \('orc'\) must be csv or parquet"),
        (
            ["1"],
            {"target": "out.parquet"},
            r"the output is a CSV file; name it accordingly$",
        ),
        (
            ["1"],
            {"target": "out.xlsx"},
            r"the output is a CSV file; name it accordingly$",
        ),
        (
            ["1"],
            {"format": None},
            r"as the input is read; name it accordingly, or convert it \(.*format",
        ),
        (
            ["1"],
            {"format": "parquet", "escape_formulas": True},
            "has no formulas to escape",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, cells, options, message):
    pq.write_table(pa.table({"c": cells, "job": [JOBS[0]]}), tmp_path / "in.parquet")
    options = {"format": "csv", "target": "out.csv", **options}
    target = "out.parquet" if options["format"] == "parquet" else options["target"]
    with pytest.raises(InputError, match=message) as caught:
        release(tmp_path, "in.parquet", **options | {"target": target})
    assert "1;2" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_parquet_file_is_not_packed(tmp_path):
    (tmp_path / "in.csv").write_text(f"job\n{JOBS[0]}\n")
    with pytest.raises(InputError, match="cannot be packed with gzip on top"):
        release(tmp_path, "in.csv", "out.parquet", format="parquet", compression="gzip")
    with pytest.raises(InputError, match="has no formulas to escape"):
        release(
            tmp_path, "in.csv", "out.parquet", format="parquet", escape_formulas=True
        )


def test_files_of_a_folder_get_the_names_and_draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for day in "12":
        place = tmp_path / "in" / f"day={day}"
        place.mkdir(parents=True)
        (place / "a.csv").write_text(f"id,job\n{day},{JOBS[0]}\n{day}0,{JOBS[1]}\n")
    how = {"ledger": "ledger", "identity": "id", "force": False}
    sanitise_path([CHANNEL], "in", "plain", **how)
    sanitise_path([CHANNEL], "in", "out", format="parquet", shuffle=True, **how)
    again = sanitise_path([CHANNEL], "in", "out", format="parquet", shuffle=True, **how)
    assert (again.already, again.records) == (True, 4)
    for day in "12":
        rows = pq.read_table(f"out/day={day}/a.parquet", partitioning=None).to_pylist()
        assert sorted([*row.values()] for row in rows) == sorted(
            read_csv(f"plain/day={day}/a.csv")[1:]
        )
    (tmp_path / "in" / "day=1" / "a.txt").write_text(f"id,job\n5,{JOBS[0]}\n")
    with pytest.raises(
        InputError,
        match=r"a\.txt and day=1/a\.csv would both be written to day=1/a\.parquet",
    ):
        sanitise_path([CHANNEL], "in", "more", format="parquet", **how)
