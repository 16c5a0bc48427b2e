"""The looks of an HTML report, on a screen of any width and on paper."""

from __future__ import annotations

STYLE = """
:root { --ink: #1b1b1b; --soft: #5a5a5a; --line: #d8d8d8; --pale: #f5f5f3; --accent: #1f3a5f; --warn: #8a3b00; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: #fff; line-height: 1.55; font-size: 1rem;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif;
  overflow-wrap: anywhere; }
.page { max-width: 68rem; margin: 0 auto; padding: 0 1.5rem 4rem; }
.banner { margin: 0; padding: .55rem 1.5rem; font-size: .9rem; font-weight: 600; color: #fff; background: var(--accent);
  text-align: center; max-width: none; }
.banner.internal { background: var(--warn); }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 2rem 0 .5rem; letter-spacing: -.01em; text-wrap: balance; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.75rem 0 .75rem; padding-top: .9rem;
  border-top: 2px solid var(--accent); color: var(--accent); }
p, ul, dl { max-width: 46rem; }
p { margin: .6rem 0; }
.lead { font-size: 1.1rem; color: var(--soft); margin-bottom: 1.25rem; }
.remark { color: var(--soft); font-size: .9rem; border-left: 3px solid var(--line); padding-left: .75rem; }
.highlights { display: flex; flex-wrap: wrap; gap: 1px; max-width: none; margin: 0 0 1.25rem; padding: 1px;
  background: var(--line); }
.highlights div { flex: 1 1 17rem; background: #fff; padding: .7rem .9rem; }
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
.tall thead th { position: sticky; top: 0; z-index: 1; background: #fff; }
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
th:first-child { position: sticky; left: 0; z-index: 1; background: #fff; padding-left: 0; }
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
