"""A channel's matrix and codebook, for eyes and as CSV."""

from __future__ import annotations

import csv
import io
from decimal import Context, Decimal

from mechdesign.channel.channel import Channel
from mechdesign.report.wording import count, label, percent

EXACT = Context(prec=62)
"""Every quotient by a power of two up to 2^62 ends within 62 digits; other denominators round there."""


def matrix_csv(channel: Channel) -> str:
    """The matrix W(y|x): useful symbols down, outputs along, exact decimals where they end."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([",".join(channel.useful.columns), *channel.outputs])
    d = Decimal(channel.denominator)
    for name, row in zip(channel.useful.names, channel.rows, strict=True):
        writer.writerow([name, *(_decimal(EXACT.divide(Decimal(entry), d)) for entry in row)])
    return text.getvalue()


def _decimal(value: Decimal) -> str:
    return f"{value.normalize(EXACT):f}"


def channel_text(channel: Channel) -> str:
    """Both directions without the zeros: what each symbol becomes, and what each output says."""
    useful = " x ".join(label(c) for c in channel.useful.columns)
    lines = [
        f"{useful}: {count(len(channel.useful), 'symbol')}, {count(len(channel.outputs), 'output')}, "
        f"denominator {channel.denominator}.",
        "",
        "What is published for each symbol",
    ]
    for name, row in zip(channel.useful.names, channel.integers.entries(), strict=True):
        shares = {channel.outputs[y]: entry / channel.denominator for y, entry in row}
        lines.append(_entry(name, shares))
    lines.append("")
    if channel.joint is None:
        lines.append("No codebook: a public channel does not carry the table that it needs.")
    else:
        lines.append("What each output says (codebook)")
        lines += [_entry(output, posterior) for output, posterior in channel.codebook().items()]
    return "\n".join(lines)


def _entry(name: str, shares: dict[str, float]) -> str:
    largest_first = sorted(shares.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{label(other)} {percent(share)}" for other, share in largest_first)
    return f"  {label(name)}: {listed}"
