"""A file of a large folder costs what it holds, however many files were released before it."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from mechdesign.core.documents import canonical
from mechdesign.formats.census import Census
from mechdesign.jobs import ledger_memory
from mechdesign.jobs.bare_records import BareCensus, BareContent, likeness
from mechdesign.jobs.ledger import (
    Drawn,
    Entry,
    Ledger,
    Use,
    name_of_bare,
    name_of_column,
)
from mechdesign.jobs.ledger_memory import (
    SCANNED,
    SELECT_SAMPLES,
    LedgerMemory,
    _Index,
)
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.same_records import SAME_FROM, how_alike, packed
from mechdesign.release.drawing import channel_digest
from tests.cases.growth import calls_of
from tests.cases.released_records import mixing_channel

EARLIER = (50, 100, 200)
"""Earlier releases."""

MOST_CALLS = 100
"""Calls and returns of functions for each earlier release."""

RECORDS = 12


def write_folder(folder, files):
    """Files of different people, with few different records beside their identifiers."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    for k in range(files):
        frame = pd.DataFrame(
            {
                "id": [f"p{k:05}-{i:02}" for i in range(RECORDS)],
                "job": rng.choice([*"abc"], RECORDS),
                "town": rng.choice([*"NS"], RECORDS),
            }
        )
        frame.to_csv(folder / f"{k:05}.csv", index=False)


@pytest.mark.parametrize("identity", [None, "id"])
def test_a_file_costs_hardly_more_after_many_others(tmp_path, identity, monkeypatch):
    """Calls of functions are counted. Where all earlier releases were compared, each of them took
    some 600.
    """
    # As after the first files of a folder.
    monkeypatch.setattr(ledger_memory, "SCANNED", 0)
    write_folder(tmp_path / "in", 4)
    ledger = Ledger(tmp_path / "l.db")
    calls = []
    for number, earlier in enumerate(EARLIER, 1):
        enter_releases(ledger, earlier, identity)
        # The first file reads what was entered by another connection.
        release(tmp_path / "in", ledger, 0, identity=identity)

        def release_next(number=number):
            release(tmp_path / "in", ledger, number, identity=identity)

        calls.append(calls_of(release_next))
    few, _, many = calls
    assert many - few < MOST_CALLS * (EARLIER[-1] - EARLIER[0]), calls


def enter_releases(ledger, number, identity):
    """Fill up a ledger to so many releases of other people."""
    rng = np.random.default_rng(number)
    use = Use(
        channel=channel_digest(mixing_channel()),
        columns=("job",),
        form="label",
    )
    with ledger.changing() as db:
        for k in range(len(ledger.releases(db)), number):
            records = Census()
            records.add(rng.integers(1, 2**63, RECORDS).astype(np.uint64))
            content = records.content()
            column = BareCensus()
            column.add(rng.integers(1, 4, RECORDS).astype(np.uint64))
            job = f"id {canonical((identity,))}" if identity else f"rows {k}"
            entry = Entry(
                id=f"{k:016x}",
                target=f"/data/{k}.csv",
                state="done",
                started="2026-01-01T00:00:00+00:00",
                output=None,
                records=RECORDS,
                identity=(identity,) if identity else (),
                drawn=(Drawn(use=use, job=job, draw=0),),
                ordered=content.ordered,
                unordered=content.unordered,
            )
            ledger.enter(db, entry, content)
            bare = column.bare_content()
            ledger.remember_column(db, entry, use.channel, packed(bare))
            if identity:
                ledger.remember_bare(db, entry, bare.to_bytes())


def release(folder, ledger, number, **options):
    """Release one of some files in a folder under a ledger that stays open."""
    return sanitise_file(
        mixing_channel(),
        folder / f"{number:05}.csv",
        folder / f"out{number}.csv",
        ledger=ledger,
        force=True,
        **options,
    )


def assert_fits(ledger):
    """What an open ledger remembers is what its file holds."""
    fresh = LedgerMemory(Entry.model_validate_json)
    with ledger.reading() as db:
        fresh.load(db)
        memory = ledger.memory(db)
        samples = dict(db.execute(SELECT_SAMPLES))
    assert memory.entries == fresh.entries
    assert [*memory.entries] == sorted(fresh.entries)
    if memory._index is None:
        return
    index = index_of(samples)
    assert samples.keys() == {
        *memory._index._equal._places,
        *(name for name in memory._index._samples._names if name in samples),
    }
    assert memory._index._equal._places == index._equal._places
    assert {*memory._index._bare._names} >= {*index._bare._names}


