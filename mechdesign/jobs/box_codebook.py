"""The codebook of a channel of boxes.

It has a line for each stratum, output and box that go together::

    given,output,box,rows,p_output_given_box
    m,box 1,box 1,"job {clerk, nurse}; hours {38, any other}",0.75
    m,box 2,box 1,"job {clerk, nurse}; hours {38, any other}",0.25

``repr`` gives each probability all of its digits.
"""

from __future__ import annotations

import csv
import io

from mechdesign.channel.channel import Channel
from mechdesign.tables.row_boxes import NOTHING


def box_codebook_text(channel: Channel) -> str:
    """One line for each stratum, output and box that the output can stand for."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["given", "output", "box", "rows", "p_output_given_box"])
    for part in channel.parts:
        given = ", ".join(channel.boxed.coder.given_texts(part.stratum))
        inner = part.channel
        if inner is None:
            # A stratum without a channel of its own has one output for every row.
            writer.writerow([given, NOTHING, "any", "every row", repr(1.0)])
            continue
        # Each text is the name of a box and the rows in it.
        rows_of_box = dict(
            text.split(": ", 1) for text in channel.boxed.coder.box_texts(part.boxes)
        )
        rows = list(zip(inner.useful.names, inner.rows, inner.row_totals, strict=True))
        for y, output in enumerate(inner.outputs):
            for box, row, total in rows:
                if row[y]:
                    share = repr(row[y] / total)
                    writer.writerow([given, output, box, rows_of_box[box], share])
    return stream.getvalue()
