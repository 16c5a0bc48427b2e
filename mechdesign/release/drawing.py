"""A channel prepared for drawing: with a key, random words for records, and rules for odd records.

A `Release` is made once for a channel and a key. `Release.draw` then takes batch after batch:

1. The coding (`coding`) finds the row x of the sampler for each record: its symbol, |X| for a
   missing cell and |X| + 1 for an unknown symbol, if the policy does not refuse these; or the
   number of its box. Where unknown rows are released as the nearest known one, it finds its symbol.
2. `first_codes` (`identified_draws`) looks up records with identifiers. These share a draw, so two
   symbols under one identifier would have dependent draws: such records are refused.
3. `_choices` draws the output y: the place where the random integer u of the record falls among the
   cumulated integers of row x (`Sampler`). With the row (3, 1), u = 0, 1, 2 give the output 0, and
   u = 3 gives 1. Where the counts of all outputs are fixed (`fix`), it looks the output up that the
   record was given with all others; `ChannelRecipe.settled` decides which of both.
4. What is published for y, its label or a symbol, are codes into `texts` (`released_values`).

Files, data frames and clusters all draw here. u is a function of the key, the channel
(`channel_digest`) and the record, so the same key and record give the same output everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded
from mechdesign.release import samplers
from mechdesign.release.coding import BoxCoding, Coding, SymbolCoding
from mechdesign.release.draws import Identifiers, Key, Records, RowNumbers, Sampler
from mechdesign.release.fixed_counts import (
    MeanCounts,
    assigned_outputs,
    integer_flows,
    mean_counts,
)
from mechdesign.release.identified_draws import REDRAW, IdentifiedDraws
from mechdesign.release.protocol import Releasable, ReleasablePart
from mechdesign.release.released_values import FORMS, LABEL, publication_of
from mechdesign.release.samplers import (
    REFUSE,
    Filling,
    Policy,
    box_laws,
    marginal_of,
    sampler_of_laws,
)
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.variable import Variable

FIXED = "fixed"
"""Draws of fixed counts (`fixed_counts`)."""

INDEPENDENT = "independent"
"""A draw of its own for each record."""

DRAWS = (FIXED, INDEPENDENT)


NUMBERED_TOGETHER = 1 << 18
"""Records that get their random numbers together."""


class Drawable(Releasable, Protocol):
    """A channel that knows how records are coded for it, and what fills its outputs."""

    @property
    def filling(self) -> Filling | None:
        """The samplers of the rows that are drawn within boxes; None where outputs are released
        themselves.
        """
        ...

    def coding(self, policy: Policy) -> tuple[Coding, Sampler]:
        """How the cells of a record become a row of the sampler, and the sampler."""
        ...

    @property
    def hidden(self) -> tuple[Variable, ...]:
        """The variables whose symbols the channel hides, beside the sensitive one."""
        ...

    def writes_symbols(self, place: int, form: str) -> bool:
        """True if the output column at this place has symbols of its source, and not labels."""
        ...


class Release(IdentifiedDraws):
    """A channel prepared for drawing.

    Parameters
    ----------
    channel : Drawable
    key : Key
        The key of the job; the draws follow from it and the digest of the channel.
    policy : Policy, optional
        The rules for unknown symbols and missing cells; by default both are refused.
    form : str
        What is published for an output, one of `FORMS`.
    changed : {"refuse", "keep", "redraw"}
        The treatment of a record whose symbol has changed since an earlier release.

    Attributes
    ----------
    digest : str
        SHA-256 of what the channel does.
    codes : list of (n,) arrays
        For each variable that records are coded by the symbols of those that were drawn last,
        numbered as in `symbol_counts`; of an unknown one that of the nearest row, if that was
        drawn.
    symbol_counts : list of (|X| + 2,) arrays
        For each variable the records so far by their symbol, then the missing and the unknown.
    output_counts : array
        Records so far by their output, or by the symbol or row that was drawn for it.
    fixed : (N,) array, optional
        The output of every record of a whole table, by its row number, where counts are fixed.
    """

    def __init__(
        self,
        channel: Drawable,
        key: Key,
        *,
        policy: Policy | None = None,
        form: str = LABEL,
        changed: str = REFUSE,
    ) -> None:
        if form not in FORMS:
            raise InputError(f"--as ({quoted(form)}) must be one of {listed(FORMS)}")
        if policy is None:
            policy = Policy()
        self.channel = channel
        self.policy = policy
        self.form = form
        # Another channel gets other draws under the same key: two draws of one record through two
        # channels must be independent, as their composition assumes.
        self.digest = channel.digest
        super().__init__(key.derived("channel", self.digest), changed)
        self._coding, self._sampler = channel.coding(policy)
        self._publication = publication_of(channel, form, channel.filling)
        self.output_counts: Integers = np.zeros(self._publication.size, dtype=np.int64)
        self.fixed: NDArray[np.int32] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the released columns."""
        return self._publication.names

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Texts of each released column, to which the codes of `draw` refer."""
        return self._publication.texts

    @property
    def symbol_counts(self) -> list[Integers]:
        """The counts of the coding."""
        return self._coding.symbol_counts

    @property
    def codes(self) -> list[Integers]:
        """The codes of the coding."""
        return self._coding.codes

    @property
    def has_one_symbol(self) -> bool:
        """Whether all that a record is drawn by is one symbol, and not one of each variable."""
        return self._coding.has_one_symbol

    @property
    def hidden_counts(self) -> list[Integers]:
        """`symbol_counts` of each variable that the channel hides."""
        return self.symbol_counts[self._coding.given :]

    @property
    def hidden_codes(self) -> list[Integers]:
        """`codes` of each variable that the channel hides."""
        return self.codes[self._coding.given :]

    def value_counts(self, columns: Sequence[str]) -> dict[tuple[str, ...], int]:
        """Records so far by the texts that were released in some of the columns."""
        at = [self.names.index(name) for name in columns]
        counts: dict[tuple[str, ...], int] = {}
        for cells, count in zip(
            self._publication.cells(at), self.output_counts.tolist(), strict=True
        ):
            counts[cells] = counts.get(cells, 0) + count
        return counts

    def fix(self, codes: NDArray[np.integer[Any]]) -> None:
        """Give the records of a whole table their outputs, with fixed counts.

        Parameters
        ----------
        codes : (N,) array
            The symbol of every record, by its row number (`symbols_of`).

        Raises
        ------
        InputError
            If they are not the records of the table of the design, or its law is not kept.
        """
        means = fixed_means(self.channel)
        if means is None:
            raise InputError(NOT_FIXED)
        flows = integer_flows(
            means.rows,
            means.columns,
            means.values,
            means.row_units,
            means.column_units,
            means.unit,
            self._key,
        )
        # Random numbers of all records at once would take three times their room.
        batches = [
            RowNumbers(start, min(NUMBERED_TOGETHER, len(codes) - start))
            for start in range(0, len(codes), NUMBERED_TOGETHER)
        ]
        self.fixed = assigned_outputs(codes, flows, batches, self._key)

    def symbols_of(self, columns: Sequence[Encoded]) -> Integers:
        """The symbol of each record, numbered as in `symbol_counts`; nothing is drawn.

        Raises
        ------
        InputError
            On a symbol or a missing cell that the policy refuses.
        """
        return self._coding.rows(columns)

    def draw(
        self, columns: Sequence[Encoded], records: Records
    ) -> list[NDArray[np.int32]]:
        """The draw of each record: for every released column codes into its `texts`.

        Parameters
        ----------
        columns : sequence of Encoded
            The cells of the useful columns.
        records : RowNumbers, NumberedRecords or Identifiers
            What the random integer of each record is a function of.

        Raises
        ------
        InputError
            On a symbol or a missing cell that the policy refuses, or as `first_codes` does.
        """
        codes = self._coding.read(columns)
        if isinstance(records, Identifiers):
            # A record that comes again keeps its draw: a second, independent one would disclose
            # more than the budget.
            first_codes = self.first_codes(codes, records, self._coding.title)
            choices = self._choices(first_codes, records, self._key)
            if self.changed == REDRAW:
                self._redraw_changed(choices, codes, first_codes, records)
        else:
            choices = self._choices(codes, records, self._key)
        self.output_counts += np.bincount(choices, minlength=len(self.output_counts))
        return self._publication.codes(choices, records, self._key)

    def _redraw_changed(
        self,
        choices: NDArray[np.int32],
        codes: Integers,
        first_codes: Integers,
        records: Identifiers,
    ) -> None:
        """Draw records anew whose symbol differs from the one of their first release."""
        is_changed = codes != first_codes
        for code in np.unique(codes[is_changed]).tolist():
            at = np.flatnonzero((codes == code) & is_changed)
            key = self.key_of_change(code)
            choices[at] = self._choices(codes[at], records.some(at), key)

    def _choices(
        self, codes: Integers, records: Records, key: Key
    ) -> NDArray[np.int32]:
        """An output of the channel for each record; for forms of symbols a symbol drawn from it."""
        if self.fixed is not None:
            return self._fixed_choices(records)
        source = records.source(key.derived(records.kind, "output"))
        outputs = self._sampler.draw(codes, source)
        return self._publication.choices(outputs, records, key)

    def _fixed_choices(self, records: Records) -> NDArray[np.int32]:
        """The outputs of some records of a whole table, whose counts are fixed."""
        if not isinstance(records, RowNumbers) or self.fixed is None:
            raise InputError(
                "draws of fixed counts are those of a whole table by row numbers: leave out what "
                "identifies records, or draw them independently (--draws independent)"
            )
        return self.fixed[records.first : records.first + len(records)]

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins, so that its cells are many different numbers."""
        return self._coding.has_bins

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add records to `symbol_counts`, each so many times; nothing is drawn or refused."""
        self._coding.count(columns, times)


BOXES_NOT_FIXED = (
    "boxes are drawn for each record by itself, so their counts cannot be fixed: draw them "
    "independently (--draws independent)"
)

NOT_FIXED = (
    "draws of fixed counts need a channel that keeps the law of its table, with that table: design "
    "one that keeps it (--release), or draw independently (--draws independent)"
)


def fixed_means(channel: Releasable) -> MeanCounts | None:
    """The mean counts of a channel on its table, if every output has a whole number of records.

    Only then the counts of outputs can be fixed, and only for fixed ones it is proven that the
    promise holds for readers of the whole file (docs/explanation/whole-file.md). None without the
    table, and for other channels.
    """
    joint = channel.joint
    if joint is None or not joint.is_counts:
        return None
    # A channel that keeps the law has one sum for all rows where every symbol has the same number
    # of records. One of labels has it, too, and its large tables would take long in vain.
    releases_values = channel.published is not None or channel.releases_own_symbols
    if channel.totals is None and not releases_values:
        return None
    if joint.total > LARGEST_INTEGER:
        # No table at hand has so many records.
        return None
    records = np.array(joint.useful_counts, dtype=np.int64)
    try:
        means = mean_counts(IntegerRows.of(channel.rows), records)
    except InputError:
        # The unit is no power of two, which no design leaves.
        return None
    return None if means.column_units is None else means


def fixed_records(channel: Releasable) -> Integers | None:
    """The records of each symbol whose outputs can have fixed counts; None where they cannot."""
    means = fixed_means(channel)
    return None if means is None else means.row_units


def symbol_coding(
    channel: Releasable, policy: Policy, left_out: str = ""
) -> tuple[Coding, Sampler]:
    """The coding of records by their symbols, and the sampler.

    `left_out` says which records the table of the design lacks, for messages.
    """
    coding = SymbolCoding(channel.useful, channel.given, policy, left_out)
    return coding, samplers.sampler_with_policies(channel, policy)


def box_coding(
    channel: Releasable, coder: BoxCoder, policy: Policy, left_out: str = ""
) -> tuple[Coding, Sampler]:
    """The coding of records by their boxes, and the sampler; `left_out` as of `symbol_coding`."""
    laws = box_laws(channel, coder)
    coding = BoxCoding(coder, [law is None for law in laws], policy, left_out)
    # A box without a law is refused: its row only keeps the places.
    sampler = sampler_of_laws([law or {0: 1} for law in laws], len(channel.outputs))
    return coding, sampler


def channel_digest(channel: Releasable) -> str:
    """SHA-256 of the columns, symbols, outputs and rows of a channel, without its origin; of boxes
    also of these and of what fills them.
    """
    rows = IntegerRows.of(channel.rows)
    head: dict[str, Any] = {
        "columns": channel.useful.columns,
        "symbols": channel.useful.symbols,
        "outputs": channel.outputs,
        "denominator": channel.totals or channel.denominator,
    }
    if channel.output_cells != tuple((label,) for label in channel.outputs):
        head["published"] = [channel.output_columns, channel.output_cells]
    head |= channel.coding_record
    digest = hashlib.sha256(canonical(head).encode())
    # Little-endian 64-bit integers on every machine, so that a job can be continued on another one.
    for array in (rows.indptr, rows.indices, rows.values):
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


def record_of_coder(coder: BoxCoder, parts: Sequence[ReleasablePart]) -> dict[str, Any]:
    """How records are coded by boxes, and what fills these, for the digest."""
    return {
        "coder": [[v.columns, v.symbols] for v in coder.groups],
        "strata": [
            {
                "splits": list(map(vars, part.boxes.splits)),
                # It is drawn from the table, which the rows leave out.
                "marginal": list(map(str, marginal_of(part))),
                "fill": part.fill,
                "releases_boxes": part.releases_boxes,
            }
            for part in parts
        ],
    }


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
