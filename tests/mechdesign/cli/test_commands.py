"""What `design` and `apply` do with good input: records, files, exit codes, texts."""

from __future__ import annotations

import csv
import json
import random
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mechdesign as md
from mechdesign.tables.reading import read_joint

MICRO = ("--sensitive", "group", "--useful", "job")
EPS = ("--epsilon", "1")
KEYS = {
    "mechanism",
    "method",
    "notion",
    "nmi",
    "mutual_information",
    "entropy",
    "upper_bound_nmi",
    "gap_nmi",
    "achieved",
    "outputs",
    "repaired",
    "fallback_from",
    "verified",
    "seconds",
    "output",
}


def test_design_prints_the_record_of_the_interface(folder, run):
    result = run("design", "records.csv", *MICRO, *EPS, "--json")
    assert result.code == 0
    record = result.record
    assert record.keys() >= KEYS
    assert set(record["achieved"]) == {"eps_l", "eps_u", "eps_ldp"}
    assert record["notion"] == {"name": "alip", "eps_l": 0.5, "eps_u": 0.5}
    assert record["verified"] is True
    assert record["output"] is None
    assert record["records"] == 12
    assert isinstance(record["outputs"], int)
    assert record["nmi"] == pytest.approx(
        record["mutual_information"] / record["entropy"]
    )
    assert {path.name for path in folder.iterdir()} == {"records.csv", "counts.csv"}


def test_design_does_what_the_python_call_does(folder, run):
    result = run(
        "design", "records.csv", *MICRO, "--eps-l", "0.4", "--eps-u", "0.6", "--json"
    )
    joint = read_joint("records.csv", sensitive="group", useful="job")
    # The command line ends a search after 30 s unless told otherwise.
    design = md.design(joint, md.ALIP(eps_l=0.4, eps_u=0.6), time_limit=30)
    assert result.record["nmi"] == design.nmi


@pytest.mark.parametrize("mechanism", ["optimal", "subset-merging", "complete-merging"])
def test_every_mechanism_writes_a_channel_that_audits(folder, run, mechanism):
    assert (
        run(
            "design",
            "records.csv",
            *MICRO,
            *EPS,
            "--mechanism",
            mechanism,
            "--output",
            "c.json",
        ).code
        == 0
    )
    joint = read_joint("records.csv", sensitive="group", useful="job")
    assert md.audit(md.Channel.load("c.json"), joint, md.ALIP(0.5, 0.5)).satisfied
    assert {path.name for path in folder.iterdir()} == {
        "records.csv",
        "counts.csv",
        "c.json",
    }


@pytest.mark.parametrize(
    ("options", "notion"),
    [
        (("--notion", "lip", *EPS), {"name": "lip", "epsilon": 1.0}),
        (("--notion", "ldp", *EPS), {"name": "ldp", "epsilon": 1.0}),
        (("--notion", "max-lift", *EPS), {"name": "max-lift", "eps_u": 1.0}),
        (("--notion", "min-lift", *EPS), {"name": "min-lift", "eps_l": 1.0}),
        (
            ("--eps-l", "inf", "--eps-u", "0.2"),
            {"name": "alip", "eps_l": "inf", "eps_u": 0.2},
        ),
        (
            ("--eps-l", "0.2", "--eps-u", "inf"),
            {"name": "alip", "eps_l": 0.2, "eps_u": "inf"},
        ),
    ],
)
def test_every_notion_is_designed_written_and_audited(folder, run, options, notion):
    assert run(
        "design",
        "counts.csv",
        "--contingency",
        *options,
        "--output",
        "c.json",
        "--json",
    ).record["notion"] == (notion)
    audit = run("audit", "c.json", "--json")
    assert audit.code == 0
    assert audit.record["satisfied"] is True
    assert audit.record["notion"] == notion


def test_the_ways_to_write_a_table_agree(folder, run):
    (folder / "long.csv").write_text("job,group,n\n" + LONG, encoding="utf-8")
    (folder / "p.csv").write_text(
        "group,clerk,baker,smith,weaver\na,.25,.1,.1,.1\nb,.1,.05,.25,.05\n",
        encoding="utf-8",
    )
    (folder / "wide.csv").write_text(
        "group,clerk,baker,smith,weaver\na,25,10,10,10\nb,10,5,25,5\n", encoding="utf-8"
    )
    frame = pa.table(
        {"job": ["clerk", "clerk", "baker"], "group": ["a", "b", "a"], "n": [1, 2, 3]}
    )
    pq.write_table(frame, folder / "t.parquet")
    parquet = run("design", "t.parquet", *MICRO, "--weight", "n", *EPS, "--json").record
    assert parquet["records"] == 6
    nmi = {
        run("design", *arguments, *EPS, "--json").record["nmi"]
        for arguments in (
            ("long.csv", *MICRO, "--weight", "n"),
            ("wide.csv", "--contingency"),
            ("p.csv", "--probabilities"),
        )
    }
    assert max(nmi) - min(nmi) < 1e-9


