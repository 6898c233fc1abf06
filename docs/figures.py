"""Draw the figures of the pages: python docs/figures.py."""

from pathlib import Path

import group
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import shoal
from shoal.frame import Frame
from shoal.measure.precision import samples_in_boxes
from shoal.trajectories import build

FOLDER = Path(__file__).parent / "figures"
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
# Four two-sample trajectories (t, x). At k = 3 the constraints choose the sets of k-scale, Fig. 4, on them.
TOY = [[(1, 5), (10, 4)], [(2, 0), (8, 2)], [(2, 9), (9, 10)], [(3, 6), (10, 6)]]


def constraints():
    """Draw the example of k-scale, Fig. 4: four trajectories and the records that each constraint makes of them."""
    t, x = np.array(TOY, np.int32).reshape(-1, 2).T.copy()
    users = np.repeat(np.arange(4), 2)
    people = build(users, t, x, np.zeros_like(t), labels=pa.array([1, 2, 3, 4]), frame=Frame(crs=None))
    names = ["full", "k-pick", "nu-k-pick"]
    figure, axes = plt.subplots(4, 3, figsize=(9, 8), sharex=True, sharey=True, layout="constrained")
    for column, name in enumerate(names):
        release = shoal.KScale(k=3, constraint=name).anonymize(people)
        members = release.members
        for record in range(4):
            ax = axes[record, column]
            inside = members.indices[members.offsets[record] : members.offsets[record + 1]]
            for t0, t1, x0, x1, _, _ in release.record(record):
                ax.add_patch(plt.Rectangle((t0, x0), t1 - t0 + 1, x1 - x0 + 1, color=COLOURS[record], alpha=0.25, lw=0))
            for user in range(4):
                samples = people.user(user)
                here = user in inside
                ax.plot(
                    samples[:, 0] + 0.5,
                    samples[:, 1] + 0.5,
                    "o-",
                    color=COLOURS[user] if here else "#cccccc",
                    lw=1,
                    ms=5,
                )
            others = ", ".join(str(u + 1) for u in sorted(set(inside.tolist()) - {record}))
            ax.set_title(f"record {record + 1}: with {others}", fontsize=9)
            if record == 0:
                ax.annotate(name, (0.5, 1.25), xycoords="axes fraction", ha="center", weight="bold")
            if record == 3:
                ax.set_xlabel("time")
            if column == 0:
                ax.set_ylabel("space")
    axes[0, 0].set(xlim=(0, 12), ylim=(-1, 12))
    figure.savefig(FOLDER / "constraints.svg", metadata={"Date": None})
    plt.close(figure)


def accuracy(users=1000):
    """Draw k-scale, Fig. 5: the sizes of the boxes that people's samples are published in, for k = 2, 5, 10.

    Also print the shares in the table of docs/papers/k-scale.md.
    """
    people = shoal.from_arrow(shoal.synthesize(users=users, seed=1))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for colour, k in zip(COLOURS, (2, 5, 10), strict=False):
        for style, method in (("-", shoal.Shoal(k=k)), ("--", shoal.KScale(k=k))):
            release = method.anonymize(people)
            held, _ = samples_in_boxes(release)
            t0, t1, x0, x1, y0, y1 = release.boxes.T.astype(float)
            area_km2 = (x1 - x0 + 1) * (y1 - y0 + 1) * (release.frame.cell_m / 1000) ** 2
            hours = (t1 - t0 + 1) * release.frame.slot_s / 3600
            within = [area_km2 <= 1, area_km2 <= 10, hours <= 1, hours <= 6]
            shares = [f"{held[inside].sum() / held.sum():.0%}" for inside in within]
            print(f"| {method.name} | {k} | {' | '.join(shares)} |")
            for ax, values in zip(axes, (area_km2, hours), strict=True):
                order = np.argsort(values)
                share = np.cumsum(held[order]) / held.sum()
                shown = np.searchsorted(share, np.linspace(0, 1, 200, endpoint=False))
                label = f"{method.name}, k = {k}"
                ax.plot(values[order][shown], share[shown], style, color=colour, lw=1.5, label=label)
    axes[0].set(xscale="log", xlabel="area of the box [km²]", ylabel="share of people's samples", ylim=(0, 1))
    axes[1].set(xscale="log", xlabel="duration of the box [h]")
    for ax in axes:
        ax.grid(color="#dddddd", lw=0.5)
    axes[1].legend(fontsize=8, frameon=False)
    figure.savefig(FOLDER / "accuracy.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "shoal"
    FOLDER.mkdir(exist_ok=True)
    group.draw()
    constraints()
    accuracy()
