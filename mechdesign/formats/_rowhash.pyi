from typing import Any

def add_rows(
    sums: Any, seed: int, text: Any, starts: Any, ends: Any, width: int, quote: int, /
) -> None: ...
def add_texts(
    sums: Any, seed: int, text: Any, offsets: Any, plain: bool, /
) -> None: ...
def add_doubles(sums: Any, seed: int, values: Any, /) -> None: ...
def chain(words: Any, a: int, b: int, /) -> tuple[int, int]: ...
def mix(words: Any, k0: int, k1: int, /) -> None: ...
def words(
    out: Any,
    key: bytes,
    person: bytes,
    columns: list[tuple[Any, Any]],
    lanes: int = ...,
    /,
) -> None: ...
def look(
    keys: Any,
    values: Any,
    used: int,
    room: int,
    hashes: Any,
    codes: Any,
    new: Any,
    found: Any,
    start: int,
    /,
) -> tuple[int, int]: ...
