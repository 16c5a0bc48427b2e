"""A release of records whose identifiers or kept columns name people with several of them.

The promise of the channel is then about each record, and those of a person add up: whoever reads
the release sees which records are of one person, or can find it out. `refuse_people` says what they
reach together, and refuses the release unless the user says that the unit is the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.recipe import Recipe
from mechdesign.leaks.people_notice import (
    RECORD,
    people_named,
    people_notice,
    reach_in,
)


def refuse_people(
    recipe: Recipe,
    header: Sequence[str],
    read: Callable[[Sequence[str]], Mapping[str, Encoded]],
) -> None:
    """Raise InputError where a column that identifies records, or stays, names people.

    Parameters
    ----------
    recipe : Recipe
    header : sequence of str
        The columns of the table.
    read : function
        Gives columns of the table by their names.
    """
    options = recipe.options
    if recipe.people is not None or options.unit == RECORD:
        return
    if not isinstance(recipe, KeyedRecipe):
        # Nothing is drawn, so that nothing adds up.
        return
    named = [*options.identifiers, *options.kept]
    # Records of one identifier have one draw, which tells no more than one record.
    drawn_once = options.identifiers if len(options.identifiers) == 1 else ()
    useful = recipe.useful_columns
    own = {*useful, *drawn_once}
    named = [name for name in named if name in header and name not in own]
    if not named:
        return
    sensitive = [name for name in recipe.private_columns if name in header]
    names = [name for name in (*named, *useful, *sensitive) if name in header]
    columns = read(list(dict.fromkeys(names)))
    found = people_named(columns, named, sensitive)
    if found is None:
        return
    people, alike = found
    reach = None
    channels = [single for one in recipe.releasables for single in one.channels]
    secret: Sequence[str] = alike
    # The symbols of boxes are no cells of the table, so that nothing is known of them.
    if len(channels) == 1 and not options.renamed:
        reach = reach_in(people, channels[0])
        if channels[0].sensitive is not None:
            secret = channels[0].sensitive.columns
    notice = people_notice(people, secret, reach, alike)
    raise InputError(f"nothing was released: {notice}")
