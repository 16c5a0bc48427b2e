"""A laid out report as one HTML file that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from mechdesign.report import blocks as b
from mechdesign.report import plots

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Even if a label slipped through unescaped, a browser would load and run nothing."""

TALL = 20
"""Rows above which a table scrolls in a box of its own."""

SIDE_BY_SIDE = 8
"""Columns up to which two heat maps stand side by side."""

COLOURS = ("#fff3c9", "#adc0cb", "#10305c")
"""Of the smallest lifts, of 1, and of the largest: lightness 96, 76 and 20, in this order also in grey."""

DARK = 0.35
"""Cells above this share of the colour scale carry white text."""

SHADES = (0.02, 0.1, 0.3, 0.6, 0.9)
"""Shares from which on a cell has the next darker ground."""

LEFT = ' class="left"'
HATCHED = '<rect width="34" height="14" fill="#ededed"/><path d="M4 14L18 0M14 14L28 0" stroke="#bfbfbf"/>'


def html_page(document: b.Document) -> str:
    """The whole file."""
    style = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    kind = " internal" if document.internal else ""
    links = "".join(
        f'<li><a href="#{part.anchor}">{escape(part.title)}</a></li>' for part in document.sections
    )
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="robots" content="noindex">\n',
        f"<title>{escape(document.title)}</title>\n<style>\n{style}</style>\n</head>\n",
        f'<body>\n<p class="banner{kind}">{escape(document.banner)}</p>\n<div class="page">\n<header>\n',
        f'<h1>{escape(document.title)}</h1>\n<p class="lead">{escape(document.lead)}</p>\n',
        f'<dl class="highlights">{_pairs(document.highlights, "<div>", "</div>")}</dl>\n',
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n</header>\n<main>\n',
    ]
    for section in document.sections:
        heading = f"{section.anchor}-title"
        parts.append(f'<section id="{section.anchor}" aria-labelledby="{heading}">\n')
        parts.append(f'<h2 id="{heading}">{escape(section.title)}</h2>\n')
        parts += [_block(block, f"{section.anchor}-{k}") for k, block in enumerate(section.blocks)]
        parts.append("</section>\n")
    parts.append(f"</main>\n<footer><p>{escape(document.footer)}</p></footer>\n</div>\n</body>\n</html>\n")
    return "".join(parts)


def _pairs(items: Sequence[tuple[str, str]], before: str = "", after: str = "") -> str:
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in items)
    return "".join(f"{before}{pair}{after}" for pair in pairs)


def _block(block: b.Block, anchor: str) -> str:
    match block:
        case b.Text(text):
            return f"<p>{escape(text)}</p>\n"
        case b.Remark(text):
            return f'<p class="remark">{escape(text)}</p>\n'
        case b.Bullets(items):
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>\n"
        case b.Facts(items):
            return f'<dl class="facts">{_pairs(items)}</dl>\n'
        case b.Lines(items):
            return "".join(
                f'<p class="order">{escape(purpose)}</p>\n<pre><code>{escape(line)}</code></pre>\n'
                for purpose, line in items
            )
        case b.Grid():
            shown, named = _grid(block, anchor), f"{escape(block.caption)}: in numbers"
            return f"<details><summary>{named}</summary>\n{shown}</details>\n" if block.folded else shown
        case b.CurveChart():
            return _curve(block, anchor)
        case b.Picture(svg):
            return f'<figure><div class="box">{svg}</div></figure>\n'
        case b.Maps():
            return _maps(block, anchor)


def _grid(grid: b.Grid, anchor: str) -> str:
    shaded = any(cell.strength for row in grid.rows for cell in row)
    tinted = any(cell.tint is not None for row in grid.rows for cell in row)
    opened, closed = ("<span>", "</span>") if shaded or tinted else ("", "")
    header = "".join(
        f'<th scope="col"{LEFT * (k in grid.left)}>{opened}{escape(name)}{closed}</th>'
        for k, name in enumerate(grid.header)
    )
    body = "\n".join(f"<tr>{''.join(_cell(grid, k, c) for k, c in enumerate(row))}</tr>" for row in grid.rows)
    tall = " tall" if len(grid.rows) > TALL and not tinted else ""
    matrix = ' class="matrix map"' if tinted else ' class="matrix"' if shaded else ""
    name = f"{anchor}-caption"
    return (
        f'<p class="caption" id="{name}">{escape(grid.caption)}</p>\n'
        f'<div class="box{tall}" role="region" tabindex="0" aria-labelledby="{name}">\n'
        f'<table{matrix} aria-labelledby="{name}">\n<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>\n</div>\n"
    )


def _cell(grid: b.Grid, column: int, cell: b.Cell) -> str:
    if column < grid.heads:
        return f'<th scope="row">{escape(cell.text)}</th>'
    shade = sum(cell.strength >= limit for limit in SHADES)
    kind = f' class="s{shade}"' if shade else _tint(cell) or LEFT * (column in grid.left)
    return f"<td{kind}>{escape(cell.text)}</td>"


def _curve(chart: b.CurveChart, anchor: str) -> str:
    panels = "".join(f'<div class="box">{svg}</div>\n' for svg in plots.curve_pictures(chart, anchor))
    key = [(_sample(line.colour, line.dashes[1]), line.label) for line in plots.curve_series(chart)]
    rows, chosen = chart.curve.rows, chart.curve.chosen
    if any(row.upper_bound_nmi is not None for row in rows):
        key.append((_icon(HATCHED), "proven impossible"))
    if chosen.eps_l is not None or chosen.eps_u is not None:
        key.append((_sample("#737373", plots.BUDGET_DASHES[1]), "budget of this side"))
    ring = f'<circle cx="17" cy="7" r="5" fill="none" stroke="{plots.INK}" stroke-width="2.5"/>'
    key.append((_icon(ring), "chosen"))
    items = "".join(f"<li>{icon}{escape(name)}</li>" for icon, name in key)
    return f'<figure><div class="panels">\n{panels}</div>\n<ul class="key">{items}</ul></figure>\n'


def _sample(colour: str, dashes: Sequence[float]) -> str:
    dashing = f' stroke-dasharray="{" ".join(f"{2 * part:g}" for part in dashes)}"' if dashes else ""
    return _icon(f'<path d="M0 7H34" stroke="{colour}" stroke-width="2"{dashing} fill="none"/>')


def _icon(content: str) -> str:
    return f'<svg viewBox="0 0 34 14" aria-hidden="true">{content}</svg>'


def _maps(maps: b.Maps, anchor: str) -> str:
    grids = "".join(f"<div>{_grid(grid, f'{anchor}-{k}')}</div>\n" for k, grid in enumerate(maps.maps))
    wide = " wide" if any(len(grid.header) > SIDE_BY_SIDE + 1 for grid in maps.maps) else ""
    steps = "".join(f"<span{_tint(step)}>{step.text}</span>" for step in maps.scale)
    caption = f'<figcaption class="scale">lift {steps}</figcaption>'
    return f'<figure class="maps{wide}">\n{grids}{caption}</figure>\n'


def _tint(cell: b.Cell) -> str:
    """The colour of a cell, between the neighbouring two of `COLOURS`, with ink that stands out."""
    if cell.tint is None:
        return ""
    first, second = COLOURS[:2] if cell.tint < 0.0 else COLOURS[1:]
    share = cell.tint + 1.0 if cell.tint < 0.0 else cell.tint
    pairs = [(int(first[k : k + 2], 16), int(second[k : k + 2], 16)) for k in (1, 3, 5)]
    colour = "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)
    return f' style="background:#{colour}{";color:#fff" if cell.tint > DARK else ""}"'
