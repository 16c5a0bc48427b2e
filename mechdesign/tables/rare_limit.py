"""What no promise for a population can keep, because of rare sensitive values.

A procedure that is right with probability 1 - delta for every population approves a given channel
with probability above 1/2 only if, for every sensitive value s with N_s records and share p_s,

    I(X; Y) <= log(b / (eta (1 - b p_s))),   b = exp(eps_u),  eta = 1 - (2 delta)^(1 / N_s),

where b p_s < 1 (docs/explanation/population.md, Proposition 6). The limit holds for every channel
and every way to prove it, and not for ours alone.

For example, a value has 12 of 1,000 records. With b = 2 and a confidence of 95% (delta = 0.05) the
limit is 2.46 nats. With 1,000 of 10,000 records it is 6.99 nats: more records raise it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.core.wording import at_most, percent_of, quoted


@dataclass(frozen=True)
class RareLimit:
    """The least of these limits in nats, with the sensitive value that it is due to."""

    value: str
    records: int
    information: float

    def text(self, level: float) -> str:
        """The limit in a sentence."""
        return (
            f"{quoted(self.value)} has {_records(self.records)}. So no procedure that is right "
            f"with {percent_of(level)} confidence for every population approves a channel that "
            f"keeps more than {at_most(self.information)} nats in more than half of all samples."
        )


def rare_limit(
    counts: Sequence[tuple[str, int]], eps_u: float, level: float
) -> RareLimit | None:
    """The limit for values with these numbers of records; None where there is none.

    Parameters
    ----------
    counts : sequence of (str, int)
        Name and records of every value that is promised for itself.
    eps_u : float
        The upper budget in nats.
    level : float
        The confidence.
    """
    total = 0
    for _, count in counts:
        total += count
    # With 2 delta of 1 or more eta is 0 or less, and there is no limit.
    if not math.isfinite(eps_u) or 2.0 * (1.0 - level) >= 1.0:
        return None
    # b, delta and p_s of the inequality above; p_s is the share among the records.
    b = math.exp(eps_u)
    delta = 1.0 - level
    best: RareLimit | None = None
    for name, count in counts:
        room = 1.0 - b * count / total
        # Where b p_s is 1 or more, the budget allows every posterior, and there is no limit.
        if count == 0 or room <= 0.0:
            continue
        # 1 - (2 delta)^(1 / N_s), without the loss of digits where it is small.
        eta = -math.expm1(math.log(2.0 * delta) / count)
        limit = math.log(b / (eta * room))
        if best is None or limit < best.information:
            best = RareLimit(name, count, limit)
    return best


def _records(count: int) -> str:
    """``1 record``, ``12 records``."""
    return "1 record" if count == 1 else f"{count:,} records"
