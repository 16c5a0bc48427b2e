"""A first release by quantisation: the mechanism is designed for a table, then applied to it.

The design depends only on what is public of the table: the sizes of its groups, and the number of
answers that one individual takes part in. With a budget for one answer, nothing of the table is
needed; a budget for all answers of one individual takes a pass over the table of its own.

`quantise_table` turns the options into a mechanism without thresholds, whose provenance has the
rule to place them. `release_table` then lays them out for each size of group that it meets. A
`_TotalBudget` is such a mechanism for a total: `designed` counts the answers of one individual, and
shares or divides the total among them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import quoted
from mechdesign.formats.opening import Source
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.urls import STANDARD
from mechdesign.nonstochastic.dividing import divided
from mechdesign.nonstochastic.domains import Domain, finite, interval
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
    provenance: dict[str, Any] = {"tool": "mechdesign", "layout": options.layout}
    domain: Domain
    if options.domain is not None and options.range_text is None:
        domain = finite(map(float, options.domain))
    elif options.query == "count":
        domain = interval(0, 1)
    else:
        query = f"the {options.query} of {quoted(options.column)}"
        domain = parse_range(options.range_text, query)
        if options.domain is not None:
            # Thresholds are placed for these values, and counted for all of the range.
            points = finite(map(float, options.domain))
            provenance["points"] = [float(value) for value in points.values]
    if isinstance(options.domain, Mapping):
        # In the order of the values, as `finite` sorts them.
        weights: list[float] = []
        for value in sorted(options.domain):
            weights.append(float(fraction_of(options.domain[value])))
        provenance["weights"] = weights
    if isinstance(options.thresholds, str):
        provenance["layout"] = options.thresholds
    elif options.thresholds is not None:
        provenance["layout"] = "given"
        provenance["thresholds"] = sorted(map(float, options.thresholds))
    provenance["missing"] = options.missing
    return MechanismFile(
        query=options.query,
        column=options.column,
        group_by=options.group_by,
        domain=domain,
        epsilon=0.0,
        mechanisms=(),
        outside=options.outside,
        provenance=provenance,
    )


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
        mechanism = self._mechanism
        answering = Answering(mechanism, table)
        groups = answering.members(self._options.individual or "")
        answers = answering.most_answers(groups) or 1
        total = nearest_double(self._total_epsilon)
        share = share_of(total, answers)
        if self._is_split(share):
            by_size, notice = divided(
                mechanism,
                groups,
                outputs_allowed(total),
                share,
                str(self._options.split),
            )
            self.notices.append(notice)
            share = max(sized.certificate.outputs for sized in by_size.mechanisms)
            if share > 1:
                return by_size
        # With one output for each answer nothing would be released.
        if share == 1:
            raise InputError(
                f"{self._total_epsilon} bits for {answers} answers are less than one bit for each: "
                "all would be the same, and nothing be released; make fewer answers (coarser "
                "groups), or raise the total"
            )
        self.notices.append(
            f"each of the {answers} answers that one individual takes part in may have {share} "
            f"outputs: {share}^{answers} in all"
        )
        return replace(mechanism, epsilon=epsilon_for(share))

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
