"""Results at a prompt and in notebooks: their words, their tables, their pictures."""

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
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.comparison.row_ways import RowComparison
from mechdesign.comparison.run import Comparison
from mechdesign.core.errors import InputError
from mechdesign.core.wording import about, percent_of
from mechdesign.leaks.assessment import Assessment
from mechdesign.mechanisms.result import Design
from mechdesign.report import comparing, plots, releases, terminal
from mechdesign.report.assessment import assessment_text
from mechdesign.report.pages import laid_out
from mechdesign.report.row_comparison import row_comparison_text
from mechdesign.report.sentences import composition_text
from mechdesign.report.wording import (
    count,
    label,
    percent,
    percent_at_least,
    percent_at_most,
    title,
)
from mechdesign.tables.joint import Joint

MOST_ROWS, MOST_COLUMNS = 12, 16
"""Of a table in a notebook; the frame has all of them."""


def summary(shown: Any) -> str:
    """The words of the command line."""
    return WORDS[type(shown)](shown)


def _table_text(joint: Joint) -> str:
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
    Design: lambda shown: terminal.design_text(shown, joint_of(shown)),
    Channel: terminal.channel_text,
    Audit: terminal.audit_text,
    Comparison: lambda shown: comparing.comparison_text(shown, None),
    RowComparison: row_comparison_text,
    Composition: lambda shown: composition_text(shown, _numbered(shown)),
    Frequencies: lambda shown: releases.estimate_text(shown, "symbol"),
    JointFrequencies: lambda shown: releases.estimate_text(shown, "symbol", "other"),
    Assessment: assessment_text,
    ReleaseCheck: lambda shown: releases.check_text(shown, "the file"),
}


def _numbered(composition: Composition) -> list[str]:
    return [f"release {number}" for number in range(1, len(composition.alone) + 1)]


def joint_of(design: Design) -> Joint:
    """The table of a design."""
    if design.channel.joint is None:
        raise InputError(
            "the channel is public: the table that this takes is not in it"
        )
    return design.channel.joint


def columns(shown: Any) -> Mapping[str, Sequence[Any]]:
    """The table behind a result, by columns."""
    match shown:
        case Joint():
            return _joint_columns(shown)
        case Channel():
            first = f"{title(shown.useful.columns)} \\ output"
            shares = zip(shown.outputs, shown.matrix.T.tolist(), strict=True)
            return {first: shown.useful.names, **dict(shares)}
        case Design():
            return _belief_columns(shown)
        case Audit():
            row = {"notion": shown.notion.text, "satisfied": shown.satisfied}
            row |= vars(shown.achieved) | vars(shown.worst)
            return {name: [value] for name, value in row.items()}
        case Composition():
            return _composition_columns(shown)
        case Comparison() | RowComparison():
            return shown.columns()
        case Assessment():
            return _assessment_columns(shown)
        case Frequencies() | JointFrequencies():
            rows = shown.rows()
            return {name: [row[name] for row in rows] for name in rows[0]}
        case _:
            names = ("kind", "text", "records")
            return {
                name: [vars(finding)[name] for finding in shown.findings]
                for name in names
            }


def _assessment_columns(assessment: Assessment) -> Mapping[str, Sequence[Any]]:
    disclosures = [column.disclosure for column in assessment.columns]
    return {
        "column": [column.name for column in assessment.columns],
        "values": [disclosure.values for disclosure in disclosures],
        "tells": [disclosure.information for disclosure in disclosures],
        "largest lift": [disclosure.largest_lift for disclosure in disclosures],
        "smallest lift": [disclosure.smallest_lift for disclosure in disclosures],
        "pinned down": [disclosure.pinned for disclosure in disclosures],
        "rare values": [column.rare_values for column in assessment.columns],
        "identifier": [column.identifier for column in assessment.columns],
    }


def _joint_columns(joint: Joint) -> Mapping[str, Sequence[Any]]:
    first = f"{title(joint.sensitive.columns)} \\ {title(joint.useful.columns)}"
    counts = zip(*joint.counts, strict=True)
    return {
        first: joint.sensitive.names,
        **dict(zip(joint.useful.names, counts, strict=True)),
    }


def _belief_columns(design: Design) -> Mapping[str, Sequence[Any]]:
    joint = joint_of(design)
    lowest, highest = zip(*belief_ranges(design.channel, joint), strict=True)
    return {
        title(joint.sensitive.columns): joint.sensitive.names,
        "before": joint.p_s.tolist(),
        "lowest after": lowest,
        "highest after": highest,
    }


