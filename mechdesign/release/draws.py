"""Random numbers that belong to records: one key and one record always give the same number.

The number of a record depends on the key and on what identifies the record alone: its row number,
or the text of an identifier column. So a job that is resumed, split, reordered or run on a cluster
draws the same for each record as one run on one machine.

A `Key` gives keys for single purposes (`Key.derived`): the channel, the step of its draw. The
records of a batch (`RowNumbers`, `NumberedRecords`, `Identifiers`) make `Draws` from such a key,
which give one 64-bit word for each record, and from it a uniform integer below a bound:

    row number r      word r mod 2 of block floor(r / 2) of AES-256 in counter mode
    identifier t      BLAKE2b of t under the key

For example, row 5 has the second word of block 2, wherever its batch begins.

*Sampling* from integer rows is exact. An output y is drawn for an input x by comparing a uniform
integer u in [0, total of row x) with the cumulative integers of row x: P(y | x) is ``rows[x][y] /
total`` exactly. No floating point anywhere. For example, with the row (3, 0, 5) over 8 the
cumulated integers are 3 and 8: u = 0, 1, 2 give the output 0, and u = 3, .., 7 the output 2.

Most draws need no search. A guide table cuts [0, total) into equal buckets, and has for each
row and bucket the output, if all of the bucket leads to one; only the other buckets are searched by
bisection.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import quoted
from mechdesign.formats import _rowhash
from mechdesign.formats.arrow_arrays import arrow_integers, arrow_offsets, arrow_texts

Words = NDArray[np.uint64]

KEY_BYTES = 32
"""Length of a key: AES-256."""

ROWS = "rows"
IDENTIFIERS = "identifiers"

_BLOCK = 16
"""Bytes of a block of AES."""

_WORD_BYTES = 8
_WORDS_PER_BLOCK = 2

_PERSON = 16
"""Bytes of the personalisation of BLAKE2b."""


class Key:
    """A secret of 32 bytes from which all draws of a job follow; with it a release can be undone.

    Its bytes appear neither in its `repr` nor in any message.

    Parameters
    ----------
    secret : bytes

    Raises
    ------
    InputError
        If it has another length.
    """

    __slots__ = ("secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise InputError(f"a key has {KEY_BYTES} bytes; make one with Key.fresh()")
        self.secret = bytes(secret)

    def __repr__(self) -> str:
        return "Key(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and secrets.compare_digest(
            self.secret, other.secret
        )

    def __hash__(self) -> int:
        return hash(self.secret)

    @classmethod
    def fresh(cls) -> Key:
        """A new key from the operating system's cryptographic generator."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def insecure(cls, seed: int) -> Key:
        """A key made from a number, for tests and demonstrations only: a guess undoes a release."""
        text = f"mechdesign insecure seed {int(seed)}"
        return cls(hashlib.sha256(text.encode()).digest())

    def derived(self, *labels: str) -> Key:
        """A key for one purpose: keyed BLAKE2b of the labels.

        It discloses nothing of this key or of keys for other purposes.
        """
        digest = hashlib.blake2b(
            key=self.secret, digest_size=KEY_BYTES, person=b"mechdesign key"
        )
        # With its length before every label, ("ab", "c") and ("a", "bc") are different purposes.
        for text in map(str.encode, labels):
            digest.update(len(text).to_bytes(_WORD_BYTES, "big") + text)
        return Key(digest.digest())


