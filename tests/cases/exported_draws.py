"""The slow, obvious way to draw as exported statements do: from channel files and hashlib alone."""

from __future__ import annotations

import hashlib
import json
from functools import cache

import numpy as np
import pandas as pd

import mechdesign as md
from mechdesign.channel.channel import Channel
from mechdesign.release.drawing import channel_digest
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53
KEY = "0123456789abcdef" * 4
OTHER_KEY = "fedcba9876543210" * 4

ODD = ("it's", "back\\slash\\n", "${user} $key :key $1", "größe 漢 🦆", " blank ", "")
"""Symbols that SQL could misread; the empty one is that of missing cells."""


def odd_channel(useful: str = "the job") -> Channel:
    """A channel of one column with the odd symbols; sensitive: rel."""
    joint = Joint.from_counts(
        [[5, 4, 3, 2, 1, 2], [1, 2, 3, 4, 5, 3]],
        useful_labels=[*ODD],
        useful=useful,
        sensitive="rel",
    )
    rows = (
        (D // 2, D // 4, D // 4),
        (D // 8, 3 * (D // 8), D // 2),
        (1, 2, D - 3),
        (0, D, 0),
        (D // 3, D // 3, D - 2 * (D // 3)),
        (D - 1, 1, 0),
    )
    return Channel(joint.useful, ("it's", "b\\", "${c}"), rows, joint=joint)


def odd_records(count: int) -> pd.DataFrame:
    """Records for it, with a missing cell for the empty symbol."""
    rng = np.random.default_rng(5)
    jobs = rng.choice(np.array([*ODD], dtype=object), count)
    jobs = [None if job == "" else job for job in jobs]
    ids = [f"n° {k}" for k in range(count)]
    return pd.DataFrame({"person": ids, "the job": jobs, "other": "stays"})


def row_records(count: int) -> pd.DataFrame:
    """Records of a sensitive s, a given k, texts c and d, a number b in bins, and an identifier n."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, count)
    b = rng.integers(0, 61, count)
    s = rng.random(count) < 0.2 + 0.15 * a + 0.003 * b
    return pd.DataFrame(
        {
            "n": np.arange(count),
            "s": np.where(s, "yes", "no"),
            "k": np.where(a == 1, "u", "v"),
            "c": np.array(["x", "y, z", "{w}"])[a],
            "d": np.where(b % 2 == 0, "even", "odd"),
            "b": b,
        }
    )


def look_alikes() -> tuple[Channel, pd.DataFrame]:
    """A channel and records whose symbols and identifiers differ in case, accents and blanks."""
    records = pd.DataFrame({"job": ["a", "A", "à", "a "] * 50, "rel": [*"xyzzy"] * 40})
    records["person"] = [f"{'pP'[k % 2]}{k // 2}" for k in range(len(records))]
    channel = md.design(
        records, md.LIP(0.05), sensitive="rel", useful="job", unit="record"
    ).channel
    return channel, records


ROW_OPTIONS = {
    "plain": {},
    "given": {"given": "k"},
    "information": {"objective": "information", "given": "k"},
    "free": {"keep_frequencies": False},
}
"""Options of `design` for channels of rows that differ in what is written, and in their sums."""


@cache
def row_channel(kind: str) -> Channel:
    """A channel of rows."""
    return md.design(
        row_records(400),
        md.LIP(0.2),
        sensitive="s",
        release=["c", "d", "b"],
        bins={"b": "0,20.5,40,60"},
        time_limit=600.0,
        promise="relative" if "given" in ROW_OPTIONS[kind] else "total",
        **ROW_OPTIONS[kind],
    ).channel


def number_of(key: str, digest: str, purpose: str, identifier: str) -> int:
    """The hash of a record as a number below 2^256."""
    text = f"{key}{digest} {purpose} {identifier}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def output_of(weights: list[int], number: int) -> int:
    """The output in whose interval the first 53 bits of a hash lie."""
    draw = number >> (256 - 53)
    for output, weight in enumerate(weights):
        if draw < weight:
            return output
        draw -= weight
    raise AssertionError("the weights sum to less than 2^53")


def drawn(channel: Channel, records: pd.DataFrame, identity: str, key: str) -> list:
    """Released texts of every record of a channel of one column, in their order."""
    (column,) = channel.useful.columns
    place = {symbol[0]: x for x, symbol in enumerate(channel.useful.symbols)}
    digest = channel_digest(channel)
    released = []
    for name, cell in zip(records[identity], records[column], strict=True):
        text = "" if pd.isna(cell) else str(cell)
        weights = [int(weight) for weight in channel.rows[place[text]]]
        number = number_of(key, digest, "draw", str(name))
        released.append((channel.outputs[output_of(weights, number)],))
    return sorted_by_hash(released, records[identity], digest, key)


def sorted_by_hash(released: list, names, digest: str, key: str) -> list:
    """Rows in the order of the hash of their identifiers."""
    places = [number_of(key, digest, "order", str(name)) for name in names]
    return [released[k] for k in np.argsort(np.array(places, dtype=object))]


def drawn_rows(
    channel: Channel, path, records: pd.DataFrame, identity: str, key: str
) -> list:
    """Released texts of every record of a channel of rows, from the integers of its file."""
    channel.save(path)
    file = json.loads(path.read_text(encoding="utf-8"))
    digest = channel_digest(channel)
    symbols = [tuple(symbol) for symbol in file["useful"]["symbols"]]
    released = []
    rows = list(channel.rows)
    for record in records.to_dict("records"):
        weights = list(rows[symbols.index(texts_of(file["useful"], record))])
        number = number_of(key, digest, "draw", str(record[identity]))
        output = output_of(over_common_denominator(weights), number)
        released.append(channel.output_cells[output])
    return sorted_by_hash(released, records[identity], digest, key)


def over_common_denominator(weights: list[int]) -> list[int]:
    """Weights with the sum 2^53, rounded downwards; the largest takes what is left."""
    scaled = [weight * D // sum(weights) for weight in weights]
    scaled[scaled.index(max(scaled))] += D - sum(scaled)
    return scaled


def texts_of(labels: dict, record: dict) -> tuple[str, ...]:
    """The symbol of a record; the numbers b are in the only bins of these tests."""
    texts = []
    for name in labels["columns"]:
        text = str(record[name])
        if name == "b":
            text = "[0, 20.5)"
            if record[name] >= 20.5:
                text = "[20.5, 40)"
            if record[name] >= 40:
                text = "[40, 60]"
        texts.append(text)
    return tuple(texts)


def variable(name: str, *symbols: str) -> Variable:
    """A variable of one column."""
    return Variable((name,), tuple((symbol,) for symbol in symbols))
