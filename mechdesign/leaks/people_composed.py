"""What all records of a person in a file reach together that are released one by one.

The file has a row for each record. Each is released once through every channel, and drawn by
itself; `composed_for_people` finds the person and the symbol of every record, and
`auditing.independent_draws` bounds what the outputs of all records of a person tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.auditing.common_table import common_table
from mechdesign.auditing.independent_draws import (
    PeopleTogether,
    together_of_people,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.formats.text_options import TextOptions
from mechdesign.release.policies import normalised, normalised_cells, recorded_rules
from mechdesign.tables.columns import positions_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.people_tables import read_records


def composed_for_people(
    path: PathLike,
    channels: Sequence[Channel],
    joint: Joint | None,
    person: Sequence[str],
    text: TextOptions | None = None,
) -> PeopleTogether:
    """What the records of the people of a file reach together.

    Parameters
    ----------
    path : path
        The records; those that the table of the channels lacks are left out.
    channels : sequence of Channel
        Each record is released once through each.
    joint : Joint, optional
        The table with the columns of all channels; by default their own.
    person : sequence of str
        What names a person.
    text : TextOptions, optional
        How a CSV is written.

    Raises
    ------
    InputError
        If a channel is for people itself, or there is no common table, or a column is missing.
    """
    if any(channel.useful.people is not None for channel in channels):
        raise InputError(
            "a channel for people promises for all records of a person already: leave --person out"
        )
    table = common_table(channels, joint)
    names = table.useful.columns
    records = read_records(path, [*person, *names], text)
    rules = recorded_rules(channels)
    cells = [records.columns[name] for name in names]
    useful = table.useful
    if rules is not None:
        cells = normalised_cells(cells, rules.cell_form)
        useful = normalised(useful, rules.cell_form)
    symbols = positions_of(cells, useful)
    people = records.by_person(person)
    known = symbols >= 0
    if not known.any():
        raise InputError(f"{records.name}: the channels know none of its records")
    person_of = np.unique(people.person_of[known], return_inverse=True)[1]
    return together_of_people(channels, table, symbols[known], person_of.reshape(-1))


def together_sentence(
    together: PeopleTogether, person: Sequence[str], sensitive: Sequence[str]
) -> str:
    """The same in words."""
    reach = "reach" if together.exact else "reach at most"
    low, high = together.single
    return (
        f"all records of a person ({listed(person)}: {together.people:,} people with up to "
        f"{together.most:,} records), each drawn by itself, {reach} {at_least(together.lowest)} to "
        f"{at_most(together.highest)} times as likely for a value of {quoted(','.join(sensitive))},"
        f" where they are independent given it; one record reaches {at_least(low)} to "
        f"{at_most(high)} times. {together.above:,} of {together.people:,} people can be told more "
        f"of than one record tells, and for {together.sure:,} a value can become more than 90% "
        "likely"
    )
