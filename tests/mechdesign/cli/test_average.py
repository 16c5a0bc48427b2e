"""`design --average`: what is printed, what `audit` and `show` say of the file, and refusals."""

import hashlib
import json
from random import Random

import pytest

from mechdesign.cli import main

TABLE = "s,x,n\na,p,8\na,q,3\na,r,1\nb,p,2\nb,q,6\nb,r,4\nc,p,1\nc,q,1\nc,r,9\n"

NOTHING = "An average promises nothing about one record"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return [str(path), "--sensitive", "s", "--useful", "x", "--weight", "n"]


def flat(text):
    return " ".join(text.split())


def test_the_promise_stands_beside_the_worst_lifts(table, tmp_path, capsys):
    path = str(tmp_path / "c.json")
    assert main(["design", *table, "--average", "mi=25%", "--output", path]) == 0
    text = flat(capsys.readouterr().out)
    assert NOTHING in text
    assert "the worst released values make a value of s " in text
    assert "--confidence 0.95 protects it" not in text
    assert main(["audit", path]) == 0
    assert f"kept. {NOTHING}" in flat(capsys.readouterr().out)
    assert main(["show", path]) == 0
    assert NOTHING in flat(capsys.readouterr().out)


def test_audit_json_has_the_average(table, tmp_path, capsys):
    path = str(tmp_path / "c.json")
    line = ["--average", "tv=0.05", "--notion", "lip", "--epsilon", "0.5"]
    assert main(["design", *table, *line, "--output", path]) == 0
    capsys.readouterr()
    assert main(["audit", path, "--json"]) == 0
    (average,) = json.loads(capsys.readouterr().out)["averages"]
    assert average["measure"] == "tv"
    assert average["leakage"] <= average["budget"] == 0.05


def test_a_file_is_released_through_it(table, tmp_path):
    path = str(tmp_path / "c.json")
    out = tmp_path / "out.csv"
    assert main(["design", *table, "--average", "mi=25%", "--output", path]) == 0
    key = tmp_path / "key"
    secret = hashlib.sha256(b"a key for this test").hexdigest()
    key.write_text(f"mechdesign-key-1:{secret}\n")
    key.chmod(0o600)
    options = ["--key-from", str(key), "--ledger", str(tmp_path / "ledger")]
    assert main(["apply", path, table[0], str(out), *options]) == 0
    assert len(out.read_text().splitlines()) == 10


@pytest.fixture
def channel(table, tmp_path):
    path = str(tmp_path / "c.json")
    assert main(["design", *table, "--average", "mi=25%", "--output", path]) == 0
    return path


def test_every_verb_takes_the_channel(table, channel, tmp_path, capsys):
    records = tmp_path / "records.csv"
    random = Random(0)
    records.write_text(
        "id,x\n" + "".join(f"{k},{random.choice('pqr')}\n" for k in range(60))
    )
    out = str(tmp_path / "out.csv")
    ledger = ["--ledger", str(tmp_path / "ledger")]
    assert main(["apply", channel, str(records), out, *ledger]) == 0
    capsys.readouterr()
    assert main(["check", out, "--channel", channel, "--original", str(records)]) == 0
    assert "plausible" in capsys.readouterr().out
    assert main(["estimate", out, "--channel", channel]) == 0
    assert "unbiased" in capsys.readouterr().out
    assert main(["measure", channel]) == 0
    assert "total_variation" in capsys.readouterr().out
    sql = tmp_path / "draw.sql"
    assert main(["export", channel, "--output", str(sql)]) == 0
    assert "alip" not in sql.read_text()


def test_all_measures_and_the_report_say_it(table, channel, tmp_path, capsys):
    line = ["design", *table, "--average", "mi=25%", "--all-measures"]
    assert main(line) == 0
    assert NOTHING in flat(capsys.readouterr().out)
    report = tmp_path / "r.md"
    assert main(["report", channel, "--report", str(report)]) == 0
    assert NOTHING in flat(report.read_text())
    public = str(tmp_path / "p.md")
    assert main(["report", channel, "--public-report", public]) == 2
    assert "no public file or report" in flat(capsys.readouterr().err)


def test_several_averages_are_said_and_audited_each(table, tmp_path, capsys):
    path = str(tmp_path / "c.json")
    line = ["--average", "mi=25%", "--average", "tv=0.2", "--output", path]
    assert main(["design", *table, *line]) == 0
    text = flat(capsys.readouterr().out)
    assert "the mutual information (nats) is at most" in text
    assert "the total variation is at most" in text
    # Once for both: the worst lifts are those of the channel.
    assert text.count(NOTHING) == 1
    assert main(["audit", path, "--json"]) == 0
    averages = json.loads(capsys.readouterr().out)["averages"]
    assert [average["measure"] for average in averages] == ["mi", "tv"]
    assert all(average["kept"] for average in averages)


