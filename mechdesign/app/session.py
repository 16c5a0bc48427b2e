"""The state of the page: one user, one table, one choice, at most one task.

The page is drawn from this state alone (`server.rendered`). The server changes it, a button a time:

1. `open_path` or `open_upload` takes a table, and drops whatever belonged to another one.
2. `act` takes the choice from the form and drops the results of another choice (`_change`), so that
   no figure stands beside a choice that it does not belong to. Then it does what the button says.
3. ``bins`` counts at once (`_show_bins`). The buttons of `TASKS` take long, so each starts its
   function in a process of its own (`Work`).
4. The page asks again and again whether the session is `running`. The first time that it is not,
   `_answer` puts the answer of the task into the state: an `Assessed`, a `Designed`, a `Released`,
   or a `Judged`.
5. ``release`` sends the table through the channel of the last design (`_release`), and ``judge``
   attacks what came out. A design of little use is shown without its files until ``accept``.

A refusal is a sentence in `error`. The choice is then still the one that was typed, unless a field
of it cannot be used.

*The button that designs.* Before the search, the whole table is looked at for a column that names
people with several records, as `mechdesign design` does: the promise would be about each record,
and theirs add up.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mechdesign.app.choice import (
    GIVE,
    LEAVE_OUT,
    PROTECT,
    RELEASE,
    SYMBOL,
    Choice,
    choice_of_form,
)
from mechdesign.app.memory_table import MemoryTable, Work, read_content, read_path
from mechdesign.app.pictures import (
    Bar,
    ColumnPicture,
    binned_bars,
    merged_bars,
    pictures_of,
)
from mechdesign.app.releasing import (
    IN_ORDER,
    ORDERS,
    RELEASED,
    assess_table,
    judge_file,
    plan_table,
    release_file,
)
from mechdesign.app.results import (
    Assessed,
    Designed,
    Download,
    Judged,
    Released,
    Say,
)
from mechdesign.app.search import designed
from mechdesign.core.errors import InputError
from mechdesign.leaks.assessment import IDENTIFIER_RECORDS, IDENTIFIER_SHARE
from mechdesign.tables.people import RECORD


def design_channel(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """The channel of one column, of whole rows, or of boxes for the population."""
    choice.check()
    if choice.unit != RECORD and not choice.person:
        say("Looking for people with several records")
        _refuse_people(table, choice)
    return designed(table.with_columns(choice.used), choice, say)


def _refuse_people(table: MemoryTable, choice: Choice) -> None:
    """Raise InputError where a column names people with several records."""
    from mechdesign.leaks.people_notice import people_in

    # One column released alone has a promise for each of its values, whatever it names.
    own = (*choice.given, *choice.released)
    found = people_in(table.frame, choice.sensitive, but=own if len(own) == 1 else ())
    if found is not None:
        sentence = found.sentence(choice.sensitive)
        raise InputError(
            f"{sentence[:1].upper()}{sentence[1:]}, and the records of a person add up. Give that "
            "column the role 'names a person', for a promise on all records of a person together, "
            "or say in step 3 that each record has a promise of its own."
        )


TASKS: dict[str, tuple[str, Any]] = {
    "assess": ("Assessing the columns", assess_table),
    "plan": ("Trying releases", plan_table),
    "design": ("Searching for the best channel", design_channel),
}
"""Buttons with a task: its title, and its function."""

RELEASE_FILE = "release"
"""The button that releases the table through the channel that was designed."""

BUSY = "Something is running: wait for it, or cancel it."
"""What is said to whoever asks for more while a task runs."""

TWICE = (
    "A second release of the same people, with this or any other channel, tells more than each by "
    "itself."
)

OUTDATED = (
    "Steps 2 and 3 no longer say what was designed, so nothing was released: design the channel "
    "again."
)

ARGUMENT = re.compile(r"(, or insist)? \([a-z_]+=[^()]*\)")
"""An argument of Python in a message, such as (bins= for numbers, dates and times)."""

ARCHIVE = "release.zip"
"""All files that are offered, in one."""

JUDGE = "judge"
"""The button that attacks the released file."""

ACCEPT = "accept"
"""The button that offers the files of a design of little use."""

ADVICE = "advice"
"""The button that takes the advice of the plan."""

OTHERS = "others"
"""The button that releases all columns without another role."""

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
        self._released_tables: set[str] = set()
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
        self._drop_design()

    def _drop_design(self) -> None:
        """Drop the design, and what was released through it."""
        self.designed: Designed | None = None
        self.is_accepted = False
        self.order = IN_ORDER
        self.released: Released | None = None
        self.judged: Judged | None = None

    def open_path(self, path: str) -> None:
        """Take the file that the command line names."""
        self._take(read_path(path))
        self.has_path = True

    def open_upload(self, name: str, content: bytes | bytearray) -> None:
        """Take a file that the browser sends; a file that cannot be used changes nothing.

        While a task runs, none is taken: it would end the search of another window without a word.
        """
        if self.running:
            self._refuse(BUSY)
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
        self.choice = Choice(roles=dict.fromkeys(table.columns, LEAVE_OUT))
        self.place = "roles"

    def act(self, action: str, form: dict[str, str]) -> None:
        """Take the choice of a form and do what its button says."""
        self.error = ""
        if self.table is None:
            self._refuse("Choose a file first.")
            return
        if self.running:
            self._refuse(BUSY)
            return
        # Another window may still show the columns of a file that was open before.
        if form.get("file", self.table.sha256) != self.table.sha256:
            self._refuse(
                "Another file was opened in another window, and takes the place of the one that "
                "stood here: this page works with one file at a time."
            )
            return
        if action in (RELEASE_FILE, JUDGE, ACCEPT):
            if action != JUDGE and self._is_another_choice(self.table, form):
                self._refuse(OUTDATED)
                return
            self._act_on_design(action, self.table, form)
            return
        try:
            choice, refusal = choice_of_form(self.table.columns, form, self.choice)
            # Before the button is looked at: what was typed stays, even if the button is refused.
            self._change(self._usable(choice))
            if refusal:
                raise InputError(refusal)
            choice.check_numbers()
            if action == ADVICE:
                self._take_advice()
                return
            if action == OTHERS:
                self._release_others(self.table)
                return
            if action == BINS:
                self._show_bins()
                return
            if action not in TASKS:
                raise InputError("This button is not known.")
            if action == "plan":
                choice.check_records("This")
            if action in ("assess", "plan"):
                choice.check_secret()
            else:
                choice.check()
        except InputError as error:
            self._refuse(str(error))
            return
        title, task = TASKS[action]
        self._start(title, task, self.table)

    def _is_another_choice(self, table: MemoryTable, form: Mapping[str, str]) -> bool:
        """Whether a form has another choice than the one that was designed; then it is taken, and
        the design is dropped. What was released is kept: it cannot be released again.
        """
        is_open = self.designed is not None and self.released is None
        if not is_open or "factor" not in form:
            return False
        choice, refusal = choice_of_form(table.columns, form, self.choice)
        if not refusal and choice == self.choice:
            return False
        self._change(self._usable(choice))
        self._drop_design()
        return True

    def _act_on_design(
        self, action: str, table: MemoryTable, form: Mapping[str, str]
    ) -> None:
        """Release through the last design, attack what was released, or take the design as it
        is.
        """
        if self.designed is None:
            self._refuse("Design a channel first: nothing is released without one.")
            return
        if action == ACCEPT:
            self.is_accepted = True
            self.place = "downloads"
            return
        if not self.is_accepted:
            self._refuse(
                f"{self.designed.useless} To go on nevertheless, ask for its files first."
            )
            return
        text = self.designed.channel_text
        if text is None:
            self._refuse("The design has no channel file: design the channel again.")
            return
        if action == RELEASE_FILE:
            self._release(text, table, form.get("order", IN_ORDER))
        elif self.released is None:
            self._refuse("Release the file first.")
        else:
            released = self.released.file(RELEASED).text
            task = partial(judge_file, text, released)
            self._start(
                "Attacking the file", task, table.with_columns(self.choice.used)
            )

    def _release(self, text: str, table: MemoryTable, order: str) -> None:
        """Release the table through the channel in this text, once."""
        if self.released is not None:
            self._refuse(f"The file is released already: download it. {TWICE}")
            return
        # Another choice, or opening the file again, makes no other people of them.
        if table.sha256 in self._released_tables:
            self._refuse(
                f"These records were released already. {TWICE} If nobody has the first file, end "
                "the page and start it again."
            )
            return
        if order not in ORDERS:
            self._refuse(f"Order of the records: it is one of {', '.join(ORDERS)}.")
            return
        self.order = order
        self._start("Releasing the file", partial(release_file, text, order), table)

    def _start(self, title: str, task: Any, table: MemoryTable) -> None:
        """Start a task."""
        self.work = Work(title, task, table, self.choice)
        self.place = "progress"

    def _take_advice(self) -> None:
        """Give the columns the roles and bins of the plan, and take its budget."""
        plan = None if self.assessed is None else self.assessed.plan
        if plan is None:
            raise InputError("There is no advice yet: ask for it first.")
        roles = dict(self.choice.roles)
        for name, role in roles.items():
            if role == PROTECT:
                continue
            roles[name] = RELEASE if name in plan.released else LEAVE_OUT
            if name in plan.given:
                roles[name] = GIVE
        self._change(
            replace(
                self.choice,
                roles=roles,
                bins={**self.choice.bins, **plan.bins},
                factor=plan.factor,
                missing=SYMBOL if plan.has_gaps else self.choice.missing,
            )
        )
        self.place = "budget"

    def _release_others(self, table: MemoryTable) -> None:
        """Give every column that has no other role the role 'release', but for those that name
        records, and those that hold no values that could be counted.
        """
        roles = dict(self.choice.roles)
        most = table.records
        if most >= IDENTIFIER_RECORDS:
            most = int(IDENTIFIER_SHARE * most)
        for picture in self.pictures:
            is_left_out = roles[picture.name] == LEAVE_OUT
            if is_left_out and 0 < picture.values < most:
                roles[picture.name] = RELEASE
        self._change(replace(self.choice, roles=roles))
        self.place = "roles"

    def _usable(self, choice: Choice) -> Choice:
        """The choice, with the factor as it was where it is no number in range, because the page
        draws it; everything else stays as it was typed.
        """
        if choice.has_factor:
            return choice
        return replace(choice, factor=self.choice.factor)

    def _change(self, choice: Choice) -> None:
        """Take a choice; results of another one are dropped, so that none stands beside a choice
        that it does not belong to.
        """
        # An assessment depends on the protected columns alone.
        if choice.sensitive != self.choice.sensitive:
            self.assessed = None
        if choice != self.choice:
            self._drop_design()
            # Another factor leaves the counts as they are.
            if replace(choice, factor=self.choice.factor) != self.choice:
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
        if self.error == BUSY:
            # It was said to a second click on the same button, and is true no more.
            self.error = ""
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
                self._drop_design()
                self.designed = designed
                self.is_accepted = not designed.useless
                self.place = "result"
            case Released() as released:
                self.released = released
                if self.table is not None:
                    self._released_tables.add(self.table.sha256)
                self.place = "released"
            case Judged() as judged:
                self.judged = judged
                self.place = "judged"
            case answer:
                raise TypeError(f"a task answered with {type(answer).__name__}")

    def cancel(self) -> None:
        """End the task."""
        if self.work is not None:
            self.work.cancel()
            # Reading it takes the answer: here the remark that the task was cancelled.
            _ = self.running

    def download(self, name: str) -> Download | None:
        """The file of the design, or of the release, with this name; None if there is none."""
        for file in self.files:
            if file.name == name:
                return file
        return None

    @property
    def files(self) -> tuple[Download, ...]:
        """The files that are offered: what was released first."""
        files: tuple[Download, ...] = ()
        if self.released is not None:
            files += self.released.files
        if self.judged is not None:
            files += (self.judged.file,)
        if self.designed is not None and self.is_accepted:
            files += self.designed.files
        return files

    def archive(self) -> bytes:
        """All files as a zip archive: a folder to give away, and one to keep."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in self.files:
                folder = "give away" if file.is_public else "keep"
                archive.writestr(f"{folder}/{file.name}", file.text)
        return stream.getvalue()

    def _refuse(self, text: str) -> None:
        """Show a sentence instead of doing what was asked."""
        # What it says of arguments is for programs: the page has its own fields.
        self.error = ARGUMENT.sub("", text)
        self.place = "error"
