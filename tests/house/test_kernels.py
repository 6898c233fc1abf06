"""House rules for kernels: few arguments, few lines, no `Any`; an exception stands with its reason above the kernel."""

import ast
import re
from pathlib import Path

import pytest

import shoal

SOURCE = Path(shoal.__file__).parent
MOST_ARGUMENTS, MOST_LINES = 6, 60
DECORATORS = {"jit", "inlined"}


def kernels(text):
    """Yield every kernel of a module with the comment directly above it."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef):
            continue
        if not DECORATORS & {getattr(decorator, "id", "") for decorator in node.decorator_list}:
            continue
        above = min(node.lineno, *(decorator.lineno for decorator in node.decorator_list)) - 1
        first = above
        while first > 0 and lines[first - 1].startswith("#"):
            first -= 1
        yield node, "\n".join(lines[first:above])


def faults(text):
    """Return what is against the rules in a module, as (kernel, rule)."""
    found = []
    for node, comment in kernels(text):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if len(arguments) > MOST_ARGUMENTS and not re.search(r"# more than six arguments: \w", comment):
            found.append((node.name, "arguments"))
        if node.end_lineno - node.lineno + 1 > MOST_LINES and not re.search(r"# more than 60 lines: \w", comment):
            found.append((node.name, "lines"))
        annotations = [argument.annotation for argument in arguments] + [node.returns]
        if any(annotation is None for annotation in annotations):
            found.append((node.name, "no type"))
        elif any(getattr(part, "id", "") == "Any" for annotation in annotations for part in ast.walk(annotation)):
            found.append((node.name, "Any"))
    return found


def modules():
    files = sorted(path for path in SOURCE.rglob("*.py") if any(True for _ in kernels(path.read_text())))
    return [path.relative_to(SOURCE).as_posix() for path in files]


@pytest.mark.parametrize("module", modules())
def test_kernels_are_short_and_typed(module):
    assert faults((SOURCE / module).read_text()) == []


KERNEL = "@jit\ndef kernel({}) -> None:\n{}"
SEVEN = ", ".join(f"{name}: int" for name in "abcdefg")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KERNEL.format("a: int", "    pass"), []),
        (KERNEL.format(SEVEN, "    pass"), [("kernel", "arguments")]),
        ("# more than six arguments: speed\n" + KERNEL.format(SEVEN, "    pass"), []),
        ("# more than six arguments:\n" + KERNEL.format(SEVEN, "    pass"), [("kernel", "arguments")]),
        ("# more than six arguments: speed\n\n" + KERNEL.format(SEVEN, "    pass"), [("kernel", "arguments")]),
        (KERNEL.format("a: int", "    pass\n" * 59), []),
        (KERNEL.format("a: int", "    pass\n" * 60), [("kernel", "lines")]),
        ("# more than 60 lines: speed\n# and more\n" + KERNEL.format("a: int", "    pass\n" * 60), []),
        (KERNEL.format("a: NDArray[Any]", "    pass"), [("kernel", "Any")]),
        (KERNEL.format("a", "    pass"), [("kernel", "no type")]),
        (KERNEL.replace("jit", "inlined").format(SEVEN, "    pass"), [("kernel", "arguments")]),
        (KERNEL.replace("@jit\n", "").format(SEVEN, "    pass"), []),
    ],
)
def test_the_rules_see_what_they_should(text, expected):
    assert faults(text) == expected