@dataclass(frozen=True)
class RowNumbers:
    """The records `first`, `first` + 1, .. of a data set, counted from 0."""

    kind: ClassVar[str] = ROWS
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def source(self, key: Key) -> Draws:
        """AES-256 in counter mode: the word at the place of the row number."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        def words(attempt: int, at: Integers) -> Words:
            """The words of the records at positions `at` of the batch."""
            if attempt or not len(at):
                return words_at(_attempt(key, attempt), at + self.first)
            # First words are asked for in runs, which one stream gives faster.
            first = self.first + int(at[0])
            # A block has the words of two rows; a run may begin with the second of them.
            block = (first // _WORDS_PER_BLOCK).to_bytes(_BLOCK, "big")
            stream = Cipher(algorithms.AES(key.secret), modes.CTR(block)).encryptor()
            stream.update(bytes(_WORD_BYTES * (first % _WORDS_PER_BLOCK)))
            return np.frombuffer(
                stream.update(bytes(_WORD_BYTES * len(at))), dtype="<u8"
            )

        return Draws(self.count, words)


@dataclass(frozen=True)
class NumberedRecords:
    """Records with any row numbers in any order; each has the word of `RowNumbers`."""

    kind: ClassVar[str] = ROWS
    numbers: Integers

    def __post_init__(self) -> None:
        numbers = np.asarray(self.numbers)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise InputError("row numbers must be integers, one for each record")
        if numbers.size and (int(numbers.min()) < 0 or int(numbers.max()) >= 2**63):
            raise InputError("row numbers must lie in [0, 2^63)")
        object.__setattr__(self, "numbers", numbers.astype(np.int64, copy=False))

    def __len__(self) -> int:
        return len(self.numbers)

    def source(self, key: Key) -> Draws:
        """The words of the counter mode at the given places."""
        return Draws(
            len(self),
            lambda attempt, at: words_at(_attempt(key, attempt), self.numbers[at]),
        )


@dataclass(frozen=True)
class Identifiers:
    """Records identified by a column, or several crossed ones, of texts or as pyarrow arrays."""

    kind: ClassVar[str] = IDENTIFIERS
    columns: Sequence[Any]

    def __post_init__(self) -> None:
        if not self.columns or len(set(map(len, self.columns))) > 1:
            raise InputError(
                "identifiers need at least one column, and columns of the same length"
            )
        arrays: list[Any] = []
        for column in self.columns:
            # Arrow arrays have buffers; everything else is a sequence of texts.
            if hasattr(column, "buffers"):
                arrays.append(column)
            else:
                arrays.append(arrow_texts(column))
        object.__setattr__(self, "columns", arrays)

    def __len__(self) -> int:
        return len(self.columns[0])

    def source(self, key: Key) -> Draws:
        """Keyed BLAKE2b of the identifier.

        Of crossed columns every part has its length before it: ("ab", "c") is not ("a", "bc").
        """

        def words(attempt: int, at: Integers) -> Words:
            """The words of the records at positions `at` of the batch."""
            result = np.empty(len(at), np.uint64)
            texts: list[Any] = []
            for column in self.columns:
                if attempt:
                    # Rejected words are few and anywhere.
                    texts.append(column.take(arrow_integers(at)))
                elif len(at):
                    # First words are asked for in runs, which need no copy.
                    texts.append(column[int(at[0]) : int(at[-1]) + 1])
                else:
                    texts.append(column)
            secret = _attempt(key, attempt).secret
            # The personalisation keeps these words apart from all other uses of BLAKE2b here.
            person = b"mechdesign id".ljust(_PERSON, b"\0")
            _rowhash.words(result, secret, person, [*map(arrow_offsets, texts)])
            return result

        return Draws(len(self), words)

    def named(self, position: int) -> str:
        """The identifier of one record, for a message."""
        return quoted(", ".join(column[position].as_py() for column in self.columns))

    def some(self, at: Integers) -> Identifiers:
        """Those at some positions."""
        return Identifiers([column.take(arrow_integers(at)) for column in self.columns])


Records: TypeAlias = RowNumbers | NumberedRecords | Identifiers
"""Identification of the records of a batch; `source` gives their integers, in order."""


class Draws:
    """Integers for records in their order, one for each.

    Made by `Records.source` for one batch and one purpose; `below` is then called for its records,
    some at a time, from the first to the last.

    Parameters
    ----------
    count : int
        The number of records.
    words : callable
        `words(attempt, at)` returns 64-bit words for the records at positions `at`, other ones for
        every attempt.
    """

    def __init__(self, count: int, words: Callable[[int, Integers], Words]) -> None:
        self._count = count
        self._words = words
        self._next = 0

    def below(self, bound: int, size: int) -> Integers:
        """Independent integers for the next `size` records, uniform in [0, bound); bound <= 2**62.

        For a power of two they are the leading bits. Other bounds reject the words of the last,
        incomplete multiple of `bound` below 2**64. The record of a rejected word takes its own next
        word, so the numbers of other records do not change.
        """
        first, words = self._next_words(size)
        if bound == 1:
            return np.zeros(size, dtype=np.int64)
        if bound & (bound - 1) == 0:
            # bound = 2^b: the b leading bits. Most channels have the denominator 2^53.
            return (words >> np.uint64(65 - bound.bit_length())).view(np.int64)
        return self._modulo(words, np.uint64(bound), first)

    def below_each(self, bounds: Integers) -> Integers:
        """As `below`, with a bound in [1, 2**62] for each of the next records."""
        first, words = self._next_words(len(bounds))
        return self._modulo(words, bounds.astype(np.uint64), first)

    def _next_words(self, size: int) -> tuple[int, Words]:
        """The position of the next record, and the first words of the next `size` records."""
        first = self._next
        self._next += size
        if self._next > self._count:
            raise InputError(
                f"there are {self._count} records, and numbers for {self._next} were asked for"
            )
        return first, self._words(0, np.arange(first, self._next, dtype=np.int64))

    def _modulo(self, words: Words, bounds: Any, first: int) -> Integers:
        """Words modulo their bounds, one for all or one for each; those beyond the last whole
        multiple of the bound below 2**64 are drawn anew.
        """
        largest = np.uint64(2**64 - 1)
        # 2**64 modulo the bound: so many words are too many. Words up to the limit are uniform
        # modulo the bound, exactly.
        excess = (largest % bounds + np.uint64(1)) % bounds
        limits = np.broadcast_to(largest - excess, words.shape)
        rejected = np.flatnonzero(words > limits)
        attempt = 0
        if rejected.size:
            words = words.copy()
        while rejected.size:
            attempt += 1
            words[rejected] = self._words(attempt, rejected + first)
            rejected = rejected[words[rejected] > limits[rejected]]
        return (words % bounds).view(np.int64)


def records_of(
    identity: Sequence[str] | None, first_row: int, count: int
) -> RowNumbers | Identifiers:
    """What tells `count` records apart: a text for each, or their row numbers from the first on."""
    if identity is None:
        return RowNumbers(first_row, count)
    return Identifiers([identity_of(identity, count)])


def identity_of(identity: Sequence[str], count: int) -> list[str]:
    """The texts that identify `count` records; refuses another number of them."""
    texts = list(identity)
    if len(texts) != count:
        raise InputError(
            f"the identity needs one entry for each record ({count}), and has {len(texts)}"
        )
    return texts


def words_at(key: Key, numbers: Integers) -> Words:
    """The words of AES-256 in counter mode at any places; a block has those of two rows."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    blocks = np.zeros((len(numbers), _WORDS_PER_BLOCK), dtype=">u8")
    # The counter is the row number halved, as a 128-bit big-endian integer of which 64 bits
    # suffice.
    blocks[:, 1] = numbers >> 1
    # A counter block is a fresh nonce, so ECB of the counters is counter mode, with the
    # order left free.
    encryptor = Cipher(algorithms.AES(key.secret), modes.ECB()).encryptor()
    words = np.frombuffer(encryptor.update(blocks.tobytes()), dtype="<u8").reshape(
        -1, _WORDS_PER_BLOCK
    )
    return words[np.arange(len(numbers)), numbers & 1]


