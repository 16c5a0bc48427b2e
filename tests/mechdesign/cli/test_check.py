"""`mechdesign check`: exit codes, text, JSON and options."""

from __future__ import annotations

import json
import random
import re

import pytest

JOBS = random.Random(1).sample(
    ["clerk", "clerk", "baker", "smith", "smith", "weaver"] * 100, 600
)
PEOPLE = "id,job,town\n" + "".join(
    f"{i},{job},T{i % 3}\n" for i, job in enumerate(JOBS)
)


@pytest.fixture
def released(folder, run, channel):
    """people.csv and its release out.csv."""
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    result = run(
        "apply",
        channel,
        "people.csv",
        "out.csv",
        "--insecure-seed",
        "1",
        "--keep",
        "all",
    )
    assert result.code == 0, result.err
    return folder / "out.csv"


@pytest.mark.parametrize("name", ["a.csv", "sub/a.csv"])
def test_a_file_of_a_released_folder_has_its_manifest_there(run, channel, folder, name):
    """A file that was changed after the release of its folder passed without a word."""
    path = folder / "in" / name
    path.parent.mkdir(parents=True)
    path.write_text(PEOPLE, encoding="utf-8")
    assert run("apply", channel, "in", "out", "--keep", "all").code == 0
    check = ("check", f"out/{name}", "--channel", channel)
    assert "this one was changed after its release" not in said(run(*check))
    assert "no valid manifest" not in said(run("estimate", *check[1:]))
    path = folder / "out" / name
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[5] = lines[6]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "this one was changed after its release" in said(run(*check))


def said(result):
    """What a command printed, in one line."""
    return " ".join(result.out.split())


def test_a_faithful_release(run, channel, released):
    result = run("check", "out.csv", "--channel", channel, "--original", "people.csv")
    assert result.code == 0, result.err
    assert result.out.startswith(
        "out.csv looks like a faithful release of its channel (600 records).\n"
    )
    assert (
        "the released values of each original symbol against its row of the channel: plausible"
        in result.out
    )
    assert "fails with a chance of at most 0.001" in " ".join(result.out.split())
    assert result.err == ""


def test_without_the_original_the_text_says_what_it_is_worth(run, channel, released):
    result = run("check", "out.csv", "--channel", channel)
    text = " ".join(result.out.split())
    assert "the released values against what the channel's table predicts" in text
    assert (
        "the released values against everything that any data could give: plausible"
        in text
    )
    assert "data of another origin may differ from them (--any-data)" in text
    assert "so may other records of the same population" in text
    assert "the original decides (--original)" in text
    loose = run("check", "out.csv", "--channel", channel, "--any-data", "--json")
    assert loose.code == 0
    assert loose.record["frequencies"]["against"] == "any data"
    assert "a wrong channel may pass" in loose.record["notices"][0]


def test_json_is_one_object_with_everything(run, channel, released):
    record = run(
        "check", "out.csv", "--channel", channel, "--original", "people.csv", "--json"
    ).record
    assert set(record) == {
        "plausible",
        "records",
        "findings",
        "frequencies",
        "also",
        "notices",
        "unit",
    }
    assert record["plausible"] is True
    assert record["records"] == 600
    assert record["findings"] == []
    assert record["also"] is None
    test = record["frequencies"]
    assert set(test) == {
        "against",
        "plausible",
        "p_value",
        "level",
        "records",
        "methods",
        "suspects",
    }
    assert test["against"] == "originals"
    assert 0.001 < test["p_value"] <= 1
    assert test["level"] == 0.001


def test_an_unsanitised_file_exits_1_and_names_the_line(run, channel, released, folder):
    lines = released.read_text(encoding="utf-8").splitlines()
    lines[11] = "10,dentist,T1"
    (folder / "broken.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run(
        "check", "broken.csv", "--channel", channel, "--original", "people.csv"
    )
    assert result.code == 1
    assert result.out.startswith(
        "broken.csv does NOT look like a faithful release of its channel"
    )
    assert (
        "Impossible\n  - broken.csv, line 12: the value is nothing that the channel can give"
        in result.out
    )
    assert "dentist" not in result.out
    record = run("check", "broken.csv", "--channel", channel, "--json")
    assert record.code == 1
    assert record.record["findings"][0]["kind"] == "label"
    assert record.record["plausible"] is False


def test_a_faithful_release_of_other_data_is_not_called_impossible(
    run, channel, folder
):
    lines = ["id,job", *(f"{i},weaver" for i in range(400))]
    (folder / "weavers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (
        run(
            "apply",
            channel,
            "weavers.csv",
            "woven.csv",
            "--insecure-seed",
            "1",
            "--keep",
            "all",
        ).code
        == 0
    )
    result = run("check", "woven.csv", "--channel", channel)
    assert result.code == 1
    told = " ".join(result.out.split())
    assert (
        "does NOT look like a faithful release of its channel, if the records have the frequencies of its table (400 records)"
        in told
    )
    assert (
        "(a faithful release of records with the frequencies of the table fails with a chance of at most 0.001)"
        in told
    )
    assert "--any-data" in told
    assert run("check", "woven.csv", "--channel", channel, "--any-data").code == 0
    assert (
        run(
            "check", "woven.csv", "--channel", channel, "--original", "weavers.csv"
        ).code
        == 0
    )


