"""One file on its way through a release: opened, planned, drawn into a temporary place, and
checked.

`release_file` makes a `FileRun` when the input is open; making it plans the columns, so that what
the header alone shows is refused before any work. The recipe's `write_file`
(`FileRecipe`) then decides the order of the next steps and what the ledger enters, with
these methods of the run:

1. `file_hash` and `settings` are what a job knows the release by.
2. `opened_target` locks the output.
3. `draw` writes the released records to the temporary file, and checks that the input did not
   change meanwhile. With ``--shuffle`` they are written once in order, then shuffled.
4. `refuse_disclosure` judges what was seen on the way, `add_notes` collects notes for the user.
5. `applied` is the report.

*Recipes for files* are channels (`channel_recipe`) and mechanisms for single records.
`release_file` opens a file and calls `write_file`, which draws it and enters it in the ledger;
around that the recipe says which side files go with it (`check_sides`) and what a rehearsal reports
(`rehearsed`).

The files of a folder are released by `for_folder`, one after the other. Then `split_warning` judges
whether the files tell of what was released, and `folder_result` adds the reports up: three files of
100 records each are one result with 300.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import NamelessFile, PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import CUT, Batch, Source
from mechdesign.formats.parquet_sink import free_notes
from mechdesign.jobs.column_plan import Plan, refuse_inner
from mechdesign.jobs.ledger import Entry, Ledger, Settings
from mechdesign.jobs.options import Applied, FileOptions, Released
from mechdesign.jobs.recipe import BadRecord, Drawer, Recipe, TablePart
from mechdesign.jobs.side_files import Sides
from mechdesign.jobs.target import Target
from mechdesign.jobs.writing import FileFormat, schema_of, shuffle_file, write_release
from mechdesign.leaks.evidence import Crossing
from mechdesign.release.identified_draws import REMEMBERED, TWO_SPELLINGS


@dataclass
class FileRun:
    """A file whose input is open and whose columns are planned.

    Attributes
    ----------
    recipe : Recipe
        What it is released by.
    guarded : GuardedInput
        The input with its hash, by which a change while it is read is noticed.
    table : Source
        The same input, open as a table.
    target : path
        Where the output goes, in the given `format`.
    folder : Path or None
        Where temporary files go: the folder of the target, if that is a file.
    sides : Sides
        The files that go with the output.
    files : FileOptions
        How files are read and written.
    plan : Plan
        What becomes of each column.
    """

    recipe: Recipe
    guarded: GuardedInput
    table: Source
    target: PathLike
    format: FileFormat
    folder: Path | None
    sides: Sides
    files: FileOptions
    plan: Plan = field(init=False)
    _notes: list[str] = field(init=False, default_factory=list[str])

    def __post_init__(self) -> None:
        """Plan the columns, and refuse what the header and the schema alone show."""
        if self.sides.codebook is not None and self.recipe.codebook_note is not None:
            self._notes.append(self.recipe.codebook_note)
        schema = schema_of(self.table)
        with errors_naming(self.table.name):
            self.plan = self.recipe.plan(self.table.header)
            if self.files.strict:
                _refuse_unnamed(self.table.header, self.recipe, self.plan)
            if schema is not None and not self.recipe.options.keep_sensitive:
                refuse_inner(
                    schema,
                    {*self.plan.others} - {*self.recipe.options.kept},
                    self.recipe.private_columns,
                    self.recipe.replaced,
                )
        # Without all columns these notes do not stay.
        notes_stay = self.recipe.options.keeps_all and self.format.kind == "Parquet"
        if schema is not None and notes_stay:
            notes = free_notes(schema)
            if notes:
                self._notes.append(
                    f"the file's own notes stay as they are: {listed(notes)}; see that they tell "
                    "nothing of its records"
                )

    def settle(self, recipe: Recipe) -> None:
        """Take on what the recipe decided for the records of the file."""
        self.recipe = recipe

    def parts(self, recipe: Recipe) -> Generator[TablePart]:
        """The records of the file, batch by batch, with the columns that are released."""
        header = self.table.header
        encoded, stored = recipe.drawer(header).reads(schema_of(self.table))
        for batch in self.table.batches(encode=encoded, read=stored):
            yield partial(_column_at, batch, header), batch.num_rows

    def fault(self, error: BadRecord) -> InputError:
        """The error about a record of the file, with its line. To find it the file may be read
        again, so the pass must have ended.
        """
        where = self.table.where(error.position)
        return InputError(f"{where}: {error.what}")

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know so far."""
        return (*self.plan.notices, *self._notes)

    @property
    def columns_before(self) -> tuple[str, ...]:
        """The columns of the input."""
        return tuple(self.table.header)

    @property
    def columns_after(self) -> tuple[str, ...]:
        """The columns of the output that are released or kept."""
        return self.plan.header

    def records_of(self, drawn: int) -> int:
        """The number of records of so many draws."""
        return drawn

    def add_notes(self, notes: Sequence[str]) -> None:
        """Add notes for the user, all of which are errors if the user is strict."""
        self._notes += notes
        self.refuse_notes_if_strict()

    def refuse_notes_if_strict(self) -> None:
        """Raise InputError if there is any note and the user wants none."""
        if self.files.strict and self.notices:
            raise InputError(
                f"{self.table.name}: a note, which --strict makes an error: {self.notices[0]}"
            )

    def file_hash(self, ledger: Ledger) -> str:
        """What the ledger knows these bytes by, read in this way."""
        return ledger.file_hash(self.guarded.sha256, canonical(self._reading))

    @property
    def _reading(self) -> dict[str, Any]:
        """How the text of the input is read, as it stands in the ledger."""
        # Options that are left out are their defaults, so that both have one hash.
        return (self.files.text or TextOptions()).record()

    @property
    def keeps_more(self) -> bool:
        """Whether columns stay that the plan does not know."""
        return False

    def settings(self) -> Settings:
        """What decides, beside data, channels and draws, which bytes are written."""
        # Whatever changes a byte must be here: a run with other options would be taken for one that
        # is done, and its output never written.
        options = self.recipe.options
        settings: Settings = {
            "into": options.into,
            "text": self._reading,
            "compression": self.format.packing,
            "keep_sensitive": options.keep_sensitive,
        }
        # Only where they are used: the entries of earlier versions lack them.
        if options.shuffle:
            settings["shuffle"] = True
        if options.drop:
            settings["drop"] = options.drop
        # Earlier versions kept every column, and their entries say nothing of it.
        if not options.keeps_all:
            settings["keep"] = options.kept
        if self.format.escape:
            settings["escape_formulas"] = True
        if self.format.kind != self.table.kind:
            settings["format"] = self.format.kind
        return settings

    def opened_target(
        self,
        *,
        sources: Sequence[PathLike] = (),
        leftover: bool = False,
        again: bool = False,
        repeatable: bool = False,
    ) -> Target:
        """The target, to be used in a `with` block; `sources` are further files that it must not
        replace.
        """
        private: tuple[PathLike, ...] = ()
        if self.sides.internal is not None:
            private = (self.sides.internal,)
        return Target(
            self.target,
            force=self.files.force,
            sources=(self.guarded.path, *sources),
            sides=self.sides.paths,
            private=private,
            leftover=leftover,
            again=again,
            repeatable=repeatable,
        )

    def draw(
        self,
        out: Target,
        drawer: Drawer,
        inspect: Callable[[Batch], None] | None = None,
    ) -> int:
        """Write the released file to its temporary place; the number of records. `inspect` sees
        every batch.
        """
        if drawer.recipe.options.shuffle:
            records = self._draw_shuffled(out, drawer, inspect)
        else:
            records = self._write(drawer, out.part, self.format, inspect)
        if self.table.cut:
            self._add_once(CUT)
        # It was told when it was read, so it is no note of the run.
        if self.files.strict and self.table.hidden_note is not None:
            raise InputError(
                f"a note, which --strict makes an error: {self.table.hidden_note}"
            )
        for note in drawer.type_notes:
            self._add_once(note)
        for release in drawer.releases:
            # An unusual spelling and the plain one in one file would be one record with two draws.
            if release.seen.has_any(release.spellings.plain):
                raise InputError(f"{self.table.name}: {TWO_SPELLINGS}")
            if release.seen.full or release.earlier.full:
                self._add_once(_FORGOTTEN)
        # Only now: the input must not have changed while any of it was read.
        self.guarded.check()
        return records

    def _write(
        self,
        drawer: Drawer,
        target: Path,
        format: FileFormat,
        inspect: Callable[[Batch], None] | None,
    ) -> int:
        """Draw the records in their order and write them; their number."""
        return write_release(drawer, self.table, target, format, self._advance, inspect)

    def _draw_shuffled(
        self,
        out: Target,
        drawer: Drawer,
        inspect: Callable[[Batch], None] | None,
    ) -> int:
        """The same in random order, which follows from the key and the data: written once in
        order, then shuffled.
        """
        # The same order whenever the same bytes are released, and another one for other bytes.
        unpacked = replace(self.format, packing=None)
        key = drawer.recipe.keys[0].derived("order", self.guarded.sha256)
        with closing(NamelessFile(self.folder)) as ordered:
            records = self._write(drawer, ordered.path, unpacked, inspect)
            shuffle_file(
                ordered.path,
                out.part,
                key,
                self.format.text,
                self.format.packing,
                self.folder,
            )
        return records

    def _add_once(self, note: str) -> None:
        """Add a note, once however often the file is drawn."""
        if note not in self._notes:
            self._notes.append(note)

    def _advance(self, share: float) -> None:
        """Tell the progress; the first half of the way was hashing the input."""
        if self.files.progress is not None:
            size = self.guarded.size
            self.files.progress(size + round(share * size), 2 * size)

    def refuse_disclosure(self, drawer: Drawer) -> None:
        """Refuse kept columns, and an order of the records, that give away what is released."""
        drawer.checks.refuse(f"{self.table.name}: ")
        self._notes += drawer.checks.notes

    def applied(
        self,
        records: int,
        sha256: str,
        ledger: str | None,
        *,
        already: bool = False,
        whole_file: bool = False,
    ) -> Applied:
        """What was written through channels."""
        return Applied(
            records=records,
            columns=self.plan.released,
            sha256=sha256,
            ledger=ledger,
            already=already,
            notices=self.notices,
            kept=self.plan.others,
            sensitive=self.plan.sensitive,
            draws=self.recipe.options.draws,
            whole_file=whole_file,
            law_kept=self.recipe.law_kept,
        )


def _column_at(batch: Batch, header: Sequence[str], number: int) -> Any:
    """A column of a batch by its number."""
    return batch.column(header[number])


def _refuse_unnamed(header: Sequence[str], recipe: Recipe, plan: Plan) -> None:
    """Raise InputError at a column that nobody named: exactly these columns in, exactly these out.

    One that appears overnight may be anything, and is published where all columns are kept.
    """
    options = recipe.options
    named = {
        *recipe.useful_columns,
        *recipe.private_columns,
        *options.identifiers,
        *options.kept,
        *options.drop,
    }
    unnamed = [name for name in header if name not in named]
    if not unnamed:
        return
    fate = "is not named anywhere"
    if unnamed[0] in plan.others:
        fate = "is kept without being named"
    raise InputError(
        f"the column {quoted(unnamed[0])} {fate}, and --strict wants every column of the input "
        "named: keep it (--keep), or leave it out (--drop), by its name"
    )


_FORGOTTEN = (
    f"there are more than {REMEMBERED:,} identifiers: whether one of the later ones comes again "
    "with another symbol, and so uses its random number twice, was not looked at"
)


# -------------------------------------------------------------------- recipes for files


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
