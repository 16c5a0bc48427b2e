"""Values to places in a range: what every discrete uncertain variable is read with."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted

LARGEST_ENUMERATION = 5_000_000
"""Points of a domain, or pairs of a product, that are enumerated: some 10 s and 1 GB at most."""

Indices = NDArray[np.int64]


def _nan_error(name: str) -> InputError:
    return InputError(f"{name} contains NaN, which is no value of a range; drop it or give it a symbol")


def refuse_nan(name: str, symbols: Iterable[Hashable]) -> None:
    """Raise InputError if a symbol is NaN: it equals nothing, so no range can contain it."""
    for symbol in symbols:
        if isinstance(symbol, float | np.floating) and math.isnan(symbol):
            raise _nan_error(name)


def encode(name: str, values: Any) -> tuple[tuple[Hashable, ...], Indices]:
    """Return the distinct values in order of first appearance, and the index of each value.

    One-dimensional NumPy arrays of numbers or text are sorted by NumPy; any other sequence goes
    through a dictionary and needs hashable members.

    Raises
    ------
    InputError
        If `values` is empty, holds NaN, or holds something that cannot be hashed.
    """
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        if array.ndim != 1:
            raise InputError(f"{name} must have one dimension, not {array.ndim}")
        if array.dtype.kind in "biufSU" and array.size:
            return _encode_array(name, array)
        values = array.tolist()
    members: list[Any] = list(values)
    if not members:
        raise InputError(f"{name} is empty; a range needs at least one value")
    place: dict[Hashable, int] = {}
    codes = np.empty(len(members), dtype=np.int64)
    for k, value in enumerate(members):
        try:
            codes[k] = place.setdefault(value, len(place))
        except TypeError:
            raise InputError(f"{name} holds {quoted(value)}, which cannot be hashed; use a tuple") from None
    refuse_nan(name, place)
    return tuple(place), codes


def _encode_array(name: str, array: NDArray[Any]) -> tuple[tuple[Hashable, ...], Indices]:
    if array.dtype.kind == "f" and bool(np.isnan(array).any()):
        raise _nan_error(name)
    distinct, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return tuple(distinct[order].tolist()), rank[inverse.reshape(-1)]


def enumerate_domain(domain: Iterable[Hashable]) -> list[Hashable]:
    """Return the domain as a list.

    Raises
    ------
    InputError
        If it is empty or has more than `LARGEST_ENUMERATION` points.
    """
    points = list(islice(domain, LARGEST_ENUMERATION + 1))
    if len(points) > LARGEST_ENUMERATION:
        raise InputError(
            f"the domain has more than {LARGEST_ENUMERATION:,} points, too many to enumerate; a sum, mean, "
            "count, linear or monotone query needs no enumeration: give its domain as a product of intervals"
        )
    if not points:
        raise InputError("the domain is empty; a range needs at least one value")
    return points


def _missing_column(column: str, present: Iterable[str]) -> InputError:
    names = listed([str(name) for name in present]) or "no column"
    return InputError(f"column {quoted(column)} is missing; the table has {names}")


def read_column(frame: Any, column: str) -> Any:
    """Return one column of a pandas, polars or pyarrow table, or of a mapping of sequences.

    Raises
    ------
    InputError
        If the column is missing or holds a null, or `frame` is no table.
    """
    if isinstance(frame, Mapping):
        table = cast("Mapping[str, Sequence[Any]]", frame)
        if column not in table:
            raise _missing_column(column, table)
        values: list[Any] = list(table[column])
    else:
        import narwhals as nw

        try:
            wrapped = nw.from_native(frame, eager_only=True)
        except TypeError:
            kind = type(frame).__name__
            raise InputError(f"a table must be a pandas, polars or pyarrow one, not {kind}") from None
        if column not in wrapped.columns:
            raise _missing_column(column, wrapped.columns)
        series = wrapped[column]
        if series.null_count() == 0 and series.dtype.is_numeric():
            return np.asarray(series.to_numpy())
        values = series.to_list()
    for place, value in enumerate(values):
        if value is None:
            where = f"column {quoted(column)} has a null in row {place + 1}"
            raise InputError(f"{where}; drop it or give it a symbol")
    return values


def read_incidence(matrix: Any) -> tuple[Indices, Indices, tuple[int, int]]:
    """Rows and columns of the ones of a 0/1 matrix, dense or SciPy sparse, and its shape.

    Raises
    ------
    InputError
        If it is not a matrix, is empty, or has an entry other than 0 and 1.
    """
    from scipy.sparse import coo_array, issparse

    if issparse(matrix):
        held: Any = coo_array(matrix)
        held.sum_duplicates()
        shape, values, places = held.shape, np.asarray(held.data), held.coords
    else:
        try:
            dense = np.asarray(matrix)
        except ValueError:
            raise InputError("the rows of an incidence matrix must have one length") from None
        if dense.ndim != 2:
            raise InputError(f"an incidence matrix must have two dimensions, not {dense.ndim}")
        shape, values = dense.shape, dense.reshape(-1)
        places = np.divmod(np.arange(values.size, dtype=np.int64), max(shape[1], 1))
    if 0 in shape:
        raise InputError(f"the incidence matrix is empty ({shape[0]} x {shape[1]}); give at least one pair")
    if values.dtype.kind not in "biuf" or not bool(np.isin(values, (0, 1)).all()):
        raise InputError("an incidence matrix must hold only 0 and 1 (or False and True)")
    kept = values.astype(np.bool_)
    rows, columns = (np.asarray(place, dtype=np.int64)[kept] for place in places)
    return rows, columns, (int(shape[0]), int(shape[1]))
