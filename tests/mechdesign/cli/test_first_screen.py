"""The first screen of `design`: short, in order, and no promise stronger than the verified one."""

from __future__ import annotations

import csv
import math
import random
import re
from fractions import Fraction

import pytest

import mechdesign as md
from mechdesign.auditing.measures import best_guess
from mechdesign.report import wording as w
from mechdesign.report.content import summary_report
from mechdesign.report.first_screen import MOST_LINES, first_screen
from tests.profiles import slow

MICRO = ("--sensitive", "group", "--useful", "job")
LONGEST = 96


@pytest.fixture
def wide(folder):
    """Forty sensitive values, so that not all beliefs fit."""
    draw = random.Random(5)
    with (folder / "wide.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["group", "job", "age"])
        for k in range(4000):
            writer.writerow(
                [f"g{k % 40}", draw.choice("abcdef"), draw.randrange(20, 60)]
            )
    return "wide.csv"


OPTIONS = [
    ("--epsilon", "1"),
    ("--epsilon", "1", "--output", "c.json"),
    ("--epsilon", "1", "--output", "c.json", "--report", "r.html", "--curve", "0"),
    ("--epsilon", "1", "--confidence", "0.9"),
    ("--at-most-times", "2"),
    ("--at-least-times", "0.5"),
    ("--keep", "0.5"),
    ("--max-posterior", "0.9"),
    ("--epsilon", "1", "--budget", "a=0.1,0.1"),
    ("--notion", "ldp", "--epsilon", "1"),
    ("--notion", "l1", "--epsilon", "0.5", "--mechanism", "subset-merging"),
    ("--notion", "chi2", "--epsilon", "0.5", "--mechanism", "subset-merging"),
    ("--epsilon", "1", "--objective", "truth"),
    ("--epsilon", "1", "--objective", "truth", "--stay", "0.2", "--keep-frequencies"),
]


def advised():
    """Every other one is slow: what is written, and which notion it is, changes no advice."""
    for place, options in enumerate(OPTIONS):
        yield slow(options) if place % 2 else options


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_design_fits_a_screen(folder, run, options):
    result = run("design", "records.csv", *MICRO, *options)
    assert result.code == 0, result.err
    lines = result.out.rstrip("\n").split("\n")
    assert len(lines) <= MOST_LINES == 25
    assert max(map(len, lines)) <= LONGEST
    assert "group (2 symbols) is protected" in lines[0]
    assert lines[1].startswith("Table: ")
    starts = [line.split()[0] for line in lines if line]
    for earlier, later in zip(
        ("Table:", "Population", "Kept:", "Not"),
        ("Population", "Kept:", "Not", "All"),
        strict=True,
    ):
        assert starts.index(earlier) < starts.index(later)
    assert "All sections:  --full" in lines


def test_the_promises_are_the_first_three_lines(folder, run):
    lines = run("design", "records.csv", *MICRO, "--epsilon", "1").out.split("\n")
    assert lines[1] == (
        "Table: a released value makes any value of group 0.6 to 1.65 times as probable (verified)."
    )
    assert re.fullmatch(
        r"Population \(95 % confidence\): [\d.]+ to [\d.]+ times as probable; "
        r"--confidence 0.95 protects it\.",
        lines[2],
    )


@pytest.mark.parametrize(
    ("options", "side"),
    [(("--at-most-times", "2"), "most"), (("--at-least-times", "0.5"), "least")],
)
def test_the_population_has_the_side_that_was_asked_for(folder, run, options, side):
    line = run("design", "records.csv", *MICRO, *options).out.split("\n")[2]
    assert re.fullmatch(
        rf"Population \(95 % confidence\): at {side} [\d.]+ times as probable; "
        r"--confidence 0.95 protects it\.",
        line,
    )


def test_many_values_and_long_reports_fit_too(wide, run):
    for options in (
        ("--useful", "job", "--epsilon", "1"),
        ("--useful", "age", "--bin", "10", "--epsilon", "1", "--output", "c.json"),
        ("--useful", "job,age", "--bin", "age=10", "--epsilon", "1"),
    ):
        result = run("design", wide, "--sensitive", "group", *options)
        assert result.code == 0, result.err
        lines = result.out.rstrip("\n").split("\n")
        assert len(lines) <= MOST_LINES
        assert max(map(len, lines)) <= LONGEST
    assert re.search(r"^  \(\d+ of 40: those that can change most\)$", result.out, re.M)


def test_after_another_release_the_screen_still_fits(folder, run):
    first = ("--epsilon", "0.5", "--output", "c.json")
    assert run("design", "records.csv", *MICRO, *first).code == 0
    asked = ("--sensitive", "group", "--useful", "town", "--epsilon", "2")
    result = run("design", "records.csv", *asked, "--after", "c.json")
    assert result.code == 0, result.err
    assert result.out.rstrip("\n").count("\n") < MOST_LINES
    assert "After 1 other release" in result.out


def test_full_has_all_sections(folder, run):
    out = run("design", "records.csv", *MICRO, "--epsilon", "1", "--full").out
    for title in (
        "What is promised",
        "What is kept",
        "Sample and population",
        "When the promise does not hold",
        "Other measures of leakage",
    ):
        assert f"\n{title}\n" in out
    measures = run("design", "records.csv", *MICRO, "--epsilon", "1", "--all-measures")
    assert "With this promise, at most" in measures.out or "at most" in measures.out
    assert "\nWhat is promised\n" in measures.out


def test_factors_are_never_more_favourable_than_the_budget():
    """exp(-eps) >= the printed lower factor, exp(eps) <= the printed upper one."""
    draw = random.Random(1)
    for _ in range(500):
        nats = draw.choice([0.01, 0.5, 3.0, 40.0]) * draw.random()
        high = Fraction(w.short_factor(nats, upper=True))
        low = Fraction(w.short_factor(nats, upper=False))
        assert high >= Fraction(math.exp(nats)) * (1 - Fraction(1, 10**12))
        assert low <= Fraction(math.exp(-nats)) * (1 + Fraction(1, 10**12))
        # .. and no more than the last digit away.
        assert high <= Fraction(math.exp(nats)) * Fraction(1011, 1000)
        assert low >= Fraction(math.exp(-nats)) * Fraction(89, 100)
    assert w.short_factor(math.inf, upper=False) == "0"


def test_printed_beliefs_enclose_the_exact_ones(folder, run):
    out = run("design", "records.csv", *MICRO, "--epsilon", "1").out
    joint = md.Joint.from_table(
        __import__("pandas").read_csv("records.csv"), sensitive="group", useful="job"
    )
    design = md.design(joint, md.ALIP(0.5, 0.5))
    released = joint.p @ design.channel.matrix
    posterior = released / released.sum(axis=0)
    for s, name in enumerate(joint.sensitive.names):
        row = re.search(rf"^  {name} +([\d.]+) % +([\d.]+) % +([\d.]+) %$", out, re.M)
        assert row is not None
        before, lowest, highest = map(float, row.groups())
        assert before == pytest.approx(100 * joint.p_s[s], abs=0.05)
        assert lowest <= 100 * posterior[s].min() + 1e-9
        assert highest >= 100 * posterior[s].max() - 1e-9


def test_unchanged_cells_are_counted_from_the_integers():
    """The share is sum_x P(x) W(x|x) over outputs that bear the name of a symbol."""
    joint = md.Joint.from_counts(
        [[30, 5, 2], [4, 25, 9]],
        sensitive_labels=["a", "b"],
        useful_labels=["x", "y", "z"],
    )
    design = md.design(joint, md.ALIP(0.8, 0.8))
    channel = design.channel
    expected = Fraction(0)
    for x, name in enumerate(joint.useful.names):
        for y, output in enumerate(channel.outputs):
            if output == name:
                expected += Fraction(joint.useful_counts[x], joint.total) * Fraction(
                    channel.rows[x][y], channel.denominator
                )
    report = summary_report(design, joint, attained={}, remarks=())
    assert report.kept.unchanged == float(expected)
    shown = first_screen(design, joint, last=["last"])
    assert (
        f"Unchanged: {w.percent(float(expected), 'ROUND_FLOOR', step=w.Decimal('0.1'))}"
        in shown
    )


def test_without_a_budget_design_shows_what_budgets_buy(folder, run):
    result = run("design", "records.csv", *MICRO)
    assert result.code == 0, result.err
    assert result.out.startswith("No budget was given, so no channel was designed.")
    assert "Recommended" in result.out
    advice = run(
        "compare", "records.csv", *MICRO, "--recommend", "--mechanisms", "optimal"
    )
    for line in (
        result.out.split("Recommended")[1].split("Choose a budget")[0].split("\n")
    ):
        assert line in advice.out
    commands = re.findall(r"^  mechdesign (design .*)$", result.out, re.M)
    assert len(commands) == 2
    for command in commands:
        words = command.replace("CHANNEL.json", "new.json").split()
        done = run(*words, "--force")
        assert done.code == 0, done.err
        assert (folder / "new.json").exists()


@pytest.mark.parametrize(
    "options",
    [("--output", "c.json"), ("--json",), ("--report", "r.html"), ("--release", "job")],
    ids=" ".join,
)
def test_without_a_budget_nothing_is_written(folder, run, options):
    before = sorted(folder.iterdir())
    columns = MICRO if options[0] != "--release" else MICRO[:2]
    result = run("design", "records.csv", *columns, *options)
    assert result.code == 2
    assert "no budget given" in result.err
    assert sorted(folder.iterdir()) == before


def test_bins_that_need_a_budget_are_refused_without_one(wide, run):
    asked = ("--sensitive", "group", "--useful", "age", "--bin", "auto")
    result = run("design", wide, *asked)
    assert result.code == 2
    assert "--bin auto needs one" in result.err


@pytest.mark.parametrize("options", [*advised()], ids=" ".join)
def test_confidence_is_advised_where_it_is_built(options, folder, run):
    """The advice of the screen must not be refused."""
    asked = (
        "design",
        "records.csv",
        *MICRO,
        *options,
        "--force",
        "--time-limit",
        "0.2",
    )
    out = run(*asked).out
    if "--confidence 0.95 protects it" in out:
        again = run(*asked, "--confidence", "0.95")
        assert again.code == 0, again.err
    elif "--confidence" not in options:
        assert run(*asked, "--confidence", "0.95").code == 2


@pytest.mark.parametrize(
    ("options", "is_built"),
    [
        ((), True),
        (("--free-frequencies",), True),
        (("--average", "tv=0.2"), False),
        (("--budget", "a=0.4,0.4"), False),
        (("--stay", "0.1"), False),
        (("--column-weight", "job=2"), False),
        (("--objective", "distance"), False),
        (("--sensitive", "group,town", "--protect-each"), False),
    ],
    ids=str,
)
def test_confidence_is_advised_for_rows_where_it_is_built(
    options, is_built, folder, run
):
    """By `audit` as by `design`: an advice that is refused is none."""
    if "--sensitive" not in options:
        options = ("--sensitive", "group", *options)
    draw = random.Random(2)
    lines = ["group,town,job,age"]
    for _ in range(600):
        age = draw.randrange(3)
        cells = (draw.choice("ab"), draw.choice("NS"), draw.choice("xyz"), str(age))
        lines.append(",".join(cells))
    (folder / "many.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ("design", "many.csv", "--release", "job,age", "--epsilon", "1", *options)
    said = run(*asked, "--output", "c.json")
    assert said.code == 0, said.err
    alone = "Population: promised for the records of this table alone"
    advised = f"{alone}; --confidence 0.95 protects others."
    audited = run("audit", "c.json").out
    for out in (said.out, audited):
        assert (advised in out) == is_built
    assert alone in said.out
    again = run(*asked, "--confidence", "0.95")
    assert (again.code == 0) == is_built, again.err


def test_how_often_a_guess_is_right(folder, run):
    """The success of the best guess, which the first screen has beside the lifts."""
    small = run("design", "records.csv", *MICRO, "--epsilon", "0.05").out
    assert "Guesses: " in small
    joint = md.Joint.from_counts([[30, 5, 2], [4, 25, 9]], sensitive="s", useful="x")
    design = md.design(joint, md.LIP(0.4))
    after, before = best_guess(design.channel, joint)
    assert before == Fraction(38, 75) < after
    most = math.ceil(1000 * after) / 10
    text = " ".join(first_screen(design, joint, last=()).split())
    sentence = f"from a released value is right more often than {most:.1f} % (50.7 %"
    assert f"No guess of s {sentence}".lower() in text.lower()


def test_a_release_that_helps_no_guess():
    joint = md.Joint.from_counts([[30, 25], [4, 5]], sensitive="s", useful="x")
    design = md.design(joint, md.LIP(0.4))
    text = " ".join(first_screen(design, joint, last=()).split())
    assert "is right no more often than one without it, for 85.9 % of" in text


@pytest.mark.parametrize("full", [(), ("--full",)])
@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            ("--useful", "job", "--epsilon", "0.01"),
            "<0.1 % of the information is kept",
        ),
        (
            ("--release", "town", "--smallest-group", "11", "--epsilon", "1"),
            "100 % of the records are released with one and the same value.",
        ),
    ],
)
def test_a_release_of_little_use_is_said_first(folder, run, option, said, full):
    """Labels that tell nothing, and groups so large that one value is left."""
    lines = ["job,town,sick", *["a,n,yes", "b,n,no"] * 9, *["a,s,yes", "b,w,no"] * 4]
    (folder / "little.csv").write_text("\n".join(lines) + "\n")
    shown = run("design", "little.csv", "--sensitive", "sick", *option, *full).out
    first = " ".join(shown.split())
    assert first.startswith("Of little use: ")
    assert said in first.partition("Give a larger budget")[0]
    assert (
        "Of little use"
        not in run("design", "records.csv", *MICRO, "--epsilon", "1").out
    )


@pytest.mark.parametrize("full", [(), ("--full",)])
@pytest.mark.parametrize("is_far", [True, False])
def test_a_bound_that_says_nothing_is_no_distance_from_the_best(
    folder, run, monkeypatch, full, is_far
):
    """A search that ended early may prove a bound far above what is kept."""
    if is_far:
        monkeypatch.setattr(w, "LARGE_GAP", -1.0)
    shown = run("design", "records.csv", *MICRO, "--epsilon", "1", *full).out
    text = " ".join(shown.split())
    assert ("to the best possible is not known" in text) is is_far
    assert (" of the best possible (proven)" in text) is not is_far
    assert re.search(r"keeps more than [0-9.]+ %", text) or not (is_far or full)
