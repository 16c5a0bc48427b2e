"""`judge`: a released file of any tool against its original.

The attacks and comparisons are modules of this package. Each makes one `Part`, for the released
file and for the untouched one, by the same code: the untouched file is a release that changed
nothing (`untouched_files`).

`models_part` is the comparison of what models learn from a released file: trained there, and
measured on true rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.analysis.release_facts import facts_of_release, refuse_other_channel
from mechdesign.auditing.stated import refuse_broken
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import load, require_channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.formats.cells import CellForm
from mechdesign.formats.csv_text import TextOptions
from mechdesign.judging.analysts import analysts_part
from mechdesign.judging.figures import AREA, Figure, Judgement, Part
from mechdesign.judging.groups import groups_part, singling_out_part
from mechdesign.judging.instruments import instruments_note
from mechdesign.judging.known_cells import (
    cells_part,
    inference_part,
    known_by_default,
    linkability_part,
)
from mechdesign.judging.observers import (
    belief_bounds,
    check_channel,
    drawn_by,
    whole_file_part,
)
from mechdesign.judging.own_row import (
    Bounds,
    DistinctRows,
    Halves,
    Rows,
    own_row_part,
    read_column,
    row_of_record,
    targets_of,
)
from mechdesign.judging.together import (
    POSITION,
    Files,
    SharedColumn,
    read_files,
)
from mechdesign.leaks.learners import area_under_curve, learner_name
from mechdesign.tables.joint import Joint
from mechdesign.tables.reading import read_joint
from mechdesign.tables.records import bins_by_column
from mechdesign.tables.variable import Symbol

FEWEST_RECORDS = 40
"""Shorter files say nothing: half of them is learnt from, and a twentieth is the surest."""


def judge(
    released: Any,
    *,
    original: Any,
    sensitive: str | Sequence[str],
    channel: Channel | str | Path | None = None,
    known: str | Sequence[str] | None = None,
    learn: str | Sequence[str] | None = None,
    identity: str | Sequence[str] | None = None,
    shuffled: bool = False,
    text: TextOptions | None = None,
    form: CellForm | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Judgement:
    """Judge a released file: attacks on it, groups of equal rows, what analysts and models read.

    Parameters
    ----------
    released, original : path, or a pandas, polars or pyarrow table
        The release, and the records behind it with the secret.
    sensitive : str or sequence of str
        The column(s) that the release is to protect; several are crossed.
    channel : Channel or path, optional
        What released the file: its promise is then set beside the measured figures, and the
        observer of the whole file is tried.
    known : str or sequence of str, optional
        The columns that outsiders know of a person.
    learn : str or sequence of str, optional
        The columns that models are to predict; by default the first ones.
    identity : str or sequence of str, optional
        Columns of both files that tell records apart. Without them files of the same number of
        records whose rows agree far more often than by chance are taken to be in one order.
    shuffled : bool
        Do not link rows by their place.
    text : TextOptions, optional
        How CSV files are written.
    form : CellForm, optional
        The form in which the cells of both files are compared; by default that of the channel.
    seed : int
        Of halves, samples and claims: the same seed gives the same figures.
    progress : callable, optional
        Called with the name of each part before it starts.

    Raises
    ------
    InputError
        If the files share no column, a column is missing, or the channel is of another release.
    NotPrivate
        If the channel breaks its promise on its own table.
    """
    tell = progress or (lambda name: None)
    tell("reading both files")
    if identity is not None and shuffled:
        raise InputError(
            "identity links the rows, and shuffled forbids it: give one of them"
        )
    opened = None if channel is None else _opened(channel)
    if form is None:
        form = CellForm() if opened is None else opened.record.rules.cell_form
    files = read_files(
        released,
        original,
        sensitive=sensitive,
        identity=identity,
        shuffled=shuffled,
        text=text,
        form=form,
    )
    if min(files.records, files.released_records) < FEWEST_RECORDS:
        raise InputError(
            f"there must be at least {FEWEST_RECORDS} records in both files; of fewer nothing can "
            "be measured"
        )
    shares = _shares(files)
    promise, bounds = _promised(opened, files, released, original, text)
    steps = _steps(
        files,
        opened,
        bounds,
        shares,
        None if known is None else files.places(_names(known)),
        None if learn is None else files.places(_names(learn)),
        seed,
    )
    parts: list[Part] = []
    for name, measure in steps:
        tell(name)
        parts.append(measure())
    return Judgement(
        records=files.records,
        released_records=files.released_records,
        sensitive=files.secret.names,
        shares=shares,
        columns=tuple(column.name for column in files.columns),
        unjudged=files.unjudged,
        strange=tuple(column.name for column in files.columns if column.is_strange),
        alike=tuple(column.alike for column in files.columns if column.alike),
        linked=files.linked,
        agreement=_agreement(files),
        secret_released=files.released_secret is not None,
        learner=learner_name(len(files.secret.symbols)),
        instruments=instruments_note(),
        promise=promise,
        bounds=bounds,
        parts=tuple(parts),
        seed=seed,
    )


def _steps(
    files: Files,
    channel: Channel | None,
    bounds: Bounds,
    shares: dict[str, float],
    known: list[int] | None,
    learn: list[int] | None,
    seed: int,
) -> list[tuple[str, Callable[[], Part]]]:
    """Each part by its name, with what measures it; `known` and `learn` are places of columns."""
    untouched = untouched_files(files)
    halves = Halves.of(files, seed)
    rows = DistinctRows.of(files.columns)
    untouched_rows = DistinctRows.of(untouched.columns)
    larger = rows if len(rows) > len(untouched_rows) else untouched_rows
    targets = targets_of(files, larger, seed)
    learnt = Rows(files.columns, len(files.secret.symbols))
    cells = known_by_default(files) if known is None else known
    grouped = list(range(len(files.columns))) if known is None else known
    both = files, untouched
    nearby = rows, untouched_rows, targets
    return [
        (
            "the secret from a person's own row",
            lambda: own_row_part(files, learnt, halves, shares, bounds),
        ),
        (
            "an observer of the whole file",
            lambda: whole_file_part(files, channel, shares, bounds),
        ),
        (
            "the secret from known cells",
            lambda: cells_part(*both, learnt, halves, *nearby, cells, shares, seed),
        ),
        ("singling out", lambda: singling_out_part(*both, seed)),
        ("linkability", lambda: linkability_part(*both, *nearby, known, seed)),
        ("inference", lambda: inference_part(*both, *nearby)),
        ("groups of equal rows", lambda: groups_part(*both, grouped)),
        ("what analysts read", lambda: analysts_part(files)),
        ("what models learn", lambda: models_part(files, halves, learn, seed)),
    ]


def untouched_files(files: Files) -> Files:
    """The original as a release of itself; it has the secret beside the rows if the released file
    has it.
    """
    columns: list[SharedColumn] = []
    for column in files.columns:
        own = [np.array([value]) for value in range(len(column.original.values))]
        columns.append(replace(column, released=column.original, covers=own))
    secret = None if files.released_secret is None else files.secret.codes
    return Files(
        columns=tuple(columns),
        unjudged=(),
        secret=files.secret,
        released_secret=secret,
        released_records=files.records,
        linked=POSITION,
        owner=np.arange(files.records),
    )


def _names(names: str | Sequence[str]) -> list[str]:
    """Names of columns: a text is split at its commas."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return list(names)


