"""Mechanism files at work: next month's data through the same cells, and releases checked against
them.
"""

from __future__ import annotations

import gzip
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode
from mechdesign.formats.csv_text import TextOptions
from mechdesign.nonstochastic import reports as words
from mechdesign.nonstochastic.claims import read_verified, verify_file
from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism
from mechdesign.nonstochastic.number_columns import BadCell, numbers_of, truths_of
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from mechdesign.nonstochastic.released_check import check_quantised

ROWS = "house,day,kwh,note\n" + "".join(
    f'{h},{d},{h * d / 3!r},"x, {h}"\n' for h in range(1, 5) for d in (1, 2)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def record_options(query):
    """All columns of single records; answers for groups have no such options."""
    if query == "identity":
        return {"keep": "all"}
    return {}


def quantise(query, source="in.csv", **changes):
    """Write a mechanism of this query, `m.json`, and a release through it, `out.csv`."""
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
        values |= {"range_text": None, "equals": "1.0"}
    quantise_table(
        source,
        "out.csv",
        QuantizeOptions(**(values | changes)),
        mechanism_path="m.json",
        force=True,
        records=record_options(query),
    )


@pytest.mark.parametrize("query", ["identity", "mean", "sum", "count"])
def test_the_same_data_give_the_same_bytes(folder, query):
    quantise(query)
    equals = "1.0" if query == "count" else None
    release = apply_mechanism(
        "m.json",
        "in.csv",
        "again.csv",
        individual="house",
        equals=equals,
        records=record_options(query),
    )
    assert (folder / "again.csv").read_bytes() == (folder / "out.csv").read_bytes()
    beside = read_verified("again.csv.mechanism.json")
    assert release.answers_each == beside.answers_each == 2
    bits = 2 * beside.mechanism.mechanisms[0].certificate.epsilon
    assert release.total_epsilon == beside.total_epsilon == bits
    checked = check_quantised("m.json", "again.csv", data="in.csv", equals=equals)
    assert checked.satisfied


def test_next_month_has_other_groups(folder):
    quantise("mean")
    rows = "day,kwh\n" + "".join(f"{d},{v}\n" for d in range(3) for v in range(d + 2))
    (folder / "next.csv").write_text(rows, encoding="utf-8")
    release = apply_mechanism("m.json", "next.csv", "o.csv")
    assert release.new_sizes == (2, 3)
    assert "no thresholds for groups of 2, 3" in " ".join(release.notices)
    mechanism = read_verified("o.csv.mechanism.json").mechanism
    assert [m.individuals for m in mechanism.mechanisms] == [2, 3, 4]
    assert mechanism.provenance["answers"] == 3
    assert check_quantised("o.csv.mechanism.json", "o.csv", data="next.csv").satisfied
    assert not check_quantised("m.json", "o.csv").satisfied


def test_any_text_file_and_parquet_in_and_out(folder):
    quantise("identity")
    (folder / "in.tsv.gz").write_bytes(
        gzip.compress(ROWS.replace(",", "\t").encode("latin-1"))
    )
    text = TextOptions(delimiter="\t", encoding="latin-1")
    apply_mechanism(
        "m.json", "in.tsv.gz", "o.tsv", text=text, records=record_options("identity")
    )
    out = (folder / "out.csv").read_text(encoding="utf-8").splitlines()
    shown = (folder / "o.tsv").read_text(encoding="latin-1").splitlines()
    released = [line.split("\t")[2] for line in shown]
    assert [line.split(",")[2] for line in out] == released
    table = pa.table({"kwh": [1.0, 9.5, 0.0], "day": ["a", "a", "b"]})
    pq.write_table(table, "in.parquet")
    apply_mechanism("m.json", "in.parquet", "o.parquet")
    assert pq.read_table("o.parquet").column("kwh").to_pylist() == [1.25, 8.75, 1.25]
    quantise("mean")
    apply_mechanism("m.json", "in.parquet", "g.parquet")
    assert pq.read_table("g.parquet").column_names == ["day", "records", "mean_kwh"]
    with pytest.raises(
        InputError, match="output is a Parquet file, as the input is read"
    ):
        apply_mechanism("m.json", "in.parquet", "g.csv")


def test_clipping_is_counted_and_refusals_tell_no_value(folder):
    quantise("identity")
    (folder / "far.csv").write_text("kwh\n3\n777.25\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="line 3: the value lies outside the range 0 to 10"
    ) as refusal:
        apply_mechanism("m.json", "far.csv", "o.csv")
    assert "777" not in str(refusal.value)
    assert not (folder / "o.csv").exists()
    release = apply_mechanism("m.json", "far.csv", "o.csv", outside="clip")
    assert release.outside == 1
    assert release.worst_error == 777.25 - 8.75
    with pytest.raises(InputError, match=r"outside .* must be one of refuse, clip"):
        apply_mechanism("m.json", "far.csv", "p.csv", outside="wrap")


@pytest.mark.parametrize(
    ("rows", "query", "message"),
    [
        (
            "kwh\n1\nx y\n",
            "identity",
            "line 3: the column 'kwh' holds no finite number there",
        ),
        ("kwh,a\n1,2\n,2\n", "identity", "line 3: the column 'kwh' is empty there"),
        ("kwh\nnan\n", "identity", "holds no finite number"),
        ("kwh\n1e999\n", "identity", "holds no finite number"),
        ("watt\n1\n", "identity", "column 'kwh'"),
        ("kwh,day\n1,1\n", "mean", "one record"),
        ("house,kwh,day\n1,1,1\n1,2,1\n", "mean", "several records in one group"),
        ("house,kwh,day\n", "mean", "no records"),
    ],
)
def test_data_that_are_refused(folder, rows, query, message):
    quantise(query)
    (folder / "bad.csv").write_text(rows, encoding="utf-8")
    if message == "one record":
        assert apply_mechanism("m.json", "bad.csv", "o.csv").new_sizes == (1,)
        return
    individual = "house" if rows.startswith("house") else None
    with pytest.raises(InputError, match=message):
        apply_mechanism("m.json", "bad.csv", "o.csv", individual=individual)
    assert not (folder / "o.csv").exists()


def test_a_count_needs_zeros_and_ones_or_a_value(folder):
    quantise("count")
    with pytest.raises(
        InputError,
        match=r"neither 0 nor 1 there; to count records with some value, name it \(equals",
    ):
        apply_mechanism("m.json", "in.csv", "o.csv")
    quantise("mean")
    with pytest.raises(
        InputError, match="is for a mechanism that counts, not for the mean"
    ):
        apply_mechanism("m.json", "in.csv", "o.csv", equals="1")


def test_forged_releases_are_found(folder):
    quantise("mean")
    lines = (folder / "out.csv").read_text(encoding="utf-8").splitlines()
    for forged, fault in [
        ([*lines, lines[1]], "second answer for its group"),
        ([*lines, "9,4,1.2345"], "not what any cell gives"),
        ([*lines, "9,5,1.25"], "group of a size for which there are no thresholds"),
        ([*lines, "9,x,1.25"], "group of a size"),
    ]:
        (folder / "f.csv").write_text("\n".join(forged) + "\n", encoding="utf-8")
        found = check_quantised("m.json", "f.csv")
        assert not found.satisfied
        assert fault in " ".join(found.wrong)
        assert "CANNOT be" in words.text_of("check", found, "f.csv")
    other = "house,day,kwh,note\n1,1,9,x\n2,1,9,x\n3,1,9,x\n4,1,9,x\n"
    (folder / "other.csv").write_text(other, encoding="utf-8")
    assert check_quantised("m.json", "out.csv", data="other.csv").same is False


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), numbers),
        min_size=1,
        max_size=40,
    )
)
def test_group_sums_are_exact(rows):
    """sum of doubles by group == sum of their fractions, whatever their exponents and in whatever
    batches.
    """
    groups, exact = Groups(), {}
    for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        if part:
            one, two, values = zip(*part, strict=True)
            groups.add(
                [encode(pa.array(key), "key") for key in (one, two)], np.array(values)
            )
    for one, two, value in rows:
        exact[one, two] = exact.get((one, two), 0) + Fraction(value)
    many, unit = groups.totals()
    assert (
        dict(zip(groups.keys, (total * unit for total in many), strict=True)) == exact
    )
    assert sum(groups.sizes) == len(rows)