def test_a_file_that_is_no_table_exits_2(run, channel, released):
    with open(released, "a", encoding="utf-8") as stream:
        stream.write("601,clerk\n")
    result = run("check", "out.csv", "--channel", channel, "--original", "people.csv")
    assert result.code == 2
    assert "out.csv, line 602" in result.err


def test_suspects_are_listed_with_their_p_values(run, folder, channel):
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    outputs = json.loads(channel.read_text(encoding="utf-8"))["outputs"]
    lines = PEOPLE.splitlines()
    rows = [
        lines[0],
        *(
            line.split(",")[0] + f',"{outputs[0]}",' + line.split(",")[2]
            for line in lines[1:]
        ),
    ]
    (folder / "constant.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    result = run("check", "constant.csv", "--channel", channel)
    assert result.code == 1
    assert re.search(
        r"not plausible, p-value at most \S+e-\d\d", " ".join(result.out.split())
    )
    assert "adjusted p-value at most" in result.out


def test_columns_are_found_under_other_names(run, folder, channel):
    (folder / "people.csv").write_text(PEOPLE.replace("job", "work"), encoding="utf-8")
    run(
        "apply",
        channel,
        "people.csv",
        "out.csv",
        "--column",
        "job=work",
        "--insecure-seed",
        "1",
        "--keep",
        "all",
    )
    assert run("check", "out.csv", "--channel", channel).code == 2
    result = run(
        "check",
        "out.csv",
        "--channel",
        channel,
        "--column",
        "job=work",
        "--original",
        "people.csv",
    )
    assert result.code == 0, result.out


def test_added_columns_identities_and_ignored_ones(run, folder, channel):
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    done = run(
        "apply",
        channel,
        "people.csv",
        "out.csv",
        "--add",
        "y",
        "--identity",
        "id",
        "--insecure-seed",
        "1",
    )
    assert done.code == 0, done.err
    command = (
        "check",
        "out.csv",
        "--channel",
        channel,
        "--original",
        "people.csv",
        "--released-column",
        "y",
    )
    kept = run(*command, "--identity", "id")
    assert kept.code == 1
    assert "the useful column 'job' is in the released file" in kept.out
    assert run(*command, "--identity", "id", "--ignore", "job,town").code == 0


def test_sensitive_and_correlated_columns(run, folder, channel, released):
    text = released.read_text(encoding="utf-8").splitlines()
    (folder / "left.csv").write_text(
        "\n".join([text[0] + ",group", *(t + ",a" for t in text[1:])]), encoding="utf-8"
    )
    assert (
        "the sensitive column 'group'"
        in run("check", "left.csv", "--channel", channel).out
    )
    assert run("check", "left.csv", "--channel", channel, "--keep-sensitive").code == 0
    assert (
        run("check", "out.csv", "--channel", channel, "--correlated", "town").code == 1
    )


def test_posterior_draws_and_policies(run, folder, channel):
    (folder / "people.csv").write_text(
        PEOPLE.replace("3,smith", "3,pilot"), encoding="utf-8"
    )
    options = ("--unknown", "marginal", "--as", "posterior-draw")
    assert (
        run(
            "apply",
            channel,
            "people.csv",
            "out.csv",
            *options,
            "--insecure-seed",
            "1",
            "--keep",
            "all",
        ).code
        == 0
    )
    command = (
        "check",
        "out.csv",
        "--channel",
        channel,
        "--original",
        "people.csv",
        "--as",
        "posterior-draw",
    )
    assert run(*command, "--unknown", "marginal").code == 0
    # The manifest beside the file says what was released for unknown symbols.
    assert run(*command).code == 0
    (folder / "out.csv.manifest.json").unlink()
    refused = run(*command)
    assert refused.code == 2
    assert "does not know the symbol of" in refused.err


def test_a_public_channel(run, channel, released, folder):
    from mechdesign.channel.channel import Channel

    Channel.load(channel).save(folder / "public.json", public=True)
    result = run("check", "out.csv", "--channel", "public.json", "--json")
    assert result.code == 0, result.err
    assert result.record["frequencies"]["against"] == "any data"
    assert any("carries no table" in notice for notice in result.record["notices"])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            ("--false-alarm", "0.9"),
            "the chance of a false alarm (0.9) must be above 0 and below 0.5",
        ),
        (("--false-alarm", "few"), "--false-alarm ('few') must be a positive number"),
        (("--column", "job"), "--column 'job' must be NAME=COL"),
        (("--column", "job=a", "--column", "job=b"), "--column names 'job' twice"),
        (
            ("--as", "text"),
            "--as ('text') must be one of 'label', 'posterior-draw'",
        ),
        (
            ("--unknown", "none"),
            "unknown ('none') must be refuse, marginal, nearest or output:LABEL",
        ),
        (
            ("--missing", "drop"),
            "a release leaves no record out (--missing drop), because that would tell",
        ),
        (("--delimiter", "ab"), "delimiter ('ab') must be one ASCII character"),
        (("--identity", "person"), "there is no column 'person'"),
        (("--identity", "person"), "leave the identity (--identity) out"),
        (("--original", "none.csv"), "none.csv: there is no such file"),
        (("--ignore", "a,,b"), "contains an empty column name"),
    ],
)
def test_bad_usage_exits_2_with_one_line(run, channel, released, options, match):
    result = run("check", "out.csv", "--channel", channel, *options)
    assert result.code == 2
    assert match in result.err
    assert result.out == ""
    assert result.err.count("\n") <= 2


