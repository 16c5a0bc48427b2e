"""A channel for rows whose promise holds for the population: boxes of rows, and a channel for them.

A row is generalised to a box (`tables.row_boxes`), and the box is released through an ordinary
channel with a confidence set of its own. With given columns there is such a part for each stratum,
and the promise is relative to them. A part without a channel releases the given columns alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, percent_of
from mechdesign.formats.cells import encode, encoded_columns
from mechdesign.release.policies import Policy, apportioned
from mechdesign.tables.columns import positions_of
from mechdesign.tables.row_boxes import Boxes
from mechdesign.tables.variable import Variable

if TYPE_CHECKING:
    from mechdesign.release.draws import Key

BOX = "box"
"""The useful column of the channels of parts, and the released column without filling."""

NOTHING = "(not released)"
"""What a part without a channel releases."""


def box_name(box: int) -> str:
    """The symbol of a box in the channel of its part."""
    return f"box {box + 1}"


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
    fill : tuple of (columns) tuples of (symbols) tuples of int
        For each box and each released column, records of the slice with each symbol; empty without
        filling.
    """

    stratum: tuple[int, ...]
    boxes: Boxes
    together: tuple[tuple[int, ...], ...] = ()
    channel: Channel | None = None
    fill: tuple[tuple[tuple[int, ...], ...], ...] = ()


