"""`mechdesign measure` and `audit --all-measures`: orders, outputs one by one, and guarantees in text and JSON."""

from __future__ import annotations

import json

import pytest

from mechdesign.cli import main


@pytest.fixture(scope="module")
def channel(tmp_path_factory, adult_path):
    path = tmp_path_factory.mktemp("measure") / "c.json"
    arguments = [
        "design",
        str(adult_path),
        "--contingency",
        "--notion",
        "chi2",
        "--epsilon",
        "1",
    ]
    assert (
        main([*arguments, "--mechanism", "subset-merging", "--output", str(path)]) == 0
    )
    return path


def test_json_has_outputs_guarantees_and_every_order(channel, capsys):
    capsys.readouterr()
    assert (
        main(
            [
                "measure",
                str(channel),
                "--alpha",
                "inf",
                "--order",
                "0.5",
                "--order",
                "1",
                "--json",
            ]
        )
        == 0
    )
    record = json.loads(capsys.readouterr().out)
    leakage = record["leakage"]
    assert leakage["sibson_information[inf]"] == leakage["maximal_leakage"]
    assert leakage["arimoto_information[inf]"] == leakage["min_entropy_leakage"]
    assert leakage["sibson_information[1]"] == leakage["mutual_information"]
    assert (
        leakage["sibson_information[0.5]"]
        < leakage["mutual_information"]
        < leakage["sibson_information[inf]"]
    )
    assert leakage["max_log_lift"] == record["achieved"]["eps_u"]
    assert leakage["min_log_lift"] == -record["achieved"]["eps_l"]
    assert {"source", "measure", "attained", "bound", "at_most"} == set(
        record["guarantees"][0]
    )
    assert all("inf" in out["alpha_lift"] for out in record["outputs"])
    assert sum(out["probability"] for out in record["outputs"]) == pytest.approx(1.0)


def test_orders_that_agree_in_six_digits_are_two(channel, capsys):
    capsys.readouterr()
    assert (
        main(
            ["measure", str(channel), "--alpha", "2", "--alpha", "2.0000001", "--json"]
        )
        == 0
    )
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert all({"2", "2.0000001"} == {*out["alpha_lift"]} for out in outputs)


def test_per_output_prints_a_line_for_each(channel, capsys):
    capsys.readouterr()
    assert main(["measure", str(channel)]) == 0
    short = capsys.readouterr().out
    assert main(["measure", str(channel), "--per-output"]) == 0
    long = capsys.readouterr().out
    assert long.startswith(short)
    assert "Output by output" in long.removeprefix(short)


@pytest.mark.parametrize("order", ["0", "-1", "nan"])
def test_orders_must_be_positive(channel, capsys, order):
    assert main(["measure", str(channel), "--order", order]) == 2
    assert "must be positive, or inf" in capsys.readouterr().err


def test_audit_of_another_average(channel, capsys):
    capsys.readouterr()
    assert main(["audit", str(channel), "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert own["notion"] == {"name": "chi2", "eps_l": 0.5, "eps_u": 0.5}
    assert own["used"]["eps_l"] <= 0.5
    assert (
        main(
            [
                "audit",
                str(channel),
                "--notion",
                "alpha",
                "--alpha",
                "2.5",
                "--epsilon",
                "0.01",
            ]
        )
        == 1
    )
    text = capsys.readouterr().out
    assert "alpha (order 2.5, eps_l 0.005, eps_u 0.005): VIOLATED" in text
    assert "Of its own budgets it uses" in text


def test_the_audit_prints_the_same_measures(channel, capsys):
    options = ["--order", "3", "--order", "0.5"]
    alphas = ["--alpha", "2", "--alpha", "3"]
    capsys.readouterr()
    assert main(["measure", str(channel), *alphas, *options, "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    arguments = ["audit", str(channel), "--all-measures", *options]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["satisfied"] is True
    assert record["measures"] == alone
    assert main([*arguments, "--per-output"]) == 0
    text = capsys.readouterr().out
    assert "satisfied, decided in exact arithmetic" in text
    assert "What is kept of the useful column (nats)" in text
    assert "Output by output" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--order", "2"), "--order and --per-output choose among all measures"),
        (("--per-output",), "give --all-measures too"),
        (("--all-measures", "--order", "0"), "the order (0) must be positive"),
    ],
)
def test_measures_are_refused_where_there_are_none(channel, capsys, arguments, message):
    words = [word.format(channel=channel) for word in arguments]
    assert main(["audit", str(channel), *words]) == 2
    assert message in capsys.readouterr().err
