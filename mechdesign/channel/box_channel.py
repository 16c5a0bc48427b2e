"""A channel for rows whose promise holds for the population: boxes of rows, and a channel for them.

A row is generalised to a box (`tables.row_boxes`), and the box is released through an ordinary
channel with a confidence set of its own. With given columns there is such a part for each stratum,
and the promise is relative to them. A part without a channel releases the given columns alone.

For one record: its given symbols choose the part, the splits of the part lead its row to a box, as
'box 3', and the part's channel draws an output for that box. The output is released as the label of
a box in one column, or, with filling, as symbols of the columns that records in the box have.

For example, the record (F; nurse, 40) with the given column sex belongs to the part of F. If box 3
is 'job nurse, clerk; hours 38-42', its symbol in the channel of that part is 'box 3'. The output
may be 'box 3' or '{box 2, box 3}', and with filling (clerk, 38).

A `BoxChannel` is made by `design` and read by `load`; its draws are made by
`release.box_drawing.BoxRelease`, which sees it as a `ReleasableBoxes`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from mechdesign.channel.box_utility import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import PUBLIC_PROVENANCE, chosen_entries
from mechdesign.channel.row_law import Array, RowLaw
from mechdesign.channel.saving import Saved
from mechdesign.core.above import above
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, Integers
from mechdesign.core.wording import joined_name, listed, percent_of
from mechdesign.formats.cells import encode, encoded_columns
from mechdesign.notions import Notion
from mechdesign.release.policies import REFUSE, Policy
from mechdesign.release.released_values import LABEL
from mechdesign.tables.columns import positions_of
from mechdesign.tables.people import ABSENT, People, at_place
from mechdesign.tables.row_boxes import BOX, NOTHING, Boxes, box_name
from mechdesign.tables.variable import Variable, column_names

if TYPE_CHECKING:
    from mechdesign.release.box_drawing import BoxRelease
    from mechdesign.release.draws import Key

NOT_PUBLIC = (
    "boxes are filled with rows of the table, which their channel file holds to draw from: it "
    "cannot be public; leave --fill out to release boxes by a public channel, or --public"
)
"""The refusal of a public file of a channel with filling."""


ROUNDING = 1e-9
"""Nats below zero that information can have by the rounding of its sum."""


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
        From boxes to outputs; None where the part releases nothing.
    fill : tuple of (rows) tuples of int
        For each box the distinct rows of all records in it: the code of each column, and then the
        number of records. Empty without filling, and in a public channel.
    inside : tuple of (columns) tuples of (symbols) tuples of int
        For each box and column, records with each symbol, of those that the promise was proven on,
        for estimates; empty in a public channel.
    """

    stratum: tuple[int, ...]
    boxes: Boxes
    together: tuple[tuple[int, ...], ...] = ()
    channel: Channel | None = None
    fill: tuple[tuple[tuple[int, ...], ...], ...] = ()
    inside: tuple[tuple[tuple[int, ...], ...], ...] = ()

    @property
    def releases_boxes(self) -> bool:
        """Whether the outputs are the boxes themselves, and not labels of several."""
        if self.channel is None or self.channel.record.objective is None:
            return False
        return self.channel.record.objective.name == "truth"


