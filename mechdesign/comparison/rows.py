"""The cases of a comparison (mechanism, notion and budget), their rows, and the CSV of the rows.

*Cases.* `curves` is the product of mechanisms, notions, budgets and splits, one list of cases for
each curve. Two mechanisms on ALIP and LIP at two budgets give four curves of two cases each: ::

    optimal           alip  epsilon 0.5 and 1, lam 0.5
    optimal           lip   epsilon 0.5 and 1             (LIP takes its budget whole: no lam)
    complete-merging  alip  epsilon 0.5 and 1, lam 0.5
    complete-merging  lip   epsilon 0.5 and 1

`check_names` and `notion_labels` check the names before, and `ascending` checks and sorts the
budgets. A `Case` gives its notion with both sides of the budget (`Case.promise`): ALIP at epsilon 1
and lam 0.65 has eps_l = 0.65 and eps_u = 0.35. `parse_grid` reads the budgets of the command line,
where 0.25:1:0.25 means 0.25, 0.5, 0.75, 1.

*Rows.* A row is one case and what its channel achieves (`ComparisonRow`).
`write_csv` writes, for ``out.csv``: ::

    mechanism,notion,epsilon,lam,eps_l,eps_u,nmi,upper_bound_nmi,max_log_lift,min_log_lift,..
    optimal,alip,0.5,0.5,0.25,0.25,0.6441977085517193,0.6441977085523859,0.19983..,-0.24999..,..
    complete-merging,alip,0.5,0.5,0.25,0.25,0.5991948961725239,0.6441977085523859,0.13353..,..

Every double is the shortest text that reads back as the same double, and an empty cell is None.
`read_rows` accepts only these texts, so that writing what was read gives the same file.

A run can be resumed: beside the CSV lies the manifest ``out.csv.json``, with the hash of the table
and the settings, as in {"table": "d603eb..", "settings": {"gap": 0.0001, "method": "auto", ..}}. A
`ComparisonFile` keeps the rows of an earlier run only if both are the same. The second row above
has its bound from the first: `with_bounds` gives each row the best one proven for its promise.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from mechdesign import notions as n
from mechdesign.core.arguments import list_argument, repeated
from mechdesign.core.documents import (
    Digest,
    FileDocument,
    canonical,
    read_document,
    write_document,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, read_errors, replacing
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

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
            f"--lams splits a budget in two; {', '.join(notions)} takes it whole: drop --lams"
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


# --------------------------------------------------------------------------------- rows

LARGEST_CSV = 2**28
"""Bytes; a million rows take half of it."""

Setting = str | float | bool | None
"""A setting in a manifest."""


@dataclass(frozen=True)
class ComparisonRow(Case):
    """One line of the CSV: what a mechanism achieves at one budget.

    Budgets, log-lifts (natural logarithms, rounded outwards) and `nmi` = I(X;Y)/H(X) are those of
    the integers of a channel. `lam`, `eps_l` and `eps_u` are None for notions that do not have
    them, `upper_bound_nmi` where no optimum was computed for the same notion and budget.
    `satisfied` is the exact verdict. What follows `seconds` is there for channels of least cost,
    whose objective is their mechanism, and for ways to release rows: `truth` is then the mean share
    of unchanged cells, and `total_variation` that of released rows from those of the table.
    `figure` is that of a purpose or of an average (`ways`), with what is proven of it for every
    channel, and the number of outputs.
    """

    eps_l: float | None
    eps_u: float | None
    nmi: float
    upper_bound_nmi: float | None
    max_log_lift: float
    min_log_lift: float
    satisfied: bool
    repaired: bool
    seconds: float
    cost: float | None = None
    cost_lower_bound: float | None = None
    truth: float | None = None
    frequency_deviation: float | None = None
    total_variation: float | None = None
    figure: float | None = None
    figure_bound: float | None = None
    outputs: int | None = None

    @property
    def case(self) -> Case:
        """What was run."""
        return Case(self.mechanism, self.notion, self.epsilon, self.lam)

    @property
    def curve(self) -> tuple[str, float | None]:
        """What rows of different mechanisms must share to be compared over budgets."""
        return self.notion, self.lam


ALL_COLUMNS = tuple(f.name for f in fields(ComparisonRow))
COLUMNS = ALL_COLUMNS[: ALL_COLUMNS.index("seconds") + 1]
"""The columns of every CSV; of the others it has those in which some row has a value."""

READER = TypeAdapter(ComparisonRow)
"""Makes a row of the texts of its cells, and checks their types."""


def columns_of(rows: Iterable[ComparisonRow]) -> tuple[str, ...]:
    """The columns of a CSV of these rows."""
    rows = list(rows)
    more = [
        name
        for name in ALL_COLUMNS[len(COLUMNS) :]
        if any(getattr(row, name) is not None for row in rows)
    ]
    return (*COLUMNS, *more)


def with_bounds(rows: Sequence[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """The rows with the best bound proven for their notion, budget and confidence.

    A row that violates its promise keeps its own bound: no bound for private channels limits it.
    """
    keys = [(*row.curve, row.epsilon, row.confidence) for row in rows]
    best: dict[tuple[object, ...], float] = {}
    for key, row in zip(keys, rows, strict=True):
        if row.upper_bound_nmi is not None:
            best[key] = min(row.upper_bound_nmi, best.get(key, math.inf))
    bounded: list[ComparisonRow] = []
    for key, row in zip(keys, rows, strict=True):
        if row.satisfied:
            bounded.append(replace(row, upper_bound_nmi=best.get(key)))
        else:
            bounded.append(row)
    return tuple(bounded)


def write_csv(
    path: PathLike, rows: Iterable[ComparisonRow], *, overwrite: bool
) -> None:
    """Write the rows whole or not at all: shortest decimals that read back as the same double,
    nothing for None.
    """
    check_target(path, force=overwrite)
    rows = list(rows)
    columns = columns_of(rows)
    with (
        replacing(path, force=overwrite) as new,
        new.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_cell(getattr(row, name)) for name in columns])


def _cell(value: str | float | bool | None) -> str:
    """The text of a value in the CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    # The `repr` of a double is the shortest text that reads back as it; so does "1" for "1.0".
    return repr(value).removesuffix(".0")


