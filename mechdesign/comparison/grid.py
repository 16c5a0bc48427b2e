"""Which mechanism is run on which notion at which budget: grids as people type them, and the cases
they make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

from mechdesign import notions as n
from mechdesign.core.arguments import list_argument, repeated
from mechdesign.core.errors import InputError

MOST_VALUES = 10_000
"""Values that a grid may have; more is a slip of the keyboard."""

AT = "@"
"""Between the name of a mechanism and its confidence."""


@dataclass(frozen=True)
class Case:
    """One run: a mechanism, a notion (with its order, as in `alpha:2`), a budget and how it is
    split.

    `optimal@0.95` is a mechanism with confidence, at this level; `lam` is None for notions that
    take their budget whole.
    """

    mechanism: str
    notion: str
    epsilon: float
    lam: float | None

    @property
    def text(self) -> str:
        """``optimal, alip, epsilon 1, lam 0.5``."""
        lam = "" if self.lam is None else f", lam {self.lam:g}"
        return f"{self.mechanism}, {self.notion}, epsilon {self.epsilon:g}{lam}"

    @property
    def confidence(self) -> float | None:
        """The level at which the promise is to hold for the population; None for one about the
        table.
        """
        level = self.mechanism.partition(AT)[2]
        if not level:
            return None
        return float(level)

    def promise(self) -> n.Notion:
        """The notion at this budget."""
        name, _, order = self.notion.partition(":")
        kind = n.NOTIONS[name]
        if order:
            return kind.at(self.epsilon, self.lam, alpha=float(order))
        return kind.at(self.epsilon, self.lam)


def parse_grid(option: str, text: str) -> tuple[float, ...]:
    """Read `0.25:8:0.25` (start, stop included, step), `0.5,1,2`, or a mixture: decimals, each
    rounded once.
    """
    values: list[float] = []
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            values.append(float(_decimal(option, text, part)))
        elif len(ends) == 3:
            start, stop, step = (_decimal(option, text, end) for end in ends)
            values += _steps(option, text, start, stop, step)
        else:
            raise InputError(
                f"{option} {text!r}: {part!r} must be a number or START:STOP:STEP"
            )
    return tuple(values)


def _decimal(option: str, text: str, part: str) -> Decimal:
    try:
        value = Decimal(part.strip())
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise InputError(
            f"{option} {text!r}: {part!r} is not a number; write 0.5,1,2 or START:STOP:STEP"
        )
    return value


def _steps(
    option: str, text: str, start: Decimal, stop: Decimal, step: Decimal
) -> list[float]:
    if step <= 0:
        raise InputError(
            f"{option} {text!r}: the step ({step}) must be positive, as in 0.25:8:0.25"
        )
    if stop < start:
        raise InputError(
            f"{option} {text!r}: the grid ends ({stop}) before it begins ({start}); "
            "write START:STOP:STEP, as in 0.25:8:0.25"
        )
    if (stop - start) / step >= MOST_VALUES:
        raise InputError(
            f"{option} {text!r} has more than {MOST_VALUES:,} values; take a larger step"
        )
    return [float(start + k * step) for k in range(int((stop - start) / step) + 1)]


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
    kind: str, names: Sequence[str], known: Sequence[str]
) -> tuple[str, ...]:
    """`names` as a tuple."""
    names = list_argument(f"{kind}s", names, f"names, as in {list(known[:1])}")
    if not names:
        raise InputError(f"no {kind} is given; use one of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise InputError(
                f"{kind} {name!r} is not known; use one of {', '.join(known)}"
            )
    duplicate = repeated(names)
    if duplicate is not None:
        raise InputError(f"{kind} {duplicate!r} is given twice")
    return names


def notion_labels(notions: Sequence[str]) -> tuple[str, ...]:
    """Notions as rows name them: `alip`, or `alpha:2` with its order in its shortest form."""
    labels: list[str] = []
    for notion in list_argument("notions", notions, "names, as in ['alip', 'lip']"):
        text = str(notion)
        name, colon, order = text.partition(":")
        if name in n.NOTIONS and n.NOTIONS[name].has_order():
            alpha = n.DEFAULT_ALPHA
            if colon:
                alpha = _order(text, order)
            labels.append(f"{name}:{alpha:.17g}")
        else:
            check_names("notion", [text], tuple(n.NOTIONS))
            labels.append(text)
    return check_names("notion", labels, labels)


def _order(text: str, order: str) -> float:
    try:
        value = float(order)
    except ValueError:
        raise InputError(
            f"notion {text!r}: {order!r} is no order; write a number above 1 (alpha:2)"
        ) from None
    return n.check_alpha(value)


def takes_lam(label: str) -> bool:
    """Whether the budget of this notion is split in two by lam."""
    return n.NOTIONS[label.partition(":")[0]].takes_lam()


def curves(
    mechanisms: Sequence[str],
    notions: Sequence[str],
    epsilons: Iterable[float],
    lams: Iterable[float] | None,
) -> list[list[Case]]:
    """The cases of every curve, budgets ascending; notions that take theirs whole have one curve,
    whatever the lams.
    """
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