@dataclass(frozen=True, repr=False, eq=False)
class BoxChannel(Saved, Described):
    """Releases rows as boxes, or filled with symbols of these; see the module.

    Parameters
    ----------
    sensitive : Variable
    given, columns : tuple of Variable
        Columns that are released as they are, and columns that the boxes are made of.
    parts : tuple of BoxPart
        One for each stratum; one without given columns.
    level : float
        The confidence that all parts keep their promise at once.
    slice_records : int
        Records that the boxes were learned on; the promise was proven on the others.
    provenance : mapping
    utility : BoxUtility, optional
        What is kept, computed when the channel was designed; None in a public channel.
    people : People, optional
        How a row is the sequence of a person's records, where it is one; boxes are then filled with
        sequences of the table.
    """

    sensitive: Variable
    given: tuple[Variable, ...]
    columns: tuple[Variable, ...]
    parts: tuple[BoxPart, ...]
    level: float
    slice_records: int
    provenance: Mapping[str, Any]
    utility: BoxUtility | None = None
    people: People | None = None

    FILES: ClassVar[str] = "box_file"
    REPORTS: ClassVar[str] = "box_reports"

    writes_rows: ClassVar[Literal[True]] = True
    """The channel says itself what it writes."""

    judged_alone: ClassVar[Literal[True]] = True
    """The proof holds for records that the boxes were not learned on: the channel has their counts,
    and another table may contain the very records that they were learned on.
    """

    def __post_init__(self) -> None:
        people = self.people
        if people is not None:
            if self.released_columns != people.folded_columns:
                raise InputError(
                    "people: the columns are not those of the sequences of their records"
                )
            # The public form has nothing to fill boxes with; it serves a report, and draws nothing.
            if self.utility is not None:
                self.check_filled()
        strata = [part.stratum for part in self.parts]
        if not strata or len(set(strata)) < len(strata):
            raise InputError("the parts must be of different strata")
        for part in self.parts:
            if len(part.stratum) != len(self.given):
                raise InputError("a stratum must have a code for every given column")
            for variable, code in zip(self.given, part.stratum, strict=True):
                if not 0 <= code < len(variable):
                    raise InputError("a stratum has no symbol of its column")
            for split in part.boxes.splits:
                if not 0 <= split.column < len(self.columns):
                    raise InputError("a split is on a column that is not there")
                size = len(self.columns[split.column])
                if not all(0 <= code < size for code in split.inside):
                    raise InputError("a split has no symbol of its column")
            self._check_part(part)
        if not 0 <= self.slice_records <= LARGEST_INTEGER:
            raise InputError("slice_records must be a number of records")
        self._check_level()
        if self.utility is not None:
            self._check_utility(self.utility)

    def _check_utility(self, kept: BoxUtility) -> None:
        """Refuse figures that cannot be, of a file that was edited or damaged."""
        figures = [kept.information, kept.bound, kept.entropy]
        names: list[tuple[str, ...]] = []
        for column in kept.columns:
            names.append(column.columns)
            figures += [column.entropy, column.kept]
        shares = [kept.own, kept.own_bound, kept.law_deviation]
        if not all(map(_is_figure, figures)) or kept.bound < kept.information:
            raise InputError(
                "utility: what is kept must be numbers that are not negative"
            )
        if not all(share is None or 0.0 <= share <= 1.0 for share in shares):
            raise InputError("utility: shares must lie in [0, 1]")
        if names != [variable.columns for variable in self.columns]:
            raise InputError("utility: there must be figures of every released column")
        channels = [part.channel for part in self.parts]
        joints = [channel.joint for channel in channels if channel is not None]
        proven = sum(joint.total for joint in joints if joint is not None)
        # Parts that release nothing have records, too, and no counts of them; and strata that the
        # slice does not have are no parts.
        is_all = not self.given and None not in channels and None not in joints
        counted = proven + self.slice_records
        if kept.records < counted or (is_all and kept.records != counted):
            raise InputError("utility: its records are not those of the counts")

    def _check_level(self) -> None:
        """The parts may fail with probability 1 - level together (union bound).

        Part k fails with probability 1 - level_k, so the sum of these must be at most 1 - level.
        """
        # In fractions of the decimal texts: sums of doubles could exceed the limit by rounding.
        spent = Fraction(0)
        for part in self.parts:
            if part.channel is None:
                continue
            record = part.channel.record.confidence
            if record is None:
                raise InputError("the channel of a part has no confidence set")
            if part.channel.promise is None:
                raise InputError("the channel of a part promises nothing")
            spent += 1 - Fraction(repr(record["level"]))
        if spent > 1 - Fraction(repr(self.level)):
            raise InputError(
                "the levels of the parts do not add up to the level of the whole"
            )

    def _check_part(self, part: BoxPart) -> None:
        """Refuse a part whose channel does not fit its boxes and the sensitive symbols."""
        if part.channel is None:
            return
        if part.channel.useful.columns != (BOX,):
            raise InputError("the channel of a part must release boxes")
        names = set(map(box_name, range(len(part.boxes))))
        if not names.issuperset(part.channel.useful.names):
            raise InputError("the channel of a part has a box that is not there")
        # Boxes that no record has are covered as unseen symbols, and by that number only.
        unseen = len(names) - len(part.channel.useful)
        if part.channel.unseen < unseen:
            raise InputError("the channel of a part does not cover its empty boxes")
        members = list(itertools.chain.from_iterable(part.together))
        if sorted(members) != list(range(len(self.sensitive))):
            raise InputError(
                "every sensitive symbol must be promised once in every part"
            )
        self._check_protected(part, part.channel.sensitive)
        # Public channels have neither of these.
        self._check_fill(part)
        self._check_inside(part, part.channel)

    def _check_protected(self, part: BoxPart, protected: Variable | None) -> None:
        """Refuse a part whose channel protects other symbols than those that are promised."""
        if protected is None:
            return
        if protected.columns != (",".join(self.sensitive.columns),):
            raise InputError("the channel of a part protects another column")
        promised: set[tuple[str, ...]] = set()
        for members in part.together:
            promised.add((joined_name([self.sensitive.names[s] for s in members]),))
        # A group without a record of the proof is not among them.
        if not promised.issuperset(protected.symbols):
            raise InputError("the channel of a part protects another symbol")

    def _check_inside(self, part: BoxPart, channel: Channel) -> None:
        """Refuse counts of the symbols in a box that are not those of its records."""
        if not part.inside:
            return
        if len(part.inside) != len(part.boxes):
            raise InputError("there must be counts of the symbols in every box")
        records = dict.fromkeys(map(box_name, range(len(part.boxes))), 0)
        if channel.joint is not None:
            names = channel.useful.names
            records.update(zip(names, channel.joint.useful_counts, strict=True))
        sizes = [len(variable) for variable in self.columns]
        for columns, total in zip(part.inside, records.values(), strict=True):
            if [len(counts) for counts in columns] != sizes:
                raise InputError("every symbol of every column needs a count in a box")
            for counts in columns:
                if min(counts) < 0 or (
                    channel.joint is not None and sum(counts) != total
                ):
                    raise InputError(
                        "the counts of symbols in a box are not those of its records"
                    )

    def _check_fill(self, part: BoxPart) -> None:
        """Refuse rows to fill boxes with that are not in their boxes."""
        if not part.fill:
            return
        if len(part.fill) != len(part.boxes):
            raise InputError("there must be rows to fill every box")
        sizes = [len(variable) for variable in self.columns]
        for box, rows in enumerate(part.fill):
            # A box that no record is in is never released, so nothing fills it.
            if not rows:
                continue
            table = _table_of(rows, len(sizes) + 1)
            codes = table[:, :-1]
            if (codes < 0).any() or (codes >= np.array(sizes)).any():
                raise InputError("a row that fills a box has no symbol of its column")
            if (table[:, -1] < 1).any():
                raise InputError("a row that fills a box has no record")
            if (part.boxes.of(codes) != box).any():
                raise InputError("a row that fills a box lies in another one")

    def __repr__(self) -> str:
        columns = ", ".join(variable.brief for variable in self.columns)
        return (
            f"BoxChannel({columns}; {self.boxes} boxes, protects {self.sensitive.brief}, "
            f"{percent_of(self.level)} confidence)"
        )

    def check_filled(self) -> None:
        """Raise InputError for people whose boxes have no sequences to be filled with."""
        if self.people is not None and not self.fills:
            raise InputError(
                "people: boxes must be filled with sequences, as a label of a box has no records"
            )

    @property
    def boxes(self) -> int:
        """Number of boxes of all parts."""
        return sum(len(part.boxes) for part in self.parts)

    @property
    def fills(self) -> bool:
        """Whether symbols are released in the place of boxes."""
        return any(part.fill for part in self.parts)

    @property
    def releases_symbols(self) -> bool:
        """True if symbols of the columns are released, and not labels of boxes."""
        return self.fills

    @property
    def labelled_boxes(self) -> BoxChannel | None:
        """Itself where labels of boxes are released, in which columns are estimated; else None."""
        return None if self.fills else self

    @cached_property
    def keeps_law(self) -> bool:
        """True if every row of the table is released exactly as often as the table has it.

        Rows are released where they fill the boxes, each as often among those of its box as the
        table has it there. So the boxes must be released as often as the table has them.
        """
        return self.fills and all(map(_keeps_law, self.parts))

    @property
    def tells_shares(self) -> bool:
        """Whether rows are released as such; how often the table has them is where they fill."""
        return self.fills

    @property
    def row_law(self) -> RowLaw:
        """How rows are drawn where they fill the boxes: a box by that of a record, and in it a row
        of the table.

        Raises
        ------
        InputError
            If every stratum releases nothing.
        """
        # Only draws and estimates need samplers.
        from mechdesign.release.box_samplers import law_of_boxes

        if not self.channels:
            raise InputError("the channel releases nothing: there is nothing to count")
        silent: list[tuple[str, ...]] = []
        rows: list[tuple[str, ...]] = []
        row_masses: list[float] = []
        masses: list[float] = []
        classes: list[Integers] = []
        indices: list[Integers] = []
        shares: list[Array] = []
        for part in self.parts:
            given = [
                text
                for variable, code in zip(self.given, part.stratum, strict=True)
                for text in variable.symbols[code]
            ]
            if part.channel is None:
                silent.append(self._silent_row(given))
                continue
            first = len(rows)
            box_of: list[int] = []
            records: list[int] = []
            for box, filling in enumerate(part.fill):
                for *codes, count in filling:
                    cells = [
                        text
                        for variable, code in zip(self.columns, codes, strict=True)
                        for text in variable.symbols[code]
                    ]
                    rows.append((*given, *cells))
                    box_of.append(box)
                    records.append(count)
            sizes = np.bincount(box_of, records, len(part.boxes))
            law = law_of_boxes(part, part.channel)
            # A box without a record of the proof is drawn like all records together.
            seen = law.any(axis=1)
            law[~seen] = sizes[seen] @ law[seen] / sizes[seen].sum()
            within = np.array(records) / sizes[box_of]
            drawn = law[:, box_of] * within
            boxes, places = np.nonzero(drawn)
            classes.append(boxes + len(masses))
            indices.append(places + first)
            shares.append(drawn[boxes, places])
            masses += sizes.tolist()
            row_masses += records
        total = sum(row_masses)
        return RowLaw(
            tuple(column_names([*self.given, *self.columns])),
            rows,
            rows,
            np.array(row_masses) / total,
            np.array(masses) / total,
            np.concatenate(classes),
            np.concatenate(indices),
            np.concatenate(shares),
            self.keeps_law,
            silent,
        )

    @property
    def silent_strata(self) -> Sequence[str]:
        """The strata of which nothing but the given columns is released, in words."""
        silent = [part for part in self.parts if part.channel is None]
        return [self.stratum_text(part).removesuffix(": ") for part in silent]

    def _silent_row(self, given: Sequence[str]) -> tuple[str, ...]:
        """What is written for the rows of a stratum that releases nothing."""
        cells = dict.fromkeys(self.released_columns, NOTHING)
        if self.people is not None:
            length = int(given[0])
            for name in self.people.released:
                for place in range(length, self.people.longest):
                    cells[at_place(name, place)] = ABSENT
        cells.update(zip(self.given_columns, given, strict=True))
        return tuple(cells.values())

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that records go through: those of the parts that release something."""
        return tuple(part.channel for part in self.parts if part.channel is not None)

    @property
    def promise(self) -> Notion | None:
        """The notion that all parts were designed for; None where nothing is released."""
        if not self.channels:
            return None
        return self.channels[0].promise

    @property
    def digest(self) -> str:
        """SHA-256 of what the channel does, by which ledgers and manifests know it."""
        # Only ledgers and draws need keys and samplers.
        from mechdesign.release.box_samplers import box_channel_digest

        return box_channel_digest(self)

    @property
    def hidden(self) -> tuple[Variable, ...]:
        """The variables whose symbols the channel hides, beside the sensitive one."""
        return self.columns

    @property
    def watched(self) -> tuple[Variable, ...]:
        """The hidden variables by which the records of a table must not be sorted.

        Of people those of the first place, which everybody has: the others tell the number of
        records, which is given.
        """
        if self.people is not None:
            return self.columns[: len(self.people.released)]
        return self.columns

    @property
    def input_columns(self) -> tuple[tuple[Variable, int], ...]:
        """For each column that a record is drawn by, its variable, and its place there."""
        inputs: list[tuple[Variable, int]] = []
        for variable in self.groups:
            inputs += [(variable, part) for part in range(len(variable.columns))]
        return tuple(inputs)

    @property
    def given_columns(self) -> tuple[str, ...]:
        """Names of the columns that are released as they are."""
        return column_names(self.given)

    @property
    def randomised_columns(self) -> tuple[str, ...]:
        """Names of the released columns that are not given."""
        return column_names(self.columns)

    @property
    def groups(self) -> tuple[Variable, ...]:
        """The given columns, then those of the boxes."""
        return self.given + self.columns

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that the channel needs of a record, given ones first."""
        return column_names(self.groups)

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Names of the released columns: the given ones, then the box or the filled columns."""
        if self.fills:
            return self.released_columns
        return (*self.given_columns, BOX)

    @property
    def strata(self) -> tuple[tuple[int, ...], ...]:
        """The combination of given symbols of each part."""
        return tuple(part.stratum for part in self.parts)

    def strata_of(self, codes: Integers) -> Integers:
        """(records,) number of the part of each row of codes of the given columns, -1 without
        one.
        """
        if not self.given:
            return np.zeros(len(codes), dtype=np.int64)
        part_of = dict(zip(self.strata, range(len(self.strata)), strict=True))
        # There are few different combinations, and many records.
        combinations, inverse = np.unique(codes, axis=0, return_inverse=True)
        parts = [part_of.get(tuple(row), -1) for row in combinations.tolist()]
        return np.array(parts, dtype=np.int64)[inverse.ravel()]

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """What may be released: labels of boxes of any part, or with filling of each column."""
        # To type checkers a cached property is no attribute, which the protocols of drawing want.
        return self._labels

    @cached_property
    def _labels(self) -> tuple[tuple[str, ...], ...]:
        """One column of labels; or, with filling, the symbols of each column and perhaps NOTHING.

        Parts may have outputs of one label, which stand once. The order is that of the parts.
        """
        released: list[str] = []
        for part in self.parts:
            if part.channel is None:
                released.append(NOTHING)
            else:
                released += part.channel.outputs
        if not self.fills:
            return (tuple(dict.fromkeys(released)),)
        # Behind the symbols of every column, where a part releases nothing.
        end: tuple[str, ...] = ()
        if NOTHING in released:
            end = (NOTHING,)
        return tuple(variable.names + end for variable in self.columns)

    def texts_of(self, level: int, output: int) -> tuple[str, ...]:
        """What is written for an output: the label of a box, or the symbol of a filled column."""
        if not self.fills:
            return (self.labels[level][output],)
        variable = self.columns[level]
        if output == len(variable):
            return (NOTHING,) * len(variable.columns)
        return variable.symbols[output]

    def single(self) -> Channel:
        """The one channel from boxes to labels, for work on released labels.

        Raises
        ------
        InputError
            With given columns, which have a channel for each stratum, with filling, which releases
            no labels, or where a box without records is released as the marginal.
        """
        if self.given or self.fills:
            raise InputError(
                "this takes a channel for boxes without given columns (--given) and without "
                "filling (--fill), whose released column is 'box'"
            )
        (part,) = self.parts
        if part.channel is None:
            raise InputError("the channel releases nothing: there is nothing to count")
        if part.channel.unseen:
            raise InputError(
                "some boxes of this channel had no record in the table, and are released as the "
                "marginal: the released labels do not tell their frequencies"
            )
        return part.channel

    def on_tables(self, refusal: str) -> Channel:
        """Raise InputError with the `refusal`: the channel's own counts decide its promise."""
        raise InputError(refusal)

    def to_record(self) -> dict[str, Any]:
        """The record of `show --json`."""
        parts: list[dict[str, Any]] = []
        for part in self.parts:
            outputs = 0
            if part.channel is not None:
                outputs = len(part.channel.outputs)
            parts.append(
                {
                    "stratum": self.stratum_text(part),
                    "boxes": self.box_texts(part),
                    "together": self.together_texts(part),
                    "outputs": outputs,
                }
            )
        return {
            "sensitive": self.sensitive.columns,
            "given": [variable.columns for variable in self.given],
            "columns": [variable.columns for variable in self.columns],
            "confidence": self.level,
            "slice_records": self.slice_records,
            "parts": parts,
            "provenance": dict(self.provenance),
        }

    def stratum_text(self, part: BoxPart) -> str:
        """The given symbols of a part, as 'sex Male: '; empty without given columns."""
        texts: list[str] = []
        for variable, code in zip(self.given, part.stratum, strict=True):
            texts.append(f"{','.join(variable.columns)} {variable.names[code]}")
        if not texts:
            return ""
        return f"{', '.join(texts)}: "

    def together_texts(self, part: BoxPart) -> list[str]:
        """Which sensitive symbols are promised together, in words."""
        texts: list[str] = []
        for group in part.together:
            if len(group) > 1:
                names = listed([self.sensitive.names[s] for s in group])
                texts.append(f"promised together as one value: {names}")
        return texts

    def box_texts(self, part: BoxPart) -> list[str]:
        """Every box of a part in words: 'box 1: job {clerk, nurse}; hours {38, any other}'."""
        texts: list[str] = []
        for box, members in enumerate(self.members(part)):
            pieces: list[str] = []
            for column, (inside, is_closed) in sorted(members.items()):
                variable = self.columns[column]
                names = [variable.names[x] for x in sorted(inside)]
                if not is_closed:
                    # Symbols that the slice has not seen are on this side of every split.
                    names.append("any other")
                pieces.append(f"{','.join(variable.columns)} {{{', '.join(names)}}}")
            texts.append(f"{box_name(box)}: {'; '.join(pieces) or 'every row'}")
        return texts

    def members(self, part: BoxPart) -> list[dict[int, tuple[set[int], bool]]]:
        """For every box the symbols of each column that it splits on, and whether these are all;
        else symbols that the slice has not seen are in it, too.
        """
        boxes: list[dict[int, tuple[set[int], bool]]] = []
        for conditions in part.boxes.sets():
            # A box is the intersection of the sides of all splits above it. A side 'inside' lists
            # its symbols; the other side has all the rest, seen or not.
            members: dict[int, tuple[set[int], bool]] = {}
            for column, sets in conditions.items():
                inside = set(range(len(self.columns[column])))
                is_closed = False
                for is_inside, symbols in sets:
                    if is_inside:
                        inside &= set(symbols)
                        is_closed = True
                    else:
                        inside -= set(symbols)
                members[column] = (inside, is_closed)
            boxes.append(members)
        return boxes

    def distribution(self, row: Mapping[str, str]) -> dict[str, Fraction]:
        """The exact law of the output label for a row of true texts; without filling."""
        codes: list[int] = []
        for variable in self.groups:
            cells = [encode([row[name]], name) for name in variable.columns]
            codes.append(int(positions_of(cells, variable)[0]))
        given = len(self.given)
        part = self._part(tuple(codes[:given]))
        channel = part.channel
        if channel is None:
            return {NOTHING: Fraction(1)}
        box = part.boxes.of(np.array([codes[given:]], dtype=np.int64))
        name = box_name(int(box[0]))
        if name not in channel.useful.names:
            raise InputError(
                f"{name} has no record: its rows are released as the marginal"
            )
        law: dict[str, Fraction] = {}
        place = channel.useful.names.index(name)
        total = channel.row_totals[place]
        for label, entry in zip(channel.outputs, channel.rows[place], strict=True):
            if entry:
                law[label] = Fraction(int(entry), total)
        return law

    def _part(self, stratum: tuple[int, ...]) -> BoxPart:
        """The part of a combination of given symbols."""
        for part in self.parts:
            if part.stratum == stratum:
                return part
        raise InputError(
            "the channel does not know this combination of given symbols: no record of its "
            "slice has it"
        )

    def apply(
        self,
        frame: Any,
        *,
        key: Key | None = None,
        identity: Sequence[str] | None = None,
        first_row: int = 0,
        insecure_seed: int | None = None,
        unit: str | None = None,
    ) -> Any:
        """Draw an output for every record: a frame with the given columns, and the box or the
        filled columns, and nothing else.

        Parameters are those of `Channel.apply`. Symbols of the released columns that the table
        did not have are covered: they belong to the boxes of 'any other'.

        Raises
        ------
        InputError
            On a missing column or cell, or a combination of given symbols that the slice has not;
            and on people with several records, as `Channel.apply`.
        """
        # Only a draw needs keys, samplers and data frames.
        from mechdesign.release.drawing import key_of
        from mechdesign.release.draws import records_of
        from mechdesign.release.people_frames import apply_to_people
        from mechdesign.release.released_frames import frame_of_columns

        release = self.prepared(key_of(key, insecure_seed))
        if self.people is not None:
            return apply_to_people(
                release, self.people, frame, identity=identity, draws="independent"
            )
        above("people").refuse_people_of_draw(self, frame, unit)
        cells = encoded_columns(frame, self.released_columns)
        drawn = release.draw(cells, records_of(identity, first_row, len(cells[0])))
        # The label of a box has the type of the first column that it replaces.
        first = self.columns[0].columns[0]
        return frame_of_columns(frame, drawn, release.texts, release.names, first)

    def with_provenance(self, **entries: Any) -> BoxChannel:
        """The same channel with more entries in the record of its origin."""
        return replace(self, provenance={**self.provenance, **entries})

    def prepared(
        self,
        key: Key,
        *,
        policy: Policy | None = None,
        form: str = LABEL,
        changed: str = REFUSE,
    ) -> BoxRelease:
        """The channel prepared for drawing; the parameters are those of `BoxRelease`.

        There is one `form`, that of what is released by itself.
        """
        # Only a draw needs samplers.
        from mechdesign.release.box_drawing import BoxRelease

        self.check_filled()
        if form != LABEL:
            raise InputError("boxes say themselves what is released of each column")
        return BoxRelease(self, key, policy=policy, changed=changed)

    def writes_symbols(self, place: int, form: str) -> bool:
        """Whether a released column has the type of its source if it can: all of them."""
        return True

    def recipe(self, options: Any) -> Any:
        """The recipe of its releases with these options (`jobs.options.ReleaseOptions`)."""
        return above("box_recipe").BoxRecipe.of(self, options)

    def public(self) -> BoxChannel:
        """Without counts: neither those of the channels' tables nor those that fill boxes."""
        parts: list[BoxPart] = []
        for part in self.parts:
            channel = part.channel
            if channel is not None:
                channel = channel.public()
            parts.append(replace(part, channel=channel, fill=(), inside=()))
        return replace(
            self,
            parts=tuple(parts),
            provenance=chosen_entries(self.provenance, PUBLIC_PROVENANCE),
            slice_records=0,
            utility=None,
        )

    def check_public(self) -> None:
        """Refuse a public file of a channel with filling, which needs the rows of the table."""
        if self.fills:
            raise InputError(NOT_PUBLIC)


