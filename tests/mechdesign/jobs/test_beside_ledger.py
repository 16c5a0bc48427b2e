"""What lies beside a ledger, and notes of rehearsals."""

from __future__ import annotations

import pandas as pd
import pytest

from mechdesign.core.errors import InputError
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.release_path import sanitise_path
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from tests.cases.released_records import mixing_channel

CHANNEL = mixing_channel()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    frame = pd.DataFrame({"n": range(60), "job": ["a", "b", "c"] * 20})
    frame.sample(frac=1, random_state=1).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_no_output_is_named_like_a_file_of_sqlite(tmp_path, source, ending):
    """SQLite would remove it, after a release with exit code 0."""
    ledger = tmp_path / "l.db"
    with pytest.raises(InputError, match="is the name of a file that SQLite keeps"):
        sanitise_file(CHANNEL, source, tmp_path / f"l.db{ending}", ledger=ledger)
    with pytest.raises(InputError, match="is the name of a file that SQLite keeps"):
        sanitise_file(
            CHANNEL,
            source,
            tmp_path / "out.csv",
            ledger=ledger,
            manifest=tmp_path / f"l.db{ending}",
        )
    options = QuantizeOptions(column="n", query="mean", epsilon=2, range_text="0,60")
    with pytest.raises(InputError, match="is the name of a file that SQLite keeps"):
        quantise_table(source, tmp_path / f"l.db{ending}", options, ledger=ledger)


def test_a_rehearsal_has_the_notes_of_the_ledger(tmp_path, source):
    options = {"ledger": tmp_path / "l.db"}
    sanitise_path([CHANNEL], source, tmp_path / "1.csv", **options)
    rehearsed = sanitise_path(
        [CHANNEL], source, tmp_path / "2.csv", dry_run=True, fresh_draw=True, **options
    )
    released = sanitise_path(
        [CHANNEL], source, tmp_path / "2.csv", fresh_draw=True, **options
    )
    assert any("1 other draw" in note for note in released.notices)
    assert rehearsed.notices == released.notices
