from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from mechdesign.core.errors import InputError
from mechdesign.formats import _rowhash
from mechdesign.release import draws
from mechdesign.release.draws import (
    Identifiers,
    Key,
    NumberedRecords,
    RowNumbers,
    words_at,
)

D = 2**53
KEY = Key(bytes(range(32)))
AWKWARD = 2**62 - 1
"""A bound for which one word in four is rejected."""

REJECTION = 1e-6
"""Level of the goodness-of-fit tests; the keys are fixed, so a sound generator passes for good."""


def block_by_hand(key, number):
    """The counter block of a row number, as the standard has it, and the row's half of it."""
    encryptor = Cipher(algorithms.AES(key.secret), modes.ECB()).encryptor()
    block = encryptor.update((number // 2).to_bytes(16, "big"))
    return int.from_bytes(block[8 * (number % 2) :][:8], "little")


@given(st.integers(0, 2**40), st.integers(0, 40))
def test_a_row_has_the_word_of_its_counter_block(first, size):
    words = words_at(KEY, np.arange(first, first + size))
    assert words.tolist() == [block_by_hand(KEY, first + i) for i in range(size)]
    drawn = RowNumbers(first, size).source(KEY).below(2**62, size)
    assert drawn.tolist() == [word >> 2 for word in words.tolist()]


@given(
    st.sampled_from([1, 2, 12, D, AWKWARD, 2**62]),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 30), min_size=1, max_size=5),
)
def test_any_partition_gives_the_draws_of_the_whole(bound, first, sizes):
    total = sum(sizes)
    whole = RowNumbers(first, total).source(KEY).below(bound, total).tolist()
    source = RowNumbers(first, total).source(KEY)
    assert [n for size in sizes for n in source.below(bound, size).tolist()] == whole
    starts = np.cumsum([0, *sizes[:-1]])
    alone = [
        RowNumbers(first + start, size).source(KEY).below(bound, size)
        for start, size in zip(starts.tolist(), sizes, strict=True)
    ]
    assert np.concatenate(alone).tolist() == whole


@given(st.sampled_from([1, 12, D, AWKWARD]), st.permutations(range(25)))
def test_numbered_records_draw_what_their_rows_draw(bound, numbers):
    rows = RowNumbers(0, 25).source(KEY).below(bound, 25)
    numbered = NumberedRecords(np.array(numbers)).source(KEY)
    drawn = np.concatenate([numbered.below(bound, 10), numbered.below(bound, 15)])
    assert drawn.tolist() == rows[numbers].tolist()


@given(
    st.sampled_from([12, D, AWKWARD]),
    st.lists(st.text(max_size=40), unique=True, min_size=1, max_size=30),
)
def test_an_identifier_draws_the_same_in_any_company(bound, texts):
    together = Identifiers([texts]).source(KEY).below(bound, len(texts)).tolist()
    assert [
        Identifiers([[text]]).source(KEY).below(bound, 1)[0] for text in texts
    ] == together


def test_an_identifier_is_hashed_with_the_key():
    digest = hashlib.blake2b(
        "Å1".encode(), key=KEY.secret, digest_size=8, person=b"mechdesign id"
    ).digest()
    assert (
        Identifiers([["Å1"]]).source(KEY).below(2**62, 1)[0]
        == int.from_bytes(digest, "little") >> 2
    )


