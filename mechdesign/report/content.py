"""The content of a report as a record: chosen figures, names and words.

There are three reports, each a `record.Report`:

- `public_report` is for everybody: it drops the table first, so that nothing below can disclose it,
  and has the promise and the channel alone.
- `summary_report` is for those who may see the table: it adds what the channel uses of its budgets,
  what it keeps, and the beliefs before and after.
- `full_report` adds lifts and codebook to a summary. The lifts P(s|x)/P(s) of the table and
  P(s|y)/P(s) of the release are matrices with a row for each s; the codebook has P(x|y) of every
  output, as in ("mix-1", 0.438, (("clerk", 0.747), ("smith", 0.253)), 0.778, 1.222): name,
  probability, posterior, lowest and highest lift.

Measures come from the audit, and the parts on the request, the promise and its scope from `record`
and `promises`; `document` lays out all three.

What a channel was made for is told from the figures in its record (`purpose_texts`): estimates of
queries, or another column. Each sets what is reached beside the proven bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mechdesign.auditing.columns import columns_on
from mechdesign.auditing.leakages import lift_range
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import NO_PUBLIC_AVERAGE, ChannelRecord
from mechdesign.core.errors import InputError
from mechdesign.core.wording import STATED, at_least, at_most, percent_of
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.release.released_values import moved
from mechdesign.report import wording
from mechdesign.report.boxes import boxes_of, judged, rows_of
from mechdesign.report.law_section import (
    channel_law_lines,
    column_rows,
    public_law_line,
)
from mechdesign.report.promises import (
    VERDICTS,
    counted_lines,
    promise_of,
    promise_on_table,
    protected_name,
    public_scope_texts,
    scope_texts,
    subject_of,
    units_of,
    void_texts,
)
from mechdesign.report.record import (
    Boxes,
    ChannelTable,
    Computed,
    Entry,
    Kept,
    LeastKept,
    Lifts,
    Meaning,
    Population,
    Report,
    Request,
    names_of,
    picked,
    request_of,
)
from mechdesign.report.sentences import (
    average_texts,
    cell_sentences,
    group_lines,
    population_sentences,
)
from mechdesign.tables.joint import Joint

QUERY_NAMES = {
    "frequencies": "the shares of all values of {useful}",
    "prefix": "the cumulative shares of {useful}",
    "ranges": "the shares of all intervals of {useful}",
}
"""What is estimated, by the name of the objective; others are queries from a file."""

OTHER_QUERIES = "the queries of {useful}"


def public_report(
    channel: Channel, notion: Notion, *, satisfied: bool | None
) -> Report:
    """The report without the table: the content of a public channel file, and the exact
    verdict if known.
    """
    if channel.record.averages:
        raise InputError(NO_PUBLIC_AVERAGE)
    # From here on the table is out of reach, so nothing below can disclose it by mistake.
    origin: dict[str, Any] = {}
    for key in ("mechanism", "method"):
        origin[key] = channel.record.provenance.get(key)
    bare_record = ChannelRecord(
        # The claims of boxes must have the promise of their channel.
        notion=channel.record.notion,
        provenance=origin,
        objective=channel.record.objective,
        promise_kind=channel.record.promise_kind,
        is_counts=channel.has_counts,
    )
    # Whether boxes are filled shows in the released file; what fills them is not public.
    request = request_of(channel, notion)
    public = channel.public()
    bare = replace(
        channel,
        joint=None,
        record=bare_record,
        coder=public.coder,
        claims=public.claims,
        fill=None,
    )
    verdict = VERDICTS[satisfied]
    if satisfied is not None:
        verdict += ", with the table that is not shown here."
    # The level of confidence is public, so it is taken from the channel as it was.
    confidence = channel.record.confidence
    table = _channel_table(bare)
    if channel.fills:
        # No file makes these integers public, which tell the records of every box.
        table = replace(table, totals=None, denominator=None, rows=())
    holds_for = public_scope_texts(notion, confidence, request)
    return Report(
        audience="public",
        asked=request,
        promise=promise_of(notion, request, verdict, satisfied, {}),
        holds_for=holds_for,
        voided_by=void_texts(request),
        least=least_of(bare),
        law=(public_law_line(bare, fills=channel.fills),),
        boxes=Boxes(rows=rows_of(bare)),
        channel=table,
    )


def summary_report(
    design: Design,
    joint: Joint | None,
    *,
    verdict: Audit | None = None,
    attained: Mapping[str, float],
    remarks: Sequence[str],
    table: str | None = None,
) -> Report:
    """The report with the table, most important facts first.

    `joint` is the table of the design; None of boxes, which carry counts in its place. `verdict` is
    the audit against the table alone, which knows the worst cell.
    """
    channel = design.channel
    request = request_of(channel, design.notion, joint, table)
    if joint is None:
        request = replace(request, records=channel.records)
    verdict = verdict or design.audit
    # The audit knows the worst cell; without it the design has the same budgets.
    achieved = (verdict or design).achieved
    rivals = design.certificate.rivals
    return Report(
        audience="internal",
        asked=request,
        promise=promise_on_table(design, joint, request, verdict, attained),
        population=_population(design, joint),
        holds_for=(*scope_texts(design, request, achieved), *_group_texts(design)),
        voided_by=void_texts(request),
        kept=Kept(
            **picked(design, "nmi", "mutual_information", "entropy"),
            **picked(design.certificate, "upper_bound_nmi", "gap_nmi", "scope"),
            remarks=tuple(remarks),
            unchanged=design.unchanged,
            rivals=rivals.name,
            best=rivals.best,
        ),
        least=least_of(channel, _column_texts(design, joint)),
        purpose=purposes_of(design, request),
        numbers=moved(channel),
        law=tuple(channel_law_lines(channel, joint)),
        boxes=boxes_of(design, scope_of_bound(design)),
        channel=_channel_table(channel),
    )


def full_report(summary: Report, channel: Channel, joint: Joint | None) -> Report:
    """The summary with the codebook, and with the lifts on its table where there is one."""
    report = replace(summary, codebook=_codebook(channel, joint))
    if joint is None:
        return report
    names = summary.asked.sensitive_symbols
    before: list[tuple[float, ...]] = []
    after: list[tuple[float, ...]] = []
    for secret in joint.secrets:
        before += map(tuple, secret.lift.tolist())
        # P(s, y) = sum_x P(s, x) W(y|x), and the lift of s at y is P(s, y) / (P(s) P(y)).
        released = secret.p @ channel.probabilities
        lifts = released / secret.p_s[:, None] / released.sum(axis=0)
        after += map(tuple, lifts.tolist())
    return replace(
        report,
        before=Lifts(names, joint.useful.names, tuple(before)),
        after=Lifts(names, channel.outputs, tuple(after)),
    )


def _codebook(channel: Channel, joint: Joint | None) -> Computed[Meaning]:
    """The meaning of every output; of boxes those of each stratum, whose given values stand before
    them.
    """
    books: list[_Book] = []
    for stratum, single, table in judged(channel, joint):
        books.append(_Book(stratum, single, table, columns_on(single, table)))
    places = [(book, y) for book in books for y in range(len(book.channel.outputs))]
    return Computed(
        len(places), lambda place: places[place][0].meaning(places[place][1])
    )


@dataclass(frozen=True)
class _Book:
    """A channel with its table, and its outputs on it; `stratum` is in words."""

    stratum: str
    channel: Channel
    joint: Joint
    columns: Sequence[Any]

    def meaning(self, y: int) -> Meaning:
        """What an output says of the useful symbol: P(x|y), the largest first."""
        channel = self.channel
        inputs, values = channel.columns[y]
        weights = self.joint.useful_counts
        masses = [weights[x] * w for x, w in zip(inputs, values, strict=True)]
        total = sum(masses)
        posterior = [
            (channel.useful.names[x], mass / total)
            for x, mass in zip(inputs, masses, strict=True)
        ]
        posterior.sort(key=lambda share: -share[1])
        lowest, highest = lift_range(self.columns[y], self.joint)
        return Meaning(
            output=f"{self.stratum}{channel.outputs[y]}",
            probability=float(channel.output_masses[y]),
            posterior=tuple(posterior),
            lowest_lift=lowest,
            highest_lift=highest,
        )


def _population(design: Design, joint: Joint | None) -> Population | None:
    """What holds for the population that the records are a sample of, if it was computed."""
    audit = design.audit
    promise = design.population
    if audit is not None:
        channel = design.channel
        secret = protected_name(channel.boxed.sensitive, channel.people)
        lines = counted_lines(audit, secret, subject_of(channel), units_of(channel))
        return Population(
            design.channel.boxed.claims.level,
            **asdict(audit.achieved),
            sentences=tuple(lines),
            title="Of this channel",
            is_promised=True,
        )
    if promise is None or joint is None:
        return None
    sentences = population_sentences(
        promise, design.confidence, joint.total, units_of(design.channel)
    )
    return Population(
        promise.level,
        **asdict(promise.achieved),
        sentences=tuple(sentences),
        title=f"The same for the population ({percent_of(promise.level)} confidence)",
    )


def _group_texts(design: Design) -> list[str]:
    """How many records share a released row; nothing of a column or of labels."""
    channel = design.channel
    if channel.published is None:
        return []
    return group_lines(
        design.smallest_group,
        known=design.known,
        rows=len(channel.useful),
        released=design.outputs,
        single=design.single_rows,
        rules=channel.record.rules,
        of_people=channel.useful.people is not None,
    )


def _column_texts(design: Design, joint: Joint | None) -> tuple[tuple[str, ...], ...]:
    """The lines of the table of unchanged cells; none of a column or of labels."""
    if joint is None or design.channel.published is None or design.truth is None:
        return ()
    return tuple(tuple(row) for row in column_rows(design.truth, joint))


def least_of(
    channel: Channel, by_column: tuple[tuple[str, ...], ...] = ()
) -> LeastKept | None:
    """Figures of a channel on the column's own symbols; None for any other."""
    objective = channel.record.objective
    if objective is None:
        return None
    # W(x|x), the probability that symbol x is released as itself.
    shares = [entry / channel.denominator for entry in channel.own_entries]
    # The file may come from anybody: what is no number is left out, as if it were not there.
    figures: dict[str, float] = {}
    for name, value in channel.record.least.items():
        if isinstance(value, float | int):
            figures[name] = value
    # Distances of dates and times are in seconds, which the section shows in larger units.
    kind = "number"
    bins = channel.useful.bins_of(0)
    if bins is not None:
        kind = bins.kind
    return LeastKept(
        asked=objective.values,
        by_symbol=tuple(zip(channel.useful.names, shares, strict=True)),
        kind=kind,
        of_rows=channel.published is not None,
        by_column=by_column,
        **figures,
    )


