"""`mechdesign audit CHANNEL`: the exact verdict on a channel file or on any outside matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Audit
    from mechdesign.cli.reporting import Reporter

EXAMPLE = (
    "Example:  mechdesign audit channel.json        "
    "Or any matrix:  mechdesign audit --matrix W.csv --table counts.csv --contingency --notion ldp --epsilon 1"
)

NO = 1
"""Exit code when the answer is no."""

MaybeChannel = Annotated[
    str | None,
    typer.Argument(metavar="CHANNEL", help="A channel file written by `design`.", show_default=False),
]
Matrix = Annotated[
    str | None,
    typer.Option(
        "--matrix",
        metavar="W.csv",
        help="Any matrix instead: useful symbols down the first column, outputs along the header, rows sum to 1.",
    ),
]


def audit(
    context: typer.Context,
    channel: MaybeChannel = None,
    matrix: Matrix = None,
    table: o.OtherTable = None,
    sensitive: o.Sensitive = None,
    useful: o.Useful = None,
    weight: o.Weight = None,
    contingency: o.Contingency = False,
    probabilities: o.Probabilities = False,
    missing: o.Missing = "refuse",
    notion: o.MaybeNotionName = None,
    epsilon: o.Epsilon = None,
    lam: o.Lam = None,
    eps_l: o.EpsL = None,
    eps_u: o.EpsU = None,
    alpha: o.Alpha = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> int:
    """Check exactly whether a channel keeps a privacy notion: exit 0 if it does, 1 if not.

    A channel file is checked against its own table and notion unless others are given.
    """
    from mechdesign.cli.budget import notion_of
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.cli.tables import TableOptions, joint_for, joint_of

    if (channel is None) == (matrix is None):
        raise InputError("give either a CHANNEL file or --matrix W.csv")
    reporter = reporter_of(context)
    options = TableOptions(sensitive, useful, weight, contingency, probabilities, missing)
    budgets = {"epsilon": epsilon, "lam": lam, "eps_l": eps_l, "eps_u": eps_u, "alpha": alpha}
    said = notion is not None or any(budget is not None for budget in budgets.values())
    if matrix is not None:
        if table is None:
            raise InputError(
                "--matrix needs --table TABLE: privacy is a matter of the table that it is used on"
            )
        from mechdesign.auditing.matrix import audit_file

        wanted = notion_of(notion or "alip", **budgets)
        with reporter.work("auditing"):
            joint = joint_of(table, options)
            result = audit_file(matrix, joint, wanted)
        reporter.notices(joint.notices)
        return _answer(result, matrix, reporter, as_json)

    from mechdesign.auditing.verdict import audit as verdict
    from mechdesign.channel.channel import Channel
    from mechdesign.notions import from_record

    path = channel or ""
    loaded = Channel.load(path)
    recorded = loaded.record.notion
    if said:
        kind = notion or (str(recorded["name"]) if recorded else "alip")
        wanted = notion_of(kind, **budgets)
    elif recorded is None:
        raise InputError(f"{path} does not say which notion it was designed for: give --notion and a budget")
    else:
        wanted = from_record(recorded)
    with reporter.work("auditing"):
        joint = joint_for(loaded, path, table, options)
        result = verdict(loaded, joint, wanted)
    reporter.notices(joint.notices if table is not None else ())
    return _answer(result, path, reporter, as_json)


def _answer(result: Audit, path: str, reporter: Reporter, as_json: bool) -> int:
    kept = "keeps" if result.satisfied else "violates"
    reporter.done("audited", f"{path} {kept} the notion", satisfied=result.satisfied)
    if as_json:
        from mechdesign.report.records import audit_record, to_json

        typer.echo(to_json(audit_record(result)))
    else:
        from mechdesign.report.audit_text import audit_text

        typer.echo(audit_text(result))
    return 0 if result.satisfied else NO
