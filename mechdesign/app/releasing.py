"""The button that releases: the table of the page through the channel that was designed for it.

Everything stays in memory. The task gets the text of the channel file, so that what is released
goes through the very channel that the page offers for download. It writes the released columns
alone, checks what came out against the original, and says what the file is:

- ``released.csv``, in the order of the table;
- ``released.txt``, what was released, how, and what it promises;
- ``codebook.csv``, where labels are released and not values of the columns;
- ``board.html``, the page for those who decide;
- ``judged.html``, attacks on the file and what its readers find.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import CSV, HTML, TEXT, Download, Released, Say
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.judging.figures import Judgement

RELEASED = "released.csv"


def release_file(text: str, table: MemoryTable, choice: Choice, say: Say) -> Released:
    """Release the table through the channel in this text."""
    from mechdesign.auditing.stated import refuse_broken

    say("Checking the channel")
    channel = channel_in(text)
    refuse_broken(channel)
    say("Drawing the released rows")
    frame = channel.apply(table.frame)
    say("Judging the released file")
    judgement = _judged(frame, table, choice, channel)
    say("Writing the files")
    fixed = _is_fixed(judgement)
    facts = _facts(channel, table, judgement, fixed=fixed)
    files = [
        Download(RELEASED, "The released file", CSV, _csv(frame, table.delimiter)),
        Download("released.txt", "What was released, and how", TEXT, _described(facts)),
    ]
    if not channel.releases_symbols:
        from mechdesign.jobs.codebook import codebook_text

        files.append(
            Download(
                "codebook.csv",
                "What the labels mean; computed from the table, keep it to yourself",
                CSV,
                codebook_text(channel),
            )
        )
    files.append(
        Download("board.html", "One page for those who decide", HTML, _board(channel))
    )
    if judgement is not None:
        files.append(
            Download(
                "judged.html",
                "Attacks on the file, for those who may see the data",
                HTML,
                _judged_page(judgement, table),
            )
        )
    return Released(facts=tuple(facts), files=tuple(files))


def channel_in(text: str) -> Channel:
    """The channel of a channel file that is in memory."""
    from mechdesign.channel.file import channel_of

    values = json.loads(text)
    for key in ("format", "sha256"):
        values.pop(key, None)
    return channel_of(values)


def _judged(
    frame: Any, table: MemoryTable, choice: Choice, channel: Channel
) -> Judgement | None:
    """The judgement of what came out; None where labels were released, which the original lacks,
    or the table is too short to measure anything.
    """
    from mechdesign.judging.judge import judge

    if not channel.releases_symbols:
        return None
    try:
        return judge(
            frame,
            original=table.frame,
            sensitive=list(choice.sensitive),
            channel=channel,
        )
    except InputError:
        # The release does not depend on it.
        return None


def _is_fixed(judgement: Judgement | None) -> bool:
    """Whether every row was released exactly as often as expected."""
    if judgement is None:
        return False
    notes = judgement.part("whole_file").notes
    return any(note.startswith("Every row is released exactly") for note in notes)


def _facts(
    channel: Channel,
    table: MemoryTable,
    judgement: Judgement | None,
    *,
    fixed: bool,
) -> list[tuple[str, str]]:
    """What was released, how it was drawn, and the strongest attack beside its bound."""
    from mechdesign.app.searching import TENTHS
    from mechdesign.core.wording import listed
    from mechdesign.report.wording import percent

    facts = [
        (
            "Released",
            f"{table.records:,} records of {listed(list(channel.output_columns))}, in the order "
            "of the table. No other column is in the file.",
        )
    ]
    if fixed:
        draws = (
            "Every row is released exactly as often as expected. So the promise holds for readers "
            "of the whole file, too."
        )
    else:
        draws = (
            "Each record was drawn by itself. The promise is proven for readers of single rows, "
            "and readers of the whole file may learn a little more."
        )
    facts.append(("Draws", draws))
    facts.append(
        (
            "Once only",
            "The key of the draws is forgotten. A second release of the same people, with this or "
            "any other channel, tells more than each by itself.",
        )
    )
    if judgement is None:
        return facts
    for figure in judgement.part("own_row").figures:
        if figure.key.startswith("other_data_surest_5") and figure.promised is not None:
            name = figure.key.rpartition("_")[2]
            shares = (
                figure.released,
                figure.untouched,
                figure.without,
                figure.promised,
            )
            measured = [
                percent(share, step=TENTHS) for share in shares if share is not None
            ]
            if len(measured) == len(shares):
                facts.append(
                    (
                        f"Attack on {name}",
                        f"Of the 5 % of the people who look most like it {measured[0]} have it; in "
                        f"the untouched file {measured[1]}, of all {measured[2]}. Promised: at "
                        f"most {measured[3]} in the mean.",
                    )
                )
    return facts


def _described(facts: list[tuple[str, str]]) -> str:
    """The facts as a text that goes with the file."""
    lines = ["Released with mechdesign.", ""]
    for name, text in facts:
        # Figures of attacks are computed from the secrets.
        if not name.startswith("Attack"):
            lines.append(f"{name}: {text}")
    return "\n".join([*lines, ""])


def _csv(frame: Any, delimiter: str | None) -> str:
    """The released frame as CSV, with the delimiter of the file that was opened."""
    import pyarrow.csv

    stream = io.BytesIO()
    options = pyarrow.csv.WriteOptions(delimiter=delimiter or ",")
    pyarrow.csv.write_csv(frame, stream, options)
    return stream.getvalue().decode()


def _board(channel: Channel) -> str:
    """The page for a board."""
    from mechdesign.report.board import board_page
    from mechdesign.report.collect import design_behind, promise_of
    from mechdesign.report.content import summary_report
    from mechdesign.report.writing import document_text

    joint = channel.joint
    if joint is None:
        raise InputError("the channel has no table")
    design = design_behind(channel, joint, promise_of(channel))
    summary = summary_report(design, joint, attained={}, remarks=())
    page = board_page(design, summary, "channel.json")
    return document_text(page.record, page.document, ".html")


def _judged_page(judgement: Judgement, table: MemoryTable) -> str:
    """The judgement as a page."""
    from functools import partial

    from mechdesign.report.judgement import judgement_page
    from mechdesign.report.writing import document_text

    again = (
        f"mechdesign judge {RELEASED} --original {table.path} --sensitive "
        f"{','.join(judgement.sensitive)} --channel channel.json"
    )
    page = partial(judgement_page, judgement, RELEASED, table.path, again)
    return document_text({}, page, ".html")
