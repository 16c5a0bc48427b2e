"""The file of a row channel: canonical JSON of integers and texts with a hash.

Beside the labels of all columns it has the strata (codes of the given columns) with the root of
each, the nodes of every level, and the rows of the table. A channel of two levels, of which the
first has two symbols, and both its outputs lead to one constant node: ::

    "strata": [[]], "roots": [0], "denominator": D,
    "tree": [
      [{"inputs": [0, 1], "outputs": [0, 1], "children": [0, 0], "rows": [[0, D], [0, a, 1, b]]}],
      [{"inputs": [], "outputs": [2], "children": [], "rows": []}]],
    "rows": [[0, 2, 1, 40], ..]

The node gives its input 1 the output 0 with a/D and the output 1 with b/D, a + b = D. A line of the
table has the codes of the given columns, of the levels and of the secret, then the count: here
40 records with the symbols 0 and 2 and the secret 1. A public file has no table.

In memory (`core.row_tree`) the nodes of a level are joined in one table: a *pair* is an input of a
node, a *slot* an output of a node, both numbered through all nodes. `_nodes` cuts this table into
nodes, and `_level_table` puts it together again. The file counts places of outputs from each node
on; a slot is such a place plus the number of slots of the nodes before. If these have 4 slots, the
node with the row [0, a, 1, b] has the slots 4 and 5, and the row (4: a, 5: b) in memory.

`content` goes from the channel to the values of the file, `_channel` back. The form of every list
is checked on the way (`_node`, `_records`), and `RowTree` and `RowChannel` check that the numbers
fit together.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from pydantic import Field, WithJsonSchema

from mechdesign.channel.record import SymbolBudgets
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RowRecord
from mechdesign.channel.variable_labels import (
    BinnedLabels,
    Labels,
    binned_labels_record,
    labels_record,
    variable_of,
)
from mechdesign.core import documents as d
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from mechdesign.core.json_values import with_infinities, without_infinities
from mechdesign.core.row_tree import DENOMINATOR, END, LevelTable, RowTree
from mechdesign.tables.records import Records
from mechdesign.tables.variable import Variable

_LISTS = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer", "minimum": 0}},
}
_INTEGERS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_NODES = {
    "type": "array",
    "description": "The nodes of a level. One without inputs is constant: one output, no rows.",
    "items": {
        "type": "object",
        "required": ["inputs", "outputs", "children", "rows"],
        "additionalProperties": False,
        "properties": {
            "inputs": {**_INTEGERS, "description": "Input symbols, ascending."},
            "outputs": {**_INTEGERS, "description": "Outputs, ascending."},
            "children": {
                **_INTEGERS,
                "description": "Node of the next level for each output; empty on the last level.",
            },
            "rows": {
                **_LISTS,
                "description": "For each input: place of an output, integer, .. ; sum: the "
                "denominator.",
            },
        },
    },
}
_TREE = {
    "type": "array",
    "items": _NODES,
    "description": "The nodes of every level.",
}
_ROWS = {
    **_LISTS,
    "description": "Distinct rows: codes of given columns and levels, of the secret, the count.",
}
# To pydantic these are anything: it would visit each of their integers. `_tree` and `_records`
# check them.
_Tree = Annotated[Any, WithJsonSchema(_TREE)]
_Rows = Annotated[Any, WithJsonSchema(_ROWS)]

NODE_KEYS = ("children", "inputs", "outputs", "rows")


class LevelLabels(BinnedLabels):
    """Inputs of a level, and its outputs where these are not its own symbols."""

    outputs: tuple[str, ...] | None = None


class RowChannelDocument(d.FileDocument):
    """A row channel; `rows` is not there in a public file, nor is what is computed from them."""

    FORMAT: ClassVar[str] = "mechdesign.row-channel"
    WHAT: ClassVar[str] = "row channel file"
    LARGEST: ClassVar[int] = 2**30  # 27,000 leaves of eight columns take some 15 MB
    ARRAYS: ClassVar[frozenset[str]] = frozenset({"tree", "rows"})

    sensitive: Labels
    given: tuple[LevelLabels, ...] = ()
    levels: Annotated[tuple[LevelLabels, ...], Field(min_length=1)]
    strata: tuple[tuple[int, ...], ...]
    roots: tuple[int, ...]
    denominator: Annotated[int, Field(ge=DENOMINATOR, le=DENOMINATOR)]
    tree: _Tree = None
    rows: _Rows = None
    counts: bool = True
    notion: dict[str, Any]
    promise: Literal["total", "relative"]
    objective: Literal["truth", "information"]
    budgets: tuple[SymbolBudgets, ...] = ()
    achieved: dict[str, Any] | None = None
    utility: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    provenance: dict[str, Any] = Field(default_factory=dict[str, Any])


RECORDS = ("notion", "achieved", "utility", "certificate", "provenance")
"""The keys that are plain records of the design, in which numbers may be infinite."""


def write(channel: RowChannel, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the file through a temporary one in the same folder and a rename."""
    check_target(path, force=overwrite)
    text = text_of(channel)
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def text_of(channel: RowChannel) -> str:
    """The whole text of the file."""
    version = RowChannelDocument.VERSIONS[-1]
    return d.hashed_text(RowChannelDocument.FORMAT, version, content(channel))


