"""Outputs of several channels together: the product of their columns over the useful symbols of one table.

Only the direction of a product matters for lifts, so tuples with proportional columns count once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from mechdesign.auditing.lifts import Entries
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Direction: TypeAlias = tuple[Entries, tuple[int, ...]]
"""A column over the useful symbols without common divisor, and the outputs of its first tuple."""


def rows_on(useful: Variable, joint: Joint) -> list[int]:
    """Which row of a channel on `useful` each useful symbol of the table has; its columns may be some of those."""
    columns, whole = useful.columns, joint.useful
    if set(columns) <= set(whole.columns):
        at = [whole.columns.index(column) for column in columns]
    elif len(columns) == len(whole.columns):  # a wide table need not say how its column is called
        at = list(range(len(columns)))
    else:
        missing = [column for column in columns if column not in whole.columns]
        raise InputError(f"the table has no useful column {listed(missing)}, which the channel releases")
    symbols = [tuple(symbol[i] for i in at) for symbol in whole.symbols]
    present = set(symbols)
    unknown = [
        name for name, symbol in zip(useful.names, useful.symbols, strict=True) if symbol not in present
    ]
    if unknown:
        raise InputError(f"the table has no useful symbol {listed(unknown)}, which the channel has")
    missing = [", ".join(symbol) for symbol in dict.fromkeys(symbols) if symbol not in useful.index]
    if missing:
        raise InputError(f"the channel has no row for the useful symbol {listed(missing)} of the table")
    return [useful.index[symbol] for symbol in symbols]


def row_order(useful: Variable, joint: Joint) -> list[int]:
    """Position in the table of every row of a channel on `useful`."""
    found = rows_on(useful, joint)
    return sorted(range(len(found)), key=found.__getitem__)


def released_part(channel: Channel, joint: Joint) -> Joint:
    """The table of the useful columns that a channel releases, of one that may have more."""
    columns = channel.useful.columns
    return joint.releasing(columns) if set(columns) < set(joint.useful.columns) else joint


def columns_on(channel: Channel, joint: Joint) -> list[Entries]:
    """The column of every output over the useful symbols of the table."""
    places: list[list[int]] = [[] for _ in channel.useful.symbols]
    for x, row in enumerate(rows_on(channel.useful, joint)):
        places[row].append(x)
    columns: list[Entries] = []
    for rows, values in channel.integers.columns:
        pairs = sorted((x, value) for row, value in zip(rows, values, strict=True) for x in places[row])
        columns.append(([x for x, _ in pairs], [value for _, value in pairs]))
    return columns


def everything(joint: Joint) -> list[Direction]:
    """The direction of no release at all."""
    n = len(joint.useful)
    return [((range(n), [1] * n), ())]


def directions(found: Iterable[Direction], columns: Sequence[Entries]) -> list[Direction]:
    """Products of every direction and column, each direction once; tuples that never occur are left out."""
    seen: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}
    lookup = [dict(zip(*column, strict=True)) for column in columns]
    for (at, values), outputs in found:
        for y, column in enumerate(lookup):
            pairs = [(x, value * column[x]) for x, value in zip(at, values, strict=True) if x in column]
            if pairs:
                divisor = math.gcd(*(value for _, value in pairs))
                key = tuple(x for x, _ in pairs), tuple(value // divisor for _, value in pairs)
                seen.setdefault(key, (*outputs, y))
    return [((at, values), outputs) for (at, values), outputs in seen.items()]
