from __future__ import annotations

import pyarrow as pa

from mechdesign.formats.cells import encode


def test_a_part_of_a_column_has_its_own_texts_alone():
    """Else a row group of n different texts would take n texts for each of its batches."""
    whole = pa.array([f"text {i}" for i in range(1000)]).dictionary_encode()
    part = encode(whole.slice(990), "x")
    assert [part.texts[code] for code in part.codes] == [f"text {i}" for i in range(990, 1000)]
    assert len(part.texts) == 10
