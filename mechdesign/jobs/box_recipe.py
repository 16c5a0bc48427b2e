"""A channel of boxes of rows as a recipe: it replaces several columns of a record by one draw.

The given and the released columns are one group with one key, and given columns count as released
ones, for they are always in the output, as they are. A channel that does not fill its boxes has one
label for all other columns; others release each column under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.errors import InputError
from mechdesign.jobs.codebook import box_codebook_text
from mechdesign.jobs.entries import ROW, Use
from mechdesign.jobs.keyed_recipe import KeyedRecipe, check_rows
from mechdesign.jobs.manifest_columns import Released, released_boxes
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.people_nights import BOXES_OF_NIGHTS
from mechdesign.release.box_drawing import BoxRelease
from mechdesign.release.drawing import FIXED

NOT_FIXED = (
    "boxes are drawn for each record by itself, so their counts cannot be fixed: draw them "
    "independently (--draws independent)"
)


@dataclass(frozen=True, kw_only=True)
class BoxRecipe(KeyedRecipe):
    """A channel of boxes with its key and what a user asks of the release."""

    channels: tuple[BoxChannel]

    @classmethod
    def of(cls, channel: BoxChannel, options: ReleaseOptions) -> BoxRecipe:
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
            raise InputError(NOT_FIXED)
        if channel.people is not None and options.nights > 1:
            raise InputError(BOXES_OF_NIGHTS)
        return cls.keyed((channel,), options)

    @property
    def form(self) -> str:
        """Whole rows, drawn together."""
        return ROW

    def released_by(
        self,
        channel: BoxChannel,
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
