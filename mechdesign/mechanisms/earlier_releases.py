"""A design after other releases of the same record: the remaining budget and the joint leakage.

The promise itself is in the rules: the new channel keeps it together with every combination of
earlier outputs (`auditing.lifts`). For example, if a first release makes a secret 1.5 times as
likely and the promise allows a factor of 2, the second one may add a factor of 4/3 to that output.
`designing` calls two functions:

1. `check_room` before a design: a constant cannot mend a promise that earlier releases break.
2. `spending` after it. It refuses a budget that is used up, and computes the joint leakage in
   another way (`auditing.joint_leakage`), so that an error of one of them shows. To the result it
   adds what all releases keep together, and what one channel for all their columns would keep
   (`_at_once`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from mechdesign.auditing.columns import columns_on, everything
from mechdesign.auditing.composition import Composition
from mechdesign.auditing.joint_leakage import compose
from mechdesign.auditing.lifts import extreme_lifts
from mechdesign.auditing.verdict import audit_on_table, verdict_of
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import file_digest
from mechdesign.core.errors import NotPrivate, SolverFailure
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.result import Design, Spending
from mechdesign.mechanisms.rules import Rules, table_rules
from mechdesign.mechanisms.search_options import Search, utility_entropy
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

NOTHING_LEFT = 1e-6
"""Proven bound on the utility, as a share of H(X), below which the budget counts as used up."""

MOST_AT_ONCE = 256
"""Useful symbols of all columns together up to which one channel for all of them is designed (15 x
15, and some)."""

SECONDS_AT_ONCE = 10.0
"""Longest search for that channel without a time limit."""

MOST_PROBABILITIES = 2**24
"""Entries of P(x, y1, .., yk) up to which information is computed; 128 MB."""


def check_room(rules: Rules, after: Sequence[Channel]) -> None:
    """Raise NotPrivate if the earlier releases alone break the promise."""
    # A constant channel after them discloses nothing more.
    constant = [column for column, _ in everything(rules.joint)]
    lifts = extreme_lifts(constant, rules.demands or ())
    alone = verdict_of(lifts, ["nothing more"], rules.notion)
    if alone.satisfied:
        return
    outputs = " and ".join(map(quoted, alone.worst.before))
    breaks = "the earlier channel breaks"
    if len(after) > 1:
        breaks = "the earlier channels together break"
    raise NotPrivate(
        f"{breaks} the promise already, so nothing can be released after it: {outputs} makes "
        f"{quoted(alone.worst.sensitive)} {alone.worst.lift:.5g} times as likely as "
        "before; give a larger budget"
    )


def spending(
    design: Design,
    rules: Rules,
    whole: Joint,
    after: Sequence[Channel],
    time_limit: float | None,
) -> Design:
    """The design with the joint leakage of all releases, and the hashes of the earlier ones.

    `whole` is the table with the useful columns of all releases, `rules` that of the new one.

    Raises
    ------
    NotPrivate
        If the budget is used up: only a constant could be released.
    """
    notion = rules.notion
    channel = design.channel
    bound = design.certificate.upper_bound_nmi
    if design.nmi < NOTHING_LEFT and bound is not None and bound < NOTHING_LEFT:
        raise NotPrivate(
            "the earlier releases use up the budget: after them only a constant could "
            "be released; give a larger budget"
        )
    all_channels = [*after, channel]
    together = compose(all_channels, whole)
    _check_agreement(together, notion)
    achieved = audit_on_table(channel, rules.joint, notion).achieved
    record = replace(
        channel.record,
        achieved=asdict(achieved),
        after=tuple(file_digest(earlier) for earlier in after),
    )
    return replace(
        design,
        channel=channel.with_record(record),
        achieved=achieved,
        spending=Spending(
            before=compose(after, whole),
            together=together,
            entropy=utility_entropy(whole),
            columns=whole.useful.columns,
            kept_before=information(after, whole),
            kept=information(all_channels, whole),
            at_once=_at_once(whole, notion, time_limit),
        ),
    )


def _check_agreement(together: Composition, notion: Notion) -> None:
    """Raise SolverFailure for a joint leakage above the promise.

    The verdict, which the channel has passed, computes the same in another way.
    """
    limits = notion.limits.loosest
    leakage = together.at_least
    agrees = (
        leakage.eps_l <= limits.lower
        and leakage.eps_u <= limits.upper
        and leakage.eps_ldp <= limits.ratio
    )
    if not agrees:
        raise SolverFailure(
            "the audit and the joint leakage of the releases disagree; please report this"
        )


def _at_once(whole: Joint, notion: Notion, time_limit: float | None) -> Design | None:
    """The best single channel of all columns at the same promise; None for too many symbols."""
    if len(whole.useful) > MOST_AT_ONCE:
        return None
    seconds = SECONDS_AT_ONCE
    if time_limit is not None:
        seconds = time_limit
    return optimal(table_rules(whole, notion), Search(gap=1e-3, time_limit=seconds))


def information(channels: Sequence[Channel], joint: Joint) -> float | None:
    """I(X; Y1, .., Yk) in nats for all useful columns X of the table; None for too many outputs."""
    n = len(joint.useful)
    # P(x, y1, .., yk): the outputs of a record are independent given x.
    mass = joint.p_x[:, None]
    for channel in channels:
        # The outputs of all releases multiply.
        if mass.size * len(channel.outputs) > MOST_PROBABILITIES:
            return None
        # W(y|x) of this channel, (n, outputs).
        columns = np.zeros((n, len(channel.outputs)))
        for y, (at, values) in enumerate(columns_on(channel, joint)):
            columns[list(at), y] = [value / channel.denominator for value in values]
        mass = (mass[:, :, None] * columns[:, None, :]).reshape(n, -1)
        # Combinations that never occur would only take memory.
        mass = mass[:, mass.any(axis=0)]
    # sum of P(x, y) log(P(x, y) / (P(x) P(y))), where 0 log 0 = 0; rounding may make it negative.
    x, y = np.nonzero(mass)
    cells = mass[x, y]
    independent = joint.p_x[x] * mass.sum(axis=0)[y]
    return max(0.0, float(cells @ np.log(cells / independent)))
