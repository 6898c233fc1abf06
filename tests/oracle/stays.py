"""Stays and places, fix by fix: slow and obvious (Hariharan and Toyama 2004; Promesse, Def. 1-4)."""


def stays(fixes, distance, diameter, least):
    """Return the stays of a trace, lists of fixes (ms, place): grow a run while it is small, keep it if it is long."""
    found, run = [], []
    for fix in fixes:
        while run and any(distance(other[1], fix[1]) > diameter for other in run):
            if len(run) > 1 and run[-1][0] - run[0][0] >= least:
                found.append(run)
                run = []
            else:
                run = run[1:]
        run = [*run, fix]
    if len(run) > 1 and run[-1][0] - run[0][0] >= least:
        found.append(run)
    return found


def score(real, seen, distance, limit):
    """Return precision, recall and F-score of places found."""
    matched = set()
    for q in seen:
        near = [(distance(p, q), n) for n, p in enumerate(real)]
        if near and min(near)[0] <= limit:
            matched.add(min(near)[1])
    precision = len(matched) / len(seen) if seen else 0.0
    recall = len(matched) / len(real)
    return precision, recall, 2 * precision * recall / (precision + recall) if matched else 0.0
