"""`mechdesign compose CHANNEL CHANNEL ..`: the joint leakage of several releases of one
record, exactly.

Draws are independent given the record, so P(y1, y2 | x) = P(y1 | x) P(y2 | x). `md.compose` bounds
the lifts of all pairs (y1, y2) on one table that has the columns of all channels. Of a channel
twice people read ::

                         eps_l    eps_u
    c.json               0.22315  0.18233
    c.json               0.22315  0.18233
    added up (no bound)  0.44629  0.36465
    together             0.29962  0.25912

The sum is no bound: only given the useful symbol are the draws independent, and not given the
sensitive one, so the lift of a pair is not the product of two lifts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import option
from mechdesign.cli.mechanism import is_mechanism
from mechdesign.cli.parsing import names
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.auditing.independent_draws import PeopleTogether

EXAMPLE = (
    "Example:  mechdesign compose march.json april.json        Of two columns of one table:  "
    "mechdesign compose job.json school.json --table people.csv"
)

ChannelPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="CHANNEL..",
        help="Channel files written by `design`; one file as often as a record is "
        "released through it.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ComposeOptions:
    """Whose records"""

    person: list[str] | None = option(
        "COL[,COL..]",
        "Column(s) of --table that name a person with several records: what all of them tell "
        "together is computed, too.",
    )


def compose(
    reporter: Reporter,
    channels: ChannelPaths,
    asked: ComposeOptions,
    table: table_options.OtherTable,
    common: options.CommonOptions,
) -> None:
    """Compute the joint leakage of several releases of one record, drawn independently.

    Channels of one column and of rows go together. They must be for the same table; channels
    of different columns need a --table that has all of them. Budgets do not simply add: the
    sum is shown beside the exact figures.
    """
    from mechdesign.channel.file import load_without_boxes
    from mechdesign.report.layout import paragraph
    from mechdesign.report.sentences import composition_record, composition_text

    # Before any file is loaded as a channel, whose error would not name the reason.
    for path in channels:
        if is_mechanism(path):
            raise InputError(
                f"{path} is a mechanism file of `quantize`: compose takes channel files"
            )
    loaded = [load_without_boxes(path) for path in channels]
    with reporter.work("composing"):
        joint = table.read(" and ".join(channels), *loaded, together=True)
        composition = md.compose(loaded, joint)
        people = _people(asked, loaded, joint, table)
    if joint is not None:
        reporter.notices(joint.notices)
    reporter.notices(_average_notices(channels, loaded))
    reporter.done("composed", f"{len(loaded)} releases are composed")
    record = composition_record(composition)
    is_of_people = any(channel.useful.people is not None for channel in loaded)
    subject = "All records of a person" if is_of_people else "A record"
    text = composition_text(composition, channels, subject)
    if people is not None:
        together, sentence = people
        record["people"] = asdict(together)
        text += "\n" + paragraph(f"{sentence[0].upper()}{sentence[1:]}.")
    common.answer(lambda: record, lambda: text)


def _people(
    asked: ComposeOptions,
    channels: list[md.Channel],
    joint: md.Joint | None,
    table: table_options.OtherTable,
) -> tuple[PeopleTogether, str] | None:
    """What all records of a person in the table tell together, and in words."""
    from mechdesign.leaks.people_notice import composed_for_people, together_sentence

    if asked.person is None:
        return None
    if table.table is None:
        raise InputError(
            "--person names a column of the records: give --table TABLE too"
        )
    person = names("--person", asked.person)
    together = composed_for_people(table.table, channels, joint, person, table.text())
    sensitive = channels[0].sensitive
    columns = () if sensitive is None else sensitive.columns
    return together, together_sentence(together, person, columns)


def _average_notices(paths: list[str], channels: list[md.Channel]) -> list[str]:
    """That averages of single releases bound nothing about all of them together."""
    averaged: list[str] = []
    for path, channel in zip(paths, channels, strict=True):
        if channel.record.averages and path not in averaged:
            averaged.append(path)
    if not averaged:
        return []
    return [
        f"{' and '.join(averaged)}: a budget on an average is one of each release alone; what all "
        "of them leak together on average is not computed, and may exceed the sum"
    ]
