"""Reports of channels of every kind, made as the command line makes them, and an HTML parser that is strict."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser

import numpy as np

import mechdesign as md
from mechdesign.cli.console import Reporter
from mechdesign.cli.options import commands
from mechdesign.mechanisms.result import Design
from mechdesign.report.collect import attributed, internal_report
from mechdesign.report.content import public_report
from mechdesign.report.record import Report
from mechdesign.report.writing import report_text
from mechdesign.tables.joint import Joint

HOSTILE = [
    "<script>alert(1)</script>",
    "a & b",
    'it\'s "quoted"',
    "שלום עולם",
    "مرحبا 12",
    "x" * 1000,
    "| pipe *star* _u_ `tick` [l](http://evil.example)",
    "",
    "\x1b[31mred\nline",
    "日本語",
    "</title><img src=http://evil.example/x.png>",
    "&lt;b&gt;",
    "]]>",
    'id="x" url(#gradient)',
]


def counts(n: int, m: int, seed: int = 0, most: int = 1000) -> np.ndarray:
    """m sensitive x n useful counts, none of them 0."""
    return np.random.default_rng(seed).integers(1, most, size=(m, n))


@cache
def hostile() -> Joint:
    """Labels that break what does not escape them."""
    return Joint.from_counts(
        counts(len(HOSTILE), 4, seed=1, most=50),
        sensitive_labels=["<b>S</b>", "'q' & \"r\"", "עברית", "y" * 300],
        useful_labels=HOSTILE,
        sensitive="sens<i>",
        useful='use & "it", too',
    )


def internal(design: Design, joint: Joint, seconds: float | None = None) -> Report:
    """The internal report, as `design --report` makes it; `seconds` are those of its curve."""
    return internal_report(
        design, joint, Reporter().work, table="table.csv", seconds=seconds
    )


def both(design: Design, joint: Joint) -> tuple[Report, Report]:
    """The internal and the public report."""
    channel = design.channel
    line = "mechdesign design TABLE.csv --output CHANNEL.json"
    public = public_report(channel, design.notion, satisfied=design.verified)
    return (
        attributed(
            internal(design, joint), channel, commands(line, None, public=False)
        ),
        attributed(public, channel, commands(line, None, public=True)),
    )


def reports(
    joint: Joint, notion: md.Notion, mechanism: str = "optimal"
) -> tuple[Report, Report]:
    """The reports of a new design."""
    return both(md.design(joint, notion, mechanism=mechanism), joint)


def texts(report: Report) -> dict[str, str]:
    """The report in every format."""
    return {ending: report_text(report, ending) for ending in (".html", ".md", ".json")}


def record(report: Report) -> dict:
    """The JSON format as a dictionary."""
    return json.loads(report_text(report, ".json"))


VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Parsed:
    """What a page holds."""

    text: str = ""
    ids: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Strict(HTMLParser):
    """Every tag is closed, in order; no paragraph holds a block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parsed = Parsed()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (
            self._open
            and self._open[-1] == "p"
            and tag not in ("a", "bdi", "code", "span")
        ):
            self.parsed.faults.append(f"<{tag}> in a paragraph")
        if len({name for name, _ in attrs}) < len(attrs):
            self.parsed.faults.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self._open.append(tag)
        self.parsed.tags.append(tag)
        self.parsed.attributes += [(tag, name, value or "") for name, value in attrs]
        self.parsed.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.parsed.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.parsed.text += data

    def close(self) -> None:
        super().close()
        self.parsed.faults += [f"<{tag}> stays open" for tag in self._open]


def parsed(page: str) -> Parsed:
    """The page, read strictly."""
    parser = Strict()
    parser.feed(page)
    parser.close()
    return parser.parsed