def content(channel: RowChannel) -> dict[str, Any]:
    """Everything but format, version and hash."""
    record = channel.record
    values: dict[str, Any] = {
        "sensitive": labels_record(channel.sensitive),
        "given": list(map(binned_labels_record, channel.given)),
        "levels": list(map(_level_labels, channel.levels, channel.labels)),
        "strata": channel.strata,
        "roots": channel.tree.roots.tolist(),
        "denominator": DENOMINATOR,
        "tree": _levels(channel.tree),
        "promise": record.promise,
        "objective": record.objective,
    }
    # What a public channel does not have is left out of the file, not written as null.
    for key in RECORDS:
        value = getattr(record, key)
        if value is not None:
            values[key] = without_infinities(value, key)
    if record.budgets:
        budgets = [
            of_symbol.model_dump(exclude_none=True) for of_symbol in record.budgets
        ]
        values["budgets"] = budgets
    table = channel.table
    if table is not None:
        values["rows"] = _rows(table)
        if not table.is_counts:
            values["counts"] = False
    return values


def _level_labels(variable: Variable, labels: tuple[str, ...]) -> dict[str, Any]:
    """Inputs of a level, with labels of its outputs where these are not the inputs."""
    values = binned_labels_record(variable)
    if labels != variable.names:
        values["outputs"] = labels
    return values


def _levels(tree: RowTree) -> list[list[dict[str, Any]]]:
    """The nodes of every level as the file has them."""
    levels: list[list[dict[str, Any]]] = []
    for table in tree.levels:
        is_last = len(levels) == len(tree.levels) - 1
        levels.append(_nodes(table, has_children=not is_last))
    return levels


def _nodes(table: LevelTable, *, has_children: bool) -> list[dict[str, Any]]:
    """The nodes of one level as the file has them."""
    # Node k has the pairs from pairs[k] to pairs[k + 1], and its slots likewise.
    pairs = np.searchsorted(table.pair_nodes, np.arange(table.nodes + 1)).tolist()
    slots = np.searchsorted(table.slot_nodes, np.arange(table.nodes + 1)).tolist()
    inputs = table.pair_inputs.tolist()
    outputs = table.slot_outputs.tolist()
    children: list[int] = []
    if has_children:
        children = table.slot_children.tolist()
    rows = list(table.rows.pairs())
    nodes: list[dict[str, Any]] = []
    for node in range(table.nodes):
        of_pairs = slice(pairs[node], pairs[node + 1])
        of_slots = slice(slots[node], slots[node + 1])
        rows_of_node: list[list[int]] = []
        for row in rows[of_pairs]:
            rows_of_node.append(_shifted(row, -slots[node]))
        nodes.append(
            {
                "inputs": inputs[of_pairs],
                "outputs": outputs[of_slots],
                "children": children[of_slots],
                "rows": rows_of_node,
            }
        )
    return nodes


def _shifted(pairs: Sequence[int], distance: int) -> list[int]:
    """``[place, integer, place, ..]`` with every place moved by a distance."""
    moved = list(pairs)
    moved[::2] = [place + distance for place in pairs[::2]]
    return moved


def _rows(table: Records) -> list[list[int]]:
    """The distinct rows of the table: codes of all columns, then the count."""
    codes = np.column_stack([table.codes, table.secrets]).tolist()
    return [[*row, count] for row, count in zip(codes, table.counts, strict=True)]


def read(path: PathLike) -> RowChannel:
    """Read the file of a row channel."""
    return d.read_built(path, RowChannelDocument, _channel)


def _channel(version: int, document: RowChannelDocument) -> RowChannel:
    """The channel of a validated document, whose large arrays are checked on the way."""
    given = tuple(variable_of(labels, "given") for labels in document.given)
    levels = tuple(variable_of(labels, "released") for labels in document.levels)
    outputs: list[tuple[str, ...]] = []
    for labels, variable in zip(document.levels, levels, strict=True):
        # Without labels of their own the outputs are the symbols.
        if labels.outputs is None:
            outputs.append(variable.names)
        else:
            outputs.append(labels.outputs)
    sensitive = Variable(
        document.sensitive.columns, document.sensitive.symbols, document.sensitive.each
    )
    record = RowRecord(
        notion=with_infinities(document.notion),
        promise=document.promise,
        objective=document.objective,
        budgets=document.budgets,
        achieved=with_infinities(document.achieved),
        utility=with_infinities(document.utility),
        certificate=with_infinities(document.certificate),
        provenance=document.provenance,
    )
    return RowChannel(
        sensitive=sensitive,
        given=given,
        strata=document.strata,
        levels=levels,
        labels=tuple(outputs),
        tree=_tree(document.tree, list(map(len, levels)), document.roots),
        record=record,
        table=_records(document, sensitive, given + levels),
    )


