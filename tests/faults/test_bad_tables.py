"""Every way a table file can be wrong ends in one sentence that names the file and the culprit."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats import parquet
from mechdesign.tables.reading import read_joint

MICRO = {"sensitive": "s", "useful": "x"}
WIDE = {"contingency": True}
SHARES = {"probabilities": True}

CASES = {
    "empty file": ("", MICRO, "FILE is empty"),
    "header only": ("s,x\n", MICRO, "FILE: the file has a header but no records"),
    "header only, wide": ("s,u,v\n", WIDE, "FILE: the file has a header but no rows"),
    "blank first line": (
        "\ns,x\na,u\n",
        MICRO,
        "FILE: the first line is blank; it must name the columns",
    ),
    "binary": (
        b"\x00\x01\x02",
        MICRO,
        "FILE is neither a CSV nor a Parquet file (it has binary content)",
    ),
    "pickle": (
        b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00",
        MICRO,
        "FILE is neither a CSV nor a Parquet file",
    ),
    "utf-16": (
        "s,x\na,u\n".encode("utf-16"),
        MICRO,
        "FILE is UTF-16 text; save it as UTF-8",
    ),
    "gzip": (b"\x1f\x8b\x08\x00abc", MICRO, "FILE is truncated within its gzip data"),
    "spreadsheet": (
        b"PK\x03\x04abc",
        MICRO,
        "FILE: its zip data are damaged, or were not copied whole",
    ),
    "not utf-8": (
        b"s,x\na,u\nb,caf\xe9\n",
        MICRO,
        "FILE, line 3: not UTF-8 text; save the file as UTF-8",
    ),
    "not utf-8 header": (b"s,caf\xe9\na,u\n", MICRO, "FILE, line 1: not UTF-8 text"),
    "missing column": (
        "s,occupation\na,u\n",
        {"sensitive": "s", "useful": "ocupation"},
        "FILE: there is no column 'ocupation'; did you mean 'occupation'? (columns: 's', 'occupation')",
    ),
    "missing column without match": (
        "s,x\na,u\n",
        {"sensitive": "s", "useful": "salary"},
        "FILE: there is no column 'salary' (columns: 's', 'x')",
    ),
    "missing weight": (
        "s,x\na,u\n",
        {**MICRO, "weight": "n"},
        "FILE: there is no column 'n'",
    ),
    "semicolons": (
        "s;x\na;u\n",
        MICRO,
        "its cells seem to be separated by semicolons: say so (delimiter=';')",
    ),
    "tabs": (
        "s\tx\na\tu\n",
        MICRO,
        "its cells seem to be separated by tabs: say so (delimiter='tab')",
    ),
    "duplicate header": (
        "s,x,s\na,u,b\n",
        MICRO,
        "FILE: the header has the column 's' more than once",
    ),
    "short row": (
        "s,x,o\na,u,1\nb,v\n",
        MICRO,
        "FILE, line 3: the row has 2 cell(s) where the header has 3",
    ),
    "long row": (
        "s,x\na,u\nb,v,w\n",
        MICRO,
        "FILE, line 3: the row has 3 cell(s) where the header has 2",
    ),
    "line numbers count lines within quotes": (
        's,x\n"a\nb",u\nb\n',
        MICRO,
        "FILE, line 4: the row has 1 cell(s)",
    ),
    "line numbers count lines of the header": (
        's,"x\ny"\na,u\nb\n',
        {"sensitive": "s", "useful": "x\ny"},
        "FILE, line 4: the row has 1 cell(s)",
    ),
    "blank line inside": (
        "s,x\na,u\n\nb,v\n",
        MICRO,
        "FILE, line 3: the row is blank within the table; remove it",
    ),
    "open quote": (
        's,x\na,"u\nb,v\n',
        MICRO,
        "the file ends within quotes; a quote is never closed",
    ),
    "text after a quote": ('s,x\na,"u"v\n', MICRO, "FILE, line 2: not a CSV row"),
    "huge record": (
        's,x\na,"' + "u\n" * 9_000_000,
        MICRO,
        "FILE, line 2: a record of more than 16,777,216 bytes; is a quote never closed?",
    ),
    "empty cell": (
        "s,x\na,u\nb,\n",
        MICRO,
        "FILE, line 3: the column 'x' has an empty cell; fill it",
    ),
    "empty sensitive cell": (
        "s,x\na,u\n,v\n",
        MICRO,
        "FILE, line 3: the column 's' has an empty cell",
    ),
    "one column twice": (
        "s,x\na,u\n",
        {"sensitive": "s", "useful": ["s", "x"]},
        "FILE: the column 's' is named 2 times",
    ),
    "single useful symbol": (
        "s,x\na,u\nb,u\n",
        MICRO,
        "FILE: the useful column 'x' has a single symbol ('u'); there is nothing to release",
    ),
    "negative weight": (
        "s,x,n\na,u,1\nb,v,-2\n",
        {**MICRO, "weight": "n"},
        "FILE, line 3: the weight column 'n' has the negative weight -2",
    ),
    "weight that is no number": (
        "s,x,n\na,u,1\nb,v,many\n",
        {**MICRO, "weight": "n"},
        "FILE, line 3: the weight column 'n' has a cell that is no finite number",
    ),
    "weight with a separator": (
        's,x,n\na,u,1\nb,v,"1,800"\n',
        {**MICRO, "weight": "n"},
        "FILE, line 3: the weight column 'n' has a cell that is no finite number; "
        "write numbers as 1800.5, without a decimal comma, separators, units or value labels",
    ),
    "infinite weight": (
        "s,x,n\na,u,1\nb,v,inf\n",
        {**MICRO, "weight": "n"},
        "FILE, line 3: the weight column 'n' has a cell that is no finite number",
    ),
    "empty weight": (
        "s,x,n\na,u,1\nb,v,\n",
        {**MICRO, "weight": "n", "missing": "symbol"},
        "FILE, line 3: the weight column 'n' has an empty cell",
    ),
    "weights without mass": (
        "s,x,n\na,u,0\nb,v,0\n",
        {**MICRO, "weight": "n"},
        "FILE: the table has no mass",
    ),
    "all dropped": (
        "s,x\na,\n,u\n",
        {**MICRO, "missing": "drop"},
        "FILE: there are no records left: dropped 2 of 2",
    ),
    "negative count": (
        "s,u,v\na,1,-2\n",
        WIDE,
        "FILE: the count at row 'a', column 'v' is negative ('-2')",
    ),
    "NaN count": (
        "s,u,v\na,1,2\nb,NaN,1\n",
        WIDE,
        "FILE: the count at row 'b', column 'u' is not usable: 'NaN' is not a finite number",
    ),
    "infinite count": (
        "s,u,v\na,1,inf\n",
        WIDE,
        "column 'v' is not usable: 'inf' is not a finite number",
    ),
    "fractional count": (
        "s,u,v\na,1,2.5\n",
        WIDE,
        "FILE: the count at row 'a', column 'v' is fractional ('2.5')",
    ),
    "count that is no number": (
        "s,u,v\na,1,two\n",
        WIDE,
        "column 'v' is not usable: 'two' is not a number",
    ),
    "empty count": (
        "s,u,v\na,1,\n",
        WIDE,
        "column 'v' is not usable: the cell is empty",
    ),
    "duplicate useful label": (
        "s,u,u\na,1,2\n",
        WIDE,
        "FILE: the symbol 'u' of 'useful' occurs twice",
    ),
    "duplicate sensitive label": (
        "s,u,v\na,1,2\na,3,4\n",
        WIDE,
        "FILE: the symbol 'a' of 's' occurs twice",
    ),
    "missing sensitive label": (
        "s,u,v\na,1,2\n,3,4\n",
        WIDE,
        "FILE: row 2 of the table has no label; name it",
    ),
    "missing useful label": (
        "s,u,\na,1,2\n",
        WIDE,
        "FILE: column 3 has no label; name it",
    ),
    "one column, wide": (
        "s\na\n",
        WIDE,
        "a wide table needs a first column of sensitive symbols and a useful one beside it",
    ),
    "single useful column": (
        "s,u\na,1\nb,2\n",
        WIDE,
        "FILE: the useful column 'useful' has a single symbol ('u')",
    ),
    "wide with crossed columns": (
        "s,u,v\na,1,2\n",
        {**WIDE, "useful": ["p", "q"]},
        "crossed columns need microdata",
    ),
    "wide without mass": ("s,u,v\na,0,0\n", WIDE, "FILE: the table has no mass"),
    "useful called like sensitive": (
        "s,u,v\na,1,2\n",
        {**WIDE, "useful": "s"},
        "the table of the column 's' with itself must have the same symbols on both sides",
    ),
    "short row, wide": (
        "s,u,v\na,1\n",
        WIDE,
        "FILE, line 2: the row has 2 cell(s) where the header has 3",
    ),
    "probabilities that do not sum": (
        "s,u,v\na,0.5,0.4\n",
        SHARES,
        "FILE: the probabilities sum to 0.9 and not to 1",
    ),
    "negative probability": (
        "s,u,v\na,1.5,-0.5\n",
        SHARES,
        "the probability at row 'a', column 'v' is negative",
    ),
    "NaN probability": (
        "s,u,v\na,1,nan\n",
        SHARES,
        "the probability at row 'a', column 'v' is not usable",
    ),
    "counts as probabilities": (
        "s,u,v\na,1,2\n",
        SHARES,
        "the probabilities sum to 3 and not to 1",
    ),
}


@pytest.mark.parametrize(("content", "options", "message"), CASES.values(), ids=CASES)
def test_a_bad_csv_is_refused(tmp_path, content, options, message):
    path = tmp_path / "people.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(
        InputError, match=re.escape(message.replace("FILE", str(path)))
    ) as caught:
        read_joint(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert text.count(str(path)) == 1
    assert "\n" not in text
    assert caught.value.exit_code == 2


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: there is no such file"):
        read_joint(tmp_path / "nowhere.csv", **MICRO)
    with pytest.raises(InputError, match="has no data files"):
        read_joint(tmp_path, **MICRO)
    with pytest.raises(InputError, match=r"\*\.csv has no data files"):
        read_joint(tmp_path / "*.csv", **MICRO)
    with pytest.raises(
        InputError, match=r"no data files; in a pattern, \[\[\] stands for a bracket"
    ):
        read_joint(tmp_path / "a[1]" / "*.csv", **MICRO)


def test_an_unreadable_file(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "people.csv"
    path.write_text("s,x\na,u\n")
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(
        InputError, match=r"people\.csv cannot be read: permission denied"
    ):
        read_joint(path, **MICRO)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "sensitive COL is missing: which column is to be protected?",
        ),
        (
            {"sensitive": "s"},
            "useful COL is missing: which column is to be released? Several: release A,B or "
            "release all. (a wide table needs contingency)",
        ),
        (
            {**MICRO, "missing": "ignore"},
            "missing ('ignore') must be refuse, symbol, drop, marginal or output:LABEL",
        ),
        (
            {**WIDE, "missing": "ignore"},
            "missing ('ignore') must be refuse, symbol, drop, marginal or output:LABEL",
        ),
        ({**WIDE, "weight": "n"}, "weight belongs to a long table"),
        ({**WIDE, "probabilities": True}, "probabilities: give one of them"),
        (
            {**MICRO, "weighted": True},
            "weights says what counts are: give contingency or weight COL too",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_file_is_opened(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_joint("nowhere.csv", **options)


def test_a_short_row_far_down_is_named_by_its_line(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("s,x\n" + "a,u\nb,v\n" * 100_000 + "c\n")
    with pytest.raises(InputError, match="line 200002: the row has 1 cell"):
        read_joint(path, **MICRO)


def test_a_blank_line_between_batches_is_named_by_its_line(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("s,x\n" + "a,u\n" * (2**17 - 1) + "\n" + "b,v\n")
    with pytest.raises(
        InputError, match=f"line {2**17 + 1}: the row is blank within the table"
    ):
        read_joint(path, **MICRO)


PARQUET = {
    "missing column": ({"s": ["a"], "y": ["u"]}, MICRO, "FILE: there is no column 'x'"),
    "null": (
        {"s": ["a", "b"], "x": ["u", None]},
        MICRO,
        "FILE, row 2: the column 'x' has an empty cell",
    ),
    "NaN": (
        {"s": ["a", "b"], "x": [1.5, float("nan")]},
        MICRO,
        "FILE, row 2: the column 'x' has an empty cell",
    ),
    "bytes": (
        {"s": ["a", "b"], "x": [b"u", b"v"]},
        MICRO,
        "FILE: the column 'x' holds binary, which is no symbol",
    ),
    "no records": (
        {"s": pa.array([], pa.string()), "x": pa.array([], pa.string())},
        MICRO,
        "FILE: the file has a header but no records",
    ),
    "negative weight": (
        {"s": ["a", "b"], "x": ["u", "v"], "n": [1, -1]},
        {**MICRO, "weight": "n"},
        "FILE, row 2: the weight column 'n' has the negative weight -1",
    ),
    "null count": (
        {"s": ["a", "b"], "u": [1, None], "v": [1, 2]},
        WIDE,
        "FILE: the count at row 'b', column 'u' is not usable: the cell is empty",
    ),
}


@pytest.mark.parametrize(
    ("columns", "options", "message"), PARQUET.values(), ids=PARQUET
)
def test_a_bad_parquet_is_refused(tmp_path, columns, options, message):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(
        InputError, match=re.escape(message.replace("FILE", str(path)))
    ) as caught:
        read_joint(path, **options)
    assert str(caught.value).count(str(path)) == 1


def test_rows_of_a_parquet_are_counted_over_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_PER_BATCH", 2)
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"s": [*"ababa"], "x": ["u", "v", "u", "v", None]}), path)
    with pytest.raises(InputError, match="row 5: the column 'x' has an empty cell"):
        read_joint(path, **MICRO)


def test_damaged_parquet_files(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(
        pa.table({"s": ["a", "b"] * 5000, "x": [str(i) for i in range(10_000)]}), path
    )
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"people\.parquet cannot be read as Parquet"):
        read_joint(path, **MICRO)
    path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with pytest.raises(InputError, match=r"people\.parquet cannot be read as Parquet"):
        read_joint(path, **MICRO)
    path.write_text("s,x\na,u\n")
    with pytest.raises(
        InputError,
        match=r"people\.parquet is not a Parquet file, though its name says so",
    ):
        read_joint(path, **MICRO)


def test_parquet_with_equal_column_names(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table([["a"], ["u"], ["v"]], names=["s", "x", "x"]), path)
    with pytest.raises(
        InputError,
        match=r"people\.parquet: the column 'x' is there more than once; give one of them another",
    ):
        read_joint(path, **MICRO)
