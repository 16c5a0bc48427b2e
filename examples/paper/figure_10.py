"""Figure 10: a table of 15 x 200, with the optimum that the paper could not compute and its proven gap."""

from __future__ import annotations

import common

MECHANISMS = (*common.NEAR_OPTIMAL, "subset-merging", "complete-merging")
QUICK = (2.0, 4.0, 8.0)
FULL = tuple(k / 4 for k in range(4, 33))
SECONDS = {False: 5.0, True: 60.0}


def draw(run: common.Run) -> None:
    grid = FULL if run.full else QUICK
    plan = common.Plan(MECHANISMS, grid, lams=(0.5,), time_limit=SECONDS[run.full])
    means = common.curves([(*common.LARGE, 0)], plan, run)
    what = "|X| = 200, |S| = 15, lam 0.5"
    common.heading(run, what, means)
    by_name = [common.of_curve(means, (name, "alip", 0.5)) for name in MECHANISMS]
    print(
        "  epsilon  "
        + "  ".join(
            f"{name:>16}" for name in (*MECHANISMS[:1], "at most", *MECHANISMS[1:])
        )
    )
    for epsilon in grid:
        optimum, *others = (curve[epsilon].row for curve in by_name)
        bound = optimum.upper_bound_nmi
        cells = [f"{optimum.nmi:.5f}", "-" if bound is None else f"{bound:.5f}"]
        cells += [f"{row.nmi:.5f}{'*' if row.repaired else ''}" for row in others]
        print(f"  {epsilon:7g}  " + "  ".join(f"{cell:>16}" for cell in cells))
    inside = all(
        row.max_log_lift <= row.epsilon / 2 and -row.min_log_lift <= row.epsilon / 2
        for row in (m.row for m in means)
    )
    print(
        f"  * repaired; every leakage is within its budget: {'yes' if inside else 'NO'}"
    )
    common.save(run, means, what)


if __name__ == "__main__":
    common.main(10, __doc__, draw)
