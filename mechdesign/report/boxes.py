"""Channels for boxes of rows in words and as records, for the terminal and the pages.

Each function of the first part writes the sentences on one question: what is released (`lead`),
what a released row can do to a belief (`promise_lines`), what is kept (`kept_lines`,
`unchanged_lines`), what the records were used for (`slice_sentence`), what limits it (`part_lines`,
`rare_lines`), and what is not covered (`scope_items`). `boxes_page` takes them from here.

Where the numbers come from: promises from the exact audit (`audit_boxes`), for the population and
for the records of the proof; what is kept from the file (`BoxUtility`), because the file has no
counts of single columns; unchanged cells from `box_truth`. The bound on what is kept is about
channels for the same boxes, not about every mechanism: what the boxes themselves lose is not in it.

Each command has a text for people and a record for `--json`: `box_design_text` and `box_facts`
(what `command_records.design_record` has of boxes) for `design`, and `box_channel_..` for `show`.
The texts put the sentences together. The records have the keys of other channels where they mean
the same, so that programs read both alike.

`box_first_screen` is what `design` prints: at most 25 lines, and `--full` has the rest. It has
these parts in their order::

    lead, promise_lines   Job and Hours are released together in boxes of values; ..
                          Population (95% confidence): ..       whole
    kept_sentence         Kept: 31.2% of the information ..     whole
    _columns              a table with a line for each column   cut to the lines left
    _remarks              limits of promise and search          whole
                          how the boxes came about              left out without room
    scope_items           Not covered: ..                       whole
    FULL, `last`          files written, the next command       whole

The lines of the whole parts are counted first. `_columns` takes what it needs of the others, then
`_remarks`; what is cut says that `--full` has it. The population comes before the table: the
promise is made for it, and what the table shows is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.analysis.box_truth import box_truth, box_truth_of_records
from mechdesign.auditing.either import audit_boxes
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_claims import BoxUtility
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.core.wording import STATED, at_most, percent_of, quoted
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion, to_record
from mechdesign.report import law_section, layout, wording
from mechdesign.report.first_lines import (
    FULL,
    MOST_LINES,
    kept_sentence,
    lines_within,
)
from mechdesign.report.plain_values import optional_record
from mechdesign.report.promises import (
    counted_lines,
    effect_text,
    relative_sentences,
    subject_of,
)
from mechdesign.report.scope_texts import FREE, FREE_SIDE
from mechdesign.tables.people import RECORDS
from mechdesign.tables.row_boxes import NOTHING
from mechdesign.tables.uncovered_values import uncovered_sentence

LITTLE = 0.5
"""Kept share below which the rarest sensitive values are named."""

MOST_RARE = 3
"""Most of these values that are named."""

MOST_COLUMNS = 6
"""Lines on the columns of people that are shown even if the screen gets longer by them."""

NOTHING_RELEASED = (
    "Nothing but the given columns is released: no part of the table has enough "
    "records for boxes."
)


def lead(channel: Channel) -> str:
    """What is released, and what is protected, in a sentence."""
    secret = wording.title(channel.boxed.sensitive.columns)
    people = channel.people
    if people is not None:
        return (
            f"{wording.title(people.released)} of all records of a person are released together "
            "as those of a person of the table, drawn within boxes of sequences, beside "
            f"{wording.title((*people.given, RECORDS))} as it is; {secret} is protected."
        )
    columns = wording.titles(channel.boxed.coder.columns)
    verb = "is released"
    if len(channel.boxed.coder.columns) > 1:
        verb = "are released together"
    form = "in boxes of values"
    if channel.fills:
        form = "as rows of the table that are drawn within boxes"
    given = ""
    if channel.given:
        given = f", {wording.titles(channel.boxed.coder.given)} as in the data"
    return f"{columns} {verb} {form}{given}; {secret} is protected."


def promise_lines(channel: Channel, audit: Audit) -> list[str]:
    """What a released row can do to a belief: in the population, and by the table."""
    secret = wording.title(channel.boxed.sensitive.columns)
    subject = subject_of(channel)
    effect = effect_text(audit.notion, audit.achieved, secret, subject)
    if audit.notion is None:
        return [f"{effect[:1].upper()}{effect[1:]}."]
    level = percent_of(channel.boxed.claims.level)
    verdict = "verified" if audit.satisfied else "VIOLATED"
    return [
        f"Population ({level} confidence): {effect} ({verdict}).",
        *counted_lines(audit, secret, subject),
        *relative_sentences(channel),
    ]


def kept_lines(
    utility: BoxUtility, channel: Channel, *, scope: str = "proven"
) -> list[str]:
    """What is kept of all columns and of each, with the bound for the boxes.

    `scope` is how the bounds are known: a file states them, and has no proof of them.
    """
    columns = wording.titles(utility.columns)
    if channel.people is not None:
        columns = f"the sequences of {wording.title(channel.people.released)}"
    beyond = ""
    if channel.given:
        beyond = ", beyond the given ones"
    kept = wording.percent_at_least(utility.nmi)
    lines = [
        f"Kept: {kept} of the information in {columns}{beyond} ({utility.information:.4g} of "
        f"{utility.entropy:.4g} nats). No channel for these boxes keeps more than "
        f"{at_most(utility.bound)} nats ({wording.proof_text(scope)}).",
    ]
    if len(utility.columns) > 1 and channel.people is None:
        shares: list[str] = []
        for column in utility.columns:
            share = wording.percent_at_least(column.share)
            shares.append(f"{wording.title(column.columns)} {share}")
        lines.append(f"Of each column by itself: {', '.join(shares)}.")
    lines += own_lines(utility, channel, scope=scope)
    return [*lines, *law_lines(utility, channel)]


def own_lines(
    utility: BoxUtility, channel: Channel, *, scope: str = "proven"
) -> list[str]:
    """How many records keep their box, beside the most that is possible; none for free labels."""
    if utility.own is None or utility.own_bound is None:
        return []
    own = wording.percent_at_least(utility.own)
    most = wording.percent_at_most(utility.own_bound)
    law = ""
    if utility.law_deviation == 0.0:
        law = " and their law"
    return [
        f"Own box: {own} of the {units_of(channel)} (expected); at most {most} with these "
        f"boxes{law} ({wording.proof_text(scope)})."
    ]


def units_of(channel: Channel) -> str:
    """What the promise is about, in the plural."""
    return "records" if channel.people is None else "people"


def law_lines(utility: BoxUtility, channel: Channel) -> list[str]:
    """What an analyst may count on: the law of the boxes, and of the rows that fill them."""
    if utility.law_deviation is None:
        return [
            f"{law_section.TITLE}: released values are labels of boxes, and `mechdesign estimate` "
            "computes the frequencies of boxes from them."
        ]
    if utility.law_deviation > 0.0:
        return [
            f"{law_section.TITLE}: the share of a box among the released records differs from that "
            f"in the table by at most {100 * utility.law_deviation:.2g} % of the records "
            "(expected)."
        ]
    if channel.fills and any(part.channel is None for part in channel.parts):
        return [
            f"{law_section.TITLE}: where rows are released, each comes as often as the table has "
            f"it. Strata of which nothing is released have {quoted(NOTHING)} in every cell."
        ]
    if channel.fills:
        return [
            f"{law_section.TITLE}: every row of the table is released as often as the table has "
            "it. Tables and means of the released columns have the table's values in expectation."
        ]
    return [
        f"{law_section.TITLE}: every box is released as often as the table has it (expected)."
    ]


def fill_lines(channel: Channel) -> list[str]:
    """What the channel file discloses where rows fill the boxes."""
    if not channel.fills:
        return []
    return [
        "The channel file holds the rows of the table with their numbers of records, which are "
        "drawn from it: keep it as you keep the table."
    ]


def unchanged_lines(channel: Channel) -> list[str]:
    """How many cells of each column stay as they are, or can be read from the released box."""
    truth = truth_by_column(channel)
    if truth is None:
        return []
    shares = [
        f"{name} {wording.percent_at_least(share)}" for name, share in truth.items()
    ]
    manner = "released in a box of one value"
    if channel.fills:
        manner = "released as they are"
    return [f"Unchanged: {', '.join(shares)} of the cells are {manner} (expected)."]


def truth_by_column(channel: Channel) -> dict[str, float] | None:
    """The expected share of unchanged cells by the names of the columns; of people those of a
    record.
    """
    truth = box_truth(channel)
    if truth is None:
        return None
    titles = [
        wording.title(variable.columns) for variable in channel.boxed.coder.columns
    ]
    if channel.people is None:
        return dict(zip(titles, truth, strict=True))
    return box_truth_of_records(channel, channel.people, truth)


def slice_sentence(utility: BoxUtility, channel: Channel) -> str:
    """Which records the boxes come from, and which ones the proof uses.

    No record does both: boxes that are chosen by the records of the proof would void its
    confidence.
    """
    others = utility.records - channel.boxed.claims.slice_records
    proof = 0
    for part in channel.parts:
        if part.channel is not None and part.channel.joint is not None:
            proof += sum(part.channel.joint.sensitive_counts)
    # The records of strata where nothing is released prove nothing, so they are not among these.
    used = f"the other {others:,}"
    if proof < others:
        used = f"{proof:,} of {used}"
    boxes = wording.count(channel.boxed.coder.size, "box", "boxes")
    return (
        f"The {boxes} of rows were learned on {channel.boxed.claims.slice_records:,} "
        f"{units_of(channel)}; the proof uses {used}."
    )


def part_lines(channel: Channel) -> list[str]:
    """Strata that release nothing, and sensitive values that are one value in the promise."""
    lines: list[str] = []
    # A part is a stratum of the given columns; it is silent if it releases nothing else.
    silent = sum(part.channel is None for part in channel.parts)
    if silent == len(channel.parts):
        lines.append(NOTHING_RELEASED)
    elif silent:
        verb = "have"
        if silent == 1:
            verb = "has"
        lines.append(
            f"{silent} of {len(channel.parts)} strata of the given columns {verb} too few records, "
            "or a single sensitive value. Nothing but the given columns is released there."
        )
    for part in channel.parts:
        stratum = channel.boxed.coder.stratum_text(part.stratum)
        for group in part.together:
            # A group of one value is promised by itself, as every value is by default.
            if len(group) < 2:
                continue
            names = ", ".join(
                wording.label(channel.boxed.sensitive.names[s]) for s in group
            )
            lines.append(
                f"{stratum}promised together, as one value: {names}. Nothing "
                "is promised of one of them against another."
            )
    return [f"{line[:1].upper()}{line[1:]}" for line in lines]


def box_texts(channel: Channel) -> list[str]:
    """Every box in words, each with the given symbols of its stratum."""
    texts: list[str] = []
    for part in channel.parts:
        stratum = channel.boxed.coder.stratum_text(part.stratum)
        texts += [
            wording.label(f"{stratum}{text}")
            for text in channel.boxed.coder.box_texts(part.boxes)
        ]
    return texts


def rare_lines(channel: Channel, utility: BoxUtility) -> list[str]:
    """What rare sensitive values make impossible, and which they are where little is kept."""
    limit = utility.limit
    if limit is None:
        return []
    remedy = rare_remedy(channel)
    if limit.information < utility.entropy:
        text = limit.text(channel.boxed.claims.level)
        if utility.nmi < LITTLE:
            text += f" {remedy}."
        return [text]
    if utility.nmi >= LITTLE:
        # More than the columns have: the limit excludes nothing, and nothing is missing.
        return []
    lines: list[str] = []
    rarest = ", ".join(rarest_values(channel, MOST_RARE))
    if rarest:
        # Few records leave a wide set of populations, in all of which the promise must hold.
        lines.append(
            f"The promised values with the fewest records in the proof are {rarest}. Little is "
            f"known of their population, which costs most; {remedy}."
        )
    lines.append(
        f"The limit that rare values set to every method is {at_most(limit.information)} "
        f"nats (of {wording.label(limit.value)}, Proposition 6); the columns have "
        f"{utility.entropy:.4g}, so it excludes nothing here."
    )
    return lines


def rare_remedy(channel: Channel) -> str:
    """The options that promise rare sensitive values together."""
    remedy = "--rare N promises values of fewer than N records together"
    if len(channel.boxed.coder.columns) == 1 and not channel.given:
        remedy += ", --rare auto the fewest with which half is kept"
    return remedy


def rarest_values(channel: Channel, most: int) -> list[str]:
    """Up to `most` promised values, fewest records of the proof first: ``Widowed (12 records)``."""
    # Of several strata the first one serves as the example.
    part_channel = channel.parts[0].channel
    if part_channel is None or part_channel.joint is None:
        return []
    joint = part_channel.joint
    counts = joint.sensitive_counts
    by_count = sorted(range(len(counts)), key=lambda s: counts[s])
    texts: list[str] = []
    for s in by_count[:most]:
        name = wording.label(joint.sensitive.names[s])
        texts.append(f"{name} ({wording.count(counts[s], 'record')})")
    return texts


def scope_items(
    channel: Channel, notion: Notion | None, utility: BoxUtility | None
) -> list[str]:
    """What the promise does not cover."""
    secret = wording.title(channel.boxed.sensitive.columns)
    items = [
        "A population that the records were not drawn from independently.",
        "Other columns in the file, and a second release of the same record.",
    ]
    if channel.people is not None:
        items = [
            "A population that the people were not drawn from independently, each with all "
            "records.",
            "Other columns in the file, and other records of these people, in another file or of "
            "another time.",
        ]
    if channel.given:
        items.append(f"What the given columns tell about {secret} by themselves.")
    if notion is not None:
        for side in notion.limits.free_sides:
            items.append(FREE_SIDE.format(sensitive=secret, effect=FREE[side]))
    records = None
    if utility is not None:
        records = utility.records - channel.boxed.claims.slice_records
    # How rare an unseen value must be follows from the number of records of the proof.
    items.append(_covered(uncovered_sentence(channel.boxed.claims.level, records)))
    return items


def _covered(sentence: str) -> str:
    """The sentence on values without a record, as an item of a list of what is not covered.

    The heading of the list has its first words, "The promise does not cover", already.
    """
    start = "The promise does not cover sensitive values"
    return sentence.replace(start, "Sensitive values", 1)


def box_design_text(design: Design) -> str:
    """All sections of `design` on boxes, without a final newline."""
    channel = design.channel
    audit, utility = _proven(design)
    lines = [lead(channel), *layout.all_lines(promise_lines(channel, audit)), ""]
    sentences = [
        *kept_lines(utility, channel),
        *unchanged_lines(channel),
        slice_sentence(utility, channel),
        *fill_lines(channel),
        *part_lines(channel),
        *rare_lines(channel, utility),
        *layout.remark_sentences(design.messages),
    ]
    lines += layout.all_lines(sentences)
    limits = scope_items(channel, design.notion, utility)
    lines += ["", "Not covered", *layout.item_lines(limits)]
    return "\n".join(lines)


def _proven(design: Design) -> tuple[Audit, BoxUtility]:
    """The verdict on a design of boxes, and what it keeps."""
    if design.audit is None:
        raise TypeError("a design of boxes has its verdict")
    return design.audit, kept_by(design.channel)


def kept_by(channel: Channel) -> BoxUtility:
    """What a designed channel keeps; a public one does not say it."""
    utility = channel.boxed.claims.utility
    if utility is None:
        raise TypeError("the channel of a design says what it keeps")
    return utility


def box_facts(design: Design) -> dict[str, Any]:
    """What the record of a design has of boxes: facts that others lack, and those that others have
    from their table.
    """
    channel = design.channel
    audit, utility = _proven(design)
    people = channel.people
    return {
        "promise": channel.record.promise_kind,
        "given": channel.given,
        "people": None if people is None else asdict(people),
        "objective": _objective(channel),
        # For boxes the promise is that for the population, so both have the same budgets.
        "population": {"level": channel.boxed.claims.level, **asdict(design.achieved)},
        "table": optional_record(audit.on_table),
        "levels": utility_record(utility, channel),
        "boxes": channel.boxed.coder.size,
        "filled": channel.fills,
        "own_boxes": utility.own,
        "own_boxes_at_most": utility.own_bound,
        "law_deviation": utility.law_deviation,
        "limit": optional_record(utility.limit),
        "strata": len(channel.parts),
        "slice_records": channel.boxed.claims.slice_records,
        "records": utility.records,
    }


def _objective(channel: Channel) -> str:
    """Whether own boxes are released, or labels with most information."""
    if any(part.releases_boxes for part in channel.parts):
        return "truth"
    return "information"


def box_channel_text(channel: Channel) -> str:
    """The text of `show` on a channel for boxes: the promise, what is kept, and every box."""
    lines = [lead(channel)]
    notion = channel.promise
    sentences: list[str] = []
    if channel.boxed.claims.utility is None:
        promised = "nothing"
        if notion is not None:
            promised = notion.text
        sentences.append(
            f"The file states the promise {promised} for the population with "
            f"{percent_of(channel.boxed.claims.level)} confidence; a public file has no counts to "
            "check it on."
        )
    else:
        sentences += promise_lines(channel, audit_boxes(channel))
        sentences += kept_lines(channel.boxed.claims.utility, channel, scope=STATED)
        sentences += unchanged_lines(channel)
        sentences.append(slice_sentence(channel.boxed.claims.utility, channel))
    lines += layout.all_lines([*sentences, *part_lines(channel)])
    for part in channel.parts:
        lines += ["", *_part_description(channel, part)]
    return "\n".join(lines)


def _part_description(channel: Channel, part: BoxPart) -> list[str]:
    """The boxes of a stratum, under a line with their number and that of the outputs."""
    stratum = channel.boxed.coder.stratum_text(part.stratum)
    if part.channel is None:
        return [f"{stratum}nothing but the given columns is released"]
    boxes = wording.count(len(part.boxes), "box", "boxes")
    outputs = wording.count(len(part.channel.outputs), "output")
    lines = [f"{stratum}{boxes}, {outputs}"]
    for text in channel.boxed.coder.box_texts(part.boxes):
        lines.append(layout.paragraph(text))
    return lines


def box_channel_record(channel: Channel) -> dict[str, Any]:
    """The record of `show --json` on a channel for boxes."""
    notion = channel.promise
    levels: Sequence[dict[str, Any]] | None = None
    if channel.boxed.claims.utility is not None:
        levels = utility_record(channel.boxed.claims.utility, channel)
    coder, claims, sensitive = channel.boxed
    parts: list[dict[str, Any]] = []
    for part, together in zip(channel.parts, channel.boxed.together_texts, strict=True):
        parts.append(
            {
                "stratum": coder.stratum_text(part.stratum),
                "boxes": coder.box_texts(part.boxes),
                "together": together,
                "outputs": 0 if part.channel is None else len(part.channel.outputs),
            }
        )
    return {
        "sensitive": sensitive.columns,
        "given": [variable.columns for variable in coder.given],
        "columns": [variable.columns for variable in coder.columns],
        "confidence": claims.level,
        "slice_records": claims.slice_records,
        "parts": parts,
        "provenance": dict(channel.provenance),
        "notion": None if notion is None else to_record(notion),
        "levels": levels,
    }


def utility_record(utility: BoxUtility, channel: Channel) -> list[dict[str, Any]]:
    """What each column keeps, as `levels` of the JSON outputs.

    Boxes have no levels; the name is that of row channels, so that programs read both alike.
    """
    truth = box_truth(channel)
    levels: list[dict[str, Any]] = []
    for place, column in enumerate(utility.columns):
        unchanged: float | None = None
        if truth is not None:
            unchanged = truth[place]
        levels.append(
            {
                "columns": column.columns,
                "truth": unchanged,
                "kept": column.share,
                "information": column.kept,
                "entropy": column.entropy,
            }
        )
    return levels


def box_first_screen(design: Design, *, last: Sequence[str]) -> str:
    """The text of a design for boxes, without a final newline.

    It has at most 25 lines, unless values that are promised together, or remarks on the search,
    need more.

    Parameters
    ----------
    design : Design
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    channel = design.channel
    audit, utility = _proven(design)
    # The parts above and below the table of columns are never cut.
    kept = kept_sentence(
        utility.nmi,
        utility.upper_bound_nmi,
        beyond_given=bool(channel.given),
        rivals="channel for these boxes",
    )
    before = layout.all_lines([lead(channel), *promise_lines(channel, audit)])
    before += ["", *layout.lines_of(kept)]
    before += layout.all_lines(own_lines(utility, channel))
    before += layout.all_lines(law_lines(utility, channel))
    limits = scope_items(channel, design.notion, utility)
    after = ["", "Not covered", *layout.item_lines(limits), "", FULL, *last]

    # What is left goes to the columns first, and then to the remarks.
    room = MOST_LINES - len(before) - len(after)
    columns = _columns(channel, utility, room)
    remarks = _remarks(design, utility, room - len(columns))
    return "\n".join([*before, *columns, *remarks, *after])


