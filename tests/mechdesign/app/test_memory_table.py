"""Files of the page: text as written, one sentence for what cannot be read."""

from __future__ import annotations

import io
import zipfile

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from mechdesign.app import memory_table
from mechdesign.app.memory_table import read_content, read_path
from mechdesign.core.errors import InputError


def test_cells_stay_as_they_are_written():
    table = read_content("a.csv", b"code,NA\n01234,NA\n,x\n")
    assert table.frame.to_pylist() == [
        {"code": "01234", "NA": "NA"},
        {"code": None, "NA": "x"},
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiter_and_line_ends_of_the_header(delimiter):
    text = f"\ufeffa{delimiter}b\r\n1{delimiter}2\r\n"
    table = read_content("a.csv", text.encode())
    assert table.columns == ("a", "b")
    assert table.text.delimiter == delimiter


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), path)
    table = read_path(str(path))
    assert table.columns == ("a", "b")
    assert table.text is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2,secret\n", "3 cell"),
        (b"a,a\n1,2\n", "the column 'a' more than once"),
        (b"a,\n1,2\n", "has no name"),
        (b"a\n1\n", "a single column"),
        (b"a,b\n", "no records"),
        (b"", "is empty"),
        (b"\xff\xfe,b\n1,2\n", "not utf-16-le text"),
        (b"PAR1 and then nothing", "cannot be read as Parquet"),
        (b"$FL2 and then nothing", "a file of SPSS"),
        (b"PK\x03\x04 and then nothing", "zip data are damaged"),
    ],
)
def test_refusals_name_the_file_and_no_cell(content, message):
    with pytest.raises(InputError, match=message) as refusal:
        read_content("/private/people.csv", content)
    assert str(refusal.value).startswith("people.csv")
    assert "secret" not in str(refusal.value)


def test_missing_file():
    with pytest.raises(InputError, match=r"nowhere.csv cannot be read: No such file"):
        read_path("nowhere.csv")


def test_a_label_of_megabytes_is_no_category():
    cell = "x" * 10_001
    with pytest.raises(
        InputError, match=r"the column 'b' has a cell of more than 10,000 char"
    ):
        read_content("a.csv", f"a,b\n1,{cell}\n2,y\n".encode())
    assert read_content("a.csv", f"a,b\n1,{cell[1:]}\n".encode()).records == 1


def test_more_columns_than_a_page_shows_are_not_read(monkeypatch):
    monkeypatch.setattr(memory_table, "_frame", None)
    header = ",".join(f"c{k}" for k in range(1_001))
    content = f"{header}\n{header}\n".encode()
    with pytest.raises(
        InputError, match=r"there are 1,001 columns, and the page shows 1,000"
    ):
        read_content("a.csv", content)


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.csv", text)
    return stream.getvalue()


def test_a_zip_archive_of_one_file_is_that_file():
    table = read_content("a.zip", zipped(people="job,ill\nclerk,\n"))
    assert table.frame.to_pylist() == [{"job": "clerk", "ill": None}]
    with pytest.raises(InputError, match="an archive of several files"):
        read_content("a.zip", zipped(people="a,b\n1,2\n", others="a,b\n1,2\n"))


def test_a_spreadsheet_is_explained():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("[Content_Types].xml", "")
    with pytest.raises(InputError, match=r"is a spreadsheet; export the sheet as CSV"):
        read_content("a.xlsx", stream.getvalue())


def test_the_reading_is_said():
    lines = "stra\xdfe;job\n" + "1;clerk\n" * 12
    table = read_content("a.csv", ("Survey of 2024\n" + lines).encode("cp1252"))
    assert table.columns == ("stra\xdfe", "job")
    assert table.reading == (
        "in the encoding cp1252 and with ';' between the cells and below 1 line above the header"
    )
    assert read_content("a.csv", b"a,b\n1,2\n").reading == ""


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_line_that_names_the_delimiter_is_no_header(delimiter):
    """Excel reads and writes it; it was taken for a header with a column that has no name."""
    lines = "sep=;\nid;job\n" + "1;clerk\n" * 12
    table = read_content("a.csv", lines.replace(";", delimiter).encode())
    assert table.columns == ("id", "job")
    assert "below 1 line above the header" in table.reading


@pytest.mark.parametrize(
    ("write", "name"), [("write_sav", "a.sav"), ("write_dta", "a.dta")]
)
def test_files_of_statistics(tmp_path, write, name):
    pyreadstat = pytest.importorskip(
        "pyreadstat", reason="the extra stats is not installed"
    )
    frame = pd.DataFrame({"ill": [1.0, 2.0], "age": [30.0, 40.0]})
    labels = {"ill": {1: "yes", 2: "no"}}
    path = tmp_path / name
    getattr(pyreadstat, write)(frame, str(path), variable_value_labels=labels)
    table = read_path(str(path))
    assert table.frame["ill"].to_pylist() == ["yes", "no"]
    assert table.frame["age"].to_pylist() == [30, 40]
