"""Files that are neither CSV nor Parquet: what they are, and how they become one of both.

A file is recognised by its first bytes. For each kind that people have there is the command that
exports it; `FILE` stands for its name.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from mechdesign.core.errors import FileError

_UTF_16 = "is UTF-16 text; save it as UTF-8, or name its encoding (--encoding utf-16)"
_OLD_SPREADSHEET = (
    "is a spreadsheet or another file of Microsoft Office; export the sheet as CSV:  ssconvert "
    "FILE SHEET.csv"
)
_FEATHER = (
    'is a Feather file (Arrow IPC); turn it into Parquet:  python -c "import pyarrow.feather as f, '
    "pyarrow.parquet as p; p.write_table(f.read_table('FILE'), 'TABLE.parquet')\""
)
_R_DATA = (
    'is a file of R; export its table as CSV:  Rscript -e \'write.csv({}, "TABLE.csv", '
    'row.names = FALSE, na = "")\''
)
# Other readers make floats of integers beside empty cells, and of dates points in time.
_JSON = (
    'is JSON; turn its records into CSV:  python -c "import csv, json, sys; r = {}; '
    "w = csv.DictWriter(sys.stdout, dict.fromkeys(k for x in r for k in x)); w.writeheader(); "
    'w.writerows(r)" < FILE > TABLE.csv'
)

_MAGICS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe", _UTF_16),
    (b"\xfe\xff", _UTF_16),
    (b"\xd0\xcf\x11\xe0", _OLD_SPREADSHEET),
    (b"ARROW1", _FEATHER),
    (b"FEA1", _FEATHER),
    (b"X\n\x00\x00\x00", _R_DATA.format('readRDS("FILE")')),
    (b"RDX", _R_DATA.format('get(load("FILE"))')),
    (
        b"\x89HDF\r\n",
        'is an HDF5 file; export its table as CSV:  python -c "import pandas as pd; '
        "pd.read_hdf('FILE').to_csv('TABLE.csv', index=False)\"",
    ),
    (
        b"SQLite format 3\x00",
        'is an SQLite database; export a table as CSV:  sqlite3 -header -csv FILE "select * from '
        'NAME" > TABLE.csv',
    ),
    (
        b"ORC",
        'is an ORC file; turn it into Parquet:  python -c "import pyarrow.orc as o, '
        "pyarrow.parquet as p; p.write_table(o.read_table('FILE'), 'TABLE.parquet')\"",
    ),
    (b"Obj\x01", "is an Avro file; export it as Parquet or CSV from where it was made"),
    (b"\xfd7zXZ\x00", "is packed with xz; unpack it first:  xz -dk FILE"),
    (b"BZh", "is packed with bzip2; unpack it first:  bunzip2 -k FILE"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive; unpack it first"),
    (b"Rar!", "is a RAR archive; unpack it first"),
)
"""First bytes of files that are neither UTF-8 text nor Parquet, and what those files are.

Some are letters with which the header of a CSV may begin, such as ORCID: `looks_like_text`.
"""

_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    # Two versions of R stand behind the version of the format.
    (re.compile(rb"A\n[23]\n\d{6}\n\d{6}\n"), _R_DATA.format('readRDS("FILE")')),
    (
        re.compile(rb"%PDF-\d"),
        "is a PDF document; export the table from where it was made",
    ),
)
"""The beginning of files that are no tables, although they may be text."""

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\f\r"))
"""Bytes that text does not have."""

_MARKUP = re.compile(rb"\s*<(!doctype html|html|\?xml|table)\b", re.IGNORECASE)
"""Web pages, which some programs save under the name of a spreadsheet."""

_ARRAY = re.compile(rb"\s*\[\s*(\{\s*(\"|\})|\[)")
_LINES = re.compile(rb"\s*\{\s*\"(\\.|[^\"\\])*\"\s*:\s*(?P<nested>[\[{])?")
"""The beginning of an array of records, and of records or one object."""

_OWN = re.compile(rb"\s*\{\s*\"format\"\s*:\s*\"(mechdesign\.[a-z-]+)\"")
"""The beginning of a channel file, a manifest, and of all other files of this package."""

DELIMITERS = ",;\t|"
"""What stands between the cells of a table."""

FEW_NULS = 0.05
"""Share of NUL bytes below which a file is text with a fault, and not binary."""


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are lines of text, in whatever encoding with ASCII."""
    return b"\n" in head and not any(code in head for code in _CONTROLS)


def refuse_other_kinds(name: str, head: bytes) -> None:
    """Refuse a file that is no UTF-8 text, by its first bytes; FileError says what to do."""
    for magic, kind in _MAGICS:
        if head.startswith(magic) and not looks_like_text(head):
            raise FileError(name, f"{name} {kind}")
    for beginning, kind in _TEXTS:
        if beginning.match(head):
            raise FileError(name, f"{name} {kind}")
    if _MARKUP.match(head):
        raise FileError(
            name,
            f"{name} is a web page or XML, whatever its name; open it in a spreadsheet, and save "
            "the table as CSV",
        )
    own = _OWN.match(head)
    if own is not None:
        raise FileError(
            name,
            f"{name} is no table: it is a file that mechdesign wrote ({own[1].decode()}); give the "
            "file with the records",
        )
    if _ARRAY.match(head):
        raise FileError(
            name, f"{name} {_JSON.format('json.load(sys.stdin, parse_float=str)')}"
        )
    lines = _LINES.match(head)
    if lines is not None and lines["nested"]:
        raise FileError(
            name,
            f"{name} is JSON, but no list of records with a cell for each column; write it so "
            "first (in pandas: to_json(.., orient='records'))",
        )
    if lines is not None:
        records = "[json.loads(x, parse_float=str) for x in sys.stdin]"
        raise FileError(name, f"{name} {_JSON.format(records)}")
    _refuse_nuls(name, head)


def _is_lines(head: bytes, encoding: str) -> bool:
    """Whether the first bytes of a file are the lines of a table in an encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return False
    # Any two bytes are some character, and a line ends by chance; few texts have a delimiter, too.
    if "\n" not in text or not any(sign in text for sign in DELIMITERS):
        return False
    # Control characters, private ones and those that Unicode does not have are no text.
    strange = ("Cc", "Cn", "Co")
    return not any(
        unicodedata.category(code) in strange for code in set(text) - set("\t\n\f\r")
    )


def _refuse_nuls(name: str, head: bytes) -> None:
    """Refuse text with NUL bytes: with the line, or as UTF-16, or as something binary."""
    nuls = head.count(0)
    if not nuls:
        return
    # Of ASCII in UTF-16 every second byte is zero, from the first or the second on. Of other
    # scripts few are, but the text has lines, and no characters that texts do not have.
    for start, order in ((0, "be"), (1, "le")):
        ascii_alone = nuls > 1 and nuls == head[start::2].count(0) >= 0.9 * (
            len(head) // 2
        )
        if ascii_alone or _is_lines(head, f"utf-16-{order}"):
            raise FileError(
                name,
                f"{name} is UTF-16 text; save it as UTF-8, or name its encoding (--encoding "
                f"utf-16-{order})",
            )
    controls = sum(head.count(code) for code in range(1, 9))
    if nuls <= FEW_NULS * len(head) and not controls:
        line = head[: head.index(0)].count(b"\n") + 1
        raise FileError(
            name,
            f"{name}, line {line}: a NUL character, which is no text; is this a CSV file?",
        )
    raise FileError(
        name, f"{name} is neither a CSV nor a Parquet file (it has binary content)"
    )
