"""The names of the files and folders of a folder that is released: they stay, but for their
endings.

`output_names` gives each file its output, and refuses two files with one output. With the format
parquet, for example, ``dt=1/a.csv.gz`` becomes ``dt=1/a.parquet``. `name_notes` looks at what the
names disclose: folders of Hive and Spark are called COLUMN=VALUE, and a value of a protected column
must not be read from one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import unquote

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.compression import compression_named
from mechdesign.formats.opening import SUFFIXES
from mechdesign.jobs.lookalikes import lookalikes
from mechdesign.jobs.recipe import Recipe


def output_names(names: Sequence[str], format: str | None) -> dict[str, str]:
    """The source files by the names of their outputs, which end as files of the `format` do; None
    for the same format.
    """
    outputs: dict[str, str] = {}
    for name in names:
        output = PurePath(name)
        if format is not None:
            output = _with_format(output, format)
        other = outputs.setdefault(output.as_posix(), name)
        if other != name:
            raise InputError(
                f"{name} and {other} would both be written to {output}; give one another name"
            )
    return outputs


def _with_format(path: PurePath, format: str) -> PurePath:
    """A name that ends as files of this format do; one that does already stays as it is."""
    # Two endings may go: that of the compression, then that of the other format.
    plain = path
    if compression_named(path):
        plain = path.with_suffix("")
    ending = plain.suffix.lower()
    if ending in SUFFIXES.get(format, ()):
        return path
    if any(ending in endings for endings in SUFFIXES.values()):
        plain = plain.with_suffix("")
    return path.with_name(f"{plain.name}.{format}")


def name_notes(
    recipe: Recipe, names: Sequence[str], *, strict: bool
) -> tuple[str, ...]:
    """Notes on the names of folders and files, which stay; refuses partitions named like a
    protected column.
    """
    columns = _partition_columns(names)
    protected = [*recipe.useful_columns, *recipe.private_columns]
    for name, column in lookalikes(columns, protected, exempt=()):
        raise InputError(
            f"the names of folders hold {quoted(name)}, which looks like the column "
            f"{quoted(column)}, and would stay: arrange the files in another way"
        )
    if not columns and len(names) == 1:
        return ()

    which = ""
    if columns:
        which = f", with {listed(columns)}"
    note = (
        f"names of folders and files stay{which}: see that they, and who shares one, "
        "tell nothing"
    )
    if strict:
        raise InputError(f"a note, which --strict makes an error: {note}")
    return (note,)


def _partition_columns(names: Sequence[str]) -> list[str]:
    """The columns that the folders of some files are named by: COLUMN=VALUE, in the escapes of
    URLs.
    """
    columns: dict[str, None] = {}
    for name in names:
        for folder in PurePath(name).parts[:-1]:
            column, equals, _ = folder.partition("=")
            if equals:
                columns[unquote(column)] = None
    return list(columns)
