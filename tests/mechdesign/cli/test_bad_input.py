"""Every kind of bad input: exit 2, one or two lines that name the culprit, nothing printed, nothing written."""

from __future__ import annotations

import json
import pickle

import pytest

MICRO = ("--sensitive", "group", "--useful", "job")
EPS = ("--epsilon", "1")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (b"", MICRO, ["t.csv", "is empty"]),
        (b"group,job\n", MICRO, ["t.csv", "no records"]),
        (b"\n", MICRO, ["t.csv", "blank"]),
        (b"\x00\x01\x02PNG\x00", MICRO, ["t.csv", "neither a CSV nor a Parquet"]),
        (b'group,job\n"a,b\n', MICRO, ["t.csv", "quote"]),
        (b"group,job\na,\xff\xfe\n", MICRO, ["t.csv", "line 2", "UTF-8"]),
        (b"group,work\na,b\n", MICRO, ["t.csv", "'job'"]),
        (b"Group,job\na,b\n", MICRO, ["t.csv", "'group'"]),
        (b"group,job,job\na,b,c\n", MICRO, ["t.csv", "'job'", "more than once"]),
        (b"group,job\na,b\nc\n", MICRO, ["t.csv", "line 3", "1 cell"]),
        (b"group,job\na,b\nc,d,e\n", MICRO, ["t.csv", "line 3", "3 cell"]),
        (
            b"group,job\na,b\na,\nb,c\n",
            MICRO,
            ["t.csv", "line 3", "'job'", "--missing"],
        ),
        (b"group,job\na,b\n,c\n", MICRO, ["t.csv", "line 3", "'group'", "--missing"]),
        (b"group,job\na,x\nb,x\n", MICRO, ["t.csv", "'x'"]),
        (
            b"group,job,n\na,x,1\nb,y,nan\n",
            (*MICRO, "--weight", "n"),
            ["t.csv", "line 3", "no finite number"],
        ),
        (
            b"group,job,n\na,x,1\nb,y,inf\n",
            (*MICRO, "--weight", "n"),
            ["t.csv", "line 3", "no finite number"],
        ),
        (
            b"group,job,n\na,x,1\nb,y,-2\n",
            (*MICRO, "--weight", "n"),
            ["t.csv", "line 3", "-2"],
        ),
        (
            b"group,job,n\na,x,1\nb,y,many\n",
            (*MICRO, "--weight", "n"),
            ["t.csv", "line 3", "no finite number"],
        ),
        (b"group,job,n\na,x,1\nb,y,\n", (*MICRO, "--weight", "n"), ["t.csv", "line 3"]),
        (b"group,job\na,x\nb,y\n", (*MICRO, "--weight", "n"), ["t.csv", "'n'"]),
        (
            b"g,x,y\na,1,2\nb,3,nan\n",
            ("--contingency",),
            ["t.csv", "'b'", "'y'", "nan"],
        ),
        (
            b"g,x,y\na,1,2\nb,3,inf\n",
            ("--contingency",),
            ["t.csv", "'b'", "'y'", "inf"],
        ),
        (b"g,x,y\na,1,2\nb,3,-4\n", ("--contingency",), ["t.csv", "'b'", "'y'", "-4"]),
        (
            b"g,x,y\na,1,2\nb,3,4.5\n",
            ("--contingency",),
            ["t.csv", "'b'", "'y'", "4.5"],
        ),
        (b"g,x,y\na,1,2\nb,3,\n", ("--contingency",), ["t.csv", "'b'", "'y'", "empty"]),
        (b"g,x,y\na,1,2\nb,3\n", ("--contingency",), ["t.csv", "line 3"]),
        (b"g,x,y\na,1,2\na,3,4\n", ("--contingency",), ["t.csv", "'a'", "twice"]),
        (b"g,x,x\na,1,2\nb,3,4\n", ("--contingency",), ["t.csv", "'x'", "twice"]),
        (b"g,x\na,1\nb,3\n", ("--contingency",), ["t.csv", "'x'"]),
        (b"g\na\nb\n", ("--contingency",), ["t.csv", "useful"]),
        (b"g,x,y\na,0,0\nb,0,0\n", ("--contingency",), ["t.csv", "mass"]),
        (b"g,x,y\n", ("--contingency",), ["t.csv", "no rows"]),
        (b"g,x,y\na,0.5,0.2\nb,0.2,0.2\n", ("--probabilities",), ["t.csv", "1.1"]),
        (
            b"g,x,y\na,0.5,0.2\nb,0.2,-0.1\n",
            ("--probabilities",),
            ["t.csv", "'b'", "'y'", "-0.1"],
        ),
        (
            b"g,x,y\na,0.5,0.2\nb,0.2,nan\n",
            ("--probabilities",),
            ["t.csv", "'b'", "'y'", "nan"],
        ),
    ],
)
def test_bad_tables(folder, refused, text, options, words):
    (folder / "t.csv").write_bytes(text)
    message = refused("design", "t.csv", *options, *EPS, "--output", "out.json")
    assert all(word in message for word in words), message


