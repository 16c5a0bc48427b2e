"""A recipe that files and folders can be released by: what it adds to `recipe.Recipe`.

Channels (`channel_recipe`) and mechanisms for single records are such recipes. `release_file` opens
a file and calls `write_file`, which draws it and enters it in the ledger; around that the recipe
says which side files go with it (`check_sides`) and what a rehearsal reports (`rehearsed`).

The files of a folder are released by `for_folder`, one after the other. Then `split_warning` judges
whether the files tell of what was released, and `folder_result` adds the reports up: three files of
100 records each are one result with 300.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.jobs.entries import Entry
from mechdesign.jobs.file_run import FileRun
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.recipe import Recipe
from mechdesign.jobs.results import Applied, Released
from mechdesign.jobs.side_files import Sides
from mechdesign.leaks.crossing import Crossing


@dataclass(frozen=True, kw_only=True)
class FileRecipe(Recipe):
    """A recipe that files and folders can be released by."""

    @abstractmethod
    def check_sides(self, sides: Sides) -> None:
        """Raise InputError if one of these files does not go with the release."""

    @abstractmethod
    def write_file(self, run: FileRun, ledger: Ledger | None) -> Released:
        """Release a file, entered in the ledger if there is one."""

    def rehearsed(self, entry: Entry, notices: tuple[str, ...]) -> Released:
        """What a rehearsal reports that ended at the entry in the ledger."""
        columns = [name for drawn in entry.drawn for name in drawn.use.columns]
        return Applied(
            entry.records,
            tuple(columns),
            entry.output or "",
            notices=notices,
            people=entry.people,
        )

    def for_folder(self) -> FileRecipe:
        """The recipe for the files of one folder, which it may add up."""
        return self

    @abstractmethod
    def split_warning(
        self, crossing: Crossing, names: Sequence[str], *, looks: int
    ) -> str | None:
        """Why the files `names` that records are in tell of a released column, if they do.

        `crossing` has how often each of its symbols was released in each file; `looks` is the
        number of such columns.
        """

    @abstractmethod
    def folder_result(
        self,
        results: Sequence[Any],
        sha256: str,
        *,
        already: bool,
        notices: tuple[str, ...],
    ) -> Released:
        """What the files of a folder report together."""