def _channel_table(channel: Channel) -> ChannelTable:
    """The positive integers of the channel, row by row, with their shares."""
    integers = channel.integers
    totals = channel.row_totals

    def entries(x: int) -> tuple[Entry, ...]:
        return tuple(
            Entry(output, weight, weight / totals[x])
            for output, weight in integers.entries_of(x)
        )

    return ChannelTable(
        symbols=channel.useful.names,
        outputs=channel.outputs,
        denominator=channel.denominator if channel.totals is None else None,
        totals=channel.totals,
        rows=Computed(len(totals), entries),
        cells=tuple(cell_sentences(channel.record.rules)),
    )


def scope_of_bound(design: Design) -> str:
    """How the bound of a design is known: proven here, or stated by its file."""
    return STATED if design.certificate.scope == STATED else "proven"


def purposes_of(design: Design, request: Request) -> tuple[str, ...]:
    """Sentences on average budgets, and on the queries or the task that a channel was made for."""
    record = design.channel.record
    sensitive, useful = names_of(request)
    scope = scope_of_bound(design)
    averages = average_texts(record.averages, design.achieved, sensitive, scope)
    utility = record.utility or {}
    return averages + purpose_texts(utility, record.provenance, useful)


def purpose_texts(
    utility: Mapping[str, Any], provenance: Mapping[str, Any], useful: str
) -> tuple[str, ...]:
    """Sentences from the figures and the origin that a channel's record keeps; none without."""
    if "variance" in utility:
        return _query_texts(utility, provenance, useful)
    if "task_kept" in utility:
        return _task_texts(utility, provenance, useful)
    return ()


