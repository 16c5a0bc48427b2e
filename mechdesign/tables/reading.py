"""Joint tables from CSV and Parquet files.

A file is microdata (one record a row, or counts in long form with a weight column), or a wide table
with the sensitive symbols in its first column and the useful symbols in its header. Three files of
the same joint table::

    job,pain          job,pain,n           job,no,yes
    nurse,yes         nurse,yes,2          clerk,1,0
    clerk,no          clerk,no,1           nurse,0,2
    nurse,yes

    microdata         with weight="n"      with contingency=True

`read_joint` reads each of them. The options, not the file, decide which way:

1. Microdata: every file of a folder is added batch by batch to one `Tally` (`_count_files`), so
   memory does not grow with the records. `_joint_of_records` makes the table of it.
2. A wide table is read whole (`_read_wide`), split into labels and cells, and made exact by
   `exact_table`.

Where a file looks like the other kind (*guesses*), the error or a notice says so.

*Guesses* at what a table is give hints in messages. A guess decides nothing. It adds a sentence to
an error or a notice, so each test here may be wrong about an unusual file. The texts of two small
files tell the kinds apart::

    job,yes,no        different labels, numbers behind them: `is_count_table`
    nurse,3,1
    clerk,0,2

    job,pain          a word in place of a number, or a label that occurs twice: `is_microdata`
    nurse,yes
    clerk,no

A header such as ``job,3`` has a number, so it may be a record without a header (`looks_like_data`).
Of counted records, `is_grid` suspects a count table in long form whose column of counts was not
named: most pairs of symbols then have one row, and none has two. `notices_of` warns of columns
whose own name is a symbol, whose symbols all begin with a blank, or differ in every record.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import escaped, listed, quoted
from mechdesign.formats.cells import CellForm, Encoded, empty_as_missing, encode
from mechdesign.formats.column_names import misread, require_column
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import (
    Batch,
    Source,
    all_rows,
    files_of,
    is_folder,
    open_source,
    paths_of,
)
from mechdesign.tables.cell_values import (
    NO_RULES,
    REFUSE,
    SYMBOL,
    CellRules,
    check_missing,
    released_as,
)
from mechdesign.tables.exact_table import Entry, exact_table, refuse_margins
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Missing, Roles, Tally, UnusableCell
from mechdesign.tables.variable import Variable

# ------------------------------------------------------------------------------ guesses

FEWEST_RECORDS = 20
"""Fewest records of a suspected identifier: in fewer ones all values may differ by chance."""

# A decimal comma too: it is how many countries write the numbers of a count table.
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")

NO_SENSITIVE = "--sensitive COL is missing: which column is to be protected?"


def is_grid(counts: Sequence[Sequence[int]]) -> bool:
    """Whether more than half of the pairs of symbols occur, and each once.

    Then the rows of the file are cells of a count table, and not records. `counts` are numbers of
    records, sensitive symbols by useful ones.
    """
    # A single row or column is no grid.
    if min(len(counts), len(counts[0])) < 2:
        return False
    if max(map(max, counts)) != 1:
        return False
    # All entries are 0 or 1, so their sum is the number of pairs that occur.
    occurring = sum(map(sum, counts))
    return 2 * occurring > len(counts) * len(counts[0])


def looks_like_data(header: Sequence[str]) -> bool:
    """Whether a line of names has a number or a repeated name, as a record may."""
    if len(set(header)) < len(header):
        return True
    return any(_is_number(name) for name in header)


def is_count_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows are different labels with numbers behind them."""
    # Fewer than two rows or two columns of numbers are too little for a guess.
    if min(len(header) - 1, len(rows)) < 2:
        return False
    if any(_is_number(row[0]) for row in rows):
        return False
    return not is_microdata(rows)


