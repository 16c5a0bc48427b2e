"""What a channel file states is computed again from its own table."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.stated import (
    keeps_promise,
    refuse_broken,
    refuse_wrong_figures,
    statement_of,
)
from mechdesign.auditing.unchanged import unchanged_cells
from mechdesign.core.errors import NotPrivate
from mechdesign.tables.joint import Joint
from tests.cases.documents import rewrite
from tests.profiles import scaled

TABLE = Joint.from_counts(
    [[12, 5, 3, 9], [4, 9, 8, 2], [6, 6, 7, 11]],
    useful_labels=["1", "2", "3", "5"],
    useful="age",
    sensitive="group",
)

DESIGNS = {
    "information": {},
    "truth": {"objective": "truth"},
    "distance": {"objective": "distance"},
    "squared": {"objective": "distance", "distance": "squared"},
    "heuristic": {"mechanism": "subset-merging"},
    "averages": {"average": {"mi": 0.02}},
}


def designed(**options):
    return md.design(TABLE, md.ALIP(0.4, 0.3), **options).channel


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("channels")
    for name, options in DESIGNS.items():
        designed(**options).save(folder / f"{name}.json")
    return folder


@pytest.mark.parametrize("name", DESIGNS)
def test_figures_of_a_design_are_right(files, name):
    statement = statement_of(md.load(files / f"{name}.json"))
    assert statement.kept
    assert not statement.disproved
    assert {"eps_l", "eps_u", "eps_ldp", "nmi", "entropy"} <= {*statement.right}
    bounds = {"upper_bound_nmi", "cost_lower_bound"}
    assert {*statement.only_stated} <= bounds


@pytest.mark.parametrize("name", DESIGNS)
def test_every_wrong_figure_is_found(files, tmp_path, name):
    source = files / f"{name}.json"
    for figure in statement_of(md.load(source)).right:

        def forge(document, figure=figure):
            for part in ("achieved", "utility", "certificate"):
                if figure in (document[part] or {}):
                    document[part][figure] += 1e-9

        rewrite(source, forge, tmp_path / "forged.json")
        statement = statement_of(md.load(tmp_path / "forged.json"))
        assert [wrong.name for wrong in statement.wrong] in (
            [figure],
            ["nmi", "gap_nmi"],
        )
        with pytest.raises(NotPrivate, match=f"the file states {figure} "):
            refuse_wrong_figures(statement)


def test_a_bound_that_the_channel_passes_is_wrong(files, tmp_path):
    def forge(document):
        document["certificate"] |= {"upper_bound_nmi": 1e-6, "gap_nmi": 0.0}

    rewrite(files / "information.json", forge, tmp_path / "forged.json")
    statement = statement_of(md.load(tmp_path / "forged.json"))
    assert [wrong.name for wrong in statement.wrong] == ["upper_bound_nmi"]
    with pytest.raises(NotPrivate, match="for all channels, but its own keeps"):
        refuse_wrong_figures(statement)

    def cheaper(document):
        document["utility"]["cost_lower_bound"] = 10.0

    rewrite(files / "truth.json", cheaper, tmp_path / "forged.json")
    statement = statement_of(md.load(tmp_path / "forged.json"))
    with pytest.raises(NotPrivate, match="for all channels, but its own costs"):
        refuse_wrong_figures(statement)


@pytest.mark.parametrize(
    ("columns", "outputs", "message"),
    [
        (["age"], ["y0", "y1", "y2", "y3"], "releases its own symbols, and 'y0'"),
        (["age", "job"], None, "releases the numbers of one column, and this one"),
    ],
)
def test_a_cost_of_what_has_no_numbers_is_refused(
    files, tmp_path, columns, outputs, message
):
    def forge(document):
        document["useful"]["columns"] = columns
        more = ["x"] * (len(columns) - 1)
        symbols = [[*symbol, *more] for symbol in document["useful"]["symbols"]]
        document["useful"]["symbols"] = symbols
        document["outputs"] = outputs or [", ".join(symbol) for symbol in symbols]

    rewrite(files / "distance.json", forge, tmp_path / "forged.json")
    with pytest.raises(md.InputError, match=message):
        statement_of(md.load(tmp_path / "forged.json"))


def to_identity(document):
    """The rows of a channel that publishes the column itself."""
    symbols = len(document["useful"]["symbols"])
    document["outputs"] = [f"y{k}" for k in range(symbols)]
    rows = np.eye(symbols, dtype=int) * document["denominator"]
    document["rows"] = [[int(value) for value in row] for row in rows]


def test_a_promise_that_the_table_disproves(files, tmp_path):
    source = files / "information.json"
    rewrite(source, to_identity, tmp_path / "forged.json")
    forged = md.load(tmp_path / "forged.json")
    assert keeps_promise(forged) is False
    assert statement_of(forged).disproved
    with pytest.raises(
        NotPrivate, match=r"the channel breaks its promise alip .* on its own"
    ):
        refuse_broken(forged)
    # Without its table nobody can tell.
    assert keeps_promise(forged.public()) is None
    assert statement_of(forged.public()).right == ()
    assert refuse_broken(forged.public()) is False


@settings(max_examples=scaled(30), deadline=None)
@given(st.data())
def test_the_verdict_is_that_of_the_audit(data):
    """Whatever is edited: refused if, and only if, the exact audit says so."""
    good = designed()
    rows = copy.deepcopy([list(row) for row in good.rows])
    x = data.draw(st.integers(0, len(rows) - 1))
    y = data.draw(st.integers(0, len(rows[x]) - 1))
    move = data.draw(st.integers(0, rows[x][y]))
    rows[x][y] -= move
    rows[x][(y + 1) % len(rows[x])] += move
    if not all(any(row[k] for row in rows) for k in range(len(rows[0]))):
        return
    edited = md.Channel(
        good.useful, good.outputs, tuple(map(tuple, rows)), good.denominator, good.joint
    ).with_record(good.record)
    satisfied = md.audit(edited, TABLE, md.ALIP(0.4, 0.3)).satisfied
    assert keeps_promise(edited) is satisfied
    assert json.dumps(satisfied) in ("true", "false")


ROWS = pd.DataFrame(
    {
        "s": list("nynnyynynynnyy") * 3,
        "k": list("uuuuuuuvvvvvvv") * 3,
        "a": list("xxyyxyxyyxxyyx") * 3,
        "b": list("12121221211221") * 3,
    }
)


def row_design(**options):
    options = {"notion": md.LIP(0.4), "smallest_group": 1} | options
    return md.design(ROWS, sensitive="s", release=["a", "b"], **options).channel


@pytest.fixture(
    scope="module",
    params=[{}, {"given": ["k"], "promise": "relative"}, {"keep_frequencies": False}],
    ids=["rows", "given", "free"],
)
def row_file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.json"
    row_design(**request.param).save(path)
    return path


def test_the_figures_of_rows_are_right(row_file):
    statement = statement_of(md.load(row_file))
    assert not statement.disproved
    figures = {"truth", "frequency_deviation", "truth_by_column", "law", "eps_l", "nmi"}
    assert figures <= {*statement.right}
    assert {*statement.only_stated} == {"cost", "cost_lower_bound"}


def test_unchanged_cells_are_those_of_the_records(row_file):
    channel = md.load(row_file)
    for k, name in enumerate(channel.useful.columns):
        share = Fraction(0)
        counts = channel.joint.useful_counts
        for symbol, count in zip(channel.useful.symbols, counts, strict=True):
            for cells, probability in channel.distribution(symbol).items():
                if cells[k] == symbol[k]:
                    share += probability * count / sum(counts)
        if name in channel.given:
            assert share == 1
            assert name not in unchanged_cells(channel, channel.joint)
            continue
        stated = unchanged_cells(channel, channel.joint)[name]
        # The largest double at or below the share.
        assert Fraction(stated) <= share < Fraction(np.nextafter(stated, 2.0))


@pytest.mark.parametrize(
    "place",
    [
        ("truth",),
        ("frequency_deviation",),
        ("truth_by_column", "a"),
        ("law", "total_variation"),
        ("law", "columns", "b"),
        ("law", "kept"),
    ],
)
def test_wrong_figures_of_rows_are_found(row_file, tmp_path, place):
    def forge(document):
        figures = document["utility"]
        for name in place[:-1]:
            figures = figures[name]
        value = figures[place[-1]]
        figures[place[-1]] = not value if isinstance(value, bool) else value + 1e-9

    rewrite(row_file, forge, tmp_path / "forged.json")
    statement = statement_of(md.load(tmp_path / "forged.json"))
    assert [wrong.name for wrong in statement.wrong] == [".".join(place)]
    assert place[0] not in statement.right


def test_nothing_is_released_where_the_achieved_budgets_are_wrong(row_file, tmp_path):
    def forge(document):
        document["achieved"]["eps_l"] /= 2

    rewrite(row_file, forge, tmp_path / "forged.json")
    forged = md.load(tmp_path / "forged.json")
    with pytest.raises(
        NotPrivate, match=r"states eps_l .* nothing goes out through it"
    ):
        refuse_broken(forged)
    with pytest.raises(NotPrivate, match="states eps_l"):
        md.sanitise(ROWS, forged, insecure_seed=1)
