"""The ledger adds up what a column was released through in cells."""

from __future__ import annotations

import pytest

ROWS = [f"h{h},{d},{h * d / 3 + d % 2},{h}" for h in range(1, 6) for d in range(1, 4)]

MEAN = (
    "--query",
    "mean",
    "--group-by",
    "day",
    "--range",
    "0,10",
    "--individual",
    "house",
    "--epsilon",
    "2",
)


@pytest.fixture
def release(folder, run):
    """``release("a.csv", *options)``: the record of a release, or the message of its refusal."""

    def write(name, rows):
        (folder / name).write_text(
            "\n".join(["house,day,kwh,other", *rows]) + "\n", encoding="utf-8"
        )

    write("a.csv", ROWS)
    write("sorted.csv", ROWS[::-1])
    write("grown.csv", [*ROWS, "h9,1,2.5,1"])
    write("other.csv", [f"k{row}" for row in ROWS])

    def released(source, *options, verb="quantize", column="kwh"):
        named = ("--column", column) if verb == "quantize" else ()
        done = run(verb, *source, "out.csv", *named, *options, "--force", "--json")
        assert (done.code == 0) == (not done.err.startswith("mechdesign: error"))
        return done.record if done.code == 0 else done.err

    return released


def test_ways_of_releasing_one_column_multiply(release, run):
    """Outputs of all ways multiply (Farokhi 2019, Theorem 6): 3 answers of 4 outputs each time are 6 bits more."""
    first = release(["a.csv"], *MEAN)
    assert (first["releases"], first["releases_epsilon"], first["total_epsilon"]) == (
        1,
        6,
        6,
    )
    again = release(
        ["sorted.csv"], *MEAN
    )  # the same records, the same answers: nothing new
    assert (again["releases"], again["releases_epsilon"]) == (1, 6)
    other = release(["a.csv"], *MEAN, "--layout", "levels", "--outside", "clip")
    assert (other["releases"], other["releases_epsilon"]) == (2, 12)
    # A file that has grown has other means, even through the same thresholds.
    assert release(["grown.csv"], *MEAN)["releases"] == 3
    assert release(["other.csv"], *MEAN)["releases"] == 1
    houses = (
        "--range",
        "0,10",
        "--epsilon",
        "1",
        "--keep",
        "house",
        "--keep-order",
    )  # which tell of it
    assert release(["a.csv"], *houses, column="other")["releases"] == 1
    listed = run("releases", "--json").record["releases"]
    assert [entry["channels"][0]["columns"] for entry in listed] == [["kwh"]] * 5 + [
        ["other"]
    ]
    told = " ".join(run("releases", "total", "a.csv").out.split())
    assert (
        "'kwh' was released in 3 ways in cells: at most 18 bits of one individual"
        in told
    )
    assert (
        "'other' was released in 1 way in cells: at most 1 bits of one individual"
        in told
    )
    text = run("quantize", "a.csv", "out.csv", "--column", "kwh", *MEAN, "--force").out
    assert (
        "With 2 earlier releases of kwh of these records: 18 bits of one individual in all."
        in text
    )


def test_records_of_several_files_add_up(folder, release, run):
    """One individual's records in two files through the same cells: 1 and 2 answers of 4 outputs, 6 bits in all."""
    (folder / "part.csv").write_text(
        "\n".join(["house,day,kwh,other", *ROWS[::3]]) + "\n", encoding="utf-8"
    )
    rest = [row for row in ROWS if row not in ROWS[::3]]
    (folder / "rest.csv").write_text(
        "\n".join(["house,day,kwh,other", *rest]) + "\n", encoding="utf-8"
    )
    one = ("--range", "0,10", "--epsilon", "2", "--individual", "house", "--keep-order")
    assert release(["part.csv"], *one)["releases_epsilon"] == 2
    assert release(["rest.csv"], *one)["releases_epsilon"] == 4
    assert "at most 6 bits of one individual" in " ".join(
        run("releases", "total", "a.csv").out.split()
    )
    again = release(["part.csv"], *one)
    assert (again["releases"], again["releases_epsilon"]) == (1, 2)


