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

*Manifests* are for readers of the data, and for the data holder. Each kind of record has a public
form and an internal one, which inherits it and adds what must stay inside: counts of symbols and
outputs, achieved budgets, and hashes of data set and channel file. `manifest.Manifest` fills them,
and `read_manifest` checks a file against them. ::

    PublicManifest      ManifestDocument and, for each channel, PublicColumn
    InternalManifest    ManifestDocument and, for each channel, InternalColumn

The fields of these classes are the format of the files. A public manifest holds, in part::

    {"format": "mechdesign.manifest", "output": "9f86..", "records": 1000, "columns": ["job"],
     "released": [{"channel": "52ab..", "columns": ["job"], "names": ["job"], "form": "label",
                   "notion": {"name": "alip", "eps_l": 1.0, "eps_u": 1.0}}],
     "covers": ["The column 'job' is released through .."], "voids": [..]}

Of a channel, `columns` are the useful columns in the table, `names` those that it released, and
`notion` is the promise. A new entry of the files is a field here, and `Manifest` fills it.

*Sentences* say what the guarantee covers, and what voids it. The wording is in ``manifest.jinja``,
one macro for each kind of statement and one sentence a line. The functions here compute what the
macros depend on, call one, and split its text into lines. Where the user asked for empty cells to
be drawn from P(x), for instance, the macro `covers` adds "A record with an empty cell gets a value
drawn as for a record of which nothing is known, ..".

- `covers` is about one channel: against whom the promise holds, and whether for the table or for
  the population.
