"""From results to the record of an internal report: picks, names and words; it computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from mechdesign.auditing.channel_measures import ChannelMeasures
from mechdesign.auditing.guarantees import consequences
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.mechanisms.result import Certificate
from mechdesign.notions import Notion
from mechdesign.report.promises import sample, title
from mechdesign.report.public import Frame, bare_report, limits_of
from mechdesign.report.record import Belief, Bound, Curve, Kept, Lifts, Meaning, Report
from mechdesign.report.shortening import short
from mechdesign.report.wording import about, at_most
from mechdesign.tables.joint import Joint


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results that an internal report is built from; `absent` says why parts are missing."""

    channel: Channel
    notion: Notion
    joint: Joint
    audit: Audit
    measures: ChannelMeasures
    mechanism: str | None
    method: str | None
    certificate: Certificate
    remarks: Sequence[str] = ()
    table: str | None = None
    curve: Curve | None = None
    absent: Mapping[str, str] = field(default_factory=dict[str, str])


def internal_report(found: Findings, frame: Frame) -> Report:
    """The report with the table and whatever is computed from it."""
    channel, joint, measures = found.channel, found.joint, found.measures
    bare = bare_report(channel, found.notion, found.mechanism, found.method, frame, "internal")
    sensitive, useful = title(joint.sensitive.columns), title(joint.useful.columns)
    achieved = found.audit.achieved
    zero = sum(cell == 0 for row in joint.counts for cell in row)
    asked = replace(
        bare.asked,
        table=found.table,
        records=joint.records,
        cells=len(joint.sensitive) * len(joint.useful),
        zero_cells=zero,
    )
    promise = replace(
        bare.promise,
        verdict=_verdict(found.audit),
        satisfied=found.audit.satisfied,
        achieved=asdict(achieved),
        used=None if found.audit.used is None else asdict(found.audit.used),
        bounds=tuple(
            Bound(
                measure=c.measure,
                unit=c.unit.strip(),
                bound=c.bound,
                attained=None if c.key is None else measures.leakage[c.key],
            )
            for c in consequences(achieved.eps_l, achieved.eps_u, achieved.eps_ldp, sensitive)
        ),
        worst=asdict(found.audit.worst),
        beliefs=_beliefs(joint, measures),
    )
    certificate = found.certificate
    kept = Kept(
        nmi=measures.utility["nmi"],
        mutual_information=measures.utility["mutual_information"],
        entropy=measures.utility["entropy"],
        upper_bound_nmi=certificate.upper_bound_nmi,
        gap_nmi=certificate.gap_nmi,
        scope=certificate.scope,
        remarks=tuple(found.remarks),
    )
    return replace(
        bare,
        asked=asked,
        promise=promise,
        kept=kept,
        curve=found.curve,
        before=Lifts(
            sensitive=joint.sensitive.names, columns=joint.useful.names, values=_tuples(joint.lift.tolist())
        ),
        after=Lifts(
            sensitive=joint.sensitive.names,
            columns=channel.outputs,
            values=_tuples(_lifts(joint, channel)),
        ),
        codebook=_codebook(channel, measures),
        limits=(
            sample(joint),
            *_zero_cells(zero, sensitive, useful),
            *limits_of(found.notion, sensitive, useful, achieved.eps_ldp),
        ),
        absent=dict(found.absent),
    )


def _verdict(audit: Audit) -> str:
    achieved, used, worst = audit.achieved, audit.used, audit.worst
    verdict = (
        "Verified in exact arithmetic on the integers of the channel."
        if audit.satisfied
        else "VIOLATED, decided in exact arithmetic on the integers of the channel."
    )
    own = (
        ""
        if used is None
        else f"Of its own budgets it uses eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)}. "
    )
    against = f", most of all against {short(worst.against)}" if worst.against is not None else ""
    return (
        f"{verdict} {own}Achieved: eps_l {at_most(achieved.eps_l)}, eps_u {at_most(achieved.eps_u)}, local "
        f"differential privacy {at_most(achieved.eps_ldp)} (nats, rounded up). Worst: the output "
        f"{short(worst.output)} makes {short(worst.sensitive)} {about(worst.lift)} times as likely as "
        f"before{against}."
    )


def _beliefs(joint: Joint, measures: ChannelMeasures) -> tuple[Belief, ...]:
    return tuple(
        Belief(
            symbol=name,
            before=float(joint.p_s[s]),
            lowest=min(out.posterior[s] for out in measures.outputs),
            highest=max(out.posterior[s] for out in measures.outputs),
        )
        for s, name in enumerate(joint.sensitive.names)
    )


def _codebook(channel: Channel, measures: ChannelMeasures) -> tuple[Meaning, ...]:
    return tuple(
        Meaning(
            output=out.output,
            probability=out.probability,
            posterior=tuple(sorted(posterior.items(), key=lambda item: -item[1])),
            lowest_lift=out.min_lift,
            highest_lift=out.max_lift,
        )
        for out, posterior in zip(measures.outputs, channel.codebook().values(), strict=True)
    )


def _zero_cells(zero: int, sensitive: str, useful: str) -> list[str]:
    if not zero:
        return []
    return [
        f"A zero cell says that this {sensitive} and this {useful} do not occur together in the table; it does not "
        "say that they cannot."
    ]


def _lifts(joint: Joint, channel: Channel) -> list[list[float]]:
    """l(s, y) of every sensitive symbol and output, (|S|, |Y|)."""
    released = joint.p @ channel.matrix
    return (released / joint.p_s[:, None] / released.sum(axis=0)).tolist()


def _tuples(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in rows)
