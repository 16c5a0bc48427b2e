"""The labels of a released column: their probabilities given the symbol, the prior, and their
counts.

`release_model` takes both from a channel W(y | x). A release of the outputs themselves has the
matrix W. In every other form a value v is published for the output y, with the probability Q(v | y)
(`by_output`), so the labels are these values and the matrix is W Q:

    P(v | x) = sum over y of W(y | x) Q(v | y).

For example, let W have the rows (0.8, 0.2) and (0.2, 0.8), and the two symbols be equally frequent.
Then the posteriors Q have the same rows, and draws from them the rows (0.68, 0.32) and (0.32,
0.68): they say less of the symbol than the labels do.

`prior_of` checks the prior P(x) that a user gives instead of the table's.

*Counts.* Every entry of the column becomes the position of its label (`label_codes`), or of the bin
that it lies in; the positions are then counted (`label_counts`). With the labels (a, b, c), the
column b, a, b has the codes 1, 0, 1 and the counts (1, 2, 0). Beside a kept column with the values
u, v, u, `crossed_counts` gives a row for each label and a column for each value:

         u   v
    a    0   1
    b    2   0
    c    0   0

Counts that somebody has made already are taken as a mapping, as {"b": 2, "a": 1} or {("b", "u"): 2,
("a", "v"): 1}: its keys are a column of labels, and its values say how often each occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Array, Channel
from mechdesign.channel.file import require_without_boxes
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import encode
from mechdesign.release.released_values import (
    FORMS,
    LABEL,
    by_output,
    released_variable,
)
from mechdesign.tables.bins import Bins

SUM_TOLERANCE = 1e-6
"""Largest error of the sum of a user's prior, which is then normalised. As for tables of
probabilities: enough for figures rounded to six digits, too little for a forgotten symbol that
matters."""


@dataclass(frozen=True)
class ReleaseModel:
    """The matrix P(label | symbol) of a released column, (symbols, labels), and what goes with it.

    `prior` has the table's frequencies of the symbols; None for a public channel. `bins` are those
    of a column whose released values are numbers inside of bins.
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    matrix: Array
    prior: Array | None
    bins: Bins | None = None

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of every symbol."""
        return {name: x for x, name in enumerate(self.symbols)}

    @cached_property
    def reference(self) -> Array:
        """P(label) under the table's frequencies, or uniform ones without a table; positive."""
        # They choose among unbiased weights (`linear.coefficients`). Any positive masses do; the
        # variance is least with the true ones.
        prior = self.prior
        if prior is None:
            size = len(self.symbols)
            prior = np.full(size, 1.0 / size)
        masses: Array = prior @ self.matrix
        return masses


def release_model(channel: Channel, form: str = "label") -> ReleaseModel:
    """The model of a column released by `channel`."""
    require_without_boxes(
        "channel", channel, "; the channel comes first, then what was released"
    )
    if form not in FORMS:
        raise InputError(f"--as ({quoted(form)}) must be one of {listed(FORMS)}")
    # A public channel has no joint distribution of its table.
    prior: Array | None = None
    if channel.joint is not None:
        prior = channel.joint.p_x
    matrix = channel.matrix
    if form != LABEL:
        matrix = matrix @ by_output(channel, form)
    released = released_variable(channel, form)
    bins: Bins | None = None
    if len(released.bins) == 1:
        bins = released.bins[0]
    return ReleaseModel(channel.useful.names, released.names, matrix, prior, bins)


def prior_of(model: ReleaseModel, prior: Any, purpose: str) -> Array:
    """P(x) as an array: the user's, or else that of the channel's table.

    `purpose` is named in the error about a missing prior.
    """
    if prior is None:
        if model.prior is None:
            raise InputError(
                f"{purpose} needs the frequencies of the symbols, which a public channel "
                "does not carry; give them (prior=...), for instance estimated ones"
            )
        return model.prior
    if isinstance(prior, Mapping):
        # A misspelt symbol would get no mass, and an absent one may have been forgotten.
        by_symbol = cast("Mapping[str, Any]", prior)
        unknown = [str(name) for name in by_symbol if name not in model.position]
        if unknown:
            raise InputError(
                f"the prior names {listed(unknown)}, which the channel does not know"
            )
        absent = [name for name in model.symbols if name not in by_symbol]
        if absent:
            raise InputError(
                f"the prior has no entry for {listed(absent)}; give 0 for symbols that do not occur"
            )
        prior = [by_symbol[name] for name in model.symbols]
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the prior must be numbers, one for each symbol") from None
    if values.shape != (len(model.symbols),):
        raise InputError(
            f"the prior must have one entry for each of the {len(model.symbols)} symbols"
        )
    is_possible = np.isfinite(values).all() and (values >= 0.0).all()
    if not is_possible or abs(values.sum() - 1.0) > SUM_TOLERANCE:
        raise InputError(
            "the prior must be probabilities that sum to 1; unbiased estimates can be negative: "
            "use those of method='ml'"
        )
    # Within the tolerance the sum is off by rounded figures alone.
    return values / values.sum()


