"""Outputs of whole files: the counts, the order, the key, and what must not matter."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.release import fixed_counts as module
from mechdesign.release.draws import Identifiers, Key, NumberedRecords, RowNumbers
from mechdesign.release.fixed_counts import (
    ATTEMPTS,
    Flows,
    OtherTable,
    TiedRecords,
    assigned_outputs,
    order_numbers,
    outputs_by_number,
)
from tests.profiles import scaled

KEY = Key.insecure(8)

FLOWS = Flows(
    rows=np.array([0, 0, 1, 2]),
    columns=np.array([0, 3, 1, 3]),
    counts=np.array([20, 10, 5, 15]),
    row_counts=np.array([30, 5, 15, 0]),
)

CODES = np.random.default_rng(2).permutation(
    np.repeat(np.arange(4, dtype=np.int32), FLOWS.row_counts)
)

NAMES = [f"person {i}" for i in range(50)]


def pairs(codes, outputs):
    return Counter(zip(codes.tolist(), outputs.tolist(), strict=True))


@pytest.mark.parametrize(
    "records",
    [RowNumbers(0, 50), NumberedRecords(np.arange(50) * 7), Identifiers([NAMES])],
)
def test_every_pair_has_its_count(records):
    outputs = assigned_outputs(CODES, FLOWS, [records], KEY)
    assert outputs.dtype == np.int32
    assert pairs(CODES, outputs) == {(0, 0): 20, (0, 3): 10, (1, 1): 5, (2, 3): 15}


def test_the_outputs_are_those_of_the_key():
    records = [RowNumbers(0, 50)]
    once = assigned_outputs(CODES, FLOWS, records, KEY)
    again = assigned_outputs(CODES, FLOWS, records, KEY)
    other = assigned_outputs(CODES, FLOWS, records, Key.insecure(9))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)


@pytest.mark.parametrize("cuts", [[], [1], [7, 31], [25, 25, 49]])
def test_batches_do_not_matter(cuts):
    bounds = [0, *cuts, 50]
    spans = list(pairwise(bounds))
    rows = [RowNumbers(start, end - start) for start, end in spans]
    names = [Identifiers([NAMES[start:end]]) for start, end in spans]
    for batches, whole in ((rows, RowNumbers(0, 50)), (names, Identifiers([NAMES]))):
        assert np.array_equal(
            assigned_outputs(CODES, FLOWS, batches, KEY),
            assigned_outputs(CODES, FLOWS, [whole], KEY),
        )


def test_the_order_of_records_with_identifiers_does_not_matter():
    outputs = assigned_outputs(CODES, FLOWS, [Identifiers([NAMES])], KEY)
    order = np.random.default_rng(3).permutation(50)
    names = Identifiers([[NAMES[i] for i in order.tolist()]])
    again = assigned_outputs(CODES[order], FLOWS, [names], KEY)
    assert np.array_equal(again, outputs[order])


def test_the_records_of_an_input_take_its_outputs_in_the_order_of_their_numbers():
    """The example of the module, with a record of another input between."""
    flows = Flows(
        np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([2, 1, 1]), np.array([3, 1])
    )
    numbers = np.array([71, 50, 8, 35])
    outputs = outputs_by_number(np.array([0, 1, 0, 0]), flows, numbers)
    assert outputs.tolist() == [1, 0, 0, 0]


def test_all_places_are_as_likely():
    """Of four records of one input each has the one rare output a quarter of the time."""
    flows = Flows(np.array([0, 0]), np.array([0, 1]), np.array([3, 1]), np.array([4]))
    codes = np.zeros(4, dtype=np.int32)
    found = np.zeros(4)
    keys = 2000
    for seed in range(keys):
        found += assigned_outputs(codes, flows, [RowNumbers(0, 4)], Key.insecure(seed))
    # Six standard errors.
    assert (np.abs(found / keys - 0.25) < 6 * np.sqrt(0.25 * 0.75 / keys)).all()


def test_other_files_are_refused():
    records = [RowNumbers(0, 50)]
    changed = CODES.copy()
    changed[0] = (changed[0] + 1) % 4
    for codes in (changed, np.where(CODES == 1, 4, CODES), np.where(CODES == 1, -1, 0)):
        with pytest.raises(OtherTable, match="not those of the table of the design"):
            assigned_outputs(codes, FLOWS, records, KEY)
    with pytest.raises(OtherTable, match="not those of the table of the design"):
        assigned_outputs(CODES[:49], FLOWS, [RowNumbers(0, 49)], KEY)


def test_a_file_without_records():
    none = np.zeros(0, dtype=np.int64)
    flows = Flows(none, none, none, none)
    assert assigned_outputs(none, flows, [], KEY).tolist() == []
    with pytest.raises(OtherTable, match="their counts differ"):
        assigned_outputs(none, FLOWS, [], KEY)


def test_the_same_identifier_twice_is_refused():
    codes = np.zeros(3, dtype=np.int32)
    flows = Flows(np.array([0]), np.array([0]), np.array([3]), np.array([3]))
    with pytest.raises(TiedRecords, match="two records have the same identifier"):
        assigned_outputs(codes, flows, [Identifiers([["a", "b", "a"]])], KEY)


def test_all_records_take_other_numbers_after_a_tie(monkeypatch):
    attempts = []

    def numbers(records, key, attempt):
        attempts.append(attempt)
        found = order_numbers(records, key, attempt)
        if attempt < ATTEMPTS - 1:
            found[CODES == 1] = found[0]
        return found

    monkeypatch.setattr(module, "order_numbers", numbers)
    records = RowNumbers(0, 50)
    outputs = assigned_outputs(CODES, FLOWS, [records], KEY)
    last = order_numbers(records, KEY, ATTEMPTS - 1)
    assert attempts == list(range(ATTEMPTS))
    assert np.array_equal(outputs, outputs_by_number(CODES, FLOWS, last))


@pytest.mark.parametrize("records", [RowNumbers(0, 9), Identifiers([NAMES[:9]])])
def test_attempts_have_other_numbers(records):
    numbers = [order_numbers(records, KEY, attempt) for attempt in range(ATTEMPTS)]
    assert len(set(np.concatenate(numbers).tolist())) == 9 * ATTEMPTS


def test_ties_of_different_inputs_are_no_ties():
    flows = Flows(
        np.array([0, 1]), np.array([4, 5]), np.array([1, 1]), np.array([1, 1])
    )
    outputs = outputs_by_number(np.array([1, 0]), flows, np.array([6, 6]))
    assert outputs.tolist() == [5, 4]


def test_every_record_has_a_number():
    with pytest.raises(ValueError, match="there are 50 records, and 49 random numbers"):
        outputs_by_number(CODES, FLOWS, np.arange(49))


@pytest.mark.parametrize("together", [1, 7, 1 << 20])
@pytest.mark.parametrize("gap", [1, 1 << 55])
@given(data=st.data())
@settings(max_examples=scaled(40))
def test_parts_of_inputs_give_the_same_order(together, gap, data):
    """Numbers that differ in their last bits alone, too: an input takes these bits away."""
    sizes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    total = sum(sizes)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    codes = codes[data.draw(st.permutations(range(total)))]
    numbers = np.array(data.draw(st.permutations(range(total))), np.int64) * gap
    # Every record of an input has an output of its own.
    flows = Flows(
        np.repeat(np.arange(len(sizes)), sizes),
        np.arange(total),
        np.ones(total, np.int64),
        np.array(sizes),
    )
    with (
        mock.patch.object(module, "SORTED_TOGETHER", together),
        mock.patch.object(module, "PARTS", 1 << 20),
    ):
        outputs = outputs_by_number(codes, flows, numbers)
    order = sorted(range(total), key=lambda i: (codes[i], numbers[i]))
    assert [outputs[i] for i in order] == list(range(total))
    tied = np.flatnonzero(codes == codes[0])[:2] if total else []
    if len(tied) == 2:
        numbers[tied] = 5 * gap
        with pytest.raises(TiedRecords):
            outputs_by_number(codes, flows, numbers)
