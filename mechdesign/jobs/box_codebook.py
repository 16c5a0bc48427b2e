"""The codebook of a channel of boxes: a CSV file that says what its labels mean.

A channel of boxes draws once in each stratum of the given columns; `box_codebook_text` writes a
line for each stratum, output and box that go together::

    given,output,box,rows,p_output_given_box
    m,box 1,box 1,"job {clerk, nurse}; hours {38, any other}",0.75
    m,box 2,box 1,"job {clerk, nurse}; hours {38, any other}",0.25

``repr`` gives each probability all of its digits.
"""

from __future__ import annotations

import csv
import io

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.tables.row_boxes import NOTHING


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
