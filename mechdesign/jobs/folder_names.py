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
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.lookalikes import lookalikes
from mechdesign.jobs.recipe import Recipe
from mechdesign.tables.variable import Variable


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
    _refuse_symbols(recipe, names)
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


def _refuse_symbols(recipe: Recipe, names: Sequence[str]) -> None:
    """Refuse names that are symbols of a protected column: ``high/`` says it of all its records."""
    if len(names) == 1 and len(PurePath(names[0]).parts) == 1:
        # One file, whose name everybody chooses.
        return
    *folders, files = _names_by_level(names)
    # Files are often called a, b, c.
    files = {name for name in files if len(name) > 1}
    for column, symbols in _protected_symbols(recipe).items():
        for parts in (*folders, files):
            found = sorted(part for part in parts if part.casefold() in symbols)
            # Numbers and letters may count the folders, unless all of them are symbols.
            words = [part for part in found if len(part) > 1 and not part.isdigit()]
            if words or (len(found) > 1 and len(found) == len(parts)):
                raise InputError(
                    f"a folder or file has the name {quoted((words or found)[0])}, which is a "
                    f"symbol of the column {quoted(column)}, and would stay: it tells it of all "
                    "its records; arrange the files in another way"
                )


def _names_by_level(names: Sequence[str]) -> list[set[str]]:
    """The names of folders, level by level, and last those of the files, without their endings; of
    COLUMN=VALUE the value.
    """
    depth = max(len(PurePath(name).parts) for name in names)
    levels: list[set[str]] = [set() for _ in range(depth)]
    for name in names:
        *folders, file = PurePath(name).parts
        for level, folder in enumerate(folders):
            _, equals, value = folder.partition("=")
            levels[level].add(unquote(value) if equals else folder)
        levels[-1].add(file.split(".")[0])
    return levels


def _protected_symbols(recipe: Recipe) -> dict[str, set[str]]:
    """The texts of the symbols of each protected column, in small letters."""
    symbols: dict[str, set[str]] = {}
    if not isinstance(recipe, KeyedRecipe):
        return symbols
    for channel in recipe.channels:
        variables: list[Variable] = []
        if channel.sensitive is not None and not recipe.options.keep_sensitive:
            variables.append(channel.sensitive)
        variables += channel.hidden
        for variable in variables:
            for part, column in enumerate(variable.columns):
                texts = symbols.setdefault(column, set())
                texts |= {symbol[part].casefold() for symbol in variable.symbols}
    # The empty symbol is no name.
    return {column: texts - {""} for column, texts in symbols.items()}


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
