"""Row channels whose promise holds for the population: boxes learned on a slice of the records, one
robust channel for them proven on the others.

1. A slice of the records is drawn at random. On it alone are decided: the strata, which rare
   sensitive values are promised together, the boxes, and how many boxes are tried (`box_parts`).
2. The other records are independent draws over these fixed boxes and values. A confidence set for
   their counts, and the optimal channel for it (`mechanisms.population`), do the rest
   (`box_parts`).
3. The level is shared by the strata (union bound). The number of boxes costs none of it: several
   are tried, all on the slice.
4. The whole channel is audited exactly, and returned only if it keeps the promise.

For example, of 30,000 records 3,000 are the slice. It sorts the rows into 64 boxes such as 'hours
40-49, education Bachelors or Masters', and the other 27,000 are counted by income and box. The
channel releases a box for each record, most often the one that its row is in.

docs/explanation/population.md, 'Rows', has the proof. The promise is relative to the given columns.

*What is kept of each column by itself*, H(X_j | K) and I(X_j; Y | K), is computed once the parts of
a design are there (`columns_kept`). For every stratum k and column X_j the masses P(x_j, box) are
counted, and multiplied by the channel of the boxes to P(x_j, y): given its box, an output does not
depend on the row. The means over the strata of the entropies and informations of these tables are
the figures.

For example, a symbol has 30 records in box 0 and 10 in box 1, and the channel releases the boxes as
they are with probability 0.8 and 0.7, and else the other one. Then it has 30 * 0.8 + 10 * 0.3 = 27
records of output 0 and 13 of output 1.

*Proposals*: what merging symbols would buy where a promise for the population keeps little.
`merge_proposals` takes a finished design and tries one or two options of the command line, each in
its part of the time:

1. `--merge-rare auto`: sets of symbols, the boxes, are chosen on a slice of the records, and the
   promise is proven on the others (`box_design.design_boxes`).
2. `--merge-rare auto --rare auto`, with three or more sensitive values: rare ones are promised
   together besides, as one value.

An option becomes a `MergeProposal` if it keeps `GAIN` of H(X) more than the design, and than the
option before it. The channel that was asked for stays as it is: its promise was proven before, and
without any of this.

Each promise holds with its own level. Whoever chooses among several after a look at all of them has
the sum of their probabilities of failure (docs/explanation/population.md, Proposition 7).
`level_of_all` says what a choice costs, and `level_for_all` what each promise would have to be
designed at: among three promises of 95 % the chosen one has 85 %, and 95 % if each is designed at
98.34 %.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import mechdesign
from mechdesign.auditing.either import audit_boxes
from mechdesign.auditing.unchanged import unchanged_cells_of_boxes
from mechdesign.auditing.verdict import is_stacked
from mechdesign.channel.box_claims import BoxUtility, ColumnKept
from mechdesign.channel.boxes import channel_of_boxes
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.integers import Integers
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import joined_name, quoted
from mechdesign.mechanisms.box_parts import DesignedParts, PartDesigns, PartSummary
from mechdesign.mechanisms.box_request import (
    AUTO,
    MOST_LISTED,
    SLICE_SHARE,
    BoxRequest,
    conditional_entropy,
    entropy,
)
from mechdesign.mechanisms.classes import refuse_secret_identifier
from mechdesign.mechanisms.result import OF_THESE_BOXES, Certificate, Design
from mechdesign.notions import to_record
from mechdesign.tables.confidence import check_counts, unprotected
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records
from mechdesign.tables.row_boxes import Boxes, box_name
from mechdesign.tables.uncovered_values import RareLimit, rare_limit

# ------------------------------------------------------------------------------- design

FEWEST_RECORDS = 40
"""Smaller tables are refused: a slice of them decides nothing."""

TOO_FEW_PEOPLE = (
    "no part of the table has enough people for boxes of sequences, so that nothing could be "
    "released: take more people, a lower --confidence, or a larger budget"
)


def design_boxes(records: Records, request: BoxRequest) -> Design:
    """Design a channel for rows with a promise for the population; see the module.

    Parameters
    ----------
    records : Records
        Whole numbers of records; the first `request.given` groups are released as they are.

    Raises
    ------
    InputError
        If the counts are weights, there are too few records, or a sensitive value was listed
        without a record.
    NotPrivate
        If boxes of people's sequences would release nothing.
    SolverFailure
        If no channel could be verified.
    """
    started = time.process_time()
    _check(records, request)
    seed = request.seed
    if seed is None:
        # Fresh, so that the slice is independent of the records whatever these are.
        seed = secrets.randbits(64)

    # The slice decides boxes and strata. Given the slice, the other records are independent draws
    # over fixed boxes, which is what the confidence sets need.
    counts = np.array(records.counts, dtype=np.int64)
    learning = _slice_of(counts, seed)
    proving = counts - learning
    strata = np.unique(records.codes[learning > 0][:, : request.given], axis=0)
    strata_codes = [tuple(row) for row in strata.tolist()]
    designs = PartDesigns(records, request, learning, proving, strata_codes)
    designed = designs.designed(started)

    utility = _utility(records, request, designed, proving)
    parts = designed.parts
    if request.people is not None:
        # A label of a box has no records.
        if not any(part.fill for part in parts):
            raise NotPrivate(TOO_FEW_PEOPLE)
        parts = [*parts, *_silent(records, parts, request.given)]
    channel = channel_of_boxes(
        sensitive=records.sensitive,
        given=records.groups[: request.given],
        columns=records.groups[request.given :],
        parts=parts,
        level=float(request.level),
        slice_records=int(learning.sum()),
        provenance={
            "tool": "mechdesign",
            "version": mechdesign.__version__,
            "slice_seed": seed,
        },
        utility=utility,
        people=request.people,
    )
    # Also where no stratum releases anything: then every promise is kept.
    promised = replace(channel.record, notion=to_record(request.notion))
    channel = channel.with_record(promised)
    # Each part was audited on its own; this audit reads what will be saved, as anybody else would.
    verdict = audit_boxes(channel, request.notion)
    if not verdict.satisfied:
        raise SolverFailure(
            "the exact audit refutes the channel for boxes: no channel is returned"
        )
    # The bound is one for these boxes: others may keep more.
    certificate = Certificate(
        upper_bound_nmi=utility.upper_bound_nmi, scope="proven", rivals=OF_THESE_BOXES
    )
    return Design(
        channel=channel,
        notion=request.notion,
        mechanism="rows",
        method="boxes",
        nmi=utility.nmi,
        mutual_information=utility.information,
        entropy=utility.entropy,
        achieved=verdict.achieved,
        certificate=certificate.at(utility.nmi),
        audit=verdict,
        on_table=verdict.on_table,
        truth=unchanged_cells_of_boxes(channel),
        messages=tuple(designed.messages),
        seconds=time.process_time() - started,
    )


def _silent(records: Records, parts: Sequence[BoxPart], given: int) -> list[BoxPart]:
    """Parts that release nothing, for the given cells of records that nobody of the slice has.

    Of people these are numbers of records, each of which the channel must have a stratum for.
    """
    present = {part.stratum for part in parts}
    absent = {tuple(codes) for codes in records.codes[:, :given].tolist()} - present
    return [BoxPart(stratum, Boxes(())) for stratum in sorted(absent)]


def _check(records: Records, request: BoxRequest) -> None:
    """Refuse tables without a promise to make, or with too few records to prove one."""
    check_counts(records)
    if records.empty_sensitive:
        raise unprotected(records.empty_sensitive)
    refuse_secret_identifier(records.sensitive, records.total)
    if len(records.sensitive) < 2:
        raise InputError(
            f"the sensitive column {quoted(','.join(records.sensitive.columns))} has a single "
            "symbol: there is nothing to protect"
        )
    if records.total < FEWEST_RECORDS:
        raise InputError(
            f"the table has {records.total} records: at least {FEWEST_RECORDS} are needed, a part "
            "of them for the boxes"
        )
    if request.rare == AUTO and len(records.groups) - request.given > 1:
        raise InputError(
            "--rare ('auto') is for one released column: give a number of records"
        )


def _utility(
    records: Records,
    request: BoxRequest,
    designed: DesignedParts,
    proving: Integers,
) -> BoxUtility:
    """What the channel keeps, in all and by column, with its bounds."""
    # The strata are released as they are, so information and bound are means over them.
    summaries = designed.summaries
    information = math.fsum(part.mass * part.information for part in summaries)
    bound = math.fsum(part.mass * part.bound for part in summaries)
    return BoxUtility(
        information=information,
        # Rounding must not leave the bound below what was reached.
        bound=max(bound, information),
        entropy=conditional_entropy(records, request.given),
        records=records.total,
        columns=columns_kept(records, request.given, designed.parts, proving),
        limit=_limit(records, request, designed.parts),
        **_own_figures(designed.summaries, designed.parts),
    )


def _own_figures(
    summaries: Sequence[PartSummary], parts: Sequence[BoxPart]
) -> dict[str, float]:
    """The share of records that keep their box, its bound, and the law; none for free labels.

    Strata that release nothing have no boxes to keep.
    """
    of_parts = [(part.records, part.least) for part in summaries if part.least]
    if not of_parts:
        return {}
    total = sum(part.records for part in summaries)
    own = sum(n * Fraction(least.truth) for n, least in of_parts) / total
    bound = sum(n * (1 - Fraction(least.cost_lower_bound)) for n, least in of_parts)
    figures = {
        # Rounded down by way of the negative.
        "own": 0.0 - quotient_above(*(-own).as_integer_ratio()),
        "own_bound": quotient_above(*(bound / total).as_integer_ratio()),
    }
    # Boxes without a record of the proof are drawn anew with the law of its records: then that law
    # is kept, and that of all records only nearly, by an amount that is not computed.
    if not any(part.channel is not None and part.channel.unseen for part in parts):
        figures["law_deviation"] = max(
            least.frequency_deviation for _, least in of_parts
        )
    return figures


def _limit(
    records: Records, request: BoxRequest, parts: Sequence[BoxPart]
) -> RareLimit | None:
    """The limit by the rarest value that is promised for itself; None with given columns."""
    limits = request.notion.limits
    # Proposition 6 of docs/explanation/population.md takes one budget for all values.
    if request.given or not isinstance(limits, LiftLimits) or limits.symbol_budgets:
        return None
    counts = records.sensitive_counts()
    # Without given columns there is one stratum, hence one part.
    promised: list[tuple[str, int]] = []
    for members in parts[0].together:
        name = joined_name([records.sensitive.names[s] for s in members])
        promised.append((name, sum(counts[s] for s in members)))
    return rare_limit(promised, limits.upper, request.level)


def _slice_of(counts: Integers, seed: int) -> Integers:
    """(rows,) records of the slice: a uniformly random subset of fixed size.

    Of more than `MOST_LISTED` records, which would not fit into memory, each is in the slice with
    the probability `SLICE_SHARE`, independently. Either way the choice depends on no record.
    """
    total = int(counts.sum())
    if total > MOST_LISTED:
        generator = np.random.Generator(np.random.PCG64(seed))
        return generator.binomial(counts, SLICE_SHARE)
    size = max(int(SLICE_SHARE * total), 1)
    # Records that share a row are numbered one after the other: of the counts 3 and 2, the records
    # 0, 1, 2 are of row 0, and 3 and 4 of row 1.
    generator = np.random.Generator(np.random.PCG64(seed))
    places = generator.choice(total, size=size, replace=False, shuffle=False)
    rows = np.searchsorted(np.cumsum(counts), places, side="right")
    return np.bincount(rows, minlength=len(counts)).astype(np.int64)


Floats = NDArray[np.float64]


def columns_kept(
    records: Records, given: int, parts: Sequence[BoxPart], counts: Integers
) -> tuple[ColumnKept, ...]:
    """H(X_j | K) and I(X_j; Y | K) of every column behind the first `given` groups.

    Parameters
    ----------
    records : Records
    given : int
        Number of given groups.
    parts : sequence of BoxPart
        Rows without a part release nothing.
    counts : (rows,) array
        Records of each row that count.
    """
    part_of = {part.stratum: part for part in parts}
    strata, stratum_of_row = np.unique(
        records.codes[:, :given], axis=0, return_inverse=True
    )
    total = float(counts.sum())
    size = len(records.groups) - given
    entropies = np.zeros(size)
    kept = np.zeros(size)
    for number, stratum in enumerate(strata.tolist()):
        rows = np.flatnonzero(stratum_of_row.ravel() == number)
        mass = float(counts[rows].sum()) / total
        if mass == 0.0:
            # All records of this stratum are in the slice, and none of them counts.
            continue
        codes = records.codes[rows][:, given:]
        part = part_of.get(tuple(stratum))
        for column in range(size):
            sums = np.bincount(codes[:, column], counts[rows])
            entropies[column] += mass * entropy(sums / sums.sum())
            # Without a channel the stratum releases its given columns alone: nothing of X_j.
            if part is not None and part.channel is not None:
                joint = _joint(part, codes, column, counts[rows])
                kept[column] += mass * _information(joint)
    columns: list[ColumnKept] = []
    for variable, most, value in zip(
        records.groups[given:], entropies.tolist(), kept.tolist(), strict=True
    ):
        # I(X; Y) is at most H(X), but rounding may put it above.
        columns.append(ColumnKept(variable.columns, most, min(value, most)))
    return tuple(columns)


def _joint(part: BoxPart, codes: Integers, column: int, counts: Integers) -> Floats:
    """(symbols, outputs) masses of a column's true symbol and the released output."""
    table = np.zeros((int(codes[:, column].max()) + 1, len(part.boxes)))
    np.add.at(table, (codes[:, column], part.boxes.of(codes)), counts)
    return table @ output_laws(part)


