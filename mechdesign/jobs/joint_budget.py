"""The budget of several draws of the same records together.

It is the joint leakage of their channels (`auditing.joint_leakage`): the largest gain and loss of
P(s | y1, .., yk) against P(s), where each draw y is independent of the others given the record. It
is exact for two draws; for more it may be a proven bound. A fair bit that is released as it is with
the probability 3/4 has eps_u = log(0.75 / 0.5) = 0.41; two draws of it, log(0.9 / 0.5) = 0.59. A
single draw of a channel for boxes has the budget of that channel's own audit.

`joint_budget` counts the different draws, looks for their channels by digest, at hand or in the
files that the ledger names, and composes them. Whatever prevents that is no error: the budget is
None, and the sentence gives the reason. Three releases of which two repeated one draw, for example,
are two draws, and have the joint leakage of the channel with itself.

`local_budget` is another bound, by the channel alone: what one draw tells at most of anything.

*Releases of which nothing is drawn.* Whatever the value of one individual, several such releases
together have at most as many possible outputs as the product of their numbers (Farokhi 2019,
Theorem 6); the logarithm of the product to base 2 is what they tell in bits. An individual that
takes part in k answers of one release counts with its k-th power. For example, salaries in 16 cells
and, later, in 10 other cells tell at most log2(160) = 7.33 bits of one salary. The same release of
the same records tells nothing new.

`enter_counted` enters such a release, and finds those of the same records before it;
`column_totals` adds them up, column by column. Releases that draw are left to the joint budget
(`drawn_uses`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

from mechdesign.channel.channel import Channel
from mechdesign.channel.file import file_digest, load
from mechdesign.core.balls import log2_of_powers_above, sum_above
from mechdesign.core.documents import canonical, versions
from mechdesign.core.errors import InputError
from mechdesign.core.wording import (
    at_most,
    factor_at_least,
    factor_at_most,
    listed,
    percent_of,
    quoted,
)
from mechdesign.formats.census import Content
from mechdesign.jobs.ledger import DONE, Drawn, Entry, Ledger, Use
from mechdesign.jobs.same_records import releases_of
from mechdesign.release.identified_draws import REDRAW
from mechdesign.release.released_values import ROW

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Achieved


Budget: TypeAlias = dict[str, Any]
"""`draws`, `eps_l`, `eps_u` and `eps_ldp`, the budgets in nats."""

TableOf: TypeAlias = Callable[[Sequence[Any]], Any]
"""Reads the table of the useful columns of all channels given."""

REDRAWN = (
    ", but for records that were drawn anew because their symbol had changed (--changed redraw), "
    "of which their releases together tell more"
)
"""The end of a sentence on draws of which one drew records anew."""

BOXES = (
    "a channel for boxes of rows is among them, and its promise is for the population, "
    "not for a table"
)
"""Why several draws have no joint budget if one of them is of a channel for boxes of rows."""


@dataclass(frozen=True)
class JointBudget:
    """A joint budget, None where it cannot be computed, and a sentence that says so."""

    budget: Budget | None
    sentence: str


def joint_budget(
    draws: Sequence[Drawn],
    channels: Sequence[Channel],
    table: TableOf | None = None,
) -> JointBudget:
    """The joint budget of independent draws.

    Parameters
    ----------
    draws : sequence of Drawn
        Those of one channel, job and number are one draw, and count once.
    channels : sequence of Channel
        The channels at hand; others are read from the files that they came from.
    table : function, optional
        Reads the table on which the leakage is computed; by default it is the channels' own.
    """
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.joint_leakage import compose

    # Whoever has one draw twice has learnt nothing more.
    different = sorted({(draw.use.channel, draw.job, draw.draw) for draw in draws})
    if len(different) == 1 and draws[0].use.form == ROW:
        try:
            (channel,) = channels_of(draws, channels).values()
        except InputError as error:
            return JointBudget(
                None, f"the joint budget of the one draw is not known: {error}"
            )
        return _box_channel_budget(draws, channel)
    subject = f"all {len(different)} draws"
    if len(different) == 1:
        subject = "the one draw"
    unknown = f"the joint budget of {subject} is not known"
    try:
        by_digest = channels_of(draws, channels)
        # A channel that was drawn from twice is here twice.
        drawn: list[Any] = [by_digest[digest] for digest, _, _ in different]
        if any(draw.use.form == ROW for draw in draws):
            raise InputError(BOXES)
        joint_table = None
        if table is not None:
            joint_table = table(drawn)
        leakage = compose(drawn, joint_table)
    except InputError as error:
        return JointBudget(None, f"{unknown}: {error}")
    sides, given = _with_given(leakage.achieved, leakage.given)
    budget = _budget_of(len(different), sides)
    verb = "makes" if len(different) == 1 else "together make"
    secret = listed(drawn[0].sensitive.columns)
    sentence = f"{subject} of a record {verb} {_effect(sides, secret)}{given}"
    return JointBudget(budget, sentence + _redrawn(draws))


def _effect(sides: Achieved, secret: str) -> str:
    """What budgets allow, in words and then in nats."""
    factors = f"{factor_at_least(sides.eps_l)} to {factor_at_most(sides.eps_u)}"
    return (
        f"any value of {secret} {factors} times as probable (eps_l {at_most(sides.eps_l)}, eps_u "
        f"{at_most(sides.eps_u)}, eps_ldp {at_most(sides.eps_ldp)})"
    )


def _with_given(sides: Achieved, given: Achieved | None) -> tuple[Achieved, str]:
    """Budgets against the whole table, and what to say of the given columns; `sides` are relative
    to them where there are any.
    """
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.verdict import Achieved

    if given is None:
        return sides, ""
    # With k for the given columns and y for the output, P(s | k, y) / P(s) is the product of the
    # lifts of k and, within its stratum, of y.
    total = Achieved(
        sum_above([sides.eps_l, given.eps_l]),
        sum_above([sides.eps_u, given.eps_u]),
        sum_above([sides.eps_ldp, given.eps_ldp]),
    )
    addition = (
        f", of which the given columns tell eps_l {at_most(given.eps_l)}, eps_u "
        f"{at_most(given.eps_u)} by themselves"
    )
    return total, addition


def _budget_of(draws: int, sides: Achieved) -> Budget:
    """The budget of so many draws, as entries and reports hold it."""
    return {
        "draws": draws,
        "eps_l": sides.eps_l,
        "eps_u": sides.eps_u,
        "eps_ldp": sides.eps_ldp,
    }


def _redrawn(draws: Sequence[Drawn]) -> str:
    """What to add where records were drawn anew."""
    if any(draw.use.changed == REDRAW for draw in draws):
        return REDRAWN
    return ""


def _box_channel_budget(draws: Sequence[Drawn], channel: Channel) -> JointBudget:
    """The budget of one draw of a channel of boxes, for the population."""
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.either import audit_boxes

    sides = audit_boxes(channel).achieved
    given = ""
    budget: Budget | None = _budget_of(1, sides)
    if channel.given:
        # What the given columns tell by themselves is not in the file.
        given = f", beside what {listed(channel.given_columns)} tells, which is not known here"
        budget = None
    sentence = (
        "the one draw of a record, of its whole row, makes "
        f"{_effect(sides, listed(channel.boxed.sensitive.columns))} for the population, with "
        f"{percent_of(channel.boxed.claims.level)} confidence{given}"
    )
    return JointBudget(budget, sentence + _redrawn(draws))


def channels_of(draws: Sequence[Drawn], channels: Sequence[Channel]) -> dict[str, Any]:
    """The channels of some draws by their digests; raises InputError if one is nowhere."""
    by_digest: dict[str, Any] = {}
    for channel in channels:
        by_digest[channel.digest] = channel
    # Where several draws of a channel name files, the last file counts.
    files = {draw.use.channel: draw.channel_file for draw in draws}
    for digest, file in files.items():
        if digest in by_digest:
            continue
        if file is not None:
            channel = _loaded(file)
            if channel is not None:
                by_digest[channel.digest] = channel
        if digest not in by_digest:
            gone = ""
            if file:
                gone = f" ({file} is gone, or another one now)"
            raise InputError(
                f"the channel {digest[:12]}.. of one of them is not at hand{gone}"
            )
    return by_digest


def is_counted(entry: Entry, after: Sequence[str]) -> bool:
    """Whether a channel that was designed after those with the hashes `after` counts a release in
    the ledger: whether all channels of that release are among them.
    """
    if not after:
        return False
    try:
        channels = channels_of(entry.drawn, ())
    except InputError:
        return False
    return all(file_digest(channel) in after for channel in channels.values())


def counts_all(channel: Channel, others: Sequence[Channel]) -> bool:
    """Whether a channel was designed after all the others, so that its promise counts them."""
    after = channel.record.after
    if len(after) < len(others):
        return False
    return all(file_digest(other) in after for other in others)


def _loaded(file: str) -> Any:
    """The channel of a file; None if it is gone or holds no channel."""
    with suppress(InputError):
        return load(file)
    return None


def local_budget(channel: Channel) -> float:
    """The largest log W(y|x) / W(y|x') in nats, rounded up: what one draw tells at most of
    anything.

    A record that is drawn independently k times tells at most k times as much. A box without
    records is released as the marginal, a mixture of the rows W(.|x), which adds nothing. Given
    columns are released as they are, and tell any amount.
    """
    # Exact logarithms take as long to import as a small job.
    from mechdesign.auditing.lifts import log_upper

    if channel.given_columns:
        return math.inf
    largest = 0.0
    for single in channel.channels:
        for inputs, values in single.columns:
            # An output that some symbol never has excludes that symbol.
            if len(inputs) < len(single.useful):
                return math.inf
            largest = max(largest, log_upper(max(values), min(values)))
    return largest


# ---------------------------------------------------------------------- counted outputs

QUANTISED = "quantised"
"""The form of a use of which nothing is drawn."""

SPENT = "spent"
"""The setting of an entry with the outputs of one answer, and in how many answers one individual
takes part.
"""


@dataclass(frozen=True)
class ColumnTotal:
    """What all releases of a column of some records tell together, in bits of one individual."""

    releases: int
    bits: float

    def sentence(self, column: str) -> str:
        """The total in words."""
        ways = "way" if self.releases == 1 else "ways"
        return (
            f"{quoted(column)} was released in {self.releases} {ways} in cells: at most "
            f"{at_most(self.bits)} bits of one individual"
        )


def drawn_uses(entries: Sequence[Entry]) -> list[Drawn]:
    """The draws in some entries, without the releases whose outputs are counted."""
    draws: list[Drawn] = []
    for entry in entries:
        draws += [drawn for drawn in entry.drawn if drawn.use.form != QUANTISED]
    return draws


def column_totals(entries: Sequence[Entry]) -> dict[str, ColumnTotal]:
    """What the releases without draws in some entries tell together of each column.

    Releases of data sets that share records count in full, since their outputs may differ.
    """
    outputs: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for entry in entries:
        for drawn in entry.drawn:
            if drawn.use.form != QUANTISED:
                continue
            column = outputs.setdefault(drawn.use.columns[0], {})
            # The way of releasing and the data set, by their hashes. (A job is named by its data
            # here: no key is involved.)
            release = (drawn.use.channel, drawn.job)
            number, answers = entry.settings[SPENT]
            # The same release once more tells nothing new, so it counts once.
            column[release] = max(column.get(release, (1, 1)), (number, answers))
    totals: dict[str, ColumnTotal] = {}
    for column, releases in outputs.items():
        bits = log2_of_powers_above(releases.values())
        totals[column] = ColumnTotal(len(releases), bits)
    return totals


def enter_counted(
    ledger: Ledger,
    content: Content,
    *,
    column: str,
    way: dict[str, Any],
    outputs: int,
    answers: int,
    output: str | None,
    source: str,
    target: str,
) -> ColumnTotal:
    """Enter a release without draws, and add up what all such releases of the column of these
    records tell.

    Parameters
    ----------
    ledger : Ledger
    content : Content
        The hashes of the records.
    column : str
        The column that is released.
    way : dict of JSON values
        What tells one way of releasing the column from another.
    outputs, answers : int
        The possible outputs of one answer, and in how many answers one individual takes part.
    output : str or None
        The hash of the bytes that were written.
    source, target : str
        The places of both.
    """
    # The reading of earlier versions, whose entries have such names.
    data_name = content.readings[-1].unordered
    time = datetime.now(UTC).isoformat(timespec="seconds")
    use = Use(
        channel=sha256(canonical(way).encode()).hexdigest(),
        columns=(column,),
        form=QUANTISED,
    )
    entry = Entry(
        id=token_hex(8),
        drawn=(Drawn(use=use, job=f"data {data_name}", draw=0),),
        source=source,
        target=target,
        state=DONE,
        started=time,
        finished=time,
        output=output,
        records=content.records,
        ordered=content.ordered,
        unordered=content.unordered,
        settings={SPENT: (outputs, answers)},
        versions=versions(),
    )
    # In one transaction, so that two processes at once each count the other or come after it.
    with ledger.changing() as db:
        earlier = releases_of(db, ledger, ledger.releases(db), content, None).entries
        ledger.enter(db, entry, content)
    return column_totals([*earlier, entry])[column]
