"""Designs for queries and tasks: published figures, exactness of the promise, agreement with `estimate`."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

import mechdesign as md
from mechdesign.analysis.frequencies import estimate_frequencies
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.mechanisms import query_design
from mechdesign.mechanisms.purposes import task_figures
from mechdesign.mechanisms.queries import Queries, queries_of
from mechdesign.mechanisms.query_design import total_variance
from mechdesign.tables.joint import Joint
from solvers import Array, EnvelopeStatus, Points
from solvers.purposes.queries import LeastVariance
from tests.cases.people import ADULT
from tests.profiles import scaled, slow


@pytest.fixture(scope="module")
def frequencies(adult):
    """The channel for all frequencies."""
    return md.design(adult, md.LIP(0.5), objective="frequencies")


@pytest.mark.parametrize(
    ("epsilon", "variance", "of_information"),
    [(2.0, 0.976, 0.980), (1.0, 1.390, 1.887), (0.5, 2.507, 11.34)],
)
def test_adults_shares(adult, epsilon, variance, of_information):
    """The figures of a prototype by barrier Newton, and of the channel that keeps most information."""
    notion = md.ALIP(epsilon / 2, epsilon / 2)
    result = md.design(adult, notion, objective="frequencies")
    assert result.purpose.variance == pytest.approx(variance, rel=1e-3)
    assert result.purpose.variance_lower_bound <= result.purpose.variance
    assert result.purpose.variance <= result.purpose.variance_lower_bound * (1 + 2e-4)
    assert result.purpose.noise_free == pytest.approx(0.902, abs=1e-3)
    assert md.audit(result.channel, adult, notion).satisfied
    other = md.design(adult, notion)
    queries, _ = queries_of("frequencies", adult)
    spread = total_variance(other.channel, queries, adult)
    assert spread == pytest.approx(of_information, rel=0.01)


def test_the_printed_variance_is_that_of_estimate(adult, frequencies):
    """`estimate` prints standard errors; their squares sum to variance / N at the table's shares."""
    channel = frequencies.channel
    records = 10**9
    expected = adult.p_x @ channel.matrix * records
    counts = {
        label: round(count)
        for label, count in zip(channel.outputs, expected, strict=True)
    }
    estimated = estimate_frequencies(channel, counts)
    total = float(np.square(estimated.standard_errors).sum())
    variance = frequencies.purpose.variance
    assert total * estimated.records == pytest.approx(variance, rel=1e-4)


def test_simulated_estimates_have_this_variance(adult, frequencies):
    channel = frequencies.channel
    generator = np.random.default_rng(7)
    records = 20_000
    masses = adult.p_x @ channel.matrix
    errors = []
    for _ in range(300):
        drawn = generator.multinomial(records, masses / masses.sum())
        counts = dict(zip(channel.outputs, drawn.tolist(), strict=True))
        estimated = estimate_frequencies(channel, counts)
        errors.append(records * np.square(estimated.unbiased - adult.p_x).sum())
    standard_error = np.std(errors) / np.sqrt(len(errors))
    missed = abs(np.mean(errors) - frequencies.purpose.variance)
    assert missed < 4 * standard_error


@pytest.mark.parametrize("objective", ["prefix", "ranges"])
def test_ordered_queries_follow_numbers(objective):
    counts = np.array([[30, 5, 20, 9], [4, 25, 10, 11]])
    text = md.Joint.from_counts(counts, useful_labels=["10", "9", "2", "1"])
    ascending = md.Joint.from_counts(
        counts[:, ::-1], useful_labels=["1", "2", "9", "10"]
    )
    notion = md.LIP(0.5)
    first = md.design(text, notion, objective=objective).purpose
    second = md.design(ascending, notion, objective=objective).purpose
    assert first.variance == pytest.approx(second.variance, rel=1e-3)


def test_ranges_are_all_intervals():
    joint = md.Joint.from_counts([[3, 1, 2], [1, 4, 2]], useful_labels=["1", "2", "3"])
    queries, remark = queries_of("ranges", joint)
    assert remark is None
    rows = {tuple(row) for row in queries.matrix.astype(int).tolist()}
    assert rows == {
        (1, 0, 0),
        (1, 1, 0),
        (1, 1, 1),
        (0, 1, 0),
        (0, 1, 1),
        (0, 0, 1),
    }


def test_symbols_that_are_no_numbers_are_said_to_be_in_the_order_of_texts(adult):
    result = md.design(adult, md.LIP(1.0), objective="prefix")
    assert any("order of its symbols as text" in message for message in result.messages)


