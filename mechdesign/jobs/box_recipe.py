"""A channel of boxes of rows as a recipe: it replaces several columns of a record by one draw.

`BoxRecipe.of` refuses the options that are for channels of one column, and takes the key. Given the
header of a table, `groups` says which columns are replaced: the given and the released columns are
one group with one key, and given columns count as released ones, for they are always in the output,
as they are. `drawer` then draws (`box_drawer`), and `described` gives the manifest its counts.

A channel that does not fill its boxes has one label for all columns; others release each column
under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.auditing.stated import refuse_broken
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed
from mechdesign.jobs.box_codebook import box_codebook_text
from mechdesign.jobs.box_drawer import BoxDrawer
from mechdesign.jobs.column_groups import ColumnGroup, in_table
from mechdesign.jobs.entries import ROW, Use
from mechdesign.jobs.keyed_recipe import KeyedRecipe, check_rows
from mechdesign.jobs.manifest_columns import (
    Released,
    released_boxes,
)
from mechdesign.jobs.option_keys import key_for_columns, key_in_options
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.people_nights import BOXES_OF_NIGHTS, check_nights
from mechdesign.jobs.people_run import check_people
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.side_files import Sides
from mechdesign.release.box_samplers import box_channel_digest
from mechdesign.tables.people import RECORDS, People
from mechdesign.tables.row_boxes import BOX


@dataclass(frozen=True, kw_only=True)
class BoxRecipe(KeyedRecipe):
    """A channel of boxes with its key and what a user asks of the release."""

    channel: BoxChannel

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
        people = channel.people
        check_nights(people, options.nights, is_identified=bool(options.identifiers))
        if people is not None:
            check_people(people, options)
            if options.nights > 1:
                raise InputError(BOXES_OF_NIGHTS)
        refuse_broken(channel, f"the channel for {listed(channel.released_columns)}")
        key, keyless = key_in_options(options)
        return cls(
            channel=channel,
            keys=(key_for_columns(key, channel.released_columns, options),),
            options=replace(options, key=None),
            keyless=keyless,
        )

    @property
    def people(self) -> People | None:
        """The people of the channel, where it is for people with several records."""
        return self.channel.people

    @property
    def law_kept(self) -> bool | None:
        """Whether rows that fill the boxes keep the law of the table; None for labels of boxes."""
        return self.channel.keeps_law if self.channel.fills else None

    @property
    def releasables(self) -> Sequence[BoxChannel]:
        """The channel."""
        return (self.channel,)

    @property
    def groups(self) -> list[ColumnGroup]:
        """One group: given columns, then those of the boxes."""
        channel = self.channel
        given: list[str] = []
        for variable in channel.given:
            given += variable.columns
        # Without parts, every column is released by itself.
        parts: tuple[tuple[str, ...], ...] = ()
        names: tuple[str, ...] = ()
        # Filled boxes give each column a value of its own.
        if not channel.fills:
            boxed: list[str] = []
            for variable in channel.columns:
                boxed += variable.columns
            parts = (*((name,) for name in given), tuple(boxed))
            names = (*given, BOX)
        group = ColumnGroup(
            channel.released_columns,
            channel.sensitive.columns,
            merged_parts=parts,
            names=names,
            given=tuple(given),
        )
        return [group]

    def drawer(self, header: Sequence[Any]) -> BoxDrawer:
        """Ready for the parts of a table with this header."""
        return BoxDrawer(self, self.channel, header)

    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released through the channel."""
        (numbers,) = self.plan(header).inputs
        rules = self.options.rules
        columns = tuple(header[number] for number in numbers)
        if self.people is not None:
            # The columns of the records, and not those of the folded table.
            columns = in_table(self.people.columns, self.options)
        use = Use(
            channel=box_channel_digest(self.channel),
            columns=columns,
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
    ) -> list[Released]:
        """What manifests say of the channel."""
        if not isinstance(drawer, BoxDrawer):
            raise TypeError("the drawer belongs to another kind of recipe")
        (use,) = self.uses(drawer.header)
        renamed = self.options.renamed
        given: list[str] = []
        for variable in self.channel.given:
            given += [renamed.get(name, name) for name in variable.columns]
        names = self.released_names(drawer.plan, 0)
        sensitive = self.sensitive_in_table(0)
        people = self.people
        if people is not None:
            names = use.columns
            given = [RECORDS, *in_table(people.given, self.options)]
            sensitive = in_table(people.sensitive, self.options)
        channel_file = None
        if channel_files:
            channel_file = channel_files[0]
        roles: dict[str, Any] = {
            "sensitive": sensitive,
            "given": tuple(given),
            "channel_file": channel_file,
        }
        return [released_boxes(self.channel, drawer.release, use, names, **roles)]

    def without_tables(self) -> BoxRecipe:
        """The recipe itself: boxes without records are released as the marginal of the counts."""
        return self

    def codebook(self) -> str:
        """The codebook of the labels: boxes in words."""
        return box_codebook_text(self.channel)

    @property
    def codebook_note(self) -> str | None:
        """Nothing: the codebook has the integers of the channel alone."""
        return None

    def check_sides(self, sides: Sides) -> None:
        """Refuse a codebook of symbols."""
        if sides.codebook is not None and self.channel.fills:
            raise InputError(
                "a codebook says what labels mean, and this channel releases the symbols of the "
                "columns themselves"
            )
