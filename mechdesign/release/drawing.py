"""A channel made ready to draw: a key, random words for records, and rules for what the channel
does not know.

Files, data frames and clusters all draw here, so the same key and the same record give the same
output everywhere. Records that share an identifier share a draw; where such records have different
symbols, their draws would be correlated, so they are found, within a part of the data and across
parts, and refused.
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
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.release import policies, released_values
from mechdesign.release.draws import IDENTIFIERS, Identifiers, Key, Records
from mechdesign.release.policies import REFUSE, Policy, normalised, normalised_cells
from mechdesign.release.protocol import Releasable
from mechdesign.release.released_values import (
    FORMS,
    LABEL,
    POSTERIOR_DRAW,
    REPRESENTATIVE,
    WITHIN,
)
from mechdesign.release.sampling import Sampler
from mechdesign.release.spellings import Spellings
from mechdesign.tables.columns import MISSING, UNKNOWN, positions_of, unknown_at

REMEMBERED = 1 << 22
"""Different identifiers that are remembered (63 MB at worst), so that memory does not
grow with the data.
"""

SLOTS = 1 << 16
"""Slots of a table of hashes at its beginning."""

PART = 1 << 17
"""Slots that are read at a time."""


class FirstSymbols:
    """The symbol that each identifier first came with, in a table of 64-bit hashes:
    false alarms are not expected.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.full = False
        self._room = remembered
        self._used = 0
        self._keys = np.zeros(SLOTS, np.uint64)
        self._codes = np.zeros(SLOTS, np.int32)

    @property
    def empty(self) -> bool:
        """Whether nothing is remembered."""
        return not self._used

    def reserve(self, count: int) -> None:
        """Make an empty table large enough for so many, which come sorted: in a smaller
        one they crowd in one place.
        """
        # Four fifths full at most: beyond that, linear probing gets slow.
        self._clear(max(SLOTS, min(count, self._room) * 5 // 4 + 1))

    def find(
        self, hashes: Hashes, codes: Integers
    ) -> tuple[NDArray[np.bool_], Integers]:
        """Which of the hashes are new, and the codes that the others came with first
        (else those given).
        """
        if not self._used:
            # The first batch of a job without earlier releases: everything is new.
            return np.ones(len(hashes), np.bool_), codes
        new, first_codes = self._walk(hashes, codes, -1)
        return new.view(np.bool_), first_codes

    def has_any(self, hashes: Hashes) -> bool:
        """Whether one of the hashes is remembered."""
        if not len(hashes):
            return False
        new, _ = self.find(hashes, np.zeros(len(hashes), np.int64))
        return not bool(new.all())

    def look(
        self, hashes: Hashes, codes: Integers
    ) -> tuple[NDArray[np.bool_], Integers]:
        """Which records are the first of their identifier, and the codes that all came
        with first; remembers them.
        """
        if not self._used and len(hashes) > len(self._keys):
            self.reserve(len(hashes))  # growing would take longer than looking
        new, first_codes = self._walk(hashes, codes, self._room)
        late = np.flatnonzero(new == 2)
        if late.size:
            # With no room for them, they are held against each other alone.
            self.full = True
            _, at, inverse = np.unique(
                hashes[late], return_index=True, return_inverse=True
            )
            first_codes[late] = codes[late[at]][inverse]
            new[late] = 0
            new[late[at]] = 1
        return new.view(np.bool_), first_codes

    def entries(self) -> Iterator[tuple[Hashes, Integers]]:
        """The hashes that are remembered, in no order, and their codes, some at a time."""
        keys = self._keys
        codes = self._codes
        for start in range(0, len(keys), PART):
            part = slice(start, start + PART)
            used = keys[part] != 0
            yield keys[part][used], codes[part][used].astype(np.int64)

    def _clear(self, size: int) -> None:
        """An empty table of this size."""
        self._used = 0
        self._keys = np.zeros(size, np.uint64)
        self._codes = np.zeros(size, np.int32)

    def _walk(
        self, hashes: Hashes, codes: Integers, room: int
    ) -> tuple[NDArray[np.uint8], Integers]:
        """0, 1 (new) or 2 (new, without room) for each hash, and the code that it came with first.

        Up to `room` hashes are remembered; a negative room remembers nothing. The compiled loop
        stops where the table is too full, and goes on from there in a larger one.
        """
        new = np.zeros(len(hashes), np.uint8)
        first_codes = np.zeros(len(hashes), np.int64)
        hashes = np.ascontiguousarray(hashes)
        codes = np.ascontiguousarray(codes, np.int64)
        position = 0
        while True:
            position, self._used = _rowhash.look(
                self._keys,
                self._codes,
                self._used,
                room,
                hashes,
                codes,
                new,
                first_codes,
                position,
            )
            if position == len(hashes):
                return new, first_codes
            self._grow()

    def _grow(self) -> None:
        """A table of four times the size, or of the largest."""
        old = copy(self)
        size = 4 * len(self._keys)
        largest = self._room * 5 // 4 + 1
        # The last two sizes at once, for both would be in memory while one is copied to the other.
        if 2 * size >= largest:
            size = largest
        self._clear(size)
        for hashes, codes in old.entries():
            self._walk(hashes, codes, self._room)


def new_records(
    seen: FirstSymbols, earlier: FirstSymbols
) -> Iterator[tuple[Hashes, Integers]]:
    """Hashes and codes of `seen` that `earlier` does not have, some at a time, sorted."""
    for hashes, codes in seen.entries():
        new = np.flatnonzero(earlier.find(hashes, codes)[0])
        order = new[np.argsort(hashes[new], kind="stable")]
        yield hashes[order], codes[order]


OF_SYMBOLS = (POSTERIOR_DRAW, WITHIN)
"""Forms for which a symbol of X is drawn first."""

KEEP = "keep"
REDRAW = "redraw"
CHANGES = (REFUSE, KEEP, REDRAW)
"""What becomes of a record whose symbol is another one than when it was released before: an error,
its old output, or a draw of its own.
"""


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
        # Another channel gets other draws under the same key: two draws of one record through two
        # channels must be independent, as their composition assumes.
        self.digest = channel_digest(channel)
        self._key = key.derived("channel", self.digest)
        self._alphabet = normalised(channel.useful, self.policy.normalise)
        self._sampler = policies.sampler_with_policies(channel, self.policy)
        self._posterior: Sampler | None = None
        self._inner: list[Sampler | None] = []
        self.names: tuple[str, ...] = channel.useful.columns
        self.texts: tuple[tuple[str, ...], ...]
        self._prepare_form(channel, form)
        self.codes: Integers = np.zeros(0, dtype=np.int64)
        """Of the records that were drawn last, as `symbol_counts` counts them."""
        self.symbol_counts: Integers = np.zeros(len(channel.useful) + 2, dtype=np.int64)
        released = channel.useful if form in OF_SYMBOLS else channel.outputs
        self.output_counts: Integers = np.zeros(len(released), dtype=np.int64)
        self.changed = changed
        self.changes = 0
        # `seen` has the records of this release, `earlier` those of former ones from the ledger.
        self.seen = FirstSymbols()
        self.earlier = FirstSymbols()
        self.are_new: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Of the identified records that were drawn last, those that no earlier release had."""
        self.spellings = Spellings()
        self._hasher = RowHasher(self._key.derived(IDENTIFIERS, "known").secret)

    def _prepare_form(self, channel: Releasable, form: str) -> None:
        """The names and texts of the released columns, and the samplers of what follows
        the channel's own draw.
        """
        if form == LABEL:
            self.names = (",".join(self.names),)
            self.texts = (channel.outputs,)
        elif form == REPRESENTATIVE:
            self.texts = released_values.numbers_released(channel, form)
        elif form == POSTERIOR_DRAW:
            self._posterior = policies.posterior_sampler(channel)
            self.texts = tuple(zip(*channel.useful.symbols, strict=True))
        else:
            columns = released_values.inner_samplers(channel, form)
            self.texts = tuple(texts for texts, _ in columns)
            self._inner = [sampler for _, sampler in columns]
            self._posterior = released_values.symbol_sampler(channel)

    def draw(
        self, columns: Sequence[Encoded], records: Records
    ) -> list[NDArray[np.int32]]:
        """The draw of each record: for every released column codes into its `texts`."""
        self.codes = self._rows(columns)
        codes = self.codes
        self.symbol_counts += np.bincount(codes, minlength=len(self.symbol_counts))
        if isinstance(records, Identifiers):
            # A record that comes again keeps its draw: a second, independent one would tell more
            # than the budget.
            first_codes = self._first_codes(codes, records)
            drawn = self._drawn(first_codes, records, self._key)
            if self.changed == REDRAW:
                self._redraw_changed(drawn, codes, first_codes, records)
        else:
            drawn = self._drawn(codes, records, self._key)
        self.output_counts += np.bincount(drawn, minlength=len(self.output_counts))
        if not self._inner:
            return [drawn] * len(self.texts)
        symbols = drawn.astype(np.int64)
        published: list[NDArray[np.int32]] = []
        for name, sampler in zip(self.names, self._inner, strict=True):
            if sampler is None:
                published.append(drawn)
            else:
                # A key for each column, or two columns in bins would share their draws.
                key = self._key.derived(records.kind, WITHIN, name)
                published.append(sampler.draw(symbols, records.source(key)))
        return published

    def _redraw_changed(
        self,
        drawn: NDArray[np.int32],
        codes: Integers,
        first_codes: Integers,
        records: Identifiers,
    ) -> None:
        """Draw records anew whose symbol is not the one that they were first released with.

        A number of its own for each further symbol: that of the first has met the first alone.
        """
        is_changed = codes != first_codes
        for code in np.unique(codes[is_changed]).tolist():
            at = np.flatnonzero((codes == code) & is_changed)
            key = self._key.derived("changed", str(code))
            drawn[at] = self._drawn(codes[at], records.some(at), key)

    def _drawn(self, codes: Integers, records: Records, key: Key) -> NDArray[np.int32]:
        """An output of the channel for each record or, for forms of symbols, the symbol
        drawn from it.
        """
        source = records.source(key.derived(records.kind, "output"))
        drawn = self._sampler.draw(codes, source)
        if self._posterior is None:
            return drawn
        # The symbol is drawn from the output alone, with a word of its own: it tells no more of the
        # record than the output does (data processing).
        source = records.source(key.derived(records.kind, LABEL))
        return self._posterior.draw(drawn.astype(np.int64), source)

    def _first_codes(self, codes: Integers, records: Identifiers) -> Integers:
        """The symbols that the records were first released with.

        Refuses identifiers that records with different symbols share, whose draws would depend on
        each other.
        """
        hashes = self._hasher.identifiers(records.columns)
        self.spellings.add(records.columns, hashes, self._hasher)
        _, here = self.seen.look(hashes, codes)
        self.are_new, before = self.earlier.find(hashes, codes)
        columns = quoted(",".join(self.channel.useful.columns))
        # Two records with one identifier share a word. With different symbols their outputs
        # are then dependent, which no promise covers.
        shared = np.flatnonzero(here != codes)
        if shared.size:
            raise InputError(
                f"the identifier {records.named(int(shared[0]))} stands for records with "
                f"different symbols of {columns}; name columns that identify a record"
            )
        other = np.flatnonzero(before != codes)
        self.changes += len(other)
        if other.size and self.changed == REFUSE:
            raise InputError(
                f"the record {records.named(int(other[0]))} has another symbol of {columns} "
                f"than when it was "
                "released before: keep what was released (--changed keep), or draw it anew, "
                "which tells more of it (--changed redraw)"
            )
        return before

    def new_records(self) -> Iterator[tuple[Hashes, Integers]]:
        """Hashes and first symbols of the records that no earlier release had, some at
        a time, sorted.
        """
        return new_records(self.seen, self.earlier)

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins, so that its cells are many different numbers."""
        return any(self.channel.useful.bins)

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add to `symbol_counts` what so many equal records hold, for which nothing is
        drawn or refused.
        """
        columns = [
            normalised_cells(column, self.policy.normalise) for column in columns
        ]
        if len(columns) == 1:
            # Each text once, and before them the empty cells with code -1.
            cells = columns[0]
            size = len(cells.texts) + 1
            times = np.bincount(cells.codes.astype(np.int64) + 1, times, size)
            columns = [replace(cells, codes=np.arange(-1, len(cells.texts)))]
        codes = positions_of(columns, self._alphabet)
        codes[codes < 0] += len(self.symbol_counts)  # MISSING comes before UNKNOWN
        # As floats, which are exact up to 2^53.
        counts = np.bincount(codes, times, len(self.symbol_counts))
        self.symbol_counts += counts.astype(np.int64)

    def _rows(self, columns: Sequence[Encoded]) -> Integers:
        """The row of the sampler for each record: |X| for the missing, |X| + 1 for the unknown."""
        columns = [
            normalised_cells(column, self.policy.normalise) for column in columns
        ]
        codes = positions_of(columns, self._alphabet)
        if codes.size and codes.min() < 0:
            size = len(self._alphabet)
            self._place(codes, MISSING, self.policy.null, size, columns)
            self._place(codes, UNKNOWN, self.policy.unknown, size + 1, columns)
        return codes

    def _place(
        self,
        codes: Integers,
        code: int,
        rule: str,
        row: int,
        columns: Sequence[Encoded],
    ) -> None:
        """Give the records with a code a row of the sampler, or refuse the first of them."""
        at = np.flatnonzero(codes == code)
        if at.size and rule == REFUSE:
            raise unknown_at(int(at[0]), columns, self._alphabet)
        codes[at] = row


def channel_digest(channel: Releasable) -> str:
    """SHA-256 of what a channel does: its columns, symbols, outputs and rows, and
    nothing of where it comes from.
    """
    rows = IntegerRows.of(channel.rows)
    head = {
        "columns": channel.useful.columns,
        "symbols": channel.useful.symbols,
        "outputs": channel.outputs,
        "denominator": channel.denominator,
    }
    digest = hashlib.sha256(canonical(head).encode())
    # Little-endian 64-bit integers on every machine, so that a job can be continued on another one.
    for array in (rows.indptr, rows.indices, rows.values):
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


def key_of(key: Key | None, insecure_seed: int | None) -> Key:
    """The key given, that of the seed, or a new one that nobody keeps."""
    if key is None:
        if insecure_seed is None:
            return Key.fresh()
        return Key.insecure(insecure_seed)
    if not isinstance(key, Key):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"the key must be a Key (Key.fresh(), read_key), not {type(key).__name__}"
        )
    if insecure_seed is not None:
        raise InputError("give a key or an insecure seed, not both")
    return key
