"""A mechanism for single records as a recipe: each number is replaced by the middle of its cell.

A recipe tells the jobs of files and folders (`mechdesign.jobs`) what a release does:

- `NumbersRecipe.plan` says what becomes of each column, and `drawer` replaces the numbers part by
  part (`NumbersDrawer`).
- `write_file` releases a file: numbers, checks of disclosure, the mechanism file beside it, the
  ledger, and at last the name of the target.
- `for_folder`, `split_warning` and `folder_result` join the files of a folder.
- `release_table` releases a data frame, and enters it in the ledger.

Nothing is drawn, so no key and no identity is needed. The promise of an answer assumes that the
place of its record discloses nothing of the value: a file that is sorted by its numbers is refused,
and a folder whose files have ranges of their own, such as 0 to 10 and 10 to 20, gets a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mechdesign.core.documents import document_text
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most, quoted
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.urls import FRAME, place_of
from mechdesign.jobs.column_plan import Plan, make_plan
from mechdesign.jobs.file_run import FileRecipe, FileRun
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import ColumnGroup
from mechdesign.jobs.recipe import (
    ContentOf,
    Drawer,
    Frame,
)
from mechdesign.jobs.side_files import Sides
from mechdesign.leaks.crossing import Crossing
from mechdesign.leaks.evidence import decisive, log_evidence
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.numbers_drawer import NumbersDrawer
from mechdesign.nonstochastic.release_answers import RangeRelease, Tally, charged
from mechdesign.release.drawing import key_of

DRAW_OPTIONS = ("key", "form", "policy", "row_numbers", "changed", "fresh_draw")
"""The options of a release that are about draws."""


@dataclass(frozen=True, kw_only=True)
class NumbersRecipe(FileRecipe):
    """A mechanism for single records with the options of a release.

    `tally` adds up the files of a folder; None for a single table.
    """

    draws: ClassVar[bool] = False

    mechanism: MechanismFile
    tally: Tally | None = None

    @classmethod
    def of(cls, mechanism: MechanismFile, options: ReleaseOptions) -> NumbersRecipe:
        """The recipe of a mechanism for single records.

        Raises
        ------
        InputError
            If the mechanism answers for groups, or an option is about draws.
        """
        if mechanism.query != "identity":
            raise InputError(
                f"this mechanism answers for groups ({mechanism.query}), and releases no column of "
                "single records; apply it to a whole table (`apply`, or answer_groups)"
            )
        plain = ReleaseOptions()
        given: list[str] = []
        for name in DRAW_OPTIONS:
            if getattr(options, name) != getattr(plain, name):
                given.append(name)
        if given:
            raise InputError(f"a mechanism draws nothing: leave out {', '.join(given)}")
        if len(options.identifiers) > 1:
            raise InputError(
                "a mechanism has one column that identifies individuals; name one (--identity)"
            )
        # The key is for a random order of the records alone.
        keys = (key_of(None, options.insecure_seed),)
        return cls(keys=keys, options=options, mechanism=mechanism)

    @property
    def column(self) -> str:
        """The column of numbers, by its name in the table."""
        return self.options.renamed.get(self.mechanism.column, self.mechanism.column)

    @property
    def private_columns(self) -> list[str]:
        """The correlated columns: a mechanism has no sensitive ones."""
        return list(self.options.correlated)

    @property
    def useful_columns(self) -> list[str]:
        """The column of numbers."""
        return [self.column]

    def plan(self, header: Sequence[Any]) -> Plan:
        """What becomes of each column of a table."""
        group = ColumnGroup((self.mechanism.column,), sensitive=())
        return make_plan([group], header, self.options)

    def drawer(self, header: Sequence[Any]) -> NumbersDrawer:
        """The drawer of the parts of a table with this header."""
        return NumbersDrawer(self, self.mechanism, self.tally, header)

    def check_sides(self, sides: Sides) -> None:
        """Refuse all side files but the mechanism file."""
        if sides.codebook is not None or sides.internal is not None:
            raise InputError(
                "a mechanism has neither codebook nor internal manifest, only its own file "
                "(--manifest)"
            )

    def write_file(self, run: FileRun, ledger: Ledger | None) -> RangeRelease:
        """Release a file; the ledger adds up the bits of the column of these records."""
        census: RecordCensus | None = None
        if ledger is not None:
            census = RecordCensus(ledger.hasher)
        # Nothing is drawn, so the same job writes the same bytes.
        with run.opened_target(sources=run.sides.channel_files, repeatable=True) as out:
            drawer = self.drawer(run.table.header)
            if census is None:
                run.draw(out, drawer)
            else:
                run.draw(out, drawer, census.add)
            run.refuse_disclosure(drawer)
            result = drawer.result(out.seal())
            run.add_notes(result.notices)
            result = replace(result, notices=run.notices)
            if run.sides.manifest is not None:
                text = document_text(result.mechanism.document)
                place = out.part_of_side(run.sides.manifest)
                place.write_text(text, encoding="utf-8")
            out.refuse_others()
            # The ledger first: a crash between the two charges for a release that is not there,
            # and never leaves a release that is not charged.
            if ledger is not None and census is not None:
                try:
                    result = charged(
                        ledger,
                        census.content(),
                        result,
                        source=run.guarded.name,
                        target=place_of(run.target),
                    )
                except Rehearsed:
                    # A rehearsal ends at the entry, before anything is written.
                    return result
            out.commit()
        return result

    def for_folder(self) -> NumbersRecipe:
        """The recipe for all files of a folder, whose answers are added up."""
        return replace(self, tally=Tally(self.mechanism, self.column))

    def split_warning(
        self, crossing: Crossing, names: Sequence[str], *, looks: int
    ) -> str | None:
        """Warn of files that were divided by the number itself.

        Files of months may have other numbers each. But the name of a file discloses the number
        where each file begins at or above the end of the one before.
        """
        numbers = np.array(
            [float(symbol or "nan") for symbol in crossing.symbols.number_of]
        )
        files, symbols, counts = crossing.table()
        ranges: list[tuple[float, float]] = []
        for name in names:
            inside = numbers[symbols[files == crossing.values.number_of[name]]]
            if np.isfinite(inside).any():
                ranges.append((np.nanmin(inside), np.nanmax(inside)))
        ranges.sort()
        if len(ranges) < 2:
            return None
        for (_, largest), (smallest, _) in pairwise(ranges):
            if smallest < largest:
                return None
        # Few records may be in order by chance.
        if not decisive(log_evidence(files, symbols, counts)):
            return None
        return "each file has numbers of its own"

    def folder_result(
        self,
        results: Sequence[Any],
        sha256: str,
        *,
        already: bool,
        notices: tuple[str, ...],
    ) -> RangeRelease:
        """The result of all files of a folder together."""
        if self.tally is None:
            raise TypeError("the results of a folder come from its own recipe")
        return replace(self.tally.result(sha256), notices=notices)

    def for_lazy_table(self, header: Sequence[Any]) -> NumbersRecipe:
        """The recipe itself: without draws a lazy table has the same answers at every reading."""
        if self.options.ledger is not None:
            raise InputError(
                "a ledger adds up the releases of records, and a lazy table gives it none: leave "
                "it out"
            )
        return self

    def release_table(
        self,
        header: Sequence[Any],
        release: Callable[[Drawer], Frame],
        content: ContentOf,
    ) -> tuple[Frame, tuple[str, ...]]:
        """The release of a whole table, entered in the ledger of the options if there is one."""
        drawer = self.drawer(header)
        released = release(drawer)
        result = drawer.result(None)
        if self.options.ledger is None:
            return released, ()
        ledger = Ledger(self.options.ledger)
        hashed, _ = content(ledger.hasher, ())
        result = charged(ledger, hashed, result, source=FRAME, target=FRAME)
        if result.releases == 1:
            return released, ()
        notice = (
            f"all {result.releases} releases of {quoted(result.column)} of these records together "
            f"disclose at most {at_most(result.releases_epsilon or 0)} bits of one individual"
        )
        return released, (notice,)
