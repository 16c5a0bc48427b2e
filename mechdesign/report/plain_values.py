"""Values as programs read them: for JSON (`plain`, `to_json`) and for CSV (`csv_text`).

`plain` rebuilds nested mappings and sequences of what JSON can write. JSON has neither infinities
nor keys that are numbers, so ``{2.0: math.inf}`` becomes ``{"2": "inf"}``. `to_json` writes the
line that commands print.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from mechdesign.core.wording import order_of


def plain(value: Any) -> Any:
    """`value` for JSON: infinities as "inf" and "-inf", NaN as None, mappings and
    sequences rebuilt.
    """
    if isinstance(value, float):
        return _plain_number(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value).items()
        record: dict[str, Any] = {}
        for key, entry in entries:
            # Keys that are no names are orders of a measure, such as alpha = 2.
            name = key
            if not isinstance(key, str):
                name = order_of(key)
            record[name] = plain(entry)
        return record
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in cast("Sequence[Any]", value)]
    return value


def _plain_number(value: float) -> float | str | None:
    """A number for JSON, which has no infinities and no NaN."""
    if math.isnan(value):
        return None
    if math.isfinite(value):
        return value
    if value > 0.0:
        return "inf"
    return "-inf"


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, each line with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def to_json(record: Mapping[str, Any]) -> str:
    """One JSON object on one line, Unicode as it is."""
    # `plain` has replaced infinities: Python would write them as no JSON parser reads them.
    return json.dumps(plain(record), ensure_ascii=False, allow_nan=False)
