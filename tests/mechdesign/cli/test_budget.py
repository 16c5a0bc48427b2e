"""What is typed for the budget, and what comes of it."""

from __future__ import annotations

import math

import pytest

from mechdesign.cli.parsing import columns, notion_of
from mechdesign.core.errors import InputError
from mechdesign.notions import (
    ALIP,
    LDP,
    LIP,
    AlphaLift,
    Chi2Lift,
    L1Lift,
    MaxLift,
    MinLift,
)


@pytest.mark.parametrize(
    ("notion", "options", "expected"),
    [
        ("alip", {"epsilon": "1"}, ALIP(0.5, 0.5)),
        ("alip", {"epsilon": "2", "lam": "0.65"}, ALIP(0.65 * 2.0, (1.0 - 0.65) * 2.0)),
        ("alip", {"eps_l": "1.3", "eps_u": "0.7"}, ALIP(1.3, 0.7)),
        ("alip", {"eps_l": "inf", "eps_u": "0.7"}, ALIP(math.inf, 0.7)),
        ("alip", {"eps_l": "1e-3", "eps_u": "inf"}, ALIP(1e-3, math.inf)),
        ("alip", {"eps_l": "700", "eps_u": "700"}, ALIP(700.0, 700.0)),
        ("lip", {"epsilon": "0.5"}, LIP(0.5)),
        ("ldp", {"epsilon": "1"}, LDP(1.0)),
        ("max-lift", {"epsilon": "1"}, MaxLift(1.0)),
        ("max-lift", {"eps_u": "1"}, MaxLift(1.0)),
        ("min-lift", {"epsilon": "1"}, MinLift(1.0)),
        ("min-lift", {"eps_l": "1"}, MinLift(1.0)),
        ("l1", {"epsilon": "1"}, L1Lift(0.5, 0.5)),
        ("l1", {"eps_l": "inf", "eps_u": "0.7"}, L1Lift(math.inf, 0.7)),
        (
            "chi2",
            {"epsilon": "2", "lam": "0.65"},
            Chi2Lift(0.65 * 2.0, (1.0 - 0.65) * 2.0),
        ),
        ("alpha", {"epsilon": "1"}, AlphaLift(0.5, 0.5, 2.0)),
        (
            "alpha",
            {"eps_l": "1", "eps_u": "2", "alpha": "2.5"},
            AlphaLift(1.0, 2.0, 2.5),
        ),
        ("alpha", {"epsilon": "1", "alpha": "inf"}, AlphaLift(0.5, 0.5, math.inf)),
    ],
)
def test_notions(notion, options, expected):
    assert notion_of(notion, **options) == expected


