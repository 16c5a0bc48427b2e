"""anonymeter and pycanon: called where they are installed, named beside their figures, and agreed with."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.formats.cells import CellForm
from mechdesign.judging import instruments
from mechdesign.judging.groups import groups_of
from mechdesign.judging.instruments import (
    groups_by_pycanon,
    inference_by_anonymeter,
    instruments_note,
    linkability_by_anonymeter,
    singling_out_by_anonymeter,
)
from mechdesign.judging.judge import untouched_files
from mechdesign.judging.own_row import Halves
from mechdesign.judging.together import read_files


@pytest.fixture(autouse=True)
def _few_attempts(monkeypatch):
    """Claims on few columns of few records are hardly ever unique."""
    monkeypatch.setattr(instruments, "ATTEMPTS", 2_000)


needs_anonymeter = pytest.mark.skipif(
    find_spec("anonymeter") is None, reason="anonymeter is not installed (extra judge)"
)
needs_pycanon = pytest.mark.skipif(
    find_spec("pycanon") is None, reason="pycanon is not installed (extra judge)"
)


def people(records=400, seed=1):
    """A job that tells much about a condition, and numbers with an empty cell."""
    chance = np.random.default_rng(seed)
    job = chance.choice(list("abcdef"), records)
    ill = chance.random(records) < np.where(job < "c", 0.9, 0.05)
    table = pd.DataFrame(
        {
            "class": job,
            "it's": chance.choice(["f", "m"], records),
            "age": chance.integers(18, 80, records).astype(str),
            "ill": np.where(ill, "yes", "no"),
        }
    )
    table.loc[3, "age"] = ""
    return table


def blind(table, seed=2):
    """Each column shuffled by itself."""
    chance = np.random.default_rng(seed)
    return pd.DataFrame({name: chance.permutation(table[name]) for name in table})


def files_of(released, original, **options):
    arguments = {
        "sensitive": "ill",
        "identity": None,
        "shuffled": False,
        "text": None,
        "form": CellForm(),
    }
    return read_files(released, original, **(arguments | options))


def figures_by_anonymeter(files, seed=0):
    untouched = untouched_files(files)
    return [
        *singling_out_by_anonymeter(files, untouched, 3, seed),
        *linkability_by_anonymeter(files, untouched, [0, 2], seed),
        *inference_by_anonymeter(files, untouched, Halves.of(files, seed), seed),
    ]


def test_a_judgement_says_which_instruments_measured(monkeypatch):
    monkeypatch.setattr(instruments, "find_spec", lambda name: None)
    assert instruments_note() == (
        "Measured by the attacks and counts of mechdesign; anonymeter and pycanon are not installed "
        "(pip install 'mechdesign[judge]')."
    )
    monkeypatch.setattr(instruments, "find_spec", lambda name: True)
    monkeypatch.setattr(instruments, "version", lambda name: "9.9")
    note = instruments_note()
    assert "and by anonymeter 9.9 and pycanon 9.9 where a line names it" in note
    assert "pip install" not in note


def test_without_instruments_there_are_the_own_figures(monkeypatch):
    monkeypatch.setattr(instruments, "find_spec", lambda name: None)
    table = people()
    judgement = md.judge(table.drop(columns="ill"), original=table, sensitive="ill")
    keys = [figure.key for part in judgement.parts for figure in part.figures]
    assert "k" in keys
    assert not [key for key in keys if "anonymeter" in key or "pycanon" in key]
    assert "are not installed" in judgement.summary()


@needs_pycanon
@pytest.mark.parametrize("seed", range(5))
def test_pycanon_counts_as_we_do(seed):
    table = people(60, seed)
    files = files_of(blind(table), table)
    places = [0, 1]
    found = groups_by_pycanon(files, untouched_files(files), places)
    for place, judged in (("released", files), ("untouched", untouched_files(files))):
        groups = groups_of(judged, places)
        wanted = [groups.k, groups.diversity, groups.closeness, groups.likeness]
        assert [getattr(f, place) for f in found] == pytest.approx(wanted)


@needs_pycanon
def test_of_files_that_are_not_linked_pycanon_says_k_alone():
    table = people()
    files = files_of(blind(table).drop(columns="ill"), table, shuffled=True)
    found = groups_by_pycanon(files, untouched_files(files), [0])
    assert found[0].released == groups_of(files, [0]).k
    assert [figure.released for figure in found[1:]] == [None, None, None]
    assert found[3].untouched is not None


@needs_anonymeter
def test_anonymeter_finds_the_untouched_file_worse_than_a_blind_one():
    table = people()
    files = files_of(
        blind(table).drop(columns="ill").assign(id=range(400)),
        table.assign(id=range(400)),
        identity="id",
    )
    singled, linked, inferred = figures_by_anonymeter(files)
    for figure in (singled, linked, inferred):
        assert figure.text.startswith("anonymeter ")
    assert singled.released < singled.untouched
    assert inferred.untouched > inferred.released + 0.1
    assert linked.without == 1 / 400
    # Naming the more frequent secret for everybody.
    shares = table["ill"].value_counts(normalize=True)
    assert inferred.without == pytest.approx(shares.max())


@needs_anonymeter
def test_anonymeter_repeats_and_leaves_the_global_generator_alone():
    table = people()
    files = files_of(table.drop(columns="ill"), table)
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    first = figures_by_anonymeter(files, seed=3)
    assert np.random.get_state()[1].tolist() == before
    assert figures_by_anonymeter(files, seed=3) == first
    assert figures_by_anonymeter(files, seed=4) != first


@needs_anonymeter
def test_a_secret_in_the_file_is_read_by_anonymeter():
    table = people()
    files = files_of(table, table)
    (figure,) = inference_by_anonymeter(
        files, untouched_files(files), Halves.of(files, 0), 0
    )
    assert figure.released == figure.untouched > 0.9


@needs_anonymeter
def test_anonymeter_reads_no_secret_of_unlinked_rows():
    table = people()
    files = files_of(table.drop(columns="ill"), table, shuffled=True)
    assert (
        inference_by_anonymeter(files, untouched_files(files), Halves.of(files, 0), 0)
        == []
    )


@needs_anonymeter
@needs_pycanon
def test_the_parts_have_the_figures_of_the_instruments():
    table = people()
    judgement = md.judge(table.drop(columns="ill"), original=table, sensitive="ill")
    for part in ("known_cells", "singling_out", "linkability"):
        assert judgement.figure(part, "anonymeter").released is not None
    ours = judgement.figure("groups", "beta")
    assert judgement.figure("groups", "pycanon_beta").released == pytest.approx(
        ours.released
    )
    assert "anonymeter" in judgement.instruments