def test_a_file_whose_name_begins_with_a_dash_has_a_remedy(folder, refused, run):
    (folder / "-d.csv").write_bytes((folder / "records.csv").read_bytes())
    error = refused("design", "-d.csv", *MICRO, *EPS)
    assert "No such option" in error
    assert "A file whose name begins with a dash is given as ./-d.csv" in error
    assert run("design", "./-d.csv", *MICRO, *EPS).code == 0


def test_messages_about_combinations_name_their_option(folder, refused):
    asked = ("--sensitive", "group", "--release", "job,town", *EPS, "--never")
    for combination in ("job=cook", "pay=1"):
        error = refused("design", "records.csv", *asked, combination)
        assert "error: --never: " in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.csv", *MICRO, *EPS), ["nothing.csv", "no such file"]),
        ((".", *MICRO, *EPS), ["counts.csv", "'job'"]),
        (
            (".", "--contingency", *EPS),
            ["a wide table is one file", "leave the others out"],
        ),
        (("records.csv", "--useful", "job", *EPS), ["--sensitive", "missing"]),
        (("records.csv", "--sensitive", "group", *EPS), ["--useful", "missing"]),
        (
            ("records.csv", "--sensitive", "group,", "--useful", "job", *EPS),
            ["--sensitive", "empty"],
        ),
        (
            ("records.csv", "--sensitive", "group,age", "--useful", "job", *EPS),
            ["'age'"],
        ),
        (("records.csv", *MICRO, *EPS, "--missing", "guess"), ["--missing", "'guess'"]),
        (
            ("counts.csv", "--contingency", "--probabilities", *EPS),
            ["--contingency", "--probabilities"],
        ),
        (("counts.csv", "--contingency", "--weight", "n", *EPS), ["--weight"]),
        (("records.csv", *MICRO, "--json"), ["no budget"]),
        (("records.csv", *MICRO, "--epsilon", "0"), ["epsilon (0)"]),
        (("records.csv", *MICRO, "--epsilon", "-1"), ["epsilon (-1)"]),
        (("records.csv", *MICRO, "--epsilon", "nan"), ["epsilon (nan)"]),
        (("records.csv", *MICRO, "--epsilon", "one"), ["--epsilon", "'one'"]),
        (("records.csv", *MICRO, "--epsilon", "701"), ["epsilon (701)", "700"]),
        (("records.csv", *MICRO, *EPS, "--lam", "1"), ["lam (1)"]),
        (("records.csv", *MICRO, *EPS, "--lam", "nan"), ["lam (nan)"]),
        (
            ("records.csv", *MICRO, *EPS, "--notion", "ldp", "--lam", "0.5"),
            ["--lam", "ldp"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--notion", "lip", "--lam", "0.5"),
            ["--lam", "lip"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--notion", "max-lift", "--lam", "0.5"),
            ["--lam", "max-lift"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--notion", "min-lift", "--lam", "0.5"),
            ["--lam", "min-lift"],
        ),
        (("records.csv", *MICRO, "--eps-l", "1"), ["--eps-l", "--eps-u", "inf"]),
        (
            ("records.csv", *MICRO, "--eps-l", "1", "--notion", "ldp"),
            ["--eps-l", "ldp"],
        ),
        (("records.csv", *MICRO, *EPS, "--notion", "secret"), ["'secret'", "alip"]),
        (
            ("records.csv", *MICRO, *EPS, "--notion", "alpha", "--alpha", "1"),
            ["alpha (1)", "above 1"],
        ),
        (("records.csv", *MICRO, *EPS, "--alpha", "2"), ["--alpha", "alip"]),
        (("records.csv", *MICRO, *EPS, "--mechanism", "magic"), ["'magic'", "optimal"]),
        (("records.csv", *MICRO, *EPS, "--method", "guess"), ["'guess'", "auto"]),
        (("records.csv", *MICRO, *EPS, "--gap", "-1"), ["--gap", "-1"]),
        (("records.csv", *MICRO, *EPS, "--gap", "small"), ["--gap", "'small'"]),
        (("records.csv", *MICRO, *EPS, "--time-limit", "0"), ["--time-limit", "0"]),
        (("records.csv", *MICRO, *EPS, "--time-limit", "nan"), ["--time-limit", "nan"]),
        (("records.csv", *MICRO, *EPS, "--output", "."), ["folder"]),
        (
            ("records.csv", *MICRO, *EPS, "--output", "counts.csv"),
            ["counts.csv", "--force"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--output", "records.csv", "--force"),
            ["records.csv", "input"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--output", "no/where.json"),
            ["no/where.json", "folder"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--output", "counts.csv/x.json"),
            ["counts.csv"],
        ),
        (
            ("records.csv", *MICRO, *EPS, "--output", "/proc/channel.json"),
            ["/proc/channel.json"],
        ),
        (("records.csv", *MICRO, *EPS, "--public"), ["--public", "--output"]),
        (("records.csv", "more.csv", *MICRO, *EPS), ["more.csv"]),
        (("records.csv", *MICRO, *EPS, "--colour"), ["--colour"]),
        ((), ["TABLE"]),
    ],
)
def test_bad_options_of_design(refused, arguments, words):
    message = refused("design", *arguments)
    assert all(word in message for word in words), message


def test_a_convex_set_has_no_vertices(folder, refused):
    (folder / "three.csv").write_text("g,x,y,z\na,5,2,1\nb,1,4,2\nc,2,2,6\n")
    options = ("--contingency", "--eps-l", "inf", "--eps-u", "0.1", "--notion", "chi2")
    message = refused("design", "three.csv", *options, "--method", "vertices")
    assert "method vertices needs a polytope, and chi2 has none" in message


def test_a_folder_that_does_not_let_us_write(folder, refused, monkeypatch):
    """Root may write anywhere, so the answer of the system is made up here."""
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "not writable" in refused(
        "design", "records.csv", *MICRO, *EPS, "--output", "out.json"
    )
    for option in ("--output", "--plot"):
        assert "not writable" in refused(
            "compare", "records.csv", *MICRO, option, "curves.png"
        )


def resigned(record):
    """The channel file with a hash that fits its content."""
    import hashlib

    body = {key: value for key, value in record.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**body, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def edit_row(record):
    row = record["rows"][0]
    row[row.index(max(row))] -= 1


def edit_both_ends(record):
    edit_row(record)
    row = record["rows"][0]
    row[row.index(min(row))] += 1


def edit_fraction(record):
    record["rows"][0][0] = 0.5


def edit_huge(record):
    record["rows"][0][0] = 10**40


def edit_negative(record):
    record["rows"][0][0] = -1


def edit_version(record):
    record["version"] = 3


def edit_format(record):
    record["format"] = "other.channel"


def edit_outputs(record):
    record["outputs"] = record["outputs"][:-1]


def edit_symbols(record):
    del record["useful"]["symbols"]


def edit_joint(record):
    record["joint"][0][0] = -3


@pytest.mark.parametrize("command", ["audit", "apply", "measure", "show"])
@pytest.mark.parametrize(
    ("edit", "signed", "words"),
    [
        (edit_row, False, ["sums to"]),
        (edit_row, True, ["sums to"]),
        (edit_both_ends, False, ["sha256 does not match"]),
        (edit_fraction, True, ["0.5"]),
        (edit_huge, True, ["integer"]),
        (edit_negative, True, ["-1"]),
        (edit_version, True, ["version"]),
        (edit_format, True, ["other.channel"]),
        (edit_outputs, True, ["output"]),
        (edit_symbols, True, ["symbols"]),
        (edit_joint, True, ["-3"]),
    ],
)
def test_damaged_channel_files(channel, folder, refused, command, edit, signed, words):
    record = json.loads(channel.read_text(encoding="utf-8"))
    edit(record)
    channel.write_text(
        json.dumps(resigned(record) if signed else record), encoding="utf-8"
    )
    message = refused(
        command, channel, *(("records.csv", "out.csv") if command == "apply" else ())
    )
    assert "channel.json" in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["empty"]),
        (b'{"format": "mechdesign.channel", "vers', ["truncated"]),
        (b"[1, 2]", ["not a channel file"]),
        (pickle.dumps({"format": "mechdesign.channel"}), ["channel.json"]),
        (b"\xff\xfe\x00", ["channel.json"]),
        (b'{"format": NaN}', ["channel.json"]),
    ],
)
@pytest.mark.parametrize("command", ["audit", "show"])
def test_files_that_are_no_channel(folder, refused, command, content, words):
    (folder / "channel.json").write_bytes(content)
    message = refused(command, "channel.json")
    assert all(word in message for word in words), message


@pytest.mark.parametrize("command", ["audit", "measure", "show"])
def test_a_missing_channel_file(refused, command):
    assert "nothing.json" in refused(command, "nothing.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,work\n1,clerk\n", ["in.csv", "'job'"]),
        ("id,job\n1,clerk\n2,pilot\n", ["in.csv", "line 3", "the symbol of 'job'"]),
        ("id,job\n1,clerk\n2,\n", ["in.csv", "line 3", "'job'"]),
        ("job,group\nclerk,a\n", ["'group'", "--keep-sensitive"]),
        ("id,job\n1,clerk\n2\n", ["in.csv", "line 3"]),
        ("", ["in.csv", "empty"]),
    ],
)
def test_bad_files_to_sanitise(channel, folder, refused, text, words):
    (folder / "in.csv").write_text(text, encoding="utf-8")
    message = refused("apply", channel, "in.csv", "out.csv", "--keep", "all")
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("in.csv", "counts.csv"), ["counts.csv", "--force"]),
        (("in.csv", "in.csv", "--force"), ["in.csv", "input"]),
        (("in.csv", "."), ["folder"]),
        (("in.csv", "no/out.csv"), ["no/out.csv"]),
        (("nothing.csv", "out.csv"), ["nothing.csv"]),
        (("in.csv", "out.csv", "--column", "job"), ["--column", "'job'"]),
        (("in.csv", "out.csv", "--column", "work=job"), ["'work'"]),
        (
            ("in.csv", "out.csv", "--column", "job=a", "--column", "job=b"),
            ["'job'", "twice"],
        ),
        (("in.csv",), ["OUT"]),
    ],
)
def test_bad_options_of_apply(channel, folder, refused, arguments, words):
    (folder / "in.csv").write_text("id,job\n1,clerk\n", encoding="utf-8")
    message = refused("apply", channel, *arguments)
    assert all(word in message for word in words), message


