"""All sums that independent members of finite sets can have, exactly.

Sums of integers are kept as the bits of one long integer: adding a set to a set is then a few
shifts, because sumsets are made of few runs of consecutive values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LARGEST_SPAN = 1 << 24
"""Widest sumset kept as bits: 2 MB a set; one convolution of two such sets takes about a second."""

LARGEST_SUMSET = 4_000_000
"""Most sums kept as a sorted list where the span is too wide for bits."""

MOST_ADDITIONS = 50_000_000
"""Sums formed in all, repeated ones included, where the span is too wide for bits: about a second."""

MOST_RUNS = 1000
"""More runs than this are added faster by one convolution than by shifts."""

LARGEST_INTEGER = 1 << 61
"""Sums stay below this, so that adding two of them cannot overflow 64 bits."""

Integers = NDArray[np.int64]


def _dilate(bits: int, length: int) -> int:
    """OR of `bits` shifted by 0, 1, .., length."""
    done = 0
    while done < length:
        step = min(done + 1, length - done)
        bits |= bits << step
        done += step
    return bits


def _runs(bits: int) -> list[tuple[int, int]]:
    """The runs of consecutive ones, as (first, last)."""
    array = _positions(bits)
    breaks = np.flatnonzero(np.diff(array) > 1)
    first = array[np.concatenate(([0], breaks + 1))]
    last = array[np.concatenate((breaks, [array.size - 1]))]
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _unpack(bits: int) -> NDArray[np.uint8]:
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little")


def _positions(bits: int) -> Integers:
    return np.flatnonzero(_unpack(bits)).astype(np.int64)


def _add_bits(a: int, b: int) -> int:
    """Bits of the sums of a member of `a` and a member of `b`."""
    if (a & ~(a << 1)).bit_count() < (b & ~(b << 1)).bit_count():
        a, b = b, a
    if (b & ~(b << 1)).bit_count() > MOST_RUNS:
        return _convolve(a, b)
    total = 0
    for first, last in _runs(b):
        total |= _dilate(a, last - first) << first
    return total


def _convolve(a: int, b: int) -> int:
    """As `_add_bits`, by a convolution of zeros and ones.

    A result counts pairs, at most 2^24 of them, and the error of the transform is below
    6 * log2(length) * 2^-53 * 2^24 < 1e-6, so that 1/2 separates none from some beyond doubt.
    """
    size = a.bit_length() + b.bit_length() - 1
    length = 1 << (size - 1).bit_length()
    spectra = [np.fft.rfft(_unpack(bits).astype(np.float64), length) for bits in (a, b)]
    pairs = np.fft.irfft(spectra[0] * spectra[1], length)[:size] > 0.5
    return int.from_bytes(np.packbits(pairs, bitorder="little").tobytes(), "little")


def _multiple_bits(bits: int, count: int) -> int:
    """Bits of the sums of `count` independent members, by repeated doubling."""
    total = 1
    while count:
        if count & 1:
            total = _add_bits(total, bits)
        count >>= 1
        if count:
            bits = _add_bits(bits, bits)
    return total


def _add_lists(a: Integers, b: Integers) -> Integers | None:
    """The sorted distinct sums; `b` is the shorter one, and each of its members makes a sorted run."""
    if a.size * b.size > LARGEST_SUMSET:
        return None
    sums = np.add.outer(b, a).reshape(-1)
    sums.sort(kind="stable")
    return sums[np.concatenate(([True], sums[1:] != sums[:-1]))]


def _by_lists(parts: Sequence[tuple[list[int], int]]) -> Integers | None:
    total: Integers | None = np.zeros(1, dtype=np.int64)
    additions = 0
    for values, count in parts:
        member = np.asarray(values, dtype=np.int64)
        for _ in range(count):
            additions += total.size * member.size
            total = _add_lists(total, member)
            # Without the second limit a million people, each adding little, would take for ever.
            if total is None or additions > MOST_ADDITIONS:
                return None
    return total


def sumset(parts: Sequence[tuple[Sequence[int], int]]) -> Integers | None:
    """The sorted distinct sums of `count` independent members of each set `values`.

    Parameters
    ----------
    parts
        Pairs (values, count) of integers of any size; `values` is not empty.

    Returns
    -------
    (m,) integers, or None if there would be too many of them, or they would be too large.
    """
    base = sum(min(values) * count for values, count in parts)
    offsets = [([v - min(values) for v in sorted(set(values))], count) for values, count in parts]
    offsets = [(values, count) for values, count in offsets if count and len(values) > 1]
    unit = math.gcd(*(v for values, _ in offsets for v in values))
    span = sum(values[-1] * count for values, count in offsets)
    if abs(base) + span > LARGEST_INTEGER:
        return None
    if not unit:
        return np.array([base], dtype=np.int64)
    scaled = [([v // unit for v in values], count) for values, count in offsets]
    if span // unit <= LARGEST_SPAN:
        total = 1
        for values, count in scaled:
            total = _add_bits(total, _multiple_bits(sum(1 << v for v in values), count))
        steps: Integers | None = _positions(total)
    else:
        steps = _by_lists(scaled)
    return None if steps is None else base + steps * unit
