"""Free outputs beside given columns: a channel for each combination of given cells.

The given columns are seen with every output, so the records of one combination k of their cells, a
*stratum*, have a channel W_k of their own. A relative promise bounds P(s|k, y) against P(s|k): that
is the promise itself on the table of the stratum. A total one bounds it against P(s):

    P(s|k, y) / P(s) = l(s, k) P(s|k, y) / P(s|k),   l(s, k) = P(s|k) / P(s),

so the stratum has the budgets eps_u - log l(s, k) and eps_l + log l(s, k) for the symbol s
(docs/explanation/rows-theory.md, 'Strata'). For example, with eps_u = 0.5 and a stratum where s is
1.2 times as likely as in the table, 0.318 are left.

`by_strata` designs the channel of each stratum with its share of the time, and puts them together.
The information that is kept is I(X;Y|K) / H(X|K).

Purposes fall into the strata, too, since the given cells of every record are known. The information
about a task T is I(T;Y|K), the mean of those of the strata. The share of a cell and a stratum is
estimated by N_k / N times that within the stratum, so N times the total variance, with the numbers
N_k of the file, is the mean of N_k times those of the strata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mechdesign.auditing.lifts import demands_of
from mechdesign.auditing.measures import Utility, beyond_given, utility
from mechdesign.auditing.strata import members_of, strata_of
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import OutputCells
from mechdesign.channel.proof import (
    AnyProof,
    EntropyProof,
    QueryProof,
    TaskProof,
    proof_in,
)
from mechdesign.channel.record import TOTAL, ChannelRecord
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.least_cost_objective import INFORMATION
from mechdesign.mechanisms.plan_design import check_given
from mechdesign.mechanisms.purposes import (
    INFORMATION_ERROR,
    information_of,
    task_figures,
    touched_in_file,
    with_purpose,
)
from mechdesign.mechanisms.queries import queries_of
from mechdesign.mechanisms.query_design import noise_free_variance
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import (
    Certificate,
    Design,
    QueryAccuracy,
    TaskUtility,
    finish,
)
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.strata_tables import (
    SHRINK,
    budgets_of_stratum,
    released_symbols,
    table_of_stratum,
)
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from solvers import Array

IDENTITY = "identity"
"""The mechanism of a stratum in which nothing is to be hidden."""


class _Part(NamedTuple):
    """The channel of one stratum: its inputs in the whole table, labels and integers."""

    members: list[int]
    labels: tuple[str, ...]
    rows: IntegerRows
    table: Joint
    mass: float
    design: Design | None


def by_strata(
    request: DesignRequest,
    joint: Joint,
    notion: Notion,
    design: Callable[[DesignRequest], Design],
    started: float,
) -> Design:
    """The channel with free outputs and given columns, verified exactly.

    Parameters
    ----------
    request : DesignRequest
    joint : Joint
        The table over the given and released columns.
    notion : Notion
    design : callable
        Designs the request of one stratum.
    started : float
        On the clock of `time.process_time`.

    Raises
    ------
    InputError
        If an option does not go with given columns.
    NotPrivate
        If the given columns alone break a total promise.
    SolverFailure
        If the whole channel did not pass the exact audit.
    """
    combinations.check(combinations.STRATA, request.named)
    strata = strata_of(request.given, joint)
    if request.promise == TOTAL and notion.limits.mean is None:
        demands = demands_of(joint, notion)
        by_stratum = [demands] * (max(strata) + 1)
        check_given(joint, request.given, by_stratum, strata)
    released = [name for name in joint.useful.columns if name not in request.given]
    parts: list[_Part] = []
    for members in members_of(strata):
        share = len(members) / len(strata)
        parts.append(_part(request, joint, notion, members, released, share, design))
    channel = _whole(request, joint, parts, released)
    record = ChannelRecord(promise_kind=request.promise)
    channel = replace(channel, record=record)
    verdict = audit_on_table(channel, joint, notion)
    if not verdict.satisfied:
        raise SolverFailure(
            "the channel of all given columns did not pass the exact audit: give a larger budget"
        )
    worth = beyond_given(utility(channel, joint), joint, request.given)
    result = finish(
        Rounded(channel, verdict),
        joint,
        parts[0].design.mechanism if parts[0].design else IDENTITY,
        "strata",
        started,
        worth=worth,
        certificate=_certificate(joint, parts, worth),
        messages=_messages(parts),
    )
    kept = replace(result.channel.record, promise_kind=request.promise)
    result = replace(result, channel=result.channel.with_record(kept))
    proof = _proof(request, parts, len(joint.useful))
    if proof is not None:
        result = replace(result, channel=result.channel.with_proof(proof))
    if request.task is not None:
        return with_purpose(result, _task_utility(request, parts))
    if request.has_purpose:
        return with_purpose(result, _query_accuracy(request.objective, parts))
    return result


def _task_utility(request: DesignRequest, parts: Sequence[_Part]) -> TaskUtility:
    """What the channels of all strata tell of the task beside the given columns."""
    assert request.task is not None  # the caller asked
    kept = 0.0
    bound = 0.0
    largest = 0.0
    for part in parts:
        task = _task_of(request, part.table, part.members)
        most = information_of(task, part.table)
        largest += part.mass * most
        purpose = part.design.purpose if part.design is not None else None
        if isinstance(purpose, TaskUtility):
            kept += part.mass * most * purpose.task_kept
            bound += part.mass * most * purpose.task_upper_bound
        else:
            # Released as it is, or with nothing to tell.
            kept += part.mass * most
            bound += part.mass * most
    column = ",".join(request.task.sensitive.columns)
    if not largest > INFORMATION_ERROR:
        raise InputError(
            f"beside the given columns the released ones say nothing about the task "
            f"{quoted(column)}: there is nothing to keep"
        )
    share = max(0.0, kept / largest - INFORMATION_ERROR)
    upper = min(1.0, bound / largest + INFORMATION_ERROR)
    return TaskUtility(
        column=column, task_kept=share, task_upper_bound=max(share, upper)
    )


def _query_accuracy(objective: str, parts: Sequence[_Part]) -> QueryAccuracy:
    """N times the total variance of the estimates in all strata, for their numbers of records."""
    variance = 0.0
    bound = 0.0
    noise_free = 0.0
    for part in parts:
        purpose = part.design.purpose if part.design is not None else None
        if isinstance(purpose, QueryAccuracy):
            variance += part.mass * purpose.variance
            bound += part.mass * purpose.variance_lower_bound
            noise_free += part.mass * purpose.noise_free
            continue
        # Released as it is.
        queries, _ = queries_of(objective, part.table)
        own = part.mass * noise_free_variance(queries, part.table.p_x)
        variance += own
        bound += own
        noise_free += own
    return QueryAccuracy(
        name=objective,
        variance=variance,
        variance_lower_bound=min(bound, variance),
        noise_free=noise_free,
    )


def _task_of(request: DesignRequest, table: Joint, members: Sequence[int]) -> Joint:
    """The table of the task in one stratum, over its released symbols."""
    task = request.task
    assert task is not None  # the caller asked
    place = {name: x for x, name in enumerate(task.useful.names)}
    names = request.joint.releasing(request.released_columns).useful.names
    chosen = [place[names[x]] for x in members]
    return table_of_stratum(task, chosen, table.useful.columns)


def _released_names(
    joint: Joint, members: Sequence[int], released: Sequence[str]
) -> tuple[str, ...]:
    """The names of the released cells of some rows."""
    symbols = released_symbols(joint, members, released)
    return Variable(tuple(released), symbols).names


def _part(
    request: DesignRequest,
    joint: Joint,
    notion: Notion,
    members: list[int],
    released: Sequence[str],
    share: float,
    design: Callable[[DesignRequest], Design],
) -> _Part:
    """The channel of one stratum."""
    sensitive = [
        count
        for count in (sum(row[x] for x in members) for row in joint.counts)
        if count
    ]
    table = table_of_stratum(joint, members, released)
    mass = float(joint.p_x[members].sum())
    if len(members) == 1 or len(sensitive) == 1:
        # There is nothing to say, or nothing to hide: the audit of the whole decides.
        identity = np.eye(len(members), dtype=np.int64) * DENOMINATOR
        names = _released_names(joint, members, released)
        rows = IntegerRows.from_array(identity)
        return _Part(members, names, rows, table, mass, None)
    task = None
    objective = request.objective
    if request.task is not None:
        task = _task_of(request, table, members)
        if not information_of(task, table) > INFORMATION_ERROR:
            # Nothing in this stratum tells of the task: then what is kept is information.
            task = None
            objective = INFORMATION
    limit = request.time_limit
    if limit is not None:
        limit *= share
    of_stratum = replace(
        request,
        joint=table,
        notion=budgets_of_stratum(
            joint, notion, table, request.promise, widened=-SHRINK
        ),
        release=None,
        given=(),
        promise="total",
        budgets=None,
        time_limit=limit,
        allow_identifier=True,
        objective=objective,
        task=task,
    )
    result = design(of_stratum)
    channel = result.channel
    return _Part(members, channel.outputs, channel.integers, table, mass, result)


def _whole(
    request: DesignRequest,
    joint: Joint,
    parts: Sequence[_Part],
    released: Sequence[str],
) -> Channel:
    """The channels of all strata as one, whose outputs are given cells and a label."""
    places = [joint.useful.columns.index(name) for name in request.given]
    labels: list[str] = []
    cells: list[tuple[str, ...]] = []
    rows: dict[int, list[int]] = {}
    for part in parts:
        symbol = joint.useful.symbols[part.members[0]]
        given = tuple(symbol[place] for place in places)
        first = len(labels)
        for label in part.labels:
            labels.append(", ".join((*given, label)))
            cells.append((*given, label))
        for x, row in zip(part.members, part.rows.pairs(), strict=True):
            moved = list(row)
            moved[::2] = [place + first for place in row[::2]]
            rows[x] = moved
    return Channel(
        useful=joint.useful,
        outputs=_different(labels),
        rows=IntegerRows.of_pairs(
            [rows[x] for x in range(len(joint.useful))], len(labels)
        ),
        denominator=DENOMINATOR,
        joint=joint,
        given=tuple(request.given),
        published=OutputCells((*request.given, ",".join(released)), tuple(cells)),
    )


def _different(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, numbered where two strata would share one because of commas in their cells."""
    if len(set(labels)) == len(labels):
        return tuple(labels)
    return tuple(f"{place + 1}: {label}" for place, label in enumerate(labels))


