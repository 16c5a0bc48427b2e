"""A plan of a release (`comparison.planning`) in words: the trials, the advice, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mechdesign.comparison.planning import (
    BINS,
    NOT_TRIED,
    PLAN_SECONDS,
    Plan,
    Trial,
    least_factor,
)
from mechdesign.core.wording import listed
from mechdesign.formats.column_names import names_text
from mechdesign.report import blocks
from mechdesign.report.layout import aligned, paragraph
from mechdesign.report.wording import label, people_in, percent

HEADER = ("trial", "unchanged", "gain", "worst column", "a rule finds at most")

LEFT = (0, 3, 4)


def trial_rows(plan: Plan) -> list[tuple[str, ...]]:
    """A line for each trial, below `HEADER`."""
    rows: list[tuple[str, ...]] = []
    for trial in plan.trials:
        name = f"factor {trial.factor:g}"
        if trial.left_out:
            name += f", without {', '.join(map(label, trial.left_out))}"
        if trial.given:
            name += f"; {', '.join(map(label, trial.given))} given"
        if trial.bins:
            name += f"; {', '.join(map(label, trial.bins))} in bins"
        if trial.cells is None:
            why = "not tried" if trial.refusal == NOT_TRIED else "refused"
            rows.append((name, "-", "", why, ""))
            continue
        rows.append(
            (
                name,
                percent(trial.cells),
                "" if trial.gain is None else f"{100 * trial.gain:+.1f}",
                f"{label(trial.worst)} {percent(trial.worst_cells)}",
                _finds(trial),
            )
        )
    return rows


def _finds(trial: Trial) -> str:
    """What a rule finds, beside what all have."""
    most = percent(trial.finds)
    return f"{most} {label(trial.value)} (of all {percent(trial.share)})"


def plan_sentences(plan: Plan) -> list[str]:
    """What the trials are, and what they advise."""
    texts = [
        f"Tried on {plan.sampled:,} of {plan.records:,} records. It is no promise: a design of the "
        "whole table keeps more or less, and 'unchanged' is the expected share of cells that stay. "
        "With factor 2 no value of the secret becomes more than twice, or less than half, as "
        "likely. 'Gain' is what the columns of a trial gain over the same columns in the release "
        "of all, in points of unchanged cells. Of a column in bins, a cell in its own bin is "
        "unchanged."
    ]
    if plan.identifiers:
        texts.append(f"Leave out, since they name records: {listed(plan.identifiers)}.")
    slowest = max(trial.seconds for trial in plan.trials)
    texts.append(
        f"A trial took up to {slowest:.0f} s of processor time. A design of the whole table takes "
        "up to the 30 s of --time-limit, and more than that finds more."
    )
    if any(trial.refusal == NOT_TRIED for trial in plan.trials):
        texts.append(
            f"No further trial was begun after {PLAN_SECONDS:.0f} s: 'not tried' are those that "
            "were left."
        )
    chosen = _chosen(plan)
    if chosen is None or chosen.cells is None:
        why = "" if chosen is None or not chosen.refusal else f" ({chosen.refusal})"
        texts.append(
            f"No trial gave a channel{why}. Release other columns or fewer, or put numbers into "
            "bins."
        )
        return texts
    stay = people_in(chosen.cells).replace("about ", "")
    advice = f"Advice: a factor of {plan.factor:g}, where about {stay} cells stay as they are"
    if plan.left_out:
        advice += f", without {listed(plan.left_out)}"
    if plan.bins:
        advice += f", with {listed(plan.bins)} in bins"
    if plan.given:
        verb = "is" if len(plan.given) == 1 else "are"
        advice += f". {listed(plan.given)} {verb} released as given, without any change"
    if not plan.is_enough:
        advice += ". That is little: give fewer columns, or a larger factor"
    texts.append(f"{advice}.")
    return texts


def _chosen(plan: Plan) -> Trial | None:
    """The trial that is advised."""
    for trial in plan.trials:
        wanted = (plan.factor, plan.left_out, plan.bins, plan.given)
        if (trial.factor, trial.left_out, trial.bins, trial.given) == wanted:
            return trial
    return None


def plan_command(
    plan: Plan, table: str, sensitive: tuple[str, ...], reading: Sequence[str] = ()
) -> str:
    """The design that is advised, as a line for the shell; `reading` are the options by which the
    table was read.
    """
    words = ["mechdesign", "design", table, *reading]
    words += ["--sensitive", names_text(sensitive), "--release", "all"]
    left_out = (*plan.identifiers, *plan.left_out, *plan.not_assessed)
    if left_out:
        words += ["--leave-out", names_text(left_out)]
    if plan.given:
        words += ["--given", names_text(plan.given)]
    for name in plan.bins:
        words += ["--bin", f"{name}={BINS}"]
    if plan.has_gaps:
        words += ["--missing", plan.missing]
    least = least_factor(plan.factor)
    words += ["--at-most-times", f"{plan.factor:g}", "--at-least-times", f"{least:g}"]
    return shlex.join([*words, "--output", "channel.json"])


def plan_text(plan: Plan, command: str) -> str:
    """The plan as `assess --plan` prints it."""
    lines = ["Plan", *[paragraph(text) for text in plan_sentences(plan)], ""]
    lines += aligned([HEADER, *trial_rows(plan)], left=LEFT)
    chosen = _chosen(plan)
    if chosen is not None and chosen.cells is not None:
        lines += ["", f"Next:  {command}"]
    return "\n".join(lines)


def plan_section(plan: Plan, command: str) -> blocks.Section:
    """The plan as a part of a page."""
    rows = [blocks.cells(*row) for row in trial_rows(plan)]
    return blocks.Section(
        "plan",
        "Plan",
        (
            *blocks.paragraphs(plan_sentences(plan)),
            *blocks.grid("Trials", HEADER, rows, "trials", LEFT),
            blocks.Lines((("The release that is advised:", command),)),
        ),
    )
