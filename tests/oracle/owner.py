"""Slow twins of the owner attack: one user and one record at a time, by the words of the definitions."""

import math

import numpy as np


def cost(box):
    t0, t1, x0, x1, y0, y1 = box
    return (t1 - t0 + 1) * (x1 - x0 + y1 - y0 + 2)


def inside(box, sample):
    return all(box[2 * axis] <= sample[axis] <= box[2 * axis + 1] for axis in range(3))


def hull(samples):
    return [edge for axis in zip(*samples, strict=True) for edge in (min(axis), max(axis))]


def covers(boxes, samples):
    """Two-way: every sample in a box, every box with a sample."""
    return all(any(inside(b, s) for b in boxes) for s in samples) and all(
        any(inside(b, s) for s in samples) for b in boxes
    )


def pair_features(samples, boxes):
    """Return the features of a user and a record that covers her, those about her other records left out."""
    held = [[s for s in samples if inside(box, s)] for box in boxes]
    costs = [cost(box) for box in boxes]
    long = [box[1] - box[0] + 1 for box in boxes]
    wide = [box[3] - box[2] + box[5] - box[4] + 2 for box in boxes]
    weights = [len(mine) for mine in held]

    def per_box(values):
        return sum(values) / len(boxes)

    def per_sample(values):
        return sum(v * w for v, w in zip(values, weights, strict=True)) / len(samples)

    logs = [math.log(c) for c in costs]
    touched = [[hull(mine)[face] == box[face] for face in range(6)] for mine, box in zip(held, boxes, strict=True)]
    in_time = [sum(faces[:2]) / 2 for faces in touched]
    in_space = [sum(faces[2:]) / 4 for faces in touched]
    own = [hull(mine) for mine in held]
    tight_time = [math.log((h[1] - h[0] + 1) / n) for h, n in zip(own, long, strict=True)]
    tight_space = [math.log((h[3] - h[2] + h[5] - h[4] + 2) / n) for h, n in zip(own, wide, strict=True)]
    tight = [a + b for a, b in zip(tight_time, tight_space, strict=True)]
    several = [b for b in range(len(boxes)) if weights[b] > 1]
    mean = len(samples) / len(boxes)
    return {
        "owner_cost": math.log(per_sample(costs)),
        "box_cost": math.log(per_box(costs)),
        "cost_ratio": math.log(per_sample(costs) / per_box(costs)),
        "log_cost": per_sample(logs),
        "log_box_cost": per_box(logs),
        "log_cost_ratio": per_sample(logs) - per_box(logs),
        "duration": math.log(per_sample(long)),
        "sides": math.log(per_sample(wide)),
        "log_duration": per_sample([math.log(n) for n in long]),
        "log_sides": per_sample([math.log(n) for n in wide]),
        "log_box_duration": per_box([math.log(n) for n in long]),
        "log_box_sides": per_box([math.log(n) for n in wide]),
        "boxes": math.log(len(boxes)),
        "single": per_box([w == 1 for w in weights]),
        "most_held": math.log(max(weights)),
        "held_spread": float(np.std(weights)) / mean,
        "faces_time": per_box(in_time),
        "faces_space": per_box(in_space),
        "faces_time_by_sample": per_sample(in_time),
        "faces_space_by_sample": per_sample(in_space),
        "faces_time_each": per_box([f / w for f, w in zip(in_time, weights, strict=True)]),
        "faces_space_each": per_box([f / w for f, w in zip(in_space, weights, strict=True)]),
        "ends": touched[0][0] + touched[-1][1],
        "tight": per_box(tight),
        "tight_by_sample": per_sample(tight),
        "tight_time": per_box(tight_time),
        "tight_space": per_box(tight_space),
        "tight_several": sum(tight[b] for b in several) / max(1, len(several)),
        **better_cuts(held, boxes, len(samples) * per_sample(costs)),
    }


def better_cuts(held, boxes, total):
    ways = ("hopeful", "careful", "shrinking")
    saved = {way: [0.0] * len(boxes) for way in ways}
    movable = set()
    for b, mine in enumerate(held):
        for other, step in ((b + 1, 1), (b - 1, -1)):
            if not 0 <= other < len(boxes):
                continue
            best = dict.fromkeys(ways, 0.0)
            for cut in sorted({s[0] for s in mine}):
                moved = [s for s in mine if (s[0] >= cut if step == 1 else s[0] <= cut)]
                if len(moved) == len(mine):
                    continue
                movable.add(b)
                for way, gain in gains(mine, moved, len(held[other]), boxes[b], boxes[other], cut, step).items():
                    best[way] = max(best[way], gain)
            for way in ways:
                saved[way][b] += best[way]
    features = {"movable": len(movable) / len(boxes)}
    for way in ways:
        features[f"saving_{way}"] = math.log(1e-3 + sum(saved[way]) / total)
        features[f"savings_{way}"] = sum(s > 0 for s in saved[way]) / max(1, len(movable))
        features[f"saving_boxes_{way}"] = sum(s > 0 for s in saved[way]) / len(boxes)
    return features


def gains(mine, moved, others, ours, theirs, cut, step):
    first, last = (cut, theirs[1]) if step == 1 else (theirs[0], cut)
    part = hull(moved)

    def grown(sides):
        x0, x1 = min(theirs[2], sides[0]), max(theirs[3], sides[1])
        y0, y1 = min(theirs[4], sides[2]), max(theirs[5], sides[3])
        return cost([first, last, x0, x1, y0, y1])

    n = len(moved)
    now = n * cost(ours) + others * cost(theirs)
    hopeful = now - (n + others) * grown(part[2:])
    careful = now - (n + others) * grown(ours[2:])
    shorter = [ours[0], cut - 1, *ours[2:]] if step == 1 else [cut + 1, *ours[1:]]
    shrinking = hopeful + (len(mine) - n) * (cost(ours) - cost(shorter))
    return {"hopeful": hopeful, "careful": careful, "shrinking": shrinking}


def shared_times(samples, records):
    """Give, for each of a user's records, the features about times that her other records have too."""
    edges = [{edge for box in boxes for edge in box[:2]} for boxes in records]
    answers = []
    for at, boxes in enumerate(records):
        foreign = []
        for box in boxes:
            own = hull([s for s in samples if inside(box, s)])
            foreign += [box[face] for face in (0, 1) if own[face] != box[face]]
        elsewhere = [sum(time in edges[r] for r in range(len(records)) if r != at) for time in foreign]
        answers.append(
            {
                "shared": sum(elsewhere) / max(1, len(foreign)) / max(1, len(records) - 1),
                "shared_some": sum(e > 0 for e in elsewhere) / max(1, len(foreign)),
                "shared_number": math.log1p(sum(elsewhere)),
                "foreign": math.log1p(len(foreign)),
            }
        )
    return answers


def intersection(sample, records):
    """Intersect, over records, the box that holds a sample."""
    boxes = [next(box for box in boxes if inside(box, sample)) for boxes in records]
    return [max(b[face] for b in boxes) if face % 2 == 0 else min(b[face] for b in boxes) for face in range(6)]