def random_tables(seed):
    generator = np.random.default_rng(seed)
    counts = generator.integers(5, 40, size=(2, 4))
    share = generator.permutation([0.05, 0.3, 0.6, 0.95])
    totals = counts.sum(axis=0)
    first = np.rint(share * totals).astype(int)
    names = ["u", "v", "w", "x"]
    joint = md.Joint.from_counts(counts, useful_labels=names)
    of_task = md.Joint.from_counts(
        [first, totals - first], useful_labels=names, sensitive="task"
    )
    return joint, of_task


@settings(max_examples=scaled(20), deadline=None)
@given(seed=st.integers(0, 5_000), epsilon=st.sampled_from([0.1, 0.4, 1.5]))
def test_tasks_keep_more_of_the_task_than_the_optimum_for_information(seed, epsilon):
    joint, task = random_tables(seed)
    notion = md.LIP(epsilon)
    result = md.design(joint, notion, objective="task", task=task)
    assert md.audit(result.channel, joint, notion).satisfied
    kept = _task_share(result.channel, task)
    assert result.purpose.task_kept == pytest.approx(kept, abs=1e-9)
    assert kept <= result.purpose.task_upper_bound + 1e-9
    assert result.purpose.task_upper_bound - result.purpose.task_kept <= 2e-4
    for other in (
        md.design(joint, notion),
        md.design(joint, notion, mechanism="subset-merging"),
    ):
        assert (
            _task_share(other.channel, task) <= result.purpose.task_upper_bound + 1e-9
        )


def _task_share(channel, task):
    """I(T;Y) / I(T;X), by the definition."""
    w = channel.matrix
    masses = task.p @ w
    return _information(masses) / _information(task.p)


def _information(joint):
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    return float((joint[positive] * np.log(joint[positive] / product[positive])).sum())


def test_a_data_frame_names_the_task():
    frame = pd.DataFrame(
        {
            "s": list("aabbaabbab") * 5,
            "x": list("uvwuvwuvwu") * 5,
            "t": list("0101100101") * 5,
        }
    )
    result = md.design(
        frame, md.LIP(0.5), sensitive="s", useful="x", objective="task", task="t"
    )
    assert result.purpose.column == "t"
    assert 0.0 <= result.purpose.task_kept <= result.purpose.task_upper_bound <= 1.0


def test_queries_of_ones_own(adult, frequencies):
    first = np.zeros((1, 15))
    first[0, :5] = 1.0
    result = md.design(adult, md.LIP(0.5), objective=Queries(first))
    of_everything = total_variance(frequencies.channel, Queries(first), adult)
    assert result.purpose.variance <= of_everything * (1 + 1e-3)


def test_a_purpose_survives_the_file(frequencies, tmp_path):
    result = frequencies
    result.channel.save(tmp_path / "c.json")
    loaded = md.Channel.load(tmp_path / "c.json")
    assert loaded.record.utility["variance"] == result.purpose.variance
    result.channel.save(tmp_path / "p.json", public=True)
    assert "variance" not in (tmp_path / "p.json").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "task"}, "belong together"),
        (
            {"objective": "frequencies", "mechanism": "subset-merging"},
            "mechanism of their own",
        ),
        ({"objective": "frequencies", "keep_frequencies": True}, "own symbols"),
        (
            {"objective": Queries(np.ones((1, 3)))},
            "each of the 15 useful symbols, not 3",
        ),
        ({"objective": "task", "task": "income"}, "task must be a Joint"),
    ],
)
def test_what_does_not_fit_is_refused(adult, options, message):
    with pytest.raises(InputError, match=message):
        md.design(adult, md.LIP(0.5), **options)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([["a"]], "must be numbers"),
        ([1.0], "a table of numbers"),
        ([[np.nan]], "finite"),
        ([[0.0]], "all coefficients"),
    ],
)
def test_queries_that_are_none(matrix, message):
    with pytest.raises(InputError, match=message):
        Queries(matrix)


@pytest.mark.parametrize(
    ("sensitive", "useful", "epsilon", "kept", "of_information"),
    [
        ("relationship", "occupation", 0.5, 0.593, 0.305),
        slow("relationship", "occupation", 1.0, 0.846, 0.699),
        slow("race", "education", 0.5, 0.468, 0.204),
    ],
)
def test_the_task_income_on_adult(
    data, sensitive, useful, epsilon, kept, of_information
):
    frame = pd.read_csv(
        data / "adult" / "adult.data", names=ADULT, skipinitialspace=True
    )
    notion = md.ALIP(epsilon / 2, epsilon / 2)
    columns = {"sensitive": sensitive, "useful": useful}
    result = md.design(frame, notion, **columns, objective="task", task="income")
    assert result.purpose.task_kept == pytest.approx(kept, abs=6e-4)
    assert result.purpose.task_upper_bound - result.purpose.task_kept <= 1e-4
    task = md.Joint.from_table(frame, sensitive="income", useful=useful)
    other = md.design(frame, notion, **columns)
    assert _task_share(other.channel, task) == pytest.approx(of_information, abs=2e-3)


