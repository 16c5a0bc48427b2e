"""A first release by quantisation, designed as the table asks: budgets for one answer, or for all of them.

What is designed depends on what is public of the table alone: the sizes of its groups, and in how many answers
one individual takes part.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import fraction_of, fraction_of_text, quoted
from mechdesign.core.progress import Progress
from mechdesign.formats.inputs import STANDARD, TextOptions
from mechdesign.formats.opening import Source
from mechdesign.nonstochastic.answering import NUMBER
from mechdesign.nonstochastic.dividing import divided
from mechdesign.nonstochastic.domains import Domain, IntervalDomain, finite, interval
from mechdesign.nonstochastic.mechanism_file import (
    DIVIDED,
    OUTSIDE,
    QUERY,
    TOLD,
    MechanismFile,
    Outside,
)
from mechdesign.nonstochastic.mechanism_jobs import (
    RECORDS,
    Answering,
    Asked,
    Quantised,
    release_table,
)
from mechdesign.nonstochastic.noiseless import LAYOUTS
from mechdesign.nonstochastic.output_budgets import (
    allowance,
    epsilon_for,
    outputs_allowed,
    share_of,
)


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """What to release; the names are those of the command line."""

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
    """Raise InputError if options contradict each other."""
    if re.fullmatch(QUERY.pattern, options.query, re.ASCII) is None:
        raise InputError(f"query ({quoted(options.query)}) must be {QUERY.wanted}")
    query, column, counts = (
        options.query,
        quoted(options.column),
        options.query == "count",
    )
    outside, layout, split = options.outside, options.layout, options.split
    names = [*options.group_by, *((options.individual,) if options.individual else ())]
    made = (RECORDS, f"{query.replace(':', '_')}_{options.column}")
    clash = [name for name in options.group_by if name in made and query != "identity"]
    wrong = {
        f"outside ({quoted(outside)}) must be one of {', '.join(OUTSIDE)}": outside
        not in OUTSIDE,
        f"a record counts as 0 or 1: there is nothing outside to {outside}": counts
        and outside in TOLD,
        f"layout ({quoted(layout)}) must be one of {', '.join(LAYOUTS)}": layout
        not in LAYOUTS,
        f"split ({quoted(split)}) must be one of levels, {', '.join(DIVIDED)}": split
        not in (None, "levels", *DIVIDED),
        f"--split {split} weighs the errors of --layout widest: leave out --thresholds and other layouts": (
            split in DIVIDED and (layout != "widest" or options.thresholds is not None)
        ),
        f"--split {split} goes by the sizes of groups, which would depend on values: --outside drop is not for it": (
            split in DIVIDED and outside == "drop"
        ),
        "--group-by needs a --query of groups (mean, sum, count, median ..): the identity releases record by "
        "record": query == "identity" and options.group_by,
        "--domain is not for --query count: a record counts as 0 or 1": counts
        and options.domain is not None,
        f"--equals is for --query count, not for {query}": options.equals is not None
        and not counts,
        "--range is not for --query count: a record counts as 0 or 1": counts
        and options.range_text is not None,
        f"the column {column} cannot be released and be a group or individual too": options.column
        in names,
        f"the group column {', '.join(map(quoted, clash))} has the name of a column of the output; rename it": clash,
    }
    for message in (said for said, is_so in wrong.items() if is_so):
        raise InputError(message)


def parse_range(text: str | None, query: str) -> IntervalDomain:
    """``lo,hi`` as the doubles nearest to what was typed."""
    if text is None:
        raise InputError(
            f"the sensitivity of {query} cannot be bounded: --range lo,hi is missing, the smallest and largest "
            "value that anybody's cell could have (not those of this file, which would disclose them)"
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
    if not math.isfinite(ends[1] - ends[0]):
        raise InputError(
            f"--range {quoted(text)} is wider than any double; use a larger unit"
        )
    return IntervalDomain(*ends)  # pyright: ignore[reportArgumentType]


def nearest_double(epsilon: object) -> object:
    """Budgets are the nearest doubles of what was typed; anything but text stays as it is."""
    if not isinstance(epsilon, str):
        return epsilon
    try:
        return float(fraction_of_text(epsilon))
    except (InputError, OverflowError):
        raise InputError(
            f"epsilon ({quoted(epsilon)}) must be a number of bits, 0 or more"
        ) from None


def compare_budgets(
    source: PathLike,
    options: QuantizeOptions,
    epsilons: Sequence[float],
    *,
    text: TextOptions | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """For each budget what a release would promise, and its errors, which depend on the data; nothing is released."""
    if source == STANDARD:
        raise InputError(
            "the data are read once for each budget: name a file, not standard input"
        )
    rows: list[dict[str, Any]] = []
    # Beside the column, as which nothing is a release: no order is refused, and no other column.
    how: dict[str, Any] = {
        "records": {"into": "in cells"} if options.query == "identity" else {}
    }
    how |= {"text": text, "progress": progress, "force": True}
    with tempfile.TemporaryDirectory(prefix="mechdesign-") as folder:
        target = Path(folder, Path(source).name)
        for epsilon in epsilons:
            done = quantise_table(
                source, target, replace(options, epsilon=epsilon), **how
            )
            sizes = [m.quantizer for m in done.mechanism.mechanisms]
            row = {"epsilon": epsilon, "outputs": done.mechanism.guarantee["outputs"]}
            row |= {
                "total_epsilon": done.total_epsilon,
                "levels": max(q.levels for q in sizes),
            }
            row |= {"possible_error": float(max(q.worst_error for q in sizes))}
            rows.append(
                row
                | {
                    n: getattr(done, n)
                    for n in ("worst_error", "mean_error", "relative_error")
                }
            )
    return rows


def quantise_table(
    source: PathLike,
    target: PathLike,
    options: QuantizeOptions,
    *,
    total_epsilon: object = None,
    **writing: Unpack[Asked],
) -> Quantised:
    """Release a quantised column (identity), or a quantised answer for each group, in bounded memory.

    The release is written as the source is: Parquet, or a CSV with its delimiter, quotes, encoding and line ends,
    whose other cells stay to the byte; compressed if the name of the target says so. The mechanism file is written
    beside the target (``TARGET.mechanism.json``) unless a path is given; all is written whole or not at all.
    """
    check_options(options)
    if total_epsilon is not None and options.individual is None:
        raise InputError(
            "a total budget is one of an individual: name the column that identifies individuals (--individual)"
        )
    if options.split is not None and total_epsilon is None:
        raise InputError(
            "--split says how --total-epsilon is shared by the answers: give it too"
        )
    of = f"the {options.query} of {quoted(options.column)}"
    placed: dict[str, Any] = {"layout": options.layout}
    domain: Domain
    points = None if options.domain is None else finite(map(float, options.domain))
    if points is not None and options.range_text is None:
        domain = points
    else:
        domain = (
            interval(0, 1)
            if options.query == "count"
            else parse_range(options.range_text, of)
        )
        placed |= (
            {"points": [float(value) for value in points.values]} if points else {}
        )
    if isinstance(options.domain, Mapping):
        shares = sorted(
            (value, float(fraction_of(share)))
            for value, share in options.domain.items()
        )
        placed["weights"] = [share for _, share in shares]
    if isinstance(options.thresholds, str):
        placed["layout"] = options.thresholds
    elif options.thresholds is not None:
        placed |= {
            "layout": "given",
            "thresholds": sorted(map(float, options.thresholds)),
        }
    provenance = {"tool": "mechdesign", **placed, "missing": options.missing}
    same = {
        name: getattr(options, name)
        for name in ("query", "column", "group_by", "outside")
    }
    made = MechanismFile(
        domain=domain, epsilon=0.0, mechanisms=(), provenance=provenance, **same
    )
    notices: list[str] = []
    if total_epsilon is None:
        allowed = allowance(nearest_double(options.epsilon))
        made, notices = replace(made, epsilon=float(allowed.epsilon)), [allowed.notice]
        if allowed.outputs == 1:
            notices.append(
                "epsilon allows one output: every answer is the same, and nothing is released"
            )

    def designed(table: Source) -> MechanismFile:
        asked = Answering(made, table)
        groups = asked.who(options.individual or "")
        answers = asked.most(groups) or 1
        share = share_of(nearest_double(total_epsilon), answers)
        # The records of an identity are groups of one, which all get the same.
        if (
            options.split in DIVIDED
            and made.query != "identity"
            and share > (made.outside in TOLD)
        ):
            total = outputs_allowed(nearest_double(total_epsilon))
            given, notice = divided(made, groups, total, share, options.split)
            notices.append(notice)
            share = max(m.certificate.outputs for m in given.mechanisms)
            if share > 1:
                return given
        if share == 1:
            raise InputError(
                f"{total_epsilon} bits for {answers} answers are less than one bit for each: all would be the same, "
                "and nothing be released; make fewer answers (coarser groups), or raise the total"
            )
        notices.append(
            f"each of the {answers} answers that one individual takes part in may have {share} outputs: "
            f"{share}^{answers} in all"
        )
        return replace(made, epsilon=epsilon_for(share))

    asked: dict[str, Any] = {
        "individual": options.individual,
        "equals": options.equals,
        **writing,
    }
    done = release_table(
        made if total_epsilon is None else designed,
        source,
        target,
        query=options.query,
        **asked,
    )
    return replace(done, notices=(*filter(None, notices), *done.notices))
