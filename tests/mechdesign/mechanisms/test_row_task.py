"""Row channels for a task: what they keep of it by listing, the bound, other objectives, refusals."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.cli import main
from solvers import Polytope, vertices


@pytest.fixture(scope="module")
def frame():
    """Job tells of pay, and much of sick; age tells of pay alone."""
    random = np.random.default_rng(3)
    count = 2000
    job = random.integers(0, 3, count)
    age = random.integers(0, 3, count)
    sex = random.integers(0, 2, count)
    pay = random.random(count) < 0.1 + 0.2 * (job == 1) + 0.2 * age + 0.1 * sex
    sick = random.random(count) < 0.2 + 0.4 * (job == 2) + 0.1 * (age == 2)
    return pd.DataFrame(
        {
            "job": np.array(list("abc"))[job],
            "age": np.array(["20", "40", "60"])[age],
            "sex": np.where(sex, "m", "f"),
            "pay": np.where(pay, "high", "low"),
            "sick": np.where(sick, "yes", "no"),
        }
    )


def designed(frame, notion=None, **options):
    options = {"release": ["job", "age"], "objective": "task", "task": "pay"} | options
    return md.design_rows(
        frame,
        sensitive=options.pop("sensitive", "sick"),
        notion=notion or md.LIP(0.3),
        time_limit=600.0,
        **options,
    )


def entropy(masses):
    total = sum(masses)
    return -sum(m / total * math.log(m / total) for m in masses if m)


def told_of(frame, channel, columns, given=()):
    """I(T; Y | K) / I(T; X | K), by listing every row and every released row."""
    laws = {}
    truths = {}
    for row, part in frame.groupby(list(columns)):
        pays = part["pay"].value_counts()
        pay = [int(pays.get(value, 0)) for value in ("high", "low")]
        stratum = row[: len(given)]
        truths.setdefault(stratum, []).append(pay)
        for released, share in channel.distribution(row).items():
            law = laws.setdefault(stratum, {}).setdefault(released, [0.0, 0.0])
            for value in range(2):
                law[value] += pay[value] * float(share)

    def kept(groups):
        before = [sum(group[value] for group in groups) for value in range(2)]
        after = sum(sum(group) * entropy(group) for group in groups)
        return sum(before) * entropy(before) - after

    most = sum(kept(groups) for groups in truths.values())
    return sum(kept(list(law.values())) for law in laws.values()) / most


def test_what_is_kept_of_a_task_is_what_listing_gives(frame):
    design = designed(frame)
    assert design.audit.satisfied
    assert md.audit(design.channel, frame).satisfied
    told = told_of(frame, design.channel, ("job", "age"))
    assert design.purpose.task_kept == pytest.approx(told, abs=1e-9)
    assert design.purpose.task_kept <= design.purpose.task_upper_bound <= 1.0
    assert design.purpose.column == "pay"
    utility = design.channel.record.utility
    assert utility["task"] == "pay"
    assert utility["task_kept"] == design.purpose.task_kept


def test_more_of_the_task_than_a_channel_for_information(frame):
    notion = md.LIP(0.1)
    information = designed(frame, notion, objective="information", task=None)
    design = designed(frame, notion)
    told = told_of(frame, information.channel, ("job", "age"))
    assert design.purpose.task_kept > told + 0.005
    assert design.nmi < information.nmi


def test_the_bound_is_that_of_the_crossed_columns(frame):
    """Every vertex of the crossed posteriors and one linear program: no tree keeps more."""
    joint = md.Joint.from_table(frame, sensitive="sick", useful=["job", "age"])
    task = md.Joint.from_table(frame, sensitive="pay", useful=["job", "age"])
    order = [task.useful.names.index(name) for name in joint.useful.names]
    law = task.p[:, order] / task.p_x[order]
    ends = np.exp([-0.3, 0.3])
    box = Polytope(joint.lift, np.full(2, ends[0]), np.full(2, ends[1]))
    points = vertices(box, max_vertices=10_000).points
    costs = [entropy(list(law @ v)) for v in points]
    solved = linprog(costs, A_eq=points.T, b_eq=joint.p_x)
    before = entropy(list(law @ joint.p_x))
    after = sum(p * entropy(list(c)) for p, c in zip(joint.p_x, law.T, strict=True))
    best = (before - solved.fun) / (before - after)
    design = designed(frame)
    assert design.purpose.task_kept <= best + 1e-9
    assert design.purpose.task_upper_bound == pytest.approx(best, abs=2e-3)
    # One level for all columns is that optimum.
    crossed = designed(frame, release=[("job", "age")])
    assert crossed.purpose.task_kept == pytest.approx(best, abs=2e-3)


@pytest.mark.parametrize("promise", ["total", "relative"])
def test_given_columns_are_known_beforehand(frame, promise):
    design = designed(frame, given="sex", promise=promise)
    told = told_of(frame, design.channel, ("sex", "job", "age"), given=("sex",))
    assert design.purpose.task_kept == pytest.approx(told, abs=1e-9)
    assert design.purpose.task_kept <= design.purpose.task_upper_bound


def test_a_joint_table_takes_the_joint_table_of_the_task(frame):
    columns = ["age", "job"]
    joint = md.Joint.from_table(frame, sensitive="sick", useful=columns)
    task = md.Joint.from_table(frame, sensitive="pay", useful=columns)
    design = designed(joint, task=task)
    assert design.purpose == designed(frame).purpose


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": None}, "needs the column that the release should tell of"),
        ({"task": "sick"}, "the task 'sick' is the sensitive column"),
        ({"task": "age"}, "'age' is released or given itself"),
        ({"given": "sex", "task": "sex"}, "'sex' is released or given itself"),
        ({"objective": "truth"}, "it needs the objective task"),
        ({"confidence": 0.95}, "not yet with a confidence level"),
        ({"keep": 0.5}, "not of a task: leave one of them out"),
        ({"task": "constant"}, "'constant' has a single value"),
        ({"task": "noise"}, "say nothing about the task 'noise'"),
    ],
)
def test_what_is_no_task_is_refused(frame, options, message):
    other = frame.assign(constant="k").assign(noise="n").head(400)
    # Every row twice, with both values: the released columns say nothing of it.
    table = pd.concat([other, other.assign(noise="m")])
    with pytest.raises(md.InputError, match=message):
        designed(table, **options)


def test_a_joint_table_needs_a_joint_task(frame):
    joint = md.Joint.from_table(frame, sensitive="sick", useful=["job", "age"])
    with pytest.raises(md.InputError, match="task must be a Joint of the task column"):
        designed(joint)


def test_tables_of_other_rows_are_refused(frame):
    columns = ["job", "age"]
    joint = md.Joint.from_table(frame, sensitive="sick", useful=columns)
    fewer = frame[(frame["job"] != "a") | (frame["age"] != "20")]
    task = md.Joint.from_table(fewer, sensitive="pay", useful=columns)
    with pytest.raises(md.InputError, match="counted on other rows"):
        designed(joint, task=task)


def test_the_command_says_what_is_kept_of_the_task(frame, tmp_path, capsys):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    line = ["design", str(path), "--sensitive", "sick", "--release", "job,age"]
    line += ["--notion", "lip", "--epsilon", "0.3", "--objective", "task"]
    line += ["--task", "pay", "--time-limit", "3"]
    assert main(line) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Made to tell of pay: " in text
    assert "of what the true rows tell of it is kept" in text
    assert main([*line, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["objective"] == "task"
    assert record["task"] == "pay"
    assert 0.0 < record["task_kept"] <= record["task_upper_bound"] <= 1.0
    channel = tmp_path / "row.json"
    assert main([*line, "--output", str(channel)]) == 0
    capsys.readouterr()
    report = tmp_path / "report.json"
    assert main(["report", str(channel), "--report", str(report)]) == 0
    task = json.loads(report.read_text(encoding="utf-8"))["task"]
    assert task["column"] == "pay"
    assert task["task_kept"] == record["task_kept"]
    page = tmp_path / "report.md"
    assert main(["report", str(channel), "--report", str(page)]) == 0
    assert "Of what the rows tell of pay" in page.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*line, "--full"]) == 0
    assert "Made to tell of pay: " in capsys.readouterr().out
    assert main([*line, "--given", "pay"]) == 2
    assert "'pay' is released or given itself" in capsys.readouterr().err
