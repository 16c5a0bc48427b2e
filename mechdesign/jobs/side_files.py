"""The files that go with an output: a public and an internal manifest, and a codebook.

`Sides` has their places only; a job writes them with its output (`Target.part_of_side`). When a job
runs again and finds its output complete, `hold` decides whether the side files are still those of
the output: manifests name its hash, and a codebook is compared with its text. If one is not, the
job writes all of it again.

*The codebook* is a CSV file that says what the released labels mean. For the output y and each
symbol x that can become it, a line has W(y|x), and P(x|y) by the theorem of Bayes: n(x) W(y|x) /
sum over x' of n(x') W(y|x'), with the counts n of the table. With 30 clerks and 10 nurses in the
table, and a channel that moves one in four to the other label::

    output,job,p_output_given_symbol,p_symbol_given_output
    A,clerk,0.75,0.9
    A,nurse,0.25,0.1
    B,clerk,0.25,0.5
    B,nurse,0.75,0.5

Of boxes it has the given columns, the box and its rows in words::

    output,sex,box,rows,p_output_given_symbol,p_symbol_given_output
    "F, box 1",F,box 1,"job {clerk, nurse}; hours {38, any other}",0.75,
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, sha256_of
from mechdesign.core.integers import IntegerRows
from mechdesign.jobs.manifest_records import Audience, read_manifest

# ----------------------------------------------------------------------------- codebook


def codebook_text(channel: Channel) -> str:
    """One line for each output and each symbol that it can stand for.

    The columns are `output`, the columns of X with the symbol, of boxes `rows`,
    `p_output_given_symbol` (of the channel) and `p_symbol_given_output` (under the table that the
    channel was designed for; empty where it carries none, and of boxes).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    probabilities = ("p_output_given_symbol", "p_symbol_given_output")
    symbols_of: list[tuple[str, ...]] = list(channel.useful.symbols)
    columns_of_symbols = channel.useful.columns
    if channel.coder:
        columns_of_symbols = (*columns_of_symbols, "rows")
        rows = dict(zip(channel.coder.symbols, channel.coder.row_sets, strict=True))
        symbols_of = [(*symbol, rows[symbol]) for symbol in symbols_of]
    writer.writerow(["output", *columns_of_symbols, *probabilities])
    behind: list[list[int]] | None = None
    if channel.joint is not None:
        # The numerators of Bayes, in integers; the denominator of the channel cancels.
        behind = [masses for _, masses in channel.behind]
    columns = IntegerRows.of(channel.rows).columns
    totals = channel.row_totals
    for y, (label, (symbols, values)) in enumerate(
        zip(channel.outputs, columns, strict=True)
    ):
        posterior = [""] * len(symbols)
        if behind is not None:
            masses = behind[y]
            total = sum(masses)
            # The table may have no record of any of these symbols: then there is no posterior.
            if total:
                posterior = [repr(mass / total) for mass in masses]
        for x, w, backward in zip(symbols, values, posterior, strict=True):
            forward = repr(w / totals[x])
            writer.writerow([label, *symbols_of[x], forward, backward])
    return stream.getvalue()


# ------------------------------------------------------------------------------- places


@dataclass(frozen=True)
class Sides:
    """Where the files that go with an output are written; None for those that are not asked for.

    `channel_files` are the files that the channels were read from.
    """

    manifest: PathLike | None = None
    internal: PathLike | None = None
    codebook: PathLike | None = None
    channel_files: tuple[PathLike, ...] = ()

    @property
    def paths(self) -> tuple[PathLike, ...]:
        """The places of all files that are asked for."""
        places = (self.manifest, self.internal, self.codebook)
        return tuple(place for place in places if place is not None)

    @property
    def manifests(self) -> list[tuple[PathLike, Audience]]:
        """The places of the manifests that are asked for, and who reads them."""
        manifests: list[tuple[PathLike, Audience]] = []
        if self.manifest is not None:
            manifests.append((self.manifest, "public"))
        if self.internal is not None:
            manifests.append((self.internal, "internal"))
        return manifests

    def channel_digests(self) -> list[str]:
        """The hashes of the channel files."""
        return [sha256_of(path) for path in self.channel_files]

    def _codebook_bytes(self) -> bytes:
        """What the codebook holds, none if it is not asked for."""
        if self.codebook is None:
            return b""
        return Path(self.codebook).read_bytes()

    def hold(self, output: str, codebook: str | None) -> bool:
        """Whether all are there and belong to the output with this hash.

        `codebook` is the text that a codebook must have.
        """
        try:
            if codebook is not None and self._codebook_bytes() != codebook.encode():
                return False
            for path, audience in self.manifests:
                if read_manifest(path, audience).output != output:
                    return False
            return True
        except (InputError, OSError):
            # Another file has the name, or none has.
            return False
