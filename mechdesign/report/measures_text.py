"""The measures of a channel as a table of names and numbers."""

from __future__ import annotations

from mechdesign.auditing.channel_measures import ChannelMeasures
from mechdesign.report.wording import about, at_least, at_most, label


def measures_text(measures: ChannelMeasures) -> str:
    """Two sections, one measure a line, without a final newline."""
    rows = {**measures.utility, **measures.leakage}
    width = max(map(len, rows))
    lines = ["What is kept of the useful column (nats)"]
    lines += [f"  {name:<{width}}  {about(value)}" for name, value in measures.utility.items()]
    lines += [
        "",
        "What the outputs say about the sensitive column (nats; lifts and distances are plain numbers)",
    ]
    lines += [f"  {name:<{width}}  {about(value)}" for name, value in measures.leakage.items()]
    return "\n".join([*lines, "", *_guarantees(measures)])


def _guarantees(measures: ChannelMeasures) -> list[str]:
    """What the theorems promise, next to what is attained."""
    rows = [
        (
            line.measure,
            "?" if line.attained is None else about(line.attained),
            f"{'<=' if line.at_most else '>='} {at_most(line.bound) if line.at_most else at_least(line.bound)}",
            line.source,
        )
        for line in measures.guarantees
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return [
        "What the lifts and the averages guarantee, next to what is attained",
        *(f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d}" for a, b, c, d in rows),
    ]


def outputs_text(measures: ChannelMeasures) -> str:
    """One output a line: probability and the measures that need no order, without a final newline."""
    names = (
        "probability",
        "max_lift",
        "min_lift",
        "l1_lift",
        "chi2_lift",
        "l1_lift_inverse",
        "chi2_lift_inverse",
    )
    rows = [("output", *names)]
    rows += [(label(out.output), *(about(getattr(out, name)) for name in names)) for out in measures.outputs]
    widths = [max(len(row[k]) for row in rows) for k in range(len(names) + 1)]
    return "\n".join(
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
