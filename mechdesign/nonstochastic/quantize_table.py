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
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.wording import quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source
from mechdesign.formats.urls import STANDARD
from mechdesign.nonstochastic.dividing import divided
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    DIVIDED,
    MechanismFile,
)
from mechdesign.nonstochastic.mechanism_jobs import (
    ReleaseArguments,
    release_table,
)
from mechdesign.nonstochastic.output_budgets import (
    allowance,
    epsilon_for,
    outputs_allowed,
    share_of,
)
from mechdesign.nonstochastic.quantize_options import (
    QuantizeOptions,
    check_options,
    nearest_double,
    parse_range,
)
from mechdesign.nonstochastic.queries import Domain, finite, interval
from mechdesign.nonstochastic.release_answers import RangeRelease
from mechdesign.nonstochastic.table_answers import Answering


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
        groups = answering.members(self._options.individual or "")
        # The outputs of all answers that one individual takes part in multiply, so whoever takes
        # part in most of them decides. A table without records counts as one answer.
        answers = answering.most_answers(groups) or 1
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
