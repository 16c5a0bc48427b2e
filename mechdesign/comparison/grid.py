"""The cases of a comparison: mechanism, notion and budget, and the grids of the command line.

`curves` is the product of mechanisms, notions, budgets and splits, one list of cases for each
curve. Two mechanisms on ALIP and LIP at two budgets give four curves of two cases each: ::

    optimal           alip  epsilon 0.5 and 1, lam 0.5
    optimal           lip   epsilon 0.5 and 1             (LIP takes its budget whole: no lam)
    complete-merging  alip  epsilon 0.5 and 1, lam 0.5
    complete-merging  lip   epsilon 0.5 and 1

`check_names` and `notion_labels` check the names before, and `ascending` checks and sorts the
budgets. A `Case` gives its notion with both sides of the budget (`Case.promise`): ALIP at epsilon 1
and lam 0.65 has eps_l = 0.65 and eps_u = 0.35. `parse_grid` reads the budgets of the command line,
where 0.25:1:0.25 means 0.25, 0.5, 0.75, 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import product

from mechdesign import notions as n
from mechdesign.core.arguments import list_argument, repeated
from mechdesign.core.errors import InputError

MOST_VALUES = 10_000
"""Most values of a grid; more is a typing error."""

AT = "@"
"""Separates the name of a mechanism from its confidence."""


@dataclass(frozen=True)
class Case:
    """One run: a mechanism, a notion (with its order, as in `alpha:2`), a budget and its split.

    `optimal@0.95` is a mechanism with confidence, at this level; `lam` is None for notions whose
    budget is not split.
    """

    mechanism: str
    notion: str
    epsilon: float
    lam: float | None

    @property
    def text(self) -> str:
        """``optimal, alip, epsilon 1, lam 0.5``."""
        lam = ""
        if self.lam is not None:
            lam = f", lam {self.lam:g}"
        return f"{self.mechanism}, {self.notion}, epsilon {self.epsilon:g}{lam}"

    @property
    def confidence(self) -> float | None:
        """The level of a promise for the population; None for a promise about the table."""
        level = self.mechanism.partition(AT)[2]
        if not level:
            return None
        return float(level)

    @classmethod
    def at(cls, mechanism: str, notion: n.Notion) -> Case:
        """The case of a notion with these budgets, or with none larger by the rounding of lam."""
        # A free side is no part of a budget: what is left is the notion of the other side.
        kept = notion.one_sided or notion
        sides = [getattr(kept, name) for name in kept.budgets()]
        label = kept.name
        if kept.has_order():
            label = f"{label}:{kept.values()['alpha']:.17g}"
        epsilon = math.fsum(sides)
        if not kept.takes_lam():
            return cls(mechanism, label, epsilon, None)
        case = cls(mechanism, label, epsilon, sides[0] / epsilon)
        # The smaller side follows the digits of lam, and the larger one those of epsilon.
        smaller, larger = sorted(kept.budgets(), key=kept.values().__getitem__)
        upper = smaller == "eps_u"
        while True:
            made = case.promise()
            if getattr(made, smaller) > getattr(kept, smaller):
                lam = math.nextafter(case.lam or 0.0, 1.0 if upper else 0.0)
                case = replace(case, lam=lam)
            elif getattr(made, larger) > getattr(kept, larger):
                case = replace(case, epsilon=math.nextafter(case.epsilon, 0.0))
            else:
                return case

    def promise(self) -> n.Notion:
        """The notion at this budget."""
        name, _, order = self.notion.partition(":")
        kind = n.NOTIONS[name]
        if order:
            return kind.at(self.epsilon, self.lam, alpha=float(order))
        return kind.at(self.epsilon, self.lam)


def curves(
    mechanisms: Sequence[str],
    notions: Sequence[str],
    epsilons: Iterable[float],
    lams: Iterable[float] | None,
) -> list[list[Case]]:
    """The cases of every curve, budgets ascending.

    A notion whose budget is not split has one curve, whatever the lams.
    """
    # Refused rather than ignored: whoever gives a lam expects that it matters.
    if lams is not None and not any(map(takes_lam, notions)):
        raise InputError(
            f"lam splits a budget in two; {', '.join(notions)} takes it whole: drop lam"
        )
    if lams is None:
        lams = [n.DEFAULT_LAM]
    shares = ascending("lam", lams)
    budgets = ascending("epsilon", epsilons)
    cases: list[list[Case]] = []
    for mechanism, notion in product(mechanisms, notions):
        splits: tuple[float | None, ...] = (None,)
        if takes_lam(notion):
            splits = shares
        for lam in splits:
            cases.append([Case(mechanism, notion, epsilon, lam) for epsilon in budgets])
    return cases


def takes_lam(label: str) -> bool:
    """Whether the budget of this notion is split in two by lam."""
    return n.NOTIONS[label.partition(":")[0]].takes_lam()


def ascending(name: str, values: Iterable[float]) -> tuple[float, ...]:
    """Budgets (`epsilon`), or values of `lam`, in ascending order."""
    ordered: list[float] = []
    for value in list_argument(f"{name}s", values, "numbers, as in [0.5, 1, 2]"):
        if name == "lam":
            ordered.append(n.check_lam(value))
        else:
            ordered.append(n.check_budget(name, value, allow_infinite=False))
    ordered.sort()
    if not ordered:
        raise InputError(f"no {name} is given; give at least one")
    duplicate = repeated(ordered)
    if duplicate is not None:
        raise InputError(f"{name} ({duplicate:g}) is given twice")
    return tuple(ordered)


def check_names(
    kind: str, names: Sequence[str], allowed: Sequence[str]
) -> tuple[str, ...]:
    """`names` as a tuple; InputError unless they are different ones of the allowed names."""
    names = list_argument(f"{kind}s", names, f"names, as in {list(allowed[:1])}")
    if not names:
        raise InputError(f"no {kind} is given; use one of {', '.join(allowed)}")
    for name in names:
        if name not in allowed:
            raise InputError(
                f"{kind} {name!r} is not known; use one of {', '.join(allowed)}"
            )
    duplicate = repeated(names)
    if duplicate is not None:
        raise InputError(f"{kind} {duplicate!r} is given twice")
    return names


def notion_labels(notions: Sequence[str]) -> tuple[str, ...]:
    """Notions by their names in rows: `alip`, or `alpha:2` with its order in its shortest form."""
    labels: list[str] = []
    for notion in list_argument("notions", notions, "names, as in ['alip', 'lip']"):
        text = str(notion)
        name, colon, order = text.partition(":")
        if name in n.NOTIONS and n.NOTIONS[name].has_order():
            alpha = n.DEFAULT_ALPHA
            if colon:
                alpha = _order(text, order)
            # With 17 digits two orders have one label exactly if they are one double.
            labels.append(f"{name}:{alpha:.17g}")
        else:
            check_names("notion", [text], tuple(n.NOTIONS))
            labels.append(text)
    return check_names("notion", labels, labels)


def _order(text: str, order: str) -> float:
    """The order in a notion such as `alpha:2`."""
    try:
        value = float(order)
    except ValueError:
        raise InputError(
            f"notion {text!r}: {order!r} is no order; write a number above 1 (alpha:2)"
        ) from None
    return n.check_alpha(value)


def parse_grid(option: str, text: str) -> tuple[float, ...]:
    """Read `0.25:8:0.25` (start, stop included, step), `0.5,1,2`, or a mixture.

    Values are computed as decimals and rounded once, so that 0.3 of a grid is the double 0.3.
    """
    values: list[float] = []
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            values.append(float(_decimal(option, text, part)))
        elif len(ends) == 3:
            start = _decimal(option, text, ends[0])
            stop = _decimal(option, text, ends[1])
            step = _decimal(option, text, ends[2])
            values += _steps(option, text, start, stop, step)
        else:
            raise InputError(
                f"{option} {text!r}: {part!r} must be a number or START:STOP:STEP"
            )
    return tuple(values)


def _steps(
    option: str, text: str, start: Decimal, stop: Decimal, step: Decimal
) -> list[float]:
    """The values start, start + step, .. up to and including stop."""
    if step <= 0:
        raise InputError(
            f"{option} {text!r}: the step ({step}) must be positive, as in 0.25:8:0.25"
        )
    if stop < start:
        raise InputError(
            f"{option} {text!r}: the grid ends ({stop}) before it begins ({start}); "
            "write START:STOP:STEP, as in 0.25:8:0.25"
        )
    # Before the list is made: a million million values would fill the memory.
    if (stop - start) / step >= MOST_VALUES:
        raise InputError(
            f"{option} {text!r} has more than {MOST_VALUES:,} values; take a larger step"
        )
    # In decimals 0.3 / 0.1 is 3. In doubles it is a little less, and the stop would be lost.
    steps = int((stop - start) / step)
    return [float(start + k * step) for k in range(steps + 1)]


def _decimal(option: str, text: str, part: str) -> Decimal:
    """A part of a grid as a finite decimal."""
    try:
        value = Decimal(part.strip())
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise InputError(
            f"{option} {text!r}: {part!r} is not a number; write 0.5,1,2 or START:STOP:STEP"
        )
    return value
