"""Passes over data cost what the records cost: twice the records are twice the work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.formats import census, csv_blocks
from mechdesign.formats.digests import RowHasher
from mechdesign.jobs import bare_records, identified_records
from mechdesign.jobs.channel_recipe import ChannelRecipe
from mechdesign.jobs.identified_records import IdentifiedRecords
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.leaks import evidence
from mechdesign.release import identified_draws
from mechdesign.release.identified_draws import FirstSymbols, Spellings, new_records
from tests.cases.growth import Work, assert_linear
from tests.cases.released_records import mixing_channel

SIZES = (10_000, 20_000, 40_000)
BATCH = 1_000


def test_spellings_of_identifiers(monkeypatch):
    hasher = RowHasher(bytes(32))
    works = []
    for size in SIZES:
        work = Work()
        found = Spellings()
        with monkeypatch.context() as patch:
            work.watch(patch, identified_draws)
            for start in range(0, size, BATCH):
                texts = pa.array([f"id{i:09}" for i in range(start, start + BATCH)])
                found.add([texts], hasher.identifiers([texts]), hasher)
        assert len(found.plain) == size
        works.append(work.elements + work.steps)
    assert_linear(works)


def test_identifiers_that_the_ledger_knows(monkeypatch):
    """They come back in parts of the space of hashes, each of them sorted.

    In a table that is four fifths full, a hash lies 2 slots from its own on average.
    """
    monkeypatch.setattr(identified_draws, "PART", 1 << 14)
    for size in SIZES:
        hashes = np.random.default_rng(1).integers(1, 2**63, size).astype(np.uint64) * 2
        seen = FirstSymbols()
        for start in range(0, size, BATCH):
            batch = hashes[start : start + BATCH]
            seen.look(batch, np.zeros(len(batch), np.int64))
        parts = list(new_records(seen, FirstSymbols()))

        class Known:
            def known(self, *_):
                return parts  # noqa: B023

        class Release:
            pass

        release = Release()
        release.seen = seen
        release.earlier = FirstSymbols()
        records = IdentifiedRecords(Known(), None, None, release)
        work = Work()
        with monkeypatch.context() as patch:
            work.watch(patch, identified_records)
            assert records._count_new(None) == (0, size)
            records.recall(None)
        # Two tables are filled.
        assert 0 < work.steps < 2 * 3 * size


def test_a_release_by_identifiers(tmp_path, monkeypatch):
    channel = mixing_channel()
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    works = []
    for size in SIZES:
        jobs = np.random.default_rng(1).choice([*"abc"], size)
        frame = pd.DataFrame({"id": [f"{i:09}" for i in range(size)], "job": jobs})
        frame.to_csv(tmp_path / "in.csv", index=False)
        work = Work()
        with monkeypatch.context() as patch:
            work.watch(
                patch,
                identified_draws,
                identified_records,
                identified_draws,
                census,
                bare_records,
                evidence,
            )
            sanitise_file(
                channel,
                tmp_path / "in.csv",
                tmp_path / f"{size}.csv",
                identity="id",
                ledger=tmp_path / f"{size}.db",
            )
        works.append(work.elements + work.steps)
    assert_linear(works)


class Name(str):
    """The name of a column; compared names are counted."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("kind", ["plan", "frame"])
def test_columns_that_are_kept(kind):
    channel = mixing_channel()
    works = []
    for size in (250, 500, 1000):
        header = ["job", *(Name(f"v{i}") for i in range(size))]
        keep = [Name(f"v{i}") for i in range(size)]
        frame = pd.DataFrame({name: ["a"] * 3 for name in header}, dtype=object)
        Name.compared = 0
        if kind == "plan":
            options = ReleaseOptions(keep=keep)
            ChannelRecipe.of([channel], options).plan(header)
        else:
            md.sanitise(frame, channel, key=md.Key.fresh(), keep=keep)
        works.append(Name.compared)
    assert_linear(works)