@pytest.mark.parametrize(
    ("notion", "options", "message"),
    [
        ("alip", {}, "no budget given"),
        ("alip", {"epsilon": "0"}, r"epsilon \(0\) must be positive"),
        ("alip", {"epsilon": "-1"}, r"epsilon \(-1\) must be positive"),
        ("alip", {"epsilon": "nan"}, r"epsilon \(nan\) must be positive"),
        ("alip", {"epsilon": "one"}, r"--epsilon \('one'\) is not a number"),
        ("alip", {"epsilon": ""}, r"--epsilon \(''\) is not a number"),
        ("alip", {"epsilon": "701"}, r"epsilon \(701\) must be at most 700"),
        ("alip", {"epsilon": "inf"}, r"epsilon \(inf\) must be finite"),
        ("alip", {"epsilon": "1e-320"}, r"^--epsilon \(1e-320\) is too small: doubles"),
        ("alip", {"epsilon": "1e-400"}, r"^--epsilon \(1e-400\) is too small: doubles"),
        (
            "alip",
            {"epsilon": "3e-308"},
            r"^--epsilon \(3e-308\) is too small to be divid",
        ),
        (
            "l1",
            {"epsilon": "1e-307", "lam": "0.1"},
            r"divided by --lam \(0.1\): doubles",
        ),
        ("alip", {"eps_l": "1e-320", "eps_u": "inf"}, r"^--eps-l \(1e-320\) is too"),
        ("ldp", {"epsilon": "1.2e-323"}, r"^--epsilon \(1.2e-323\) is too small"),
        ("alip", {"epsilon": "1e400"}, r"--epsilon \(1e400\) is not a number of nats"),
        (
            "alip",
            {"eps_l": "701", "eps_u": "1"},
            r"eps_l \(701\) must be at most 700; to drop this side say inf",
        ),
        ("alip", {"eps_l": "0", "eps_u": "1"}, r"eps_l \(0\) must be positive"),
        ("alip", {"eps_l": "x", "eps_u": "1"}, r"--eps-l \('x'\) is not a number"),
        ("alip", {"eps_l": "inf", "eps_u": "inf"}, "nothing would be protected"),
        ("alip", {"eps_l": "1"}, "--eps-l is given without --eps-u.*inf"),
        ("alip", {"eps_u": "1"}, "--eps-u is given without --eps-l.*inf"),
        ("alip", {"epsilon": "1", "eps_l": "1"}, "not both"),
        ("alip", {"epsilon": "1", "eps_u": "1"}, "not both"),
        (
            "alip",
            {"epsilon": "1", "lam": "0"},
            r"lam \(0\) must be strictly between 0 and 1",
        ),
        (
            "alip",
            {"epsilon": "1", "lam": "1"},
            r"lam \(1\) must be strictly between 0 and 1",
        ),
        (
            "alip",
            {"epsilon": "1", "lam": "1.4"},
            r"lam \(1.4\) must be strictly between 0 and 1",
        ),
        (
            "alip",
            {"epsilon": "1", "lam": "nan"},
            r"lam \(nan\) must be strictly between 0 and 1",
        ),
        ("alip", {"epsilon": "1", "lam": "half"}, r"--lam \('half'\) is not a number"),
        ("alip", {"lam": "0.5"}, "--lam splits --epsilon"),
        ("alip", {"lam": "0.5", "eps_l": "1", "eps_u": "1"}, "--lam splits --epsilon"),
        ("lip", {"epsilon": "1", "lam": "0.5"}, "--notion lip takes --epsilon whole"),
        ("ldp", {"epsilon": "1", "lam": "0.5"}, "--notion ldp takes --epsilon whole"),
        (
            "max-lift",
            {"epsilon": "1", "lam": "0.5"},
            "--notion max-lift takes --epsilon whole",
        ),
        (
            "min-lift",
            {"epsilon": "1", "lam": "0.5"},
            "--notion min-lift takes --epsilon whole",
        ),
        ("ldp", {"eps_l": "1"}, "--eps-l does not belong to --notion ldp"),
        (
            "ldp",
            {"epsilon": "1", "eps_u": "1"},
            "--eps-u does not belong to --notion ldp",
        ),
        (
            "lip",
            {"eps_l": "1", "eps_u": "1"},
            "--eps-l does not belong to --notion lip",
        ),
        ("max-lift", {"eps_l": "1"}, "--eps-l does not belong to --notion max-lift"),
        ("min-lift", {"eps_u": "1"}, "--eps-u does not belong to --notion min-lift"),
        ("max-lift", {"epsilon": "1", "eps_u": "1"}, "the same budget"),
        ("ldp", {}, "--notion ldp needs --epsilon"),
        ("lip", {"epsilon": "inf"}, r"epsilon \(inf\) must be finite"),
        ("max-lift", {"epsilon": "inf"}, r"eps_u \(inf\) must be finite"),
        ("l1", {}, "no budget given"),
        ("l1", {"eps_u": "1"}, "--eps-u is given without --eps-l"),
        ("chi2", {"eps_l": "inf", "eps_u": "inf"}, "both inf"),
        (
            "chi2",
            {"epsilon": "1", "alpha": "2"},
            "--alpha is the order of --notion alpha; chi2 has none",
        ),
        ("alpha", {"epsilon": "1", "alpha": "1"}, r"alpha \(1\) must be above 1"),
        ("alpha", {"epsilon": "1", "alpha": "0.5"}, r"alpha \(0.5\) must be above 1"),
        ("alpha", {"epsilon": "1", "alpha": "nan"}, r"alpha \(nan\) must be above 1"),
        (
            "alpha",
            {"epsilon": "1", "alpha": "two"},
            r"--alpha \('two'\) is not a number",
        ),
        (
            "alpha",
            {"epsilon": "1", "alpha": "1e400"},
            r"--alpha \(1e400\) is too large",
        ),
        (
            "dp",
            {"epsilon": "1"},
            "--notion 'dp' is not known; use one of alip, lip, ldp",
        ),
        ("ALIP", {"epsilon": "1"}, "--notion 'ALIP' is not known"),
    ],
)
def test_refusals(notion, options, message):
    with pytest.raises(InputError, match=message):
        notion_of(notion, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("a", "a"),
        ("a,b", "a,b"),
        ('"a,b"', ("a,b",)),
        ('"a,b",c', ("a,b", "c")),
        ('"say ""a"""', ('say "a"',)),
        (" a , b", " a , b"),
    ],
)
def test_column_lists(text, expected):
    assert columns("--useful", text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty column name"),
        ("a,", "empty column name"),
        (",a", "empty column name"),
        ("a,a", "names a column twice"),
        ('"a', "cannot be read"),
    ],
)
def test_bad_column_lists(text, message):
    with pytest.raises(InputError, match=message):
        columns("--useful", text)


