"""The instruments of other projects, where they are installed (extra ``judge``).

- anonymeter (Giomi et al. 2023, arXiv 2211.10459) attacks: singling out, linkability, inference;
- pycanon (Sainz-Pardo Diaz and Lopez Garcia 2022, arXiv 2208.07556) computes k, l, t and beta.

Both read plain text and numbers. A general value such as ``20-29`` is a text of its own to them, so
on files with such values their attacks are weaker than those of this package.
"""

# anonymeter, pycanon and pandas have no complete types.
# pyright: basic
from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from mechdesign.judging.figures import NUMBER, WHOLE, Figure
from mechdesign.judging.own_row import Halves, row_of_record
from mechdesign.judging.together import Files
from mechdesign.leaks.coded_table import Codes

ANONYMETER = "anonymeter"
PYCANON = "pycanon"

ATTACKS = 500
"""Attacks of each kind, the default of anonymeter."""

ATTEMPTS = 100 * ATTACKS
"""Claims that it may try for a row that is alone; its default of ten million takes hours on a file
whose rows are all in groups.
"""

SECRET = "secret"


def named(instrument: str) -> str | None:
    """The instrument with its version; None where it is not installed."""
    if find_spec(instrument) is None:
        return None
    return f"{instrument} {version(instrument)}"


def instruments_note() -> str:
    """Which instruments measured."""
    found = [name for name in map(named, (ANONYMETER, PYCANON)) if name is not None]
    missing = [name for name in (ANONYMETER, PYCANON) if named(name) is None]
    note = "Measured by the attacks and counts of mechdesign"
    if found:
        note += f", and by {' and '.join(found)} where a line names it"
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        note += (
            f"; {' and '.join(missing)} {verb} not installed "
            "(pip install 'mechdesign[judge]')"
        )
    return f"{note}."


def frames_of(files: Files) -> tuple[Any, Any]:
    """Both files as data frames with the columns 0, 1, ..: numbers where both files have numbers
    alone, else texts.

    The names are places, because anonymeter builds queries from names.
    """
    pandas = import_module("pandas")
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for place, column in enumerate(files.columns):
        name = str(place)
        numbers = column.own_numbers
        if column.numbers is not None and numbers is not None:
            before[name] = column.numbers[column.original.codes]
            after[name] = numbers[column.released.codes]
            continue
        before[name] = _texts(column.original.values, column.original.codes)
        after[name] = _texts(column.released.values, column.released.codes)
    return pandas.DataFrame(before), pandas.DataFrame(after)


def _texts(values: Sequence[str], codes: Codes) -> Any:
    """The text of every record."""
    return np.array(list(values), dtype=object)[codes]


@contextmanager
def _quiet(seed: int) -> Iterator[None]:
    """anonymeter draws from the global generator, and warns where an attack does no better than
    chance, which is an answer here.
    """
    state = np.random.get_state()
    logger = logging.getLogger(ANONYMETER)
    level = logger.level
    try:
        np.random.seed(seed)
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)
        logger.setLevel(level)


def singling_out_by_anonymeter(
    files: Files, untouched: Files, width: int, seed: int
) -> list[Figure]:
    """Its risk of singling out by claims on as many columns as ours; a claim that it could not find
    counts as one that failed.
    """
    name = named(ANONYMETER)
    if name is None:
        return []
    evaluator: Any = import_module("anonymeter.evaluators").SinglingOutEvaluator

    def attack(judged: Files) -> float:
        before, after = frames_of(judged)
        tried = evaluator(
            ori=before,
            syn=after,
            n_attacks=ATTACKS,
            n_cols=width,
            max_attempts=ATTEMPTS,
            seed=seed,
        )
        with _quiet(seed):
            return tried.evaluate(mode="multivariate").risk().value

    # Its own chance level changes from run to run: it draws from values in no fixed order.
    text = f"{name}: {ATTACKS} claims on {width} columns"
    return [Figure("anonymeter", text, attack(files), attack(untouched))]


