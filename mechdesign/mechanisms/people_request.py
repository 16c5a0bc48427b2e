"""A request for people with several records, in the columns of the folded table.

Users name the columns of a record: ``release=["job", "health"]``. The table of the design has a row
for each person (`tables.people`), with these columns at each place of the sequence. `of_people`
translates the options, and refuses those that say something of a single record, which no plan
between sequences can promise yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.mechanisms.least_cost_objective import DISTANCE, TRUTH
from mechdesign.tables.people import People, at_place


def of_people(people: People, request: Any) -> dict[str, Any]:
    """The fields of a design request that differ for people.

    Parameters
    ----------
    people : People
        Those of the table.
    request : DesignRequest
        As the user gave it; its columns are tuples.

    Raises
    ------
    InputError
        If an option is not defined for people, or names a column that is no column of a record.
    """
    _refuse(request)
    _check_columns(people, request)
    fields: dict[str, Any] = {
        "release": people.released_columns,
        "given": people.given_columns,
        "known": _at_places(people, request.known, "known"),
    }
    # A sequence is nearly always that of one person alone, so a smallest group is only one if it
    # is asked for; it counts people then.
    if request.smallest_group is None and not request.known:
        fields["smallest_group"] = 1
    if request.column_weights:
        fields["column_weights"] = _weights(people, request.column_weights)
    return fields


def _refuse(request: Any) -> None:
    """Refuse what is not built for people."""
    if request.release is None:
        raise InputError(
            "people with several records are released as rows: name the columns of a record with "
            "release (--release COL,..)"
        )
    objective = request.objective
    is_free = isinstance(objective, str) and objective not in (TRUTH, DISTANCE)
    refused = {
        "a confidence level": request.confidence is not None,
        "after": bool(request.after),
        "average": request.average is not None,
        "bins": request.bins is not None,
        "forbid": bool(request.forbid),
        "never": bool(request.never),
        f"objective {objective}": is_free,
    }
    for name, is_given in refused.items():
        if is_given:
            raise InputError(
                f"{name} is not built for people with several records (person): leave one of them "
                "out"
            )


def _check_columns(people: People, request: Any) -> None:
    """Refuse columns other than those that the table was folded with."""
    release = tuple(request.release)
    if release not in (people.released, people.released_columns):
        raise InputError(
            f"release must name the columns of a record, {listed(people.released)}, with which the "
            "people were folded"
        )
    given = tuple(request.given)
    if given and given not in (people.given, people.given_columns):
        raise InputError(
            f"given must name the given columns of a record ({listed(people.given) or 'none'}) "
            "with which the people were folded"
        )


def _at_places(people: People, names: Sequence[str], option: str) -> tuple[str, ...]:
    """The folded columns for columns of a record."""
    columns: list[str] = []
    for name in names:
        if name in people.folded_columns:
            columns.append(name)
            continue
        if name not in people.columns:
            raise InputError(f"{option}: {quoted(name)} is not released")
        columns += [at_place(name, place) for place in range(people.longest)]
    return tuple(columns)


def _weights(people: People, weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weight of each folded column that has one of its own."""
    folded: dict[str, Any] = {}
    for name, weight in weights.items():
        for column in _at_places(people, [name], "column weight"):
            folded[column] = weight
    return folded