# ------------------------------------------------------------------------------- counts

Codes = NDArray[np.int64]

LARGEST_COUNT = 2**53
"""Counts above this would not be exact as doubles."""


def label_counts(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """The number of records with each label, from a column or from a mapping of counts."""
    if isinstance(released, Mapping):
        times = [_record_count(label, value) for label, value in released.items()]
        # The keys are labels already, not values inside of bins.
        codes = label_codes(labels, [str(label) for label in released])
    else:
        times = None
        codes = label_codes(labels, released, bins)
    return np.bincount(codes, times, len(labels)).astype(np.int64)


def crossed_counts(
    labels: Sequence[str], released: Any, kept: Any = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The number of records with each label and each value of another column.

    Returns
    -------
    counts : (labels, values) array
    values : tuple of str
        Those that occur, in order.
    """
    times: list[int] | None = None
    if isinstance(released, Mapping):
        if kept is not None:
            raise InputError("counts of (label, value) take no second column")
        released, kept, times = _columns_of_counts(released)
    codes = label_codes(labels, released)
    value_codes, values = _value_codes(kept)
    if len(codes) != len(value_codes):
        raise InputError(
            f"the two columns have {len(codes)} and {len(value_codes)} records; they must be of "
            "one file"
        )
    # One number for each pair of a label and a value: the table of pairs, row after row.
    pairs = codes * len(values) + value_codes
    counts = np.bincount(pairs, times, len(labels) * len(values))
    return counts.reshape(len(labels), len(values)).astype(np.int64), values


def label_codes(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """Position in `labels` of every entry of a released column, or of its bin."""
    cells = encode(released, "released")
    if bins is not None:
        cells = bins.sorted_in(cells)
    index = {label: y for y, label in enumerate(labels)}
    # Labels are looked up once for each distinct text. An empty cell has the code -1, which leads
    # to the last entry.
    positions = [index.get(text, -1) for text in cells.texts]
    codes = np.array([*positions, -1], dtype=np.int64)[cells.codes]
    wrong = np.flatnonzero(codes < 0)
    if not wrong.size:
        return codes
    entry = int(wrong[0])
    code = int(cells.codes[entry])
    # The first wrong entry is either empty or a text without a label: two different mistakes.
    if code < 0:
        raise InputError(
            f"entry {entry} of the released column is missing; a channel never releases that"
        )
    raise InputError(
        f"entry {entry} of the released column: the channel has no output "
        f"{quoted(cells.texts[code])}"
    )


def _record_count(label: object, value: Any) -> int:
    """A count as an integer that a double holds exactly; InputError on anything else."""
    # 3.0 is a count, as pandas has it; 2.5 and "3" are none.
    try:
        number = int(value)
        whole = number == value
    except (TypeError, ValueError, OverflowError):
        number = 0
        whole = False
    if not whole or not 0 <= number <= LARGEST_COUNT:
        raise InputError(
            f"the count of {quoted(label)} ({quoted(value)}) must be a whole number of records"
        )
    return number


def _columns_of_counts(
    counts: Mapping[Any, Any],
) -> tuple[list[str], list[str], list[int]]:
    """The labels, the values and the counts of a mapping of (label, value) to count."""
    labels: list[str] = []
    values: list[str] = []
    times: list[int] = []
    for key, count in counts.items():
        if not isinstance(key, tuple) or len(cast("tuple[Any, ...]", key)) != 2:
            raise InputError(
                "joint counts must be a mapping of (label, value) to count"
            )
        label, value = cast("tuple[Any, Any]", key)
        labels.append(str(label))
        values.append(str(value))
        times.append(_record_count(label, count))
    return labels, values, times


def _value_codes(kept: Any) -> tuple[Codes, tuple[str, ...]]:
    """The position of every entry of a column among its values, and the values in order."""
    cells = encode(kept, "kept")
    # A missing value, of code -1, is the empty text.
    texts = [*cells.texts, ""]
    occurring = {texts[code] for code in np.unique(cells.codes).tolist()}
    values = tuple(sorted(occurring))
    index = {text: z for z, text in enumerate(values)}
    # Texts that do not occur have no index, and are not looked up.
    positions = [index.get(text, 0) for text in texts]
    return np.array(positions, dtype=np.int64)[cells.codes], values