def _is_figure(value: float) -> bool:
    """True for a finite number that is not negative, but for the rounding of a sum."""
    return math.isfinite(value) and value >= -ROUNDING


def _table_of(rows: Sequence[Sequence[int]], width: int) -> Integers:
    """The rows as an array; all must have this width."""
    if any(len(row) != width for row in rows):
        raise InputError(
            "a row that fills a box must have a code for every column, and its records"
        )
    if any(not -1 <= number <= LARGEST_INTEGER for row in rows for number in row):
        raise InputError("a row that fills a box has no number of records")
    return np.array(rows, dtype=np.int64)


def _keeps_law(part: BoxPart) -> bool:
    """Whether the boxes of a part that is filled are released as often as its table has them."""
    channel = part.channel
    if channel is None or not part.releases_boxes or not part.fill:
        return False
    records: dict[str, int] = {}
    for box, rows in enumerate(part.fill):
        if rows:
            records[box_name(box)] = sum(row[-1] for row in rows)
    # Boxes of records outside of the proof have no row of their own, and are drawn blindly.
    if set(records) != set(channel.useful.names):
        return False
    released = dict.fromkeys(records, Fraction(0))
    rows = zip(
        channel.useful.names,
        channel.integers.entries(),
        channel.row_totals,
        strict=True,
    )
    for name, row, total in rows:
        share = Fraction(records[name], int(total))
        for output, value in row:
            released[channel.outputs[output]] += share * int(value)
    return all(released[name] == count for name, count in records.items())
