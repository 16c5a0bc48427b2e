"""Which parts of a CSV text are within quotes, found on 64 bytes at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LF, CR = 10, 13

ONE, TOP = np.uint64(1), np.uint64(63)
"""Shifts by one bit, and to or from the other end of a word."""

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
"""A mask as bits, 64 a word, the first one lowest."""


class Misquoted(Exception):
    """There is text after a closing quote, at byte `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(f"byte {position}")
        self.position = position


def bits_of(marks: Mask) -> Words:
    """A mask as bits."""
    bits = np.zeros(-(-len(marks) // 64) * 8, np.uint8)
    bits[: -(-len(marks) // 8)] = np.packbits(marks, bitorder="little")
    return bits.view("<u8")


def outside_quotes(data: Bytes, edges: Words, delimiter: int, quote: int) -> Words:
    """Which bytes are not within quotes (those that open count as within, those that close do not).

    Mostly every odd quote opens (or is the second of two in a cell) and every even one closes (or is the first of
    two). This is certain if each odd one has a delimiter, a line break, a quote or nothing before it, and each even
    one has the same after it. If no quote at all has one of these but a quote before it, none opens. Else the quotes
    are gone through one by one.

    Parameters
    ----------
    data : bytes
    edges : bits
        Delimiters and all bytes of line breaks.

    Raises
    ------
    Misquoted
        If there is text after a closing quote.
    """
    marks = data == quote
    quotes = bits_of(marks)
    inside = _odd(quotes)
    around = edges | quotes
    after = around >> ONE
    after[:-1] |= around[1:] << TOP
    after[-1] |= ONE << np.uint64((len(data) - 1) % 64)  # nothing comes after the last byte
    if not (quotes & ((inside & ~_before(around)) | (~inside & ~after))).any():
        return ~inside
    if not (quotes & _before(edges)).any():
        return np.full_like(quotes, ~np.uint64(0))
    at = np.flatnonzero(marks)
    marks[at] = _turns(data, at, delimiter, quote)
    return ~_odd(bits_of(marks))


def _before(bits: Words) -> Words:
    """For every bit, whether the one before it is set; nothing comes before the first, and that counts as set."""
    before = bits << ONE | ONE
    before[1:] = bits[1:] << ONE | bits[:-1] >> TOP
    return before


def _odd(bits: Words) -> Words:
    """For every bit, whether the number of ones up to it is odd."""
    odd = bits.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        odd ^= odd << np.uint64(shift)
    carried = np.bitwise_xor.accumulate(odd >> TOP)
    odd[1:] ^= np.uint64(0) - carried[:-1]
    return odd


def _turns(data: Bytes, at: Positions, delimiter: int, quote: int) -> Mask:
    """Which of the quotes begin or end quoted text, one after the other; the rest stand for themselves."""
    ends = {LF, CR, delimiter}
    before = data[np.maximum(at - 1, 0)].tolist()
    after = data[np.minimum(at + 1, len(data) - 1)].tolist()
    turns = [False] * len(at)
    inside, doubled = False, False
    for i, position in enumerate(at.tolist()):
        if doubled:
            doubled = False
        elif not inside:
            if position > 0 and before[i] not in ends:
                continue
            inside = True
        elif position + 1 < len(data) and after[i] == quote:
            doubled = True
        elif position + 1 == len(data) or after[i] in ends:
            inside = False
        else:
            raise Misquoted(position + 1)
        turns[i] = True
    return np.array(turns)
