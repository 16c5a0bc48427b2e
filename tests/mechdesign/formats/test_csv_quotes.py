"""Records that a pair of lone quotes hides within one cell."""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pytest

from mechdesign.core.errors import Notice
from mechdesign.formats import csv_blocks, csv_quotes
from mechdesign.formats.csv_blocks import Splitter
from mechdesign.formats.csv_quotes import hidden_records
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source

WORDS = ["x", "yes, no", "a\nb,c\nd,e", "u,v\nx,y\nx,y\nx,y\nz", "\n\n\n\n", "é"]


def first_hidden(text):
    """The answer by the csv module: row, column and lines of the first cell with records inside."""
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            inside = cell.splitlines()[1:-1]
            commas = {line.count(",") for line in inside}
            if len(inside) >= 3 and commas == {len(row) - 1}:
                return number, column, len(inside)
    return None


def test_the_csv_module_finds_the_same_cells():
    chance = random.Random(4)
    answers = set()
    for _ in range(300):
        records = [chance.choices(WORDS, k=2) for _ in range(chance.randrange(1, 6))]
        newline = chance.choice(["\n", "\r\n"])
        written = io.StringIO(newline="")
        csv.writer(written, lineterminator=newline).writerows(records)
        text = written.getvalue()
        found = Splitter(ord(","), ord('"')).split(text.encode())
        ends = found.ends.reshape(len(records), 2)
        answer = hidden_records(text.encode(), found.starts, ends, found.size, ",")
        assert answer == first_hidden(text)
        answers.add(answer)
    assert len(answers) > 4


def passed_over(table):
    """The number of records of a table, in one pass."""
    return sum(batch.num_rows for batch in table.batches())


def with_lone_quotes(tmp_path, newline="\n"):
    lines = ["job,income", *(f"{'abc'[k % 3]},{'uv'[k % 2]}" for k in range(40))]
    lines[9] = lines[9][:-1] + '"' + lines[9][-1]
    lines[20] += '"'
    path = tmp_path / "in.csv"
    path.write_bytes((newline.join(lines) + newline).encode())
    return path


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [1 << 22, 64])
def test_a_file_says_it_with_its_line_once(tmp_path, monkeypatch, newline, block):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    path = with_lone_quotes(tmp_path, newline)
    message = (
        r"in\.csv, line 10: the cell of 'income' holds 10 lines with as many cells as a record, "
        r".*\(--quote none\)$"
    )
    with open_source(path) as table:
        with pytest.warns(Notice, match=message) as caught:
            assert passed_over(table) == 29
        assert passed_over(table) == 29
    assert len(caught) == 1
    with open_source(path, TextOptions(quote=None)) as table:
        assert passed_over(table) == 40
        assert table.hidden_note is None


def test_the_longest_rows_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_quotes, "MOST_ROWS", 2)
    path = tmp_path / "in.csv"
    ordinary = 'x,"Dear all,\nthis is, as I think,\nfine"\n'
    hides = 'a,"' + "\n".join(["first", *["other,one"] * 9, "last"]) + '"\n'
    path.write_text("job,text\n" + ordinary * 20 + hides + ordinary * 20)
    table = open_source(path)
    with pytest.warns(Notice, match="line 62: the cell of 'text' holds 9 lines"):
        passed_over(table)
    table.close()


def test_a_table_of_one_column_hides_nothing():
    text = b'"a\nb\nc\nd\ne"\n'
    ends = np.array([[len(text) - 1]])
    assert hidden_records(text, np.array([0]), ends, len(text), ",") is None