def _certificate(joint: Joint, parts: Sequence[_Part], worth: Utility) -> Certificate:
    """The bound of all strata together: the mean of their own, by their entropies."""
    if not worth.entropy:
        return Certificate()
    bound = 0.0
    for part in parts:
        mass = float(joint.p_x[part.members].sum())
        if part.design is None:
            shares = joint.p_x[part.members] / mass
            bound += mass * -float(np.sum(shares * np.log(shares)))
            continue
        upper = part.design.certificate.upper_bound_nmi
        if upper is None:
            return Certificate()
        bound += mass * part.design.entropy * upper
    share = min(1.0, bound / worth.entropy * (1.0 + 1e-12))
    return Certificate(upper_bound_nmi=share, scope="proven").at(worth.nmi)


def _proof(
    request: DesignRequest, parts: Sequence[_Part], symbols: int
) -> AnyProof | None:
    """The prices of all strata, each of which has symbols of its own; None where one has none."""
    if request.task is not None:
        return _task_proof(request, parts, symbols)
    if request.has_purpose:
        return _query_proof(parts, symbols)
    prices = np.zeros(symbols)
    for part in parts:
        # Where everything may be kept, no price is needed.
        if part.design is None:
            continue
        upper = part.design.certificate.upper_bound_nmi
        if upper is None or upper >= 1.0:
            continue
        proof = proof_in(part.design.channel.record.certificate)
        if not isinstance(proof, EntropyProof):
            return None
        least = (1.0 - upper) * part.design.entropy
        prices[part.members] = _proving(proof.prices, part.table, least)
    return EntropyProof(prices=tuple(prices.tolist()))


