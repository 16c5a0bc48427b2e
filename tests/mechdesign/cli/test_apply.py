"""What `apply` can do beyond replacing a column, and every way in which it refuses."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import random
import subprocess
import sys

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mechdesign.jobs.ledger import Ledger

SEED = ("--insecure-seed", "1")


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture
def people(folder):
    (folder / "in.csv").write_text(
        "id,job,town,note\n1,clerk,N,a\n2,smith,S,\n3,baker,N,c\n4,weaver,S,d\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def towns(folder, designed):
    """A channel for another column."""
    return folder / designed("town", 3.0)


def outputs_of(path):
    return set(json.loads(path.read_text(encoding="utf-8"))["outputs"])


def test_two_channels_in_one_pass_draw_what_each_draws_alone(
    channel, towns, people, run
):
    both = run(
        "apply", channel, "in.csv", "both.csv", "--also", towns, *SEED, "--keep", "all"
    )
    assert both.code == 0
    assert "the columns job, town are released" in both.out
    assert "together they can tell more than either" in both.err
    assert run("apply", channel, "in.csv", "job.csv", *SEED, "--keep", "all").code == 0
    assert run("apply", towns, "in.csv", "town.csv", *SEED, "--keep", "all").code == 0
    together, job, town = (
        rows_of((people / f"{n}.csv").read_text()) for n in ("both", "job", "town")
    )
    assert [
        [r[0], r[1], t[2], r[3]] for r, t in zip(job, town, strict=True)
    ] == together


def test_an_added_column_leaves_the_original_and_says_that_this_is_no_release(
    channel, people, run
):
    result = run("apply", channel, "in.csv", "out.csv", "--add", "published", *SEED)
    assert result.code == 0
    assert "stays beside the released column: no release yet" in result.err
    before, after = (
        rows_of((people / "in.csv").read_text()),
        rows_of((people / "out.csv").read_text()),
    )
    assert [row[:-1] for row in after] == before
    assert after[0][-1] == "published"
    assert {row[-1] for row in after[1:]} <= outputs_of(channel)


def test_a_posterior_draw_is_a_symbol(channel, people, run):
    assert (
        run(
            "apply",
            channel,
            "in.csv",
            "out.csv",
            "--as",
            "posterior-draw",
            *SEED,
            "--keep",
            "all",
        ).code
        == 0
    )
    released = {row[1] for row in rows_of((people / "out.csv").read_text())[1:]}
    assert released <= {"clerk", "smith", "baker", "weaver"}


def test_policies_and_the_internal_manifest(channel, people, run):
    (people / "in.csv").write_text('job\nclerk\n""\npilot\n', encoding="utf-8")
    label = min(outputs_of(channel))
    options = (
        "--unknown",
        f"output:{label}",
        "--missing",
        "marginal",
        "--internal-manifest",
        "int.json",
        *SEED,
    )
    assert run("apply", channel, "in.csv", "out.csv", *options).code == 0
    released = [row[0] for row in rows_of((people / "out.csv").read_text())[1:]]
    assert released[2] == label
    internal = json.loads((people / "int.json").read_text(encoding="utf-8"))[
        "released"
    ][0]
    (counts,) = internal["counts"]
    assert (counts["empty_cells"], counts["unknown_symbols"]) == (1, 1)
    assert internal["channel_file"] == hashlib.sha256(channel.read_bytes()).hexdigest()
    assert sum(entry["records"] for entry in counts["outputs"]) == 3
    public = (people / "out.csv.manifest.json").read_text(encoding="utf-8")
    assert json.loads(public)["insecure_seed"] is True
    assert "counts" not in json.loads(public)["released"][0]


def test_any_delimiter_quote_encoding_and_compression(channel, folder, run):
    text = "id;job;é\r\n1;'clerk';'a;b'\r\n2;smith;ü\r\n"
    (folder / "in.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    options = ("--delimiter", ";", "--quote", "'", "--encoding", "latin-1", *SEED)
    assert (
        run("apply", channel, "in.csv.gz", "out.csv", *options, "--keep", "all").code
        == 0
    )
    written = (folder / "out.csv").read_bytes().decode("latin-1")
    assert written.startswith("id;job;é\r\n1;")
    assert "'a;b'\r\n2;" in written
    assert (
        run(
            "apply", channel, "in.csv.gz", "again.csv.gz", *options, "--keep", "all"
        ).code
        == 0
    )
    assert (
        gzip.decompress((folder / "again.csv.gz").read_bytes()).decode("latin-1")
        == written
    )


def test_a_tab_can_be_typed(channel, folder, run):
    (folder / "in.tsv").write_text("id\tjob\n1\tclerk\n")
    for k, tab in enumerate(("tab", "\\t", "\t")):
        assert (
            run(
                "apply",
                channel,
                "in.tsv",
                f"{k}.tsv",
                "--delimiter",
                tab,
                *SEED,
                "--keep",
                "all",
            ).code
            == 0
        )
        assert (folder / f"{k}.tsv").read_text().startswith("id\tjob\n1\t")


def test_a_tsv_of_parquet_has_tabs(channel, people, run, refused):
    pq.write_table(pyarrow.csv.read_csv(people / "in.csv"), people / "in.parquet")
    command = ["apply", channel, "in.parquet", "out.tsv", "--format", "csv", *SEED]
    message = refused(*command)
    assert "the output has ',' between cells, and .tsv says tabs" in message
    assert "ask for tabs (--delimiter tab)" in message
    assert not (people / "out.tsv").exists()
    options = ["--delimiter", "tab", "--keep", "id"]
    assert run(*command, *options).code == 0
    assert (people / "out.tsv").read_text().startswith("id\tjob\n1\t")


def test_standard_input_and_output(ready, channel, people):
    command = [*ready.program, "apply", channel]
    data = (people / "in.csv").read_bytes()
    streamed = subprocess.run(
        [*command, "-", "-"],
        input=data,
        capture_output=True,
        check=True,
    )
    assert streamed.stderr == b""
    subprocess.run(
        [*command, "in.csv", "out.csv"],
        check=True,
        capture_output=True,
    )
    assert (
        streamed.stdout == (people / "out.csv").read_bytes()
    )  # the same data, so the same draws
    bad = subprocess.run(
        [*command, "-", "-"],
        input=data + b"5,pilot,N,\n",
        capture_output=True,
    )
    assert bad.returncode == 2
    assert bad.stdout == b""
    assert (
        b"standard input, line 6: the channel does not know the symbol of" in bad.stderr
    )


def test_the_same_data_get_the_same_draws_and_a_second_draw_must_be_asked_for(
    channel, people, run
):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    assert run("apply", channel, "in.csv", "2.csv").code == 0
    assert (people / "1.csv").read_bytes() == (people / "2.csv").read_bytes()
    again = run("apply", channel, "in.csv", "2.csv")
    assert (again.code, "complete already in 2.csv" in again.out) == (0, True)
    key = Ledger().key_path
    secret = key.read_text().split(":")[1].strip()
    files = [
        p
        for folder in (people, key.parent)
        for p in folder.rglob("*")
        if p.is_file() and p != key
    ]
    assert not any(secret.encode() in path.read_bytes() for path in files)
    assert secret not in again.out + again.err
    fresh = run("apply", channel, "in.csv", "3.csv", "--fresh-draw")
    assert fresh.code == 0
    assert "independent releases of a record can tell far more than each" in fresh.err
    assert json.loads((people / "3.csv.manifest.json").read_text())["draw"] == 1


def test_another_identity_would_be_a_second_draw(channel, people, run, refused):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    message = refused("apply", channel, "in.csv", "2.csv", "--identity", "id")
    assert "released through this channel before (to " in message
    assert "known by their row number), and would be drawn a second time" in message
    accepted = run(
        "apply", channel, "in.csv", "2.csv", "--identity", "id", "--fresh-draw"
    )
    assert accepted.code == 0
    assert (
        "the same records have been released before with 1 other draw" in accepted.err
    )
    assert "all 2 draws of a record together make any value of" in accepted.err
    assert json.loads((people / "2.csv.manifest.json").read_text())["draw"] == 1


def test_identified_records_keep_their_draw_from_night_to_night(channel, people, run):
    assert (
        run(
            "apply", channel, "in.csv", "1.csv", "--identity", "id", "--keep", "all"
        ).code
        == 0
    )
    first = rows_of((people / "1.csv").read_text())
    lines = (people / "in.csv").read_text().splitlines(keepends=True)
    (people / "next.csv").write_text(
        "".join([lines[0], "5,clerk,N,\n", *reversed(lines[1:])])
    )
    assert (
        run(
            "apply", channel, "next.csv", "2.csv", "--identity", "id", "--keep", "all"
        ).code
        == 0
    )
    second = rows_of((people / "2.csv").read_text())
    assert sorted(first[1:]) == sorted(row for row in second[1:] if row[0] != "5")


def test_the_same_records_among_others_are_not_drawn_anew_by_row_number(
    channel, people, run, refused
):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    (people / "next.csv").write_text((people / "in.csv").read_text() + "5,clerk,N,\n")
    message = refused("apply", channel, "next.csv", "2.csv")
    assert (
        "about 80 % of these records have been released through this channel before"
        in message
    )
    assert "name what identifies a record (--identity COL)" in message


def test_parquet_with_two_forms_of_output(channel, people, run):
    pq.write_table(pyarrow.csv.read_csv(people / "in.csv"), people / "in.parquet")
    assert (
        run(
            "apply",
            channel,
            "in.parquet",
            "out.parquet",
            "--codebook",
            "book.csv",
            "--keep",
            "all",
        ).code
        == 0
    )
    table = pq.read_table(people / "out.parquet")
    assert set(table["job"].to_pylist()) <= outputs_of(channel)
    assert table["id"].to_pylist() == [1, 2, 3, 4]
    assert rows_of((people / "book.csv").read_text())[0][:2] == ["output", "job"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--compress", "bzip2"), ["--compress 'bzip2' must be gzip or zstd"]),
        (("--delimiter", ";;"), ["delimiter (';;') must be one ASCII character"]),
        (("--encoding", "klingon"), ["encoding ('klingon') must be a text encoding"]),
        (
            ("--unknown", "ignore"),
            ["unknown ('ignore') must be refuse, marginal, nearest or output:LABEL"],
        ),
        (("--missing", "output:nobody"), ["'nobody' is no output of the channel"]),
        (("--normalise", "utf8"), ["normalise ('utf8') must be one of"]),
        (("--as", "noise"), ["--as ('noise') must be one of"]),
        (
            ("--as", "posterior-draw", "--codebook", "b.csv"),
            ["a codebook says what labels mean"],
        ),
        (("--correlated", "twon"), ["there is no column 'twon'; did you mean 'town'"]),
        (
            ("--correlated", "town,note"),
            ["the correlated column 'town', 'note' would stay", "--keep-sensitive"],
        ),
        (
            ("--identity", "job"),
            ["'job' is useful or sensitive and cannot identify records"],
        ),
        (
            ("--identity", "town"),
            [
                "in.csv, line ",
                "the identifier belongs to records with different symbols of 'job'",
            ],
        ),
        (("--identity", "note"), ["line 3", "the column 'note' is empty"]),
        (("--add", "town"), ["another column 'town'"]),
        (("--also", "channel.json"), ["two channels release the column 'job'"]),
        (("--also", "nowhere.json"), ["nowhere.json: there is no such file"]),
        (("--ledger", "."), [". is a folder; give the name of a file for the ledger"]),
        (("--job", "in.csv"), ["in.csv is not a ledger (no SQLite file)"]),
        (
            ("--insecure-seed", "1", "--job", "j.json"),
            ["an insecure seed is for tests and has no ledger"],
        ),
        (
            ("--insecure-seed", "1", "--fresh-draw"),
            ["without a ledger every draw is fresh"],
        ),
        (("--manifest", "in.csv"), ["in.csv"]),
        (("--manifest", "out.csv"), ["would be written twice"]),
        (("--internal-manifest", "out.csv.manifest.json"), ["would be written twice"]),
    ],
)
def test_refusals(channel, people, refused, options, words):
    message = refused("apply", channel, "in.csv", "out.csv", *options, "--keep", "all")
    assert all(word in message for word in words), message


def test_json_and_data_do_not_share_standard_output(channel, people, refused):
    assert "would mix" in refused("apply", channel, "in.csv", "-", "--json")


def test_a_key_that_others_can_read(channel, people, run, refused):
    assert run("apply", channel, "in.csv", "1.csv").code == 0
    key = Ledger().key_path
    key.chmod(0o644)
    assert "chmod 600" in refused("apply", channel, "in.csv", "2.csv")
    key.chmod(0o600)
    key.rename(people / "elsewhere")
    assert "nobody can tell which data have been released" in refused(
        "apply", channel, "in.csv", "2.csv"
    )


def test_a_truncated_gzip(channel, people, refused):
    packed = gzip.compress((people / "in.csv").read_bytes() * 50)
    (people / "in.csv.gz").write_bytes(packed[: len(packed) // 2])
    message = refused("apply", channel, "in.csv.gz", "out.csv")
    assert "in.csv.gz" in message


def test_ctrl_c_after_the_end_does_not_deny_what_was_written(
    channel, people, run, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mechdesign.report.wording.count", interrupted)
    result = run("apply", channel, "in.csv", "out.csv")
    assert (result.code, result.err) == (0, "")
    assert len(rows_of((people / "out.csv").read_text())) == 5


def test_another_delimiter_is_named_for_releases_too(channel, folder, refused):
    (folder / "in.csv").write_text("id;job\n1;clerk\n")
    said = refused("apply", channel, "in.csv", "out.csv", "--insecure-seed", "1")
    assert (
        "its cells seem to be separated by semicolons: say so (--delimiter ';')" in said
    )


def test_a_job_by_identifier_is_light(channel, folder):
    """It loads no pandas (40 MB, a third of a second), as pyarrow does for Python values; memory is the system's."""
    pytest.importorskip("pandas")
    columns = {
        "id": ["a", "b", "c"],
        "n": [1, None, 3],
        "x": [0.5, None, 2.0],
        "job": ["clerk", "clerk", None],
    }
    pq.write_table(pyarrow.table(columns), folder / "in.parquet", row_group_size=2)
    arguments = [
        "apply",
        str(channel),
        "in.parquet",
        "out.parquet",
        "--identity",
        "id",
        "--missing",
        "marginal",
        *SEED,
    ]
    code = "import sys, mechdesign.cli as c; code = c.program(); import pyarrow as pa; "
    code += (
        "print(code, pa.default_memory_pool().backend_name, 'pandas' in sys.modules)"
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "ARROW_DEFAULT_MEMORY_POOL"
    }
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "0 system False", done.stdout
    assert pq.read_table("out.parquet").num_rows == 3


def test_what_all_kept_columns_disclose_together_is_printed(run, folder, channel):
    """A third of the secret is in each column; no two have it, all together do."""
    draw = random.Random(3)
    rows = ["group,job,left,middle,right"]
    for _ in range(900):
        left = draw.randrange(2)
        middle = draw.randrange(2)
        right = draw.randrange(2)
        group = "ab"[(left + middle + right) % 2]
        job = draw.choice(["clerk", "baker"])
        rows.append(f"{group},{job},{left},{middle},{right}")
    (folder / "wide.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    kept = ("--keep", "all", "--drop", "group", *SEED)
    done = run("apply", channel, "wide.csv", "o.csv", *kept)
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert (
        "note: the kept columns together guess 'group' right for 100 % of the" in said
    )
    assert "release these columns too (design --release)" in said
    record = run(
        "apply", channel, "wide.csv", "o.csv", *kept, "--force", "--json"
    ).record
    assert record["kept_guess"]["right"] == 1.0
    named = run("apply", channel, "wide.csv", "p.csv", "--keep", "left,right", *SEED)
    assert named.code == 0, named.err
    assert "together guess" not in named.err
