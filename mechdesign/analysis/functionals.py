"""The linear functionals of P_X to estimate: single symbols, groups of them, or the user's own.

A functional is sum_x P(x) c(x), one column c of a matrix with a row for each symbol. With the
symbols a, b and c the columns are, for instance:

    asked for                                      a     b     c
    {"a": "a"}, the frequency of a                 1     0     0
    {"b or c": ["b", "c"]}, their sum              0     1     1
    {"age": {"a": 20, "b": 30, "c": 50}}, a mean  20    30    50

The released labels identify a functional only if ``W b = c`` has a solution b (`analysis.linear`).
`choose_cells` takes the user's functionals (`_users_cells`), and refuses those that are not
identified. Without any it takes every symbol; where single symbols are not identified, it joins
those that no label tells apart into groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from mechdesign.analysis.linear import Identification, group_name
from mechdesign.analysis.model import ReleaseModel
from mechdesign.channel.channel import Array
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted


@dataclass(frozen=True)
class Cells:
    """The functionals ``sum_x P(x) c(x)`` to estimate.

    Attributes
    ----------
    names : tuple of str
    functionals : (|X|, m) array
        The coefficients c.
    disjoint : bool
        Whether all are indicators of disjoint sets of symbols.
    notices : tuple of str
    """

    names: tuple[str, ...]
    functionals: Array
    disjoint: bool
    notices: tuple[str, ...] = ()

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value that each can have."""
        return self.functionals.min(axis=0), self.functionals.max(axis=0)


def choose_cells(
    model: ReleaseModel,
    identification: Identification,
    functionals: Any,
    unidentified: str,
) -> Cells:
    """The user's functionals, or every symbol, or groups where symbols are not identified."""
    if unidentified not in ("groups", "refuse"):
        raise InputError(
            f"unidentified ({quoted(unidentified)}) must be groups or refuse"
        )
    if functionals is not None:
        return _users_cells(model, identification, functionals)
    # One functional for each symbol: its own indicator.
    size = len(model.symbols)
    if identification.identified:
        return Cells(model.symbols, np.eye(size), disjoint=True)
    statement = identification.statement()
    if unidentified == "refuse":
        raise InputError(
            f"{statement}; ask for these sums (unidentified='groups') or for "
            "functionals that are identified"
        )
    # The sum of P_X over a group is identified, whatever the channel does inside of it.
    sums = np.zeros((size, len(identification.groups)))
    for k, group in enumerate(identification.groups):
        sums[list(group), k] = 1.0
    names = tuple(_own_name(group, model) for group in identification.group_names)
    return Cells(names, sums, disjoint=True, notices=(statement,))


def _users_cells(
    model: ReleaseModel, identification: Identification, functionals: Any
) -> Cells:
    """Functionals by name; InputError if one is not identified."""
    if not isinstance(functionals, Mapping) or not functionals:
        raise InputError(
            "the functionals must be a mapping of name to symbol, symbols or coefficients"
        )
    by_name = cast("Mapping[Any, Any]", functionals)
    names = tuple(str(name) for name in by_name)
    columns = [_functional(model, name, value) for name, value in by_name.items()]
    matrix = np.column_stack(columns)
    identified = identification.identifies(matrix)
    if not identified.all():
        hidden = [names[k] for k in np.flatnonzero(~identified)]
        raise InputError(
            f"{listed(hidden)} cannot be estimated: {identification.statement()}"
        )
    # Indicators of sets that share no symbol: variances are then simpler (`Estimator.products`).
    zero_or_one = bool(np.isin(matrix, (0.0, 1.0)).all())
    disjoint = zero_or_one and bool((matrix.sum(axis=1) <= 1.0).all())
    return Cells(names, matrix, disjoint)


def _functional(model: ReleaseModel, name: Any, value: Any) -> Array:
    """The coefficients of a functional: of a symbol, of symbols, or the user's own."""
    parts: dict[Any, Any]
    if isinstance(value, str):
        parts = {value: 1.0}
    elif isinstance(value, Mapping):
        parts = dict(cast("Mapping[Any, Any]", value))
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = dict.fromkeys(cast("Sequence[Any]", value), 1.0)
    else:
        raise InputError(
            f"the functional {quoted(name)} must be a symbol, symbols or coefficients, "
            f"not {quoted(value)}"
        )
    c = np.zeros(len(model.symbols))
    for symbol, coefficient in parts.items():
        if symbol not in model.position:
            raise InputError(
                f"the functional {quoted(name)} names {quoted(symbol)}, which the "
                "channel does not know"
            )
        try:
            c[model.position[symbol]] = float(coefficient)
        except (TypeError, ValueError):
            raise InputError(
                f"the coefficient of {quoted(symbol)} in {quoted(name)} must be a number"
            ) from None
    # A functional of zeros is 0 whatever the data: it is asked for by mistake.
    if not np.isfinite(c).all() or not c.any():
        raise InputError(
            f"the functional {quoted(name)} must have finite coefficients, not all zero"
        )
    return c


def _own_name(group: Sequence[str], model: ReleaseModel) -> str:
    """A name that no symbol has, for a group of several."""
    name = group_name(group)
    # A symbol may be called "{a, b}" itself; results are looked up by name.
    while len(group) > 1 and name in model.position:
        name += "+"
    return name
