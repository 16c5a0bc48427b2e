"""Which draw of each channel a data set gets, to judge by the releases in the ledger.

This keeps the half of the promise that says: the same record gets the same draw. A job is one key,
and a draw of it is a number; the draw of a record follows from both. `DrawChoice.draws` looks for
the releases of the same data set (`is_of_data_set`) and repeats, channel by channel, the job and
the draw of the last one. Where there is none, the job gets a new name and the draw the number 0.
With a fresh draw the number goes up by one.

For example, three runs on a file by row number, the last with a fresh draw, use ::

    rows 5f0c..., draw 0        nothing is known: a new job
    rows 5f0c..., draw 0        the same bytes, or the same records in the same order
    rows 5f0c..., draw 1        asked for (--fresh-draw)

Nothing here writes to the ledger: `job` enters what was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.core.errors import InputError
from mechdesign.core.json_values import canonical
from mechdesign.core.wording import listed
from mechdesign.formats.cell_forms import CellForm
from mechdesign.formats.census import Content
from mechdesign.jobs.entries import FINISHING, Drawn, Entry, Use
from mechdesign.release.policies import REFUSE


@dataclass(frozen=True, kw_only=True)
class DrawChoice:
    """What decides which draws a data set gets, but for its content.

    The content is a parameter of the methods, since that of a file is known only when it was drawn.

    Attributes
    ----------
    uses : sequence of Use
        How each channel is used.
    channel_files : sequence of str or None
        The file of each channel, where it was read from one.
    identity : tuple of str
        The columns that identify a record; none where its row number does.
    file : str or None
        The hash of the data set's bytes, as the ledger knows it.
    fresh_draw : bool
        Whether to draw anew what was released before.
    """

    uses: Sequence[Use]
    channel_files: Sequence[str | None]
    identity: tuple[str, ...]
    file: str | None
    fresh_draw: bool

    def draws(
        self, entries: Sequence[Entry], content: Content | None
    ) -> tuple[Drawn, ...]:
        """The draws of the data set, one for each use.

        Parameters
        ----------
        entries : sequence of Entry
            All releases in the ledger, in their order.
        content : Content or None
            The hashes of the records, where they are known.

        Raises
        ------
        InputError
            If a repeated draw would meet other symbols of the same records.
        """
        released = [entry for entry in entries if self.is_of_data_set(entry, content)]
        draws: list[Drawn] = []
        for use, channel_file in zip(self.uses, self.channel_files, strict=True):
            job, draw = self._job_and_draw(use, released, content)
            draws.append(Drawn(use=use, job=job, draw=draw, channel_file=channel_file))
        return tuple(draws)

    def is_of_data_set(self, entry: Entry, content: Content | None) -> bool:
        """Whether a release has the keys of this data set."""
        # With an identity by columns all data sets share one job: a record keeps its draw in each.
        if self.identity or entry.identity:
            return entry.identity == self.identity
        # By row number a record is its place, so the order must be the same.
        if content is not None:
            for reading in content.readings:
                if entry.ordered == reading.ordered:
                    return True
        return self.file is not None and entry.file == self.file

    def _job_and_draw(
        self, use: Use, released: Sequence[Entry], content: Content | None
    ) -> tuple[str, int]:
        """The job and the number of the draw of one channel: those of the last release through it,
        or first or further ones.
        """
        last: Entry | None = None
        earlier: list[Drawn] = []
        for entry in released:
            old = entry.of(use.channel)
            if old is not None:
                earlier.append(old)
                last = entry
        if last is None:
            return self._new_job(content), 0
        job = earlier[-1].job
        # Draws are numbered from 0 within a job; without a fresh draw the latest one is repeated.
        draw = max(old.draw for old in earlier if old.job == job)
        # A run that was killed on the way to a fresh draw is finished first, with that draw.
        finishing_fresh = last.fresh and last.state == FINISHING
        if self.fresh_draw and not finishing_fresh:
            draw += 1
        for old in earlier:
            if old.job == job and old.draw == draw:
                check_treatment(old.use, use)
        return job, draw

    def _new_job(self, content: Content | None) -> str:
        """The name of a job that the ledger does not have yet; keys are derived from it."""
        if self.identity:
            return f"id {canonical(self.identity)}"
        rows = self.file
        if rows is None and content is not None:
            rows = content.ordered
        return f"rows {rows}"


def check_uses(uses: Sequence[Use]) -> None:
    """Refuse a channel that is applied to two columns of one data set."""
    by_channel: dict[str, Use] = {}
    for use in uses:
        first = by_channel.setdefault(use.channel, use)
        if first is not use:
            raise InputError(
                f"the same channel cannot be applied to {listed(first.columns)} and to "
                f"{listed(use.columns)} in one job: both would get the same random numbers; "
                "release them in two jobs (--ledger)"
            )


def check_treatment(old: Use, use: Use) -> None:
    """Refuse to read the same channel's symbols in another way than before.

    Two symbols of a record that meet one random number have outputs that depend on each other
    through it, and can tell more of the symbols than both promise. What is published for a record
    without a symbol may change: its random number meets no second symbol then.
    """
    if old.columns != use.columns:
        raise InputError(
            f"this channel was applied to {listed(old.columns)} before; on {listed(use.columns)} "
            "it would use the same random numbers again: draw anew (--fresh-draw) if that is "
            "another column"
        )
    if old.draws != use.draws:
        raise InputError(
            f"{listed(use.columns)} was released with {old.draws} draws before; {use.draws} draws "
            "would be a second draw of the same records: say so (--draws "
            f"{old.draws}), or draw anew (--fresh-draw)"
        )
    # If unknown symbols were refused then and are now, all symbols are known to both
    # normalisations.
    both_refuse = old.unknown == REFUSE and use.unknown == REFUSE
    old_form = _form_of(old)
    form = _form_of(use)
    if old_form != form and not both_refuse:
        raise InputError(
            f"{listed(use.columns)} was released with the normalisation {old_form} before, "
            f"not {form}, which gives some records another symbol; keep it, or draw anew "
            "(--fresh-draw)"
        )


def _form_of(use: Use) -> CellForm:
    """The form in which a use compared symbols."""
    return CellForm(
        normalise=use.normalise, trim=use.trim, missing_codes=use.missing_codes
    )
