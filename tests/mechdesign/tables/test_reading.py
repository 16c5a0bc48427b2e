from __future__ import annotations

import csv
import io
from collections import Counter
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks, parquet
from mechdesign.formats.opening import open_source
from mechdesign.tables.joint import Joint
from mechdesign.tables.reading import read_joint


@pytest.fixture
def write(tmp_path):
    def writer(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writer


def as_csv(header, records) -> str:
    sink = io.StringIO(newline="")
    csv.writer(sink, quoting=csv.QUOTE_ALL).writerows([header, *records])
    return sink.getvalue()


nasty = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from('",\r\n ;\t'),
    min_size=1,
    max_size=4,
)


@given(
    records=st.lists(
        st.tuples(nasty, nasty, st.text("xy,", max_size=2)), min_size=1, max_size=25
    )
)
def test_microdata_keep_every_text_verbatim(tmp_path_factory, records):
    records = [*records, ("01234", "NA", ""), ("1234", " NA", "")]
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(as_csv(["s", "x", "other"], records).encode())
    joint = read_joint(path, sensitive="s", useful="x")
    expected = Counter((s, x) for s, x, _ in records)
    assert joint.sensitive.names == tuple(sorted({s for s, _, _ in records}))
    assert joint.useful.names == tuple(sorted({x for _, x, _ in records}))
    for s, row in zip(joint.sensitive.names, joint.counts, strict=True):
        assert row == tuple(expected[s, x] for x in joint.useful.names)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["", "N", "NNN"])
def test_line_endings_marks_and_blank_lines_at_the_end(write, newline, mark, end):
    text = mark + newline.join(["s,x", "a,u", "b,v", "a,v"]) + end.replace("N", newline)
    joint = read_joint(write(text), sensitive="s", useful="x")
    assert joint.counts == ((1, 1), (0, 1))