def _composition_columns(composition: Composition) -> Mapping[str, Sequence[Any]]:
    parts = (composition.achieved, composition.sum, *composition.alone)
    table: dict[str, Sequence[Any]] = {
        "releases": ["together", "added up", *_numbered(composition)]
    }
    for side in vars(composition.achieved):
        table[side] = [vars(part)[side] for part in parts]
    return table


def frame(shown: Any) -> Any:
    """The same as a data frame: pandas if it is installed, else polars, else pyarrow."""
    backend = "pyarrow"
    for name in ("pandas", "polars"):
        if find_spec(name) is not None:
            backend = name
            break
    table = {name: list(values) for name, values in columns(shown).items()}
    narwhals: Any = import_module("narwhals")
    return narwhals.from_dict(table, backend=backend).to_native()


SHARES: dict[str, Callable[[float], str]] = {
    "before": percent,
    "lowest after": percent_at_least,
    "highest after": percent_at_most,
    "nmi": percent_at_least,
    "upper_bound_nmi": percent_at_most,
    "tells": percent,
    "pinned down": percent,
}
"""Columns of results that are shown as percentages, rounded outwards as on the command line."""


def html(shown: Any) -> str:
    """A line, a table, and the words below it."""
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


def _cell(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return label(str(value))
    if name in SHARES:
        return SHARES[name](value)
    return about(value)


def plot(shown: Any, ax: Any = None) -> Any:
    """A picture in matplotlib axes."""
    plots.check_matplotlib()
    axes = ax
    if axes is None:
        axes = import_module("matplotlib.pyplot").subplots()[1]
    match shown:
        case Joint():
            _heat(axes, shown.lift, shown.sensitive.names, shown.useful.names, "lift")
        case Channel():
            _heat(
                axes,
                shown.matrix,
                shown.useful.names,
                shown.outputs,
                "probability of the output",
            )
        case JointFrequencies():
            _heat(axes, shown.estimates, shown.names, shown.others, "estimated share")
        case Design():
            names, before, lowest, highest = columns(shown).values()
            _ranges(axes, names, before, lowest, highest)
            axes.set_xlabel(
                f"probability of every value of {next(iter(columns(shown)))}: before, and its "
                f"range after"
            )
        case Frequencies():
            _ranges(axes, shown.names, shown.estimates, shown.lower, shown.upper)
            axes.set_xlabel(f"share, with {percent_of(shown.level)} intervals")
        case Audit() | Composition():
            names = ["eps_ldp", "eps_u", "eps_l"]
            axes.barh(
                names, [getattr(shown.achieved, name) for name in names], color="0.55"
            )
            if isinstance(shown, Composition):
                subject = f"{len(shown.alone)} releases together"
            else:
                verdict = "satisfied" if shown.satisfied else "VIOLATED"
                subject = f"{shown.notion.text}: {verdict}"
            axes.set_xlabel(f"achieved (nats); {subject}")
        case RowComparison():
            names = [way.name for way in shown.ways]
            kept = [way.kept or 0.0 for way in shown.ways]
            axes.barh(names[::-1], kept[::-1], color="0.55")
            axes.set_xlabel("share of the information that is kept")
        case Comparison():
            plots.draw_panel(
                axes, plots.PANELS[0], shown.rows, plots.series(shown.rows)
            )
            axes.legend(fontsize="small")
        case _:
            raise TypeError(f"there is no picture of {type(shown).__name__}")
    return axes


def _heat(
    axes: Any, values: Any, rows: Sequence[str], names: Sequence[str], what: str
) -> None:
    picture = axes.imshow(values, cmap="Blues", aspect="auto")
    axes.set_yticks(range(len(rows)), map(label, rows), parse_math=False)
    axes.set_xticks(range(len(names)), map(label, names), rotation=90, parse_math=False)
    axes.figure.colorbar(picture, ax=axes, label=what)


def _ranges(axes: Any, names: Sequence[Any], middle: Any, low: Any, high: Any) -> None:
    places = range(len(names))
    axes.hlines(places, low, high, color="0.55", linewidth=4)
    axes.plot(middle, places, "o", color="black", markersize=5)
    axes.set_yticks(places, [label(str(name)) for name in names], parse_math=False)
    axes.invert_yaxis()