def output_laws(part: BoxPart) -> Floats:
    """(boxes, outputs) law of the output of every box; of a box without records that of all.

    The part must have a channel with its counts.
    """
    channel = part.channel
    if channel is None or channel.joint is None:
        raise TypeError("a part without a channel and counts has no laws of outputs")
    rows = dict(zip(channel.useful.names, channel.matrix, strict=True))
    shares = channel.joint.p.sum(axis=0)
    by_name = dict(zip(channel.joint.useful.names, shares, strict=True))
    marginal = np.zeros(len(channel.outputs))
    # A box without records is an unseen symbol: it is released by the law of all outputs.
    for name, share in by_name.items():
        marginal += share * rows[name]
    names = [box_name(box) for box in range(len(part.boxes))]
    return np.array([rows.get(name, marginal) for name in names])


def _information(joint: Floats) -> float:
    """I(X; Y) = H(X) + H(Y) - H(X, Y) in nats, of a table of masses that need not sum to one."""
    law = joint / joint.sum()
    both = entropy(law.ravel())
    # Rounding can make an information of 0 negative.
    return max(0.0, entropy(law.sum(axis=0)) + entropy(law.sum(axis=1)) - both)


# ---------------------------------------------------------------------------- proposals

LITTLE = 0.7
"""Kept share from which on nothing is proposed."""