@dataclass(frozen=True, repr=False, eq=False)
class BoxChannel(Described):
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
    """

    sensitive: Variable
    given: tuple[Variable, ...]
    columns: tuple[Variable, ...]
    parts: tuple[BoxPart, ...]
    level: float
    slice_records: int
    provenance: Mapping[str, Any]

    def __post_init__(self) -> None:
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
            self._check_part(part)
        self._check_level()

    def _check_level(self) -> None:
        """The parts may fail with probability 1 - level together (union bound)."""
        spent = Fraction(0)
        for part in self.parts:
            if part.channel is None:
                continue
            record = part.channel.record.confidence
            if record is None:
                raise InputError("the channel of a part has no confidence set")
            spent += 1 - Fraction(repr(record["level"]))
        if spent > 1 - Fraction(repr(self.level)):
            raise InputError(
                "the levels of the parts do not add up to the level of the whole"
            )

    def _check_part(self, part: BoxPart) -> None:
        if part.channel is None:
            return
        if part.channel.useful.columns != (BOX,):
            raise InputError("the channel of a part must release boxes")
        names = {box_name(box) for box in range(len(part.boxes))}
        if not names.issuperset(part.channel.useful.names):
            raise InputError("the channel of a part has a box that is not there")
        # Boxes that no record has are covered as unseen symbols, and by that number only.
        unseen = len(names) - len(part.channel.useful)
        if part.channel.unseen < unseen:
            raise InputError("the channel of a part does not cover its empty boxes")
        members = sorted(s for group in part.together for s in group)
        if members != list(range(len(self.sensitive))):
            raise InputError(
                "every sensitive symbol must be promised once in every part"
            )
        if part.fill and len(part.fill) != len(part.boxes):
            raise InputError("there must be symbols to fill every box")

    def __repr__(self) -> str:
        columns = ", ".join(variable.brief for variable in self.columns)
        return (
            f"BoxChannel({columns}; {self.boxes} boxes, protects {self.sensitive.brief}, "
            f"{percent_of(self.level)} confidence)"
        )

    @property
    def boxes(self) -> int:
        """Number of boxes of all parts."""
        return sum(len(part.boxes) for part in self.parts)

    @property
    def fills(self) -> bool:
        """Whether symbols are released in the place of boxes."""
        return any(part.fill for part in self.parts)

    def to_record(self) -> dict[str, Any]:
        """The record of `show --json`."""
        parts: list[dict[str, Any]] = []
        for part in self.parts:
            outputs = 0
            if part.channel is not None:
                outputs = len(part.channel.outputs)
            parts.append(
                {
                    "stratum": self._stratum_text(part),
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

    def summary(self) -> str:
        """Every part with its boxes in words."""
        lines: list[str] = []
        for part in self.parts:
            where = self._stratum_text(part)
            if part.channel is None:
                lines.append(f"{where}nothing is released")
                continue
            lines.append(
                f"{where}{len(part.boxes)} boxes, {len(part.channel.outputs)} outputs"
            )
            lines += [f"  {text}" for text in self.box_texts(part)]
            lines += [f"  {text}" for text in self.together_texts(part)]
        return "\n".join(lines)

    def _stratum_text(self, part: BoxPart) -> str:
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
        """Every box of a part in words: 'box 1: education Bachelors, Masters; hours not 40'."""
        texts: list[str] = []
        for box, conditions in enumerate(part.boxes.sets()):
            pieces: list[str] = []
            for column, sets in sorted(conditions.items()):
                variable = self.columns[column]
                inside = set(range(len(variable)))
                is_named = False
                for is_inside, symbols in sets:
                    if is_inside:
                        inside &= set(symbols)
                        is_named = True
                    else:
                        inside -= set(symbols)
                names = ", ".join(variable.names[x] for x in sorted(inside))
                if not is_named:
                    # Symbols that the slice has not seen are on this side of every split.
                    names += ", any other"
                pieces.append(f"{','.join(variable.columns)} {{{names}}}")
            texts.append(f"{box_name(box)}: {'; '.join(pieces) or 'every row'}")
        return texts

    @cached_property
    def _part_of(self) -> dict[tuple[int, ...], BoxPart]:
        return {part.stratum: part for part in self.parts}

    def distribution(self, row: Mapping[str, str]) -> dict[str, Fraction]:
        """The exact law of the output label for a row of true texts; without filling."""
        codes: list[int] = []
        for variable in (*self.given, *self.columns):
            cells = [encode([row[name]], name) for name in variable.columns]
            codes.append(int(positions_of(cells, variable)[0]))
        stratum = tuple(codes[: len(self.given)])
        part = self._part(stratum)
        if part.channel is None:
            return {NOTHING: Fraction(1)}
        columns = np.array([codes[len(self.given) :]], dtype=np.int64)
        name = box_name(int(part.boxes.of(columns)[0]))
        channel = part.channel
        if name not in channel.useful.names:
            raise InputError(
                f"{name} has no record: its rows are released as the marginal"
            )
        law: dict[str, Fraction] = {}
        entries = channel.integers.dense[channel.useful.names.index(name)]
        for label, entry in zip(channel.outputs, entries.tolist(), strict=True):
            if entry:
                law[label] = Fraction(int(entry), channel.denominator)
        return law

    def _part(self, stratum: tuple[int, ...]) -> BoxPart:
        if stratum not in self._part_of:
            raise InputError(
                "the channel does not know this combination of given symbols: no record of its "
                "slice has it"
            )
        return self._part_of[stratum]

    def apply(
        self,
        frame: Any,
        *,
        key: Key | None = None,
        identity: Sequence[str] | None = None,
        first_row: int = 0,
        insecure_seed: int | None = None,
    ) -> Any:
        """Draw an output for every record: a frame with the given columns, and the box or the
        filled columns, and nothing else.

        Parameters are those of `RowChannel.apply`. Symbols of the released columns that the table
        did not have are covered: they belong to the boxes of 'any other'.

        Raises
        ------
        InputError
            On a missing column or cell, or a combination of given symbols that the slice has not.
        """
        variables = (*self.given, *self.columns)
        names = [name for variable in variables for name in variable.columns]
        cells = encoded_columns(frame, names)
        columns: list[Integers] = []
        start = 0
        for variable in variables:
            end = start + len(variable.columns)
            columns.append(positions_of(cells[start:end], variable))
            start = end
        codes = np.column_stack(columns)
        count = len(codes)
        if identity is None:
            identity = [str(first_row + k) for k in range(count)]
        if len(identity) != count:
            raise InputError(
                f"the identity has {len(identity)} entries and the frame {count} records"
            )
        released = self._drawn(codes, list(identity), key, insecure_seed)
        texts: dict[str, list[str]] = {}
        for k, variable in enumerate(self.given):
            for part, name in enumerate(variable.columns):
                texts[name] = [variable.symbols[code][part] for code in codes[:, k]]
        return _like(frame, texts | released)

    def _drawn(
        self,
        codes: Integers,
        identity: list[str],
        key: Key | None,
        insecure_seed: int | None,
    ) -> dict[str, list[str]]:
        """The released texts by column."""
        from mechdesign.release.drawing import key_of

        # One key for all parts and columns; every channel has draws of its own.
        drawing = key_of(key, insecure_seed)
        names = [BOX]
        if self.fills:
            names = [name for variable in self.columns for name in variable.columns]
        texts = {name: [NOTHING] * len(codes) for name in names}
        strata = [tuple(row) for row in codes[:, : len(self.given)].tolist()]
        rows_of: dict[tuple[int, ...], list[int]] = {}
        for row, stratum in enumerate(strata):
            rows_of.setdefault(stratum, []).append(row)
        for stratum, rows in rows_of.items():
            part = self._part(stratum)
            if part.channel is None:
                continue
            boxes = part.boxes.of(codes[rows][:, len(self.given) :])
            column = [box_name(box) for box in boxes.tolist()]
            own = [identity[row] for row in rows]
            policy: Policy | None = None
            if part.channel.unseen:
                # Boxes without records are covered if they are released like the marginal.
                policy = Policy(unknown="marginal")
            drawn = part.channel.apply(column, key=drawing, identity=own, policy=policy)
            released = {BOX: list(drawn)}
            if self.fills:
                released = self._filled(part, list(drawn), own, drawing)
            for name, values in released.items():
                for row, text in zip(rows, values, strict=True):
                    texts[name][row] = text
        return texts

    def _filled(
        self, part: BoxPart, outputs: list[str], identity: list[str], key: Key
    ) -> dict[str, list[str]]:
        """Symbols for released outputs, by the law of the slice: a box, then each column in it.

        This depends on the output alone, so it says nothing more about the record.
        """
        channel = part.channel
        assert channel is not None
        weights = [sum(box[0]) for box in part.fill]
        dense = channel.integers.dense
        places = [box_name(box) for box in range(len(part.boxes))]
        present = {name: x for x, name in enumerate(channel.useful.names)}
        rows: list[list[int]] = []
        for y in range(len(channel.outputs)):
            shares = [0] * len(places)
            for box, name in enumerate(places):
                if name in present:
                    shares[box] = weights[box] * int(dense[present[name], y])
            rows.append(apportioned(shares, DENOMINATOR).tolist())
        boxes = _step("output", channel.outputs, places, rows)
        drawn = list(boxes.apply(outputs, key=key, identity=identity))
        released: dict[str, list[str]] = {}
        for k, variable in enumerate(self.columns):
            laws = [
                apportioned(list(box[k]), DENOMINATOR).tolist() for box in part.fill
            ]
            step = _step(f"filled {k}", tuple(places), list(variable.names), laws)
            names = list(step.apply(drawn, key=key, identity=identity))
            symbols = dict(zip(variable.names, variable.symbols, strict=True))
            for place, name in enumerate(variable.columns):
                released[name] = [symbols[text][place] for text in names]
        return released

    def public(self) -> BoxChannel:
        """Without counts: neither those of the channels' tables nor those that fill boxes."""
        parts: list[BoxPart] = []
        for part in self.parts:
            channel = part.channel
            if channel is not None:
                channel = channel.public()
            parts.append(replace(part, channel=channel, fill=()))
        kept = ("tool", "version", "command")
        provenance = {k: self.provenance[k] for k in kept if k in self.provenance}
        return replace(self, parts=tuple(parts), provenance=provenance, slice_records=0)

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        public: bool = False,
    ) -> None:
        """Write the file (`channel.box_file`); with `public` without counts."""
        from mechdesign.channel import box_file

        box_file.write(self.public() if public else self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BoxChannel:
        """Read the file, or refuse it with InputError and say why."""
        from mechdesign.channel import box_file

        return box_file.read(path)


def _step(
    column: str, inputs: Sequence[str], outputs: list[str], rows: list[list[int]]
) -> Channel:
    """A channel that draws what fills a box; outputs that no input gives are left out."""
    used = [y for y in range(len(outputs)) if any(row[y] for row in rows)]
    kept = [[row[y] for y in used] for row in rows]
    variable = Variable((column,), tuple((text,) for text in inputs))
    return Channel(variable, tuple(outputs[y] for y in used), kept)


def _like(frame: Any, columns: Mapping[str, list[str]]) -> Any:
    """A frame of the same kind with other columns of texts."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    made = nw.from_dict(dict(columns), backend=table.implementation).to_native()
    if table.implementation.is_pandas():
        made.index = table.to_native().index
    return made