def linkability_by_anonymeter(
    files: Files, untouched: Files, first: Sequence[int], seed: int
) -> list[Figure]:
    """Its risk that both halves of a person's columns are nearest to the same released row."""
    name = named(ANONYMETER)
    if name is None:
        return []
    evaluator: Any = import_module("anonymeter.evaluators").LinkabilityEvaluator
    places = range(len(files.columns))
    sources = (
        [str(place) for place in first],
        [str(place) for place in places if place not in first],
    )

    def attack(judged: Files) -> float:
        before, after = frames_of(judged)
        attacks = min(ATTACKS, judged.records)
        tried = evaluator(ori=before, syn=after, aux_cols=sources, n_attacks=attacks)
        with _quiet(seed):
            return tried.evaluate(n_jobs=1).risk().value

    # Its own chance level is drawn without a seed; two rows at random are the same one time in n.
    chance = 1 / files.released_records
    text = f"{name}: both sources nearest to one released row"
    return [Figure("anonymeter", text, attack(files), attack(untouched), chance)]


def inference_by_anonymeter(
    files: Files, untouched: Files, halves: Halves, seed: int
) -> list[Figure]:
    """Its risk that the secret is read from the released row nearest to a person's true cells.

    The secrets of the released file are used where it has them. Else the attacker knows those of
    half of the people beside their released rows, and attacks the other half; nothing can be
    measured then if it is not known whose row is whose.
    """
    name = named(ANONYMETER)
    if name is None or (files.released_secret is None and not files.is_linked):
        return []
    evaluator: Any = import_module("anonymeter.evaluators").InferenceEvaluator

    def attack(judged: Files) -> float:
        before, after = frames_of(judged)
        columns = list(before.columns)
        before[SECRET] = judged.secret.codes
        if judged.released_secret is None:
            rows = row_of_record(judged)[halves.known]
            rows = rows[rows >= 0]
            after[SECRET] = judged.secret.codes[judged.owner]
            after = after.iloc[rows]
        else:
            after[SECRET] = judged.released_secret
        targets = before.iloc[halves.targets]
        attacks = min(ATTACKS, len(targets))
        tried = evaluator(
            ori=targets,
            syn=after,
            aux_cols=columns,
            secret=SECRET,
            regression=False,
            n_attacks=attacks,
        )
        with _quiet(seed):
            return tried.evaluate(n_jobs=1).risk().value

    # Its own chance level compares guesses with the secrets of other records, most of them missing:
    # naming the most frequent secret is what the attack competes with.
    chance = float(np.bincount(files.secret.codes).max() / files.records)
    text = f"{name}: the secret read in the nearest released row"
    return [Figure("anonymeter", text, attack(files), attack(untouched), chance)]


def groups_by_pycanon(
    files: Files, untouched: Files, places: Sequence[int]
) -> list[Figure]:
    """k, l, t and beta as pycanon computes them."""
    name = named(PYCANON)
    if name is None:
        return []
    anonymity: Any = import_module("pycanon.anonymity")

    def measured(judged: Files) -> tuple[float | None, ...]:
        frame, columns = _grouped(judged, places)
        # It groups by lists in a way that pandas will change.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            k = anonymity.k_anonymity(frame, columns)
            if SECRET not in frame.columns:
                return k, None, None, None
            asked = frame, columns, [SECRET]
            return (
                k,
                anonymity.l_diversity(*asked),
                float(anonymity.t_closeness(*asked)),
                float(anonymity.basic_beta_likeness(*asked)),
            )

    kinds = (("k", WHOLE), ("l", WHOLE), ("t", NUMBER), ("beta", NUMBER))
    figures: list[Figure] = []
    for (key, unit), here, there in zip(
        kinds, measured(files), measured(untouched), strict=True
    ):
        figures.append(
            Figure(f"pycanon_{key}", f"{name}: {key}", here, there, unit=unit)
        )
    return figures


def _grouped(files: Files, places: Sequence[int]) -> tuple[Any, list[str]]:
    """The released rows as texts, with the secret where it is known, and their columns."""
    pandas = import_module("pandas")
    cells: dict[str, Any] = {}
    for place in places:
        released = files.columns[place].released
        cells[str(place)] = _texts(released.values, released.codes)
    columns = list(cells)
    secret = files.secret_beside
    if secret is not None:
        # Texts: of numbers pycanon takes the ordered distance for t.
        cells[SECRET] = np.array([f"s{code}" for code in secret], dtype=object)
    return pandas.DataFrame(cells, dtype=object), columns