def test_crossed_identifiers_are_told_apart_where_their_joined_texts_are_equal():
    columns = [["ab", "a", "", "abc"], ["c", "bc", "abc", ""]]
    assert len(set(Identifiers(columns).source(KEY).below(2**62, 4).tolist())) == 4


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**31, D, AWKWARD, 2**62])
@pytest.mark.parametrize("kind", ["rows", "numbers", "identifiers"])
def test_integers_are_uniform_below_the_bound(bound, kind):
    n = 40_000
    records = {
        "rows": RowNumbers(5, n),
        "numbers": NumberedRecords(np.arange(n)[::-1].copy()),
        "identifiers": Identifiers([list(map(str, range(n)))]),
    }[kind]
    numbers = records.source(KEY).below(bound, n)
    assert numbers.dtype == np.int64
    assert len(numbers) == n == len(records)
    assert numbers.min() >= 0
    assert numbers.max() < bound
    cells = min(bound, 16)
    counts = np.bincount(
        (numbers.astype(object) * cells // bound).astype(np.int64), minlength=cells
    )
    if cells > 1:
        widths = np.array(
            [
                -(-(i + 1) * bound // cells) - -(-i * bound // cells)
                for i in range(cells)
            ]
        )
        expected = n * (widths / bound)
        assert (
            chi2.sf(((counts - expected) ** 2 / expected).sum(), cells - 1) > REJECTION
        )


def test_a_rejected_word_is_replaced_by_the_next_one_of_its_record(monkeypatch):
    """The words at and above the largest multiple of the bound are replaced, the others stay."""
    multiple = 2**64 // AWKWARD * AWKWARD
    asked = []

    def more(attempt, at):
        asked.append((attempt, at.tolist()))
        return np.array(
            [[7, multiple + 1], [AWKWARD + 3]][attempt - 1], dtype=np.uint64
        )

    words = np.array([0, multiple, 2**64 - 1, multiple - 1], dtype=np.uint64)
    source = draws.Draws(4, lambda attempt, at: more(attempt, at) if attempt else words)
    assert source.below(AWKWARD, 4).tolist() == [0, 7, 3, AWKWARD - 1]
    assert asked == [(1, [1, 2]), (2, [2])]
    assert words.tolist() == [0, multiple, 2**64 - 1, multiple - 1]


def test_derived_keys_are_different_and_repeat():
    keys = [
        KEY,
        KEY.derived(),
        KEY.derived("a"),
        KEY.derived("a", "b"),
        KEY.derived("ab"),
        KEY.derived("b", "a"),
    ]
    assert len({key.secret for key in keys}) == len(keys)
    assert KEY.derived("a", "b") == KEY.derived("a", "b")
    assert KEY.derived("a") != Key.fresh().derived("a")


def test_a_fresh_key_comes_from_secrets_and_a_seeded_one_does_not(monkeypatch):
    assert Key.fresh() != Key.fresh()
    asked = []

    def token_bytes(size):
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr("mechdesign.release.draws.secrets.token_bytes", token_bytes)
    assert Key.fresh() == Key(bytes(32))
    assert Key.insecure(1) == Key.insecure(1) != Key.insecure(2)
    assert asked == [32]


def test_a_key_does_not_show_itself():
    assert repr(KEY) == str(KEY) == f"{KEY}" == "Key(hidden)"


def test_refusals():
    with pytest.raises(
        InputError, match=r"a key has 32 bytes; make one with Key\.fresh"
    ):
        Key(b"short")
    with pytest.raises(
        InputError, match="row numbers must be integers, one for each record"
    ):
        NumberedRecords(np.array([0.5]))
    for wrong in ([-1], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(InputError, match=r"row numbers must lie in \[0, 2\^63\)"):
            NumberedRecords(np.array(wrong))
    with pytest.raises(
        InputError, match="at least one column, and columns of the same length"
    ):
        Identifiers([["a"], ["b", "c"]])
    with pytest.raises(
        InputError, match="there are 2 records, and numbers for 3 were asked for"
    ):
        Identifiers([["a", "b"]]).source(KEY).below(2, 3)


def blake_by_hand(parts):
    """Keyed BLAKE2b of a text; of crossed ones of their texts, each with its length in 8 bytes
    before it.
    """
    message = (
        b"".join(len(each).to_bytes(8, "big") + each for each in parts)
        if len(parts) > 1
        else parts[0]
    )
    digest = hashlib.blake2b(
        message, key=KEY.secret, digest_size=8, person=b"mechdesign id"
    ).digest()
    return int.from_bytes(digest, "little")


@given(
    st.lists(
        st.lists(st.text(max_size=150), min_size=2, max_size=2), min_size=1, max_size=5
    ),
    st.booleans(),
)
def test_words_of_identifiers_are_those_of_hashlib(rows, crossed):
    columns = [list(column) for column in zip(*rows, strict=True)][: 1 + crossed]
    drawn = Identifiers(columns).source(KEY).below(2**62, len(rows)).tolist()
    texts = zip(
        *([text.encode() for text in column] for column in columns), strict=True
    )
    assert drawn == [blake_by_hand(parts) >> 2 for parts in texts]


def words_of(columns, lanes):
    """What the kernel gives for columns of bytes, at most so many at once."""
    packed = [
        (np.cumsum([0, *map(len, column)], dtype=np.int64), b"".join(column))
        for column in columns
    ]
    found = np.zeros(len(columns[0]), np.uint64)
    _rowhash.words(found, KEY.secret, b"mechdesign id".ljust(16, b"\0"), packed, lanes)
    return found.tolist()


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.tuples(*[st.binary(max_size=300) | st.binary(max_size=20)] * width),
            max_size=21,
        )
    )
)
def test_messages_that_are_hashed_at_once_get_the_words_of_hashlib(rows):
    """Many, few and none at once, short ones among those of several blocks, whatever this processor
    has.
    """
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]]
    for lanes in (1, 4, 8):
        assert words_of(columns, lanes) == [blake_by_hand(parts) for parts in rows]


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_messages_of_all_lengths_get_the_words_of_hashlib(lanes):
    """Also side by side, where each follows a longer or shorter one in its lane, and in batches of
    all sizes.
    """
    rng = np.random.default_rng(5)
    texts = [rng.bytes(size) for size in [*range(301), *rng.permutation(140).tolist()]]
    assert words_of([texts], lanes) == [blake_by_hand([text]) for text in texts]
    assert words_of([texts, texts[::-1]], lanes) == [
        blake_by_hand(parts) for parts in zip(texts, texts[::-1], strict=True)
    ]
    for count in range(20):
        assert words_of([texts[40 : 40 + count]], lanes) == list(
            map(blake_by_hand, zip(texts[40 : 40 + count]))
        )


