"""What is to be estimated: single symbols, groups of them, or any linear functional of P_X."""

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
    """The functionals ``sum_x P(x) c(x)`` to estimate."""

    names: tuple[str, ...]
    functionals: Array
    disjoint: bool
    notices: tuple[str, ...] = ()

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value that each can have."""
        return self.functionals.min(axis=0), self.functionals.max(axis=0)


def choose_cells(
    model: ReleaseModel, known: Identification, wanted: Any, unidentified: str
) -> Cells:
    """What to estimate."""
    if unidentified not in ("groups", "refuse"):
        raise InputError(
            f"unidentified ({quoted(unidentified)}) must be groups or refuse"
        )
    if wanted is not None:
        return _asked(model, known, wanted)
    size = len(model.symbols)
    if known.identified:
        return Cells(model.symbols, np.eye(size), disjoint=True)
    if unidentified == "refuse":
        raise InputError(
            f"{known.statement()}; ask for these sums (unidentified='groups') or for "
            "functionals that are identified"
        )
    functionals = np.zeros((size, len(known.groups)))
    for k, group in enumerate(known.groups):
        functionals[list(group), k] = 1.0
    names = tuple(_own_name(group, model) for group in known.group_names)
    return Cells(names, functionals, disjoint=True, notices=(known.statement(),))


def _asked(model: ReleaseModel, known: Identification, wanted: Any) -> Cells:
    if not isinstance(wanted, Mapping) or not wanted:
        raise InputError(
            "the functionals must be a mapping of name to symbol, symbols or coefficients"
        )
    asked = cast("Mapping[Any, Any]", wanted)
    names = tuple(str(name) for name in asked)
    functionals = np.column_stack(
        [_functional(model, name, what) for name, what in asked.items()]
    )
    is_seen = known.identifies(functionals)
    hidden = [name for name, seen in zip(names, is_seen, strict=True) if not seen]
    if hidden:
        raise InputError(f"{listed(hidden)} cannot be estimated: {known.statement()}")
    zero_or_one = bool(np.isin(functionals, (0.0, 1.0)).all())
    disjoint = zero_or_one and bool((functionals.sum(axis=1) <= 1.0).all())
    return Cells(names, functionals, disjoint)


def _functional(model: ReleaseModel, name: Any, what: Any) -> Array:
    parts: dict[Any, Any]
    if isinstance(what, str):
        parts = {what: 1.0}
    elif isinstance(what, Mapping):
        parts = dict(cast("Mapping[Any, Any]", what))
    elif isinstance(what, (list, tuple, set, frozenset)):
        parts = dict.fromkeys(cast("Sequence[Any]", what), 1.0)
    else:
        raise InputError(
            f"the functional {quoted(name)} must be a symbol, symbols or coefficients, "
            f"not {quoted(what)}"
        )
    c = np.zeros(len(model.symbols))
    for symbol, value in parts.items():
        if symbol not in model.position:
            raise InputError(
                f"the functional {quoted(name)} names {quoted(symbol)}, which the "
                "channel does not know"
            )
        try:
            c[model.position[symbol]] = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the coefficient of {quoted(symbol)} in {quoted(name)} must be a number"
            ) from None
    if not np.isfinite(c).all() or not c.any():
        raise InputError(
            f"the functional {quoted(name)} must have finite coefficients, not all zero"
        )
    return c


def _own_name(group: Sequence[str], model: ReleaseModel) -> str:
    """A name that no symbol has, for a group of several."""
    name = group_name(group)
    while len(group) > 1 and name in model.position:
        name += "+"
    return name
