"""`assess`: figures against plain counting, refusals, and what the command prints."""

from __future__ import annotations

import json
import math
from collections import Counter
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.leaks import assessment, learners
from mechdesign.leaks.assessment import assess, every_symbol_sampled

pytestmark = pytest.mark.usefixtures("small_by_products")

ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from("st")),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({row[2] for row in rows}) > 1)


def plain_disclosure(values, secrets):
    """Lifts, pinned share, guessed share and information by loops over records."""
    total = len(values)
    cells = Counter(zip(values, secrets, strict=True))
    sizes = Counter(values)
    masses = Counter(secrets)
    lifts = [
        cells[v, s] * total / (sizes[v] * masses[s])
        for v in sizes
        if sizes[v] > 1
        for s in masses
    ]
    pinned = right = 0
    score = 0.0
    for v, s in zip(values, secrets, strict=True):
        others = {t: cells[v, t] - (t == s) for t in masses}
        pinned += sizes[v] > 1 and cells[v, s] == sizes[v]
        right += all(others[s] > others[t] for t in masses if t != s)
        prior = (masses[s] - 1 + 1 / len(masses)) / total
        score -= math.log((others[s] + prior) / sizes[v]) / total
    entropy = -sum(n / total * math.log(n / total) for n in masses.values())
    return lifts, pinned / total, right / total, max(0.0, 1 - score / entropy)


@given(ROWS)
def test_figures_are_those_of_plain_counting(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "s"])
    with pytest.MonkeyPatch.context() as patch:
        # Boosting takes long, and its guess is not compared here.
        patch.setattr(learners, "find_spec", lambda name: None)
        assessment = assess(frame, sensitive="s")
    by_name = {column.name: column.disclosure for column in assessment.columns}
    together = [f"{a}{b}" for a, b, _ in rows]
    measured = {
        "a": (by_name["a"], frame.a.tolist()),
        "b": (by_name["b"], frame.b.tolist()),
        "row": (assessment.row, together),
        "pair": (assessment.pairs[0], together),
    }
    for disclosure, values in measured.values():
        lifts, pinned, right, information = plain_disclosure(values, frame.s.tolist())
        assert disclosure.values == len(set(values))
        assert disclosure.pinned == pytest.approx(pinned)
        assert disclosure.guessed == pytest.approx(right)
        assert disclosure.information == pytest.approx(information)
        if lifts:
            assert disclosure.largest_lift == pytest.approx(max(lifts))
            assert disclosure.smallest_lift == pytest.approx(min(lifts))
        else:
            assert disclosure.largest_lift is None
            assert disclosure.smallest_lift is None
    once = sum(n == 1 for n in Counter(together).values())
    assert assessment.unique_rows == pytest.approx(once / len(rows))


def people(records=600):
    chance = np.random.default_rng(4)
    secret = chance.choice(["ill", "well"], records, p=[0.3, 0.7])
    symptom = np.where(chance.random(records) < 0.8, secret, chance.permutation(secret))
    return pd.DataFrame(
        {
            "id": np.arange(records),
            "coin": chance.choice(["h", "t"], records),
            "symptom": symptom,
            "health": secret,
        }
    )


def test_a_telling_column_comes_first_and_an_identifier_is_left_out_of_rows():
    assessment = md.assess(people(), sensitive="health")
    assert assessment.columns[0].name == "symptom"
    assert [c.name for c in assessment.columns if c.identifier] == ["id"]
    assert set(assessment.row.columns) == {"symptom", "coin"}
    assert assessment.guess.model == "gradient boosting"
    assert assessment.guess.right > assessment.guess.right_without + 0.1
    assert assessment.guess.auc > 0.8


def test_without_scikit_learn_the_guess_is_naive_bayes(monkeypatch):
    monkeypatch.setattr(learners, "find_spec", lambda name: None)
    assessment = assess(people(), sensitive="health")
    assert assessment.guess.model == "naive Bayes"
    assert assessment.guess.right > assessment.guess.right_without + 0.1


def test_a_column_of_chance_is_not_guessed_better_than_without():
    chance = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"coin": chance.choice(["h", "t"], 2000), "s": chance.choice(["y", "n"], 2000)}
    )
    assessment = assess(frame, sensitive="s")
    assert assessment.columns[0].disclosure.information < 0.01
    assert abs(assessment.guess.auc - 0.5) < 0.05


def test_every_kind_of_table_gives_the_same(tmp_path):
    frame = people()
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    frame.to_parquet(tmp_path / "people.parquet", index=False)
    kinds = [
        path,
        str(tmp_path / "people.parquet"),
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame, preserve_index=False),
    ]
    expected = assess(frame, sensitive="health")
    for kind in kinds:
        assert assess(kind, sensitive="health") == expected


