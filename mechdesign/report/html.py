"""A laid out report as one HTML file that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mechdesign.report import pictures
from mechdesign.report.blocks import (
    Block,
    Bullets,
    Cell,
    CurveChart,
    Document,
    Facts,
    Grid,
    LiftMap,
    Lines,
    Maps,
    Remark,
    Text,
)
from mechdesign.report.plots import BUDGET_DASHES

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Even if a label slipped through unescaped, a browser would load and run nothing."""

TALL = 20
"""Rows above which a table scrolls in a box of its own."""

SIDE_BY_SIDE = 8
"""Columns up to which two heat maps stand side by side."""

SHADES = (0.02, 0.1, 0.3, 0.6, 0.9)
"""Shares from which on a cell has the next darker ground."""


def html_page(document: Document) -> str:
    """The whole file."""
    kind = " internal" if document.internal else ""
    head = (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{escape(document.title)}</title>\n<style>{STYLE}</style>\n</head>\n"
    )
    links = "".join(
        f'<li><a href="#{section.anchor}">{escape(section.title)}</a></li>' for section in document.sections
    )
    parts = [
        head,
        f'<body>\n<p class="banner{kind}">{escape(document.banner)}</p>\n<div class="page">\n<header>\n',
        f'<h1>{escape(document.title)}</h1>\n<p class="lead">{escape(document.lead)}</p>\n',
        _highlights(document.highlights),
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


def _highlights(items: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in items)
    return f'<dl class="highlights">{cells}</dl>\n'


def _block(block: Block, anchor: str) -> str:
    match block:
        case Text(text):
            return f"<p>{escape(text)}</p>\n"
        case Remark(text):
            return f'<p class="remark">{escape(text)}</p>\n'
        case Bullets(items):
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>\n"
        case Facts(items):
            rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in items)
            return f'<dl class="facts">{rows}</dl>\n'
        case Lines(items):
            return "".join(
                f'<p class="order">{escape(purpose)}</p>\n<pre><code>{escape(line)}</code></pre>\n'
                for purpose, line in items
            )
        case Grid():
            return _folded(block, anchor) if block.folded else _grid(block, anchor)
        case CurveChart():
            return _curve(block, anchor)
        case Maps(maps):
            return _maps(maps, anchor)


def _folded(grid: Grid, anchor: str) -> str:
    return (
        f"<details><summary>{escape(grid.caption)}: in numbers</summary>\n{_grid(grid, anchor)}</details>\n"
    )


def _grid(grid: Grid, anchor: str) -> str:
    shaded = any(cell.strength for row in grid.rows for cell in row)
    opened, closed = ("<span>", "</span>") if shaded else ("", "")
    header = "".join(
        f'<th scope="col"{_left(grid, k)}>{opened}{escape(name)}{closed}</th>'
        for k, name in enumerate(grid.header)
    )
    body = "\n".join(f"<tr>{''.join(_cell(grid, k, c) for k, c in enumerate(row))}</tr>" for row in grid.rows)
    tall = " tall" if len(grid.rows) > TALL else ""
    matrix = ' class="matrix"' if shaded else ""
    name = f"{anchor}-caption"
    return (
        f'<p class="caption" id="{name}">{escape(grid.caption)}</p>\n'
        f'<div class="box{tall}" role="region" tabindex="0" aria-labelledby="{name}">\n'
        f'<table{matrix} aria-labelledby="{name}">\n<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>\n</div>\n"
    )


def _left(grid: Grid, column: int) -> str:
    return ' class="left"' if column in grid.left else ""


def _cell(grid: Grid, column: int, cell: Cell) -> str:
    if column < grid.heads:
        return f'<th scope="row">{escape(cell.text)}</th>'
    shade = sum(cell.strength >= limit for limit in SHADES)
    kind = f' class="s{shade}"' if shade else _left(grid, column)
    return f"<td{kind}>{escape(cell.text)}</td>"