GOOD_MATRIX = "job,y0,y1\nclerk,1,0\nbaker,1,0\nsmith,0.5,0.5\nweaver,1,0\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["W.csv", "empty"]),
        ("job,y0\n", ["W.csv"]),
        (GOOD_MATRIX.replace("weaver,1,0\n", ""), ["W.csv", "'weaver'"]),
        (GOOD_MATRIX.replace("weaver", "pilot"), ["W.csv", "'pilot'"]),
        (GOOD_MATRIX.replace("weaver", "clerk"), ["W.csv", "'clerk'"]),
        (GOOD_MATRIX.replace("0.5,0.5", "0.5,0.4"), ["W.csv", "'smith'", "0.9"]),
        (GOOD_MATRIX.replace("0.5,0.5", "1.5,-0.5"), ["W.csv", "'smith'", "negative"]),
        (GOOD_MATRIX.replace("0.5,0.5", "nan,0.5"), ["W.csv", "'smith'", "nan"]),
        (GOOD_MATRIX.replace("0.5,0.5", "0.5"), ["W.csv", "line 4"]),
        (GOOD_MATRIX.replace("y1", "y0"), ["W.csv", "'y0'"]),
    ],
)
def test_bad_matrices(folder, refused, text, words):
    (folder / "W.csv").write_text(text, encoding="utf-8")
    message = refused(
        "audit", "--matrix", "W.csv", "--table", "counts.csv", "--contingency", *EPS
    )
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["CHANNEL", "--matrix"]),
        (("channel.json", "--matrix", "W.csv"), ["CHANNEL", "--matrix"]),
        (("--matrix", "W.csv"), ["--table"]),
        (
            ("--matrix", "W.csv", "--table", "counts.csv", "--contingency"),
            ["no budget"],
        ),
        (("channel.json", "--sensitive", "group"), ["--table"]),
        (("channel.json", "--table", "nothing.csv"), ["nothing.csv"]),
        (("channel.json", "--notion", "ldp"), ["--epsilon"]),
        (("channel.json", "--lam", "0.5"), ["--lam"]),
    ],
)
def test_bad_options_of_audit(channel, folder, refused, arguments, words):
    (folder / "W.csv").write_text(GOOD_MATRIX, encoding="utf-8")
    message = refused("audit", *arguments)
    assert all(word in message for word in words), message


