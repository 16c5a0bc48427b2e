from __future__ import annotations

import csv
import io
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechdesign.formats import csv_blocks
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.tables.variable import Variable

RELEASED = {"a": "{a, b}", "b": "{a, b}", "c": "c"}

nasty = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from('",\r\n ;\t'),
    max_size=5,
)


def rows_of(data: bytes) -> list[list[str]]:
    return list(
        csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(records=st.lists(st.tuples(nasty, st.sampled_from("abc"), nasty), max_size=12))
def test_order_and_every_other_cell_stay(channel, tmp_path_factory, newline, records):
    folder = tmp_path_factory.mktemp("csv")
    sink = io.StringIO(newline="")
    csv.writer(sink, quoting=csv.QUOTE_ALL, lineterminator=newline).writerows(
        [("id", "job", "note"), *records]
    )
    (folder / "in.csv").write_bytes(sink.getvalue().encode())
    applied = sanitise_file(channel, folder / "in.csv", folder / "out.csv", keep="all")
    written = rows_of((folder / "out.csv").read_bytes())
    assert written == [
        ["id", "job", "note"],
        *([i, RELEASED[x], n] for i, x, n in records),
    ]
    assert applied.records == len(records)
    assert applied.columns == ("job",)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", "\ufeff".encode()])
def test_a_plain_file_changes_in_the_released_cells_only(
    channel, tmp_path, newline, mark
):
    lines = [
        b"id,job, n ,\xc3\xa9",
        b'01,a, x ,"p,q"',
        b"NA,c,,",
        b'nan,b,"say ""no""",?',
    ]
    (tmp_path / "in.csv").write_bytes(mark + newline.join(lines) + newline)
    sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", keep="all")
    expected = (
        mark
        + newline.join(
            [
                lines[0],
                b'01,"{a, b}", x ,"p,q"',
                lines[2],
                b'nan,"{a, b}","say ""no""",?',
            ]
        )
        + newline
    )
    assert (tmp_path / "out.csv").read_bytes() == expected


def test_batches_do_not_show(coin, tmp_path, monkeypatch):
    jobs = random.Random(1).choices("ab", k=1000)
    (tmp_path / "in.csv").write_text(
        "id,job\n" + "".join(f"{i},{job}\n" for i, job in enumerate(jobs))
    )
    sanitise_file(coin, tmp_path / "in.csv", tmp_path / "whole.csv", insecure_seed=1)
    monkeypatch.setattr(csv_blocks, "BLOCK", 50)
    assert (
        sanitise_file(
            coin, tmp_path / "in.csv", tmp_path / "parts.csv", insecure_seed=1
        ).records
        == 1000
    )
    assert (tmp_path / "whole.csv").read_bytes() == (
        tmp_path / "parts.csv"
    ).read_bytes()


def test_every_record_is_drawn_anew_and_never_twice_the_same_by_default(coin, tmp_path):
    (tmp_path / "in.csv").write_text("job\n" + "a\n" * 2000)
    for name in ("first.csv", "second.csv"):
        sanitise_file(coin, tmp_path / "in.csv", tmp_path / name)
    first, second = (
        (tmp_path / name).read_text().split() for name in ("first.csv", "second.csv")
    )
    assert first[0] == second[0] == "job"
    assert 800 < first.count("head") < 1200
    assert first != second


def test_crossed_columns_become_one_in_the_place_of_the_first(crossed, tmp_path):
    (tmp_path / "in.csv").write_text(
        "id,job,x,city,y\n1,a,x1,p,y1\n2,b,x2,p,y2\n3,a,x3,q,y3\n"
    )
    applied = sanitise_file(
        crossed, tmp_path / "in.csv", tmp_path / "out.csv", keep="all"
    )
    assert rows_of((tmp_path / "out.csv").read_bytes()) == [
        ["id", "x", "city,job", "y"],
        ["1", "x1", "p, a", "y1"],
        ["2", "x2", "rest", "y2"],
        ["3", "x3", "rest", "y3"],
    ]
    assert applied.columns == ("city,job",)


def test_three_crossed_columns_in_any_order(crossed, tmp_path):
    three = replace(
        crossed,
        useful=Variable(
            ("b", "c", "a"), (("1", "2", "3"), ("1", "2", "4"), ("1", "5", "3"))
        ),
    )
    (tmp_path / "in.csv").write_text("a,u,b,v,c,w\n3,u1,1,v1,2,w1\n4,u2,1,v2,2,w2\n")
    sanitise_file(three, tmp_path / "in.csv", tmp_path / "out.csv", keep="all")
    assert rows_of((tmp_path / "out.csv").read_bytes()) == [
        ["u", "b,c,a", "v", "w"],
        ["u1", "p, a", "v1", "w1"],
        ["u2", "rest", "v2", "w2"],
    ]


def test_columns_of_another_name(channel, crossed, tmp_path):
    (tmp_path / "in.csv").write_text("work,pet\na,w\n")
    sanitise_file(
        channel,
        tmp_path / "in.csv",
        tmp_path / "out.csv",
        columns={"job": "work"},
        keep="all",
    )
    assert rows_of((tmp_path / "out.csv").read_bytes()) == [
        ["work", "pet"],
        ["{a, b}", "w"],
    ]
    (tmp_path / "two.csv").write_text("j,c\na,p\n")
    sanitise_file(
        crossed,
        tmp_path / "two.csv",
        tmp_path / "out2.csv",
        columns={"job": "j", "city": "c"},
        keep="all",
    )
    assert rows_of((tmp_path / "out2.csv").read_bytes()) == [["c,j"], ["p, a"]]


def test_a_sensitive_column_stays_only_on_demand(channel, tmp_path):
    (tmp_path / "in.csv").write_text("rel,job\nw,a\n")
    sanitise_file(
        channel,
        tmp_path / "in.csv",
        tmp_path / "out.csv",
        keep_sensitive=True,
        keep="all",
    )
    assert rows_of((tmp_path / "out.csv").read_bytes()) == [
        ["rel", "job"],
        ["w", "{a, b}"],
    ]


def test_a_channel_that_hides_its_sensitive_columns_says_so(coin, channel, tmp_path):
    (tmp_path / "in.csv").write_text("job\na\n")
    assert (
        "does not say which columns are sensitive"
        in sanitise_file(coin, tmp_path / "in.csv", tmp_path / "o").notices[0]
    )
    assert sanitise_file(channel, tmp_path / "in.csv", tmp_path / "p").notices == ()


def test_an_empty_cell_can_be_a_symbol(tmp_path, channel):
    knows = replace(channel, useful=Variable(("job",), (("",), ("b",), ("c",))))
    (tmp_path / "in.csv").write_text('job,id\n,1\nc,2\n"",3\n')
    sanitise_file(knows, tmp_path / "in.csv", tmp_path / "out.csv", keep="all")
    assert rows_of((tmp_path / "out.csv").read_bytes())[1:] == [
        ["{a, b}", "1"],
        ["c", "2"],
        ["{a, b}", "3"],
    ]


def test_a_file_without_records_stays_one(channel, tmp_path):
    (tmp_path / "in.csv").write_text("id,job\n")
    assert (
        sanitise_file(
            channel, tmp_path / "in.csv", tmp_path / "out.csv", keep="all"
        ).records
        == 0
    )
    assert (tmp_path / "out.csv").read_text() == "id,job\n"


def test_a_label_that_is_empty_in_a_file_of_one_column(channel, tmp_path):
    (tmp_path / "in.csv").write_text("job\na\nc\n")
    sanitise_file(
        replace(channel, outputs=("c", "")), tmp_path / "in.csv", tmp_path / "out.csv"
    )
    assert rows_of((tmp_path / "out.csv").read_bytes()) == [["job"], [""], ["c"]]


def test_an_existing_file_is_replaced_by_force_alone(channel, tmp_path):
    (tmp_path / "in.csv").write_text("job\na\n")
    (tmp_path / "out.csv").write_text("old")
    sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", force=True)
    assert rows_of((tmp_path / "out.csv").read_bytes()) == [["job"], ["{a, b}"]]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]