LONG = "".join(
    f"{job},{group},{n}\n"
    for job, pair in {
        "clerk": (25, 10),
        "baker": (10, 5),
        "smith": (10, 25),
        "weaver": (10, 5),
    }.items()
    for group, n in zip("ab", pair, strict=True)
)


def test_crossed_columns_and_names_with_commas(folder, run):
    text = 'group,"job, main",town\n' + "".join(
        f"{g},{j},{t}\n"
        for g in "ab"
        for j in "xyz"
        for t in "NS"
        for _ in range(1 + (g == "a") * (j == "x"))
    )
    (folder / "t.csv").write_text(text, encoding="utf-8")
    whole = run(
        "design",
        "t.csv",
        "--sensitive",
        "group",
        "--useful",
        "job, main",
        *EPS,
        "--output",
        "c.json",
    )
    assert whole.code == 0
    assert md.Channel.load("c.json").useful.columns == ("job, main",)
    crossed = run(
        "design",
        "t.csv",
        "--sensitive",
        "group",
        "--useful",
        '"job, main",town',
        *EPS,
        "-o",
        "d.json",
    )
    assert crossed.code == 0, crossed.err
    assert md.Channel.load("d.json").useful.columns == ("job, main", "town")


def test_labels_stay_as_written(folder, run):
    (folder / "t.csv").write_text(
        "g,x\na,01234\nb,NA\na,?\nb,é\na,01234\n", encoding="utf-8"
    )
    free = ("--notion", "max-lift", "--epsilon", "600")
    assert (
        run(
            "design",
            "t.csv",
            "--sensitive",
            "g",
            "--useful",
            "x",
            *free,
            "-o",
            "c.json",
        ).code
        == 0
    )
    assert set(md.Channel.load("c.json").outputs) == {"01234", "NA", "?", "é"}


def test_missing_cells_as_a_symbol_or_dropped(folder, run):
    (folder / "t.csv").write_text("g,x\na,1\nb,\na,2\nb,1\n", encoding="utf-8")
    options = ("--sensitive", "g", "--useful", "x", *EPS, "--json")
    assert (
        run("design", "t.csv", *options, "--missing", "symbol").record["records"] == 4
    )
    dropped = run("design", "t.csv", *options, "--missing", "drop")
    assert dropped.record["records"] == 3
    assert "dropped" in dropped.err


def test_one_sensitive_symbol_leaves_nothing_to_protect(folder, run):
    (folder / "t.csv").write_text("g,x\na,1\na,2\n", encoding="utf-8")
    result = run("design", "t.csv", "--sensitive", "g", "--useful", "x", *EPS)
    assert result.code == 2
    assert (
        "the sensitive column 'g' has a single symbol ('a'): there is nothing to protect"
        in result.err
    )


def test_an_existing_file_is_overwritten_only_by_force(channel, folder, run):
    before = channel.read_bytes()
    options = ("records.csv", *MICRO, "--epsilon", "3", "--output", channel)
    assert run("design", *options).code == 2
    assert channel.read_bytes() == before
    assert run("design", *options, "--force").code == 0
    assert channel.read_bytes() != before


def test_a_public_channel_discloses_no_counts(folder, run):
    assert (
        run(
            "design", "records.csv", *MICRO, *EPS, "--output", "c.json", "--public"
        ).code
        == 0
    )
    record = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    assert "joint" not in record
    shown = run("show", "c.json", "--json")
    assert shown.record["codebook"] is None
    assert "No codebook" in run("show", "c.json").out
    audit = run("audit", "c.json", "--table", "records.csv", "--json")
    assert audit.code == 0, audit.err
    assert audit.record["satisfied"]


def test_the_report_says_what_is_guaranteed_and_about_what(folder, run):
    out = run("design", "records.csv", *MICRO, *EPS, "--output", "c.json", "--full").out
    for words in (
        "What is promised",
        "alip (eps_l 0.5, eps_u 0.5)",
        "0.60653 to 1.6488 times as probable",
        "12 records",
        "0 of 8 cells zero",
        "not about the population",
        "the released column alone",
        "lowest after highest after",
        "When the promise does not hold",
        "Every channel with this promise has local differential privacy",
        "Verified in exact arithmetic",
        "mechdesign apply c.json",
    ):
        assert words in " ".join(out.split()), words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--notion", "ldp"),
            "No released value is more than 2.7183 times as likely under one value of group as under another",
        ),
        (("--notion", "max-lift"), "at most 2.7183 times as probable"),
        (("--notion", "min-lift"), "at least 0.36787 times as probable"),
    ],
)
def test_the_report_speaks_of_the_notion_at_hand(folder, run, options, words):
    assert words in " ".join(
        run("design", "records.csv", *MICRO, *EPS, *options, "--full").out.split()
    )


