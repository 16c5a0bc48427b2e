from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mechdesign.channel.channel import Channel
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.side_files import codebook_text
from mechdesign.tables.joint import Joint


@pytest.fixture
def channel():
    frame = pd.DataFrame(
        {
            "s": list("0110"),
            "city": ["a,b", "a,b", "é", "é"],
            "job": list("xyyx"),
            "n": [1, 2, 3, 4],
        }
    )
    joint = Joint.from_table(frame, sensitive="s", useful=("city", "job"), weight="n")
    return Channel(
        joint.useful, ("one", '"two"'), ((8, 0), (4, 4), (1, 7), (0, 8)), 8, joint=joint
    )


def read(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_possible_pair_has_a_line_with_both_probabilities(channel, tmp_path):
    (tmp_path / "codebook.csv").write_bytes(codebook_text(channel).encode())
    lines = read(tmp_path / "codebook.csv")
    assert {(line["output"], line["city"], line["job"]) for line in lines} == {
        (y, *x)
        for i, x in enumerate(channel.useful.symbols)
        for j, y in enumerate(channel.outputs)
        if channel.rows[i][j]
    }
    for line in lines:
        x = channel.useful.index[line["city"], line["job"]]
        y = channel.outputs.index(line["output"])
        assert float(line["p_output_given_symbol"]) == channel.matrix[x, y]
        assert float(line["p_symbol_given_output"]) == pytest.approx(
            channel.posteriors[y, x], rel=1e-15
        )
    sums = (
        pd.DataFrame(lines)
        .astype({"p_symbol_given_output": float})
        .groupby("output")
        .p_symbol_given_output.sum()
    )
    assert np.allclose(sums, 1)


def test_a_public_channel_says_what_it_knows(channel, tmp_path):
    channel.save(tmp_path / "public.json", public=True)
    (tmp_path / "codebook.csv").write_bytes(
        codebook_text(Channel.load(tmp_path / "public.json")).encode()
    )
    lines = read(tmp_path / "codebook.csv")
    assert {line["p_symbol_given_output"] for line in lines} == {""}
    assert sum(float(line["p_output_given_symbol"]) for line in lines) == 4


def test_a_codebook_that_tells_of_the_table_says_so(channel, tmp_path):
    (tmp_path / "in.csv").write_text('city,job\n"a,b",x\n')
    for known, name in ((channel, "one"), (replace(channel, joint=None), "two")):
        done = sanitise_file(
            known,
            tmp_path / "in.csv",
            tmp_path / name,
            codebook=tmp_path / f"{name}.book",
            insecure_seed=1,
        )
        told = [
            text
            for text in done.notices
            if "the last column of the codebook is computed from the table" in text
        ]
        assert len(told) == (name == "one")
        values = {
            line["p_symbol_given_output"] for line in read(tmp_path / f"{name}.book")
        }
        assert (values == {""}) == (name == "two")


@pytest.mark.parametrize("escaped", [True, False])
def test_formulas_in_a_codebook_are_escaped_as_in_the_output(tmp_path, escaped):
    """A label that is a formula would be run by the spreadsheet that opens the codebook."""
    joint = Joint.from_counts(
        [[3, 1], [1, 3]],
        useful_labels=["=1+2", "plain"],
        useful="+job",
        sensitive="s",
    )
    channel = Channel(joint.useful, ("=y", "-5"), ((3, 1), (1, 3)), 4, joint=joint)
    cells = np.random.default_rng(1).choice(["=1+2", "plain"], 200)
    pd.DataFrame({"+job": cells}).to_csv(tmp_path / "in.csv", index=False)
    options = {"codebook": tmp_path / "book.csv", "escape_formulas": escaped}
    for _ in range(2):
        done = sanitise_file(
            channel,
            tmp_path / "in.csv",
            tmp_path / "out.csv",
            ledger=tmp_path / "l.db",
            **options,
        )
    # The second run compares the codebook with what it would write, and has nothing to do.
    assert done.already
    sign = "'" if escaped else ""
    lines = read(tmp_path / "book.csv")
    assert {line["output"] for line in lines} == {f"{sign}=y", "-5"}
    assert {line[f"{sign}+job"] for line in lines} == {f"{sign}=1+2", "plain"}
