"""What the guarantee of a release covers and what voids it, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.exact import listed, quoted
from mechdesign.policies import MARGINAL, OUTPUT
from mechdesign.release import POSTERIOR_DRAW
from mechdesign.sanitise.job_file import Use

_KINDS = {"unknown": "a symbol that the channel does not know", "null": "an empty cell"}


def covers(
    use: Use,
    names: Sequence[str],
    sensitive: Sequence[str] | None,
    notion: Mapping[str, Any] | None,
    *,
    table_records: int | None = None,
    zero_cells: int | None = None,
) -> list[str]:
    """What the promise for one channel's columns is.

    Parameters
    ----------
    use : Use
    names : sequence of str
        The output's columns that it filled.
    sensitive : sequence of str or None
        The columns it protects.
    notion : mapping or None
    table_records, zero_cells : int, optional
        Of the table that the channel was designed for; left out for the public.
    """
    released = _named(names)
    about = f" for {listed(list(sensitive))}" if sensitive else ""
    promise = f"the promise {_notion(notion)}{about}" if notion else f"no promise on record{about}"
    size = ""
    if table_records is not None:
        size = f" of {table_records:,} {'record' if table_records == 1 else 'records'}"
        if zero_cells:
            size += f" ({zero_cells:,} {'cell' if zero_cells == 1 else 'cells'} zero)"
    told = [
        f"{released} released through a channel with {promise}.",
        "It is about each record alone, and about the released value alone, against an observer who knows the channel "
        "and the table that it was designed for, and nothing else of the record.",
        f"It is about that table{size}: on the population that its records come from, or on other data that the "
        "channel is applied to, more can be told, and the more so the fewer records the table has.",
    ]
    if use.form == POSTERIOR_DRAW:
        told.append(
            f"The values are drawn from the symbols of {listed(list(use.columns))} that the channel's output leaves "
            "possible, as likely as the table says: they tell no more than the output."
        )
    for rule, kind in _KINDS.items():
        if getattr(use, rule) == MARGINAL:
            told.append(
                f"A record with {kind} gets a value drawn as for a record of which nothing is known, which tells "
                "nothing of it."
            )
    return told


def voids(
    *,
    columns: Sequence[str],
    uses: Sequence[Use],
    names: Sequence[str],
    kept_private: Sequence[str],
    identity: Sequence[str],
    draw: int,
    other_channels: bool,
    insecure_seed: bool,
) -> list[str]:
    """What the promise does not survive: first what is the case here, then what may be.

    Parameters
    ----------
    columns : sequence of str
        Of the output.
    uses : sequence of Use
    names : sequence of str
        The released columns.
    kept_private : sequence of str
        Sensitive and correlated columns that stay.
    identity : sequence of str
    draw : int
    other_channels : bool
    insecure_seed : bool
    """
    told: list[str] = []
    if insecure_seed:
        told.append(
            "The draws come from a number and not from a secret key (--insecure-seed): whoever guesses it undoes the "
            "release. This is for tests only."
        )
    if kept_private:
        told.append(f"{_named(kept_private)} left in the data, though sensitive: nothing is protected.")
    useful = [name for use in uses for name in use.columns]
    plain = [name for name in dict.fromkeys(useful) if name in columns and name not in names]
    if plain:
        told.append(
            f"{_named(plain)} left in the data beside the released values, which protect nothing then."
        )
    others = [name for name in columns if name not in (*names, *kept_private, *plain)]
    if others:
        tell = "it tells" if len(others) == 1 else "they tell"
        told.append(
            f"{_named(others)} left in the data unchanged: whatever {tell} of a record voids the promise."
        )
    if len(uses) > 1 or other_channels:
        told.append(
            "Several channels have been applied to the same records: each keeps its own promise, but together they can "
            "tell more than any of them."
        )
    if draw:
        told.append(
            f"These records were released before, with {draw} other {'draw' if draw == 1 else 'draws'}: independent "
            "releases of a record can tell far more than the sum of what each may."
        )
    told += _policies(uses)
    told.append(
        f"Other knowledge of {listed(list(dict.fromkeys(useful)))} voids it; so does a second independent release of "
        "the same records: with another key, from another copy of the data, or in another job."
    )
    if identity:
        told.append(
            f"A record is known by {listed(list(identity))}: records that share it share their random numbers, and a "
            "record whose symbol changes from one release to the next is released twice."
        )
    return told


def _policies(uses: Sequence[Use]) -> list[str]:
    told: list[str] = []
    for use in uses:
        for rule, kind in _KINDS.items():
            value: str = getattr(use, rule)
            if value.startswith(OUTPUT):
                label = quoted(value.removeprefix(OUTPUT))
                told.append(
                    f"A record with {kind} in {listed(list(use.columns))} gets {label}: what "
                    "that tells of it, the promise does not cover."
                )
    return told


def _named(names: Sequence[str]) -> str:
    what = listed(list(names))
    return f"The column {what} is" if len(names) == 1 else f"The columns {what} are"


def _notion(notion: Mapping[str, Any]) -> str:
    budgets = ", ".join(f"{name} {value}" for name, value in notion.items() if name != "name")
    return f"{notion['name']} ({budgets})"
