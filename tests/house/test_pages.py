"""The pages hold: links lead somewhere, every page is in the navigation, and what is marked as runnable runs."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from shoal.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")
FEW = 60  # people, instead of the thousands that a page speaks of


def text_of(page):
    """Return a page without its code."""
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text(encoding="utf-8")))


def anchors(page):
    """Return the anchors of a page's headings, as the site makes them."""
    found, seen = set(), {}
    for heading in re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain, flags=re.ASCII).strip().lower())
        seen[slug] = seen.get(slug, 0) + 1
        found.add(slug if seen[slug] == 1 else f"{slug}_{seen[slug] - 1}")
    return found


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    wrong = []
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_every_page_is_in_the_navigation_once():
    def leaves(entries):
        for entry in entries:
            for below in entry.values():
                yield from [below] if isinstance(below, str) else leaves(below)

    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(leaves(site["nav"])) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


@pytest.mark.parametrize("name", ["first-release.md", "recipients.md"])
def test_what_a_page_tells_to_type_works(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    ran = 0
    for language, block in BLOCK.findall((DOCS / name).read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(block, name, "exec"), names)
            ran += 1
        for line in block.splitlines() if language == "sh" else ():
            command, *arguments = shlex.split(re.sub(r"--users \d+", f"--users {FEW}", line))
            assert command == "shoal"
            with pytest.raises(SystemExit) as ended:
                main(arguments)
            assert ended.value.code == 0, f"{line}: {capsys.readouterr().err}"
            ran += 1
    assert ran >= 6
