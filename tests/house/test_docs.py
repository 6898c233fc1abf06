"""Pages that are derived from the code are there and up to date: `python docs/reference.py` makes them anew."""

import re
from pathlib import Path

import pytest

import shoal
from shoal.methods import METHODS
from shoal.seen.codes import NOTES, PROBLEMS
from shoal.settings import flag_of

DOCS = Path(__file__).parents[2] / "docs"


def test_the_python_reference_has_every_public_name():
    page = (DOCS / "api.md").read_text()
    assert [name for name in shoal.__all__ if f"\n### shoal.{name}\n" not in page] == []


@pytest.mark.parametrize("name", METHODS)
def test_the_table_of_methods_has_every_setting(name):
    page, kind = (DOCS / "methods" / "index.md").read_text(), METHODS[name]
    assert f"| {kind.about} | {kind.citation} |" in page
    part = page.partition(f"## Settings of {name}\n")[2].partition("\n## ")[0]
    for setting, about in kind.settings().items():
        assert f"| `{setting}` | `{flag_of(setting)}` |" in part
        assert about.help in part


def test_the_page_of_findings_lists_every_code_with_its_sentence():
    page, sentences = (DOCS / "findings.md").read_text(), {**PROBLEMS, **NOTES}
    listed = re.findall(r"^\| `([a-z/-]+)` \| (.*) \|$", page, re.MULTILINE)
    assert listed == [(code, re.sub(r"\{(\w+)[^}]*\}", r"*\1*", text)) for code, text in sentences.items()]
    kinds = dict.fromkeys(code.partition("/")[0] for code in PROBLEMS)
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [*kinds, "Notes"]


def test_the_readme_names_the_two_commands_first():
    first = (DOCS.parent / "README.md").read_text()[:900]
    assert "make demo" in first
    assert "make test" in first
