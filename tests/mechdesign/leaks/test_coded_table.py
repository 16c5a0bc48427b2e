"""Columns that name records are kept as hashes, and equal rows as one with a weight: nothing that
is said of them changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks, distinct
from mechdesign.formats.cells import CellForm
from mechdesign.leaks import coded_table as module
from mechdesign.leaks import disclosure, learners
from mechdesign.leaks.assessment import assess
from mechdesign.leaks.coded_table import HashedValues, coded_table
from tests.cases.growth import assert_bounded, assert_linear, cost_of, peak_of
from tests.profiles import slow


def written(path, identifiers):
    rng = np.random.default_rng(2)
    size = len(identifiers)
    frame = pd.DataFrame(
        {
            "id": identifiers,
            "job": rng.choice([*"abc"], size),
            "town": rng.integers(0, 400, size),
            "ill": rng.choice(["yes", "no"], size),
        }
    )
    frame.to_csv(path, index=False)
    return frame


def sort_in_parts(monkeypatch, limit):
    for where in (distinct, disclosure):
        monkeypatch.setattr(where, "SORTED_TOGETHER", limit)
        monkeypatch.setattr(where, "DENSE_LIMIT", limit)


def whole(frame, **options):
    """The assessment of a frame of which all records and texts are held, one by one."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MOST_TEXTS", "FOLDED_FROM", "MOST_CELLS", "MOST_HASHES"):
            patch.setattr(module, limit, 1 << 60)
        return assess(frame, **options)


@pytest.fixture
def small(monkeypatch):
    """Small batches and limits, so that a few records do what millions would."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 10)
    monkeypatch.setattr(module, "MOST_TEXTS", 50)
    monkeypatch.setattr(learners, "find_spec", lambda name: None)


@pytest.mark.parametrize("missing", ["symbol", "drop"])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_hashes_change_no_figure(tmp_path, small, missing, gap, kind):
    """Against the same table with all of its texts."""
    names = [f"name {k}" for k in range(2000)]
    if gap:
        names[7] = names[1500] = None
    frame = written(tmp_path / "in.csv", names)
    if kind == "parquet":
        frame.to_parquet(tmp_path / "in.parquet")
    path = tmp_path / f"in.{kind}"
    coded = coded_table(path, hashing=True)
    assert isinstance(coded.columns["id"].values, HashedValues)
    assert ("" in coded.columns["id"].values) == gap
    assert not isinstance(coded.columns["town"].values, HashedValues)
    ours = assess(path, sensitive="ill", missing=missing)
    assert vars(ours) == vars(whole(frame, sensitive="ill", missing=missing))
    assert next(c for c in ours.columns if c.name == "id").identifier
    if gap:
        with pytest.raises(InputError, match=r"'id' has an empty cell, in record 8"):
            assess(path, sensitive="ill", missing="refuse")


def test_a_column_that_names_records_at_first_alone_is_read_again(tmp_path, small):
    frame = written(tmp_path / "in.csv", [*range(1500)] * 2)
    coded = coded_table(tmp_path / "in.csv", hashing=True)
    assert list(coded.columns["id"].values) == list(map(str, range(1500)))
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    assert vars(ours) == vars(whole(frame, sensitive="ill"))


def test_a_sensitive_column_that_names_records_is_refused(tmp_path, small):
    written(tmp_path / "in.csv", [f"name {k}" for k in range(2000)])
    with pytest.raises(InputError, match="nearly every record has a value of its own"):
        assess(tmp_path / "in.csv", sensitive="id")


def test_texts_of_hashes_are_not_made_up():
    values = HashedValues(3)
    with pytest.raises(LookupError, match="are not kept"):
        _ = values[0]
    with pytest.raises(ValueError, match="only the empty text"):
        values.index("")


def test_parts_change_no_figure(tmp_path, small, monkeypatch):
    """Tables too large to be sorted at once are counted in parts of their values."""
    frame = written(tmp_path / "in.csv", [f"name {k}" for k in range(2000)])
    all_of_it = whole(frame, sensitive="ill")
    sort_in_parts(monkeypatch, 100)
    parts = assess(tmp_path / "in.csv", sensitive="ill")
    for ours, theirs in zip(
        [*parts.columns, *parts.pairs, parts.row],
        [*all_of_it.columns, *all_of_it.pairs, all_of_it.row],
        strict=True,
    ):
        ours = vars(getattr(ours, "disclosure", ours)) | {}
        theirs = vars(getattr(theirs, "disclosure", theirs)) | {}
        # The sum of logarithms is rounded in another order.
        assert ours.pop("information") == pytest.approx(theirs.pop("information"))
        assert ours == theirs
    assert parts.unique_rows == all_of_it.unique_rows


def test_an_assessment_costs_what_its_records_cost(tmp_path, monkeypatch):
    """Identifiers in the order of their hashes, and a column of many numbers, among them."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    monkeypatch.setattr(module, "MOST_TEXTS", 1_000)
    sort_in_parts(monkeypatch, 1_000)
    # The model learns from as many records whatever the file has, if it has enough.
    monkeypatch.setattr(learners, "MOST_RECORDS", 500)
    monkeypatch.setattr(learners, "find_spec", lambda name: None)
    costs = []
    for size in (10_000, 20_000, 40_000):
        written(tmp_path / "in.csv", [f"name {k}" for k in range(size)])
        costs.append(cost_of(lambda: assess(tmp_path / "in.csv", sensitive="ill")))
    assert_linear([cost.calls for cost in costs])
    assert_linear([cost.elements for cost in costs])
    assert_linear([cost.peak for cost in costs])
    # Eight bytes of hash and a few bytes of codes for each record, and arrays of some of them.
    added = (costs[2].peak - costs[1].peak) / 20_000
    assert added < 100, costs


