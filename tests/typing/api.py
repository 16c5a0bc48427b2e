"""The public API as a typed caller uses it: checked by pyright, never run."""

from __future__ import annotations

from typing import Any

import mechdesign as md
from mechdesign.analysis import (
    JointFrequencies,
    corrected_regression,
    estimate_joint,
    expand_records,
    identifiability,
    posterior_table,
    record_weights,
)


def design_and_save(counts: list[list[int]], frame: Any) -> float:
    """Every name of the interface, with the types that callers rely on."""
    joint: md.Joint = md.Joint.from_counts(
        counts, sensitive="relationship", useful="occupation"
    )
    joint = md.Joint.from_table(
        frame, sensitive="relationship", useful=["occupation", "sex"], missing="drop"
    )
    joint = md.Joint.from_probabilities([[0.25, 0.25], [0.25, 0.25]])
    notions: list[md.Notion] = [
        md.ALIP(eps_l=1.3, eps_u=0.7),
        md.ALIP.from_epsilon(2.0, lam=0.65),
        md.LIP(0.5),
        md.LDP(1.0),
        md.MaxLift(1.0),
        md.MinLift(1.0),
    ]
    result: md.Design = md.design(
        joint, notions[0], mechanism="optimal", method="auto", gap=1e-4, time_limit=None
    )
    certificate: md.Certificate = result.certificate
    bound: float | None = certificate.upper_bound_nmi
    gap: float | None = certificate.gap_nmi
    channel: md.Channel = result.channel
    channel.save("channel.json", overwrite=True)
    loaded: md.Channel = md.Channel.load("channel.json")
    verdict: md.Audit = md.audit(loaded, joint, notions[1])
    released: Any = loaded.apply(["a", "b"])
    ok: bool = verdict.satisfied and verdict.achieved.eps_u <= 0.7
    return (
        result.nmi
        + (bound or 0.0)
        + (gap or 0.0)
        + float(ok)
        + len(released)
        + result.outputs
    )


def trade_off(joint: md.Joint) -> list[float]:
    """A comparison is a tuple of plain rows."""
    curves: md.Comparison = md.compare(
        joint, epsilons=[0.5, 1, 2], lams=[0.5, 0.65], mechanisms=["optimal"]
    )
    curves.to_csv("curves.csv", overwrite=True)
    row: md.ComparisonRow = curves.rows[0]
    bound: float | None = row.upper_bound_nmi
    return [row.nmi, row.max_log_lift, bound or 1.0, float(row.repaired)]


def estimate(
    channel: md.Channel, released: Any, towns: Any, wages: list[float]
) -> list[float]:
    """What analysts call; counts do as well as columns."""
    known: bool = identifiability(channel).identified
    result: md.Frequencies = md.estimate_frequencies(
        channel, released, method="ml", level=0.9, target="records"
    )
    result = md.estimate_frequencies(
        channel, {"y0": 3, "y1": 4}, functionals={"both": ["a", "b"]}
    )
    crossed: JointFrequencies = estimate_joint(channel, released, towns)
    posterior: dict[str, dict[str, float]] = posterior_table(
        channel, result.as_dict()
    ).as_dict()
    rows: int = len(expand_records(channel, released, kind="posterior"))
    slope: float = float(
        corrected_regression(
            channel, released, wages, features={"a": "a"}
        ).coefficients[0]
    )
    weight: float = float(record_weights(channel)[0, 0])
    plausible: bool = md.check(channel, "out.csv", original="in.csv").plausible
    numbers = [
        float(known),
        float(crossed.estimates[0, 0]),
        float(rows),
        slope,
        weight,
        float(plausible),
    ]
    return [*numbers, *result.estimates.tolist(), *posterior["y0"].values()]


def catch() -> str:
    """Errors form one family."""
    try:
        md.LIP(-1.0)
    except md.InputError as error:
        return str(error)
    except (md.NotPrivate, md.SolverFailure) as error:
        return str(error.exit_code)
    except md.MechdesignError:
        return md.__version__
    return ""
