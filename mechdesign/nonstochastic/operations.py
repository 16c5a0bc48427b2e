"""Joint ranges from other joint ranges: restriction, Markov chains, products of unrelated pairs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.nonstochastic.encoding import LARGEST_ENUMERATION
from mechdesign.nonstochastic.ranges import JointRange


def restrict_x(joint: JointRange, kept: Iterable[Hashable]) -> JointRange:
    """The joint range when X is known to lie in `kept`; a y with no partner left goes too.

    Raises
    ------
    InputError
        If `kept` is empty or holds a value outside the range of X.
    """
    chosen = dict.fromkeys(kept)
    for value in chosen:
        if value not in joint.x_index:
            raise InputError(f"value {quoted(value)} is not in the range of X")
    if not chosen:
        raise InputError("the restricted range is empty; keep at least one value")
    mask = np.zeros(joint.shape[0], dtype=np.bool_)
    mask[[joint.x_index[value] for value in chosen]] = True
    pairs = mask[joint.rows]
    rows, columns = joint.rows[pairs], joint.columns[pairs]
    new_row, new_column = np.cumsum(mask) - 1, np.unique(columns)
    xs = [joint.x_symbols[i] for i in np.flatnonzero(mask).tolist()]
    ys = [joint.y_symbols[j] for j in new_column.tolist()]
    return JointRange.from_codes(xs, ys, new_row[rows], np.searchsorted(new_column, columns))


def chain(joint: JointRange, following: JointRange) -> JointRange:
    """The joint range of X and Z for the Markov chain X - Y - Z, `following` being [[Y, Z]].

    Raises
    ------
    InputError
        If a y of this range is not in the first range of `following`.
    """
    missing = [y for y in joint.y_symbols if y not in following.x_index]
    if missing:
        raise InputError(f"value {quoted(missing[0])} of Y is not an input of the following channel")
    second = restrict_x(following, joint.y_symbols)
    order = np.asarray([second.x_index[y] for y in joint.y_symbols], dtype=np.int64)
    product = (joint.incidence.astype(np.int64) @ second.incidence.astype(np.int64)[order]).tocoo()
    return JointRange.from_codes(joint.x_symbols, second.y_symbols, product.row, product.col)


def product(joint: JointRange, other: JointRange) -> JointRange:
    """The joint range of ((X, X'), (Y, Y')) for unrelated pairs (X, Y) and (X', Y').

    Raises
    ------
    InputError
        If the product has more than `LARGEST_ENUMERATION` pairs.
    """
    n_pairs = joint.n_pairs * other.n_pairs
    if n_pairs > LARGEST_ENUMERATION:
        raise InputError(
            f"the product has {n_pairs:,} pairs, over {LARGEST_ENUMERATION:,}; leakages of a product "
            "need no enumeration, only the sizes of its parts: use composed_maximal_leakage"
        )
    rows = (joint.rows[:, None] * other.shape[0] + other.rows[None, :]).reshape(-1)
    columns = (joint.columns[:, None] * other.shape[1] + other.columns[None, :]).reshape(-1)
    xs = [(a, b) for a in joint.x_symbols for b in other.x_symbols]
    ys = [(a, b) for a in joint.y_symbols for b in other.y_symbols]
    return JointRange.from_codes(xs, ys, rows, columns)