GAIN = 0.03
"""Kept share that a proposal must add to be worth a line."""

GAP = 1e-3
"""Gap of the searches for proposals, in units of H(X)."""

LEAST_SECONDS = 0.5
"""Time below which no proposal is tried."""

DIGITS = 4
"""Decimals of the level that all promises together need."""


@dataclass(frozen=True)
class MergeProposal:
    """What an option would keep.

    Parameters
    ----------
    options : str
        As the command line has them.
    nmi : float
        I(X; Y) / H(X) of a channel that was verified, with a slice of its own.
    merged : tuple of tuples of str
        Useful symbols that are one box of that channel.
    together : tuple of str
        Sensitive values that are one value of its promise.
    """

    options: str
    nmi: float
    merged: tuple[tuple[str, ...], ...]
    together: tuple[str, ...]


@dataclass(frozen=True)
class MergeProposals:
    """What merging would keep, and among how many promises a reader of it chooses.

    Parameters
    ----------
    shown : tuple of MergeProposal
        Those that keep more than the design and than those before them.
    tried : int
        All options that the table has. One that keeps no more is not shown, but that it is not
        shown is a look at it, so it counts (docs/explanation/population.md, Proposition 7).
    """

    shown: tuple[MergeProposal, ...] = ()
    tried: int = 0

    @property
    def promises(self) -> int:
        """The design's own promise and those of all options that were tried."""
        return self.tried + 1


