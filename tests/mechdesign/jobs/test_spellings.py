"""Identifiers that differ in their spelling alone are one record, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats import spellings
from mechdesign.formats.spellings import plain_spelling
from mechdesign.jobs.identified_records import IdentifiedRecords
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_memory import LedgerMemory
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_file import sanitise_file
from tests.cases.released_records import mixing_channel

CHANNEL = mixing_channel()
JOBS = np.random.default_rng(1).choice([*"abc"], 300)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("000017", "17"),
        ("17.0", "17"),
        ("017.00", "17"),
        ("17.", "17"),
        (" 17", "17"),
        ("17 \t", "17"),
        ("17\u00a0", "17"),
        ("+17", "17"),
        ("-017", "-17"),
        ("000", "0"),
        ("P001", "P1"),
        ("AB-010", "AB-10"),
        (" Ann ", "Ann"),
        ("O\u2019Neil", "O'Neil"),
        ("Smith\u2013Jones", "Smith-Jones"),
        ("17", "17"),
        ("17.5", "17.5"),
        ("0.5", "0.5"),
        ("P100", "P100"),
        ("00a1", "00a1"),
        ("a00b", "a00b"),
        ("+Ann", "+Ann"),
        ("", ""),
    ],
)
def test_plain_spelling(text, plain):
    texts = plain_spelling(pa.array([text, "x"]))
    assert (text if texts is None else texts[0].as_py()) == plain


def released(tmp_path, identifiers, name="out.csv", jobs=JOBS, **options):
    frame = pd.DataFrame({"id": identifiers, "job": jobs})
    frame.to_csv(tmp_path / "in.csv", index=False)
    return sanitise_file(
        CHANNEL,
        tmp_path / "in.csv",
        tmp_path / name,
        **{"identity": "id", "ledger": tmp_path / "l.db", "force": True} | options,
    )


PADDED = [f"{i:06}" for i in range(300)]
SPELLINGS = {
    "padded": PADDED,
    "plain": [str(i) for i in range(300)],
    "float": [f"{i}.0" for i in range(300)],
    "blank": [f"{i} " for i in range(300)],
}


def pairs_of_spellings():
    """Those without plain numbers are for the slow tests."""
    for first in SPELLINGS:
        for second in SPELLINGS:
            marks = [] if "plain" in (first, second) else [pytest.mark.slow]
            yield pytest.param(first, second, marks=marks)


@pytest.mark.parametrize(("first", "second"), [*pairs_of_spellings()])
def test_records_under_another_spelling_are_not_drawn_again(tmp_path, first, second):
    """Other columns have changed as well, so that no content is known."""
    released(tmp_path, SPELLINGS[first])
    more = [*SPELLINGS[second], "4000"]
    jobs = [*JOBS, "a"]
    if first == second:
        released(tmp_path, more, jobs=jobs)
        return
    with pytest.raises(InputError, match="differ from these only in blanks"):
        released(tmp_path, more, jobs=jobs)
    released(tmp_path, more, jobs=jobs, fresh_draw=True)


def test_one_record_under_another_spelling_is_enough(tmp_path):
    released(tmp_path, PADDED)
    with pytest.raises(InputError, match="differ from these only in blanks"):
        released(tmp_path, [*PADDED[:299], "299"])


def test_two_spellings_in_one_file_are_refused(tmp_path):
    for ids in (["17", "017"], ["017", "0017"], ["A1", "A1 "], ["u\u0308", "\u00fc"]):
        for ledger in (tmp_path / "l.db", None):
            with pytest.raises(
                InputError, match="two identifiers differ only in blanks"
            ):
                released(tmp_path, ids, jobs=["a", "b"], ledger=ledger)


def test_crossed_identifiers(tmp_path):
    frame = pd.DataFrame({"u": ["01", "1"], "v": ["1", "02"], "job": ["a", "b"]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    options = {"identity": ["u", "v"], "ledger": tmp_path / "l.db", "force": True}
    sanitise_file(CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", **options)
    frame["v"] = ["1", "2"]
    frame.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(InputError, match="differ from these only"):
        sanitise_file(CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", **options)


def test_a_ledger_of_an_earlier_version_tells_by_the_content(tmp_path, monkeypatch):
    """It has no spellings; the records have equal hashes, since 000017 counts as the number 17."""
    with monkeypatch.context() as patch:
        patch.setattr(spellings, "UNUSUAL", "^nothing$")
        released(tmp_path, PADDED)
        with pytest.raises(
            InputError, match="but under other identifiers in the column 'id'"
        ):
            released(tmp_path, SPELLINGS["plain"])
    # Half of the records are new ones: the others are still known.
    with monkeypatch.context() as patch:
        patch.setattr(spellings, "UNUSUAL", "^nothing$")
        more = [*SPELLINGS["plain"], *(str(i) for i in range(1000, 1250))]
        with pytest.raises(
            InputError, match=r"about 5\d % of these records .* other ident"
        ):
            released(tmp_path, more, jobs=[*JOBS, *JOBS[:250]])


def test_new_records_beside_known_ones_are_released(tmp_path):
    released(tmp_path, PADDED)
    more = [f"{i:06}" for i in range(900)]
    assert released(tmp_path, more, jobs=[*JOBS] * 3).records == 900


def test_two_draws_of_an_earlier_version_are_not_counted_as_one(tmp_path, monkeypatch):
    def accepted(self, *arguments):
        return None

    ledger = Ledger(tmp_path / "l.db")
    with monkeypatch.context() as patch:
        patch.setattr(IdentifiedRecords, "refuse_other_spellings", accepted)
        patch.setattr(IdentifiedRecords, "refuse_renamed", accepted)
        patch.setattr(Ledger, "bare", accepted)
        patch.setattr(Ledger, "column", accepted)
        patch.setattr(LedgerMemory, "alike_columns", lambda *_: [])
        released(tmp_path, PADDED, "1.csv")
        assert "the one draw" in history_of(ledger, tmp_path / "in.csv").sentence
        released(tmp_path, PADDED, "1.csv", jobs=JOBS)
        assert "the one draw" in history_of(ledger, tmp_path / "in.csv").sentence
        released(tmp_path, SPELLINGS["plain"], "2.csv")
    assert "all 2 draws" in history_of(ledger, tmp_path / "in.csv").sentence
