"""`assess`: what the columns of a table say about a sensitive column S, before any channel is
designed.

A released column can be made private by a channel, but the columns beside it are released as they
are. This module measures what they say: each column by itself, every pair of columns, and all
columns of a row together. All lifts are exact figures of the table, P(s | value) / P(s), not
estimates for a population.

Every column becomes integer codes (`coded_table`). A column, a pair or a whole row is then one code
a record (`combined_codes`), and all its figures come from its table of counts with S
(`disclosure_of`). Columns that identify records are measured by themselves, but left out of pairs
and rows. Last a model guesses S from whole rows (`learners`). Of a long file equal rows are one,
with the number of its records; of one with mostly different rows a sample of the rows is assessed,
or of people with all of their records (`coded_table`).

In the coded table of people each value is the sequence of those of all records of a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.display import Displayed
from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.integers import Integers
from mechdesign.core.wording import at_least, at_most, percent_of, quoted
from mechdesign.formats.cells import CellForm, Encoded, empty_as_missing
from mechdesign.formats.column_names import require_column
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.distinct import SORTED_TOGETHER
from mechdesign.leaks.coded_table import (
    IDENTIFIER_SHARE,
    CodedColumn,
    CodedTable,
    HashedValues,
    code_type,
    coded_table,
    combined_codes,
    counted,
    first_places,
    without_gaps,
)
from mechdesign.leaks.disclosure import Disclosure, Secret, disclosure_of, severity
from mechdesign.leaks.doctor import Symptom, table_symptoms, text_symptoms
from mechdesign.leaks.learners import RowGuess, guess_from_rows
from mechdesign.leaks.people_notice import people_of, records_of
from mechdesign.leaks.person_columns import SURE, PersonReach, reach_of_values
from mechdesign.tables.cell_values import SYMBOL, check_missing, counted_as
from mechdesign.tables.folding import FoldedRecords
from mechdesign.tables.people import PERSON, RECORD
from mechdesign.tables.people_tables import fold_by
from mechdesign.tables.reading import columns_named
from mechdesign.tables.succession import MEANING, Succession

RARE = 10
"""Values of fewer records are rare: a cell of the table with S then rests on a handful of records.
"""

IDENTIFIER_RECORDS = 20
"""In shorter tables all values may differ by chance."""

MOST_PAIR_COLUMNS = 30
"""Pairs are tried among so many columns (435 pairs), those that say most by themselves."""

PAIR_RECORDS = 200_000
"""Pairs are counted in so many rows, evenly spread: a ranking needs no more."""

SHOWN_PAIRS = 10
"""Pairs that an assessment lists."""


@dataclass(frozen=True)
class ColumnAssessment:
    """One column: what it says about S, whether it identifies records, and how many of its values
    are rare.
    """

    disclosure: Disclosure
    identifier: bool
    rare_values: int
    rare_records: int

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.disclosure.columns[0]


@dataclass(frozen=True, repr=False)
class Assessment(Displayed):
    """What a table says about S; columns and pairs come worst first.

    Attributes
    ----------
    records : int
    sensitive : tuple of str
    shares : dict of str to float
        P(s) of every symbol of S.
    rare_secrets : tuple of str
        Symbols of S with fewer than `RARE` records: the table supports no promise about them for a
        population.
    guessed_without : float
        Share of the records guessed right when nothing is known of them.
    columns : tuple of ColumnAssessment
    pairs : tuple of Disclosure
    row : Disclosure
        All columns together, without identifiers.
    unique_rows : float
        Share of the records whose row, without identifiers and S, no other record has.
    guess : RowGuess
        A cross-validated guess of S from the whole row, without identifiers.
    unreadable : tuple of str
        Columns that hold lists, structures or bytes, which were not looked at.
    symptoms : tuple of Symptom
        What to settle about the file and its cells before anything is released.
    unit : {"record", "person"}
        Whether `records` are records, or people with the sequences of theirs.
    """

    records: int
    sensitive: tuple[str, ...]
    shares: dict[str, float]
    rare_secrets: tuple[str, ...]
    guessed_without: float
    columns: tuple[ColumnAssessment, ...]
    pairs: tuple[Disclosure, ...]
    row: Disclosure
    unique_rows: float
    guess: RowGuess
    unreadable: tuple[str, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    unit: str = RECORD

    @property
    def units(self) -> str:
        """What is assessed, in the plural."""
        return "people" if self.unit == PERSON else "records"

    def __repr__(self) -> str:
        return (
            f"Assessment({len(self.columns)} columns about {','.join(self.sensitive)}, "
            f"{self.records:,} {self.units})"
        )


def assess(
    table: Any,
    *,
    sensitive: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    text: TextOptions | None = None,
    missing: str = SYMBOL,
    form: CellForm | None = None,
    person: str | Sequence[str] | None = None,
    wave: str | None = None,
) -> Assessment:
    """Measure what each column, every pair, and whole rows say about a sensitive column.

    Parameters
    ----------
    table : path, or a pandas, polars or pyarrow table
        One record a row.
    sensitive : str or sequence of str
        The column(s) to protect; several are crossed.
    columns : str or sequence of str, optional
        The columns to look at; default: all others.
    text : TextOptions, optional
        How a CSV file is written.
    missing : 'symbol', 'refuse' or 'drop'
        Whether an empty cell is one more value, an error, or leaves its record out.
    form : CellForm, optional
        The form in which cells are compared.
    person : str or sequence of str, optional
        What names a person with several records: then people are assessed, and a value of a column
        is the sequence of those of all records of a person.
    wave : str, optional
        With `person`: the column that orders a person's records.

    Raises
    ------
    InputError
        If a column is missing or named twice, S has a single symbol, or the table has no records.
    """
    check_missing(missing)
    if wave is not None and person is None:
        raise InputError("wave orders the records of a person: give person, too")
    gaps = counted_as(missing)
    symptoms: list[Symptom] = []
    is_file = isinstance(table, (str, Path))
    if is_file:
        symptoms += text_symptoms(table, text)
    try:
        coded = coded_table(
            table,
            text,
            # People's names are needed, and records that are left out or put together one by one.
            hashing=person is None,
            folding=person is None and gaps != "drop",
            sample_by=_together(sensitive, columns, person),
            form=form or CellForm(),
            # A record is refused by its number.
            numbering_empty=gaps == "refuse",
        )
        with _errors_of(coded):
            names = _named("sensitive", sensitive, coded)
            others = [name for name in coded.columns if name not in names]
            if columns is not None:
                others = list(_named("columns", columns, coded))
    except InputError as error:
        # Read in another way, the file may have all of it.
        raise _with_remedies(error, symptoms) from None
    # Columns that the user has named are readable, or `_named` has refused them.
    unreadable = coded.unreadable if columns is None else ()
    with _errors_of(coded):
        return _assessment(
            coded,
            names,
            others,
            symptoms=symptoms,
            unreadable=unreadable,
            gaps=gaps,
            person=person,
            wave=wave,
        )


def _errors_of(coded: CodedTable) -> AbstractContextManager[None]:
    """Begin the messages of errors with the name of the file, if the table has one."""
    return nullcontext() if coded.name is None else errors_naming(coded.name)


def _assessment(
    coded: CodedTable,
    names: tuple[str, ...],
    others: list[str],
    *,
    symptoms: list[Symptom],
    unreadable: tuple[str, ...],
    gaps: str,
    person: str | Sequence[str] | None,
    wave: str | None,
) -> Assessment:
    """What the other columns of a table say about the sensitive columns `names`."""
    if coded.one_in > 1:
        symptoms.append(_sample_symptom(coded, person))
    found = identified(coded, [*names, *others])
    looked_at = CodedTable(
        coded.records,
        {name: coded.columns[name] for name in dict.fromkeys([*names, *others])},
        (),
        coded.weights,
    )
    symptoms += table_symptoms(looked_at, found, gaps)
    coded = without_gaps(coded, gaps, tuple(looked_at.columns))
    if person is not None:
        of_person = _named("person", person, coded)
        others = [name for name in others if name not in (*of_person, wave)]
        coded = coded_people(coded, of_person, wave, names, others)
        # Sequences of a column may be all different without naming anybody.
        found = []
    for name in names:
        if name in found:
            raise InputError(identifier_refusal(name))
    secret = crossed_secret(coded, names)
    # Columns of which none names records may do so together. Of people they are sequences.
    if person is None and _names_records(len(secret.symbols), coded.rows):
        raise InputError(identifier_refusal(",".join(names)))
    # In few bytes, as the columns are: it is beside them until the end.
    secret = replace(secret, codes=secret.codes.astype(code_type(len(secret.symbols))))
    _check(coded, secret, others)
    if person is None:
        people = _people_symptoms(coded, secret, others)
        # Several records of a person are often beside each other, and are named as such.
        symptoms += people or _series_symptoms(coded, secret)
    return replace(
        _measured(coded, secret, others),
        unreadable=unreadable,
        symptoms=tuple(symptoms),
        unit=RECORD if person is None else PERSON,
    )


def _series_symptoms(coded: CodedTable, secret: Secret) -> list[Symptom]:
    """That the records depend on the ones before, as those of a time series do."""
    # Of folded rows, and of a sample, the order is lost.
    if coded.weights is not None or coded.one_in > 1:
        return []
    succession = Succession()
    succession.add([Encoded(secret.codes, secret.symbols)], 1)
    counts = secret.counts().astype(np.float64)
    found = succession.finding(secret.names, counts, len(secret.symbols))
    if found is None:
        return []
    return [Symptom("series", None, found, MEANING)]


def _measured(coded: CodedTable, secret: Secret, others: Sequence[str]) -> Assessment:
    """What each of the other columns, their pairs and whole rows say about the secret."""
    measured = [
        _assessed(coded.columns[name], secret, coded.records) for name in others
    ]
    # Worst first: the report shows them so, and pairs are tried among the first ones.
    measured.sort(key=lambda column: severity(column.disclosure), reverse=True)
    # A column with a value for each record tells nothing of others, and makes every row unique.
    telling = [column.name for column in measured if not column.identifier]
    telling_columns = [coded.columns[name] for name in telling]
    row = combined_codes(telling_columns, coded.rows)
    counts = dict(zip(secret.symbols, secret.counts().tolist(), strict=True))
    return Assessment(
        records=coded.records,
        sensitive=secret.names,
        shares={symbol: count / coded.records for symbol, count in counts.items()},
        rare_secrets=tuple(symbol for symbol in counts if counts[symbol] < RARE),
        guessed_without=max(counts.values()) / coded.records,
        columns=tuple(measured),
        pairs=_worst_pairs(coded, telling, secret),
        row=disclosure_of(tuple(telling), row, secret),
        unique_rows=_unique_share(row, coded.weights),
        guess=guess_from_rows(
            telling_columns, secret.codes, secret.symbols, coded.weights
        ),
    )


def _together(
    sensitive: str | Sequence[str],
    columns: str | Sequence[str] | None,
    person: str | Sequence[str] | None,
) -> Callable[[Sequence[str]], Sequence[str]]:
    """The columns whose equal records belong together: what names people, or all looked at."""

    def of(header: Sequence[str]) -> Sequence[str]:
        try:
            if person is not None:
                return columns_named(person, header)
            names = columns_named(sensitive, header)
            if columns is not None:
                return columns_named(columns, header)
        except InputError:
            # Said with its remedies where the columns are looked up in the whole table.
            return ()
        return [name for name in header if name not in names]

    return of


def _sample_symptom(coded: CodedTable, person: object) -> Symptom:
    """What a sample of the rows is, and what it misses."""
    text = (
        f"the table is too large to be held: of its {coded.read:,} records {coded.records:,} are "
        f"assessed, all those of about one in {coded.one_in} "
        f"{'different rows' if person is None else 'people'}, chosen by hashes. Shares are "
        "estimates, and what columns of many values tell comes out somewhat higher than it is; "
        "numbers of values and of rare ones are those of the sample, and larger lifts may be in "
        "the rest"
    )
    return Symptom("sample", None, text, None)


def _people_symptoms(
    coded: CodedTable, secret: Secret, others: Sequence[str]
) -> list[Symptom]:
    """A column that names people, and what their records reach together as they are."""
    found = people_of(coded, secret.names)
    if found is None:
        return []
    # One by one, if they were folded: the person and the secret of every record count.
    compared = [name for name in others if coded.columns[name].rows is None]
    records = records_of(coded, [*compared, found.column.name])
    symbols = secret.codes.astype(np.int64)
    if coded.weights is not None:
        symbols = np.repeat(symbols, coded.weights)
    person = records.columns[found.column.name]
    reaches: dict[str, PersonReach] = {}
    for name in others[:MOST_PAIR_COLUMNS]:
        # Identifiers say nothing of another record.
        if name != person.name and not identifies_records(coded.columns[name]):
            reaches[name] = reach_of_values(
                records.columns[name].codes.astype(np.int64),
                symbols,
                person.codes.astype(np.int64),
            )
    text = found.sentence(secret.names)
    if reaches:
        most, reach = max(
            reaches.items(), key=lambda item: (item[1].sure, item[1].highest)
        )
        text += (
            f". By {quoted(most)} alone, as it is, one record makes a value "
            f"{at_least(reach.single[0])} to {at_most(reach.single[1])} times as likely, and all "
            f"records of a person together {at_least(reach.lowest)} to {at_most(reach.highest)} "
            f"times; for {reach.sure:,} people a value is more than {percent_of(SURE)} likely"
        )
    option = f"--person {found.column.name}"
    return [Symptom("people", found.column.name, text, option)]


def _with_remedies(error: InputError, symptoms: Sequence[Symptom]) -> InputError:
    """The error about a file, with the options that its first bytes ask for."""
    # As it is for the command line, whose options are looked for; it may name some of them itself.
    said = str(error.args[0])
    symptoms = [
        each for each in symptoms if each.option is None or each.option not in said
    ]
    options = [symptom.option for symptom in symptoms if symptom.option is not None]
    if not options:
        return error
    facts = "; ".join(symptom.text for symptom in symptoms)
    message = f"{said} ({facts}: {' '.join(options)})"
    if isinstance(error, FileError):
        return FileError(error.file, message)
    return InputError(message)


def identified(coded: CodedTable, names: Sequence[str]) -> list[str]:
    """The columns among `names` that name records."""
    return [name for name in names if identifies_records(coded.columns[name])]


def identifier_refusal(name: str) -> str:
    """Why a column that names records cannot be the sensitive one."""
    return (
        f"nearly every record has a value of its own in the sensitive column {quoted(name)}: it "
        "names records, and every promise about it would need all records to look alike; name the "
        "column whose values are to be protected, or put its numbers into classes first"
    )


def _named(
    argument: str, columns: str | Sequence[str], coded: CodedTable
) -> tuple[str, ...]:
    """The columns of an argument; a text that is no column is split at its commas."""
    names = columns_named(columns, [*coded.columns, *coded.unreadable])
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{argument}: the column {quoted(name)} is named twice")
        if name in coded.unreadable:
            raise InputError(
                f"the column {quoted(name)} holds lists, structures or bytes, which "
                "are no symbols; leave it out"
            )
    return names


def crossed_secret(coded: CodedTable, names: tuple[str, ...]) -> Secret:
    """The sensitive columns as one, with a symbol for each combination that occurs."""
    if not names:
        raise InputError("sensitive: name at least one column to protect")
    columns = [coded.columns[name] for name in names]
    codes = combined_codes(columns, coded.rows)
    symbols: list[str] = []
    for row in first_places(codes).tolist():
        texts = [column.values[int(column.codes[row])] for column in columns]
        symbols.append(", ".join(texts))
    return Secret(names, codes, tuple(symbols), coded.weights)


def _check(coded: CodedTable, secret: Secret, others: Sequence[str]) -> None:
    """Raise InputError unless there are records, something to protect, and columns to look at."""
    if not coded.records:
        raise InputError("the table has no records; there is nothing to assess")
    if len(secret.symbols) < 2:
        raise InputError(
            f"the sensitive column {quoted(','.join(secret.names))} has a single symbol: "
            "there is nothing to protect"
        )
    for name in others:
        if name in secret.names:
            raise InputError(
                f"the column {quoted(name)} is sensitive; leave it out of the columns to look at"
            )
    if not others:
        raise InputError("there is no column beside the sensitive one to look at")


def _assessed(column: CodedColumn, secret: Secret, records: int) -> ColumnAssessment:
    """A column by itself, of a table of so many records."""
    # Values without records were taken out of the table, so none of the counts is zero.
    counts = column.counts()
    rare = counts[counts < RARE]
    rare_values, rare_records = len(rare), int(rare.sum())
    # Of a column that names records they are as long as the table.
    del counts, rare
    if column.rows is not None:
        # Each of its hashes is one record.
        secret = replace(secret, codes=secret.codes[column.rows], weights=None)
    disclosure = disclosure_of((column.name,), column.codes, secret)
    if column.one_in > 1:
        # Estimates, which may exceed what there can be.
        values = min(disclosure.values * column.one_in, records)
        disclosure = replace(disclosure, values=values)
        rare_values = min(rare_values * column.one_in, values)
        rare_records = min(rare_records * column.one_in, records)
    return ColumnAssessment(
        disclosure=disclosure,
        identifier=identifies_records(column),
        rare_values=rare_values,
        rare_records=rare_records,
    )


def identifies_records(column: CodedColumn) -> bool:
    """Whether nearly every record has a value of its own, so that the column names records."""
    # A sample is held of such columns alone, and may have a value of many records or miss it.
    if column.one_in > 1:
        return True
    if column.of_sample:
        # Values that come again in the whole table may be alone in a sample.
        return isinstance(column.values, HashedValues)
    return _names_records(len(column.values), column.records)


def _names_records(values: int, records: int) -> bool:
    """Whether so many values of so many records name them."""
    return records >= IDENTIFIER_RECORDS and values >= IDENTIFIER_SHARE * records


def _worst_pairs(
    coded: CodedTable, names: Sequence[str], secret: Secret
) -> tuple[Disclosure, ...]:
    """The pairs of columns that say most together, worst first.

    `names` come worst first, too, so that the pairs that are tried are those of the worst columns.
    """
    # Rounded upwards: there are at most `PAIR_RECORDS`, and one more for each symbol.
    step = max(1, -(-coded.rows // PAIR_RECORDS))
    sample = every_symbol_sampled(secret.codes, step)
    part = secret.at(sample)
    pairs: list[Disclosure] = []
    for first, second in combinations(names[:MOST_PAIR_COLUMNS], 2):
        left = coded.columns[first]
        right = coded.columns[second]
        codes = left.codes[sample].astype(np.int64) * len(right.values)
        codes = codes + right.codes[sample]
        pairs.append(disclosure_of((first, second), codes, part))
    pairs.sort(key=severity, reverse=True)
    return tuple(pairs[:SHOWN_PAIRS])


def every_symbol_sampled(codes: Integers, step: int) -> Integers:
    """Numbers of the records in a sample: of each symbol the first and every `step`-th after it.

    A sample without regard to the symbols could miss a rare one. Then its values would seem to rule
    that symbol out, and with a single symbol left there would be nothing to tell. Of the codes 0,
    0, 1, 0, 0 and the step 2 these are the records 0, 2, 3.
    """
    # Codes may be bytes, which have no -1.
    seen = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    chosen: list[Integers] = [np.zeros(0, np.int64)]
    # Part by part: numbers for all records of a large table would take most of the memory.
    for start in range(0, len(codes), SORTED_TOGETHER):
        part = codes[start : start + SORTED_TOGETHER]
        order = np.argsort(part, kind="stable")
        sizes = np.bincount(part, minlength=len(seen))
        first = np.cumsum(sizes) - sizes
        rank_in_symbol = np.arange(len(part)) - np.repeat(first - seen, sizes)
        chosen.append(start + order[rank_in_symbol % step == 0])
        seen += sizes
    return np.sort(np.concatenate(chosen))


def _unique_share(row: Integers, weights: Integers | None) -> float:
    """Share of the records whose row no other record has."""
    counts = counted(row, weights, int(row.max(initial=-1)) + 1)
    return float(np.count_nonzero(counts == 1) / counts.sum())


def coded_people(
    table: CodedTable,
    person: Sequence[str],
    wave: str | None,
    sensitive: Sequence[str],
    columns: Sequence[str],
) -> CodedTable:
    """The people of a table of records.

    Parameters
    ----------
    table : CodedTable
        The records.
    person : sequence of str
        What names a person.
    wave : str, optional
        What orders the records of a person; the order of the table without it.
    sensitive : sequence of str
        Columns with one value for each person.
    columns : sequence of str
        Columns whose sequences are wanted.

    Raises
    ------
    InputError
        If records make no people (`tables.folding.fold`), or a person has several secrets.
    """
    needed = [*person] if wave is None else [*person, wave]
    for name in needed:
        require_column(name, [*table.columns])
    cells: Mapping[str, Encoded] = {
        name: empty_as_missing(_encoded(table.columns[name])) for name in needed
    }
    records = fold_by(cells, person, wave)
    people: dict[str, CodedColumn] = {}
    for name in sensitive:
        column = records.once(_encoded(table.columns[name]), name)
        people[name] = _used(name, column.codes.astype(np.int64), column.texts)
    for name in columns:
        people[name] = _sequences(table.columns[name], records)
    return CodedTable(len(records), people, table.unreadable)


def _encoded(column: CodedColumn) -> Encoded:
    """A column as codes into texts."""
    return Encoded(column.codes.astype(np.int64), tuple(column.values))


def _sequences(column: CodedColumn, records: FoldedRecords) -> CodedColumn:
    """The sequence of each person, as a symbol of its own."""
    codes = np.zeros(len(records), dtype=np.int64)
    size = len(column.values) + 1
    for place in range(records.longest):
        here = np.flatnonzero(records.place_of == place)
        cells = np.zeros(len(records), dtype=np.int64)
        cells[records.person_of[here]] = column.codes[here].astype(np.int64) + 1
        # Renumbered at every step, so that the numbers stay small.
        codes = np.unique(codes * size + cells, return_inverse=True)[1].reshape(-1)
    _, first = np.unique(codes, return_index=True)
    texts: list[str] = []
    # The records person after person, each in the order of the sequence.
    order = np.lexsort((records.place_of, records.person_of))
    starts = np.cumsum(records.lengths) - records.lengths
    for k in first.tolist():
        own = order[starts[k] : starts[k] + records.lengths[k]]
        of_person: list[int] = column.codes[own].tolist()
        texts.append(", ".join(column.values[code] for code in of_person))
    return CodedColumn(column.name, codes.astype(np.int32), tuple(texts))


def _used(name: str, codes: Integers, texts: tuple[str, ...]) -> CodedColumn:
    """A column with the values that occur."""
    used, numbers = np.unique(codes, return_inverse=True)
    occurring: list[int] = used.tolist()
    values = tuple(texts[code] for code in occurring)
    return CodedColumn(name, numbers.reshape(-1).astype(np.int32), values)