def _table_with_task(n: int) -> pd.DataFrame:
    """Records of n symbols, each with shares of its own of a secret and a task."""
    rng = np.random.default_rng(3)
    x = np.repeat(np.arange(n), 40)
    secret = rng.random(len(x)) < rng.random(n)[x] * 0.4 + 0.3
    task = rng.random(len(x)) < rng.random(n)[x]
    return pd.DataFrame({"x": x, "s": secret, "t": task}).astype(str)


def test_a_task_without_time_keeps_no_less_than_merged_symbols():
    """Outputs on the ways to all symbols tell little; merged symbols have fewer entries and tell
    more.
    """
    frame = _table_with_task(30)
    options = {"sensitive": "s", "useful": "x", "unit": "record"}
    late = md.design(
        frame, md.LIP(0.5), objective="task", task="t", time_limit=0.0, **options
    )
    merged = md.design(frame, md.LIP(0.5), mechanism="subset-merging", **options)
    joint = merged.channel.joint
    task = md.Joint.from_table(frame, sensitive="t", useful="x")
    figures = task_figures(merged.channel, joint, task)
    assert late.purpose.task_kept >= figures.kept * (1 - 1e-9)
    assert md.audit(late.channel, joint, md.LIP(0.5)).satisfied
    with_time = md.design(
        frame, md.LIP(0.5), objective="task", task="t", gap=0.01, **options
    )
    assert with_time.purpose.task_kept >= late.purpose.task_kept


def test_queries_without_time_for_a_step_use_few_symbols_an_output(monkeypatch):
    """All symbols are told apart, by outputs within sets of symbols."""
    monkeypatch.setattr(query_design, "MOST_DIRECT", 1)
    monkeypatch.setattr(query_design, "LARGE_SET", 5)
    monkeypatch.setattr(query_design, "seconds_of_step", lambda n, k: 1e9)
    frame = _table_with_task(30)
    options = {"sensitive": "s", "useful": "x", "unit": "record"}
    result = md.design(
        frame, md.LIP(0.5), objective="frequencies", time_limit=60.0, **options
    )
    channel = result.channel
    assert np.isfinite(result.purpose.variance)
    assert max(len(inputs) for inputs, _ in channel.columns) < 12
    assert md.audit(channel, channel.joint, md.LIP(0.5)).satisfied
    # The blocks of symbols that share no output give the variance of all at once.
    queries, _ = queries_of("frequencies", channel.joint)
    at_once = total_variance(channel, queries, channel.joint)
    monkeypatch.setattr(query_design, "CONNECTED_FROM", 1)
    assert total_variance(channel, queries, channel.joint) == pytest.approx(at_once)
    assert len(query_design._connected(channel, channel.joint.p_x)) > 1


def test_symbols_that_share_outputs_are_found_without_a_product_of_channels(
    monkeypatch,
):
    """The product of a channel with itself takes 20 s where all of 2,000 symbols have all outputs:
    a graph of symbols and outputs has the same parts.
    """
    joint = md.Joint.from_counts([[5, 3, 2, 6], [2, 4, 7, 1]])
    rows = [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 3]]
    names = joint.useful.names
    channel = Channel(joint.useful, names, rows, 3, joint=joint)
    monkeypatch.setattr(query_design, "CONNECTED_FROM", 1)
    monkeypatch.setattr(csr_array, "__matmul__", None)
    parts = query_design._connected(channel, joint.p_x)
    assert [members.tolist() for members, _ in parts] == [[0, 1], [2], [3]]
    assert [w.tolist() for _, w in parts] == [
        [[2 / 3, 1 / 3], [1 / 3, 2 / 3]],
        [[1.0]],
        [[1.0]],
    ]


