"""No output takes the place of a file that the same command reads, whatever is forced."""

from __future__ import annotations

import pytest

ASKED = ("--sensitive", "group", "--useful", "job", "--epsilon", "1")

SYMBOLS = ("baker", "clerk", "smith", "weaver")

COSTS = "\n".join(
    [",".join(("", *SYMBOLS))]
    + [
        ",".join((row, *("0" if row == column else "1" for column in SYMBOLS)))
        for row in SYMBOLS
    ]
)

INPUTS = {
    "costs.csv": COSTS + "\n",
    "queries.csv": "query,baker,clerk,smith,weaver\nfirst,1,1,0,0\n",
    "shares.csv": "symbol,share\na,0.5\nb,0.5\n",
    "symbols.csv": "job\nbaker\nclerk\nsmith\nweaver\n",
    "secrets.csv": "group\na\nb\n",
}

SURE = ("--confidence", "0.5")

COMPARED = ("compare", "records.csv", *ASKED[:4], "--epsilons", "1")


@pytest.fixture
def inputs(folder, run):
    """The folder with every kind of input beside `records.csv`, the table."""
    for name, text in INPUTS.items():
        (folder / name).write_text(text)
    earlier = run("design", "records.csv", *ASKED, "--output", "earlier.json")
    assert earlier.code == 0, earlier.err
    parts = folder / "parts"
    parts.mkdir()
    text = (folder / "records.csv").read_text()
    (parts / "one.csv").write_text(text)
    (parts / "two.csv").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("costs.csv", ("design", "records.csv", *ASKED, "--objective", "costs.csv")),
        ("queries.csv", ("design", "records.csv", *ASKED, "--objective", "queries.csv")),
        (
            "shares.csv",
            ("design", "records.csv", *ASKED, *SURE, "--known-shares", "shares.csv"),
        ),
        (
            "symbols.csv",
            ("design", "records.csv", *ASKED, *SURE, "--symbols", "symbols.csv"),
        ),
        (
            "secrets.csv",
            ("design", "records.csv", *ASKED, *SURE, "--secrets", "secrets.csv"),
        ),
        ("earlier.json", ("design", "records.csv", *ASKED, "--after", "earlier.json")),
        ("parts/one.csv", ("design", "parts", *ASKED)),
        ("parts/two.csv", ("design", "parts/*.csv", *ASKED)),
        (
            "parts/two.csv",
            ("compare", "parts", *ASKED[:4], "--epsilons", "1", "--mechanisms", "optimal"),
        ),
        (
            "shares.csv",
            (*COMPARED, *SURE, "--known-shares", "shares.csv"),
        ),
    ],
)  # fmt: skip
def test_an_input_is_not_replaced(inputs, refused, name, words):
    before = (inputs / name).read_bytes()
    error = refused(*words, "--output", name, "--force")
    assert f"{name} is the input file itself; write to another file" in error
    assert (inputs / name).read_bytes() == before


def test_a_report_does_not_replace_an_earlier_channel(inputs, refused):
    before = (inputs / "earlier.json").read_bytes()
    asked = ("design", "records.csv", *ASKED, "--after", "earlier.json", "--force")
    for option in ("--report", "--public-report"):
        error = refused(*asked, "--output", "new.json", option, "earlier.json")
        assert "earlier.json is the input file itself" in error
    assert (inputs / "earlier.json").read_bytes() == before


JOB = """\
channel = "channel.json"

[design]
table = "records.csv"
sensitive = ["group"]
useful = ["job"]
epsilon = 1.0

[[apply]]
in = "records.csv"
out = "{out}"
force = true

[report]
report = "{report}"
force = true
"""


@pytest.mark.parametrize(
    ("name", "line", "places"),
    [
        ("job.csv", 11, {"out": "job.csv", "report": "report.md"}),
        ("job.md", 15, {"out": "out.csv", "report": "job.md"}),
    ],
)
def test_a_job_does_not_replace_its_own_file(folder, refused, name, line, places):
    text = JOB.format(**places)
    (folder / name).write_text(text)
    error = refused("run", name)
    assert f"{name}, line {line}: {name} would overwrite the job file {name}" in error
    assert (folder / name).read_text() == text
    assert not (folder / "channel.json").exists()
