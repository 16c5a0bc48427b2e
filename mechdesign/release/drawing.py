"""What to publish for records: a channel, a key, and a rule for what the channel does not know.

Files, data frames and clusters all draw here, so the same key and the same record give the same output everywhere.
Records that share an identifier share a draw; where such records have different symbols, their draws would be
correlated, so they are found, within a part of the data and across parts, and refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.json_values import canonical
from mechdesign.core.wording import listed, quoted
from mechdesign.formats import _rowhash
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import Hashes, RowHasher
from mechdesign.release import binned, policies
from mechdesign.release.binned import (
    FORMS,
    LABEL,
    POSTERIOR_DRAW,
    REPRESENTATIVE,
    WITHIN,
)
from mechdesign.release.draws import IDENTIFIERS, Identifiers, Key, Records
from mechdesign.release.policies import REFUSE, Policy, normalised, normalised_cells
from mechdesign.release.sampling import Releasable, Sampler
from mechdesign.tables.columns import MISSING, UNKNOWN, positions_of, unknown_at

REMEMBERED = 1 << 22
"""Different identifiers that are remembered (63 MB at worst), so that memory does not grow with the data."""

SLOTS, PART = 1 << 16, 1 << 17
"""Of a table of hashes at its beginning, and of it at a time."""


class Seen:
    """Which identifiers came with which symbol, by 64-bit hashes: false alarms are not expected."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.full = False
        self._room, self._used = remembered, 0
        self._keys, self._codes = np.zeros(SLOTS, np.uint64), np.zeros(SLOTS, np.int32)

    def reserve(self, count: int) -> None:
        """Make an empty table large enough for so many, which come sorted: in a smaller one they crowd in one place."""
        size = max(SLOTS, min(count, self._room) * 5 // 4 + 1)
        self._keys, self._codes = np.zeros(size, np.uint64), np.zeros(size, np.int32)

    def find(
        self, hashes: Hashes, codes: Integers
    ) -> tuple[NDArray[np.bool_], Integers]:
        """Which of the hashes are new, and the codes that the others came with first (else those given)."""
        if not self._used:
            return np.ones(len(hashes), np.bool_), codes
        new, found = self._walk(hashes, codes, -1)
        return new.view(np.bool_), found

    def look(
        self, hashes: Hashes, codes: Integers
    ) -> tuple[NDArray[np.bool_], Integers]:
        """Which records are the first of their identifier, and the codes that all came with first; remembers them."""
        if not self._used and len(hashes) > len(self._keys):
            self.reserve(len(hashes))  # growing would take longer than looking
        new, found = self._walk(hashes, codes, self._room)
        late = np.flatnonzero(new == 2)
        if late.size:  # with no room for them, they are held against each other alone
            self.full = True
            _, at, inverse = np.unique(
                hashes[late], return_index=True, return_inverse=True
            )
            found[late] = codes[late[at]][inverse]
            new[late], new[late[at]] = 0, 1
        return new.view(np.bool_), found

    def entries(self) -> Iterator[tuple[Hashes, Integers]]:
        """The hashes that are remembered, in no order, and their codes, some at a time."""
        keys, codes = self._keys, self._codes
        for part in (slice(first, first + PART) for first in range(0, len(keys), PART)):
            at = keys[part] != 0
            yield keys[part][at], codes[part][at].astype(np.int64)

    def _walk(
        self, hashes: Hashes, codes: Integers, room: int
    ) -> tuple[NDArray[np.uint8], Integers]:
        new, found, at = (
            np.zeros(len(hashes), np.uint8),
            np.zeros(len(hashes), np.int64),
            0,
        )
        hashes, codes = (
            np.ascontiguousarray(hashes),
            np.ascontiguousarray(codes, np.int64),
        )
        while True:
            table, given = (
                (self._keys, self._codes, self._used, room),
                (hashes, codes, new, found, at),
            )
            at, self._used = _rowhash.look(*table, *given)
            if at == len(hashes):
                return new, found
            # The last two sizes at once, for both would be in memory while one is copied to the other.
            old, size, last = copy(self), 4 * len(self._keys), self._room * 5 // 4 + 1
            size = size if 2 * size < last else last
            self._keys, self._codes, self._used = (
                np.zeros(size, np.uint64),
                np.zeros(size, np.int32),
                0,
            )
            for known in old.entries():
                self._walk(*known, self._room)


OF_SYMBOLS = (POSTERIOR_DRAW, WITHIN)
"""Forms for which a symbol of X is drawn first."""

KEEP, REDRAW = "keep", "redraw"
CHANGES = (REFUSE, KEEP, REDRAW)
"""What becomes of a record whose symbol is another one than when it was released before: an error, its old output,
or a draw of its own."""


class Release:
    """A channel made ready to draw."""

    def __init__(
        self,
        channel: Releasable,
        key: Key,
        *,
        policy: Policy | None = None,
        form: str = LABEL,
        changed: str = REFUSE,
    ) -> None:
        if form not in FORMS:
            raise InputError(
                f"the form ({quoted(form)}) must be one of {listed(FORMS)}"
            )
        self.channel = channel
        self.policy = policy or Policy()
        self.form = form
        self.digest = channel_digest(channel)
        self._key = key.derived("channel", self.digest)
        self._alphabet = normalised(channel.useful, self.policy.normalise)
        self._sampler = policies.sampler_with_policies(channel, self.policy)
        self._posterior: Sampler | None = None
        self._inner: list[Sampler | None] = []
        self.names: tuple[str, ...] = channel.useful.columns
        self.texts: tuple[tuple[str, ...], ...]
        if form == LABEL:
            self.names, self.texts = (",".join(self.names),), (channel.outputs,)
        elif form == REPRESENTATIVE:
            self.texts = binned.numbers_released(channel, form)
        elif form == POSTERIOR_DRAW:
            self._posterior = policies.posterior_sampler(channel)
            self.texts = tuple(zip(*channel.useful.symbols, strict=True))
        else:
            inner = binned.inner_samplers(channel, form)
            self.texts, self._inner = (
                tuple(texts for texts, _ in inner),
                [sampler for _, sampler in inner],
            )
            self._posterior = binned.symbol_sampler(channel)
        self.codes: Integers = np.zeros(0, dtype=np.int64)
        """Of the records that were drawn last, as `symbol_counts` counts them."""
        self.symbol_counts: Integers = np.zeros(len(channel.useful) + 2, dtype=np.int64)
        released = channel.useful if form in OF_SYMBOLS else channel.outputs
        self.output_counts: Integers = np.zeros(len(released), dtype=np.int64)
        self.changed, self.changes = changed, 0
        self.seen, self.earlier = Seen(), Seen()
        self._hasher = RowHasher(self._key.derived(IDENTIFIERS, "known").secret)

    def draw(
        self, columns: Sequence[Encoded], records: Records
    ) -> list[NDArray[np.int32]]:
        """What to publish for each record: for every released column codes into its `texts`."""
        codes = self.codes = self._rows(columns)
        self.symbol_counts += np.bincount(codes, minlength=len(self.symbol_counts))
        known = (
            self._known(codes, records) if isinstance(records, Identifiers) else codes
        )
        drawn = self._drawn(known, records, self._key)
        if self.changed == REDRAW and isinstance(records, Identifiers):
            # A number of its own for each further symbol: that of the first has met the first alone.
            for code in np.unique(codes[codes != known]).tolist():
                at = np.flatnonzero((codes == code) & (known != code))
                drawn[at] = self._drawn(
                    codes[at], records.some(at), self._key.derived("changed", str(code))
                )
        self.output_counts += np.bincount(drawn, minlength=len(self.output_counts))
        if not self._inner:
            return [drawn] * len(self.texts)
        symbols = drawn.astype(np.int64)
        sources = (
            records.source(self._key.derived(records.kind, WITHIN, name))
            for name in self.names
        )
        pairs = zip(self._inner, sources, strict=True)
        return [
            drawn if inner is None else inner.draw(symbols, source)
            for inner, source in pairs
        ]

    def _drawn(self, codes: Integers, records: Records, key: Key) -> NDArray[np.int32]:
        drawn = self._sampler.draw(
            codes, records.source(key.derived(records.kind, "output"))
        )
        if self._posterior is None:
            return drawn
        return self._posterior.draw(
            drawn.astype(np.int64), records.source(key.derived(records.kind, LABEL))
        )

    def _known(self, codes: Integers, records: Identifiers) -> Integers:
        """The symbols that the records were first released with.

        Refuses identifiers that stand for records with different symbols, whose draws would depend on each other.
        """
        hashes = self._hasher.identifiers(records.columns)
        _, own = self.seen.look(hashes, codes)
        _, known = self.earlier.find(hashes, codes)
        columns = quoted(",".join(self.channel.useful.columns))
        for position in np.flatnonzero(own != codes)[:1].tolist():
            raise InputError(
                f"the identifier {records.named(position)} stands for records with different symbols of {columns}; "
                "name columns that identify a record"
            )
        other = np.flatnonzero(known != codes)
        self.changes += len(other)
        if other.size and self.changed == REFUSE:
            raise InputError(
                f"the record {records.named(int(other[0]))} has another symbol of {columns} than when it was "
                "released before: keep what was released (--changed keep), or draw it anew, which tells more of it "
                "(--changed redraw)"
            )
        return known

    def new_records(self) -> Iterator[tuple[Hashes, Integers]]:
        """Hashes and first symbols of the records that no earlier release had, some at a time, sorted."""
        for hashes, codes in self.seen.entries():
            new = np.flatnonzero(self.earlier.find(hashes, codes)[0])
            order = new[np.argsort(hashes[new], kind="stable")]
            yield hashes[order], codes[order]

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add to `symbol_counts` what so many equal records hold, for which nothing is drawn or refused."""
        columns = [
            normalised_cells(column, self.policy.normalise) for column in columns
        ]
        if len(columns) == 1:  # each text once
            cells = columns[0]
            times = np.bincount(
                cells.codes.astype(np.int64) + 1, times, len(cells.texts) + 1
            )
            columns = [replace(cells, codes=np.arange(-1, len(cells.texts)))]
        codes = positions_of(columns, self._alphabet)
        codes[codes < 0] += len(self.symbol_counts)  # MISSING comes before UNKNOWN
        found = np.bincount(
            codes, times, len(self.symbol_counts)
        )  # floats, which are exact up to 2^53
        self.symbol_counts += found.astype(np.int64)

    def _rows(self, columns: Sequence[Encoded]) -> Integers:
        """The row of the sampler for each record: |X| for the missing, |X| + 1 for the unknown."""
        columns = [
            normalised_cells(column, self.policy.normalise) for column in columns
        ]
        codes = positions_of(columns, self._alphabet)
        if codes.size and codes.min() < 0:
            for code, rule, place in (
                (MISSING, self.policy.null, 0),
                (UNKNOWN, self.policy.unknown, 1),
            ):
                at = np.flatnonzero(codes == code)
                if at.size and rule == REFUSE:
                    raise unknown_at(int(at[0]), columns, self._alphabet)
                codes[at] = len(self._alphabet) + place
        return codes


def channel_digest(channel: Releasable) -> str:
    """SHA-256 of what a channel does: its columns, symbols, outputs and rows, and nothing of where it comes from."""
    rows = IntegerRows.of(channel.rows)
    head = {"columns": channel.useful.columns, "symbols": channel.useful.symbols}
    head |= {"outputs": channel.outputs, "denominator": channel.denominator}
    digest = hashlib.sha256(canonical(head).encode())
    for array in (rows.indptr, rows.indices, rows.values):
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


def key_of(key: Key | None, insecure_seed: int | None) -> Key:
    """The key given, that of the seed, or a new one that nobody keeps."""
    if key is not None and not isinstance(key, Key):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"the key must be a Key (Key.fresh(), read_key), not {type(key).__name__}"
        )
    if key is not None and insecure_seed is not None:
        raise InputError("give a key or an insecure seed, not both")
    if key is None:
        return Key.fresh() if insecure_seed is None else Key.insecure(insecure_seed)
    return key
