"""The first screen of `design`: at most 25 lines that an officer can act on; `--full` has the rest.

The order is that of the questions people ask: how far can a belief move, for the table and for the
population behind it; how often a guess is right; how much is kept; what is not covered; what comes
next. Of a column: ::

    job (3 symbols) is released as 3 outputs; sex (2 symbols) is protected.
    Table: a released value makes any value of sex 0.77 to 1.29 times as probable (verified).
    Population (95 % confidence): 0.32 to 1.96 times as probable; ..      (`promise_lines`)
    Guesses: no guess of sex from a released value is right more often .. (`promise_lines`)

    sex  before  lowest after  highest after
    F    50.0 %        38.9 %         61.1 %                              (`_belief_lines`)

    Kept: 64.4 % of the information in job, within 0.001 % of the best .. (`_utility_lines`)

    Not covered
      - Other columns in the file, and other knowledge of job. ..         (`uncovered_lines`)

`first_screen` shares out the lines: the promise and its limits get what they need, then the
utility, then as many beliefs as fit. Numbers are short, and still never more favourable than the
proven ones: upper factors are rounded up, lower ones down. `row_first_screen` and
`box_first_screen` do the same for rows and boxes.

*Lines of all.* `promise_lines` says what a released value can do to a belief, `uncovered_lines`
what the promise leaves open, and `brief_law` what an analyst reads of a column; `lines_within` fits
a table into the lines that are left.

*Rows.* What analysts read and which cells change stands in the place of single beliefs. ::

    education x hours of every record is released as a row of the table; income is protected.
    Of the people whom any rule picks by their released rows, at most about 4 in 10 (39.7 %) are
    expected to have income >50K; about 1 in 4 of all people do (24.1 %).   (`rule_sentences`)
    Table: a released row makes any value of income 0.6 to 1.65 times as probable (verified).

    column     unchanged  if constant
    education     88.1 %       32.3 %                                          (`_column_lines`)

    What an analyst reads: ..                                                  (`Report.law`)

*Boxes.* The screen has these parts in their order::

    lead, promise         Job and Hours are released together in boxes of values; ..
                          Population (95 % confidence): ..       whole
    kept_sentence         Kept: 31.2 % of the information ..     whole
    _columns              a table with a line for each column   cut to the lines left
    _remarks              limits of promise and search          whole
                          how the boxes came about              left out without room
    population_items      Not covered: ..                       whole
    FULL, `last`          files written, the next command       whole

The lines of the whole parts are counted first. `_columns` takes what it needs of the others, then
`_remarks`; what is cut says that `--full` has it. The population comes before the table: the
promise is made for it, and what the table shows is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.analysis.linear import error_factor
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_claims import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.channel.output_cells import label_of
from mechdesign.channel.record import RELATIVE
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import at_most, quoted
from mechdesign.mechanisms.result import OF_THESE_BOXES, Design
from mechdesign.release.released_values import moved
from mechdesign.report import blocks, wording
from mechdesign.report.boxes import (
    LITTLE,
    box_promise_lines,
    columns_of,
    fill_lines,
    own_lines,
    part_lines,
    rare_lines,
    slice_sentence,
)
from mechdesign.report.content import least_of, purposes_of
from mechdesign.report.law_section import (
    DISTANCE_DIGITS,
    HEADER,
    NEARLY_KEPT,
    TITLE,
    channel_law_lines,
    column_rows,
    law_lines,
    least_blocks,
    moved_text,
)
from mechdesign.report.promises import (
    BELIEF_HEADER,
    COMPARED,
    belief_texts,
    guess_sentence,
    population_items,
    population_line,
    promise_on_table,
    uncovered_lines,
)
from mechdesign.report.record import (
    Belief,
    Promise,
    Request,
    lead_of,
    names_of,
    protected,
    request_of,
)
from mechdesign.report.sentences import group_lines, rule_sentences, spending_texts
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, People

# ------------------------------------------------------------------------ lines of all

MOST_LINES = 25
"""Lines of a terminal that was never resized, with one left for the prompt."""

FULL = "All sections:  --full"

NO_POPULATION = "Population: promised for the records of this table alone."

PROTECTS_OTHERS = "--confidence 0.95 protects others."

NO_NUMBERS = "Population: unknown, because the table has no numbers of records."

NO_POPULATION_OF_PEOPLE = (
    "Population: not promised, may be far worse; "
    "--promise relative --confidence 0.95 protects it."
)

LITTLE_UNCHANGED = 0.2
"""Share of unchanged cells below which a release is of little use, and says so first."""

LITTLE_INFORMATION = 0.01
"""The share of the information below which a channel to labels is called useless: its labels tell
next to nothing of the values, while a share of a few per cent still gives fair estimates.
"""

ONE_VALUE = 0.95
"""Share of the records from which on a released value that comes so often is nearly all there is,
unless the table has such a value itself.
"""


def little_information(nmi: float) -> str:
    """Why a channel to labels is of little use, in a sentence; or nothing."""
    if nmi >= LITTLE_INFORMATION:
        return ""
    kept = wording.percent(nmi)
    return f"Of little use: only {kept} of the information is kept."


def little_use(design: Design) -> str:
    """Why a design is of little use, in a sentence; or nothing."""
    # What is kept for queries or a task is another share.
    if design.purpose is not None:
        return ""
    channel = design.channel
    if channel.joint is not None:
        most = float(channel.output_masses.max())
        before = float(channel.joint.p_x.max())
        if most >= ONE_VALUE > before:
            return (
                f"Of little use: {wording.percent_at_least(most)} of the records are released with "
                "one and the same value."
            )
    if design.least is None:
        return little_information(design.nmi)
    if design.least.truth >= LITTLE_UNCHANGED:
        return ""
    stay = wording.percent_at_least(design.least.truth)
    return f"Of little use: only {stay} of the cells are released as they are."


def little_use_lines(design: Design) -> list[str]:
    """The same as the first lines of a terminal, with what may help."""
    sentence = little_use(design)
    if not sentence:
        return []
    return wording.lines_of(
        f"{sentence} Give a larger budget, release fewer columns, or put values into bins."
    )


def lines_within(rows: Sequence[Sequence[str]], room: int, hidden: str) -> list[str]:
    """The lines of a table, as many as there is room for; `hidden` names the others.

    The header stays even without room, and one line is for the number of the others.
    """
    if len(rows) <= room:
        return wording.aligned(rows, left=(0,))
    shown = rows[: max(1, room - 1)]
    others = wording.count(len(rows) - len(shown), hidden)
    return [*wording.aligned(shown, left=(0,)), f"  and {others}:  --full"]


def kept_sentence(
    nmi: float, bound: float, *, beyond_given: bool, rivals: str, scope: str = "proven"
) -> str:
    """What is kept of released rows, rounded down, and the proven bound on it, rounded up.

    `rivals` names the channels that the bound is about: ``mechanism with this promise``. `scope` is
    how it is known.
    """
    beyond = ""
    if beyond_given:
        beyond = " beyond the given ones"
    kept = wording.percent_at_least(nmi)
    most = wording.percent_at_most(bound)
    return (
        f"Kept: {kept} of the information in the released columns{beyond}; "
        f"no {rivals} keeps more than {most} ({wording.proof_text(scope)})."
    )


def promise_lines(design: Design, asked: Request, promise: Promise) -> list[str]:
    """What a released value can do to a belief: by the table, and in the population."""
    sensitive = names_of(asked)[0]
    limits = design.notion.limits
    if isinstance(limits, LiftLimits) and limits.need_shares:
        # "Any value" must be true of the symbol with the largest budgets, too.
        widest = limits.loosest
        factors = wording.range_text(widest.lower, widest.upper)
        if design.channel.useful.people is None:
            subject = f"a released {_unit(design)} makes"
        else:
            subject = "all released records of a person together make"
        table = f"Table: {subject} any value of {sensitive} {factors} as probable"
        if limits.symbol_budgets:
            table += ", single values by budgets of their own"
        if design.channel.record.promise_kind == RELATIVE:
            table += f", {COMPARED}"
        table += f" ({_verdict(design)})."
    else:
        # Averages of lifts, and ratios between two rows, bound no single factor directly.
        table = f"Table: {promise.statement}"
        if design.channel.published is not None:
            table = f"{table.removesuffix('.')} ({_verdict(design)})."
    lines = [*wording.lines_of(table), *wording.lines_of(_population_text(design))]
    # Of rows the sentence about any rule comes before, and this one with --full.
    if design.channel.published is None:
        guesses = guess_sentence(design.channel, sensitive)
        if guesses is not None:
            lines += wording.lines_of(guesses)
    return lines


def _verdict(design: Design) -> str:
    """The exact verdict on a promise, in a word."""
    return "verified" if design.verified else "VIOLATED"


def _unit(design: Design) -> str:
    """What is released of a record."""
    return "value" if design.channel.published is None else "row"


def _population_text(design: Design) -> str:
    """The promise for the population that the records are a sample of, or why there is none."""
    population = design.population
    table = design.channel.joint
    has_numbers = table is None or table.is_counts
    is_of_people = design.channel.useful.people is not None
    of_rows = is_of_people or (design.channel.published is not None and has_numbers)
    if population is None and of_rows:
        return no_population_of_rows(design.channel)
    if population is None:
        joint = design.channel.joint
        if joint is not None and joint.sensitive.protects_columns:
            return (
                "Population: not computed where each of several columns is protected."
            )
        if design.has_population:
            return (
                "Population: not computed within the time limit; `audit` computes it."
            )
        return NO_NUMBERS
    text = population_line(population, design.confidence, design.notion)
    if design.confidence is None and _takes_confidence(design):
        return f"{text.removesuffix('.')}; --confidence 0.95 protects it."
    return text


def no_population_of_rows(channel: Channel) -> str:
    """That a release of rows promises nothing for the population, and the option that would, where
    a design with the same promise and objective can have it.
    """
    if channel.useful.people is not None:
        return NO_POPULATION_OF_PEOPLE
    record = channel.record
    sensitive = channel.sensitive
    # What boxes do not have (`mechanisms.combinations`).
    is_special = bool(record.after or record.averages or record.budgets)
    if sensitive is not None and sensitive.protects_columns:
        is_special = True
    objective = record.objective
    if objective is not None and (objective.name != "truth" or objective.is_special):
        is_special = True
    if is_special:
        return NO_POPULATION
    return f"{NO_POPULATION.removesuffix('.')}; {PROTECTS_OTHERS}"


def _takes_confidence(design: Design) -> bool:
    """Whether a design with the same request can promise something for the population.

    It can for budgets on single lifts, those of single symbols included: not with earlier releases
    or average budgets, which `design` refuses beside a confidence level.
    """
    record = design.channel.record
    is_single = not (record.after or record.averages)
    return isinstance(design.notion.limits, LiftLimits) and is_single


def brief_law(design: Design) -> str:
    """What an analyst reads of a column, in one line where its name is short."""
    law = design.law
    channel = design.channel
    column = wording.title(channel.useful.columns)
    if law is None:
        label = quoted(label_of(channel.outputs))
        factor = error_factor(channel)
        if factor is None:
            return f"{TITLE}: labels such as {label}, and no values of {column}."
        shares = f"estimated shares have up to {wording.times_at_most(factor)} times the error"
        return f"{TITLE}: labels such as {label}; {shares}."
    if law.kept and not channel.has_counts:
        return f"{TITLE}: frequencies and means of {column}, weighted as the table is (expected)."
    if law.kept:
        return f"{TITLE}: exactly the frequencies and means of {column} (expected)."
    distance = at_most(law.total_variation, DISTANCE_DIGITS)
    if law.total_variation <= NEARLY_KEPT:
        return f"{TITLE}: the frequencies and means of {column} (expected, within {distance})."
    return " ".join(law_lines(law))


def remarks_of(design: Design) -> list[str]:
    """Repairs, earlier releases and fallbacks that a reader should know of."""
    texts: list[str] = []
    if design.as_published:
        texts.append("This is the procedure as published, without repair.")
    if design.repaired:
        names = ", ".join(wording.label(name) for name in design.borrowed) or "none"
        texts.append(
            "Repaired: merging the risky symbols among themselves was not private, so harmless "
            f"ones were merged with them: {names}."
        )
    if design.spending is not None:
        texts += spending_texts(design.spending)
    if design.fallback_from is not None:
        texts.append(
            f"Fallback: {design.fallback_from} gave no better verified channel."
        )
    return texts


# -------------------------------------------------------------------------------- boxes

MOST_BOX_COLUMNS = 6
"""Lines on the columns of people that are shown even if the screen gets longer by them."""

OTHERS = "Other columns in the file, and a second release of the same record."

OTHERS_OF_PEOPLE = (
    "Other columns in the file, and other records of these people, in another file or of another "
    "time."
)


def box_first_screen(design: Design, audit: Audit, *, last: Sequence[str]) -> str:
    """The text of a design for boxes, without a final newline.

    It has at most 25 lines, unless values that are promised together, or remarks on the search,
    need more.

    Parameters
    ----------
    design : Design
    audit : Audit
        The verdict on it.
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    channel = design.channel
    utility = channel.box_utility
    # The channel of a design says what it keeps.
    assert utility is not None
    # The parts above and below the table of columns are never cut.
    kept = kept_sentence(
        utility.nmi,
        utility.upper_bound_nmi,
        beyond_given=bool(channel.given),
        rivals=OF_THESE_BOXES.name,
    )
    request = request_of(channel, design.notion)
    before = little_use_lines(design)
    before += wording.all_lines([lead_of(request), *box_promise_lines(channel, audit)])
    before += ["", *wording.lines_of(kept)]
    before += wording.all_lines(own_lines(utility, channel))
    before += wording.all_lines(channel_law_lines(channel, None))
    limits = [
        *population_items(design.notion, request, channel.records_of_proof),
        OTHERS_OF_PEOPLE if request.of_people else OTHERS,
    ]
    after = ["", "Not covered", *wording.item_lines(limits), "", FULL, *last]

    # What is left goes to the columns first, and then to the remarks.
    room = MOST_LINES - len(before) - len(after)
    columns = _columns(design, room)
    remarks = _remarks(design, utility, room - len(columns))
    return "\n".join([*before, *columns, *remarks, *after])


