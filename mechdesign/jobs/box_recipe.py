"""A channel of boxes of rows as a recipe: it replaces several columns of a record by one draw.

The given and the released columns are one group with one key, and given columns count as released
ones, for they are always in the output, as they are. A channel that does not fill its boxes has one
label for all other columns; others release each column under its own name.

It draws once in each stratum of the given columns, so its codebook has a line for each stratum,
output and box that go together::

    given,output,box,rows,p_output_given_box
    m,box 1,box 1,"job {clerk, nurse}; hours {38, any other}",0.75
    m,box 2,box 1,"job {clerk, nurse}; hours {38, any other}",0.25

``repr`` gives each probability all of its digits.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.jobs.entries import ROW, Use
from mechdesign.jobs.keyed_recipe import KeyedRecipe, check_rows
from mechdesign.jobs.manifest_columns import Released, released_boxes
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.people_nights import BOXES_OF_NIGHTS
from mechdesign.release.box_drawing import BOXES_NOT_FIXED, BoxRelease
from mechdesign.release.drawing import FIXED
from mechdesign.tables.row_boxes import NOTHING


@dataclass(frozen=True, kw_only=True)
class BoxRecipe(KeyedRecipe):
    """A channel of boxes with its key and what a user asks of the release."""

    channels: tuple[Channel]

    @classmethod
    def of(cls, channel: Channel, options: ReleaseOptions) -> BoxRecipe:
        """The recipe of a channel of boxes.

        Raises
        ------
        InputError
            If an option is for channels of one column alone.
        NotPrivate
            If the table of the channel disproves its promise.
        """
        check_rows(options)
        if options.draws == FIXED:
            raise InputError(BOXES_NOT_FIXED)
        if channel.people is not None and options.nights > 1:
            raise InputError(BOXES_OF_NIGHTS)
        return cls.keyed((channel,), options)

    @property
    def form(self) -> str:
        """Whole rows, drawn together."""
        return ROW

    def released_by(
        self,
        channel: Channel,
        release: BoxRelease,
        use: Use,
        *names: Any,
        **roles: Any,
    ) -> Released:
        """What manifests say of the channel."""
        return released_boxes(channel, release, use, *names, **roles)

    def without_tables(self) -> BoxRecipe:
        """The recipe itself: boxes without records are released as the marginal of the counts."""
        return self

    def codebook(self) -> str:
        """The codebook of the labels: boxes in words."""
        return box_codebook_text(self.channels[0])


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
