"""Channels and records that the tests of frames and clusters share, and the slow, obvious way to draw."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from mechdesign.channel.channel import Channel
from mechdesign.nonstochastic.mechanism_file import MechanismFile, SizedQuantizer
from mechdesign.nonstochastic.noiseless import certify, lay_out
from mechdesign.nonstochastic.queries import build_query, interval
from mechdesign.release.drawing import channel_digest
from mechdesign.release.draws import Key
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53
KEY = Key.insecure(7)

NAMED = [{"identity": "id"}, {"row_numbers": "n"}, {"identity": ["n", "id"]}]
"""Ways to say which record is which, other than by its place."""


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    # The machine runs too short for its second compiler and its parallel collector to pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.log.level": "OFF",
}
"""Of a Spark that is small and quiet."""


def mixing_channel() -> Channel:
    """Three symbols of job, four outputs, every record random; sensitive: rel."""
    return Channel(
        Variable(("job",), (("a",), ("b",), ("c",))),
        ("p", "q", "{a, b}", "r"),
        (
            (D // 2, D // 4, D // 4, 0),
            (D // 8, 3 * (D // 8), D // 4, D // 4),
            (1, 2, 3, D - 6),
        ),
        joint=Joint.from_counts(
            [[10, 4, 3], [2, 8, 5]],
            useful_labels=[*"abc"],
            useful="job",
            sensitive="rel",
        ),
    )


def crossed_channel() -> Channel:
    """X crossed from city and job."""
    symbols = (("s", "a"), ("s", "b"), ("t", "a"))
    joint = Joint.from_counts(
        [[3, 1, 2], [1, 4, 2]],
        useful_labels=list(symbols),
        useful=["city", "job"],
        sensitive="rel",
    )
    rows = ((D // 2, D // 2, 0), (0, D // 2, D // 2), (D // 4, D // 4, D // 2))
    return Channel(joint.useful, ("1", "2", "3"), rows, joint=joint)


def city_channel() -> Channel:
    """Two symbols of city, two outputs."""
    joint = Joint.from_counts(
        [[3, 1], [1, 4]], useful_labels=[*"st"], useful="city", sensitive="rel"
    )
    return Channel(
        joint.useful,
        ("near", "far"),
        ((D // 2, D // 2), (D // 4, D - D // 4)),
        joint=joint,
    )


def people(count: int, *, seed: int = 5) -> pd.DataFrame:
    """Records with an identifier, a row number, a job, and a column that nobody touches."""
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"person {i:04d}" for i in range(count)],
            "n": np.arange(count),
            "job": chance.choice([*"abc"], count),
            "pay": chance.normal(size=count),
        }
    )


def pay_mechanism() -> MechanismFile:
    """Four answers for a number in [-1, 1]; records outside are left out."""
    domain = interval(-1, 1)
    asked = build_query("identity", 1, domain)
    quantizer = lay_out(*asked.range, asked.sensitivity, 4, "widest")
    sized = SizedQuantizer(1, quantizer, certify(asked, quantizer))
    made = {
        "query": "identity",
        "column": "pay",
        "group_by": (),
        "guarantee": {},
        "provenance": {},
    }
    return MechanismFile(
        **made, domain=domain, epsilon=2.5, outside="drop", mechanisms=(sized,)
    )


def adult_channel(joint: Joint) -> Channel:
    """Half of the records keep their occupation."""
    size = len(joint.useful)
    names = joint.useful.names
    rows = tuple(
        tuple(size + 1 if x == y else 1 for y in range(size)) for x in range(size)
    )
    return Channel(joint.useful, names, rows, 2 * size, joint=joint)


def adult_by_relationship(
    joint: Joint, *, seed: int = 6
) -> tuple[pd.DataFrame, list[str]]:
    """The records of Adult grouped by relationship, whose column is gone; and the relationship of each."""
    cells = np.repeat(np.arange(np.size(joint.counts)), np.ravel(joint.counts))
    cells = np.random.default_rng(seed).permutation(cells)
    secret, useful = np.divmod(
        cells[np.argsort(cells // len(joint.useful), kind="stable")], len(joint.useful)
    )
    names = np.array(joint.useful.names)[useful]
    frame = pd.DataFrame({"n": np.arange(len(cells)), "occupation": names})
    return frame, [joint.sensitive.names[s] for s in secret]


def drawn_by_hand(channel: Channel, symbols, names=None, key: Key = KEY) -> list[str]:
    """The label of every record by row number, or by its name: one AES block or hash each, one comparison each."""
    kind = "rows" if names is None else "identifiers"
    secret = key.derived("channel", channel_digest(channel)).derived(kind, "output")
    index = {name: i for i, name in enumerate(channel.useful.names)}
    labels: list[str] = []
    for position, symbol in enumerate(symbols):
        word = (
            _row_word(secret, position)
            if names is None
            else _name_word(secret, names[position])
        )
        number = word >> 11  # uniform in [0, 2^53)
        upper = 0
        for label, width in zip(
            channel.outputs, channel.rows[index[symbol]], strict=True
        ):
            upper += width
            if number < upper:
                labels.append(label)
                break
    return labels


def _row_word(secret: Key, position: int) -> int:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    block = Cipher(algorithms.AES(secret.secret), modes.ECB()).encryptor()
    cipher = block.update((position // 2).to_bytes(16, "big"))
    return int.from_bytes(cipher[8 * (position % 2) :][:8], "little")


def _name_word(secret: Key, name: str) -> int:
    hashed = hashlib.blake2b(
        name.encode(), key=secret.secret, digest_size=8, person=b"mechdesign id"
    )
    return int.from_bytes(hashed.digest(), "little")
