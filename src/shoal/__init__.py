"""Publish people's trajectories so that everyone is hidden among at least k, and prove it on the file.

>>> import shoal
>>> boxes, cost = shoal.k_merge([[(0, 0, 0), (9, 5, 5)], [(1, 0, 2), (9, 5, 5)]])
>>> boxes.tolist(), cost
([[0, 1, 0, 0, 0, 2], [9, 9, 5, 5, 5, 5]], 10.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal import methods
    from shoal.attacks import Outcome, attack
    from shoal.claim import Claim
    from shoal.comparison import Compared, compare
    from shoal.errors import CannotCheck, NotVerified, SettingsError, ShoalError
    from shoal.frame import Frame
    from shoal.measure import Gaps, Unicity, k_gap, stretch_effort
    from shoal.measure.unicity import unicity
    from shoal.merge import k_merge
    from shoal.methods import (
        GeoIndistinguishability,
        Glove,
        KConcealment,
        KScale,
        KteHide,
        Method,
        Promesse,
        Shoal,
        Uniform,
    )
    from shoal.pipeline import Published, publish
    from shoal.reading import ReadOptions, from_arrow, from_geopandas, from_pandas, from_polars, read, read_traces
    from shoal.release import Release
    from shoal.run import Run
    from shoal.seen import read_release
    from shoal.signing import SigningKey, sign
    from shoal.synth import synthesize
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories
    from shoal.utility.evaluate import Evaluation, evaluate
    from shoal.verifier import Verdict, verify, verify_signature

__version__ = "0.1.0"

# Type checkers need every public name written here and above, those of methods too.
__all__ = [
    "CannotCheck",
    "Claim",
    "Compared",
    "Evaluation",
    "Frame",
    "Gaps",
    "GeoIndistinguishability",
    "Glove",
    "KConcealment",
    "KScale",
    "KteHide",
    "Method",
    "NotVerified",
    "Outcome",
    "Promesse",
    "Published",
    "ReadOptions",
    "Release",
    "Run",
    "SettingsError",
    "Shoal",
    "ShoalError",
    "SigningKey",
    "Traces",
    "Trajectories",
    "Unicity",
    "Uniform",
    "Verdict",
    "attack",
    "compare",
    "evaluate",
    "from_arrow",
    "from_geopandas",
    "from_pandas",
    "from_polars",
    "k_gap",
    "k_merge",
    "methods",
    "publish",
    "read",
    "read_release",
    "read_traces",
    "sign",
    "stretch_effort",
    "synthesize",
    "unicity",
    "verify",
    "verify_signature",
]

# The modules of all names but the methods' classes, which the registry knows. They are imported on first use, so that
# `shoal --help` does not pay for numba, DuckDB and PROJ.
_HOME = {
    "CannotCheck": "errors",
    "Claim": "claim",
    "Compared": "comparison",
    "Evaluation": "utility",
    "Frame": "frame",
    "Gaps": "measure",
    "Method": "methods",
    "NotVerified": "errors",
    "Outcome": "attacks",
    "Published": "pipeline",
    "ReadOptions": "reading",
    "Release": "release",
    "Run": "run",
    "SettingsError": "errors",
    "ShoalError": "errors",
    "SigningKey": "signing",
    "Traces": "traces",
    "Trajectories": "trajectories",
    "Unicity": "measure",
    "Verdict": "verifier",
    "attack": "attacks",
    "compare": "comparison",
    "evaluate": "utility",
    "from_arrow": "reading",
    "from_geopandas": "reading",
    "from_pandas": "reading",
    "from_polars": "reading",
    "k_gap": "measure",
    "k_merge": "merge",
    "publish": "pipeline",
    "read": "reading",
    "read_release": "seen",
    "read_traces": "reading",
    "sign": "signing",
    "stretch_effort": "measure",
    "synthesize": "synth",
    "unicity": "measure",
    "verify": "verifier",
    "verify_signature": "verifier",
}


def __getattr__(name: str) -> Any:
    if name == "methods":
        return importlib.import_module("shoal.methods")
    if name in _HOME:
        return getattr(importlib.import_module(f"shoal.{_HOME[name]}"), name)
    if name[:1].isupper():  # as classes are named; modules are not, and need no method to be imported
        for method in importlib.import_module("shoal.methods").METHODS.values():
            if method.__name__ == name:
                return method
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
