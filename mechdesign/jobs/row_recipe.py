"""A channel of rows or of boxes as a recipe: it replaces several columns of a record by one draw.

`RowRecipe.of` refuses the options that are for channels of one column, and takes the key. Given the
header of a table, `groups` says which columns are replaced: the given and the released columns are
one group with one key, and given columns count as released ones, for they are always in the output,
as they are. `drawer` then draws (`row_drawer`), and `described` gives the manifest its counts.

How many columns the output has depends on the channel. A level with free outputs has one label for
all of its columns; a channel of boxes that does not fill them has one label for all columns; others
release each column under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import INFORMATION
from mechdesign.core.errors import InputError
from mechdesign.jobs.column_groups import ColumnGroup
from mechdesign.jobs.entries import ROW, Use
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.manifest_columns import (
    ReleasedColumn,
    released_boxes,
    released_rows,
)
from mechdesign.jobs.option_keys import key_for_columns, key_in_options
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.row_codebook import box_codebook_text, row_codebook_text
from mechdesign.jobs.row_drawer import RowDrawer
from mechdesign.jobs.side_files import Sides
from mechdesign.release.box_drawing import box_channel_digest
from mechdesign.release.policies import MARGINAL
from mechdesign.release.released_values import LABEL
from mechdesign.release.row_drawing import row_channel_digest
from mechdesign.tables.row_boxes import BOX


@dataclass(frozen=True, kw_only=True)
class RowRecipe(KeyedRecipe):
    """A channel of rows or boxes with its key and what a user asks of the release."""

    channel: RowChannel | BoxChannel

    @classmethod
    def of(cls, channel: RowChannel | BoxChannel, options: ReleaseOptions) -> RowRecipe:
        """The recipe of a channel of rows or boxes.

        Raises
        ------
        InputError
            If an option is for channels of one column alone.
        """
        if options.form != LABEL:
            raise InputError(
                "a channel of rows says itself what is released of each column; leave the form "
                "(--as) out"
            )
        if options.into is not None:
            raise InputError(
                "the columns of a channel of rows are replaced, not added beside the originals, "
                "which would void its promise; leave --add (into) out"
            )
        key, keyless = key_in_options(options)
        return cls(
            channel=channel,
            keys=(key_for_columns(key, channel.released_columns, options),),
            options=replace(options, key=None),
            keyless=keyless,
        )

    @property
    def releasables(self) -> Sequence[RowChannel | BoxChannel]:
        """The channel."""
        return (self.channel,)

    @property
    def groups(self) -> list[ColumnGroup]:
        """One group: given columns, then those of the levels."""
        channel = self.channel
        given: list[str] = []
        for variable in channel.given:
            given += variable.columns
        # Without parts, every column is released by itself.
        parts: tuple[tuple[str, ...], ...] = ()
        names: tuple[str, ...] = ()
        if isinstance(channel, BoxChannel):
            # Filled boxes give each column a value of its own.
            if not channel.fills:
                boxed: list[str] = []
                for variable in channel.columns:
                    boxed += variable.columns
                parts = (*((name,) for name in given), tuple(boxed))
                names = (*given, BOX)
        elif channel.record.objective == INFORMATION:
            # A level with free outputs has one label for all of its columns.
            levels = tuple(level.columns for level in channel.levels)
            parts = tuple((name,) for name in given) + levels
        group = ColumnGroup(
            channel.released_columns,
            channel.sensitive.columns,
            merged_parts=parts,
            names=names,
            given=tuple(given),
        )
        return [group]

    def drawer(self, header: Sequence[Any]) -> RowDrawer:
        """Ready for the parts of a table with this header."""
        return RowDrawer(self, self.channel, header)

    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released through the channel."""
        (numbers,) = self.plan(header).inputs
        rules = self.options.rules
        use = Use(
            channel=digest_of_rows(self.channel),
            columns=tuple(header[number] for number in numbers),
            form=ROW,
            unknown=rules.unknown,
            missing=rules.missing,
            normalise=rules.normalise,
            trim=rules.trim,
            missing_codes=rules.missing_codes,
            changed=self.options.changed,
        )
        return [use]

    def described(
        self, drawer: Drawer, channel_files: Sequence[str | None]
    ) -> list[ReleasedColumn]:
        """What manifests say of the channel."""
        if not isinstance(drawer, RowDrawer):
            raise TypeError("the drawer belongs to another kind of recipe")
        (use,) = self.uses(drawer.header)
        renamed = self.options.renamed
        given: list[str] = []
        for variable in self.channel.given:
            given += [renamed.get(name, name) for name in variable.columns]
        channel_file = None
        if channel_files:
            channel_file = channel_files[0]
        names = self.released_names(drawer.plan, 0)
        roles: dict[str, Any] = {
            "sensitive": self.sensitive_in_table(0),
            "given": tuple(given),
            "channel_file": channel_file,
        }
        if isinstance(self.channel, BoxChannel):
            return [released_boxes(self.channel, drawer.release, use, names, **roles)]
        return [released_rows(self.channel, drawer.release, use, names, **roles)]

    def without_tables(self) -> RowRecipe:
        """The recipe as far as draws need it: the table goes along for marginals alone."""
        rules = self.options.rules
        if isinstance(self.channel, BoxChannel):
            # Boxes without records are released as the marginal of the counts.
            return self
        if MARGINAL in (rules.unknown, rules.missing):
            return self
        table_free = replace(self.channel, table=None)
        return replace(self, channel=table_free)

    def codebook(self) -> str:
        """The codebook of the labels, level by level and node by node; of boxes in words."""
        if isinstance(self.channel, BoxChannel):
            return box_codebook_text(self.channel)
        return row_codebook_text(self.channel)

    @property
    def codebook_note(self) -> str | None:
        """Nothing: the codebook has the integers of the channel alone."""
        return None

    def check_sides(self, sides: Sides) -> None:
        """Refuse a codebook of symbols."""
        if isinstance(self.channel, BoxChannel):
            own_symbols = self.channel.fills
        else:
            own_symbols = self.channel.record.objective != INFORMATION
        if sides.codebook is not None and own_symbols:
            raise InputError(
                "a codebook says what labels mean, and this channel releases the symbols of the "
                "columns themselves"
            )


def digest_of_rows(channel: RowChannel | BoxChannel) -> str:
    """SHA-256 of what a channel of rows or boxes does."""
    if isinstance(channel, BoxChannel):
        return box_channel_digest(channel)
    return row_channel_digest(channel)
