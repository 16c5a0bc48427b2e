"""Records that share an identifier share a draw: each identifier counts once, and must have one label."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.cells import Encoded

Codes = NDArray[np.int64]

DIGEST_BYTES = 16
"""Length of the digest by which an identifier is remembered: two of a billion are the same with a chance of 10**-21."""

NEW = -1
"""Stands for an identifier that was not seen before; codes are not negative."""


class Identities:
    """Which identifiers were seen, with what; about 150 bytes of memory for each different one."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}

    def first_times(self, cells: Sequence[Encoded], codes: Codes) -> tuple[NDArray[np.bool_], Codes]:
        """Which records are the first with their identifier, and the positions of those that contradict an earlier one.

        Parameters
        ----------
        cells : sequence of Encoded
            The columns of the identifier, of n cells.
        codes : (n,) integer array
            Not negative. What was found of each record: the same for all records of an identifier.
        """
        texts: list[list[str]] = [[*column.texts, ""] for column in cells]
        first = np.zeros(len(codes), dtype=np.bool_)
        other: list[int] = []
        columns: list[list[int]] = [column.codes.tolist() for column in cells]
        found: list[int] = codes.tolist()
        for position, code in enumerate(found):
            digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
            for column, values in zip(columns, texts, strict=True):
                value = values[column[position]].encode()
                digest.update(len(value).to_bytes(8, "big") + value)
            key = digest.digest()
            before = self._seen.setdefault(key, NEW)
            if before == NEW:
                self._seen[key] = code
                first[position] = True
            elif before != code:
                other.append(position)
        return first, np.array(other, dtype=np.int64)