# ------------------------------------------------------------------- rows with weights

CELLS = st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", ""]))


@pytest.fixture
def few(monkeypatch):
    """Batches of some ten records, which are folded as soon as there are twenty."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 7)
    monkeypatch.setattr(module, "FOLDED_FROM", 20)
    monkeypatch.setattr(learners, "find_spec", lambda name: None)


def but_for_the_guess(assessment):
    """The figures that rest on every record."""
    figures = dict(vars(assessment))
    guess = figures.pop("guess")
    return figures, guess.records, guess.right_without


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(CELLS, min_size=5, max_size=12),
    st.lists(st.integers(0, 11), min_size=60, max_size=150),
    st.booleans(),
)
def test_weighted_figures_are_those_of_the_records(
    tmp_path, few, rows, chosen, of_people
):
    """Against the same table as a frame, of which every record is held."""
    records = [
        (*rows[k % len(rows)], "no" if k % len(rows) % 3 else "yes") for k in chosen
    ]
    frame = pd.DataFrame(records, columns=["job", "town", "ill"])
    # Both symbols of the secret, whatever was drawn.
    frame.loc[0, "ill"] = "no"
    frame.loc[1, "ill"] = "yes"
    if of_people:
        frame["person"] = [f"p{k % len(rows)}" for k in chosen]
    frame.to_csv(tmp_path / "in.csv", index=False)
    coded = coded_table(tmp_path / "in.csv", folding=True)
    expected = Counter(frame.itertuples(index=False, name=None))
    assert coded.rows == len(expected)
    texts = [
        [column.values[code] for code in column.codes]
        for column in coded.columns.values()
    ]
    weights = dict(zip(zip(*texts, strict=True), coded.weights.tolist(), strict=True))
    assert weights == expected
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    assert but_for_the_guess(ours) == but_for_the_guess(whole(frame, sensitive="ill"))


@pytest.mark.parametrize("missing", ["symbol", "drop"])
def test_folded_people_are_found(tmp_path, few, missing):
    """Their records are compared one by one, as those of a table that is not folded."""
    person = np.repeat(np.arange(300), 4)
    secret = np.where(person % 3 == 0, "yes", "no")
    job = np.where(np.arange(1200) % 8 < 4, "cook", secret)
    frame = pd.DataFrame({"id": person, "job": job, "ill": secret})
    frame.to_csv(tmp_path / "in.csv", index=False)
    assert coded_table(tmp_path / "in.csv", folding=True).rows == 300
    ours = assess(tmp_path / "in.csv", sensitive="ill", missing=missing)
    assert [symptom.kind for symptom in ours.symptoms] == ["people"]
    all_of_it = whole(frame, sensitive="ill", missing=missing)
    assert but_for_the_guess(ours) == but_for_the_guess(all_of_it)


def test_a_table_of_different_rows_is_not_folded(tmp_path, few):
    frame = written(tmp_path / "in.csv", [k // 2 for k in range(500)])
    assert coded_table(tmp_path / "in.csv", folding=True).weights is None
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    assert vars(ours) == vars(whole(frame, sensitive="ill"))


def coarse(path, size, order=None):
    """Many records of few rows, and a number for each; in an order, if one is given."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "id": [f"name {k}" for k in range(size)],
            "job": rng.choice([*"abc"], size),
            "age": rng.integers(20, 60, size),
            "ill": rng.choice(["yes", "no"], size),
        }
    )
    if order is not None:
        frame = frame.iloc[order]
    frame.to_csv(path, index=False)
    return frame


