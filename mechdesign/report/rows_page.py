"""The report on a row channel: its promise, where the information went, and the worst rows.

Everything is computed again from the channel file: the exact audit, and the law of the released row
(`auditing.row_leaves`). So `report` on a file and `design --report` write the same page.

`row_report` computes the content: the audit, a `ColumnLedger` for each level and the `WorstRow`s.
`report_page` lays it out, `report_record` is its JSON, and `save_row_report` does all three.

Two computations are done here. `level_joints` sends all rows of the table down the tree and adds up
P(x_j, y_j) of every level, from which a ledger has H(X_j) and I(X_j; Y_j). `worst_rows` takes the
posterior P(s|y) of every whole row y and lists the rows with the largest |ln P(s|y) / P(s)|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.row_leaves import RowLaw, row_law
from mechdesign.auditing.rows import RowAudit, audit_rows
from mechdesign.channel.row_channel import RELATIVE, TRUTH, RowChannel
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.notions import to_record
from mechdesign.report import blocks, drawing, wording
from mechdesign.report.document import VERIFIED
from mechdesign.report.plain_values import optional_record
from mechdesign.report.writing import save_page

MOST_WORST = 10
"""Rows whose posterior moves most that the page lists."""

FORMAT, VERSION = "mechdesign.row-report", 1

LIMITS = (
    "The promise is about this table, not about the population behind it: there the leakage is "
    "larger, and it grows as the number of records shrinks.",
    "Any other column released beside these ends the promise.",
    "It hides the protected column, not who somebody is: a released row may still be unusual.",
)

POPULATION_CARD = ("The same for the population", "not promised")
"""A card for readers of the cards alone; `LIMITS` has the sentence."""

COVERS = (
    "It covers a released row and every part of it, against an observer who knows this table and "
    "the channel."
)

COVERS_RELATIVE = (
    "It covers a released row with all of its given columns, compared with somebody of whom only "
    "the given columns are known."
)


PICTURE_WIDTH = 5.5
"""Inches, which fit a telephone when the page scales them down."""

# Blue and a light grey, which differ in print as well.
KEPT_COLOUR = "#2b6cb0"
LOST_COLOUR = "#d9d9d9"


@dataclass(frozen=True)
class ColumnLedger:
    """Where the information of the columns of one level went, in nats.

    `kept` is I(X_j; Y_j), `entropy` H(X_j); the difference is lost to privacy. `truth` is the share
    of unchanged cells (None with free outputs). `spent` has the smallest and the largest factor by
    which prefixes up to here change the probability of a secret.
    """

    columns: tuple[str, ...]
    entropy: float
    kept: float
    truth: float | None
    spent: tuple[float, float]


@dataclass(frozen=True)
class WorstRow:
    """A released row, its probability, and the prior and posterior of every secret."""

    row: tuple[str, ...]
    share: float
    prior: tuple[float, ...]
    posterior: tuple[float, ...]

    @property
    def move(self) -> float:
        """Largest absolute log-lift |ln P(s|y) / P(s)| of a secret, in nats."""
        largest = 0.0
        for before, after in zip(self.prior, self.posterior, strict=True):
            if before == 0.0:
                # A secret that does not occur in the stratum has no lift.
                continue
            if after == 0.0:
                return math.inf
            largest = max(largest, abs(math.log(after / before)))
        return largest


@dataclass(frozen=True)
class RowReport:
    """What the page shows, made by `row_report`; `ledgers` in the order of the levels.

    `nmi`, the bound and the `task` come from the channel file, where the search left them; None if
    the file lacks them.
    """

    channel: RowChannel
    audit: RowAudit
    ledgers: tuple[ColumnLedger, ...]
    worst: tuple[WorstRow, ...]
    nmi: float | None
    upper_bound_nmi: float | None
    task: TaskUtility | None


def row_report(channel: RowChannel) -> RowReport:
    """Compute the report of a channel on its own table.

    Raises
    ------
    InputError
        If the channel is a public one, without its table.
    """
    if channel.table is None:
        raise InputError(
            "this row channel carries no table (a public one), and its report is computed from "
            "the table: report on the file that has it"
        )
    audit = audit_rows(channel)
    law = row_law(channel)
    utility = channel.record.utility or {}
    certificate = channel.record.certificate or {}
    return RowReport(
        channel=channel,
        audit=audit,
        ledgers=_ledgers(channel, audit, law),
        worst=worst_rows(law),
        nmi=utility.get("nmi"),
        upper_bound_nmi=certificate.get("upper_bound_nmi"),
        task=_task(utility),
    )


def report_page(report: RowReport, *, pictures: bool = True) -> blocks.Document:
    """The report as a page for those who may see the table; `pictures` need matplotlib."""
    channel = report.channel
    sensitive = wording.title(channel.sensitive.columns)
    released = wording.titles(channel.levels)
    picture: list[blocks.Block] = []
    if pictures:
        picture.append(ledger_picture(report.ledgers))
    promise = blocks.Section(
        "promise", "What is promised", tuple(_promise_blocks(report, sensitive))
    )
    columns = blocks.Section(
        "columns",
        "Where each column's information went",
        (*picture, *_column_blocks(report)),
    )
    worst = blocks.Section(
        "worst", "Before and after", tuple(_worst_blocks(report, sensitive))
    )
    scope = blocks.Section("scope", "Where the promise ends", (_scope_bullets(report),))
    return blocks.Document(
        title=f"Release of {released}, protecting {sensitive}",
        banner="Internal report: it is computed from the table. Do not publish.",
        internal=True,
        lead=f"{released} are released together; {sensitive} is protected.",
        highlights=_cards(report),
        sections=(promise, columns, worst, scope),
        footer="Written by mechdesign.",
    )


def report_record(report: RowReport) -> dict[str, Any]:
    """The report as plain values, for JSON."""
    channel = report.channel
    return {
        "format": FORMAT,
        "version": VERSION,
        "sensitive": list(channel.sensitive.columns),
        "secrets": list(channel.sensitive.names),
        "given": [list(variable.columns) for variable in channel.given],
        "notion": to_record(report.audit.notion),
        "promise": report.audit.promise,
        "satisfied": report.audit.satisfied,
        "achieved": asdict(report.audit.achieved),
        "given_lift": optional_record(report.audit.given),
        "nmi": report.nmi,
        "upper_bound_nmi": report.upper_bound_nmi,
        "task": optional_record(report.task),
        "columns": [asdict(ledger) for ledger in report.ledgers],
        "worst": [asdict(row) for row in report.worst],
    }


def save_row_report(channel: RowChannel, path: str, *, overwrite: bool) -> RowReport:
    """Compute the report of a channel and write it, as HTML, Markdown or JSON by the ending."""
    report = row_report(channel)
    page = partial(report_page, report)
    save_page(path, report_record(report), page, overwrite=overwrite)
    return report


def worst_rows(law: RowLaw, most: int = MOST_WORST) -> tuple[WorstRow, ...]:
    """The released rows whose posterior moves most, measured as the promise measures it."""
    rows: list[WorstRow] = []
    priors = _priors(law)
    # P(s | leaf) of every released row, which is a leaf of the tree.
    posteriors = law.joint / law.shares[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        lifts = np.abs(np.log(posteriors / priors))
    # 0 / 0 is a secret that does not occur in the stratum, which no row can move.
    moves = np.nan_to_num(lifts, nan=0.0, posinf=math.inf).max(axis=1)
    # Stable, so that ties stand in the order of the leaves and a page is always the same.
    for leaf in np.argsort(-moves, kind="stable")[:most].tolist():
        row = WorstRow(
            row=law.texts(leaf),
            share=float(law.shares[leaf]),
            prior=tuple(priors[leaf].tolist()),
            posterior=tuple(posteriors[leaf].tolist()),
        )
        rows.append(row)
    return tuple(rows)


def level_joints(channel: RowChannel) -> list[NDArray[np.float64]]:
    """P(x_j, y_j) of every level on the channel's own table, as (symbols, outputs) arrays.

    All rows go down the tree together, level by level. The state is a list of paths: path i is a
    row `rows[i]` at a node `nodes[i]`, and `weights[i]` is the probability that the row is drawn
    and reaches the node. At each level every path branches into the outputs that its node can draw
    for the symbol of its row: of weight v and probability q, a branch adds v q to P(x_j, y_j). A
    constant node has one output, whatever the symbol.
    """
    records = channel.table
    if records is None:
        raise TypeError("a public channel has no table")
    strata = channel.strata_of(records.codes[:, : len(channel.given)])
    rows = np.arange(len(records))
    nodes = channel.tree.roots[strata]
    weights = records.masses
    joints: list[NDArray[np.float64]] = []
    for level, table in enumerate(channel.tree.levels):
        inputs = records.codes[rows, len(channel.given) + level]
        joint = np.zeros((len(channel.levels[level]), len(channel.labels[level])))
        is_constant = table.constant[nodes]
        constant = np.flatnonzero(is_constant)
        random = np.flatnonzero(~is_constant)

        # One branch for each constant path, then those of the others, in this order everywhere
        # below: the slot of the output in its node, the path it comes from, its probability.
        pairs = table.pairs(nodes[random], inputs[random])
        owner, entries = table.expanded(pairs)
        slots = np.concatenate(
            [table.first_slot[nodes[constant]], table.rows.indices[entries]]
        )
        sources = np.concatenate([constant, random[owner]])
        shares = np.ones(len(sources))
        # Probabilities are integers over 2^53, so these quotients are exact.
        shares[len(constant) :] = table.rows.values[entries] / 2.0**53

        weights = weights[sources] * shares
        np.add.at(joint, (inputs[sources], table.slot_outputs[slots]), weights)
        joints.append(joint)

        # The branches are the paths of the next level.
        rows = rows[sources]
        nodes = table.slot_children[slots]
    return joints


def _task(utility: Mapping[str, Any]) -> TaskUtility | None:
    """What the record says of the column that the rows were made to tell of."""
    if "task" not in utility:
        return None
    return TaskUtility(
        column=str(utility["task"]),
        task_kept=float(utility["task_kept"]),
        task_upper_bound=float(utility["task_upper_bound"]),
    )


def _priors(law: RowLaw) -> NDArray[np.float64]:
    """(leaves, |S|) prior that the promise compares with: the table's, or the stratum's."""
    # The relative promise is about P(s|y,k) / P(s|k), with the given columns k of the leaf.
    if law.channel.record.promise != RELATIVE:
        return np.broadcast_to(law.prior, law.masses.shape)
    counts = law.priors.astype(np.float64)[law.strata]
    return counts / counts.sum(axis=1, keepdims=True)


def _ledgers(
    channel: RowChannel, audit: RowAudit, law: RowLaw
) -> tuple[ColumnLedger, ...]:
    """Where the information of the columns of every level went."""
    joints = level_joints(channel)
    ledgers: list[ColumnLedger] = []
    for level, joint in enumerate(joints):
        truth = None
        if channel.record.objective == TRUTH:
            # With this objective output i is symbol i, so the diagonal is P(Y_j = X_j).
            truth = float(np.trace(joint))
        spent = audit.spent[level]
        ledger = ColumnLedger(
            columns=channel.levels[level].columns,
            entropy=_entropy(joint.sum(axis=1)),
            # Rounding can make an information of 0 negative.
            kept=max(0.0, _information(joint)),
            truth=truth,
            spent=(math.exp(-spent.eps_l), math.exp(spent.eps_u)),
        )
        ledgers.append(ledger)
    return tuple(ledgers)


def _entropy(shares: NDArray[np.float64]) -> float:
    """H of a distribution, in nats; 0 log 0 counts as 0."""
    positive = shares[shares > 0.0]
    return float(-(positive * np.log(positive)).sum())


def _information(joint: NDArray[np.float64]) -> float:
    """I(X;Y) = H(X) + H(Y) - H(X,Y) of a joint table, in nats."""
    return (
        _entropy(joint.sum(axis=0))
        + _entropy(joint.sum(axis=1))
        - _entropy(joint.ravel())
    )


def _factors(eps_l: float, eps_u: float, between: str = " to ") -> str:
    """The smallest lift, rounded down, and the largest, rounded up."""
    low = wording.factor_text(eps_l, upper=False)
    high = wording.factor_text(eps_u, upper=True)
    return f"{low}{between}{high}"


def _cards(report: RowReport) -> tuple[tuple[str, str], ...]:
    """The cards at the top: (title, text) pairs."""
    achieved = report.audit.achieved
    cards = [
        ("Times as likely as before", _factors(achieved.eps_l, achieved.eps_u)),
        POPULATION_CARD,
        ("Privacy notion", report.audit.notion.text),
        ("Verified", VERIFIED[report.audit.satisfied]),
    ]
    if report.nmi is not None:
        cards.append(("Information kept", wording.percent_at_least(report.nmi)))
    if report.upper_bound_nmi is not None:
        bound = wording.percent_at_most(report.upper_bound_nmi)
        cards.append(("No mechanism keeps more than", bound))
    if report.task is not None:
        task = wording.label(report.task.column)
        kept = wording.percent_at_least(report.task.task_kept)
        bound = wording.percent_at_most(report.task.task_upper_bound)
        cards.append((f"Of what the rows tell of {task}", kept))
        cards.append(("No mechanism tells more than", bound))
    return tuple(cards)


def _promise_blocks(report: RowReport, sensitive: str) -> list[blocks.Block]:
    """The factors that the channel uses, and the exact verdict."""
    achieved = report.audit.achieved
    factors = _factors(achieved.eps_l, achieved.eps_u, " and ")
    verdict = "VIOLATES"
    if report.audit.satisfied:
        verdict = "keeps"
    prefixes = wording.count(report.audit.leaves, "prefix", "prefixes")
    texts = [
        f"Seeing a released row changes the probability of every value of {sensitive} by a factor "
        f"between {factors}.",
        f"The channel {verdict} {report.audit.notion.text}, {report.audit.promise} promise, "
        f"decided in exact arithmetic on {prefixes}.",
    ]
    given = report.audit.given
    if given is not None:
        alone = _factors(given.eps_l, given.eps_u, " and ")
        texts.append(
            "The given columns are released as they are. Alone they change these probabilities by "
            f"a factor between {alone}."
        )
    return list(blocks.paragraphs(texts))


def _column_blocks(report: RowReport) -> list[blocks.Block]:
    """The ledger of every level as a table."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for ledger in report.ledgers:
        unchanged = "-"
        if ledger.truth is not None:
            unchanged = wording.percent_at_least(ledger.truth)
        share = 0.0
        if ledger.entropy > 0.0:
            share = min(1.0, ledger.kept / ledger.entropy)
        low, high = ledger.spent
        row = blocks.cells(
            blocks.short(wording.title(ledger.columns)),
            unchanged,
            wording.percent(share),
            wording.percent(1.0 - share),
            wording.about(ledger.entropy),
            f"{wording.at_least(low)} to {wording.at_most(high)}",
        )
        rows.append(row)
    header = (
        "column",
        "unchanged cells",
        "kept by itself",
        "lost to privacy",
        "information (nats)",
        "factor so far",
    )
    explanation = (
        "The released value of a column tells this share of the information in its true value, "
        "each column by itself. The factor so far is the range that the row has used up to this "
        "column."
    )
    caption = "What each column keeps and spends, in the order of the release"
    return [blocks.Text(explanation), *blocks.grid(caption, header, rows, "columns")]


