"""Which frequencies are asked for: single symbols, groups of them, or any linear functional of P_X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.estimation_linear import SUPPORT_TOLERANCE, Identification, coefficients, group_name, identify
from mechdesign.estimation_model import ReleaseModel
from mechdesign.exact import listed, quoted

Array = NDArray[np.float64]

UNIDENTIFIED = ("groups", "refuse", "minimum-norm")


@dataclass(frozen=True)
class Cells:
    """The functionals ``sum_x P(x) c(x)`` to estimate.

    Parameters
    ----------
    names : tuple of str
    functionals : (|X|, m) array
        c, one column for each name.
    identified : tuple of bool
        Whether each can be estimated without bias.
    disjoint : bool
        Whether each is the sum over a set of symbols and the sets are disjoint.
    notices : tuple of str
    """

    names: tuple[str, ...]
    functionals: Array
    identified: tuple[bool, ...]
    disjoint: bool
    notices: tuple[str, ...] = ()

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value that each can have."""
        return self.functionals.min(axis=0), self.functionals.max(axis=0)


def choose_cells(model: ReleaseModel, known: Identification, wanted: Any, unidentified: str) -> Cells:
    """What to estimate.

    Parameters
    ----------
    wanted : None, or mapping of name to functional
        A functional is a symbol, a collection of symbols (their sum), or a mapping of symbol to coefficient. None asks
        for every symbol.
    unidentified : 'groups', 'refuse' or 'minimum-norm'
        What to do where the symbols cannot be told apart (only without `wanted`).

    Raises
    ------
    InputError
        On an unknown symbol, a functional that is not identified, or (with 'refuse') a channel that
        does not identify every symbol.
    """
    if unidentified not in UNIDENTIFIED:
        raise InputError(f"unidentified ({quoted(unidentified)}) must be groups, refuse or minimum-norm")
    if wanted is not None:
        return _asked(model, known, wanted)
    size = len(model.symbols)
    if known.identified:
        return Cells(model.symbols, np.eye(size), (True,) * size, disjoint=True)
    if unidentified == "refuse":
        raise InputError(
            f"{known.statement()}; ask for these sums (unidentified='groups') or for functionals that are identified"
        )
    if unidentified == "groups":
        functionals = np.zeros((size, len(known.groups)))
        for k, group in enumerate(known.groups):
            functionals[list(group), k] = 1.0
        names = tuple(_own_name(group, model) for group in known.group_names)
        return Cells(names, functionals, (True,) * len(names), disjoint=True, notices=(known.statement(),))
    alone = {group[0] for group in known.groups if len(group) == 1}
    anchor = "the channel's table" if model.prior is not None else "equal frequencies"
    notice = (
        f"{known.statement()}; the frequencies within are those nearest to {anchor} that fit (minimum norm): "
        "they are not estimates and have no interval"
    )
    return Cells(model.symbols, np.eye(size), tuple(x in alone for x in range(size)), True, (notice,))


def _asked(model: ReleaseModel, known: Identification, wanted: Any) -> Cells:
    if not isinstance(wanted, Mapping) or not wanted:
        raise InputError("the functionals must be a mapping of name to symbol, symbols or coefficients")
    asked = cast("Mapping[Any, Any]", wanted)
    names = tuple(str(name) for name in asked)
    functionals = np.column_stack([_functional(model, name, what) for name, what in asked.items()])
    hidden = [name for name, c in zip(names, functionals.T, strict=True) if not known.identifies(c)]
    if hidden:
        raise InputError(f"{listed(hidden)} cannot be estimated: {known.statement()}")
    zero_or_one = bool(np.isin(functionals, (0.0, 1.0)).all())
    disjoint = zero_or_one and bool((functionals.sum(axis=1) <= 1.0).all())
    return Cells(names, functionals, (True,) * len(names), disjoint)


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
            f"the functional {quoted(name)} must be a symbol, symbols or coefficients, not {quoted(what)}"
        )
    c = np.zeros(len(model.symbols))
    for symbol, value in parts.items():
        if symbol not in model.position:
            raise InputError(
                f"the functional {quoted(name)} names {quoted(symbol)}, which the channel does not know"
            )
        try:
            c[model.position[symbol]] = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the coefficient of {quoted(symbol)} in {quoted(name)} must be a number"
            ) from None
    if not np.isfinite(c).all() or not c.any():
        raise InputError(f"the functional {quoted(name)} must have finite coefficients, not all zero")
    return c


def _own_name(group: Sequence[str], model: ReleaseModel) -> str:
    """A name that no symbol has, for a group of several."""
    name = group_name(group)
    while len(group) > 1 and name in model.position:
        name += "+"
    return name


@dataclass(frozen=True)
class Estimator:
    """Cells with the weights b(y) that estimate them: ``W b = c``.

    Parameters
    ----------
    model : ReleaseModel
    known : Identification
    cells : Cells
    """

    model: ReleaseModel
    known: Identification
    cells: Cells

    @classmethod
    def of(cls, model: ReleaseModel, wanted: Any = None, unidentified: str = "groups") -> Estimator:
        """Choose the cells; raises as `choose_cells`."""
        known = identify(model.symbols, model.matrix)
        return cls(model, known, choose_cells(model, known, wanted, unidentified))

    def weights_for(self, functionals: Array) -> Array:
        """(labels, m) array b for other functionals of the same release."""
        model = self.model
        return coefficients(model.matrix, functionals, model.reference, self.known.rank)

    @cached_property
    def weights(self) -> Array:
        """(labels, m) array b for the cells."""
        return self.weights_for(self.cells.functionals)

    def products(self, frequencies: Array, estimate: Array) -> tuple[Array, bool]:
        """Estimate of ``sum_x P(x) c_i(x) c_j(x)``, and whether it is unbiased for all i and j.

        Where a product is not identified the smallest value that it can have (Cauchy and Schwarz) stands on the
        diagonal, which makes variances too large rather than too small.
        """
        c = self.cells.functionals
        if self.cells.disjoint:
            return np.diag(estimate), True
        outer = (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)
        scale = np.abs(outer).max(axis=0)
        seen = (np.abs(self.known.null @ outer) <= SUPPORT_TOLERANCE * scale).all(axis=0)
        values = self.weights_for(outer).T @ frequencies
        values = np.where(seen, values, np.outer(estimate, estimate).ravel())
        return values.reshape(c.shape[1], c.shape[1]), bool(seen.all())
