"""Golden vectors: values of hashes, draws, shuffles and the CSV splitter for fixed inputs and fixed keys.

Every function returns plain JSON values; `make.py` stores them once, `test_vectors.py` computes them again.
Integers of 64 bits are written as decimal text, since many readers of JSON keep doubles.
"""

from __future__ import annotations

import datetime
import tempfile
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.golden.entry import (
    Census,
    Channel,
    Identifiers,
    Key,
    NumberedRecords,
    Release,
    RowHasher,
    RowNumbers,
    Splitter,
    TextOptions,
    Variable,
    assigned_outputs,
    blake_words,
    channel_digest,
    check_of,
    encode,
    integer_flows,
    key_of_draw,
    open_source,
    random_words,
    sanitise,
    shuffle_file,
    sip_hash,
)
from tests.golden.jobs import ROW_CHANNEL

STORED = Path(__file__).parent / "stored"

SECRET = bytes(range(32))
"""The fixed key of all vectors."""

TEXTS = [
    "",
    "a",
    "clerk",
    "Größe",
    "日本語",
    "e\u0301",
    "\u00e9",
    " padded ",
    "x" * 7,
    "x" * 8,
    "x" * 16,
    "x" * 17,
    "x" * 127,
    "x" * 128,
    "x" * 129,
    "x" * 300,
    "a,b",
    'say "so"',
    "line\nbreak",
    "TRUE",
    "false",
    "nan",
    "inf",
    "+",
]
"""Texts of all lengths at which a hash changes its way: 4, 8 and 16 bytes, and the 128 of a block of BLAKE2b."""

NUMBERS = [
    "0",
    "-0",
    "7",
    "007",
    "1.50",
    "1.5",
    "1e3",
    "1000",
    "-2.25E-3",
    "123456789012345",
    "1234567890123456",
    "0.1",
    ".5",
    "5.",
    "1e400",
    "12345678901234567890.5",
    "1e-7",
    "99999999",
    "100000000",
]
"""Numbers in every notation on which the hash of a cell takes a way of its own."""

NASTY = {
    "plain": b"a,b\n1,2\n",
    "no line break at the end": b"a,b\n1,2",
    "carriage returns": b"a,b\r1,2\r3,4\r",
    "both": b"a,b\r\n1,2\r\n",
    "mixed": b"a,b\n1,2\r\n3,4\r5,6\n",
    "blank lines": b"a,b\n\n1,2\n\n\n",
    "quotes": b'"a","b"\n"1,1","2\n2"\n',
    "doubled quotes": b'a,b\n"say ""so""",""""\n"","x"\n',
    "quotes inside": b'a,b\n1"2,3"\n',
    "text behind a quote": b'a,b\n"1"2,3\n',
    "quote that never ends": b'a,b\n1,"2\n3,4\n',
    "line breaks in quotes": b'a,b\n"\r\n","\r"\n"\n\n",x\n',
    "empty cells": b",\n,,\n,\n",
    "one column": b"a\n\nb\n",
    "spaces": b" a , b \n 1 ,\t2\n",
    "UTF-8": "a,b\nü,日本\n\U0001f600,e\u0301\n".encode(),
    "NUL": b"a,b\n\x00,1\n",
    "long cells": b"a,b\n" + b"x" * 100 + b"," + b"y" * 63 + b"\n" + b"z" * 64 + b",\n",
    "delimiters at block ends": b"x" * 31
    + b","
    + b"y" * 31
    + b"\n"
    + b"," * 64
    + b"\n",
}
"""Pieces of CSV text that splitters get wrong; lengths around 32 and 64 bytes are those of vector registers."""


def words(values: Any) -> list[str]:
    """Integers of 64 bits as decimal text."""
    return [str(int(value)) for value in values]


def keys() -> dict[str, Any]:
    """Keys that follow from keys."""
    key = Key(SECRET)
    return {
        "insecure 7": Key.insecure(7).secret.hex(),
        "no label": key.derived().secret.hex(),
        "labels": key.derived("channel", "Größe", "").secret.hex(),
        "check": check_of(key),
        "draw 0": key_of_draw(key, 0).secret.hex(),
        "draw 1": key_of_draw(key, 1).secret.hex(),
    }


