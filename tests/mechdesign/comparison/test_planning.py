"""The plan of a release: what is tried, what is advised, and that the command runs."""

from __future__ import annotations

import itertools
import json
import shlex

import numpy as np
import pandas as pd
import pytest

from mechdesign.cli import main
from mechdesign.comparison import planning
from mechdesign.comparison.planning import plan_release
from mechdesign.leaks import learners
from mechdesign.leaks.assessment import assess


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Naive Bayes, and samples of a size that a test can wait for."""
    monkeypatch.setattr(learners, "find_spec", lambda name: None)
    monkeypatch.setattr(planning, "SAMPLED", 300)
    monkeypatch.setattr(planning, "TRIAL_SECONDS", 0.5)


def people(records=600, strength=0.5):
    """A job that tells much about an illness, an age that tells nothing, an identifier."""
    chance = np.random.default_rng(4)
    job = chance.choice(list("abcd"), records)
    ill = chance.random(records) < np.where(job < "c", 0.5 + strength / 2, 0.1)
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(records)],
            "job": job,
            "sex": chance.choice(["f", "m"], records),
            "town": chance.choice(["n", "s", "w"], records),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def planned(table):
    return plan_release(table, assess(table, sensitive="ill"))


def test_identifiers_are_left_out_and_every_factor_is_tried():
    plan = planned(people())
    assert plan.identifiers == ("id",)
    assert set(plan.released) <= {"job", "sex", "town"}
    factors = [trial.factor for trial in plan.trials[:3]]
    assert factors == [1.5, 2.0, 3.0]
    assert {trial.left_out for trial in plan.trials} == {
        (),
        ("job",),
        ("sex",),
        ("town",),
    }
    assert plan.sampled <= 302


def test_a_larger_factor_keeps_more_and_finds_more():
    first, second, third = planned(people()).trials[:3]
    assert first.cells <= second.cells + 1e-6 <= third.cells + 2e-6
    assert first.finds <= min(1.0, 1.5 * first.share) + 1e-9
    assert third.finds <= min(1.0, 3 * third.share) + 1e-9


def test_the_advice_is_the_smallest_factor_at_which_enough_stays():
    plan = planned(people())
    kept = {t.factor: t.cells for t in plan.trials[:3]}
    enough = [factor for factor, cells in kept.items() if cells >= planning.ENOUGH]
    assert plan.factor == min(enough, default=3.0)


def test_a_column_is_left_out_where_the_others_gain(monkeypatch):
    """The mean rises without a column that keeps little, which alone is no reason."""
    monkeypatch.setattr(planning, "ENOUGH", 0.99)
    table = people(strength=0.9)
    table["diagnosis"] = table["ill"] + table["job"]
    plan = planned(table)
    base = next(t for t in plan.trials if t.factor == plan.factor)
    without = next(t for t in plan.trials if t.left_out == ("diagnosis",))
    assert without.cells > base.cells + 0.02
    assert without.gain < planning.LEAST_GAIN
    assert plan.left_out == ()
    monkeypatch.setattr(planning, "LEAST_GAIN", 0.004)
    plan = planned(table)
    gains = {t.left_out: t.gain for t in plan.trials if t.left_out and not t.given}
    assert plan.left_out == max(gains, key=gains.get) == ("job",)
    assert "job" not in plan.released


def test_the_gain_is_that_of_the_columns_that_stay():
    """Leaving out a column that keeps little raises the mean of all, which is no gain."""
    plan = planned(people())
    base = next(t for t in plan.trials if t.factor == plan.factor)
    for trial in plan.trials[3:]:
        rest = [base.columns[name] for name in trial.columns]
        assert trial.gain == pytest.approx(trial.cells - np.mean(rest))
        assert set(trial.columns) == set(base.columns) - set(trial.left_out)


def test_columns_that_tell_nothing_are_given():
    """The columns that tell least are released as they are, where they cost the others nothing."""
    table = people(4_000)
    table["hand"] = np.random.default_rng(3).choice(["l", "r"], len(table))
    plan = planned(table)
    assert plan.given
    assert "job" not in plan.given
    assert set(plan.given) < set(plan.released)
    chosen = next(t for t in plan.trials if t.given == plan.given)
    assert all(chosen.columns[name] == 1.0 for name in plan.given)
    # In the whole table, whose design the command is.
    shares = table.groupby(list(plan.given))["ill"].value_counts(normalize=True)
    lifts = shares / shares.index.get_level_values("ill").map(
        table["ill"].value_counts(normalize=True)
    )
    assert lifts.max() <= plan.factor
    assert lifts.min() >= planning.least_factor(plan.factor)


def test_a_column_that_breaks_the_promise_alone_is_not_tried_as_given():
    table = people(strength=1.0)[["job", "sex", "town", "ill"]]
    for name in ("sex", "town"):
        table[name] = table["ill"] + table[name]
    table["more"] = table["job"]
    assert not [trial for trial in planned(table).trials if trial.given]


def test_numbers_of_many_values_are_tried_in_bins():
    table = people()
    chance = np.random.default_rng(1)
    table["age"] = chance.integers(18, 90, len(table)).astype(str)
    binned = [trial for trial in planned(table).trials if trial.bins]
    assert [trial.bins for trial in binned] == [("age",)]
    assert binned[0].cells is not None


def test_numbers_of_their_own_are_in_bins_at_every_budget(
    tmp_path, monkeypatch, capsys
):
    """An income that nearly every record has alone is refused as it is; the advice can be run."""
    monkeypatch.chdir(tmp_path)
    table = people()
    table["income"] = [str(20_000 + max(0, 13 * k - 500)) for k in range(len(table))]
    plan = planned(table)
    assert {trial.cells for trial in plan.trials[:3]} == {None}
    assert [(t.factor, t.bins) for t in plan.trials[3:6]] == [
        (factor, ("income",)) for factor in planning.FACTORS
    ]
    assert plan.bins == ("income",)
    table.to_csv("people.csv", index=False)
    assert main(["assess", "people.csv", "--sensitive", "ill", "--plan"]) == 0
    text = capsys.readouterr().out
    assert "No trial gave a channel" not in text
    command = text.rpartition("Next:  mechdesign ")[2].strip()
    assert "--bin income=" in command
    assert main([*shlex.split(command), "--time-limit", "2"]) == 0


def test_a_trial_without_a_channel_says_why(monkeypatch):
    from mechdesign.core.errors import NotPrivate
    from mechdesign.report.assessment import plan_text

    def refuse(*_, **__):
        raise NotPrivate("no private channel exists")

    monkeypatch.setattr(planning, "design", refuse)
    plan = planned(people())
    assert {trial.refusal for trial in plan.trials} == {"no private channel exists"}
    text = " ".join(plan_text(plan, "command").split())
    assert "No trial gave a channel (no private channel exists)." in text
    # A command that has just failed is no advice.
    assert "Next:" not in text


def test_the_command_of_the_plan_designs_the_release(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = people(4_000)
    table["hand"] = np.random.default_rng(3).choice(["l", "r"], len(table))
    table.loc[::50, "town"] = ""
    table.to_csv("people.csv", index=False)
    line = ["assess", "people.csv", "--sensitive", "ill", "--plan"]
    assert main([*line, "--report", "plan.html"]) == 0
    text = capsys.readouterr().out
    assert "It is no promise" in text
    command = text.rpartition("Next:  mechdesign ")[2].strip()
    assert "--missing symbol" in command
    assert "--given" in command
    assert "The release that is advised" in (tmp_path / "plan.html").read_text()
    assert main([*shlex.split(command), "--time-limit", "2"]) == 0
    assert (tmp_path / "channel.json").exists()
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["plan"]["command"].startswith("mechdesign design people.csv")
    assert record["plan"]["identifiers"] == ["id"]


def test_the_plan_and_its_command_read_the_table_as_the_assessment(
    tmp_path, monkeypatch, capsys
):
    """Lines above the header, the delimiter, blanks, codes of missing values, columns unseen."""
    monkeypatch.chdir(tmp_path)
    table = people(2_000)
    table["job, paid"] = table.pop("job")
    table.loc[::5, "town"] = "n "
    table.loc[::50, "town"] = "?"
    folder = tmp_path / "here"
    folder.mkdir()
    path = folder / "people.csv"
    path.write_text("Survey\n" + table.to_csv(index=False, sep=";"))
    line = ["assess", str(path), "--sensitive", "ill", "--skip-lines", "1", "--trim"]
    line += ["--missing-codes", "?", "--missing", "drop", "--delimiter", ";"]
    line += ["--columns", '"job, paid",town']
    assert main(line) == 0
    following = capsys.readouterr().out.rpartition("Next:  mechdesign ")[2].strip()
    assert main(shlex.split(following)) == 0
    text = capsys.readouterr().out
    assert "of 1,960 records. It is no promise" in text
    command = text.rpartition("Next:  mechdesign ")[2].strip()
    assert "--missing drop" in command
    assert "--leave-out id,sex" in command
    assert main([*shlex.split(command), "--time-limit", "2"]) == 0
    record = json.loads((tmp_path / "channel.json").read_text())
    assert record["useful"]["columns"] == ["town", "job, paid"]


def test_a_plan_is_of_records_and_people_get_a_design(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = people(300)
    table["id"] = [f"p{k // 3}" for k in range(300)]
    table["ill"] = table["ill"].iloc[:100].repeat(3).to_list()
    table.to_csv("people.csv", index=False)
    line = ["assess", "people.csv", "--sensitive", "ill", "--person", "id"]
    assert main([*line, "--plan"]) == 2
    assert "--plan tries releases of single records" in capsys.readouterr().err
    assert main(line) == 0
    command = capsys.readouterr().out.rpartition("Next:  mechdesign ")[2].strip()
    assert main([*shlex.split(command), "--time-limit", "2", "--output", "c.json"]) == 0


def test_no_trial_begins_when_the_time_of_all_is_over(monkeypatch):
    """Every look at the clock takes 12 s: the first trials are made, and the text says what is left."""
    from mechdesign.report.assessment import plan_text

    clock = itertools.count(0.0, 12.0)
    monkeypatch.setattr(planning.time, "process_time", lambda: next(clock))
    plan = planned(people())
    made = [trial.refusal != planning.NOT_TRIED for trial in plan.trials]
    assert made[0]
    assert not made[-1]
    assert made == sorted(made, reverse=True)
    # What is advised was tried.
    assert plan.factor in [trial.factor for trial in plan.trials if trial.cells]
    text = plan_text(plan, "command")
    assert text.count("not tried\n") == made.count(False) - text.endswith("not tried")
    assert "No further trial was begun after 30 s" in " ".join(text.split())


def test_the_sample_has_fewer_records_of_many_secrets(monkeypatch):
    """Records times values of the secret are limited, and every value is there."""
    monkeypatch.setattr(planning, "SAMPLED", 2_000)
    chance = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "ill": chance.choice([f"s{k}" for k in range(60)], 6_000),
            "job": chance.choice(list("abc"), 6_000),
        }
    )
    coded = planning.coded_table(frame)
    sample = planning._sampled(coded, ("ill",), ("job",))
    assert 300 <= sample.num_rows <= 400
    assert len(set(sample["ill"].to_pylist())) == 60


def test_of_a_long_file_some_records_are_held(tmp_path, monkeypatch):
    table = people(3_000)
    table.to_csv(tmp_path / "in.csv", index=False)
    whole = planned(str(tmp_path / "in.csv"))
    monkeypatch.setattr(planning, "MOST_HELD", 1_000)
    some = planned(str(tmp_path / "in.csv"))
    assert (some.records, some.identifiers) == (3_000, ("id",))
    assert whole.sampled == pytest.approx(some.sampled, abs=60)
    assert some.released == whole.released
    assert some.trials[-1].cells == pytest.approx(whole.trials[-1].cells, abs=0.1)
