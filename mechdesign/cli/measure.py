"""`mechdesign measure CHANNEL`: the measures of `audit --all-measures` without its verdict.

The command is the older name, kept for scripts; the help does not list it. `AllMeasures` are the
options of `audit` for the same measures. Both call `auditing.measures` for a channel of one column
and `auditing.row_measures` for one of rows, with the orders of the measures that have some: those
of alpha-lift are above 1, those of Sibson's and Arimoto's information positive. A measure is a line
such as ``max_log_lift  0.18233`` (nats).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import flag, option
from mechdesign.cli.mechanism import is_mechanism, measure_mechanism
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.auditing.measures import ChannelMeasures

EXAMPLE = "Example:  mechdesign measure channel.json --alpha 2 --alpha 10"


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Measures beside those that are always printed."""

    alphas: list[float] | None = option(
        "A",
        "Order above 1 of the alpha-lift and its relatives; may be repeated (default 2).",
        names="--alpha",
    )
    orders: list[float] | None = option(
        "R",
        "A further positive order, or inf, of Sibson's and Arimoto's information; may be repeated.",
        names="--order",
    )
    per_output: bool = flag("Print the measures of every output, too (JSON has them).")


@dataclass(frozen=True, kw_only=True)
class AllMeasures:
    """All measures"""

    all_measures: bool = flag(
        "Print every measure of what the channel keeps and of what it leaks, too."
    )
    orders: list[float] | None = option(
        "R",
        "With --all-measures: a further positive order, or inf, of Sibson's and Arimoto's "
        "information, and above 1 of the alpha-lift; may be repeated.",
        names="--order",
    )
    per_output: bool = flag(
        "With --all-measures: the measures of every output, too (JSON has them)."
    )

    def refuse_alone(self) -> None:
        """Raise InputError where an option of the measures stands without them."""
        if not self.all_measures and self != type(self)():
            raise InputError(
                "--order and --per-output choose among all measures: give --all-measures too"
            )

    def of(self, channel: md.Channel, joint: md.Joint) -> ChannelMeasures:
        """Every measure of the channel on the table."""
        from mechdesign.auditing.measures import measure as measures_of

        return measures_of(channel, joint, self._alphas, tuple(self.orders or ()))

    @property
    def _alphas(self) -> tuple[float, ...]:
        """Orders of the alpha-lift: 2, and every other one above 1."""
        # One list of orders serves both kinds: alpha-lift of an order up to 1 is not defined.
        orders = [order for order in self.orders or () if order > 1.0]
        return tuple(dict.fromkeys([2.0, *orders]))


def measure(
    reporter: Reporter,
    channel: options.ChannelPath,
    table: table_options.OtherTable,
    asked: MeasureOptions,
    common: options.CommonOptions,
) -> None:
    """Print every measure of the information that a channel keeps and of what it leaks.

    They are measured on the channel's own table unless another one is given.
    """
    from mechdesign.auditing.measures import measure as measures_of
    from mechdesign.channel.file import load_without_boxes
    from mechdesign.report.terminal import measures_text

    if is_mechanism(channel):
        measure_mechanism(channel, reporter, common)
        return
    loaded = load_without_boxes(channel)
    alphas = tuple(asked.alphas or (2.0,))
    orders = tuple(asked.orders or ())
    notices: tuple[str, ...] = ()
    with reporter.work("measuring"):
        joint = table.read_for(loaded, channel)
        notices = joint.notices
        result = measures_of(loaded, joint, alphas, orders)
    # Notices on a channel's own table were printed when it was designed.
    if table.table is not None:
        reporter.notices(notices)
    reporter.done("measured", f"{channel} is measured")
    common.answer(
        lambda: asdict(result), lambda: measures_text(result, asked.per_output)
    )