def test_show_cannot_print_two_formats(channel, refused):
    assert "--csv" in refused("show", channel, "--csv", "--json")


@pytest.mark.parametrize("alpha", ["1", "0.5", "nan", "x"])
def test_orders_must_exceed_one(channel, refused, alpha):
    message = refused("measure", channel, "--alpha", alpha)
    assert "alpha" in message
    assert alpha in message or alpha == "x"


def test_a_public_channel_needs_a_table(channel, folder, run, refused):
    public = folder / "public.json"
    assert (
        run("design", "records.csv", *MICRO, *EPS, "--output", public, "--public").code
        == 0
    )
    assert "--table" in refused("audit", public)
    assert "--table" in refused("measure", public)


@pytest.mark.parametrize("arguments", [("dance",), ("--loud",)])
def test_no_command(refused, arguments):
    assert "--help" in refused(*arguments)


CROSSED = (
    "a,b,x\n"
    + "\n".join(f"{a},{b},{x}" for a in "uv" for b in "pq" for x in "klm" + a + b)
    + "\n"
)


def test_columns_of_a_repeated_option_are_all_protected(folder, run):
    """The last one alone was, and nothing said that the first was not."""
    (folder / "crossed.csv").write_text(CROSSED, encoding="utf-8")
    rest = ("--useful", "x", "--epsilon", "1", "--json")
    both = run("design", "crossed.csv", "--sensitive", "a,b", *rest).record
    again = run(
        "design", "crossed.csv", "--sensitive", "a", "--sensitive", "b", *rest
    ).record
    alone = run("design", "crossed.csv", "--sensitive", "b", *rest).record
    assert both["nmi"] == again["nmi"] != alone["nmi"]
    twice = run("design", "crossed.csv", "--sensitive", "a", "--sensitive", "a", *rest)
    assert twice.code == 2
    assert "--sensitive 'a,a' names a column twice" in twice.err


