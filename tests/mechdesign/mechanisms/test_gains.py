"""Budgets on what an attacker gains, by any matrix of gains: oracle, exactness, files, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.averages import average_leakage, gain_without
from mechdesign.auditing.measures import best_guess
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.average_budgets import exact_gains
from solvers.average.channels import best_channel_within
from solvers.errors import InvalidOption
from tests.cases.documents import rewrite
from tests.oracles.guessing import least_cost, most_information, vulnerability
from tests.profiles import scaled

JOINT = md.Joint.from_counts([[8, 3, 1, 5], [2, 6, 4, 5], [1, 1, 9, 5]])
NAMES = JOINT.sensitive.names

GAINS = {
    "first two": dict(zip(NAMES, (1, 1, 0), strict=True)),
    "last": dict(zip(NAMES, (0, "0.25", "2"), strict=True)),
}
"""Gains of 1 for the first two secrets at once, or of up to 2 for the last."""


def of_secrets(channel, joint):
    """P(y|s), (|S|, |Y|)."""
    return joint.p @ channel.matrix / joint.p_s[:, None]


def matrices(rows, columns):
    number = st.integers(0, 4)
    row = st.lists(number, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@settings(max_examples=scaled(25), deadline=None)
@given(st.data(), st.floats(0.1, 0.9))
def test_the_optimum_is_that_of_the_oracle(data, share):
    """Between the gain without a release and that of X itself."""
    secrets = data.draw(st.sampled_from([2, 3]))
    counts = np.array(data.draw(matrices(secrets, 4))) + 1
    gains = np.array(data.draw(matrices(data.draw(st.integers(1, 4)), secrets))) / 4
    joint = md.Joint.from_counts(counts.tolist())
    without = float((gains @ joint.p_s).max())
    whole = float((gains @ joint.p).max(axis=0).sum())
    if whole - without < 1e-2:
        return
    budget = without + share * (whole - without)
    found = md.design(joint, average={"gain": (gains, budget)}, gap=1e-4)
    best = most_information(joint.p, budget, gains)
    best /= -(joint.p_x * np.log(joint.p_x)).sum()
    assert found.nmi == pytest.approx(best, abs=3e-4)
    assert found.certificate.upper_bound_nmi >= best - 1e-9
    (average,) = found.channel.record.averages
    # The posterior vulnerability of qif, to its rounding.
    reached = vulnerability(joint.p_s, of_secrets(found.channel, joint), gains)
    assert average.achieved == pytest.approx(reached, abs=1e-6)
    assert average.achieved <= budget


@settings(max_examples=scaled(15), deadline=None)
@given(st.data(), st.floats(0.2, 0.8), st.booleans(), st.booleans())
def test_own_symbols_cost_what_the_oracle_says(data, share, keep, repeats):
    """The least cost within a budget on gains, also where two secrets have proportional records."""
    counts = np.array(data.draw(matrices(3, 4))) + 1
    if repeats:
        counts[1] = 2 * counts[0]
    joint = md.Joint.from_counts(counts.tolist())
    gains = np.eye(3)
    if data.draw(st.booleans()):
        gains = np.array(data.draw(matrices(3, 3))) / 4
    without = float((gains @ joint.p_s).max())
    whole = float((gains @ joint.p).max(axis=0).sum())
    if whole - without < 1e-2:
        return
    budget = without + share * (whole - without)
    found = md.design(
        joint,
        average={"gain": (gains, budget)},
        objective="truth",
        keep_frequencies=keep,
    )
    best = least_cost(joint.p, 1 - np.eye(4), budget, gains, keep=keep)
    assert found.least.cost_lower_bound <= best + 1e-9
    assert best - 1e-9 <= found.least.cost <= best + 1e-3
    (average,) = found.channel.record.averages
    assert average.achieved <= budget


def test_secrets_of_proportional_records_are_guessed_one_by_one():
    joint = md.Joint.from_counts([[6, 1, 3], [6, 1, 3], [2, 9, 5]])
    best = least_cost(joint.p, 1 - np.eye(3), 0.52, np.eye(3), keep=True)
    found = md.design(joint, average={"guess": 0.52}, objective="truth")
    assert found.least.cost == pytest.approx(best, abs=1e-6)


def test_gains_of_right_guesses_are_the_budget_on_guesses():
    identity = np.eye(3)
    by_gains = md.design(JOINT, average={"gain": (identity, 0.55)})
    by_guess = md.design(JOINT, average={"guess": 0.55})
    assert by_gains.nmi == pytest.approx(by_guess.nmi, abs=2e-4)
    (average,) = by_gains.channel.record.averages
    after, before = best_guess(by_gains.channel, JOINT)
    assert average.achieved == pytest.approx(float(after), abs=1e-15)
    assert gain_without(JOINT, exact_gains(identity, JOINT)) == before


def test_the_gain_is_exact_and_beside_a_notion():
    found = md.design(JOINT, md.LIP(1.0), average={"gain": (GAINS, "0.85"), "mi": 0.05})
    gain, _ = found.channel.record.averages
    assert gain.exact_gains == ((1, 1, 0), (0, Fraction(1, 4), 2))
    total = Fraction(0)
    rows = found.channel.rows
    for y in range(len(found.channel.outputs)):
        masses = [
            sum(count * rows[x][y] for x, count in enumerate(row))
            for row in JOINT.counts
        ]
        most = max(masses[0] + masses[1], Fraction(masses[1], 4) + 2 * masses[2])
        total += Fraction(most, JOINT.total * found.channel.denominator)
    assert gain.achieved == pytest.approx(float(total), abs=1e-15)
    assert Fraction(gain.achieved) >= total
    assert found.achieved.eps_u <= 1.0
    assert "the expected gain of the best guess is at most 0.85" in " ".join(
        found.summary().split()
    )


def test_the_file_keeps_the_gains_and_the_audit_uses_them(tmp_path):
    path = tmp_path / "channel.json"
    md.design(JOINT, average={"gain": (GAINS, 0.85)}).channel.save(path)
    channel = md.load(path)
    (verdict,) = md.audit(channel, JOINT, md.MaxLift(9.0)).averages
    assert verdict.kept
    # Another order of the secrets is another order of the columns.
    order = [2, 0, 1]
    turned = md.Joint.from_counts(
        [JOINT.counts[s] for s in order],
        sensitive_labels=[NAMES[s] for s in order],
        useful_labels=JOINT.useful.names,
    )
    (same,) = md.audit(channel, turned, md.MaxLift(9.0)).averages
    assert same.leakage == verdict.leakage
    other = md.Joint.from_counts(
        JOINT.counts, sensitive_labels=["a", *NAMES[1:]], useful_labels=NAMES_OF_X
    )
    with pytest.raises(InputError, match="do not say what a guess gains for 'a'"):
        md.audit(channel, other, md.MaxLift(9.0))

    def higher(document):
        document["averages"][0]["gains"][1][2] = "9"

    rewrite(path, higher)
    assert not md.audit(md.load(path), JOINT, md.MaxLift(9.0)).satisfied

    def shorter(document):
        document["averages"][0]["gains"] = [["1", "1"]]

    rewrite(path, shorter)
    with pytest.raises(
        InputError, match="are for 2 sensitive symbols, and the channel"
    ):
        md.audit(md.load(path), JOINT, md.MaxLift(9.0))


NAMES_OF_X = JOINT.useful.names


def test_gains_from_a_file(tmp_path):
    path = tmp_path / "gains.csv"
    path.write_text(
        f"guess,{NAMES[2]},{NAMES[0]},{NAMES[1]}\nfirst two,0,1,1\nlast,2,0,0.25\n"
    )
    found = md.design(JOINT, average={str(path): "0.85"})
    (average,) = found.channel.record.averages
    assert average.gains == (("1", "1", "0"), ("0", "1/4", "2"))
    assert found.nmi == pytest.approx(
        md.design(JOINT, average={"gain": (GAINS, 0.85)}).nmi, abs=2e-4
    )
    path.write_text(f"guess,{NAMES[0]},{NAMES[0]}\nfirst,0,1\n")
    with pytest.raises(InputError, match="has two columns"):
        md.design(JOINT, average={str(path): 0.85})


@pytest.mark.parametrize(
    ("average", "message"),
    [
        ({"gain": 0.5}, r'needs its gains and its budget .*: average=\{"gain"'),
        ({"gain": (GAINS, 0.1)}, "must be above 0.725, which is gained without any"),
        ({"gain": (np.ones((2, 2)), 0.5)}, "a number for each of the 3 sensitive"),
        ({"gain": ([], 0.5)}, "a row for each guess"),
        ({"gain": ({"g": {NAMES[0]: 1}}, 0.5)}, "no column for the sensitive symbol"),
        (
            {"gain": ({"g": {**GAINS["last"], "z": 1}}, 0.5)},
            "a column 'z', which is no sensitive symbol",
        ),
        ({"gain": (-np.eye(3), 0.5)}, "the gain of the guess '0' for .* is negative"),
        ({"gain": ([["x", 1, 1]], 0.5)}, "the gain of the guess '0' for"),
        ({"gain": (GAINS, "x")}, "must be a number, or a per cent"),
        ({"none.csv": 0.5}, "none.csv"),
        ({"gains": 0.5}, "is not known; use one of .*, or a CSV file of gains"),
    ],
)
def test_refusals(average, message):
    with pytest.raises(InputError, match=message):
        md.design(JOINT, average=average)


def test_gains_are_asked_for_once(tmp_path):
    path = tmp_path / "gains.csv"
    path.write_text(f"guess,{','.join(NAMES)}\ng,1,0,0\nh,0,1,0\n")
    with pytest.raises(InputError, match="has gains twice"):
        md.design(JOINT, average={"gain": (GAINS, 0.85), str(path): 0.85})
    with pytest.raises(InputError, match="needs its gains and its budget"):
        md.design(JOINT, average={"gain": None}, keep=0.5)
    with pytest.raises(InputError, match="leave the budget of gain out"):
        md.design(JOINT, average={"gain": (GAINS, 0.5)}, keep=0.5)


def test_the_least_gain_of_a_share(tmp_path):
    """The channel within the least gain keeps the share, and no more than it."""
    keep = 0.8
    least = md.design(JOINT, average={"gain": (GAINS, None)}, keep=keep)
    (average,) = least.channel.record.averages
    assert least.nmi >= keep
    assert average.lower_bound <= average.achieved <= average.lower_bound + 1e-3
    most = md.design(JOINT, average={"gain": (GAINS, average.achieved)})
    assert most.nmi == pytest.approx(keep, abs=2e-3)
    path = tmp_path / "gains.csv"
    lines = [f"guess,{','.join(NAMES)}"]
    for guess, row in GAINS.items():
        lines.append(f"{guess},{','.join(str(row[name]) for name in NAMES)}")
    path.write_text("\n".join(lines) + "\n")
    same = md.design(JOINT, average={str(path): None}, keep=keep)
    assert same.channel.record.averages[0].gains == average.gains
    assert same.nmi == pytest.approx(least.nmi, abs=1e-9)


def test_gains_with_the_gains_of_right_guesses_leak_as_guesses_do():
    gain = md.design(JOINT, average={"gain": (np.eye(3), None)}, keep=0.7)
    guess = md.design(JOINT, average={"guess": None}, keep=0.7)
    (of_gain,), (of_guess,) = (
        gain.channel.record.averages,
        guess.channel.record.averages,
    )
    assert of_gain.achieved == pytest.approx(of_guess.achieved, abs=1e-6)


def test_greedy_merging_stands_beside_gains():
    optimum, greedy = md.compare(JOINT, average={"gain": (GAINS, 0.85)}).rows
    assert greedy.mechanism == "greedy-merging"
    assert greedy.figure <= 0.85
    assert greedy.nmi <= optimum.nmi + 1e-6


def test_records_of_gains_are_checked():
    with pytest.raises(ValueError, match="gains belong to an average"):
        AverageBudget(measure="mi", budget=0.1, gains=(("1",),))
    with pytest.raises(ValueError, match="gains belong to an average"):
        AverageBudget(measure="gain", budget=0.1)
    with pytest.raises(ValueError, match="a number for each sensitive symbol"):
        AverageBudget(measure="gain", budget=0.1, gains=(("1",), ("1", "2")))
    with pytest.raises(ValueError, match="must not be negative"):
        AverageBudget(measure="gain", budget=0.1, gains=(("-1",),))
    channel = md.design(JOINT, md.LIP(0.1)).channel
    assert average_leakage(channel, JOINT, "gain", [[Fraction(1)] * 3]) == 1.0


def test_the_solver_checks_gains():
    for gains, message in (
        (None, "needs a matrix of gains"),
        (np.ones((2, 2)), "a row for each guess with 3 numbers"),
        (-np.eye(3), "finite and not negative"),
    ):
        with pytest.raises(InvalidOption, match=message):
            best_channel_within(JOINT.p, {"gain": 0.1}, gains=gains)