def _attempt(key: Key, attempt: int) -> Key:
    """The key of a record's first word (attempt 0), or of a further one after a rejection."""
    if attempt == 0:
        return key
    return key.derived("attempt", str(attempt))


# ----------------------------------------------------------------------------- sampling

CHUNK = 1 << 16
"""Records drawn at a time: the arrays of one chunk stay in the processor's cache."""

GUIDE_ENTRIES = 1 << 18
"""Entries of the guide table over all rows (1 MB): it stays in cache. Larger ones save few
searches.
"""

GUIDE_BITS = range(4, 11)
"""Leading bits of u that index the guide table; more than ten save nothing."""


class Sampler:
    """Draws outputs for codes of inputs; made once per channel.

    Parameters
    ----------
    rows : sequence of sequences of int, or IntegerRows
        The integers of every row over its outputs.
    totals : int or sequence of int
        The sum of each row, at most 2^62; one number where all rows have the same sum.

    Raises
    ------
    InputError
        If a row has another sum.
    """

    def __init__(
        self, rows: Sequence[Sequence[int]], totals: int | Sequence[int]
    ) -> None:
        integers = IntegerRows.of(rows)
        wanted = [totals] * len(integers) if isinstance(totals, int) else totals
        for x, (total, right) in enumerate(
            zip(integers.row_sums(), wanted, strict=True)
        ):
            if total != right:
                raise InputError(
                    f"row {x} sums to {total}, not to the denominator {right}"
                )
        # One bound for all records is drawn faster than a bound for each of them.
        self._common: int | None = None
        if len(set(wanted)) == 1:
            self._common = wanted[0]
        self._totals = np.array(wanted, dtype=np.int64)
        self._starts = integers.indptr
        self._outputs = integers.indices
        # Cumulated integers of each row, over its positive entries. The running sum over all rows
        # may overflow; differences modulo 2**64 are right, because rows are below 2**62.
        lengths = np.diff(integers.indptr)
        running = np.cumsum(integers.values.view(np.uint64), dtype=np.uint64)
        before = np.concatenate([np.zeros(1, np.uint64), running])[integers.indptr[:-1]]
        self._above = (running - np.repeat(before, lengths)).view(np.int64)
        # Bisection of the longest row; shorter rows have converged before.
        self._steps = int(lengths.max(initial=1) - 1).bit_length()
        # Every row gets the same number of buckets, so that a bucket is found by one multiplication
        # and one shift; channels with many rows get coarser ones.
        bits = (GUIDE_ENTRIES // max(1, len(integers))).bit_length() - 1
        bits = min(max(bits, GUIDE_BITS.start), GUIDE_BITS.stop - 1)
        # The bucket of u in row x is u >> shift[x]; rows of other totals have other shifts.
        lengths_in_bits = [(total - 1).bit_length() for total in wanted]
        self._shifts = np.array(
            [max(0, length - bits) for length in lengths_in_bits], dtype=np.int64
        )
        self._buckets = int(((self._totals - 1) >> self._shifts).max()) + 1

    @cached_property
    def _guide(self) -> NDArray[np.int32]:
        """For each row and bucket the output of all of it, or -1 if several."""
        rows = len(self._totals)
        # Both ends of a bucket lead to the same output exactly if all of the bucket does, because
        # cumulated integers grow along a row.
        x = np.repeat(np.arange(rows, dtype=np.int64), self._buckets)
        shifts = self._shifts[x]
        # Buckets beyond the total of a row are never asked for.
        ends = self._totals[x] - 1
        places = np.tile(np.arange(self._buckets, dtype=np.int64), rows)
        first = np.minimum(places << shifts, ends)
        last = np.minimum(first + ((1 << shifts) - 1), ends)
        low = self._search(x, first)
        high = self._search(x, last)
        return np.where(low == high, low, -1).astype(np.int32)

    def _search(self, codes: Integers, numbers: Integers) -> Integers:
        """The output y with cumulated(y - 1) <= u < cumulated(y), by bisection in each row."""
        low = self._starts[codes]
        high = self._starts[codes + 1] - 1
        # The invariant: the answer lies in [low, high]. All records bisect at once, also those that
        # have converged, for which `low < high` stops the lower end.
        for _ in range(self._steps):
            middle = (low + high) >> 1
            right = self._above[middle] <= numbers
            low = np.where(right & (low < high), middle + 1, low)
            high = np.where(right, high, middle)
        return self._outputs[low]

    def outputs(self, codes: Integers, numbers: Integers) -> NDArray[np.int32]:
        """The output for each input code and uniform integer."""
        # Most integers fall into a bucket of one output; only the others are searched.
        shift = self._shifts[0] if self._common is not None else self._shifts[codes]
        result = self._guide[codes * self._buckets + (numbers >> shift)]
        split = np.flatnonzero(result < 0)
        if split.size:
            result[split] = self._search(codes[split], numbers[split])
        return result

    def draw(self, codes: Integers, source: Draws) -> NDArray[np.int32]:
        """One independent output for each input code; always one integer of `source` per code."""
        result = np.empty(len(codes), dtype=np.int32)
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK].astype(np.int64, copy=False)
            result[start : start + CHUNK] = self.outputs(
                part, self._below(part, source)
            )
        return result

    def _below(self, codes: Integers, source: Draws) -> Integers:
        """A uniform integer below the total of its row for each record."""
        if self._common is not None:
            return source.below(self._common, len(codes))
        return source.below_each(self._totals[codes])
