"""Data in, sanitised data out: files, data frames, clusters.

Everything public is here and is imported when it is first used::

    from mechdesign.sanitise import sanitise

    released = sanitise(frame, channel)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.draws import Key
    from mechdesign.policies import Policy
    from mechdesign.sanitise.apply_file import Applied, sanitise_file
    from mechdesign.sanitise.dask_engine import sanitise_dask
    from mechdesign.sanitise.frame import sanitise
    from mechdesign.sanitise.key_file import create_key, read_key
    from mechdesign.sanitise.spark_engine import sanitise_spark, spark_errors
    from mechdesign.sanitise.transformer import ReleaseTransformer

__all__ = [
    "Applied",
    "Key",
    "Policy",
    "ReleaseTransformer",
    "create_key",
    "read_key",
    "sanitise",
    "sanitise_dask",
    "sanitise_file",
    "sanitise_spark",
    "spark_errors",
]

_HOMES = {
    "Applied": "mechdesign.sanitise.apply_file",
    "Key": "mechdesign.draws",
    "Policy": "mechdesign.policies",
    "ReleaseTransformer": "mechdesign.sanitise.transformer",
    "create_key": "mechdesign.sanitise.key_file",
    "read_key": "mechdesign.sanitise.key_file",
    "sanitise": "mechdesign.sanitise.frame",
    "sanitise_dask": "mechdesign.sanitise.dask_engine",
    "sanitise_file": "mechdesign.sanitise.apply_file",
    "sanitise_spark": "mechdesign.sanitise.spark_engine",
    "spark_errors": "mechdesign.sanitise.spark_engine",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'mechdesign.sanitise' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
