"""Errors of a record that an engine reports in the middle of its own, as one clear line."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from mechdesign.core.errors import InputError

_OWN_ERROR = re.compile(
    r"^mechdesign\.(?:core\.errors\.InputError|jobs\.recipe\.BadRecord): (.*)$",
    re.MULTILINE,
)
"""The last line of the traceback that an engine reports of an error of this package."""


@contextmanager
def engine_errors() -> Generator[None]:
    """What is wrong with a record when Spark or DuckDB computes a release, as an `InputError`.

    >>> with engine_errors():
    ...     released.write_parquet("released.parquet")
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # Each engine has a class of its own for it, and none of them need be installed.
        sentences = _OWN_ERROR.findall(str(error))
        if not sentences:
            raise
        raise InputError(sentences[-1]) from None
