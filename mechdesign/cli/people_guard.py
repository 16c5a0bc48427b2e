"""People in the table of a design whose promise is about records: said, and not written.

`design` looks for a column that names people with several records before it searches
(`PeopleGuard.of`). When the channel is there, `PeopleGuard.check` says what the records of a person
reach together through it, and refuses to write files, unless --person or --unit record was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import parsing, table_options
from mechdesign.cli.console import Reporter
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.leaks.people_notice import PeopleFound

UNSEEN = (
    "nobody looked whether people have several records in this table, since standard input and "
    "URLs are read once: the promise is about each record alone (--person promises for all "
    "records of a person, --unit record says that no person has several)"
)
"""The note on a table that is not looked at."""


@dataclass(frozen=True)
class PeopleGuard:
    """What was found of people; None where there are none, or the user has decided. A table that
    cannot be read once more is `unseen`.
    """

    found: PeopleFound | None
    sensitive: tuple[str, ...]
    writes: bool
    unseen: bool = False

    @classmethod
    def of(
        cls,
        table: table_options.InputTable,
        released: Sequence[str],
        *,
        decided: bool,
        writes: bool,
    ) -> PeopleGuard:
        """Look for people in a table of records.

        Parameters
        ----------
        table : InputTable
        released : sequence of str
            The columns of --release.
        decided : bool
            Whether the user has said what the unit is, with --person or --unit.
        writes : bool
            Whether a file will be written.
        """
        from mechdesign.formats.urls import STANDARD, is_url
        from mechdesign.leaks.people_notice import people_in
        from mechdesign.tables.reading import columns_named

        # Standard input is gone when it was read, and a URL may be large.
        source = table.table
        has_records = not (table.weight or table.contingency or table.probabilities)
        sensitive = parsing.columns("--sensitive", table.sensitive)
        if decided or not has_records or sensitive is None:
            return cls(None, (), writes)
        if source == STANDARD or is_url(source):
            return cls(None, (), writes, unseen=True)
        try:
            header = table.header()
            names = columns_named(sensitive, header)
            useful = parsing.columns("--useful", table.useful)
            own = [*released, *(columns_named(useful, header) if useful else ())]
            # One column released alone has a promise for each of its values, whatever it names;
            # beside others it tells whose they are.
            alone = own if len(own) == 1 else ()
            found = people_in(source, names, table.text(), but=alone)
        except InputError:
            # Whoever reads the table for the design says what is wrong with it.
            return cls(None, (), writes)
        return cls(found, names, writes)

    def check(self, reporter: Reporter, channel: md.Channel | None) -> None:
        """Say what people reach through a channel, and refuse to write it.

        Without a channel, which boxes do not have, only the people are named.
        """
        if self.unseen and self.writes:
            reporter.notices((UNSEEN,))
        if self.found is None:
            return
        from mechdesign.leaks.people_notice import people_notice, reach_in

        reach = None if channel is None else reach_in(self.found, channel)
        notice = people_notice(self.found, self.sensitive, reach)
        if self.writes:
            raise InputError(f"nothing was written: {notice}")
        reporter.notices((notice,))
