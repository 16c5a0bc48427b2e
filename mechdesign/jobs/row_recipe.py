"""A channel of rows or of boxes as a recipe: it replaces several columns of a record by one draw.

The given and the released columns are one group with one key. Given columns count as released ones:
they are always in the output, as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.row_channel import INFORMATION, RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.jobs.column_plan import ColumnGroup
from mechdesign.jobs.entries import ROW, Use
from mechdesign.jobs.keyed_recipe import KeyedRecipe, key_for_columns, key_in_options
from mechdesign.jobs.manifest_columns import (
    ReleasedColumn,
    released_boxes,
    released_rows,
)
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.row_drawer import RowDrawer
from mechdesign.jobs.side_files import Sides
from mechdesign.release.box_drawing import box_channel_digest
from mechdesign.release.policies import MARGINAL
from mechdesign.release.released_values import LABEL
from mechdesign.release.row_drawing import row_channel_digest
from mechdesign.tables.row_boxes import BOX, NOTHING


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
        given = tuple(name for part in channel.given for name in part.columns)
        parts: tuple[tuple[str, ...], ...] = ()
        names: tuple[str, ...] = ()
        if isinstance(channel, BoxChannel):
            if not channel.fills:
                boxed = tuple(name for part in channel.columns for name in part.columns)
                parts = (*((name,) for name in given), boxed)
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
            given=given,
        )
        return [group]

    def drawer(self, header: Sequence[Any]) -> RowDrawer:
        """Ready for the parts of a table with this header."""
        return RowDrawer(self, self.channel, header)

    def uses(self, header: Sequence[Any]) -> list[Use]:
        """How a table with this header is released through the channel."""
        (places,) = self.plan(header).inputs
        rules = self.options.rules
        use = Use(
            channel=digest_of_rows(self.channel),
            columns=tuple(header[at] for at in places),
            form=ROW,
            unknown=rules.unknown,
            null=rules.null,
            normalise=rules.normalise,
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
        how: dict[str, Any] = {
            "sensitive": self.sensitive_in_table(0),
            "given": tuple(given),
            "channel_file": channel_file,
        }
        if isinstance(self.channel, BoxChannel):
            return [released_boxes(self.channel, drawer.release, use, names, **how)]
        return [released_rows(self.channel, drawer.release, use, names, **how)]

    def without_tables(self) -> RowRecipe:
        """The recipe as far as draws need it: the table goes along for marginals alone."""
        rules = self.options.rules
        if isinstance(self.channel, BoxChannel):
            # Boxes without records are released as the marginal of the counts.
            return self
        if MARGINAL in (rules.unknown, rules.null):
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


def box_codebook_text(channel: BoxChannel) -> str:
    """One line for each stratum, output and box that the output can stand for."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["given", "output", "box", "rows", "p_output_given_box"])
    for part in channel.parts:
        given: list[str] = []
        for variable, code in zip(channel.given, part.stratum, strict=True):
            given += variable.symbols[code]
        own = part.channel
        if own is None:
            writer.writerow([", ".join(given), NOTHING, "any", "every row", repr(1.0)])
            continue
        words = dict(text.split(": ", 1) for text in channel.box_texts(part))
        for y, output in enumerate(own.outputs):
            for name, row in zip(own.useful.names, own.rows, strict=True):
                if row[y]:
                    share = repr(row[y] / own.denominator)
                    writer.writerow(
                        [", ".join(given), output, name, words[name], share]
                    )
    return stream.getvalue()


def row_codebook_text(channel: RowChannel) -> str:
    """One line for each level, node, output and symbol that the output can stand for there.

    A node is what a row has released so far, `given_and_released` (texts joined with ``", "``).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["level", "given_and_released", "output", "symbol", "p_output_given_symbol"]
    )
    # Several strata may share a constant node, so a node may have several prefixes.
    waiting: list[tuple[int, tuple[str, ...]]] = []
    for root, stratum in zip(channel.tree.roots.tolist(), channel.strata, strict=True):
        texts: tuple[str, ...] = ()
        for variable, code in zip(channel.given, stratum, strict=True):
            texts += variable.symbols[code]
        waiting.append((root, texts))
    for level, table in enumerate(channel.tree.levels):
        names = channel.levels[level].names
        labels = channel.labels[level]
        columns = ",".join(channel.levels[level].columns)
        following: list[tuple[int, tuple[str, ...]]] = []
        for node, texts in waiting:
            first, end = np.searchsorted(table.slot_nodes, [node, node + 1]).tolist()
            for slot in range(first, end):
                output = labels[int(table.slot_outputs[slot])]
                following.append((int(table.slot_children[slot]), (*texts, output)))
                prefix = ", ".join(texts)
                if table.constant[node]:
                    writer.writerow([columns, prefix, output, "any", repr(1.0)])
            first, end = np.searchsorted(table.pair_nodes, [node, node + 1]).tolist()
            for pair in range(first, end):
                symbol = names[int(table.pair_inputs[pair])]
                span = slice(
                    int(table.rows.indptr[pair]), int(table.rows.indptr[pair + 1])
                )
                slots = table.rows.indices[span].tolist()
                values = table.rows.values[span].tolist()
                for slot, value in zip(slots, values, strict=True):
                    output = labels[int(table.slot_outputs[slot])]
                    share = repr(value / DENOMINATOR)
                    writer.writerow([columns, ", ".join(texts), output, symbol, share])
        waiting = following
    return stream.getvalue()
