"""A first release by quantisation, designed as the table asks: budgets for one answer, or for all of them.

What is designed depends on what is public of the table alone: the sizes of its groups, and in how many answers
one individual takes part.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.core.progress import Progress
from mechdesign.formats.cells import require_column
from mechdesign.formats.compression import Compression
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.nonstochastic.answering import BadCell, Groups
from mechdesign.nonstochastic.domains import IntervalDomain
from mechdesign.nonstochastic.levels import allowance, epsilon_for, outputs_allowed
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.number_columns import parse_range
from mechdesign.nonstochastic.quantize_options import QuantizeOptions, check_options, nearest_double
from mechdesign.sanitise.quantized import Quantised, release_table, tally
from mechdesign.sanitise.source import STANDARD, GuardedInput


@dataclass(frozen=True)
class Share:
    """What one answer may spend of a total."""

    outputs: int
    epsilon: float
    answers: int


def share_of(total_epsilon: object, answers: int) -> Share:
    """The largest K with K^answers <= floor(2^total_epsilon), in integers: the best smallest share.

    The outputs of all answers that one individual takes part in multiply (Farokhi 2020, Theorem 6). Of all
    ways to divide a total among them, equal shares have the largest smallest number of outputs.
    """
    total = outputs_allowed(total_epsilon)
    low, high = 1, 1 << (total.bit_length() // answers + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**answers <= total else (low, middle)
    return Share(low, epsilon_for(low), answers)


def quantise_table(
    source: PathLike,
    target: PathLike,
    options: QuantizeOptions,
    *,
    total_epsilon: object = None,
    text: TextOptions | None = None,
    compression: Compression | None = None,
    mechanism_path: PathLike | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Quantised:
    """Release a quantised column (identity), or a quantised answer for each group, in bounded memory."""
    check_options(options)
    if options.missing != "refuse":
        raise InputError(f"missing ({quoted(options.missing)}) must be 'refuse' here: every record counts")
    domain = (
        IntervalDomain(Fraction(0), Fraction(1))
        if options.query == "count"
        else parse_range(options.range_text, f"the {options.query} of {quoted(options.column)}")
    )
    # What can be read once only is copied first; everything else is guarded where it is released.
    with GuardedInput(source) if str(source) == STANDARD else _Named(source) as held:
        notices: tuple[str, ...] = ()
        if total_epsilon is None:
            allowed = allowance(nearest_double(options.epsilon))
            epsilon, notices = float(allowed.epsilon), (allowed.notice,) if allowed.notice else ()
        else:
            share = share_of(nearest_double(total_epsilon), most_answers(held.path, options, text))
            epsilon = share.epsilon
            if share.outputs == 1:
                raise InputError(
                    f"{total_epsilon} bits for {share.answers} answers are less than one bit for each: all would be "
                    "the same, and nothing be released; make fewer answers (coarser groups), or raise the total"
                )
            notices = (
                f"each of the {share.answers} answers that one individual takes part in may have {share.outputs} "
                f"outputs: {share.outputs}^{share.answers} in all",
            )
        prototype = MechanismFile(
            query=options.query,
            column=options.column,
            group_by=options.group_by,
            domain=domain,
            epsilon=epsilon,
            mechanisms=(),
            provenance={"tool": "mechdesign", "layout": options.layout, "clipped": options.clip},
        )
        done = release_table(
            prototype,
            held.path,
            target,
            column=None,
            individual=options.individual,
            equals=options.equals,
            outside="clip" if options.clip else "refuse",
            text=text,
            compression=compression,
            mechanism_path=mechanism_path,
            keep=(),
            force=force,
            progress=progress,
        )
    return replace(done, notices=(*notices, *done.notices))


class _Named:
    """A file that can be read twice, as `GuardedInput` gives it."""

    def __init__(self, path: PathLike) -> None:
        self.path = path

    def __enter__(self) -> _Named:
        return self

    def __exit__(self, *raised: object) -> None: ...


def most_answers(source: PathLike, options: QuantizeOptions, text: TextOptions | None = None) -> int:
    """The most answers that one individual takes part in."""
    if options.individual is None:
        raise InputError(
            "a total budget is one of an individual: name the column that identifies individuals (--individual)"
        )
    with open_source(source, text) as table:
        for name in (options.individual, *options.group_by):
            require_column(name, table.header)
        groups, people, records = Groups(), dict[str, int](), 0
        for batch in table.batches(encode=list(options.group_by), read=[options.individual]):
            column = batch.column(options.individual)
            if options.query == "identity":
                tally(people, column)
            else:
                try:
                    keys = [batch.column(name) for name in options.group_by]
                    groups.add(keys, np.zeros(batch.num_rows), column)
                except BadCell as error:
                    raise InputError(f"{table.where(records + error.position)}: {error.what}") from None
            records += batch.num_rows
        if not records:
            raise InputError(f"{table.name}: no records; an answer needs at least one")
        return max(people.values()) if people else groups.most_answers() or 1
