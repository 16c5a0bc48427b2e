"""A channel made ready to draw: with a key, random words for records, and rules for odd records.

Files, data frames and clusters all draw here, so the same key and the same record give the same
output everywhere. Records that share an identifier share a draw. If they have different symbols,
their draws would be dependent; so such records are found, within a part of the data and across
parts, and refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.json_values import canonical
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.release import policies, released_values
from mechdesign.release.draws import IDENTIFIERS, Identifiers, Key, Records
from mechdesign.release.first_symbols import FirstSymbols, new_records
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

OF_SYMBOLS = (POSTERIOR_DRAW, WITHIN)
"""Forms for which a symbol of X is drawn first."""

KEEP = "keep"
REDRAW = "redraw"
CHANGES = (REFUSE, KEEP, REDRAW)
"""Treatments of a record whose symbol has changed since its last release: an error, its old output,
or a draw of its own.
"""


class Release:
    """A channel made ready to draw.

    Attributes
    ----------
    names : tuple of str
        Of the released columns.
    texts : for each released column a tuple of str
        The texts to which the codes of `draw` refer.
    codes : (n,) array
        The symbols of the records that were drawn last, numbered as in `symbol_counts`.
    symbol_counts, output_counts : arrays
        Records so far by their symbol (then the missing and the unknown), and by what was drawn.
    are_new : (n,) array of bool
        Of the identified records that were drawn last, those that no earlier release had.
    seen, earlier : FirstSymbols
        Records of this release, and of earlier ones from the ledger.
    """

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
        if policy is None:
            policy = Policy()
        self.policy = policy
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
        self.symbol_counts: Integers = np.zeros(len(channel.useful) + 2, dtype=np.int64)
        choices = len(channel.outputs)
        if form in OF_SYMBOLS:
            choices = len(channel.useful)
        self.output_counts: Integers = np.zeros(choices, dtype=np.int64)
        self.changed = changed
        self.changes = 0
        self.seen = FirstSymbols()
        self.earlier = FirstSymbols()
        self.are_new: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.spellings = Spellings()
        self._hasher = RowHasher(self._key.derived(IDENTIFIERS, "known").secret)

    def _prepare_form(self, channel: Releasable, form: str) -> None:
        """The names and texts of the released columns, and the samplers of further draws."""
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
            # A record that comes again keeps its draw: a second, independent one would disclose
            # more than the budget.
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
        """Draw records anew whose symbol differs from the one of their first release.

        Each further symbol has a key of its own. So its draws are independent of the draw of the
        first symbol, and of each other.
        """
        is_changed = codes != first_codes
        for code in np.unique(codes[is_changed]).tolist():
            at = np.flatnonzero((codes == code) & is_changed)
            key = self._key.derived("changed", str(code))
            drawn[at] = self._drawn(codes[at], records.some(at), key)

    def _drawn(self, codes: Integers, records: Records, key: Key) -> NDArray[np.int32]:
        """An output of the channel for each record; for forms of symbols a symbol drawn from it."""
        source = records.source(key.derived(records.kind, "output"))
        drawn = self._sampler.draw(codes, source)
        if self._posterior is None:
            return drawn
        # The symbol is drawn from the output alone, with a word of its own, so it discloses no
        # more of the record than the output does (data processing inequality).
        source = records.source(key.derived(records.kind, LABEL))
        return self._posterior.draw(drawn.astype(np.int64), source)

    def _first_codes(self, codes: Integers, records: Identifiers) -> Integers:
        """The symbols of the first release of each record.

        Raises
        ------
        InputError
            If records with different symbols share an identifier, or, where changes are refused,
            a record has another symbol than in an earlier release.
        """
        hashes = self._hasher.identifiers(records.columns)
        self.spellings.add(records.columns, hashes, self._hasher)
        _, first_here = self.seen.look(hashes, codes)
        self.are_new, first_ever = self.earlier.find(hashes, codes)
        columns = quoted(",".join(self.channel.useful.columns))
        # Two records with one identifier share a word. With different symbols their outputs
        # are then dependent, which no promise covers.
        shared = np.flatnonzero(first_here != codes)
        if shared.size:
            raise InputError(
                f"the identifier {records.named(int(shared[0]))} stands for records with "
                f"different symbols of {columns}; name columns that identify a record"
            )
        changed = np.flatnonzero(first_ever != codes)
        self.changes += len(changed)
        if changed.size and self.changed == REFUSE:
            raise InputError(
                f"the record {records.named(int(changed[0]))} has another symbol of {columns} "
                f"than when it was "
                "released before: keep what was released (--changed keep), or draw it anew, "
                "which tells more of it (--changed redraw)"
            )
        return first_ever

    def new_records(self) -> Iterator[tuple[Hashes, Integers]]:
        """Hashes and symbols of the records without earlier release, in parts, each sorted."""
        return new_records(self.seen, self.earlier)

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins, so that its cells are many different numbers."""
        return any(self.channel.useful.bins)

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add records to `symbol_counts`, each so many times; nothing is drawn or refused."""
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
    """SHA-256 of the columns, symbols, outputs and rows of a channel, without its origin."""
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
    """The key, that of the seed, or without both a new one that is not kept."""
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
