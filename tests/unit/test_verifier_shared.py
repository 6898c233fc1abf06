"""What the verifier shares with the code that makes releases is what it says."""

import ast
import re
from pathlib import Path

import shoal
from shoal import verifier

SOURCE = Path(shoal.__file__).parent
SHARED = {
    *("reading.options", "reading.parts", "reading.times", "reading.days", "reading.traces"),
    *("claim", "frame", "layouts", "release", "traces", "trajectories"),
    *("arrow", "errors", "folders", "jit", "lists", "memory", "notebook", "parallel", "run", "units"),
}
MAKERS = {"methods", "search", "kernels", "merge", "measure", "publishing"}


def imported(room):
    """Return the modules of ours that a room imports at run time, inside functions too."""
    found = set()
    for module in (SOURCE / room).rglob("*.py"):
        tree = ast.parse(module.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
                node.body = []
        names = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        found |= {name.removeprefix("shoal.") for name in names if name.startswith("shoal.")}
    return {name for name in found if name.partition(".")[0] not in ("seen", "verifier")}


def test_the_verifier_shares_what_it_says_and_no_more():
    assert imported("seen") | imported("verifier") == SHARED
    said = set(re.findall(r"`([a-z.]+)`", verifier.__doc__)) - {"seen", "reading"}
    assert said == SHARED | MAKERS
