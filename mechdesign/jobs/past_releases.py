"""What a ledger knows of a data set: the releases of its records, and the budget of several draws of them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_hex
from sqlite3 import Connection
from typing import Any, TypeAlias

from mechdesign.channel.channel import Channel as Releasable
from mechdesign.core.documents import canonical, versions
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import at_most, quoted
from mechdesign.core.progress import Progress
from mechdesign.formats.digests import Census, Content
from mechdesign.formats.inputs import GuardedInput, TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.jobs.ledger import Drawn, Entry, Ledger, Use
from mechdesign.nonstochastic.noiseless import composed_epsilon
from mechdesign.nonstochastic.release_answers import Quantised
from mechdesign.release.drawing import REDRAW, channel_digest

Budget: TypeAlias = dict[str, Any]
"""`draws`, `eps_l`, `eps_u` and `eps_ldp`."""

TableOf: TypeAlias = Callable[[Sequence[Any]], Any]
"""Reads the table of the useful columns of all channels given."""


def local_budget(rows: Sequence[Sequence[int]]) -> float:
    """The largest log W(y|x) / W(y|x') of a channel of integers, rounded up: what one draw tells at most of anything.

    A record that is drawn independently k times tells at most k times as much.
    """
    # Exact logarithms take as long to import as a small job.
    from mechdesign.auditing.demands import log_upper

    columns = list(zip(*rows, strict=True))
    return max(
        log_upper(max(column), min(column)) if min(column) else math.inf
        for column in columns
    )


def joint_budget(
    draws: Sequence[Drawn], channels: Sequence[Releasable], table: TableOf | None = None
) -> tuple[Budget | None, str]:
    """The joint budget of independent draws, exactly, and a sentence that says it; None where it cannot be known.

    Draws of the same number count once. Channels that are not at hand are read from the files that they came from.
    `table` gives that of all columns for the channels.
    """
    from mechdesign.auditing.joint_leakage import compose
    from mechdesign.channel.channel import Channel

    places = {draw.use.channel: draw.channel_file for draw in draws}
    different = sorted({(draw.use.channel, draw.job, draw.draw) for draw in draws})
    every = "the one draw" if len(different) == 1 else f"all {len(different)} draws"
    unknown = f"the joint budget of {every} is not known"
    known = {channel_digest(channel): channel for channel in channels}
    for name, place in places.items():
        if name not in known and place is not None:
            with suppress(InputError):
                channel = Channel.load(place)
                known[channel_digest(channel)] = channel
        if name not in known:
            gone = f" ({place} is gone, or another one now)" if place else ""
            return (
                None,
                f"{unknown}: the channel {name[:12]}.. of one of them is not at hand{gone}",
            )
    try:
        drawn: list[Any] = [known[name] for name, _, _ in different]
        found = compose(drawn, None if table is None else table(drawn))
    except InputError as error:
        return None, f"{unknown}: {error}"
    budget = {
        "draws": len(different),
        "eps_l": found.eps_l,
        "eps_u": found.eps_u,
        "eps_ldp": found.eps_ldp,
    }
    return budget, (
        f"{every} of a record {'has' if len(different) == 1 else 'together have'} the budget "
        f"eps_l {at_most(found.eps_l)}, eps_u {at_most(found.eps_u)}, eps_ldp {at_most(found.eps_ldp)}"
        f"{_REDRAWN if any(draw.use.changed == REDRAW for draw in draws) else ''}"
    )


_REDRAWN = (
    ", but for records that were drawn anew because their symbol had changed (--changed redraw), of which their "
    "releases together tell more"
)


QUANTISED = "quantised"
"""The form of cells of numbers, of which nothing is drawn."""

WAY = {"query", "group_by", "range", "values", "outside", "mechanisms"}
"""What tells one way of releasing a column from another."""


def share_of(
    db: Connection, entries: Sequence[Entry], content: Content, file: str | None
) -> tuple[float, list[Entry]]:
    """Which share of the records of a data set was in releases, and in which."""
    equal = {entry.id for entry in entries if is_same(entry, content, file)}
    samples = {
        e.unordered: Ledger.sample(db, e.unordered) for e in entries if e.unordered
    }
    alike = {name for name, sample in samples.items() if content.share_in([sample])}
    share = 1.0 if equal else content.share_in([samples[name] for name in alike])
    return share, [
        entry for entry in entries if entry.id in equal or entry.unordered in alike
    ]


def is_same(entry: Entry, content: Content, file: str | None) -> bool:
    """Whether a release was of these very records, in whatever order; those before ledgers show in their bytes."""
    return entry.unordered == content.unordered or (
        file is not None and entry.file == file
    )


def in_cells(entries: Sequence[Entry]) -> dict[str, tuple[int, float]]:
    """For each column that was released in cells, how many different releases there were, and the bits of all.

    The outputs of all on one fibre are at most the product of their numbers (Farokhi 2020, Theorem 6). The same release
    of the same data tells nothing new; data of which some are the same count in full, whose numbers add up.
    """
    spent: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for entry in entries:
        for drawn in (each for each in entry.drawn if each.use.form == QUANTISED):
            same, known = (
                (drawn.use.channel, drawn.job),
                spent.setdefault(drawn.use.columns[0], {}),
            )
            known[same] = max(known.get(same, (1, 1)), tuple(entry.settings["spent"]))
    return {
        column: (len(known), composed_epsilon(known.values()))
        for column, known in spent.items()
    }


def charged(
    ledger: Ledger,
    content: Content,
    done: Quantised,
    equals: str | None = None,
    **places: Any,
) -> Quantised:
    """Enter a release in cells; it then tells of all releases of the column of these records."""
    now, columns = datetime.now(UTC).isoformat(timespec="seconds"), (done.column,)
    way = done.mechanism.document.model_dump(mode="json", include=WAY) | {
        "equals": equals
    }
    use = Use(
        channel=sha256(canonical(way).encode()).hexdigest(),
        columns=columns,
        form=QUANTISED,
    )
    spent = (done.mechanism.guarantee["outputs"], done.answers_each or 1)
    if by_size := dict(done.mechanism.guarantee.get("answers_by_size", ())):
        each = {m.individuals: m.certificate.outputs for m in done.mechanism.mechanisms}
        spent = (math.prod(each[size] ** times for size, times in by_size.items()), 1)
    places |= {
        "records": content.records,
        "ordered": content.ordered,
        "unordered": content.unordered,
    }
    places |= {"state": "done", "started": now, "finished": now, "versions": versions()}
    places |= {"output": done.sha256, "settings": {"spent": spent}}
    entry = Entry(
        id=token_hex(8),
        drawn=(Drawn(use=use, job=f"data {content.unordered}", draw=0),),
        **places,
    )
    with ledger.changing() as db:
        _, found = share_of(db, ledger.releases(db), content, None)
        ledger.enter(db, entry, content)
    releases, bits = in_cells([*found, entry])[done.column]
    return replace(done, releases=releases, releases_epsilon=bits)


def history_of(
    ledger: Ledger,
    data: PathLike,
    *,
    text: TextOptions | None = None,
    channels: Sequence[Releasable] = (),
    table: TableOf | None = None,
    progress: Progress | None = None,
) -> tuple[float, list[Entry], Budget | None, str]:
    """Which share of the records of a file was released, in which releases, and their budget, also as a sentence.

    `channels` are those that have to be read from elsewhere than where they were at the release.
    """
    read = text or TextOptions()
    census = Census()
    with GuardedInput(data, progress=progress) as guarded:
        with open_source(guarded.path, read, name=guarded.name) as records:
            for batch in records.batches():
                census.add(ledger.hasher.records(batch))
        guarded.check()
        file = ledger.file_hash(guarded.sha256, canonical(asdict(read)))
    with ledger.reading() as db:
        share, found = share_of(db, ledger.releases(db), census.content(), file)
    drawn = [
        each for entry in found for each in entry.drawn if each.use.form != QUANTISED
    ]
    budget, told = joint_budget(drawn, channels, table) if drawn else (None, "")
    cells = [
        f"{quoted(column)} was released in {ways} {'way' if ways == 1 else 'ways'} in cells: at most {at_most(bits)} "
        "bits of one individual"
        for column, (ways, bits) in in_cells(found).items()
    ]
    told = (
        "; ".join(filter(None, [told, *cells]))
        or "these records have not been released"
    )
    return share, found, budget, told
