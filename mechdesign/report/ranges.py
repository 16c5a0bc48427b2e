"""Ranges in words and as plain records: what a quantised release guarantees, and the measures of a table.

Also mechanism files: the verdict, the cells, the budget against the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import islice
from typing import Any

from mechdesign.nonstochastic.claims import VerifiedMechanism, guarantee_record
from mechdesign.nonstochastic.domains import FiniteDomain
from mechdesign.nonstochastic.levels import ASSUMPTIONS, RangePromise, outputs_allowed
from mechdesign.nonstochastic.mechanism_file import SizedQuantizer
from mechdesign.nonstochastic.sizes import released_number
from mechdesign.report import wording as w
from mechdesign.report.plots import new_figure, save_figure, settings
from mechdesign.sanitise.quantized import Quantised
from mechdesign.sanitise.quantized_check import CheckedRelease

SCOPE = (
    "A range is what occurs in this file. A combination that can happen but does not occur here would change "
    "these numbers, so they say nothing about people who are not in it. No probabilities are involved."
)

OTHERS = {"clip": "moved to its ends", "mark": "marked by empty answers", "drop": "left out"}
"""What becomes of values outside the range."""

MOST_ROWS = 12
"""Cells or sizes of groups that a terminal shows; CSV and JSON have all of them."""


def quantize_text(done: Quantised) -> str:
    """The report of `quantize`, without a final newline."""
    made, (low, high, widest) = done.mechanism, _levels(done)
    levels = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    answers = "every record" if made.query == "identity" else w.count(done.answers, "answer")
    released = (
        f"Released: {made.query} of {w.label(done.column)}, {answers} from {w.count(done.records, 'record')}, "
        f"in {levels} levels (widest cell {w.about(widest)})."
    )
    counted = counted_text(made.guarantee["outputs"], outputs_allowed(made.epsilon))
    said = f"Whatever the other records are, {counted}."
    in_all = _all_releases(done)
    promises = guarantee_record(made, done.answers_each)[2]
    told = [_flush(released), "", _flush(said), *in_all, "", *_for_you(done), *_guaranteed(promises)]
    return "\n".join(told)


def _flush(text: str) -> str:
    return w.paragraph(text, first="")


def counted_text(outputs: int, allowed: int) -> str:
    """What one individual can bring about, counted."""
    said = f"one individual can bring about at most {w.count(outputs, 'output')} of an answer"
    return f"{said} (counted exactly; {allowed:,} allowed)"


def _in_all(answers: int | None, bits: float, source: str = "") -> list[str]:
    if answers is None:
        return []
    times = w.count(answers, "answer")
    return [f"One individual is in at most {times}{source}: {w.at_most(bits)} bits in all."]


def _all_releases(done: Quantised) -> list[str]:
    lines, which = (
        _in_all(done.answers_each, done.total_epsilon),
        w.count(done.releases - 1, "earlier release"),
    )
    if done.releases > 1 and done.releases_epsilon is not None:
        bits = f"{w.at_most(done.releases_epsilon)} bits of one individual in all"
        lines.append(_flush(f"With {which} of {w.label(done.column)} of these records: {bits}."))
    return lines


def _guaranteed(promises: Sequence[RangePromise]) -> list[str]:
    texts = ["", "Guarantees for each answer", *map(promise_text, promises), "", "They hold if"]
    return [*texts, *map(w.item, ASSUMPTIONS)]


def _levels(done: Quantised) -> tuple[int, int, float]:
    """Fewest and most levels, and the widest cell."""
    made = [each.quantizer for each in done.mechanism.mechanisms]
    levels = [each.levels for each in made]
    return min(levels), max(levels), float(max(each.widest_cell for each in made))


def quantize_record(done: Quantised, output: str, mechanism: str, seconds: float) -> dict[str, Any]:
    """What `quantize --json` prints."""
    made = done.mechanism
    *levels, widest = _levels(done)
    return {
        "query": made.query,
        **w.picked(done, "column", "records", "answers", "answers_each", "total_epsilon", "notices"),
        **w.picked(done, "releases", "releases_epsilon"),
        **w.picked(done, "outside", "moved", "mean_error", "worst_error", "relative_error"),
        "epsilon": made.epsilon,
        "outputs_allowed": outputs_allowed(made.epsilon),
        "outputs": made.guarantee["outputs"],
        "levels": levels,
        "widest_cell": widest,
        "guarantees": [asdict(g) for g in guarantee_record(made, done.answers_each)[2]],
        "assumptions": ASSUMPTIONS,
        "verified": True,
        "seconds": round(seconds, 3),
        "output": output,
        "mechanism": mechanism,
    }


def ranges_text(measured: Mapping[str, Any]) -> str:
    """The report of `nonstochastic measure`, without a final newline."""
    x, y = (" x ".join(map(w.label, measured[side])) for side in ("x", "y"))
    parts = {"Guessing X from Y (bits)": _guessing(measured)}
    parts["Testing a hypothesis (bits)"] = _hypothesis(measured["hypothesis"])
    parts["Communicating without error from X to Y (bits per use)"] = _capacity(measured["zero_error"])
    exact, above = (
        {k: said(v) for k, v in measured.items() if isinstance(v, float)} for said in (w.about, w.at_most)
    )
    rows = [
        ("H0(X)", exact["entropy"], "H0(Y)", exact["entropy_reverse"]),
        ("H0(X|Y)", exact["conditional_entropy"], "H0(Y|X)", exact["conditional_entropy_reverse"]),
        ("I0(X;Y), least gain", exact["information"], "I0(Y;X)", exact["information_reverse"]),
        ("L0(X;Y), largest gain", above["leakage"], "L0(Y;X)", above["leakage_reverse"]),
        ("L0s, the smaller L0", above["symmetric_leakage"], "", ""),
        (f"I*, maximin ({w.count(measured['classes'], 'class', 'classes')})", above["maximin"], "", ""),
    ]
    width = max(len(row[0]) for row in rows)
    lines = [
        f"X = {x} ({w.count(measured['x_values'], 'value')}) and Y = {y} ({w.count(measured['y_values'], 'value')}): "
        f"{w.count(measured['pairs'], 'pair')} in {w.count(measured['records'], 'record')}",
        "",
        "Information (bits)",
    ]
    for name, value, other, back in rows:
        lines.append(f"  {name:<{width}}  {value:>8}     {other:<7}  {back:>8}".rstrip())
    lines += [line for heading, said in parts.items() if said for line in ("", heading, *said)]
    return "\n".join([*lines, "", w.paragraph(SCOPE)])


def _some(names: Sequence[str], many: int) -> str:
    left = many - len(names[:MOST_ROWS])
    return ", ".join(map(w.label, names[:MOST_ROWS])) + (f" and {left:,} more" if left else "")


def _guessing(measured: Mapping[str, Any]) -> list[str]:
    worst, feature = measured["worst_attribute"], measured["feature"]
    shown = _some(worst["some"], worst["merged"])
    lines = [
        w.paragraph(f"maximal leakage L* {w.at_most(measured['maximal_leakage'])}: the worst feature merges {shown}, "
                  f"the values compatible with the output {w.label(worst['output'])}, and tells all others apart."),
        w.paragraph(f"identifiability: the release is epsilon-identifiable from epsilon "
                  f"{w.at_most(measured['identifiability'])} on."),
        w.paragraph(f"any channel with these ranges has a stochastic maximal leakage of at most "
                  f"{w.at_most(measured['stochastic_bound'])}."),
    ]  # fmt: skip
    if measured["identifiable"] is not None:
        said = "yes" if measured["identifiable"] else "NO"
        lines.append(f"  epsilon-identifiable at the budget given: {said}")
    if feature is not None:
        told = "always right at the first guess" if feature["one_shot"] else "not always right at once"
        named = f"{' x '.join(map(w.label, feature['columns']))} ({w.count(feature['values'], 'value')})"
        lines.append(w.paragraph(f"brute-force leakage of {named}: {w.at_most(feature['leakage'])}; {told}."))
    return lines


def _hypothesis(tested: Mapping[str, Any] | None) -> list[str]:
    if tested is None:
        return []
    name = f"{w.label(tested['column'])} = {w.label(tested['value'])} against the rest"
    outputs = tested["outputs"]
    if tested["epsilon"] == "inf":
        return [f"  {name}: none of {w.count(outputs, 'output')} settles it"]
    private = f"epsilon-private for epsilon up to {w.at_least(tested['epsilon'])}"
    if tested["epsilon"] == 0:
        private = "every output tells, so it is private for no epsilon"
    best = [said for said in ("yes", "no") if tested[said]]
    return [
        w.paragraph(f"{name}: {tested['telling']:,} of {w.count(outputs, 'output')} settle it; {private}."),
        f"  Priv {w.at_least(tested['privacy'])}; performance of any test at most "
        f"{w.at_most(tested['performance_bound'])}; L0(Y;H) {w.at_most(tested['leakage'])}",
        *(w.item(f"the best test says {said} at {_some(tested[said], len(tested[said]))}") for said in best),
    ]


def hypothesis_text(tested: Mapping[str, Any]) -> str:
    """The report of `nonstochastic hypothesis`, without a final newline."""
    return "\n".join(["Testing a hypothesis (bits)", *_hypothesis(tested), "", w.paragraph(SCOPE)])


def policy_text(made: Mapping[str, Any]) -> str:
    """The report of `nonstochastic policy`, without a final newline."""
    best = "the least there is" if made["optimal"] else "the search was stopped: another may move less"
    said = f"{' x '.join(map(w.label, made['x']))}: {made['moved']:,} of {w.count(made['values'], 'value')} reported as"
    far, error = w.about(made["largest_distance"]), w.about(made["distortion"])
    shown, moved = [["value", "report"]], [row for row in made["policy"] if row["from"] != row["to"]]
    shown += [[", ".join(map(w.about, end)) for end in row.values()] for row in moved[:MOST_ROWS]]
    more = [f"  .. and {len(moved) - MOST_ROWS:,} more; --json has all"] if len(moved) > MOST_ROWS else []
    text = _flush(f"{said} others, at most {far} away; mean squared distance {error} ({best}).")
    return "\n".join([text, "", *w.aligned(shown), *more, "", hypothesis_text(made["test"])])


def partition_text(made: Mapping[str, Any]) -> str:
    """The report of `nonstochastic partition`, without a final newline."""
    cells, shown = made["cells"], [["from", "to", "values", "released"]]
    said = f"{w.count(made['values'], 'value')} in {w.count(len(cells), 'cell')} of at least {made['smallest_cell']:,}"
    so = f"epsilon-identifiable from {w.at_most(made['identifiability'])} bits on"
    lost, error = w.at_most(made["maximal_leakage"]), w.about(made["distortion"])
    loss = f"maximal leakage L* {lost} bits, mean squared error {error}"
    shown += [[w.about(float(number)) for number in cell.values()] for cell in cells[:MOST_ROWS]]
    more = [f"  .. and {len(cells) - MOST_ROWS:,} more; --json has all"] if len(cells) > MOST_ROWS else []
    text = _flush(f"{w.label(made['x'])}: {said}, so {so}; {loss}.")
    return "\n".join([text, "", *w.aligned(shown), *more])


def _capacity(bounds: Mapping[str, Any] | None) -> list[str]:
    if bounds is None:
        return []
    line = f"  zero-error capacity between {w.at_least(bounds['lower'])} and {w.at_most(bounds['upper'])}"
    if bounds["theta"] is not None:
        line += f" (theta number at most {w.at_most(bounds['theta'])})"
    if bounds["codewords"] is None:
        return [line, "  (too many pairs for the solver: maximin information, and leakages)"]
    known, most, uses = bounds["codewords"], bounds["codewords_upper_bound"], bounds["uses"]
    sure = "the largest" if known == most else f"the largest found (at most {most:,})"
    what = "set of inputs" if uses == 1 else f"set of words of {uses} inputs, for {uses} uses,"
    return [line, f"  {sure} {what} that never share an output: {known:,}"]


def verdict_text(found: VerifiedMechanism) -> str:
    """The report of `audit MECHANISM`, without a final newline."""
    kept = "keeps" if found.satisfied else "DOES NOT keep"
    said = f"The mechanism {kept} what its file says: {mechanism_title(found)}, and"
    lines = [_flush(f"{said} {counted_text(found.outputs, found.allowed)}.")]
    if found.disagreements:
        lines += ["", "The file is wrong", *map(w.item, found.disagreements)]
    source = " (as the file says, from data that are not here)"
    lines += _in_all(found.answers_each, found.total_epsilon, source)
    return "\n".join([*lines, *_guaranteed(found.promises)])


def verdict_record(found: VerifiedMechanism) -> dict[str, Any]:
    """What `audit MECHANISM --json` prints."""
    return {
        **w.picked(found.mechanism, "query", "column", "group_by", "epsilon"),
        **w.picked(found, "satisfied", "outputs", "answers_each", "total_epsilon", "disagreements"),
        "outputs_allowed": found.allowed,
        "witnesses": [
            {"individuals": m.individuals, "outputs": m.certificate.outputs, "witness": m.certificate.witness}
            for m in found.mechanism.mechanisms
        ],
        "guarantees": [asdict(g) for g in found.promises],
        "assumptions": ASSUMPTIONS,
        "verified": True,
    }


def promise_text(promise: RangePromise) -> str:
    """One guarantee; an error is bounded from below, everything else from above."""
    if promise.name == "estimation error":
        bound = f"at least {w.at_least(promise.bound)} {promise.unit}"
    else:
        bound = f"at most {w.at_most(promise.bound)} {promise.unit}" if promise.bound > 0 else "nothing"
    return w.item(f"{promise.meaning}: {bound} ({promise.theorem})")


def mechanism_title(found: VerifiedMechanism) -> str:
    """The query of a mechanism, and what values are."""
    mechanism = found.mechanism
    groups = f" by {', '.join(map(w.label, mechanism.group_by))}" if mechanism.group_by else ""
    domain = mechanism.domain
    lo, hi = (w.about(float(end)) for end in (domain.lo, domain.hi))
    kind = f"one of {len(domain.values):,} from" if isinstance(domain, FiniteDomain) else "in"
    outside = f"; others {OTHERS[mechanism.outside]}" if mechanism.outside in OTHERS else ""
    return f"the {mechanism.query} of {w.label(mechanism.column)}{groups}, each value {kind} {lo} to {hi}{outside}"


def cells_text(found: VerifiedMechanism) -> str:
    """The report of `show MECHANISM`: the cells, and what is released for each."""
    lines = [_flush(f"{mechanism_title(found)}; {w.at_most(found.mechanism.epsilon)} bits an answer.")]
    for sized in found.mechanism.mechanisms[:MOST_ROWS]:
        who = "" if found.mechanism.query == "identity" else f" for groups of {sized.individuals:,}"
        lines += ["", f"{w.count(sized.quantizer.levels, 'level')}{who}"]
        for cell in islice(cells(found, sized), MOST_ROWS):
            lower, upper, value = (w.about(float(part)) for part in cell)
            lines.append(f"  {lower:>12}  to {upper:>12}  ->  {value:>12}")
        if sized.quantizer.levels > MOST_ROWS:
            lines.append(f"  .. and {sized.quantizer.levels - MOST_ROWS:,} more; --csv lists all")
    if len(found.mechanism.mechanisms) > MOST_ROWS:
        lines.append(f"\n.. and {len(found.mechanism.mechanisms) - MOST_ROWS:,} more sizes of groups")
    return "\n".join(lines)


def cells_csv(found: VerifiedMechanism) -> str:
    """All cells with exact ends (fractions), a line each."""
    lines = ["individuals,cell,lower,upper,released"]
    for sized in found.mechanism.mechanisms:
        for k, (lower, upper, value) in enumerate(cells(found, sized), start=1):
            lines.append(f"{sized.individuals},{k},{lower},{upper},{value!r}")
    return "\n".join(lines)


def cells(found: VerifiedMechanism, sized: SizedQuantizer) -> Iterator[tuple[Fraction, Fraction, float]]:
    """Both ends of each cell, exactly, and what is released for it."""
    edge, query = sized.quantizer.edge, found.mechanism.query
    for k in range(sized.quantizer.levels):
        yield edge(k), edge(k + 1), float(released_number(query, sized.quantizer, k))


def budget_rows(found: VerifiedMechanism) -> list[dict[str, Any]]:
    """For each size of group: levels, outputs in use, and the largest error of an answer."""
    rows: list[dict[str, Any]] = []
    for m in found.mechanism.mechanisms:
        size = {"individuals": m.individuals, "levels": m.quantizer.levels}
        error = {"worst_error": float(m.quantizer.worst_error)}
        rows.append(size | w.picked(m.certificate, "outputs", "epsilon") | error)
    return rows


def budget_text(found: VerifiedMechanism) -> str:
    """The report of `measure MECHANISM`: what each size of group spends, and what it gets for it."""
    rows = budget_rows(found)
    shown = [["individuals", "levels", "outputs", "bits", "worst error"]]
    for r in rows[:MOST_ROWS]:
        numbers = (f"{r[name]:,}" for name in shown[0][:3])
        shown.append([*numbers, w.at_most(r["epsilon"]), w.at_most(r["worst_error"])])
    lines = [_flush(f"{mechanism_title(found)}: budget and error of an answer."), "", *w.aligned(shown)]
    if len(rows) > MOST_ROWS:
        lines.append(f"  .. and {len(rows) - MOST_ROWS:,} more sizes; --json has all")
    least = min(r["outputs"] for r in rows)
    if least < found.outputs and not found.mechanism.divided:
        use = f"Some groups use {least} of the {found.allowed:,} outputs that are allowed"
        lines += ["", _flush(f"{use}: finer cells for them would cost nothing.")]
    return "\n".join(lines)


def curve_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each budget."""
    return "".join(",".join(map(str, row)) + "\n" for row in (rows[0], *(row.values() for row in rows)))


