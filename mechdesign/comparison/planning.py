"""What to release, at which budget: trial designs on a sample of the table.

`plan_release` knows from the assessment which columns name records. It designs a release of all
others at a few budgets, then without each of the columns that tell most, then with numbers in bins
(at each budget, where all were refused without), then with the columns that tell least given, which
are released as they are. All are on the same sample. Each `Trial` says what stays unchanged, what
the choice gains in the columns that it shares with the release of all, and what a rule can find.
The advice is the smallest budget at which enough cells stay; it is advice, not a promise: a design
of the whole table keeps more or less than its sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.auditing.leakages import belief_ranges
from mechdesign.core.errors import MechdesignError, errors_naming
from mechdesign.formats.cells import CellForm
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.leaks.assessment import (
    Assessment,
    crossed_secret,
    every_symbol_sampled,
)
from mechdesign.leaks.coded_table import (
    CodedTable,
    coded_table,
    even_sample,
    in_form,
    without_gaps,
)
from mechdesign.leaks.learners import numbers_in
from mechdesign.mechanisms import design
from mechdesign.mechanisms.result import Design
from mechdesign.notions import ALIP
from mechdesign.tables.cell_values import counted_as
from mechdesign.tables.joint import Joint

SAMPLED = 2_000
"""Records of the sample: a trial takes a second or two."""

MOST_HELD = 1 << 18
"""Records of a file that are held, from which the sample has some of every value of the secret."""

MOST_LIFTS = 20_000
"""Records of the sample times values of the secret: each of them has a lift at each, and the time
of a trial grows faster than these. 60 values have 333 records.
"""

FACTORS = (1.5, 2.0, 3.0)
"""Budgets that are tried: no value of the secret becomes more than so many times as likely, or less
likely by the same factor.
"""

ENOUGH = 0.8
"""The share of unchanged cells from which on a release is advised."""

LEAST_GAIN = 0.01
"""What leaving out a column must gain in the others to be advised, in shares of their cells."""

LEFT_OUT = 3
"""Columns without which a release is tried, those that tell most."""

GIVEN = 3
"""Columns that are tried as given ones, those that tell least."""

GIVEN_COST = 0.005
"""The share of all cells that a given column may cost the others: it stays whole for it."""

MANY_VALUES = 20
"""Numbers with more values are also tried in bins."""

BINS = "quantiles:8"
"""The bins of such numbers, as `--bin` takes them."""

TRIAL_SECONDS = 2.0
"""The time limit of a trial, in processor seconds."""

PLAN_SECONDS = 30.0
"""Processor seconds after which no further trial begins: those of a design by default."""

NOT_TRIED = "the time of all trials was over before it"
"""The refusal of a trial that was not begun."""


@dataclass(frozen=True)
class Trial:
    """A release of the sample.

    Attributes
    ----------
    factor : float
    left_out : tuple of str
        Columns that are left out beside those that name records.
    bins : tuple of str
        Columns of numbers that are in bins.
    given : tuple of str
        Columns that are released as they are.
    columns : dict of str to float
        The expected share of unchanged cells of each column.
    cells : float or None
        Their mean; None where there is no channel.
    gain : float or None
        What the same columns gain of it over the trial of all columns at this budget, none of
        them given, and in bins only where all trials without bins were refused.
    worst : str
        The column with the fewest unchanged cells.
    worst_cells : float
    finds : float
        The most that a rule finds of the value of the secret that it can raise most.
    value : str
        This value.
    share : float
        Its share in the sample.
    seconds : float
        Processor seconds.
    refusal : str
        Why there is no channel; empty otherwise.
    """

    factor: float
    left_out: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    columns: dict[str, float] = field(default_factory=dict[str, float])
    cells: float | None = None
    gain: float | None = None
    worst: str = ""
    worst_cells: float = 0.0
    finds: float = 1.0
    value: str = ""
    share: float = 0.0
    seconds: float = 0.0
    refusal: str = ""


@dataclass(frozen=True)
class Plan:
    """Trials, and what they advise.

    Attributes
    ----------
    records, sampled : int
        Of the table, and of the sample.
    released : tuple of str
        The columns that are advised to be released.
    identifiers : tuple of str
        Columns that name records, or cannot be released.
    left_out : tuple of str
        Further columns that are advised to be left out.
    bins : tuple of str
        Columns that are advised to be put into bins.
    given : tuple of str
        Columns that are advised to be given, of those of `released`.
    factor : float
        The advised budget.
    is_enough : bool
        Whether at least `ENOUGH` of the cells stay in the advised trial.
    not_assessed : tuple of str
        Columns that the assessment was told not to look at.
    has_gaps : bool
        Whether cells are empty, so that the design must be told what they are.
    missing : str
        What they are, as for the assessment.
    trials : tuple of Trial
    """

    records: int
    sampled: int
    released: tuple[str, ...]
    identifiers: tuple[str, ...]
    left_out: tuple[str, ...]
    bins: tuple[str, ...]
    given: tuple[str, ...]
    factor: float
    is_enough: bool
    not_assessed: tuple[str, ...]
    has_gaps: bool
    missing: str
    trials: tuple[Trial, ...]


def plan_release(
    table: Any,
    assessment: Assessment,
    *,
    text: TextOptions | None = None,
    missing: str = "symbol",
    form: CellForm | None = None,
    progress: Callable[[str], None] | None = None,
) -> Plan:
    """Try releases of a sample.

    Parameters
    ----------
    table : path, or a pandas, polars or pyarrow table
        What was assessed.
    assessment : Assessment
    text : TextOptions, optional
        How a CSV file is written.
    missing : str
    form : CellForm, optional
        As they were for the assessment.
    progress : callable, optional
        Called with the name of each trial before it starts.
    """
    coded = in_form(_held(table, text), form or CellForm())
    identifiers = [c.name for c in assessment.columns if c.identifier]
    # The assessment has the worst first; a release has the order of the table.
    telling = [c.name for c in assessment.columns if not c.identifier]
    released = [name for name in coded.columns if name in telling]
    sample = _Sample(
        _sampled(coded, assessment.sensitive, released),
        assessment.sensitive,
        released,
        end=time.process_time() + PLAN_SECONDS,
    )
    looked_at = (*assessment.sensitive, *[c.name for c in assessment.columns])
    has_gaps = any("" in coded.columns[name].values for name in looked_at)
    coded = without_gaps(coded, counted_as(missing), looked_at)
    trials: list[Trial] = []
    for factor in FACTORS:
        _say(progress, f"a factor of {factor:g}")
        trials.append(_trial(sample, factor))
    numbers = _numbers_of(coded, released)
    bins: tuple[str, ...] = ()
    if numbers and all(trial.cells is None for trial in trials):
        # A number of nearly every record's own is refused at every budget; in bins it is not.
        bins = numbers
        for factor in FACTORS:
            _say(progress, f"a factor of {factor:g}, numbers in bins")
            trials.append(_trial(sample, factor, bins=bins))
    factor = _advised(trials)
    base = next(t for t in trials if (t.factor, t.bins) == (factor, bins))
    best = base
    if len(released) > 2:
        for trial in _column_less(sample, base, telling[:LEFT_OUT], progress):
            trials.append(trial)
            best = _better(best, trial)
    if numbers and not bins:
        _say(progress, "numbers in bins")
        trial = _trial(sample, factor, bins=numbers, base=base)
        trials.append(trial)
        best = _better(best, trial)
    if best.cells is not None and len(released) > GIVEN:
        least_telling = telling[: -GIVEN - 1 : -1]
        tried, best = _with_given(sample, coded, base, best, least_telling, progress)
        trials += tried
    return Plan(
        records=assessment.records,
        sampled=sample.table.num_rows,
        released=tuple(name for name in released if name not in best.left_out),
        identifiers=(*identifiers, *coded.unreadable),
        left_out=best.left_out,
        bins=best.bins,
        given=best.given,
        factor=factor,
        is_enough=(best.cells or 0.0) >= ENOUGH,
        not_assessed=tuple(name for name in coded.columns if name not in looked_at),
        has_gaps=has_gaps,
        missing=missing,
        trials=tuple(trials),
    )


def _column_less(
    sample: _Sample,
    base: Trial,
    names: Sequence[str],
    progress: Callable[[str], None] | None,
) -> Iterator[Trial]:
    """The trials that release one of these columns less than the `base`."""
    for name in names:
        _say(progress, f"without {name}")
        bins = tuple(number for number in base.bins if number != name)
        yield _trial(sample, base.factor, left_out=(name,), bins=bins, base=base)


def _with_given(
    sample: _Sample,
    coded: CodedTable,
    base: Trial,
    best: Trial,
    names: Sequence[str],
    progress: Callable[[str], None] | None,
) -> tuple[list[Trial], Trial]:
    """The trials that release these columns as they are, one after the other, and the best one: a
    column stays given where that costs next to nothing.
    """
    trials: list[Trial] = []
    for name in names:
        given = (*best.given, name)
        if name in (*best.left_out, *best.bins):
            continue
        if not _may_be_given(coded, sample.sensitive, given, base.factor):
            continue
        _say(progress, f"{name} given")
        trial = _trial(
            sample,
            base.factor,
            left_out=best.left_out,
            bins=best.bins,
            given=given,
            base=base,
        )
        trials.append(trial)
        if (trial.cells or 0.0) >= (best.cells or 0.0) - GIVEN_COST:
            best = trial
    return trials, best


def _say(progress: Callable[[str], None] | None, trial: str) -> None:
    """Name the trial that begins."""
    if progress is not None:
        progress(trial)


def least_factor(factor: float) -> float:
    """The factor below one of a budget as a command has it: rounded up, so that the promise is as
    strong as that of the trial.
    """
    return math.ceil(10_000 / factor) / 10_000


def _may_be_given(
    coded: CodedTable, sensitive: Sequence[str], names: tuple[str, ...], factor: float
) -> bool:
    """Whether these columns alone keep the promise in all records that are held, for they stay
    unchanged.
    """
    secret = crossed_secret(coded, tuple(sensitive))
    width = len(secret.symbols)
    cells = crossed_secret(coded, names).codes.astype(np.int64) * width + secret.codes
    table = np.bincount(cells, minlength=(int(cells.max()) // width + 1) * width)
    table = table.reshape(-1, width)
    shares = table / table.sum(axis=1, keepdims=True)
    lifts = shares / (table.sum(axis=0) / coded.records)
    return bool(lifts.max() <= factor and lifts.min() >= least_factor(factor))


def _better(best: Trial, trial: Trial) -> Trial:
    """The trial where more of its cells stay and too few do in the best one so far.

    What it leaves out or puts into bins must be of use to its columns: without a column that keeps
    little the mean of the others is larger anyway.
    """
    if trial.cells is None:
        return best
    if best.cells is None:
        return trial
    kept = best.cells
    if kept >= ENOUGH or (trial.gain or 0.0) < LEAST_GAIN:
        return best
    return trial if trial.cells > kept else best


def _advised(trials: Sequence[Trial]) -> float:
    """The smallest factor at which enough cells stay, or the largest that was tried."""
    for trial in trials:
        if trial.cells is not None and trial.cells >= ENOUGH:
            return trial.factor
    tried = [trial for trial in trials if trial.refusal != NOT_TRIED]
    return tried[-1].factor


def _held(table: Any, text: TextOptions | None) -> CodedTable:
    """The records that the sample is drawn from: of a long file some, evenly spread."""
    if not isinstance(table, (str, Path)):
        return coded_table(table, text)
    with open_source(table, text) as source, errors_naming(source.name):
        return even_sample(source, source.header, MOST_HELD)


def _sampled(
    coded: CodedTable, sensitive: Sequence[str], released: Sequence[str]
) -> Any:
    """The columns of a sample, evenly spread, that has every value of the secret."""
    # pyarrow has no complete types.
    pyarrow: Any = import_module("pyarrow")
    secret = crossed_secret(coded, tuple(sensitive))
    sampled = min(SAMPLED, max(1, MOST_LIFTS // len(secret.symbols)))
    step = max(1, -(-coded.records // sampled))
    places = every_symbol_sampled(secret.codes, step)
    columns: dict[str, Any] = {}
    for name in (*sensitive, *released):
        column = coded.columns[name]
        values = np.array(column.values, dtype=object)
        columns[name] = pyarrow.array(values[column.codes[places]].tolist())
    return pyarrow.table(columns)


def _numbers_of(coded: CodedTable, released: Sequence[str]) -> tuple[str, ...]:
    """Released columns of numbers with many values."""
    found: list[str] = []
    for name in released:
        values = [value for value in coded.columns[name].values if value.strip()]
        if len(values) > MANY_VALUES and numbers_in(values) is not None:
            found.append(name)
    return tuple(found)


@dataclass(frozen=True)
class _Sample:
    """What every trial designs a release of."""

    table: Any
    sensitive: Sequence[str]
    released: Sequence[str]
    end: float
    """A moment of `time.process_time`, from which on no trial begins."""


def _trial(
    sample: _Sample,
    factor: float,
    *,
    left_out: tuple[str, ...] = (),
    bins: tuple[str, ...] = (),
    given: tuple[str, ...] = (),
    base: Trial | None = None,
) -> Trial:
    """Design one release of the sample."""
    useful = [name for name in sample.released if name not in left_out]
    released = [name for name in useful if name not in given]
    started = time.process_time()
    if started >= sample.end:
        return Trial(factor, left_out, bins, given, refusal=NOT_TRIED)
    budget = float(np.log(factor))
    try:
        joint = Joint.from_table(
            sample.table,
            sensitive=list(sample.sensitive),
            useful=useful,
            missing="symbol",
        )
        result = design(
            joint,
            ALIP(eps_l=budget, eps_u=budget),
            release=released,
            given=list(given),
            bins=dict.fromkeys(bins, BINS) or None,
            time_limit=TRIAL_SECONDS,
        )
    except MechdesignError as error:
        spent = time.process_time() - started
        return Trial(factor, left_out, bins, given, seconds=spent, refusal=str(error))
    truth = _truth(result, released) | dict.fromkeys(given, 1.0)
    gain: float | None = None
    if base is not None and base.columns:
        gain = float(np.mean([truth[name] - base.columns[name] for name in truth]))
    worst = min(truth, key=lambda name: truth[name])
    value, finds, share = _most_raised(result)
    return Trial(
        factor=factor,
        left_out=left_out,
        bins=bins,
        given=given,
        columns=truth,
        cells=float(np.mean(list(truth.values()))),
        gain=gain,
        worst=worst,
        worst_cells=truth[worst],
        finds=finds,
        value=value,
        share=share,
        seconds=time.process_time() - started,
    )


def _truth(result: Design, released: Sequence[str]) -> dict[str, float]:
    """The expected share of unchanged cells of each column."""
    if result.truth:
        return dict(result.truth)
    least = result.least
    share = 0.0 if least is None else float(least.truth)
    return dict.fromkeys(released, share)


def _most_raised(result: Design) -> tuple[str, float, float]:
    """The value of the secret that a rule can raise most: its name, most and prior share."""
    joint = result.channel.joint
    if joint is None:
        return "", 1.0, 0.0
    best = ("", 0.0, 0.0)
    ranges = belief_ranges(result.channel, joint)
    for name, share, (_, high) in zip(
        joint.sensitive.names, joint.p_s.tolist(), ranges, strict=True
    ):
        if high - share > best[1] - best[2] or not best[0]:
            best = (name, float(high), float(share))
    return best