def _shares(files: Files) -> dict[str, float]:
    """The share of every secret."""
    counts = np.bincount(files.secret.codes, minlength=len(files.secret.symbols))
    return dict(
        zip(files.secret.symbols, (counts / files.records).tolist(), strict=True)
    )


def _agreement(files: Files) -> float:
    """The share of cells that are as in the original."""
    if not files.is_linked:
        return 0.0
    same = 0.0
    for column in files.columns:
        truth = column.original.codes[files.owner]
        only = [cover[0] if len(cover) == 1 else -1 for cover in column.covers]
        same += float((np.array(only)[column.released.codes] == truth).mean())
    return same / len(files.columns)


def _opened(channel: Channel | str | Path) -> Channel:
    """The channel, or that of a file."""
    opened = load(channel) if isinstance(channel, (str, Path)) else channel
    return require_channel(
        "channel", opened, "; the path of its file is one, too"
    ).on_tables(
        "a channel of boxes promises for a population, not for this file: leave the channel out, "
        "and audit it by itself"
    )


def _promised(
    channel: Channel | None,
    files: Files,
    released: Any,
    original: Any,
    text: TextOptions | None,
) -> tuple[tuple[str, ...], Bounds]:
    """What is known of the promise of a channel, and its bounds on beliefs in each secret."""
    if channel is None:
        return (), {}
    check_channel(channel, files)
    facts = None
    if isinstance(released, (str, Path)):
        refuse_other_channel(released, channel)
        facts = facts_of_release(released, channel)
    proven = refuse_broken(channel)
    notion = channel.record.promise(channel.sensitive)
    if notion is None:
        return ("The channel states no promise.",), {}
    bounds: Bounds = {}
    if not proven:
        how = (
            "The channel has no table, so its promise was not verified here: audit it with the "
            "table."
        )
    elif facts is None and drawn_by(channel, files) is None:
        how = (
            "The channel keeps its promise for the table that it was designed for. Some released "
            "values are none of its outputs, and no manifest beside the file says that it released "
            "them, so no figure here is bounded by it."
        )
    elif facts is not None and facts.keeps_changed:
        how = (
            "The channel keeps its promise for the table that it was designed for. By the manifest "
            "a record whose symbol changed keeps what was released for its first one, so no figure "
            "here is bounded by it."
        )
    elif not _is_its_table(channel, original, text):
        how = (
            "The channel keeps its promise, verified in exact arithmetic, for the table that it "
            "was designed for. The original is another one, so no figure here is bounded by it."
        )
    else:
        bounds = belief_bounds(channel)
        how = (
            "The channel keeps its promise for this table, verified in exact arithmetic on its "
            "integers."
        )
    return (how, f"For specialists: the promise is {notion.text}."), bounds


