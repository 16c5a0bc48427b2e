"""What `assess` says first: how a file should be read, and what its cells hold."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import CellForm
from mechdesign.formats.csv_text import TextOptions
from mechdesign.leaks.coded_table import CodedColumn, CodedTable
from mechdesign.leaks.doctor import missing_codes, table_symptoms, text_symptoms

pytestmark = pytest.mark.usefixtures("small_by_products")

ROWS = ["job,region,income", *(f"clerk{i % 3},caf\u00e9,low{i % 2}" for i in range(40))]


def written(path, rows, *, encoding="utf-8", delimiter=",", title=""):
    text = title + "\n".join(row.replace(",", delimiter) for row in rows) + "\n"
    path.write_bytes(text.encode(encoding))
    return path


def ways_to_write():
    """Every other pair of an encoding and a delimiter has one of the titles; the rest is for the slow tests."""
    encodings = ("utf-8", "cp1252", "utf-16", "utf-8-sig")
    delimiters = (",", ";", "\t", "|")
    titles = ("", "Survey 2024\n", "# a, b; c\n# d\n\n")
    for a, encoding in enumerate(encodings):
        for b, delimiter in enumerate(delimiters):
            for c, title in enumerate(titles):
                is_quick = (a + b) % 2 == 0 and (a + b + c) % len(titles) == 0
                marks = [] if is_quick else [pytest.mark.slow]
                yield pytest.param(encoding, delimiter, title, marks=marks)


@pytest.mark.parametrize(("encoding", "delimiter", "title"), [*ways_to_write()])
def test_the_file_is_read_by_the_options_that_are_named(
    tmp_path, encoding, delimiter, title
):
    path = written(
        tmp_path / "t.csv", ROWS, encoding=encoding, delimiter=delimiter, title=title
    )
    options = {}
    for symptom in text_symptoms(path):
        name, _, value = symptom.option.partition(" ")
        value = {"tab": "\t"}.get(value, value.strip("'"))
        options[name.removeprefix("--").replace("-", "_")] = value
    # Nothing is named that is right already.
    assert ("delimiter" in options) == (delimiter != ",")
    assert ("encoding" in options) == (encoding in ("cp1252", "utf-16"))
    assert options.pop("skip_lines", "0") == str(len(title.splitlines()))
    skip = len(title.splitlines())
    assessment = md.assess(
        path, sensitive="income", text=TextOptions(skip_lines=skip, **options)
    )
    assert assessment.records == 40
    assert {column.name for column in assessment.columns} == {"job", "region"}


def test_an_unreadable_file_is_refused_with_all_options(tmp_path):
    path = written(
        tmp_path / "t.csv", ROWS, encoding="cp1252", delimiter=";", title="Survey\n"
    )
    with pytest.raises(
        InputError,
        match=r"encoding='cp1252'.* --delimiter ';'|--encoding cp1252 --delimiter ';' "
        r"--skip-lines 1|encoding.*delimiter.*skip_lines",
    ):
        md.assess(path, sensitive="income")


def test_an_option_that_the_error_names_is_not_named_again(tmp_path):
    path = written(tmp_path / "t.csv", ROWS, title="Survey\n")
    with pytest.raises(InputError, match="looks like a title") as caught:
        md.assess(path, sensitive="income")
    assert str(caught.value).count("looks like a title") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"job": "a", "income": "b"}]', r"is JSON; .*> TABLE.csv$"),
        (b"SQLite format 3\0" + b"\0" * 90, r"is an SQLite database; .*TABLE.csv$"),
    ],
)
def test_no_option_is_named_for_other_formats(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert text_symptoms(path) == []
    with pytest.raises(InputError, match=message):
        md.assess(path, sensitive="income")


def test_options_that_were_given_are_no_symptoms(tmp_path):
    path = written(
        tmp_path / "t.csv", ROWS, encoding="cp1252", delimiter=";", title="Survey\n"
    )
    text = TextOptions(encoding="cp1252", delimiter=";", skip_lines=1)
    assert text_symptoms(path, text) == []


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        (("20", "30", "-9"), ["-9"]),
        (("20", "30", "-9", "-5"), []),
        (("20", "30", "40", "99"), ["99"]),
        (("20", "60", "97", "98", "99"), []),
        (("1", "2", "3", "999"), ["999"]),
        (("yes", "no", "?"), ["?"]),
        (("yes", "no", "99"), []),
        (("none", "clerk"), []),
        (("None", "clerk"), ["None"]),
        (("yes", "NA", "n/a", " null "), ["NA", "n/a", " null "]),
        (("1", "2", "."), ["."]),
        (("", "1", "2"), []),
        (("nan", "inf"), ["nan"]),
        (("99",), []),
    ],
)
def test_codes_of_missing_values(values, codes):
    column = CodedColumn("q", np.arange(len(values), dtype=np.int32), values)
    assert missing_codes(column) == codes


def people(**columns):
    size = 40
    table = {
        "job": ["clerk", "clerk ", "nurse", "?"] * (size // 4),
        "age": ["20", "30", "-9", "40"] * (size // 4),
        "town": ["a", "", "b", "b"] * (size // 4),
        "id": [str(i) for i in range(size)],
        "income": ["low", "high", "high", "low", "low"] * (size // 5),
    }
    return table | columns


@pytest.fixture
def frame():
    return pytest.importorskip("pyarrow").table(people())


def kinds(assessment):
    return {(symptom.kind, symptom.column) for symptom in assessment.symptoms}


# Whoever reads the file notes it, too.
@pytest.mark.filterwarnings("ignore::mechdesign.core.errors.Notice")
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(("closed", "is_noted"), [(9, True), (5, True), (4, False)])
def test_records_within_quotes_are_noted(tmp_path, delimiter, closed, is_noted):
    lines = [f"{'abc'[k % 3]},{'uv'[k % 2]},{'xy'[k % 2]}" for k in range(40)]
    # A quote opens in the first record and is closed in another one.
    lines[1] = lines[1][:-1] + '"' + lines[1][-1]
    lines[closed] = lines[closed] + '"'
    text = "\n".join(["a,b,c", *lines]).replace(",", delimiter)
    (tmp_path / "in.csv").write_text(text + "\n", encoding="utf-8")
    options = TextOptions(delimiter=delimiter)
    assessment = md.assess(tmp_path / "in.csv", sensitive="b", text=options)
    notes = [note for note in assessment.symptoms if note.kind == "quote"]
    assert [note.column for note in notes] == (["c"] if is_noted else [])
    for note in notes:
        assert f"'c' holds {closed - 2} lines with as many cells" in note.text
        assert "--quote none" in note.option


@pytest.mark.parametrize("trim", [False, True])
def test_quotes_behind_blanks_are_noted(tmp_path, trim):
    """`1, "x"` gives a cell that has its quotes."""
    rows = [f'{"abc"[k % 3]}, "{"uv"[k % 2]}","{"xy"[k % 2]}"' for k in range(40)]
    (tmp_path / "in.csv").write_text("\n".join(["a,b,c", *rows, ""]), encoding="utf-8")
    form = CellForm(trim=trim)
    assessment = md.assess(tmp_path / "in.csv", sensitive="a", form=form)
    notes = [note for note in assessment.symptoms if note.kind == "quote"]
    assert [note.column for note in notes] == ["b"]
    assert "'b' have quotes around them" in notes[0].text
    assert "take the blanks" in notes[0].option


def test_lines_of_a_text_are_no_records():
    notes = ["one\ntwo\nthree\nfour\nfive", "yes, no\nno\nyes, yes\nno\nno"] * 20
    table = pytest.importorskip("pyarrow").table(people(job=notes))
    assert "quote" not in {
        kind for kind, _ in kinds(md.assess(table, sensitive="income"))
    }


def test_every_symptom_is_named_with_its_option(frame):
    assessment = md.assess(frame, sensitive="income")
    assert kinds(assessment) == {
        ("identifier", "id"),
        ("alike", "job"),
        ("code", "job"),
        ("code", "age"),
        ("empty", "town"),
    }
    text = assessment.summary()
    assert text.startswith("To settle first:")
    for option in (
        "--identity id",
        "--trim",
        "--missing-codes=-9",
        "--missing-codes='?'",
        "--missing",
        "10 empty cells (25.0 % of the records)",
    ):
        assert option in text


def test_days_written_as_numbers_are_named(frame):
    days = [[20240131, 20240201, 20240229][k % 3] for k in range(frame.num_rows)]
    frame = frame.append_column("day", [days])
    assessment = md.assess(frame, sensitive="income", columns=["day"])
    assert kinds(assessment) == {("days", "day")}
    assert "'day' has numbers that look like days or months" in assessment.summary()


@pytest.mark.parametrize(
    ("values", "others", "is_noted"),
    [
        (["850", "1.200", "2.350"], ["a", "b"], True),
        (["1.234", "2.345"], ["1,5", "2,5"], True),
        (["1.234", "2.345"], ["1.5", "2.5"], False),
        (["850", "1.2", "2.350"], ["1,5", "2,5"], False),
    ],
)
def test_separators_of_thousands_are_named(frame, values, others, is_noted):
    size = frame.num_rows
    pay = [values[k % len(values)] for k in range(size)]
    other = [others[k % len(others)] for k in range(size)]
    frame = frame.append_column("pay", [pay]).append_column("other", [other])
    assessment = md.assess(frame, sensitive="income", columns=["pay", "other"])
    assert kinds(assessment) == ({("thousands", "pay")} if is_noted else set())
    noted = "'pay' has numbers with points that look like separators of thousands"
    assert (noted in assessment.summary()) == is_noted


def test_the_options_settle_them(frame):
    assessment = md.assess(
        frame,
        sensitive="income",
        missing="drop",
        form=CellForm(trim=True, missing_codes=("?", "-9")),
    )
    # Of four jobs one is a code, of four ages another, of four towns one is empty.
    assert assessment.records == 10
    assert kinds(assessment) == {
        ("identifier", "id"),
        ("empty", "job"),
        ("empty", "age"),
        ("empty", "town"),
    }
    assert "and these records are left out" in assessment.summary()
    (job,) = [column for column in assessment.columns if column.name == "job"]
    assert job.disclosure.values == 1


def test_refused_gaps_and_nothing_left(frame):
    with pytest.raises(InputError, match=r"'town' has an empty cell, in record 2"):
        md.assess(frame, sensitive="income", missing="refuse")
    with pytest.raises(InputError, match=r"every record has an empty cell"):
        md.assess(
            frame,
            sensitive="income",
            missing="drop",
            form=CellForm(missing_codes=("20", "30", "-9", "40")),
        )


def test_headers_between_records_are_named(tmp_path):
    path = tmp_path / "joined.csv"
    rows = "".join(f"{'ab'[k % 2]},{'uvw'[k % 3]}\n" for k in range(60))
    path.write_text(f"g,x\n{rows}g,x\n{rows}")
    (symptom,) = md.assess(path, sensitive="g").symptoms
    assert symptom.kind == "header"
    assert symptom.text.startswith("the names of the columns 'g', 'x' are values there")


def test_a_clean_table_has_nothing_to_settle():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {"job": ["a", "b"] * 20, "income": ["low", "high", "high", "low"] * 10}
    )
    assessment = md.assess(table, sensitive="income")
    assert assessment.symptoms == ()
    assert "To settle first" not in assessment.summary()


def test_an_identifier_is_no_secret(frame):
    with pytest.raises(
        InputError, match=r"own in the sensitive column 'id': it names records"
    ):
        md.assess(frame, sensitive="id")


def test_columns_that_identify_together_are_no_secret():
    table = {
        "town": [str(k // 20) for k in range(400)],
        "day": [str(k % 20) for k in range(400)],
        "job": ["clerk", "nurse"] * 200,
    }
    frame = pa.table(table)
    with pytest.raises(
        InputError, match=r"own in the sensitive column 'town,day': it names records"
    ):
        md.assess(frame, sensitive=["town", "day"])
    assert md.assess(frame, sensitive=["town", "job"]).columns


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("\u200bjob", r"'\\u200bjob' has characters that are hard to see or to type"),
        ("job ", r"'job\\x20' has characters that are hard to see or to type"),
        ("Job", None),
    ],
)
def test_names_of_columns_that_nobody_can_type_are_named(frame, name, said):
    names = [name if old == "job" else old for old in frame.column_names]
    symptoms = md.assess(frame.rename_columns(names), sensitive="income").symptoms
    texts = [symptom.text for symptom in symptoms if symptom.kind == "name"]
    assert bool(texts) == (said is not None)
    if said is not None:
        assert re.search(said, texts[0])


def test_the_page_begins_with_it(frame):
    from mechdesign.report.assessment import assessment_page

    page = assessment_page(md.assess(frame, sensitive="income"), "t.csv", "again")
    assert page.sections[0].title == "To settle first"


@pytest.mark.parametrize(
    ("name", "typed"), [("Case No", "'Case No'"), ("", "''"), ("id", "id")]
)
def test_the_option_of_an_identifier_can_be_typed_as_it_stands(name, typed):
    values = [str(i) for i in range(40)]
    column = CodedColumn(name, np.arange(40, dtype=np.int32), values)
    table = CodedTable(40, {name: column}, ())
    (symptom, *_) = table_symptoms(table, [name], "symbol")
    assert symptom.option == f"apply --identity {typed}"
