"""Draw one group before and after publishing: python docs/group.py.

figures/group.svg has both beside each other; figures/group-narrow.svg, for phones, one below the other.
"""

from itertools import combinations
from pathlib import Path

import numpy as np

import shoal

FOLDER = Path(__file__).parent / "figures"
USERS, SAMPLES, SEED, K = 1000, 16, 5, 3
# Names, colours (Okabe and Ito), markers and dashes: people can be told apart without colour.
PEOPLE = [("Ana", "#0072b2", "circle", ""), ("Ben", "#d55e00", "square", "7 4"), ("Cleo", "#007a5a", "triangle", "2 4")]
BOX, BOX_EDGE, INK, PALE = "#9c7fb5", "#5d3a7d", "#222222", "#e4e4e4"
WIDTH, HEIGHT = 960, 548
NARROW = 500
LEFT, RIGHT, TOP, SIDE, TALL = 40, 500, 74, 420, 300  # the two maps
AXIS = TOP + TALL + 44  # the first row of the time line
HOURS = (9, 24)


def overlap(boxes):
    """Return how much of the map is drawn over twice: shared area over the smaller box, summed over pairs."""
    total = 0.0
    for a, b in combinations(boxes.tolist(), 2):
        wide, high = (min(a[i + 1], b[i + 1]) - max(a[i], b[i]) + 1 for i in (2, 4))
        least = min((box[3] - box[2] + 1) * (box[5] - box[4] + 1) for box in (a, b))
        total += max(wide, 0) * max(high, 0) / least
    return total


