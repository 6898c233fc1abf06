"""Scramble bits, for the seeds, draws and hash tables of kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.jit import jit

__all__ = ["GOLDEN", "MIX_1", "MIX_2", "Words", "mix"]

Words = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


@jit
def mix(z: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finalizer of SplitMix64, a bijection)."""
    z = (z ^ (z >> _S30)) * MIX_1
    z = (z ^ (z >> _S27)) * MIX_2
    return z ^ (z >> _S31)
