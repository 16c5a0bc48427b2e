"""A release channel W(y|x) in exact integers, with its labels, its draws and its file.

A `Channel` is made by `design` or read by `load`, and never changes; `public` and `with_record`
return others. Everything is computed from two tables of integers: its rows, and the counts of the
joint table, if it has one. With the rows (3, 1) and (1, 3) over 4 for x = clerk, nurse, and with 10
clerks and 20 nurses in the table, the output y = clerk has the masses 30 and 20 behind it
(`behind`), so P(clerk | y) = 3/5 and P(y) = 50/120.

*Boxes.* With a `coder` the records are coded first: the useful columns are the given columns and
'box', and the cells of a record choose its stratum and its box there (`tables.box_coder`). Then the
promise is one for the population, made in each stratum by itself (`claims`), so a stratum is seen
as a channel of its own, too (`parts`). An output is published as the label of a box, or as a row of
the table in it (`fill`). For example, the record (F; nurse, 40) with the given column sex is (F,
'box 3') if it lies in the third box of F, 'job nurse, clerk; hours 38-42'. The output may be (F,
'{box 2, box 3}'), and filled (F; clerk, 38).

The class checks that its rows are probabilities. Whether they keep a promise is decided by
`auditing`, never here.
"""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, Literal, NamedTuple

import numpy as np

from mechdesign.channel.box_claims import BoxClaims, BoxUtility, StratumClaim
from mechdesign.channel.output_cells import (
    OutputCells,
    absent_law,
    cells_of_labels,
    check_published,
    check_rows,
)
from mechdesign.channel.proof import PROOF, AnyProof
from mechdesign.channel.record import ChannelRecord, check_symbol_budgets
from mechdesign.channel.row_law import (
    RowLaw,
    filled_law,
    keeps_law_of_rows,
    keeps_law_of_table,
    law_of_record,
    law_of_rows,
)
from mechdesign.core.above import above
from mechdesign.core.arguments import repeated, valid_text
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.wording import listed, percent_of, quoted
from mechdesign.formats.cells import encoded_columns
from mechdesign.notions import Notion, from_record
from mechdesign.release.coding import Coding
from mechdesign.release.drawing import (
    BOXES_NOT_FIXED,
    DRAWS,
    FIXED,
    INDEPENDENT,
    Release,
    box_coding,
    channel_digest,
    key_of,
    record_of_coder,
    symbol_coding,
)
from mechdesign.release.draws import Key, Sampler, records_of
from mechdesign.release.released_frames import (
    apply_to_people,
    fix_where_whole,
    released_like,
)
from mechdesign.release.released_values import LABEL, ROW
from mechdesign.release.samplers import REFUSE, Filling, Policy
from mechdesign.tables.box_coder import BoxCoder, BoxFill, RowsByBox, SymbolCounts
from mechdesign.tables.columns import is_frame, values_of
from mechdesign.tables.joint import Array, Joint
from mechdesign.tables.people import People
from mechdesign.tables.row_boxes import BOX, NOTHING, Boxes, box_name
from mechdesign.tables.variable import Symbol, Variable, column_names

DENOMINATOR = 2**53
"""Common denominator of every designed channel: its probabilities are doubles without rounding."""

LONGEST_OUTPUT = 1_000_000
"""Characters of an output label. Symbols of tables stay far below it, and a file of a million such
records would have a terabyte."""

OF_ROWS = frozenset(
    {"columns", "_cached_matrix", "output_masses", "_cached_posteriors"}
)
"""What is computed of rows and table, whatever the record says."""

NOT_PUBLIC = (
    "boxes are filled with rows of the table, which their channel file holds to draw from: it "
    "cannot be public; leave --fill out to release boxes by a public channel, or --public"
)
"""The refusal of a public file of a channel with filling."""