def _columns(design: Design, room: int) -> list[str]:
    """A line for each released column, as many as there is room for."""
    if design.channel.people is not None:
        rows = [["column", "unchanged cells"]]
        for name, share in (design.truth or {}).items():
            rows.append([wording.title((name,)), wording.percent_at_least(share)])
        return lines_within(rows, max(room, MOST_BOX_COLUMNS), "more column")
    rows = [["column", "kept by itself", "unchanged cells"]]
    for column in columns_of(design.channel):
        row = [wording.title(column.columns), wording.percent_at_least(column.kept)]
        if column.truth is not None:
            row.append(wording.percent_at_least(column.truth))
        rows.append(row)
    header = rows[0][: min(map(len, rows))]
    return lines_within([header, *rows[1:]], room, "more column")


def _remarks(design: Design, utility: BoxUtility, room: int) -> list[str]:
    """What limits the promise and the search, whole; then how the boxes came about, if it fits."""
    channel = design.channel
    # Which values are promised only together, and that a search was stopped, is never cut.
    needed = wording.all_lines(
        [
            *part_lines(channel),
            *fill_lines(channel),
            *wording.remark_sentences(design.messages),
        ]
    )
    origin = [slice_sentence(utility, channel)]
    if utility.nmi < LITTLE:
        origin += rare_lines(channel, utility)
    optional = wording.all_lines(origin)
    if len(needed) + len(optional) <= room:
        return [*needed, *optional]
    return [*needed, "Further remarks:  --full"]


