"""Files that say something about a table: their cells may be separated otherwise than those of the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechdesign.cli import main
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import all_rows, open_beside

TABLE = "a title\ns,a\nx,1\nx,2\ny,1\ny,2\ny,2\n"
COSTS = ",1,2\n1,0,1\n2,1,0\n"
QUERIES = "query,1,2\nones,1,0\n"
GAINS = "guess,x,y\nyes,1,0\nno,0,1\n"
SHARES = "symbol,share\nx,.4\ny,.6\n"

DESIGNS = {
    "costs": (COSTS, ["--epsilon", "1", "--objective", "FILE"]),
    "queries": (QUERIES, ["--epsilon", "1", "--objective", "FILE"]),
    "gains": (GAINS, ["--average", "FILE=.8"]),
    "shares": (
        SHARES,
        ["--epsilon", "1", "--confidence", ".9", "--known-shares", "FILE"],
    ),
}
"""A file of each kind, and the options of a design with it."""


def _design(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, table: str, beside: str
) -> dict:
    """What a design says whose table and further file have these delimiters."""
    content, options = DESIGNS[kind]
    written = folder / f"{kind}.csv"
    written.write_text(content.replace(",", beside))
    (folder / "table.csv").write_text(TABLE.replace(",", table))
    words = [word.replace("FILE", str(written)) for word in options]
    basis = ["design", str(folder / "table.csv"), "--sensitive", "s", "--useful", "a"]
    form = ["--delimiter", table, "--skip-lines", "1"]
    assert main([*basis, *form, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("kind", DESIGNS)
def test_the_delimiter_of_the_table_is_not_that_of_other_files(kind, tmp_path, capsys):
    expected = _design(tmp_path, capsys, kind, ",", ",")
    for table, beside in ((";", ","), (",", ";"), (";", "\t"), ("|", "|")):
        found = _design(tmp_path, capsys, kind, table, beside)
        for figure in ("cost", "variance", "nmi", "averages", "population"):
            assert found[figure] == expected[figure]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_cells_of_a_matrix_may_be_separated_by_what_the_table_has_not(
    delimiter, tmp_path, capsys
):
    table, matrix = tmp_path / "table.csv", tmp_path / "matrix.csv"
    table.write_text(TABLE.replace(",", ";"))
    matrix.write_text(",u,v\n1,.6,.4\n2,.4,.6\n".replace(",", delimiter))
    command = ["audit", "--matrix", str(matrix), "--table", str(table)]
    form = ["--delimiter", ";", "--skip-lines", "1"]
    columns = ["--sensitive", "s", "--useful", "a", "--epsilon", "1"]
    assert main([*command, *form, *columns]) == 0
    assert "The promise holds" in capsys.readouterr().out


def test_the_delimiter_of_the_table_comes_first(tmp_path):
    # Symbols with commas, in a file that has the semicolons of its table.
    path = tmp_path / "costs.csv"
    path.write_text(";a,b;c\na,b;0;1\nc;1;0\n")
    with open_beside(path, TextOptions(delimiter=";")) as source:
        assert source.header == ["", "a,b", "c"]
        assert all_rows(source) == [["a,b", "0", "1"], ["c", "1", "0"]]


def test_a_name_that_holds_no_delimiter_is_a_column_by_itself(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("symbol\nx\n")
    with open_beside(path) as source:
        assert source.header == ["symbol"]


def test_estimates_read_queries_as_the_design_did(tmp_path, capsys):
    table, queries = tmp_path / "table.csv", tmp_path / "queries.csv"
    channel, released = str(tmp_path / "channel.json"), str(tmp_path / "out.csv")
    table.write_text("s;a\n" + "x;1\nx;2\ny;1\ny;2\ny;2\n" * 8)
    queries.write_text(QUERIES.replace(",", ";"))
    form = ["--delimiter", ";"]
    basis = ["design", str(table), *form, "--sensitive", "s", "--useful", "a"]
    objective = ["--epsilon", "1", "--objective", str(queries), "--output", channel]
    assert main([*basis, *objective]) == 0
    assert (
        main(["apply", channel, str(table), released, *form, "--insecure-seed", "1"])
        == 0
    )
    capsys.readouterr()
    asked = [
        "estimate",
        released,
        "--channel",
        channel,
        *form,
        "--queries",
        str(queries),
    ]
    assert main(asked) == 0
    assert "ones" in capsys.readouterr().out
