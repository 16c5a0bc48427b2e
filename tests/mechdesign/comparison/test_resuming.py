"""Going on with a comparison: what is kept, what is refused, what is never touched."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import mechdesign as md
from mechdesign.comparison import settings as comparison_settings
from mechdesign.comparison.rows import read_rows
from mechdesign.comparison.run import compare
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.designing import design_requested

MERGING = ("subset-merging", "complete-merging")


@pytest.fixture(scope="module")
def small():
    return md.Joint.from_counts(
        [[8, 1, 3, 0, 5, 2], [1, 7, 2, 4, 5, 1], [2, 2, 6, 3, 1, 9]]
    )


def timeless(rows):
    return [replace(row, seconds=0.0) for row in rows]


@pytest.fixture
def saved(small, tmp_path):
    path = tmp_path / "o.csv"
    compare(small, epsilons=[1.0, 2.0], mechanisms=MERGING, output=path)
    return path


def count_designs(monkeypatch):
    calls = []

    def counted(request):
        calls.append((request.mechanism, request.notion))
        return design_requested(request)

    monkeypatch.setattr(comparison_settings, "design_requested", counted)
    return calls


def test_the_same_run_again_computes_nothing_and_changes_nothing(
    small, saved, monkeypatch
):
    before = saved.read_bytes()
    calls = count_designs(monkeypatch)
    again = compare(small, epsilons=[1.0, 2.0], mechanisms=MERGING, output=saved)
    assert calls == []
    assert again.kept == len(again.rows) == 4
    assert again.rows == read_rows(saved)
    assert saved.read_bytes() == before


def test_only_what_is_missing_is_computed_and_other_rows_stay(
    small, saved, monkeypatch
):
    calls = count_designs(monkeypatch)
    more = compare(
        small, epsilons=[2.0, 3.0], mechanisms=["subset-merging"], output=saved
    )
    assert calls == [("subset-merging", md.ALIP.from_epsilon(3.0))]
    assert [row.epsilon for row in more.rows] == [2.0, 3.0]
    assert more.kept == 1
    on_disk = {(row.mechanism, row.epsilon) for row in read_rows(saved)}
    assert on_disk == {(m, e) for m in MERGING for e in (1.0, 2.0)} | {
        ("subset-merging", 3.0)
    }


def test_a_run_that_died_goes_on_where_it_was(small, tmp_path, monkeypatch):
    path = tmp_path / "o.csv"
    epsilons = [k / 4 for k in range(1, 17)]
    whole = compare(small, epsilons=epsilons, mechanisms=["subset-merging"])

    def dies(request):
        if request.notion == md.ALIP.from_epsilon(3.0):
            raise KeyboardInterrupt
        return design_requested(request)

    with monkeypatch.context() as patched:
        patched.setattr(comparison_settings, "design_requested", dies)
        with pytest.raises(KeyboardInterrupt):
            compare(
                small, epsilons=epsilons, mechanisms=["subset-merging"], output=path
            )
    assert [row.epsilon for row in read_rows(path)] == [e for e in epsilons if e < 3.0]
    done = compare(small, epsilons=epsilons, mechanisms=["subset-merging"], output=path)
    assert done.kept == 11
    assert timeless(done.rows) == timeless(whole.rows)


def test_a_bound_found_later_reaches_the_rows_kept(small, saved):
    compare(small, epsilons=[1.0, 2.0], mechanisms=["optimal", *MERGING], output=saved)
    assert all(row.upper_bound_nmi is not None for row in read_rows(saved))


def test_a_csv_of_another_table_is_refused(saved):
    other = md.Joint.from_counts([[8, 1, 3], [1, 7, 2]])
    with pytest.raises(InputError, match=r"o\.csv belongs to another table; .*force="):
        compare(other, epsilons=[1.0], output=saved)


def test_other_labels_are_another_table(small, saved):
    other = md.Joint.from_counts(small.counts, sensitive="other")
    with pytest.raises(InputError, match="belongs to another table"):
        compare(other, epsilons=[1.0], output=saved)


def test_other_settings_are_refused(small, saved):
    with pytest.raises(InputError, match=r"other settings \(gap 0\.0001, not 0\.01\)"):
        compare(small, epsilons=[1.0], output=saved, gap=0.01)


def test_force_starts_over(saved):
    other = md.Joint.from_counts([[8, 1, 3], [1, 7, 2]])
    done = compare(other, epsilons=[1.0], mechanisms=MERGING, output=saved, force=True)
    assert read_rows(saved) == done.rows
    assert compare(other, epsilons=[1.0], mechanisms=MERGING, output=saved).kept == 2


def test_a_file_without_manifest_is_never_touched(small, saved):
    saved.with_suffix(".csv.json").unlink()
    before = saved.read_bytes()
    with pytest.raises(InputError, match="no comparison to go on with"):
        compare(small, epsilons=[1.0], output=saved)
    assert saved.read_bytes() == before


def test_a_manifest_without_csv_is_a_run_that_had_no_rows_yet(small, saved):
    saved.unlink()
    assert compare(small, epsilons=[1.0], mechanisms=MERGING, output=saved).kept == 0


def test_an_edited_manifest_is_refused(small, saved):
    manifest = saved.with_suffix(".csv.json")
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "table": "0" * 64}))
    with pytest.raises(InputError, match=r"o\.csv\.json"):
        compare(small, epsilons=[1.0], output=saved)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (
            lambda text: text.replace(
                "subset-merging,alip,1,", "subset-merging,alip,one,"
            ),
            "line 2: epsilon .'one'",
        ),
        (lambda text: text.replace("true,", "maybe,", 1), "line 2: satisfied"),
        (lambda text: text.replace("true,", "yes,", 1), "line 2: satisfied .'yes'"),
        (lambda text: text.replace("lip,1,", "lip,NaN,", 1), "line 2: epsilon .'NaN'"),
        (lambda text: text.replace("subset-merging,", ",", 1), "line 2: mechanism"),
        (
            lambda text: text.replace("mechanism,", "machine,"),
            "columns of a comparison",
        ),
        (lambda text: text + text.splitlines()[1] + "\n", "line 6 repeats"),
        (lambda text: text + "1,2\n", "line 6 has 2 cells"),
        (lambda text: text + '"open', "no CSV of a comparison"),
        (lambda text: "", "columns of a comparison"),
    ],
)
def test_a_damaged_csv_is_refused(small, saved, edit, words):
    saved.write_text(edit(saved.read_text()))
    with pytest.raises(InputError, match=words):
        compare(small, epsilons=[1.0], output=saved)


def test_nothing_else_is_left_in_the_folder(small, saved):
    assert {path.name for path in saved.parent.iterdir()} == {"o.csv", "o.csv.json"}