def index_of(samples):
    """The index of samples by their names."""
    index = _Index()
    for name, sample in samples.items():
        index.add(name, sample)
    return index


@pytest.mark.parametrize("scanned", [0, SCANNED])
def test_what_is_remembered_follows_each_change(tmp_path, scanned, monkeypatch):
    monkeypatch.setattr(ledger_memory, "SCANNED", scanned)
    folder = tmp_path / "in"
    write_folder(folder, 4)
    ledger = Ledger(tmp_path / "l.db")
    other = Ledger(tmp_path / "l.db")
    release(folder, ledger, 0, identity="id")
    assert_fits(ledger)
    # The same file once more, then a later state of the first entry.
    first = release(folder, ledger, 0, identity="id", fresh_draw=True)
    assert first.records == RECORDS
    assert_fits(ledger)
    # Another process.
    release(folder, other, 1, identity="id")
    assert_fits(ledger)
    assert_fits(other)
    release(folder, ledger, 2, identity="id")
    with ledger.changing() as db:
        entry = ledger.releases(db)[1]
        ledger.enter(db, entry.model_copy(update={"finished": "later"}))
        # Within the transaction its own changes are seen.
        assert ledger.releases(db)[1].finished == "later"
    assert_fits(ledger)
    with ledger.changing() as db:
        ledger.remove(db, entry)
        assert entry.id not in [left.id for left in ledger.releases(db)]
    assert_fits(ledger)
    assert_fits(other)
    with ledger.reading() as db:
        assert (ledger.memory(db)._index is not None) == (scanned == 0)


def test_changes_of_a_transaction_are_seen_within_it(tmp_path, monkeypatch):
    """Samples that came in it are candidates, those that went are none, and nothing else is."""
    monkeypatch.setattr(ledger_memory, "SCANNED", 0)
    ledger = Ledger(tmp_path / "l.db")
    enter_releases(ledger, 3, "id")
    with ledger.reading() as db:
        samples = dict(db.execute(SELECT_SAMPLES))
        entries = ledger.releases(db)
    channel = entries[0].drawn[0].use.channel
    bare, column = (
        BareContent.from_bytes(samples[name][start:])
        for name, start in (
            (name_of_bare(entries[0]), 0),
            (name_of_column(entries[0], channel), 8),
        )
    )
    mine = {name_of_bare(entries[0])}
    mine_of_column = name_of_column(entries[0], channel)
    with ledger.reading() as db:
        assert mine <= ledger.memory(db).alike_bare(db, bare)
        equal = ledger.memory(db).alike_columns(db, channel, column)
        assert mine_of_column in {name for names in equal for name in names}
    with ledger.changing() as db:
        ledger.remove(db, entries[0])
        copy = entries[1].model_copy(update={"id": "f" * 16})
        ledger.enter(db, copy)
        ledger.remember_bare(db, copy, bare.to_bytes())
        ledger.remember_column(db, copy, channel, bytes(8) + column.to_bytes())
        ledger.remember_column(db, copy, "other", bytes(8) + column.to_bytes())
        memory = ledger.memory(db)
        assert memory._index is not None
        found = memory.alike_bare(db, bare)
        assert name_of_bare(copy) in found
        assert not mine & found
        equal = memory.alike_columns(db, channel, column)
        names = {name for of_bytes in equal for name in of_bytes}
        assert name_of_column(copy, channel) in names
        assert not {mine_of_column, name_of_column(copy, "other")} & names
    assert_fits(ledger)


def test_changes_that_are_undone_are_not_remembered(tmp_path):
    folder = tmp_path / "in"
    write_folder(folder, 2)
    ledger = Ledger(tmp_path / "l.db")
    release(folder, ledger, 0)

    def remove_and_fail():
        with ledger.changing() as db:
            ledger.remove(db, ledger.releases(db)[0])
            assert ledger.releases(db) == []
            raise KeyError

    with pytest.raises(KeyError):
        remove_and_fail()
    with ledger.reading() as db:
        assert len(ledger.releases(db)) == 1
    assert_fits(ledger)


