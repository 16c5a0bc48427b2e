"""Results at a prompt and in notebooks: their words, their tables, their pictures.

`core.display.Displayed` calls the four public functions by their names:

- `summary` gives the words of the command line, from the function of the type in `WORDS`.
- `frame` makes a data frame of pandas, polars or pyarrow from `columns`.
- `html` lays out a cell of a notebook: the repr, the table of `columns`, and the words below it.
- `plot` draws into matplotlib axes, by default new ones.

`columns` is the table behind a result, {heading: values}. That of a design has the beliefs before
and after a release: ::

    {"sensitive": ("F", "M"), "before": [0.5, 0.5],
     "lowest after": (0.3894, 0.3894), "highest after": (0.6106, 0.6106)}

A new type of result needs an entry in `WORDS` and a case in `columns`, and one in `plot` if it has
a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mechdesign.analysis.checking import ReleaseCheck
from mechdesign.analysis.frequencies import Frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies
from mechdesign.auditing.composition import Composition
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.auditing.verdict import Achieved, Audit
from mechdesign.channel.channel import Channel
from mechdesign.comparison.run import Comparison
from mechdesign.core.wording import about, free_name, percent_of
from mechdesign.jobs.side_files import codebook_text
from mechdesign.judging.figures import Judgement
from mechdesign.leaks.assessment import Assessment
from mechdesign.mechanisms.result import Design
from mechdesign.report import (
    comparing,
    drawing,
    plots,
    releases,
    terminal,
)
from mechdesign.report.assessment import assessment_text
from mechdesign.report.boxes import judged
from mechdesign.report.command_records import (
    audit_record,
    channel_record,
    design_record,
)
from mechdesign.report.judgement import judgement_text
from mechdesign.report.sentences import composition_text
from mechdesign.report.wording import (
    count,
    label,
    percent,
    percent_at_least,
    percent_at_most,
    title,
)
from mechdesign.report.writing import laid_out
from mechdesign.tables.joint import Joint

MOST_ROWS, MOST_COLUMNS = 12, 16
"""Most rows and columns that a notebook shows of a table; the frame has all of them."""

GREY = "0.55"
"""Colour of bars and ranges, which are not compared by colour."""

ASSESSMENT_HEADINGS = (
    "column",
    "values",
    "tells",
    "raises",
    "lowers",
    "gives away",
    "rare values",
    "identifier",
)
"""Headings of the table of an assessment."""

BUDGETS = ("eps_ldp", "eps_u", "eps_l")
"""Fields of `auditing.verdict.Achieved` in the order of the bars."""


def summary(shown: Any) -> str:
    """The words of the command line."""
    return WORDS[type(shown)](shown)


def record(shown: Any) -> dict[str, Any]:
    """The record of the command line for `--json`."""
    return RECORDS[type(shown)](shown)


def matrix(channel: Any) -> str:
    """The probabilities of a channel as CSV, without a final newline."""
    # The strata of boxes have no entries in common: their zeros are left out.
    if channel.parts:
        return codebook_text(channel).rstrip()
    return terminal.matrix_csv(channel)


def frame(shown: Any) -> Any:
    """The table of `columns` as a data frame of pandas, else of polars, else of pyarrow."""
    # pyarrow is always there; users who have pandas or polars work with these.
    backend = "pyarrow"
    for name in ("pandas", "polars"):
        if find_spec(name) is not None:
            backend = name
            break
    table = {name: list(values) for name, values in columns(shown).items()}
    narwhals: Any = import_module("narwhals")
    return narwhals.from_dict(table, backend=backend).to_native()


def html(shown: Any) -> str:
    """A line, a table, and the words below it.

    The table has one list of values for each heading; a page goes row by row, so it is transposed.
    """
    table = columns(shown)
    names = list(table)
    rows: list[list[str]] = []
    for values in zip(*table.values(), strict=True):
        row = [_cell(name, value) for name, value in zip(names, values, strict=True)]
        rows.append(row)
    return laid_out(
        "result.html.jinja",
        heads=[label(name) for name in names],
        rows=rows,
        line=repr(shown),
        words=summary(shown),
        most_rows=MOST_ROWS,
        most_columns=MOST_COLUMNS,
    )


def plot(shown: Any, ax: Any = None) -> Any:
    """A picture in matplotlib axes, by default new ones; returns the axes."""
    drawing.check_matplotlib()
    axes = ax
    if axes is None:
        axes = import_module("matplotlib.pyplot").subplots()[1]
    match shown:
        case Joint():
            _heat(axes, shown.lift, shown.sensitive.names, shown.useful.names, "lift")
        case Channel():
            _draw_channel(axes, shown)
        case JointFrequencies():
            _heat(axes, shown.estimates, shown.names, shown.others, "estimated share")
        case Design():
            _draw_beliefs(axes, shown)
        case Frequencies():
            _ranges(axes, shown.names, shown.estimates, shown.lower, shown.upper)
            axes.set_xlabel(f"share, with {percent_of(shown.level)} intervals")
        case Audit():
            _draw_budgets(axes, shown.achieved, shown.verdict)
        case Composition():
            subject = f"{len(shown.alone)} releases together"
            _draw_budgets(axes, shown.achieved, subject)
        case Comparison():
            lines = drawing.series(shown.rows)
            plots.draw_panel(axes, plots.UTILITY, shown.rows, lines)
            axes.legend(fontsize="small")
        case _:
            raise TypeError(f"there is no picture of {type(shown).__name__}")
    return axes


def _table_text(joint: Joint) -> str:
    """The sizes of a table, its zero cells, and the range of its lifts."""
    names: list[str] = []
    for variable in (joint.sensitive, joint.useful):
        names.append(f"{title(variable.columns)} ({count(len(variable), 'symbol')})")
    size = "probabilities or weights"
    if joint.records is not None:
        size = count(joint.records, "record")
    zero = sum(row.count(0) for row in joint.counts)
    return (
        f"{' by '.join(names)}: {size}, {zero:,} of {count(joint.p.size, 'cell')} zero; "
        f"lifts from {about(joint.lift.min())} to {about(joint.lift.max())}."
    )


WORDS: Mapping[type[Any], Callable[[Any], str]] = {
    Joint: _table_text,
    # Those of the command line take the table, the file or the names of releases as well.
    Design: lambda shown: terminal.design_text(shown, messages=shown.messages),
    Channel: terminal.channel_text,
    Audit: terminal.audit_text,
    Comparison: lambda shown: comparing.comparison_text(shown, None),
    Composition: lambda shown: composition_text(shown, _numbered(shown)),
    Frequencies: lambda shown: releases.estimate_text(shown, "symbol"),
    JointFrequencies: lambda shown: releases.estimate_text(shown, "symbol", "other"),
    Assessment: assessment_text,
    Judgement: judgement_text,
    ReleaseCheck: lambda shown: releases.check_text(shown, "the file"),
}
"""The function that makes the words of each type of result."""

RECORDS: Mapping[type[Any], Callable[[Any], dict[str, Any]]] = {
    Channel: channel_record,
    Design: lambda shown: design_record(shown, None),
    Audit: audit_record,
}
"""The function that makes the record of each type of result that has one."""


def _numbered(composition: Composition) -> list[str]:
    """``release 1``, ``release 2``, ..: a name for each part of a composition."""
    return [f"release {number}" for number in range(1, len(composition.alone) + 1)]


def columns(shown: Any) -> Mapping[str, Sequence[Any]]:
    """The table behind a result: the values of each column by its heading."""
    match shown:
        case Joint():
            return _joint_columns(shown)
        case Channel():
            return _channel_columns(shown)
        case Design():
            return _belief_columns(shown)
        case Audit():
            return _audit_columns(shown)
        case Composition():
            return _composition_columns(shown)
        case Comparison():
            return shown.columns()
        case Assessment():
            return _assessment_columns(shown)
        case Judgement():
            return _judgement_columns(shown)
        case Frequencies() | JointFrequencies():
            return _frequency_columns(shown)
        case _:
            # The last type of `WORDS`.
            return _finding_columns(shown)


def _joint_columns(joint: Joint) -> Mapping[str, Sequence[Any]]:
    """A row for each sensitive symbol, a column of counts for each useful one.

    The first column has the row's symbol, and the names of both axes as its heading.
    """
    corner = f"{title(joint.sensitive.columns)} \\ {title(joint.useful.columns)}"
    table: dict[str, Sequence[Any]] = {corner: joint.sensitive.names}
    columns_of_counts = zip(*joint.counts, strict=True)
    for name, counts in zip(joint.useful.names, columns_of_counts, strict=True):
        table[name] = counts
    return table


def _channel_columns(channel: Channel) -> Mapping[str, Sequence[Any]]:
    """A row of probabilities P(y|x) for each useful symbol x, a column for each output y."""
    table: dict[str, Sequence[Any]] = {
        f"{title(channel.useful.columns)} \\ output": channel.useful.names
    }
    probabilities = channel.matrix.T.tolist()
    for output, column in zip(channel.outputs, probabilities, strict=True):
        table[output] = column
    return table


def _belief_columns(design: Design) -> Mapping[str, Sequence[Any]]:
    """A row for each sensitive symbol: its prior, and its extreme posteriors.

    Of boxes these are by the records of the proof, in each stratum by itself.
    """
    rows: list[tuple[str, float, float, float]] = []
    for stratum, channel, joint in judged(design.channel, design.channel.joint):
        ranges = belief_ranges(channel, joint)
        for name, before, (lowest, highest) in zip(
            joint.sensitive.names, joint.p_s.tolist(), ranges, strict=True
        ):
            rows.append((f"{stratum}{name}", before, lowest, highest))
    sensitive = design.channel.sensitive
    names, *figures = zip(*rows, strict=True) if rows else ((), (), (), ())
    headings = ("before", "lowest after", "highest after")
    return {
        free_name(
            title(() if sensitive is None else sensitive.columns), headings
        ): names,
        **dict(zip(headings, figures, strict=True)),
    }


def _audit_columns(audit: Audit) -> Mapping[str, Sequence[Any]]:
    """One row: the verdict, the achieved budgets, and the worst cell.

    Its headings are `notion`, `satisfied`, the fields of `Achieved` (nats) and those of `Worst`.
    """
    promise = None if audit.notion is None else audit.notion.text
    row = {"notion": promise, "satisfied": audit.satisfied}
    row |= vars(audit.achieved) | vars(audit.worst)
    return {name: [value] for name, value in row.items()}


def _composition_columns(composition: Composition) -> Mapping[str, Sequence[Any]]:
    """Rows for all releases together, for the sum of their budgets, and for each alone."""
    parts = (composition.achieved, composition.sum, *composition.alone)
    table: dict[str, Sequence[Any]] = {
        "releases": ["together", "added up", *_numbered(composition)]
    }
    for budget in vars(composition.achieved):
        table[budget] = [vars(part)[budget] for part in parts]
    return table


def _assessment_columns(assessment: Assessment) -> Mapping[str, Sequence[Any]]:
    """A row for each column of the assessed table."""
    table: dict[str, list[Any]] = {heading: [] for heading in ASSESSMENT_HEADINGS}
    for column in assessment.columns:
        disclosure = column.disclosure
        row = (
            column.name,
            disclosure.values,
            disclosure.information,
            disclosure.largest_lift,
            disclosure.smallest_lift,
            disclosure.pinned,
            column.rare_values,
            column.identifier,
        )
        for heading, value in zip(ASSESSMENT_HEADINGS, row, strict=True):
            table[heading].append(value)
    return table


def _judgement_columns(judgement: Judgement) -> Mapping[str, Sequence[Any]]:
    """A row for each figure of a judged file."""
    table: dict[str, list[Any]] = {
        "part": [],
        "figure": [],
        "released": [],
        "untouched": [],
        "without": [],
        "promised": [],
    }
    for part in judgement.parts:
        for figure in part.figures:
            table["part"].append(part.key)
            table["figure"].append(figure.key)
            for name in ("released", "untouched", "without", "promised"):
                table[name].append(getattr(figure, name))
    return table


def _frequency_columns(
    frequencies: Frequencies | JointFrequencies,
) -> Mapping[str, Sequence[Any]]:
    """A row for each symbol, or pair of symbols, with its estimated share."""
    rows = frequencies.rows()
    table: dict[str, Sequence[Any]] = {}
    for name in rows[0]:
        table[name] = [row[name] for row in rows]
    return table


def _finding_columns(check: ReleaseCheck) -> Mapping[str, Sequence[Any]]:
    """A row for each finding about a released file."""
    table: dict[str, Sequence[Any]] = {}
    for name in ("kind", "text", "records"):
        table[name] = [getattr(finding, name) for finding in check.findings]
    return table


SHARES: dict[str, Callable[[float], str]] = {
    "before": percent,
    "lowest after": percent_at_least,
    "highest after": percent_at_most,
    "nmi": percent_at_least,
    "upper_bound_nmi": percent_at_most,
    "tells": percent,
    "gives away": percent,
}
"""Columns of results that are shown as percentages, rounded outwards as on the command line."""


def _cell(name: str, value: Any) -> str:
    """The text of a value in the column `name` of a notebook's table."""
    # Counts are whole and exact: only doubles are rounded.
    if not isinstance(value, float):
        return label(str(value))
    if name in SHARES:
        return SHARES[name](value)
    return about(value)


