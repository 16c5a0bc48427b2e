"""Exact draws from integer rows with cryptographic randomness.

An output y is drawn for an input x by comparing a uniform integer u in [0, denominator) with the
cumulative integers of row x: P(y | x) is ``rows[x][y] / denominator`` exactly. No floating point anywhere.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.frames import codes_of, rebuild, values_of
from mechdesign.integer_rows import IntegerRows
from mechdesign.variable import Variable

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

CHUNK = 1 << 16
"""Records drawn at a time: the arrays of one chunk stay in the processor's cache."""

GUIDE_ENTRIES = 1 << 18
"""Entries of the guide table over all rows (1 MB): it stays in cache, and a larger one saves few searches."""

GUIDE_BITS = range(4, 11)
"""Leading bits of u that the guide table looks at: at least a few, and more than ten save nothing."""


class ChannelLike(Protocol):
    """What a draw needs to know of a channel."""

    @property
    def useful(self) -> Variable:
        """The inputs, one per row."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """One label per column of the rows."""
        ...

    @property
    def rows(self) -> Sequence[Sequence[int]]:
        """Non-negative integers, each row summing to the denominator."""
        ...

    @property
    def denominator(self) -> int:
        """Common denominator of the rows, at most 2**62."""
        ...


class Randomness(Protocol):
    """A source of uniform integers."""

    def below(self, bound: int, size: int) -> Integers:
        """`size` independent integers, uniform in [0, bound)."""
        ...


class CipherStream:
    """Uniform integers from AES-256 in counter mode.

    The key comes from the operating system (`secrets`) and is never reused, so the stream cannot be told from
    true randomness and the draws of one release say nothing of another.

    Parameters
    ----------
    insecure_seed : int, optional
        For tests only: a key made from this number. Whoever knows it can repeat every draw and undo the channel.
    """

    def __init__(self, insecure_seed: int | None = None) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if insecure_seed is None:
            key = secrets.token_bytes(32)
        else:
            key = hashlib.sha256(f"mechdesign insecure seed {int(insecure_seed)}".encode()).digest()
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, size: int) -> Words:
        """`size` uniform 64-bit words."""
        return np.frombuffer(self._cipher.update(bytes(8 * size)), dtype="<u8")

    def below(self, bound: int, size: int) -> Integers:
        """`size` independent integers, uniform in [0, bound), for 1 <= bound <= 2**62.

        A power of two takes the leading bits of one word each; other bounds reject the words of the last,
        incomplete multiple of `bound` below 2**64.
        """
        if bound == 1:
            return (self.words(size) & np.uint64(0)).view(np.int64)
        if bound & (bound - 1) == 0:
            return (self.words(size) >> np.uint64(65 - bound.bit_length())).view(np.int64)
        limit = np.uint64(2**64 // bound * bound - 1)
        accepted: list[Words] = []
        wanted = size
        while wanted:
            words = self.words(wanted)
            words = words[words <= limit]
            accepted.append(words)
            wanted -= len(words)
        return (np.concatenate([np.zeros(0, np.uint64), *accepted]) % np.uint64(bound)).view(np.int64)


class Sampler:
    """Draws outputs for codes of inputs; made once per channel.

    Parameters
    ----------
    rows : |X| sequences of non-negative integers
        Each summing to `denominator`.
    denominator : int
        At most 2**62.

    Raises
    ------
    InputError
        If a row does not sum to the denominator.
    """

    def __init__(self, rows: Sequence[Sequence[int]], denominator: int) -> None:
        integers = IntegerRows.of(rows)
        for x, total in enumerate(integers.row_sums()):
            if total != denominator:
                raise InputError(f"row {x} sums to {total}, not to the denominator {denominator}")
        self.denominator = denominator
        self._starts = integers.indptr
        self._outputs = integers.indices
        self._above = _cumulated(integers)
        self._steps = int(np.diff(integers.indptr).max(initial=1) - 1).bit_length()
        bits = (GUIDE_ENTRIES // max(1, len(integers))).bit_length() - 1
        bits = min(max(bits, GUIDE_BITS.start), GUIDE_BITS.stop - 1)
        self._shift = max(0, (denominator - 1).bit_length() - bits)
        self._buckets = ((denominator - 1) >> self._shift) + 1
        self._guide = self._make_guide(len(integers))

    def _make_guide(self, rows: int) -> NDArray[np.int32]:
        """For each row and each block of 2**shift integers, the output that has all of it, or -1."""
        x = np.repeat(np.arange(rows, dtype=np.int64), self._buckets)
        first = np.tile(np.arange(self._buckets, dtype=np.int64) << self._shift, rows)
        last = np.minimum(first + ((1 << self._shift) - 1), self.denominator - 1)
        low, high = self._search(x, first), self._search(x, last)
        return np.where(low == high, low, -1).astype(np.int32)

    def _search(self, codes: Integers, numbers: Integers) -> Integers:
        """The output y with cumulated(y - 1) <= u < cumulated(y), by bisection in the row of each code."""
        low, high = self._starts[codes], self._starts[codes + 1] - 1
        for _ in range(self._steps):
            middle = (low + high) >> 1
            right = self._above[middle] <= numbers
            low = np.where(right & (low < high), middle + 1, low)
            high = np.where(right, high, middle)
        return self._outputs[low]

    def outputs(self, codes: Integers, numbers: Integers) -> NDArray[np.int32]:
        """The output for each input code and uniform integer.

        Parameters
        ----------
        codes : (n,) integer array
            In [0, |X|).
        numbers : (n,) integer array
            In [0, denominator).
        """
        result = self._guide[codes * self._buckets + (numbers >> self._shift)]
        split = np.flatnonzero(result < 0)
        if split.size:
            result[split] = self._search(codes[split], numbers[split])
        return result

    def draw(self, codes: Integers, source: Randomness) -> NDArray[np.int32]:
        """One independent output for each input code; always one integer of `source` per code."""
        result = np.empty(len(codes), dtype=np.int32)
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK]
            result[start : start + CHUNK] = self.outputs(part, source.below(self.denominator, len(part)))
        return result


def _cumulated(rows: IntegerRows) -> Integers:
    """Cumulated integers of each row, over its positive entries (modular sums: rows are below 2**62)."""
    running = np.cumsum(rows.values.view(np.uint64), dtype=np.uint64)
    before = np.concatenate([np.zeros(1, np.uint64), running])[rows.indptr[:-1]]
    return (running - np.repeat(before, np.diff(rows.indptr))).view(np.int64)


def apply_channel(channel: ChannelLike, column: Any, *, insecure_seed: int | None = None) -> Any:
    """Draw an output for every entry of a column, independently; the same kind of column back.

    Parameters
    ----------
    channel : ChannelLike
    column : pandas or polars Series, pyarrow or numpy array, or sequence
        Symbols of X; for crossed columns a frame that has them, or a sequence of tuples.
    insecure_seed : int, optional
        Reproducible draws, for tests only.

    Raises
    ------
    InputError
        On a symbol that the channel does not know, or a missing cell (unless the channel has the empty symbol).
    """
    codes = codes_of(values_of(column, channel.useful), channel.useful)
    drawn = Sampler(channel.rows, channel.denominator).draw(codes, CipherStream(insecure_seed))
    return rebuild(column, drawn.astype(np.int64), channel.outputs, ",".join(channel.useful.columns))