def read_rows(path: PathLike) -> tuple[ComparisonRow, ...]:
    """Read what `write_csv` wrote."""
    name = os.fspath(path)
    try:
        with read_errors(name), open(path, newline="", encoding="utf-8") as stream:
            if os.path.getsize(path) > LARGEST_CSV:
                raise InputError(
                    f"{name} is larger than any comparison; choose another name for the output"
                )
            header, *lines = list(csv.reader(stream, strict=True)) or [[]]
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"{name} is no CSV of a comparison; choose another name, or start over with --force"
        ) from None
    known = tuple(name for name in ALL_COLUMNS if name in header)
    if tuple(header) != known or known[: len(COLUMNS)] != COLUMNS:
        raise InputError(
            f"{name} does not have the columns of a comparison; choose another name, or "
            "start over with --force"
        )
    rows: dict[Case, ComparisonRow] = {}
    # Line 1 is the header.
    for number, cells in enumerate(lines, start=2):
        row = _row(f"{name}, line {number}", header, cells)
        if rows.setdefault(row.case, row) is not row:
            raise InputError(
                f"{name}, line {number} repeats an earlier one; --force starts over"
            )
    return tuple(rows.values())


def _row(where: str, header: list[str], cells: list[str]) -> ComparisonRow:
    """The row of a line; an error if `write_csv` would not write the same texts for it."""
    if len(cells) != len(header):
        raise InputError(
            f"{where} has {len(cells)} cells, not {len(header)}; --force starts over"
        )
    texts = dict(zip(header, cells, strict=True))
    values: dict[str, str | None] = {}
    for name, text in texts.items():
        # Without its cell a required field is refused: no comparison writes "nan".
        if text != "nan":
            values[name] = text or None
    try:
        row = READER.validate_python(values)
    except ValidationError as error:
        raise _foreign_cell(where, str(error.errors()[0]["loc"][0]), texts) from None
    for name, text in texts.items():
        # Only the text that `write_csv` would write again is accepted.
        if _cell(getattr(row, name)) != text:
            raise _foreign_cell(where, name, texts)
    return row


