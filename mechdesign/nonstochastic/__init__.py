"""Privacy without probabilities: uncertain variables, their leakage, and mechanisms that limit it.

Sizes of ranges are measured in bits (base 2). All public names are here; each is imported on first
use.
"""

# The names are in __init__.pyi alone: pyright reads it, and the first use of a name imports by it.
# pyright: basic
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
