"""Frequencies estimated from a released file, also of columns that were released in boxes.

The labels of the file are counted in one pass; counts are all that the estimators need.
`estimate_file` hands them to `frequencies` or, crossed with a column that was kept, to
`joint_frequencies`. For example, 60 records with the label A and 40 with B are the counts {"A": 60,
"B": 40}; crossed they are {("A", "yes"): 25, ("A", "no"): 35, ("B", "yes"): 40}. A label that the
channel cannot give is an error here: no estimate would be right then.

*Boxes of rows.* The released labels tell the frequency pi_b of every box without bias (or of groups
of boxes that the channel cannot tell apart, which are boxes here). A column has the symbol x with

    P(x) = sum over b of pi_b P(x | b),

and a box of several symbols does not tell its P(x | b). Two answers follow.

- With the counts n_xb of the records that the promise was proven on, p_b = n_xb / n_b estimates
  P(x | b) of the population that they are a sample of. If the released records come from the same
  population, the errors of p and of the estimates of pi are uncorrelated, because given the boxes
  of all records the symbols inside them are independent draws with the mean P(x | b). That holds
  for the same records, too: the released labels depend on their boxes alone. The variance is

      p' Cov(pi) p + sum over b of pi_b^2 p_b (1 - p_b) / n_b.

- Whatever the data, P(x) lies between the mass of the boxes that hold x alone and the mass of all
  boxes that may hold it. The interval runs from the lower end for the one to the upper end for the
  other, each of which fails with half of the probability.

For example, let the boxes {a} and {a, b} have the estimated frequencies 0.5 and 0.5. Then P(a) is
between 0.5 and 1, whatever the data. If 3 of 10 records of the box {a, b} had a in the table of the
proof, P(a) is estimated as 0.5 + 0.5 * 0.3 = 0.65.

`box_question` lists the sums of boxes to estimate, `estimate_frequencies` estimates them, and
`BoxQuestion.answer` makes the frequencies of the column of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import counting
from mechdesign.analysis.frequencies import (
    Frequencies,
    estimate_frequencies,
    identifiability,
)
from mechdesign.analysis.joint_frequencies import JointFrequencies, estimate_joint
from mechdesign.analysis.law_estimates import ColumnFrequencies
from mechdesign.analysis.linear import errors_of_level
from mechdesign.analysis.release_facts import facts_of_release
from mechdesign.analysis.released_table import (
    Advance,
    Released,
    cells_of,
    released_file,
    slices,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.release.samplers import Policy
from mechdesign.tables.cell_values import NEAREST
from mechdesign.tables.row_boxes import BOX, box_name

NO_MANIFEST = (
    "no valid manifest of it says whether draws stand in place of empty or unknown cells; if so, "
    "say which (--missing, --unknown), because the estimates take every label for that of a known "
    "symbol"
)


def estimate_file(
    released: PathLike,
    channel: Channel,
    *,
    by: str | None = None,
    columns: Mapping[str, str] | None = None,
    released_columns: Sequence[str] | None = None,
    form: str = "label",
    identity: Sequence[str] = (),
    escape_formulas: bool = False,
    text: TextOptions | None = None,
    advance: Advance | None = None,
    policy: Policy | None = None,
    manifest: PathLike | None = None,
    missing_share: float | None = None,
    unknown_share: float | None = None,
    **settings: Any,
) -> Frequencies | JointFrequencies:
    """Estimate frequencies of a released file.

    The `settings` are those of `estimate_frequencies`; with `by`, a kept column, those of
    `estimate_joint`. Without a `policy`, what was released for cells without a symbol is looked up
    in the manifest: the one named, or the one beside the file. A notice says so if it is unknown.
    Of boxes the frequencies are those of the boxes themselves.
    """
    labels = channel.single()
    # The manifest names the whole channel, of which that of the labels is a part.
    facts = facts_of_release(released, channel, manifest)
    shares = (missing_share, unknown_share)
    notices: tuple[str, ...] = ()
    if policy is None and facts is not None:
        policy = facts.policy
    # A manifest counts records, and with an identity each identifier counts once here.
    if facts is not None and not identity:
        shares = (
            facts.shares[0] if missing_share is None else missing_share,
            facts.shares[1] if unknown_share is None else unknown_share,
        )
    if policy is None:
        policy = Policy.recorded(channel.record.rules)
        if policy.lets_nothing_through:
            notices = (NO_MANIFEST,)
    if policy.unknown == NEAREST:
        notices = (*notices, NEAREST_COUNTS)
    file = released_file(
        labels,
        released,
        columns,
        released_columns,
        form,
        identity=tuple(identity),
        escaped=escape_formulas,
        text=text,
        advance=advance,
    )
    if by is not None:
        if identity:
            raise InputError(
                "joint frequencies (--by) count every record: leave the identity (--identity) out"
            )
        if by in file.columns:
            raise InputError(
                f"--by {by!r} is the released column itself; name a column that was kept"
            )
        if not policy.lets_nothing_through:
            raise InputError(
                "joint frequencies (--by) need a symbol in every record, and this release has "
                "draws in place of empty or unknown cells, whose share may differ from value to "
                "value: leave --by out"
            )
        joint = estimate_joint(labels, _crossed(file, by), form=form, **settings)
        return replace(joint, notices=(*joint.notices, *notices))
    counted = counting.count_release(file)
    for finding in counted.findings:
        if finding.kind in ("label", "identity"):
            raise InputError(finding.text)
    counts = dict(zip(file.labels.names, counted.counts[0].tolist(), strict=True))
    estimated = estimate_frequencies(
        labels,
        counts,
        form=form,
        policy=policy,
        missing_share=shares[0],
        unknown_share=shares[1],
        **settings,
    )
    return replace(estimated, notices=(*estimated.notices, *notices))


NEAREST_COUNTS = (
    "rows that the table of the channel does not have were released as draws of the nearest row "
    "that it has: the estimates count them as that row"
)


def _crossed(file: Released, by: str) -> dict[tuple[str, str], int]:
    """Records of each label and value of a kept column; a missing value is the empty text."""
    total: dict[tuple[str, str], int] = {}
    # Of the batches before, for the place of a wrong label in an error.
    records = 0
    with open_source(file.path, file.text) as table:
        written = file.written(table)
        for batch in slices(table, [*file.columns, by]):
            cells = cells_of(batch, file.columns)
            codes = counting.symbol_codes(table, cells, written, records)
            (kept,) = cells_of(batch, (by,))
            # The code -1 of a missing value becomes the last one.
            texts = [*kept.texts, ""]
            values = np.where(kept.codes < 0, len(texts) - 1, kept.codes)
            # One number for each pair of a label and a value. Codes of values are those of the
            # batch, so pairs are added up by their texts.
            pairs, times = np.unique(codes * len(texts) + values, return_counts=True)
            for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
                label, value = divmod(pair, len(texts))
                key = (file.labels.names[label], texts[value])
                total[key] = total.get(key, 0) + count
            records += len(codes)
            if file.advance is not None:
                file.advance(len(codes))
    return total


# ---------------------------------------------------------------------- box frequencies

Floats = NDArray[np.float64]

PRIOR_RECORDS = 1.0
"""Records with and without a symbol that are added to a box for the variance of its share, so that
a share of 0 or 1 among few records is not taken for certain (Agresti and Coull, 1998, add two).
"""


def estimate_box_column(
    channel: Channel,
    released: Any | Mapping[str, int],
    name: str,
    *,
    level: float = 0.95,
    any_data: bool = False,
    released_columns: Sequence[str] | None = None,
    identity: Sequence[str] = (),
    escape_formulas: bool = False,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> ColumnFrequencies:
    """Estimate the frequencies of a column from released boxes.

    Parameters
    ----------
    channel : Channel
        Without given columns and without filling.
    released : path, column of labels, or mapping of label to count
    name : str
        A column that the boxes are made of.
    level : float
        Confidence level of each interval, in (0, 1).
    any_data : bool
        Do not take the released records for draws from the population of the channel's own table:
        intervals are then bounds that hold for all data, and wide where boxes hold many symbols. A
        public channel has these alone.
    released_columns, identity, escape_formulas, text, advance
        How a file is read: as for `estimate_file`.

    Raises
    ------
    InputError
        As `estimate_frequencies`, and if the channel has no such column.
    """
    question = box_question(channel, name)
    settings: dict[str, Any] = {"level": level, "functionals": question.functionals}
    if isinstance(released, str | os.PathLike):
        found = estimate_file(
            released,
            channel,
            released_columns=released_columns,
            identity=identity,
            escape_formulas=escape_formulas,
            text=text,
            advance=advance,
            **settings,
        )
        # Joint frequencies are those beside a kept column, which is not among the arguments.
        frequencies = cast("Frequencies", found)
    else:
        frequencies = estimate_frequencies(channel.single(), released, **settings)
    return question.answer(frequencies, any_data=any_data)


@dataclass(frozen=True)
class BoxQuestion:
    """What to ask of the frequencies of boxes to learn those of a column.

    Parameters
    ----------
    name : str
        The column.
    symbols : tuple of str
    groups : tuple of tuples of str
        Boxes that the channel can tell apart; several in a tuple cannot be.
    alone, possible : (symbols, groups) arrays of truth values
        Whether a group holds this symbol alone, and whether it may hold it.
    counts : (symbols, groups) array, optional
        Records of the proof.
    """

    name: str
    symbols: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    alone: NDArray[np.bool_]
    possible: NDArray[np.bool_]
    counts: Floats | None

    @property
    def functionals(self) -> dict[str, dict[str, float]]:
        """Sums of boxes: every group, then for each symbol its lower and its upper mass."""
        sums: dict[str, dict[str, float]] = {}
        for g, boxes in enumerate(self.groups):
            sums[f"group {g}"] = dict.fromkeys(boxes, 1.0)
        for side, table in (("alone", self.alone), ("possible", self.possible)):
            for x in range(len(self.symbols)):
                boxes = self._boxes(table[x])
                # An empty sum is 0 and a full one is 1, without any estimate.
                if boxes and not table[x].all():
                    sums[f"{side} {x}"] = dict.fromkeys(boxes, 1.0)
        return sums

    def _boxes(self, groups: NDArray[np.bool_]) -> list[str]:
        """The names of the boxes of some groups."""
        names: list[str] = []
        for g in np.flatnonzero(groups).tolist():
            names += self.groups[g]
        return names

    def answer(self, frequencies: Frequencies, *, any_data: bool) -> ColumnFrequencies:
        """The frequencies of the column; `any_data` does without the counts of the channel."""
        if any_data or self.counts is None:
            return self._bounded(frequencies)
        return self._estimated(frequencies, self.counts)

    def _estimated(self, frequencies: Frequencies, counts: Floats) -> ColumnFrequencies:
        """From the shares of the symbols in each box among the records of the proof."""
        # The groups come first among the functionals: pi_b and Cov(pi).
        size = len(self.groups)
        shares = frequencies.unbiased[:size]
        covariance = frequencies.covariance[:size, :size]
        # p_b = n_xb / n_b, and the variance p_b (1 - p_b) / n_b of a share that chance decides: a
        # box that cannot hold a symbol, or holds nothing else, has no such variance.
        records = counts.sum(axis=0)
        inside = counts / np.maximum(records, 1.0)
        smooth = (counts + PRIOR_RECORDS) / (records + 2.0 * PRIOR_RECORDS)
        share_variance = smooth * (1.0 - smooth) / (records + 2.0)
        share_variance[self.alone | ~self.possible] = 0.0
        unbiased = inside @ shares
        # p' Cov(pi) p + sum over b of pi_b^2 p_b (1 - p_b) / n_b.
        variance = np.einsum("xg,gh,xh->x", inside, covariance, inside)
        variance = np.maximum(variance, 0.0)
        variance += share_variance @ np.maximum(shares, 0.0) ** 2
        errors = np.sqrt(variance)
        # Each side of the interval fails with half of the probability.
        half = errors_of_level(frequencies.level) * errors
        estimates = np.clip(unbiased, 0.0, 1.0)
        return ColumnFrequencies(
            columns=(self.name,),
            symbols=tuple((text,) for text in self.symbols),
            estimates=estimates,
            standard_errors=errors,
            lower=np.minimum(np.clip(unbiased - half, 0.0, 1.0), estimates),
            upper=np.maximum(np.clip(unbiased + half, 0.0, 1.0), estimates),
            unbiased=unbiased,
            records=frequencies.records,
            level=frequencies.level,
            unresolved=np.zeros(len(self.symbols)),
            unidentified=0.0,
        )

    def _bounded(self, frequencies: Frequencies) -> ColumnFrequencies:
        """Between the mass of the boxes of this symbol alone, and that of all that may hold it."""
        least = _masses(frequencies, "alone", self.alone)
        most = _masses(frequencies, "possible", self.possible)
        middle = (least.values + most.values) / 2.0
        # Boxes of several symbols do not tell these apart.
        mixed = (self.possible & ~self.alone).any(axis=0)
        shares = np.clip(frequencies.unbiased[: len(self.groups)], 0.0, 1.0)
        return ColumnFrequencies(
            columns=(self.name,),
            symbols=tuple((text,) for text in self.symbols),
            estimates=np.clip(middle, least.lower, most.upper),
            standard_errors=np.maximum(least.errors, most.errors),
            lower=least.lower,
            upper=most.upper,
            unbiased=middle,
            records=frequencies.records,
            level=frequencies.level,
            unresolved=np.maximum(most.values - least.values, 0.0),
            # Estimated shares can sum to more than 1.
            unidentified=float(min(shares[mixed].sum(), 1.0)),
        )


class _Masses(NamedTuple):
    """The mass of some groups for each symbol of the column, all (symbols,) arrays."""

    values: Floats
    lower: Floats
    upper: Floats
    errors: Floats


def _masses(frequencies: Frequencies, side: str, table: NDArray[np.bool_]) -> _Masses:
    """The mass of the groups of each symbol in a (symbols, groups) table.

    `side` is the name of the table in `BoxQuestion.functionals`.
    """
    place = {name: k for k, name in enumerate(frequencies.names)}
    # Exactly 1 for all groups, and 0 for none: neither was estimated.
    values: Floats = np.array(table.all(axis=1), dtype=np.float64)
    lower: Floats = values.copy()
    upper: Floats = values.copy()
    errors: Floats = np.zeros(len(values))
    for x in range(len(values)):
        k = place.get(f"{side} {x}")
        if k is not None:
            values[x] = frequencies.unbiased[k]
            lower[x] = frequencies.lower[k]
            upper[x] = frequencies.upper[k]
            errors[x] = frequencies.standard_errors[k]
    return _Masses(values, lower, upper, errors)


def box_question(channel: Channel, name: str) -> BoxQuestion:
    """What the frequencies of boxes must tell for those of the column `name`.

    Raises
    ------
    InputError
        If the channel has no such column, or given columns, or fills its boxes with symbols.
    """
    single = channel.single()
    (part,) = channel.parts
    place = _column_of(channel, name)
    variable = channel.boxed.coder.columns[place]
    # The variable may be crossed: several of its symbols can have the same text in this column.
    within = variable.columns.index(name)
    texts = [symbol[within] for symbol in variable.symbols]
    symbols = tuple(dict.fromkeys(texts))
    number = {text: x for x, text in enumerate(symbols)}
    symbol_of_code = [number[text] for text in texts]

    # Boxes that the channel cannot tell apart are one here, which may hold what any of them holds.
    groups = identifiability(single).group_names
    boxes = {box_name(box): box for box in range(len(part.boxes))}
    members = channel.boxed.coder.members(part.boxes)
    # A box that does not split on the variable holds all symbols, and others that no record had.
    everything = (set(range(len(variable))), False)
    alone = np.zeros((len(symbols), len(groups)), dtype=np.bool_)
    possible = np.zeros_like(alone)
    counts: Floats = np.zeros(alone.shape)
    for g, names in enumerate(groups):
        held: set[int] = set()
        is_closed = True
        for box_text in names:
            box = boxes[box_text]
            codes, has_no_others = members[box].get(place, everything)
            held.update(symbol_of_code[code] for code in codes)
            is_closed = is_closed and has_no_others
            if part.inside:
                np.add.at(counts[:, g], symbol_of_code, part.inside[box][place])
        possible[list(held), g] = True
        if len(held) == 1 and is_closed:
            alone[list(held), g] = True
    if not part.inside:
        return BoxQuestion(name, symbols, groups, alone, possible, None)
    return BoxQuestion(name, symbols, groups, alone, possible, counts)


def _column_of(channel: Channel, name: str) -> int:
    """The position of the variable that has this column."""
    columns: list[str] = []
    for place, variable in enumerate(channel.boxed.coder.columns):
        if name in variable.columns:
            return place
        columns += variable.columns
    raise InputError(
        f"the channel has no column {quoted(name)} in its boxes (it has {listed(columns)}); leave "
        f"--of out for the frequencies of the boxes, which are in the column {quoted(BOX)}"
    )
