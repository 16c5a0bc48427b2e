"""A release of records whose identifiers or kept columns name people with several of them.

The promise of the channel is then about each record, and those of a person add up: whoever reads
the release sees which records are of one person, or can find it out. `refuse_people` says what they
reach together, and refuses the release unless the user says that the unit is the record.

The order of the file tells as much as such a column, where the records of a person stand together,
or people come in the same order in every wave. So where the order stays, the columns that do not
stay are looked at, too, if the first records have such an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.recipe import Recipe
from mechdesign.leaks.people_notice import (
    PeopleFound,
    people_named,
    people_notice,
    reach_in,
)
from mechdesign.tables.people import MOST_RECORDS, RECORD

REGULAR = 0.5
"""Share of the values that come again after as many records as most others, from which on the
order tells which records are of one person. In random order hardly any two distances agree."""

Read: TypeAlias = Callable[[Sequence[str]], Mapping[str, Encoded]]
"""Gives columns of a table by their names."""


def refuse_people(
    recipe: Recipe,
    header: Sequence[str],
    read: Read,
    read_first: Read | None = None,
    comes_again: Callable[[str], bool] | None = None,
    stays: Sequence[str] = (),
    *,
    can_shuffle: bool = True,
) -> None:
    """Raise InputError where a column that identifies records, or stays, names people, or where
    their order does.

    Parameters
    ----------
    recipe : Recipe
    header : sequence of str
        The columns of the table.
    read : function
        Gives columns of the table by their names.
    read_first : function, optional
        As `read`, of records from the beginning; without it the order is taken for
        one that tells nothing.
    comes_again : function, optional
        Whether the values of a column can be those of people; such columns alone are read then.
    stays : sequence of str
        Columns that stay beside those that the options keep.
    can_shuffle : bool
        Whether the release itself could shuffle the records.
    """
    options = recipe.options
    if recipe.people is not None or options.unit == RECORD:
        return
    if not isinstance(recipe, KeyedRecipe):
        # Nothing is drawn, so that nothing adds up.
        return
    named = [*options.identifiers, *options.kept, *stays]
    # Records of one identifier have one draw, which tells no more than one record.
    drawn_once = options.identifiers if len(options.identifiers) == 1 else ()
    useful = recipe.useful_columns
    own = {*useful, *drawn_once}
    there = {*header}
    named = [name for name in named if name in there and name not in own]
    sensitive = [name for name in recipe.private_columns if name in there]
    others = list(dict.fromkeys([*useful, *sensitive]))
    others = [name for name in others if name in there]

    def found_among(names: Sequence[str]) -> tuple[PeopleFound, tuple[str, ...]] | None:
        if comes_again is not None:
            names = [name for name in names if comes_again(name)]
        if not names:
            return None
        columns = read(list(dict.fromkeys([*names, *others])))
        return people_named(columns, names, sensitive)

    by_order = ""
    found = found_among(named)
    if found is None and read_first is not None and not options.shuffle:
        known = {*named, *own, *others}
        dropped = [name for name in header if name not in known]
        first = _readable(read_first, dropped)
        found = found_among([name for name in first if _is_regular(first[name])])
        remedy = "--shuffle gives them a random one"
        if not can_shuffle:
            remedy = "put them in random order first"
        by_order = f"the order of the records tells which of them are of one person ({remedy}): "
    if found is None:
        return
    people, alike = found
    reach = None
    channels = [single for one in recipe.channels for single in one.channels]
    secret: Sequence[str] = alike
    # The symbols of boxes are no cells of the table, so that nothing is known of them.
    if len(channels) == 1 and not options.renamed:
        reach = reach_in(people, channels[0])
        if channels[0].sensitive is not None:
            secret = channels[0].sensitive.columns
    notice = people_notice(people, secret, reach, alike)
    raise InputError(f"nothing was released: {by_order}{notice}")


def _readable(read: Read, names: Sequence[str]) -> Mapping[str, Encoded]:
    """These columns, without those whose cells have no text, as lists and bytes: such a cell names
    nobody.
    """
    if not names:
        return {}
    try:
        # A file is parsed anew for every call, so all are read at once if they can be.
        return read(names)
    except InputError:
        # The error names the first such column, and there may be more.
        pass
    columns: dict[str, Encoded] = {}
    for name in names:
        with suppress(InputError):
            columns.update(read([name]))
    return columns


def _is_regular(column: Encoded) -> bool:
    """Whether the values of a column come again after the same number of records, mostly.

    For example, 1 1 1 2 2 2 and 1 2 3 1 2 3 are regular.
    """
    codes = column.codes[column.codes >= 0]
    if not len(codes) or int(np.bincount(codes).max()) > MOST_RECORDS:
        return False
    places = np.argsort(codes, kind="stable")
    comes_again = np.diff(codes[places]) == 0
    distances = np.diff(places)[comes_again]
    if not len(distances):
        return False
    return int(np.bincount(distances).max()) >= REGULAR * len(distances)
