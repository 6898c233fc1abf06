"""Pages that are derived from the code are there and up to date: `python docs/reference.py` makes them anew."""

from pathlib import Path

import pytest

import shoal
from shoal.methods import METHODS
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


def test_the_readme_names_the_two_commands_first():
    first = (DOCS.parent / "README.md").read_text()[:900]
    assert "make demo" in first
    assert "make test" in first
