"""The queries of `mechdesign quantize` and of mechanism files, by their names.

- `build_query` describes a query on groups of one size, as certificates need it: ``mean`` of 12
  records is the linear query of 12 weights 1/12, ``count`` the sum of 12 values 0 or 1.
- `ranks_of` says which sorted values of a group are its exact answer: for ``quantile:0.9`` of 12
  records those of rank ceil(10.8) = 11, and for the median the mean of ranks 6 and 7.
  Queries that are no order statistic, such as ``mean``, have the ranks (0, 0).
"""

from __future__ import annotations

import math
from fractions import Fraction

from mechdesign.core.records import Matching
from mechdesign.nonstochastic import queries
from mechdesign.nonstochastic.domains import Domain

QUERY = Matching(
    r"identity|mean|sum|count|median|min|max|quantile:0?\.0{0,15}[1-9][0-9]{0,15}",
    "identity, mean, sum, count, median, min, max or quantile:P with 0 < P < 1 (such as "
    "quantile:0.9)",
)
"""The name of a query."""


def build_query(query: str, individuals: int, domain: Domain) -> queries.Query:
    """The query with a name, for a group of `individuals` records."""
    match query:
        case "identity":
            return queries.identity_query(domain)
        case "count":
            return queries.count_query(individuals)
        case "mean":
            return queries.mean_query(individuals, domain)
        case "sum":
            return queries.sum_query(individuals, domain)
        case "median":
            return queries.median_query(individuals, domain)
        case _:
            rank, _ = ranks_of(query, individuals)
            return queries.OrderStatistic(rank, individuals, domain)


def ranks_of(query: str, individuals: int) -> tuple[int, int]:
    """The places, from 1, in a sorted group, of the two values whose mean is the answer.

    They are (0, 0) for a query that is no order statistic. The P-quantile of n values is the
    smallest value that at least a share P of them does not exceed: of rank ceil(P n).
    """
    if query == "median":
        return (individuals + 1) // 2, individuals // 2 + 1
    if query == "min":
        share = Fraction(0)
    elif query == "max":
        share = Fraction(1)
    elif query.startswith("quantile:"):
        # The decimal as written: the double nearest to 0.1 is above it, and would give rank 2 of
        # 10 values.
        share = Fraction(query.partition(":")[2])
    else:
        return 0, 0
    rank = max(1, math.ceil(share * individuals))
    return rank, rank
