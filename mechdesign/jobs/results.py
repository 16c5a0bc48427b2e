"""What the release of a file or folder reports.

`Released` is what callers may rely on, whatever was released; `Applied` is the report of channels,
and a mechanism for single records has its own (`nonstochastic`). After ``job`` was released and
``age`` kept, for example, `columns` is ``("job",)`` and `kept` is ``("age",)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Released(Protocol):
    """What every release of a file reports."""

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        ...

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of the output's bytes."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know."""
        ...

    @property
    def already(self) -> bool:
        """Whether an earlier run of the same job had written all of it."""
        ...


@dataclass(frozen=True)
class Applied:
    """What was written through channels.

    Attributes
    ----------
    records : int
    columns : tuple of str
        The released columns.
    sha256 : str
        Of the output's bytes.
    ledger : str or None
        The place of the ledger that the release is entered in.
    already : bool
        Whether an earlier run of the same job had written all of it.
    notices : tuple of str
        What the user should know.
    kept : tuple of str
        The columns that stay as they were, which the promise does not cover.
    sensitive : tuple of str
        The sensitive columns, by the names that they have in the table if it has them.
    draws : {"fixed", "independent"} or None
        How the records were drawn; None where the recipe does not say.
    whole_file : bool
        Whether the promise is proven for a reader of the whole file, too.
    law_kept : bool or None
        Whether released rows have the frequencies of the channel's table; None for labels.
    people : int or None
        The number of people whose records these are; None where each record is one of its own.
    """

    records: int
    columns: tuple[str, ...]
    sha256: str
    ledger: str | None = None
    already: bool = False
    notices: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    draws: str | None = None
    whole_file: bool = False
    law_kept: bool | None = None
    people: int | None = None