# --------------------------------------------------------------------------------- rows

MOST_NAMED = 6
"""Released columns that the first sentence names; `--full` has all."""

MOST_COLUMNS = 10
"""Released columns that are shown even if the screen gets longer by them."""


def row_first_screen(
    design: Design,
    asked: Request,
    promise: Promise,
    joint: Joint,
    *,
    last: Sequence[str],
) -> str:
    """The text of a design of rows, without a final newline.

    It has at most 25 lines, unless ten columns or remarks on the search need more.

    Parameters
    ----------
    design : Design
    asked : Request
        What was asked for.
    promise : Promise
        The promise of the design on its table.
    joint : Joint
        The table.
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    before = [
        *little_use_lines(design),
        *wording.lines_of(_lead(design, joint, asked)),
    ]
    before += wording.all_lines(rule_sentences(promise, asked))
    before += promise_lines(design, asked, promise)
    # Budgets on averages.
    before += wording.all_lines(purposes_of(design, asked))
    before.append("")
    law = wording.all_lines(channel_law_lines(design.channel, joint))
    sentences = group_lines(
        design.smallest_group,
        known=design.known,
        rows=len(joint.useful),
        released=design.outputs,
        single=design.single_rows,
        rules=design.channel.record.rules,
        of_people=joint.useful.people is not None,
    )
    groups = [line for text in sentences for line in wording.lines_of(text)]
    remarks = wording.all_lines(wording.remark_sentences(design.messages))
    after = ["", *uncovered_lines(design, asked), "", FULL, *last]
    fixed = len(before) + len(law) + len(groups) + len(remarks) + len(after)
    columns = _column_lines(design, joint, MOST_LINES - fixed)
    return "\n".join([*before, *columns, *law, *groups, *remarks, *after])


def _lead(design: Design, joint: Joint, asked: Request) -> str:
    """What is released, and what is protected."""
    channel = design.channel
    people = channel.useful.people
    if people is not None:
        return _lead_of_people(people, joint, asked)
    released = [name for name in channel.useful.columns if name not in channel.given]
    names = wording.short_title(tuple(released), MOST_NAMED)
    sensitive = protected(asked)
    given = ""
    if channel.given:
        given = f", beside {wording.title(channel.given)} as it is"
    rows = wording.count(len(channel.useful), "row")
    return (
        f"{names} of every record is released as a row of the table ({rows}){given}; {sensitive} "
        "is protected."
    )


def _lead_of_people(people: People, joint: Joint, asked: Request) -> str:
    """What is released of people with several records."""
    names = wording.short_title(people.released, MOST_NAMED)
    beside = wording.title((*people.given, RECORDS))
    sequences = wording.count(len(joint.useful), "sequence")
    size = wording.count(people.longest, "record")
    number = "people" if joint.records is None else f"{joint.records:,} people"
    return (
        f"{names} of all records of a person are released together as those of a person of the "
        f"table ({number} with at most {size}, {sequences}), beside {beside} as it is; "
        f"{protected(asked)} is protected."
    )


def _column_lines(design: Design, joint: Joint, room: int) -> list[str]:
    """A line for each column, as many as there is room for, and ten at least."""
    rows = [HEADER, *column_rows(design.truth or {}, joint)]
    most = max(MOST_COLUMNS + 1, room - 1)
    return [*lines_within(rows, most, "more column"), ""]


# ------------------------------------------------------------------------------ columns

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
        return box_first_screen(design, design.audit, last=last)
    asked = request_of(design.channel, design.notion, joint)
    promise = promise_on_table(design, joint, asked, None, {})
    if design.channel.releases_symbols:
        return row_first_screen(design, asked, promise, joint, last=last)
    before = [*little_use_lines(design), lead_of(asked)]
    before += [*promise_lines(design, asked, promise), ""]
    utility = _utility_lines(design, asked)
    after = ["", *uncovered_lines(design, asked), "", FULL, *last]
    # The promise and its limits come whole; the utility, then the beliefs, take what room is left.
    room = MOST_LINES - len(before) - len(after)
    if len(utility) > room:
        # Only remarks are cut: the utility comes first.
        utility = [*utility[: room - 1], "Further remarks:  --full"]
    beliefs = _belief_lines(asked, promise, room - len(utility))
    return "\n".join([*before, *beliefs, *utility, *after])


def _belief_lines(asked: Request, promise: Promise, room: int) -> list[str]:
    """The probabilities before and after that can change most, as many as there is room for."""
    beliefs = promise.beliefs
    # Two lines go to the header and the empty line below, one to the remark if some are left out.
    rows = room - 2
    if rows < len(beliefs):
        rows -= 1
    if rows < FEWEST_BELIEFS:
        return []
    by_change = sorted(beliefs, key=change_of, reverse=True)
    most_changed = set(by_change[:rows])
    sensitive = names_of(asked)[0]
    lines: list[Sequence[str]] = [(wording.label(sensitive), *BELIEF_HEADER)]
    # In the order of the table, which readers know, and not in that of the changes.
    for belief in wording.in_reading_order(beliefs, lambda one: one.symbol):
        if belief in most_changed:
            lines.append(belief_texts(belief))
    table = wording.aligned(lines, left=(0,))
    if len(beliefs) > rows:
        table.append(f"  ({rows} of {len(beliefs):,}: those that can change most)")
    return [*table, ""]


def change_of(belief: Belief) -> float:
    """The largest change of a probability in either direction."""
    return max(belief.highest - belief.before, belief.before - belief.lowest)


def _utility_lines(design: Design, asked: Request) -> list[str]:
    """The utility with its proven bound, unchanged cells, and remarks on the mechanism."""
    channel = design.channel
    useful = names_of(asked)[1]
    lines = wording.lines_of(_kept_text(design, useful))
    if design.purpose is not None or channel.record.averages:
        lines += wording.all_lines(purposes_of(design, asked))
    if channel.record.objective is not None:
        lines += _least_lines(channel, useful)
    else:
        unchanged = design.unchanged
        if unchanged is not None:
            text = wording.unchanged_text(unchanged, useful)
            lines += wording.lines_of(f"Unchanged: {text}.")
    lines += wording.lines_of(brief_law(design))
    if channel.distance is not None or any(channel.useful.bins):
        lines += wording.all_lines(map(moved_text, moved(channel)))
    lines += wording.all_lines(map(wording.label, remarks_of(design)))
    return lines


def _kept_text(design: Design, useful: str) -> str:
    """The share of the information that is kept, and how near it is to the best possible."""
    beyond = ""
    if design.channel.given:
        beyond = f" beyond {wording.title(design.channel.given)}"
    share = wording.percent_at_least(design.nmi)
    text = f"Kept: {share} of the information in {useful}{beyond}"
    certificate = design.certificate
    if certificate.gap_nmi is None or certificate.upper_bound_nmi is None:
        return f"{text}."
    proof = wording.proof_text(certificate.scope)
    if certificate.gap_nmi > wording.LARGE_GAP:
        bound = wording.percent_at_most(certificate.upper_bound_nmi)
        return (
            f"{text}; how near that is to the best possible is not known, but that no channel "
            f"keeps more than {bound} ({proof})."
        )
    gap = wording.percent_at_most(max(certificate.gap_nmi, 0.0), step=wording.FINE)
    return f"{text}, within {gap} of the best possible ({proof})."


def _least_lines(channel: Channel, useful: str) -> list[str]:
    """The expected cost of a channel on the column's own symbols, and its conditions."""
    least = least_of(channel)
    if least is None:
        return []
    # Its tables are for all sections.
    parts = least_blocks(least, useful)
    return wording.all_lines(
        part.text for part in parts if isinstance(part, blocks.Text)
    )