def test_files_that_share_records_are_charged_in_full(release):
    """Whether a file has grown, or has other records of an individual, samples of them cannot prove."""
    one = ("--range", "0,10", "--epsilon", "2")
    assert release(["a.csv"], *one)["releases_epsilon"] == 2
    assert release(["grown.csv"], *one)["releases_epsilon"] == 4
    assert release(["a.csv"], *one, "--thresholds", "1,2,4")["releases_epsilon"] == 6


def test_a_mechanism_file_is_charged_too(release, run):
    release(["a.csv"], *MEAN)
    release(
        ["a.csv"],
        *MEAN,
        "--layout",
        "uniform",
        "--outside",
        "clip",
        "--mechanism",
        "m.json",
    )
    applied = release(["m.json", "sorted.csv"], "--identity", "house", verb="apply")
    assert (applied["releases"], applied["releases_epsilon"]) == (2, 12)
    assert (
        "With 1 earlier release of kwh"
        in run("apply", "m.json", "a.csv", "p.csv", "--identity", "house").out
    )
    seeded = release(
        ["m.json", "a.csv"], "--identity", "house", "--insecure-seed", "1", verb="apply"
    )
    assert (seeded["releases"], seeded["releases_epsilon"]) == (1, None)


def test_fewer_answers_by_another_count_do_not_lower_the_charge(release):
    """The same answers are counted as often as an individual ever was said to be in them."""
    assert release(["a.csv"], *MEAN)["releases_epsilon"] == 6
    assert release(["a.csv"], *MEAN[:6], *MEAN[8:])["releases_epsilon"] == 6


def test_comparing_and_checking_release_nothing(release, run):
    run(
        "quantize",
        "a.csv",
        "curve.csv",
        "--column",
        "kwh",
        *MEAN[:-2],
        "--compare",
        "1,2",
    )
    release(["a.csv"], *MEAN)
    run(
        "check", "out.csv", "--channel", "out.csv.mechanism.json", "--original", "a.csv"
    )
    assert len(run("releases", "--json").record["releases"]) == 1


@pytest.mark.parametrize("source", ["half.csv", "parts"])
def test_a_last_line_without_an_end_is_noted(release, run, folder, source):
    """Answers of groups are told of, too, whether the table is a file or a folder."""
    (folder / "parts").mkdir()
    (folder / "parts" / "z.csv").write_bytes((folder / "a.csv").read_bytes())
    halves = (folder / "half.csv", folder / "parts" / "b.csv")
    for half in halves:
        half.write_text(
            (folder / "other.csv").read_text().rstrip("\n"), encoding="utf-8"
        )
    assert (
        "the last line of the input has no end"
        in release([source], *MEAN)["notices"][-1]
    )
    job = ("strict.csv", "--identity", "house", "--strict")
    strict = run("apply", "out.csv.mechanism.json", source, *job)
    assert (strict.code, (folder / "strict.csv").exists()) == (2, False)
    assert (
        "a note, which --strict makes an error: the last line of the input"
        in " ".join(strict.err.split())
    )
    for half in halves:
        half.write_text((folder / "other.csv").read_text(), encoding="utf-8")
    assert run("apply", "out.csv.mechanism.json", source, *job).code == 0


@pytest.mark.filterwarnings("default::mechdesign.core.errors.Notice")
@pytest.mark.parametrize("source", ["hides.csv", "parts"])
def test_records_hidden_within_quotes_are_noted(release, run, folder, source):
    rows = (folder / "other.csv").read_text().splitlines()
    # Two lone quotes, five records apart, hide those between them.
    rows[4] = rows[4].rpartition(",")[0] + ',"' + rows[4].rpartition(",")[2]
    rows[9] += '"'
    (folder / "parts").mkdir()
    for place in (folder / "hides.csv", folder / "parts" / "b.csv"):
        place.write_text("\n".join(rows) + "\n", encoding="utf-8")
    release(["a.csv"], *MEAN)
    job = (
        "apply",
        "out.csv.mechanism.json",
        source,
        "strict.csv",
        "--identity",
        "house",
    )
    noted = run(*job, "--dry-run")
    assert (
        noted.err.count("line 5: the cell of 'other' holds 4 lines with as many cells")
        == 1
    )
    strict = run(*job, "--strict")
    assert (strict.code, (folder / "strict.csv").exists()) == (2, False)
    assert "a note, which --strict makes an error:" in strict.err