def database_of(samples):
    """The table of samples of a ledger."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE samples (unordered TEXT, sample BLOB)")
    db.executemany("INSERT INTO samples VALUES (?, ?)", samples.items())
    return db


def test_few_files_make_no_index(tmp_path):
    """To sort all hashes of a long ledger takes longer than to read them once."""
    folder = tmp_path / "in"
    files = SCANNED + 3
    write_folder(folder, files)
    ledger = Ledger(tmp_path / "l.db")
    for number in range(files):
        with ledger.reading() as db:
            assert (ledger.memory(db)._index is not None) == (number > SCANNED)
        release(folder, ledger, number)
    assert_fits(ledger)


def contents(seed):
    """Contents of few and of many kinds, among them parts, copies and others of each."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(1, 2**63, 6_000).astype(np.uint64)
    tables = []
    for size in (4, 30, 200):
        table = rng.choice(kinds[:size], 3 * size)
        tables += [table, np.sort(table), table[:size], np.repeat(table, 2)]
    many = kinds[rng.permutation(len(kinds))]
    tables += [many, many[:3_000], many[::-1], np.append(many[:5_000], kinds[:3] + 1)]
    found = []
    for table in tables:
        census = BareCensus()
        census.add(table)
        found.append(census.bare_content())
    return found


@pytest.mark.parametrize("seed", range(3))
def test_no_likeness_is_left_out(seed):
    """What is certain, or whole and worth a note, is among the candidates."""
    known = contents(seed)
    samples: dict[str, bytes] = {}
    for k, content in enumerate(known):
        samples[f"bare {k}"] = content.to_bytes()
        samples[f"column {k} ch"] = bytes(8) + content.to_bytes()
    index = index_of(samples)
    db = database_of(samples)
    checked = 0
    for new in contents(seed):
        scan = LedgerMemory(Entry.model_validate_json)
        bare = index.alike_bare(new)
        assert bare == scan.alike_bare(db, new)
        equal = index.alike_columns("ch", new)
        columns = {name for names in equal for name in names}
        assert sorted(map(sorted, equal)) == sorted(
            map(sorted, scan.alike_columns(db, "ch", new))
        )
        assert index.alike_columns("other", new) == []
        assert scan.alike_columns(db, "other", new) == []
        assert scan._index is None
        for k, old in enumerate(known):
            alike = likeness(new, old)
            if alike.certain or (alike.whole and alike.bits):
                assert f"bare {k}" in bare
                checked += 1
            if how_alike(new, old) != "different":
                assert f"column {k} ch" in columns
    assert checked > len(known)


def test_no_shared_record_is_left_out():
    rng = np.random.default_rng(2)
    hashes = rng.integers(1, 2**63, 4_500).astype(np.uint64)
    tables = [
        hashes[k : k + size] for k in range(0, 4_500, 300) for size in (1, 40, 700)
    ]
    known = []
    for k, table in enumerate(tables):
        census = Census()
        census.add(np.repeat(table, 1 + k % 2))
        known.append(census.content())
    samples = {f"{k}": content.sample() for k, content in enumerate(known)}
    index = index_of(samples)
    db = database_of(samples)
    for new in known:
        candidates = index.sharing(new)
        scan = LedgerMemory(Entry.model_validate_json)
        assert candidates == scan.sharing(db, new)
        for k, old in enumerate(known):
            if new.share_in([old.sample()]) > 0:
                assert f"{k}" in candidates
        assert len(candidates) < 20


def test_disjoint_files_are_no_second_draw_where_chance_finds_every_record():
    """Of records of some hundred kinds, many earlier files have every one by chance.

    The share of known records divides the error of the estimate by the little that chance leaves.
    """
    rng = np.random.default_rng(3)
    kinds = rng.integers(1, 2**63, 440).astype(np.uint64)
    samples = []
    shares = []
    for _ in range(120):
        census = Census()
        census.add(rng.choice(kinds, 40))
        content = census.content()
        sharing = [sample for sample in samples if content.share_in([sample]) > 0]
        shares.append(content.share_beyond_chance(sharing))
        samples.append(content.sample())
    assert max(shares) < SAME_FROM
