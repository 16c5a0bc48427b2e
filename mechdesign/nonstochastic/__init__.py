"""Privacy without probabilities: uncertain variables, what they leak, and how to blur them.

Sizes of ranges are measured in bits (base 2). Everything
public is here and is imported when it is first used.
"""

# The names stand in __init__.pyi, once: pyright reads it, and it is followed when a name is first used.
# pyright: basic
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
