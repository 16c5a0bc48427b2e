"""What stands in a manifest file, for readers of the data and for the data holder.

Each kind of record has a public form and an internal one, which inherits it and adds what must stay
inside: counts of symbols and outputs, achieved budgets, and hashes of data set and channel file.
`manifest.Manifest` fills them, and `read_manifest` checks a file against them. ::

    PublicManifest      ManifestDocument and, for each channel, PublicColumn
    InternalManifest    ManifestDocument and, for each channel, InternalColumn

The fields of these classes are the format of the files. A public manifest holds, in part::

    {"format": "mechdesign.manifest", "output": "9f86..", "records": 1000, "columns": ["job"],
     "released": [{"channel": "52ab..", "columns": ["job"], "names": ["job"], "form": "label",
                   "notion": {"name": "alip", "eps_l": 1.0, "eps_u": 1.0}}],
     "covers": ["The column 'job' is released through .."], "voids": [..]}

Of a channel, `columns` are the useful columns in the table, `names` those that it released, and
`notion` is the promise. A new entry of the files is a field here, and `Manifest` fills it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from mechdesign.core.documents import FileDocument, read_document
from mechdesign.core.files import PathLike
from mechdesign.core.records import Digest, Record
from mechdesign.jobs.entries import Natural
from mechdesign.release import policies

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
    changed: str = policies.REFUSE
    draws: str = "independent"
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
