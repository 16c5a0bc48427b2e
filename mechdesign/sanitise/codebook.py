"""What the released labels mean, as a CSV that travels with the data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from mechdesign.files import PathLike
from mechdesign.integer_rows import IntegerRows
from mechdesign.policies import ReleaseChannel

OUTPUT = "output"
FORWARD = "p_output_given_symbol"
BACKWARD = "p_symbol_given_output"


def codebook_text(channel: ReleaseChannel) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, `p_output_given_symbol` (of the channel) and
    `p_symbol_given_output` (under the table that the channel was designed for; empty where it carries none).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([OUTPUT, *channel.useful.columns, FORWARD, BACKWARD])
    for label, symbol, forward, backward in _entries(channel):
        writer.writerow([label, *symbol, repr(forward), "" if backward is None else repr(backward)])
    return stream.getvalue()


def write_codebook(channel: ReleaseChannel, path: Path) -> None:
    """Write `codebook_text` to a file."""
    path.write_text(codebook_text(channel), encoding="utf-8", newline="")


def is_codebook(channel: ReleaseChannel, path: PathLike) -> bool:
    """Whether a file is the codebook of the channel."""
    try:
        return Path(path).read_bytes() == codebook_text(channel).encode()
    except OSError:
        return False


def _entries(channel: ReleaseChannel) -> Iterator[tuple[str, tuple[str, ...], float, float | None]]:
    weight = None if channel.joint is None else channel.joint.useful_counts
    columns = IntegerRows.of(channel.rows).columns
    for label, (at, values) in zip(channel.outputs, columns, strict=True):
        masses = [] if weight is None else [weight[x] * w for x, w in zip(at, values, strict=True)]
        for i, (x, w) in enumerate(zip(at, values, strict=True)):
            backward = masses[i] / sum(masses) if masses else None
            yield label, channel.useful.symbols[x], w / channel.denominator, backward
