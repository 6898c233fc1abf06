"""Break the verifier in one place at a time, and see whether its tests notice.

    python tests/mutants.py [--sample 300] [--seed 0] [--jobs 2] [--only search,truth] [--output survivors.txt]
                            [--again survivors.txt] [--near]

A mutant is the package with one small change in one line of `src/shoal/verifier`: another comparison, sign, number or
truth value, a condition turned round, a statement left out. Annotations, texts and imports are left alone. Lines are
drawn by the seed, one change each; every mutant runs the verifier's tests until one fails: the module's own examples,
then those that name it, then, unless `--near`, the others. A mutant is killed if a test fails or takes far longer than
it should; what survives is listed. Kernels run without compilation in mutants of their own modules.
"""

import argparse
import ast
import copy
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOM = Path("src/shoal/verifier")
KINDS = ("unit/test_verifier_*.py", "sabotage/test_*.py")
TESTS = [test for kind in KINDS for test in sorted((ROOT / "tests").glob(kind))]
LIMIT_S = 600  # of processor time; the tests of the unbroken package take a small part of it

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SIGNS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def changes(node):
    """Give every broken form of a node: (what was done, the node to put in its place)."""

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
    """Say whether a node is no behaviour: imports, what only type checkers see, what a module exports."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)


def places(node):
    """Give every place of a tree where a node may be replaced: (parent, field, index or None, node)."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in items:
            if isinstance(child, ast.AST) and not is_fixed(child):
                yield node, field, index, child
                yield from places(child)


def mutants_of(tree):
    """Give every way to break a tree: (line, what is done, parent, field, what stands there, what is put there)."""
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


def names(test, file):
    """Say whether a test imports from a module, or the module."""
    return bool(re.search(rf"shoal\.verifier(\.{file.stem} import| import .*\b{file.stem}\b)", test.read_text()))


def tests_for(file, *, near):
    """Order the tests: the module's own examples, then those that name it, then the others."""
    chosen = [test for test in TESTS if not near or names(test, file)]
    return [file, *sorted(chosen, key=lambda test: (not names(test, file), test.name))]


def without_compilation():
    """Make `jit` leave the verifier's own kernels as Python; the others come compiled from the cache."""
    import shoal.jit

    compiled = shoal.jit.jit
    shoal.jit.jit = lambda f: f if "/verifier/" in f.__code__.co_filename else compiled(f)


def run_tests(folder, tests, *, plain):
    """Run tests on the package in a folder, in a process of its own; say what became of it."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 10))
        os.chdir(folder)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        sys.path[:0] = [str(folder / "src"), str(folder)]
        import pytest

        status = 1
        try:
            if plain:
                without_compilation()
            quick = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "--hypothesis-seed=0"]
            status = int(pytest.main([*quick, *(str(folder / t.relative_to(ROOT)) for t in tests)]))
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return "took too long"
    return "survived" if status == 0 else "failed a test"


def attempt(mutant, *, near):
    """Try one mutant in this worker's copy of the package."""
    file, line, what, source = mutant
    folder = Path.cwd()
    target = folder / file.relative_to(ROOT)
    target.write_text(source)
    outcome = run_tests(folder, tests_for(file, near=near), plain="shoal.jit" in source)
    shutil.copy(file, target)
    return outcome, f"{outcome}: {file.name}:{line}: {what}: {file.read_text().splitlines()[line - 1].strip()}"


def start_worker(folder):
    """Give a worker a copy of the package, and load once what every test needs."""
    import duckdb  # noqa: F401
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401

    sys.dont_write_bytecode = True
    sys.path.pop(0)
    own = Path(tempfile.mkdtemp(dir=folder))
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, own / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", own)
    os.chdir(own)


def sound(plain, *, tests):
    """Run tests on the package as it is."""
    return run_tests(Path.cwd(), tests, plain=plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--near", action="store_true", help="only the tests that name the module: quicker, kills fewer")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--again", type=Path, help="only those of the sample that an earlier run lists")
    arguments = parser.parse_args()
    files = [f for f in sorted((ROOT / ROOM).glob("*.py")) if not arguments.only or f.stem in arguments.only.split(",")]
    chosen, lines = draw(files, arguments.sample, random.Random(arguments.seed))
    if arguments.again:
        listed = arguments.again.read_text()
        chosen = [mutant for mutant in chosen if f" {mutant[0].name}:{mutant[1]}: {mutant[2]}:" in listed]
    print(f"{lines:,} lines of {len(files)} modules can be broken; {len(chosen)} are", flush=True)

    counts, survivors = Counter(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        get_context("fork").Pool(arguments.jobs, start_worker, [folder]) as workers,
    ):
        broken = {file for file, *_ in chosen}
        tests = [test for test in TESTS if not arguments.near or any(names(test, file) for file in broken)]
        if workers.map(partial(sound, tests=tests), [False, True], chunksize=1) != ["survived"] * 2:
            sys.exit("the tests do not pass on the unbroken package")
        for outcome, text in workers.imap_unordered(partial(attempt, near=arguments.near), chosen):
            print(text, flush=True)
            counts[outcome] += 1
            survivors += [text] * (outcome == "survived")
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} killed ({killed / len(chosen):.1%}): {dict(counts)}")
    if arguments.output:
        arguments.output.write_text("".join(f"{text}\n" for text in sorted(survivors)))


if __name__ == "__main__":
    main()
