"""Pictures of comparisons: what is in them, that grey tells as much as colour, and what is refused."""

from __future__ import annotations

import importlib.util
import math

import pytest

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.report import drawing, plots
from tests.profiles import slow


def row(mechanism, epsilon, nmi, *, notion="alip", lam=0.5, bound=None, low=-0.4):
    half = epsilon / 2
    return ComparisonRow(
        mechanism,
        notion,
        epsilon,
        lam,
        half,
        half,
        nmi,
        bound,
        0.4,
        low,
        True,
        False,
        0.1,
    )


ROWS = [
    *(row("optimal", e, 0.2 * e + 0.1, bound=0.2 * e + 0.15) for e in (1.0, 2.0, 3.0)),
    *(
        row("subset-merging", e, 0.15 * e, bound=0.2 * e + 0.15)
        for e in (1.0, 2.0, 3.0)
    ),
]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_three_panels_show_utility_and_both_leakages():
    figure = plots.trade_off_figure(ROWS)
    utility, upper, lower = figure.axes
    assert list(lines(utility)["optimal"].get_ydata()) == [row.nmi for row in ROWS[:3]]
    assert list(lines(upper)["subset-merging"].get_ydata()) == [0.4] * 3
    assert list(lines(lower)["subset-merging"].get_ydata()) == [0.4] * 3
    assert list(lines(upper)["budget of this side"].get_ydata()) == [0.5, 1.0, 1.5]
    assert list(lines(lower)["budget of this side"].get_ydata()) == [0.5, 1.0, 1.5]
    assert legend(figure) == [
        "optimal",
        "subset-merging",
        "proven impossible",
        "budget of this side",
    ]


def test_the_band_begins_at_the_proven_bound():
    figure = plots.trade_off_figure(ROWS)
    band = next(
        c for c in figure.axes[0].collections if c.get_label() == "proven impossible"
    )
    corners = {(round(x, 9), round(y, 9)) for x, y in band.get_paths()[0].vertices}
    assert {(row.epsilon, round(row.upper_bound_nmi, 9)) for row in ROWS} <= corners


def test_without_a_bound_for_every_curve_there_is_no_band():
    rows = [*ROWS, row("subset-merging", 1.0, 0.3, notion="ldp", lam=None)]
    assert not plots.trade_off_figure(rows).axes[0].collections


def test_several_notions_are_told_apart_by_dashes_and_fill():
    rows = [
        *ROWS,
        *(
            row(m, e, 0.1, lam=0.65)
            for m in ("optimal", "subset-merging")
            for e in (1.0, 2.0)
        ),
    ]
    drawn = lines(plots.trade_off_figure(rows).axes[0])
    names = [
        "optimal, alip, lam 0.5",
        "optimal, alip, lam 0.65",
        "subset-merging, alip, lam 0.5",
    ]
    first, second, other = (drawn[name] for name in names)
    dashes = {line.label: line.dashes for line in drawing.series(rows)}
    assert dashes[names[0]] != dashes[names[1]]
    assert first.get_markerfacecolor() != second.get_markerfacecolor()
    assert first.get_marker() == second.get_marker() != other.get_marker()


def test_one_mechanism_under_several_notions_has_a_marker_for_each():
    rows = [
        row("optimal", e, 0.1, lam=lam) for lam in (0.35, 0.5, 0.65) for e in (1.0, 2.0)
    ]
    drawn = lines(plots.trade_off_figure(rows).axes[0])
    assert set(drawn) == {"alip, lam 0.35", "alip, lam 0.5", "alip, lam 0.65"}
    assert len({line.get_marker() for line in drawn.values()}) == 3
    assert len({line.dashes for line in drawing.series(rows)}) == 3


def test_colours_differ_in_grey_too():
    from matplotlib.colors import to_rgb

    grey = [
        sum(w * c for w, c in zip((0.299, 0.587, 0.114), to_rgb(colour), strict=True))
        for colour, _ in drawing.LOOKS[:4]
    ]
    apart = [abs(a - b) for k, a in enumerate(grey) for b in grey[:k]]
    assert min(apart) > 0.08
    assert len({marker for _, marker in drawing.LOOKS}) == len(drawing.LOOKS)


def test_curves_that_fall_are_explained_where_they_are_drawn():
    assert plots.trade_off_figure(ROWS).legends[0].get_title().get_text() == ""
    falling = [*ROWS, row("subset-merging", 4.0, 0.2, bound=0.95)]
    note = plots.trade_off_figure(falling).legends[0].get_title().get_text()
    assert note.startswith(
        "subset-merging: sets are chosen anew at each budget, so a curve may fall"
    )


def test_infinite_leakage_is_a_gap_in_the_line():
    figure = plots.trade_off_figure(
        [row("optimal", 1.0, 0.5), row("optimal", 2.0, 0.6, low=-math.inf)]
    )
    values = list(figure.axes[2].get_lines()[0].get_ydata())
    assert values[0] == 0.4
    assert math.isnan(values[1])


@pytest.mark.parametrize(
    ("ending", "magic"),
    [slow(".png", b"\x89PNG"), (".svg", b"<?xml"), slow(".pdf", b"%PDF")],
)
def test_each_format_is_written_and_the_same_again(tmp_path, ending, magic):
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    plots.save_plot(ROWS, first)
    plots.save_plot(ROWS, second)
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name}


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"must end in \.png, \.svg, \.pdf, not \.gif"):
        plots.save_plot(ROWS, tmp_path / "a.gif")
    with pytest.raises(InputError, match="not nothing"):
        plots.save_plot(ROWS, tmp_path / "a")
    with pytest.raises(InputError, match="no rows"):
        plots.save_plot([], tmp_path / "a.png")
    (tmp_path / "a.png").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        plots.save_plot(ROWS, tmp_path / "a.png")
    plots.save_plot(ROWS, tmp_path / "a.png", overwrite=True)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        drawing, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    with pytest.raises(InputError, match=r"plots need matplotlib.*mechdesign\[plots\]"):
        plots.check_plot(tmp_path / "b.png", force=False)