NO_PROPOSALS = MergeProposals()


def takes_proposals(design: Design) -> bool:
    """Whether merging is built for what was asked: lifts alone, whole counts, one release."""
    joint = design.channel.joint
    confidence = design.confidence
    if joint is None or confidence is None or not joint.is_counts:
        return False
    if confidence.unseen or confidence.shares_are_known:
        return False
    if design.least is not None or design.purpose is not None:
        return False
    # Two symbols that are merged are a constant.
    if len(joint.useful) < 3 or any(joint.useful.bins):
        return False
    is_lift = isinstance(design.notion.limits, LiftLimits)
    return is_lift and not is_stacked(joint, design.notion, ())


def merge_proposals(
    design: Design, end: float, *, gap: float = GAP, slice_seed: int | None = None
) -> MergeProposals:
    """Proposals that keep more than a design with confidence, each with a proven share.

    Parameters
    ----------
    design : Design
        With confidence.
    end : float
        When to stop, on the clock of `time.process_time`.
    gap : float
        Gap of the searches, in units of H(X).
    slice_seed : int, optional
        Repeats the draw of the slices; fresh for each trial if left out.
    """
    joint = design.channel.joint
    confidence = design.confidence
    if joint is None or confidence is None or design.was_interrupted:
        return NO_PROPOSALS
    if design.nmi >= LITTLE or not takes_proposals(design):
        return NO_PROPOSALS
    if joint.total < FEWEST_RECORDS:
        return NO_PROPOSALS
    # The options in words, and the field `rare` of their request.
    trials: list[tuple[str, int | Literal["auto"]]] = [("--merge-rare auto", 0)]
    if len(joint.sensitive) > 2:
        # With two values nothing is left to protect once they are promised together.
        trials.append(("--merge-rare auto --rare auto", AUTO))
    proposals: list[MergeProposal] = []
    best = design.nmi
    for place, (options, rare) in enumerate(trials):
        seconds = (end - time.process_time()) / (len(trials) - place)
        if seconds < LEAST_SECONDS:
            break
        request = BoxRequest(
            notion=design.notion,
            level=confidence.level,
            rare=rare,
            gap=gap,
            time_limit=seconds,
            seed=slice_seed,
        )
        proposal = _tried(joint, options, request)
        # Each option shown promises less than the one before it, so it must keep clearly more.
        if proposal is not None and proposal.nmi >= best + GAIN:
            proposals.append(proposal)
            best = proposal.nmi
    return MergeProposals(tuple(proposals), len(trials))


