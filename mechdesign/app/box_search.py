"""The channel of boxes, whose promise holds for the population: rows, or a column whose rare values
are merged.

A box is a set of rows or values that are released alike, such as 'hours 40-49, education Bachelors
or Masters'. The boxes are learned on a tenth of the records, the slice, and the promise is proven
on the others (`mechanisms.box_design`). `designed_boxes` does it for the page:

1. `searched_boxes` searches.
2. The seed of the slice goes into the recipes. The slice is drawn at random, and another one would
   lead to other boxes.
3. `internal_report` computes the ranges of lifts from the counts in the channel.
4. `_facts` are the sentences at the top. The lists below are `_beliefs` (before and after for each
   protected value), `_meanings` (true boxes behind a label), `_worst_factors` and `_together`
   (protected values that are promised as one).

A channel has a part for each stratum of the given columns; without given columns it is one. With
filling, values are drawn inside of the released box. The receiver sees no label then, so the lists
of labels are empty.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.app.choice import RELATIVE, Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import command_of, script_of
from mechdesign.app.results import (
    BEYOND_GIVEN,
    MOST_MEANINGS,
    REMEDY,
    TEXT,
    BeliefRow,
    Designed,
    Download,
    Meaning,
    OutputFactors,
    Say,
    behind_text,
    belief_rows,
    design_files,
    factors,
    joint_of,
    progress_to,
    recipe_files,
)
from mechdesign.core.wording import joined_name, percent_of

if TYPE_CHECKING:
    from mechdesign.report.record import Report

MOST_FACTORS = 10
"""Released labels that the page lists as those that change a probability most."""

TIMES = " times"
"""Stands in the caption of a table of factors, and not in every cell."""

FILLED = (
    "Rows of the table are drawn within the released box. For the population the search leaves "
    "most records in their own box; no search keeps most cells unchanged."
)

SEVERAL = (
    "The confidence is that of one design. It is lower for the best of several tries, each of "
    "which may fail."
)


def designed_boxes(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """Search for the channel of boxes, and describe it."""
    from mechdesign.report import wording as w
    from mechdesign.report.boxes import box_texts
    from mechdesign.report.collect import attributed, internal_report
    from mechdesign.report.first_lines import little_information

    say("Reading the table")
    joint = joint_of(table, choice)
    say("Learning boxes on a tenth of the records")
    design = searched_boxes(table, joint, choice, say)
    # Whoever repeats this design draws the same slice. The page's own choice has no seed, so that
    # its next design draws a new one.
    seed = design.channel.provenance["slice_seed"]
    repeated = replace(choice, slice_seed=seed)
    say("Writing the reports")
    report = attributed(internal_report(design, None), design.channel, ())
    useless = little_information(design.nmi)
    text = design.summary()
    filled: tuple[str, ...] = ()
    if choice.fills:
        filled = (FILLED,)
    promise = Download("promise.txt", "The promise as text", TEXT, text + "\n")
    outputs = "boxes"
    if choice.merge_rare:
        outputs = "merged values"
    return Designed(
        title=f"A channel for {outputs} of {w.title(choice.released)}",
        unit="box",
        facts=_facts(design, choice),
        unchanged=_unchanged(design),
        beliefs=_beliefs(design, choice, joint),
        beliefs_note=(
            "Before is the share in the table; the factors hold for the population. Values that "
            "are promised together are one line."
        ),
        meanings=_meanings(design.channel),
        factors=_worst_factors(design, report),
        boxes=tuple(box_texts(design.channel)),
        together=_together(design.channel),
        useless=f"{useless}{REMEDY}" if useless else "",
        text=text,
        messages=(*joint.notices, *filled, SEVERAL),
        files=(*design_files(design, report), promise, *recipe_files(repeated, table)),
        command=command_of(repeated, table),
        script=script_of(repeated, table),
    )


def searched_boxes(
    table: MemoryTable, joint: md.Joint, choice: Choice, say: Say
) -> md.Design:
    """The design of rows, or of one column with merged values."""
    options: dict[str, Any] = {
        "bins": choice.used_bins or None,
        "time_limit": choice.seconds,
        "confidence": choice.confidence,
        "slice_seed": choice.slice_seed,
        "progress": progress_to(say),
    }
    if not choice.is_rows:
        merge_rare = choice.merge_below or choice.merge_rare
        return md.design(joint, choice.notion(joint), merge_rare=merge_rare, **options)
    return md.design(
        table.frame,
        sensitive=list(choice.sensitive),
        release=list(choice.released),
        given=list(choice.given),
        notion=choice.notion(joint),
        promise=choice.promise,
        missing=choice.missing,
        fill=choice.fills,
        **options,
    )


def _facts(design: md.Design, choice: Choice) -> tuple[tuple[str, str], ...]:
    """The promise, what is kept, what the boxes were learned on, and what an analyst reads."""
    from mechdesign.report import wording as w
    from mechdesign.report.boxes import kept_by, slice_sentence
    from mechdesign.report.first_lines import kept_sentence
    from mechdesign.report.law_section import TITLE, channel_law_lines, untitled

    # The promise for the population first: it is the one that was asked for.
    channel = design.channel
    utility = kept_by(channel)
    # Boxes depend on the slice alone, so only the other records may count as draws of the proof.
    secret = w.title(choice.sensitive)
    span = factors(design.achieved.eps_l, design.achieved.eps_u)
    level = percent_of(channel.boxed.claims.level)
    released = "row"
    if choice.merge_rare:
        released = "value"
    promise = f"A released {released} makes any value of {secret} {span} as probable"
    if choice.promise == RELATIVE:
        promise += BEYOND_GIVEN
    kept = kept_sentence(
        utility.nmi,
        utility.upper_bound_nmi,
        beyond_given=bool(channel.given),
        rivals="channel for these boxes",
    )
    facts = [
        (
            "Promise for the population",
            f"{promise}, with {level} confidence (promised, verified exactly).",
        ),
        (
            "Promise for the table",
            "None beside it: this promise is about a new record of the population.",
        ),
        ("Kept", kept.removeprefix("Kept: ")),
        ("Boxes", slice_sentence(utility, channel)),
    ]
    for text in untitled(channel_law_lines(channel, None)):
        facts.append((TITLE, text))
    if utility.limit is not None:
        facts.append(("What limits it", utility.limit.text(channel.boxed.claims.level)))
    return tuple(facts)


def _beliefs(
    design: md.Design, choice: Choice, joint: md.Joint
) -> tuple[BeliefRow, ...]:
    """Before and after for every value that is promised for itself; none with given columns,
    where there is a prior for each stratum.
    """
    # Without given columns there is one part. Its groups are values that are promised together,
    # most of them a single value; the share of a group is the sum of those of its members.
    (first, *_) = design.channel.parts
    if choice.given or first.channel is None:
        return ()
    prior = dict(zip(joint.sensitive.names, joint.p_s.tolist(), strict=True))
    names: list[str] = []
    shares: list[float] = []
    for group in first.together:
        members = [design.channel.boxed.sensitive.names[s] for s in group]
        names.append(joined_name(members))
        shares.append(sum(prior[name] for name in members))
    return belief_rows(names, shares, design.achieved)


def _unchanged(design: md.Design) -> tuple[tuple[str, str], ...]:
    """The expected share of the cells of every column that stay as they are; empty where it is not
    defined.
    """
    from mechdesign.report import wording as w

    truth = design.truth or {}
    return tuple((name, w.percent_at_least(share)) for name, share in truth.items())


def _worst_factors(design: md.Design, report: Report) -> tuple[OutputFactors, ...]:
    """The labels that change a probability most; none where values are drawn inside of boxes,
    because the receiver does not see the label.
    """
    from mechdesign.report import wording as w

    if report.boxes is None or report.asked.fills:
        return ()
    notion = design.notion
    # By ln of the largest lift over the smallest one: the only measure that counts both sides.
    worst = sorted(report.boxes.outputs, key=lambda row: -row.achieved.eps_ldp)
    rows: list[OutputFactors] = []
    for row in worst[:MOST_FACTORS]:
        rows.append(
            OutputFactors(
                group=_given(row.stratum),
                released=w.label(row.output),
                table=w.times_text(row.on_table, notion).removesuffix(TIMES),
                population=w.times_text(row.achieved, notion).removesuffix(TIMES),
            )
        )
    return tuple(rows)


def _meanings(channel: md.Channel) -> tuple[Meaning, ...]:
    """The released labels with the boxes behind them; none where values are drawn inside."""
    from mechdesign.report import wording as w

    if channel.fills:
        return ()
    rows: list[Meaning] = []
    for part in channel.parts:
        part_channel = part.channel
        # Some strata release the given columns alone, and have nothing to look behind.
        if part_channel is None or part_channel.joint is None:
            continue
        codebook = part_channel.codebook()
        masses = part_channel.output_masses.tolist()
        shown = part_channel.outputs[:MOST_MEANINGS]
        # Not strict: `shown` may be cut, the masses are not.
        for output, share in zip(shown, masses, strict=False):
            rows.append(
                Meaning(
                    group=_given(channel.boxed.coder.stratum_text(part.stratum)),
                    released=w.label(output),
                    share=w.percent(min(1.0, share)),
                    behind=behind_text(list(codebook[output].items())),
                )
            )
    return tuple(rows)


def _together(channel: md.Channel) -> tuple[str, ...]:
    """The protected values that are promised together, once for all strata that agree."""
    from mechdesign.report import wording as w

    texts: list[str] = []
    for groups in channel.boxed.together_texts:
        for text in groups:
            sentence = w.label(f"{text[:1].upper()}{text[1:]}.")
            # Strata that merge the same values would repeat the sentence.
            if sentence not in texts:
                texts.append(sentence)
    return tuple(texts)


def _given(stratum: str) -> str:
    """The given values of a part, or nothing: of 'sex F: ' it is 'sex F'."""
    from mechdesign.report import wording as w

    values = stratum.rstrip(": ")
    if not values:
        return ""
    return w.label(values)
