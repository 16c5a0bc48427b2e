"""The picture of error against budget of a release by quantisation.

It has a line for each error of `CURVES`, over the rows of `quantize_table.compare_budgets`, such as
{"epsilon": 2.0, "possible_error": 7.5, "worst_error": 5.0, "mean_error": 2.5, ..}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.report.drawing import new_figure, save_figure, settings

CURVES = (("possible_error", "--"), ("worst_error", "-"), ("mean_error", "-"))
"""The errors of a plot, and their line styles; the possible one does not depend on the data."""


def save_curve(
    rows: Sequence[Mapping[str, Any]], path: str, *, overwrite: bool
) -> None:
    """Draw error against budget."""
    budgets = [row["epsilon"] for row in rows]
    with settings():
        figure = new_figure(figsize=(6.5, 4.3), layout="constrained")
        axes = figure.subplots()
        for name, style in CURVES:
            errors = [row[name] for row in rows]
            axes.plot(budgets, errors, style, marker=".", label=name.replace("_", " "))
        # From zero, so that heights compare as errors do.
        axes.set(xlabel="epsilon of an answer, bits", ylabel="error", ylim=(0, None))
        axes.legend()
    save_figure(figure, path, overwrite=overwrite)