def sip() -> dict[str, Any]:
    """SipHash-1-3 of single words."""
    values = np.array([0, 1, 2**63, 2**64 - 1, 0x0706050403020100], np.uint64)
    sip_hash(values, 0x0706050403020100, 0x0F0E0D0C0B0A0908)
    return {"words": words(values)}


def row_hashes() -> dict[str, Any]:
    """Hashes of records: of texts, of numbers, of arrow columns of every type, of CSV text."""
    hasher = RowHasher(SECRET)
    days = [datetime.date(2020, 2, 29), None, datetime.date(1969, 12, 31)]
    moments = [
        datetime.datetime(2020, 2, 29, 12, 30),
        None,
        datetime.datetime(1969, 1, 1),
    ]
    columns = {
        "integers": pa.array([0, -7, None]),
        "long integers": pa.array([10**15, 2**62, -(10**15)]),
        "unsigned": pa.array([0, 255, None], pa.uint8()),
        "doubles": pa.array([0.1, -0.0, None]),
        "floats": pa.array([0.1, 1.5, None], pa.float32()),
        "infinite": pa.array([float("inf"), float("nan"), 1e300]),
        "booleans": pa.array([True, False, None]),
        "dates": pa.array(days),
        "moments": pa.array(moments, pa.timestamp("us")),
        "decimals": pa.array([Decimal("1.50"), None, Decimal("-2.25")]),
        "dictionary": pa.array(["x", None, "y"]).dictionary_encode(),
        "large text": pa.array(["x", None, "1.50"], pa.large_string()),
        "lists": pa.array([[1], [2, 3], None]),
    }
    hashes = {
        name: words(hasher.columns([column], len(column)))
        for name, column in columns.items()
    }
    texts = pa.array(TEXTS)
    numbers = pa.array(NUMBERS)
    hashes["texts"] = words(hasher.columns([texts], len(texts)))
    hashes["numbers"] = words(hasher.columns([numbers], len(numbers)))
    several = [columns["integers"], columns["doubles"], columns["dictionary"]]
    hashes["several columns"] = words(hasher.columns(several, 3))
    text = 'id,job,score\n1,clerk,1.50\n2,"say ""so""",007\n3,,-0\n4,TRUE,1e3\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        path.write_bytes(text.encode())
        with open_source(path, TextOptions()) as table:
            parts = [words(hasher.records(batch)) for batch in table.batches()]
    hashes["CSV"] = [value for part in parts for value in part]
    return hashes


def identifier_hashes() -> dict[str, Any]:
    """Hashes of identifiers: of one column, of crossed ones, byte for byte ("7" is not "007")."""
    hasher = RowHasher(SECRET)
    texts = pa.array(TEXTS)
    numbers = pa.array(["7", "007", "1.5", "1.50"])
    return {
        "texts": words(hasher.identifiers([texts])),
        "coded": words(hasher.identifiers([encode(texts, "id")])),
        "numbers": words(hasher.identifiers([numbers])),
        "crossed": words(hasher.identifiers([numbers, numbers.take([3, 2, 1, 0])])),
    }


