"""Results at a prompt and in notebooks: their words, their tables, their pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mechdesign.analysis.checking import ReleaseCheck
from mechdesign.analysis.frequencies import Frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies
from mechdesign.auditing.joint_leakage import Composition
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.comparison.run import Comparison
from mechdesign.core.errors import InputError
from mechdesign.core.wording import percent_of
from mechdesign.mechanisms.result import Design
from mechdesign.report import plots, releases, terminal
from mechdesign.report.pages import laid_out
from mechdesign.report.sentences import composition_text
from mechdesign.report.wording import about, count, label, title
from mechdesign.tables.joint import Joint

MOST_ROWS, MOST_COLUMNS = 12, 16
"""Of a table in a notebook; the frame has all of them."""


def summary(shown: Any) -> str:
    """The words of the command line."""
    return WORDS[type(shown)](shown)


def _table_text(joint: Joint) -> str:
    zero = sum(cell == 0 for row in joint.counts for cell in row)
    size = (
        "probabilities or weights"
        if joint.records is None
        else count(joint.records, "record")
    )
    cells = f"{zero:,} of {count(joint.p.size, 'cell')} zero"
    names = " by ".join(
        f"{title(v.columns)} ({count(len(v), 'symbol')})"
        for v in (joint.sensitive, joint.useful)
    )
    return f"{names}: {size}, {cells}; lifts from {about(joint.lift.min())} to {about(joint.lift.max())}."


WORDS: Mapping[type[Any], Callable[[Any], str]] = {
    Joint: _table_text,
    Design: lambda shown: terminal.design_text(shown, joint_of(shown)),
    Channel: terminal.channel_text,
    Audit: terminal.audit_text,
    Comparison: lambda shown: terminal.comparison_text(shown, None),
    Composition: lambda shown: composition_text(shown, _numbered(shown)),
    Frequencies: lambda shown: releases.estimate_text(shown, "symbol"),
    JointFrequencies: lambda shown: releases.estimate_text(shown, "symbol", "other"),
    ReleaseCheck: lambda shown: releases.check_text(shown, "the file"),
}


def _numbered(found: Composition) -> list[str]:
    return [f"release {k + 1}" for k in range(len(found.alone))]


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
            names = f"{title(shown.sensitive.columns)} \\ {title(shown.useful.columns)}"
            counts = zip(*shown.counts, strict=True)
            return {names: shown.sensitive.names} | dict(
                zip(shown.useful.names, counts, strict=True)
            )
        case Channel():
            names = f"{title(shown.useful.columns)} \\ output"
            shares = zip(shown.outputs, shown.matrix.T.tolist(), strict=True)
            return {names: shown.useful.names} | dict(shares)
        case Design():
            joint = joint_of(shown)
            lowest, highest = zip(*belief_ranges(shown.channel, joint), strict=True)
            names = {title(joint.sensitive.columns): joint.sensitive.names}
            return names | {
                "before": joint.p_s.tolist(),
                "lowest after": lowest,
                "highest after": highest,
            }
        case Audit():
            row = {"notion": shown.notion.text, "satisfied": shown.satisfied}
            row |= vars(shown.achieved) | vars(shown.worst)
            return {name: [value] for name, value in row.items()}
        case Composition():
            parts = (shown.achieved, shown.sum, *shown.alone)
            sides = {
                side: [vars(each)[side] for each in parts]
                for side in vars(shown.achieved)
            }
            return {"releases": ["together", "added up", *_numbered(shown)], **sides}
        case Comparison():
            return shown.columns()
        case Frequencies() | JointFrequencies():
            rows = shown.rows()
            return {name: [row[name] for row in rows] for name in rows[0]}
        case _:
            return {
                key: [vars(found)[key] for found in shown.findings]
                for key in ("kind", "text", "records")
            }


def frame(shown: Any) -> Any:
    """The same as a data frame of the library that is there."""
    backend = next(
        (name for name in ("pandas", "polars") if find_spec(name) is not None),
        "pyarrow",
    )
    table: Any = import_module("narwhals").from_dict(
        {name: list(values) for name, values in columns(shown).items()}, backend=backend
    )
    return table.to_native()


def html(shown: Any) -> str:
    """A line, a table, and the words below it."""
    table = columns(shown)
    rows = [
        [
            about(value) if isinstance(value, float) else label(str(value))
            for value in row
        ]
        for row in zip(*table.values(), strict=True)
    ]
    heads, room = (
        [label(name) for name in table],
        {"most_rows": MOST_ROWS, "most_columns": MOST_COLUMNS},
    )
    said = {"line": repr(shown), "words": summary(shown)}
    return laid_out("result.html.jinja", heads=heads, rows=rows, **said, **room)


def plot(shown: Any, ax: Any = None) -> Any:
    """A picture in matplotlib axes."""
    plots.check_matplotlib()
    axes: Any = import_module("matplotlib.pyplot").subplots()[1] if ax is None else ax
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
                f"probability of each {next(iter(columns(shown)))}: before, and its range after"
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
                said = f"{len(shown.alone)} releases together"
            else:
                said = f"{shown.notion.text}: {'satisfied' if shown.satisfied else 'VIOLATED'}"
            axes.set_xlabel(f"achieved (nats); {said}")
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
