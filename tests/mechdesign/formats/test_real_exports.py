"""Exports as programs write them: titles, row names, archives, other formats, files of statistics."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import zipfile

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, orc

import mechdesign as md
from mechdesign.cli import main
from mechdesign.core.errors import InputError, Notice
from mechdesign.core.wording import quoted
from mechdesign.formats.column_names import lines_above_header, require_column
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import all_rows, open_source
from mechdesign.leaks.doctor import text_symptoms
from mechdesign.tables.reading import read_joint

TABLE = "job,region,income\nclerk,n,low\nbaker,s,high\n"
ROWS = [["clerk", "n", "low"], ["baker", "s", "high"]]

TITLES = [
    "Survey 2024\n",
    "# exported\n",
    "Survey 2024,,\n",
    "Survey 2024\n\n",
    "# from, the, census\n# of 2024\n",
    '"Survey, of 2024"\r\n\r\n',
    "Survey 2024\r",
]


def header_and_rows(path, **options):
    with open_source(path, TextOptions(**options)) as source:
        return source.header, all_rows(source)


# That lines are passed over is said below.
@pytest.mark.filterwarnings("ignore::mechdesign.core.errors.Notice")
@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("way", ["auto", "number"])
def test_lines_above_the_header_are_skipped(tmp_path, title, way):
    path = tmp_path / "export.csv"
    path.write_bytes((title + TABLE).encode())
    lines = "auto" if way == "auto" else len(title.splitlines())
    found = header_and_rows(path, skip_lines=lines)
    assert found == (["job", "region", "income"], ROWS)


@pytest.mark.parametrize("title", TITLES)
def test_a_title_is_named_with_its_remedy(tmp_path, title):
    path = tmp_path / "export.csv"
    path.write_bytes((title + TABLE).encode())
    lines = len(title.splitlines())
    with pytest.raises(InputError) as caught:
        header_and_rows(path)
    assert f"skip what stands above the header (skip_lines={lines})" in str(
        caught.value
    )


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        ",job,region\n1,clerk,n\n2,baker,s\n",
        "job\nclerk\nbaker\n",
        "job,income\n",
        'job,note\nclerk,"a\nb"\nbaker,c\n',
    ],
)
def test_a_file_without_a_title_has_none(tmp_path, text):
    assert lines_above_header(text.encode(), ",", '"') == 0
    path = tmp_path / "plain.csv"
    path.write_text(text)
    assert header_and_rows(path, skip_lines="auto") == header_and_rows(path)


def test_lines_that_auto_passes_over_are_said(tmp_path):
    path = tmp_path / "export.csv"
    # The first six lines may be a table by themselves.
    path.write_text("job,region\n" + "clerk,n\n" * 5 + "a,b,c\n" + "x,n,s\n" * 40)
    message = "first 6 lines were passed over as a title or a comment, and line 7 was"
    with pytest.warns(Notice, match=message):
        header, _ = header_and_rows(path, skip_lines="auto")
    assert header == ["a", "b", "c"]
    # Whoever gives the number knows it.
    assert header_and_rows(path, skip_lines=6)[0] == header


def test_texts_with_delimiters_that_nobody_quoted_are_no_table_with_a_title(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("notes\n" + "apples, bananas\nx, y, z\n" * 40)
    message = (
        r"line 2: .* in a table of one column a cell with a ',' is written in quotes"
    )
    with pytest.raises(InputError, match=message):
        header_and_rows(path)


def test_the_rows_of_qualtrics_below_the_header_are_no_people(tmp_path):
    path = tmp_path / "table.csv"
    codes = '"{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"\n'
    people = "good,m\nbad,f\n"
    path.write_text('Q1,Q2\n"How satisfied,\nall in all?",Gender\n' + codes + people)
    with pytest.raises(InputError, match=r"line 4: .* Qualtrics .*sed '2,4d'"):
        header_and_rows(path)
    path.write_text("Q1,Q2\n" + codes + people)
    with pytest.raises(InputError, match=r"sed '2,2d'"):
        header_and_rows(path)
    path.write_text("Q1,Q2\n" + people + codes)
    assert len(header_and_rows(path)[1]) == 3


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "sep=;;"])
def test_a_line_that_tells_excel_the_separator_is_no_header(tmp_path, first):
    path = tmp_path / "table.csv"
    path.write_text(first + "\njob;age\n" + "clerk;20\n" * 5)
    said = (
        r"the header is the second one: skip it \(skip_lines=1\), and say what separates cells "
        r"\(delimiter=';'\)"
    )
    with open_source(path) as source, pytest.raises(InputError, match=said):
        require_column("job", source.header)
    header, rows = header_and_rows(path, skip_lines=1, delimiter=";")
    assert header == ["job", "age"]
    assert len(rows) == 5


def test_a_comma_in_the_line_for_excel_makes_no_other_header(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("sep=,\njob,age,town\n" + "clerk,20,n\n" * 5)
    with pytest.raises(InputError, match=r"skip what stands .* \(skip_lines=1\)$"):
        header_and_rows(path)


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ("use", "\u200buse"),
        ("use", "use\t"),
        ("\u00fcse", "u\u0308se"),
        ("use", "use\xa0"),
    ],
)
def test_a_name_that_looks_like_the_one_that_is_asked_for_is_named(asked, there):
    """Not the nearest name by its letters, which may be that of another column."""
    said = f"{re.escape(quoted(there))} looks nearly the same, .*: write that name anew"
    with pytest.raises(InputError, match=said):
        require_column(asked, ("sec", there, "reg"))


@pytest.mark.parametrize("lines", ["auto", 0])
def test_a_header_with_a_name_twice_is_no_title(tmp_path, lines):
    """A record in its place would be lost without a word."""
    path = tmp_path / "table.csv"
    path.write_text("name,x,x\n" + "foo,a,b\nbar,c,d\n" * 9)
    said = (
        r"the header has the column 'x' more than once; give one of them another name$"
    )
    with pytest.raises(InputError, match=said):
        header_and_rows(path, skip_lines=lines)
    assert text_symptoms(str(path), None) == []


def test_a_line_with_empty_names_may_be_a_title_or_a_header(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,,\n1,x,p\n2,y,q\n")
    said = (
        r"looks like a title or a comment: skip what stands above the header \(skip_lines=1\), or "
        r"name its columns if it is the header$"
    )
    with pytest.raises(InputError, match=said):
        header_and_rows(path, skip_lines=0)


def test_a_header_with_one_delimiter_more_is_no_title(tmp_path):
    text = "job,region,income,\nclerk,n,low\nbaker,s,high\n"
    assert lines_above_header(text.encode(), ",", '"') == 0
    path = tmp_path / "export.csv"
    path.write_text(text)
    message = "the header ends with a ',' that the rows lack; take it away there"
    with pytest.raises(InputError, match=message) as caught:
        header_and_rows(path)
    assert "skip" not in str(caught.value)


@pytest.mark.parametrize("cell", ["'clerk, a'", "'clerk'"])
def test_single_quotes_are_named_with_their_option(tmp_path, cell):
    path = tmp_path / "export.csv"
    path.write_text(f"'job','income'\n{cell},'low'\n'baker','high'\n")
    with pytest.raises(InputError, match=r"single quotes: say so \(quote=\"'\"\)"):
        read_joint(path, sensitive="income", useful="job")
    text = TextOptions(quote="'")
    joint = read_joint(path, sensitive="income", useful="job", text=text)
    assert joint.useful.symbols == (("baker",), (cell.strip("'"),))


def test_places_are_those_of_the_file(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text("Survey\n" + TABLE + "smith,n\n")
    with pytest.raises(InputError, match=r"line 5: the row has 2 cell\(s\)"):
        header_and_rows(path, skip_lines=1)


def test_a_release_begins_with_its_header(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text("Survey\n" + TABLE * 1)
    text = TextOptions(skip_lines=1)
    joint = read_joint(path, sensitive="income", useful="job", text=text)
    channel = md.design(joint, md.LIP(0.5)).channel
    for shuffle in (False, True):
        out = tmp_path / f"out-{shuffle}.csv"
        md.sanitise_file(
            channel, path, out, text=text, insecure_seed=1, shuffle=shuffle
        )
        header, rows = header_and_rows(out)
        assert (header, len(rows)) == (["job"], 2)
    check = md.check(
        channel,
        tmp_path / "out-False.csv",
        original=path,
        text=text,
        ignored=["region", "income"],
    )
    assert check.plausible


@pytest.mark.parametrize("lines", [-1, 1.5, "some", True])
def test_a_number_of_lines(lines):
    with pytest.raises(InputError, match=r"must be a number of lines, or auto"):
        TextOptions(skip_lines=lines)


def test_more_lines_than_there_are(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("a\nb\n")
    with pytest.raises(InputError, match=r"has fewer lines than are skipped"):
        header_and_rows(path, skip_lines=9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "job,income\nclerk,low,\nbaker,high,\n",
            r"line 2: .*every row ends with a ',' that the header lacks",
        ),
        (
            "job,income\n1,clerk,low\n2,baker,high\n",
            r"line 2: .*every row has one cell more than the header",
        ),
        (
            "income,name\nlow,'Smith, John'\nhigh,'Doe, Jane'\n",
            r"line 2: .*quoted by single quotes: say so \(quote=",
        ),
        (
            "job,income\nclerk,low\nba\0ker,high\n",
            r"line 3: a NUL character, .*\(tr -d '.000' < FILE\)",
        ),
        ("\0job,income\nclerk,low\n" + "baker,high\n" * 9, r"line 1: a NUL character"),
    ],
)
def test_what_is_wrong_with_every_row_is_named(tmp_path, text, message):
    path = tmp_path / "export.csv"
    path.write_bytes(text.encode())
    with pytest.raises(InputError, match=message):
        header_and_rows(path)


def zipped(path, members, *, folder=False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        if folder:
            archive.mkdir("data")
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_a_zip_with_one_csv_is_read(tmp_path):
    members = {"data/people.csv": TABLE, "__MACOSX/data/._people.csv": "\0"}
    path = zipped(tmp_path / "people.zip", members, folder=True)
    assert header_and_rows(path)[1] == ROWS
    big = zipped(tmp_path / "big.zip", {"a.csv": TABLE + "smith,n,low\n" * 400_000})
    with open_source(big) as source:
        assert sum(batch.num_rows for batch in source.batches()) == 400_002
        assert source.where(400_001).endswith("line 400003")


def test_zips_that_cannot_be_read(tmp_path):
    two = zipped(tmp_path / "two.zip", {"a.csv": TABLE, "b.csv": TABLE})
    with pytest.raises(InputError, match=r"of several files \('a.csv', 'b.csv'\)"):
        header_and_rows(two)
    sheet = zipped(tmp_path / "s.xlsx", {"[Content_Types].xml": "", "xl/a.xml": ""})
    with pytest.raises(InputError, match=r"is a spreadsheet; export the sheet as CSV"):
        header_and_rows(sheet)
    with zipfile.ZipFile(tmp_path / "none.zip", "w"):
        pass
    with pytest.raises(InputError, match=r"is an archive without files"):
        header_and_rows(tmp_path / "none.zip")
    inside = zipped(tmp_path / "inside.zip", {"a.parquet": "PAR1"})
    with pytest.raises(InputError, match=r"is a compressed Parquet file"):
        header_and_rows(inside)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(two.read_bytes()[:80])
    with pytest.raises(InputError, match=r"its zip data are damaged"):
        header_and_rows(cut)
    damaged = bytearray(zipped(tmp_path / "d.zip", {"a.csv": TABLE * 50}).read_bytes())
    damaged[60] ^= 255
    (tmp_path / "d.zip").write_bytes(damaged)
    with pytest.raises(InputError, match=r"its zip data are damaged"):
        header_and_rows(tmp_path / "d.zip")


def feather_bytes() -> bytes:
    buffer = io.BytesIO()
    feather.write_feather(pa.table({"job": ["a"]}), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (feather_bytes(), r"is a Feather file .*write_table"),
        (gzip.compress(b"X\n\0\0\0\3" * 9, mtime=0), r"is a file of R; .*readRDS"),
        (gzip.compress(b"RDX3\nX\n\0\0" * 9, mtime=0), r"is a file of R; .*load"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 90, r"is an HDF5 file; .*read_hdf"),
        (b"SQLite format 3\0" + b"\0" * 90, r"is an SQLite database; .*sqlite3"),
        (b"%PDF-1.7\n", r"is a PDF document"),
        (b"ORC\x0a\x03\0\0", r"is an ORC file"),
        (b"Obj\x01\x04\0", r"is an Avro file"),
        (b"\xfd7zXZ\x00\0", r"is packed with xz; unpack it first"),
        (b"BZh91AY&SY", r"is packed with bzip2; unpack it first"),
        (b"7z\xbc\xaf\x27\x1c\0", r"is a 7z archive"),
        (b"Rar!\x1a\x07", r"is a RAR archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", r"is a spreadsheet or another file of Microsoft"),
        (b"<!DOCTYPE html><table>", r"is a web page or XML"),
        (b'<?xml version="1.0"?>', r"is a web page or XML"),
        ("job,a\nx,y\n".encode("utf-16-le"), r"is UTF-16 text; .*utf-16-le"),
        ("job,a\nx,y\n".encode("utf-16-be"), r"is UTF-16 text; .*utf-16-be"),
        ("beruf,größe\nкод,中国\n".encode("utf-16-le"), r"is UTF-16 text; .*utf-16-le"),
        (
            "职业\t大小\n教师\t中国\n".encode("utf-16-be"),
            r"is UTF-16 text; .*utf-16-be",
        ),
        # A released column by itself has no delimiter.
        (
            "beruf\n日本\n一\nкод\n".encode("utf-16-le"),
            r"is UTF-16 text; .*utf-16-le",
        ),
        (bytes(range(256)) * 9, r"neither a CSV nor a Parquet file"),
        (json.dumps([{"job": "a"}]).encode(), r"is JSON; .*json\.load\(sys"),
        (json.dumps({"data": [{"job": "a"}]}).encode(), r"but no list of records"),
        (json.dumps({"job": {"0": "a", "1": "b"}}).encode(), r"but no list of rec"),
        (
            b'{\n"format": "mechdesign.channel",\n"version": 1}',
            r"is no table: it is a file that mechdesign wrote \(mechdesign\.channel\)",
        ),
        (b'{"job": "a"}\n{"job": "b"}\n', r"is JSON; .*json\.loads\(x"),
        (b"$FL2@(#) SPSS" + b"\0" * 90, r"SPSS"),
        (b"<stata_dta><header>" + b"\0" * 90, r"Stata"),
        (b"\x72\x02\x01\x00" + b"\0" * 90, r"Stata"),
        (b"HEADER RECORD*******LIBRARY HEADER" + b"0" * 90, r"SAS"),
    ],
)
def test_other_formats_are_named_with_their_remedy(tmp_path, content, message):
    path = tmp_path / "table.dat"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        header_and_rows(path)


RECORDS = [
    {"id": 1234567890123456789, "date": "2020-01-02", "code": "01"},
    {"job": "NA", "id": None, "date": "2020-01-03", "pay": 1.50},
]
"""Integers beside an empty cell, texts that look like other types, and keys that are not in every
record.
"""


SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "date": pa.string(),
        "code": pa.string(),
        "job": pa.string(),
        "pay": pa.float64(),
    }
)


@pytest.mark.parametrize("kind", ["array", "lines", "orc"])
def test_the_remedy_keeps_every_cell(tmp_path, kind):
    path = tmp_path / "table.dat"
    if kind == "orc":
        orc.write_table(pa.Table.from_pylist(RECORDS, SCHEMA), path)
    elif kind == "array":
        path.write_text(json.dumps(RECORDS))
    else:
        path.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS))
    with pytest.raises(InputError, match=r"; turn it") as refusal:
        header_and_rows(path)
    command = str(refusal.value).split(":  ")[1].replace("FILE", str(path))
    subprocess.run(
        command.replace("python", sys.executable, 1),
        shell=True,
        check=True,
        cwd=tmp_path,
    )
    (table,) = {*tmp_path.iterdir()} - {path}
    header, rows = header_and_rows(table)
    expected = [
        {"id": "1234567890123456789", "date": "2020-01-02", "code": "01"},
        {"job": "NA", "date": "2020-01-03", "pay": "1.5"},
    ]
    assert set(header) == set(SCHEMA.names)
    for row, record in zip(rows, expected, strict=True):
        assert dict(zip(header, row, strict=True)) == dict.fromkeys(header, "") | record


@pytest.mark.parametrize("packing", [bytes, gzip.compress])
@pytest.mark.parametrize(
    "name", ["A", "X", "ORCID", "RDX", "FEA1", "ARROW1", "BZh", "PAR1", "%PDF", "größe"]
)
def test_a_header_may_begin_like_another_format(tmp_path, name, packing):
    """Of one column, and of more; also with a byte that is no UTF-8 far behind."""
    for rest in ("\n2\n3\n1\n", ",job\n2,a\n3,b\n1,a\n"):
        path = tmp_path / "table.csv"
        path.write_bytes(packing((name + rest).encode("cp1252")))
        header, rows = header_and_rows(path, encoding="cp1252")
        assert header[0] == name
        assert [row[0] for row in rows] == ["2", "3", "1"]


def test_data_of_r_as_text_are_named(tmp_path):
    path = tmp_path / "table.rds"
    path.write_bytes(b"A\n3\n263168\n197888\n5\nUTF-8\n19\n1\n")
    with pytest.raises(InputError, match=r"is a file of R; .*readRDS"):
        header_and_rows(path)


@pytest.mark.parametrize("text", ["[a,b\n1,2\n", '{"a,b\n', "[1],[2]\n3,4\n"])
def test_a_header_with_brackets_is_no_json(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with open_source(path, TextOptions(quote=None)) as source:
        assert len(source.header) == 2


def test_statistics_files_need_the_extra(tmp_path, monkeypatch):
    import mechdesign.formats.opening as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    path = tmp_path / "table.sav"
    path.write_bytes(b"$FL2@(#) SPSS" + b"\0" * 90)
    with pytest.raises(InputError, match=r"file of SPSS.*'mechdesign\[stats\]'"):
        header_and_rows(path)


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_statistics_files_have_the_labels_of_their_values(tmp_path, ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "job": [1.0, 2.0, 1.0, None, 99.0],
            "same": [1.0, 2.0, 1.0, 1.0, 1.0],
            "n": [1.0, 2.0, None, 3.0, 4.0],
            "x": [0.5, 1.0, 2.0, 3.0, 1.0],
            "t": ["a", "b", "", "c", "d"],
        }
    )
    labels = {"job": {1: "clerk", 2: "baker"}, "same": {1: "other", 2: "other"}}
    path = tmp_path / f"table.{ending}"
    if ending == "dta":
        pyreadstat.write_dta(frame, path, variable_value_labels=labels)
    else:
        pyreadstat.write_sav(
            frame, path, variable_value_labels=labels, compress=ending == "zsav"
        )
    with open_source(path) as source:
        columns = list(zip(*all_rows(source), strict=True))
        assert source.header == list(frame.columns)
    assert columns[0] == ("clerk", "baker", "clerk", "", "99")
    assert columns[1] == (
        "other (1)",
        "other (2)",
        "other (1)",
        "other (1)",
        "other (1)",
    )
    assert columns[2] == ("1", "2", "", "3", "4")
    assert columns[3] == ("0.5", "1.0", "2.0", "3.0", "1.0")
    assert columns[4] == ("a", "b", "", "c", "d")
    joint = read_joint(path, sensitive="same", useful="job", missing="drop")
    assert joint.useful.names == ("99", "baker", "clerk")


def test_no_two_codes_of_a_statistics_file_become_one_symbol(tmp_path, capsys):
    """A label that reads like the number of another code, and an empty one."""
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"e": [1.0, 2, 3, 4] * 10, "s": ["a", "b"] * 20})
    path = tmp_path / "table.sav"
    pyreadstat.write_sav(
        frame, path, variable_value_labels={"e": {1: "2", 3: "x", 4: " "}}
    )
    joint = read_joint(path, sensitive="s", useful="e")
    assert joint.useful.names == ("2", "2 (1)", "4", "x")
    channel = str(tmp_path / "c.json")
    table = (str(path), "--sensitive", "s", "--useful", "e", "--epsilon", "1")
    assert main(["design", *table, "--output", channel]) == 0
    for name, way in (("out.sav", ""), ("out.csv", ", or convert it (--format csv)")):
        assert main(["apply", channel, str(path), str(tmp_path / name)]) == 2
        said = capsys.readouterr().err.rstrip()
        assert said.endswith(
            f"{name}: the output of a file of SPSS, which is not written, is a Parquet file; name "
            f"it accordingly{way}"
        )


def test_a_broken_statistics_file(tmp_path):
    pytest.importorskip("pyreadstat")
    path = tmp_path / "table.sav"
    path.write_bytes(b"$FL2@(#) SPSS" + b"\0" * 400)
    with pytest.raises(InputError, match=r"file of SPSS that cannot be read"):
        header_and_rows(path)


def test_blanks_between_cells_are_named(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("x y s\n" + "a  c n\nb d  m\n" * 5)
    said = r"there is no column 's'; its cells seem to be separated by blanks: .*tr -s"
    with pytest.raises(InputError, match=said):
        read_joint(path, sensitive="s", useful="x")


def test_a_name_with_a_comma_is_explained(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('job,"age, years",income\nclerk,2,low\nbaker,3,high\n')
    with pytest.raises(
        InputError, match=r"in double quotes among others: '\"age, years\"'"
    ):
        read_joint(path, sensitive="income", useful="job,age, years")


def test_a_frame_with_a_name_twice_names_it():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 2, 3], [1, 3, 4]], columns=["job", "pain", "job"])
    with pytest.raises(
        InputError, match=r"^in the table two columns have the same name, 'job'"
    ):
        md.Joint.from_table(frame, sensitive="pain", useful="job")


@pytest.mark.parametrize("command", ["assess", "design"])
def test_decimal_commas_do_not_hide_the_delimiter(tmp_path, capfd, command):
    """Every line has one semicolon and one comma but the header, which is no title."""
    path = tmp_path / "german.csv"
    path.write_text("s;bmi\n" + "y;18,5\nn;22,0\n" * 40)
    options = []
    if command == "design":
        options = ["--release", "bmi", "--at-most-times", "2"]
    assert main([command, str(path), "--sensitive", "s", *options]) == 2
    said = capfd.readouterr().err
    assert "separated by semicolons: say so (--delimiter ';')" in said
    assert "title" not in said


@pytest.mark.parametrize(
    "header",
    [
        "id,job,town,,",
        "id,job,town",
        "id,job,town,sex",
        "id,job,town,sex,",
        "id,,town,sex,age",
    ],
)
def test_a_header_that_lacks_names_is_no_title(header):
    """Who followed the advice to skip it took the first person for the header."""
    text = header + "\n" + "p1,clerk,north,1,0\n" * 9
    assert lines_above_header(text.encode(), ",", '"') == 0
    titled = "Survey of 2024\n" + text
    assert lines_above_header(titled.encode(), ",", '"') == 1


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_a_date_that_python_lacks_is_refused_with_its_column(tmp_path, ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"day": [1.0, 2.0], "born": [1.0, 1e9]})
    path = tmp_path / f"table.{ending}"
    if ending == "dta":
        forms = {"day": "%td", "born": "%td"}
        pyreadstat.write_dta(frame, path, variable_format=forms)
    else:
        frame["born"] *= 86400
        forms = {"day": "DATE11", "born": "DATE11"}
        pyreadstat.write_sav(frame, path, variable_format=forms)
    with pytest.raises(
        md.InputError, match="the column 'born' has dates outside of the years 1 to"
    ):
        open_source(path)