def _tried(joint: Joint, options: str, request: BoxRequest) -> MergeProposal | None:
    """The proposal of one trial; None where no channel was verified."""
    records = Records.from_joint(joint, [joint.useful.columns])
    try:
        merged = design_boxes(records, request)
    except (InputError, SolverFailure):
        return None
    return MergeProposal(
        options=options,
        nmi=merged.nmi,
        merged=_merged_symbols(merged.channel),
        together=_together(merged.channel),
    )


def _merged_symbols(channel: Channel) -> tuple[tuple[str, ...], ...]:
    """The boxes of more than one symbol of the column."""
    (part,) = channel.parts
    (variable,) = channel.boxed.coder.columns
    merged: list[tuple[str, ...]] = []
    for members in channel.boxed.coder.members(part.boxes):
        inside, _ = members.get(0, (set[int](), False))
        if len(inside) > 1:
            merged.append(tuple(variable.names[x] for x in sorted(inside)))
    return tuple(merged)


def _together(channel: Channel) -> tuple[str, ...]:
    """The sensitive values that are promised as one; there is one such group at most."""
    (part,) = channel.parts
    for group in part.together:
        if len(group) > 1:
            return tuple(channel.boxed.sensitive.names[s] for s in group)
    return ()


def level_for_all(level: float, promises: int) -> float:
    """A level at which so many promises hold together at `level`, rounded up to `DIGITS`."""
    allowed = (1 - Fraction(repr(level))) / promises
    unit = 10**DIGITS
    return math.ceil((1 - allowed) * unit) / unit


def level_of_all(level: float, promises: int) -> float:
    """The level at which so many promises of `level` each hold together at least."""
    return float(max(1 - promises * (1 - Fraction(repr(level))), Fraction(0)))
