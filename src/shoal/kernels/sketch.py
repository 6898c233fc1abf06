"""Time sketches: estimate who is cheap to merge with, without merging.

The duration is cut into as many equal slots as the sketch is long. For each, a sketch holds the position and the
time of the user's sample nearest to the slot's centre, and the share of their samples that lie in the slot. The
distance of two users

    d = Σ over slots of (share + share') · (|Δx| + |Δy| + near) · (|Δt| + soon)

has the shape of what k-merge minimises: a box costs duration × extent, once for every sample in it. By another price
(kernels/price.py), it costs that price of the two.

Sketches stand in blocks of LANES users, (blocks, slots, 4, LANES): a distance is summed slot by slot in one fixed
order, whatever the width of the machine's vectors, and a whole block is left as soon as nobody in it can be near.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.price import PRODUCT, SUM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Ints
    from shoal.kernels.price import Price
    from shoal.kernels.samples import Samples

    Floats32 = NDArray[np.float32]

__all__ = ["LANES", "Sketching", "fill_sketches", "nearest_by_sketch"]

LANES = 64
_STEP = 8  # slots between two checks of the bound


class Sketching(NamedTuple):
    """How sketches are made and compared: slot s spans [first + s·width, first + (s+1)·width).

    `near` cells and `soon` slots of time are added to every difference: what makes none between partners. `price` is
    that of a box.
    """

    first: float
    width: float
    slots: int
    near: float
    soon: float
    price: Price


@jit
def fill_sketches(samples: Samples, users: Ints, how: Sketching, floor: float, sketches: Floats32) -> None:
    """Write the sketches of some users into blocks.

    Every slot's share is raised by `floor`. Positions are relative to the first user's first sample, which keeps
    them exact in 32 bits for any country. Lanes after the last user are left as they are.
    """
    t, x, y, offsets = samples
    first, width, n_slots = how.first, how.width, how.slots
    x_from = np.float64(x[offsets[users[0]]])
    y_from = np.float64(y[offsets[users[0]]])
    for n in range(len(users)):
        at = sketches[n // LANES]
        lane = n % LANES
        p = offsets[users[n]]
        end = offsets[users[n] + 1]
        share = np.float32(1.0 / (end - p))
        for s in range(n_slots):
            at[s, 3, lane] = floor
        for q in range(p, end):
            s = min(n_slots - 1, max(0, int((t[q] - first) / width)))
            at[s, 3, lane] += share
        for s in range(n_slots):
            centre = first + (s + 0.5) * width
            while p + 1 < end and abs(t[p + 1] - centre) <= abs(t[p] - centre):
                p += 1
            at[s, 0, lane] = x[p] - x_from
            at[s, 1, lane] = y[p] - y_from
            at[s, 2, lane] = t[p] - centre


class _Price32(NamedTuple):
    """What is added to differences, and the price of both, with 32 bits."""

    near: np.float32
    soon: np.float32
    kind: int
    time: np.float32
    side: np.float32


@jit
def _block_distances(query: Floats32, block: Floats32, price: _Price32, bound: float, out: Floats32) -> bool:
    """Fill the distances of a query to a block's users; False if all of them are sure to exceed `bound`."""
    n_slots = len(query)
    for lane in range(LANES):
        out[lane] = np.float32(0.0)
    s = 0
    while s < n_slots:
        for r in range(s, min(s + _STEP, n_slots)):
            x = query[r, 0]
            y = query[r, 1]
            t = query[r, 2]
            share = query[r, 3]
            for lane in range(LANES):
                apart = abs(block[r, 0, lane] - x) + abs(block[r, 1, lane] - y) + price.near
                later = abs(block[r, 2, lane] - t) + price.soon
                weight = block[r, 3, lane] + share
                if price.kind == PRODUCT:
                    out[lane] += weight * apart * later
                elif price.kind == SUM:
                    out[lane] += weight * (price.side * apart + price.time * later)
                else:
                    out[lane] += weight * (np.sqrt(price.side * apart) + np.sqrt(price.time * later))
        s += _STEP
        least = out[0]
        for lane in range(1, LANES):
            least = min(least, out[lane])
        if least > bound:
            return False
    return True


@jit
def _push(key: Floats32, index: Ints, distance: float, user: int) -> None:
    """Replace the root of a max-heap of (key, index) and restore its order."""
    size = len(key)
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (key[right] > key[child] or (key[right] == key[child] and index[right] > index[child])):
            child = right
        if key[child] < distance or (key[child] == distance and index[child] < user):
            break
        key[at] = key[child]
        index[at] = index[child]
        at = child
    key[at] = distance
    index[at] = user


@jit
def nearest_by_sketch(sketches: Floats32, n_users: int, how: Sketching, start: int, nearest: Ints) -> None:
    """Fill nearest[u - start], for as many users as it has rows, with the K users at least distance, nearest first.

    Exact; ties go to the lower index. Blocks are visited outwards from the user's own, so users that stand near
    each other in the blocks should be near each other in space. K = nearest.shape[1] < n_users.
    """
    n_blocks, n_slots = sketches.shape[0], sketches.shape[1]
    near, soon = np.float32(how.near), np.float32(how.soon)
    price = _Price32(near, soon, how.price.kind, np.float32(how.price.time), np.float32(how.price.side))
    size = nearest.shape[1]
    key = np.empty(size, np.float32)
    index = np.empty(size, np.int64)
    query = np.empty((n_slots, 4), np.float32)
    distances = np.empty(LANES, np.float32)
    for u in range(start, start + len(nearest)):
        own = u // LANES
        for s in range(n_slots):
            for part in range(4):
                query[s, part] = sketches[own, s, part, u % LANES]
        for r in range(size):
            key[r] = np.inf
            index[r] = n_users
        for step in range(2 * n_blocks):
            block = own + (step + 1) // 2 if step % 2 else own - step // 2
            if block < 0 or block >= n_blocks:
                continue
            if not _block_distances(query, sketches[block], price, key[0], distances):
                continue
            for lane in range(min(LANES, n_users - block * LANES)):
                v = block * LANES + lane
                d = distances[lane]
                if v != u and (d < key[0] or (d == key[0] and v < index[0])):
                    _push(key, index, d, v)
        for r in range(size - 1, -1, -1):  # the farthest goes last, and nothing takes its place
            nearest[u - start, r] = index[0]
            _push(key, index, -1.0, n_users)
