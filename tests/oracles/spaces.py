"""Several discrete uncertain variables on one finite set Omega: unrelatedness and Markov chains.

Definitions as in Farokhi and Ding 2020, section II. Omega is given by its distinct outcomes, one
tuple of values for each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.nonstochastic.ranges import (
    LARGEST_ENUMERATION,
    JointRange,
    numbered,
)

Codes = NDArray[np.int64]
Names = str | Sequence[str]


def enumerate_domain(domain: Iterable[Hashable]) -> list[Hashable]:
    """Return the domain as a list."""
    points = list(islice(domain, LARGEST_ENUMERATION + 1))
    if len(points) > LARGEST_ENUMERATION:
        raise InputError(
            f"the domain has more than {LARGEST_ENUMERATION:,} points, too many to enumerate; a sum, mean, "
            "count, linear or monotone query needs no enumeration: give its domain as a product of intervals"
        )
    if not points:
        raise InputError("the domain is empty; a range needs at least one value")
    return points


def from_function(
    function: Callable[[Any], Hashable], domain: Iterable[Hashable]
) -> JointRange:
    """The joint range of X on a finite `domain` and Y = function(X)."""
    return JointRange.from_pairs((x, function(x)) for x in domain)


def from_channel(
    function: Callable[[Any], Iterable[Hashable]], domain: Iterable[Hashable]
) -> JointRange:
    """The joint range of X on a finite `domain` and any Y in the set function(X)."""
    return JointRange.from_pairs((x, y) for x in domain for y in function(x))


@dataclass(frozen=True, eq=False)
class UncertainSpace:
    """The joint range of any number of named discrete variables.

    Parameters
    ----------
    names
        Names of the variables, all different.
    symbols
        The marginal range of each variable.
    outcomes
        The joint range as indices into the marginal ranges, int64, shape (outcomes, variables),
        without repeated rows.
    """

    names: tuple[str, ...]
    symbols: tuple[tuple[Hashable, ...], ...]
    outcomes: Codes = field(repr=False)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> UncertainSpace:
        """From columns of equal length: entry k of all columns is an outcome that can occur.

        Raises
        ------
        InputError
            If there is no column, a column is empty or holds NaN, or lengths differ.
        """
        if not columns:
            raise InputError("a space needs at least one variable")
        encoded = {name: numbered(name, values) for name, values in columns.items()}
        sizes = {name: codes.size for name, (_, codes) in encoded.items()}
        if len(set(sizes.values())) > 1:
            lengths = ", ".join(
                f"{quoted(name)} {size}" for name, size in sizes.items()
            )
            raise InputError(
                f"all variables need the same number of outcomes, not {lengths}"
            )
        outcomes = np.unique(
            np.column_stack([codes for _, codes in encoded.values()]), axis=0
        )
        outcomes.setflags(write=False)
        return cls(
            tuple(encoded), tuple(symbols for symbols, _ in encoded.values()), outcomes
        )

    @classmethod
    def from_product(
        cls,
        domains: Mapping[str, Iterable[Hashable]],
        **functions: Callable[..., Hashable],
    ) -> UncertainSpace:
        """Unrelated variables on finite domains, and functions of all of them (called by position).

        Raises
        ------
        InputError
            If a domain is empty, a name occurs twice, or the product is too large to enumerate.
        """
        lists = {name: enumerate_domain(domain) for name, domain in domains.items()}
        twice = [name for name in functions if name in lists]
        if twice:
            raise InputError(
                f"the name {quoted(twice[0])} is given to a domain and to a function"
            )
        n_points = prod(map(len, lists.values()))
        if n_points > LARGEST_ENUMERATION:
            raise InputError(
                f"the domain has {n_points:,} points, more than {LARGEST_ENUMERATION:,}, too many to enumerate; "
                "a sum, mean, count, linear or monotone query needs no enumeration: "
                "give its domain as a product of intervals"
            )
        points = list(product(*lists.values()))
        columns: dict[str, Any] = {
            name: [p[k] for p in points] for k, name in enumerate(lists)
        }
        columns |= {
            name: [function(*p) for p in points] for name, function in functions.items()
        }
        return cls.from_columns(columns)

    def _places(self, names: Names) -> list[int]:
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self.names:
                raise InputError(
                    f"variable {quoted(name)} is missing; the space has {listed(list(self.names))}"
                )
        return [self.names.index(name) for name in wanted]

    def _labels(self, places: Sequence[int]) -> Codes:
        """A number for each outcome, equal where the values of these variables are equal."""
        if not places:
            return np.zeros(len(self.outcomes), dtype=np.int64)
        _, labels = np.unique(self.outcomes[:, places], axis=0, return_inverse=True)
        return labels.reshape(-1).astype(np.int64)

    def _values(self, names: Names) -> list[Hashable]:
        """The value of a variable, or the tuple of values of several, in every outcome."""
        places = self._places(names)
        if isinstance(names, str):
            return [
                self.symbols[places[0]][k] for k in self.outcomes[:, places[0]].tolist()
            ]
        rows = self.outcomes[:, places].tolist()
        return [
            tuple(self.symbols[p][k] for p, k in zip(places, row, strict=True))
            for row in rows
        ]

    def marginal(self, names: Names) -> frozenset[Hashable]:
        """The range of a variable, or of several together (as tuples)."""
        return frozenset(self._values(names))

    def joint(self, x: Names, y: Names) -> JointRange:
        """The joint range of two variables, or of two groups of them (as tuples)."""
        return JointRange.from_columns(self._values(x), self._values(y))

    def conditional(
        self, names: Names, given: Mapping[str, Hashable]
    ) -> frozenset[Hashable]:
        """The range of a variable, or of several together, once others are known.

        Raises
        ------
        InputError
            If no outcome has the given values: the conditional range is empty.
        """
        keep = np.ones(len(self.outcomes), dtype=np.bool_)
        for name, value in given.items():
            place = self._places(name)[0]
            if value not in self.symbols[place]:
                raise InputError(
                    f"value {quoted(value)} is not in the range of {quoted(name)}"
                )
            keep &= self.outcomes[:, place] == self.symbols[place].index(value)
        if not keep.any():
            raise InputError(
                "the conditional range is empty: the given values never occur together"
            )
        return UncertainSpace(self.names, self.symbols, self.outcomes[keep]).marginal(
            names
        )

    def is_unrelated(self, *groups: Names, given: Names = ()) -> bool:
        """Whether variables (or groups) are unrelated, or conditionally so given others.

        The joint range of the groups must be the product of their ranges, for every value of the
        given variables.
        """
        if len(groups) < 2:
            raise InputError("unrelatedness needs at least two variables")
        known = self._places(given)
        places = [self._places(group) for group in groups]
        condition = self._labels(known)
        together = self._labels([*known, *(p for group in places for p in group)])
        n_conditions = int(condition.max()) + 1

        def sizes(labels: Codes) -> list[int]:
            _, first = np.unique(labels, return_index=True)
            return np.bincount(condition[first], minlength=n_conditions).tolist()

        parts = [sizes(self._labels([*known, *group])) for group in places]
        return all(
            whole == prod(part[k] for part in parts)
            for k, whole in enumerate(sizes(together))
        )

    def is_markov(self, *groups: Names) -> bool:
        """Whether X1 - X2 - ... - Xn is a Markov chain.

        For all i < j < l, Xi and Xl are unrelated given Xj; each may be a group of variables.
        """
        if len(groups) < 3:
            raise InputError("a Markov chain needs at least three variables")
        return all(
            self.is_unrelated(a, c, given=b) for a, b, c in combinations(groups, 3)
        )
