"""`mechdesign audit CHANNEL`: the exact verdict on a channel file or on any outside matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.auditing import Audit
    from mechdesign.joint import Joint
    from mechdesign.notions import Notion

EXAMPLE = (
    "Example:  mechdesign audit channel.json        "
    "Or any matrix:  mechdesign audit --matrix W.csv --table counts.csv --contingency --notion ldp --epsilon 1"
)

NO = 1
"""Exit code when the answer is no."""

MaybeChannel = Annotated[
    str | None, typer.Argument(metavar="[CHANNEL]", help="A channel file written by `design`.", show_default=False)
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
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> int:
    """Check exactly whether a channel keeps a privacy notion: exit 0 if it does, 1 if not.

    A channel file is checked against its own table and notion unless others are given.
    """
    from mechdesign.cli.budget import notion_of
    from mechdesign.cli.tables import joint_of

    if (channel is None) == (matrix is None):
        raise InputError("give either a CHANNEL file or --matrix W.csv")
    budgets = {"epsilon": epsilon, "lam": lam, "eps_l": eps_l, "eps_u": eps_u}
    wanted: Notion | None = None
    if notion is not None or any(budget is not None for budget in budgets.values()):
        wanted = notion_of(notion or "alip", **budgets)
    shape = {"weight": weight, "contingency": contingency, "probabilities": probabilities, "missing": missing}

    if matrix is not None:
        if table is None:
            raise InputError("--matrix needs --table TABLE: privacy is a matter of the table that it is used on")
        if wanted is None:
            raise InputError("--matrix needs a budget: --epsilon E (with --lam L), or --eps-l E and --eps-u E")
        from mechdesign.matrix_file import audit_file

        return _answer(audit_file(matrix, joint_of(table, sensitive=sensitive, useful=useful, **shape), wanted), as_json)

    from mechdesign.auditing import audit as verdict
    from mechdesign.channel import Channel
    from mechdesign.notions import from_record

    loaded = Channel.load(channel or "")
    joint: Joint | None = loaded.joint
    if table is not None:
        own = loaded.sensitive.columns if loaded.sensitive is not None else ()
        names = (own, loaded.useful.columns) if own or sensitive is not None else None
        joint = joint_of(table, sensitive=sensitive, useful=useful, names=names, **shape)
    elif sensitive is not None or useful is not None or weight is not None or contingency or probabilities:
        raise InputError("--sensitive, --useful, --weight and the like describe a table: give --table TABLE too")
    if joint is None:
        raise InputError(f"{channel!r} is a public channel without its table: give --table TABLE to check it against")
    if wanted is None:
        if loaded.record.notion is None:
            raise InputError(f"{channel!r} does not say which notion it was designed for: give --notion and a budget")
        wanted = from_record(loaded.record.notion)
    return _answer(verdict(loaded, joint, wanted), as_json)


def _answer(result: Audit, as_json: bool) -> int:
    if as_json:
        from mechdesign.report.records import audit_record, to_json

        typer.echo(to_json(audit_record(result)))
    else:
        from mechdesign.report.audit_text import audit_text

        typer.echo(audit_text(result))
    return 0 if result.satisfied else NO