- `voids` is about the release as a whole. It begins with what this release did that voids the
  promise or weakens it: a seed in place of a secret key, a second draw, or a sensitive column ("The
  column .. is left in the data, though sensitive: nothing is protected."). Then it says what else
  would void the promise, such as another release of the same records.

Sentences in the public manifest depend on the channel and the options alone. With `internal` they
may have figures that were computed from the table.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from mechdesign.auditing.either import audit_boxes
from mechdesign.auditing.population_promise import population_promise
from mechdesign.auditing.stated import has_table
from mechdesign.channel.channel import Channel
from mechdesign.core.documents import Digest, FileDocument, Record, read_document
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, sha256_of
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import (
    at_most,
    factor_at_least,
    factor_at_most,
    listed,
    percent_of,
    quoted,
)
from mechdesign.jobs.ledger import Natural
from mechdesign.release import identified_draws, released_values, samplers
from mechdesign.tables.confidence import scope_of
from mechdesign.tables.uncovered_values import uncovered_sentence

# ------------------------------------------------------------------------------ records

Audience: TypeAlias = Literal["public", "internal"]


class PublicColumn(Record):
    """One channel, for readers of the data."""

    channel: Digest
    columns: tuple[str, ...]
    names: tuple[str, ...]
    form: str
    unknown: str
    missing: str
    normalise: str
    trim: bool = False
    missing_codes: tuple[str, ...] = ()
    changed: str = samplers.REFUSE
    draws: str = "independent"
    earlier_count: Natural = 0
    law_kept: bool = False
    given: tuple[str, ...] = ()
    promise: str = "total"
    sensitive: tuple[str, ...] | None
    notion: dict[str, Any] | None


class SymbolCount(Record):
    """Records of one symbol of X, which is given as one text for each column."""

    symbol: tuple[str, ...]
    records: Natural


class ValueCount(Record):
    """Records of one released value, given as one text for each released column."""

    value: tuple[str, ...]
    records: Natural


class VariableCounts(Record):
    """Counts of a variable that records are coded by: the useful columns together, or each given
    column of boxes and each column that they are made of.
    """

    columns: tuple[str, ...]
    symbols: tuple[SymbolCount, ...]
    empty_cells: Natural
    unknown_symbols: Natural
    outputs: tuple[ValueCount, ...]


class InternalColumn(PublicColumn):
    """One channel, for the data holder: also counts, achieved budgets, and the file."""

    channel_file: Digest | None
    achieved: dict[str, Any] | None
    table_records: Natural | None
    zero_cells: Natural | None
    counts: tuple[VariableCounts, ...]
    changes: Natural = 0


class EarlierRelease(Record):
    """A release of the same records with another draw."""

    draw: Natural
    target: str
    output: Digest | None


class ManifestDocument(FileDocument):
    """What both manifests hold."""

    output: Digest
    records: Natural
    columns: tuple[str, ...]
    columns_before: tuple[str, ...]
    identity: tuple[str, ...]
    draw: Natural
    insecure_seed: bool
    shuffled: bool = False
    kept_private: tuple[str, ...] = ()
    other_channels: bool = False
    together: bool = False
    whole_file: bool = False
    notes: tuple[str, ...] = ()
    versions: dict[str, str]
    covers: tuple[str, ...]
    voids: tuple[str, ...]


class PublicManifest(ManifestDocument):
    """What goes out with the data."""

    FORMAT: ClassVar[str] = "mechdesign.manifest"
    WHAT: ClassVar[str] = "manifest"

    released: tuple[PublicColumn, ...]


class InternalManifest(ManifestDocument):
    """What stays with the data holder."""

    FORMAT: ClassVar[str] = "mechdesign.internal-manifest"
    WHAT: ClassVar[str] = "internal manifest"

    released: tuple[InternalColumn, ...]
    dataset: Digest
    earlier: tuple[EarlierRelease, ...]


def read_manifest(
    path: PathLike, audience: Audience
) -> PublicManifest | InternalManifest:
    """Read a manifest.

    Raises
    ------
    InputError
        If the file is missing, damaged or no manifest for this audience.
    """
    if audience == "internal":
        return read_document(path, InternalManifest)
    return read_document(path, PublicManifest)


# ---------------------------------------------------------------------------- sentences

OF_RECORDS = "each record alone, and about the released row alone"
"""What a promise about rows is about, in the words of the template."""

OF_PEOPLE = "all records of a person together, and about their released rows alone"
"""The same where people have several records."""

ONE_RELEASE = (
    "It is about the records of this file: with a release of other records of the same people, of "
    "another time or in another file, it tells more."
)
"""What no promise for people covers by itself: nights add up."""

BOXES_OF_PEOPLE = {
    "each record alone, and about the whole released row": (
        "all records of a person together, and about all their released rows"
    ),
    "nothing else of the record": "nothing else of the person",
    "the records of its table are a sample of": "the people of its table are a sample of",
    "independent records, and applies to a new record": (
        "independent people, and applies to a new person"
    ),
}
"""Words of the template for boxes of rows, and those for people with several records."""


def covers(
    column: PublicColumn,
    channel: Channel,
    *,
    internal: bool,
    whole_file: bool,
    checked: bool | None = None,
) -> list[str]:
    """What the promise for one channel's columns is.

    `whole_file` is whether it is proven for a reader of the whole file, too, and `checked` whether
    it was verified before the release, by default where the channel has its table.
    """
    if not channel.takes_table:
        return _box_covers(column, channel, internal=internal, checked=checked)
    # A recipe refuses a channel whose table disproves its promise, so a table is a proof here.
    if checked is None:
        checked = has_table(channel)
    # A design for the population says so itself. Of one for the table alone, insiders read what is
    # left of its promise for the population that the table is a sample of.
    confidence = channel.record.confidence
    scope: Sequence[str] = []
    population = None
    if confidence is not None:
        records = None
        if internal and channel.joint is not None:
            records = channel.joint.records
        scope = scope_of(confidence, records)
    elif internal and channel.joint is not None:
        joint = channel.joint
        if joint.is_sample and channel.published is None:
            population = population_promise(channel, joint)
    text = template().covers(column, internal, checked, scope, population, whole_file)
    if channel.useful.people is not None:
        return [*_sentences(str(text).replace(OF_RECORDS, OF_PEOPLE)), ONE_RELEASE]
    return _sentences(text)


def _box_covers(
    column: PublicColumn,
    channel: Channel,
    *,
    internal: bool,
    checked: bool | None = None,
) -> list[str]:
    """What the promise of a channel of boxes is, and which sensitive symbols are one value in it.

    They are drawn independently, so that nothing is claimed of a whole file. Insiders read the
    exact figures for the population and for the table.
    """
    level = percent_of(channel.boxed.claims.level)
    if checked is None:
        checked = has_table(channel)
    text = template().covers_boxes(column, checked, level, channel.fills)
    sentences = _sentences(text)
    if channel.people is not None:
        for of_record, of_person in BOXES_OF_PEOPLE.items():
            sentences = [text.replace(of_record, of_person) for text in sentences]
        sentences.append(ONE_RELEASE)
    records = None
    if internal and channel.box_utility is not None:
        sentences.append(_box_figures(channel))
        records = channel.box_utility.records
    sentences.append(uncovered_sentence(channel.boxed.claims.level, records))
    for groups in channel.boxed.together_texts:
        for group in groups:
            sentence = f"Sensitive values are {group}; nothing is promised of one against another."
            if sentence not in sentences:
                sentences.append(sentence)
    return sentences


def _box_figures(channel: Channel) -> str:
    """What holds for the population and for the table, side by side."""
    verdict = audit_boxes(channel)
    population = verdict.achieved
    table = verdict.on_table
    # The verdict on boxes has both.
    assert table is not None
    return (
        f"In the population: eps_l {at_most(population.eps_l)}, eps_u {at_most(population.eps_u)}; "
        f"on the {verdict.records:,} records of the proof: eps_l {at_most(table.eps_l)}, "
        f"eps_u {at_most(table.eps_u)} (nats, rounded up)."
    )


class ReleaseFacts(Protocol):
    """What the sentences on a release depend on, but for its channels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the output."""
        ...

    @property
    def kept_private(self) -> tuple[str, ...]:
        """Sensitive columns that were left in the data."""
        ...

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a record."""
        ...

    @property
    def draw(self) -> int:
        """The number of other draws of the same records."""
        ...

    @property
    def other_channels(self) -> bool:
        """Whether the records were released through other channels, too, which no promise of these
        counts.
        """
        ...

    @property
    def together(self) -> bool:
        """Whether the promise of one of several channels is about all of them together."""
        ...

    @property
    def insecure_seed(self) -> bool:
        """Whether the draws come from a number and not from a secret key."""
        ...

    @property
    def shuffled(self) -> bool:
        """Whether the records are in random order."""
        ...


def voids(manifest: ReleaseFacts, uses: Sequence[PublicColumn]) -> list[str]:
    """What voids the promise: first what is the case here, then what may be.

    The columns of the output are those released, sensitive ones that were left, useful ones that
    stand unchanged beside their release, and others, about which nothing is promised.
    """
    released: list[str] = []
    useful: dict[str, None] = {}
    for use in uses:
        released += use.names
        useful.update(dict.fromkeys(use.columns))
    beside = [
        name for name in useful if name in manifest.columns and name not in released
    ]
    # Nothing is promised about what is left.
    protected = {*released, *manifest.kept_private, *beside}
    others = [name for name in manifest.columns if name not in protected]
    text = template().voids(manifest, uses, [*useful], beside, others)
    return str(text).splitlines()


def _sentences(text: Any) -> list[str]:
    """The lines of a macro, without those that a macro inside it left empty."""
    return [line for line in str(text).splitlines() if line]


@cache
def template() -> Any:
    """The template, each macro of which gives sentences, one a line."""
    from jinja2 import Environment, StrictUndefined

    folder = files("mechdesign.jobs")
    text = folder.joinpath("manifest.jinja").read_text(encoding="utf-8")
    environment: Any = Environment(undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {
        "listed": listed,
        "quoted": quoted,
        "at_most": factor_at_most,
        "at_least": factor_at_least,
    }
    environment.globals |= {
        "changes": identified_draws,
        "policies": samplers,
        "values": released_values,
    }
    # A line that begins with blanks goes on with the line before it.
    return environment.from_string(re.sub(r"\n +", " ", text)).module


# -------------------------------------------------------------------------------- files

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
    columns_of_symbols, symbols_of = channel.described_symbols
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