def _foreign_cell(where: str, column: str, texts: Mapping[str, str]) -> InputError:
    """The error for a cell that no comparison writes."""
    return InputError(
        f"{where}: {column} ({texts[column]!r}) is nothing that a comparison writes; "
        "--force starts over"
    )


class ComparisonFile:
    """The CSV of a run: what it holds already, and how rows are added to it.

    Opening it checks the manifest of an earlier run, or writes a new one. `earlier_rows` are those
    of the earlier run; `write` then replaces the file as often as there are new ones.
    """

    def __init__(
        self,
        path: PathLike,
        joint: Joint,
        settings: Mapping[str, Setting],
        *,
        force: bool = False,
    ) -> None:
        self.path = Path(path)
        self.earlier_rows: tuple[ComparisonRow, ...] = ()
        manifest = Path(f"{os.fspath(path)}.json")
        # Both must be writable before hours of computing. They may exist, for a run goes on.
        for target in (self.path, manifest):
            check_target(target, force=True)
        current = ComparisonManifest(table=table_hash(joint), settings=dict(settings))
        earlier: ComparisonManifest | None = None
        if manifest.exists() and not force:
            earlier = read_document(manifest, ComparisonManifest)
        if self.path.exists() and not force:
            _refuse_other_run(earlier, current, self.path, manifest.name)
            self.earlier_rows = read_rows(self.path)
        else:
            # In this order: a crash between the two steps leaves a manifest without rows, never
            # rows beside the manifest of another table.
            self.path.unlink(missing_ok=True)
            write_document(manifest, current, overwrite=True)

    def write(self, rows: Sequence[ComparisonRow]) -> None:
        """Replace the CSV by these rows, followed by the earlier ones that they do not repeat."""
        cases = {row.case for row in rows}
        others = [row for row in self.earlier_rows if row.case not in cases]
        write_csv(self.path, [*rows, *others], overwrite=True)


def _refuse_other_run(
    earlier: ComparisonManifest | None,
    current: ComparisonManifest,
    path: Path,
    manifest: str,
) -> None:
    """Refuse to go on with rows of another table or of other settings."""
    if earlier is None:
        raise InputError(
            f"{path} exists and is no comparison to go on with (there is no "
            f"{manifest}); choose another name, or overwrite it with force (--force)"
        )
    advice = "choose another name, or start over with force (--force)"
    if earlier.table != current.table:
        raise InputError(f"{path} belongs to another table; {advice}")
    if earlier.settings == current.settings:
        return
    for key in sorted({*earlier.settings, *current.settings}):
        old = earlier.settings.get(key)
        new = current.settings.get(key)
        in_both = key in earlier.settings and key in current.settings
        if old != new or not in_both:
            raise InputError(
                f"{path} was made with other settings ({key} {old}, not {new}); {advice}"
            )


class ComparisonManifest(FileDocument):
    """Which table, and which settings, the rows of a comparison belong to."""

    FORMAT: ClassVar[str] = "mechdesign.comparison"
    WHAT: ClassVar[str] = "manifest of a comparison"

    table: Digest
    settings: dict[str, Setting]


def table_hash(joint: Joint) -> str:
    """sha256 of the table: labels of both variables and every entry."""
    table: dict[str, Any] = {
        "sensitive": _labels(joint.sensitive),
        "useful": _labels(joint.useful),
        "counts": joint.counts,
        "is_counts": joint.is_counts,
    }
    # Only then, so that the hashes of all other tables stay those of earlier manifests.
    if joint.sensitive.protects_columns:
        table["each"] = True
    return hashlib.sha256(canonical(table).encode()).hexdigest()


def _labels(variable: Variable) -> dict[str, Any]:
    """The columns and symbols of a variable as the hash takes them in."""
    return {"columns": variable.columns, "symbols": variable.symbols}