def _curve(chart: CurveChart, anchor: str) -> str:
    panels = "".join(f'<div class="box">{svg}</div>\n' for svg in pictures.curve_pictures(chart, anchor))
    key = [(_sample(line.colour, line.dashes[1]), line.label) for line in pictures.curve_series(chart)]
    rows, chosen = chart.curve.rows, chart.curve.chosen
    if any(row.upper_bound_nmi is not None for row in rows):
        hatched = (
            '<rect width="34" height="14" fill="#ededed"/><path d="M4 14L18 0M14 14L28 0" stroke="#bfbfbf"/>'
        )
        key.append((_icon(hatched), "proven impossible"))
    if chosen.eps_l is not None or chosen.eps_u is not None:
        key.append((_sample("#737373", BUDGET_DASHES[1]), "budget of this side"))
    ring = f'<circle cx="17" cy="7" r="5" fill="none" stroke="{pictures.INK}" stroke-width="2.5"/>'
    key.append((_icon(ring), "chosen"))
    items = "".join(f"<li>{icon}{escape(name)}</li>" for icon, name in key)
    return f'<figure><div class="panels">\n{panels}</div>\n<ul class="key">{items}</ul></figure>\n'


def _sample(colour: str, dashes: Sequence[float]) -> str:
    dashing = f' stroke-dasharray="{" ".join(f"{2 * part:g}" for part in dashes)}"' if dashes else ""
    return _icon(f'<path d="M0 7H34" stroke="{colour}" stroke-width="2"{dashing} fill="none"/>')


def _icon(content: str) -> str:
    return f'<svg viewBox="0 0 34 14" aria-hidden="true">{content}</svg>'


def _maps(maps: Sequence[LiftMap], anchor: str) -> str:
    parts = [
        f"<div><h3>{escape(map_.title)}</h3>\n"
        f'<div class="box">{pictures.lift_picture(map_, f"{anchor}-{k}")}</div></div>\n'
        for k, map_ in enumerate(maps)
    ]
    wide = " wide" if any(len(map_.columns) > SIDE_BY_SIDE for map_ in maps) else ""
    return f'<figure class="maps{wide}">\n{"".join(parts)}</figure>\n'


