"""The state of the page: one user, one table, one choice, at most one task.

The page is drawn from this state alone (`page.rendered`). The server changes it, a button a time:

1. `open_path` or `open_upload` takes a table, and drops whatever belonged to another one.
2. `act` takes the choice from the form and drops the results of another choice (`_change`), so that
   no figure stands beside a choice that it does not belong to. Then it does what the button says.
3. ``bins`` counts at once (`_show_bins`). The buttons of `TASKS` take long, so each starts its
   function in a process of its own (`Work`).
4. The page asks again and again whether the session is `running`. The first time that it is not,
   `_answer` puts the answer of the task into the state: an `Assessed`, the points of the curve, or
   a `Designed`.

A refusal is a sentence in `error`. The choice is then still the one that was typed, unless a field
of it cannot be used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mechdesign.app.assessing import assess_table
from mechdesign.app.choice import PROTECT, RELEASE, Choice
from mechdesign.app.designing import design_channel
from mechdesign.app.form import choice_of_form
from mechdesign.app.memory_table import MemoryTable, read_content, read_path
from mechdesign.app.pictures import (
    Bar,
    ColumnPicture,
    binned_bars,
    merged_bars,
    pictures_of,
)
from mechdesign.app.results import Assessed, CurvePoint, Designed, Download
from mechdesign.app.trade_off import compare_budgets
from mechdesign.app.work import Work
from mechdesign.core.errors import InputError

TASKS: dict[str, tuple[str, Any]] = {
    "assess": ("Assessing the columns", assess_table),
    "curve": ("Comparing budgets", compare_budgets),
    "design": ("Searching for the best channel", design_channel),
}
"""Buttons with a task: its title, and its function."""

BINS = "bins"
"""The button that shows bins."""


class Session:
    """What the page shows.

    Attributes
    ----------
    place : str
        The part of the page that the last action leads to, where the focus goes.
    error : str
        The sentence of a refusal; empty if the last action was done.
    work : Work or None
        The task that runs.
    binned, merged : dict of str to tuple of Bar
        By column, the bins or the merged values whose records were counted last.
    """

    def __init__(self) -> None:
        self.place = "file"
        self.error = ""
        self.work: Work[Any] | None = None
        self.forget()

    def forget(self) -> None:
        """Drop the table and everything that was computed from it."""
        self.cancel()
        self.table: MemoryTable | None = None
        self.has_path = False
        self.choice = Choice()
        self.pictures: tuple[ColumnPicture, ...] = ()
        self.binned: dict[str, tuple[Bar, ...]] = {}
        self.merged: dict[str, tuple[Bar, ...]] = {}
        self._drop_results()
        self.place = "file"

    def _drop_results(self) -> None:
        """Drop what tasks computed from the table."""
        self.assessed: Assessed | None = None
        self.curve: tuple[CurvePoint, ...] = ()
        self.designed: Designed | None = None

    def open_path(self, path: str) -> None:
        """Take the file that the command line names."""
        self._take(read_path(path))
        self.has_path = True

    def open_upload(self, name: str, content: bytes) -> None:
        """Take a file that the browser sends; a file that cannot be used changes nothing.

        While a task runs, none is taken: it would end the search of another window without a word.
        """
        if self.running:
            self._refuse("Something is running: wait for it, or cancel it.")
            return
        try:
            table = read_content(name, content)
        except InputError as error:
            self._refuse(str(error))
            return
        self._take(table)

    def _take(self, table: MemoryTable) -> None:
        """Start anew with another table."""
        # First what may fail: a table that cannot be drawn leaves everything as it was.
        pictures = pictures_of(table)
        self.forget()
        self.error = ""
        self.table = table
        self.pictures = pictures
        self.choice = Choice(roles=dict.fromkeys(table.columns, "leave out"))
        self.place = "roles"

    def act(self, action: str, form: dict[str, str]) -> None:
        """Take the choice of a form and do what its button says."""
        self.error = ""
        if self.table is None:
            self._refuse("Choose a file first.")
            return
        if self.running:
            self._refuse("Something is running: wait for it, or cancel it.")
            return
        try:
            choice = choice_of_form(self.table.columns, form)
            choice.check_numbers()
            # Before the button is looked at: what was typed stays, even if the button is refused.
            self._change(choice)
            if action == BINS:
                self._show_bins()
                return
            if action not in TASKS:
                raise InputError("This button is not known.")
            if action == "assess":
                choice.check_secret()
            else:
                choice.check()
        except InputError as error:
            self._refuse(str(error))
            return
        title, task = TASKS[action]
        table = self.table
        # An assessment looks at all columns; the other tasks get no more than they need, because
        # the table goes through a pipe to the process.
        if action != "assess":
            table = table.with_columns(choice.used)
        self.work = Work(title, task, table, choice)
        self.place = "progress"

    def _change(self, choice: Choice) -> None:
        """Take a choice; results of another one are dropped, so that none stands beside a choice
        that it does not belong to.
        """
        # An assessment depends on the protected columns alone.
        if choice.sensitive != self.choice.sensitive:
            self.assessed = None
        if choice != self.choice:
            self.designed = None
            # The curve has its own budgets, so another factor leaves it as it is; so do the counts.
            if replace(choice, factor=self.choice.factor) != self.choice:
                self.curve = ()
                self.binned = {}
                self.merged = {}
        self.choice = choice

    def _show_bins(self) -> None:
        """Count the records of every bin, and of the values that are merged."""
        table = self.table
        if table is None:
            return
        self.choice.check_secret()
        binned: dict[str, tuple[Bar, ...]] = {}
        for name, bins in self.choice.bins.items():
            if bins and self.choice.roles[name] != PROTECT:
                binned[name] = binned_bars(table, self.choice, name)
        merged: dict[str, tuple[Bar, ...]] = {}
        if self.choice.merge_rare:
            self.choice.check()
            # `check` lets values be merged for one released column alone. Where it has bins, too,
            # the merged ones are shown: they are made of the bins.
            (name,) = self.choice.released
            binned.pop(name, None)
            merged[name] = merged_bars(table, self.choice)
        if not binned and not merged:
            raise InputError(
                "No column has bins, and no rare values are merged: write bins beside a column "
                f"with the role '{RELEASE}', or choose which rare values are merged."
            )
        self.binned = binned
        self.merged = merged
        self.place = "roles"

    @property
    def running(self) -> bool:
        """Whether a task runs; the answer of one that has ended is taken."""
        work = self.work
        if work is None:
            return False
        if work.running:
            return True
        # Forgotten first, so that an answer is taken once.
        self.work = None
        self._answer(work)
        return False

    def _answer(self, work: Work[Any]) -> None:
        """Take the answer of a task that has ended."""
        if work.cancelled:
            self._refuse("Cancelled. Nothing was changed.")
            return
        if work.refusal:
            self._refuse(work.refusal)
            return
        match work.answer:
            case Assessed() as assessed:
                self.assessed = assessed
                self.place = "roles"
            case Designed() as designed:
                self.designed = designed
                self.place = "result"
            case tuple() as curve:
                self.curve = curve
                self.place = "budget"
            case answer:
                raise TypeError(f"a task answered with {type(answer).__name__}")

    def cancel(self) -> None:
        """End the task."""
        if self.work is not None:
            self.work.cancel()
            # Reading it takes the answer: here the remark that the task was cancelled.
            _ = self.running

    def download(self, name: str) -> Download | None:
        """The file of the design with this name; None if there is none."""
        if self.designed is None:
            return None
        for file in self.designed.files:
            if file.name == name:
                return file
        return None

    def _refuse(self, text: str) -> None:
        """Show a sentence instead of doing what was asked."""
        self.error = text
        self.place = "error"
