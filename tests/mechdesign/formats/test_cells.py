from __future__ import annotations

import numpy as np
import pyarrow as pa

from mechdesign.formats import _csv
from mechdesign.formats.cells import encode


def test_a_part_of_a_column_has_its_own_texts_alone():
    """Else a row group of n different texts would take n texts for each of its batches."""
    whole = pa.array([f"text {i}" for i in range(1000)]).dictionary_encode()
    part = encode(whole.slice(990), "x")
    assert [part.texts[code] for code in part.codes] == [f"text {i}" for i in range(990, 1000)]
    assert len(part.texts) == 10


def test_texts_whose_hashes_meet_are_told_apart():
    """Hashes that agree in the mark (the upper half) and the first slot, of texts found by turning `hash_text` back."""

    def text_of(number):
        number = (number ^ number >> 32) * pow(0xD6E8FEB86659FD93, -1, 2**64) % 2**64
        number = (number ^ number >> 32) * pow(0x9E3779B97F4A7C15, -1, 2**64) % 2**64
        return (number ^ 8 * 0x0101010101010101).to_bytes(8, "little")

    texts = [text_of(0x123456789ABCDEF0 ^ k << 20) for k in (0, 1, 0, 2, 1)]
    offsets = np.arange(0, 48, 8, dtype=np.int32)
    codes, firsts = (
        np.frombuffer(each, np.int32).tolist() for each in _csv.numbered(offsets, b"".join(texts))
    )
    assert (codes, firsts) == ([0, 1, 0, 2, 1], [0, 1, 3])
