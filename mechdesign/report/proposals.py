"""What merging the symbols of a column would buy, on the first screen of a design without it.

Every proposal (`mechanisms.box_design.merge_proposals`) is an item of a list: its options, what it
keeps, and which symbols it merges. A paragraph below them is about the choice. Where each promise
fails with probability at most 5 %, one of 5 fails with at most 25 %, so the best of 5 is sure of
75 % only.
"""

from __future__ import annotations

from mechdesign.core.wording import listed, percent_of
from mechdesign.mechanisms.box_design import (
    MergeProposal,
    MergeProposals,
    level_for_all,
    level_of_all,
)
from mechdesign.report import wording

MOST_SETS = 3
"""Sets of merged symbols that a line names."""

MOST_NAMES = 5
"""Symbols of a set that a line names."""


def proposal_lines(proposals: MergeProposals, nmi: float, level: float) -> list[str]:
    """Lines with what each proposal keeps, what it merges, and what choosing among them costs.

    Parameters
    ----------
    proposals : MergeProposals
    nmi : float
        What the design itself keeps.
    level : float
        The confidence of each promise.
    """
    if not proposals.shown:
        return []
    lines = [f"Merging keeps more than {wording.percent_at_least(nmi)}:"]
    for proposal in proposals.shown:
        text = (
            f"{proposal.options} keeps about {wording.percent_at_least(proposal.nmi)}"
        )
        if proposal.merged:
            text += f", with {_sets(proposal)} merged"
        if proposal.together:
            names = listed(proposal.together, MOST_NAMES)
            text += f", and {names} promised together, as one value"
        lines += wording.item_lines([f"{text}."])
    count = proposals.promises
    # By the union bound over all promises that were tried.
    each = f"{100 * level_for_all(level, count):.6g}"
    together = percent_of(level_of_all(level, count))
    lines += wording.lines_of(
        "With the whole time limit it may be more. Each is a promise of its own with "
        f"{percent_of(level)} confidence, on a slice of its own. A choice among the {count} "
        f"promises that were tried has {together}, or {percent_of(level)} if each of them has "
        f"{each} %."
    )
    return lines


def _sets(proposal: MergeProposal) -> str:
    """The merged sets of a proposal: ``{a, b} and {c, d, 2 more} and 1 other set``."""
    texts: list[str] = []
    for symbols in proposal.merged[:MOST_SETS]:
        names = [wording.label(name) for name in symbols[:MOST_NAMES]]
        if len(symbols) > MOST_NAMES:
            names.append(f"{len(symbols) - MOST_NAMES} more")
        texts.append(f"{{{', '.join(names)}}}")
    left = len(proposal.merged) - MOST_SETS
    if left > 0:
        texts.append(f"{wording.count(left, 'other set')}")
    return " and ".join(texts)