@pytest.fixture
def sampled(monkeypatch, small):
    monkeypatch.setattr(module, "FOLDED_FROM", 1_000)
    monkeypatch.setattr(module, "MOST_HASHES", 900)


def test_an_identifier_of_very_many_records_is_sampled(tmp_path, sampled):
    frame = coarse(tmp_path / "in.csv", 5_000)
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    all_of_it = whole(frame, sensitive="ill")
    texts = [symptom.text for symptom in ours.symptoms if symptom.kind == "sample"]
    assert texts == [
        "'id' has too many values to hold: what is said of it rests on the records of one in 8 of "
        "them, and its numbers of values are estimates"
    ]
    assert "one in 8 of" in ours.summary()
    # The others are counted as they are; all values of the sample differ, too.
    assert ours.columns[:-1] == all_of_it.columns[:-1]
    of_sample, of_all = ours.columns[-1], all_of_it.columns[-1]
    assert of_sample.identifier
    # A share of one eighth of 5,000 values deviates by 4 % of it.
    values = of_sample.disclosure.values
    assert values == pytest.approx(5_000, rel=0.15)
    assert values == of_sample.rare_values == of_sample.rare_records
    assert replace(of_sample.disclosure, values=5_000) == of_all.disclosure
    assert (ours.row, ours.pairs) == (all_of_it.row, all_of_it.pairs)
    assert ours.unique_rows == all_of_it.unique_rows


def test_a_sample_does_not_depend_on_the_order(tmp_path, sampled):
    order = np.random.default_rng(1).permutation(5_000)
    held = []
    for chosen in (None, order):
        coarse(tmp_path / "in.csv", 5_000, chosen)
        coded = coded_table(tmp_path / "in.csv", hashing=True, folding=True)
        column = coded.columns["id"]
        assert column.records < 900
        texts = [
            [coded.columns[name].values[code] for code in coded.columns[name].codes]
            for name in ("job", "age", "ill")
        ]
        rows = list(zip(*texts, strict=True))
        held.append((column.one_in, Counter(rows[row] for row in column.rows)))
    assert held[0] == held[1]


