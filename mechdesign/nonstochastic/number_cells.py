"""A mechanism for single records at work in the engine of channels: a cell of numbers where channels draw.

Nothing is drawn, so that no key and no identity is needed. That an answer tells little of one value supposes that the
place of its record tells nothing of it: a file that is sorted by its numbers is refused.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import empty_as_missing, encode
from mechdesign.jobs.column_plan import OutputColumn
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.recipe import BadRecord, DrawnColumn, Looks, Recipe
from mechdesign.nonstochastic.answering import BadCell, numbers_of, some_of, usable
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.release_answers import Quantised, Tally
from mechdesign.release.drawing import key_of
from mechdesign.release.policies import REFUSE


def recipe_of(given: Any, options: ReleaseOptions, tally: Tally | None = None) -> Any:
    """The recipe of channels, or of a mechanism, with the options that concern it."""
    if not isinstance(given, MechanismFile):
        return Recipe.of(given, options)
    if given.query != "identity":
        raise InputError(
            f"this mechanism answers for groups ({given.query}), and releases no column of single records; "
            "apply it to a whole table (`apply`, or answer_groups)"
        )
    plain, drawn = (
        ReleaseOptions(),
        ("key", "form", "policy", "row_numbers", "changed", "fresh_draw"),
    )
    if any(getattr(options, name) != getattr(plain, name) for name in drawn):
        raise InputError(f"a mechanism draws nothing: leave out {', '.join(drawn)}")
    if len(options.identifiers) > 1:
        raise InputError(
            "a mechanism has one column that identifies individuals; name one (--identity)"
        )
    # What a plan asks of a channel: the column that is released, and that no other is sensitive.
    nothing = SimpleNamespace(columns=())
    face: Any = SimpleNamespace(
        useful=SimpleNamespace(columns=(given.column,)), sensitive=nothing
    )
    keys = (key_of(None, options.insecure_seed),)  # for a random order alone
    return NumbersRecipe(
        channels=(face,), keys=keys, options=options, mechanism=given, tally=tally
    )


@dataclass(frozen=True, kw_only=True)
class NumbersRecipe(Recipe):
    """A mechanism for single records, with what a user asks for; `tally` is of several releases together."""

    mechanism: MechanismFile
    tally: Tally | None = None

    def drawer(self, header: Sequence[Any]) -> Any:
        """Ready for the parts of a table with this header."""
        return NumbersDrawer(self, header)


ENOUGH = 1 << 12
"""Different numbers from which on more do not matter: if these are sorted, it is not by chance."""


class Sorted:
    """Whether numbers come in ascending or descending order."""

    def __init__(self) -> None:
        self._up = self._down = True
        self._last = np.zeros(0)
        self._counts = Counter[float]()

    def add(self, values: NDArray[np.float64]) -> None:
        """The next records."""
        steps = np.diff(np.concatenate([self._last, values]))
        self._up, self._down = (
            self._up and not (steps < 0).any(),
            self._down and not (steps > 0).any(),
        )
        self._last = values[-1:] if len(values) else self._last
        if (self._up or self._down) and len(self._counts) <= ENOUGH:
            self._counts.update(values.tolist())

    def evidence(self) -> float:
        """The logarithm of an e-value against a random order: of all arrangements two at most are sorted."""
        ties = sum(math.lgamma(times + 1) for times in self._counts.values())
        found = math.lgamma(self._counts.total() + 1) - ties - math.log(2)
        return found if self._up or self._down else -math.inf


class NumbersDrawer(Looks):
    """A mechanism made ready for the parts of a table with this header."""

    releases = ()
    own = True

    def __init__(self, recipe: NumbersRecipe, header: Sequence[Any]) -> None:
        made, place = recipe.mechanism, recipe.plan(header).inputs[0][0]
        hidden = {} if recipe.options.into is not None else {(header[place], -1): None}
        super().__init__(recipe, header, hidden, {header[place]: Sorted()})
        self.tally = Tally(made, header[place])
        self._missing, self._advise = (
            made.provenance.get("missing", REFUSE),
            not made.mechanisms,
        )
        self._quantizer = self.tally.quantizer(1)
        self._middles = np.array(
            [float(middle) for middle in self._quantizer.midpoints]
        )
        # The last one marks what lies outside the range: an empty cell.
        self.labels = {(0, 0): (*map(repr, self._middles.tolist()), "")}
        self.counts = [np.zeros(len(self.labels[0, 0]), np.int64)]
        """How many records got each answer."""
        self.dropped: NDArray[np.bool_] | None = None
        """Which records of the part drawn last are left out."""

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of the released column."""
        import pyarrow as pa

        return pa.float64()

    def reads(self, schema: Any) -> tuple[list[str], list[str]]:
        """The columns that are wanted as codes, and those that are read only: numbers that are stored as such."""
        people, column = (
            [self.header[at] for at in self.plan.identity],
            self.tally.column,
        )
        if schema is not None and _is_number(schema.field(column).type):
            return people, [column]
        return [*people, column], []

    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[tuple[int, int], DrawnColumn]:
        """As `Drawer.draw`; the records in `dropped` have no code."""
        tally, at = self.tally, np.arange(count)
        names = [
            self.header[place] for place in (*self.plan.inputs[0], *self.plan.identity)
        ]
        people = [
            empty_as_missing(encode(column(place), self.header[place]))
            for place in self.plan.identity
        ]
        cells = [_stored(column(self.plan.inputs[0][0]), names[0]), *people]
        try:
            kept = usable(cells, names, self._missing, advise=self._advise)
            if kept is not None:
                at, cells = at[kept], [some_of(each, kept) for each in cells]
            found = numbers_of(cells[0], names[0])
            values, told = tally.inside(found)
        except BadCell as error:
            place = int(at[error.position])
            raise BadRecord(
                place, error.what, f"row number {first_row + place} (counted from 0)"
            ) from None
        own = self._quantizer.cells(values).astype(np.int32)
        codes, errors = own[found.codes], np.abs(self._middles[own] - found.values)
        tally.records += len(codes)
        for each in (tally, self.recipe.tally) if people else ():
            if each is not None:
                each.people.add([], np.zeros(len(codes)), cells[1])
        counted = found.codes if told is None else found.codes[~told]
        tally.tell(found.values, errors, np.bincount(counted, minlength=own.size))
        for order in self.orders.values():
            order.add(found.values[found.codes])
        if told is not None and tally.mechanism.outside == "drop":
            at, codes = at[~told], codes[~told]
        elif told is not None:
            codes[told] = self._middles.size
        self.dropped = (
            None if len(at) == count else np.isin(np.arange(count), at, invert=True)
        )
        tally.answers += len(codes)
        self.counts[0] += np.bincount(codes, minlength=len(self.counts[0]))
        return {(0, 0): DrawnColumn(codes, self.labels[0, 0])}

    def count(self, column: Callable[[int], Any], times: NDArray[np.int64]) -> None:
        """As `Drawer.count`, of which the answers come for nothing; each record comes once."""
        self.draw(column, len(times))

    def result(self, sha256: str | None) -> Quantised:
        """What was released."""
        if not self.tally.records and self._advise:
            raise InputError("no records; an answer needs at least one")
        if self.recipe.tally is not None:
            self.recipe.tally.add(self.tally)
        return self.tally.result(sha256)

    def rebuild(self, like: Any, drawn: DrawnColumn, name: str) -> Any:
        """The numbers in the same kind of column as `like`."""
        import pyarrow as pa

        values = np.append(self._middles, np.nan)[drawn.codes]
        if isinstance(like, (pa.Array, pa.ChunkedArray)):
            made = pa.array(values, mask=drawn.codes == self._middles.size)
            return made if isinstance(like, pa.Array) else pa.chunked_array([made])
        if isinstance(like, np.ndarray):
            return values
        if hasattr(like, "to_arrow"):  # of polars
            return type(like)(name, values, nan_to_null=True)
        return type(like)(values, index=like.index, name=like.name)


def _stored(column: Any, name: str) -> Any:
    """A column as an array of numbers, where it holds numbers, else as codes into texts."""
    import pyarrow as pa

    array = column.to_arrow() if hasattr(column, "to_arrow") else column
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        try:
            array = pa.Array.from_pandas(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return empty_as_missing(encode(column, name))
    if _is_number(array.type):
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return empty_as_missing(encode(array, name))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind)
