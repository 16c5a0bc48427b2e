"""`judge` of tables of many columns: memory and work are those of the columns, not of their pairs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.formats.cells import CellForm
from mechdesign.judging.analysts import pair_facts, regression
from mechdesign.judging.figures import Figure
from mechdesign.judging.together import read_files
from mechdesign.report.judgement import judgement_text
from tests.cases.growth import assert_linear, cost_of, peak_of

RECORDS = 40


def wide_files(columns, distinct=None):
    """Columns of numbers; only `distinct` of them differ in more than their unit."""
    chance = np.random.default_rng(3)
    # Columns without equal cells would be taken for identifiers.
    numbers = chance.integers(0, 10, (distinct or columns, RECORDS))
    table = pd.DataFrame(
        {
            f"c{j}": ((1 + j // len(numbers)) * numbers[j % len(numbers)]).astype(str)
            for j in range(columns)
        }
    )
    # The column with most values is the one that a regression explains by the others.
    table["outcome"] = chance.integers(0, 100, RECORDS).astype(str)
    original = table.assign(ill=chance.choice(["s", "t"], RECORDS))
    return read_files(
        table,
        original,
        sensitive="ill",
        identity=None,
        shuffled=False,
        text=None,
        form=CellForm(),
    )


@pytest.mark.parametrize("analysis", [regression, pair_facts])
def test_the_memory_of_analyses_grows_with_the_columns(analysis):
    peaks = []
    for columns in (100, 200, 400):
        files = wide_files(columns)
        analysis(files)
        peaks.append(peak_of(partial(analysis, files)))
    assert_linear(peaks)


def test_a_regression_finds_the_independent_columns_among_more_than_there_are_records():
    found = regression(wide_files(400, distinct=5))
    assert found.outcome == "outcome"
    assert found.coefficients == 5
    assert found.lost == 0
    assert found.worst < 1e-6
    # With as many independent columns as records nothing is left for an error.
    assert regression(wide_files(400)) is None


def test_the_tables_of_figures_are_written_in_one_pass():
    table = pd.DataFrame({"job": list("abcd") * 10, "ill": list("sstts") * 8})
    judgement = md.judge(table[["job"]], original=table, sensitive="ill")
    part = judgement.part("groups")
    costs = []
    for size in (250, 500, 1_000):
        figures = tuple(
            Figure(f"f{j}", f"column {j}", 0.5, 0.5, 0.5) for j in range(size)
        )
        more = replace(part, key="more", figures=figures)
        larger = replace(judgement, parts=(*judgement.parts, more))
        judgement_text(larger)
        costs.append(cost_of(partial(judgement_text, larger)).calls)
    assert_linear(costs)
