"""Write the pages and tables that are derived from the code: API, commands, methods, metrics, findings."""

import importlib
import inspect
import io
import re
import sys
from operator import attrgetter
from pathlib import Path
from types import FunctionType

from rich.console import Console

import shoal
import shoal.testing
from shoal.cli.app import app
from shoal.methods import METHODS
from shoal.names import flag_of
from shoal.seen.codes import NOTES, PROBLEMS
from shoal.utility import METRICS

DOCS = Path(__file__).parent
MADE = "<!-- The table below is made from the metrics' declarations by `python docs/reference.py`. -->"
SHARED = ("Reading", "Running")  # panels that are the same for several commands
GROUPS = {
    "Read": ["read", "read_traces", "from_pandas", "from_polars", "from_geopandas", "from_arrow", "ReadOptions"],
    "Anonymize and publish": ["publish", "Published", "Run"],
    "Methods": ["methods", "Method", *(kind.__name__ for kind in METHODS.values())],
    "Verify": ["verify", "Verdict", "Claim"],
    "Sign": ["sign", "SigningKey", "verify_signature"],
    "Attack, evaluate, compare": ["attack", "Outcome", "evaluate", "Evaluation", "compare", "Compared"],
    "Measure": ["k_gap", "Gaps", "stretch_effort", "unicity", "Unicity", "k_merge"],
    "Data": ["Release", "read_release", "Trajectories", "Traces", "Frame", "synthesize"],
    "Check a new method": ["testing.check_method", "testing.Nonconforming"],
    "Errors": ["ShoalError", "SettingsError", "NotVerified", "CannotCheck"],
}


def api():
    """Return the page of the public names: signature and docstring of each."""
    page = ["# Python reference", "", "This page is made from the docstrings by `python docs/reference.py`.", ""]
    for title, names in GROUPS.items():
        page += [f"## {title}", ""]
        for name in names:
            thing = attrgetter(name)(shoal)
            page += [f"### shoal.{name}", "", *entry(thing, name.rpartition(".")[2]), *members(thing), ""]
    return "\n".join(page).rstrip() + "\n"


def entry(thing, name):
    """Return the lines about one public name."""
    if inspect.ismodule(thing):
        return [plain(thing.__doc__), "", f"Names: {', '.join(f'`{one}`' for one in thing.__all__)}."]
    lines = []
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
        lines += ["```python", f"{name}{signature(thing)}", "```", ""]
    return [*lines, plain(inspect.getdoc(thing))]


def members(thing):
    """Return the lines about the public methods and properties of a class, without those of its public bases."""
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return []
    ours = [base for base in thing.__mro__ if base.__module__.startswith("shoal.")]
    bases = [base for base in ours[1:] if base.__name__ in shoal.__all__]
    theirs = {name for base in bases for name in dir(base)}
    names = dict.fromkeys(name for base in ours for name in vars(base) if not name.startswith("_"))
    lines = [member(thing, name) for name in names if name not in theirs and described(thing, name)]
    also = [f"Also the methods and properties of `{base.__name__}`." for base in bases]
    return [part for line in [*lines, *also] for part in ("", line)]


def described(kind, name):
    """Return whether a name of a class is a method or a property, not a field."""
    return isinstance(inspect.getattr_static(kind, name), property | classmethod | staticmethod | FunctionType)


def member(kind, name):
    """Return the lines about a method or a property: how it is called, and its docstring without the example."""
    thing = inspect.getattr_static(kind, name)
    called = "" if isinstance(thing, property) else re.sub(r"\(self(, )?", "(", text_of(getattr(kind, name)))
    paragraphs = inspect.getdoc(thing).partition(">>>")[0].strip().split("\n\n")
    said = "\n\n    ".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return f"`{kind.__name__}.{name}{called}`\n:   {said}"


def text_of(thing):
    """Return the signature of a function or class as it is written; defaults without a short form become `…`."""
    text = re.sub(r"<\w[^=]* at 0x[0-9a-f]+>", "…", str(inspect.signature(thing))).replace("'", "")
    return text.removesuffix(" -> None") if inspect.isclass(thing) else text


def signature(thing):
    """Return a signature, one argument a line where it is long."""
    if inspect.isclass(thing) and hasattr(thing, "model_fields"):
        fields = thing.model_fields.items()
        given = ", ".join(name if field.is_required() else f"{name}={field.get_default()!r}" for name, field in fields)
        return f"({given})"
    text = text_of(thing)
    arguments, end, returned = text[1:].rpartition(")")
    return text if len(text) < 100 else "(\n    " + ",\n    ".join(split(arguments)) + f"\n{end}{returned}"


def split(arguments):
    """Return the arguments of a signature, one by one."""
    depth, parts, part = 0, [], ""
    for sign in arguments:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += sign
    return [*parts, part.strip()]


def plain(text):
    """Return a docstring as Markdown: examples and parameters as code blocks."""
    lines, out, fenced = (text or "").split("\n"), [], False
    for number, line in enumerate(lines):
        code = line.startswith((">>>", "...")) or (fenced and line.strip() and not line.startswith(">>>"))
        heading = number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}
        if code and not fenced:
            out += ["", "```pycon"]
            fenced = True
        if fenced and not line.strip():
            out.append("```")
            fenced = False
        if heading:
            out += ["", f"**{line.strip()}**", ""]
        elif set(line.strip()) == {"-"}:
            continue
        elif not fenced and line.startswith("    ") and line.strip():
            follows = bool(out) and out[-1].startswith((":   ", "    "))
            out.append(f"{'    ' if follows else ':   '}{line.strip()}")
        else:
            out.append(line)
    return "\n".join([*out, *(["```"] if fenced else [])])


