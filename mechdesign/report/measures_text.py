"""The measures of a channel as a table of names and numbers."""

from __future__ import annotations

from mechdesign.channel_measures import ChannelMeasures
from mechdesign.report.wording import about


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
    return "\n".join(lines)
