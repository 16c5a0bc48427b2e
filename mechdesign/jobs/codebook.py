"""The codebook of a release, a CSV file that says what the released labels mean.

For the output y and each symbol x that can become it, a line has W(y|x), and P(x|y) by the theorem
of Bayes: n(x) W(y|x) / sum over x' of n(x') W(y|x'), with the counts n of the table. With 30 clerks
and 10 nurses in the table, and a channel that moves one in four to the other label::

    output,job,p_output_given_symbol,p_symbol_given_output
    A,clerk,0.75,0.9
    A,nurse,0.25,0.1
    B,clerk,0.25,0.5
    B,nurse,0.75,0.5

Of boxes it has the given columns, the box and its rows in words::

    output,sex,box,rows,p_output_given_symbol,p_symbol_given_output
    "F, box 1",F,box 1,"job {clerk, nurse}; hours {38, any other}",0.75,
"""

from __future__ import annotations

import csv
import io

from mechdesign.channel.channel import Channel
from mechdesign.core.integers import IntegerRows


def codebook_text(channel: Channel) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, of boxes `rows`,
    `p_output_given_symbol` (of the channel) and `p_symbol_given_output` (under the table that the
    channel was designed for; empty where it carries none, and of boxes).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    probabilities = ("p_output_given_symbol", "p_symbol_given_output")
    symbols_of: list[tuple[str, ...]] = list(channel.useful.symbols)
    columns_of_symbols = channel.useful.columns
    if channel.coder:
        columns_of_symbols = (*columns_of_symbols, "rows")
        rows = dict(zip(channel.coder.symbols, channel.coder.row_sets, strict=True))
        symbols_of = [(*symbol, rows[symbol]) for symbol in symbols_of]
    writer.writerow(["output", *columns_of_symbols, *probabilities])
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
            writer.writerow([label, *symbols_of[x], forward, backward])
    return stream.getvalue()
