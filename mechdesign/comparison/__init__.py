"""Comparisons of mechanisms over budgets: runs, curves of reports, and recommendations."""

# Names are listed once, in __init__.pyi: pyright reads it, and lazy_loader imports on first use.
# pyright: basic
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
