"""Pages that are derived from the code are there and up to date: `python docs/reference.py` makes them anew."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import pytest

import shoal

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reference)


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_what_the_code_says(name):
    if name == "cli.md" and int(version("cyclopts").split(".")[0]) < 5:
        pytest.skip("older releases of cyclopts print the help in another form")
    assert (DOCS / name).read_text() == reference.PAGES[name]()


def test_the_python_reference_has_every_public_name():
    page = (DOCS / "api.md").read_text()
    assert [name for name in shoal.__all__ if f"\n### shoal.{name}\n" not in page] == []


def test_the_readme_names_the_two_commands_first():
    first = (DOCS.parent / "README.md").read_text()[:900]
    assert "make demo" in first
    assert "make test" in first