def _worst_blocks(report: RowReport, sensitive: str) -> list[blocks.Block]:
    """The worst rows, with every secret's probability before and after."""
    names = report.channel.sensitive.names
    header = ["released row", "share of rows"]
    header += [
        f"{blocks.short(name)}: before \N{RIGHTWARDS ARROW} after" for name in names
    ]
    rows: list[tuple[blocks.Cell, ...]] = []
    for worst in report.worst:
        texts = [blocks.short(", ".join(worst.row)), wording.percent(worst.share)]
        for before, after in zip(worst.prior, worst.posterior, strict=True):
            prior = wording.percent(before, step=wording.TENTH)
            posterior = wording.percent(after, step=wording.TENTH)
            texts.append(f"{prior} \N{RIGHTWARDS ARROW} {posterior}")
        rows.append(blocks.cells(*texts))
    caption = f"The released rows that move the belief about {sensitive} most"
    return blocks.grid(caption, tuple(header), rows, "rows")


def _scope_bullets(report: RowReport) -> blocks.Bullets:
    """What the promise covers and what it leaves open."""
    covers = COVERS
    if report.audit.promise == RELATIVE:
        covers = COVERS_RELATIVE
    return blocks.Bullets((covers, *LIMITS))


class Ledger(Protocol):
    """The information of a column, and how much of it is kept, in nats.

    `ColumnLedger` of rows has these, and `box_utility.ColumnKept` of boxes.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, or several crossed ones."""
        ...

    @property
    def entropy(self) -> float:
        """What is in it."""
        ...

    @property
    def kept(self) -> float:
        """What a released row tells of it."""
        ...