def _query_texts(
    utility: Mapping[str, Any], provenance: Mapping[str, Any], useful: str
) -> tuple[str, ...]:
    """The variance of the estimates, its lower bound, and that of the data themselves."""
    name = QUERY_NAMES.get(str(provenance.get("mechanism")), OTHER_QUERIES)
    queries = name.format(useful=useful)
    variance = float(utility["variance"])
    # Queries outside the row space of the channel have no unbiased estimate.
    if math.isinf(variance):
        return (
            f"Made to estimate {queries}; some of them cannot be estimated from it.",
        )
    bound = float(utility["variance_lower_bound"])
    free = float(utility["noise_free"])
    command = "estimate"
    if name == OTHER_QUERIES:
        command = "estimate --queries"
    return (
        f"Made to estimate {queries}: their total variance is {at_most(variance)} / N for "
        f"N records; no channel that keeps the promise comes below {at_least(bound)} / N, "
        f"and the data themselves have {at_most(free)} / N (`mechdesign {command}`).",
    )


def _task_texts(
    utility: Mapping[str, Any], provenance: Mapping[str, Any], useful: str
) -> tuple[str, ...]:
    """What the channel tells of the other column, and the bound on it."""
    task = wording.label(str(provenance.get("task", "the task")))
    kept = wording.percent_at_least(float(utility["task_kept"]))
    most = wording.percent_at_most(float(utility["task_upper_bound"]))
    return (
        f"Made to tell about {task}: keeps {kept} of what {useful} tells about it; no channel that "
        f"keeps the promise keeps more than {most}.",
    )
