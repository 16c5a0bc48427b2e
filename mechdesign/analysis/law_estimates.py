"""Frequencies of columns from released rows: the shares of the file, less what the release moved.

Where every row is released as often as the table has it, shares, means and tables of the released
columns have the table's values in expectation: nothing is to be corrected. Smallest groups and free
frequencies move the share of a value from p to q, sum over x of P(x) W(value | x), and both follow
from the channel and its table. `estimate_shares` takes q - p off, and gives the shares of one or
several columns with their errors:

- *For the table.* Given the table, independent draws of N records add the variance

      (1/N) sum over x of P(x) q(x) (1 - q(x)),   q(x) = sum over y with the value of W(y|x),

  to a share. With fixed counts they add nothing.
- *For the population* that the records are an independent sample of, p (1 - p) / N more for the
  sample. The plan is made from these very records, so both together are at most 2 p (1 - p) / N
  (docs/explanation/rows-theory.md, proposition 7).

For example, with one in four nurses released as a clerk and the other way round, the share of
nurses among 100 records, half of them nurses, has the standard error sqrt(.25 * .75 / 100) = .043
for the table, and .066 for the population.

*Intervals* hold every share theta that the release does not contradict: with the released share s,
the variance d that draws add to that of one record, and the quantile z of the normal law,

    |s - theta| <= 1 / (2 N) + z sqrt((theta (1 - theta) + d) / N)

for the population, and the same without theta (1 - theta) for the table. The first term corrects
for shares that are whole numbers of records; without draws there is no such term for the table,
whose shares they are. So a value without a record has a width, too: of 1,000 records with fixed
counts its interval is 0 to .0048. docs/how-to/check-and-estimate.md, 'Impossible estimates', has
how often these intervals hold.

Where the law is kept, a mean of a column by groups, or a regression, is that of the file.

*Sequences of people.* The share of a value v among R records is the sum over people of f_v(y) / R,
where f_v(y) is how many records of the released sequence y have it. The numbers of records are
released as they are, so R is known. With the law of the sequences kept, the expectation of the sum
is that of the table; else `shares_of_people` takes off what the channel and its table say that it
moved. Errors:

- *For the table.* Independent draws add the variance sum over people of Var f_v(Y | x) / R^2; fixed
  counts add nothing.
- *For the population* that the people are an independent sample of, the variance of the ratio
  (sum of f_v) / (sum of n) more, with n records of a person: the sum over people of
  (f_v(y) - p n)^2 / R^2. Records of one person are alike, so this is more than for as many people
  with one record each.

For example, two of three records of one person are nurses and none of the two of another one: the
share is 2/5.

The interval is that of single records, with kappa records that count as one (the design effect of
clusters): N / kappa in the place of N, and d / kappa in that of d. Where few people have a value,
its kappa says little, so one more person is counted who has the value in each of the m records of
the longest sequence:

    kappa = (sum over people of (f_v(y) - s n)^2 + m^2) / (R s (1 - s) + m)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.counting import counts_by_label
from mechdesign.analysis.frequencies import numbers_at, record_count
from mechdesign.analysis.likelihood import Spread, check_level, score_interval
from mechdesign.analysis.released_table import Advance, released_file
from mechdesign.channel.channel import Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.row_law import NOT_KEPT, RowLaw
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import free_name, listed
from mechdesign.formats.csv_text import TextOptions
from mechdesign.tables.columns import positions_of, values_of
from mechdesign.tables.people import People
from mechdesign.tables.people_source import fold_frame
from mechdesign.tables.variable import Variable

Array = NDArray[np.float64]

FIGURES = ("estimate", "standard_error", "lower", "upper")
"""Keys of the figures in a record of `ColumnFrequencies.rows`."""


@dataclass(frozen=True, eq=False)
class ColumnFrequencies:
    """Estimated frequencies of one column, or of the combinations of several.

    Attributes
    ----------
    columns : tuple of str
    symbols : tuple of tuple of str
        One text for each column.
    estimates, standard_errors, lower, upper : (symbols,) arrays
        Estimates are within [lower, upper], and intervals within [0, 1].
    unbiased : (symbols,) array
        The unbiased estimates, which may lie outside of [0, 1].
    records : int
    level : float
        Confidence level of each interval (score intervals, module docstring).
    target : str
        What the intervals are for: population or records.
    upper_of_others : float
        The upper end of the interval of a combination that is not among the symbols, because
        neither the table nor the release has it; its lower end is 0.
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    estimates: Array
    standard_errors: Array
    lower: Array
    upper: Array
    unbiased: Array
    records: int
    level: float
    target: str
    upper_of_others: float

    @property
    def has_others(self) -> bool:
        """Whether values of the columns are combined in ways that are not among the symbols."""
        combinations = 1
        for place in range(len(self.columns)):
            combinations *= len({texts[place] for texts in self.symbols})
        return len(self.symbols) < combinations

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each column in a record of `rows`: its name, with "_" behind it where a figure
        has that name.
        """
        others = {*FIGURES, *self.columns}
        keys: list[str] = []
        for name in self.columns:
            keys.append(free_name(name, others) if name in FIGURES else name)
        return tuple(keys)

    def rows(self) -> list[dict[str, Any]]:
        """A record for each combination of symbols: these by `keys`, and the figures."""
        figures = {
            "estimate": self.estimates,
            "standard_error": self.standard_errors,
            "lower": self.lower,
            "upper": self.upper,
        }
        records: list[dict[str, Any]] = []
        for k, texts in enumerate(self.symbols):
            names = dict(zip(self.keys, texts, strict=True))
            records.append(names | numbers_at(k, figures))
        return records


def of_shares(
    columns: tuple[str, ...],
    symbols: tuple[tuple[str, ...], ...],
    shares: Array,
    records: int,
    *,
    drawn: Array | None,
    sampled: Array | None,
    level: float,
    alike: Array | None = None,
    longest: int = 1,
) -> ColumnFrequencies:
    """Frequencies from the unbiased shares of a release, with their errors and intervals.

    Parameters
    ----------
    columns : tuple of str
    symbols : tuple of tuples of str
    shares : (symbols,) array
    records : int
    drawn : (symbols,) array, optional
        The variance that the draws add to one record; None for fixed counts.
    sampled : (symbols,) array, optional
        The variance of one record as a sample of the population; None for intervals that are
        for the records of the table.
    level : float
    alike : (symbols,) array, optional
        How many records of a person count as one (kappa of the module docstring); 1 by default.
    longest : int
        The same for a value without a record.
    """
    nothing = np.zeros(len(symbols))
    of_draws = nothing if drawn is None else drawn
    of_sample = nothing if sampled is None else sampled
    kappa = np.ones(len(symbols)) if alike is None else alike
    # The last entry is a value that neither the table nor the release has.
    lower, upper = _interval(
        np.append(shares, 0.0),
        np.append(of_draws / kappa, 0.0),
        records / np.append(kappa, longest),
        level,
        is_sample=sampled is not None,
    )
    return ColumnFrequencies(
        columns=columns,
        symbols=symbols,
        # Draws may leave a rare value with less than was taken off.
        estimates=np.clip(shares, 0.0, 1.0),
        standard_errors=np.sqrt((of_draws + of_sample) / max(records, 1)),
        lower=lower[:-1],
        upper=upper[:-1],
        unbiased=shares,
        records=records,
        level=level,
        target=RECORDS if sampled is None else POPULATION,
        upper_of_others=0.0 if sampled is None else float(upper[-1]),
    )


def _interval(
    shares: Array,
    drawn: Array,
    records: Array,
    level: float,
    *,
    is_sample: bool,
) -> tuple[Array, Array]:
    """Lower and upper ends of score intervals (module docstring).

    `records` is N / kappa, and `drawn` is d / kappa.
    """
    middle = np.clip(shares, 0.0, 1.0)
    zeros = np.zeros_like(middle)
    ones = np.ones_like(middle)
    # Under theta the mean square of one record is theta, and d more.
    fixed = None if is_sample else (zeros, middle, ones)
    spread = Spread(
        least=zeros,
        middle=middle,
        most=ones,
        squares=(drawn, middle + drawn, ones + drawn),
        fixed=fixed,
    )
    # The table's own shares are known exactly where no draw changes them.
    step = ones if is_sample else np.where(drawn > 0.0, 1.0, 0.0)
    return score_interval(shares, spread, step, records, level)


# ------------------------------------------------------------------------ law estimates

POPULATION = "population"
RECORDS = "records"


def estimate_shares(
    channel: Channel,
    released: Any,
    columns: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    target: str = POPULATION,
    fixed: bool = False,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> list[ColumnFrequencies]:
    """The shares of released columns, each by itself, or of several together.

    Parameters
    ----------
    channel : Channel
        One that releases rows or symbols as such, also in filled boxes; with its table unless it
        keeps the law.
    released : path, data frame or sequence of tuples
        A CSV or Parquet file is read batch by batch.
    columns : sequence of str, optional
        Columns whose values are crossed; by default every released column by itself.
    level : float
        Confidence level of each interval, in (0, 1).
    target : {"population", "records"}
        What the intervals are for.
    fixed : bool
        Whether the counts of the draws were fixed, as the manifest of the release says.
    text : TextOptions, optional
        How a CSV is written.
    advance : callable, optional
        Called with the number of further records of a file, for progress.

    Raises
    ------
    InputError
        If what the channel moved is not known, a column is not released, there is a row that
        the channel never releases, or there are fewer than two records.
    """
    check_kept(channel)
    confidence = check_interval(level, target)
    people = channel.people
    law = channel.row_law
    names = law.columns
    groups = [(name,) for name in names]
    if people is not None:
        groups = groups_of_people(people, columns)
    elif columns is not None:
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise InputError(
                f"the channel releases no column {listed(unknown)} (it releases "
                f"{listed(names)})"
            )
        groups = [tuple(columns)]
    counts = counts_of_release(channel, law, released, text, advance)
    record_count(counts)
    estimates: list[ColumnFrequencies] = []
    settings: dict[str, Any] = {
        "level": confidence,
        "of_population": target == POPULATION,
        "fixed": fixed,
    }
    for group in groups:
        if people is None:
            shares = shares_of_rows(law, counts, group, **settings)
        else:
            shares = shares_of_people(law, people, counts, group, **settings)
        estimates.append(shares)
    return estimates


def check_kept(channel: Channel) -> None:
    """Refuse a channel of which nobody knows how far it moves the shares of rows."""
    if not channel.keeps_law and not channel.tells_shares:
        raise InputError(NOT_KEPT)


def check_interval(level: float, target: str) -> float:
    """The level of intervals; InputError if it is none, or the target is not known."""
    if target not in (POPULATION, RECORDS):
        raise InputError(f"the target ({target!r}) must be population or records")
    return check_level(level)


def counts_of_release(
    channel: Channel,
    law: RowLaw,
    released: Any,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> Integers:
    """How often a file, a frame or a sequence of tuples has each output of the law; what is written
    where nothing is released is not counted.
    """
    reader = channel.single() if not channel.fills else reader_of(channel, law)
    if isinstance(released, str | os.PathLike):
        counts = _counts_of_file(reader, released, text, advance)
    else:
        counts = counts_of_frame(reader, released)
    return counts[: len(law.outputs)]


def reader_of(channel: Channel, law: RowLaw) -> Channel:
    """A channel that releases the rows of a law as they are, to read a file of them; those of which
    nothing is released come last.
    """
    rows = (*law.outputs, *law.silent)
    variable = Variable(law.columns, rows, people=channel.people)
    places = range(len(variable))
    own = IntegerRows.of_pairs([[k, 1] for k in places], len(variable))
    published = own_rows(variable, places)
    return Channel(
        variable,
        variable.names,
        own,
        1,
        sensitive=channel.sensitive,
        published=published,
    )


def _counts_of_file(
    channel: Channel,
    released: PathLike,
    text: TextOptions | None,
    advance: Advance | None,
) -> Integers:
    """How often a file has each output."""
    file = released_file(
        channel, released, None, None, "label", text=text, advance=advance
    )
    return counts_by_label(file)


def counts_of_frame(channel: Channel, released: Any) -> Integers:
    """How often a frame or a sequence of tuples has each output."""
    outputs = Variable(channel.output_columns, channel.output_cells)
    people = channel.useful.people
    if people is not None:
        table = fold_frame(people, released)
        cells = [table.columns[name] for name in outputs.columns]
    else:
        cells = values_of(released, outputs)
    places = positions_of(cells, outputs)
    unknown = np.flatnonzero(places < 0)
    if len(unknown):
        raise InputError(
            f"record {int(unknown[0]) + 1} of the released frame is a row that the channel never "
            "releases: give the frame as it was released"
        )
    return np.bincount(places, minlength=len(outputs)).astype(np.int64)


def shares_of_rows(
    law: RowLaw,
    counts: Integers,
    group: tuple[str, ...],
    *,
    level: float,
    of_population: bool,
    fixed: bool,
) -> ColumnFrequencies:
    """The shares of the crossed values of some columns.

    Parameters
    ----------
    law : RowLaw
    counts : (outputs,) array
        How often each row was released.
    group : tuple of str
    level, of_population, fixed
        As `shares_of_people` has them.
    """
    places = [law.columns.index(name) for name in group]
    values: dict[tuple[str, ...], int] = {}
    of_output = np.array(
        [
            values.setdefault(tuple(cells[place] for place in places), len(values))
            for cells in law.outputs
        ]
    )
    records = int(counts.sum())
    of_input = np.array([], dtype=np.int64)
    if not law.is_kept:
        # Values that are never released have a share in the table, too.
        of_input = np.array(
            [
                values.setdefault(tuple(cells[place] for place in places), len(values))
                for cells in law.rows
            ]
        )
    shares = np.bincount(of_output, counts, len(values)) / max(records, 1)
    if len(of_input):
        shares = shares - _moved(law, of_input, of_output, len(values))
    inside = np.clip(shares, 0.0, 1.0)
    return of_shares(
        group,
        tuple(values),
        shares,
        records,
        drawn=None if fixed else _drawn(law, of_output, len(values)),
        sampled=inside * (1.0 - inside) if of_population else None,
        level=level,
    )


def _moved(law: RowLaw, of_input: Integers, of_output: Integers, values: int) -> Array:
    """The expected share of every value among released records, less that of the table."""
    after = np.bincount(of_output, law.expected, values)
    before = np.bincount(of_input, law.row_masses, values)
    return (after - before).astype(np.float64)


def _drawn(law: RowLaw, of_output: Integers, values: int) -> Array:
    """sum over x of P(x) q(x) (1 - q(x)) of every value, for independent draws."""
    # q(x) of the pairs of a class and a value that occur, added up over outputs of the same value.
    numbers = law.class_of * values + of_output[law.indices]
    pairs, which = np.unique(numbers, return_inverse=True)
    q = np.minimum(np.bincount(which.ravel(), law.shares), 1.0)
    masses = law.masses[pairs // values] * q * (1.0 - q)
    return np.bincount(pairs % values, masses, values).astype(np.float64)


# ------------------------------------------------------------------ sequences of people


def groups_of_people(
    people: People, columns: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """The columns of a record whose values are crossed; by default each by itself."""
    if columns is None:
        return [(name,) for name in people.columns]
    unknown = [name for name in columns if name not in people.columns]
    if unknown:
        raise InputError(
            f"the channel releases no column {listed(unknown)} (it releases "
            f"{listed(people.columns)})"
        )
    return [tuple(columns)]


def shares_of_people(
    law: RowLaw,
    people: People,
    counts: Integers,
    group: tuple[str, ...],
    *,
    level: float,
    of_population: bool,
    fixed: bool,
) -> ColumnFrequencies:
    """The shares of the crossed values of some columns among the records of people.

    Parameters
    ----------
    law : RowLaw
        How sequences of people are drawn.
    people : People
    counts : (outputs,) array
        How many people have each released sequence.
    group : tuple of str
        Columns of a record.
    level : float
    of_population : bool
        Whether the intervals are for the population of the people.
    fixed : bool
        Whether the counts of the draws were fixed.
    """
    values: dict[tuple[str, ...], int] = {}
    released = _numbers_of_values(people, law.outputs, group, values)
    true = _numbers_of_values(people, law.rows, group, values)
    size = len(values)
    of_output = _dense(released, size)
    lengths = of_output.sum(axis=1)
    records = round(float(counts @ lengths))
    shares = counts @ of_output / max(records, 1)
    if not law.is_kept:
        shares = shares - _moved_of_people(law, of_output, _dense(true, size))
    drawn = None
    if not fixed:
        people_drawn = _drawn_of_people(law, of_output, int(counts.sum()))
        drawn = people_drawn / max(records, 1)
    inside = np.clip(shares, 0.0, 1.0)
    squares = counts @ (of_output - np.outer(lengths, inside)) ** 2
    longest = round(float(lengths.max()))
    kappa = (squares + longest**2) / (records * inside * (1.0 - inside) + longest)
    return of_shares(
        group,
        tuple(values),
        shares,
        records,
        drawn=drawn,
        sampled=squares / max(records, 1) if of_population else None,
        level=level,
        alike=kappa,
        longest=longest,
    )


def _numbers_of_values(
    people: People,
    symbols: Sequence[tuple[str, ...]],
    group: tuple[str, ...],
    values: dict[tuple[str, ...], int],
) -> list[dict[int, int]]:
    """For each sequence how many of its records have each value; new values are numbered on."""
    places = [people.columns.index(name) for name in group]
    numbers: list[dict[int, int]] = []
    for symbol in symbols:
        times: dict[int, int] = {}
        for record in people.records(symbol):
            value = tuple(record[place] for place in places)
            number = values.setdefault(value, len(values))
            times[number] = times.get(number, 0) + 1
        numbers.append(times)
    return numbers


def _dense(numbers: Sequence[dict[int, int]], size: int) -> Array:
    """(sequences, values) array of how many records have each value."""
    table = np.zeros((len(numbers), size))
    for row, times in zip(table, numbers, strict=True):
        for value, number in times.items():
            row[value] = number
    return table


def _moved_of_people(law: RowLaw, of_output: Array, of_input: Array) -> Array:
    """The expected share of every value among released records, less that of the table."""
    after = law.expected @ of_output
    before = law.row_masses @ of_input
    return (after - before) / before.sum()


def _drawn_of_people(law: RowLaw, of_output: Array, people: int) -> Array:
    """The sum over so many people of the variance of each number of records, given their own."""
    from scipy.sparse import csr_array

    shape = (len(law.masses), len(law.outputs))
    rows = csr_array((law.shares, (law.class_of, law.indices)), shape=shape)
    means = rows @ of_output
    squares = rows @ of_output**2
    return people * (law.masses @ np.maximum(squares - means**2, 0.0))