BOUNDS = [1, 2, 3, 10, 2**31, D, AWKWARD, 2**62]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("kind", ["rows", "numbers", "identifiers"])
def test_bounds_that_are_all_the_same_take_the_words_modulo_the_bound(bound, kind):
    """`below_each` rejects as `below` does; of a power of two it takes the last bits."""
    n = 2000
    records = {
        "rows": RowNumbers(5, n),
        "numbers": NumberedRecords(np.arange(n)[::-1].copy()),
        "identifiers": Identifiers([list(map(str, range(n)))]),
    }[kind]
    each = records.source(KEY).below_each(np.full(n, bound))
    assert each.dtype == np.int64
    alike = records.source(KEY).below(bound, n)
    if bound & (bound - 1):
        assert each.tolist() == alike.tolist()
        return
    words = records.source(KEY)._words(0, np.arange(n))
    assert each.tolist() == [int(word) % bound for word in words]
    assert alike.tolist() == [int(word) * bound >> 64 for word in words]


def test_integers_are_uniform_below_bounds_of_their_own():
    """Every bound by itself, where the bounds of neighbours differ."""
    n = 40_000
    bounds = np.resize(np.array(BOUNDS, dtype=np.int64), n)
    numbers = RowNumbers(0, n).source(KEY).below_each(bounds)
    assert (numbers >= 0).all()
    assert (numbers < bounds).all()
    for bound in BOUNDS[1:]:
        own = numbers[bounds == bound]
        cells = min(bound, 16)
        places = (own.astype(object) * cells // bound).astype(np.int64)
        counts = np.bincount(places, minlength=cells)
        widths = np.array(
            [
                -(-(i + 1) * bound // cells) - -(-i * bound // cells)
                for i in range(cells)
            ]
        )
        expected = len(own) * (widths / bound)
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert chi2.sf(statistic, cells - 1) > REJECTION


def test_every_word_of_a_short_range_is_met_equally_often():
    """By enumeration: of all words below 2^64 that lead to a bound, a multiple is used.

    Words are taken as 0, 1, .. and as the last ones before 2^64, which the bound must reject.
    """
    bounds = np.array([3, 5, 7, 10], dtype=np.int64)
    for bound in bounds.tolist():
        multiple = 2**64 // bound * bound
        last = list(range(multiple - bound, 2**64))
        used = []

        def words(attempt, at, last=last, bound=bound):
            if attempt:
                # A record whose word was rejected is known by its next one.
                return np.full(len(at), bound - 1, dtype=np.uint64)
            return np.array(last, dtype=np.uint64)

        source = draws.Draws(len(last), words)
        found = source.below_each(np.full(len(last), bound)).tolist()
        used += found[:bound]
        assert used == list(range(bound))
        assert found[bound:] == [bound - 1] * (len(last) - bound)


def test_rejected_words_are_replaced_by_their_own_bound():
    multiple = 2**64 // AWKWARD * AWKWARD
    words = np.array([multiple, 2**64 - 1, 5], dtype=np.uint64)
    asked = []

    def more(attempt, at):
        asked.append((attempt, at.tolist()))
        return np.array([9], dtype=np.uint64)

    source = draws.Draws(3, lambda attempt, at: more(attempt, at) if attempt else words)
    bounds = np.array([AWKWARD, 2**62, 3], dtype=np.int64)
    assert source.below_each(bounds).tolist() == [9, 2**62 - 1, 2]
    assert asked == [(1, [0])]


def test_more_bounds_than_records_are_refused():
    with pytest.raises(InputError, match="there are 3 records, and numbers for 4"):
        RowNumbers(0, 3).source(KEY).below_each(np.ones(4, dtype=np.int64))
