"""`mechdesign quantize` without its words: read, design, certify, answer exactly, write."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import arrow_integers, arrow_texts
from mechdesign.formats.compression import Compression, compression_named
from mechdesign.formats.inputs import STANDARD, TextOptions
from mechdesign.formats.opening import Kept, Output, Source, Written, open_source
from mechdesign.nonstochastic.designs import LARGEST_LEVELS, lay_out
from mechdesign.nonstochastic.domains import IntervalDomain
from mechdesign.nonstochastic.levels import ASSUMPTIONS, Allowance, allowance, guarantees
from mechdesign.nonstochastic.mechanism_file import MechanismFile, SizedQuantizer, build_query
from mechdesign.nonstochastic.noiseless import Ledger, certify
from mechdesign.nonstochastic.number_columns import (
    UNIT,
    NumberRecords,
    exact_sums,
    most_groups,
    parse_range,
    read_records,
    within,
)
from mechdesign.nonstochastic.quantize_options import (
    RECORDS_COLUMN,
    Quantized,
    QuantizeOptions,
    check_kind,
    check_options,
    nearest_double,
)
from mechdesign.nonstochastic.quantizers import Quantizer

MOST_THRESHOLDS = 1_000_000
"""Thresholds of all group sizes together, kept one by one in memory (200 MB)."""

LARGEST_DOUBLE = Fraction(sys.float_info.max)
"""Released numbers are doubles."""


def quantize_file(
    source: PathLike,
    target: PathLike,
    options: QuantizeOptions,
    *,
    mechanism_path: PathLike | None = None,
    text: TextOptions | None = None,
    force: bool = False,
) -> Quantized:
    """Release a quantised column (identity), or a quantised answer for each group.

    The release is written as the source is: Parquet, or a CSV with its delimiter, quotes, encoding and line ends,
    whose other cells stay to the byte. A CSV is compressed if the name of the target says so (``.gz``, ``.zst``).
    `text` says how a CSV is written; ``-`` is standard input.

    The mechanism file is written beside the target (``TARGET.mechanism.json``) unless a path is
    given. Each is written whole or not at all.
    """
    check_options(options)
    beside = Path(f"{os.fspath(target)}.mechanism.json") if mechanism_path is None else Path(mechanism_path)
    inputs = () if os.fspath(source) == STANDARD else (source,)
    check_target(target, force=force, sources=inputs)
    check_target(beside, force=force, sources=inputs)
    if beside.absolute() == Path(target).absolute():
        raise InputError(f"{os.fspath(target)} cannot be the release and its mechanism file at once")
    with open_source(source, text) as table:
        return _quantized(table, target, beside, options, force=force)


def _quantized(
    table: Source, target: PathLike, beside: Path, options: QuantizeOptions, *, force: bool
) -> Quantized:
    check_kind(target, parquet=table.kind == "Parquet")
    counted = options.query == "count"
    domain = (
        IntervalDomain(Fraction(0), Fraction(1))
        if counted
        else parse_range(options.range_text, _named(options))
    )
    allowed = allowance(nearest_double(options.epsilon))
    records = read_records(
        table,
        options.column,
        options.group_by,
        options.individual,
        equals=options.equals,
        counted=counted,
        missing=options.missing,
    )
    where = f"{table.name}: column {quoted(options.column)}"
    values = within(records.values, domain, clip=options.clip, where=where)
    answers_each = most_groups(records, grouped=options.query != "identity")
    sizes = [1] if options.query == "identity" else np.bincount(records.group).tolist()
    mechanisms = _mechanisms(options, domain, allowed.outputs, sizes)
    done = _summary(options, records, domain, allowed, mechanisms, answers_each)
    compression = compression_named(target)
    with replacing(target, force=force) as temporary:
        with open(temporary, "wb") as stream:
            if options.query == "identity":
                released = mechanisms[1].quantizer.release(values, outside="clip")
                _replace(table, stream, options.column, records.rows, released, compression)
            else:
                totals = exact_sums(values, records.group, len(sizes))
                columns: dict[str, Sequence[Any]] = {
                    name: [key[i] for key in records.keys] for i, name in enumerate(options.group_by)
                }
                columns[RECORDS_COLUMN] = sizes
                columns[f"{options.query}_{options.column}"] = _answers(options, mechanisms, totals, sizes)
                table.write_table(stream, columns, compression=compression)
        done.mechanism.save(beside, overwrite=force)
    return done


def _replace(
    table: Source,
    stream: BinaryIO,
    column: str,
    rows: NDArray[np.int64],
    released: NDArray[np.float64],
    compression: Compression | None,
) -> None:
    """Copy a table with the released numbers in place of a column; only the records `rows` are kept."""
    import pyarrow as pa

    levels, codes = np.unique(released, return_inverse=True)
    texts = arrow_texts([repr(level) for level in levels.tolist()])
    place = table.header.index(column)
    outputs: list[Output] = [Kept(i) for i in range(len(table.header))]
    outputs[place] = Written(column, place, pa.float64())
    read, written = 0, 0
    with table.sink(stream, outputs, compression=compression) as sink:
        for batch in table.batches():
            end = written + int(np.searchsorted(rows[written:], read + batch.num_rows))
            kept = rows[written:end] - read
            read += batch.num_rows
            if len(kept) < batch.num_rows:
                chosen = np.zeros(batch.num_rows, np.bool_)
                chosen[kept] = True
                batch = batch.select(chosen)
            part = codes[written:end].astype(np.int32)
            if len(part):
                sink.write(batch, [pa.DictionaryArray.from_arrays(arrow_integers(part), texts)])
            written = end
        if written < len(rows):
            raise InputError(f"{table.name} changed while it was read; nothing was written")


def _named(options: QuantizeOptions) -> str:
    return f"the {options.query} of {quoted(options.column)}"


def _mechanisms(
    options: QuantizeOptions, domain: IntervalDomain, outputs: int, sizes: Sequence[int]
) -> dict[int, SizedQuantizer]:
    """A certified quantiser for each size of group."""
    found: dict[int, SizedQuantizer] = {}
    distinct = sorted(set(sizes))
    most = max(2, min(LARGEST_LEVELS, MOST_THRESHOLDS // len(distinct)))
    for size in distinct:
        query = build_query(options.query, size, domain)
        lo, hi = query.range
        if max(abs(lo), abs(hi)) > LARGEST_DOUBLE:
            raise InputError(
                f"the {options.query} of {size:,} values up to {float(domain.hi):g} can be beyond all doubles "
                f"({float(LARGEST_DOUBLE):.4g}); use a larger unit, or the mean"
            )
        # Two outputs tell a count exactly: its neighbours are one apart.
        enough = min(outputs, 2) if options.query == "count" else outputs
        quantizer = lay_out(lo, hi, min(query.sensitivity, hi - lo), enough, options.layout, most)
        certificate = certify(query, quantizer)
        if certificate.outputs > outputs:
            raise SolverFailure(
                f"the quantiser for {size} records gives {certificate.outputs} outputs where {outputs} are allowed; "
                "nothing was written; please report it"
            )
        found[size] = SizedQuantizer(size, quantizer, certificate)
    return found


def _answers(
    options: QuantizeOptions,
    mechanisms: dict[int, SizedQuantizer],
    totals: Sequence[int],
    sizes: Sequence[int],
) -> list[float]:
    """The released number of each group, from its exact sum."""
    released: list[float] = []
    for total, size in zip(totals, sizes, strict=True):
        quantizer = mechanisms[size].quantizer
        answer = Fraction(total, UNIT * size if options.query == "mean" else UNIT)
        cell = quantizer.cell(answer)
        value = _middle_count(quantizer, cell) if options.query == "count" else quantizer.midpoint(cell)
        released.append(float(value))
    return released


def _middle_count(quantizer: Quantizer, cell: int) -> Fraction:
    """The middle of the integers in a cell of counts."""
    edges = quantizer.edges
    last = math.floor(edges[-1]) if cell == quantizer.levels - 1 else math.ceil(edges[cell + 1]) - 1
    return Fraction(math.ceil(edges[cell]) + last, 2)


def _summary(
    options: QuantizeOptions,
    records: NumberRecords,
    domain: IntervalDomain,
    allowed: Allowance,
    mechanisms: dict[int, SizedQuantizer],
    answers_each: int,
) -> Quantized:
    outputs = max(m.certificate.outputs for m in mechanisms.values())
    total = Ledger().add(options.column, outputs, answers_each)
    promised = guarantees(outputs, None if options.query == "count" else domain.hi - domain.lo)
    notices = [allowed.notice] if allowed.notice else []
    if allowed.outputs == 1:
        notices.append("epsilon allows one output: every answer is the same, and nothing is released")
    if records.individual is None:
        notices.append(
            "each record is taken as one individual's; if some have several, budgets add: name the column "
            "that identifies them with --individual"
        )
    levels = [m.quantizer.levels for m in mechanisms.values()]
    guarantee: dict[str, Any] = {
        "outputs": outputs,
        "answers_each": answers_each if records.individual is not None else None,
        "total_epsilon": total.epsilon,
        "promises": [asdict(g) | {"bound": _plain(g.bound)} for g in promised],
        "assumptions": list(ASSUMPTIONS),
    }
    mechanism = MechanismFile(
        query=options.query,
        column=options.column,
        group_by=options.group_by,
        domain=domain,
        epsilon=float(allowed.epsilon),
        mechanisms=tuple(mechanisms.values()),
        guarantee=guarantee,
        provenance={"tool": "mechdesign", "layout": options.layout, "clipped": options.clip},
    )
    return Quantized(
        query=options.query,
        column=options.column,
        records=records.values.size,
        answers=len(records.keys) if options.query != "identity" else records.values.size,
        allowance=allowed,
        outputs=outputs,
        levels=(min(levels), max(levels)),
        widest_cell=float(max(m.quantizer.widest_cell for m in mechanisms.values())),
        answers_each=answers_each if records.individual is not None else None,
        total_epsilon=total.epsilon,
        guarantees=promised,
        mechanism=mechanism,
        notices=tuple(notices),
    )


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