def test_gains_of_guesses_come_from_a_file(table, tmp_path, capsys):
    """Gains of right guesses: 12 of 35 are guessed without a release, 23 of 35 from x itself."""
    gains = tmp_path / "gains.csv"
    gains.write_text("guess,c,a,b\na,0,1,0\nb,0,0,1\nc,1,0,0\n")
    path = str(tmp_path / "c.json")
    asked = ["--average", f"{gains}=0.5", "--output", path]
    assert main(["design", *table, *asked]) == 0
    text = flat(capsys.readouterr().out)
    assert "the expected gain of the best guess is at most 0.5" in text
    assert main(["audit", path, "--json"]) == 0
    (average,) = json.loads(capsys.readouterr().out)["averages"]
    assert average["measure"] == "gain"
    assert average["kept"]
    assert 12 / 35 < average["leakage"] <= 0.5


def test_averages_of_several_releases_are_not_claimed(channel, capsys):
    assert main(["compose", channel, channel]) == 0
    said = flat(capsys.readouterr().err)
    assert "c.json: a budget on an average is one of each release alone" in said
    assert "may exceed the sum" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["mi"], "must be KIND=BUDGET"),
        (["mi=x"], "a per cent such as 25%"),
        (["mi"], "KIND alone goes with --keep SHARE"),
        (["mi=25%", "--keep", "0.5"], "looks for the least average: leave the budget"),
        (["mi=25%", "--average", "mi=0.1"], "--average mi is given twice"),
        (["mi", "--average", "tv", "--keep", "0.5"], "give --average once"),
        (["mi", "--keep", "1"], "strictly between 0 and 1"),
        (["kl", "--keep", "0.5"], "'kl' is not known; use one of mi, tv"),
        (["mi=25%", "--max-posterior", "0.9"], "not built with --max-posterior"),
        (["mi=25%", "--confidence", "0.95"], "not built with --confidence"),
        (["mi=25%", "--release", "x"], "leave --useful out"),
        (["mi=25%", "--notion", "kl", "--epsilon", "1"], "on single lifts"),
        (["mi=25%", "--public", "--output", "OUT"], "no public file or report"),
    ],
)
def test_what_does_not_go_together_is_refused(
    table, tmp_path, capsys, options, message
):
    out = str(tmp_path / "c.json")
    options = [out if option == "OUT" else option for option in options]
    assert main(["design", *table, "--average", *options]) == 2
    assert message in flat(capsys.readouterr().err)
    assert len(list(tmp_path.iterdir())) == 1


def test_compare_shows_the_local_methods(table, capsys):
    assert main(["compare", *table, "--average", "mi=25%"]) == 0
    text = flat(capsys.readouterr().out)
    for said in ("optimal", "greedy-merging", "best-of-restarts", NOTHING):
        assert said in text
    assert "none keeps more than 'at most' says (proven)" in text
    assert main(["compare", *table, "--average", "tv=0.05", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["mechanism"] for row in rows] == ["optimal", "greedy-merging"]
    assert all(row["figure"] <= row["epsilon"] == 0.05 for row in rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilons", "1"], "has no epsilons (--epsilons)"),
        (["--notions", "lip"], "has no notions (--notions)"),
        (["--epsilon", "1"], "a single budget is compared with --release"),
        (["--confidence", "0.95"], "has no confidence (--confidence)"),
        (["--output", "out.csv"], "has no output (--output)"),
        (["--as-published"], "has no as_published (--as-published)"),
        (["--budget", "a=0.1,0.1"], "has no budgets (--budget)"),
        (["--recommend"], "leave it out with --release, --average and a purpose"),
    ],
)
def test_compare_refuses_what_an_average_has_not(table, capsys, options, message):
    assert main(["compare", *table, "--average", "mi=25%", *options]) == 2
    assert message in flat(capsys.readouterr().err)


def test_the_least_average_that_keeps_a_share(table, tmp_path, capsys):
    path = str(tmp_path / "c.json")
    line = ["design", *table, "--average", "mi", "--keep", "0.5"]
    assert main([*line, "--output", path]) == 0
    text = flat(capsys.readouterr().out)
    assert "Kept: 50.0 % of the information in x" in text
    assert "no such channel that keeps 50 % has less than 0." in text
    assert NOTHING in text
    assert main(["audit", path]) == 0
    capsys.readouterr()
    assert main(["show", path]) == 0
    assert "no such channel that keeps 50 %" in flat(capsys.readouterr().out)
    assert main([*line, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (average,) = record["averages"]
    assert average["lower_bound"] <= average["achieved"] == average["budget"]
    assert average["keep"] == 0.5
    assert record["nmi"] >= 0.5


def test_a_share_that_no_channel_keeps_is_a_proven_no(table, capsys):
    line = ["--average", "mi", "--keep", "0.9", "--notion", "lip", "--epsilon", "0.1"]
    assert main(["design", *table, *line]) == 1
    error = flat(capsys.readouterr().err)
    assert "no channel with this promise keeps 0.9 of the information" in error
    assert "(proven)" in error


def test_a_budget_on_right_guesses(table, tmp_path, capsys):
    path = str(tmp_path / "c.json")
    assert main(["design", *table, "--average", "guess=50%", "--output", path]) == 0
    text = flat(capsys.readouterr().out)
    assert "Average: the success of the best guess is at most 0.5; it is" in text
    assert main(["audit", path]) == 0
    assert "Average success of the best guess" in flat(capsys.readouterr().out)
    assert main(["compare", *table, "--average", "guess=50%"]) == 0
    assert main(["design", *table, "--average", "guess=30%"]) == 2
    assert "guessed right without any release" in capsys.readouterr().err