def clearest(people, release):
    """Return members and boxes of the group of exactly K that is easiest to read.

    Everybody moves, there are four boxes or five, none is a sliver, and few lie on top of each other.
    """
    found = []
    members = release.members
    for record in range(len(members.offsets) - 1):
        group = np.sort(members.indices[members.offsets[record] : members.offsets[record + 1]]).tolist()
        boxes = release.record(record)
        if len(group) != K or not 4 <= len(boxes) <= 5:
            continue
        spans = [boxes[:, i + 1] - boxes[:, i] + 1 for i in (2, 4)]
        wide, high = (int(boxes[:, i + 1].max() - boxes[:, i].min()) + 1 for i in (2, 4))
        places = [len({(x // 3, y // 3) for _, x, y in people.user(user).tolist()}) for user in group]
        least = min(spans[0].min() / wide, spans[1].min() / high)
        if min(places) >= 3 and least >= 0.08 and 0.45 <= high / wide <= 1.2:
            found.append((overlap(boxes) / len(boxes), group, boxes))
    _, group, boxes = min(found, key=lambda one: one[:2])
    return group, boxes


class Map:
    """Turn granules into places in the picture."""

    def __init__(self, boxes, day):
        x0, x1, y0, y1 = boxes[:, 2].min(), boxes[:, 3].max() + 1, boxes[:, 4].min(), boxes[:, 5].max() + 1
        self.scale = min((SIDE - 48) / (x1 - x0), (TALL - 48) / (y1 - y0))
        self.x, self.y, self.day = (x0 + x1) / 2, (y0 + y1) / 2, day

    def place(self, left, x, y):
        """Return where a place is drawn in the map whose left edge is given."""
        return left + SIDE / 2 + (x - self.x) * self.scale, TOP + TALL / 2 - (y - self.y) * self.scale

    def time(self, left, slot):
        """Return where a time is drawn on the time line below that map."""
        hour = (slot - self.day) / 60
        return left + 52 + (hour - HOURS[0]) / (HOURS[1] - HOURS[0]) * (SIDE - 64)


def text(x, y, words, size=14, anchor="start", weight="normal", colour=INK):
    """Return a line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{colour}">{words}</text>'
    )


def marker(x, y, kind, colour, size=5.5):
    """Return a circle, a square or a triangle."""
    look = f'fill="{colour}" stroke="#ffffff" stroke-width="1"'
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {look}/>'
    if kind == "square":
        return f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" height="{2 * size}" {look}/>'
    points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in ((0, -1.25), (1.2, 0.95), (-1.2, 0.95)))
    return f'<polygon points="{points}" {look}/>'


def frame(left, title, below):
    """Return the title, the map's frame and the time line of one half."""
    parts = [
        text(left, 34, title, 19, weight="bold"),
        text(left, 58, below, 14, colour="#444444"),
        f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{TALL}" fill="#fafafa" stroke="#bbbbbb"/>',
        text(left, AXIS - 18, "when", 13, colour="#444444"),
    ]
    for hour in range(HOURS[0], HOURS[1] + 1, 3):
        x = left + 52 + (hour - HOURS[0]) / (HOURS[1] - HOURS[0]) * (SIDE - 64)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{AXIS - 10}" y2="{AXIS + 84}" stroke="{PALE}"/>')
        parts.append(text(x, AXIS + 102, f"{hour:02d}:00", 12, "middle", colour="#444444"))
    return parts


def scale_bar(left, scale):
    """Return a bar of one kilometre (ten cells of 100 m)."""
    x, y, long = left + 14, TOP + TALL - 14, 10 * scale
    return [
        f'<path d="M{x:.1f},{y - 4} v4 h{long:.1f} v-4" fill="none" stroke="{INK}"/>',
        text(x + long + 6, y, "1 km", 12),
    ]


def before(people, group, plan):
    """Return the left half: everybody's samples on the map and in time."""
    parts = frame(LEFT, "Before: three people", "A few known points are enough to find a person.")
    for row, (user, (name, colour, kind, dash)) in enumerate(zip(group, PEOPLE, strict=True)):
        samples = people.user(user)
        # A few pixels to the side, so that people at the same tower do not hide each other.
        places = [plan.place(LEFT + 6 * (row - 1), x + 0.5, y + 0.5) for _, x, y in samples]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}" stroke-opacity="0.8"/>'
        )
        parts += [marker(x, y, kind, colour) for x, y in places]
        level = AXIS + 8 + 30 * row
        parts.append(text(LEFT, level + 5, name, 14, weight="bold", colour=colour))
        start, end = (plan.time(LEFT, plan.day + 60 * hour) for hour in HOURS)
        parts.append(f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{level}" y2="{level}" stroke="#cccccc"/>')
        parts += [marker(plan.time(LEFT, t + 0.5), level, kind, colour) for t, _, _ in samples]
    return parts + scale_bar(LEFT, plan.scale)


def after(boxes, plan):
    """Return the right half: the boxes on the map, and the same boxes in time for everybody."""
    title = "After: the same record for all three"
    parts = frame(RIGHT, title, "All three were in every box. Nothing tells them apart.")
    numbers, corners = [], {}
    for number, (t0, t1, x0, x1, y0, y1) in enumerate(boxes.tolist(), 1):
        left, top = plan.place(RIGHT, x0, y1 + 1)
        right, bottom = plan.place(RIGHT, x1 + 1, y0)
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
            f'fill="{BOX}" fill-opacity="0.35" stroke="{BOX_EDGE}" stroke-width="2"/>'
        )
        corners.setdefault((left, top, right, bottom), []).append(str(number))
        start, end = plan.time(RIGHT, t0), plan.time(RIGHT, t1 + 1)
        for row in range(K):
            level = AXIS + 8 + 30 * row
            parts.append(
                f'<rect x="{start:.1f}" y="{level - 10}" width="{max(end - start, 3):.1f}" height="20" '
                f'fill="{BOX}" fill-opacity="0.35" stroke="{BOX_EDGE}" stroke-width="1.5"/>'
            )
            numbers.append(((start + end) / 2, level + 5, str(number)))
    parts += [text(x, y, words, 14, "middle", "bold", "#3f2359") for x, y, words in numbers]
    for (left, top, _, _), here in corners.items():
        parts.append(text(left + 5, top + 17, ", ".join(here), 13, weight="bold", colour="#3f2359"))
    for row in range(K):
        parts.append(text(RIGHT, AXIS + 13 + 30 * row, "who?", 14, weight="bold", colour="#666666"))
    return parts + scale_bar(RIGHT, plan.scale)


def draw():
    """Write the picture. The same code gives the same file."""
    table = shoal.synthesize(users=USERS, scene="town", days=1, samples=SAMPLES, seed=SEED)
    people = shoal.from_arrow(table)
    release = shoal.Shoal(k=K).anonymize(people)
    group, boxes = clearest(people, release)
    day = int(boxes[:, 0].min()) // 1440 * 1440
    plan = Map(boxes, day)
    said = "The paths of three people on a map and in time, and the boxes in which all three are published."
    left, right = before(people, group, plan), after(boxes, plan)
    write("group.svg", said, WIDTH, HEIGHT, [*left, *right])
    below = f'<g transform="translate({LEFT - RIGHT} {HEIGHT})">'
    write("group-narrow.svg", said, NARROW, 2 * HEIGHT, [*left, below, *right, "</g>"])


def write(name, said, width, height, parts):
    """Write a picture; `said` is what a screen reader says."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    look = f'font-family="Helvetica, Arial, sans-serif" role="img" aria-label="{said}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>',
        f"<title>{said}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        *parts,
        "</svg>",
    ]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    draw()
