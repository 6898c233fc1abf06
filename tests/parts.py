"""What the parts of the verifier are given, made of plain lists."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from shoal.seen.original import Original
from shoal.seen.records import Records


def starts(lists):
    """Return where each list starts, and where the last ends, if they follow each other."""
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


def original(lists, labels=None, *, kind=np.int32):
    """Return people of these lists of (t, x, y), in this order; somebody may have no sample."""
    columns = np.array([sample for own in lists for sample in own], dtype=kind).reshape(-1, 3).T.copy()
    return Original(pa.array(labels or [f"p{n}" for n in range(len(lists))]), starts(lists), *columns)


def records_of(lists, weights=None, *, kind=np.int32, **more):
    """Return records of these lists of boxes as they are, identical ones too."""
    boxes = np.array([box for own in lists for box in own], dtype=kind).reshape(-1, 6)
    return Records(starts(lists), boxes, np.array(weights or [1] * len(lists), dtype=np.int64), **more)


def is_sound(boxes):
    """Return whether boxes are a record: some, none of them empty, one after the other in time."""
    full = all(low <= high for box in boxes for low, high in zip(box[::2], box[1::2], strict=True))
    return bool(boxes) and full and all(one[1] < two[0] for one, two in pairwise(boxes))
