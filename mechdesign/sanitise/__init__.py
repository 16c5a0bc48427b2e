"""Data in, sanitised data out: files, data frames, clusters.

Everything public is here and is imported when it is first used::

    from mechdesign.sanitise import sanitise

    released = sanitise(frame, channel)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.release.draws import Key
    from mechdesign.release.policies import Policy
    from mechdesign.sanitise.apply import Applied, sanitise_file
    from mechdesign.sanitise.dask import sanitise_dask
    from mechdesign.sanitise.frames import sanitise
    from mechdesign.sanitise.keys import create_key, read_key
    from mechdesign.sanitise.sklearn import ReleaseTransformer
    from mechdesign.sanitise.spark import sanitise_spark, spark_errors

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
    "Applied": "mechdesign.sanitise.apply",
    "Key": "mechdesign.release.draws",
    "Policy": "mechdesign.release.policies",
    "ReleaseTransformer": "mechdesign.sanitise.sklearn",
    "create_key": "mechdesign.sanitise.keys",
    "read_key": "mechdesign.sanitise.keys",
    "sanitise": "mechdesign.sanitise.frames",
    "sanitise_dask": "mechdesign.sanitise.dask",
    "sanitise_file": "mechdesign.sanitise.apply",
    "sanitise_spark": "mechdesign.sanitise.spark",
    "spark_errors": "mechdesign.sanitise.spark",
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
