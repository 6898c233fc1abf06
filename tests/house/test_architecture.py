"""The house rules that a machine can check: import direction, public names, sizes, words."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from shoal.methods import METHODS
from shoal.reading.options import ReadOptions
from shoal.run import Limits

SOURCE = Path(shoal.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# What each room may import of ours, besides the rooms at the ground floor.
GROUND = {
    "arrow", "claim", "coredumps", "errors", "figures", "folders", "frame", "interrupt", "intervals", "jit",
    "kernelcache", "layouts", "lists", "memory", "names", "notebook", "parallel", "parts", "private",
    "progress", "regular", "release", "run", "settings", "store", "stores", "streams", "switch", "traces",
    "trajectories", "units",
}  # fmt: skip
MAY_IMPORT = {
    "kernels": set(),
    "reading": {"kernels"},
    "publishing": {"reading"},
    "seen": {"reading"},
    "merge": {"kernels"},
    "search": {"kernels", "measure"},
    "measure": {"kernels", "search", "merge"},
    "synth": {"kernels", "reading"},
    "methods": {"kernels", "search", "measure", "merge", "reading"},
    "verifier": {"reading", "seen"},
    "attacks": {"kernels", "measure", "reading", "seen"},
    "utility": {"kernels", "reading", "seen"},
    "judgement": {"methods"},
    "signing": {"publishing", "seen", "verifier"},
    "pipeline": {"judgement", "methods", "publishing", "reading", "verifier"},
    "tables": {"reading"},
    "comparison": {"attacks", "measure", "methods", "seen", "tables", "utility"},
    "testing": {"methods", "pipeline", "reading", "synth"},
}
MAY_IMPORT["cli"] = {*MAY_IMPORT} - {"kernels", "merge", "publishing", "search", "seen", "testing"}


def room(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def names(module: Path) -> str:
    return ".".join(["shoal", *module.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def imports_at_run_time(module: Path) -> set[str]:
    """Modules of ours that a module imports, inside functions too; those only for type checking left out."""
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "shoal":
            found |= {f"shoal.{shoal._HOME.get(alias.name, alias.name)}" for alias in node.names}
    return {name.removeprefix("shoal.") for name in found if name.startswith("shoal.")}


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) not in GROUND | {"__init__"}], ids=names)
def test_import_direction(module):
    here = room(module)
    allowed = MAY_IMPORT[here] | GROUND | {here}
    if here == "kernels":
        allowed = {"kernels", "jit"}
    assert {name.partition(".")[0] for name in imports_at_run_time(module)} <= allowed


def test_ground_floor_imports_nothing_above_it_at_import_time():
    """It may reach up only inside functions: Trajectories.build, Release.write."""
    for module in MODULES:
        if room(module) in GROUND:
            top = [node for node in ast.parse(module.read_text()).body if isinstance(node, ast.ImportFrom)]
            rooms = {node.module.split(".")[1] for node in top if node.module and node.module.startswith("shoal.")}
            assert rooms <= GROUND, module.name


def test_the_verifier_runs_without_the_code_that_makes_releases(events, tmp_path):
    people = shoal.read(events)
    shoal.KScale(k=2).anonymize(people).write(tmp_path / "release.parquet", audit=tmp_path / "audit.parquet")
    script = f"""
import sys
from shoal.verifier import verify
for audit in (None, {str(tmp_path / "audit.parquet")!r}):
    verdict = verify({str(events)!r}, {str(tmp_path / "release.parquet")!r}, k=2, audit=audit)
    makers = ("shoal.methods", "shoal.search", "shoal.kernels", "shoal.merge")
    print(verdict.ok, sorted(m for m in sys.modules if m.startswith(makers)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True []", "True []"]


def test_help_imports_nothing_heavy():
    script = (
        "import sys\nfrom shoal.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numba','duckdb','pyproj','pyarrow','pandas','scipy','numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_public_names_are_sorted_and_real():
    assert shoal.__all__ == sorted(shoal.__all__)
    assert {method.__name__ for method in shoal.methods.METHODS.values()} <= set(shoal.__all__)
    assert all(getattr(shoal, name) is not None for name in shoal.__all__)
    with pytest.raises(AttributeError):
        _ = shoal.nothing_of_the_kind


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(shoal.__path__, "shoal.")])
def test_every_module_says_what_it_gives(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert all(hasattr(module, public) for public in module.__all__)


def test_messages_name_settings_as_python_does():
    """Names in backticks are settings; the command line makes flags of them (`shoal.names.with_flags`)."""
    declared = (ReadOptions, Limits, *METHODS.values())
    called = (shoal.publish, shoal.verify, shoal.attack, shoal.evaluate, shoal.compare)
    known = {name for kind in declared for name in kind.model_fields} | {"methods"}
    known |= {name for function in called for name in inspect.signature(function).parameters}
    odd = []
    for module in (module for module in MODULES if room(module) != "cli"):
        nodes = list(ast.walk(ast.parse(module.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        values = (node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
        texts = [value for value in values if isinstance(value, str)]
        odd += [text for text in texts if re.search(r"--[a-z]", text) or {*re.findall(r"`(\w+)[=`]", text)} - known]
    assert odd == []


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_modules_are_small_and_do_not_assert(module):
    text = module.read_text()
    assert len(text.splitlines()) <= 500
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    assert not re.search(r"\b(pickle|eval\(|np\.random\.seed)\b", text)
