"""Apply a channel to a data file: one independent draw for each record, everything else as it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mechdesign.draws import Key, RowStream
from mechdesign.errors import InputError
from mechdesign.files import PathLike, check_target, is_parquet, replacing
from mechdesign.sampling import Sampler
from mechdesign.sanitise.csv_file import apply_csv
from mechdesign.sanitise.parquet_file import apply_parquet
from mechdesign.sanitise.plan import FileChannel


@dataclass(frozen=True)
class Applied:
    """What was written: the number of records, the column of Y, and what the user should know."""

    records: int
    column: str
    notices: tuple[str, ...] = ()


def sanitise_file(
    channel: FileChannel,
    source: PathLike,
    target: PathLike,
    *,
    columns: Mapping[str, str] | None = None,
    keep_sensitive: bool = False,
    force: bool = False,
    insecure_seed: int | None = None,
) -> Applied:
    """Write `source` with the useful column replaced by draws of the channel.

    Records keep their order. In a CSV the other cells keep their text (quotes are written where they are needed);
    in Parquet the other columns keep their types, values and nulls. The label of Y, a text, takes the place and
    the name of X. For crossed columns it takes the place of the first of the channel's columns, under their names
    joined with commas, and the other ones are left out. The target is complete or not there at all.

    Parameters
    ----------
    channel : FileChannel
    source, target : path
        CSV or Parquet (what it is shows in its first bytes); the target is of the same kind.
    columns : mapping, optional
        The file's name of a column of the channel where it has another one there.
    keep_sensitive : bool
        Whether a sensitive column may stay in the output.
    force : bool
        Whether an existing target is replaced.
    insecure_seed : int, optional
        Reproducible draws, for tests only: whoever knows the seed can undo the release.

    Raises
    ------
    InputError
        Naming the file and the line, column or symbol: a missing column, an unknown symbol, an empty cell or null
        (unless the channel has the empty symbol), a sensitive column that would stay, a place that cannot be written.
    """
    parquet = is_parquet(source)
    check_target(target, force=force, sources=(source,))
    _check_kind(target, parquet=parquet)
    sampler, stream = Sampler(channel.rows, channel.denominator), RowStream(
        Key.fresh() if insecure_seed is None else Key.insecure(insecure_seed)
    )
    apply = apply_parquet if parquet else apply_csv
    with replacing(target, force=force) as temporary:
        records, plan = apply(
            channel,
            os.fspath(source),
            temporary,
            sampler,
            stream,
            columns=columns,
            keep_sensitive=keep_sensitive,
        )
    return Applied(records, plan.released[0], plan.notices)


def _check_kind(target: PathLike, *, parquet: bool) -> None:
    suffix = Path(target).suffix.lower()
    wrong = (".csv", ".tsv", ".txt") if parquet else (".parquet", ".pq")
    if suffix in wrong:
        kind = "Parquet" if parquet else "CSV"
        raise InputError(
            f"{os.fspath(target)}: the input is a {kind} file and so is the output; name it accordingly"
        )
