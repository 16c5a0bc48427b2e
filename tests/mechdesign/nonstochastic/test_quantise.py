"""Total budgets, and quantised releases as a stream: what they write is what the plainest program
would.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import quantize_table as quantize_table_module
from mechdesign.nonstochastic.claims import read_verified
from mechdesign.nonstochastic.noiseless import outputs_allowed, share_of
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table

ROWS = "house,day,kwh\n" + "".join(
    f"{h},{d},{h * d / 7!r}\n" for h in range(1, 6) for d in range(1, 5)
)


@given(st.fractions(0, 60, max_denominator=8), st.integers(1, 60))
def test_a_share_is_the_largest_that_keeps_the_total(total, answers):
    """K^T <= floor(2^total) < (K + 1)^T, in integers."""
    share = share_of(total, answers)
    assert share**answers <= outputs_allowed(total) < (share + 1) ** answers


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def options(query="mean", **changes):
    """The options of a release of ROWS by day, or record by record."""
    values = {
        "column": "kwh",
        "epsilon": "2",
        "query": query,
        "group_by": ("day",),
        "range_text": "0,10",
        "individual": "house",
    }
    if query == "identity":
        values["group_by"] = ()
    if query == "count":
        values["range_text"] = None
        values["equals"] = "1.0"
    return QuantizeOptions(**(values | changes))


def plainly(query, quantizers):
    """The rows of ROWS through quantisers by size of group, in exact fractions and one by one."""
    rows = [line.split(",") for line in ROWS.splitlines()[1:]]
    if query == "identity":
        released = [["house", "day", "kwh"]]
        for house, day, kwh in rows:
            cell = cell_of(quantizers[1], Fraction(float(kwh)))
            released.append([house, day, repr(float(quantizers[1].midpoint(cell)))])
        return released
    released = [["day", "records", f"{query}_kwh"]]
    for group in "1234":
        values = [Fraction(float(kwh)) for _, day, kwh in rows if day == group]
        quantizer = quantizers[len(values)]
        answer = sum(values)
        if query == "count":
            answer = values.count(1)
        elif query == "mean":
            answer /= len(values)
        cell = cell_of(quantizer, answer)
        low, high = quantizer.edges[cell : cell + 2]
        if query == "count":
            # The cell's whole numbers; the last cell is closed above.
            inside = []
            for k in range(len(values) + 1):
                if low <= k and (k < high or high == len(values)):
                    inside.append(k)
            low, high = inside[0], inside[-1]
        number = float(Fraction(low + high) / 2)
        released.append([group, str(len(values)), repr(number)])
    return released


def cell_of(quantizer, answer):
    return bisect_right(quantizer.edges[1:-1], answer)


@pytest.mark.parametrize("layout", ["widest", "levels", "uniform"])
@pytest.mark.parametrize("query", ["identity", "mean", "sum", "count"])
def test_the_stream_writes_what_the_plainest_program_would(folder, query, layout):
    records = {}
    if query == "identity":
        records["keep"] = "all"
    release = quantise_table(
        "in.csv", "b.csv", options(query, layout=layout), records=records
    )
    quantizers = {m.individuals: m.quantizer for m in release.mechanism.mechanisms}
    lines = (folder / "b.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",") for line in lines] == plainly(query, quantizers)
    assert release.new_sizes == ()
    assert read_verified("b.csv.mechanism.json").satisfied


def test_counts_have_no_cells_between_whole_numbers(folder):
    """Three bits allow eight outputs, and a record that counts as 0 or 1 has two: a cell for each
    count is enough.
    """
    release = quantise_table("in.csv", "b.csv", options("count", epsilon="3"))
    for sized in release.mechanism.mechanisms:
        assert sized.quantizer.levels <= sized.individuals + 1
        assert sized.certificate.outputs == 2


def test_a_record_behind_dropped_ones_is_named_by_its_own_line(folder):
    (folder / "gaps.csv").write_text(
        "day,house,kwh\n1,a,\n1,b,2\n,c,3\n1,d,99\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="line 5: the value lies outside"):
        quantise_table("gaps.csv", "b.csv", options(missing="drop"))


@pytest.mark.parametrize("query", ["identity", "mean"])
def test_records_that_are_left_out_are_counted_in_a_notice(folder, query):
    """All records of day 3 are, so that it has no answer."""
    (folder / "gaps.csv").write_text(
        "day,house,kwh\n1,a,1\n1,b,2\n,c,3\n1,d,\n2,a,5\n3,a,\n", encoding="utf-8"
    )
    release = quantise_table("gaps.csv", "b.csv", options(query, missing="drop"))
    left_out = {"identity": 2, "mean": 3}[query]
    sentence = f"dropped {left_out} of 6 record(s) with an empty cell"
    assert sentence in release.notices
    assert release.records == 6 - left_out
    with pytest.raises(
        InputError, match=r"line 5: .* where a number is wanted; .*drop"
    ):
        quantise_table("gaps.csv", "d.csv", options(query, missing="symbol"))
    release = quantise_table("in.csv", "c.csv", options(query, missing="drop"))
    assert not any(notice.startswith("dropped") for notice in release.notices)


@pytest.mark.parametrize("query", ["identity", "mean"])
def test_a_total_is_kept_over_all_answers(folder, query):
    """Each house has 4 answers: 7 bits are 128 >= 3^4 outputs, and 4^4 would be too many."""
    release = quantise_table(
        "in.csv", "o.csv", options(query, epsilon="99"), total_epsilon="7"
    )
    verified = read_verified("o.csv.mechanism.json")
    assert release.answers_each == 4
    assert verified.outputs == verified.allowed == 3
    assert release.total_epsilon == pytest.approx(4 * math.log2(3))
    assert release.total_epsilon <= 7
    assert "3^4 in all" in " ".join(release.notices)


def test_totals_that_are_refused(folder):
    with pytest.raises(
        InputError, match="2 bits for 4 answers are less than one bit for each"
    ):
        quantise_table("in.csv", "o.csv", options(), total_epsilon="2")
    with pytest.raises(InputError, match="name the column that identifies individuals"):
        quantise_table("in.csv", "o.csv", options(individual=None), total_epsilon="9")
    with pytest.raises(InputError, match="must be a number of bits"):
        quantise_table("in.csv", "o.csv", options(), total_epsilon="many")
    with pytest.raises(
        InputError, match=r"missing .* must be one of refuse, symbol, drop"
    ):
        quantise_table("in.csv", "o.csv", options(missing="zero"))
    assert not (folder / "o.csv").exists()


def test_group_sizes_do_not_share_thresholds(folder):
    """Many sizes of groups: each has all the outputs of its budget (a group of 600 used 4 of 16)."""
    rows = "day,kwh\n" + "".join(
        f"{n},1\n" * n for n in (1, 5, 200, 600, *range(300, 330))
    )
    (folder / "sizes.csv").write_text(rows, encoding="utf-8")
    release = quantise_table(
        "sizes.csv", "o.csv", options(individual=None, epsilon="4")
    )
    assert {m.certificate.outputs for m in release.mechanism.mechanisms} == {16}
    assert release.mechanism.mechanisms[-1].quantizer.levels == 15 * 600 + 1


def test_an_input_that_changes_after_its_answers_were_counted(tmp_path, monkeypatch):
    """A total budget is divided by that count: more answers than were counted would be more than
    the total.
    """
    path = tmp_path / "in.csv"
    path.write_text("who,day,v\n1,a,2\n2,a,3\n1,b,4\n2,b,1\n")
    by_day = QuantizeOptions(
        column="v",
        epsilon=None,
        query="sum",
        group_by=("day",),
        range_text="0,9",
        individual="who",
    )

    def grown(*given):
        with open(path, "a") as stream:
            stream.write("1,c,2\n")
        return share_of(*given)

    monkeypatch.setattr(quantize_table_module, "share_of", grown)
    with pytest.raises(
        InputError, match="changed while it was read, and nothing was written"
    ):
        quantise_table(path, tmp_path / "out.csv", by_day, total_epsilon=8)
    assert list(tmp_path.iterdir()) == [path]
