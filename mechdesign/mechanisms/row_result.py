"""What a design of released rows returns: the verified channel, its audit, and what it is worth.

`row_figures` makes a `RowDesign` once the exact audit has passed the channel, and `row_keeping`
adds its messages. Kept shares are shares of H(X | K), the entropy of the released columns given
those that are released as they are; entropies are in nats.

A *prefix* is what a row has released down to some level. The outputs of a level are its *own
symbols* (with the objective truth), or *free*: labels that may stand for several symbols.

A design has a `LevelSummary` for each level of its tree. For example, with own symbols,

    LevelSummary(columns=("age",), truth={"age": 0.71}, constant={"age": 0.13}, kept=0.2, ..)

says that 71 % of the ages are released unchanged, where the most frequent age in the place of all
would leave 13 %, and that the level keeps 0.2 of H(X | K).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mechdesign.auditing.rows import RowAudit
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.display import ROW_RENDERER, Described
from mechdesign.mechanisms.result import TaskUtility


@dataclass(frozen=True)
class LevelSummary:
    """What one level j keeps and uses.

    Attributes
    ----------
    columns : tuple of str
    truth : dict or None
        Column to expected share of unchanged cells; None with free outputs.
    constant : dict
        Column to the share that its most frequent cell would leave unchanged.
    kept : float
        I(X; Y_j | K, Y_1 .. Y_{j-1}) / H(X | K).
    spent : Achieved
        The exact log-lifts of prefixes down to this level.
    share : float
        The share of the budgets that the level was allowed; single outputs may differ from it.
    """

    columns: tuple[str, ...]
    truth: dict[str, float] | None
    constant: dict[str, float]
    kept: float
    spent: Achieved
    share: float


@dataclass(frozen=True, repr=False)
class RowDesign(Described):
    """A verified row channel and what it is worth.

    Attributes
    ----------
    channel : RowChannel
    nmi : float
        I(X; Y) / H(X) of all released columns together; with given columns both are conditional on
        them.
    upper_bound_nmi : float
        Proven for every mechanism that keeps the same promise, whether a tree or not.
    entropy : float
        H(X | K) in nats.
    truth : dict or None
        Column to expected share of unchanged cells; None with free outputs.
    levels : tuple of LevelSummary
    stopped : float
        Mass of the prefixes that release the rest as a constant.
    records : int or None
        Records of the table; None where rows have weights.
    achieved : Achieved
        Smallest doubles that bound all log-lifts of released rows.
    purpose : TaskUtility or None
        What is kept of the task, I(T; Y) / I(T; X), and a proven bound; with given columns both are
        conditional on them.
    given_lift : Achieved or None
        As `achieved`, for the given columns alone, against the whole table.
    """

    channel: RowChannel
    audit: RowAudit
    nmi: float
    upper_bound_nmi: float
    entropy: float
    truth: dict[str, float] | None
    levels: tuple[LevelSummary, ...]
    stopped: float
    records: int | None
    messages: tuple[str, ...]
    seconds: float
    purpose: TaskUtility | None = None

    @property
    def achieved(self) -> Achieved:
        """What the exact audit found."""
        return self.audit.achieved

    @property
    def given_lift(self) -> Achieved | None:
        """Leakage of the given columns alone."""
        return self.audit.given

    @property
    def leaves(self) -> int:
        """Number of different prefixes that were checked."""
        return self.audit.leaves

    @property
    def gap_nmi(self) -> float:
        """Distance between the bound and what is kept."""
        return self.upper_bound_nmi - self.nmi

    def __repr__(self) -> str:
        return (
            f"RowDesign({self.channel!r}, kept {self.nmi:.4f} of at most "
            f"{self.upper_bound_nmi:.4f}, {self.seconds:.1f} s)"
        )

    def summary(self) -> str:
        """The text that `design --release` prints, without a final newline."""
        return import_module(ROW_RENDERER).row_design_text(self)

    def to_frame(self) -> Any:
        """One line for each level: columns, kept, spent and, with the objective truth, unchanged
        cells.
        """
        import pandas as pd

        lines: list[dict[str, Any]] = []
        for level in self.levels:
            line: dict[str, Any] = {
                "columns": "*".join(level.columns),
                "kept": level.kept,
                "spent_eps_l": level.spent.eps_l,
                "spent_eps_u": level.spent.eps_u,
            }
            for name, share in (level.truth or {}).items():
                line[f"truth of {name}"] = share
            lines.append(line)
        return pd.DataFrame(lines)