def census() -> dict[str, Any]:
    """What is kept of a data set of 10,000 records, more than the sample holds."""
    count = Census()
    numbers = pa.array(np.arange(10_000) // 2)
    hashes = RowHasher(SECRET).columns([numbers], len(numbers))
    for first in range(0, len(hashes), 1700):
        count.add(hashes[first : first + 1700])
    few = Census()
    few.add(hashes[:20:3])
    content = count.content()
    return {
        "records": content.records,
        "ordered": content.ordered,
        "unordered": content.unordered,
        "limit": str(content.limit),
        "below": content.below,
        "first of the sample": words(content.unique[:10]),
        "small sample": few.content().sample().hex(),
    }


def blake() -> dict[str, Any]:
    """Words of keyed BLAKE2b: texts around the 128 bytes of a block, one column and two, every number of lanes."""
    ends, data = _buffers(TEXTS)
    again, more = _buffers(TEXTS[::-1])
    person = b"mechdesign id".ljust(16, b"\0")
    values = {}
    for name, columns in {
        "one": [(ends, data)],
        "two": [(ends, data), (again, more)],
    }.items():
        out = np.zeros(len(TEXTS), np.uint64)
        blake_words(out, SECRET, person, columns)
        values[name] = words(out)
    return values


def _buffers(texts: list[str]) -> tuple[np.ndarray, bytes]:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    return ends, b"".join(encoded)


BOUNDS = {"two": 2, "53 bits": 2**53, "six": 6, "rejected often": 3 * 2**60}
"""Bounds of draws: powers of two take leading bits, others reject words (of the last, more than one in ten)."""


def draws() -> dict[str, Any]:
    """Integers drawn for rows and identifiers."""
    key = Key(SECRET).derived("rows", "output")
    numbers = np.array([0, 1, 2, 1001, 10**12, 7, 2**63 - 1])
    names = [f"person {i}" for i in range(20)] + TEXTS
    one = Identifiers([names])
    two = Identifiers([names, names[::-1]])
    values: dict[str, Any] = {}
    for name, bound in BOUNDS.items():
        values[name] = {
            "rows from 0": words(RowNumbers(0, 40).source(key).below(bound, 40)),
            "rows from 1001": words(RowNumbers(1001, 20).source(key).below(bound, 20)),
            "numbered": words(
                NumberedRecords(numbers).source(key).below(bound, len(numbers))
            ),
            "identifier": words(one.source(key).below(bound, len(one))),
            "crossed": words(two.source(key).below(bound, len(two))),
        }
    return values


def releases() -> dict[str, Any]:
    """Outputs that stored channels draw, by row number and by identifier, as labels and as posterior draws."""
    values: dict[str, Any] = {}
    for name in ("channel_1.json", "channel_2.json"):
        channel = Channel.load(STORED / name)
        cells = [
            encode(pa.array(texts * 12), "x")
            for texts in zip(*channel.useful.symbols, strict=True)
        ]
        count = len(cells[0].codes)
        identifiers = Identifiers([[f"person {i}" for i in range(count)]])
        drawn: dict[str, Any] = {"digest": channel_digest(channel)}
        for form in ("label", "posterior-draw"):
            for records in (RowNumbers(5, count), identifiers):
                release = Release(channel, Key(SECRET), form=form)
                columns = release.draw(cells, records)
                drawn[f"{form} by {records.kind}"] = [
                    column.tolist() for column in columns
                ]
        values[name] = drawn
    return values


def row_releases() -> dict[str, Any]:
    """Rows that a stored channel of rows draws, one draw a record, by row number and by identifier."""
    channel = Channel.load(STORED / ROW_CHANNEL)
    count = 120
    symbols = channel.useful.symbols
    rows = [symbols[i % len(symbols)] for i in range(count)]
    cells = []
    for part, name in enumerate(channel.useful.columns):
        cells.append(encode(pa.array([row[part] for row in rows]), name))
    numbers = np.arange(count) * 10**9 + 3
    every = {
        "rows from 5": RowNumbers(5, count),
        "numbered": NumberedRecords(numbers),
        "identifier": Identifiers([[f"person {i}" for i in range(count)]]),
    }
    drawn: dict[str, Any] = {"digest": channel_digest(channel)}
    for name, records in every.items():
        release = Release(channel, Key(SECRET))
        columns = release.draw(cells, records)
        drawn[name] = {
            column: [texts[code] for code in codes.tolist()]
            for column, texts, codes in zip(
                release.names, release.texts, columns, strict=True
            )
        }
    return drawn


def fixed_counts() -> dict[str, Any]:
    """Fixed counts of pairs with sums of columns and without, and the outputs that records get."""
    key = Key(SECRET).derived("channel", "of the golden pairs")
    size = 12
    unit = 2**40
    shares = [unit // 3, unit // 4, unit // 5]
    shares.append(unit - sum(shares))
    # Every input has four outputs; inputs have one to three records.
    rows = np.tile(np.arange(size), 4)
    row_units = 1 + np.arange(size) % 3
    values = np.repeat(shares, size) * row_units[rows]
    codes = np.repeat(np.arange(size), row_units)[::-1]
    records = {
        "rows from 0": RowNumbers(0, len(codes)),
        "identifier": Identifiers([[f"person {i}" for i in range(len(codes))]]),
    }
    drawn: dict[str, Any] = {}
    # Inputs three, six and nine further have as many records, those one further have not.
    ways = {"fixed": ([0, 3, 6, 9], row_units), "free": ([0, 1, 2, 5], None)}
    for name, (steps, column_units) in ways.items():
        columns = (rows + np.repeat(steps, size)) % size
        flows = integer_flows(rows, columns, values, row_units, column_units, unit, key)
        drawn[name] = {
            "rows": flows.rows.tolist(),
            "columns": flows.columns.tolist(),
            "counts": flows.counts.tolist(),
        }
        for kind, batch in records.items():
            outputs = assigned_outputs(codes, flows, [batch], key)
            drawn[f"{name}, {kind}"] = outputs.tolist()
    return drawn


COLUMNS = ["job", "u1", "u2", "1", 1]
"""Names of the useful column of the stored channel in a table."""


def columns() -> dict[str, Any]:
    """Draws of the same records and symbols in columns of several names, in frames and by key."""
    half = 2**52
    channel = Channel(
        Variable(("job",), (("clerk",), ("smith",))),
        ("x", "y", "z"),
        ((half, half // 2, half // 2), (half // 4, half // 4, half + half // 2)),
    )
    values: dict[str, Any] = {}
    symbols = ["clerk", "smith", "smith"] * 16
    names = [f"person {i}" for i in range(48)]
    for column in COLUMNS:
        frame = pd.DataFrame({column: symbols, "id": names})
        named = {} if column == "job" else {"job": column}
        for identity in (None, "id"):
            with warnings.catch_warnings():
                # That these records come again and again.
                warnings.simplefilter("ignore", UserWarning)
                released = sanitise(
                    frame,
                    channel,
                    key=Key(SECRET),
                    columns=named,
                    identity=identity,
                    keep_order=True,
                )
            kind = "rows" if identity is None else "identifiers"
            label = f"{type(column).__name__} {column} by {kind}"
            values[label] = released[column].tolist()
    return values


def shuffles() -> dict[str, Any]:
    """Random words of rows, and the order in which a shuffled file has its records."""
    key = Key(SECRET).derived("shuffle")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = "".join(f"{i},x\n" for i in range(100))
        (folder / "in.csv").write_bytes(("n,c\n" + rows).encode())
        shuffle_file(
            folder / "in.csv", folder / "out.csv", key, TextOptions(), None, folder
        )
        text = (folder / "out.csv").read_bytes().decode()
    return {"words": words(random_words(key, 3, 20)), "file": text}


def splits() -> dict[str, Any]:
    """Where the cells of nasty CSV text are, with quotes and without."""
    values: dict[str, Any] = {}
    for name, text in NASTY.items():
        for quote in (ord('"'), None):
            rows = Splitter(ord(","), quote).split(text)
            values[f"{name}, {'no quotes' if quote is None else 'quotes'}"] = {
                "ends": rows.ends.tolist(),
                "last": rows.last.tolist(),
                "starts": rows.starts.tolist(),
                "size": rows.size,
                "lines": rows.lines,
                "misquoted": rows.misquoted,
            }
    return values


VECTORS: dict[str, Callable[[], dict[str, Any]]] = {
    "keys": keys,
    "sip": sip,
    "row_hashes": row_hashes,
    "identifier_hashes": identifier_hashes,
    "census": census,
    "blake": blake,
    "draws": draws,
    "releases": releases,
    "row_releases": row_releases,
    "columns": columns,
    "fixed_counts": fixed_counts,
    "shuffles": shuffles,
    "splits": splits,
}
"""The name of a file in `stored`, and what computes its content."""
