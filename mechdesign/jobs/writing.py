"""The pass over the data: every batch of the source with its released columns, and the files that go with them."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, sha256_of
from mechdesign.formats.cells import arrow_integers, arrow_texts
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv import CsvBatch, as_text
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import Batch, Kind, Source, sink_for
from mechdesign.formats.outputs import KeptColumn, Output, WrittenColumn
from mechdesign.jobs.column_plan import Plan, sensitive_of
from mechdesign.jobs.job import Earlier
from mechdesign.jobs.ledger import Use
from mechdesign.jobs.manifest import (
    Audience,
    Manifest,
    codebook_text,
    read_manifest,
    released_column,
)
from mechdesign.jobs.recipe import BadRecord, Drawer, Recipe
from mechdesign.jobs.target import Target
from mechdesign.release.drawing import channel_digest
from mechdesign.tables.columns import own_values

T = TypeVar("T")
Told: TypeAlias = Callable[[Any], None]


@dataclass(frozen=True)
class Sides:
    """Files that are written with the output, where they are wanted; `channel_files` are those they tell of."""

    manifest: PathLike | None = None
    internal: PathLike | None = None
    codebook: PathLike | None = None
    channel_files: tuple[PathLike, ...] = ()

    @property
    def paths(self) -> tuple[PathLike, ...]:
        """Those that are wanted."""
        return tuple(
            path
            for path in (self.manifest, self.internal, self.codebook)
            if path is not None
        )

    @property
    def manifests(self) -> list[tuple[PathLike, Audience]]:
        """Those of them that are manifests."""
        both: list[tuple[PathLike | None, Audience]] = [
            (self.manifest, "public"),
            (self.internal, "internal"),
        ]
        return [(path, audience) for path, audience in both if path is not None]


AHEAD, READ_AHEAD = 16, 2
"""Batches that wait at most: drawn, meanwhile a row group is written; and read."""


def ahead(items: Iterator[T], most: int) -> Generator[T]:
    """The items, of which a thread of its own makes up to so many before they are wanted."""
    if not most:
        yield from items
        return
    thread = ThreadPoolExecutor(1)
    try:
        following = deque(thread.submit(next, items, None) for _ in range(most))
        while (item := following.popleft().result()) is not None:
            following.append(thread.submit(next, items, None))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Writing:
    """How a file is written: of which kind, as which text, packed how, with formulas escaped, by how many threads."""

    kind: Kind
    text: TextOptions | None
    packing: Compression | None
    escape: bool
    jobs: int


def write_release(
    drawer: Drawer,
    table: Source,
    target: Path,
    how: Writing,
    advance: Told,
    look: Told | None = None,
) -> int:
    """Write the sanitised copy of a table; the number of records.

    `advance` is told the share that is done; `look` sees every batch. With two jobs a thread reads and draws while
    another one writes, with three each has its own.
    """
    import pyarrow as pa

    plan, header = drawer.plan, table.header
    # From Parquet to Parquet alone: text has no types.
    schema: Any = None if how.kind == "CSV" else getattr(table, "schema", None)
    kinds: dict[tuple[int, int], Any] = {
        column.release: None
        if schema is None
        else drawer.own_type(column, lambda at: schema.field(at).type)
        for column in plan.columns
        if column.release is not None
    }
    outputs: list[Output] = [
        KeptColumn(column.source or 0)
        if column.release is None
        else WrittenColumn(column.name, column.source, kinds[column.release])
        for column in plan.columns
    ]
    encoded, stored = drawer.reads(getattr(table, "schema", None))
    # One array each for the whole table, of text where the column has no type of its own.
    labels = {
        key: arrow_texts([*map(as_text, texts)] if how.escape else texts)
        if kinds[key] is None
        else own_values(texts, kinds[key])
        for key, texts in drawer.labels.items()
    }

    def released(batch: Batch, first: int) -> tuple[Batch, list[Any]]:
        try:
            found = drawer.draw(
                lambda at: batch.column(header[at]), batch.num_rows, first_row=first
            )
        except BadRecord as error:
            error.position += first
            raise
        except InputError as error:
            raise InputError(f"{table.name}: {error}") from None
        drawer.look(batch.num_rows, lambda step: batch.some(step).column)
        if look is not None:
            look(batch)
        if drawer.dropped is not None:
            batch = batch.select(~drawer.dropped)
        codes = {
            key: arrow_integers(found[key].codes.astype(np.int32, copy=False))
            for key in kinds
        }
        return batch, [
            pa.DictionaryArray.from_arrays(codes[key], labels[key]) for key in kinds
        ]

    def drawn(
        batches: Iterable[tuple[float, Batch]],
    ) -> Iterator[tuple[float, Batch, list[Any]]]:
        first = 0
        for share, batch in batches:
            yield share, *released(batch, first)
            first += batch.num_rows

    read = (
        (table.position / table.size, batch)
        for batch in table.batches(encode=encoded, read=stored)
    )
    try:
        with (
            open(target, "wb") as stream,
            sink_for(
                table, how.kind, stream, outputs, how.packing, how.text, how.escape
            ) as sink,
            closing(ahead(read, READ_AHEAD * (how.jobs > 2))) as batches,
            closing(ahead(drawn(batches), AHEAD * (how.jobs > 1))) as ready,
        ):
            for share, batch, written in ready:
                if not batch.num_rows:  # all of its records are left out
                    continue
                # Cells of a Parquet file are escaped as they are written.
                sink.write(
                    batch.escaped()
                    if how.escape and isinstance(batch, CsvBatch)
                    else batch,
                    written,
                )
                advance(share)
    except BadRecord as error:
        # Its line may have to be looked for in the file, of which nobody reads any more.
        raise InputError(f"{table.where(error.position)}: {error.what}") from None
    return sink.records


def uses_of(recipe: Recipe, plan: Plan, header: Sequence[str]) -> list[Use]:
    """How the channels are used, for the job and the manifests."""
    asked = recipe.options
    how = {"form": asked.form, "changed": asked.changed, **asdict(asked.rules)}
    return [
        Use(
            channel=channel_digest(channel),
            columns=tuple(header[at] for at in places),
            **how,
        )
        for channel, places in zip(recipe.channels, plan.inputs, strict=True)
    ]


def write_sides(
    sides: Sides, out: Target, drawer: Drawer, earlier: Earlier, **known: Any
) -> None:
    """Write manifests, with what is `known` of the run besides, and codebook to their temporary places."""
    if sides.codebook is not None:
        out.part_of_side(sides.codebook).write_bytes(
            codebook_text(drawer.recipe.channels[0]).encode()
        )
    if not sides.manifests:
        return
    plan, recipe = drawer.plan, drawer.recipe
    uses = uses_of(recipe, plan, drawer.header)
    files = [*map(sha256_of, sides.channel_files), *[None] * len(uses)]
    released = [
        released_column(
            channel,
            release,
            use,
            tuple(
                column.name
                for column in plan.columns
                if column.release and column.release[0] == k
            ),
            sensitive=sensitive_of(channel, recipe.options),
            channel_file=file,
        )
        for k, (channel, release, use, file) in enumerate(
            zip(recipe.channels, drawer.releases, uses, files, strict=False)
        )
    ]
    manifest = Manifest(
        columns_before=drawer.header,
        columns=plan.header,
        released=tuple(released),
        kept_private=plan.kept_private,
        identity=recipe.options.identifiers,
        draw=earlier.draws,
        earlier=earlier.runs,
        other_channels=earlier.other_channels,
        insecure_seed=recipe.options.insecure_seed is not None,
        shuffled=recipe.options.shuffle,
        **known,
    )
    for path, audience in sides.manifests:
        out.part_of_side(path).write_text(manifest.text(audience), encoding="utf-8")


def sides_hold(sides: Sides, recipe: Recipe, output: str) -> bool:
    """Whether the files that go with an output are there, and say what belongs to it."""
    try:
        if sides.codebook is not None:
            content = Path(sides.codebook).read_bytes()
            if content != codebook_text(recipe.channels[0]).encode():
                return False
        return all(
            read_manifest(path, audience).output == output
            for path, audience in sides.manifests
        )
    except (InputError, OSError):  # some other file has the name, or none
        return False