STYLE = """
:root { --ink: #1b1b1b; --soft: #5a5a5a; --line: #d8d8d8; --pale: #f5f5f3; --accent: #1f3a5f; --warn: #8a3b00;
  --ground: #fff; --bar: #1f3a5f; color-scheme: light dark; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: var(--ground); line-height: 1.55; font-size: 1rem;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif;
  overflow-wrap: anywhere; }
.page { max-width: 68rem; margin: 0 auto; padding: 0 1.5rem 4rem; }
.banner { margin: 0; padding: .55rem 1.5rem; font-size: .9rem; font-weight: 600; color: #fff; background: var(--bar);
  text-align: center; max-width: none; }
.banner.internal { background: var(--warn); }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 2rem 0 .5rem; letter-spacing: -.01em; text-wrap: balance; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.75rem 0 .75rem; padding-top: .9rem;
  border-top: 2px solid var(--accent); color: var(--accent); }
p, ul, dl { max-width: 60rem; }
p { margin: .6rem 0; }
.lead { font-size: 1.1rem; color: var(--soft); margin-bottom: 1.25rem; }
.remark { color: var(--soft); font-size: .9rem; border-left: 3px solid var(--line); padding-left: .75rem; }
.highlights { display: flex; flex-wrap: wrap; gap: 1px; max-width: none; margin: 0 0 1.25rem; padding: 1px;
  background: var(--line); }
.highlights div { flex: 1 1 17rem; background: var(--ground); padding: .7rem .9rem; }
.highlights dt { font-size: .8rem; color: var(--soft); }
.highlights dd { margin: .1rem 0 0; font-size: 1.15rem; font-weight: 600; font-variant-numeric: tabular-nums; }
nav ul { display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; list-style: none; padding: 0; margin: 0; max-width: none;
  font-size: .9rem; }
a { color: var(--accent); text-underline-offset: .15em; }
li { margin: .35rem 0; }
dl.facts { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .35rem 1.25rem; margin: .6rem 0;
  max-width: 64rem; }
.facts dt { color: var(--soft); max-width: 14rem; }
.facts dd { margin: 0; font-variant-numeric: tabular-nums; }
.box { overflow-x: auto; max-width: 100%; margin: 1rem 0; }
.box:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.tall { max-height: 36rem; overflow-y: auto; }
.tall thead th { position: sticky; top: 0; z-index: 1; background: var(--ground); }
.tall thead th:first-child { z-index: 2; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; line-height: 1.35; }
.caption { color: var(--soft); font-size: .875rem; margin: 1rem 0 .25rem; }
.caption + .box { margin-top: 0; }
th, td { padding: .3rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: normal; white-space: nowrap; }
th { font-weight: 600; white-space: normal; }
thead th { vertical-align: bottom; border-bottom: 2px solid var(--soft); }
tbody th { font-weight: 400; min-width: 8rem; max-width: 20rem; overflow-wrap: break-word; }
th:first-child, .left { text-align: left; }
th:first-child { position: sticky; left: 0; z-index: 1; background: var(--ground); padding-left: 0; }
td.left { min-width: 14rem; white-space: normal; overflow-wrap: break-word; }
.matrix td { padding: .3rem .35rem; min-width: 3rem; }
.matrix thead th { min-width: 0; }
.matrix thead th + th { text-align: left; padding: .3rem; }
.matrix thead th + th span { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg);
  max-height: 11rem; line-height: 1.15; }
.s1 { background: #f1f1ef; } .s2 { background: #e3e5e8; } .s3 { background: #cdd3dc; } .s4 { background: #b3bfce; }
.s5 { background: #1f3a5f; color: #fff; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--accent); font-size: .9rem; }
figure { margin: 1rem 0; }
svg { display: block; width: 100%; height: auto; font-family: inherit; }
.panels { display: grid; gap: .5rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); }
.maps { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
.maps.wide { grid-template-columns: minmax(0, 1fr); }
.maps h3 { font-size: .95rem; margin: 0 0 .25rem; }
.key { list-style: none; padding: 0; margin: .5rem 0 0; display: flex; flex-wrap: wrap; gap: .2rem 1.5rem;
  font-size: .85rem; max-width: none; }
.key li { display: flex; align-items: center; gap: .5rem; margin: 0; }
.key svg { width: 34px; height: 14px; flex: none; }
pre { background: var(--pale); border: 1px solid var(--line); padding: .6rem .8rem; margin: .25rem 0 1rem;
  font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--line); font-size: .85rem;
  color: var(--soft); }
.box { background: linear-gradient(to right, var(--ground) 30%, transparent),
  linear-gradient(to left, var(--ground) 30%, transparent),
  linear-gradient(to right, #8886, transparent), linear-gradient(to left, #8886, transparent);
  background-position: 0 0, 100% 0, 0 0, 100% 0; background-repeat: no-repeat;
  background-size: 2.5rem 100%, 2.5rem 100%, .7rem 100%, .7rem 100%;
  background-attachment: local, local, scroll, scroll; }
@media (max-width: 40rem) {
  .page { padding: 0 1rem 3rem; }
  .banner { padding: .55rem 1rem; }
  h1 { font-size: 1.4rem; margin-top: 1.4rem; }
  h2 { margin-top: 2rem; }
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  .facts dd { margin: 0 0 .6rem; }
  .highlights div { flex-basis: 9rem; padding: .5rem .6rem; }
  .highlights dd { font-size: 1rem; }
  tbody th { min-width: 7rem; max-width: 10rem; }
}
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --soft: #b3b3b0; --line: #454545; --pale: #262626; --accent: #a9c4e8; --ground: #181818; }
  .panels .box, .maps .box, .key svg { background: #fff; }
  .panels .box, .maps .box { padding: .5rem; }
  .s1 { background: #262626; } .s2 { background: #30343a; } .s3 { background: #3c4654; } .s4 { background: #4a5d78; }
  .s5 { background: #a9c4e8; color: #181818; }
}
@media print {
  @page { margin: 16mm 14mm; }
  body { font-size: 9.5pt; }
  .page { max-width: none; padding: 0; }
  .banner { color: #000; background: none; border: 1.5pt solid #000; }
  nav { display: none; }
  h1 { font-size: 17pt; }
  h2 { font-size: 12pt; margin-top: 1.5rem; break-after: avoid; }
  .box, .tall { overflow: visible; max-height: none; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .3rem; }
  thead th, tbody th, td, .matrix td, td.left { min-width: 0; position: static; }
  td { white-space: normal; }
  tr, .panels, .maps > div, .highlights, pre, .box:not(.tall) { break-inside: avoid; }
  .caption, .order, .maps h3 { break-after: avoid; }
  .caption { font-size: 8pt; }
  .panels { grid-template-columns: repeat(3, 1fr); }
  .maps { grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: .5rem; }
  thead { display: table-header-group; }
  svg { min-width: 0 !important; }
  .maps.wide { grid-template-columns: 1fr; }
  footer { margin-top: 1rem; }
  details::details-content { content-visibility: visible; display: block; }
  summary { display: none; }
  .s1, .s2, .s3, .s4, .s5 { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  a { color: inherit; text-decoration: none; }
}
"""