def methods():
    """Return the page with the table of methods and their settings."""
    page = [
        "# The methods",
        "",
        "This page is made from the methods' declarations by `python docs/reference.py`. `shoal methods` prints it.",
        "[Choosing a method](../choosing-a-method.md) says which of them you need.",
        "",
        "| method | claim | works on | what it does | from |",
        "|---|---|---|---|---|",
    ]
    for kind in METHODS.values():
        file = DOCS / "methods" / f"{kind.name}.md"
        name = f"[{kind.name}]({file.name})" if file.exists() else kind.name
        page.append(f"| {name} | `{kind.example().claim.name}` | {kind.takes} | {kind.about} | {kind.citation} |")
    for kind in METHODS.values():
        page += [
            "",
            f"## Settings of {kind.name}",
            "",
            "| setting | flag | default | published as | meaning |",
            "|---|---|---|---|---|",
        ]
        for name, about in kind.settings().items():
            field = kind.model_fields[name]
            default = (
                "required"
                if field.is_required()
                else f"{field.get_default()}{about.unit if field.get_default() else ''}"
            )
            public = f"`{about.public}`" if about.public else "private"
            page.append(f"| `{name}` | `{flag_of(name)}` | {default} | {public} | {about.help} |")
        if kind.variants:
            page += [
                "",
                f"Variants for `shoal compare`: {', '.join(f'`{kind.name}:{word}`' for word in kind.variants)}.",
            ]
    return "\n".join(page) + "\n"


def cli():
    """Return the page of the command line, from what `--help` prints."""
    helps = {name: panels(name) for name in sorted(name for name in app if not name.startswith("-"))}
    once = {}
    for name in SHARED:
        tables = [found[name] for _, found, _ in helps.values() if name in found]
        if tables and all(table == tables[0] for table in tables):
            once[name] = tables[0]
    page = [
        "# Command line reference",
        "",
        "This page is made by `python docs/reference.py` from what `shoal COMMAND --help` prints.",
        "",
        "Every option can also be written in a file: see [Configuration](formats.md#configuration).",
    ]
    for name, (text, found, examples) in helps.items():
        page += ["", f"## shoal {name}", "", *text]
        for title, rows in found.items():
            if title in once:
                page += ["", f"{title}: see [below](#{title.lower()}-options)."]
            else:
                page += ["", f"**{title}**", "", "| name | meaning |", "|---|---|", *rows]
        page += ["", "```", *examples, "```"] if examples else []
    for title, rows in once.items():
        users = ", ".join(f"`{name}`" for name, (_, found, _) in helps.items() if title in found)
        page += ["", f"## {title} options", "", f"Of {users}.", "", "| name | meaning |", "|---|---|", *rows]
    return "\n".join(page) + "\n"


def panels(name):
    """Return what the help of a command says: its usage and text, the rows of its panels by title, and its examples."""
    printed = io.StringIO()
    app.help_print([name], console=Console(file=printed, width=1000, color_system=None, force_terminal=False))
    text, found, examples, rows = [], {}, [], None
    for line in printed.getvalue().splitlines():
        if start := re.match(r"╭─ (.*?) ─", line):
            rows = found.setdefault(start[1], [])
        elif line.startswith("│"):
            entry, *about = re.split(r" {2,}", line.strip("│ ").replace("|", "\\|"))
            rows.append(f"| `{entry}` | {' '.join(about)} |")
        elif line.startswith("Usage: "):
            text += ["```", line.removeprefix("Usage: ").strip(), "```"]
        elif line.startswith("Example: "):
            examples.append(line.removeprefix("Example: ").strip())
        elif not line.startswith("╰") and (line.strip() or (text and text[-1])):
            text.append(line.strip())
    return "\n".join(text).strip().splitlines(), found, examples


def evaluate():
    """Return the page about utility, with the table of metrics made anew."""
    rows = ["| metric | figures | unit | better | meaning |", "|---|---|---|---|---|"]
    for metric in METRICS.values():
        figures = ", ".join(f"`{figure.name}`" for figure in metric.figures)
        meaning = metric.definition.replace("|", "\\|") + (" Needs the audit file." if metric.needs_owners else "")
        rows.append(f"| {metric.name} | {figures} | {metric.unit or 'ratio'} | {metric.better} | {meaning} |")
    before, rest = (DOCS / "evaluate.md").read_text().split(f"{MADE}\n\n", 1)
    after = rest.partition("\n\n")[2]
    return f"{before}{MADE}\n\n" + "\n".join(rows) + f"\n\n{after}"


def findings():
    """Return the page of what `verify` can find: codes and sentences."""
    page = [
        "# What verify can find",
        "",
        "This page is made from `src/shoal/seen/codes.py` by `python docs/reference.py`.",
        "",
        "`shoal verify --json` lists the codes of what failed as `codes`, and the sentences as `problems`.",
        "Codes are stable; sentences may be reworded. The part before the slash is the kind of check.",
    ]
    for kind in dict.fromkeys(code.partition("/")[0] for code in PROBLEMS):
        page += ["", f"## {kind}", "", "| code | sentence |", "|---|---|"]
        page += [f"| `{code}` | {example(text)} |" for code, text in PROBLEMS.items() if code.startswith(f"{kind}/")]
    page += ["", "## Notes", "", "A note is no failure.", "", "| code | sentence |", "|---|---|"]
    page += [f"| `{code}` | {example(text)} |" for code, text in NOTES.items()]
    return "\n".join(page) + "\n"


def example(text):
    """Return a sentence with the names of its numbers in place of the numbers."""
    return re.sub(r"\{(\w+)[^}]*\}", r"*\1*", text)


PAGES = {"api.md": api, "cli.md": cli, "methods/index.md": methods, "evaluate.md": evaluate, "findings.md": findings}


def main():
    importlib.invalidate_caches()
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
        sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
