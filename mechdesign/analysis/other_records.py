"""Records of a release that have no symbol of the channel, and what they do to its frequencies.

For an empty or unknown cell `apply` can release a draw from the marginal, or a fixed output. These
labels say nothing of the useful column, but they are counted with the others. With the share q of
such records, whose labels have the law r(y), the labels of a file have the frequencies

    P(y) = (1 - q) sum_x P(x) W(y | x) + q r(y),

where P(x) are the frequencies among the other records, which are the question. For a known q this
is a channel of its own, with the rows (1 - q) W(. | x) + q r (`OtherRecords.corrected`), so every
estimate and interval for a channel holds for it. If the number of such records is known exactly,
its variance in a sample counts though it is none, so intervals are rather too long.

Without q there are bounds (`OtherRecords.bounds`). A mean weight f of the labels, with the weight k
= sum_y r(y) b(y) of the other records, belongs to (f - q k) / (1 - q) = f + t (f - k) with t = q /
(1 - q), whatever q is: all values from f on, away from k. For example, half of the labels count for
a symbol, and a draw from the marginal does so in 0.3 of all cases: the share of the symbol is
anything from 0.5 to 1. If draws did so in 0.5 of all cases, it would be 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.analysis.estimator import Cells, Estimator
from mechdesign.analysis.linear import identify
from mechdesign.analysis.model import ReleaseModel
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.release.released_values import LABEL, by_output
from mechdesign.release.samplers import NEAREST, REFUSE, Policy, policy_row


def law_of_rule(channel: Channel, form: str, name: str, rule: str) -> Array:
    """Probabilities of the labels for a missing or unknown symbol; zeros where it is refused, or
    where it has the law of the nearest row.

    `name` is the field of the policy, for messages.
    """
    row = np.zeros(len(channel.outputs))
    if rule not in (REFUSE, NEAREST):
        # Integers in proportion to the probabilities, so that the release draws from them exactly.
        masses = policy_row(channel, rule, name)
        total = sum(masses)
        row = np.array([mass / total for mass in masses])
    if form == LABEL:
        return row
    # A draw from the posterior follows the output.
    return row @ by_output(channel, form)


@dataclass(frozen=True)
class OtherRecords:
    """The records of a release without a symbol: empty cells, unknown symbols, or both.

    Attributes
    ----------
    names : tuple of str
        What they are, in words.
    laws : (kinds, labels) array
        The probabilities of their labels.
    share : float or None
        Their share of all records, and `mixed` the law of the labels of all of them together; None
        where the share of one kind is not known.
    mixed : (labels,) array
    """

    names: tuple[str, ...]
    laws: Array
    share: float | None
    mixed: Array

    @classmethod
    def of(
        cls,
        channel: Channel,
        form: str,
        policy: Policy | None,
        shares: tuple[float | None, float | None] = (None, None),
    ) -> OtherRecords | None:
        """The records that a policy lets through; None where it refuses all of them.

        Parameters
        ----------
        shares : pair of float or None
            Of the empty cells and of the unknown symbols, among all records.

        Raises
        ------
        InputError
            If a share is no number from 0 up to 1, or is given of what the policy refuses.
        """
        names: list[str] = []
        laws: list[Array] = []
        known: list[float | None] = []
        kinds = (("missing", "empty cells"), ("unknown", "unknown symbols"))
        for (field, name), share in zip(kinds, shares, strict=True):
            rule = REFUSE if policy is None else getattr(policy, field)
            if share is not None:
                share = _checked_share(field, share)
            if rule == NEAREST:
                # They count as the nearest row, whose draw was released.
                continue
            if rule == REFUSE:
                if share:
                    raise InputError(
                        f"{field}_share says that the release has {name}; say what was released "
                        f"for them, too (--{field} marginal or output:LABEL)"
                    )
                continue
            names.append(name)
            laws.append(law_of_rule(channel, form, field, rule))
            known.append(share)
        if not names:
            return None
        total = _total(known)
        if total is not None and total >= 1.0:
            raise InputError(
                f"the shares of records without a symbol ({total:g}) must be below 1 together"
            )
        mixed = np.zeros_like(laws[0])
        for law, share in zip(laws, known, strict=True):
            mixed = mixed + (share or 0.0) * law
        return cls(tuple(names), np.array(laws), total, mixed)

    def corrected(self, model: ReleaseModel) -> ReleaseModel:
        """The model of the labels of all records, given the symbol of one that has a symbol."""
        if self.share is None:
            raise InputError("the share of records without a symbol is not known")
        return replace(model, matrix=(1.0 - self.share) * model.matrix + self.mixed)

    def extended(self, estimator: Estimator) -> Estimator:
        """The estimator of the mean weights of all labels, of whatever records.

        Each kind of other records is one more symbol, with its mean weight for each cell.
        """
        model = estimator.model
        weights = self.laws @ estimator.weights
        cells = estimator.cells
        wider = replace(
            model,
            symbols=(*model.symbols, *(f"({name})" for name in self.names)),
            matrix=np.vstack([model.matrix, self.laws]),
            prior=None,
        )
        functionals = np.vstack([cells.functionals, weights])
        return Estimator(
            wider,
            identify(wider.symbols, wider.matrix),
            Cells(cells.names, functionals, disjoint=False),
        )

    def bounds(
        self, estimator: Estimator, lower: Array, upper: Array
    ) -> tuple[Array, Array]:
        """Bounds of the cells, whatever the shares, from those of the mean weights (m,)."""
        weights = self.laws @ estimator.weights
        least, most = estimator.cells.bounds
        # Away from the weight of the other records everything is possible, towards it nothing.
        low = np.where((weights <= lower).all(axis=0), lower, least)
        high = np.where((weights >= upper).all(axis=0), upper, most)
        return np.clip(low, least, most), np.clip(high, least, most)


def _total(shares: Sequence[float | None]) -> float | None:
    """The sum of shares, None if one is not known."""
    total = 0.0
    for share in shares:
        if share is None:
            return None
        total += share
    return total


def _checked_share(field: str, share: float) -> float:
    """A share as a float, from 0 up to 1."""
    value = number(f"{field}_share", share, "from 0 up to, but not including, 1")
    if not 0.0 <= value < 1.0:
        raise InputError(f"{field}_share ({value:g}) must be at least 0 and below 1")
    return value
