"""What eight columns of a real survey keep under three promises: ``python survey.py``.

The Adult data stand for a survey: the income is protected, eight columns are released. Set
MECHDESIGN_DATA to the folder that holds adult/. ``--records N`` takes the first N records,
``--columns N`` the first N columns of the release.
"""

from __future__ import annotations

import argparse
from math import log

import adult_rows

import mechdesign as md

RELEASED = (
    "education",
    "occupation",
    "workclass",
    "hours",
    "married",
    "sex",
    "age",
    "race",
)

TIMES = (1.25, 1.5, 2.0)
"""No income becomes more than so many times as likely, or less than one over it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int)
    parser.add_argument("--columns", type=int, default=len(RELEASED))
    arguments = parser.parse_args()
    table = adult_rows.read("adult.data", arguments.records)
    released = RELEASED[: arguments.columns]
    print(f"{table.num_rows:,} records; income is protected")
    print("promised        verified        kept  unchanged cells  law of rows moves")
    for times in TIMES:
        notion = md.ALIP(eps_l=log(times), eps_u=log(times))
        design = md.design(
            table,
            notion,
            sensitive="income",
            release=released,
            smallest_group=1,
            time_limit=30,
        )
        audit = md.audit(design.channel)
        print(
            f"{1 / times:.2f} to {times:.2f}  {'yes' if audit.satisfied else 'NO':>10}"
            f"  {figures(design)}"
        )


def figures(design: md.Design) -> str:
    """Share of the information that is kept, the mean of unchanged cells, and how far the law of
    released rows is from that of the table (total variation).
    """
    assert design.truth is not None
    assert design.law is not None
    mean = sum(design.truth.values()) / len(design.truth)
    return f"{design.nmi:>10.1%} {mean:>16.1%} {design.law.total_variation:>18.2g}"


if __name__ == "__main__":
    main()
