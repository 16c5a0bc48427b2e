"""What proves the bound of a channel file: multipliers, from which anybody can compute it again.

`Proof` is an object in the certificate of a file (docs/reference/certificates.md has the
mathematics):

    costs      for the least cost of channels on own symbols: prices of outputs, and multipliers of
               the limits on lifts, for every output
    entropy    for the most information that any channel keeps: prices of symbols, and of average
               leakages
    task       for the most that any channel tells of another column: prices, and its table
    queries    for the least variance of estimates: prices, and a matrix

Nothing is computed here. `auditing.proofs` computes the bound of the first kind,
`mechanisms.proving` those of the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from mechdesign.channel.record import Ratio
from mechdesign.core.documents import Record, explained
from mechdesign.core.errors import InputError

PROOF = "proof"
"""The key of the proof in the certificate of a channel file."""

Number = Annotated[float, Field(allow_inf_nan=False)]
Numbers: TypeAlias = tuple[Number, ...]


class CellCost(Record):
    """What a changed cell of one column of a row costs.

    Without `places` it is `weight`; with them it is the distance of the places of both texts.
    """

    column: str
    weight: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    places: dict[str, Number] | None = None


class AverageCharge(Record):
    """Price of one average leakage, and the slopes of its tangents in every output.

    `slopes` has a row for each sensitive symbol (for each guess of the measure gain), and an entry
    for each output.
    """

    price: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    slopes: tuple[Numbers, ...]


class CostProof(Record):
    """Multipliers that prove the least cost of a channel on own symbols.

    `prices` are those of the frequency of each symbol as an output; zeros where frequencies are
    free. `lifts` has a row for each protected symbol, in the order of `Demand`, and an entry for
    each output: positive at the lower limit of the lift, negative at the upper one. `ratios` has
    the same of quotients of lifts, and is empty without a limit on them. `costs` is the matrix of
    the objective costs, `cells` has the costs of the cells of rows.

    `averages` are the charges of average budgets, in their order; where these stand alone `lifts`
    is empty. Of a promise for a set of populations, or on averages over the secrets, `sides` takes
    the place of `lifts` and `ratios`. Column y of it, with a row for each symbol, is a linear
    function of the posteriors that are allowed; `touched` are posteriors at which rows that it is a
    sum of touch the set of them.
    """

    kind: Literal["costs"] = "costs"
    prices: Numbers
    lifts: tuple[Numbers, ...]
    ratios: tuple[Numbers, ...] = ()
    costs: tuple[tuple[Ratio, ...], ...] | None = None
    cells: tuple[CellCost, ...] | None = None
    sides: tuple[Numbers, ...] | None = None
    touched: tuple[Numbers, ...] | None = None
    averages: tuple[AverageCharge, ...] | None = None


class _WithAverages(Record):
    """Prices of average leakages, for proofs of posteriors.

    `leakages` are prices of the average budgets of the channel, in their order: sum_j leakages_j
    L_j(v) is added to the cost of a posterior v. For tasks and queries `touched` are the posteriors
    at which the tangents of the search touch the leakage, or its rows a set that is no polytope.
    `alone` says that no promise on single lifts was asked for beside them, so that all posteriors
    are allowed.
    """

    leakages: (
        tuple[Annotated[float, Field(ge=0.0, allow_inf_nan=False)], ...] | None
    ) = None
    touched: tuple[Numbers, ...] | None = None
    alone: Literal[True] | None = None


class EntropyProof(_WithAverages):
    """Prices of the useful symbols, in nats: with the least H(v) - prices . v over the posteriors v
    that are allowed they bound H(X|Y) of every channel from below.
    """

    kind: Literal["entropy"] = "entropy"
    prices: Numbers


class TaskProof(_WithAverages):
    """Prices of the useful symbols, in nats, and the table of the task.

    `task` has the records of each value of the task, by useful symbol.
    """

    kind: Literal["task"] = "task"
    prices: Numbers
    task: tuple[tuple[Annotated[int, Field(ge=0)], ...], ...]

    @model_validator(mode="after")
    def _is_for_all_symbols(self) -> TaskProof:
        _check_rows("task", self.task, self.prices)
        _check_rows("touched", self.touched or (), self.prices)
        return self


class QueryProof(_WithAverages):
    """Prices of the useful symbols, and a matrix: near the inverse of what the optimum tells.

    `queries` are those of the user's own, a row for each; the others follow from their name.
    """

    kind: Literal["queries"] = "queries"
    prices: Numbers
    inverse: tuple[Numbers, ...]
    queries: tuple[Numbers, ...] | None = None

    @model_validator(mode="after")
    def _is_for_all_symbols(self) -> QueryProof:
        _check_rows("inverse", self.inverse, self.prices)
        _check_rows("queries", self.queries or (), self.prices)
        _check_rows("touched", self.touched or (), self.prices)
        return self


def _check_rows(name: str, rows: Sequence[Sequence[float]], prices: Numbers) -> None:
    """Raise InputError unless each row has a number for every price."""
    if any(len(row) != len(prices) for row in rows):
        raise InputError(f"{name} must be rows of {len(prices)} numbers, as prices are")


AnyProof: TypeAlias = CostProof | EntropyProof | TaskProof | QueryProof

Proof: TypeAlias = Annotated[AnyProof, Field(discriminator="kind")]


@cache
def _adapter() -> TypeAdapter[AnyProof]:
    """The reader of proofs, built when the first one is read."""
    return TypeAdapter(Proof)


def proof_in(certificate: Mapping[str, Any] | None) -> AnyProof | None:
    """The proof in the certificate of a channel's record; None where there is none.

    Raises
    ------
    InputError
        If it is no proof of a known kind.
    """
    entry = (certificate or {}).get(PROOF)
    if entry is None:
        return None
    try:
        return _adapter().validate_json(json.dumps(entry))
    except ValidationError as error:
        raise InputError(
            f"the proof in the certificate: {explained(error, 'proof')}"
        ) from None