def test_apply_replaces_the_column_and_nothing_else(channel, folder, run):
    with (folder / "records.csv").open(encoding="utf-8") as stream:
        rows = [[r["id"], r["town"], r["job"]] for r in csv.DictReader(stream)]
    with (folder / "in.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["id", "town", "job"], *rows])
    result = run("apply", channel, "in.csv", "out.csv", "--json", "--keep", "all")
    assert result.code == 0
    assert result.record["records"] == 12
    assert result.record["columns"] == ["job"]
    with (folder / "out.csv").open(newline="", encoding="utf-8") as stream:
        released = list(csv.reader(stream))
    assert released[0] == ["id", "town", "job"]
    assert [row[:2] for row in released[1:]] == [row[:2] for row in rows]
    assert {row[2] for row in released[1:]} <= set(md.Channel.load(channel).outputs)


def test_apply_lets_the_sensitive_column_stay_only_when_told(channel, folder, run):
    assert run("apply", channel, "records.csv", "out.csv", "--keep", "all").code == 2
    assert not (folder / "out.csv").exists()
    kept = run(
        "apply", channel, "records.csv", "out.csv", "--keep-sensitive", "--keep", "all"
    )
    assert kept.code == 0
    assert "12 records written to out.csv" in kept.out
    assert (
        (folder / "out.csv").read_text(encoding="utf-8").startswith("id,group,job,town")
    )


def test_apply_repeats_itself_for_a_seed_and_for_a_job_but_another_job_draws_anew(
    channel, folder, run
):
    rows = "".join(random.Random(1).choices(("clerk\n", "smith\n"), k=1000))
    (folder / "in.csv").write_text("job\n" + rows, encoding="utf-8")
    run(
        "design",
        "records.csv",
        *MICRO,
        "--epsilon",
        "0.6",
        "--output",
        channel,
        "--force",
    )
    texts = []
    seed, other = ("--insecure-seed", "7"), ("--job", "other/job.json", "--fresh-draw")
    (folder / "other").mkdir()
    for k, options in enumerate((seed, seed, (), (), other)):
        assert run("apply", channel, "in.csv", f"out{k}.csv", *options).code == 0
        texts.append((folder / f"out{k}.csv").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    assert len(set(texts)) == 3


def test_apply_finds_a_column_under_another_name(folder, run):
    assert (
        run("design", "counts.csv", "--contingency", *EPS, "--output", "c.json").code
        == 0
    )
    (folder / "in.csv").write_text("id,job\n1,clerk\n", encoding="utf-8")
    assert "'useful'" in run("apply", "c.json", "in.csv", "out.csv").err
    assert (
        run("apply", "c.json", "in.csv", "out.csv", "--column", "useful=job").code == 0
    )


def test_apply_to_parquet(channel, folder, run):
    pq.write_table(
        pa.table({"id": [1, 2], "job": ["clerk", "smith"]}), folder / "in.parquet"
    )
    assert run("apply", channel, "in.parquet", "out.parquet", "--keep", "all").code == 0
    released = pq.read_table(folder / "out.parquet")
    assert released["id"].to_pylist() == [1, 2]


def test_tables_are_read_as_they_are_written(folder, run):
    """Delimiter, quote, encoding and compression make no difference to what is computed."""
    import gzip

    rows = [
        line.split(",") for line in (folder / "records.csv").read_text().splitlines()
    ]
    text = "\n".join(";".join(f"'{cell}'" for cell in row) for row in rows).replace(
        "smith", "smïth"
    )
    (folder / "other.csv.gz").write_bytes(gzip.compress(text.encode("cp1252")))
    plain = (folder / "records.csv").read_text().replace("smith", "smïth")
    (folder / "plain.csv").write_text(plain, encoding="utf-8")
    how = ("--delimiter", ";", "--quote", "'", "--encoding", "cp1252")
    typed = ("--sensitive", "group", "--useful", "job", "--epsilon", "1")
    first = run("design", "plain.csv", *typed, "--output", "a.json")
    again = run(
        "design",
        "other.csv.gz",
        *typed,
        *how,
        "--output",
        "b.json",
        "--report",
        "r.json",
    )
    assert (first.code, again.code) == (0, 0), again.err
    a, b = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("a.json", "b.json")
    )
    assert (a["rows"], a["joint"]) == (b["rows"], b["joint"])
    line = json.loads((folder / "r.json").read_text(encoding="utf-8"))["commands"][0][
        "line"
    ]
    words = shlex.split(line)
    at = words.index("--delimiter")
    assert tuple(words[at : at + 6]) == how
    for command in ("audit", "measure"):
        result = run(command, "a.json", "--table", "other.csv.gz", *how)
        assert result.code == 0, result.err
    assert (
        run(
            "compare",
            "other.csv.gz",
            *typed[:4],
            *how,
            "--epsilons",
            "1",
            "--mechanisms",
            "optimal",
        ).code
        == 0
    )


def test_text_options_without_a_table_are_refused(folder, run):
    run(
        "design",
        "records.csv",
        "--sensitive",
        "group",
        "--useful",
        "job",
        "--epsilon",
        "1",
        "-o",
        "a.json",
    )
    result = run("audit", "a.json", "--delimiter", ";")
    assert result.code == 2
    assert "describe a table: give --table TABLE too" in result.err