@pytest.mark.parametrize("option", ["--epsilon", "--output", "--time-limit"])
def test_an_option_of_one_value_takes_no_second(folder, run, option):
    (folder / "crossed.csv").write_text(CROSSED, encoding="utf-8")
    refused = run(
        "design",
        "crossed.csv",
        "--sensitive",
        "a",
        "--useful",
        "x",
        option,
        "1",
        option,
        "2",
    )
    assert refused.code == 2
    assert f"{option} takes one value, and is given 2 times" in refused.err
    assert not (folder / "2").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--merge-rare", "auto"),
            "--merge-rare, --cells, --rare, --fill and --slice-seed",
        ),
        (("--stay", ".5"), "--distance, --keep-frequencies, --stay, --forbid"),
    ],
)
def test_options_that_go_with_others_are_named_as_they_are_typed(
    run, tmp_path, options, words
):
    path = tmp_path / "t.csv"
    path.write_text("group,job\na,x\nb,y\na,y\n")
    ended = run("design", str(path), *MICRO, *EPS, *options)
    assert ended.code == 2
    assert words in ended.err


def test_a_fresh_draw_without_a_ledger_is_named_as_it_is_typed(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("group,job\n" + "a,x\nb,y\na,y\nb,x\n" * 10)
    channel = str(tmp_path / "channel.json")
    assert run("design", str(path), *MICRO, *EPS, "--output", channel).code == 0
    seeded = ("--insecure-seed", "1", "--fresh-draw")
    ended = run("apply", channel, str(path), str(tmp_path / "out.csv"), *seeded)
    assert ended.code == 2
    assert "leave --fresh-draw out" in ended.err


@pytest.mark.parametrize("rule", ["marginal", "output:x"])
def test_nothing_is_released_for_empty_cells_beside_given_columns(run, tmp_path, rule):
    """The channel could be designed, and `apply` would refuse every release with it."""
    path = tmp_path / "t.csv"
    path.write_text("group,town,job\n" + "a,N,x\nb,N,y\na,S,y\nb,S,x\nb,S,\n" * 10)
    rows = ("--sensitive", "group", "--release", "job", "--given", "town")
    ended = run("design", str(path), *rows, *EPS, "--missing", rule)
    assert ended.code == 2
    assert f"--missing {rule}: the channel releases 'town' as it is" in ended.err
    assert "(--missing symbol)" in ended.err
