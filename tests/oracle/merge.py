"""k-merge by trying every partition of the slots (kte-hide, Sec. III-C; k-scale, Eq. 4)."""

from itertools import combinations, pairwise


def box_of(samples):
    ts, xs, ys = zip(*samples, strict=True)
    return (min(ts), max(ts), min(xs), max(xs), min(ys), max(ys))


def box_cost(box):
    """kte-hide Eq. 1-2: Δt · (Δx + Δy), spans count the granule itself."""
    t0, t1, x0, x1, y0, y1 = box
    return (t1 - t0 + 1) * ((x1 - x0 + 1) + (y1 - y0 + 1))


def additive(box, worth, root=False):
    """Δs/s₀ + Δt/t₀, or the sum of their roots, with the mean side Δs = (Δx+Δy)/2."""
    t0, t1, x0, x1, y0, y1 = box
    parts = ((x1 - x0 + 1) + (y1 - y0 + 1)) / 2 / worth[0], (t1 - t0 + 1) / worth[1]
    return sum(part**0.5 if root else part for part in parts)


def holds(box, sample):
    t0, t1, x0, x1, y0, y1 = box
    t, x, y = sample
    return t0 <= t <= t1 and x0 <= x <= x1 and y0 <= y <= y1


def cost_of(boxes, trajectories, objective, price=box_cost):
    """The cost of given boxes, from the definitions alone; a sample's box is the one that holds its time."""

    def box_at(t):
        (box,) = [b for b in boxes if b[0] <= t <= b[1]]
        return box

    def owner_cost(samples):  # k-scale Eq. 4
        return sum(price(box_at(t)) for t, _, _ in samples) / len(samples)

    if objective == "sum":  # kte-hide Eq. 3
        return sum(map(price, boxes))
    if objective == "owner":
        return owner_cost(trajectories[0])
    return sum(map(owner_cost, trajectories))


def all_partitions(trajectories):
    """Every complete, time-coherent partition, as lists of boxes (elementary or not)."""
    slots = sorted({t for samples in trajectories for t, _, _ in samples})
    for n_cuts in range(len(slots)):
        for cuts in combinations(range(1, len(slots)), n_cuts):
            edges = [0, *cuts, len(slots)]
            parts = [set(slots[a:b]) for a, b in pairwise(edges)]
            inside = [[[s for s in samples if s[0] in part] for samples in trajectories] for part in parts]
            if all(all(of_one) for of_one in inside):
                yield [box_of([s for of_one in part for s in of_one]) for part in inside]


def cheapest(trajectories, objective, price=box_cost):
    """The least cost over all partitions."""
    return min(cost_of(boxes, trajectories, objective, price) for boxes in all_partitions(trajectories))
