"""A channel after other releases of the same record: what is left to spend, and what all of them come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from mechdesign.auditing.demands import (
    columns_on,
    demands_of,
    everything,
    extreme_lifts,
)
from mechdesign.auditing.joint_leakage import compose
from mechdesign.auditing.verdict import audit, is_stacked, verdict_of
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import digest
from mechdesign.core.errors import NotPrivate, SolverFailure
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.result import Design, Search, Spending, utility_entropy
from mechdesign.mechanisms.rules import Rules
from mechdesign.tables.joint import Joint

NOTHING_LEFT = 1e-6
"""A proven bound on what can be kept, as a share of H(X), below which nothing is left to spend."""

MOST_AT_ONCE, SECONDS_AT_ONCE = 256, 10.0
"""Useful symbols of all columns together up to which one channel for all of them is designed (15 x 15, and some), and
what that design may take unless told otherwise."""

MOST_PROBABILITIES = 2**24
"""Entries of P(x, y1, .., yk) up to which information is computed; 128 MB."""


def check_room(rules: Rules, after: Sequence[Channel]) -> None:
    """Raise NotPrivate if the earlier releases alone break the promise: a constant channel after them."""
    constant = [column for column, _ in everything(rules.joint)]
    alone = verdict_of(
        extreme_lifts(constant, rules.demands or ()), ["nothing more"], rules.notion
    )
    if not alone.satisfied:
        outputs = " and ".join(map(quoted, alone.worst.before))
        what = (
            "the earlier channel breaks"
            if len(after) == 1
            else "the earlier channels together break"
        )
        raise NotPrivate(
            f"{what} the promise already, so nothing can be released after it: {outputs} makes "
            f"{quoted(alone.worst.sensitive)} {alone.worst.lift:.5g} times as likely as before; give a larger budget"
        )


def spending(
    made: Design,
    rules: Rules,
    whole: Joint,
    after: Sequence[Channel],
    time_limit: float | None,
) -> Design:
    """The design with what it comes to together with the earlier releases, and with their hashes."""
    notion, channel = rules.notion, made.channel
    bound = made.certificate.upper_bound_nmi
    if made.nmi < NOTHING_LEFT and bound is not None and bound < NOTHING_LEFT:
        raise NotPrivate(
            "the earlier releases use up the budget: after them only a constant could be released; give a larger budget"
        )
    every = [*after, channel]
    together = compose(every, whole)
    limits, found = notion.limits.loosest, asdict(together.at_least)
    promised = {"eps_l": limits.lower, "eps_u": limits.upper, "eps_ldp": limits.ratio}
    if any(found[side] > budget for side, budget in promised.items()):
        # Another computation than the verdict that the channel has passed, so that no mistake is in both.
        raise SolverFailure(
            "the audit and the joint leakage of the releases disagree; please report this"
        )
    at_once = None
    if len(whole.useful) <= MOST_AT_ONCE:
        search = Search(
            gap=1e-3, time_limit=SECONDS_AT_ONCE if time_limit is None else time_limit
        )
        demands = demands_of(whole, notion) if is_stacked(whole, notion) else None
        at_once = optimal(Rules(whole, notion, demands), search)
    alone = audit(channel, rules.joint, notion).achieved
    record = replace(
        channel.record, achieved=asdict(alone), after=tuple(map(digest, after))
    )
    return replace(
        made,
        channel=channel.with_record(record),
        achieved=alone,
        spending=Spending(
            before=compose(after, whole),
            together=together,
            entropy=utility_entropy(whole),
            columns=whole.useful.columns,
            kept_before=information(after, whole),
            kept=information(every, whole),
            at_once=at_once,
        ),
    )


def information(channels: Sequence[Channel], joint: Joint) -> float | None:
    """I(X; Y1, .., Yk) in nats, X being all useful columns of the table; None where there are too many outputs."""
    n = len(joint.useful)
    mass = joint.p_x[:, None]
    for channel in channels:
        columns = np.zeros((n, len(channel.outputs)))
        for y, (at, values) in enumerate(columns_on(channel, joint)):
            columns[list(at), y] = [value / channel.denominator for value in values]
        if mass.size * columns.shape[1] > MOST_PROBABILITIES:
            return None
        mass = (mass[:, :, None] * columns[:, None, :]).reshape(n, -1)
        mass = mass[:, mass.any(axis=0)]
    x, y = np.nonzero(mass)
    cells = mass[x, y]
    return max(0.0, float(cells @ np.log(cells / (joint.p_x[x] * mass.sum(axis=0)[y]))))
