"""Sentences on row channels, which the texts of commands and the first screen share.

Each function writes the sentence on one question: what is released and protected (`lead_text`),
what a released row can do to a belief (`promise_text`, `given_text`) and how this was verified
(`verified_text`), what is kept (`utility_text`, `task_text`, `stopped_text`), and where the promise
ends (`scope_texts`). `rows` puts them together, and `row_first_screen` chooses among them.

The exact audit has budgets in nats, and people read factors (`factors`): eps_l = 0.5 and eps_u =
0.7 become "between 0.60653 and 2.0138". The first is exp(-eps_l) rounded down and the second
exp(eps_u) rounded up, so that no printed range is narrower than the proven one.
"""

from __future__ import annotations

from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RELATIVE
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.report import wording
from mechdesign.report.scope_texts import FREE, FREE_SIDE

COVERS = (
    "It covers a released row and every part of it, against an observer who knows "
    "this table and the channel and nothing else about the record."
)
"""What the promise covers that compares with the whole table."""


PARTS_OF_RELATIVE = (
    "It covers a released row with all of its given columns. A part without them may "
    "reveal more: at most the leakage of the given columns on top."
)
"""What the promise covers that is relative to the given columns."""


POPULATION = (
    "The promise is about this table ({records}), not about the population behind it: "
    "there the leakage is larger, and it grows as the number of records shrinks."
)


IDENTITY = (
    "It hides {sensitive}, not who somebody is: a released row may still be unusual."
)


BEYOND = "Any other column released beside these ends the promise."


def lead_text(channel: RowChannel) -> str:
    """What is released, and what is protected."""
    verb = "is released"
    if len(channel.output_columns) > 1:
        verb = "are released together"
    return f"{_columns(channel)} {verb}; {sensitive_name(channel)} is protected."


def sensitive_name(channel: RowChannel) -> str:
    """The protected column, or several with crosses between them."""
    return wording.title(channel.sensitive.columns)


def _columns(channel: RowChannel) -> str:
    """The released columns, and which of them are randomised where some are not."""
    text = wording.titles(channel.levels)
    if channel.given:
        text += f" (randomised) and {wording.titles(channel.given)} (as they are)"
    return text


def promise_text(design: RowDesign) -> str:
    """The promise as a factor between two numbers, or as one bound where a side is free.

    The numbers are the exact budgets that the channel attains, not those that were asked for.
    """
    # What a channel happens to attain on a free side is no promise, so it is not printed.
    sensitive = sensitive_name(design.channel)
    low, high = factors(design.achieved)
    match design.audit.notion.limits.free_sides:
        case ("lower",):
            text = (
                f"Seeing a released row makes no value of {sensitive} more than {high} times "
                "as probable as before"
            )
        case ("upper",):
            text = (
                f"Seeing a released row makes no value of {sensitive} less than {low} times "
                "as probable as before"
            )
        case _:
            text = (
                f"Seeing a released row changes the probability of every value of {sensitive} "
                f"by a factor between {low} and {high}"
            )
    if design.audit.promise == RELATIVE:
        text += ", compared with somebody of whom only the given columns are known"
    return f"{text}."


def verified_text(design: RowDesign) -> str:
    """The notion, how it was verified, and the budgets that the channel uses."""
    # A beginning of a row is a release as well, so a promise must hold at every prefix.
    prefixes = wording.count(design.leaves, "prefix", "prefixes")
    return (
        f"This is {design.audit.notion.text}. It was verified in exact arithmetic on every "
        f"beginning of a released row ({prefixes}). Achieved: "
        f"{wording.achieved_text(design.achieved)} (nats, rounded up)."
    )


def given_text(given: Achieved) -> str:
    """What the given columns do to a belief by themselves."""
    low, high = factors(given)
    return (
        "The given columns are released as they are. Alone they change these "
        f"probabilities by a factor between {low} and {high}."
    )


def factors(achieved: Achieved) -> tuple[str, str]:
    """The smallest lift, rounded down, and the largest, rounded up."""
    low = wording.factor_text(achieved.eps_l, upper=False)
    high = wording.factor_text(achieved.eps_u, upper=True)
    return low, high


def utility_text(design: RowDesign) -> str:
    """The share of the information that is kept, and the bound on it."""
    kept = wording.percent_at_least(design.nmi)
    text = f"{kept} of the information in the released columns is kept"
    if design.channel.given:
        text += " (beyond the given ones)"
    bound = wording.percent_at_most(design.upper_bound_nmi)
    return f"{text}; no mechanism with this promise keeps more than {bound} (proven)."


def task_text(design: RowDesign, task: TaskUtility) -> str:
    """The share of I(T; X), of a task T and true rows X, that is kept, and the bound on it."""
    column = wording.label(task.column)
    kept = wording.percent_at_least(task.task_kept)
    text = f"Made to tell of {column}: {kept} of what the true rows tell of it is kept"
    if design.channel.given:
        text += " (beyond the given columns)"
    bound = wording.percent_at_most(task.task_upper_bound)
    return f"{text}; no mechanism with this promise keeps more than {bound} (proven)."


def stopped_text(design: RowDesign) -> str:
    """Which records have later columns that are released as a constant."""
    share = wording.percent(design.stopped)
    return (
        f"The first columns of {share} of the records are so rare together that the later columns "
        "of these records are released as a constant."
    )


def scope_texts(design: RowDesign) -> list[str]:
    """What the promise covers and what it leaves open."""
    size = "weights or probabilities"
    if design.records is not None:
        size = wording.count(design.records, "record")
    # Of a part y without the given columns k,
    # P(s|y) / P(s) = sum_k P(k|y) [P(s|k,y) / P(s|k)] [P(s|k) / P(s)]:
    # the promise bounds the first bracket, and the leakage of k alone the second.
    covers = COVERS
    if design.audit.promise == RELATIVE:
        covers = PARTS_OF_RELATIVE
    sensitive = sensitive_name(design.channel)
    texts = [POPULATION.format(records=size), covers]
    for side in design.audit.notion.limits.free_sides:
        texts.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    return [*texts, BEYOND, IDENTITY.format(sensitive=sensitive)]