def _tree(value: Any, sizes: Sequence[int], roots: tuple[int, ...]) -> RowTree:
    """The tree, from the nodes of levels with so many input symbols."""
    levels = _list(value, "tree")
    if len(levels) != len(sizes):
        raise InputError(f"the tree must have nodes for {len(sizes)} levels")
    tables: list[LevelTable] = []
    for k, (nodes, size) in enumerate(zip(levels, sizes, strict=True)):
        place = f"tree[{k}]"
        is_last = k + 1 == len(sizes)
        tables.append(_level_table(_list(nodes, place), size, place, is_last))
    return RowTree(np.array(roots, dtype=np.int64), tuple(tables))


class _Node(NamedTuple):
    """A node of the file, its lists checked to be of integers and to have the right lengths."""

    inputs: list[int]
    outputs: list[int]
    children: list[int]
    rows: list[list[int]]


def _level_table(nodes: list[Any], size: int, place: str, is_last: bool) -> LevelTable:
    """The table of a level; `place` is where its nodes are in the file, for messages.

    Only the form is checked here; whether the numbers fit together, by `RowTree`.
    """
    inputs: list[list[int]] = []
    outputs: list[list[int]] = []
    children: list[list[int]] = []
    rows: list[list[int]] = []
    slots = 0
    for k, value in enumerate(nodes):
        node = _node(value, f"{place}[{k}]", is_last)
        inputs.append(node.inputs)
        outputs.append(node.outputs)
        children.append(node.children)
        for row in node.rows:
            # The file counts places from each node, the table from the first node of the level.
            rows.append(_shifted(row, slots))
        slots += len(node.outputs)
    return LevelTable(
        size=size,
        nodes=len(nodes),
        pair_nodes=_repeated(inputs),
        pair_inputs=_flat(inputs),
        slot_nodes=_repeated(outputs),
        slot_outputs=_flat(outputs),
        slot_children=_flat(children),
        rows=IntegerRows.of_pairs(rows, slots),
    )


def _node(value: Any, where: str, is_last: bool) -> _Node:
    """A node of the file; on the last level its children are `END`, which the file leaves out."""
    is_node = isinstance(value, Mapping)
    if not is_node or sorted(cast("Any", value)) != list(NODE_KEYS):
        raise InputError(f"{where} must have inputs, outputs, children and rows")
    entry = cast("Mapping[str, Any]", value)
    inputs = _integers(entry["inputs"], f"{where}.inputs")
    outputs = _integers(entry["outputs"], f"{where}.outputs")
    children = _integers(entry["children"], f"{where}.children")
    pairs_of_rows = _list(entry["rows"], f"{where}.rows")
    wanted = 0 if is_last else len(outputs)
    if len(children) != wanted or len(pairs_of_rows) != len(inputs):
        raise InputError(
            f"{where} must have a row for every input and a child for every output"
        )
    if is_last:
        children = [END] * len(outputs)
    rows: list[list[int]] = []
    for pairs in pairs_of_rows:
        row = _integers(pairs, f"{where}.rows")
        # Places beyond the node would be outputs of the next node of the level.
        if max(row[::2], default=-1) >= len(outputs):
            raise InputError(f"{where}.rows has a place without an output")
        rows.append(row)
    return _Node(inputs, outputs, children, rows)


def _flat(lists: list[list[int]]) -> Integers:
    """The values of all lists, one list after the other."""
    return np.fromiter(itertools.chain.from_iterable(lists), dtype=np.int64)


def _repeated(lists: list[list[int]]) -> Integers:
    """The position of each list, once for each of its values."""
    return np.repeat(np.arange(len(lists)), list(map(len, lists)))


def _list(value: Any, where: str) -> list[Any]:
    """The value, which must be a list."""
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list")
    return list(cast("list[Any]", value))


def _integers(value: Any, where: str) -> list[int]:
    """The value, which must be a list of integers in range."""
    values = _list(value, where)
    for number in values:
        # The exact type, because a truth value is an int, too.
        if type(number) is not int or not 0 <= number <= LARGEST_INTEGER:
            raise InputError(f"{where} must be a list of whole numbers, at least 0")
    return values


def _records(
    document: RowChannelDocument, sensitive: Variable, groups: tuple[Variable, ...]
) -> Records | None:
    """The rows of the table; None in a public file."""
    if document.rows is None:
        return None
    lines = _list(document.rows, "rows")
    width = len(groups) + 2
    codes: list[list[int]] = []
    counts: list[int] = []
    for k, line in enumerate(lines):
        values = _list(line, f"rows[{k}]")
        # The exact type, because a truth value is an int, too.
        if len(values) != width or set(map(type, values)) != {int}:
            raise InputError(f"rows[{k}] must be {width} whole numbers")
        if not 0 < values[-1] < 2**256:
            raise InputError(f"rows[{k}]: the count must be positive and below 2^256")
        codes.append(_integers(values[:-1], f"rows[{k}]"))
        counts.append(values[-1])
    table = np.array(codes, dtype=np.int64).reshape(len(codes), width - 1)
    return Records(
        sensitive=sensitive,
        groups=groups,
        secrets=table[:, -1],
        codes=table[:, :-1],
        counts=tuple(counts),
        is_counts=document.counts,
    )
