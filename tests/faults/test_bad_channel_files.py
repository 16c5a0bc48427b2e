"""Every way in which a channel file can be wrong is refused with a message that says which."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError

D = 2**53

GOOD = {
    "format": "mechdesign.channel",
    "version": 1,
    "useful": {"columns": ["job"], "symbols": [["Sales"], ["Tech"]]},
    "sensitive": {"columns": ["sex"], "symbols": [["f"], ["m"]]},
    "outputs": ["Sales", "mix-1"],
    "denominator": D,
    "rows": [[D, 0], [D // 4, 3 * D // 4]],
    "joint": [[1, 2], [3, 4]],
    "notion": {"name": "alip", "eps_l": 1.0, "eps_u": "inf"},
    "achieved": None,
    "utility": {"nmi": 0.5},
    "certificate": None,
    "provenance": {"tool": "mechdesign"},
}


def hashed(document: dict) -> dict:
    canonical = json.dumps(
        {k: v for k, v in document.items() if k != "sha256"},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return {**document, "sha256": hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()}


def changed(path: str, value, good: dict = GOOD) -> dict:
    """The good document with the value at `path` (keys and positions with dots) replaced, hashed anew."""
    document = json.loads(json.dumps(good))
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place = document
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return hashed(document)


def refuse(tmp_path, content: bytes | str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=message) as caught:
        Channel.load(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < 400 + len(str(path))


def test_the_good_file_is_read(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(hashed(GOOD)))
    channel = Channel.load(tmp_path / "good.json")
    assert channel.outputs == ("Sales", "mix-1")
    assert channel.joint.counts == ((1, 2), (3, 4))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", "mechdesign.report", r"its format is 'mechdesign.report', not 'mechdesign.channel'"),
        ("format", 7, r"its format is '7'"),
        ("format", None, r"is not a channel file: it has no format"),
        ("version", 3, r"version '3' of the channel file is not known; this mechdesign reads 1 and 2"),
        ("after", ["0" * 64], r"the channel file has an unknown key 'after', which belongs to version 2"),
        ("sparse_rows", [[0, D], [0, D]], r"unknown key 'sparse_rows', which belongs to version 2"),
        ("version", "1", r"version '1' of the channel file is not known"),
        ("version", True, r"version 'True' of the channel file is not known"),
        ("version", 1.0, r"version '1.0' of the channel file is not known"),
        ("version", None, r"version 'None' of the channel file is not known"),
        ("rows", None, r"the channel file has no 'rows'"),
        ("outputs", None, r"the channel file has no 'outputs'"),
        ("useful", None, r"the channel file has no 'useful'"),
        ("denominator", None, r"the channel file has no 'denominator'"),
        ("secret", 1, r"the channel file has an unknown key 'secret'"),
        ("useful", [], r"useful \(a list\) must be an object"),
        ("useful.names", ["a"], r"useful has an unknown key 'names'"),
        ("useful.columns", "job", r"useful\.columns \('job'\) must be a list"),
        ("useful.columns", [], r"useful: a variable needs columns"),
        ("useful.columns", ["job", "job"], r"useful: a variable needs columns with different names"),
        (
            "useful.symbols",
            ["Sales", "Tech"],
            r"useful\.symbols\[0\] \('Sales'\) must be a list",
        ),
        ("useful.symbols", [["Sales"], [7]], r"useful\.symbols\[1\]\[0\] \('7'\) must be text"),
        ("useful.symbols", [["Sales"], ["Sales"]], r"useful: the symbol 'Sales' of 'job' occurs twice"),
        ("useful.symbols", [["Sales"], ["Tech", "x"]], r"useful: symbol 'Tech', 'x' has 2 part"),
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
        ("sensitive", None, r"the joint table needs the labels of its rows: there is no sensitive"),
        ("sensitive.symbols", [["f"], ["m"], ["d"]], r"joint: the table must have 3 rows"),
        ("outputs", {"a": 1}, r"outputs \(an object\) must be a list"),
        ("outputs", ["Sales"], r"the rows form a 2 x 2 table, but there are 2 useful symbols and 1 outputs"),
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
        ("denominator", 2**80, r"denominator \('1208925819614629174706176'\) must be at most"),
        ("denominator", float(D), r"denominator \('9007199254740992.0'\) must be a whole number"),
        ("denominator", "9007199254740992", r"denominator \('9007199254740992'\) must be a whole number"),
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
        ("rows.1.0", 0.5, r"row 'Tech': entry 1 \('0.5'\) is not a non-negative integer"),
        (
            "rows.1.0",
            float(D // 4),
            r"row 'Tech': entry 1 \('2251799813685248.0'\) is not a non-negative integer",
        ),
        ("rows.1.0", -1, r"row 'Tech': entry 1 \('-1'\) is not a non-negative integer"),
        ("rows.1.0", True, r"row 'Tech': entry 1 \('True'\) is not a non-negative integer"),
        ("rows.1.0", "1", r"row 'Tech': entry 1 \('1'\) is not a non-negative integer"),
        ("rows.1.0", [1], r"row 'Tech': entry 1 \('\[1\]'\) is not a non-negative integer"),
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
        ("rows", [[D, 0], [D, 0]], r"the output 'mix-1' has no mass: no row ever gives it"),
        ("joint", {"a": 1}, r"joint must be a list of lists of integers"),
        ("joint", [1, 2], r"joint must be a list of lists of integers"),
        ("joint", [[1, 2]], r"joint: the table must have 2 rows of 2 entries"),
        ("joint", [[1, 2, 3], [3, 4, 5]], r"joint: the table must have 2 rows of 2 entries"),
        (
            "joint.0.1",
            0.5,
            r"joint: the entry at .*'f'.*'Tech'.* \('0.5'\) must be an integer in \[0, 2\^256\)",
        ),
        ("joint.0.1", -1, r"joint: the entry at .* \('-1'\) must be an integer in \[0, 2\^256\)"),
        ("joint.0.1", True, r"joint: the entry at .* \('True'\) must be an integer in \[0, 2\^256\)"),
        ("joint.0.1", 2**256, r"joint: the entry at .* must be an integer in \[0, 2\^256\)"),
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
    refuse(tmp_path, json.dumps(changed(path, value)), message)


THIRDS = [["1/3", "2/3"], ["1/3", "2/3"]]

SECOND = {
    **{key: value for key, value in GOOD.items() if key not in ("rows", "joint")},
    "version": 2,
    "sparse_rows": [[0, D], [0, D // 4, 1, 3 * D // 4]],
    "sparse_joint": [[0, 1, 1, 2], [0, 3, 1, 4]],
    "confidence": {
        "level": 0.95,
        "set": "clopper-pearson",
        "shares": "estimated",
        "intervals": {"cells": [THIRDS, THIRDS], "shares": THIRDS},
    },
    "objective": {
        "name": "distance",
        "distance": "squared",
        "keep_frequencies": True,
        "stay": {"Sales": "1/2"},
    },
    "budgets": [{"symbol": ["f"], "eps_l": 1.0, "eps_u": "inf"}],
    "after": ["0" * 64],
}


def test_the_second_version_is_read_and_written(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(hashed(SECOND)))
    channel = Channel.load(tmp_path / "good.json")
    assert channel.rows == ((D, 0), (D // 4, 3 * D // 4))
    assert channel.joint.counts == ((1, 2), (3, 4))
    assert channel.record.confidence["intervals"]["shares"][1] == ["1/3", "2/3"]
    assert channel.record.objective.stay == {"Sales": "1/2"}
    assert channel.record.budgets[0].eps_u == "inf"
    channel.save(tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_text())
    assert written["version"] == 2
    assert written["rows"] == GOOD["rows"]  # small tables are written in full
    assert {key: written[key] for key in ("confidence", "budgets", "after")} == {
        key: SECOND[key] for key in ("confidence", "budgets", "after")
    }
    assert Channel.load(tmp_path / "again.json") == channel


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sparse_rows", None, r"the channel file has no 'rows'"),
        ("rows", GOOD["rows"], r"the channel file has both 'rows' and 'sparse_rows'"),
        ("joint", GOOD["joint"], r"the channel file has both 'joint' and 'sparse_joint'"),
        ("sparse_rows", {}, r"sparse rows must be a list of lists of integers, not dict"),
        ("sparse_rows.1", 7, r"row 'Tech' is not a list of index, value, \.\. in whole numbers"),
        ("sparse_rows.1", [0, D, 1], r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", float(D), r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", True, r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", "1", r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", -1, r"row 'Tech': '-1' is not a non-negative integer"),
        ("sparse_rows.1.1", 10**4000, r"row 'Tech': an integer of 13288 bits is not a non-negative integer"),
        (
            "sparse_rows.1.1",
            0,
            r"row 'Tech': the indices must ascend and be below 2, and the values positive",
        ),
        ("sparse_rows.1.2", 0, r"row 'Tech': the indices must ascend"),
        ("sparse_rows.1.2", 2, r"row 'Tech': the indices must ascend and be below 2"),
        ("sparse_rows.1.1", D, r"row 'Tech' sums to 15762598695796736, not to the denominator"),
        ("sparse_joint", [7], r"sparse_joint must be a list of lists of integers"),
        ("sparse_joint.0", [0], r"sparse_joint: row 1 is no list of index, value"),
        (
            "sparse_joint.0.0",
            1,
            r"sparse_joint: row 1 is no list of index, value, \.\. with ascending indices below 2",
        ),
        ("sparse_joint.0.2", 2, r"sparse_joint: row 1 is no list of index, value"),
        ("sparse_joint.0.1", True, r"sparse_joint: the entry at .*'f'.* must be an integer in \[0, 2\^256\)"),
        ("confidence.level", 0.3, r"confidence\.level \('0\.3'\) must be at least 0\.5"),
        ("confidence.level", "0.95", r"confidence\.level \('0\.95'\) must be a number"),
        ("confidence.set", "wald", r"confidence\.set \('wald'\) must be 'clopper-pearson'"),
        (
            "confidence.intervals.shares.0.0",
            "0.5",
            r"shares\[0\]\[0\] \('0\.5'\) must be an exact fraction as text",
        ),
        ("confidence.intervals.shares.0.0", "1/0", r"shares\[0\]\[0\] \('1/0'\) must be an exact fraction"),
        (
            "confidence.intervals.shares.0",
            ["1", "1/2"],
            r"shares\[0\] \('1', '1/2'\) is no interval in \[0, 1\]",
        ),
        (
            "confidence.intervals.shares",
            [["0", "1/3"]] * 2,
            r"shares: the intervals hold no probabilities that sum",
        ),
        (
            "confidence.intervals.cells",
            [THIRDS],
            r"confidence: there must be intervals for 2 shares, and for 2 rows",
        ),
        (
            "objective.distance",
            None,
            r"objective: distance \(absolute or squared\) belongs to the objective distance",
        ),
        (
            "objective.name",
            "profit",
            r"objective\.name \('profit'\) must be 'truth', 'distance', 'costs' or 'convex'",
        ),
        ("objective.stay", {"Sales": 0.5}, r"objective\.stay\.Sales \('0\.5'\) must be text"),
        ("bins", {"age": {"edges": ["0", "1"]}}, r"bins: there is no useful column 'age'"),
        ("budgets.0.eps_l", -1.0, r"budgets\[0\]: eps_l \(-1\) must be positive"),
        ("budgets.0.eps_u", "1", r"budgets\[0\]\.eps_u"),
        ("budgets.0.symbol", ["d"], r"budgets: there is no sensitive symbol 'd'"),
        ("budgets", SECOND["budgets"] * 2, r"budgets: a sensitive symbol occurs twice"),
        ("after.0", "x", r"after\[0\] \('x'\) must be a hash in hexadecimal digits"),
    ],
)
def test_a_wrong_value_of_version_2_is_named(tmp_path, path, value, message):
    refuse(tmp_path, json.dumps(changed(path, value, SECOND)), message)


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
    refuse(
        tmp_path,
        json.dumps(document),
        r"the sha256 does not match the content: the file was edited or damaged",
    )


def test_a_missing_hash_is_named(tmp_path):
    refuse(tmp_path, json.dumps(GOOD), r"the channel file has no 'sha256'")


def test_every_truncation_is_refused(tmp_path):
    text = json.dumps(hashed(GOOD), indent=1)
    for end in range(1, len(text) - 1, 7):
        refuse(tmp_path, text[:end], r"is truncated|is not a channel file")
    refuse(tmp_path, text[: len(text) // 2], r"is truncated: it ends in the middle \(line \d+\)")


def test_every_changed_byte_is_noticed(tmp_path):
    """No single character of the values can be altered without a refusal."""
    text = json.dumps(hashed(GOOD))
    for position in range(0, len(text), 3):
        if text[position] not in ' \n"':
            replacement = "7" if text[position] != "7" else "8"
            refuse(tmp_path, text[:position] + replacement + text[position + 1 :], r"bad\.json")


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
        (pickle.dumps(GOOD), r"is a Python pickle, which is never opened: a channel file is JSON"),
        (pickle.dumps(GOOD, protocol=0), r"is not a channel file: not JSON"),
        (b"\x93NUMPY\x01\x00", r"is not a channel file: it is no UTF-8 text"),
        (json.dumps(GOOD).encode("utf-16"), r"is not a channel file: it is no UTF-8 text"),
        (b'{"format": "a", "format": "mechdesign.channel"}', r"the key 'format' occurs twice"),
        (b'{"format": "mechdesign.channel", "x": {"a": 1, "a": 2}}', r"the key 'a' occurs twice"),
        (b'{"format": "mechdesign.channel", "x": NaN}', r"NaN is no number of a channel file"),
        (b'{"format": "mechdesign.channel", "x": Infinity}', r"Infinity is no number"),
        (b'{"format": "mechdesign.channel", "x": -Infinity}', r"-Infinity is no number"),
        (
            b'{"format": "mechdesign.channel", "x": ' + b"9" * 5000 + b"}",
            r"holds an integer of thousands of digits",
        ),
        (b"[" * 200_000, r"is not a channel file: it is nested too deeply"),
        (b'{"format":' * 200_000, r"is not a channel file: it is nested too deeply"),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path, content, message):
    refuse(tmp_path, content, message)


def test_a_number_beyond_the_doubles_is_refused(tmp_path):
    text = json.dumps(hashed(GOOD)).replace("0.5", "1e999")
    refuse(tmp_path, text, r"holds a number that no channel file can hold")


def test_a_pickle_is_not_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    refuse(tmp_path, pickle.dumps(Bomb()), r"is a Python pickle, which is never opened")
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
        InputError, match=r"huge\.json is too large for a channel file \(1099511627776 bytes\)"
    ):
        Channel.load(tmp_path / "huge.json")


def test_many_long_integers_are_refused(tmp_path):
    """Each is as long as Python parses (4300 digits); they are not written out in the message."""
    document = changed("rows", [[10**4299] * 200] * 2)
    refuse(tmp_path, json.dumps(document), r"row 'Sales': entry 1 \(an integer of 14281 bits\) is not")


BINS = {
    "kind": "number",
    "edges": ["-inf", "0.5", "7"],
    "values": [["-1", "0"], ["0.5"]],
    "counts": [[1, 2], [3]],
}

BINNED = {
    **GOOD,
    "version": 2,
    "useful": {"columns": ["job"], "symbols": [["(-inf, 0.5)"], ["[0.5, 7]"]]},
    "outputs": ["(-inf, 0.5)", "mix-1"],
    "bins": {"job": BINS},
}


def test_bins_are_read_and_written_and_lose_the_table_in_a_public_file(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(hashed(BINNED)))
    channel = Channel.load(tmp_path / "good.json")
    assert channel.useful.bins[0].representatives == ("0", "0.5")
    channel.save(tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_text())
    assert (written["version"], written["bins"]) == (2, {"job": BINS})
    assert Channel.load(tmp_path / "again.json") == channel
    channel.save(tmp_path / "public.json", public=True)
    public = json.loads((tmp_path / "public.json").read_text())
    assert public["bins"] == {"job": {key: BINS[key] for key in ("kind", "edges")}}
    assert Channel.load(tmp_path / "public.json").useful.bins[0].representatives is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("bins.job.edges", ["1", "1"], r"the edges must ascend, but '1' stands before '1'"),
        ("bins.job.edges", ["1"], r"bins\.job\.edges .* must have at least 2 entries"),
        ("bins.job.edges", ["0", "x"], r"the edge 'x' is no number"),
        ("bins.job.edges", ["0", "inf", "7"], r"the edges must ascend, but 'inf' stands before '7'"),
        ("bins.job.kind", "money", r"bins\.job\.kind \('money'\) must be "),
        ("bins.job.kind", "date", r"the edge '0.5' is no date"),
        ("bins.job.values", None, r"values and counts must both have every bin"),
        ("bins.job.values", [["0"], ["0.5"]], r"values and counts must both have every bin, equally many"),
        ("bins.job.values", [["0", "-1"], ["0.5"]], r"the values of the bin 1 must ascend and lie in it"),
        ("bins.job.values", [["-1", "0"], ["8"]], r"the values of the bin 2 must ascend and lie in it"),
        ("bins.job.counts.1.0", 0, r"counts.* must be at least 1"),
        ("bins.job.edges", ["-inf", "0.4", "0.5", "7"], r"values and counts must both have every bin"),
        (
            "bins.job",
            {"edges": ["0", "1"]},
            r"useful: the symbol '\(-inf, 0.5\)' of 'job' is none of its bins",
        ),
        ("version", 1, r"unknown key 'bins', which belongs to version 2"),
    ],
)
def test_wrong_bins_are_named(tmp_path, path, value, message):
    refuse(tmp_path, json.dumps(changed(path, value, BINNED)), message)
