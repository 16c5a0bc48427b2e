"""Modules that classes need of the layers above them, which the package names (`mechdesign`).

A result shows itself by the module of displays, a channel saves itself by the module of channel
files, a mechanism for numbers has a recipe of releases, and `design` and `apply` look for people
with several records in frames. These modules know every kind of result, channel or frame, so they
lie above these classes, and are imported when they are first needed: displays are heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES: dict[str, str] = {}
"""The module for each purpose: "display" (`report.display`), "channel_file" (`channel.file`),
"numbers" (`nonstochastic.numbers_recipe`), "people" (`frames.people_guard`), and "application"
(`cli.application`).
"""


def above(purpose: str) -> Any:
    """The module for a purpose."""
    return import_module(MODULES[purpose])
