"""What to publish for records: a channel, a key, and a rule for what the channel does not know.

Files, data frames and clusters all draw here, so the same key and the same record give the same output everywhere.
Records that share an identifier share a draw; where such records have different symbols, their draws would be
correlated, so they are found, within a part of the data and across parts, and refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.numbers import listed, quoted
from mechdesign.formats.cells import Encoded
from mechdesign.release.binned import (
    FORMS,
    LABEL,
    POSTERIOR_DRAW,
    REPRESENTATIVE,
    WITHIN,
    inner_samplers,
    numbers_released,
    symbol_sampler,
)
from mechdesign.release.draws import Identifiers, Key, Records, RowNumbers
from mechdesign.release.policies import (
    REFUSE,
    Policy,
    normalised,
    normalised_cells,
    posterior_sampler,
    sampler_with_policies,
)
from mechdesign.release.sampling import Releasable, Sampler
from mechdesign.tables.columns import MISSING, UNKNOWN, positions_of, rebuild, unknown_at, values_of

REMEMBERED = 1 << 21
"""Different identifiers that are remembered (about 50 MB at worst), so that memory does not grow with the data."""

MERGED = 2
"""A run is merged with the one before unless that is more than this many times as long: few runs, few merges."""

Hashes = NDArray[np.int64]


class Repeats:
    """Which identifiers came with which symbol, by 64-bit hashes of the process: false alarms are not expected."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.full = False
        self._room = remembered
        # Sorted hashes with their codes, long runs first.
        self._runs: list[tuple[Hashes, NDArray[np.int32]]] = []

    def conflict(self, columns: Sequence[Sequence[str]], codes: Integers) -> int | None:
        """Position of a record whose identifier came with another code in an earlier part; remembers this part."""
        parts = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        hashes = np.fromiter(map(hash, parts), dtype=np.int64, count=len(codes))
        hashes, first = np.unique(hashes, return_index=True)
        found = codes[first].astype(np.int32)
        new = np.ones(len(hashes), dtype=np.bool_)
        for known, symbols in self._runs:
            place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            again = known[place] == hashes
            other = np.flatnonzero(again & (symbols[place] != found))
            if other.size:
                return int(first[other[0]])
            new &= ~again
        self._add(hashes[new], found[new])
        return None

    def _add(self, hashes: Hashes, codes: NDArray[np.int32]) -> None:
        self.full = self.full or len(hashes) > self._room
        hashes, codes = hashes[: self._room], codes[: self._room]
        if not len(hashes):
            return
        self._room -= len(hashes)
        while self._runs and len(self._runs[-1][0]) <= MERGED * len(hashes):
            known, symbols = self._runs.pop()
            hashes, codes = np.concatenate([known, hashes]), np.concatenate([symbols, codes])
            order = np.argsort(hashes, kind="stable")
            hashes, codes = hashes[order], codes[order]
        self._runs.append((hashes, codes))


OF_SYMBOLS = (POSTERIOR_DRAW, WITHIN)
"""Forms for which a symbol of X is drawn first."""


