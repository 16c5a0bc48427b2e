"""The mechanism file as it is written (JSON, version 1): quantisers and their guarantee.

`mechanism_file` reads and writes these documents. For the mean of kWh by town with one bit, a file
says, among other things:

    "query": "mean", "column": "kwh", "group_by": ["town"], "range": ["0", "60"],
    "epsilon": 1.0, "outputs_allowed": 2,
    "mechanisms": [{"individuals": 2, "range": ["0", "60"], "thresholds": ["15", "45"],
                    "outputs": 2, "witness": "an individual of weight 1/2, the others .."}, ..],
    "guarantee": {"outputs": 2, "answers_each": null, "total_epsilon": 1.0, ..}

There is an entry of `mechanisms` for each size of group (`individuals`), so a mean of two values is
released as one of the cells [0, 15), [15, 45) and [45, 60]. Exact numbers are texts such as "-3/8"
(`Exact`). Evenly spaced thresholds are written as {"first": .., "step": .., "number": ..}
(`Spacing`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import (
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
)

from mechdesign.core.documents import FileDocument
from mechdesign.core.errors import InputError
from mechdesign.core.records import Record
from mechdesign.nonstochastic.domains import MOST_INTEGERS
from mechdesign.nonstochastic.named_queries import QUERY

FORMAT = "mechdesign.quantizer"
VERSION = 1

Outside: TypeAlias = Literal["refuse", "clip", "mark", "drop"]

OUTSIDE: tuple[Outside, ...] = get_args(Outside)
"""Treatments of a value outside the range.

In order: an error, the end of the range, an empty answer, and no record.
"""

SHORTEST_RUN = 4
"""Fewer thresholds are written one by one, even if they are evenly spaced."""

LARGEST_RULE = 1_000_000
"""Most thresholds of a rule, ten times those of the largest design. More would fill the memory of a
reader."""

LARGEST_GROUP = 10**12
"""Most individuals of a group. No file has as many records."""

LARGEST_COUNT = 2**62
"""Most outputs. No design has as many."""

_FRACTION = r"-?[0-9]{1,2000}(/0*[1-9][0-9]{0,2000})?"
"""Pattern of an exact number. Doubles and their multiples have at most some hundred digits."""


def _fraction(value: Any) -> Fraction:
    """The exact number of a text in a file."""
    # `Fraction` itself would accept 1e999999999, and write it out.
    if not isinstance(value, str) or not re.fullmatch(_FRACTION, value, re.ASCII):
        raise InputError("must be an exact fraction as text, such as 7 or -3/8")
    return Fraction(value)


Exact = Annotated[
    Fraction,
    PlainValidator(_fraction),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": f"^{_FRACTION}$"}),
]

_Ends = Annotated[
    tuple[Exact, Exact], Field(description="the two ends, the lower one first")
]


class Spacing(Record):
    """Evenly spaced thresholds, as a rule."""

    first: Exact
    step: Exact
    number: Annotated[int, Field(ge=1, le=LARGEST_RULE)]


def _thresholds_tag(value: Any) -> str:
    """The kind of thresholds in a file: a rule, or a list."""
    # The tags begin with "@", which messages leave out (`core.records`).
    if isinstance(value, dict | Spacing):
        return "@rule"
    return "@list"


class MechanismEntry(Record):
    """The quantiser for one size of group, and its certificate."""

    individuals: Annotated[int, Field(ge=1, le=LARGEST_GROUP)]
    range: _Ends
    thresholds: Annotated[
        Annotated[tuple[Exact, ...], Tag("@list")] | Annotated[Spacing, Tag("@rule")],
        Discriminator(_thresholds_tag),
    ]
    released: tuple[Exact, ...] = ()
    outputs: Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
    witness: str


class MechanismDocument(FileDocument):
    """A mechanism file: quantisers and their guarantee, which every reader recomputes."""

    FORMAT: ClassVar[str] = FORMAT
    WHAT: ClassVar[str] = "mechanism file"
    VERSIONS: ClassVar[tuple[int, ...]] = (VERSION,)

    query: Annotated[str, QUERY]
    column: str
    group_by: tuple[str, ...]
    range: _Ends
    values: Annotated[
        tuple[Exact, ...],
        Field(
            max_length=MOST_INTEGERS,
            description="all values, if they are finitely many",
        ),
    ] = ()
    outside: Outside = "refuse"
    epsilon: Annotated[float, Field(allow_inf_nan=False)]
    outputs_allowed: int
    mechanisms: Annotated[tuple[MechanismEntry, ...], Field(min_length=1)]
    guarantee: dict[str, Any]
    provenance: dict[str, Any]