LN2 = math.log(2)


@pytest.mark.parametrize(
    ("notion", "options", "expected"),
    [
        ("alip", {"at_most_times": "2"}, ALIP(math.inf, LN2)),
        ("alip", {"at_most_times": "2", "eps_l": "0.5"}, ALIP(0.5, LN2)),
        ("alip", {"at_least_times": "50%", "eps_u": "1"}, ALIP(LN2, 1.0)),
        ("alip", {"upper": 0.5, "at_most_times": "2"}, ALIP(math.inf, 0.5)),
        (
            "alpha",
            {"at_most_times": "2", "alpha": "inf"},
            AlphaLift(math.inf, LN2, math.inf),
        ),
    ],
)
def test_words(notion, options, expected):
    assert notion_of(notion, **options) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"at_most_times": "2", "epsilon": "1"},
            "--epsilon and --lam say the whole budget",
        ),
        (
            {"at_most_times": "2", "lam": "0.5"},
            "--epsilon and --lam say the whole budget",
        ),
        (
            {"at_most_times": "2", "eps_u": "1"},
            "--eps-u and --at-most-times are the same side",
        ),
        (
            {"at_least_times": "0.5", "eps_l": "1"},
            "--eps-l and --at-least-times are the same side",
        ),
    ],
)
def test_words_and_nats_that_contradict(options, message):
    with pytest.raises(InputError, match=message):
        notion_of("alip", **options)


def test_words_on_the_command_line(folder, run):
    done = run("design", "counts.csv", "--contingency", "--keep", "80%", "--json")
    assert done.code == 0, done.err
    assert "keeps 80 % of the information; with" in done.err
    assert done.record["nmi"] >= 0.8
    assert done.record["certificate"]["kept_at"] == 2 * done.record["notion"]["eps_l"]
    done = run(
        "design",
        "counts.csv",
        "--contingency",
        "--max-posterior",
        "0.6",
        "-o",
        "c.json",
        "--report",
        "r.md",
    )
    assert done.code == 0, done.err
    assert "--max-posterior 0.6" in (folder / "r.md").read_text(encoding="utf-8")
    assert run("audit", "c.json", "--at-most-times", "1.2001").code == 0
    assert run("audit", "c.json", "--at-most-times", "1.1").code == 1


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ("--keep", "0.9", "--epsilon", "1"),
            2,
            "--keep looks for the smallest budget: leave out every other",
        ),
        (("--keep", "1.2"), 2, "--keep (1.2) must be strictly between 0 and 1"),
        (
            ("--keep", "0.9", "--mechanism", "subset-merging"),
            2,
            "--keep needs the optimum",
        ),
        (
            ("--max-posterior", "0.4"),
            1,
            "no release keeps every belief at most 0.4: 'a' has the share 0.5",
        ),
        (("--max-posterior", "x"), 2, "--max-posterior ('x') must be a number"),
        (
            ("--max-posterior", "0.9", "--epsilon", "1"),
            2,
            "--epsilon and --lam say the whole budget",
        ),
    ],
)
def test_words_that_are_refused(folder, run, options, code, message):
    done = run("design", "counts.csv", "--contingency", *options)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
