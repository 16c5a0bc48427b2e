"""Frequencies from a release in which some records have no symbol of the channel."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.analysis.file_frequencies import estimate_file
from mechdesign.analysis.frequencies import estimate_frequencies
from mechdesign.core.errors import InputError
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.release.samplers import Policy
from mechdesign.tables.cell_values import CellRules
from tests.profiles import scaled

MANY = 10**9
"""Records of a file whose shares are as good as their expectations."""


def kept(share: Fraction, prior: tuple[int, int] = (3, 1)) -> md.Channel:
    """A channel that keeps a and b with this share, for a table with these records."""
    first, second = prior
    joint = md.Joint.from_counts(
        [[first, 2 * second], [2 * first, second]],
        useful_labels=["a", "b"],
        useful="job",
    )
    same = int(share * 100)
    return md.Channel(
        useful=joint.useful,
        outputs=("A", "B"),
        rows=[[same, 100 - same], [100 - same, same]],
        denominator=100,
        joint=joint,
        sensitive=joint.sensitive,
    )


def expected_counts(
    channel: md.Channel, share_of_a: float, rule: str, share: float
) -> dict[str, int]:
    """The labels of many records, as plain sums over symbols and labels."""
    rows = [[entry / channel.denominator for entry in row] for row in channel.rows]
    counts: dict[str, int] = {}
    table = channel.joint.useful_counts
    for y, label in enumerate(channel.outputs):
        of_filled = share_of_a * rows[0][y] + (1 - share_of_a) * rows[1][y]
        marginal = sum(n * row[y] for n, row in zip(table, rows, strict=True)) / sum(
            table
        )
        other = marginal if rule == "marginal" else float(rule == f"output:{label}")
        counts[label] = round(MANY * ((1 - share) * of_filled + share * other))
    return counts


RULES = st.sampled_from(["marginal", "output:A", "output:B"])
SHARES = st.floats(0.0, 0.9)


@given(
    rule=RULES,
    share=SHARES,
    share_of_a=st.floats(0.0, 1.0),
    keeps=st.integers(55, 99),
    field=st.sampled_from(["missing", "unknown"]),
    method=st.sampled_from(["unbiased", "ml"]),
)
@settings(max_examples=scaled(60), deadline=None)
def test_a_known_share_gives_the_frequencies_of_the_other_records(
    rule, share, share_of_a, keeps, field, method
):
    """E b(Y) = P(x) under (1 - q) W + q r, so the estimate is right whatever q and r are."""
    channel = kept(Fraction(keeps, 100))
    counts = expected_counts(channel, share_of_a, rule, share)
    found = estimate_frequencies(
        channel,
        counts,
        method=method,
        policy=Policy(**{field: rule}),
        **{f"{field}_share": share},
    )
    # The error of a count is half a record, which weighs most where labels say least.
    tolerance = 1.0 / MANY / (2 * keeps / 100 - 1) / (1 - share) + 1e-5
    assert found.as_dict()["a"] == pytest.approx(share_of_a, abs=tolerance)
    assert found.lower[0] - 1e-9 <= found.estimates[0] <= found.upper[0] + 1e-9


@given(rule=RULES, share=SHARES, share_of_a=st.floats(0.0, 1.0))
@settings(max_examples=scaled(60), deadline=None)
def test_an_unknown_share_gives_bounds_that_hold_for_all(rule, share, share_of_a):
    """f + t (f - k) for all t >= 0 has the truth, whatever share of the labels is drawn."""
    channel = kept(Fraction(3, 4))
    counts = expected_counts(channel, share_of_a, rule, share)
    found = estimate_frequencies(channel, counts, policy=Policy(missing=rule))
    assert found.method == "bounds"
    assert np.isnan(found.estimates).all()
    assert found.lower[0] - 1e-4 <= share_of_a <= found.upper[0] + 1e-4
    assert [row["estimate"] for row in found.rows()] == [None, None]
    assert "there are only bounds" in " ".join(found.notices)


def test_intervals_cover_what_they_say():
    channel = kept(Fraction(3, 4))
    random = np.random.default_rng(5)
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    marginal = channel.joint.p_x @ matrix
    right = 0
    for _ in range(200):
        labels = np.zeros(2, np.int64)
        for size, law in ((160, matrix[0]), (240, matrix[1]), (600, marginal)):
            labels += random.multinomial(size, law)
        found = estimate_frequencies(
            channel,
            dict(zip("AB", labels.tolist(), strict=True)),
            policy=Policy(missing="marginal"),
            missing_share=0.6,
        )
        right += bool(found.lower[0] <= 0.4 <= found.upper[0])
    # 95 % at least; three standard deviations of 200 trials are 4.6 %.
    assert right >= 180


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"missing_share": 0.5},
            r"missing_share says that the release has empty cells",
        ),
        (
            {"policy": Policy(missing="marginal"), "missing_share": 1.0},
            r"missing_share \(1\) must be at least 0 and below 1",
        ),
        (
            {
                "policy": Policy(missing="marginal", unknown="marginal"),
                "missing_share": 0.5,
                "unknown_share": 0.5,
            },
            r"the shares of records without a symbol \(1\) must be below 1 together",
        ),
    ],
)
def test_shares_that_cannot_be(arguments, message):
    with pytest.raises(InputError, match=message):
        estimate_frequencies(kept(Fraction(3, 4)), {"A": 5, "B": 5}, **arguments)


@pytest.fixture
def release(tmp_path):
    """A file of 3,000 records of a and 1,000 of b with as many empty cells, and its release."""
    cells = ["a"] * 3000 + [""] * 4000 + ["b"] * 1000
    np.random.default_rng(1).shuffle(cells)
    source = tmp_path / "in.csv"
    source.write_text("".join(f'"{cell}"\n' for cell in ["job", *cells]))
    channel = kept(Fraction(9, 10), (1, 9))
    sanitise_file(
        channel,
        source,
        tmp_path / "out.csv",
        insecure_seed=3,
        policy=Policy(missing="marginal"),
        manifest=tmp_path / "out.csv.manifest.json",
        internal_manifest=tmp_path / "internal.json",
    )
    return channel, tmp_path / "out.csv"


def test_the_manifest_beside_the_file_tells_the_estimate(release):
    channel, out = release
    assert estimate_file(out, channel).method == "bounds"
    found = estimate_file(out, channel, manifest=out.parent / "internal.json")
    assert found.method == "unbiased"
    assert found.as_dict()["a"] == pytest.approx(0.75, abs=0.03)
    assert "50 % of the records had empty cells" in " ".join(found.notices)
    given_share = estimate_file(out, channel, missing_share=0.5)
    assert given_share.as_dict() == pytest.approx(found.as_dict())


def test_without_a_manifest_the_estimate_says_that_it_cannot_know(release):
    channel, out = release
    (out.parent / "out.csv.manifest.json").unlink()
    blind = estimate_file(out, channel)
    assert (
        "no valid manifest of it says whether draws stand in place of empty"
        in " ".join(blind.notices)
    )
    # One that was edited is none, whatever it says.
    edited = (
        (out.parent / "internal.json").read_text().replace('"draw": 0', '"draw": 1')
    )
    (out.parent / "out.csv.manifest.json").write_text(edited)
    assert estimate_file(out, channel).notices == blind.notices
    # The channel itself knows, if it was designed so.
    rules = CellRules(missing="marginal")
    told = channel.with_record(dataclasses.replace(channel.record, rules=rules))
    assert estimate_file(out, told).method == "bounds"


def test_shares_of_records_are_none_of_identifiers(tmp_path):
    """An identifier counts once, and the manifest counts every record of it."""
    cells = [("a", i) for i in range(300)] + [("", 300 + i // 3) for i in range(300)]
    source = tmp_path / "in.csv"
    source.write_text("job,id\n" + "".join(f"{job},{name}\n" for job, name in cells))
    channel = kept(Fraction(9, 10), (1, 9))
    out = tmp_path / "out.csv"
    sanitise_file(
        channel,
        source,
        out,
        insecure_seed=3,
        identity="id",
        keep=["id"],
        keep_order=True,
        policy=Policy(missing="marginal"),
        internal_manifest=tmp_path / "internal.json",
        manifest=tmp_path / "out.csv.manifest.json",
    )
    manifest = tmp_path / "internal.json"
    assert estimate_file(out, channel, manifest=manifest).method == "unbiased"
    once = estimate_file(out, channel, manifest=manifest, identity=["id"])
    assert once.method == "bounds"
    assert once.records == 400


def test_a_stale_manifest_says_nothing_and_a_named_one_is_refused(release):
    channel, out = release
    out.write_text(out.read_text() + "A\n")
    assert estimate_file(out, channel).method == "unbiased"
    with pytest.raises(InputError, match=r"is the manifest of another file than"):
        estimate_file(out, channel, manifest=out.parent / "internal.json")


def test_a_manifest_of_another_channel_is_refused(release):
    _, out = release
    with pytest.raises(InputError, match=r"has no release through this channel"):
        estimate_file(out, kept(Fraction(3, 4)), manifest=out.parent / "internal.json")


def test_joint_frequencies_are_refused(release):
    channel, out = release
    with pytest.raises(InputError, match=r"by=\) need a symbol in every record"):
        estimate_file(out, channel, by="town", policy=Policy(missing="marginal"))


def test_the_check_knows_the_policy_from_the_manifest(release):
    channel, out = release
    assert md.check(channel, out, original=out.parent / "in.csv").plausible
    (out.parent / "out.csv.manifest.json").unlink()
    with pytest.raises(
        InputError, match=r"say what to publish \(policy=Policy\(missing='marginal'\)\)"
    ):
        md.check(channel, out, original=out.parent / "in.csv")
