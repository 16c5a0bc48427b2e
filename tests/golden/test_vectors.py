"""Hashes, draws, shuffles and splits are what they were when the first ledgers were written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.golden.entry import RowHasher, sip_hash
from tests.golden.vectors import SECRET, STORED, VECTORS


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_as_stored(name):
    stored = json.loads((STORED / f"{name}.json").read_text(encoding="ascii"))
    computed = json.loads(json.dumps(VECTORS[name]()))
    assert computed == stored


def rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) % 2**64


def sip_13(word: int, k0: int, k1: int) -> int:
    """SipHash-1-3 of one word of 8 bytes (Aumasson and Bernstein 2012), written from the paper."""
    v0 = k0 ^ 0x736F6D6570736575
    v1 = k1 ^ 0x646F72616E646F6D
    v2 = k0 ^ 0x6C7967656E657261
    v3 = k1 ^ 0x7465646279746573

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = (v0 + v1) % 2**64
            v1 = rotated(v1, 13) ^ v0
            v0 = rotated(v0, 32)
            v2 = (v2 + v3) % 2**64
            v3 = rotated(v3, 16) ^ v2
            v0 = (v0 + v3) % 2**64
            v3 = rotated(v3, 21) ^ v0
            v2 = (v2 + v1) % 2**64
            v1 = rotated(v1, 17) ^ v2
            v2 = rotated(v2, 32)

    for block in (word, 8 << 56):  # the word, and the block that holds the length
        v3 ^= block
        rounds(1)
        v0 ^= block
    v2 ^= 0xFF
    rounds(3)
    return v0 ^ v1 ^ v2 ^ v3


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF])
def test_the_mixing_of_row_hashes_is_sip_hash(word):
    k0, k1 = 0x0706050403020100, 0x0F0E0D0C0B0A0908
    words = np.array([word], np.uint64)
    sip_hash(words, k0, k1)
    assert int(words[0]) == sip_13(word, k0, k1)


def test_hashes_of_records_and_identifiers_are_keyed_by_the_last_16_bytes():
    """Those bytes key SipHash alone: without it, hashes of guesses could be tested by their sums."""
    pa = pytest.importorskip("pyarrow")
    column = pa.array(["clerk", "", "7"])
    other = SECRET[:16] + bytes(16)
    for method in ("columns", "identifiers"):
        arguments = ([column], 3) if method == "columns" else ([column],)
        mine = getattr(RowHasher(SECRET), method)(*arguments)
        others = getattr(RowHasher(other), method)(*arguments)
        assert not np.isin(mine, others).any()


def test_an_empty_record_has_the_sip_hash_of_zero():
    pa = pytest.importorskip("pyarrow")
    hashes = RowHasher(SECRET).columns([pa.array([""])], 1)
    k0 = int.from_bytes(SECRET[16:24], "little")
    k1 = int.from_bytes(SECRET[24:32], "little")
    assert int(hashes[0]) == sip_13(0, k0, k1)
