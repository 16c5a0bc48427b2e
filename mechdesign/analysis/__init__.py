"""What an analyst does with a released column: frequencies, weights, regressions, checks."""

# The names stand in __init__.pyi, once: pyright reads it, and it is followed when a name is first
# used. pyright: basic
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