def _columns(channel: Channel, utility: BoxUtility, room: int) -> list[str]:
    """A line for each released column, as many as there is room for."""
    if channel.people is not None:
        truth_of = truth_by_column(channel) or {}
        rows = [["column", "unchanged cells"]]
        for name, share in truth_of.items():
            rows.append([name, wording.percent_at_least(share)])
        return lines_within(rows, max(room, MOST_COLUMNS), "more column")
    truth = box_truth(channel)
    header = ["column", "kept by itself"]
    if truth is not None:
        header.append("unchanged cells")
    rows = [header]
    for place, column in enumerate(utility.columns):
        row = [wording.title(column.columns), wording.percent_at_least(column.share)]
        if truth is not None:
            row.append(wording.percent_at_least(truth[place]))
        rows.append(row)
    return lines_within(rows, room, "more column")


def _remarks(design: Design, utility: BoxUtility, room: int) -> list[str]:
    """What limits the promise and the search, whole; then how the boxes came about, if it fits."""
    channel = design.channel
    # Which values are promised only together, and that a search was stopped, is never cut.
    needed = layout.all_lines(
        [
            *part_lines(channel),
            *fill_lines(channel),
            *layout.remark_sentences(design.messages),
        ]
    )
    origin = [slice_sentence(utility, channel)]
    if utility.nmi < LITTLE and utility.limit is not None:
        origin.append(_rare_value(channel))
    optional = layout.all_lines(origin)
    if len(needed) + len(optional) <= room:
        return [*needed, *optional]
    return [*needed, "Further remarks:  --full"]


def _rare_value(channel: Channel) -> str:
    """The sensitive value that costs most, and the option that helps."""
    secret = wording.title(channel.boxed.sensitive.columns)
    rarest = rarest_values(channel, 1)
    named = ""
    if rarest:
        named = f", {rarest[0]},"
    return (
        f"The value of {secret} with the fewest records{named} costs most; "
        f"{rare_remedy(channel)}."
    )
