"""The ways to keep an average budget, in words and as a record: `compare --average`.

The table has a line for each way (the certified optimum, and the local methods of the literature):
what it keeps, its average, the range of its lifts, and its number of outputs. Below it are the
proven bound, which holds for every way, and the reminder that the lifts of single values are not
promised.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.comparison.average_ways import AverageComparison
from mechdesign.core.wording import at_most
from mechdesign.report import layout, wording
from mechdesign.report.average_section import NAMES, NO_PROMISE_FOR_ONE


def average_comparison_text(comparison: AverageComparison) -> str:
    """The table of the ways, the bound, and what an average is not; without a final newline."""
    # A design of this run has its table and its bound, which only public files lack.
    joint = comparison.design.channel.joint
    assert joint is not None
    average = comparison.average
    rows = [["way", "kept", "average", "factor", "outputs"]]
    for way in comparison.ways:
        low = wording.factor_text(way.achieved.eps_l, upper=False)
        high = wording.factor_text(way.achieved.eps_u, upper=True)
        rows.append(
            [
                way.name,
                wording.percent_at_least(way.kept),
                at_most(way.leakage),
                f"{low} to {high}",
                str(way.outputs),
            ]
        )
    useful = wording.title(joint.useful.columns)
    sensitive = wording.title(joint.sensitive.columns)
    lead = (
        f"{useful} is released; the {NAMES[average.measure]} about {sensitive} is at most "
        f"{at_most(average.budget)} on average over released values."
    )
    bound = comparison.design.certificate.upper_bound_nmi
    assert bound is not None
    most = wording.percent_at_most(bound)
    proof = f"No channel within this average keeps more than {most} (proven)."
    warning = (
        f"{NO_PROMISE_FOR_ONE}: the factors are those of the worst released values."
    )
    texts = [layout.paragraph(text) for text in (proof, warning)]
    return "\n".join(
        [
            layout.paragraph(lead, first=""),
            "",
            *layout.aligned(rows, left=(0, 1)),
            "",
            *texts,
        ]
    )


def average_comparison_record(comparison: AverageComparison) -> dict[str, Any]:
    """The record of `compare --average --json`."""
    return {
        "average": comparison.average.model_dump(),
        "upper_bound_nmi": comparison.design.certificate.upper_bound_nmi,
        "gap_nmi": comparison.design.certificate.gap_nmi,
        "ways": [asdict(way) for way in comparison.ways],
        "seconds": comparison.seconds,
    }
