"""Draws the figures of the pages: python docs/figures.py."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import shoal
from shoal.frame import Frame
from shoal.trajectories import build

FOLDER = Path(__file__).parent / "figures"
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
# Four two-sample trajectories (t, x) on which the constraints choose the sets of paper 003, Fig. 4, at k = 3.
TOY = [[(1, 5), (10, 4)], [(2, 0), (8, 2)], [(2, 9), (9, 10)], [(3, 6), (10, 6)]]


def constraints():
    """The toy of paper 003, Fig. 4: four trajectories and the records that each constraint makes of them."""
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


if __name__ == "__main__":
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "shoal"
    FOLDER.mkdir(exist_ok=True)
    constraints()
