"""k^(τ,ε)-anonymity the slow and obvious way (kte-hide, Sec. III-E to G), from lists of samples (t, x, y)."""

from itertools import combinations

import shoal


def epochs(people, length, first):
    """Give, for each user, her samples by epoch: epoch e is the slots first + e·length … (Sec. III-E)."""
    everyone = []
    for user in range(len(people)):
        own = {}
        for sample in people.user(user).tolist():
            own.setdefault((sample[0] - first) // length, []).append(tuple(sample))
        everyone.append(own)
    return everyone


def published(everyone, suppressed):
    """Return the same without the suppressed (user, epoch)."""
    return [{e: s for e, s in own.items() if (u, e) not in suppressed} for u, own in enumerate(everyone)]


def active_epochs(own, window, span):
    return frozenset(e for e in own if window <= e < window + span)


def all_windows(everyone, ratio):
    """Return the windows that need hiding sets, and their length: one, if one is as long as all the data."""
    used = {e for own in everyone for e in own}
    n_epochs = max(used) + 1
    if n_epochs <= ratio + 1:
        return [0], n_epochs
    return list(range(-ratio, n_epochs)), ratio + 1


def faults(everyone, sets, windows, k, most_shared):
    """Say what is wrong with hiding sets: sets[window, user] are those whom the user's record takes in.

    `windows` are those of `all_windows`, `everyone` has published samples only.

    Everyone with samples in a window takes in k-1 others and is taken in by k-1 others (k-pick, Sec. III-F) whose
    activity in it is the same. Of those who take a user in in a window, at most `most_shared` take her in in any one
    epoch outside of it in which she has samples (the reuse constraint, Sec. III-E).
    """
    found = []
    windows, span = windows
    takers = {}
    for m in windows:
        for u, own in enumerate(everyone):
            activity = active_epochs(own, m, span)
            others = sets.get((m, u), [])
            if not activity:
                if others:
                    found.append(("idle", m, u))
                continue
            if len(set(others)) != k - 1 or u in others:
                found.append(("size", m, u))
            if any(active_epochs(everyone[v], m, span) != activity for v in others):
                found.append(("activity", m, u))
            for v in others:
                takers.setdefault((m, v), set()).add(u)
        for u, own in enumerate(everyone):
            if active_epochs(own, m, span) and len(takers.get((m, u), ())) != k - 1:
                found.append(("taken", m, u))
    for (m, u), hiding in takers.items():
        for e in everyone[u]:
            if m <= e < m + span:
                continue
            there = set().union(*(takers.get((w, u), ()) for w in windows if w <= e < w + span))
            if len(hiding & there) > most_shared:
                found.append(("reuse", m, u))
    return found


def records(everyone, sets, windows):
    """Return every user's boxes: in each epoch, the k-merge of her samples with those of her hiding sets there."""
    windows, span = windows
    answer = []
    for u, own in enumerate(everyone):
        boxes = []
        for e in sorted(own):
            members = {v for m in windows if m <= e < m + span for v in sets.get((m, u), ())}
            boxes += shoal.k_merge([own[e], *(everyone[v][e] for v in sorted(members))], "sum")[0].tolist()
        answer.append(boxes)
    return answer


def can_be_hidden(n, allowed):
    """Whether everyone of 0…n-1 can take in another one, each taken in once; arcs (a, b) in `allowed` (by Hall)."""
    for size in range(1, n + 1):
        for some in combinations(range(n), size):
            if len({b for a in some for b in range(n) if (a, b) in allowed}) < size:
                return False
    return True
