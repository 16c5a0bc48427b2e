"""`design --objective`: what it writes and says, and what it refuses."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.cli import main

COUNTS = "s,10,20,35,50\nx,90,70,30,10\ny,50,80,20,15\nz,40,30,35,16\n"
BASE = ["--contingency", "--useful", "hours", "--notion", "ldp", "--epsilon", "0.5"]
COSTS = ",10,20,35,50\n10,0,1,2,3\n20,1,0,1,2\n35,2,1,0,1\n50,3,2,1,0\n"


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return str(path)


def _costs(tmp_path: Path, text: str = COSTS) -> str:
    path = tmp_path / "costs.csv"
    path.write_text(text)
    return str(path)


def test_pairs_that_are_never_released_are_counted(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--objective", "truth", "--forbid", "10:50"]
    assert main(["design", table, *BASE, *asked, "--full"]) == 0
    one = capsys.readouterr().out
    assert "1 pair of symbols is never released one for the other" in one
    assert main(["design", table, *BASE, *asked, "--forbid", "10:35", "--full"]) == 0
    two = capsys.readouterr().out
    assert "2 pairs of symbols are never released one for the other" in two


def test_truth_with_kept_frequencies(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = str(tmp_path / "c.json")
    asked = [
        "--objective",
        "truth",
        "--keep-frequencies",
        "--stay",
        "0.1",
        "--stay",
        "20=0.3",
        "--forbid",
        "10:50",
    ]
    assert main(["design", table, *BASE, *asked, "--output", channel, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["objective"] == made["mechanism"] == "truth"
    assert made["nmi"] > 0.0
    assert made["upper_bound_nmi"] is made["gap_nmi"] is None
    assert 0.0 <= made["cost"] - made["cost_lower_bound"] <= 1e-9
    assert made["truth"] == pytest.approx(1.0 - made["cost"])
    assert made["frequency_deviation"] <= 1e-12
    loaded = Channel.load(channel)
    assert json.loads(Path(channel).read_text())["version"] == 2
    assert loaded.outputs == ("10", "20", "35", "50")
    assert loaded.record.objective is not None
    assert loaded.record.objective.stay == {
        "10": "1/10",
        "20": "3/10",
        "35": "1/10",
        "50": "1/10",
    }
    assert loaded.record.objective.forbid == (("10", "50"),)
    assert loaded.rows[0][3] == 0
    assert main(["audit", channel]) == 0
    line = shlex.split(str(loaded.record.provenance["command"]))
    assert [line[line.index(option) + 1] for option in ("--objective", "--forbid")] == [
        "truth",
        "10:50",
    ]
    assert line.count("--stay") == 2


def test_the_text_says_what_stays(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", table, *BASE, "--objective", "truth"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "of the records are released with their own hours" in out
    assert "the frequencies and means of hours (expected, within" in out
    assert "was not computed" not in out
    free = ["--objective", "truth", "--free-frequencies"]
    assert main(["design", table, *BASE, *free]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the released values do not have the frequencies of the table" in out
    assert "Largest change of a share: hours" in out
    assert (
        main(
            ["design", table, *BASE, "--objective", "distance", "--distance", "squared"]
        )
        == 0
    )
    assert "expected squared distance that hours moves is" in " ".join(
        capsys.readouterr().out.split()
    )


def test_costs_from_a_file(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = str(tmp_path / "c.json")
    asked = ["--objective", _costs(tmp_path), "--output", channel, "--json"]
    assert main(["design", table, *BASE, *asked]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == "costs"
    assert "--objective COSTS.csv" in str(
        Channel.load(channel).record.provenance["command"]
    )
    assert main(["design", table, *BASE, "--objective", "distance", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"] > 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COSTS.replace("50,3,2,1,0\n", ""), "no row for the symbol '50'"),
        (COSTS.replace(",10,20", ",11,20", 1), "no column for the symbol '10'"),
        (COSTS.replace("10,0,1,2,3", "10,0,-1,2,3"), "cost of releasing '20' for '10' is negative"),
        (COSTS.replace("10,0,1,2,3", "10,0,NaN,2,3"), "cost of releasing '20' for '10': 'NaN' is not a finite"),
        (COSTS + "50,3,2,1,0\n", "symbol '50' has two rows or two columns"),
    ],
)  # fmt: skip
def test_bad_costs(
    table: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    message: str,
) -> None:
    assert main(["design", table, *BASE, "--objective", _costs(tmp_path, text)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        (
            ["--objective", "honesty"],
            2,
            "--objective 'honesty' is neither a file nor one of information, truth, distance, "
            "frequencies, prefix, ranges, task",
        ),
        (["--stay", "0.5"], 2, "are for channels on the column's own symbols"),
        (
            ["--free-frequencies"],
            2,
            "--free-frequencies is for channels on the column's own symbols",
        ),
        (
            ["--objective", "frequencies", "--free-frequencies"],
            2,
            "--free-frequencies is for channels on the column's own symbols",
        ),
        (
            ["--objective", "truth", "--stay", "0.5", "--stay", "0.6"],
            2,
            "--stay gives a share twice",
        ),
        (
            ["--objective", "truth", "--stay", "20=0.5", "--stay", "20=0.6"],
            2,
            "--stay gives a share twice",
        ),
        (["--objective", "truth", "--forbid", "10"], 2, "must be FROM:TO"),
        (["--objective", "truth", "--forbid", "10:11"], 2, "no useful symbol '11'"),
        (
            ["--objective", "truth", "--stay", "0.999"],
            1,
            "releases '50' as it is with probability 0.999; the largest value that works for it "
            "is 0.6",
        ),
        (
            ["--objective", "truth", "--stay", "0.999", "--free-frequencies"],
            1,
            "the largest value that works for all of them is 0.",
        ),
        (
            ["--objective", "truth", "--keep-frequencies", "--free-frequencies"],
            2,
            "--keep-frequencies and --free-frequencies contradict each other",
        ),
        (
            ["--objective", "truth", "--mechanism", "subset-merging"],
            2,
            "a mechanism of its own",
        ),
    ],
)
def test_bad_input(
    table: str,
    capsys: pytest.CaptureFixture[str],
    typed: list[str],
    code: int,
    message: str,
) -> None:
    assert main(["design", table, *BASE, *typed]) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_symbols_with_colons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,a,b:c,a:b,c\nx,9,7,3,4\ny,5,8,2,6\n")
    base = ["design", str(path), *BASE, "--objective", "truth", "--json"]
    assert main([*base, "--forbid", "a:a:b"]) == 0
    assert json.loads(capsys.readouterr().out)["asked"]["forbid"] == [["a", "a:b"]]
    assert main([*base, "--forbid", "a:b:c"]) == 2
    assert "has two readings" in capsys.readouterr().err


def test_no_posterior_draws(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, records = str(tmp_path / "c.json"), tmp_path / "in.csv"
    records.write_text("hours\n10\n50\n")
    assert (
        main(["design", table, *BASE, "--objective", "truth", "--output", channel]) == 0
    )
    capsys.readouterr()
    out = str(tmp_path / "out.csv")
    assert main(["apply", channel, str(records), out, "--as", "posterior-draw"]) == 2
    assert "releases symbols of the column itself" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main(["apply", channel, str(records), out, "--keep-order"]) == 0


@pytest.mark.parametrize("width", ["20", "auto:3"])
def test_numbers_in_bins_are_published_as_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], width: str
) -> None:
    """A bin that is released for a bin is published as its own median, or as a number inside of it."""
    records, values = tmp_path / "in.csv", tmp_path / "hours.csv"
    rows = [("y" if k % 3 else "n", (k * 7) % 60) for k in range(300)]
    records.write_text("smoker,hours\n" + "".join(f"{s},{x}\n" for s, x in rows))
    values.write_text("hours\n" + "".join(f"{x}\n" for _, x in rows))
    channel, out = str(tmp_path / "c.json"), str(tmp_path / "out.csv")
    typed = [
        "--sensitive",
        "smoker",
        "--useful",
        "hours",
        "--bin",
        width,
        "--keep-frequencies",
    ]
    asked = ["--epsilon", "1", "--objective", "distance", "--output", channel]
    assert main(["design", str(records), *typed, *asked]) == 0
    assert "Published as medians (apply --as representative)" in " ".join(
        capsys.readouterr().out.split()
    )
    found = {}
    for form in ("representative", "within"):
        assert (
            main(
                [
                    "apply",
                    channel,
                    str(values),
                    out,
                    "--as",
                    form,
                    "--keep-order",
                    "--force",
                ]
            )
            == 0
        )
        how = ["--channel", channel, "--as", form]
        assert main(["check", out, *how, "--original", str(values)]) == 0
        assert main(["estimate", out, *how]) == 0
        found[form] = {float(cell) for cell in Path(out).read_text().split()[1:]}
    assert len(found["representative"]) == 3
    assert found["representative"] | found["within"] <= {float(x) for _, x in rows}
    assert len(found["within"]) > 30


def test_with_several_secrets_own_budgets_and_earlier_releases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "in.csv"
    rows = [
        (k % 2, (k * k) % 3, (k * 5 + k % 3) % 7, (k * 3 + k % 2) % 4)
        for k in range(400)
    ]
    records.write_text(
        "sex,race,hours,job\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    first, second, base = (
        str(tmp_path / "a.json"),
        str(tmp_path / "b.json"),
        ["design", str(records)],
    )
    how = [
        "--useful",
        "hours",
        "--objective",
        "distance",
        "--keep-frequencies",
        "--notion",
        "alip",
        "--json",
    ]
    secrets = [
        "--sensitive",
        "sex,race",
        "--protect-each",
        "--epsilon",
        "0.4",
        "--budget",
        "race=1=0.05,0.1",
    ]
    assert main([*base, *how, *secrets, "--output", first]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["cost"] - made["cost_lower_bound"] <= 1e-6
    assert made["notion"]["name"] == "alip"
    later = ["--sensitive", "sex", "--useful", "job", "--objective", "truth", "--after"]
    assert (
        main(
            [
                *base,
                "--sensitive",
                "sex",
                *how,
                "--epsilon",
                "0.3",
                "--output",
                first,
                "--force",
            ]
        )
        == 0
    )
    capsys.readouterr()
    assert (
        main([*base, *later, first, "--epsilon", "0.6", "--output", second, "--json"])
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert made["after"] is not None
    assert made["cost"] - made["cost_lower_bound"] <= 1e-6
    audited = [
        "audit",
        second,
        "--table",
        str(records),
        "--sensitive",
        "sex",
        "--useful",
        "job,hours",
    ]
    assert main([*audited, "--after", first]) == 0


def test_objectives_on_one_page(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plot = str(tmp_path / "c.csv"), str(tmp_path / "c.svg")
    base = [
        "compare",
        table,
        "--contingency",
        "--useful",
        "hours",
        "--notions",
        "ldp",
        "--epsilons",
        "0.5,1",
    ]
    asked = [
        "--objectives",
        "truth,distance,information",
        "--keep-frequencies",
        "--distance",
        "squared",
    ]
    assert main([*base, *asked, "--output", out, "--plot", plot]) == 0
    assert "truth: stay true" in capsys.readouterr().out
    lines = Path(out).read_text().splitlines()
    assert lines[0].endswith(
        ",satisfied,repaired,seconds,cost,cost_lower_bound,truth,frequency_deviation"
    )
    rows = [
        dict(zip(lines[0].split(","), line.split(","), strict=True))
        for line in lines[1:]
    ]
    assert [row["mechanism"] for row in rows] == ["truth"] * 2 + ["distance"] * 2 + [
        "optimal"
    ] * 2
    for truth, distance, free in zip(rows[:2], rows[2:4], rows[4:], strict=True):
        assert float(truth["truth"]) >= float(distance["truth"])
        assert float(truth["nmi"]) <= float(free["upper_bound_nmi"])
        assert float(truth["frequency_deviation"]) <= 1e-12
        assert free["truth"] == free["cost"] == ""
    text = Path(plot).read_text()
    assert "Records that stay true" in text
    assert "Distance moved" in text
    assert main([*base, *asked, "--output", out]) == 0  # goes on where it stopped
    assert main([*base, "--objectives", "honesty"]) == 2
    for flag in ("--keep-frequencies", "--free-frequencies"):
        capsys.readouterr()
        assert main([*base, flag]) == 2
        assert "need objectives truth and distance" in " ".join(
            capsys.readouterr().err.split()
        )


def test_comparisons_keep_frequencies_by_default(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, free = str(tmp_path / "kept.csv"), str(tmp_path / "free.csv")
    base = ["compare", table, "--contingency", "--useful", "hours", "--notions", "ldp"]
    asked = [*base, "--epsilons", "0.5", "--objectives", "truth,distance"]
    assert main([*asked, "--output", out]) == 0
    assert main([*asked, "--free-frequencies", "--output", free]) == 0
    found = []
    for path in (out, free):
        header, *lines = Path(path).read_text().splitlines()
        found.append(
            [
                dict(zip(header.split(","), line.split(","), strict=True))
                for line in lines
            ]
        )
    for kept, open_ in zip(*found, strict=True):
        assert float(kept["frequency_deviation"]) <= 1e-12
        assert float(open_["frequency_deviation"]) > 1e-3
        assert float(open_["cost"]) <= float(kept["cost"]) + 1e-9
    # The default by its name is the same comparison, and free frequencies are another one.
    assert main([*asked, "--keep-frequencies", "--output", out]) == 0
    assert main([*asked, "--free-frequencies", "--output", out]) == 2
    capsys.readouterr()
    assert main([*asked, "--keep-frequencies", "--free-frequencies"]) == 2
    assert "contradict each other" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("objective", ["truth", "distance", "costs.csv"])
def test_frequencies_are_kept_by_default(
    table: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    objective: str,
) -> None:
    """Three ways to say it: not at all, by name, and free, which costs no more."""
    if objective == "costs.csv":
        objective = _costs(tmp_path)
    made = []
    for flags in ([], ["--keep-frequencies"], ["--free-frequencies"]):
        asked = ["--objective", objective, *flags, "--json"]
        assert main(["design", table, *BASE, *asked]) == 0
        made.append(json.loads(capsys.readouterr().out))
    default, kept, free = made
    assert [one["asked"]["keep_frequencies"] for one in made] == [True, True, False]
    assert default["cost"] == kept["cost"]
    assert default["frequency_deviation"] <= 1e-12
    assert free["frequency_deviation"] > 1e-3
    assert free["cost"] <= default["cost"] + 1e-9
    both = ["--keep-frequencies", "--free-frequencies"]
    assert main(["design", table, *BASE, "--objective", objective, *both]) == 2
    assert "contradict each other" in " ".join(capsys.readouterr().err.split())


def test_objectives_for_the_population_beside_those_for_the_table(
    table: str, tmp_path: Path
) -> None:
    out = str(tmp_path / "c.csv")
    base = [
        "compare",
        table,
        "--contingency",
        "--useful",
        "hours",
        "--notions",
        "ldp",
        "--epsilons",
        "1",
    ]
    assert (
        main([*base, "--objectives", "truth", "--confidence", "0.95", "--output", out])
        == 0
    )
    header, *lines = Path(out).read_text().splitlines()
    plain, confident = (
        dict(zip(header.split(","), line.split(","), strict=True)) for line in lines
    )
    assert [plain["mechanism"], confident["mechanism"]] == ["truth", "truth@0.95"]
    assert float(confident["truth"]) < float(plain["truth"])
    assert float(confident["cost"]) >= float(confident["cost_lower_bound"]) - 1e-12
    assert confident["satisfied"] == "true"


def test_reports_say_what_stays(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, inside, outside = (
        str(tmp_path / name) for name in ("c.json", "r.md", "p.md")
    )
    asked = ["--objective", "truth", "--keep-frequencies", "--output", channel]
    assert main(["design", table, *BASE, *asked]) == 0
    assert (
        main(["report", channel, "--report", inside, "--public-report", outside]) == 0
    )
    full, public = Path(inside).read_text(), Path(outside).read_text()
    for text in (full, public):
        assert "| hours | stays true |" in text
    assert "## What an analyst reads" in full
    assert "Frequencies and means of hours have the table's values" in full
    assert "The expected share of every value of hours is that of the table" in public
    assert "of the records are released with their own hours" in full
    assert "of the records are released" not in public
    assert "| 0.5\\* | truth |" in full


def test_estimates_say_what_kept_frequencies_are_worth(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, records, out = (
        str(tmp_path / "c.json"),
        tmp_path / "in.csv",
        str(tmp_path / "out.csv"),
    )
    hours = ["10\n"] * 40 + ["20\n"] * 40 + ["35\n"] * 20 + ["50\n"] * 10
    records.write_text("hours\n" + "".join(random.Random(1).sample(hours, len(hours))))
    asked = ["--objective", "truth", "--keep-frequencies", "--output", channel]
    assert main(["design", table, *BASE, *asked]) == 0
    assert main(["apply", channel, str(records), out, "--keep-order"]) == 0
    capsys.readouterr()
    assert main(["estimate", out, "--channel", channel]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "shares estimate those of the records by themselves, each with a standard error of at most"
        in said
    )


def test_dates_move_by_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = tmp_path / "in.csv"
    rows = [("ab"[k * k % 3 % 2], f"2024-{1 + k * 7 % 12:02d}-15") for k in range(240)]
    records.write_text("group,day\n" + "".join(f"{s},{day}\n" for s, day in rows))
    asked = [
        "--sensitive",
        "group",
        "--useful",
        "day",
        "--bin",
        "30d",
        "--epsilon",
        "0.02",
    ]
    assert (
        main(["design", str(records), *asked, "--objective", "distance", "--json"]) == 0
    )
    days = json.loads(capsys.readouterr().out)["cost"] / 86_400
    assert main(["design", str(records), *asked, "--objective", "distance"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    shown = float(said.split("On average day moves by ")[1].split(" days;")[0])
    assert days <= shown <= 1.001 * days
    assert "days. " in said.split("comes below ")[1]


@pytest.mark.slow
def test_many_symbols_go_through_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan with row sums of its own: designed, audited, applied, checked, exported, reported."""
    random_ = random.Random(1)
    rows = []
    for _ in range(3000):
        job = random_.randrange(170)
        rows.append(("ab"[random_.random() < 0.3 + 0.2 * (job % 3 == 0)], f"j{job}"))
    records, jobs = tmp_path / "in.csv", tmp_path / "job.csv"
    records.write_text("s,job\n" + "".join(f"{s},{job}\n" for s, job in rows))
    jobs.write_text("job\n" + "".join(f"{job}\n" for _, job in rows))
    channel, out, report = (
        str(tmp_path / name) for name in ("c.json", "out.csv", "r.md")
    )
    asked = ["--sensitive", "s", "--useful", "job", "--notion", "ldp", "--epsilon"]
    typed = [*asked, "0.3", "--objective", "truth", "--output", channel]
    assert main(["design", str(records), *typed, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["frequency_deviation"] == 0.0
    assert Channel.load(channel).totals is not None
    assert main(["audit", channel]) == 0
    assert main(["apply", channel, str(jobs), out, "--keep-order"]) == 0
    assert main(["check", out, "--channel", channel]) == 0
    assert main(["estimate", out, "--channel", channel]) == 0
    assert main(["report", channel, "--report", report]) == 0
    assert (
        "has exactly the probability that the table gives it"
        in Path(report).read_text()
    )
    capsys.readouterr()
    assert main(["export", channel, "--to", "csv"]) == 0
    done = capsys.readouterr()
    assert "rounded to multiples of 2^-53" in " ".join(done.err.split())
    assert len(done.out.splitlines()) > 170


DAYS = "day,town,s\n" + "20240131,a,x\n20240201,b,y\n20240131,b,y\n20240202,a,x\n" * 9


@pytest.mark.parametrize(
    ("asked", "is_noted"),
    [
        (("--useful", "day", "--objective", "distance"), True),
        (("--useful", "day", "--objective", "truth"), False),
        (("--release", "day,town", "--objective", "distance"), False),
        (
            (
                "--release",
                "town,day",
                "--objective",
                "distance",
                "--distance",
                "absolute",
            ),
            True,
        ),
    ],
)
def test_distances_of_numbers_that_look_like_days_are_noted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[str, ...],
    is_noted: bool,
) -> None:
    """Ranks of such numbers are those of the days."""
    (tmp_path / "days.csv").write_text(DAYS)
    design = ["design", str(tmp_path / "days.csv"), "--sensitive", "s", *asked]
    assert main([*design, "--epsilon", "1"]) == 0
    said = capsys.readouterr().err
    assert ("the column 'day' holds numbers that look like days" in said) is is_noted