def ledger_picture(ledgers: Sequence[Ledger]) -> blocks.Picture:
    """A bar for every column, of the length H(X_j): what is kept, and what privacy took."""
    words = (
        "For every column, the information that is kept and what is lost to privacy; "
        "the table below has the numbers."
    )
    names: list[str] = []
    kept: list[float] = []
    lost: list[float] = []
    for ledger in ledgers:
        names.append(blocks.short(wording.title(ledger.columns)))
        # Rounding can put I(X_j; Y_j) above H(X_j); the two bars still make up H(X_j).
        kept.append(min(ledger.kept, ledger.entropy))
        lost.append(max(0.0, ledger.entropy - ledger.kept))
    with drawing.settings(**drawing.PAGE):
        height = 1.1 + 0.4 * len(ledgers)
        figure = drawing.new_figure(
            figsize=(PICTURE_WIDTH, height), layout="constrained"
        )
        axes = figure.subplots()
        places = list(range(len(ledgers)))
        axes.barh(places, kept, color=KEPT_COLOUR, label="kept")
        axes.barh(
            places,
            lost,
            left=kept,
            color=LOST_COLOUR,
            hatch="//",
            label="lost to privacy",
        )
        # A dollar sign in the name of a column is no formula.
        axes.set_yticks(places, labels=names, parse_math=False)
        # The first column at the top, as in the table.
        axes.invert_yaxis()
        axes.set_xlabel("information in the column (nats)")
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        return drawing.picture_of(figure, words)