def curve_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Budget against error: what could be at worst, and what the errors of these data are."""
    shown = [["epsilon", "outputs", "bits in all", "levels", "possible error", "worst", "mean", "relative"]]
    for row in rows:
        epsilon, outputs, total, levels, possible, *errors, relative = row.values()
        numbers = [w.about(epsilon), f"{outputs:,}", w.at_most(total), f"{levels:,}", w.at_most(possible)]
        shown.append([*numbers, *map(w.about, errors), w.percent(relative)])
    return "\n".join([*w.aligned(shown), "", "The last three depend on the data: they are for you alone."])


def save_curve(rows: Sequence[Mapping[str, Any]], path: str, *, overwrite: bool) -> None:
    """Draw error against budget."""
    with settings():
        figure = new_figure(figsize=(6.5, 4.3), layout="constrained")
        axes = figure.subplots()
        budgets = [row["epsilon"] for row in rows]
        for name, style in (("possible_error", "--"), ("worst_error", "-"), ("mean_error", "-")):
            errors = [row[name] for row in rows]
            axes.plot(budgets, errors, style, marker=".", label=name.replace("_", " "))
        axes.set(xlabel="epsilon of an answer, bits", ylabel="error", ylim=(0, None))
        axes.legend()
    save_figure(figure, path, overwrite=overwrite)


def applied_text(done: Quantised, target: str, *, rehearsed: bool = False) -> str:
    """The report of `apply MECHANISM`, without a final newline."""
    what = f"{w.count(done.answers, 'answer')} from {w.count(done.records, 'record')}"
    written = f"{what} {'would be ' if rehearsed else ''}written to {target}."
    lines = [_flush(written), "", *_for_you(done)]
    in_all = _all_releases(done)
    return "\n".join([*lines, "", *in_all] if in_all else lines)


def _for_you(done: Quantised) -> list[str]:
    """What depends on the data: errors, and what the range did to values."""
    shown = f"{w.count(done.outside, 'value')} outside the range"
    if done.outside:
        share = w.percent(done.outside / done.records)
        shown += f" ({share} of the records), {OTHERS[done.mechanism.outside]}"
    relative = f"{w.percent(done.relative_error)} of all amounts together"
    moved = f"{done.moved:,} of {w.count(done.answers, 'answer')} changed"
    errors = f"errors: {w.about(done.mean_error)} on average, {w.about(done.worst_error)} at worst, {relative}; {moved}"
    return ["For you alone, because it depends on the data", w.item(errors), w.item(shown)]


def applied_record(done: Quantised, target: str) -> dict[str, Any]:
    """What `apply MECHANISM --json` prints."""
    record = asdict(done)
    del record["mechanism"]
    return {"output": target, **record, "guarantee": dict(done.mechanism.guarantee)}


def release_check_text(found: CheckedRelease, path: str) -> str:
    """The report of `check` on a mechanism's release."""
    can = "can be" if found.satisfied else "CANNOT be"
    lines = [f"{path} {can} a release of this mechanism ({w.count(found.answers, 'answer')})."]
    lines += [w.item(fault) for fault in found.wrong]
    if found.same is not None:
        same = "give the same answers" if found.same else "do NOT give these answers"
        lines.append(w.item(f"the data released again {same}"))
    return "\n".join(lines)