def _proving(prices: Sequence[float], table: Joint, least: float) -> Array:
    """The prices of a stratum and a constant, so that they sum to `least`, what the stratum has of
    entropy at least: a posterior then costs nothing at least, and prices alone say what is to be
    proven.
    """
    own = np.array(prices)
    return own + (least - float(own @ table.p_x))


def _task_proof(
    request: DesignRequest, parts: Sequence[_Part], symbols: int
) -> TaskProof | None:
    """Prices and the task of all strata; those in which nothing can be hidden or told have none."""
    task = request.task
    assert task is not None  # the caller asked
    prices = np.zeros(symbols)
    counts = np.zeros((len(task.sensitive), symbols), dtype=object)
    touched: list[Array] = []
    for part in parts:
        own_task = _task_of(request, part.table, part.members)
        order = [task.sensitive.names.index(name) for name in own_task.sensitive.names]
        counts[np.ix_(order, part.members)] = np.array(own_task.counts, dtype=object)
        purpose = None if part.design is None else part.design.purpose
        if part.design is None or not isinstance(purpose, TaskUtility):
            continue
        proof = proof_in(part.design.channel.record.certificate)
        if not isinstance(proof, TaskProof):
            return None
        figures = task_figures(part.design.channel, part.table, own_task)
        least = figures.prior - purpose.task_upper_bound * figures.largest
        prices[part.members] = _proving(proof.prices, part.table, least)
        touched += _of_all_symbols(proof.touched, part.members, symbols)
    return TaskProof(
        prices=tuple(prices.tolist()),
        task=tuple(map(tuple, counts.tolist())),
        touched=touched_in_file(np.array(touched) if touched else None),
    )


def _query_proof(parts: Sequence[_Part], symbols: int) -> QueryProof | None:
    """Prices of all strata, and their matrices as blocks of one."""
    prices = np.zeros(symbols)
    inverse = np.zeros((symbols, symbols))
    touched: list[Array] = []
    for part in parts:
        if part.design is None:
            continue
        proof = proof_in(part.design.channel.record.certificate)
        if not isinstance(proof, QueryProof) or not proof.inverse:
            return None
        prices[part.members] = proof.prices
        inverse[np.ix_(part.members, part.members)] = proof.inverse
        touched += _of_all_symbols(proof.touched, part.members, symbols)
    return QueryProof(
        prices=tuple(prices.tolist()),
        inverse=tuple(map(tuple, inverse.tolist())),
        touched=touched_in_file(np.array(touched) if touched else None),
    )


def _of_all_symbols(
    posteriors: Sequence[Sequence[float]] | None, members: Sequence[int], symbols: int
) -> list[Array]:
    """Posteriors of the symbols of a stratum as ones of all symbols."""
    found: list[Array] = []
    for posterior in posteriors or ():
        whole = np.zeros(symbols)
        whole[list(members)] = posterior
        found.append(whole)
    return found


def _messages(parts: Sequence[_Part]) -> tuple[str, ...]:
    """The different messages of the strata."""
    messages: dict[str, None] = {}
    for part in parts:
        if part.design is not None:
            messages.update(dict.fromkeys(part.design.messages))
    return tuple(messages)
