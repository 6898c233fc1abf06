"""Break the verifier in one place at a time, and see whether its tests notice.

    python tests/mutants.py [--sample 300] [--seed 0] [--jobs 2] [--only search,truth] [--output survivors.txt]
                            [--again survivors.txt]

A mutant is the package with one small change in one line of `src/shoal/verifier` or `src/shoal/seen`: another
comparison, sign, number or truth value, a condition turned round, a statement left out. Annotations, texts and imports
are left alone. Lines are drawn by the seed, one change each; `--sample 0` breaks every line.

First all of the verifier's tests and examples run on the unbroken package, to see which functions each of them calls
and how long it takes. A mutant then runs those that call its function, the quickest first, until one fails; a line that
runs when the module is loaded is tried on all that call anything of the module. It is killed if a test fails or takes
far longer than it should; what survives is listed. The verifier's kernels run as plain Python throughout.
"""

import argparse
import ast
import copy
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = (Path("src/shoal/verifier"), Path("src/shoal/seen"))
TESTS = ("tests/unit/test_verifier_*.py", "tests/sabotage/test_*.py", *(f"{room}/*.py" for room in ROOMS))
MEMORY = 6 << 30  # bytes at most: what is broken may never stop to fill it
QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "--hypothesis-seed=0"]

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SIGNS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def changes(node):
    """Return every broken form of a node: (what was done, the node to put in its place)."""

    def other(**fields):
        made = copy.copy(node)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                if type(op) in COMPARISONS:
                    ops = [*node.ops[:at], COMPARISONS[type(op)](), *node.ops[at + 1 :]]
                    yield "comparison", other(ops=ops)
        case ast.BinOp() | ast.AugAssign() if type(node.op) in SIGNS:
            yield "sign", other(op=SIGNS[type(node.op)]())
        case ast.BoolOp():
            yield "and/or", other(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield "not", node.operand
        case ast.Constant(value=bool()):
            yield "truth value", other(value=not node.value)
        case ast.Constant(value=int()):
            yield "number", other(value=node.value + 1)
        case ast.If() | ast.IfExp() | ast.While():
            yield "condition", other(test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield "left out", ast.Pass()
    if isinstance(node, ast.AugAssign | ast.Continue | ast.Break | ast.Raise):
        yield "left out", ast.Pass()


def is_fixed(node):
    """Return whether a node is no behaviour: imports, what only type checkers see, what a module exports."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)


def places(node):
    """Return every place of a tree where a node may be replaced: (parent, field, index or None, node)."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in items:
            if isinstance(child, ast.AST) and not is_fixed(child):
                yield node, field, index, child
                yield from places(child)


def mutants_of(tree):
    """Return every way to break a tree: (line, what is done, parent, field, what stands there, what is put there)."""
    for parent, field, index, node in places(tree):
        for what, broken in changes(node):
            kept = getattr(parent, field)
            made = broken if index is None else [*kept[:index], broken, *kept[index + 1 :]]
            yield getattr(node, "lineno", 0), what, parent, field, kept, made


def draw(files, sample, chance):
    """Draw lines, and one way to break each: [(file, line, what is done, source)], and how many lines there are."""
    trees = {file: ast.parse(file.read_text()) for file in files}
    lines = defaultdict(list)
    for file, tree in trees.items():
        for line, *way in mutants_of(tree):
            lines[file, line].append(way)
    chosen = []
    for file, line in chance.sample(sorted(lines), min(sample, len(lines))):
        what, parent, field, kept, made = chance.choice(lines[file, line])
        setattr(parent, field, made)
        chosen.append((file, line, what, ast.unparse(ast.fix_missing_locations(trees[file]))))
        setattr(parent, field, kept)
    return chosen, len(lines)


def named(file):
    """Return the name of a module with its room: both have a cover.py."""
    return f"{file.parent.name}/{file.name}"


def test_files():
    """Return the files of the verifier's tests, and its modules, which have examples."""
    return [str(file.relative_to(ROOT)) for kind in TESTS for file in sorted(ROOT.glob(kind))]


class Reach:
    """A pytest plugin that notes, for each test, how long it takes and the verifier's functions that it calls."""

    def __init__(self, folder):
        self.files = {str(file): named(file) for room in ROOMS for file in (folder / room).glob("*.py")}
        self.seconds, self.called = {}, defaultdict(set)
        self.here = set()

    def trace(self, frame, event, _):
        if frame.f_code.co_filename in self.files:
            self.here.add(frame.f_code)

    def pytest_sessionstart(self):
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def pytest_runtest_setup(self, item):
        self.here = self.called[item.nodeid]

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self):
        sys.settrace(None)

    def functions(self):
        """Give, for each module, the tests that call the function that begins in each of its lines."""
        found = defaultdict(lambda: defaultdict(list))
        for test, codes in self.called.items():
            for code in codes:
                found[self.files[code.co_filename]][code.co_firstlineno].append(test)
        return found


class Chosen:
    """A pytest plugin that runs the tests it is given, in that order, and no others; one that is slow ends it all."""

    def __init__(self, tests, seconds):
        self.rank = {test: rank for rank, test in enumerate(tests)}
        self.seconds = seconds

    def pytest_runtest_setup(self, item):
        signal.setitimer(signal.ITIMER_PROF, 10 + 5 * self.seconds[item.nodeid])

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((i for i in items if i.nodeid in self.rank), key=lambda item: self.rank[item.nodeid])


def without_compilation():
    """Make `jit` leave the verifier's own kernels as Python; the others come compiled from the cache."""
    import shoal.jit

    compiled = shoal.jit.jit
    shoal.jit.jit = lambda f: f if "/verifier/" in f.__code__.co_filename else compiled(f)


def in_a_child(folder, work, *, keep=False):
    """Run `work` with the package of a folder in a process of its own; give its exit status as `os.waitpid` does.

    `keep`: what Python compiles is kept for the next.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            os.chdir(folder)
            said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(said, 1)
            os.dup2(said, 2)
            sys.path[:0] = [str(folder / "src"), str(folder)]
            sys.dont_write_bytecode = not keep
            without_compilation()
            status = work()
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(child, 0)[1]


def look(tests):
    """Run some files of tests on the package as it is: give (seconds of each test, tests by module and
    function), or, if one fails, what was said."""
    import pytest

    folder, answer = Path.cwd(), Path.cwd() / "reach.json"

    def work():
        reach = Reach(folder)
        status = pytest.main([*QUIET, *tests], plugins=[reach])
        answer.write_text(json.dumps([reach.seconds, reach.functions()]))
        return int(status) if status != pytest.ExitCode.NO_TESTS_COLLECTED else 0

    if in_a_child(folder, work, keep=True):
        return (folder / "said.txt").read_text()
    return json.loads(answer.read_text())


def begins(file, line):
    """Return the line in which the innermost function around a line begins, as its code says; None: there is none."""
    around = [
        (node.end_lineno - node.lineno, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= node.end_lineno
    ]
    return min(around)[1] if around else None


def attempt(mutant, *, seconds, called):
    """Try one mutant in this worker's copy of the package: give (outcome, a line about it)."""
    import pytest

    file, line, what, source = mutant
    folder = Path.cwd()
    tests = called.get(named(file), {})
    tests = set(tests.get(str(begins(file, line))) or chain(*tests.values()))
    order = sorted(tests, key=lambda test: (seconds[test], test))
    files = sorted({test.partition("::")[0] for test in order})
    target = folder / file.relative_to(ROOT)
    target.write_text(source)
    try:
        chosen = Chosen(order, seconds)
        status = in_a_child(folder, lambda: int(pytest.main([*QUIET, "-x", *files], plugins=[chosen])))
    finally:
        shutil.copy2(file, target)  # with its old time, so that what was compiled of it is taken again
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
    outcome = "took too long" if late else "failed a test" if status else "survived"
    text = file.read_text().splitlines()[line - 1].strip()
    return outcome, f"{outcome}: {named(file)}:{line}: {what}: {text} ({len(order)} tests call it)"


def start_worker(folder):
    """Return a worker a copy of the package, and load once what every test needs."""
    import duckdb  # noqa: F401
    import geopandas  # noqa: F401
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pydantic  # noqa: F401
    import pyproj  # noqa: F401
    import pytest
    import scipy.stats  # noqa: F401

    sys.path.pop(0)
    own = Path(tempfile.mkdtemp(dir=folder))
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, own / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", own)
    os.chdir(own)
    in_a_child(own, lambda: int(pytest.main([*QUIET, "--collect-only", *test_files()])), keep=True)


def survey(workers):
    """See which tests call which functions: (seconds of each test, {module: {first line: tests}})."""
    seconds, called = {}, defaultdict(lambda: defaultdict(list))
    for answer in workers.imap_unordered(look, [[file] for file in test_files()]):
        if isinstance(answer, str):
            sys.exit(f"{answer}\nthe tests do not pass on the unbroken package")
        seconds |= answer[0]
        for module, lines in answer[1].items():
            for line, tests in lines.items():
                called[module][line] += tests
    return seconds, {module: dict(lines) for module, lines in called.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="how many lines; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--again", type=Path, help="only those of the sample that an earlier run lists")
    arguments = parser.parse_args()
    files = [f for room in ROOMS for f in sorted((ROOT / room).glob("*.py"))]
    files = [f for f in files if not arguments.only or f.stem in arguments.only.split(",")]
    chosen, lines = draw(files, arguments.sample or sys.maxsize, random.Random(arguments.seed))
    if arguments.again:
        listed = arguments.again.read_text()
        chosen = [mutant for mutant in chosen if f" {named(mutant[0])}:{mutant[1]}: {mutant[2]}:" in listed]
    print(f"{lines:,} lines of {len(files)} modules can be broken; {len(chosen)} are", flush=True)

    start, counts, survivors = time.monotonic(), Counter(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        get_context("fork").Pool(arguments.jobs, start_worker, [folder]) as workers,
    ):
        seconds, called = survey(workers)
        print(f"{len(seconds):,} tests, {sum(seconds.values()):.0f} s in all", flush=True)
        trial = partial(attempt, seconds=seconds, called=called)
        for outcome, text in workers.imap_unordered(trial, chosen):
            print(f"{time.monotonic() - start:.0f} s: {text}", flush=True)
            counts[outcome] += 1
            survivors += [text] * (outcome == "survived")
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} killed ({killed / len(chosen):.1%}): {dict(counts)}")
    if arguments.output:
        arguments.output.write_text("".join(f"{text}\n" for text in sorted(survivors)))


if __name__ == "__main__":
    main()
