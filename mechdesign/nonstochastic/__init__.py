"""Privacy without probabilities: uncertain variables, their leakage, and mechanisms that limit it.

An uncertain variable has a set of possible values and nothing else, so everything is counted; sizes
of ranges are measured in bits (base 2). There are three parts:

- measures of what can occur together, and what it leaks (`ranges`), tests of hypotheses and
  policies against them (`hypothesis`), and codes without errors (`zero_error`);
- quantisers of a query (`queries`, `quantizers`): the outputs of one individual counted
  (`noiseless`, `fibres`), and the best thresholds within a budget (`thresholds_by_levels`,
  `thresholds_by_error`);
- releases of tables: designed (`quantize_table`), written (`mechanism_jobs`), and checked from the
  mechanism file beside them (`claims`, `released_check`).

All public names are here; each is imported on first use.
"""

# Names are listed once, in __init__.pyi: pyright reads it, and lazy_loader imports on first use.
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
