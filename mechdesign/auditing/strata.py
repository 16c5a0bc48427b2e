"""Strata of given columns: the limits on lifts where the given cells of a record are known.

The relative promise is about somebody who knows the given columns. The given columns k of a record
are seen with every output. A *total* promise bounds P(s|k, y) against P(s), as for every channel. A
*relative* one bounds it against P(s|k), the belief of somebody who knows the given columns.
So each stratum, a combination of given cells, has limits of its own (`stratum_demands`):
those of the table with the sums of the stratum in the place of P(s).

For example, of 60 and 40 records of s and t a stratum has 10 and 30. An output of the stratum with
the masses 2 and 3 has the lift (2/5) / (10/40) = 1.6 of s there, and (2/5) / (60/100) = 0.67 in
total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mechdesign.auditing.columns import Entries
from mechdesign.auditing.lifts import (
    Achieved,
    Demand,
    Extreme,
    LargestQuotients,
    output_masses,
    smallest_budgets,
    stacked,
)
from mechdesign.channel.channel import Channel
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint


def strata_of(given: Sequence[str], joint: Joint) -> list[int]:
    """The stratum of every useful symbol of a table: strata are numbered as they first occur."""
    useful = joint.useful
    places = [useful.columns.index(name) for name in given]
    numbers: dict[tuple[str, ...], int] = {}
    strata: list[int] = []
    for cells in useful.parts_of_symbols(places):
        strata.append(numbers.setdefault(cells, len(numbers)))
    return strata


def members_of(strata: Sequence[int]) -> list[list[int]]:
    """The useful symbols of each stratum, ascending."""
    members: list[list[int]] = [[] for _ in range(max(strata) + 1)]
    for x, stratum in enumerate(strata):
        members[stratum].append(x)
    return members


def stratum_demands(
    demands: Sequence[Demand], joint: Joint, notion: Notion, strata: Sequence[int]
) -> list[list[Demand]]:
    """For each stratum the demands with P(s|k) in the place of P(s).

    Parameters
    ----------
    demands : sequence of Demand
        Those of the table: for each earlier output one for each secret, in this order.
    joint : Joint
        The table over the columns that are released.
    notion : Notion
    strata : sequence of int
        The stratum of every useful symbol.
    """
    secrets = stacked(joint.counts, joint, notion)
    by_stratum: list[list[Demand]] = []
    for members in members_of(strata):
        sums = [
            [sum(row[x] for x in members) for row in secret.counts]
            for secret in secrets
        ]
        of_stratum: list[Demand] = []
        for place, demand in enumerate(demands):
            of_stratum.append(replace(demand, sums=sums[place % len(secrets)]))
        by_stratum.append(of_stratum)
    return by_stratum


def given_achieved(joint: Joint, given: Sequence[str]) -> Achieved:
    """The smallest budgets that bound what the given columns alone tell, against P(s)."""
    strata = strata_of(given, joint)
    largest = LargestQuotients()
    for secret in joint.secrets:
        free = (math.inf,) * len(secret.sensitive)
        demand = Demand(
            counts=secret.counts,
            sums=secret.sensitive_counts,
            names=secret.sensitive.names,
            lower=free,
            upper=free,
            ratio=math.inf,
        )
        for stratum, inputs in enumerate(members_of(strata)):
            largest.add(
                output_masses(demand, inputs, [1] * len(inputs)), demand, stratum
            )
    return smallest_budgets(largest.extremes)


def given_away(joint: Joint, given: Sequence[str]) -> int:
    """How many records have given cells that occur with a single sensitive value."""
    certain = 0
    for inputs in members_of(strata_of(given, joint)):
        sums_by_secret = [
            [sum(row[x] for x in inputs) for row in secret.counts]
            for secret in joint.secrets
        ]
        if any(sums.count(0) == len(sums) - 1 for sums in sums_by_secret):
            certain += sum(sums_by_secret[0])
    return certain


def relative_lifts(
    channel: Channel,
    columns: Sequence[Entries],
    demands: Sequence[Demand],
    joint: Joint,
    notion: Notion,
) -> list[Extreme]:
    """As `lifts.extreme_lifts`, each output measured against its stratum."""
    strata = strata_of(channel.given, joint)
    by_stratum = stratum_demands(demands, joint, notion, strata)
    largest = LargestQuotients()
    for y, (inputs, values) in enumerate(columns):
        # All inputs of an output have its given cells (`Channel`).
        for demand in by_stratum[strata[inputs[0]]]:
            largest.add(output_masses(demand, inputs, values), demand, y)
    return largest.extremes
