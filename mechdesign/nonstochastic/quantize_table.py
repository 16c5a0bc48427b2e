"""A first release by quantisation: the mechanism is designed for a table, then applied to it.

The design depends only on what is public of the table: the sizes of its groups, and the number of
answers that one individual takes part in. With a budget for one answer, nothing of the table is
needed; a budget for all answers of one individual takes a pass over the table of its own.

`quantise_table` does it in three steps:

1. The options become a mechanism without budget and thresholds (`_undesigned`). It has the query,
   the range of the values, and a rule by which thresholds are to be placed.
2. It gets the budget of one answer, at once (`_with_budget`) or with the table at hand
   (`_TotalBudget`).
3. `release_table` places the thresholds for each size of group that it meets, and answers.

For example, the mean income by town with 2 bits: 2^2 = 4 outputs, and thresholds for the groups of
12 people, of 30 people, and so on. With a total of 4 bits instead, `_TotalBudget` finds that one
person is in at most 2 groups. The 2^4 = 16 outputs of both answers together are shared equally, so
each has 4 again; or they are divided (`split`) so that the errors are smallest.

*Options* are checked before any work. `QuantizeOptions` has the options as they were typed.
`check_options` finds contradictions, in one sentence each, before a file is opened. `parse_range`
and `nearest_double` make numbers of texts: the doubles nearest to them, because the guarantee is
about doubles, as the values of a table are.

For example, ``--query mean --group-by town --range 0,60 --epsilon 1`` is ``QuantizeOptions(
column="kwh", query="mean", group_by=("town",), range_text="0,60", epsilon="1")``. With ``--query
count`` the range is refused: a record counts as 0 or 1.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from mechdesign.core.arguments import fraction_of, fraction_of_text
from mechdesign.core.errors import InputError
from mechdesign.core.files import STANDARD, PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.wording import quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source
from mechdesign.nonstochastic.dividing import divided
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    DIVIDED,
    OUTSIDE,
    MechanismFile,
    Outside,
)
from mechdesign.nonstochastic.mechanism_jobs import ReleaseArguments, release_table
from mechdesign.nonstochastic.noiseless import (
    LAYOUTS,
    allowance,
    epsilon_for,
    outputs_allowed,
    share_of,
)
from mechdesign.nonstochastic.number_columns import NUMBER
from mechdesign.nonstochastic.queries import (
    QUERY,
    Domain,
    IntervalDomain,
    finite,
    interval,
)
from mechdesign.nonstochastic.release_answers import RangeRelease
from mechdesign.nonstochastic.table_answers import RECORDS, Answering

# ------------------------------------------------------------------------------ options


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """The query of a release, its range and its budget; the names are those of the command line.

    Parameters
    ----------
    column, query, group_by
        The column of numbers, a query of `QUERY`, and the columns that name the group.
    epsilon
        Bits of one answer; not used with a total budget.
    range_text
        ``lo,hi``, the smallest and largest value that a cell could have.
    domain
        All values that a cell can have, or their probabilities by value.
    equals
        The value that a count counts.
    individual
        The column that identifies individuals.
    thresholds
        "optimal" or "most", or a list; otherwise they follow from the layout.
    split
        The division of a total budget among answers.
    """

    column: str
    epsilon: object
    query: str = "identity"
    group_by: tuple[str, ...] = ()
    range_text: str | None = None
    equals: str | None = None
    individual: str | None = None
    outside: Outside = "refuse"
    layout: str = "widest"
    split: str | None = None
    domain: Sequence[float] | Mapping[float, object] | None = None
    thresholds: str | Sequence[float] | None = None
    missing: str = "refuse"


def check_options(options: QuantizeOptions) -> None:
    """Raise InputError if options are unknown or contradict each other."""
    if re.fullmatch(QUERY.pattern, options.query, re.ASCII) is None:
        raise InputError(
            f"--query ({quoted(options.query)}) must be {QUERY.requirement}"
        )
    _check_outside(options)
    if options.layout not in LAYOUTS:
        raise InputError(
            f"--layout ({quoted(options.layout)}) must be one of {', '.join(LAYOUTS)}"
        )
    _check_split(options)
    if options.query == "identity" and options.group_by:
        raise InputError(
            "--group-by needs a --query of groups (mean, sum, count, median ..): the identity "
            "releases record by record"
        )
    # A count has its own domain, {0, 1}.
    counts = options.query == "count"
    if counts and options.domain is not None:
        raise InputError("--domain is not for --query count: a record counts as 0 or 1")
    if options.equals is not None and not counts:
        raise InputError(f"--equals is for --query count, not for {options.query}")
    if counts and options.range_text is not None:
        raise InputError("--range is not for --query count: a record counts as 0 or 1")
    _check_columns(options)


def _check_outside(options: QuantizeOptions) -> None:
    """Raise InputError if values outside the range cannot be treated so."""
    outside = options.outside
    if outside not in OUTSIDE:
        raise InputError(
            f"--outside ({quoted(outside)}) must be one of {', '.join(OUTSIDE)}"
        )
    if options.query == "count" and outside in DISCLOSED_OUTSIDE:
        raise InputError(
            f"a record counts as 0 or 1: there is nothing outside to {outside}"
        )


def _check_split(options: QuantizeOptions) -> None:
    """Raise InputError if a total budget cannot be divided so."""
    split = options.split
    if split not in (None, "levels", *DIVIDED):
        raise InputError(
            f"split ({quoted(split)}) must be one of levels, {', '.join(DIVIDED)}"
        )
    if split not in DIVIDED:
        return
    # The errors that are weighed are those of the widest layout (`dividing.worst_errors`).
    if options.layout != "widest" or options.thresholds is not None:
        raise InputError(
            f"--split {split} weighs the errors of --layout widest: leave out --thresholds and "
            "other layouts"
        )
    if options.outside == "drop":
        raise InputError(
            f"--split {split} goes by the sizes of groups, which would depend on values: "
            "--outside drop is not for it"
        )


def _check_columns(options: QuantizeOptions) -> None:
    """Raise InputError if a column has two roles, or the name of a column of the output."""
    # The column of numbers would be disclosed whole as the name of a group.
    other_columns = list(options.group_by)
    if options.individual:
        other_columns.append(options.individual)
    if options.column in other_columns:
        raise InputError(
            f"the column {quoted(options.column)} cannot be released and be a group or "
            "individual too"
        )
    if options.query == "identity":
        return
    output_columns = (RECORDS, f"{options.query.replace(':', '_')}_{options.column}")
    clash = [name for name in options.group_by if name in output_columns]
    if clash:
        raise InputError(
            f"the group column {', '.join(map(quoted, clash))} has the name of a column of the "
            "output; rename it"
        )


def parse_range(text: str | None, query: str) -> IntervalDomain:
    """``lo,hi`` as the doubles nearest to what was typed.

    Values of a table are read as doubles, so both have the same rounding.
    """
    if text is None:
        raise InputError(
            f"the sensitivity of {query} cannot be bounded: --range lo,hi is missing, the "
            "smallest and largest value that anybody's cell could have (not those of this file, "
            "which would disclose them)"
        )
    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"--range {quoted(text)} must be two numbers, lo,hi")
    ends: list[float] = []
    for part in parts:
        if not re.fullmatch(NUMBER, part, re.ASCII) or not math.isfinite(float(part)):
            raise InputError(
                f"--range {quoted(text)}: {quoted(part)} is not a finite number"
            )
        ends.append(float(part))
    if ends[0] > ends[1]:
        raise InputError(
            f"--range {quoted(text)} is reversed; give lo,hi with lo <= hi"
        )
    # Errors, which are doubles, can be as large as the range.
    if not math.isfinite(ends[1] - ends[0]):
        raise InputError(
            f"--range {quoted(text)} is wider than any double; use a larger unit"
        )
    return interval(ends[0], ends[1])


def nearest_double(epsilon: object) -> object:
    """The nearest double of a budget that was typed; anything but text stays as it is."""
    if not isinstance(epsilon, str):
        return epsilon
    try:
        return float(fraction_of_text(epsilon))
    except (InputError, OverflowError):
        raise InputError(
            f"--epsilon ({quoted(epsilon)}) must be a number of bits, 0 or more"
        ) from None


# ------------------------------------------------------------------------------ release


def quantise_table(
    source: PathLike,
    target: PathLike,
    options: QuantizeOptions,
    *,
    total_epsilon: object = None,
    **writing: Unpack[ReleaseArguments],
) -> RangeRelease:
    """Release a quantised column (identity), or a quantised answer for each group.

    The release is written as the source is: Parquet, or a CSV with its delimiter, quotes, encoding
    and line ends, whose other cells stay to the byte; compressed if the name of the target says so.
    The mechanism file is written beside the target (``TARGET.mechanism.json``) unless a path is
    given; all is written whole or not at all.

    Parameters
    ----------
    total_epsilon
        Bits of all answers of one individual together, in the place of `options.epsilon`.
    """
    check_options(options)
    if total_epsilon is not None and options.individual is None:
        raise InputError(
            "a total budget is one of an individual: name the column that identifies individuals "
            "(--individual)"
        )
    if options.split is not None and total_epsilon is None:
        raise InputError(
            "--split says how --total-epsilon is shared by the answers: give it too"
        )
    mechanism = _undesigned(options)
    writing["individual"] = options.individual
    writing["equals"] = options.equals
    if total_epsilon is None:
        mechanism, notices = _with_budget(mechanism, options.epsilon)
        release = release_table(
            mechanism, source, target, query=options.query, **writing
        )
    else:
        design = _TotalBudget(mechanism, options, total_epsilon)
        release = release_table(
            design.designed, source, target, query=options.query, **writing
        )
        notices = design.notices
    return replace(release, notices=(*notices, *release.notices))


def _undesigned(options: QuantizeOptions) -> MechanismFile:
    """The mechanism without budget and thresholds; its provenance has the rule to place them."""
    domain = _domain_of(options)
    return MechanismFile(
        query=options.query,
        column=options.column,
        group_by=options.group_by,
        domain=domain,
        epsilon=0.0,
        mechanisms=(),
        outside=options.outside,
        provenance={
            "tool": "mechdesign",
            **_placing_rule(options),
            "missing": options.missing,
        },
    )


def _domain_of(options: QuantizeOptions) -> Domain:
    """The possible values of one individual: the listed ones, or a range."""
    if options.domain is not None and options.range_text is None:
        return finite(map(float, options.domain))
    if options.query == "count":
        # Each record adds 0 or 1 to a count.
        return interval(0, 1)
    query = f"the {options.query} of {quoted(options.column)}"
    return parse_range(options.range_text, query)


def _placing_rule(options: QuantizeOptions) -> dict[str, Any]:
    """What decides where thresholds are placed, as the provenance of a mechanism has it.

    That is the layout, or the thresholds themselves if they are given; the values for which they
    are placed, where these are not the domain itself; and the probabilities of the values.
    """
    rule: dict[str, Any] = {"layout": options.layout}
    has_range = options.range_text is not None and options.query != "count"
    if options.domain is not None and has_range:
        # Thresholds are placed for these values, and counted for all of the range.
        points = finite(map(float, options.domain))
        rule["points"] = [float(value) for value in points.values]
    if isinstance(options.domain, Mapping):
        # In the order of the values, as `finite` sorts them.
        weights: list[float] = []
        for value in sorted(options.domain):
            weights.append(float(fraction_of(options.domain[value])))
        rule["weights"] = weights
    if isinstance(options.thresholds, str):
        rule["layout"] = options.thresholds
    elif options.thresholds is not None:
        rule["layout"] = "given"
        rule["thresholds"] = sorted(map(float, options.thresholds))
    return rule


def _with_budget(
    mechanism: MechanismFile, epsilon: object
) -> tuple[MechanismFile, list[str]]:
    """The mechanism with a budget for each answer, and notices of that budget."""
    allowed = allowance(nearest_double(epsilon))
    notices: list[str] = []
    if allowed.notice:
        notices.append(allowed.notice)
    if allowed.outputs == 1:
        notices.append(
            "epsilon allows one output: every answer is the same, and nothing is released"
        )
    return replace(mechanism, epsilon=float(allowed.epsilon)), notices


class _TotalBudget:
    """The design for a budget of all answers of one individual, by the groups of a table.

    `release_table` calls `designed` once with the open table; then `notices` has what the user gets
    to know of the division.
    """

    def __init__(
        self, mechanism: MechanismFile, options: QuantizeOptions, total_epsilon: object
    ) -> None:
        self._mechanism = mechanism
        self._options = options
        self._total_epsilon = total_epsilon
        self.notices: list[str] = []

    def designed(self, table: Source) -> MechanismFile:
        """The mechanism for the groups of a table."""
        answering = Answering(self._mechanism, table)
        individual = self._options.individual or ""
        groups = answering.members(individual)
        # The outputs of all answers that one individual takes part in multiply, so whoever takes
        # part in most of them decides. A table without records counts as one answer.
        answers = answering.most_answers(groups, individual) or 1
        total = nearest_double(self._total_epsilon)
        share = share_of(total, answers)
        if self._is_split(share):
            by_size, notice = divided(
                self._mechanism,
                groups,
                outputs_allowed(total),
                share,
                str(self._options.split),
            )
            largest = max(sized.certificate.outputs for sized in by_size.mechanisms)
            self._refuse_one_output(largest, answers)
            self.notices.append(notice)
            return by_size
        self._refuse_one_output(share, answers)
        self.notices.append(
            f"each of the {answers} answers that one individual takes part in may have {share} "
            f"outputs: {share}^{answers} in all"
        )
        return replace(self._mechanism, epsilon=epsilon_for(share))

    def _refuse_one_output(self, outputs: int, answers: int) -> None:
        """Raise InputError if no answer has more than one output: nothing would be released."""
        if outputs == 1:
            raise InputError(
                f"{self._total_epsilon} bits for {answers} answers are less than one bit for each: "
                "all would be the same, and nothing be released; make fewer answers (coarser "
                "groups), or raise the total"
            )

    def _is_split(self, share: int) -> bool:
        """Whether the budget is divided by size of group, not by equal shares."""
        # The records of an identity are groups of one, so equal shares are the only division.
        if self._options.split not in DIVIDED or self._mechanism.query == "identity":
            return False
        # Where only the output outside the range fits into a share, there is nothing to divide.
        return share > int(self._mechanism.outside in DISCLOSED_OUTSIDE)


def compare_budgets(
    source: PathLike,
    options: QuantizeOptions,
    epsilons: Sequence[float],
    *,
    text: TextOptions | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """The promises of a release for each budget, and its errors, which depend on the data.

    The releases are written into a folder of their own and forgotten.
    """
    if source == STANDARD:
        raise InputError(
            "the data are read once for each budget: name a file, not standard input"
        )
    records: dict[str, Any] = {}
    if options.query == "identity":
        # As a further column: then no disclosure by the order or by other columns is refused.
        records["into"] = "in cells"
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mechdesign-") as folder:
        target = Path(folder, Path(source).name)
        for epsilon in epsilons:
            release = quantise_table(
                source,
                target,
                replace(options, epsilon=epsilon),
                records=records,
                text=text,
                progress=progress,
                force=True,
            )
            rows.append(_curve_row(epsilon, release))
    return rows


def _curve_row(epsilon: float, release: RangeRelease) -> dict[str, Any]:
    """Promises and errors of a release with a budget."""
    quantizers = [sized.quantizer for sized in release.mechanism.mechanisms]
    return {
        "epsilon": epsilon,
        "outputs": release.mechanism.guarantee["outputs"],
        "total_epsilon": release.total_epsilon,
        "levels": max(quantizer.levels for quantizer in quantizers),
        "possible_error": float(max(q.worst_error for q in quantizers)),
        "worst_error": release.worst_error,
        "mean_error": release.mean_error,
        "relative_error": release.relative_error,
    }
