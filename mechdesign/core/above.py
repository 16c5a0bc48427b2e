"""Modules that a class calls although they lie above it.

A result shows itself by the module of displays, a channel saves itself by the module of channel
files, a joint table is read from files by the module of tables, a mechanism for numbers has a
recipe of releases, and `design` and `apply` look for people with several records in frames. These
modules know every kind of result, channel or frame, so they lie above these classes. They are
imported when they are first needed: displays are heavy.

`mechdesign/__init__.py` fills `MODULES`, because no module below may name one above.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES: dict[str, str] = {}
"""The module for each purpose: "display" (`report.display`), "channel_file" (`channel.file`),
"table_files" (`tables.reading`), "numbers" (`nonstochastic.numbers_recipe`), "people"
(`frames.people_guard`), and "application" (`cli.application`).
"""


def above(purpose: str) -> Any:
    """The module for a purpose."""
    return import_module(MODULES[purpose])
