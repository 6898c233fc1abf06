"""Configuration files: TOML with keys, types and nesting that no command has, given to a command that reads nothing."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.case import Broken, Case, Kind
from tests.fuzz.mutate import TEXTS, any_bytes, lines, near, value

if TYPE_CHECKING:
    from random import Random

_TABLES: dict[str, dict[str, tuple[Any, ...]]] = {
    "read": {
        "columns": ({"user": "uid", "time": "datetime"}, "user=uid"),
        "tz": ("Africa/Dakar", "+02:00"),
        "time-unit": ("s", "auto"),
        "time_format": ("dmy", "%d.%m.%Y %H:%M"),
        "encoding": ("cp1252",),
        "crs": ("EPSG:32628", "+proj=laea +lat_0=40 +lon_0=116"),
        "cell": ("500m", 100),
        "slot": ("30min", 60),
        "cells": ("cells.csv",),
        "min-samples": (2,),
        "min-active-days": (1,),
        "bbox": ([-18, 12, -11, 17], "-18,12,-11,17"),
        "period": (["2026-03-01", "2026-03-15"],),
        "strict": (True, False),
        "confirm": (["one-sample"], "swapped,zero-zero"),
        "align-days": (0,),
        "split-gap": ("4h",),
    },
    "anonymize": {
        "k": (5, 2),
        "method": ("shoal", "k-scale", "promesse", "glove"),
        "max-span": ("10km",),
        "max-duration": ("2h",),
        "step": ("200m",),
        "epsilon": ("0.01",),
        "audit": ("audit.parquet",),
        "overwrite": (True,),
        "seed": (1,),
        "threads": (1, 2),
        "memory": ("1GB",),
        "work-dir": (".",),
        "ledger": ("people.ledger",),
        "resume": (False,),
    },
    "inspect": {"threads": (1,), "memory": ("1GB",)},
    "verify": {"k": (5,), "tau": ("60min",), "max-suppressed": (0.1,), "exact": (True,), "claim": ("cover",)},
    "measure": {"k": ("2,5", [2, 5]), "unicity": (True,), "points": ([1, 2],), "resolution": ("native,1km/1h",)},
    "attack": {"attack": ("points", "all"), "points": (4,), "victims": (10,)},
    "compare": {"methods": (["shoal", "k-scale"],), "k": ([2, 5],)},
    "evaluate": {"seed": (1,)},
    "synth": {"users": (10,), "kind": ("gps",), "scene": ("town",)},
}


def _toml(draw: Random, item: Any) -> str:
    """Return a value as TOML writes it, or nearly."""
    if isinstance(item, bool) or item is None:
        return str(item).lower()
    if isinstance(item, str):
        quoted = item.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"' if draw.random() < 0.9 or "'" in item else f"'{item}'"
    if isinstance(item, list):
        return "[" + ", ".join(_toml(draw, part) for part in item) + "]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{_toml(draw, key)} = {_toml(draw, part)}" for key, part in item.items()) + "}"
    return str(item)


def _odd(draw: Random, item: Any) -> str:
    """Return another value, in a form that only TOML has sometimes."""
    forms = (
        "2026-03-01T07:31:37Z",
        "07:31:37",
        "0xFF",
        "1_000",
        "+inf",
        "nan",
        "1e400",
        "'''\n'''",
        '"\\u0000"',
        "[[[[]]]]",
    )
    return draw.choice((draw.choice(forms), _toml(draw, value(draw)), _toml(draw, near(draw, item))))


def draw_configuration(draw: Random) -> Case:
    command = draw.choice(("inspect", "anonymize", "anonymize", "verify", "measure", "attack", "compare", "evaluate"))
    text = ""
    for name in draw.sample(["read", command, draw.choice(list(_TABLES))], draw.randint(1, 3)):
        known = _TABLES.get(name, {})
        text += (
            f"[{name}]\n"
            if draw.random() < 0.95
            else draw.choice((f"[[{name}]]\n", f"[{name}.more]\n", "", f"[{draw.choice(TEXTS)}]\n"))
        )
        for key in draw.sample(list(known), min(len(known), draw.randint(0, 4))):
            item = draw.choice(known[key])
            written = _odd(draw, item) if draw.random() < 0.25 else _toml(draw, item)
            text += (
                f"{key if draw.random() < 0.97 else draw.choice((f'{key}x', key.upper(), f'{key}.a'))} = {written}\n"
            )
    data = text.encode("utf-8", "surrogatepass")
    if draw.random() < 0.15:
        data = any_bytes(draw, data, 3)
    if draw.random() < 0.1:
        data = lines(draw, data)
    if draw.random() < 0.01:
        data = b"[read]\ntz = " + b"[" * draw.choice((100, 5_000)) + b"]" * 5_000
    return Case({"c.toml": data}, {"command": command})


def answer(case: Case, folder: Path) -> tuple[Any, str]:
    """Give the file to a command whose data is not there; return its exit code and what it says of errors."""
    from shoal.cli import main

    told = {
        "inspect": ["no.csv"],
        "anonymize": ["no.csv", "out.parquet"],
        "verify": ["no.csv", "no.parquet"],
        "measure": ["no.csv"],
        "attack": ["no.csv", "no.parquet"],
        "compare": ["no.csv"],
        "evaluate": ["no.csv", "no.parquet"],
    }[case.options["command"]]
    out, err = io.StringIO(), io.StringIO()
    here = Path.cwd()
    os.chdir(folder)
    os.environ["SHOAL_DEBUG"] = "1"  # an error that is not ours is raised as it is
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main([case.options["command"], *told, "--config", "c.toml"])
    except SystemExit as end:
        code = end.code
    finally:
        del os.environ["SHOAL_DEBUG"]
        os.chdir(here)
    return code, err.getvalue()


def act(case: Case, folder: Path) -> Any:
    """Give the file to a command: it ends with code 2 and a line that says why."""
    code, said = answer(case, folder)
    if code != 2 or not any(line.startswith("shoal: ") for line in said.splitlines()):
        raise Broken("wrong", f"exit code {code}")
    return ""  # a setting is no data, so a message may name it


TOML = Kind("toml", draw_configuration, act)