def test_files_that_are_not_there(run, channel, released):
    assert "there is no such file" in run("check", "none.csv", "--channel", channel).err
    assert run("check", "out.csv", "--channel", "none.json").code == 2
    assert run("check", "out.csv").code == 2


def test_logs_are_json_lines(run, channel, released):
    result = run("check", "out.csv", "--channel", channel, "--log-json")
    event = json.loads(result.err.splitlines()[-1])
    assert (event["event"], event["plausible"], event["records"]) == (
        "checked",
        True,
        600,
    )
    assert run("check", "out.csv", "--channel", channel, "--quiet").err == ""


def test_help_has_an_example(run):
    result = run("check", "--help")
    assert result.code == 0
    assert "mechdesign check released.csv --channel channel.json" in " ".join(
        result.out.split()
    )


def test_a_release_with_escaped_formulas_is_read_as_it_was_written(run, folder):
    jobs = random.Random(3).choices(["=sum(1)", "-5", "+smith", "baker"], k=400)
    notes = random.Random(4).choices(["@a", "-1", "'=b", "plain", ""], k=400)
    groups = random.Random(5).choices("ab", k=400)
    rows = [
        f"{i},{group},{job},{note}\n"
        for i, (group, job, note) in enumerate(zip(groups, jobs, notes, strict=True))
    ]
    (folder / "in.csv").write_text("id,group,job,note\n" + "".join(rows))
    how = ("--sensitive", "group", "--useful", "job", "--epsilon", "9", "-o", "c.json")
    assert run("design", "in.csv", *how).code == 0
    job = (
        "apply",
        "c.json",
        "in.csv",
        "out.csv",
        "--keep",
        "note",
        "--insecure-seed",
        "1",
        "--escape-formulas",
    )
    assert run(*job).code == 0
    released = (folder / "out.csv").read_text()
    assert "'=sum(1)" in released
    assert "'+smith" in released
    assert ",'@a\n" in released
    manifest = json.loads((folder / "out.csv.manifest.json").read_text())
    assert any("have an apostrophe before them" in note for note in manifest["notes"])
    check = (
        "check",
        "out.csv",
        "--channel",
        "c.json",
        "--original",
        "in.csv",
        "--ignore",
        "group",
    )
    unsaid = run(*check)
    assert unsaid.code == 1
    hint = "its formulas seem to be escaped: say so (--escape-formulas)"
    assert hint in " ".join(unsaid.out.split())
    assert hint in run("estimate", "out.csv", "--channel", "c.json").err
    right = run(*check, "--escape-formulas", "--json")
    assert right.code == 0, right.out
    assert run("check", "out.csv", "--channel", "c.json", "--escape-formulas").code == 0
    # What was not escaped, and what is something else, is found.
    (folder / "out.csv").write_text(released.replace(",'@a\n", ",@a\n", 1))
    wrong = run(*check, "--escape-formulas")
    assert wrong.code == 1
    assert "the column 'note' holds '@a', but the original \"'@a\"" in " ".join(
        wrong.out.split()
    )
    (folder / "out.csv").write_text(released)
    for more in ((), ("--by", "note")):
        estimate = ("estimate", "out.csv", "--channel", "c.json", *more, "--json")
        assert run(*estimate).code == 2
        found = run(*estimate, "--escape-formulas").record
        assert found["records"] == 400
        assert "=sum(1)" in json.dumps(found)
        assert "'=sum(1)" not in json.dumps(found)


def test_escaped_formulas_are_of_a_csv(run, channel, folder):
    (folder / "people.csv").write_text(PEOPLE)
    made = run(
        "apply",
        channel,
        "people.csv",
        "o.parquet",
        "--format",
        "parquet",
        "--insecure-seed",
        "1",
    )
    assert made.code == 0, made.err
    refused = run("check", "o.parquet", "--channel", channel, "--escape-formulas")
    assert refused.code == 2
    assert (
        "o.parquet: a Parquet file has no escaped formulas (--escape-formulas)"
        in refused.err
    )