@pytest.mark.parametrize("common", ["", "a", "b", "c", "d"])
def test_a_value_of_most_records_is_seen_in_a_sample(
    tmp_path, sampled, monkeypatch, common
):
    """Whether the sample has this value or not, the column is seen not to name records."""
    monkeypatch.setattr(module, "MOST_ONE_IN", 4)
    names = [f"name {k}" for k in range(2_000)] + [common] * 4_000
    frame = coarse(tmp_path / "in.csv", 6_000)
    frame["id"] = names
    frame.to_csv(tmp_path / "in.csv", index=False)
    coded = coded_table(tmp_path / "in.csv", hashing=True, folding=True)
    assert len(coded.columns["id"].values) == 2_001
    assert coded.columns["id"].one_in == 1
    assert coded.columns["id"].counts().sum() == 6_000


@pytest.mark.parametrize("common", ["", "a", "b", "c", "d"])
def test_a_sampled_identifier_may_have_a_common_value(tmp_path, sampled, common):
    """Of 5,000 values 200 are one: whether the sample has it or not, the column names records."""
    frame = coarse(tmp_path / "in.csv", 5_000)
    frame.loc[::25, "id"] = common
    frame.to_csv(tmp_path / "in.csv", index=False)
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    assert "sample" in [symptom.kind for symptom in ours.symptoms]
    assert [column.identifier for column in ours.columns if column.name == "id"] == [
        True
    ]


def test_the_memory_of_a_coarse_table_does_not_grow(tmp_path, sampled, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    monkeypatch.setattr(learners, "MOST_RECORDS", 500)
    peaks = []
    for size in (10_000, 40_000):
        coarse(tmp_path / "in.csv", size)
        peaks.append(peak_of(lambda: assess(tmp_path / "in.csv", sensitive="ill")))
    # Less than a byte a record.
    assert peaks[1] - peaks[0] < 30_000, peaks


@pytest.mark.parametrize("kind", ["pandas", slow("polars"), slow("pyarrow")])
def test_the_memory_beside_a_frame_does_not_grow(tmp_path, sampled, monkeypatch, kind):
    """Beside the frame itself; 150 bytes of each record of nine columns were held."""
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 1_000)
    monkeypatch.setattr(learners, "MOST_RECORDS", 500)
    peaks = []
    for size in (10_000, 40_000):
        frame = coarse(tmp_path / "in.csv", size)
        if kind == "polars":
            frame = pl.from_pandas(frame)
        if kind == "pyarrow":
            frame = pa.Table.from_pandas(frame)
        peaks.append(peak_of(lambda table=frame: assess(table, sensitive="ill")))
    # Five bytes of each further record.
    assert peaks[1] - peaks[0] < 150_000, peaks


@pytest.mark.parametrize("key", ["abc", ("person",)])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_read_as_its_file_is(tmp_path, held, monkeypatch, kind, key):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 700)
    frame = different(tmp_path / "in.csv", 6_000, people="person" in key)
    if kind == "polars":
        frame = pl.from_pandas(frame)
    if kind == "pyarrow":
        frame = pa.Table.from_pandas(frame)
    ours, file = (
        coded_table(source, hashing=True, folding=True, sample_by=lambda _: key)
        for source in (frame, tmp_path / "in.csv")
    )
    assert (ours.read, ours.name) == (6_000, None)
    # Both are halved when they are full, which depends on where their batches end.
    assert ours.one_in >= 4
    assert file.one_in >= 4
    names = [*key, "ill"]
    rows = Counter(texts_of(ours, names))
    others = Counter(texts_of(file, names))
    few, many = sorted([rows, others], key=len)
    assert few == Counter({row: many[row] for row in few})


@pytest.fixture
def held(monkeypatch, small):
    """At most some thousand cells of different rows."""
    monkeypatch.setattr(module, "FOLDED_FROM", 500)
    monkeypatch.setattr(module, "MOST_CELLS", 4_000)
    monkeypatch.setattr(module, "MOST_HASHES", 900)


