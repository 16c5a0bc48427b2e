"""What a report may say without the table: all of a public report, and the frame of an internal one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mechdesign.auditing.guarantees import consequences
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord
from mechdesign.notions import LiftLimits, Notion, to_record
from mechdesign.report.promises import (
    COVERS,
    ONE_DRAW,
    OTHER_PRIOR,
    VOIDS,
    title,
)
from mechdesign.report.record import (
    Asked,
    Audience,
    Bound,
    ChannelTable,
    Command,
    Entry,
    Fact,
    Promise,
    Report,
)
from mechdesign.report.wording import at_most

PUBLIC_SAMPLE = (
    "The promise is about the table that the channel was designed for, not about the population that its records "
    "come from: there the leakage is usually larger, and the more so the fewer records there are. The table and its "
    "size are not shown here."
)
WITHHELD = (
    "Not shown in this version, because it is computed from the table: what is kept of {useful}, the trade-off curve, "
    "the lifts, the codebook and the budgets that are really used."
)
NAMELESS = "the sensitive column"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What surrounds the content: when it was written, where it comes from, how to do it again."""

    written: str
    provenance: tuple[Fact, ...] = ()
    commands: tuple[Command, ...] = ()


def public_report(
    channel: Channel,
    notion: Notion,
    frame: Frame,
    *,
    mechanism: str | None,
    method: str | None,
    satisfied: bool | None,
) -> Report:
    """The report without the table: it holds what a public channel file holds, and the exact verdict if known."""
    # From here on nobody can look at the table, not even by mistake.
    bare = replace(channel, joint=None, record=ChannelRecord())
    report = bare_report(bare, notion, mechanism, method, frame, "public")
    verdict = {
        True: "Verified in exact arithmetic on the integers of the channel, with the table that is not shown here.",
        False: "VIOLATED, decided in exact arithmetic with the table that is not shown here.",
        None: "Not checked here, for want of the table; whoever holds it can check it exactly.",
    }[satisfied]
    limits = (*report.limits, WITHHELD.format(useful=title(channel.useful.columns)))
    promise = replace(report.promise, verdict=verdict, satisfied=satisfied)
    return replace(report, promise=promise, limits=limits)


def bare_report(
    channel: Channel,
    notion: Notion,
    mechanism: str | None,
    method: str | None,
    frame: Frame,
    audience: Audience,
) -> Report:
    """What any reader of a public channel file can know. Nothing here may look at `channel.joint`."""
    variable = channel.sensitive
    sensitive = title(variable.columns) if variable is not None else NAMELESS
    useful = title(channel.useful.columns)
    limits = notion.limits
    eps_l = eps_u = eps_ldp = math.inf
    low = high = None
    if isinstance(limits, LiftLimits):
        # A ratio bounds both sides, for the mean of the lifts is 1.
        eps_l, eps_u = min(limits.lower, limits.ratio), min(limits.upper, limits.ratio)
        eps_ldp = min(limits.ratio, _sum_above(limits.lower, limits.upper))
        low = None if math.isinf(limits.lower) else math.exp(-limits.lower)
        high = None if math.isinf(limits.upper) else math.exp(limits.upper)
    bounds = consequences(eps_l, eps_u, eps_ldp, sensitive) if isinstance(limits, LiftLimits) else []
    return Report(
        audience=audience,
        written=frame.written,
        asked=Asked(
            sensitive_columns=variable.columns if variable is not None else (),
            useful_columns=channel.useful.columns,
            sensitive_symbols=variable.names if variable is not None else (),
            useful_symbols=channel.useful.names,
            outputs=len(channel.outputs),
            notion=to_record(notion),
            notion_text=notion.text,
            mechanism=mechanism,
            method=method,
        ),
        promise=Promise(
            statement=limits.condition(sensitive),
            verdict="",
            satisfied=None,
            low=low,
            high=high,
            achieved=None,
            used=None,
            worst=None,
            bounds=tuple(
                Bound(measure=c.measure, unit=c.unit.strip(), bound=c.bound, attained=None) for c in bounds
            ),
            beliefs=(),
        ),
        kept=None,
        curve=None,
        before=None,
        after=None,
        channel=_channel_table(channel),
        codebook=None,
        limits=(PUBLIC_SAMPLE, *limits_of(notion, sensitive, useful, eps_ldp)),
        provenance=frame.provenance,
        commands=frame.commands,
        absent={},
    )


def _sum_above(first: float, second: float) -> float:
    """The sum of two budgets, never rounded down."""
    total = first + second
    if math.isinf(total) or math.fsum((first, second, -total)) <= 0.0:
        return total
    return math.nextafter(total, math.inf)


def _channel_table(channel: Channel) -> ChannelTable:
    return ChannelTable(
        symbols=channel.useful.names,
        outputs=channel.outputs,
        denominator=channel.denominator,
        rows=tuple(
            tuple(
                Entry(output=y, weight=entry, share=entry / channel.denominator)
                for y, entry in enumerate(row)
                if entry
            )
            for row in channel.rows
        ),
    )


def limits_of(notion: Notion, sensitive: str, useful: str, eps_ldp: float) -> list[str]:
    """What the guarantee covers and what voids it, beside the table that it is about."""
    limits = notion.limits
    texts = [COVERS, VOIDS.format(useful=useful), ONE_DRAW]
    if isinstance(limits, LiftLimits) and math.isinf(limits.ratio):
        if math.isinf(limits.lower):
            texts.append(
                f"One side is free: a released value may make a {sensitive} much less likely, or rule it out."
            )
        if math.isinf(limits.upper):
            texts.append(
                f"One side is free: a released value may make a {sensitive} much more likely, or give it away."
            )
    if math.isfinite(eps_ldp):
        texts.append(OTHER_PRIOR.format(sensitive=sensitive, useful=useful, eps_ldp=at_most(eps_ldp)))
    return texts