@dataclass(frozen=True, repr=False)
class Channel(Displayed):
    """W(y|x) = ``rows[x][y] / denominator``, exactly; rows are inputs x, columns outputs y.

    A `Channel` has rows of probabilities. Its privacy is a matter of `auditing.audit`.

    Parameters
    ----------
    useful : Variable
        The |X| inputs, one per row.
    outputs : tuple of str
        One label per output, all different.
    rows : |X| sequences of integers
        Non-negative, each summing to `denominator`; every output is reached by some row.
    denominator : int
        Common denominator, in [1, 2**62]. With `totals` it is their least common multiple, of any
        size, whatever is given.
    totals : |X| integers, optional
        The sum of each row where rows have sums of their own, in [1, 2**62]: then W(y|x) is
        ``rows[x][y] / totals[x]``. A plan that keeps the law of the table has the row sums c_x M
        (docs/explanation/rows-theory.md, proposition 5).
    joint : Joint, optional
        The table that the channel was designed for; None in a public channel.
    sensitive : Variable, optional
        That of the joint when there is one.
    record : ChannelRecord
    given : tuple of str
        Useful columns that are released as they are: an input and the outputs that it can become
        have the same cells there.
    published : OutputCells, optional
        What is written for each output, where it is more than one column of labels.
    coder : BoxCoder, optional
        How the cells of a record become its symbol, where this is a box; the symbols are those of
        one stratum after the other. A box without a row has no record of the proof.
    claims : BoxClaims, optional
        What is promised of boxes in each stratum.
    fill : BoxFill, optional
        What is in the boxes; None in a public channel.

    Raises
    ------
    InputError
        If any of this does not hold; the message names the row or the output.
    """

    useful: Variable
    outputs: tuple[str, ...]
    rows: Sequence[Sequence[int]]
    denominator: int = DENOMINATOR
    joint: Joint | None = None
    sensitive: Variable | None = None
    record: ChannelRecord = field(default_factory=ChannelRecord)
    totals: tuple[int, ...] | None = None
    given: tuple[str, ...] = ()
    published: OutputCells | None = None
    coder: BoxCoder | None = None
    claims: BoxClaims | None = None
    fill: BoxFill | None = None

    def __repr__(self) -> str:
        if self.coder is not None:
            columns = ", ".join(variable.brief for variable in self.coder.columns)
            protected = "" if self.sensitive is None else self.sensitive.brief
            return (
                f"Channel({columns}; {self.coder.size} boxes, protects {protected}, "
                f"{percent_of(self.boxed.claims.level)} confidence)"
            )
        text = f"Channel({self.useful.brief} to {len(self.outputs):,} outputs"
        if self.sensitive is not None:
            text += f", protects {self.sensitive.brief}"
        if self.record.notion is not None:
            text += f", {from_record(self.record.notion).text}"
        return text + ")"

    def __post_init__(self) -> None:
        outputs = tuple(valid_text(label, "an output label") for label in self.outputs)
        # The class is frozen, so normalised fields are set past its own `__setattr__`.
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "rows", IntegerRows.of(self.rows, self.useful.names))
        if not outputs:
            raise InputError("a channel needs at least one output")
        longest = max(map(len, outputs))
        if longest > LONGEST_OUTPUT:
            raise InputError(
                f"an output label has {longest:,} characters, and every record with it would be as "
                f"long; at most {LONGEST_OUTPUT:,} are allowed"
            )
        twice = repeated(outputs)
        if twice is not None:
            raise InputError(
                f"the output label {quoted(twice)} occurs twice; labels must be different"
            )
        self._set_denominator()
        check_rows(
            self.useful,
            outputs,
            self.integers,
            self.row_totals,
            "the denominator" if self.totals is None else "its total",
        )
        check_published(self.useful, outputs, self.integers, self.given, self.published)
        if self.joint is not None:
            self._check_joint(self.joint)
            object.__setattr__(self, "sensitive", self.joint.sensitive)
        # After `sensitive` is set: budgets belong to its symbols.
        self._check_record()
        if self.coder is not None:
            self._check_boxes()
        elif self.claims is not None or self.fill is not None:
            raise InputError("claims and fill belong to a channel with a coder")

    def _check_boxes(self) -> None:
        """Raise InputError unless the symbols are boxes of the coder, and claims and fill fit."""
        coder, claims, sensitive = self.boxed
        given = column_names(coder.given)
        if self.useful.columns != (*given, BOX):
            raise InputError("a channel of boxes has the given columns and 'box'")
        if self.given != given or self.published is None:
            raise InputError(
                "a channel of boxes releases its given columns as they are"
            )
        if self.joint is not None:
            raise InputError("a channel of boxes has its counts in its claims")
        boxes: list[list[str]] = []
        records: list[dict[str, int]] = []
        for block, claim in zip(self._blocks, claims.strata, strict=True):
            names = [self.useful.symbols[x][-1] for x in block]
            boxes.append(names)
            counts: Sequence[int] = [0] * len(names)
            if claim.joint is not None:
                counts = claim.joint.useful_counts
            records.append(dict(zip(names, counts, strict=False)))
            # Nothing is promised there, so nothing may be released.
            if claim.record is None and self._labels_of(block) != {NOTHING}:
                raise InputError("a stratum without a promise releases its boxes")
        claims.check(sensitive, coder, boxes)
        self._check_promises(claims)
        if self.fill is not None:
            self.fill.check(coder, records)
        # Each stratum is a channel of its own, which checks itself.
        _ = self.parts
        # The public form has nothing to fill boxes with: it serves a report, and draws nothing.
        if self.box_utility is not None:
            self.check_filled()

    def _check_promises(self, claims: BoxClaims) -> None:
        """Refuse strata that promise something else than the channel, which states its promise."""
        records = [self.record]
        records += [claim.record for claim in claims.strata if claim.record is not None]
        for record in records:
            if record.notion != self.record.notion:
                raise InputError("the promise of a stratum is not that of the channel")
            if record.budgets:
                raise InputError("a channel of boxes has no budgets of single symbols")

    def check_filled(self) -> None:
        """Raise InputError for people whose boxes have no sequences to be filled with."""
        if self.coder is not None and self.people is not None and not self.fills:
            raise InputError(
                "people: boxes must be filled with sequences, as a label of a box has no records; "
                "a public form has none: release by the channel itself"
            )

    def _check_joint(self, joint: Joint) -> None:
        """Raise InputError unless the joint table is over the channel's own variables."""
        if joint.useful != self.useful:
            raise InputError(
                "the useful variable of the joint table is not the one of the channel"
            )
        if self.sensitive not in (None, joint.sensitive):
            raise InputError(
                "the sensitive variable of the joint table is not the one of the channel"
            )

    def _set_denominator(self) -> None:
        """Make the common denominator of rows with totals of their own; check what is given."""
        if self.totals is None:
            _check_total(self.denominator, "the denominator")
            return
        if len(self.totals) != len(self.useful):
            raise InputError(
                f"there are {len(self.totals)} totals for {len(self.useful)} rows"
            )
        for name, total in zip(self.useful.names, self.totals, strict=True):
            _check_total(total, f"row {quoted(name)}: the total")
        totals = tuple(self.totals)
        # Where all rows have the same total, it is the denominator alone: one form for one channel.
        if len(set(totals)) == 1:
            object.__setattr__(self, "totals", None)
            object.__setattr__(self, "denominator", totals[0])
            return
        object.__setattr__(self, "totals", totals)
        object.__setattr__(self, "denominator", math.lcm(*set(totals)))

    def _check_record(self) -> None:
        """Raise InputError unless the record's budgets and intervals fit the channel's symbols."""
        record = self.record
        if self.sensitive is None:
            if record.budgets or record.confidence:
                raise InputError(
                    "budgets of symbols and a confidence set need sensitive symbols, and there "
                    "are none"
                )
            return
        check_symbol_budgets(record.budgets, self.sensitive)
        intervals = (record.confidence or {}).get("intervals")
        if intervals is not None:
            size = len(self.sensitive)
            width = len(self.useful)
            widths = [len(row) for row in intervals["cells"]]
            if len(intervals["shares"]) != size or widths != [width] * size:
                raise InputError(
                    f"confidence: there must be intervals for {size} shares, and for {size} rows "
                    f"of {width} cells"
                )

    @property
    def boxed(self) -> Boxed:
        """The coder and the claims of a channel of boxes.

        Raises
        ------
        InputError
            If it is another channel.
        """
        if self.coder is None or self.claims is None or self.sensitive is None:
            raise InputError("this is for a channel of boxes of rows")
        return Boxed(self.coder, self.claims, self.sensitive)

    @cached_property
    def _blocks(self) -> list[range]:
        """The places of the symbols of each stratum, one after the other."""
        blocks: list[range] = []
        symbols = self.useful.symbols
        start = 0
        for stratum in self.boxed.coder.strata:
            given = self.boxed.coder.given_texts(stratum.codes)
            names = {(*given, box_name(box)) for box in range(len(stratum.boxes))}
            end = start
            while end < len(symbols) and symbols[end] in names:
                end += 1
            if end == start:
                raise InputError("the channel has no box of a stratum")
            blocks.append(range(start, end))
            start = end
        if start < len(symbols):
            raise InputError("the channel of a part has a box that is not there")
        return blocks

    @property
    def parts(self) -> tuple[BoxPart, ...]:
        """A channel of boxes by strata; no parts of any other."""
        return () if self.coder is None else self._parts

    @cached_property
    def _parts(self) -> tuple[BoxPart, ...]:
        coder, claims, _ = self.boxed
        nothing: tuple[tuple[()], ...] = ((),) * len(coder.strata)
        fill = self.fill or BoxFill(nothing, nothing)
        parts: list[BoxPart] = []
        for stratum, block, claim, rows, counts in zip(
            coder.strata,
            self._blocks,
            claims.strata,
            fill.rows,
            fill.counts,
            strict=True,
        ):
            channel = self._of_stratum(block, claim)
            parts.append(
                BoxPart(
                    stratum.codes, stratum.boxes, claim.together, channel, rows, counts
                )
            )
        return tuple(parts)

    def _labels_of(self, block: range) -> set[str]:
        """The labels that the symbols at these places are released as."""
        indptr = self.integers.indptr
        places = self.integers.indices[indptr[block.start] : indptr[block.stop]]
        return {self.output_cells[int(y)][-1] for y in places}

    def _of_stratum(self, block: range, claim: StratumClaim) -> Channel | None:
        """The channel from the boxes of a stratum to their labels, with its own promise; None where
        nothing is released.
        """
        if claim.record is None:
            return None
        integers = self.integers
        ends = integers.indptr[block.start : block.stop + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        # Strata have outputs of their own, as their given cells differ.
        outputs, indices = np.unique(integers.indices[entries], return_inverse=True)
        return Channel(
            useful=Variable(
                (BOX,), tuple((self.useful.symbols[x][-1],) for x in block)
            ),
            outputs=tuple(self.output_cells[int(y)][-1] for y in outputs),
            rows=IntegerRows(
                (len(block), len(outputs)),
                ends - ends[0],
                indices.astype(np.int64),
                integers.values[entries],
            ),
            totals=self.row_totals[block.start : block.stop],
            joint=claim.joint,
            sensitive=claim.protected(self.boxed.sensitive),
            record=claim.record,
        )

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that are judged by themselves: this one, or of boxes one for each stratum
        that releases something.
        """
        if self.coder is None:
            return (self,)
        return tuple(part.channel for part in self.parts if part.channel is not None)

    @property
    def takes_table(self) -> bool:
        """True of a channel that is judged on a table: its own, or another one.

        Boxes are judged on the counts that they carry alone. Their proof holds for records that
        they were not learned on, and another table may contain the very records that they were
        learned on.
        """
        return self.claims is None

    @property
    def level_of_claims(self) -> float | None:
        """The confidence of the claims by strata, which are about the population alone; None where
        a table decides the promise, or a confidence set of its counts.
        """
        return None if self.claims is None else self.claims.level

    @property
    def box_utility(self) -> BoxUtility | None:
        """What boxes keep, as their claims state it; None of a public channel, and of any other,
        whose table tells it.
        """
        return None if self.claims is None else self.claims.utility

    @property
    def records(self) -> int | None:
        """Records of the table behind the channel; None of a public one, and without numbers of
        records.
        """
        if self.box_utility is not None:
            return self.box_utility.records
        return None if self.joint is None else self.joint.records

    @property
    def records_of_proof(self) -> int | None:
        """Those of `records` that may prove the promise: of boxes all that they were not learned
        on.
        """
        learned_on = 0 if self.claims is None else self.claims.slice_records
        return None if self.records is None else self.records - learned_on

    @property
    def promise(self) -> Notion | None:
        """The notion that the channel was designed for; None if it promises nothing."""
        return self.record.promise(self.sensitive)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What the record says of the origin."""
        return self.record.provenance

    @property
    def digest(self) -> str:
        """SHA-256 of what the channel does, by which ledgers and manifests know it."""
        # To type checkers a cached property is no attribute, which the protocol of drawing wants.
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return channel_digest(self)

    @property
    def groups(self) -> tuple[Variable, ...]:
        """The variables that a record is coded by: the useful one, or those of the coder."""
        return (self.useful,) if self.coder is None else self.coder.groups

    @property
    def hidden(self) -> tuple[Variable, ...]:
        """The variables whose symbols the channel hides, beside the sensitive one."""
        return (self.useful,) if self.coder is None else self.coder.columns

    @property
    def watched(self) -> tuple[Variable, ...]:
        """The hidden variables by which the records of a table must not be sorted.

        The sequences of people tell how many records they have, which is given: where the records
        of a file are in random order, people with more of them come first. Their first records are
        looked at instead (`jobs.people_run.watch_order`). Of boxes these are the variables of the
        first place, which everybody has.
        """
        if self.people is None:
            return self.hidden
        return () if self.coder is None else self.hidden[: len(self.people.released)]

    @property
    def people(self) -> People | None:
        """The people with several records that the channel is for; None where it is for records."""
        return self.useful.people if self.coder is None else self.coder.people

    @property
    def described_symbols(self) -> tuple[tuple[str, ...], tuple[Symbol, ...]]:
        """The useful columns and the cells of every symbol; of boxes a column more, 'rows', that
        says what is in them.
        """
        if self.coder is None:
            return self.useful.columns, self.useful.symbols
        rows = dict(zip(self.coder.symbols, self.coder.row_sets, strict=True))
        symbols = tuple((*symbol, rows[symbol]) for symbol in self.useful.symbols)
        return (*self.useful.columns, "rows"), symbols

    @property
    def input_columns(self) -> tuple[tuple[Variable, int], ...]:
        """For each column that a record is drawn by, its variable, and its place there."""
        inputs: list[tuple[Variable, int]] = []
        for variable in self.groups:
            inputs += [(variable, part) for part in range(len(variable.columns))]
        return tuple(inputs)

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that the channel needs of a record."""
        return column_names(self.groups)

    @property
    def given_columns(self) -> tuple[str, ...]:
        """Names of the columns that are released as they are."""
        return self.given

    @property
    def randomised_columns(self) -> tuple[str, ...]:
        """Names of the released columns that are not given."""
        return tuple(name for name in self.released_columns if name not in self.given)

    def single(self) -> Channel:
        """The one channel to released labels, for work on these: itself, or that of the boxes.

        Raises
        ------
        InputError
            Of boxes with given columns, which have a channel for each stratum, with filling, which
            releases no labels, or where a box without records is released as the marginal.
        """
        if self.coder is None:
            return self
        if self.given or self.fills:
            raise InputError(
                "this takes a channel for boxes without given columns (--given) and without "
                "filling (--fill), whose released column is 'box'"
            )
        if not self.channels:
            raise InputError("the channel releases nothing: there is nothing to count")
        (single,) = self.channels
        if single.unseen:
            raise InputError(
                "some boxes of this channel had no record in the table, and are released as the "
                "marginal: the released labels do not tell their frequencies"
            )
        return single

    def on_tables(self, refusal: str) -> Channel:
        """The channel as one whose promise a table decides: itself. Boxes raise the `refusal`."""
        if self.claims is not None:
            raise InputError(refusal)
        return self

    @property
    def integers(self) -> IntegerRows:
        """`rows` with their sparse structure."""
        return IntegerRows.of(self.rows)

    @property
    def row_totals(self) -> tuple[int, ...]:
        """The sum of each row."""
        if self.totals is not None:
            return self.totals
        return (self.denominator,) * len(self.useful)

    @cached_property
    def columns(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """For each output the inputs that can have caused it, ascending, and W(y|x) in units of
        1 / `denominator`, as Python integers.
        """
        if self.totals is None:
            return list(self.integers.columns)
        # Rows with totals of their own are brought to the common denominator.
        scales = [self.denominator // total for total in self.totals]
        columns: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        for inputs, values in self.integers.columns:
            scaled = map(mul, [scales[x] for x in inputs], values)
            columns.append((inputs, tuple(scaled)))
        return columns

    @property
    def shares(self) -> Array:
        """(entries,) array of W(y|x) of the positive entries of `integers`, correctly rounded."""
        if self.totals is None:
            return self.integers.values / float(self.denominator)
        totals = np.array(self.totals, dtype=np.int64)[self.integers.row_of]
        # Python divides integers with correct rounding, NumPy converts them first.
        pairs = zip(self.integers.values.tolist(), totals.tolist(), strict=True)
        return np.array([value / total for value, total in pairs])

    @property
    def probabilities(self) -> Any:
        """(|X|, outputs) W(y|x) as a SciPy array in compressed sparse rows."""
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        integers = self.integers
        return csr_array(
            (self.shares, integers.indices, integers.indptr), shape=integers.shape
        )

    # A Protocol's property accepts a property only, therefore the caches lie behind properties.
    @property
    def matrix(self) -> Array:
        """(|X|, outputs) array of W(y|x), correctly rounded.

        It is dense: a channel of many rows has `integers` and `shares`.
        """
        return self._cached_matrix

    @cached_property
    def _cached_matrix(self) -> Array:
        integers = self.integers
        values = self.shares
        if len(values) < integers.shape[0] * integers.shape[1]:
            values = np.zeros(integers.shape)
            values[integers.row_of, integers.indices] = self.shares
        values = values.reshape(integers.shape)
        values.setflags(write=False)
        return values

    @cached_property
    def output_masses(self) -> Array:
        """(outputs,) array of P(y) under the joint table.

        Raises
        ------
        InputError
            If the channel has no joint table, as a public one.
        """
        # Sums of integers, and one division at the end: each mass is rounded once.
        weights = self._table.useful_counts
        if self.totals is not None:
            # Rows with totals of their own are brought to the common denominator.
            scales = [self.denominator // total for total in self.totals]
            weights = [*map(mul, weights, scales)]
        totals = self.integers.weighted_sums(weights)
        scale = sum(totals)
        return np.array([total / scale for total in totals])

    @property
    def posteriors(self) -> Array:
        """(outputs, |X|) array of P(x|y) under the joint; raises as `output_masses` does."""
        return self._cached_posteriors

    @cached_property
    def _cached_posteriors(self) -> Array:
        """As `posteriors`; inputs that are not behind an output have 0."""
        values = np.zeros((len(self.outputs), len(self.useful)))
        for row, (inputs, masses) in zip(values, self.behind, strict=True):
            total = sum(masses)
            # Of integers, so that each quotient is rounded once.
            row[list(inputs)] = [mass / total for mass in masses]
        values.setflags(write=False)
        return values

    @property
    def behind(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """For every output the inputs that can have caused it, and their P(x, y) as integers.

        They are N(x) W(y|x) denominator = P(x, y) total denominator, with the counts N(x) of the
        table.
        """
        # Python integers, because counts times entries may exceed 64 bits.
        weights = self._table.useful_counts
        behind: list[tuple[tuple[int, ...], list[int]]] = []
        for inputs, values in self.columns:
            masses = [weights[x] * w for x, w in zip(inputs, values, strict=True)]
            behind.append((inputs, masses))
        return behind

    @property
    def _table(self) -> Joint:
        """The joint table; InputError without one."""
        if self.joint is None:
            raise InputError(
                "this channel carries no joint table (a public one): posteriors need the table"
            )
        return self.joint

    @property
    def own_entries(self) -> list[int]:
        """W(y|x) of each row x on the output that has the name of its symbol, in units of
        1 / `denominator`; 0 without one.
        """
        output_of = dict(zip(self.outputs, range(len(self.outputs)), strict=True))
        own = np.array([output_of.get(name, -1) for name in self.useful.names])
        integers = self.integers
        rows = integers.row_of
        stays = integers.indices == own[rows]
        totals = self.row_totals
        values = [0] * len(self.useful)
        kept = zip(rows[stays].tolist(), integers.values[stays].tolist(), strict=True)
        for x, value in kept:
            values[x] = value * (self.denominator // totals[x])
        return values

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Names of the columns that are written for an output."""
        if self.fills:
            return self.released_columns
        if self.published is None:
            return (",".join(self.useful.columns),)
        return self.published.columns

    @property
    def output_cells(self) -> tuple[tuple[str, ...], ...]:
        """For each output what is written, before boxes are filled."""
        if self.published is None:
            return tuple((label,) for label in self.outputs)
        return self.published.cells

    @property
    def writes_rows(self) -> bool:
        """True if the channel says itself what it writes, in more than one column of labels."""
        return self.published is not None

    @cached_property
    def releases_symbols(self) -> bool:
        """True if outputs are written as symbols of the columns, and not as labels."""
        if self.coder is not None:
            return self.fills
        published = self.published
        if published is None or published.columns != self.useful.columns:
            return False
        released = self.randomised_columns
        if len(released) != 1:
            return True
        # Labels beside given columns stand in one column, which has the name of the released one
        # where it is alone.
        place = published.columns.index(released[0])
        symbols = {symbol[place] for symbol in self.useful.symbols}
        return all(cells[place] in symbols for cells in published.cells)

    @property
    def fills(self) -> bool:
        """True if rows are drawn within boxes."""
        return self.fill is not None and self.fill.has_rows

    @property
    def labels_boxes(self) -> bool:
        """True if labels of boxes are released, in which columns are estimated."""
        return self.coder is not None and not self.fills

    @property
    def releases_labels(self) -> bool:
        """True if labels are released that no reader takes for values of the columns."""
        if self.releases_symbols:
            return False
        return self.labels_boxes or cells_of_labels(self.outputs, self.useful) is None

    @property
    def law_absent(self) -> str:
        """Why released values do not have the law of the table, in words, for channels of which it
        is not known that they have it.
        """
        if self.labels_boxes:
            return "labels of boxes are released in the place of rows"
        if self.fills:
            return (
                "boxes are not released exactly as often as the table has them, and neither are "
                "the rows that fill them"
            )
        return absent_law(self.outputs, self.useful.columns)

    @property
    def tells_shares(self) -> bool:
        """Whether rows or symbols are released as such, and the table is there to say how often."""
        return self.fills or (self.releases_symbols and self.joint is not None)

    @cached_property
    def row_law(self) -> RowLaw:
        """How rows are drawn; for rows or symbols that are released as such.

        Raises
        ------
        InputError
            If neither a table nor a kept law says how often there are which rows, or every stratum
            of boxes releases nothing.
        """
        if self.coder is not None and self.fills:
            return filled_law(self.coder, self.parts)
        return law_of_rows(self, self.shares, is_kept=self.keeps_law)

    @property
    def silent_strata(self) -> Sequence[str]:
        """Strata of boxes of which nothing but the given columns is released, in words."""
        if self.coder is None:
            return ()
        texts: list[str] = []
        for part in self.parts:
            if part.channel is None:
                texts.append(self.coder.stratum_text(part.stratum).removesuffix(": "))
        return texts

    @cached_property
    def keeps_law(self) -> bool:
        """True if every row of the table is released exactly as often as the table has it.

        The total of each row must be in proportion to its records. A public channel does not say
        how many these are: it is taken to be, where the design was asked to keep the law. Rows that
        fill boxes are drawn as often in each as the table has them there, so the boxes must be
        released as often as the table has them.
        """
        if not self.releases_symbols:
            return False
        if self.coder is not None:
            return all(map(keeps_law_of_rows, self.parts))
        objective = self.record.objective
        if self.joint is None and (objective is None or not objective.keep_frequencies):
            return False
        return keeps_law_of_table(self)

    def codebook(self) -> dict[str, dict[str, float]]:
        """For every output label, the posterior P(x|y) of each input that can have caused it."""
        names = self.useful.names
        codebook: dict[str, dict[str, float]] = {}
        for label, (inputs, masses) in zip(self.outputs, self.behind, strict=True):
            total = sum(masses)
            posterior: dict[str, float] = {}
            for x, mass in zip(inputs, masses, strict=True):
                posterior[names[x]] = mass / total
            codebook[label] = posterior
        return codebook

    @property
    def has_counts(self) -> bool:
        """Whether the table has numbers of records; False of weights and probabilities."""
        if self.joint is None:
            return self.record.is_counts
        return self.joint.is_counts

    @property
    def unseen(self) -> int:
        """Number of symbols without a record in the table, which the promise covers, too.

        It covers them if they are released as the marginal.
        """
        return (self.record.confidence or {}).get("unseen", 0)

    @property
    def distance(self) -> Literal["absolute", "squared", "ranks"] | None:
        """The distance between numbers that the design minimised; None for other objectives."""
        objective = self.record.objective
        if objective is None:
            return None
        return objective.distance

    def distribution(
        self,
        row: Mapping[str, str] | Sequence[str] | Sequence[Mapping[str, str]] | str,
    ) -> dict[tuple[Any, ...], Fraction]:
        """The exact law of what is released for a record, or for all records of a person.

        Parameters
        ----------
        row : mapping of column to text, or sequence of texts
            The true texts of the useful columns, given ones included, in the order of
            ``useful.columns``; one text for a single column. Of boxes a mapping. Where a person has
            several records, a list of them in their order, each with the columns of
            ``useful.people.columns``.

        Returns
        -------
        dict from tuples of released texts to probabilities, which sum to 1
            One text for each of `output_columns`; of a person a tuple of such tuples, one for each
            record. Of boxes the given columns and the label, which rows are then drawn for.

        Raises
        ------
        InputError
            If a column is missing, or the channel does not know the row.
        """
        return law_of_record(self, self.coder, row)

    def with_provenance(self, **entries: Any) -> Channel:
        """The same channel with more entries in the record of its origin."""
        provenance = {**self.provenance, **entries}
        return self.with_record(replace(self.record, provenance=provenance))

    def with_proof(self, proof: AnyProof) -> Channel:
        """The same channel with a proof in the certificate of its record."""
        certificate = dict(self.record.certificate or {})
        certificate[PROOF] = proof.model_dump(mode="json", exclude_none=True)
        return self.with_record(replace(self.record, certificate=certificate))

    def with_record(self, record: ChannelRecord) -> Channel:
        """The same channel with another record."""
        if self.coder is not None:
            # Boxes have their promises in the record and in their claims, which must agree.
            return replace(self, record=record)
        # The rows were checked, and what is computed of them alone stays true.
        other = copy.copy(self)
        for name, value in vars(Channel).items():
            if isinstance(value, cached_property) and name not in OF_ROWS:
                vars(other).pop(name, None)
        object.__setattr__(other, "record", record)
        other._check_record()
        return other

    def apply(
        self,
        column: Any,
        *,
        key: Key | None = None,
        identity: Sequence[str] | None = None,
        first_row: int = 0,
        policy: Policy | None = None,
        draws: str | None = None,
        insecure_seed: int | None = None,
        unit: str | None = None,
    ) -> Any:
        """Draw an output for every entry of a column; the same kind of column back. Of a frame a
        frame with the released columns.

        A pandas Series keeps its index, so that it finds its place in the frame it came from: take
        the index off (``reset_index(drop=True)``) before the column goes out by itself.

        The draw of a record depends on the key, the channel and the record's row number or
        identifier only. With the key of a job (`read_key`) it is the draw of that job. Without a
        key a new one is used and forgotten, so another call gives other draws, and two releases of
        a record disclose more than the budget.

        Parameters
        ----------
        column : pandas, polars or pyarrow column, or sequence of text
            Symbols of X as text; for one column or more a frame that has them, and for crossed ones
            also a sequence of tuples. Where the channel is for people with several records, a frame
            with their records: as many come out as before, and each person gets a new number.
            Boxes take a frame.
        key : draws.Key, optional
        identity : sequence of str, optional
            What identifies each record; its row number otherwise.
        first_row : int
            Row number of the first entry.
        policy : release.Policy, optional
            The rules for unknown symbols and missing cells; by default those with which the
            channel was designed, where both are refused if nothing was said.
        draws : {"fixed", "independent"}, optional
            Fixed counts, the default where the column is the table of the design, or a draw of its
            own for each entry.
        insecure_seed : int, optional
            Reproducible draws, for tests only: with the seed the channel can be undone.
        unit : {"record"}, optional
            Says that the promise is knowingly about each record alone, where people have several.

        Raises
        ------
        InputError
            On a symbol that the channel does not know or a null, unless the policy has a rule for
            it. If people have several records, and the order of a frame or the index of a column
            tells which are of one person; not with ``unit="record"``.
        """
        if policy is None:
            policy = Policy.recorded(self.record.rules)
        if draws == FIXED:
            self.on_tables(BOXES_NOT_FIXED)
        if self.people is not None:
            if first_row:
                raise InputError(
                    "people are drawn as a whole table: leave first_row out"
                )
            release = self.prepared(key_of(key, insecure_seed), policy=policy)
            released, notes = apply_to_people(
                release, self.people, column, identity=identity, draws=draws
            )
            for note in notes:
                warnings.warn(note, stacklevel=2)
            return released
        if self.coder is None:
            cells = values_of(column, self.useful)
        else:
            cells = encoded_columns(column, self.released_columns)
        records = records_of(identity, first_row, len(cells[0]))
        if draws not in (None, *DRAWS):
            raise InputError(
                f"--draws ({quoted(draws)}) must be one of {listed(DRAWS)}"
            )
        # Other columns have nothing beside their cells, which names nobody.
        if is_frame(column) or hasattr(column, "to_frame"):
            above("people").refuse_people_of_draw(self, column, unit)
        release = self.prepared(key_of(key, insecure_seed), policy=policy)
        if draws != INDEPENDENT:
            fix_where_whole(release, cells, records, is_asked=draws is not None)
        drawn = release.draw(cells, records)
        released, notes = released_like(release, column, drawn)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return released

    @property
    def coding_record(self) -> dict[str, Any]:
        """What the digest has of the coder; nothing where records are coded by their symbols."""
        return {} if self.coder is None else record_of_coder(self.coder, self.parts)

    def coding(self, policy: Policy) -> tuple[Coding, Sampler]:
        """How the cells of a record become a row of the sampler, and the sampler."""
        left_out = self.record.rules.left_out_of_table(is_public=self.joint is None)
        if self.coder is None:
            return symbol_coding(self, policy, left_out)
        return box_coding(self, self.coder, policy, left_out)

    @property
    def filling(self) -> Filling | None:
        """The samplers of the rows that are drawn within boxes; None where outputs are released
        themselves.
        """
        if self.coder is None or not self.fills:
            return None
        return Filling(self.parts, self.coder)

    def form_of(self, form: str) -> str:
        """The form of what is released, where `form` is asked for; of boxes rows, drawn whole."""
        return form if self.coder is None else ROW

    def prepared(
        self,
        key: Key,
        *,
        policy: Policy | None = None,
        form: str = LABEL,
        changed: str = REFUSE,
    ) -> Release:
        """The channel prepared for drawing; the parameters are those of `Release`."""
        self.check_filled()
        if self.coder is not None and form != LABEL:
            raise InputError("boxes say themselves what is released of each column")
        return Release(self, key, policy=policy, form=form, changed=changed)

    def writes_symbols(self, place: int, form: str) -> bool:
        """Whether the released column at this place has symbols of its source, and not labels."""
        if form != LABEL or self.coder is not None:
            return True
        if self.published is None:
            return self.releases_own_symbols
        # Beside given columns, which stay as they are, free outputs have one label.
        return self.releases_symbols or self.output_columns[place] in self.given

    def writes_bins(self, place: int) -> bool:
        """Whether the released column at this place has bins of numbers."""
        inputs = self.input_columns
        # Labels of crossed columns are one column for several.
        if place >= len(inputs):
            return False
        variable, part = inputs[place]
        return variable.bins_of(part) is not None

    @property
    def releases_own_symbols(self) -> bool:
        """Whether the outputs are symbols of the one useful column, made to stand in its place."""
        return self.record.objective is not None and len(self.useful.columns) == 1

    def public(self) -> Channel:
        """The channel without the joint table and whatever is computed from it.

        It keeps the rows with their labels, the notion with its budgets, and the columns and
        symbols of S, which name what is protected and must not be left in a release. Of boxes it
        has neither counts nor rows to fill them with.
        """
        return replace(
            self,
            useful=self.useful.public(),
            joint=None,
            record=replace(self.record.public(), is_counts=self.has_counts),
            coder=None if self.coder is None else self.coder.public(),
            claims=None if self.claims is None else self.claims.public(),
            fill=None,
        )

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        public: bool = False,
    ) -> None:
        """Write the channel file.

        Parameters
        ----------
        path : path of the file
            A name that ends in ``.gz`` packs it by gzip.
        overwrite : bool
            Whether an existing file may be replaced.
        public : bool
            Leave out the joint table and whatever else discloses it (achieved budgets, utility,
            certificate and source); such a channel can be applied, but audited only with the table
            at hand.

        Raises
        ------
        InputError
            If the file exists (without `overwrite`), is a folder or cannot be written, or the
            channel may not be (`ChannelRecord.unwritable`; a public file of filled boxes, which
            needs the rows of the table).
        """
        above("channel_file").save(self, path, overwrite=overwrite, public=public)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a channel file; InputError if it is none, or was edited or damaged."""
        return above("channel_file").load(path)


class Boxed(NamedTuple):
    """What makes a channel one of boxes, and what it protects."""

    coder: BoxCoder
    claims: BoxClaims
    sensitive: Variable

    @property
    def together_texts(self) -> list[list[str]]:
        """For each stratum which sensitive symbols are promised together, in words."""
        return [claim.together_texts(self.sensitive) for claim in self.claims.strata]


@dataclass(frozen=True)
class BoxPart:
    """The boxes of one stratum, and the channel for them.

    Parameters
    ----------
    stratum : tuple of int
        Codes of the given columns; empty without them.
    boxes : Boxes
    together : tuple of tuples of int
        Sensitive symbols that are promised together, as one value of the channel.
    channel : Channel, optional
        From boxes to labels; None where the part releases nothing.
    fill : RowsByBox
        For each box the distinct rows of all records in it; empty without filling, and in a public
        channel.
    inside : SymbolCounts
        For each box and column, records with each symbol, of those that the promise was proven on;
        empty in a public channel.
    """

    stratum: tuple[int, ...]
    boxes: Boxes
    together: tuple[tuple[int, ...], ...] = ()
    channel: Channel | None = None
    fill: RowsByBox = ()
    inside: SymbolCounts = ()

    @property
    def releases_boxes(self) -> bool:
        """Whether the outputs are the boxes themselves, and not labels of several."""
        if self.channel is None or self.channel.record.objective is None:
            return False
        return self.channel.record.objective.name == "truth"


def _check_total(total: object, what: str) -> None:
    """Raise InputError unless a sum of a row is an integer in range."""
    # bool is a kind of int, and no sum.
    if type(total) is not int or not 1 <= total <= LARGEST_INTEGER:
        raise InputError(f"{what} ({quoted(total)}) must be an integer in [1, 2^62]")
