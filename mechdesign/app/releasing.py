"""The buttons that advise before a release, that release, and that judge what was released.

*Advice.* `md.assess` measures every column by the share of H(S) that its values tell about a record
left out, and by its largest lift (`leaks.disclosure`). `_disclosure_text` makes of both a sentence
beside the column on the page: "Alone gives away 2.1 % of the protected information; its worst value
makes a protected value 3.1 times as likely." A column that identifies records gets the advice to
leave it out instead.

`plan_table` also tries releases of a sample, as `mechdesign assess --plan` does.

*Releases.* Everything stays in memory. The task gets the text of the channel file, so that what is
released goes through the very channel that the page offers for download. `release_file` writes the
released columns alone, refuses what `mechdesign apply` refuses, checks what came out as `mechdesign
check` does, and says what the file is:

- ``released.csv``, in the order of the table or in random order;
- ``released.csv.manifest.json`` and ``released.txt``, what was released, how, and what it promises;
- ``codebook.csv``, where labels are released and not values of the columns;
- ``board.html``, the page for those who decide (of boxes there is none);
- ``check.txt``, what the check says.

`judge_file` attacks the file, which takes longer: ``judged.html``.
"""

from __future__ import annotations

import hashlib
import io
import os
import shlex
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.pictures import released_readings
from mechdesign.app.recipes import text_options
from mechdesign.app.results import (
    CSV,
    HTML,
    JSON,
    TEXT,
    Assessed,
    ColumnSays,
    Download,
    Judged,
    Planned,
    Reading,
    Released,
    Say,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import DESCRIPTORS, NamelessFile
from mechdesign.formats.column_names import names_text
from mechdesign.formats.csv_text import TextOptions

if TYPE_CHECKING:
    from mechdesign.analysis.checking import ReleaseCheck
    from mechdesign.channel.channel import Channel
    from mechdesign.frames.sanitising import FrameRelease
    from mechdesign.jobs.keyed_recipe import KeyedRecipe
    from mechdesign.judging.figures import Judgement
    from mechdesign.leaks.assessment import Assessment, Disclosure


def assess_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """What every column discloses about the protected ones."""
    return _assessed(_assessment(table, choice, say))


def plan_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """The same, and what trial releases of a sample advise."""
    from mechdesign.comparison.planning import BINS, plan_release
    from mechdesign.report.assessment import (
        TRIALS_HEADER,
        plan_command,
        plan_sentences,
        trial_rows,
    )

    assessment = _assessment(table, choice, say)
    plan = plan_release(
        table.frame,
        assessment,
        progress=lambda trial: say(f"Trying a release of a sample: {trial}"),
    )
    planned = Planned(
        sentences=tuple(plan_sentences(plan)),
        header=TRIALS_HEADER,
        rows=tuple(trial_rows(plan)),
        released=plan.released,
        given=plan.given,
        bins=dict.fromkeys(plan.bins, BINS),
        factor=f"{plan.factor:g}",
        has_gaps=plan.has_gaps,
        command=plan_command(
            plan,
            table.path,
            choice.sensitive,
            [f"--{name}={value}" for name, value in text_options(table).items()],
        ),
    )
    return replace(_assessed(assessment), plan=planned)


def _assessment(table: MemoryTable, choice: Choice, say: Say) -> Assessment:
    """The assessment of all columns."""
    choice.check_secret()
    say("Measuring every column, then guessing from whole rows")
    return md.assess(table.frame, sensitive=list(choice.sensitive))


def _assessed(assessment: Assessment) -> Assessed:
    """The assessment in words."""
    from mechdesign.report import wording as w

    columns: list[ColumnSays] = []
    for column in assessment.columns:
        text = "Identifies records: leave it out."
        brief = "names records"
        if not column.identifier:
            text = _disclosure_text(column.disclosure)
            brief = f"tells {w.percent(column.disclosure.information)}"
        columns.append(ColumnSays(column.name, text, brief))
    return Assessed(tuple(columns), assessment.summary())


def _disclosure_text(disclosure: Disclosure) -> str:
    """What a column discloses: its information, its largest lift, and who is pinned down."""
    from mechdesign.report import wording as w

    share = w.percent(disclosure.information)
    text = f"Alone gives away {share} of the protected information"
    # No lift is reported where no value has two records or more.
    if disclosure.largest_lift is not None:
        lift = disclosure.largest_lift
        text += f"; its worst value makes a protected value {lift:.3g} times as likely"
    if disclosure.pinned:
        pinned = w.percent(disclosure.pinned)
        text += (
            f"; {pinned} of the records have a value that occurs with a single "
            "protected value only"
        )
    return f"{text}."


# ---------------------------------------------------------------------------- releasing

RELEASED = "released.csv"

IN_ORDER = "order"
SHUFFLED = "shuffled"
ORDERS = {
    IN_ORDER: "as in the file",
    SHUFFLED: "random",
}
"""The order of the released records, with its words on the page; the first is the default."""


def release_file(
    text: str, order: str, table: MemoryTable, choice: Choice, say: Say
) -> Released:
    """Release the table through the channel in this text, in one of `ORDERS`."""
    say("Checking the channel")
    channel = channel_in(text)
    of_records = _of_records(channel, choice)
    is_shuffled = order == SHUFFLED
    if is_shuffled and channel.people is not None:
        raise InputError(
            "The order of a person's records is that of the file, which a random order would "
            "lose: choose the order of the file."
        )
    say("Drawing the released rows")
    # With all columns: the manifest says which were left out.
    release, recipe, manifest = _drawn(channel, table, is_shuffled=is_shuffled)
    whole_file = recipe.covers_whole_file(release.drawer.plan)
    content = _csv(release.frame, table)
    say("Checking the released file")
    table = table.with_columns(choice.used)
    # A release of boxes is checked by itself, without its original.
    is_alone = is_shuffled or choice.is_boxes
    check, words = _checked(channel, content, table, is_alone=is_alone)
    say("Writing the files")
    facts = _facts(channel, table, whole_file=whole_file, is_shuffled=is_shuffled)
    described = _described(facts)
    files = [
        Download(RELEASED, "The released file", CSV, content, True),
        Download(
            f"{RELEASED}.manifest.json",
            "The manifest: what was done, what is promised, what voids it",
            JSON,
            manifest(content),
            True,
        ),
        Download("released.txt", "The same in words", TEXT, described, True),
    ]
    if not channel.tells_shares:
        codebook = recipe.codebook()
        about = "What the labels mean, computed from the table"
        files.append(Download("codebook.csv", about, CSV, codebook))
    if not choice.is_boxes:
        about = "One page for those who decide"
        files.append(
            Download("board.html", about, HTML, _board(cast("Channel", channel)))
        )
    files.append(Download("check.txt", "What the check says", TEXT, words + "\n"))
    return Released(
        facts=tuple(facts),
        check=words,
        is_plausible=check.plausible,
        readings=_readings(of_records, release.frame),
        messages=tuple(release.notices),
        files=tuple(files),
    )


def judge_file(
    text: str, released: str, table: MemoryTable, choice: Choice, say: Say
) -> Judged:
    """Attack the released file in this text, beside its original."""
    import pyarrow.csv

    from mechdesign.judging.judge import judge
    from mechdesign.report.judgement import judgement_text, short_texts

    say("Attacking the released file and the untouched one")
    channel = channel_in(text)
    names = list(channel.output_columns)
    frame = pyarrow.csv.read_csv(
        io.BytesIO(released.encode()),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=_text(table).delimiter, newlines_in_values=True
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()),
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    judgement = judge(
        frame,
        # People have new numbers in the release.
        original=table.frame.drop_columns(list(choice.person)),
        sensitive=list(choice.sensitive),
        channel=_of_records(channel, choice),
    )
    say("Writing the page")
    about = "Attacks on the file, and what its readers find"
    page = Download("judged.html", about, HTML, _judged_page(judgement, table))
    return Judged(tuple(short_texts(judgement)), judgement_text(judgement), page)


def channel_in(text: str) -> Channel:
    """The channel of a channel file that is in memory."""
    from mechdesign.channel.file import load

    with _readable(text.encode()) as path:
        return load(path)


def _of_records(channel: Channel, choice: Choice) -> Channel | None:
    """The channel where it promises for single records of this file: None of boxes, which promise
    for a population, and of people, whose records are released together.
    """
    if choice.is_boxes or choice.person:
        return None
    return cast("Channel", channel)


def _drawn(
    channel: Channel, table: MemoryTable, *, is_shuffled: bool
) -> tuple[FrameRelease, KeyedRecipe, Callable[[str], str]]:
    """The released frame, the recipe that drew it, and what makes the manifest of its text.

    Everything that `mechdesign apply` refuses is refused here.
    """
    from mechdesign.frames.sanitising import release_frame
    from mechdesign.jobs.channel_recipe import recipe_of
    from mechdesign.jobs.earlier_releases import EarlierReleases
    from mechdesign.jobs.keyed_recipe import KeyedRecipe
    from mechdesign.jobs.options import ReleaseOptions

    release = release_frame(
        table.frame, recipe_of(channel, ReleaseOptions(shuffle=is_shuffled))
    )
    drawer = release.drawer
    recipe = drawer.recipe
    if not isinstance(recipe, KeyedRecipe):
        raise TypeError("a channel is released by another kind of recipe")
    # Of a frame this is a warning alone; files are refused, and the page makes files.
    if drawer.checks.order_warning() is not None:
        raise InputError(
            "The records stand in an order that tells of a column that is protected or released: "
            "choose a random order beside the button that releases."
        )

    def manifest(content: str) -> str:
        """The public manifest of the released text."""
        facts = recipe.manifest(
            drawer,
            table.records,
            output=hashlib.sha256(content.encode()).hexdigest(),
            dataset=table.sha256,
            columns_before=table.columns,
            columns=tuple(release.frame.column_names),
            notices=release.notices,
            earlier=EarlierReleases(),
            channel_digests=(),
            whole_file=recipe.covers_whole_file(drawer.plan),
        )
        return facts.text("public")

    return release, recipe, manifest


def _checked(
    channel: Channel,
    content: str,
    table: MemoryTable,
    *,
    is_alone: bool,
) -> tuple[ReleaseCheck, str]:
    """What `mechdesign check` says of the released text, beside the table or alone."""
    import pyarrow.parquet

    import mechdesign as md
    from mechdesign.report.releases import check_text

    # As Parquet, because cells of a Parquet file have types: true in it is True for the channel.
    untouched = io.BytesIO()
    pyarrow.parquet.write_table(table.frame, untouched)
    with (
        _readable(content.encode()) as released,
        _readable(untouched.getvalue()) as original,
    ):
        check = md.check(
            channel,
            released,
            original=None if is_alone else original,
            text=TextOptions(delimiter=_text(table).delimiter),
        )
    return check, check_text(check, RELEASED)


@contextmanager
def _readable(data: bytes) -> Generator[Path]:
    """A path by which this process can read bytes; in memory, where the system has such files."""
    if hasattr(os, "memfd_create") and DESCRIPTORS.is_dir():
        with os.fdopen(os.memfd_create("mechdesign"), "wb") as file:
            file.write(data)
            file.flush()
            yield DESCRIPTORS / str(file.fileno())
        return
    with closing(NamelessFile()) as copy:
        copy.path.write_bytes(data)
        yield copy.path


def _readings(channel: Channel | None, frame: Any) -> tuple[Reading, ...]:
    """What an analyst reads before and after; nothing of boxes, and of people, whose symbols are
    sequences.
    """
    if channel is None or channel.joint is None:
        return ()
    return released_readings(channel, channel.joint, frame)


def _facts(
    channel: Channel,
    table: MemoryTable,
    *,
    whole_file: bool,
    is_shuffled: bool,
) -> list[tuple[str, str]]:
    """What was released, how it was drawn, and for whom the promise is proven."""
    from mechdesign.core.wording import listed

    order = "in random order" if is_shuffled else "in the order of the table"
    people = channel.people
    names = channel.output_columns if people is None else people.columns
    others = "No other column is in the file."
    if people is not None:
        others = "The people have new numbers; no other column is in the file."
    facts = [
        (
            "Released",
            f"{table.records:,} records of {listed(list(names))}, {order}. {others}",
        )
    ]
    readers = (
        "The promise is proven for readers of single rows. Readers of the whole file may learn a "
        "little more."
    )
    if people is not None:
        readers = readers.replace("single rows", "all records of a person")
    if whole_file:
        readers = (
            "The promise is proven for readers of single rows and of the whole file: every row is "
            "released exactly as often as expected, in random order."
        )
    facts.append(("Readers", readers))
    facts.append(
        (
            "Once only",
            "The key of the draws is forgotten. A second release of the same people, with this or "
            "any other channel, tells more than each by itself.",
        )
    )
    return facts


def _described(facts: list[tuple[str, str]]) -> str:
    """The facts as a text that goes with the file."""
    lines = ["Released with mechdesign.", ""]
    lines += [f"{name}: {text}" for name, text in facts]
    return "\n".join([*lines, ""])


def _csv(frame: Any, table: MemoryTable) -> str:
    """A frame as CSV in UTF-8, with the delimiter of the file that was opened.

    Cells of a Parquet file are written as the texts that the channel has for them.
    """
    import pyarrow
    import pyarrow.csv

    from mechdesign.formats.cells import text_of

    columns: dict[str, Any] = {}
    for name in frame.column_names:
        column = frame.column(name)
        if not pyarrow.types.is_string(column.type):
            texts = [text_of(cell, name) for cell in column.to_pylist()]
            column = pyarrow.array(texts, pyarrow.string())
        columns[name] = column
    stream = io.BytesIO()
    options = pyarrow.csv.WriteOptions(delimiter=_text(table).delimiter)
    pyarrow.csv.write_csv(pyarrow.table(columns), stream, options)
    return stream.getvalue().decode()


def _text(table: MemoryTable) -> TextOptions:
    """How the file was written that was opened; the usual way where it was no CSV."""
    return table.text or TextOptions()


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
    from mechdesign.report.judgement import judgement_page
    from mechdesign.report.writing import document_text

    words = ["mechdesign", "judge", RELEASED, "--original", table.path]
    words += [
        "--sensitive",
        names_text(judgement.sensitive),
        "--channel",
        "channel.json",
    ]
    again = shlex.join(words)
    page = partial(judgement_page, judgement, RELEASED, table.path, again)
    return document_text({}, page, ".html")
