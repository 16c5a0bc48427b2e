"""`mechdesign audit CHANNEL`: the exact verdict on a channel file or on any outside matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import argument, option
from mechdesign.core.errors import InputError

EXAMPLE = (
    "Example:  mechdesign audit channel.json        "
    "Or any matrix:  mechdesign audit --matrix W.csv --table counts.csv --contingency --notion ldp --epsilon 1"
)


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """What is audited."""

    channel: str | None = argument(
        "CHANNEL", "A channel file written by `design`.", default=None
    )
    matrix: str | None = option(
        "W.csv",
        "Any matrix instead: useful symbols down the first column, outputs along the header, rows sum to 1.",
    )


def audit(
    reporter: Reporter,
    what: AuditOptions,
    table: o.OtherTable,
    budget: o.MaybeBudget,
    after: o.AfterOptions,
    common: o.CommonOptions,
) -> int:
    """Check exactly whether a channel keeps a privacy notion: exit 0 if it does, 1 if not.

    A channel file is checked against its own table and notion unless others are given.
    """
    channel, matrix = what.channel, what.matrix
    if (channel is None) == (matrix is None):
        raise InputError("give either a CHANNEL file or --matrix W.csv")
    if after.after and channel is None:
        raise InputError("--after belongs to a CHANNEL file, not to --matrix")
    if channel is not None and m.is_mechanism(channel):
        return _audit_mechanism(channel, reporter, common)
    if matrix is not None and table.table is None:
        raise InputError(
            "--matrix needs --table TABLE: privacy is a matter of the table that it is used on"
        )
    from mechdesign.report.record import audit_record
    from mechdesign.report.sentences import population_sentences
    from mechdesign.report.terminal import audit_text

    if channel is None:
        from mechdesign.auditing.matrix import audit_file

        wanted = budget.notion_or("alip")
        with reporter.work("auditing"):
            joint = table.joint(table.table or "")
            result, promise = audit_file(matrix or "", joint, wanted, text=table.text())
        said = (
            [] if promise is None else population_sentences(promise, None, joint.total)
        )
    else:
        loaded = md.Channel.load(channel)
        wanted, earlier = _notion(loaded, channel, budget), after.channels()
        with reporter.work("auditing"):
            joint, result, promise, said = _audited(
                loaded, channel, table, wanted, earlier
            )
    reporter.notices(joint.notices if table.table is not None else ())
    kept = "keeps" if result.satisfied else "violates"
    reporter.done(
        "audited", f"{matrix or channel} {kept} the notion", satisfied=result.satisfied
    )
    common.answer(
        lambda: audit_record(result, promise), lambda: audit_text(result, said)
    )
    return 0 if result.satisfied else NO


def _audit_mechanism(path: str, reporter: Reporter, common: o.CommonOptions) -> int:
    """Count everything again that the file claims."""
    from mechdesign.nonstochastic.claims import verify_file
    from mechdesign.report.ranges import text_of, verdict_record

    with reporter.work("auditing"):
        found = verify_file(path)
    kept = "keeps" if found.satisfied else "violates"
    reporter.done("audited", f"{path} {kept} what it says", satisfied=found.satisfied)
    common.answer(lambda: verdict_record(found), lambda: text_of("audit", found))
    return 0 if found.satisfied else NO


def _audited(
    loaded: md.Channel,
    path: str,
    table: o.OtherTable,
    wanted: md.Notion,
    earlier: list[md.Channel],
) -> tuple[md.Joint, md.Audit, Any, list[str]]:
    """The table, the verdict, what holds for the population, and what is said of both."""
    from mechdesign.auditing.joint_leakage import common_table
    from mechdesign.auditing.population import set_behind
    from mechdesign.auditing.population_promise import population_promise
    from mechdesign.report.sentences import population_sentences

    said = _of_earlier(loaded, earlier)
    if earlier:
        joint = common_table([loaded, *earlier], table.read(path, loaded, *earlier))
        return joint, md.audit(loaded, joint, wanted, after=earlier), None, said
    joint = table.read_for(loaded, path)
    chosen = set_behind(loaded, joint)
    result = md.audit(loaded, joint, wanted, population=chosen)
    if not joint.is_counts or joint.sensitive.each:
        return joint, result, None, said
    promise = population_promise(loaded, joint, wanted, chosen=chosen)
    return (
        joint,
        result,
        promise,
        [*said, *population_sentences(promise, chosen, joint.total)],
    )


def _notion(channel: md.Channel, path: str, budget: o.MaybeBudget) -> md.Notion:
    """What is asked for, or what the channel was designed for."""
    recorded = channel.record.promise(channel.sensitive)
    if budget != o.MaybeBudget():
        return budget.notion_or(recorded.name if recorded else "alip")
    if recorded is None:
        raise InputError(
            f"{path} does not say which notion it was designed for: give --notion and a budget"
        )
    return recorded


def _of_earlier(channel: md.Channel, earlier: list[md.Channel]) -> list[str]:
    """What is said of releases before this one: those that the file names, and those that are given."""
    from mechdesign.channel.file import digest

    named = channel.record.after
    given = {digest(each) for each in earlier}
    strange, missing = len(given.difference(named)), len(set(named) - given)
    texts = {
        f"It was designed after {len(named)} other release(s) of the same records: that all together keep the "
        "promise was not checked here; give each of them with --after.": bool(named)
        and not earlier,
        f"Judged together with {len(earlier)} earlier release(s) of the same record.": bool(
            earlier
        ),
        f"{missing} of the {len(named)} that the channel was designed after is not among them: with it this was not "
        "checked.": bool(earlier) and missing > 0,
        f"{strange} of these is not among the {len(named)} that the channel was designed after.": strange
        > 0,
    }
    return [text for text, holds in texts.items() if holds]
