"""Draw the pictures of the gallery beside this file: ``python docs/gallery/make.py [FOLDER]``.

They show the Adult table of `examples/`. A test draws them again and compares their texts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import adult  # noqa: E402  # pyright: ignore[reportMissingImports]

import mechdesign as md  # noqa: E402
from mechdesign.report.drawing import new_figure, save_figure  # noqa: E402
from mechdesign.report.plots import save_plot  # noqa: E402

SEED = 5
"""Of the draws in the picture of estimates: a real release uses a secret key."""


def draw(folder: Path) -> None:
    """Write all pictures into a folder."""
    joint = adult.load()
    trade_off(joint, folder / "trade-off.svg")
    channel = md.design(joint, md.LIP(0.5)).channel
    lifts(joint, channel, folder / "lifts.svg")
    estimates(joint, channel, folder / "estimates.svg")


def trade_off(joint: md.Joint, path: Path) -> None:
    """What budgets keep: the optimum and two mechanisms of the literature."""
    comparison = md.compare(
        joint,
        epsilons=[0.5, 1.0, 2.0],
        lams=[0.5],
        mechanisms=["optimal", "subset-merging", "complete-merging"],
    )
    save_plot(comparison.rows, path, overwrite=True)


def lifts(joint: md.Joint, channel: md.Channel, path: Path) -> None:
    """The lift of every relationship at every occupation, and at every released output."""
    released = joint.p @ channel.matrix
    parts = {"occupation": joint.p, "released output": released}
    figure = new_figure(figsize=(9.0, 2.8), layout="constrained")
    for axes, (title, p) in zip(figure.subplots(1, 2), parts.items(), strict=True):
        lift = p / np.outer(p.sum(axis=1), p.sum(axis=0))
        axes.imshow(lift, vmin=0.0, vmax=2.0, cmap="RdBu_r", aspect="auto")
        axes.set_yticks(range(len(joint.sensitive)), joint.sensitive.names)
        axes.set_xticks([])
        axes.set_xlabel(title)
        axes.set_title(f"lifts {lift.min():.2f} to {lift.max():.2f}")
    picture = figure.axes[0].images[0]
    figure.colorbar(picture, ax=figure.axes, label="lift (2 and more are dark red)")
    save_figure(figure, path, overwrite=True)


def estimates(joint: md.Joint, channel: md.Channel, path: Path) -> None:
    """True frequencies, and their estimates with 95 % intervals from one release."""
    names, counts = joint.useful.names, joint.useful_counts
    column = [name for name, n in zip(names, counts, strict=True) for _ in range(n)]
    labels = channel.apply(column, insecure_seed=SEED)
    found = md.estimate_frequencies(channel, labels, target="records").rows()
    places = np.arange(len(names))
    figure = new_figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for place, row in zip(places, found, strict=True):
        axes.plot([row["lower"], row["upper"]], [place, place], color="#707070")
    middle = [row["estimate"] for row in found]
    axes.plot(middle, places, "o", color="#1f5a96", label="estimate, 95 % interval")
    truth = np.array(counts) / sum(counts)
    axes.plot(truth, places, "|", color="#b3261e", ms=14, label="true frequency")
    axes.set_yticks(places, [row["name"] for row in found])
    axes.set_xlabel("share of the records")
    axes.legend(frameon=False)
    save_figure(figure, path, overwrite=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
