"""What `mechdesign quantize` can be asked, and what it answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import fraction_of_text, quoted
from mechdesign.nonstochastic.designs import LAYOUTS, Layout
from mechdesign.nonstochastic.levels import Allowance, Guarantee
from mechdesign.nonstochastic.mechanism_file import QUERIES, MechanismFile

RECORDS_COLUMN = "records"
"""Header of the number of records of each group."""


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """What to release; the names are those of the command line."""

    column: str
    epsilon: object
    query: str = "identity"
    group_by: tuple[str, ...] = ()
    range_text: str | None = None
    equals: str | None = None
    individual: str | None = None
    clip: bool = False
    layout: Layout = "widest"
    missing: str = "refuse"


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """What was released."""

    query: str
    column: str
    records: int
    answers: int
    allowance: Allowance
    outputs: int
    levels: tuple[int, int]
    widest_cell: float
    answers_each: int | None
    total_epsilon: float
    guarantees: tuple[Guarantee, ...]
    mechanism: MechanismFile
    notices: tuple[str, ...]


def check_options(options: QuantizeOptions) -> None:
    """Raise InputError if options contradict each other."""
    if options.query not in QUERIES:
        raise InputError(f"query ({options.query!r}) must be one of {', '.join(QUERIES)}")
    if options.query == "identity" and options.group_by:
        raise InputError(
            "--group-by needs --query mean, sum or count: the identity releases record by record"
        )
    if options.query != "count" and options.equals is not None:
        raise InputError(f"--equals is for --query count, not for {options.query}")
    if options.query == "count" and options.range_text is not None:
        raise InputError("--range is not for --query count: a record counts as 0 or 1")
    names = [*options.group_by, *((options.individual,) if options.individual else ())]
    if options.column in names:
        raise InputError(
            f"the column {quoted(options.column)} cannot be released and be a group or individual too"
        )
    if options.query != "identity":
        made = (RECORDS_COLUMN, f"{options.query}_{options.column}")
        if clash := [name for name in options.group_by if name in made]:
            raise InputError(
                f"the group column {quoted(clash[0])} has the name of a column of the output; rename it"
            )


def check_kind(target: PathLike, *, parquet: bool) -> None:
    """Raise InputError if the name of the target says another kind of file than the source is."""
    wrong = (".csv", ".tsv", ".txt") if parquet else (".parquet", ".pq")
    if Path(target).suffix.lower() in wrong:
        kind = "Parquet" if parquet else "CSV"
        raise InputError(
            f"{os.fspath(target)}: the input is a {kind} file and so is the output; name it accordingly"
        )


def nearest_double(epsilon: object) -> object:
    """Budgets are the nearest doubles of what was typed; anything but text stays as it is."""
    if not isinstance(epsilon, str):
        return epsilon
    try:
        return float(fraction_of_text(epsilon))
    except (InputError, OverflowError):
        raise InputError(f"epsilon ({quoted(epsilon)}) must be a number of bits, 0 or more") from None


def layout_named(name: str) -> Layout:
    """The layout of this name, or InputError."""
    for layout in LAYOUTS:
        if layout == name:
            return layout
    raise InputError(f"layout ({quoted(name)}) must be one of {', '.join(LAYOUTS)}")
