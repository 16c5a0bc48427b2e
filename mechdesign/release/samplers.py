"""Samplers of a channel: of its rows, of records without a row, and of boxes.

*Policies* are rows of integers for unknown symbols and missing cells. A policy chooses these rows:
an output of the channel, or the marginal P(y). They are appended to the rows of the channel, and
one sampler draws from all: the symbol x has the row x, a missing cell the row |X|, and an unknown
symbol the row |X| + 1 (`sampler_with_policies`).

Masses of any size become rows over one denominator by the method of largest remainders
(`apportioned`): 1, 1, 1 over 8 are 3, 3, 2.

*Boxes.* The channel W of the boxes of all strata is one sampler, with a row for each box
(`box_laws`). A box that no record of the proof was in has no row in the channel, and is drawn like
the marginal of its stratum, if the promise covers it and the counts are there. With filling there
are two more draws (`Filling`):

    step 0       the box b of a record gives an output y, from W(y | b)
    step 1       with filling: a box, in proportion to n(b) W(y | b); y itself where it is a box
    step 2       with filling: a row of the table in that box, as often as the table has it

n(b) are the records of the box b (`boxes_of_outputs`). For example, the boxes 0 and 1 have 30 and
10 records, and W gives the label y to box 0 always and to box 1 half the time. Then y is filled
from box 0 with 30 : 5, by one of its rows, all columns at once: only rows of the table are
released. Step 2 is exact, and step 1 exact for boxes: with their law kept, every row of the table
is released as often as the table has it, in expectation.

The steps of filling depend on the output alone, so they disclose nothing more of the record.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import CellForm, Encoded
from mechdesign.release.draws import Sampler
from mechdesign.release.protocol import Releasable, ReleasablePart
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.cell_values import (
    DROP,
    MARGINAL,
    NEAREST,
    OUTPUT,
    REFUSE,
    SYMBOL,
    CellRules,
    released_as,
)
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import box_name
from mechdesign.tables.variable import Variable

# ----------------------------------------------------------------------------- policies

FORM_RULES = ("normalise", "trim", "missing_codes")
"""Names of the rules for cells that look alike or stand for an empty one."""

RULES = ("missing", "unknown", *FORM_RULES)
"""Names of the rules of a release, those of `Policy`."""

FINE = 2**53
"""Denominator to which exact fractions are rounded here."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The treatment of records without a row in the channel; they are never passed through.

    Parameters
    ----------
    unknown : str
        For a symbol that the channel does not have: ``refuse``, ``output:LABEL`` (publish this
        output of the channel), ``marginal`` (draw from P_Y under the table, as for a record
        about which nothing is known), or, for rows of several columns, ``nearest`` (draw as for
        the nearest known row; `release.coding`).
    missing : str
        The same for a missing or empty cell, unless the channel has the empty symbol; ``symbol``
        says that it has one.
    normalise : str
        Unicode form in which symbols are compared: ``none``, ``NFC``, ``NFD``, ``NFKC`` or
        ``NFKD``.
    trim : bool
        Whether symbols are compared without blanks at their ends.
    missing_codes : tuple of str
        Texts that stand for an empty cell.

    Raises
    ------
    InputError
        On anything else.
    """

    unknown: str = REFUSE
    missing: str = REFUSE
    normalise: str = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_rule("unknown", self.unknown)
        if self.missing == SYMBOL:
            # An empty symbol of the channel comes before every rule; without one it is an error.
            object.__setattr__(self, "missing", released_as(SYMBOL))
        _check_rule("missing", self.missing)
        # Refuses an unknown Unicode form.
        _ = self.cell_form

    @classmethod
    def recorded(cls, rules: CellRules | None) -> Policy:
        """The policy that a channel recorded when its table was read."""
        if rules is None:
            return cls()
        return cls(**rules.model_dump(exclude={"counted", "left_out"}))

    @property
    def lets_nothing_through(self) -> bool:
        """Whether all records of a release have a symbol of the channel, or that of the nearest."""
        return self.missing == REFUSE and self.unknown in (REFUSE, NEAREST)

    @property
    def cell_form(self) -> CellForm:
        """The form in which symbols are compared."""
        return CellForm(
            normalise=self.normalise,
            trim=self.trim,
            missing_codes=self.missing_codes,
        )


def recorded_rules(
    channels: Sequence[object], settled: Collection[str] = ()
) -> CellRules | None:
    """The rules by which the tables of some channels were read; None where none has them.

    Parameters
    ----------
    channels : sequence of objects
    settled : collection of str
        Names of the rules that the caller knows otherwise, or does not need: in these the channels
        may differ, and the answer has those of the first channel.

    Raises
    ------
    InputError
        If the channels were made by different rules: one policy is for all of them.
    """
    found: list[CellRules] = []
    counted: set[str] = set()
    for channel in channels:
        record: object = getattr(channel, "record", None)
        rules: object = getattr(record, "rules", None)
        if isinstance(rules, CellRules):
            found.append(rules)
            counted.add(rules.counted)
    if not found:
        return None
    differing: list[str] = []
    for name in RULES:
        kinds = {getattr(rules, name) for rules in found}
        if name not in settled and len(kinds) > 1:
            differing.append(f"--{name.replace('_', '-')}")
    if differing:
        raise InputError(
            "the channels were designed with different rules for empty, unknown or alike cells: "
            f"say which ones hold here ({', '.join(differing)}), or take the channels one by one"
        )
    # How each table was counted matters to no release.
    common = counted.pop() if len(counted) == 1 else REFUSE
    return found[0].model_copy(update={"counted": common, "left_out": 0})


def _check_rule(name: str, rule: str) -> None:
    """Raise InputError unless the value is one of the three forms of a rule."""
    has_label = str(rule).startswith(OUTPUT) and rule != OUTPUT
    if rule == DROP:
        raise InputError(
            f"a release leaves no record out (--{name} drop), because that would tell that its "
            "cell was empty or unknown; say marginal, or take the records out of the file first"
        )
    if name == "unknown":
        if rule not in (REFUSE, MARGINAL, NEAREST) and not has_label:
            raise InputError(
                f"--{name} ({quoted(rule)}) must be refuse, marginal, nearest or output:LABEL"
            )
    elif rule not in (REFUSE, MARGINAL) and not has_label:
        raise InputError(
            f"--{name} ({quoted(rule)}) must be refuse, marginal or output:LABEL"
        )


def normalised(variable: Variable, form: CellForm) -> Variable:
    """The variable with its symbols in a form."""
    if form.changes_nothing:
        return variable
    symbols: list[tuple[str, ...]] = []
    for symbol in variable.symbols:
        symbols.append(tuple(map(form.text, symbol)))
    twice = repeated(symbols)
    if twice is not None:
        # With two rows for one text, a record would have no definite row.
        first = symbols.index(twice)
        second = symbols.index(twice, first + 1)
        names = variable.names
        raise InputError(
            f"the channel tells {quoted(names[first])} from {quoted(names[second])}, which "
            f"{form} makes equal; choose another form, or design the channel with this one"
        )
    return replace(variable, symbols=tuple(symbols))


def normalised_cells(columns: Sequence[Encoded], form: CellForm) -> list[Encoded]:
    """The columns with the texts of their cells in a form."""
    return [form.cells(column) for column in columns]


def sampler_with_policies(channel: Releasable, policy: Policy) -> Sampler:
    """A sampler of the channel's rows, then of one for missing cells and one for unknown symbols.

    Where these are refused the row is arbitrary. The denominator is fine enough for the marginal
    under every policy, so the draws of the channel's own symbols do not depend on the policy.
    """
    # The design counted the marginal among what it promises for symbols without a record. Refused
    # ones are not released at all, but a chosen output could tell more than the promise allows.
    if channel.unseen and policy.unknown.startswith(OUTPUT):
        raise InputError(
            f"--unknown {policy.unknown}: the promise covers {channel.unseen:,} symbols that no "
            "record of the table had if they are released as the marginal; say --unknown marginal, "
            "or refuse"
        )
    if policy.unknown == NEAREST:
        check_nearest(channel.useful.columns, channel.unseen)
    _refuse_beside_given(channel, policy)
    rows = IntegerRows.of(channel.rows)
    # At least 2^53, because P(y) is rounded to it; and a whole multiple of the channel's
    # denominator, so that its own rows stay exact. Rows with totals of their own stay as they are.
    scale = 1
    denominator = FINE
    totals = channel.row_totals
    if channel.totals is None:
        scale = -(-FINE // channel.denominator)
        denominator = channel.denominator * scale
        totals = (denominator,) * len(rows)
    further = [
        apportioned(policy_row(channel, policy.missing, "missing"), denominator),
        apportioned(policy_row(channel, policy.unknown, "unknown"), denominator),
    ]
    # The compressed rows of the channel, followed by the positive entries of the further ones.
    positions = [np.flatnonzero(row) for row in further]
    ends = rows.indptr[-1] + np.cumsum(list(map(len, positions)))
    values = [rows.values * scale]
    for row, at in zip(further, positions, strict=True):
        values.append(row[at])
    extended = IntegerRows(
        (len(rows) + len(further), rows.shape[1]),
        np.concatenate([rows.indptr, ends]),
        np.concatenate([rows.indices, *positions]),
        np.concatenate(values),
    )
    return Sampler(extended, (*totals, denominator, denominator))


def _refuse_beside_given(channel: Releasable, policy: Policy) -> None:
    """Refuse rules under which a record of another row would get other given cells."""
    if not channel.given:
        return
    for name, rule in (("unknown", policy.unknown), ("missing", policy.missing)):
        # The nearest row has the given cells of the record.
        if rule not in (REFUSE, NEAREST):
            raise InputError(
                f"--{name} {rule}: the channel releases {listed(channel.given)} as it is, and an "
                "output for other rows would change it: leave such records out of the file, or "
                "design with empty cells as a symbol (--missing symbol) or without given columns"
            )


def check_nearest(columns: Sequence[str], unseen: int = 0) -> None:
    """Raise InputError where unknown rows cannot be released as the nearest known one.

    Parameters
    ----------
    columns : sequence of str
        The useful columns.
    unseen : int
        Symbols without a record that the promise covers.
    """
    if len(columns) < 2:
        raise InputError(
            "--unknown nearest compares rows cell by cell, and this channel is for one column "
            f"({listed(columns)}): say --unknown marginal, or refuse"
        )
    if unseen:
        raise InputError(
            f"--unknown nearest: the promise covers {unseen:,} symbols that no record of the table "
            "had if they are released as the marginal; say --unknown marginal, or refuse"
        )


def policy_row(channel: Releasable, rule: str, name: str) -> list[int]:
    """Integers in proportion to P(y | record) for a record without a row, under a rule.

    `name` is the field of the policy, for messages.
    """
    if rule == MARGINAL:
        table_of(channel, f"--{name} marginal")
        # P(y) is the sum of P(x, y) over the inputs behind the output y.
        return [sum(masses) for _, masses in channel.behind]
    if rule in (REFUSE, NEAREST):
        # Nothing is ever drawn from this row. It only keeps the number of rows the same.
        label = channel.outputs[0]
    else:
        label = rule.removeprefix(OUTPUT)
    if label not in channel.outputs:
        near = difflib.get_close_matches(label, channel.outputs, n=1)
        hint = ""
        if near:
            hint = f"; did you mean {quoted(near[0])}?"
        raise InputError(
            f"--{name} {rule}: {quoted(label)} is no output of the channel, and another label "
            f"would give the record away{hint} (outputs: {listed(channel.outputs)})"
        )
    return [int(output == label) for output in channel.outputs]


def posterior_sampler(channel: Releasable) -> Sampler:
    """P(x | y) under the table, one row for each output."""
    table_of(channel, "posterior-draw")
    return sampler_of(channel.behind, len(channel.useful))


def sampler_of(
    rows: Sequence[tuple[Sequence[int], Sequence[int]]], size: int
) -> Sampler:
    """A sampler of `size` choices; each row has positions, and integers in proportion to their
    probabilities.
    """
    pairs: list[list[int]] = []
    for positions, shares in rows:
        masses = apportioned(shares, FINE).tolist()
        flat: list[int] = []
        for position, mass in zip(positions, masses, strict=True):
            if mass:
                flat += [position, mass]
        pairs.append(flat)
    return Sampler(IntegerRows.of_pairs(pairs, size), FINE)


def table_of(channel: Releasable, purpose: str) -> Joint:
    """The table of a channel; InputError, which names the purpose, for a public one."""
    if channel.joint is None:
        raise InputError(
            f"{purpose} needs the table that the channel was designed for, and this channel "
            "carries none (a public one); use the channel file that `design` wrote"
        )
    return channel.joint


def apportioned(shares: Sequence[int], denominator: int) -> Integers:
    """Integers in proportion to `shares` that sum to `denominator`, by largest remainders.

    Each quota share * denominator / total is rounded down, and the units that are left go to the
    quotas that lost most. A share of zero stays zero.
    """
    total = sum(shares)
    whole: list[int] = []
    # In units of 1 / total, by which fractions need not be made of many shares.
    lost: list[int] = []
    for share in shares:
        units, remainder = divmod(share * denominator, total)
        whole.append(units)
        lost.append(remainder)
    # The largest remainder first. There are always enough positive ones, because the remainders
    # are below one and add up to the number of units that are left.
    order = sorted(range(len(whole)), key=lambda i: -lost[i])
    for i in order[: denominator - sum(whole)]:
        whole[i] += 1
    return np.array(whole, dtype=np.int64)


# -------------------------------------------------------------------------------- boxes

Law: TypeAlias = dict[int, int]
"""A distribution: the positive integers of its places, in proportion to it."""


def box_laws(channel: Releasable, coder: BoxCoder) -> list[Law | None]:
    """For every box, by its number, the law of its output; None where nothing can be drawn."""
    entries = IntegerRows.of(channel.rows).entries()
    rows = dict(zip(channel.useful.symbols, entries, strict=True))
    laws: list[Law | None] = []
    first = 0
    for part, stratum in zip(channel.parts, coder.strata, strict=True):
        given = coder.given_texts(stratum.codes)
        marginal = marginal_of(part)
        for box in range(len(stratum.boxes)):
            row = rows.get((*given, box_name(box)))
            if row is not None:
                laws.append(dict(row))
            else:
                laws.append(moved(positive(marginal), first) if marginal else None)
        first += 1 if part.channel is None else len(part.channel.outputs)
    return laws


def marginal_of(part: ReleasablePart) -> Sequence[int]:
    """The marginal of the outputs of a stratum, which boxes without records are drawn by; empty
    where the promise covers none of these, or in a public channel, which has no counts.
    """
    channel = part.channel
    if channel is None or not channel.unseen or channel.joint is None:
        return ()
    masses = policy_row(channel, MARGINAL, "unknown")
    return apportioned(masses, FINE).tolist()


class Filling:
    """Samplers of a box for each output, and of a row for each box.

    Outputs, boxes and rows are numbered through all strata, one after the other.

    Attributes
    ----------
    boxes : Sampler
        Of boxes, with a row for each output.
    rows : Sampler
        Of rows, with a row for each box; its totals are the records of the boxes.
    columns : list of lists of str
        By released column what is written for each row, given columns first.
    """

    def __init__(self, parts: Sequence[ReleasablePart], coder: BoxCoder) -> None:
        boxes: list[Law] = []
        laws: list[Law] = []
        self.columns: list[list[str]] = [[] for _ in coder.released_columns]
        size = 0
        for part in parts:
            first_box = len(laws)
            if part.channel is None:
                # One output, one box, and one row.
                boxes.append({first_box: FINE})
                laws.append({size: 1})
                cells = [[text] for text in coder.silent_row(part.stratum)]
            else:
                boxes += boxes_of_outputs(part, part.channel, first_box)
                first = size
                for rows_of_box in part.fill:
                    records = [row[-1] for row in rows_of_box]
                    # Nothing leads to a box without records; its law only keeps the places.
                    laws.append(dict(enumerate(records, first)) or {0: 1})
                    first += len(records)
                cells = coder.cells_of(part.stratum, filling_rows(part)[:, :-1])
            for column, more in zip(self.columns, cells, strict=True):
                column += more
            size = len(self.columns[0])
        self.boxes = sampler_of_laws(boxes, len(laws))
        self.rows = sampler_of_laws(laws, size)


def filling_rows(part: ReleasablePart) -> Integers:
    """The rows of all boxes of a stratum, one box after the other: codes, and then the records."""
    return np.array([row for rows in part.fill for row in rows], dtype=np.int64)


def boxes_of_outputs(
    part: ReleasablePart, channel: Releasable, first: int
) -> list[Law]:
    """The law of the box b that fills each output y of a part.

    Where the outputs are boxes it is the box itself; else it is in proportion to n(b) W(y | b),
    with the records n(b) of the box. The boxes are numbered from `first` on.
    """
    if part.releases_boxes:
        box_of_name = {box_name(box): box for box in range(len(part.boxes))}
        return [{first + box_of_name[name]: FINE} for name in channel.outputs]
    sizes = [sum(row[-1] for row in rows) for rows in part.fill]
    laws: list[Law] = []
    rows = dict(zip(channel.useful.names, channel.rows, strict=True))
    totals = dict(zip(channel.useful.names, channel.row_totals, strict=True))
    for y in range(len(channel.outputs)):
        masses: list[int] = []
        for box, records in enumerate(sizes):
            name = box_name(box)
            # A box without records of the proof has no row, so no output leads back to it.
            if name not in rows:
                masses.append(0)
                continue
            scale = channel.denominator // totals[name]
            masses.append(records * rows[name][y] * scale)
        laws.append(moved(shares_of(masses), first))
    return laws


def law_of_boxes(part: ReleasablePart, channel: Releasable) -> NDArray[np.float64]:
    """(boxes, boxes) array: for every true box, the probability of each that is filled.

    The box that is filled is the output, or drawn from its posterior: the channel is followed by
    this draw. A box that no record of the proof is in has a row of zeros.
    """
    count = len(part.boxes)
    filled = np.zeros((len(channel.outputs), count))
    for y, masses in enumerate(boxes_of_outputs(part, channel, 0)):
        total = sum(masses.values())
        for box, mass in masses.items():
            filled[y, box] = mass / total
    outputs = np.zeros((count, len(channel.outputs)))
    place = {box_name(box): box for box in range(count)}
    for name, row, total in zip(
        channel.useful.names, channel.rows, channel.row_totals, strict=True
    ):
        outputs[place[name]] = np.array(row, dtype=np.float64) / total
    return outputs @ filled


def shares_of(masses: list[int]) -> Law:
    """The law in proportion to masses."""
    return positive(apportioned(masses, FINE).tolist())


def positive(row: Sequence[int]) -> Law:
    """The positive entries of a row, by their places."""
    return {place: value for place, value in enumerate(row) if value}


def moved(law: Law, first: int) -> Law:
    """The law with its places counted from `first` on."""
    return {first + place: value for place, value in law.items()}


def sampler_of_laws(laws: Sequence[Law], width: int) -> Sampler:
    """A sampler with a row for each law; its total is the sum of the law."""
    ends = [0]
    places: list[int] = []
    values: list[int] = []
    for law in laws:
        for place in sorted(law):
            places.append(place)
            values.append(law[place])
        ends.append(len(places))
    table = IntegerRows(
        (len(laws), width),
        np.array(ends, dtype=np.int64),
        np.array(places, dtype=np.int64),
        np.array(values, dtype=np.int64),
    )
    return Sampler(table, [sum(law.values()) for law in laws])