def each(found):
    """The number of each record."""
    return found.values[found.codes].tolist()


@given(st.lists(numbers, min_size=1))
def test_texts_of_numbers_are_their_doubles(values):
    """What Python writes for a double is read back as this double."""
    column = pa.array([f" {v!r}\t" for v in values])
    assert each(numbers_of(encode(column, "v"), "v")) == values


def test_notations_and_types_of_numbers():
    texts = ["1", "5.", ".5", "+3", "1e3", "-0.25"]
    assert each(numbers_of(encode(texts, "v"), "v")) == [1, 5, 0.5, 3, 1000, -0.25]
    coded = encode(pa.array(texts).dictionary_encode(), "v")
    assert each(numbers_of(coded, "v")) == [1, 5, 0.5, 3, 1000, -0.25]
    assert each(numbers_of(pa.array([1, 2], pa.int32()), "v")) == [1, 2]
    for column in (
        pa.array([1.0, None]),
        pa.array([float("nan")]),
        encode(["1_0"], "v"),
        encode(["0x1"], "v"),
    ):
        with pytest.raises(BadCell, match="the column 'v'"):
            numbers_of(column, "v")
    assert each(truths_of(encode(["1", "false", "True"], "v"), "v", None)) == [1, 0, 1]
    assert each(truths_of(encode(["a", None, "b"], "v"), "v", "a")) == [1, 0, 0]


def test_many_group_columns_and_many_people():
    rng = random.Random(5)
    rows = [tuple(rng.randrange(30) for _ in range(4)) for _ in range(500)]
    groups = Groups()
    people = encode([str(k) for k in range(500)], "person")
    groups.add(
        [encode([str(r[k]) for r in rows], "key") for k in range(4)],
        np.ones(500),
        people,
    )
    assert len(groups.keys) == len(set(rows))
    assert groups.keys == [tuple(map(str, key)) for key in dict.fromkeys(rows)]
    assert groups.most_answers() == 1


@pytest.mark.parametrize("query", ["identity", "mean", "count"])
def test_words_and_records(folder, query):
    quantise(query)
    found = verify_file("m.json")
    assert "keeps what its file says" in words.text_of("audit", found)
    assert words.verdict_record(found)["satisfied"] is True
    assert f"{found.mechanism.mechanisms[0].quantizer.levels} level" in words.text_of(
        "show", found
    )
    rows = words.cells_csv(found).splitlines()
    assert len(rows) == 1 + sum(m.quantizer.levels for m in found.mechanism.mechanisms)
    assert words.budget_rows(found)[0]["outputs"] == found.outputs
    assert "worst error" in words.text_of("budget", found, words.budget_rows(found))
    release = apply_mechanism(
        "m.json",
        "in.csv",
        "o.csv",
        individual="house",
        equals="1.0" if query == "count" else None,
    )
    assert "For you alone" in words.text_of("apply", release, "o.csv")
    assert (
        words.applied_record(release, "o.csv")["guarantee"]["outputs"] == found.outputs
    )
