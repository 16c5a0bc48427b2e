"""Files of the page: text as written, one sentence for what cannot be read."""

from __future__ import annotations

import pyarrow
import pyarrow.parquet
import pytest

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
    assert table.delimiter == delimiter


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), path)
    table = read_path(str(path))
    assert table.columns == ("a", "b")
    assert table.delimiter is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2,secret\n", "no CSV file"),
        (b"a,a\n1,2\n", "two columns are called 'a'"),
        (b"a,\n1,2\n", "has no name"),
        (b"a\n1\n", "a single column"),
        (b"a,b\n", "no records"),
        (b"", "no CSV file"),
        (b"\xff\xfe,b\n1,2\n", "not UTF-8"),
        (b"PAR1 and then nothing", "no Parquet file"),
    ],
)
def test_refusals_name_the_file_and_no_cell(content, message):
    with pytest.raises(InputError, match=message) as refusal:
        read_content("/private/people.csv", content)
    assert str(refusal.value).startswith("people.csv: ")
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


def test_more_columns_than_a_page_shows():
    header = ",".join(f"c{k}" for k in range(1_001))
    content = f"{header}\n{header}\n".encode()
    with pytest.raises(
        InputError, match=r"there are 1,001 columns, and the page shows 1,000"
    ):
        read_content("a.csv", content)
