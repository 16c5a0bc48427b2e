"""Somebody who knows the table row by row, with its secrets, and sees the whole released file.

He does not know who is who. What the channel says about one row holds for him as well, if the
numbers of released rows were fixed beforehand; of independent draws the numbers that came out tell
him which moves were made (docs/explanation/whole-file.md). He is simulated by `leaks.whole_file`,
and needs the channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.auditing.leakages import belief_ranges
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import joined_name, listed
from mechdesign.judging.figures import Figure, Part
from mechdesign.judging.own_row import (
    MOST_SYMBOLS,
    SUREST,
    Bounds,
    chance_note,
    combined,
)
from mechdesign.judging.together import Files, Floats
from mechdesign.leaks.whole_file import (
    posterior_by_messages,
    posterior_given_file,
    success,
)

MOST_MESSAGES = 60_000
"""Pairs of rows up to which messages are passed, which takes a minute; scaling is tried always."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A released file as draws of a channel.

    Attributes
    ----------
    outputs : (released,) integers
        The output of each released row.
    counts : (outputs,) integers
    fixed : bool
        Whether every output has exactly its expected number of rows.
    """

    outputs: Integers
    counts: Integers
    fixed: bool


def check_channel(channel: Channel, files: Files) -> None:
    """Raise InputError unless the channel protects this secret and releases columns of the file."""
    if channel.useful.people is not None:
        raise InputError(
            "the channel promises for all records of a person together, and judge looks at single "
            "records: leave --channel out; nothing then bounds the figures, which are about records"
        )
    sensitive = channel.sensitive
    if sensitive is not None and set(sensitive.columns) != set(files.secret.names):
        raise InputError(
            f"the channel protects {listed(sensitive.columns)}, and --sensitive names "
            f"{listed(files.secret.names)}"
        )
    names = [*(column.name for column in files.columns), *files.unjudged]
    missing = [name for name in channel.output_columns if name not in names]
    if missing:
        raise InputError(
            f"the released file has no column {listed(missing)}, which the channel releases"
        )


def belief_bounds(channel: Channel | None) -> Bounds:
    """For each secret the least and the largest belief after a released row; empty without a
    table.
    """
    if channel is None or channel.joint is None:
        return {}
    joint = channel.joint
    ranges = belief_ranges(channel, joint)
    if joint.sensitive.protects_columns:
        return {}
    return dict(zip(joint.sensitive.names, ranges, strict=True))


def drawn_by(channel: Channel, files: Files) -> Drawn | None:
    """The outputs of the released rows; None where some row is none of them, or the channel has no
    table.
    """
    if channel.joint is None:
        return None
    of_name = {column.name: column for column in files.columns}
    if any(name not in of_name for name in channel.output_columns):
        return None
    place_of = {cells: place for place, cells in enumerate(channel.output_cells)}
    texts: list[list[str]] = []
    for name in channel.output_columns:
        column = of_name[name].released
        values = list(column.values)
        texts.append([values[code] for code in column.codes.tolist()])
    outputs: list[int] = []
    for cells in zip(*texts, strict=True):
        if cells not in place_of:
            return None
        outputs.append(place_of[cells])
    places = np.array(outputs, np.int64)
    counts = np.bincount(places, minlength=len(channel.outputs))
    return Drawn(places, counts, _is_fixed(channel, counts))


def _is_fixed(channel: Channel, counts: Integers) -> bool:
    """Whether the numbers of released rows are the expected ones, exactly."""
    total = sum(channel.joint.useful_counts) if channel.joint is not None else 0
    if total != int(counts.sum()):
        return False
    for (_, masses), count in zip(channel.behind, counts.tolist(), strict=True):
        if sum(masses) != count * channel.denominator:
            return False
    return True


def beliefs_of(
    channel: Channel, drawn: Drawn
) -> tuple[list[tuple[str, Floats]], Floats]:
    """P(s | output) of the observers of the whole file by their names, and of the channel."""
    joint = channel.joint
    if joint is None:
        raise TypeError("a channel without a table")
    integers = channel.integers
    rows = integers.row_of
    columns = integers.indices
    records = np.array(joint.useful_counts, float)
    values = channel.shares * records[rows]
    table = np.array(joint.counts, float)
    shares = table / table.sum(axis=0)
    masses = np.bincount(columns, values, len(channel.outputs))
    alone = np.stack(
        [
            np.bincount(columns, share[rows] * values, len(masses)) / masses
            for share in shares
        ]
    )
    if drawn.fixed:
        return [], alone
    observers: list[tuple[str, Floats]] = []
    scaled = posterior_given_file(rows, columns, values, drawn.counts, shares)
    observers.append(("by scaling", scaled.posteriors))
    if len(values) <= MOST_MESSAGES and int(drawn.counts.sum()) == int(records.sum()):
        passed = posterior_by_messages(
            rows,
            columns,
            values,
            np.array(joint.useful_counts, np.int64),
            drawn.counts,
            shares,
        )
        observers.append(("by messages", passed.posteriors))
    return observers, alone


TITLE = "Somebody who knows the whole table and sees the whole file"
MEANS = (
    "An observer has every row of the table with its secret, but not who is who, and sees all "
    "released rows at once. He is the strongest one: the figures say how often he is right about "
    "the released rows of which he is surest."
)
NOT_MEANT = (
    "Rows whose numbers were fixed beforehand tell him no more than one row tells by itself, which "
    "is proven. Of independent draws the figures are those of the best known methods, and no bound."
)


def whole_file_part(
    files: Files, channel: Channel | None, shares: dict[str, float], bounds: Bounds
) -> Part:
    """The observer of the whole file."""

    def without(note: str) -> Part:
        return Part("whole_file", TITLE, MEANS, NOT_MEANT, (), (note,))

    if channel is None:
        return without(
            "Not measured: it takes the channel (--channel), which says what each row can become."
        )
    drawn = drawn_by(channel, files)
    if drawn is None or not bounds:
        return without(
            "Not measured: the channel has no table, or the file has rows that it does not release."
        )
    if not files.is_linked:
        return without(
            "Not measured: it is not known which released row belongs to whom."
            + (_fixed_note() if drawn.fixed else "")
        )
    try:
        observers, alone = beliefs_of(channel, drawn)
    except InputError as error:
        return without(f"Not measured: {error}.")
    truth = files.secret.codes[files.owner]
    names = list(bounds)
    code_of = {symbol: code for code, symbol in enumerate(files.secret.symbols)}
    present = [name for name in names if name in code_of]
    chosen = sorted(present, key=lambda name: shares[name])[:MOST_SYMBOLS]
    if len(present) == 2:
        chosen = chosen[:1]
    secret = files.secret.codes
    of_channel = files.places(channel.output_columns)
    true_row = combined([files.columns[place].original.codes for place in of_channel])
    sizes = np.bincount(true_row)
    figures: list[Figure] = []
    for name in chosen:
        place = names.index(name)
        has_secret = secret == code_of[name]
        # In the untouched file he sees the true row of everybody, and guesses among its people.
        known = (np.bincount(true_row, has_secret) / sizes)[true_row]
        holds = truth == code_of[name]
        of_row = alone[place][drawn.outputs]
        of_file = [posteriors[place][drawn.outputs] for _, posteriors in observers]
        for share in SUREST:
            found = success(of_row, holds, share)
            best = max([found, *(success(seen, holds, share) for seen in of_file)])
            untouched = success(known, has_secret, share)
            percent = round(100 * share)
            surest = f"{joined_name([name])} among the surest {percent} %"
            bound = bounds[name][1]
            figures.append(
                Figure(
                    f"file_{percent}_{name}",
                    f"sees all rows: {surest}",
                    best,
                    untouched,
                    shares[name],
                    bound if drawn.fixed else None,
                )
            )
            # With fixed counts both are the same.
            if drawn.fixed:
                continue
            figures.append(
                Figure(
                    f"row_{percent}_{name}",
                    f"sees one row each: {surest}",
                    found,
                    untouched,
                    shares[name],
                    bound,
                )
            )
    notes = [_fixed_note().strip()] if drawn.fixed else [INDEPENDENT]
    notes.append(chance_note(len(truth), shares[chosen[0]]))
    return Part("whole_file", TITLE, MEANS, NOT_MEANT, tuple(figures), tuple(notes))


INDEPENDENT = (
    "The numbers of released rows are not the expected ones, so each row was drawn by itself: the "
    "promise is proven for readers of single rows, and not for this observer. `apply` with fixed "
    "counts to the table of the design removes the difference."
)


def _fixed_note() -> str:
    """What fixed numbers mean."""
    return (
        " Every row is released exactly as often as expected, so the whole file tells this "
        "observer no more than one row does. Such rows are drawn together, so between two draws of "
        "the file the shares vary more than those of people picked one by one."
    )
