"""What is wrong with a record, out of the long report of an engine, as one clear line.

Spark and DuckDB compute a release in code of their own. If this package refuses a record there, the
engine raises an error of its own class, whose text has the traceback within it:

    Job aborted due to stage failure: ..
    mechdesign.core.errors.InputError: the record 7 has no symbol

`engine_errors` looks for such a line and raises its sentence as an `InputError`. An error of the
engine itself has none, and passes unchanged.
"""

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
    """Where Spark or DuckDB computes a release, raise what is wrong with a record as `InputError`.

    >>> with engine_errors():
    ...     released.write_parquet("released.parquet")
    """
    try:
        yield
    except InputError:
        # Not wrapped by an engine, so it is one line already.
        raise
    except Exception as error:
        # Each engine has a class of its own for it, and none of them need be installed.
        sentences = _OWN_ERROR.findall(str(error))
        if not sentences:
            raise
        # A chain of tracebacks ends with the error that was raised last.
        raise InputError(sentences[-1]) from None