def _draw_channel(axes: Any, channel: Channel) -> None:
    """P(y|x) as colours."""
    scale = "probability of the output"
    _heat(axes, channel.matrix, channel.useful.names, channel.outputs, scale)


def _draw_beliefs(axes: Any, design: Design) -> None:
    """The prior of every sensitive symbol, and the range of its posteriors."""
    table = _belief_columns(design)
    sensitive = next(iter(table))
    names, before, lowest, highest = table.values()
    _ranges(axes, names, before, lowest, highest)
    axes.set_xlabel(
        f"probability of every value of {sensitive}: before, and its range after"
    )
    useful = title(design.channel.released_columns)
    # Names are user's texts: dollar signs in them are no formulas.
    axes.set_title(
        f"{useful} released, {sensitive} protected: {design.notion.text}",
        parse_math=False,
        wrap=True,
    )


def _draw_budgets(axes: Any, achieved: Achieved, subject: str) -> None:
    """A bar for each achieved budget."""
    lengths = [getattr(achieved, budget) for budget in BUDGETS]
    # One colour: the bars are told apart by their names.
    axes.barh(list(BUDGETS), lengths, color=GREY)
    axes.set_xlabel(f"achieved (nats); {subject}")


def _heat(
    axes: Any, values: Any, rows: Sequence[str], names: Sequence[str], scale: str
) -> None:
    """A matrix of |rows| by |names| values as colours; `scale` is the title of their legend."""
    # Symbols are user's texts: dollar signs in them are no formulas.
    picture = axes.imshow(values, cmap="Blues", aspect="auto")
    axes.set_yticks(range(len(rows)), map(label, rows), parse_math=False)
    axes.set_xticks(range(len(names)), map(label, names), rotation=90, parse_math=False)
    axes.figure.colorbar(picture, ax=axes, label=scale)


def _ranges(axes: Any, names: Sequence[Any], middle: Any, low: Any, high: Any) -> None:
    """A horizontal line from `low` to `high` for each name, and a dot at `middle`."""
    places = range(len(names))
    axes.hlines(places, low, high, color=GREY, linewidth=4)
    axes.plot(middle, places, "o", color="black", markersize=5)
    axes.set_yticks(places, [label(str(name)) for name in names], parse_math=False)
    # The first name at the top, as in the table.
    axes.invert_yaxis()
