"""A request for people with several records, in the columns of the folded table.

Users name the columns of a record: ``release=["job", "health"]``. The table of the design has a row
for each person (`tables.people`), with these columns at each place of the sequence. `of_people`
translates the options: what is said of a cell of a record holds at every place. What people do not
have is refused by `combinations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.least_cost_objective import check_pair
from mechdesign.tables.bin_edges import AUTO, specs_by_column
from mechdesign.tables.people import People, at_place
from mechdesign.tables.variable import Variable


def of_people(useful: Variable, people: People, request: Any) -> dict[str, Any]:
    """The fields of a design request that differ for people.

    Parameters
    ----------
    useful : Variable
        The sequences of the table.
    people : People
        Those of the table; with the columns of earlier releases, too.
    request : DesignRequest
        As the user gave it; its columns are tuples.

    Raises
    ------
    InputError
        If an option names a column that is no column of a record, or a cell that no record has.
    """
    released = _released(people, request)
    fields: dict[str, Any] = {
        "release": released,
        "given": people.given_columns,
        "known": _at_places(people, request.known, "known"),
        "never": _never(useful, people, request.never),
        "forbid": _forbid(useful, people, request.forbid),
    }
    # A sequence is nearly always that of one person alone, so a smallest group is only one if it
    # is asked for; it counts people then.
    is_own = request.smallest_group is None and not request.known
    if is_own and request.confidence is None:
        fields["smallest_group"] = 1
    if request.column_weights:
        fields["column_weights"] = _weights(people, request.column_weights)
    return fields


def bins_of_people(bins: Any, columns: Sequence[str]) -> dict[str, Any]:
    """The bins of columns of a record, by column; raises InputError where they are searched."""
    if bins is None:
        return {}
    specs = specs_by_column(bins, columns)
    for name, spec in specs.items():
        if isinstance(spec, str) and spec == AUTO:
            named = {"bins": f"auto for the bins of {quoted(name)}"}
            combinations.check(combinations.PEOPLE, named)
    return specs


def _released(people: People, request: Any) -> tuple[str, ...]:
    """The folded columns that are released.

    Those of earlier releases may be in the table beside them.
    """
    if request.release is None:
        raise InputError(
            "people with several records are released as rows: name the columns of a record with "
            "release (--release COL,..)"
        )
    # A request that is made again has the folded columns already.
    release = dict.fromkeys(
        people.column_of.get(name, name) for name in request.release
    )
    is_part = bool(request.after) and set(release) <= set(people.released)
    if set(release) != set(people.released) and not is_part:
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
    return tuple(
        at_place(name, place) for place in range(people.longest) for name in release
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


def _never(
    useful: Variable, people: People, asked: Sequence[Mapping[str, str]]
) -> list[Mapping[str, str]]:
    """The combinations of folded cells for those of a record, one for each place."""
    if not asked:
        return []
    cells = _cells(useful, people)
    folded: list[Mapping[str, str]] = []
    for combination in asked:
        if all(name in people.folded_columns for name in combination):
            folded.append(combination)
            continue
        for name, text in combination.items():
            if name not in people.columns:
                raise InputError(f"--never: {quoted(name)} is no column of a record")
            if not any(text in at_one for at_one in cells[name]):
                raise InputError(
                    f"--never: no record has {quoted(f'{name}={text}')} (cells are written as text)"
                )
        for place in range(people.longest):
            # A combination that no record has at a place never occurs there anyway.
            if all(text in cells[name][place] for name, text in combination.items()):
                folded.append(
                    {at_place(name, place): text for name, text in combination.items()}
                )
    return folded


def _forbid(
    useful: Variable, people: People, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """The pairs of folded cells for those of a record, one for each place that has both."""
    if not pairs:
        return ()
    cells = _cells(useful, people)
    folded: list[tuple[str, str]] = []
    for pair in pairs:
        check_pair(pair)
        before, after = (_texts_by_place(text, useful, people, cells) for text in pair)
        for text_before, text_after in zip(before, after, strict=True):
            if text_before is not None and text_after is not None:
                folded.append((text_before, text_after))
    return tuple(dict.fromkeys(folded))


def _texts_by_place(
    text: str,
    useful: Variable,
    people: People,
    cells: Mapping[str, Sequence[set[str]]],
) -> list[str | None]:
    """For each place what a text of `forbid` means there, if a record has it: the cell of a column
    of a record (``column=text``, or the text where one column alone has it). The name of a sequence
    and a folded cell mean the same at all places.
    """
    column, has_column, cell = text.partition("=")
    if text in useful.names or (has_column and column in people.folded_columns):
        return [text] * people.longest
    if has_column and column in people.columns:
        columns = [column]
    else:
        cell = text
        columns = [
            name for name in people.columns if any(cell in at for at in cells[name])
        ]
    if len(columns) > 1:
        names = [f"{name}={text}" for name in columns]
        raise InputError(
            f"--forbid: {quoted(text)} is a cell of several columns: write {listed(names)}"
        )
    if not columns or not any(cell in at_one for at_one in cells[columns[0]]):
        raise InputError(f"--forbid: no record has {quoted(text)}")
    texts: list[str | None] = []
    for place, at_one in enumerate(cells[columns[0]]):
        is_there = cell in at_one
        texts.append(f"{at_place(columns[0], place)}={cell}" if is_there else None)
    return texts


def _cells(useful: Variable, people: People) -> dict[str, list[set[str]]]:
    """For each column of a record the cells that records have at each place."""
    cells = {
        name: [set[str]() for _ in range(people.longest)] for name in people.columns
    }
    for symbol in useful.symbols:
        for place, record in enumerate(people.records(symbol)):
            for name, text in zip(people.columns, record, strict=True):
                cells[name][place].add(text)
    return cells
