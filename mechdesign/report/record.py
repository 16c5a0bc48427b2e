"""The content of a report as plain frozen records; renderers add and leave out nothing.

A `Report` has a record for each of its parts: the `Request`, the `Promise` (with its `Bound`s
and `Belief`s), what holds for the `Population`, what is `Kept`, the `Lifts` before and after, and
the `ChannelTable` with the `Meaning` of its outputs. `content` computes them, `document` lays them
out, and a report that ends in .json is nothing but them. For example::

    {"format": "mechdesign.report", "version": 2, "audience": "internal",
     "asked": {"useful_columns": ["job"], "notion": {"name": "lip", "epsilon": 0.5}, ..},
     "promise": {"low": 0.607, "high": 1.649, "satisfied": true,
                 "beliefs": [{"symbol": "F", "before": 0.4, "lowest": 0.3, "highest": 0.55}, ..]},
     "kept": {"nmi": 0.801, "upper_bound_nmi": 0.802, "gap_nmi": 0.001, ..}, ..}

Figures are not rounded here, except that those which an audit has rounded outwards stay so.

*What was asked for.* `request_of` reads the `Request` from a channel, and the size of the table
from the table if it may be shown. `names_of` and `protected` turn the columns of a request into the
names that every section uses, such as ``race x sex`` for two crossed columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

from mechdesign.auditing.lifts import Achieved
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import RELATIVE
from mechdesign.core.wording import in_population, percent_of
from mechdesign.notions import Notion, to_record
from mechdesign.release.released_values import Moved
from mechdesign.report.wording import count, short_title, title
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, SEQUENCE, People
from mechdesign.tables.uncovered_values import RareLimit
from mechdesign.tables.variable import column_names

if TYPE_CHECKING:
    from mechdesign.comparison.curve import Curve


Audience: TypeAlias = Literal["internal", "public"]
"""An internal report shows the table; a public one shows nothing that is computed from it."""

RECORD_UNITS = ("record", "records")
PEOPLE_UNITS = ("person", "people")
"""What a promise is about, in the singular and the plural."""

FORMAT = "mechdesign.report"
VERSION = 2


@dataclass(frozen=True)
class Fact:
    """A name and a text about it."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request: columns, symbols, notion and mechanism; in an internal report also the table and
    its size.

    `sensitive_columns` is empty where the channel does not name them. With `each`, every sensitive
    column is protected by itself, not their combinations. `of_rows` says that what is released of a
    record is a row, of which `given` are the columns that are released as they are, and
    `relative_to` those that a relative promise compares with. `symbol_columns` has the column of
    every sensitive symbol where each column is protected, and is empty otherwise. `of_people` says
    that `records` are people, each with a sequence of records.

    Of boxes `level` is the confidence of the promise, which is about the population alone, and
    `fills` says that rows are drawn within them.
    """

    sensitive_columns: tuple[str, ...]
    each: bool
    useful_columns: tuple[str, ...]
    sensitive_symbols: tuple[str, ...]
    useful_symbols: tuple[str, ...]
    outputs: int
    notion: dict[str, Any]
    notion_text: str
    mechanism: str | None
    method: str | None
    table: str | None = None
    records: int | None = None
    cells: int | None = None
    zero_cells: int | None = None
    of_rows: bool = False
    of_people: bool = False
    given: tuple[str, ...] = ()
    relative_to: tuple[str, ...] = ()
    symbol_columns: tuple[str, ...] = ()
    level: float | None = None
    fills: bool = False

    @property
    def compared(self) -> str:
        """What the promised factors compare with, after "as likely as"."""
        compared = "before"
        if self.relative_to:
            compared = f"by {title(self.relative_to)} alone"
        return f"{compared}{in_population(self.level, start=', ')}"

    @property
    def where(self) -> str:
        """Where the promise holds, in words that follow its statement; nothing of the table."""
        if self.level is None:
            return ""
        return (
            ", in the population that the records are drawn from, with "
            f"{percent_of(self.level)} confidence"
        )

    @property
    def unit(self) -> str:
        """What is released of a record, or of a person, in a word."""
        if self.of_people:
            return "sequence"
        return "row" if self.of_rows else "value"


@dataclass(frozen=True)
class Bound:
    """A measure of leakage: at most `promised` for every channel with the promise, `attained` by
    this one.

    `promised` is None where the promise bounds nothing, `attained` where it was not computed.
    """

    measure: str
    unit: str
    promised: float | None
    attained: float | None


@dataclass(frozen=True)
class Belief:
    """The probability of a sensitive symbol before, and its extremes after a released
    value (rounded outwards).
    """

    symbol: str
    before: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The guarantee.

    `satisfied` is the exact verdict on the integers of the channel, None without a table to decide
    by. `low` and `high` are the lifts allowed, None where a side is free or single lifts are not
    bounded. Where symbols have budgets of their own, `allowed` holds those of every symbol, and
    `low` and `high` the widest. `worst` is the cell that uses most of its budget.
    """

    statement: str
    verdict: str
    satisfied: bool | None
    low: float | None
    high: float | None
    allowed: tuple[tuple[float, float], ...] = ()
    achieved: dict[str, float] | None = None
    used: dict[str, float] | None = None
    worst: dict[str, Any] | None = None
    bounds: tuple[Bound, ...]
    beliefs: tuple[Belief, ...] = ()