def test_rare_symbols_and_columns_of_lists_are_named():
    frame = people(100)
    frame.loc[:2, "health"] = "unknown"
    frame["list"] = [[1]] * 100
    assessment = assess(frame, sensitive="health")
    assert assessment.rare_secrets == ("unknown",)
    assert assessment.unreadable == ("list",)
    assert "unknown" in assessment.summary()
    assert "list" in assessment.summary()


def test_names_that_are_listed_are_escaped_once():
    frame = people(100).rename(columns={"id": "id "})
    frame.loc[:2, "health"] = "rare\u200b"
    frame["list\u200b"] = [[1]] * 100
    summary = assess(frame, sensitive="health").summary()
    for name in ("id\\x20", "rare\\u200b", "list\\u200b"):
        assert f": '{name}'." in summary


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive": "helth"}, "there is no column 'helth'; did you mean 'health'"),
        ({"sensitive": []}, "name at least one column to protect"),
        ({"sensitive": ["health", "health"]}, "'health' is named twice"),
        (
            {"sensitive": "health", "columns": ["health"]},
            "'health' is sensitive; leave it out",
        ),
        ({"sensitive": "health", "columns": []}, "no column beside the sensitive one"),
        ({"sensitive": "one"}, "'one' has a single symbol"),
        ({"sensitive": "list"}, "holds lists, structures or bytes"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    frame = people(40)
    frame["one"] = "x"
    frame["list"] = [[1]] * 40
    with pytest.raises(InputError, match=message):
        assess(frame, **arguments)


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="the table has no records"):
        assess(people(40).head(0), sensitive="health")


def test_the_command_prints_text_json_and_reports(tmp_path, monkeypatch, capsys):
    from mechdesign.cli import main

    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    arguments = ["assess", "people.csv", "--sensitive", "health"]
    assert main([*arguments, "--report", "page.html"]) == 0
    text = capsys.readouterr().out
    assert "All 2 columns together guess health right for" in text
    assert text.index("symptom") < text.index("coin")
    page = (tmp_path / "page.html").read_text()
    assert "What the table says about the sensitive column" in page
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["format"] == "mechdesign.assessment"
    assert record["columns"][0]["disclosure"]["columns"] == ["symptom"]
    assert main(["assess", "people.csv"]) == 2
    assert "--sensitive COL is missing" in capsys.readouterr().err


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 9))
def test_a_sample_has_every_symbol_in_its_proportion(codes, step):
    """Of a symbol with n records it has n / step, rounded upwards."""
    codes = np.array(codes)
    sample = every_symbol_sampled(codes, step)
    with mock.patch.object(assessment, "SORTED_TOGETHER", 7):
        assert every_symbol_sampled(codes, step).tolist() == sample.tolist()
    assert (np.diff(sample) > 0).all()
    for symbol in set(codes.tolist()):
        there = np.count_nonzero(codes == symbol)
        assert np.count_nonzero(codes[sample] == symbol) == -(-there // step)


def test_pairs_of_a_large_table_keep_a_rare_symbol(monkeypatch):
    """Every other record would leave no record with the symbol at an odd place."""
    monkeypatch.setattr(assessment, "PAIR_RECORDS", 20)
    records = 40
    frame = pd.DataFrame(
        {
            "s": ["yes" if k in (1, 3) else "no" for k in range(records)],
            "a": [str(k % 3) for k in range(records)],
            "b": [str(k // 20) for k in range(records)],
        }
    )
    (pair,) = assess(frame, sensitive="s").pairs
    # The sample has 19 records with no, three of them in the cell (1, 0), and one with yes there.
    assert pair.largest_at == "yes"
    assert pair.largest_lift == pytest.approx(20 / 4)


def test_a_guess_that_finds_nothing_is_said_to():
    chance = np.random.default_rng(1)
    table = pd.DataFrame(
        {name: chance.choice(list("abc"), 400) for name in ("health", "job", "town")}
    )
    text = " ".join(md.assess(table, sensitive="health").summary().split())
    assert "this guess is no better than one without them; another one may be" in text
    telling = table.assign(job=table["health"])
    found = " ".join(md.assess(telling, sensitive="health").summary().split())
    assert "no better" not in found


@pytest.mark.parametrize(
    "asked",
    [
        {"sensitive": "nope"},
        {"sensitive": "s", "columns": "nope"},
        {"sensitive": "s", "person": "nope"},
        {"sensitive": "one"},
    ],
)
def test_errors_name_the_file(tmp_path, asked):
    path = tmp_path / "t.csv"
    path.write_text("s,u,one\na,x,1\nb,x,1\na,y,1\nb,y,1\n")
    with pytest.raises(md.InputError) as error:
        assess(path, **asked)
    assert str(error.value).startswith(f"{path}: ")
