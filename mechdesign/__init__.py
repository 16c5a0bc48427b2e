"""Optimal release channels for data correlated with a sensitive attribute, proven private in exact
arithmetic.

Everything public is here and is imported when it is first used, so ``import mechdesign`` costs
nothing::

    import mechdesign as md

    joint = md.Joint.from_table(frame, sensitive="relationship", useful="occupation")
    result = md.design(joint, md.ALIP(eps_l=1.3, eps_u=0.7))
    released = result.channel.apply(frame["occupation"])
"""

# The names stand in __init__.pyi, once: pyright reads it, and it is followed when a name is
# first used. pyright: basic
from __future__ import annotations

from importlib import import_module

import lazy_loader

from mechdesign.core.above import MODULES

__version__ = "0.1.0"

_named, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__", "report"]

MODULES.update(
    display="mechdesign.report.display",
    channel_file="mechdesign.channel.file",
    table_files="mechdesign.tables.reading",
    numbers="mechdesign.nonstochastic.numbers_recipe",
    people="mechdesign.frames.people_guard",
    application="mechdesign.cli.application",
)


def __getattr__(name):
    # The package of reports is also the function that writes one.
    return import_module("mechdesign.report") if name == "report" else _named(name)


def __dir__():
    return [*__all__]