@dataclass(frozen=True)
class Population:
    """Budgets (nats, rounded up) that hold at this level for the population that the
    records were drawn from.

    `title` names them on a card. With `is_promised` they are those of a promise for the population
    alone, beside which the `sentences` stand.
    """

    level: float
    eps_l: float
    eps_u: float
    eps_ldp: float
    sentences: tuple[str, ...]
    title: str
    is_promised: bool = False


@dataclass(frozen=True, kw_only=True)
class LeastKept:
    """The cost of a channel on the column's own symbols, and how often each symbol is released as
    it is.

    `asked` is the objective of the channel file. Figures computed from the table are None in a
    public report: the expected cost, its proven lower bound, the share of records that stay true
    (`of_rows`: of cells), the largest change of a share, and `by_column` the texts of the table
    of unchanged cells.
    """

    asked: dict[str, Any]
    by_symbol: tuple[tuple[str, float], ...]
    kind: str = "number"
    cost: float | None = None
    cost_lower_bound: float | None = None
    truth: float | None = None
    frequency_deviation: float | None = None
    of_rows: bool = False
    by_column: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The utility of the integers (nats, and as a share of H(X)) and the proven bound
    on the optimum among the `rivals`, the `best` of them.

    `unchanged` is the expected share of the records that are released with their own value, where
    no table of unchanged cells says it.
    """

    nmi: float
    mutual_information: float
    entropy: float
    upper_bound_nmi: float | None
    gap_nmi: float | None
    scope: str
    remarks: tuple[str, ...]
    rivals: str
    best: str
    unchanged: float | None = None


@dataclass(frozen=True)
class Lifts:
    """Lifts P(s|.)/P(s): a row for each symbol of S in `sensitive`, a column for each
    in `columns`.
    """

    sensitive: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Entry:
    """An output of a symbol: its integer, and its probability."""

    output: int
    weight: int
    share: float


Item = TypeVar("Item")


class Computed(Sequence[Item], Generic[Item]):
    """Items that are computed whenever they are asked for.

    A page shows few of 100,000, and all of them would take a hundred megabytes.
    """

    def __init__(self, size: int, item: Callable[[int], Item]) -> None:
        self._size = size
        self._item = item

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(self._size)))
        # A range treats negative places and those out of range as a list does.
        return self._item(range(self._size)[cast("int", place)])


@dataclass(frozen=True)
class ChannelTable:
    """The channel: for each useful symbol its outputs (positions in `outputs`) of
    positive probability. Integers are over the denominator, or over the total of each symbol.
    `cells` are sentences on how cells are read.
    """

    symbols: tuple[str, ...]
    outputs: tuple[str, ...]
    denominator: int | None
    totals: tuple[int, ...] | None
    rows: Sequence[tuple[Entry, ...]]
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Meaning:
    """The meaning of an output: how often it is released (in its stratum of given columns, whose
    values stand before it), its posterior P(x|y), its extreme lifts.
    """

    output: str
    probability: float
    posterior: tuple[tuple[str, float], ...]
    lowest_lift: float
    highest_lift: float


@dataclass(frozen=True)
class BoxRow:
    """A box of a stratum in words, and the records of the proof in it; None in a public report."""

    stratum: str
    box: str
    records: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class BoxColumn:
    """What a released box tells of a column by itself, and the share of its unchanged cells."""

    columns: tuple[str, ...]
    truth: float | None
    kept: float
    information: float
    entropy: float


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """What a release of boxes has besides; in a public report the boxes alone, in words.

    `sentences` are about what is kept. `beliefs` are by the records of the proof before, and by the
    promise for the population after; none with given columns, whose strata have shares of their
    own. `own` is the expected share of the records whose own box is
    released, at most `own_bound` for these boxes, and `law_deviation` the largest change of the
    share of a box. `limit` is what rare sensitive values make impossible.
    """

    rows: tuple[BoxRow, ...] = ()
    columns: tuple[BoxColumn, ...] = ()
    beliefs: tuple[Belief, ...] = ()
    sentences: tuple[str, ...] = ()
    on_table: Achieved | None = None
    slice_records: int | None = None
    own: float | None = None
    own_bound: float | None = None
    law_deviation: float | None = None
    limit: RareLimit | None = None


@dataclass(frozen=True)
class Command:
    """A line for the shell and its purpose."""

    purpose: str
    line: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """The whole content of a report. Parts that are None are left out; `absent` has the reasons.

    `holds_for` names the sample and the observer, `voided_by` the events that end the promise.
    `population` is None without whole counts, and `boxes` is empty for other releases. `law` has
    sentences on what an analyst reads.
    """

    audience: Audience
    written: str = ""
    asked: Request
    promise: Promise
    population: Population | None = None
    holds_for: tuple[str, ...]
    voided_by: tuple[str, ...]
    kept: Kept | None = None
    least: LeastKept | None = None
    purpose: tuple[str, ...] = ()
    numbers: tuple[Moved, ...] = ()
    law: tuple[str, ...] = ()
    curve: Curve | None = None
    before: Lifts | None = None
    after: Lifts | None = None
    boxes: Boxes = Boxes()
    channel: ChannelTable
    codebook: Sequence[Meaning] | None = None
    provenance: tuple[Fact, ...] = ()
    commands: tuple[Command, ...] = ()
    absent: dict[str, str] = field(default_factory=dict[str, str])


# ------------------------------------------------------------------- what was asked for

NAMELESS = "the sensitive column"
"""What a report calls the sensitive column of a channel that does not name it."""


def request_of(
    channel: Channel,
    notion: Notion,
    joint: Joint | None = None,
    table: str | None = None,
) -> Request:
    """The request: columns, symbols, notion and mechanism, and the size of the table if known."""
    size: dict[str, int | None] = {}
    if joint is not None:
        size["records"] = joint.records
        size["cells"] = joint.p.size
        size["zero_cells"] = sum(row.count(0) for row in joint.counts)
    sensitive = channel.sensitive
    columns: tuple[str, ...] = ()
    symbols: list[str] = []
    if sensitive is not None:
        columns = sensitive.columns
        for names in sensitive.secret_names:
            symbols.extend(names)
    useful_columns = column_names(channel.hidden)
    people = channel.people
    if people is not None:
        # The columns of a record, not those at every place of the sequence.
        useful_columns = people.columns
        if people.sensitive_of == SEQUENCE:
            columns = (sequence_of(people),)
    symbol_columns: list[str] = []
    if sensitive is not None and sensitive.protects_columns:
        for name, of_column in zip(columns, sensitive.secret_names, strict=True):
            symbol_columns += [name] * len(of_column)
    relative_to: tuple[str, ...] = ()
    if channel.record.promise_kind == RELATIVE:
        relative_to = tuple(channel.given)
    return Request(
        sensitive_columns=columns,
        each=sensitive is not None and sensitive.protects_columns,
        useful_columns=useful_columns,
        sensitive_symbols=tuple(symbols),
        useful_symbols=channel.useful.names,
        outputs=len(channel.outputs),
        notion=to_record(notion),
        notion_text=notion.text,
        mechanism=origin_of(channel, "mechanism"),
        method=origin_of(channel, "method"),
        table=table,
        of_rows=channel.published is not None,
        of_people=people is not None,
        given=tuple(channel.given),
        relative_to=relative_to,
        symbol_columns=tuple(symbol_columns),
        level=channel.level_of_claims,
        fills=channel.fills,
        **size,
    )


def unit_of(request: Request) -> tuple[str, str]:
    """What the promise is about: singular and plural."""
    return PEOPLE_UNITS if request.of_people else RECORD_UNITS


def sequence_of(people: People) -> str:
    """The secret of people, where it is the sequence of their values."""
    return f"sequence of {title(people.sensitive)}"


def names_of(request: Request) -> tuple[str, str]:
    """The sensitive and the useful columns, as one name each; of many useful ones the first."""
    # Protected each by itself, the secret is a value of one column or the other; crossed, of both.
    between = " x "
    if request.each:
        between = " or "
    sensitive = title(request.sensitive_columns, between)
    return sensitive or NAMELESS, short_title(request.useful_columns)


def protected(request: Request) -> str:
    """The protected columns: ``race``, ``race x sex``, ``each of race and sex``."""
    if request.each:
        return f"each of {title(request.sensitive_columns, ' and ')}"
    return names_of(request)[0]


def lead_of(request: Request) -> str:
    """The protected column, the released column and their sizes."""
    if request.level is not None:
        return _lead_of_boxes(request)
    useful = names_of(request)[1]
    useful_size = count(len(request.useful_symbols), "symbol")
    outputs = count(request.outputs, "output")
    if request.of_rows:
        useful_size = count(len(request.useful_symbols), "row")
        outputs = f"one of {count(request.outputs, 'row')}"
    manner = "is released as"
    if request.of_people:
        useful_size = count(len(request.useful_symbols), "sequence")
        outputs = f"one of {count(request.outputs, 'sequence')}"
        manner = "of all records of a person is released as"
    sensitive = protected(request)
    if request.sensitive_symbols:
        sensitive_size = count(len(request.sensitive_symbols), "symbol")
        sensitive += f" ({sensitive_size})"
    return f"{useful} ({useful_size}) {manner} {outputs}; {sensitive} is protected."


def _lead_of_boxes(request: Request) -> str:
    """What is released in boxes, and what is protected."""
    useful = names_of(request)[1]
    if request.of_people:
        return (
            f"{useful} of all records of a person are released together as those of a person of "
            f"the table, drawn within boxes of sequences, beside {RECORDS} as it is; "
            f"{protected(request)} is protected."
        )
    useful = title(request.useful_columns, ", ")
    verb = "is released"
    if len(request.useful_columns) > 1:
        verb = "are released together"
    form = "in boxes of values"
    if request.fills:
        form = "as rows of the table that are drawn within boxes"
    given = ""
    if request.given:
        given = f", {title(request.given)} as in the data"
    return f"{useful} {verb} {form}{given}; {protected(request)} is protected."


def origin_of(channel: Channel, key: str) -> str | None:
    """A text about its origin that the channel's record keeps."""
    value = channel.record.provenance.get(key)
    # The file may come from anybody: an entry that is no text is left out.
    if isinstance(value, str):
        return value
    return None


# ------------------------------------------------------------------------------ picking


def picked(source: object, *names: str) -> dict[str, Any]:
    """Attributes of these names, for a record."""
    return {name: getattr(source, name) for name in names}


def optional_record(figures: Any) -> dict[str, Any] | None:
    """The fields of a dataclass by their names; None where there is none."""
    if figures is None:
        return None
    return asdict(figures)