def test_queries_with_little_time_are_no_worse_than_without_any(monkeypatch):
    """A step from posteriors that tell little of each symbol is not taken for an improvement."""
    monkeypatch.setattr(query_design, "MOST_DIRECT", 1)
    monkeypatch.setattr(query_design, "MOST_VERTICES", 1)
    monkeypatch.setattr(query_design, "LARGE_SET", 5)
    frame = _table_with_task(30)
    options = {"sensitive": "s", "useful": "x", "unit": "record"}
    asked = {"objective": "frequencies", "time_limit": 60.0, **options}
    with monkeypatch.context() as patched:
        patched.setattr(query_design, "seconds_of_step", lambda n, k: 1e9)
        without = md.design(frame, md.LIP(0.5), **asked).purpose.variance

    def one_step(candidates, *given, start, **others):
        dense = Points.from_dense(candidates)
        late = EnvelopeStatus.TIME_LIMIT
        return LeastVariance(late, start, dense, 1e6, -np.inf, 1)

    monkeypatch.setattr(query_design, "seconds_of_step", lambda n, k: 0.0)
    monkeypatch.setattr(query_design, "least_variance", one_step)
    assert md.design(frame, md.LIP(0.5), **asked).purpose.variance == without


@pytest.mark.parametrize("n", [3, 40])
def test_stars_have_the_variance_of_their_whole_information_matrix(n: int) -> None:
    """A diagonal and two ranks: the inverse of 5,000 symbols took half a minute."""
    random = np.random.default_rng(1)
    point = 0.4 * random.dirichlet(np.ones(n))
    reach = random.uniform(0.05, 0.8, n)
    stars, weights = query_design._stars_at(reach, point / point.sum())
    weights = point.sum() * weights
    u = stars / point
    information = (u.T * weights) @ u
    queries = random.normal(size=(5, n))
    for gram in (np.eye(n), queries.T @ queries):
        expected = np.trace(gram @ np.linalg.inv(information))
        found = query_design._trace_of_stars(reach, weights, point, gram)
        assert found == pytest.approx(expected, rel=1e-9)


def kept_with(joint: Joint, drawn: NDArray[np.int64]) -> Channel:
    """A channel of these integers that keeps the own symbol with what is left of the denominator."""
    n = len(drawn)
    rows = drawn.copy()
    top = 2 * int(rows.sum(axis=1).max())
    rows[np.arange(n), np.arange(n)] += top - rows.sum(axis=1)
    outputs = tuple(f"o{y}" for y in range(n))
    return Channel(joint.useful, outputs, rows.tolist(), top, joint)


@pytest.mark.parametrize("single", [True, False])
def test_a_channel_that_keeps_or_draws_anew_has_its_variance_without_a_matrix(
    adult: Joint, monkeypatch: pytest.MonkeyPatch, single: bool
) -> None:
    """The matrix of 5,000 symbols took 18 s to form and to factor."""
    n = len(adult.useful)
    drawn = np.tile(np.arange(2, 2 + n), (n, 1))
    # Units of rounding are no difference.
    drawn *= 10**12
    noisy = drawn + np.random.default_rng(0).integers(0, 2, (n, n))
    queries = Queries(np.eye(n) if single else np.tril(np.ones((n, n))))
    with monkeypatch.context() as patched:
        patched.setattr(query_design, "LEAST_KEPT", 2.0)
        expected = total_variance(kept_with(adult, drawn), queries, adult)
    for function in ("eigh", "cholesky"):
        monkeypatch.setattr(np.linalg, function, None)
    for rows in (drawn, noisy):
        found = total_variance(kept_with(adult, rows), queries, adult)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("single", [True, False])
def test_a_factor_of_the_information_gives_the_variance_of_its_eigenvalues(
    adult: Joint, monkeypatch: pytest.MonkeyPatch, single: bool
) -> None:
    n = len(adult.useful)
    # Two more symbols share each output than its own one.
    rows = 2 + np.eye(n, dtype=int) + np.roll(np.eye(n, dtype=int), 1, axis=0)
    channel = kept_with(adult, rows)
    outputs, top = channel.outputs, channel.denominator
    queries = Queries(np.eye(n) if single else np.tril(np.ones((n, n))))
    by_eigenvalues = total_variance(channel, queries, adult)
    asked: list[int] = []
    of_all = query_design._spread_of_all

    def counted(information: Array, matrix: Array) -> float | None:
        found = of_all(information, matrix)
        asked.append(1 if found is None else 0)
        return found

    monkeypatch.setattr(query_design, "_spread_of_all", counted)
    monkeypatch.setattr(query_design, "FACTORED_FROM", 1)
    by_factor = total_variance(channel, queries, adult)
    assert by_factor == pytest.approx(by_eigenvalues, rel=1e-9)
    assert asked == [0]
    # Two symbols that no output tells apart: no factor, and no unbiased estimate.
    same = Channel(adult.useful, outputs, [channel.rows[0]] * n, top, adult)
    assert total_variance(same, queries, adult) == math.inf
    assert asked == [0, 1]
