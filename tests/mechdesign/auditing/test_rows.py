"""The exact audit of row channels: yes, no, where, and on which table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing import row_masses
from mechdesign.auditing.rows import audit_rows
from mechdesign.core.integers import IntegerRows
from mechdesign.core.row_tree import DENOMINATOR
from tests.oracles import released_rows as oracle


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(8)
    a = rng.integers(0, 3, 500)
    b = rng.integers(0, 4, 500)
    s = (rng.random(500) < 0.2 + 0.1 * a + 0.05 * b).astype(int)
    return pd.DataFrame(
        {
            "s": np.array(["no", "yes"])[s],
            "a": np.array(list("xyz"))[a],
            "b": np.array(list("klmn"))[b],
            "k": np.array(["0", "1"])[(a + b) % 2],
        }
    )


@pytest.fixture(scope="module")
def made(frame):
    return md.design_rows(
        frame, sensitive="s", release=["a", "b"], notion=md.LIP(0.2), time_limit=600.0
    )


def identity(channel):
    """The same tree with every row moved to its own symbol where the node has it."""
    tables = []
    for table in channel.tree.levels:
        values = table.rows.values.copy()
        for pair in range(len(table.pair_nodes)):
            span = slice(table.rows.indptr[pair], table.rows.indptr[pair + 1])
            outputs = table.slot_outputs[table.rows.indices[span]]
            own = np.flatnonzero(outputs == table.pair_inputs[pair])
            if own.size and len(outputs) > 1:
                values[span] = 1
                values[span][own] = DENOMINATOR - (len(outputs) - 1)
        rows = IntegerRows(
            table.rows.shape, table.rows.indptr, table.rows.indices, values
        )
        tables.append(replace(table, rows=rows))
    return replace(channel, tree=replace(channel.tree, levels=tuple(tables)))


def test_what_was_designed_passes(made, frame):
    for audit in (md.audit(made.channel), md.audit(made.channel, frame)):
        assert audit.satisfied
        assert audit.achieved == made.achieved
        assert audit.leaves == made.leaves
        assert len(audit.spent) == 2
        assert "VIOLATED" not in audit.summary()
        assert repr(audit).startswith("RowAudit(lip")


def test_a_broken_promise_is_found_with_its_row(made):
    leaky = identity(made.channel)
    audit = audit_rows(leaky)
    law = oracle.joint_law(leaky, leaky.table)
    lifts = oracle.lifts(law)
    assert not audit.satisfied
    assert "VIOLATED" in audit.summary()
    assert audit.achieved.eps_u == pytest.approx(
        math.log(max(lifts.values())), abs=1e-12
    )
    s = leaky.sensitive.names.index(audit.worst.sensitive)
    row = [
        y for y in {y for _, y in lifts} if y[: len(audit.worst.row)] == audit.worst.row
    ]
    assert audit.worst.lift == pytest.approx(float(lifts[s, row[0]]))


def test_a_smaller_budget_is_broken_by_the_last_digit(made):
    used = made.achieved.eps_u
    assert audit_rows(made.channel, notion=md.MaxLift(used)).satisfied
    below = np.nextafter(used, 0.0)
    assert not audit_rows(made.channel, notion=md.MaxLift(float(below))).satisfied


def test_blocks_do_not_change_the_verdict(made, monkeypatch):
    whole = audit_rows(made.channel)
    monkeypatch.setattr(row_masses, "BLOCK", 2)
    assert audit_rows(made.channel) == whole


def test_spent_grows_with_the_levels(made):
    first, last = made.audit.spent
    assert first.eps_u <= last.eps_u == made.achieved.eps_u


def test_ldp_names_the_other_symbol(made):
    audit = audit_rows(made.channel, notion=md.LDP(0.01))
    assert not audit.satisfied
    assert {audit.worst.sensitive, audit.worst.against} == {"no", "yes"}


def test_a_relative_promise_is_measured_in_its_stratum(frame):
    made = md.design_rows(
        frame,
        sensitive="s",
        release=["a"],
        given="k",
        promise="relative",
        notion=md.LIP(0.1),
        time_limit=600.0,
    )
    law = oracle.joint_law(made.channel, made.channel.table)
    lifts = oracle.lifts(law, given=lambda y: y[:1]).values()
    audit = audit_rows(made.channel, frame)
    assert audit.satisfied
    assert audit.achieved.eps_u == pytest.approx(math.log(max(lifts)), abs=1e-12)
    own = oracle.lifts(law, lambda y: y[:1]).values()
    assert audit.given.eps_u == pytest.approx(math.log(max(own)), abs=1e-12)


def test_a_public_channel_needs_the_table(made, frame):
    public = made.channel.public()
    with pytest.raises(md.InputError, match="carries no table"):
        audit_rows(public)
    assert audit_rows(public, frame).satisfied


def test_a_table_with_other_rows_is_refused(made, frame):
    more = frame.copy()
    more.loc[0, "a"] = "new"
    with pytest.raises(md.InputError, match="does not know"):
        audit_rows(made.channel, more)
    with pytest.raises(md.InputError, match="'b'"):
        audit_rows(made.channel, frame.drop(columns="b"))


def test_averages_and_other_options_are_refused(made):
    with pytest.raises(md.InputError, match="bounds averages"):
        audit_rows(made.channel, notion=md.Chi2Lift(eps_l=math.inf, eps_u=1.0))
    with pytest.raises(md.InputError, match="not built for a channel of rows"):
        md.audit(made.channel, after=[made.channel])
    with pytest.raises(md.InputError, match="must be a RowChannel"):
        audit_rows("row.json")