class Release:
    """A channel made ready to draw."""

    def __init__(
        self, channel: Releasable, key: Key, *, policy: Policy | None = None, form: str = LABEL
    ) -> None:
        if form not in FORMS:
            raise InputError(f"the form ({quoted(form)}) must be one of {listed(FORMS)}")
        self.channel = channel
        self.policy = policy or Policy()
        self.form = form
        self.digest = channel_digest(channel)
        self._key = key.derived("channel", self.digest)
        self._alphabet = normalised(channel.useful, self.policy.normalise)
        self._sampler = sampler_with_policies(channel, self.policy)
        self._posterior: Sampler | None = None
        self._inner: list[Sampler | None] = []
        self.names: tuple[str, ...] = channel.useful.columns
        self.texts: tuple[tuple[str, ...], ...]
        if form == LABEL:
            self.names, self.texts = (",".join(self.names),), (channel.outputs,)
        elif form == REPRESENTATIVE:
            self.texts = numbers_released(channel, form)
        elif form == POSTERIOR_DRAW:
            self._posterior = posterior_sampler(channel)
            self.texts = tuple(zip(*channel.useful.symbols, strict=True))
        else:
            self._posterior = symbol_sampler(channel)
            self.texts, self._inner = map(tuple, zip(*inner_samplers(channel, form), strict=True))  # type: ignore[assignment]
        self.symbol_counts: Integers = np.zeros(len(channel.useful) + 2, dtype=np.int64)
        self.output_counts: Integers = np.zeros(
            len(channel.useful) if form in OF_SYMBOLS else len(channel.outputs), dtype=np.int64
        )
        self.repeats = Repeats()

    def draw(self, columns: Sequence[Encoded], records: Records) -> list[NDArray[np.int32]]:
        """What to publish for each record: for every released column codes into its `texts`."""
        codes = self._rows(columns)
        drawn = self._sampler.draw(codes, records.source(self._key.derived(records.kind, "output")))
        if isinstance(records, Identifiers):
            self._check_identifiers(codes, records)
        if self._posterior is not None:
            drawn = self._posterior.draw(
                drawn.astype(np.int64), records.source(self._key.derived(records.kind, LABEL))
            )
        self.symbol_counts += np.bincount(codes, minlength=len(self.symbol_counts))
        self.output_counts += np.bincount(drawn, minlength=len(self.output_counts))
        if not self._inner:
            return [drawn] * len(self.texts)
        symbols = drawn.astype(np.int64)
        return [
            drawn
            if inner is None
            else inner.draw(symbols, records.source(self._key.derived(records.kind, WITHIN, name)))
            for inner, name in zip(self._inner, self.names, strict=True)
        ]

    def _check_identifiers(self, codes: Integers, records: Identifiers) -> None:
        """Refuse identifiers that stand for records with different symbols: their draws would depend on each other."""
        first: dict[tuple[str, ...], int] = {}
        conflict = None
        for position, parts in enumerate(zip(*records.columns, strict=True)):
            if codes[first.setdefault(parts, position)] != codes[position]:
                conflict = position
                break
        else:
            conflict = self.repeats.conflict(records.columns, codes)
        if conflict is not None:
            name = ", ".join(column[conflict] for column in records.columns)
            raise InputError(
                f"the identifier {quoted(name)} stands for records with different symbols of "
                f"{quoted(','.join(self.channel.useful.columns))}; name columns that identify a record"
            )

    def _rows(self, columns: Sequence[Encoded]) -> Integers:
        """The row of the sampler for each record: |X| for the missing, |X| + 1 for the unknown."""
        columns = [normalised_cells(column, self.policy.normalise) for column in columns]
        codes = positions_of(columns, self._alphabet)
        if codes.size and codes.min() < 0:
            for code, rule, place in ((MISSING, self.policy.null, 0), (UNKNOWN, self.policy.unknown, 1)):
                at = np.flatnonzero(codes == code)
                if at.size and rule == REFUSE:
                    raise unknown_at(int(at[0]), columns, self._alphabet)
                codes[at] = len(self._alphabet) + place
        return codes


def channel_digest(channel: Releasable) -> str:
    """SHA-256 of what a channel does: its columns, symbols, outputs and rows, and nothing of where it comes from."""
    rows = IntegerRows.of(channel.rows)
    head = {
        "columns": channel.useful.columns,
        "symbols": channel.useful.symbols,
        "outputs": channel.outputs,
        "denominator": channel.denominator,
    }
    digest = hashlib.sha256(canonical(head).encode())
    for array in (rows.indptr, rows.indices, rows.values):
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


def release_column(
    channel: Releasable,
    column: Any,
    *,
    key: Key | None = None,
    identity: Sequence[str] | None = None,
    first_row: int = 0,
    policy: Policy | None = None,
    insecure_seed: int | None = None,
) -> Any:
    """One output for every entry of a column; the same kind of column back. See `channel.Channel.apply`."""
    cells = values_of(column, channel.useful)
    count = len(cells[0])
    if identity is None:
        records: Records = RowNumbers(first_row, count)
    else:
        records = Identifiers([list(identity)])
        if len(records) != count:
            raise InputError(f"the identity has {len(records)} entries and the column {count}")
    release = Release(channel, key_of(key, insecure_seed), policy=policy)
    (drawn,) = release.draw(cells, records)
    return rebuild(column, drawn.astype(np.int64), channel.outputs, release.names[0])


def key_of(key: Key | None, insecure_seed: int | None) -> Key:
    """The key given, that of the seed, or a new one that nobody keeps."""
    if key is not None and not isinstance(key, Key):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"the key must be a Key (Key.fresh(), read_key), not {type(key).__name__}")
    if key is not None and insecure_seed is not None:
        raise InputError("give a key or an insecure seed, not both")
    if key is None:
        return Key.fresh() if insecure_seed is None else Key.insecure(insecure_seed)
    return key


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
        """Which records are the first of their identifier, and positions of those that contradict an earlier one."""
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
