"""The first screen of `design`: at most 25 lines that an officer can act on; `--full` has the rest.

The order is that of the questions people ask: how far can a belief move, for the table and for the
population behind it; how often a guess is right; how much is kept; what is not covered; what comes
next. ::

    job (3 symbols) is released as 3 outputs; sex (2 symbols) is protected.
    Table: a released value makes any value of sex 0.77 to 1.29 times as probable (verified).
    Population (95 % confidence): 0.32 to 1.96 times as probable; ..      (`promise_lines`)
    Guesses: no guess of sex from a released value is right more often .. (`promise_lines`)

    sex  before  lowest after  highest after
    F    50.0 %        38.9 %         61.1 %                              (`_belief_lines`)

    Kept: 64.4 % of the information in job, within 0.001 % of the best .. (`_utility_lines`)

    Not covered
      - Other columns in the file, and other knowledge of job. ..         (`_uncovered_lines`)

`first_screen` shares out the lines: the promise and its limits get what they need, then the
utility, then as many beliefs as fit. Numbers are short, and still never more favourable than the
proven ones: upper factors are rounded up, lower ones down. `row_first_screen` and
`boxes.box_first_screen` do the same for whole rows, with the lines of `first_lines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mechdesign.mechanisms.result import Design
from mechdesign.report import blocks, layout, wording
from mechdesign.report.asked import names_of
from mechdesign.report.content import remarks_of, summary_report
from mechdesign.report.document import lead_of
from mechdesign.report.first_lines import (
    FULL,
    MOST_LINES,
    little_use_lines,
    promise_lines,
    uncovered_lines,
)
from mechdesign.report.law_section import brief_law
from mechdesign.report.least_section import least_blocks, moved_text
from mechdesign.report.record import Belief, Report
from mechdesign.report.row_first_screen import row_first_screen
from mechdesign.tables.joint import Joint

FEWEST_BELIEFS = 2
"""A table with fewer rows says nothing that the promise does not say."""


def first_screen(design: Design, joint: Joint, *, last: Sequence[str]) -> str:
    """The text of `design` in at most 25 lines, without a final newline.

    Parameters
    ----------
    design, joint
        The design, and the table that its beliefs are about; boxes carry their own counts.
    last
        The lines at the end: the files that were written, and the next command.
    """
    if design.audit is not None:
        # Loaded here, because few designs are of boxes.
        from mechdesign.report.boxes import box_first_screen

        return box_first_screen(design, last=last)
    remarks = remarks_of(design)
    report = summary_report(
        design, joint, attained={}, remarks=remarks, with_population=False
    )
    if design.channel.releases_symbols:
        return row_first_screen(design, report, joint, last=last)
    before = [*little_use_lines(design), lead_of(report.asked)]
    before += [*promise_lines(design, report), ""]
    utility = _utility_lines(design, report)
    after = ["", *uncovered_lines(design, report), "", FULL, *last]
    # The promise and its limits come whole; the utility, then the beliefs, take what room is left.
    room = MOST_LINES - len(before) - len(after)
    if len(utility) > room:
        # Only remarks are cut: the utility comes first.
        utility = [*utility[: room - 1], "Further remarks:  --full"]
    beliefs = _belief_lines(report, room - len(utility))
    return "\n".join([*before, *beliefs, *utility, *after])


def _belief_lines(report: Report, room: int) -> list[str]:
    """The probabilities before and after that can change most, as many as there is room for."""
    beliefs = report.promise.beliefs
    # Two lines go to the header and the empty line below, one to the remark if some are left out.
    rows = room - 2
    if rows < len(beliefs):
        rows -= 1
    if rows < FEWEST_BELIEFS:
        return []
    by_change = sorted(beliefs, key=change_of, reverse=True)
    most_changed = set(by_change[:rows])
    sensitive = names_of(report.asked)[0]
    lines: list[Sequence[str]] = [
        (wording.label(sensitive), "before", "lowest after", "highest after")
    ]
    # In the order of the table, which readers know, and not in that of the changes.
    for belief in beliefs:
        if belief in most_changed:
            lines.append(
                (
                    blocks.short(belief.symbol),
                    wording.percent(belief.before),
                    wording.percent_at_least(belief.lowest),
                    wording.percent_at_most(belief.highest),
                )
            )
    table = layout.aligned(lines, left=(0,))
    if len(beliefs) > rows:
        table.append(f"  ({rows} of {len(beliefs):,}: those that can change most)")
    return [*table, ""]


def change_of(belief: Belief) -> float:
    """The largest change of a probability in either direction."""
    return max(belief.highest - belief.before, belief.before - belief.lowest)


def _utility_lines(design: Design, report: Report) -> list[str]:
    """The utility with its proven bound, unchanged cells, and remarks on the mechanism."""
    useful = names_of(report.asked)[1]
    kept = report.kept
    if kept is None:
        raise TypeError("the summary of a design has its utility")
    beyond = ""
    if design.channel.given:
        beyond = f" beyond {wording.title(design.channel.given)}"
    share = wording.percent_at_least(kept.nmi)
    text = f"Kept: {share} of the information in {useful}{beyond}"
    if kept.gap_nmi is not None and kept.upper_bound_nmi is not None:
        gap = wording.percent_at_most(max(kept.gap_nmi, 0.0), step=wording.FINE)
        proof = wording.proof_text(kept.scope)
        near = f", within {gap} of the best possible ({proof})"
        if kept.gap_nmi > wording.LARGE_GAP:
            bound = wording.percent_at_most(kept.upper_bound_nmi)
            near = (
                "; how near that is to the best possible is not known, but that no channel "
                f"keeps more than {bound} ({proof})"
            )
        text += near
    lines = layout.lines_of(f"{text}.")
    for sentence in report.purpose:
        lines += layout.lines_of(sentence)
    if report.least is not None:
        for block in least_blocks(report.least, useful):
            if isinstance(block, blocks.Text):
                lines += layout.lines_of(block.text)
    else:
        unchanged = unchanged_share(design)
        if unchanged is not None:
            share = wording.percent_at_least(float(unchanged))
            lines += layout.lines_of(
                f"Unchanged: {share} of the records are released with their own {useful} "
                "(expected)."
            )
    lines += layout.lines_of(brief_law(design))
    for moved in report.numbers:
        lines += layout.lines_of(moved_text(moved))
    for remark in kept.remarks:
        lines += layout.lines_of(wording.label(remark))
    return lines


def unchanged_share(design: Design) -> Fraction | None:
    """The expected share of records whose output is their own symbol; None without the table.

    An output has the name of a symbol only if it comes from this symbol alone, or if outputs are
    symbols of the column (`channel.labels`).
    """
    channel = design.channel
    if channel.joint is None:
        return None
    # The sum over x of P(x) W(x|x), in whole numbers: counts times entries of the channel.
    unchanged = 0
    totals = channel.joint.useful_counts
    for total, entry in zip(totals, channel.own_entries, strict=True):
        unchanged += total * entry
    return Fraction(unchanged, channel.joint.total * channel.denominator)
