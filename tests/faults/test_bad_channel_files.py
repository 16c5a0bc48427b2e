"""Every way in which a channel file can be wrong is refused with a message that says which."""

from __future__ import annotations

import copy
import json
import os
import pickle

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from tests.cases.channel_documents import GOOD, D, assert_refused, changed, hashed


def test_the_good_file_is_read(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(hashed(GOOD)))
    channel = Channel.load(tmp_path / "good.json")
    assert channel.outputs == ("Sales", "mix-1")
    assert channel.joint.counts == ((1, 2), (3, 4))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "format",
            "mechdesign.report",
            r"its format is 'mechdesign.report', not 'mechdesign.channel'",
        ),
        ("format", 7, r"its format is '7'"),
        ("format", None, r"is not a channel file: it has no format"),
        (
            "version",
            3,
            r"version '3' of the channel file is not known; this mechdesign reads 1 and 2",
        ),
        (
            "after",
            ["0" * 64],
            r"the channel file has an unknown key 'after', which belongs to version 2",
        ),
        (
            "sparse_rows",
            [[0, D], [0, D]],
            r"unknown key 'sparse_rows', which belongs to version 2",
        ),
        ("version", "1", r"version '1' of the channel file is not known"),
        ("version", True, r"version 'True' of the channel file is not known"),
        ("version", 1.0, r"version '1.0' of the channel file is not known"),
        ("version", None, r"version 'None' of the channel file is not known"),
        ("rows", None, r"the channel file has no 'rows'"),
        ("outputs", None, r"the channel file has no 'outputs'"),
        ("useful", None, r"the channel file has no 'useful'"),
        ("denominator", None, r"must have either a denominator or the totals of"),
        ("secret", 1, r"the channel file has an unknown key 'secret'"),
        ("useful", [], r"useful \(a list\) must be an object"),
        ("useful.names", ["a"], r"useful has an unknown key 'names'"),
        ("useful.columns", "job", r"useful\.columns \('job'\) must be a list"),
        ("useful.columns", [], r"useful: a variable needs columns"),
        (
            "useful.columns",
            ["job", "job"],
            r"useful: a variable needs columns with different names",
        ),
        (
            "useful.symbols",
            ["Sales", "Tech"],
            r"useful\.symbols\[0\] \('Sales'\) must be a list",
        ),
        (
            "useful.symbols",
            [["Sales"], [7]],
            r"useful\.symbols\[1\]\[0\] \('7'\) must be text",
        ),
        (
            "useful.symbols",
            [["Sales"], ["Sales"]],
            r"useful: the symbol 'Sales' of 'job' occurs twice",
        ),
        (
            "useful.symbols",
            [["Sales"], ["Tech", "x"]],
            r"useful: symbol 'Tech', 'x' has 2 part",
        ),
        (
            "useful.symbols",
            [["Sales"]],
            r"joint: the table must have 2 rows of 1 entries|the rows form a 2 x 2 table",
        ),
        (
            "useful.symbols",
            [["Sales"], ["\ud800"]],
            r"useful\.symbols\[1\]\[0\] .* is not valid Unicode text",
        ),
        ("sensitive", ["f", "m"], r"sensitive \(a list\) must be an object"),
        (
            "sensitive",
            None,
            r"the joint table needs the labels of its rows: there is no sensitive",
        ),
        (
            "sensitive.symbols",
            [["f"], ["m"], ["d"]],
            r"joint: the table must have 3 rows",
        ),
        ("outputs", {"a": 1}, r"outputs \(an object\) must be a list"),
        (
            "outputs",
            ["Sales"],
            r"the rows form a 2 x 2 table, but there are 2 useful symbols and 1 outputs",
        ),
        ("outputs", ["Sales", "Sales"], r"the output label 'Sales' occurs twice"),
        ("outputs", ["Sales", 7], r"outputs\[1\] \('7'\) must be text"),
        ("outputs", [], r"at least one output"),
        (
            "denominator",
            2**53 + 1,
            r"row 'Sales' sums to 9007199254740992, not to the denominator 9007199254740993",
        ),
        ("denominator", 0, r"denominator \('0'\) must be at least 1"),
        ("denominator", -1, r"denominator \('-1'\) must be at least 1"),
        (
            "denominator",
            2**80,
            r"denominator \('1208925819614629174706176'\) must be at most",
        ),
        (
            "denominator",
            float(D),
            r"denominator \('9007199254740992.0'\) must be a whole number",
        ),
        (
            "denominator",
            "9007199254740992",
            r"denominator \('9007199254740992'\) must be a whole number",
        ),
        ("denominator", True, r"denominator \('True'\) must be a whole number"),
        ("rows", "x", r"rows must be a list of lists of integers, not str"),
        ("rows", [], r"the rows form a 0 x 0 table"),
        ("rows", [[D, 0]], r"the rows form a 1 x 2 table"),
        ("rows", [[D, 0], [D]], r"row 'Tech' has 1 entries where the first row has 2"),
        ("rows", [[D, 0, 0], [D, 0, 0]], r"the rows form a 2 x 3 table"),
        ("rows.1", "no", r"row 'Tech' is not a list of integers"),
        (
            "rows.1.0",
            D // 4 + 1,
            r"row 'Tech' sums to 9007199254740993, not to the denominator 9007199254740992",
        ),
        (
            "rows.1.0",
            0.5,
            r"row 'Tech': entry 1 \('0.5'\) is not a non-negative integer",
        ),
        (
            "rows.1.0",
            float(D // 4),
            r"row 'Tech': entry 1 \('2251799813685248.0'\) is not a non-negative integer",
        ),
        ("rows.1.0", -1, r"row 'Tech': entry 1 \('-1'\) is not a non-negative integer"),
        (
            "rows.1.0",
            True,
            r"row 'Tech': entry 1 \('True'\) is not a non-negative integer",
        ),
        ("rows.1.0", "1", r"row 'Tech': entry 1 \('1'\) is not a non-negative integer"),
        (
            "rows.1.0",
            [1],
            r"row 'Tech': entry 1 \('\[1\]'\) is not a non-negative integer",
        ),
        (
            "rows.1.0",
            D + 1,
            r"row 'Tech', output 'Sales': the entry 9007199254740993 is larger than the denominator",
        ),
        (
            "rows.1.0",
            2**64,
            r"row 'Tech': entry 1 \('18446744073709551616'\) is not a non-negative integer of at most",
        ),
        (
            "rows.1.0",
            10**4000,
            r"row 'Tech': entry 1 \(an integer of 13288 bits\) is not a non-negative integer",
        ),
        (
            "rows",
            [[D, 0], [D, 0]],
            r"the output 'mix-1' has no mass: no row ever gives it",
        ),
        ("joint", {"a": 1}, r"joint must be a list of lists of integers"),
        ("joint", [1, 2], r"joint must be a list of lists of integers"),
        ("joint", [[1, 2]], r"joint: the table must have 2 rows of 2 entries"),
        (
            "joint",
            [[1, 2, 3], [3, 4, 5]],
            r"joint: the table must have 2 rows of 2 entries",
        ),
        (
            "joint.0.1",
            0.5,
            r"joint: the entry at .*'f'.*'Tech'.* \('0.5'\) must be an integer in \[0, 2\^256\)",
        ),
        (
            "joint.0.1",
            -1,
            r"joint: the entry at .* \('-1'\) must be an integer in \[0, 2\^256\)",
        ),
        (
            "joint.0.1",
            True,
            r"joint: the entry at .* \('True'\) must be an integer in \[0, 2\^256\)",
        ),
        (
            "joint.0.1",
            2**256,
            r"joint: the entry at .* must be an integer in \[0, 2\^256\)",
        ),
        ("joint", [[0, 2], [0, 4]], r"joint: the useful symbol 'Sales' has no mass"),
        ("joint", [[0, 0], [3, 4]], r"joint: the sensitive symbol 'f' has no mass"),
        ("counts", "no", r"counts \('no'\) must be true or false"),
        ("counts", 0, r"counts \('0'\) must be true or false"),
        ("notion", "alip", r"notion \('alip'\) must be an object"),
        ("notion.name", "strong", r"notion 'strong' is not known"),
        ("notion.eps_l", None, r"notion alip needs exactly eps_l and eps_u"),
        ("notion.eps_l", "1", r"eps_l \('1'\) must be a number of nats, not text"),
        ("notion.eps_l", -1.0, r"eps_l \(-1\) must be positive"),
        ("notion.eps_l", 701.0, r"eps_l \(701\) must be at most 700"),
        ("achieved", [1], r"achieved \(a list\) must be an object"),
        ("utility", 0.5, r"utility \('0.5'\) must be an object"),
        ("certificate", "gap", r"certificate \('gap'\) must be an object"),
        ("provenance", [], r"provenance \(a list\) must be an object"),
        ("provenance.tool", "\ud800", r"provenance\.tool .* is not valid Unicode text"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, path, value, message):
    assert_refused(tmp_path, json.dumps(changed(path, value)), message)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda d: d["rows"].__setitem__(1, [3 * D // 4, D // 4]),
        lambda d: d["joint"][0].__setitem__(0, 2),
        lambda d: d["outputs"].reverse(),
        lambda d: d["notion"].__setitem__("eps_l", 0.5),
        lambda d: d["provenance"].__setitem__("tool", "other"),
        lambda d: d.__setitem__("sha256", d["sha256"].upper()),
        lambda d: d.__setitem__("sha256", ""),
        lambda d: d.__setitem__("sha256", 0),
        lambda d: d.__setitem__("sha256", [d["sha256"]]),
    ],
)
def test_an_edit_breaks_the_hash(tmp_path, tamper):
    document = copy.deepcopy(hashed(GOOD))
    tamper(document)
    assert_refused(
        tmp_path,
        json.dumps(document),
        r"the sha256 does not match the content: the file was edited or damaged",
    )


def test_a_missing_hash_is_named(tmp_path):
    assert_refused(tmp_path, json.dumps(GOOD), r"the channel file has no 'sha256'")


def test_every_truncation_is_refused(tmp_path):
    text = json.dumps(hashed(GOOD), indent=1)
    for end in range(1, len(text) - 1, 7):
        assert_refused(tmp_path, text[:end], r"is truncated|is not a channel file")
    assert_refused(
        tmp_path,
        text[: len(text) // 2],
        r"is truncated: it ends in the middle \(line \d+\)",
    )


def test_every_changed_byte_is_noticed(tmp_path):
    """No single character of the values can be altered without a refusal."""
    text = json.dumps(hashed(GOOD))
    for position in range(0, len(text), 3):
        if text[position] not in ' \n"':
            replacement = "7" if text[position] != "7" else "8"
            assert_refused(
                tmp_path,
                text[:position] + replacement + text[position + 1 :],
                r"bad\.json",
            )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty, not a channel file"),
        (b" \n", r"is empty, not a channel file"),
        (b"{not json}", r"is not a channel file: not JSON \(.* at line 1, column 2\)"),
        (b"occupation,sex\nSales,f\n", r"is not a channel file: not JSON"),
        (b"[1, 2]", r"is not a channel file: it has no format"),
        (b"null", r"is not a channel file: it has no format"),
        (b"{}", r"is not a channel file: it has no format"),
        (
            pickle.dumps(GOOD),
            r"is a Python pickle, which is never opened: a channel file is JSON",
        ),
        (pickle.dumps(GOOD, protocol=0), r"is not a channel file: not JSON"),
        (b"\x93NUMPY\x01\x00", r"is not a channel file: it is no UTF-8 text"),
        (
            json.dumps(GOOD).encode("utf-16"),
            r"is not a channel file: it is no UTF-8 text",
        ),
        (
            b'{"format": "a", "format": "mechdesign.channel"}',
            r"the key 'format' occurs twice",
        ),
        (
            b'{"format": "mechdesign.channel", "x": {"a": 1, "a": 2}}',
            r"the key 'a' occurs twice",
        ),
        (
            b'{"format": "mechdesign.channel", "x": NaN}',
            r"NaN is no number of a channel file",
        ),
        (b'{"format": "mechdesign.channel", "x": Infinity}', r"Infinity is no number"),
        (
            b'{"format": "mechdesign.channel", "x": -Infinity}',
            r"-Infinity is no number",
        ),
        (
            b'{"format": "mechdesign.channel", "x": ' + b"9" * 5000 + b"}",
            r"holds an integer of thousands of digits",
        ),
        (b"[" * 200_000, r"is not a channel file: it is nested too deeply"),
        (b'{"format":' * 200_000, r"is not a channel file: it is nested too deeply"),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path, content, message):
    assert_refused(tmp_path, content, message)


def test_a_number_beyond_the_doubles_is_refused(tmp_path):
    text = json.dumps(hashed(GOOD)).replace("0.5", "1e999")
    assert_refused(tmp_path, text, r"holds a number that no channel file can hold")


def test_a_pickle_is_not_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    assert_refused(
        tmp_path, pickle.dumps(Bomb()), r"is a Python pickle, which is never opened"
    )
    assert not (tmp_path / "exploded").exists()


def test_places_without_a_channel_file(tmp_path):
    with pytest.raises(InputError, match=r"gone\.json: there is no such file"):
        Channel.load(tmp_path / "gone.json")
    with pytest.raises(InputError, match=r"is a folder, not a channel file"):
        Channel.load(tmp_path)
    with pytest.raises(InputError, match=r"/dev/null is not a regular file"):
        Channel.load("/dev/null")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match=r"pipe is not a regular file"):
            Channel.load(tmp_path / "pipe")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be read: not a directory"):
        Channel.load(tmp_path / "file" / "c.json")


def test_an_enormous_file_is_refused_unread(tmp_path):
    with open(tmp_path / "huge.json", "wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(
        InputError,
        match=r"huge\.json is too large for a channel file \(1099511627776 bytes\)",
    ):
        Channel.load(tmp_path / "huge.json")


def test_many_long_integers_are_refused(tmp_path):
    """Each is as long as Python parses (4300 digits); they are not written out in the message."""
    document = changed("rows", [[10**4299] * 200] * 2)
    assert_refused(
        tmp_path,
        json.dumps(document),
        r"row 'Sales': entry 1 \(an integer of 14281 bits\) is not",
    )
