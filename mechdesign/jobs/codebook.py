"""The codebook of a release: a CSV file that says what the released labels mean.

For the output y and each symbol x that can become it, a line has W(y|x), and P(x|y) by the theorem
of Bayes: n(x) W(y|x) / sum over x' of n(x') W(y|x'), with the counts n of the table. With 30 clerks
and 10 nurses in the table, and a channel that moves one in four to the other label::

    output,job,p_output_given_symbol,p_symbol_given_output
    A,clerk,0.75,0.9
    A,nurse,0.25,0.1
    B,clerk,0.25,0.5
    B,nurse,0.75,0.5

A channel of boxes draws once in each stratum of the given columns. Its codebook has a line for each
stratum, output and box that go together::

    given,output,box,rows,p_output_given_box
    m,box 1,box 1,"job {clerk, nurse}; hours {38, any other}",0.75
    m,box 2,box 1,"job {clerk, nurse}; hours {38, any other}",0.25

``repr`` gives each probability all of its digits.
"""

from __future__ import annotations

import csv
import io

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.core.integers import IntegerRows
from mechdesign.tables.row_boxes import NOTHING


def codebook_text(channel: Channel) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, `p_output_given_symbol` (of the
    channel) and `p_symbol_given_output` (under the table that the channel was designed for; empty
    where it carries none).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    probabilities = ("p_output_given_symbol", "p_symbol_given_output")
    writer.writerow(["output", *channel.useful.columns, *probabilities])
    behind: list[list[int]] | None = None
    if channel.joint is not None:
        # The numerators of Bayes, in integers; the denominator of the channel cancels.
        behind = [masses for _, masses in channel.behind]
    columns = IntegerRows.of(channel.rows).columns
    totals = channel.row_totals
    for y, (label, (symbols, values)) in enumerate(
        zip(channel.outputs, columns, strict=True)
    ):
        posterior = [""] * len(symbols)
        if behind is not None:
            masses = behind[y]
            total = sum(masses)
            # The table may have no record of any of these symbols: then there is no posterior.
            if total:
                posterior = [repr(mass / total) for mass in masses]
        for x, w, backward in zip(symbols, values, posterior, strict=True):
            forward = repr(w / totals[x])
            writer.writerow([label, *channel.useful.symbols[x], forward, backward])
    return stream.getvalue()


def box_codebook_text(channel: BoxChannel) -> str:
    """One line for each stratum, output and box that the output can stand for."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["given", "output", "box", "rows", "p_output_given_box"])
    for part in channel.parts:
        texts: list[str] = []
        for variable, code in zip(channel.given, part.stratum, strict=True):
            texts += variable.symbols[code]
        given = ", ".join(texts)
        inner = part.channel
        if inner is None:
            # A stratum without a channel of its own has one output for every row.
            writer.writerow([given, NOTHING, "any", "every row", repr(1.0)])
            continue
        # Each text is the name of a box and the rows in it.
        rows_of_box = dict(text.split(": ", 1) for text in channel.box_texts(part))
        rows = list(zip(inner.useful.names, inner.rows, inner.row_totals, strict=True))
        for y, output in enumerate(inner.outputs):
            for box, row, total in rows:
                if row[y]:
                    share = repr(row[y] / total)
                    writer.writerow([given, output, box, rows_of_box[box], share])
    return stream.getvalue()