def _is_its_table(channel: Channel, original: Any, text: TextOptions | None) -> bool:
    """Whether the original has the counts of the channel's table, so that its bounds hold here."""
    own = channel.joint
    if own is None or own.useful.people is not None:
        return False
    rules = channel.record.rules
    reading: dict[str, Any] = {
        "sensitive": own.sensitive.columns,
        "useful": own.useful.columns,
        "bins": bins_by_column([own.useful]) or None,
    }
    try:
        if isinstance(original, (str, Path)):
            counted = rules.counted
            joint = read_joint(
                original, text=text, form=rules.cell_form, missing=counted, **reading
            )
        else:
            joint = Joint.from_table(original, **rules.reading, **reading)
    except InputError:
        # It has other columns, or cells that the channel's table has not.
        return False
    return _filled_cells(joint) == _filled_cells(own)


def _filled_cells(joint: Joint) -> dict[tuple[Symbol, Symbol], int]:
    """The count of each pair of symbols that occurs."""
    found: dict[tuple[Symbol, Symbol], int] = {}
    for secret, counts in zip(joint.sensitive.symbols, joint.counts, strict=True):
        for useful, count in zip(joint.useful.symbols, counts, strict=True):
            if count:
                found[secret, useful] = count
    return found


MOST_LEARNT_COLUMNS = 6
"""Columns that models predict, unless others are asked for: each is learnt twice."""


def classes_of(column: SharedColumn) -> tuple[Integers, Integers, str]:
    """The two classes of a column in original and released file, and the name of the second one:
    the most frequent value, or numbers above the median.
    """
    numbers = column.numbers
    after = column.released_numbers
    if numbers is not None and after is not None and len(column.original.values) > 2:
        middle = float(np.nanmedian(numbers[column.original.codes]))
        name = f"above {middle:g}"
        return (
            (numbers[column.original.codes] > middle).astype(np.int64),
            (after[column.released.codes] > middle).astype(np.int64),
            name,
        )
    both = read_column(column)
    frequent = int(np.argmax(np.bincount(column.original.codes)))
    is_frequent = (both.codes == frequent).astype(np.int64)
    records = len(column.original.codes)
    return is_frequent[:records], is_frequent[records:], both.values[frequent]


def models_part(
    files: Files, halves: Halves, places: Sequence[int] | None, seed: int
) -> Part:
    """How well models trained on the released file predict true rows."""
    if places is None:
        places = list(range(len(files.columns)))[:MOST_LEARNT_COLUMNS]
    title = "What models learn"
    means = (
        "A model learns to predict one released column from the others, in the released file, and "
        "is measured on true rows of people it has not seen. 'Untouched' is the same model trained "
        "on true rows."
    )
    not_meant = (
        "It is one kind of model. Others lose more or less; a model whose outcome is the secret is "
        "what the release prevents."
    )
    if len(files.columns) < 2:
        return Part("models", title, means, not_meant, (), ("One column alone.",))
    rows = np.arange(files.released_records)
    notes: tuple[str, ...] = ()
    if files.is_linked:
        of_known = row_of_record(files)[halves.known]
        rows = of_known[of_known >= 0]
    else:
        # As many rows as the model beside it has.
        rows = np.random.default_rng([seed, 3]).permutation(rows)[: len(halves.known)]
        notes = ("Rows of the people that it is measured on may be among them.",)
    figures: list[Figure] = []
    for place in places:
        column = files.columns[place]
        others = [other for other in files.columns if other is not column]
        before, after, name = classes_of(column)
        learnt = Rows(others, 2)
        read = learnt.read
        unseen = learnt.original(read, halves.targets)
        truth = before[halves.targets]
        counts = np.bincount(truth, minlength=2)
        trained = read.shares(learnt.released(read, rows), after[rows], unseen)
        known = halves.known
        reference = read.shares(learnt.original(read, known), before[known], unseen)
        figures.append(
            Figure(
                f"area_{column.name}",
                f"{column.name} ({name}): area under the ROC curve",
                area_under_curve(trained, truth, counts),
                area_under_curve(reference, truth, counts),
                0.5,
                unit=AREA,
            )
        )
    return Part("models", title, means, not_meant, tuple(figures), notes)
