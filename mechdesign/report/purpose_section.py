"""Sentences on what a channel was made for: estimates of queries, or another column.

They are made from the figures in the record of a channel, so a channel from a file gets the same
ones as a design. Each sets what is reached beside the proven bound: a variance (times 1/N for N
records) and the least possible one, or the share of the information about the other column and the
largest possible one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mechdesign.core.wording import at_least, at_most
from mechdesign.report import wording

QUERY_NAMES = {
    "frequencies": "the shares of all values of {useful}",
    "prefix": "the cumulative shares of {useful}",
    "ranges": "the shares of all intervals of {useful}",
}
"""What is estimated, by the name of the objective; others are queries from a file."""

OTHER_QUERIES = "the queries of {useful}"


def purpose_texts(
    utility: Mapping[str, Any], provenance: Mapping[str, Any], useful: str
) -> tuple[str, ...]:
    """Sentences from the figures and the origin that a channel's record keeps; none without."""
    if "variance" in utility:
        return _query_texts(utility, provenance, useful)
    if "task_kept" in utility:
        return _task_texts(utility, provenance, useful)
    return ()


def _query_texts(
    utility: Mapping[str, Any], provenance: Mapping[str, Any], useful: str
) -> tuple[str, ...]:
    """The variance of the estimates, its lower bound, and that of the data themselves."""
    name = QUERY_NAMES.get(str(provenance.get("mechanism")), OTHER_QUERIES)
    queries = name.format(useful=useful)
    variance = float(utility["variance"])
    # Queries outside the row space of the channel have no unbiased estimate.
    if math.isinf(variance):
        return (
            f"Made to estimate {queries}; some of them cannot be estimated from it.",
        )
    bound = float(utility["variance_lower_bound"])
    free = float(utility["noise_free"])
    return (
        f"Made to estimate {queries}: their total variance is {at_most(variance)} / N for "
        f"N records; no channel that keeps the promise comes below {at_least(bound)} / N, "
        f"and the data themselves have {at_most(free)} / N (`mechdesign estimate`).",
    )


def _task_texts(
    utility: Mapping[str, Any], provenance: Mapping[str, Any], useful: str
) -> tuple[str, ...]:
    """What the channel tells of the other column, and the bound on it."""
    task = wording.label(str(provenance.get("task", "the task")))
    kept = wording.percent_at_least(float(utility["task_kept"]))
    most = wording.percent_at_most(float(utility["task_upper_bound"]))
    return (
        f"Made to tell about {task}: keeps {kept} of what {useful} tells about it; no channel that "
        f"keeps the promise keeps more than {most}.",
    )
