"""What merging symbols would buy where a promise for the population keeps little of a column.

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
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mechdesign.auditing.verdict import is_stacked
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.limits import LiftLimits
from mechdesign.mechanisms.box_design import FEWEST_RECORDS, design_boxes
from mechdesign.mechanisms.box_request import AUTO, BoxRequest
from mechdesign.mechanisms.result import Design
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records

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
    if joint is None or confidence is None:
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
