"""Figures that differ only in their tables or mechanism: one function for each kind."""

from __future__ import annotations

from collections.abc import Sequence

from common import (
    LAMS,
    NEAR_OPTIMAL,
    Key,
    Mean,
    Plan,
    Published,
    Run,
    curves,
    heading,
    print_lams,
    print_order,
    print_published,
    print_repairs,
    save,
)


def watchdog_figure(
    run: Run,
    mechanism: str,
    what: str,
    keys: Sequence[Key],
    published: dict[float, float],
) -> None:
    """Figures 2, 3, 6 and 7: a watchdog mechanism under LDP and ALIP with three values of lam."""
    means = curves(keys, Plan((mechanism,), run.grid, notions=("alip", "ldp")), run)
    _utilities(run, mechanism, what, means, published)
    for lam in LAMS:
        print_order(means, (mechanism, "ldp", None), (mechanism, "alip", lam))
    print_repairs(means)


def optimum_figure(
    run: Run, what: str, keys: Sequence[Key], published: dict[float, float]
) -> None:
    """Figures 4 and 5: the optimal channel under ALIP with three values of lam."""
    _utilities(
        run, "optimal", what, curves(keys, Plan(("optimal",), run.grid), run), published
    )


def _utilities(
    run: Run,
    mechanism: str,
    what: str,
    means: Sequence[Mean],
    published: dict[float, float],
) -> None:
    """`published` gives the utility at lam 0.5 by budget."""
    heading(run, what, means)
    print_published(
        means,
        [Published((mechanism, "alip", 0.5), e, nmi) for e, nmi in published.items()],
    )
    print_lams(means, mechanism)
    save(run, means, what)


def compared_mechanisms(run: Run, what: str, keys: Sequence[Key]) -> list[Mean]:
    """Figures 8 and 9: optimum, subset random response and subset merging at lam 0.65."""
    means = curves(
        keys, Plan((*NEAR_OPTIMAL, "subset-merging"), run.grid, lams=(0.65,)), run
    )
    heading(run, what, means)
    optimum, response, merging = (
        (m, "alip", 0.65) for m in (*NEAR_OPTIMAL, "subset-merging")
    )
    print_order(means, response, merging)
    print_order(means, optimum, response)
    save(run, means, what)
    return means


def compared_notions(
    run: Run, what: str, keys: Sequence[Key], kept: Sequence[tuple[str, float]]
) -> list[Mean]:
    """Figures 11 to 13: subset merging under the notions and lams of `kept`."""
    notions = tuple(dict.fromkeys(notion for notion, _ in kept))
    lams = tuple(dict.fromkeys(lam for _, lam in kept))
    keep = tuple(("subset-merging", *k) for k in kept)
    plan = Plan(("subset-merging",), run.grid, notions=notions, lams=lams, keep=keep)
    means = curves(keys, plan, run)
    heading(run, what, means)
    save(run, means, what)
    return means


def averages_figure(run: Run, what: str, keys: Sequence[Key]) -> None:
    """Figures 11 and 12: l1 and chi2 privacy against ALIP, and whether lam 0.65 pays."""
    kept = [
        ("alip", 0.5),
        *((name, lam) for name in ("l1", "chi2") for lam in (0.5, 0.65)),
    ]
    means = compared_notions(run, what, keys, kept)
    merging = "subset-merging"
    for name in ("l1", "chi2"):
        print_order(means, (merging, name, 0.5), (merging, "alip", 0.5))
        print_order(means, (merging, name, 0.65), (merging, name, 0.5), below=1.0)
        print_lams(means, merging, name)
    print_repairs(means)