def different(path, size, *, people=False):
    """Rows of three columns that come twice, far apart, and a number for each record."""
    rng = np.random.default_rng(7)
    half = size // 2
    frame = pd.DataFrame({name: rng.integers(0, 30, half) for name in "abc"})
    frame = pd.concat([frame, frame], ignore_index=True).astype(str)
    frame["ill"] = rng.choice(["yes", "no", "no"], size)
    frame.insert(0, "id", [f"name {k}" for k in range(size)])
    if people:
        frame["person"] = [f"p{k}" for k in np.arange(size) % (size // 4)]
        frame["ill"] = np.where(frame.person.str.endswith(("3", "7")), "yes", "no")
    frame.to_csv(path, index=False)
    return frame


def texts_of(coded, names):
    columns = [coded.columns[name] for name in names]
    texts = [[column.values[code] for code in column.codes] for column in columns]
    return list(zip(*texts, strict=True))


@pytest.mark.parametrize("key", ["abc", ("person",)])
def test_a_sample_has_all_records_of_its_rows(tmp_path, held, key):
    frame = different(tmp_path / "in.csv", 6_000, people="person" in key)
    coded = coded_table(tmp_path / "in.csv", hashing=True, sample_by=lambda header: key)
    assert coded.one_in >= 4
    assert coded.read == 6_000
    assert coded.records == pytest.approx(6_000 / coded.one_in, rel=0.25)
    names = [*"abc", "ill"]
    found = Counter(texts_of(coded, [*key, *names]))
    rows = {row[: len(key)] for row in found}
    whole = frame[[*key, *names]].itertuples(index=False, name=None)
    assert found == Counter(row for row in whole if row[: len(key)] in rows)
    # Nothing else is kept of the texts.
    assert len(coded.columns["a"].values) == len({row[len(key)] for row in found})


@pytest.mark.parametrize("missing", ["symbol", "drop"])
def test_the_figures_of_a_sample_are_near_those_of_the_table(tmp_path, held, missing):
    frame = different(tmp_path / "in.csv", 12_000)
    ours = assess(tmp_path / "in.csv", sensitive="ill", missing=missing)
    all_of_it = whole(frame, sensitive="ill", missing=missing)
    (text,) = [symptom.text for symptom in ours.symptoms if symptom.kind == "sample"]
    assert "of its 12,000 records" in text
    assert f"{ours.records:,} are assessed" in text
    assert "Shares are estimates" in " ".join(ours.summary().split())
    assert ours.shares["yes"] == pytest.approx(all_of_it.shares["yes"], abs=0.06)
    # Rows come twice, and are not alone in the sample either.
    assert ours.unique_rows == pytest.approx(all_of_it.unique_rows, abs=0.02)
    assert ours.row.information == pytest.approx(all_of_it.row.information, abs=0.1)
    named = [column.name for column in ours.columns if column.identifier]
    assert named == ["id"]


def test_people_of_a_sample_have_all_of_their_records(tmp_path, held):
    frame = different(tmp_path / "in.csv", 8_000, people=True)
    options = {"sensitive": "ill", "person": "person", "columns": ["a", "b"]}
    ours = assess(tmp_path / "in.csv", **options)
    all_of_it = whole(frame, **options)
    assert all_of_it.records == 2_000
    assert ours.records < 1_000
    (text,) = [symptom.text for symptom in ours.symptoms if symptom.kind == "sample"]
    assert "people, chosen by hashes" in text
    assert ours.shares["yes"] == pytest.approx(all_of_it.shares["yes"], abs=0.06)
    # Without being told so, they are found by the column that decides.
    found = assess(tmp_path / "in.csv", sensitive="ill", columns=["person", "a"])
    (text,) = [symptom.text for symptom in found.symptoms if symptom.kind == "people"]
    assert "with up to 4 records each" in text


def test_values_that_come_twice_name_no_records_of_a_sample(tmp_path, held):
    """Alone in most samples, and far apart in the file."""
    frame = different(tmp_path / "in.csv", 8_000)
    frame["twice"] = [f"v{k % 4_000}" for k in range(8_000)]
    frame.to_csv(tmp_path / "in.csv", index=False)
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    named = [column.name for column in ours.columns if column.identifier]
    assert named == ["id"]


@pytest.mark.parametrize("where", [3, 5_000])
def test_an_empty_cell_has_the_number_of_its_record(tmp_path, held, where):
    """Though the record may be none of the sample."""
    frame = different(tmp_path / "in.csv", 6_000)
    frame.loc[[where, where + 7], "a"] = None
    frame.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(InputError, match=f"empty cell, in record {where + 1:,};"):
        assess(tmp_path / "in.csv", sensitive="ill", missing="refuse")
    # Another column may have none.
    options = {"sensitive": "ill", "columns": ["b", "c"]}
    refusing = assess(tmp_path / "in.csv", missing="refuse", **options)
    assert "sample" in [symptom.kind for symptom in refusing.symptoms]
    assert vars(refusing) == vars(assess(tmp_path / "in.csv", **options))


def test_an_empty_cell_of_folded_rows_has_the_number_of_its_record(tmp_path, sampled):
    frame = coarse(tmp_path / "in.csv", 5_000)
    frame.loc[4_321, "job"] = None
    frame.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(InputError, match="empty cell, in record 4,322;"):
        assess(tmp_path / "in.csv", sensitive="ill", missing="refuse")
    # A missing code is an empty cell.
    frame.loc[4_321, "job"] = "?"
    frame.to_csv(tmp_path / "in.csv", index=False)
    form = CellForm(missing_codes=("?",))
    with pytest.raises(InputError, match="empty cell, in record 4,322;"):
        assess(tmp_path / "in.csv", sensitive="ill", missing="refuse", form=form)


def test_hashes_of_cells_in_a_form_change_no_figure(tmp_path, small):
    names = [f"name {k}" + " " * (k % 2) for k in range(2000)]
    names[500] = "name 0 "
    names[1500] = "-"
    frame = written(tmp_path / "in.csv", names)
    form = CellForm(trim=True, missing_codes=("-",))
    coded = coded_table(tmp_path / "in.csv", hashing=True, form=form)
    assert isinstance(coded.columns["id"].values, HashedValues)
    assert len(coded.columns["id"].values) == 1999
    assert "" in coded.columns["id"].values
    ours = assess(tmp_path / "in.csv", sensitive="ill", form=form)
    assert vars(ours) == vars(whole(frame, sensitive="ill", form=form))


@pytest.mark.parametrize(
    ("form", "missing"),
    [
        (CellForm(), "refuse"),
        slow(CellForm(trim=True), "symbol"),
        slow(CellForm(), "symbol"),
        slow(CellForm(trim=True), "refuse"),
    ],
)
def test_the_memory_does_not_grow_by_form_or_refusal(
    tmp_path, held, monkeypatch, form, missing
):
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    monkeypatch.setattr(module, "MOST_CELLS", 20_000)
    monkeypatch.setattr(learners, "MOST_RECORDS", 500)
    peaks, sizes = [], (10_000, 30_000)
    options = {"sensitive": "ill", "form": form, "missing": missing}
    for size in sizes:
        different(tmp_path / "in.csv", size)
        peaks.append(peak_of(lambda: assess(tmp_path / "in.csv", **options)))
    assert_bounded(peaks, sizes)


@pytest.mark.parametrize("person", [slow(None), "person"])
def test_the_memory_of_different_rows_does_not_grow(
    tmp_path, held, monkeypatch, person
):
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    monkeypatch.setattr(module, "MOST_CELLS", 20_000)
    monkeypatch.setattr(learners, "MOST_RECORDS", 500)
    costs, sizes = [], (5_000, 10_000, 20_000)
    for size in sizes:
        different(tmp_path / "in.csv", size, people=person is not None)
        costs.append(
            cost_of(lambda: assess(tmp_path / "in.csv", sensitive="ill", person=person))
        )
    assert_bounded([cost.peak for cost in costs], sizes)
    assert_linear([cost.elements for cost in costs])