def test_blank_lines_at_the_end_may_span_batches(write, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK", 3)
    with open_source(write("s,x\na,u\nb,v\na,v\n\n\n\n\n")) as table:
        rows = [row for batch in table.batches() for row in batch.rows()]
    assert rows == [["a", "u"], ["b", "v"], ["a", "v"]]


def test_batches_give_the_rows_in_order(write, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK", 40)
    lines = [f"a{i},u{i % 3}" for i in range(50)]
    with open_source(write("s,x\n" + "\n".join(lines))) as table:
        for _ in range(2):  # from the beginning every time
            batches = [batch.rows() for batch in table.batches()]
            assert len(batches) > 5
            assert [",".join(row) for batch in batches for row in batch] == lines


def test_crossed_columns_as_sequence_or_text(write):
    path = write("s,t,x,y\na,1,u,p\nb,1,v,p\na,2,u,q\n")
    joint = read_joint(path, sensitive=["s", "t"], useful=("x", "y"))
    assert joint.sensitive.symbols == (("a", "1"), ("a", "2"), ("b", "1"))
    assert joint == read_joint(path, sensitive="s,t", useful="x,y")


def test_a_column_whose_name_has_a_comma_is_one_column(write):
    path = write('s,"Hiphop, Rap",Hiphop\na,1,x\nb,2,y\n')
    assert read_joint(path, sensitive="s", useful="Hiphop, Rap").useful.columns == (
        "Hiphop, Rap",
    )


@pytest.mark.parametrize("missing", ["symbol", "drop"])
def test_empty_cells(write, missing):
    path = write('s,x,other\na,u,\n"",v,1\nb,,2\nb,v,3\n')
    joint = read_joint(path, sensitive="s", useful="x", missing=missing)
    if missing == "symbol":
        assert joint.sensitive.names == ("", "a", "b")
        assert joint.useful.names == ("", "u", "v")
        assert joint.counts == ((0, 0, 1), (0, 1, 0), (1, 0, 1))
    else:
        assert joint.counts == ((1, 0), (0, 1))
        assert joint.notices == ("dropped 2 of 4 record(s) with an empty cell",)


def test_long_counts_and_survey_weights(write):
    path = write("s,x,n,w\na,u,3,0.1\na,v,2,0.20\nb,u,4,1e-1\na,u,1,.1\n")
    counts = read_joint(path, sensitive="s", useful="x", weight="n")
    assert counts.is_counts
    assert counts.counts == ((4, 2), (4, 0))
    weights = read_joint(path, sensitive="s", useful="x", weight="w")
    assert not weights.is_counts
    assert weights.records is None
    assert [Fraction(c, weights.total) for row in weights.counts for c in row] == [
        Fraction(2, 5),
        Fraction(2, 5),
        Fraction(1, 5),
        0,
    ]


def test_whole_weights_are_taken_for_counts_unless_it_is_said_what_they_are(write):
    """Of records of their own, as in a survey, a note asks what they are; counts of a table have
    each cell once.
    """
    path = write("s,x,w\na,u,77516\na,u,83311\nb,v,215646\n")
    counts = read_joint(path, sensitive="s", useful="x", weight="w")
    assert counts.is_counts
    assert counts.notices == (
        "the column 'w' is taken for numbers of records, 376,473 in all; if it holds survey weights, say so "
        "(--weighted)",
    )
    weights = read_joint(path, sensitive="s", useful="x", weight="w", weighted=True)
    assert not weights.is_counts
    assert weights.counts == counts.counts
    assert weights.notices == ()
    assert (
        read_joint(
            write("s,x,w\na,u,3\na,v,1\nb,v,2\n"), sensitive="s", useful="x", weight="w"
        ).notices
        == ()
    )


def test_weights_add_up_over_batches(write, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK", 30)
    body = "".join(f"{'ab'[i % 2]},{'uvw'[i % 3]},0.{i:02d}\n" for i in range(1, 40))
    joint = read_joint(write("s,x,w\n" + body), sensitive="s", useful="x", weight="w")
    exact = Counter()
    for i in range(1, 40):
        exact["ab"[i % 2], "uvw"[i % 3]] += Fraction(i, 100)
    total = sum(exact.values())
    for s, row in zip(joint.sensitive.names, joint.counts, strict=True):
        assert [Fraction(c, joint.total) for c in row] == [
            exact[s, x] / total for x in joint.useful.names
        ]


def test_wide_counts_keep_the_order_of_the_file(write):
    joint = read_joint(write("rel,z,a,?\nwife,1,2,3\nchild,4,0,6\n"), contingency=True)
    assert joint.sensitive.columns == ("rel",)
    assert joint.useful.columns == ("useful",)
    assert joint.sensitive.names == ("wife", "child")
    assert joint.useful.names == ("z", "a", "?")
    assert joint.counts == ((1, 2, 3), (4, 0, 6))
    assert joint.records == 16


def test_names_of_a_wide_table(write):
    path = write(",u,v\na,1,2\nb,3,4\n")
    assert read_joint(path, contingency=True).sensitive.columns == ("sensitive",)
    named = read_joint(path, contingency=True, sensitive="rel", useful=["job"])
    assert (named.sensitive.columns, named.useful.columns) == (("rel",), ("job",))
    assert read_joint(
        write("u,u,v\na,1,2\nb,3,4\n"), contingency=True
    ).sensitive.columns == ("u",)


def test_an_empty_label_of_a_wide_table_can_be_a_symbol(write):
    joint = read_joint(write("s,,v\na,1,2\n,3,4\n"), contingency=True, missing="symbol")
    assert joint.useful.names == ("", "v")
    assert joint.sensitive.names == ("a", "")


@pytest.mark.parametrize("missing", ["marginal", "output:v"])
def test_a_wide_table_says_what_is_released_for_an_empty_cell(write, missing):
    """As a table of records does: `apply` has nowhere else to know it from."""
    path = write("s,u,v\na,1,2\nb,3,4\n")
    joint = read_joint(path, contingency=True, missing=missing, bins=None)
    assert joint.rules.missing == missing
    assert joint.rules.counted == "refuse"
    # Nothing is left out of counts, and empty cells are refused later as by default.
    dropped = read_joint(path, contingency=True, missing="drop")
    assert dropped.rules == read_joint(path, contingency=True).rules
    with pytest.raises(InputError, match=r"missing \('often'\) must be refuse"):
        read_joint(path, contingency=True, missing="often")


def test_wide_probabilities_are_exact_decimals(write):
    joint = read_joint(write("s,u,v\na,0.1,0.2\nb,0.3,4e-1\n"), probabilities=True)
    assert joint.counts == ((1, 2), (3, 4))
    assert not joint.is_counts


def test_wide_counts_drop_what_has_no_mass(write):
    joint = read_joint(write("s,u,v,w\na,1,0,2\nb,0,0,0\n"), contingency=True)
    assert joint.useful.names == ("u", "w")
    assert len(joint.notices) == 2


MICRO = pa.table(
    {
        "s": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        "x": pa.array([1, 2, 2, 1], pa.int8()),
        "w": pa.array([1.5, 2.0, 0.1, 0.4]),
        "other": pa.array([[1], [], None, [2]]),
    }
)


@pytest.mark.parametrize("name", ["t.parquet", "t", "t.csv"])
def test_parquet_microdata_whatever_the_name(tmp_path, name):
    pq.write_table(MICRO, tmp_path / name)
    joint = read_joint(tmp_path / name, sensitive="s", useful="x")
    assert joint.useful.names == ("1", "2")
    assert joint.counts == ((1, 1), (1, 1))
    weighted = read_joint(tmp_path / name, sensitive="s", useful="x", weight="w")
    assert weighted.counts == ((15, 1), (4, 20))


def test_parquet_in_batches_is_parquet_at_once(tmp_path, monkeypatch):
    frame = pd.DataFrame({"s": [*"abcab"] * 20, "x": [1.0, 2.0, None, 1.0, 3.0] * 20})
    pq.write_table(
        pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=30
    )
    whole = read_joint(
        tmp_path / "t.parquet", sensitive="s", useful="x", missing="drop"
    )
    monkeypatch.setattr(parquet, "ROWS_PER_BATCH", 7)
    assert (
        read_joint(tmp_path / "t.parquet", sensitive="s", useful="x", missing="drop")
        == whole
    )
    assert whole == Joint.from_table(frame, sensitive="s", useful="x", missing="drop")
    assert whole.useful.names == ("1", "2", "3")


def test_wide_parquet(tmp_path):
    pq.write_table(
        pa.table({"s": ["a", "b"], "u": [1, 2], "v": [3, 4]}), tmp_path / "t.parquet"
    )
    joint = read_joint(tmp_path / "t.parquet", contingency=True, useful="x")
    assert joint == Joint.from_counts(
        [[1, 3], [2, 4]],
        sensitive_labels=["a", "b"],
        useful_labels=["u", "v"],
        sensitive="s",
        useful="x",
    )
    pq.write_table(
        pa.table({"s": ["a", "b"], "u": [0.1, 0.2], "v": [0.3, 0.4]}),
        tmp_path / "p.parquet",
    )
    assert read_joint(tmp_path / "p.parquet", probabilities=True).counts == (
        (1, 3),
        (2, 4),
    )


def test_csv_and_frame_agree(write):
    frame = pd.DataFrame({"s": [*"abcab"], "x": [1, 2, 2, 1, 3]})
    path = write(frame.to_csv(index=False))
    assert read_joint(path, sensitive="s", useful="x") == Joint.from_table(
        frame, sensitive="s", useful="x"
    )


@pytest.mark.parametrize("relationships", [5, 6])
def test_the_adult_count_tables(data, relationships):
    joint = read_joint(
        data / "adult" / f"relationship{relationships}_by_occupation15.csv",
        contingency=True,
    )
    assert joint.records == {5: 31580, 6: 32561}[relationships]
    assert (len(joint.sensitive), len(joint.useful)) == (relationships, 15)


def test_adult_microdata_give_the_published_count_table(data, write):
    header = "age,class,n,education,years,marital,occupation,relationship,race,sex,gain,loss,hours,country,income\n"
    body = (data / "adult" / "adult.data").read_text().replace(", ", ",")
    joint = read_joint(
        write(header + body), sensitive="relationship", useful="occupation"
    )
    wide = read_joint(
        data / "adult" / "relationship6_by_occupation15.csv",
        contingency=True,
        useful="occupation",
    )
    assert joint == wide


def test_a_survey_with_quoted_headers_and_gaps(data):
    path = data / "young-people" / "responses.csv"
    joint = read_joint(path, sensitive="Gender", useful="Hiphop, Rap", missing="drop")
    assert joint.useful.names == ("1", "2", "3", "4", "5")
    assert joint.sensitive.names == ("female", "male")
    assert joint.notices == (
        f"dropped {1010 - joint.records} of 1010 record(s) with an empty cell",
    )
