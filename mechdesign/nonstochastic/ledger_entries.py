"""Releases of ranges in the ledger, which adds up the bits of all releases of the same records.

`charged` enters for each release the outputs of one answer and how many answers one individual
takes part in. Their power is a factor of the outputs of all releases together (Farokhi 2019,
Theorem 6). A release in a way that is in the ledger already (`WAY`) has the same answers, and adds
nothing.

For example, means by town with 4 outputs and 3 answers of an individual have 4^3 = 64 outputs, 6
bits. Means by street with 2 outputs and 1 answer make it 64 * 2 = 128, 7 bits. The means by town
once more leave it at 7.
"""

from __future__ import annotations

from dataclasses import replace

from mechdesign.formats.census import Content
from mechdesign.jobs.counted_outputs import enter_counted
from mechdesign.jobs.ledger import Ledger
from mechdesign.nonstochastic.release_answers import RangeRelease

WAY = {"query", "group_by", "range", "values", "outside", "mechanisms"}
"""The fields of a mechanism file that distinguish ways of releasing a column. A release in the same
way has the same answers, and adds nothing."""


def charged(
    ledger: Ledger,
    content: Content,
    result: RangeRelease,
    equals: str | None = None,
    *,
    source: str,
    target: str,
) -> RangeRelease:
    """Enter a release; the result with the total of all releases of the column of these records.

    Parameters
    ----------
    ledger : Ledger
        The ledger to enter it in.
    content : Content
        The hashes of the records.
    result : RangeRelease
        The release.
    equals : str, optional
        The value that a count counts.
    source, target : str
        The places of the table and of the release.
    """
    document = result.mechanism.document.model_dump(mode="json", include=WAY)
    outputs = result.mechanism.guarantee["outputs"]
    answers = result.answers_each or 1
    by_size = dict(result.mechanism.guarantee.get("answers_by_size", ()))
    if by_size:
        # Sizes of groups have budgets of their own: the product of all answers counts as one.
        of_size: dict[int, int] = {}
        for mechanism in result.mechanism.mechanisms:
            of_size[mechanism.individuals] = mechanism.certificate.outputs
        outputs = 1
        answers = 1
        for size, times in by_size.items():
            outputs *= of_size[size] ** times
    total = enter_counted(
        ledger,
        content,
        column=result.column,
        way=document | {"equals": equals},
        outputs=outputs,
        answers=answers,
        output=result.sha256,
        source=source,
        target=target,
    )
    return replace(result, releases=total.releases, releases_epsilon=total.bits)