def is_microdata(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows share their first cell, or have a word in place of a number, as records do."""
    first_cells = {row[0] for row in rows}
    if len(first_cells) < len(rows):
        return True
    # Cells behind the first one, which in a count table are all numbers.
    for row in rows:
        for cell in row[1:]:
            text = cell.strip().lower()
            # A count table may have empty cells and results of arithmetic as well.
            if text not in ("", "nan", "inf") and not _is_number(text):
                return True
    return False


def notices_of(variables: Sequence[Variable], records: int | None) -> tuple[str, ...]:
    """Notices about suspicious symbols in a file.

    Parameters
    ----------
    variables : sequence of Variable
        The variables of the file.
    records : int or None
        Its number of records, None if it has weights or probabilities.
    """
    named_like_symbol: list[str] = []
    blank_first: list[str] = []
    identifiers: list[str] = []
    for variable in variables:
        texts_by_column = zip(*variable.symbols, strict=True)
        for name, texts in zip(variable.columns, texts_by_column, strict=True):
            if name in texts:
                named_like_symbol.append(name)
            if all(text.startswith(" ") for text in texts):
                blank_first.append(name)
        # As many symbols as records: each record has its own. Rows of several columns often are
        # unique without an identifier among them, and bins of one column would not change that.
        is_column = len(variable.columns) == 1
        all_differ = records is not None and len(variable) == records >= FEWEST_RECORDS
        if is_column and all_differ:
            identifiers.append(",".join(variable.columns))
    notices: list[str] = []
    if named_like_symbol:
        notices.append(
            f"{listed(named_like_symbol)}: the name of the column is one of its symbols, too; if "
            "the first row of the file is a record, put a line with the names of the columns "
            "above it; if files were joined, take out the headers between their records"
        )
    if blank_first:
        notices.append(
            f"{listed(blank_first)}: every symbol begins with a blank, which belongs to it, also "
            "in files to release"
        )
    if identifiers:
        notices.append(
            f"{listed(identifiers)}: every record has another symbol, as an identifier has; bins "
            "or groups are more useful"
        )
    return tuple(notices)


def _is_number(text: str) -> bool:
    """Whether a text is a number, with a point or a comma."""
    return _NUMBER.fullmatch(text) is not None


# ------------------------------------------------------------------------------ reading

# Hints that end messages and notices: what the file may be instead.
WIDE = "if this is a count table, sensitive symbols down its first column, say so (--contingency)"
LONG = "for one record a row leave --contingency out and name the columns (--sensitive, --useful)"
HEADLESS = "if the first row is data, put a line with the names of the columns above it"
COUNTED = (
    "if a column says how many records each row stands for, name it (--weight COL; "
    "there are {})"
)
WEIGHTS = (
    "the column {} is taken for numbers of records, {:,} in all; if it holds survey "
    "weights, say so (--weighted)"
)

ColumnNames = str | Sequence[str] | None


MOST_NAMED = 40
"""Columns that a question for one of them names."""


def read_joint(
    path: PathLike,
    *,
    sensitive: ColumnNames = None,
    useful: ColumnNames = None,
    weight: str | None = None,
    contingency: bool = False,
    probabilities: bool = False,
    weighted: bool = False,
    missing: Missing = "refuse",
    bins: Any = None,
    text: TextOptions | None = None,
    form: CellForm | None = None,
) -> Joint:
    """Read the joint table of a CSV or Parquet file, folder or glob, exactly.

    Parameters
    ----------
    path : path
        The file, or microdata in a folder or glob.
    sensitive, useful : str or sequence of str
        The columns; in a wide table the names of the two variables, which are optional.
    weight : str, optional
        The column with the weight of a record.
    contingency, probabilities : bool
        Whether the file is a wide table of counts or of probabilities.
    weighted : bool
        Whether counts or weights are sums of survey weights.
    missing : Missing
        The effect of a missing cell.
    bins : optional
        As in `Joint.binned`.
    text : TextOptions, optional
        How the text of a CSV is read.
    form : CellForm, optional
        The form in which the cells of microdata are compared.
    """
    _check_form(contingency, probabilities, weighted, weight)
    if contingency or probabilities:
        if form is not None and not form.changes_nothing:
            raise InputError(
                "--normalise, --trim and --missing-codes are for records; correct the symbols of "
                "a wide table in the file"
            )
        what: Entry = "count"
        if probabilities:
            what = "probability"
        elif weighted:
            what = "weight"
        rules = NO_RULES
        if missing not in (REFUSE, SYMBOL):
            rules = _rules_of_wide(missing)
        joint = _read_wide(path, sensitive, useful, what, missing == SYMBOL, bins, text)
        return replace(joint, rules=rules)
    if sensitive is None or useful is None:
        question = NO_SENSITIVE
        if sensitive is not None:
            question = (
                "--useful COL is missing: which column is to be released? Several: --release A,B "
                "or --release all."
            )
        raise InputError(
            f"{with_columns(question, path, text)} (a wide table needs --contingency)"
        )
    check_missing(missing)
    records = _count_files(path, sensitive, useful, weight, missing, text, form)
    if weighted:
        # Even where all weights are whole numbers: a sum of them is no number of records, and
        # intervals for a population need one.
        records.tally.is_counts = False
    return _joint_of_records(records, bins)


def _rules_of_wide(missing: Missing) -> CellRules:
    """What `apply` releases for an empty cell, where the table has counts in place of records: of
    these none is left out.
    """
    check_missing(missing)
    return CellRules(missing=released_as(missing))


def columns_named(
    names: str | Sequence[str], available: Sequence[str]
) -> tuple[str, ...]:
    """The columns of `names`, all of which must be available.

    A sequence stays as it is. A text is one column if there is such a column; otherwise it is split
    at its commas.
    """
    if not isinstance(names, str):
        columns = tuple(names)
    elif names in available:
        columns = (names,)
    else:
        columns = tuple(names.split(","))
    for column in columns:
        require_column(column, available)
    return columns


def column_names_of(path: PathLike, text: TextOptions | None = None) -> list[str]:
    """The names of the columns of a file, or of the first file of a folder or glob."""
    with open_source(paths_of(path)[0], text) as source:
        return source.header


def with_columns(question: str, path: PathLike, text: TextOptions | None = None) -> str:
    """The question for a column, with the columns that the table has."""
    try:
        names = column_names_of(path, text)
    except InputError:
        # The question is the first thing to settle; why the table cannot be read comes after it.
        return question
    shown = listed(names, MOST_NAMED, quote=escaped)
    return f"{question} Columns: {shown}{misread(names)}"


def coded_columns(source: Source, batch: Batch, names: Sequence[str]) -> list[Encoded]:
    """Columns of a batch as codes into texts.

    An empty cell of a CSV is a missing one; in Parquet that is a null.
    """
    columns = [encode(batch.column(name), name) for name in names]
    if source.kind == "Parquet":
        return columns
    return [empty_as_missing(column) for column in columns]


def _check_form(
    contingency: bool, probabilities: bool, weighted: bool, weight: str | None
) -> None:
    """Refuse options of a wide and of a long table together, and ``--weighted`` without counts."""
    if contingency and probabilities:
        raise InputError(
            "--contingency reads counts and --probabilities probabilities: give one of them"
        )
    if (contingency or probabilities) and weight is not None:
        raise InputError(
            "--weight belongs to a long table; --contingency and --probabilities have none"
        )
    if weighted and not contingency and weight is None:
        raise InputError(
            "--weighted says what counts are: give --contingency or --weight COL too"
        )


@dataclass(frozen=True)
class _CountedRecords:
    """The counted records of a file or folder.

    Attributes
    ----------
    tally : Tally
        Of all files.
    name : str
        What messages call the file or folder.
    is_folder : bool
        Whether there may be several files.
    spare : sequence of str
        The columns that were not counted: one of them may hold weights.
    """

    tally: Tally
    name: str
    is_folder: bool
    spare: Sequence[str]


def _count_files(
    path: PathLike,
    sensitive: str | Sequence[str],
    useful: str | Sequence[str],
    weight: str | None,
    missing: Missing,
    text: TextOptions | None,
    form: CellForm | None,
) -> _CountedRecords:
    """Count the records of a file, or of all files of a folder or glob, in one tally."""
    folder = is_folder(path)
    name = os.fspath(path)
    tally: Tally | None = None
    spare: list[str] = []
    for file in paths_of(path):
        with open_source(file, text) as source, errors_naming(source.name):
            roles = _roles(sensitive, useful, weight, source)
            if tally is None:
                tally = Tally(roles, missing, form)
                # A text with commas is split only once: all files have the same columns.
                sensitive = roles.sensitive
                useful = roles.useful
            spare = [column for column in source.header if column not in roles.columns]
            _count(source, tally)
            # Standard input has a name of its own.
            if not folder:
                name = source.name
    # `files_of` refuses a folder without files.
    assert tally is not None
    return _CountedRecords(tally, name, folder, spare)


def _roles(
    sensitive: str | Sequence[str],
    useful: str | Sequence[str],
    weight: str | None,
    source: Source,
) -> Roles:
    """The columns of a file; a missing one is refused with a guess at the reason."""
    header = source.header
    try:
        if weight is not None:
            require_column(weight, header)
        return Roles(
            columns_named(sensitive, header), columns_named(useful, header), weight
        )
    except InputError as error:
        # Another delimiter, or a title, explains a missing column better than what follows.
        if misread(header):
            raise
        if _seems_wide(source):
            raise InputError(f"{error}; {WIDE}") from None
        if looks_like_data(header):
            raise InputError(f"{error}; {HEADLESS}") from None
        raise


def _seems_wide(source: Source) -> bool:
    """Whether a file looks like a wide table of counts."""
    # One batch is enough for a guess.
    first = next(iter(source.batches()), None)
    if first is None:
        return False
    try:
        rows = first.rows()
    except InputError:
        # Lists, structures and bytes have no text, and are no counts.
        return False
    return is_count_table(source.header, rows)


def _count(source: Source, tally: Tally) -> None:
    """Add all records of a source to a tally."""
    # The number of records in earlier batches: errors name the place of a record in the file.
    before = 0
    names = tally.roles.columns
    for batch in source.batches(encode=names, whole=False):
        try:
            tally.add_columns(coded_columns(source, batch, names))
        except UnusableCell as error:
            place = source.where(before + error.position)
            raise FileError(source.name, f"{place}: {error}") from None
        before += batch.num_rows


def _joint_of_records(records: _CountedRecords, bins: Any) -> Joint:
    """The joint table of counted records, with notices about what they may be instead."""
    tally = records.tally
    weight = tally.roles.weight
    with errors_naming(records.name):
        if not tally.records:
            subject = "the file has a header"
            if records.is_folder:
                subject = "the files have headers"
            raise InputError(f"{subject} but no records")
        joint = Joint.from_tally(tally)
        # The pairs of symbols that occur, before bins merge some of them.
        pairs = 0
        for row in joint.counts:
            pairs += len(row) - row.count(0)
        if bins is not None:
            joint = joint.binned(bins)
        guesses = notices_of((joint.sensitive, joint.useful), joint.records)
        notices = [*joint.notices, *guesses]
        if weight is None and records.spare and is_grid(joint.counts):
            hint = COUNTED.format(listed(records.spare))
            notices.append(f"no two rows have the same symbols: {hint}")
        # A count table has each pair of symbols in one row; survey records repeat them.
        if weight is not None and tally.is_counts and tally.records > pairs:
            notices.append(WEIGHTS.format(quoted(weight), joint.total))
        return replace(joint, notices=tuple(notices))


def _read_wide(
    path: PathLike,
    sensitive: ColumnNames,
    useful: ColumnNames,
    what: Entry,
    has_empty_symbols: bool,
    bins: Any,
    text: TextOptions | None,
) -> Joint:
    """The joint of a wide table: header of useful symbols, first column of sensitive ones."""
    if is_folder(path):
        base, names = files_of(path)
        name = os.fspath(base / names[0])
        raise FileError(
            name,
            f"{name}: a wide table is one file; leave the others out, or give microdata",
        )
    with (
        open_source(path, text, repeated_names=True) as source,
        errors_naming(source.name),
    ):
        header = source.header
        rows = all_rows(source)
        joint = _joint_of_wide(
            header,
            rows,
            _one_name(sensitive),
            _one_name(useful),
            what,
            has_empty_symbols,
        )
        return joint if bins is None else joint.binned(bins)


def _one_name(names: ColumnNames) -> str | None:
    """The name of a variable of a wide table, if it is given."""
    if names is None or isinstance(names, str):
        return names
    if len(names) == 1:
        return names[0]
    raise InputError(
        "a wide table has one sensitive and one useful variable; crossed columns need microdata"
    )


def _joint_of_wide(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    sensitive: str | None,
    useful: str | None,
    what: Entry,
    has_empty_symbols: bool,
) -> Joint:
    """The joint of the header and the rows of a wide table.

    The first cell of the header is the title of the rows unless `sensitive` names it. The columns
    have no title in the file, so theirs is `useful`.
    """
    if not rows:
        raise InputError("the file has a header but no rows")
    if len(header) < 2:
        raise InputError(
            "a wide table needs a first column of sensitive symbols and a useful one beside it"
        )
    labels: list[str] = []
    cells: list[Sequence[str]] = []
    for row in rows:
        labels.append(row[0])
        cells.append(row[1:])
    columns = header[1:]
    if not has_empty_symbols:
        _require_labels(labels, columns)
    titles = (sensitive or header[0] or "sensitive", useful or "useful")
    try:
        table = exact_table(cells, (labels, columns), titles, what=what)
    except InputError as error:
        # The table was refused anyway; the guess only adds what the file may be.
        if is_microdata(rows):
            raise InputError(f"{error}; {LONG}") from None
        raise
    joint = Joint.from_exact(table, is_counts=what == "count")
    # A margin of any name: in a wide file, unlike in records, there is no other way to tell.
    refuse_margins(joint.sensitive, joint.useful, joint.counts, unnamed=True)
    if looks_like_data(header[:1]):
        notice = f"the first cell of the header is a number: {HEADLESS}"
        joint = replace(joint, notices=(*joint.notices, notice))
    return joint


def _require_labels(labels: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse an empty label of a row or column."""
    if "" in labels:
        place = f"row {labels.index('') + 1} of the table"
    elif "" in columns:
        place = f"column {columns.index('') + 2}"
    else:
        return
    raise InputError(
        f"{place} has no label; name it, or let empty text be a symbol (--missing symbol)"
    )
